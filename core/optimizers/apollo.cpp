// APOLLO: AdamW whose steps are scaled, channel by channel, by what it would do to a random projection of the gradient.
#include "core/optimizers/low_rank.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource = "apollo-torch 1.0.3 apollo_torch/apollo.py, random_projector.py";

/// Singular vectors are no more than a matrix has; random ones are as many as the rank says.
Shape of_rank(const OptimizerRun& run, const Shape& shape) {
  return run.job.low_rank.by_svd ? shape : Shape{Dim(projection_rank(run.job)), shape.dim(1)};
}

void create(OptimizerRun& run, const Parameter& p) {
  const bool projected = is_projected(run, p);
  if (projected && run.job.low_rank.by_svd) keep_singular_vectors(run, p, p.dtype);
  if (projected && !run.job.low_rank.by_svd) run.keep(of_rank(run, projector_shape(run, p)), p.dtype, "projector");
  const Shape shape = projected ? of_rank(run, projected_shape(run, p)) : p.shape;
  run.keep(shape, p.dtype, "exp_avg");
  run.keep(shape, p.dtype, "exp_avg_sq");
  if (projected) run.keep(Shape{}, p.dtype, "scaled_grad");
}

/// random_projector.py get_orthogonal_matrix.
void renew_random_vectors(OptimizerRun& run, const Parameter& p) {
  Tape& t = run.tape;
  Tensor matrix;
  if (is_half(p.dtype)) matrix = t.allocate(p.shape, Dtype::kFp32, "grad.float()");
  Tensor drawn = t.allocate(of_rank(run, projector_shape(run, p)), Dtype::kFp32, "randn");
  drawn = t.allocate(of_rank(run, projector_shape(run, p)), Dtype::kFp32, "randn / sqrt(rank)");
  if (is_half(p.dtype)) drawn = t.allocate(of_rank(run, projector_shape(run, p)), p.dtype, "projector");
}

void update(OptimizerRun& run, const Parameter& p, Tensor&, StepNames& names) {
  auto& [grad, denominator, norm_grad, scaled, factor, nil] = names;
  Tape& t = run.tape;
  const bool projected = is_projected(run, p);
  grad.reset();
  if (projected) run.job.low_rank.by_svd ? renew_singular_vectors(run, p, p.dtype) : renew_random_vectors(run, p);
  const Shape shape = projected ? of_rank(run, projected_shape(run, p)) : p.shape;
  if (projected) grad = t.allocate(shape, p.dtype, "low-rank gradient");
  denominator = t.allocate(shape, p.dtype, "denom");
  norm_grad = t.allocate(shape, p.dtype, "norm_grad");
  if (!projected) return;
  factor = t.allocate(Shape{shape.dim(1)}, p.dtype, "grad_scaling_factor");
  scaled = t.allocate(p.shape, p.dtype, "scaled_grad");
  scaled = t.allocate(p.shape, p.dtype, "scaled_grad / limiter");
  norm_grad = scaled;
}

constexpr Optimizer kRows[] = {
    {.name = "apollo_adamw",
     .help = "APOLLO: AdamW in a random projection",
     .source = kSource,
     .create = create,
     .update = update,
     .groups = ParameterGroups::kProjected},
    {.name = "apollo_adamw_layerwise",
     .help = "APOLLO, each weight in backward",
     .source = kSource,
     .create = create,
     .update = update,
     .groups = ParameterGroups::kProjected,
     .in_backward = true},
};

}  // namespace

extern const OptimizerRows apollo_rows;
const OptimizerRows apollo_rows = kRows;

}  // namespace tidemark
