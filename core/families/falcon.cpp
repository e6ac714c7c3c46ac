// Falcon: 7B with one key/value head, 40B with the "new decoder architecture", RW with alibi and norms in sequence.
#include "core/families/family.hpp"
#include "core/layers/kv_cache.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/falcon/configuration_falcon.py: FalconConfig; heads and norms as modeling_falcon.py
// (FalconAttention, FalconDecoderLayer) derives them. `n_layer`, `n_head` and `n_head_kv` are of the first releases,
// which came with code of their own.
void read_falcon_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"n_embed", "hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers", "n_layer"});
  architecture.num_heads = fields.required({"num_attention_heads", "n_head"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048);
  derive_head_dim(fields, architecture);
  architecture.intermediate_size =
      fields.nullable({"ffn_hidden_size"}, std::nullopt).value_or(4 * architecture.hidden_size);
  architecture.activation = read_activation(fields, {"activation"}, "gelu");

  architecture.new_decoder = fields.flag({"new_decoder_architecture"}, false);
  architecture.multi_query = fields.flag({"multi_query"}, true);
  architecture.parallel_attention = fields.flag({"parallel_attn"}, true);
  architecture.parallel_residual = architecture.parallel_attention || architecture.new_decoder;
  const Count kv_heads = fields.nullable({"num_kv_heads", "n_head_kv"}, std::nullopt).value_or(architecture.num_heads);
  if (architecture.new_decoder) {
    architecture.num_kv_heads = kv_heads;
    if (kv_heads > 0 && architecture.num_heads % kv_heads != 0) {
      fields.error("INVALID_VALUE", "num_kv_heads", "The key/value heads do not divide the query heads.");
    }
  } else {
    architecture.num_kv_heads = architecture.multi_query ? 1 : architecture.num_heads;
  }
  // A sequential layer has two norms, a parallel one has one unless it asks for two.
  const std::optional<Count> parallel_norms = fields.nullable({"num_ln_in_parallel_attn"}, std::nullopt);
  architecture.num_layer_norms = 1;
  if (!architecture.parallel_attention) {
    architecture.num_layer_norms = 2;
  } else if (parallel_norms.value_or(architecture.new_decoder ? 2 : 1) == 2) {
    architecture.num_layer_norms = 2;
    if (!architecture.new_decoder) {
      fields.warning("INVALID_VALUE", "num_ln_in_parallel_attn",
                     "transformers 5.12 builds two norms into such a layer and looks for a third in its forward: "
                     "training fails without \"new_decoder_architecture\".");
    }
  }

  architecture.alibi = fields.flag({"alibi"}, false);
  architecture.rotary_dim = architecture.alibi ? 0 : architecture.head_dim;
  const bool bias = fields.flag({"bias"}, false);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  // Without a dropout of its own the token classifier takes this one.
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, architecture.residual_dropout);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"apply_residual_connection_post_layernorm"});
}

constexpr const char* kModel = "transformers 5.12 models/falcon/modeling_falcon.py: FalconModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/falcon/modeling_falcon.py: FalconDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/falcon/modeling_falcon.py: FalconAttention.forward";
constexpr const char* kFlash = "transformers 5.12 models/falcon/modeling_falcon.py: FalconFlashAttention2.forward";
constexpr const char* kMlp = "transformers 5.12 models/falcon/modeling_falcon.py: FalconMLP.forward";
constexpr const char* kHead = "transformers 5.12 models/falcon/modeling_falcon.py: FalconForCausalLM.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/falcon/modeling_falcon.py: FalconForSequenceClassification.forward",
    .token = "transformers 5.12 models/falcon/modeling_falcon.py: FalconForTokenClassification.forward",
    .span = "transformers 5.12 models/falcon/modeling_falcon.py: FalconForQuestionAnswering.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

struct Heads {
  Tensor q, k, v;  ///< [B, S, heads, hd]
};

// FalconAttention._split_heads
Heads split_qkv(Net& net, const Tensor& fused) {
  Heads h;
  if (net.arch.new_decoder) {
    const Dim group(net.A.n() / net.Kv.n()), row(group.n() + 2);
    const Tensor qkv = view(fused, Shape{net.B, net.S, net.Kv, row, net.hd});
    Tensor q = narrow(qkv, 3, 0, group);
    Tensor k = take(qkv, 3, Dim(1));
    Tensor v = take(qkv, 3, Dim(1));
    const Shape five{net.B, net.S, net.Kv, group, net.hd}, four{net.B, net.S, net.A, net.hd};
    k = expand(std::move(k), five);
    v = expand(std::move(v), five);
    h.q = reshape(std::move(q), four);
    h.k = reshape(k, four);
    h.v = reshape(v, four);
    return h;
  }
  if (!net.arch.multi_query) {
    const Tensor qkv = view(fused, Shape{net.B, net.S, net.A, Dim(3), net.hd});
    h.q = select(qkv, 3);
    h.k = select(qkv, 3);
    h.v = select(qkv, 3);
    return h;
  }
  const Tensor qkv = view(fused, Shape{net.B, net.S, Dim(net.A.n() + 2), net.hd});
  h.q = narrow(qkv, 2, 0, net.A);
  // A list of one index behind an ellipsis is a slice and a copy.
  h.k = narrow(qkv, 2, net.A.n(), Dim(1));
  h.k = clone(std::move(h.k));
  h.v = narrow(qkv, 2, net.A.n() + 1, Dim(1));
  h.v = clone(std::move(h.v));
  return h;
}

// The branches without SDPA: scores divided in place, softmax in the dtype of the hidden states.
Tensor eager(Net& net, const Tensor& q, const Tensor& k, const Tensor& v, Dtype dtype) {
  net.attention_kernel = "eager";
  Tensor kt = transpose(k, -1, -2);
  Tensor scores = matmul(q, std::move(kt));
  if (!net.arch.alibi) {
    scores = scale_in_place(std::move(scores));
    Tensor masked = add(scores, net.shared.causal_mask);
    scores = softmax(std::move(masked), dtype);
    net.attn_weights = scores;
    return matmul(scores, v);
  }
  const Tensor matmul_result = scores;  // a local beside its fp32 copy
  scores = to(std::move(scores), Dtype::kFp32);
  Tensor alibi = view(net.shared.bias, Shape{net.B, net.A, Dim(1), net.S});
  Tensor logits = add(scores, std::move(alibi));
  logits = scale_in_place(std::move(logits));
  Tensor masked = add(logits, net.shared.causal_mask);
  Tensor probs = softmax(std::move(masked), dtype);
  probs = dropout(std::move(probs), net.arch.attention_dropout);
  net.attn_weights = probs;
  // Names of the function that projects the outputs, too.
  if (net.job.checkpointing != Checkpointing::kSelectiveCoreAttention) {
    net.model_locals.insert(net.model_locals.end(), {matmul_result, scores, logits});
  }
  return matmul(probs, v);
}

// FalconAttention and FalconFlashAttention2 between the rotation and the output projection: [B, S, H].
Tensor attend(Net& net, Tensor query, const Tensor& k, const Tensor& v, Dtype dtype) {
  const Tensor q = std::move(query);
  if (wants_flash(net.job)) {
    Scope in(net.tape, "self_attention", kFlash);
    AttentionOptions options;
    options.mask = net.shared.causal_mask;
    options.dropout = net.arch.attention_dropout;
    return flash_attention_forward(net, q, k, v, options);
  }
  Tensor out;
  if (net.job.attention == AttentionKernel::kEager) {
    out = eager(net, q, k, v, dtype);
  } else {
    out = scaled_dot_product_attention(net, q, k, v, net.shared.causal_mask,
                                       net.arch.alibi ? net.arch.attention_dropout : 0.0, false, false);
  }
  out = transpose(std::move(out), 1, 2);
  return reshape(std::move(out), Shape{net.B, net.S, net.H});
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  const Dim kv = net.arch.new_decoder ? Dim(2 * net.K.n()) : Dim(2 * net.Kv.n() * net.hd.n());
  const Tensor fused = net.matmul_linear("self_attention.query_key_value", x, Dim(net.H.n() + kv.n()), bias);
  Heads h = split_qkv(net, fused);
  Tensor q = transpose(std::move(h.q), 1, 2);
  Tensor k = transpose(std::move(h.k), 1, 2);
  Tensor v = transpose(std::move(h.v), 1, 2);
  if (!net.arch.alibi) {
    Tensor q_embed = rotate(net, q);
    Tensor k_embed = rotate(net, k);
    q = std::move(q_embed);
    k = std::move(k_embed);
  }
  keep_keys(net, k, v, true);
  const auto core = [&net, k, v, dtype = x.dtype()](Tensor query) {
    return attend(net, std::move(query), k, v, dtype);
  };
  const std::size_t held = net.model_locals.size();
  Tensor out = core_attention(net, q, core);
  out = net.matmul_linear("self_attention.dense", std::move(out), net.H, bias);
  net.model_locals.resize(held);
  return out;
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.matmul_linear("mlp.dense_h_to_4h", x, net.F, net.arch.mlp_bias);
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.matmul_linear("mlp.dense_4h_to_h", h, net.H, net.arch.mlp_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Architecture& a = net.arch;
  const Tensor x = std::move(hidden);
  Tensor residual = x;
  Tensor attention_normed, mlp_normed;
  if (a.num_layer_norms == 2 && (a.new_decoder || a.parallel_attention)) {
    attention_normed = net.layer_norm("ln_attn", x);
    mlp_normed = net.layer_norm("ln_mlp", x);
  } else {
    attention_normed = net.layer_norm("input_layernorm", x);
  }
  const Tensor attention_output = self_attention(net, attention_normed);
  if (a.parallel_residual) {
    if (!mlp_normed.defined()) mlp_normed = attention_normed;
  } else {
    Tensor dropped = dropout(attention_output, a.attention_dropout);
    residual = add(std::move(residual), std::move(dropped));
    mlp_normed = net.layer_norm("post_attention_layernorm", residual);
  }
  Tensor mlp_output = mlp(net, mlp_normed);
  if (a.parallel_residual) mlp_output = add_in_place(std::move(mlp_output), attention_output);
  Tensor dropped = dropout(mlp_output, a.residual_dropout);
  Tensor out = add(residual, std::move(dropped));
  net.return_weights();
  return out;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  Tensor embeds = net.token_embedding("transformer.word_embeddings", net.H);
  const Shape square{net.B, Dim(1), net.S, net.S};
  if (net.arch.alibi) {
    Tensor alibi = t.allocate(Shape{net.B, net.A, net.S}, Dtype::kBf16, "alibi");
    alibi = view(std::move(alibi), Shape{Dim(net.B.n() * net.A.n()), Dim(1), net.S});
    net.shared.bias = to(std::move(alibi), embeds.dtype());
  }
  make_position_ids(net);
  make_causal_masks(net, embeds, {false, false, true});
  if (net.arch.alibi && net.shared.causal_mask.defined()) {
    Tensor mask = std::move(net.shared.causal_mask);
    if (mask.dtype() == Dtype::kBool) mask = t.allocate(square, embeds.dtype(), "where");
    Tensor scaled = t.allocate(Shape{net.B, net.A, Dim(1), net.S}, embeds.dtype(), "div");
    Tensor low = t.allocate(square, Dtype::kBool, "lt");
    net.shared.causal_mask = t.allocate(Shape{net.B, net.A, net.S, net.S}, embeds.dtype(), "masked_fill");
  }
  rotary_tables(net, embeds.dtype(), net.hd.n());
  net.model_locals = {embeds};
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.ln_f", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

// FALCON_ATTENTION_CLASSES names no flash_attention_3.
const Program kFalconProgram = {.forward = one_stack<embed, layer, norm>,
                                .lm_head = head,
                                .own_loss = OwnLoss::kModelDtype,
                                .decoder_heads = kClasses,
                                .attention = {.flash_attention_3 = false},
                                .dropout_calls = DropoutCalls::kNone};

const Family kRows[] = {
    {"falcon", "Falcon", "FalconForCausalLM", kFourHeads, read_falcon_config, &kFalconProgram, "transformer.h",
     kNoFlex},
    // The first Falcon files.
    {"RefinedWeb", "RW", "FalconForCausalLM", kFourHeads, read_falcon_config, &kFalconProgram, "transformer.h",
     kNoFlex},
    {"RefinedWebModel", "RW", "FalconForCausalLM", kFourHeads, read_falcon_config, &kFalconProgram, "transformer.h",
     kNoFlex},
};

extern const FamilyRows falcon_rows;
const FamilyRows falcon_rows = kRows;

}  // namespace tidemark
