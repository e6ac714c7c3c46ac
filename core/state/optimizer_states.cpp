#include "core/state/optimizer_states.hpp"

#include <algorithm>

namespace tidemark {
namespace {

// bitsandbytes 0.50 optim/optimizer.py init_state / functional.py: block-wise states, blocks of 256; parameters with
// fewer elements keep fp32 states; paged buffers from 1e5 elements on.
constexpr Count kBlockwise = 256;
constexpr Count kMinimum8bit = 4096;
constexpr Count kPagedFrom = 100000;
// torchao 0.14 optim/adam.py: 8-bit states in blocks of 256, 4-bit in blocks of 128, from 4096 elements on.
constexpr Count kTorchaoBlock4 = 128;

Bytes states_bytes_bnb8(Count n) {
  return n + (n + kBlockwise - 1) / kBlockwise * 4;
}

bool is_paged(Optimizer o) {
  return o == Optimizer::kPagedAdamw8bit || o == Optimizer::kPagedAdamw32bit || o == Optimizer::kPagedLion32bit ||
         o == Optimizer::kPagedLion8bit;
}
bool is_bnb_8bit(Optimizer o) {
  return o == Optimizer::kAdamw8bit || o == Optimizer::kPagedAdamw8bit || o == Optimizer::kLion8bit ||
         o == Optimizer::kPagedLion8bit;
}
bool is_bnb(Optimizer o) {
  return is_bnb_8bit(o) || o == Optimizer::kAdamw32bit || o == Optimizer::kPagedAdamw32bit ||
         o == Optimizer::kLion32bit || o == Optimizer::kPagedLion32bit;
}
bool is_lion(Optimizer o) {
  return o == Optimizer::kLion32bit || o == Optimizer::kLion8bit || o == Optimizer::kPagedLion32bit ||
         o == Optimizer::kPagedLion8bit;
}

// HF Trainer: weights decay, one-dimensional parameters do not: two parameter groups, stepped one after the other.
bool decays(const Parameter& p) {
  return p.shape.rank > 1;
}

const char* source_of(Optimizer o) {
  switch (o) {
    case Optimizer::kAdamwTorch:
    case Optimizer::kAdamwTorchFused:
      return "pytorch 2.6 torch/optim/adam.py: _init_group, _multi_tensor_adam";
    case Optimizer::kAdamwHf:
      return "transformers 4.46 optimization.py: AdamW.step";
    case Optimizer::kAdafactor:
      return "transformers 5.12 optimization.py: Adafactor.step";
    case Optimizer::kAdamwTorchao8bit:
    case Optimizer::kAdamwTorchao4bit:
      return "torchao optim/adam.py: AdamW8bit, AdamW4bit (36027d8)";
    case Optimizer::kSgd:
    case Optimizer::kSgdMomentum:
      return "pytorch 2.6 torch/optim/sgd.py";
    case Optimizer::kGaloreAdamw:
      return "GaLore galore_torch/adamw.py, galore_projector.py (2cc66f8)";
    case Optimizer::kApolloAdamw:
      return "APOLLO apollo_torch/apollo.py (76b3472)";
    case Optimizer::kAdamMini:
      return "Adam-mini adam_mini.py";
    case Optimizer::kMuon:
      return "pytorch 2.9 torch/optim/_muon.py";
    case Optimizer::kAdagrad:
      return "pytorch 2.6 torch/optim/adagrad.py";
    case Optimizer::kRmsprop:
      return "pytorch 2.6 torch/optim/rmsprop.py";
    default:
      return "bitsandbytes 0.50 optim/optimizer.py, functional.py";
  }
}

// Rank that transformers passes to GaLore and APOLLO when `optim_args` says nothing: training_args / trainer.py
// _setup_low_rank_optimizer: 128 for GaLore, 1 for APOLLO-mini otherwise 256.
constexpr Count kGaloreRank = 128;
constexpr Count kApolloRank = 1;

}  // namespace

template <typename Visit>
void OptimizerStates::for_each_trained(Visit visit) {
  for (const bool decaying : {true, false}) {
    const std::size_t n = tape_.parameters().size();
    for (std::size_t i = 0; i < n; ++i) {
      Parameter& p = tape_.parameters()[i];
      if (!p.requires_grad || decays(p) != decaying) continue;
      tape_.begin_segment(Phase::kOptimizer, p.instance);
      Scope in(tape_, p.module, source_of(job_.optimizer));
      visit(p);
    }
  }
}

Bytes OptimizerStates::paged_bytes(const Parameter& p) const {
  const Count n = p.shape.numel();
  if (!p.requires_grad || !is_paged(job_.optimizer) || n < kPagedFrom) return 0;
  const Count moments = is_lion(job_.optimizer) ? 1 : 2;
  if (is_bnb_8bit(job_.optimizer) && !p.is_embedding) return moments * states_bytes_bnb8(n);
  return moments * n * 4;
}

void OptimizerStates::create_for(const Parameter& p) {
  const Optimizer o = job_.optimizer;
  const Count n = p.shape.numel();
  // torch's optimizers make states like their parameter; a recipe that says otherwise (by name through its master
  // copy, or as an object) is believed.
  const bool stated = job_.recipe.master_weights || (job_.recipe.name == "custom" && !p.is_adapter);
  const Dtype state = stated ? job_.recipe.optimizer_states : p.dtype;
  const auto keep = [&](const Shape& shape, Dtype dtype, const char* name) {
    states_.push_back(tape_.allocate(shape, dtype, name));
  };
  const Shape scalar{};
  if (job_.recipe.master_weights) keep(p.shape, *job_.recipe.master_weights, "master weight");
  if (is_bnb(o)) {
    if (is_paged(o) && n >= kPagedFrom) return;  // cudaMallocManaged: outside the caching allocator
    const int moments = is_lion(o) ? 1 : 2;
    const char* const names[] = {"state1", "state2"};
    const char* const scales[] = {"absmax1", "absmax2"};
    for (int i = 0; i < moments; ++i) {
      if (is_bnb_8bit(o) && n >= kMinimum8bit && !p.is_embedding) {
        keep(p.shape, Dtype::kUint8, names[i]);
        keep(Shape{Dim((n + kBlockwise - 1) / kBlockwise)}, Dtype::kFp32, scales[i]);
      } else {
        keep(p.shape, Dtype::kFp32, names[i]);
      }
    }
    return;
  }
  switch (o) {
    case Optimizer::kAdamwTorchFused:
      keep(scalar, Dtype::kFp32, "step");  // fused keeps its step counter on the device
      keep(p.shape, state, "exp_avg");
      keep(p.shape, state, "exp_avg_sq");
      break;
    case Optimizer::kAdamwTorch:
    case Optimizer::kAdamwHf:
      keep(p.shape, state, "exp_avg");
      keep(p.shape, state, "exp_avg_sq");
      break;
    case Optimizer::kAdamwTorchao8bit:
    case Optimizer::kAdamwTorchao4bit: {
      const bool four = o == Optimizer::kAdamwTorchao4bit;
      const Count block = four ? kTorchaoBlock4 : kBlockwise;
      for (const char* name : {"exp_avg", "exp_avg_sq"}) {
        if (n >= kMinimum8bit && n % block == 0) {
          keep(Shape{Dim(four ? n / 2 : n)}, Dtype::kUint8, name);
          keep(Shape{Dim(n / block)}, Dtype::kFp32, "scale");
          keep(Shape{Dim(four ? 16 : 256)}, Dtype::kFp32, "qmap");
        } else {
          keep(p.shape, state, name);
        }
      }
      break;
    }
    case Optimizer::kSgd:
      break;
    case Optimizer::kSgdMomentum:
      keep(p.shape, p.dtype, "momentum_buffer");
      break;
    case Optimizer::kAdafactor:
      if (p.shape.rank >= 2) {
        keep(Shape{p.shape.dim(0)}, Dtype::kFp32, "exp_avg_sq_row");
        keep(Shape{p.shape.dim(1)}, Dtype::kFp32, "exp_avg_sq_col");
      } else {
        keep(p.shape, Dtype::kFp32, "exp_avg_sq");
      }
      break;
    case Optimizer::kGaloreAdamw:
      if (p.shape.rank == 2 && !p.is_embedding) {
        const Count rows = p.shape.size(0), columns = p.shape.size(1);
        const Count small = std::min(rows, columns), large = std::max(rows, columns);
        const Count r = std::min(kGaloreRank, small);
        keep(Shape{Dim(small), Dim(r)}, p.dtype, "projector");
        keep(Shape{Dim(large), Dim(r)}, p.dtype, "exp_avg");
        keep(Shape{Dim(large), Dim(r)}, p.dtype, "exp_avg_sq");
      } else {
        keep(p.shape, p.dtype, "exp_avg");
        keep(p.shape, p.dtype, "exp_avg_sq");
      }
      break;
    case Optimizer::kApolloAdamw:
      if (p.shape.rank == 2 && !p.is_embedding) {
        const Count large = std::max(p.shape.size(0), p.shape.size(1));
        keep(Shape{Dim(large), Dim(kApolloRank)}, p.dtype, "exp_avg");
        keep(Shape{Dim(large), Dim(kApolloRank)}, p.dtype, "exp_avg_sq");
      } else {
        keep(p.shape, p.dtype, "exp_avg");
        keep(p.shape, p.dtype, "exp_avg_sq");
      }
      break;
    case Optimizer::kAdamMini:
      keep(p.shape, p.dtype, "exp_avg");
      if (p.is_embedding) {
        keep(Shape{p.shape.dim(0), Dim(1)}, p.dtype, "vmean");
      } else {
        keep(Shape{p.shape.dim(0)}, p.dtype, "vmean");
      }
      break;
    case Optimizer::kMuon:
      keep(p.shape, p.dtype, "momentum_buffer");
      if (p.shape.rank != 2 || p.is_embedding) keep(p.shape, p.dtype, "exp_avg_sq");
      break;
    case Optimizer::kAdagrad:
      keep(p.shape, p.dtype, "sum");
      break;
    case Optimizer::kRmsprop:
      keep(p.shape, p.dtype, "square_avg");
      break;
    default:
      break;
  }
}

void OptimizerStates::create() {
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kOptimizerStates);
  for_each_trained([this](const Parameter& p) { create_for(p); });
  tape_.set_default_category(before);
}

void OptimizerStates::step() {
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kWorkspace);
  const Optimizer o = job_.optimizer;
  if (job_.max_grad_norm > 0.0) {
    // clip_grad_norm_: one norm per gradient; the scaling is in place.
    std::vector<Tensor> norms;
    for_each_trained([&](const Parameter& p) { norms.push_back(tape_.allocate(Shape{}, p.dtype, "gradient norm")); });
    // Dropped layer by layer, so that each layer's segment frees what it made.
    std::size_t i = 0;
    for_each_trained([&](const Parameter&) { norms[i++].reset(); });
  }
  if (o == Optimizer::kAdamwTorch || o == Optimizer::kAdagrad || o == Optimizer::kRmsprop) {
    // _multi_tensor_adam (adagrad, rmsprop alike): _foreach_sqrt makes one temporary per parameter, for a whole group
    // of one dtype, before any is dropped.
    for (const bool decaying : {true, false}) {
      for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16, Dtype::kFp16}) {
        std::vector<Tensor> temporaries;
        for_each_trained([&](const Parameter& p) {
          if (decays(p) == decaying && p.dtype == dtype) {
            temporaries.push_back(tape_.allocate(p.shape, dtype, "_foreach_sqrt"));
          }
        });
        // Dropped layer by layer, so that each layer's segment frees what it made.
        std::size_t i = 0;
        for_each_trained([&](const Parameter& p) {
          if (decays(p) == decaying && p.dtype == dtype) temporaries[i++].reset();
        });
      }
    }
  } else if (o == Optimizer::kAdamwHf) {
    for_each_trained(
        [&](const Parameter& p) { Tensor denominator = tape_.allocate(p.shape, p.dtype, "exp_avg_sq.sqrt()"); });
  } else if (o == Optimizer::kAdafactor) {
    for_each_trained([&](const Parameter& p) {
      const bool half = p.dtype != Dtype::kFp32;
      Tensor grad, p32;
      if (half) grad = tape_.allocate(p.shape, Dtype::kFp32, "grad.float()");
      if (half) p32 = tape_.allocate(p.shape, Dtype::kFp32, "p.float()");
      Tensor update = tape_.allocate(p.shape, Dtype::kFp32, "grad ** 2");
      update = tape_.allocate(p.shape, Dtype::kFp32, "update");
      update = tape_.allocate(p.shape, Dtype::kFp32, "update");
      Tensor negative = tape_.allocate(p.shape, Dtype::kFp32, "-update");
    });
  } else if (o == Optimizer::kMuon) {
    for_each_trained([&](const Parameter& p) {
      if (p.shape.rank != 2 || p.is_embedding) return;
      const Count small = std::min(p.shape.size(0), p.shape.size(1));
      // _zeropower_via_newtonschulz: X, its successor, the Gram matrix and its update, in bf16; then the update.
      Tensor update = tape_.allocate(p.shape, p.dtype, "nesterov update");
      Tensor x = tape_.allocate(p.shape, Dtype::kBf16, "X");
      Tensor gram = tape_.allocate(Shape{Dim(small), Dim(small)}, Dtype::kBf16, "gram matrix");
      Tensor gram_update = tape_.allocate(Shape{Dim(small), Dim(small)}, Dtype::kBf16, "gram update");
      Tensor next = tape_.allocate(p.shape, Dtype::kBf16, "X (next)");
    });
  } else if (o == Optimizer::kGaloreAdamw || o == Optimizer::kApolloAdamw) {
    for_each_trained([&](const Parameter& p) {
      if (p.shape.rank != 2 || p.is_embedding) return;
      // project_back / scaled_grad: one full-rank update at a time; the projection works on an fp32 copy.
      Tensor copy = tape_.allocate(p.shape, Dtype::kFp32, "fp32 copy");
      Tensor full = tape_.allocate(p.shape, p.dtype, "full-rank update");
    });
  }
  tape_.set_default_category(before);
}

}  // namespace tidemark
