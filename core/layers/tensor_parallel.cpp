#include "core/layers/tensor_parallel.hpp"

#include "core/job/defaults.hpp"
#include "core/tape/collective_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kRedistribute = "torch 2.14 distributed/tensor/_redistribute.py: Redistribute";

bool ends_with(std::string_view module, std::string_view name) {
  return module.size() >= name.size() && module.substr(module.size() - name.size()) == name;
}

bool divides_columns(std::string_view module) {
  return ends_with(module, "o_proj") || ends_with(module, "down_proj");
}

}  // namespace

Tensor enter_divided(Net& net, Tensor hidden) {
  const TensorParallel& tp = net.job.tensor;
  if (!tp.is_used() || !tp.sequence) return hidden;
  Scope in(net.tape, "all-gather", kRedistribute);
  return gather_sequence(std::move(hidden), tp.degree);
}

Tensor run_divided(Net& net, Tensor hidden, Tensor (*block)(Net& net, Tensor hidden)) {
  if (!net.job.tensor.has_dtensors()) return block(net, std::move(hidden));
  const Tensor named = std::move(hidden);
  return block(net, enter_divided(net, named));
}

Tensor before_projection(Net& net, std::string_view module, Tensor x) {
  const TensorParallel& tp = net.job.tensor;
  if (!tp.has_dtensors() || tp.sequence || divides_columns(module)) return x;
  return all_reduce_gradient(std::move(x));
}

Tensor behind_projection(Net& net, std::string_view module, Tensor x, bool keep) {
  const TensorParallel& tp = net.job.tensor;
  if (!tp.has_dtensors() || !divides_columns(module)) return x;
  Scope in(net.tape, "reduction", kRedistribute);
  return tp.sequence ? scatter_sequence(std::move(x), tp.degree, keep) : all_reduce(std::move(x));
}

Tensor divided_embedding(Net& net, Tensor ids, Tensor weight) {
  const TensorParallel& tp = net.job.tensor;
  Tensor rows = embedding_of_rows(std::move(ids), std::move(weight), net.arch.vocab_size);
  return tp.sequence ? scatter_sequence(std::move(rows), tp.degree) : all_reduce(std::move(rows));
}

Tensor behind_head(Net& net, Tensor logits) {
  const TensorParallel& tp = net.job.tensor;
  if (net.job.framework.name == "torchtitan" && !runs_own_code(net.job)) logits = to(std::move(logits), Dtype::kFp32);
  if (!tp.has_dtensors() || tp.loss) return logits;
  Scope in(net.tape, "all-gather", kRedistribute);
  return gather_columns(std::move(logits), tp.degree, Dim(net.arch.vocab_size, Symbol::kVocab));
}

Tensor loss_of(Net& net, Tensor logits, Tensor target) {
  if (!net.job.tensor.is_used() || !net.job.tensor.loss) return cross_entropy(std::move(logits), std::move(target));
  return parallel_cross_entropy(std::move(logits), std::move(target));
}

Count whole_elements(const Net& net, const Shape& part) {
  Count count = 1;
  for (int i = 0; i < part.rank; ++i) {
    switch (part.dims[i].symbol()) {
      case Symbol::kVocab:
        count *= net.arch.vocab_size;
        break;
      case Symbol::kFeedForward:
        count *= net.arch.intermediate_size;
        break;
      case Symbol::kQuery:
        count *= net.arch.query_size();
        break;
      case Symbol::kKeyValue:
        count *= net.arch.kv_size();
        break;
      default:
        count *= part.size(i);
    }
  }
  return count;
}

}  // namespace tidemark
