// What all layers of Megatron-Core's GPTModel are made of: divided projections, norms and the core of attention.
#include "core/families/megatron_layers.hpp"

#include "core/families/family.hpp"
#include "core/families/megatron_lora.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/program.hpp"
#include "core/tape/megatron_ops.hpp"

namespace tidemark::megatron {
namespace {

constexpr const char* kCore = "megatron_core 0.16.1 transformer/dot_product_attention.py: DotProductAttention.forward";

constexpr Form kForms[] = {
    {"llama"},
    {"mistral"},
    {"qwen2"},
    {"qwen3"},
    {"qwen3_moe"},
    {"qwen2_moe"},
    {"deepseek_v2"},
    {"deepseek_v3", true, true, false, true},
    {"mixtral"},
    {.model_type = "glm4", .post_norms = true},
    {.model_type = "glm4_moe", .sigmoid = true},
    {.model_type = "qwen3_next", .hybrid = true},
    {.model_type = "qwen3_5_text", .hybrid = true},
    {.model_type = "qwen3_5_moe_text", .hybrid = true},
    // What sees, ahead of one of these; as_megatron says of which.
    {"qwen2_vl"},
    {"qwen2_5_vl"},
    {"qwen3_vl"},
    {"qwen3_vl_moe"},
    {.model_type = "qwen3_5", .hybrid = true},
    {.model_type = "qwen3_5_moe", .hybrid = true},
    {.model_type = "glm4v", .post_norms = true},
    {.model_type = "glm4v_moe", .sigmoid = true},
    {"qwen2_5_omni_thinker"},
    {"qwen3_omni_moe_thinker"},
    {"internvl"},
    {"internvl_chat"},
    {"gpt2", false, false, true},
    {"gpt_neox", false, false},
    {"bloom", false, false},
    {"starcoder2", false, false},
};

// [S, B, heads, hd] → [B·heads, S, hd]: a view.
Tensor by_head(Tensor x, Dim heads) {
  const Shape merged{x.dim(0), heads, x.dim(3)};
  return transpose(reshape(std::move(x), merged), 0, 1);
}

// fused_softmax.py FusedScaleMaskSoftmax.is_kernel_available; else torch's softmax behind a mask that is filled in
// place. Of a matrix up to 128 wide a block of the kernel takes eight, else four.
bool fuses_softmax(const Net& net) {
  Tape& t = net.tape;
  const Count batches = net.B.n() * net.A.n(), s = net.S.n();
  const Count block = t.above(s, 128) ? 4 : 8;
  return t.above(s, 16) && !t.above(s, 4096) && t.is_multiple(s, 4) && t.is_multiple(batches, block);
}

// Unfused: scores and, behind a kernel that scales, masks and takes the softmax, probabilities.
Tensor scores_and_product(Net& net, Tensor q, Tensor k, Tensor v) {
  const Count rows = net.B.n() * net.A.n();
  const Dim heads(rows);
  if (k.size(2) != q.size(2)) {
    const Shape wide{q.dim(0), q.dim(1), k.dim(2), Dim(q.size(2) / k.size(2)), q.dim(3)};
    const auto repeat = [&](Tensor x) {
      const Shape apart{x.dim(0), x.dim(1), x.dim(2), Dim(1), x.dim(3)};
      x = view(std::move(x), apart);
      return reshape(expand(std::move(x), wide), q.shape());
    };
    k = repeat(std::move(k));
    v = repeat(std::move(v));
  }
  q = by_head(std::move(q), heads);
  k = transpose(by_head(std::move(k), heads), 1, 2);
  v = by_head(std::move(v), heads);
  const Tensor scores = matmul(std::move(q), std::move(k));  // a name holds them to the end
  Tensor p = scores;
  p = fuses_softmax(net) ? softmax_over_gradient(std::move(p)) : softmax(std::move(p));
  p = dropout(std::move(p), net.arch.attention_dropout);
  const Dim width = v.dim(-1);
  Tensor out = matmul(std::move(p), std::move(v));
  out = view(std::move(out), Shape{net.B, net.A, net.S, width});
  return contiguous(permute(std::move(out), {2, 0, 1, 3}));
}

// get_attention_backend: cuDNN's kernel goes first from Hopper on, which on Blackwell is not deterministic; else the
// flash-attn package's, whose output is put in order behind it.
bool runs_flash_package(const Net& net) {
  const int capability = net.job.compute_capability;
  return net.job.context == 1 && (capability < 90 || (capability >= 100 && net.job.deterministic));
}

}  // namespace

const Form* form_of(std::string_view model_type) {
  for (const Form& form : kForms) {
    if (form.model_type == model_type) return &form;
  }
  return nullptr;
}

Count shards_of_sequence(const Net& net) {
  return net.job.tensor.sequence ? net.job.tensor.degree : 1;
}

bool fuses_gradients(const Net& net) {
  return net.job.megatron.fuses_gradients;
}

Tensor part_of(Net& net, const char* name, const char* leaf, const Shape& part) {
  const auto index = static_cast<std::size_t>(net.tape.next_parameter());
  Tensor parameter = net.parameter(name, leaf, part);
  net.tape.parameters()[index].whole = part.numel() * net.job.tensor.degree;
  return parameter;
}

Tensor column(Net& net, const char* name, Tensor x, Dim out, bool has_bias) {
  const Scope in(net.tape, name, net.source());
  const bool is_adapted = net.adapter_site(name) > 0;
  Tensor input;
  if (is_adapted) input = x;
  Tensor weight = part_of(net, name, "weight", Shape{out, x.dim(-1)});
  Tensor bias;
  if (has_bias) bias = part_of(net, name, "bias", Shape{out});
  Tensor result = gathered_linear(std::move(x), std::move(weight), std::move(bias), shards_of_sequence(net),
                                  fuses_gradients(net), net.job.megatron.local_layers);
  return is_adapted ? with_adapter(net, {name, out, true}, std::move(result), std::move(input)) : result;
}

Tensor row(Net& net, const char* name, Tensor x, bool has_bias) {
  const Scope in(net.tape, name, net.source());
  const bool is_adapted = net.adapter_site(name) > 0;
  Tensor input;
  if (is_adapted) input = x;
  Tensor weight = part_of(net, name, "weight", Shape{net.H, x.dim(-1)});
  Tensor bias;
  if (has_bias) bias = net.parameter(name, "bias", Shape{net.H});
  Tensor out = gathered_linear(std::move(x), std::move(weight), std::move(bias), 1, fuses_gradients(net), false);
  const Count shards = shards_of_sequence(net);
  if (shards > 1) out = reduce_scattered(std::move(out), shards);
  return is_adapted ? with_adapter(net, {name, net.H, false}, std::move(out), std::move(input)) : out;
}

// mcore-bridge f020e47 src/mcore_bridge/model/gpts/qwen3_next.py: Qwen3NextLoader has transformers' norm everywhere.
Tensor norm(Net& net, const char* name, Tensor x) {
  if (net.arch.model_type == "qwen3_next") return gemma_norm(net, name, std::move(x));
  return net.layer_norm(name, std::move(x), true, !form_of(net.arch.model_type)->rms);
}

Tensor core_attention_of(Net& net, Tensor q, Tensor k, Tensor v) {
  const Scope in(net.tape, "self_attention.core_attention", kCore);
  // get_qkv_layout: what lies apart from rotated queries and keys is copied, and the projection's output let go.
  const bool is_latent = net.arch.latent.rank > 0;  // whose values have been copied
  if (net.rotates(net.layer_index) && !net.job.megatron.local_layers && !is_latent) v = clone(std::move(v));
  if (net.job.attention == AttentionKernel::kEager || net.job.megatron.local_layers) {
    net.attention_kernel = "eager";
    return scores_and_product(net, std::move(q), std::move(k), std::move(v));
  }
  net.attention_kernel = "flash";
  if (net.job.context > 1) {  // the ring sends a copy of keys and values (AttnFuncWithCPAndKVP2P)
    k = clone(std::move(k));
    v = clone(std::move(v));
  }
  q = permute(std::move(q), {1, 2, 0, 3});
  k = permute(std::move(k), {1, 2, 0, 3});
  v = permute(std::move(v), {1, 2, 0, 3});
  const Dim width = v.dim(-1);
  Tensor out = flash_attention(std::move(q), std::move(k), std::move(v), net.arch.attention_dropout);
  if (is_latent) out = narrow(std::move(out), -1, 0, width);
  if (runs_flash_package(net)) out = clone(std::move(out));
  return permute(std::move(out), {2, 0, 1, 3});
}

}  // namespace tidemark::megatron
