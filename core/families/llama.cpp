// Llama, Mistral, Qwen2, SmolLM3, Seed-OSS, CWM, Yi, InternLM3, EXAONE 3, IQuest-Coder: pre-norm, rotary attention,
// gated feed-forward.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/tensor_parallel.hpp"

namespace tidemark {

// transformers 5.12.1 models/llama/configuration_llama.py: LlamaConfig. The one switch `attention_bias` is for all four
// projections (modeling_llama.py: LlamaAttention).
void read_llama_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  read_kv_heads(fields, architecture, std::nullopt);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

namespace {

// transformers 5.12.1 models/smollm3/configuration_smollm3.py: SmolLM3Config. In `no_rope_layers` a one means that the
// layer does rotate.
void read_smollm3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 4);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);

  const Count interval = fields.count({"no_rope_layer_interval"}, 4);
  const Value* rotating = fields.find({"no_rope_layers"});
  if (rotating != nullptr && !rotating->is_null()) {
    if (!rotating->is_array() || static_cast<Count>(rotating->items.size()) < architecture.num_layers) {
      fields.error("INVALID_VALUE", "no_rope_layers", "\"no_rope_layers\" must be a list with one entry per layer.");
    } else {
      for (Count layer = 0; layer < architecture.num_layers; ++layer) {
        const Value& rotates = rotating->items[static_cast<std::size_t>(layer)];
        architecture.no_rope_layers.push_back(rotates.real == 0.0 && !rotates.boolean);
      }
    }
  } else {
    for (Count layer = 0; layer < architecture.num_layers; ++layer) {
      architecture.no_rope_layers.push_back((layer + 1) % interval == 0);
    }
  }

  const bool use_window = fields.flag({"use_sliding_window"}, false);
  const Count window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  LayerFlags sliding;
  if (const auto types = read_layer_types(fields, architecture)) {
    sliding = *types;
  } else if (use_window && window > 0) {
    // The layers without rotation are the ones that slide.
    sliding = architecture.no_rope_layers;
  }
  for (const bool slides : sliding) {
    if (slides) architecture.sliding_window = window;
  }
  if (architecture.sliding_window > 0) architecture.sliding_layers = sliding;
  fields.accept({"max_window_layers"});
}

// What MistralConfig, MinistralConfig and Ministral3Config share; their modelling files have no bias anywhere.
void read_mistral_like(ConfigFields& fields, Architecture& architecture, Count max_positions) {
  read_dimensions(fields, architecture, max_positions);
  read_kv_heads(fields, architecture, 8);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

void slide_everywhere(Architecture& architecture) {
  if (architecture.sliding_window == 0) return;
  architecture.sliding_layers.assign(static_cast<std::size_t>(architecture.num_layers), true);
}

// transformers 5.12.1 models/mistral/configuration_mistral.py: MistralConfig. A window of 4096 unless null is given;
// Nemo and Small give `head_dim`.
void read_mistral_config(ConfigFields& fields, Architecture& architecture) {
  read_mistral_like(fields, architecture, 4096 * 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  slide_everywhere(architecture);
}

// transformers 5.12.1 models/ministral/configuration_ministral.py: MinistralConfig.
void read_ministral_config(ConfigFields& fields, Architecture& architecture) {
  read_mistral_like(fields, architecture, 4096 * 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.sliding_window = fields.nullable({"sliding_window"}, 4096).value_or(0);
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_layers = *types;
  } else {
    slide_everywhere(architecture);
  }
}

// transformers 5.12.1 models/ministral3/configuration_ministral3.py: Ministral3Config. No window by default.
void read_ministral3_config(ConfigFields& fields, Architecture& architecture) {
  read_mistral_like(fields, architecture, 262144);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.query_scale = true;
  architecture.sliding_window = fields.nullable({"sliding_window"}, std::nullopt).value_or(0);
  slide_everywhere(architecture);
}

// transformers 5.12.1 models/qwen2/configuration_qwen2.py: Qwen2Config. The biases of q, k, v are in the code, not in
// the file (modeling_qwen2.py: Qwen2Attention).
void read_qwen2_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_kv_heads(fields, architecture, 32);
  read_head_dim(fields, architecture);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = true;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_qwen_window(fields, architecture);
}

// transformers 5.12.1 models/seed_oss/configuration_seed_oss.py: SeedOssConfig. Dropout is on by default.
void read_seed_oss_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 524288);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_out_bias = fields.flag({"attention_out_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.1);
  architecture.residual_dropout = fields.probability({"residual_dropout"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/cwm/configuration_cwm.py: CwmConfig. The first of every four layers attends to everything;
// no bias on q, k, v, o (modeling_cwm.py: CwmAttention, CwmMLP).
void read_cwm_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture, 128);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.mlp_bias = fields.flag({"mlp_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.sliding_window = fields.nullable({"sliding_window"}, 8192).value_or(0);
  if (const auto types = read_layer_types(fields, architecture)) {
    architecture.sliding_layers = *types;
  } else {
    for (Count layer = 0; layer < architecture.num_layers; ++layer) {
      architecture.sliding_layers.push_back(layer % 4 != 0);
    }
  }
}

// transformers 5.24 models/auto/modeling_auto.py: the configurations of InternLM3, EXAONE 3 and IQuest-Coder, which had
// code beside their weights before, are of Llama's classes. What they share.
void read_like_llama(ConfigFields& fields, Architecture& architecture, Count kv_heads, std::optional<Count> head_dim) {
  read_kv_heads(fields, architecture, kv_heads);
  read_head_dim(fields, architecture, head_dim);
  architecture.rotary_dim = architecture.head_dim;
  architecture.activation = read_activation(fields, {"hidden_act", "activation_function"}, "silu");
  architecture.attention_bias = architecture.attention_out_bias = fields.flag({"attention_bias", "qkv_bias"}, false);
  architecture.mlp_bias = fields.flag({"mlp_bias", "bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.24 models/internlm3/configuration_internlm3.py: InternLM3Config.
void read_internlm3_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 32768);
  read_like_llama(fields, architecture, 2, 128);
  if (architecture.attention_bias != architecture.mlp_bias) {
    fields.error("INVALID_VALUE", "qkv_bias", "transformers refuses InternLM3 whose \"qkv_bias\" is not its \"bias\".");
  }
}

// transformers 5.24 models/exaone/configuration_exaone.py: ExaoneConfig.
void read_exaone_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 4096);
  read_like_llama(fields, architecture, 8, std::nullopt);
  fields.accept({"embed_dropout"});  // of the file; no class of transformers reads it
}

// transformers 5.24 models/iquestcoder/configuration_iquestcoder.py: IQuestCoderConfig.
void read_iquestcoder_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 131072);
  read_like_llama(fields, architecture, 8, 128);
  if (fields.has({"clip_qkv"}) || fields.flag({"use_sliding_window"}, false)) {
    fields.error("INVALID_VALUE", "clip_qkv",
                 "transformers refuses IQuest-Coder with \"clip_qkv\" or \"use_sliding_window\".");
  }
  fields.accept({"sliding_window", "max_window_layers"});
}

constexpr const char* kModel = "transformers 5.12 models/llama/modeling_llama.py: LlamaModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/llama/modeling_llama.py: LlamaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/llama/modeling_llama.py: LlamaAttention.forward";
constexpr const char* kMinistral3 =
    "transformers 5.12 models/ministral3/modeling_ministral3.py: get_llama_4_attn_scale";
constexpr const char* kMlp = "transformers 5.12 models/llama/modeling_llama.py: LlamaMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/llama/modeling_llama.py: LlamaForCausalLM.forward";

}  // namespace

// q * (1 + beta * log(1 + floor(position_ids / max))).to(q.dtype())
Tensor scale_queries(Net& net, Tensor q_in) {
  Scope in(net.tape, "self_attn", kMinistral3);
  const Tensor q = std::move(q_in);
  const Shape row{rows_of_positions(net), net.S};
  Tensor scale = net.tape.allocate(row, Dtype::kFp32, "div");
  for (const char* step : {"floor", "add", "log", "mul", "add"}) scale = net.tape.allocate(row, Dtype::kFp32, step);
  scale = view(std::move(scale), Shape{row.dims[0], Dim(1), net.S, Dim(1)});
  scale = to(std::move(scale), q.dtype());
  return mul(q, std::move(scale));
}

void rotate_both(Net& net, Tensor& q, Tensor& k) {
  // apply_rotary_pos_emb returns both: the unrotated ones go when the names are bound anew.
  Tensor q_embed = rotate(net, q);
  Tensor k_embed = rotate(net, k);
  q = std::move(q_embed);
  k = std::move(k_embed);
}

Tensor llama_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, [](Net& n, Tensor& q, Tensor& k) {
    if (n.rotates(n.layer_index)) rotate_both(n, q, k);
    if (n.arch.query_scale) q = scale_queries(n, std::move(q));
  });
}

Tensor qkv_attention(Net& net, Tensor hidden, const char* source, Turn turn) {
  AttentionOptions options;
  options.mask = layer_mask(net);
  return qkv_attention(net, std::move(hidden), source, turn, std::move(options));
}

Tensor qkv_attention(Net& net, Tensor hidden, const char* source, Turn turn, AttentionOptions options) {
  Scope in(net.tape, "self_attn", source);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  qkv_at_once(net, x, bias);
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.K, bias);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  Tensor v = net.linear("self_attn.v_proj", x, net.K, bias);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  turn(net, q, k);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  out = net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor affine_norm(Net& net, const char* name, Tensor x) {
  return net.layer_norm(name, std::move(x));
}

Tensor pre_norm_layer(Net& net, Tensor hidden, const char* source, Branch attention, Branch feed_forward, Norm norm) {
  Scope in(net.tape, "", source);
  Tensor residual = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", residual);
  h = run_divided(net, std::move(h), attention);
  h = add(residual, std::move(h));
  residual = h;
  h = norm(net, "post_attention_layernorm", std::move(h));
  h = run_divided(net, std::move(h), feed_forward);
  return add(std::move(residual), std::move(h));
}

namespace {

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, llama_mlp);
}

}  // namespace

Tensor llama_embed(Net& net) {
  return decoder_embed(net, kModel, false);
}

Tensor decoder_embed(Net& net, const char* source, bool wide_tables) {
  Scope in(net.tape, "model", source);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  if (net.stage == nullptr) make_causal_masks(net, embeds);  // a stage's layers get none
  if (net.arch.rotary_dim > 0) rotary_tables(net, wide_tables ? Dtype::kFp32 : embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor llama_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor fused = net.gated_at_once(x, net.F);
  if (fused.defined()) return fused;
  Tensor gate = net.linear("mlp.gate_proj", x, net.F, bias);
  if (net.job.liger_swiglu) {
    Tensor up = net.linear("mlp.up_proj", x, net.F, bias);
    gate = liger_swiglu(std::move(gate), std::move(up));
  } else {
    {
      Scope act(net.tape, "mlp.act_fn", kMlp);
      gate = activate(net.arch.activation, std::move(gate));
    }
    Tensor up = net.linear("mlp.up_proj", x, net.F, bias);
    gate = mul(std::move(gate), std::move(up));
  }
  gate = net.linear("mlp.down_proj", std::move(gate), net.H, bias);
  // Only Seed-OSS has a residual dropout (modeling_seed_oss.py: SeedOssMLP.forward) and Starcoder2, with an MLP of its
  // own.
  return dropout(std::move(gate), net.arch.residual_dropout);
}

Tensor llama_norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.norm", std::move(hidden));
}

Tensor held_norm(Net& net, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  return llama_norm(net, hidden);
}

Tensor llama_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V, net.arch.head_bias);
}

const Program kLlamaProgram = {.forward = one_stack<llama_embed, layer, llama_norm>,
                               .lm_head = llama_head,
                               .is_divisible = true,
                               .dropout_calls = DropoutCalls::kAll,
                               .has_tp_plan = true};

const Family kRows[] = {
    {"llama", "Llama", "LlamaForCausalLM", kFourHeads, read_llama_config, &kLlamaProgram},
    {"smollm3", "SmolLM3", "SmolLM3ForCausalLM", kFourHeads, read_smollm3_config, &kLlamaProgram},
    {"mistral", "Mistral", "MistralForCausalLM", kFourHeads, read_mistral_config, &kLlamaProgram},
    {"ministral", "Ministral", "MinistralForCausalLM", kFourHeads, read_ministral_config, &kLlamaProgram},
    {"ministral3", "Ministral3", "Ministral3ForCausalLM", kFourHeads, read_ministral3_config, &kLlamaProgram},
    {"qwen2", "Qwen2", "Qwen2ForCausalLM", kFourHeads, read_qwen2_config, &kLlamaProgram},
    {"seed_oss", "SeedOss", "SeedOssForCausalLM", kFourHeads, read_seed_oss_config, &kLlamaProgram},
    {"cwm", "Cwm", "CwmForCausalLM", kLanguageModelOnly, read_cwm_config, &kLlamaProgram},
    {"internlm3", "InternLM3", "LlamaForCausalLM", kLanguageModelOnly, read_internlm3_config, &kLlamaProgram},
    {"exaone", "Exaone", "LlamaForCausalLM", kLanguageModelOnly, read_exaone_config, &kLlamaProgram},
    {"iquestcoder", "IQuestCoder", "LlamaForCausalLM", kLanguageModelOnly, read_iquestcoder_config, &kLlamaProgram},
    // The first Yi files, of a class that came with them; the same keys and modules as Llama.
    {"Yi", "Yi", "LlamaForCausalLM", kFourHeads, read_llama_config, &kLlamaProgram},
};

extern const FamilyRows llama_rows;
const FamilyRows llama_rows = kRows;

}  // namespace tidemark
