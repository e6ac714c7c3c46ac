// Command R, Aya (cohere) and Command R7B (cohere2): one norm feeds both branches, rotation in fp32, logits scaled. In
// cohere2 only sliding layers rotate.
#include "core/families/family.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// One norm without bias per layer, feeding both branches; the logits are scaled.
void read_cohere_like(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 8192);
  read_kv_heads(fields, architecture, std::nullopt);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.parallel_residual = true;
  architecture.logit_scale = true;
  fields.accept({"logit_scale"});
}

// transformers 5.12.1 models/cohere/configuration_cohere.py: CohereConfig (Command R, Aya).
void read_cohere_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.qk_norm = fields.flag({"use_qk_norm"}, false);
}

// transformers 5.12.1 models/cohere2/configuration_cohere2.py: Cohere2Config. Three of four layers slide, and only
// those rotate (modeling_cohere2.py: Cohere2Attention.forward).
void read_cohere2_config(ConfigFields& fields, Architecture& architecture) {
  read_cohere_like(fields, architecture);
  derive_head_dim(fields, architecture);
  fields.accept({"order_of_interleaved_layers", "layer_switch", "position_embedding_type", "rotary_pct",
                 "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding",
                 "use_qk_norm"});
  architecture.rotary_dim = architecture.head_dim;
  const Count pattern = fields.count({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
  const Count window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  const auto types = read_layer_types(fields, architecture);
  architecture.sliding_layers = types ? *types : sliding_but_every(pattern, architecture.num_layers);
  architecture.sliding_window = window;
  for (const bool slides : architecture.sliding_layers) {
    architecture.no_rope_layers.push_back(window > 0 && !slides);
  }
}

constexpr const char* kLayer = "transformers 5.12 models/cohere/modeling_cohere.py: CohereDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/cohere/modeling_cohere.py: CohereAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/cohere/modeling_cohere.py: CohereForCausalLM.forward";

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = view(std::move(q), Shape{net.B, net.S, net.A, net.hd});
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = view(std::move(k), Shape{net.B, net.S, net.Kv, net.hd});
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = view(std::move(v), Shape{net.B, net.S, net.Kv, net.hd});
  if (net.arch.qk_norm) {
    q = cohere_norm(net, "self_attn.q_norm", std::move(q), true);
    k = cohere_norm(net, "self_attn.k_norm", std::move(k), true);
  }
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  v = transpose(std::move(v), 1, 2);
  if (net.rotates(net.layer_index)) {
    Rotated turned = rotate_pairs_fp32(net, q, k);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor residual = std::move(hidden);
  Tensor h = cohere_norm(net, "input_layernorm", residual);
  const Tensor attended = self_attention(net, h);
  const Tensor fed = llama_mlp(net, h);
  Tensor sum = add(residual, attended);
  h = add(std::move(sum), fed);
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  return cohere_norm(net, "model.norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor logits = net.lm_head("lm_head", std::move(hidden), net.V);
  return mul_scalar(std::move(logits));
}

}  // namespace

const Program kCohereProgram = {one_stack<llama_embed, layer, norm>, head};

const Family kRows[] = {
    {"cohere", "Cohere", "CohereForCausalLM", kLanguageModelOnly, read_cohere_config, &kCohereProgram},
    {"cohere2", "Cohere2", "Cohere2ForCausalLM", kLanguageModelOnly, read_cohere2_config, &kCohereProgram},
};

extern const FamilyRows cohere_rows;
const FamilyRows cohere_rows = kRows;

}  // namespace tidemark
