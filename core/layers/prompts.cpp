// peft/peft_model.py PeftModelForCausalLM.forward and get_prompt; peft/tuners/prompt_tuning/model.py,
// peft/tuners/p_tuning/model.py (peft 0.18). PEFT makes the encoder in fp32 and leaves it so.
#include "core/layers/prompts.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource = "peft 0.18 peft_model.py: PeftModelForCausalLM.forward";

Tensor encoder_weight(Net& net, const char* leaf, const Shape& shape, bool is_embedding = false) {
  Parameter p;
  p.module = "prompt_encoder";
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = Dtype::kFp32;
  p.requires_grad = true;
  p.is_adapter = true;
  p.is_embedding = is_embedding;
  return net.tape.parameter(p);
}

Tensor encoder_linear(Net& net, Tensor x, const char* const leaves[2], Dim out_features) {
  const Tensor weight = encoder_weight(net, leaves[0], Shape{out_features, x.dim(-1)});
  const Tensor bias = encoder_weight(net, leaves[1], Shape{out_features});
  return linear(std::move(x), weight, bias);
}

// get_prompt: of the indices of all samples one row is looked up, and what becomes of it repeated.
Tensor prompt(Net& net, Dim tokens, Dim width) {
  static constexpr const char* kLayers[3][2] = {{"mlp_head.0.weight", "mlp_head.0.bias"},
                                                {"mlp_head.2.weight", "mlp_head.2.bias"},
                                                {"mlp_head.4.weight", "mlp_head.4.bias"}};
  const Adapter& adapter = net.job.adapter;
  const Tensor table = encoder_weight(net, "embedding.weight", Shape{tokens, width}, true);
  const Tensor indices = net.tape.allocate(Shape{net.B, tokens}, Dtype::kInt64, "prompt_tokens");
  Tensor first = detach(indices);
  first.change().shape.dims[0] = Dim(1);
  Tensor x = embedding(std::move(first), table);
  if (adapter.kind == AdapterKind::kPTuning) {
    const Dim hidden = adapter.encoder_hidden_size > 0 ? Dim(adapter.encoder_hidden_size) : width;
    x = encoder_linear(net, std::move(x), kLayers[0], hidden);
    x = relu(std::move(x));
    x = encoder_linear(net, std::move(x), kLayers[1], hidden);
    x = relu(std::move(x));
    x = encoder_linear(net, std::move(x), kLayers[2], width);
  }
  return repeat_rows(std::move(x), net.B);
}

}  // namespace

Tensor behind_prompt(Net& net, Tensor embeds_in) {
  Tensor embeds = std::move(embeds_in);
  Tape& t = net.tape;
  Scope in(t, "prompt_encoder", kSource);
  const Dim tokens(net.job.adapter.num_virtual_tokens);
  const auto longer = [&](Tensor& part, Dtype dtype, const char* name) {
    if (!part.defined()) return;
    net.more_inputs.push_back(std::move(part));  // the batch has it still
    net.wrapper_locals.push_back(t.allocate(Shape{net.B, tokens}, dtype, name));
    part = t.allocate(Shape{net.B, net.S}, dtype, "cat");
  };
  longer(net.attention_mask, Dtype::kFp32, "prefix_attention_mask");
  longer(net.labels, Dtype::kInt64, "prefix_labels");
  Tensor prompts = prompt(net, tokens, embeds.dim(-1));
  prompts = to(std::move(prompts), embeds.dtype());
  embeds = cat({&prompts, &embeds}, 1);
  net.wrapper_locals.push_back(std::move(prompts));
  net.wrapper_locals.push_back(embeds);
  return embeds;
}

}  // namespace tidemark
