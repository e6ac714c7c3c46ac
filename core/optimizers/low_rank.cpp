#include "core/optimizers/low_rank.hpp"

#include <algorithm>
#include <string>

#include "core/job/regex.hpp"

namespace tidemark {
namespace {

Count small_of(const Parameter& p) {
  return std::min(p.shape.size(0), p.shape.size(1));
}

Dim rank_of(const OptimizerRun& run, const Parameter& p) {
  return Dim(std::min(projection_rank(run.job), small_of(p)));
}

bool matches(const std::string& expression, const std::string& name) {
  std::string error;
  const auto regex = Regex::compile(expression, error);
  return regex && regex->matches(name);
}

}  // namespace

bool is_target(const ModuleChoice& choice, std::string_view module, bool in_layer) {
  const std::string name = (in_layer ? "model.layers.0." : "") + std::string{module};
  switch (choice.kind) {
    case ModuleChoice::Kind::kExpression:
      return matches(choice.expression, name);
    case ModuleChoice::Kind::kNames:
      return choice.names.empty() ||
             std::any_of(choice.names.begin(), choice.names.end(), [&](const std::string& word) {
               return name.find(word) != std::string::npos || matches(word, name);
             });
    default:
      return true;
  }
}

Count projection_rank(const TrainingJob& job) {
  return job.low_rank.rank > 0 ? job.low_rank.rank : find_optimizer(job.optimizer)->rank;
}

bool is_projected(const OptimizerRun& run, const Parameter& p) {
  if (p.shape.rank != 2) return false;
  const ModuleChoice& named = run.job.low_rank.targets;
  const std::span<const std::string_view> own = run.row().targets;
  if (named.kind == ModuleChoice::Kind::kAllLinear && !own.empty()) {
    const std::string_view module = p.module;
    return std::any_of(own.begin(), own.end(), [&](std::string_view part) { return module.find(part) != module.npos; });
  }
  return !p.is_embedding && is_target(named, p.module, p.instance >= 0);
}

Shape projector_shape(const OptimizerRun& run, const Parameter& p) {
  return {rank_of(run, p), Dim(small_of(p))};
}

Shape projected_shape(const OptimizerRun& run, const Parameter& p) {
  return {rank_of(run, p), Dim(std::max(p.shape.size(0), p.shape.size(1)))};
}

void keep_singular_vectors(OptimizerRun& run, const Parameter& p, Dtype gradient) {
  const Dim small(small_of(p));
  run.keep(gradient == Dtype::kFp32 ? Shape{small, small} : projector_shape(run, p), gradient, "projector");
}

// pytorch 2.9 native/cuda/linalg/BatchLinearAlgebraLib.cpp: cuSOLVER overwrites a column-major copy of the matrix. Its
// own workspace is asked of the driver and not known here.
void renew_singular_vectors(OptimizerRun& run, const Parameter& p, Dtype gradient) {
  Tape& t = run.tape;
  const Dim small(small_of(p));
  Tensor matrix;
  if (gradient != Dtype::kFp32) matrix = t.allocate(p.shape, Dtype::kFp32, "grad.float()");
  Tensor of_rows = t.allocate(Shape{p.shape.dim(0), small}, Dtype::kFp32, "U");
  Tensor values = t.allocate(Shape{small}, Dtype::kFp32, "s");
  Tensor of_columns = t.allocate(Shape{small, p.shape.dim(1)}, Dtype::kFp32, "Vh");
  t.allocate(p.shape, Dtype::kFp32, "matrix, column by column");
  Tensor unused = t.allocate(projected_shape(run, p), Dtype::kFp32, "A or B, of which one is used");
  Tensor kept;
  if (gradient != Dtype::kFp32) kept = t.allocate(projector_shape(run, p), gradient, "projector");
}

void keep_packed_vectors(OptimizerRun& run, const Parameter& p) {
  constexpr Count kGroup = 256;  // axolotl's schema: qgalore_proj_group_size
  const Shape whole = projector_shape(run, p);
  const Dim groups(whole.numel() / kGroup);
  run.keep(whole, Dtype::kUint8, "ortho_matrix");
  run.keep(Shape{groups}, p.dtype, "ortho_matrix_scales");
  run.keep(Shape{groups}, p.dtype, "ortho_matrix_zeros");
  run.keep(Shape{whole.dim(1)}, p.dtype, "past_ortho_vector");
}

Tensor unpacked_vectors(OptimizerRun& run, const Parameter& p) {
  Tensor codes = run.tape.allocate(projector_shape(run, p), p.dtype, "_to_copy");
  Tensor centred = run.tape.allocate(projector_shape(run, p), p.dtype, "sub");
  codes.reset();
  return run.tape.allocate(projector_shape(run, p), p.dtype, "mul");
}

void project_back(OptimizerRun& run, const Parameter& p, Dtype dtype, Tensor& low) {
  Tensor full = run.tape.allocate(p.shape, dtype, "full-rank update");
  low = run.tape.allocate(p.shape, dtype, "scaled update");
}

}  // namespace tidemark
