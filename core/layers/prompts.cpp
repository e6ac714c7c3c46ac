// peft/peft_model.py PeftModelForCausalLM.forward and get_prompt; peft/tuners/prompt_tuning/model.py,
// peft/tuners/p_tuning/model.py (peft 0.18). PEFT makes the encoder in fp32 and leaves it so.
#include "core/layers/prompts.hpp"

#include "core/layers/kv_cache.hpp"

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

// get_prompt: a row per token, or what a network makes of it, in the model's dtype.
Tensor prefix(Net& net, Dim tokens) {
  static constexpr const char* kLayers[2][2] = {{"transform.0.weight", "transform.0.bias"},
                                                {"transform.2.weight", "transform.2.bias"}};
  const Adapter& adapter = net.job.adapter;
  const Dim width = net.K, all(2 * net.arch.num_layers * width.n());
  const Tensor table =
      encoder_weight(net, "embedding.weight", Shape{tokens, adapter.prefix_projection ? width : all}, true);
  Tensor x = embedding(net.tape.allocate(Shape{net.B, tokens}, Dtype::kInt64, "prompt_tokens"), table);
  if (adapter.prefix_projection) {
    const Dim hidden = adapter.encoder_hidden_size > 0 ? Dim(adapter.encoder_hidden_size) : width;
    x = encoder_linear(net, std::move(x), kLayers[0], hidden);
    x = tanh(std::move(x));
    x = encoder_linear(net, std::move(x), kLayers[1], all);
  }
  return to(std::move(x), net.weight_dtype(2));
}

// Of split: a cat of the layers' gradients, each of which goes in a stretch of its layer; of view and permute: a copy.
void split_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Tensor joined = t.allocate(n.input_shapes[0], n.input_dtypes[0], "cat");
  for (int i = 0; i < n.output_count; ++i) {
    t.begin_segment(Phase::kBackward, static_cast<std::int16_t>(n.attributes[0] + i));
    g[i].reset();
  }
  t.begin_segment(Phase::kBackward, -1);
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "clone");
}

// Zeros around the half that has a gradient.
void select_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "select_backward");
}

// A tensor of the batch goes on behind that many columns for virtual tokens; the batch has it still.
void lengthen(Net& net, Tensor& part, Dim tokens, Dim all, Dtype dtype, const char* name) {
  if (!part.defined()) return;
  net.more_inputs.push_back(std::move(part));
  net.wrapper_locals.push_back(net.tape.allocate(Shape{net.B, tokens}, dtype, name));
  part = net.tape.allocate(Shape{net.B, all}, dtype, "cat");
}

}  // namespace

void lengthen_mask(Net& net, Dim tokens) {
  lengthen(net, net.attention_mask, tokens, net.keys(), Dtype::kFp32, "prefix_attention_mask");
}

void begin_with_prefix(Net& net, const LayerPlan::Stack& stack) {
  Tape& t = net.tape;
  const Dim length(net.job.prefix_length());
  const Shape one{net.B, net.Kv, length, net.hd};
  net.prefix = std::make_shared<KvCache>();
  {
    Scope in(t, "prompt_encoder", kSource);
    const Tensor all = prefix(net, length);
    // .view().permute().split(2): a view for each layer
    Node* const split = t.record("split", split_backward, {&all});
    if (split != nullptr) {
      split->attributes[0] = stack.tape_begin;
      split->attributes[1] = net.arch.num_layers;
    }
    for (Count i = stack.tape_begin; i < stack.tape_end; ++i) {
      CachedAttention& entry = net.prefix->emplace_back();
      entry.instance = static_cast<std::int16_t>(i);
      t.begin_segment(t.phase(), entry.instance);
      Tensor both = detach(all);
      both.change().shape = Shape{Dim(2), net.B, net.Kv, length, net.hd};
      t.attach(split, both, static_cast<int>(i - stack.tape_begin));
      for (Tensor* states : {&entry.keys, &entry.values}) {
        Node* const selected = t.record("select", select_backward, {&both});
        *states = t.allocate(one, all.dtype(), "cat");  // behind an empty tensor
        t.attach(selected, *states);
      }
    }
    t.begin_segment(t.phase(), -1);
  }
  net.keep_in(net.prefix.get());
}

void let_prefix_go(Net& net) {
  if (net.prefix == nullptr) return;
  net.keep_in(nullptr);
  let_cache_go(net, *net.prefix);
  net.prefix.reset();
}

Tensor behind_prompt(Net& net, Tensor embeds_in) {
  Tensor embeds = std::move(embeds_in);
  Scope in(net.tape, "prompt_encoder", kSource);
  const Dim tokens(net.job.adapter.num_virtual_tokens);
  lengthen_mask(net, tokens);
  lengthen(net, net.labels, tokens, net.S, Dtype::kInt64, "prefix_labels");
  Tensor prompts = prompt(net, tokens, embeds.dim(-1));
  prompts = to(std::move(prompts), embeds.dtype());
  embeds = cat({&prompts, &embeds}, 1);
  net.wrapper_locals.push_back(std::move(prompts));
  net.wrapper_locals.push_back(embeds);
  return embeds;
}

}  // namespace tidemark
