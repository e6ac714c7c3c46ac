#include "core/layers/model_call.hpp"

#include "core/job/defaults.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/layers/adapter.hpp"

namespace tidemark {
namespace {

// accelerate 1.14 utils/operations.py: convert_outputs_to_fp32.
void convert_outputs(Net& net, Outputs& outputs) {
  Scope in(net.tape, "outputs", "accelerate 1.14 utils/operations.py: convert_outputs_to_fp32");
  const std::vector<Tensor> converted = outputs.rest;  // the argument lives until the call returns
  Tape& t = net.tape;
  auto images = net.image_outputs;
  for (auto& [instance, image] : net.image_outputs) {
    t.begin_segment(t.phase(), instance);
    image = to(std::move(image), Dtype::kFp32);
  }
  if (!images.empty()) t.begin_segment(t.phase(), -1);
  for (Tensor& output : outputs.rest) {
    if (!net.job.has_outer_loss()) output = detach(std::move(output));
    output = to(std::move(output), Dtype::kFp32);
  }
  std::swap(images, net.image_outputs);
  net.let_image_outputs_go();
  net.image_outputs = std::move(images);
}

// What the root of accelerate's FSDP 2 returns is cast to the dtype of mixed precision (output_dtype of accelerate 1.14
// utils/dataclasses.py: FullyShardedDataParallelPlugin.set_mixed_precision; torch 2.14 _fsdp_state.py:
// FSDPState._post_forward): fp32 logits of a class become 16-bit ones, as a loss outside of the model sees them.
void narrow_outputs(Net& net, Outputs& outputs) {
  if (!is_divided_by_accelerate(net.job)) return;
  const std::optional<Dtype> narrow = mixed_precision(net.job).gathered;
  if (!narrow) return;
  const std::vector<Tensor> wide = outputs.rest;
  for (Tensor& output : outputs.rest) output = to(std::move(output), *narrow);
}

// FSDP hooks what its module returned: with the loss outside of it, its backward begins as the gradient of the logits
// is there (torch 2.14 distributed/fsdp/_fully_shard/_fsdp_state.py: _register_pre_backward_hook; _runtime_utils.py).
void hooked_backward(Tape& t, Node&, Tensor* g, Tensor* r) {
  if (t.placement() != nullptr) t.placement()->backward_enters(-1);
  r[0] = std::move(g[0]);
}

}  // namespace

Tensor logits_outside(Tensor logits_in) {
  const Tensor logits = std::move(logits_in);
  Tape& t = logits.tape();
  if (t.placement() == nullptr) return logits;
  Node* n = t.record("pre_backward", hooked_backward, {&logits});
  Tensor out = logits;
  out.leave_graph();
  t.attach(n, out);
  return out;
}

Outputs call_model(Net& net, const Program& program, bool prepared) {
  Tape& t = net.tape;
  const TrainingJob& job = net.job;
  if (prepared) t.set_autocast(job.recipe.autocast);
  Outputs outputs;
  {
    Tensor body = program.forward(net);
    t.begin_segment(Phase::kLoss, -1);
    if (net.hands_out_all) net.handed_out.emplace_back(-1, body);
    net.leave_body(body);
    if (net.is_laid()) body = to_card(std::move(body), static_cast<std::int16_t>(job.pipeline.head));
    outputs = program.heads.find(net.arch.head)->forward(net, program, std::move(body));
    net.last_hidden.reset();
    net.model_locals.clear();
    // What scores a sequence returns its scores alone (modeling_layers.py: GenericForSequenceClassification).
    if (net.arch.head != Head::kCausalLm && net.arch.head != Head::kNone) net.let_image_outputs_go();
  }
  net.shared = {};
  // io_same_device of the hook on the model itself: what it returns is sent to where its input was.
  if (net.is_laid()) {
    for (Tensor& output : outputs.rest) output = to_card(std::move(output), 0);
    if (outputs.loss.defined()) outputs.loss = to_card(std::move(outputs.loss), 0);
  }
  const bool has_loss = outputs.loss.defined() && net.arch.head != Head::kNone;  // a body's is made outside of it
  if (const AdapterLayer* adapter = adapter_layer(job.adapter.kind);
      adapter != nullptr && adapter->add_to_loss != nullptr && job.has_adapter() && has_loss) {
    outputs.loss = adapter->add_to_loss(net, std::move(outputs.loss));
  }
  net.wrapper_locals.clear();
  if (Placement* const placement = t.placement()) placement->leave_model();
  t.set_autocast(std::nullopt);
  t.clear_autocast_cache();
  if (prepared && job.recipe.autocast && job.outputs_to_fp32) convert_outputs(net, outputs);
  narrow_outputs(net, outputs);
  if (!net.holds_outputs) net.let_image_outputs_go();
  return outputs;
}

Outputs call_without_gradients(Net& net, const Program& program, bool prepared) {
  Tape& t = net.tape;
  t.begin_segment(Phase::kForward, -1);
  const WithoutGradients quiet(t);
  const bool before = net.evaluates;
  net.evaluates = true;
  Outputs outputs = call_model(net, program, prepared);
  net.evaluates = before;
  return outputs;
}

}  // namespace tidemark
