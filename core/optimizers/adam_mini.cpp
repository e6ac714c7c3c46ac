// Adam-mini: one second moment for each head, row or module.
#include <algorithm>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

enum class Block : std::uint8_t { kBias, kHeads, kNeurons, kWhole };

// __init__: names of blocks, asked in this order.
Block block_of(const Parameter& p) {
  const std::string_view module = p.module;
  const auto any = [module](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [module](std::string_view word) { return has(module, word); });
  };
  if (has(p.leaf, "bias")) return Block::kBias;
  if (any({"k_proj", "q_proj", "wq", "wk", "query", "key"})) return Block::kHeads;
  if (any({"embed", "embd", "wte", "lm_head", "output", "final_layer", "v_proj", "wv", "value", "feed_forward",
           "linear", "mlp", "o_proj", "wo", "attn.proj"})) {
    return Block::kNeurons;
  }
  return Block::kWhole;
}

// One second moment: of a bias as Adam, of queries and keys for each head, of matrices for each row, of the rest one.
void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "m");
  switch (block_of(p)) {
    case Block::kBias:
      return run.keep(p.shape, p.dtype, "v");
    case Block::kHeads:
      return run.keep(Shape{p.shape.dim(0), Dim(1)}, p.dtype, "vmean");
    case Block::kNeurons:
      return run.keep(Shape{p.shape.dim(0), Dim(1)}, p.dtype, "vmean");
    default:
      return run.keep(Shape{}, p.dtype, "vmean");
  }
}

void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  Tensor& update = names[0];
  Tape& t = run.tape;
  if (block_of(p) == Block::kBias) {
    Tensor root = t.allocate(p.shape, p.dtype, "v.sqrt()");
    names[1] = t.allocate(p.shape, p.dtype, "h");
    return;
  }
  t.allocate(p.shape, p.dtype, "grad * grad");
  update = t.allocate(p.shape, p.dtype, "update");
  t.allocate(p.shape, p.dtype, "-update");
}

constexpr Optimizer kRows[] = {
    {.name = "adam_mini",
     .help = "Adam-mini: one second moment per head or neuron",
     .source = "adam-mini 1.1.1 adam_mini/adam_mini.py",
     .create = create,
     .update = update,
     .groups = ParameterGroups::kNamed},
};

}  // namespace

extern const OptimizerRows adam_mini_rows;
const OptimizerRows adam_mini_rows = kRows;

}  // namespace tidemark
