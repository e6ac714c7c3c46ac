// LoRA-FA: of each pair of factors the second alone is trained.
#include <string_view>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

bool is_second_factor(const Parameter& p) {
  return std::string_view{p.leaf}.find("lora_B") != std::string_view::npos;
}

// B.grad by the inverse of A * A^T, under autocast to bf16; then AdamW one parameter after the other, which is all that
// other trained weights get (modules_to_save).
void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [product, inverse, grad, denominator, other_denominator, none] = names;
  Tape& t = run.tape;
  if (!is_second_factor(p)) {
    other_denominator = t.allocate(p.shape, p.dtype, "denom");
    return;
  }
  const Shape square{p.shape.dim(1), p.shape.dim(1)};
  product = t.allocate(square, p.dtype, "A @ A.T");
  {
    // pytorch 2.14 native/LinearAlgebra.cpp: linalg_pinv by singular values.
    const Tensor sum = t.allocate(square, Dtype::kFp32, "A @ A.T + delta");
    const Tensor left = t.allocate(square, Dtype::kFp32, "U");
    const Tensor right = t.allocate(square, Dtype::kFp32, "Vh");
    const Tensor scaled = t.allocate(square, Dtype::kFp32, "Vh by the inverse of S");
    inverse = t.allocate(square, Dtype::kFp32, "pinv");
  }
  {
    Tensor narrow;
    if (p.dtype != Dtype::kBf16) narrow = t.allocate(p.shape, Dtype::kBf16, "grad_B_orin (bf16)");
    const Tensor narrow_inverse = t.allocate(square, Dtype::kBf16, "pinv (bf16)");
    const Tensor raw = t.allocate(p.shape, Dtype::kBf16, "mm");
    narrow.reset();
    grad = t.allocate(p.shape, Dtype::kBf16, "grad_B");
  }
  if (p.dtype != Dtype::kBf16) grad = t.allocate(p.shape, p.dtype, "grad_B");
  denominator = t.allocate(p.shape, p.dtype, "denom_B");
}

constexpr Optimizer kRows[] = {
    {.name = "lorafa",
     .help = "LoRA-FA: PEFT's create_lorafa_optimizer, which freezes the first factor of LoRA",
     .source = "peft 0.18 optimizers/lorafa.py: LoraFAOptimizer.step",
     .create = keep_adam_moments,
     .update = update,
     .groups = ParameterGroups::kNamed},
};

}  // namespace

extern const OptimizerRows lorafa_rows;
const OptimizerRows lorafa_rows = kRows;

}  // namespace tidemark
