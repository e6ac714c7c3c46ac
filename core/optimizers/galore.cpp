// GaLore: AdamW, 8-bit AdamW and Adafactor on gradients in the directions of their largest singular values.
#include "core/optimizers/adafactor.hpp"
#include "core/optimizers/bitsandbytes.hpp"
#include "core/optimizers/low_rank.hpp"

namespace tidemark {
namespace {

constexpr const char* kAdamw = "galore-torch 1.0 galore_torch/adamw.py, galore_projector.py";
constexpr const char* kAdamw8bit = "galore-torch 1.0 galore_torch/adamw8bit.py, galore_projector.py";
constexpr const char* kPacked = "q-galore-torch 1.0 q_galore_adamw8bit.py, q_galore_projector.py";
constexpr const char* kAdafactor = "galore-torch 1.0 galore_torch/adafactor.py, galore_projector.py";

void create(OptimizerRun& run, const Parameter& p) {
  const bool projected = is_projected(run, p);
  if (projected) keep_singular_vectors(run, p, p.dtype);
  const Shape shape = projected ? projected_shape(run, p) : p.shape;
  run.keep(shape, p.dtype, "exp_avg");
  run.keep(shape, p.dtype, "exp_avg_sq");
}

void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [grad, denominator, norm_grad, none, no, nil] = names;
  Tape& t = run.tape;
  const bool projected = is_projected(run, p);
  grad.reset();  // bound to the parameter's own first
  if (projected) renew_singular_vectors(run, p, p.dtype);
  const Shape shape = projected ? projected_shape(run, p) : p.shape;
  if (projected) grad = t.allocate(shape, p.dtype, "low-rank gradient");
  denominator = t.allocate(shape, p.dtype, "denom");
  norm_grad = t.allocate(shape, p.dtype, "norm_grad");
  if (projected) project_back(run, p, p.dtype, norm_grad);
}

/// Its states are made for the projected gradient, which stands in the parameter's place meanwhile. Not "bitsandbytes"
/// by its class's name, so the Trainer asks for no 32 bits of token tables.
template <bool packed>
void create_8bit(OptimizerRun& run, const Parameter& p) {
  Parameter seen = p;
  seen.is_embedding = false;
  if (is_projected(run, p)) {
    packed ? keep_packed_vectors(run, p) : keep_singular_vectors(run, p, p.dtype);
    seen.shape = projected_shape(run, p);
  }
  bitsandbytes::create_8bit<2>(run, seen);
}

template <bool packed>
void update_8bit(OptimizerRun& run, const Parameter& p, Tensor& gradient, StepNames& names) {
  if (!is_projected(run, p)) return;
  Tensor& grad = names[0];
  Tape& t = run.tape;
  renew_singular_vectors(run, p, p.dtype);
  {
    Tensor vectors;
    if (packed) vectors = unpacked_vectors(run, p);
    grad = t.allocate(projected_shape(run, p), p.dtype, "low-rank gradient");
  }
  t.allocate(p.shape, p.dtype, "saved_data");  // which becomes the weight, whose own storage goes
  Tensor seen = t.allocate(projected_shape(run, p), p.dtype, "p.data");
  // p.grad = grad: the full one goes, the low-rank one stays until zero_grad().
  t.set_category(grad, Category::kGradients);
  gradient = grad;
  Tensor vectors, low;
  if (packed) vectors = unpacked_vectors(run, p);
  project_back(run, p, p.dtype, low);
}

void create_adafactor(OptimizerRun& run, const Parameter& p) {
  if (!is_projected(run, p)) return keep_factored_moment(run, p.shape);
  keep_singular_vectors(run, p, Dtype::kFp32);
  keep_factored_moment(run, projected_shape(run, p));
}

void update_adafactor(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [grad, parameter, update, none, no, nil] = names;
  Tape& t = run.tape;
  const bool projected = is_projected(run, p), half = is_half(p.dtype);
  const Shape shape = projected ? projected_shape(run, p) : p.shape;
  grad.reset();
  if (half) grad = t.allocate(p.shape, Dtype::kFp32, "grad.float()");
  if (projected) renew_singular_vectors(run, p, Dtype::kFp32);
  if (projected) grad = t.allocate(shape, Dtype::kFp32, "low-rank gradient");
  parameter.reset();
  if (half) parameter = t.allocate(p.shape, Dtype::kFp32, "p.float()");
  Tensor square = t.allocate(shape, Dtype::kFp32, "grad ** 2");
  update = t.allocate(shape, Dtype::kFp32, "update");
  square.reset();
  mean_over_rows(run, shape);
  update = t.allocate(shape, Dtype::kFp32, "update");
  if (projected) project_back(run, p, Dtype::kFp32, update);
  t.allocate(p.shape, Dtype::kFp32, "-update");
}

constexpr Optimizer row(const char* name, std::string_view help, const char* source, int bits,
                        void (*states)(OptimizerRun&, const Parameter&),
                        void (*step)(OptimizerRun&, const Parameter&, Tensor&, StepNames&), bool layerwise) {
  Optimizer made;
  made.name = name;
  made.help = help;
  made.source = source;
  made.state_bits = bits;
  made.create = states;
  made.update = step;
  made.groups = ParameterGroups::kProjected;
  made.in_backward = layerwise;
  return made;
}

// axolotl utils/optimizers/qgalore.py build_qgalore_param_groups; its schema: qgalore_rank.
constexpr std::string_view kAxolotlTargets[] = {"attn", "mlp"};

constexpr Optimizer packed_row() {
  Optimizer made = row("q_galore_adamw8bit", "Axolotl's Q-GaLore: 8-bit states, projectors of 4 bits", kPacked, 8,
                       create_8bit<true>, update_8bit<true>, false);
  made.rank = 256;
  made.targets = kAxolotlTargets;
  return made;
}

constexpr Optimizer kRows[] = {
    row("galore_adamw", "GaLore: AdamW in a low-rank projection", kAdamw, 32, create, update, false),
    row("galore_adamw_8bit", "GaLore, 8-bit states", kAdamw8bit, 8, create_8bit<false>, update_8bit<false>, false),
    row("galore_adafactor", "GaLore with Adafactor", kAdafactor, 32, create_adafactor, update_adafactor, false),
    row("galore_adamw_layerwise", "GaLore, each weight in backward", kAdamw, 32, create, update, true),
    row("galore_adamw_8bit_layerwise", "GaLore, 8-bit states, each weight in backward", kAdamw8bit, 8,
        create_8bit<false>, update_8bit<false>, true),
    packed_row(),
    {.name = "galore_adafactor_layerwise", .help = "transformers 5.12 fails: it gives lr together with relative_step"},
};

}  // namespace

extern const OptimizerRows galore_rows;
const OptimizerRows galore_rows = kRows;

}  // namespace tidemark
