#pragma once

#include "core/optimizers/rows.hpp"

/// Gradients in fewer dimensions: what GaLore and APOLLO share. Shapes: a weight of m x n elements, `small` = min(m,
/// n), `large` = max(m, n), r = min(rank, small).
namespace tidemark {

/// Whether `optim_target_modules` names this linear layer of the model, or of a layer (layers are alike: number 0
/// stands for all). transformers 5.12 trainer_utils.py check_target_module_exists: a part of the name will do.
bool is_target(const ModuleChoice& choice, std::string_view module, bool in_layer);

/// The rank of the projection: as stated, or the optimizer's own.
Count projection_rank(const TrainingJob& job);

/// Is the gradient of this parameter projected? transformers 5.12 trainer_optimizer.py _setup_low_rank_optimizer:
/// weights of linear layers that are targets.
bool is_projected(const OptimizerRun& run, const Parameter& p);

/// r x small: the directions that are kept.
Shape projector_shape(const OptimizerRun& run, const Parameter& p);
/// r x large: the gradient in them.
Shape projected_shape(const OptimizerRun& run, const Parameter& p);

/// GaLore galore_projector.py (2cc66f8) get_orthogonal_matrix: singular vectors of a gradient of that dtype. Of fp32
/// gradients the projector is a view, which keeps the whole matrix of vectors (small x small).
void keep_singular_vectors(OptimizerRun& run, const Parameter& p, Dtype gradient);
void renew_singular_vectors(OptimizerRun& run, const Parameter& p, Dtype gradient);

/// q-galore-torch 1.0 q_galore_projector.py: codes of 4 bits, a byte each, a scale and a zero for 256 of them; and the
/// directions that they stand for, which every projection makes anew.
void keep_packed_vectors(OptimizerRun& run, const Parameter& p);
Tensor unpacked_vectors(OptimizerRun& run, const Parameter& p);

/// project_back: the full-rank update, and its product with the scale, which takes the place of `low`.
void project_back(OptimizerRun& run, const Parameter& p, Dtype dtype, Tensor& low);

}  // namespace tidemark
