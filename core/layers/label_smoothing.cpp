#include "core/layers/label_smoothing.hpp"

#include "core/layers/model_call.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kSmoother = "transformers 5.12 trainer_pt_utils.py: LabelSmoother.__call__";

Tensor labels_like(Net& net, const Shape& logits) {
  Shape shape = logits;
  --shape.rank;
  shape.make_contiguous();
  return net.tape.allocate(shape, Dtype::kInt64, "labels");
}

// compute_loss asks by the name of the class, before which fully_shard puts "FSDP"; of PEFT's it is the class inside
// (PyTorch 2.14 _fully_shard.py: _apply_to_module; accelerate 1.15 utils/other.py: extract_model_from_parallel).
bool is_named_causal(const Net& net) {
  const bool is_renamed = net.job.data_parallel.sharding == Sharding::kFsdp2 && !net.job.has_adapter();
  return net.arch.head == Head::kCausalLm && !is_renamed;
}

}  // namespace

// Names last until it returns: the shifted copy, the negated logarithms. A causal model's labels are shifted here.
Tensor label_smoothed_loss(Net& net, const Outputs& outputs) {
  Scope in(net.tape, "loss", kSmoother);
  Tensor logits = logits_outside(outputs.rest.front());
  Tensor labels;
  if (is_named_causal(net)) {
    logits = contiguous(narrow(logits, 1, 0, Dim(logits.size(1) - 1, Symbol::kSequence)));
    labels = labels_like(net, logits.shape());
  }
  const Tensor log_probs = neg(log_softmax(logits));
  Shape one = log_probs.shape();
  one.dims[one.rank - 1] = Dim(1);
  one.make_contiguous();
  const Tensor padding_mask = net.tape.allocate(one, Dtype::kBool, "eq");
  labels = unsqueeze(labels_like(net, logits.shape()), -1);  // clamp
  Tensor nll_loss = gather_last(log_probs, labels, Dim(1));
  Tensor smoothed_loss = sum_over(log_probs, -1, true, true);
  nll_loss = masked_fill_in_place(std::move(nll_loss), padding_mask);
  smoothed_loss = masked_fill_in_place(std::move(smoothed_loss), padding_mask);
  nll_loss = mean_all(std::move(nll_loss));
  smoothed_loss = mean_all(std::move(smoothed_loss));
  nll_loss = mul_scalar(std::move(nll_loss));
  smoothed_loss = mul_scalar(std::move(smoothed_loss));
  return add(std::move(nll_loss), std::move(smoothed_loss));
}

}  // namespace tidemark
