// nanochat: norms without weights, also before the first layer and behind the rotation of q and k; relu squared; logits
// that Gemma's tanh caps.
#include "core/families/family.hpp"
#include "core/families/gemma.hpp"
#include "core/layers/norms.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/nanochat/configuration_nanochat.py: NanoChatConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "relu2");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.logit_softcap =
      fields.find({"final_logit_softcapping"}) == nullptr || fields.has({"final_logit_softcapping"});
}

constexpr const char* kModel = "transformers 5.12 models/nanochat/modeling_nanochat.py: NanoChatModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/nanochat/modeling_nanochat.py: NanoChatDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/nanochat/modeling_nanochat.py: NanoChatAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/nanochat/modeling_nanochat.py: NanoChatMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/nanochat/modeling_nanochat.py: NanoChatForCausalLM.forward";

Tensor embed(Net& net) {
  return l2_norm(net, "model.norm", decoder_embed(net, kModel, false));
}

Tensor self_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    rotate_both(n, q, k);
    q = l2_norm(n, "self_attn.q_norm", std::move(q));
    k = l2_norm(n, "self_attn.k_norm", std::move(k));
  });
}

Tensor feed_forward(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.linear("mlp.fc1", std::move(hidden), net.F);
  {
    Scope act(net.tape, "mlp.activation_fn", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear("mlp.fc2", std::move(h), net.H);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, self_attention, feed_forward, l2_norm);
}

Tensor norm(Net& net, Tensor hidden) {
  return l2_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return gemma_softcap(net, net.lm_head("lm_head", std::move(hidden), net.V));
}

const Program kProgram = {one_stack<embed, layer, norm>, head};

}  // namespace

const Family kRows[] = {
    {"nanochat", "NanoChat", "NanoChatForCausalLM", kLanguageModelOnly, read_config, &kProgram},
};

extern const FamilyRows nanochat_rows;
const FamilyRows nanochat_rows = kRows;

}  // namespace tidemark
