// BioGPT and XGLM: fairseq's pre-norm decoder with scaled embeddings. BioGPT learns its positions, XGLM computes them
// and has an attention of its own.
#include "core/families/family.hpp"
#include "core/layers/rotations.hpp"

namespace tidemark {
namespace {

// What both put on everything.
void set_fairseq(ConfigFields& fields, Architecture& architecture) {
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.embedding_scale = true;  // by one where `scale_embedding` is off
  fields.flag({"scale_embedding"}, true);
  architecture.activation_dropout = fields.probability({"activation_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  note_layerdrop(fields, "layerdrop", 0.0);
}

// transformers 5.12.1 models/biogpt/configuration_biogpt.py: BioGptConfig. The position table has two rows more than
// positions (modeling_biogpt.py: BioGptLearnedPositionalEmbedding).
void read_biogpt_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 1024);
  architecture.position_offset = 2;
  architecture.max_positions += 2;
  set_fairseq(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.residual_dropout = fields.probability({"hidden_dropout_prob"}, 0.1);
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.1);
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, architecture.residual_dropout);
}

// transformers 5.12.1 models/xglm/configuration_xglm.py: XGLMConfig.
void read_xglm_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.intermediate_size = fields.required({"ffn_dim"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"attention_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048);
  architecture.positions_by_token = false;  // computed, and made anew where they do not suffice
  set_fairseq(fields, architecture);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu");
  architecture.residual_dropout = fields.probability({"dropout"}, 0.1);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.1);
  reject_cross_attention(fields);
}

constexpr const char* kModel = "transformers 5.12 models/biogpt/modeling_biogpt.py: BioGptModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/biogpt/modeling_biogpt.py: BioGptDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/biogpt/modeling_biogpt.py: BioGptAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/biogpt/modeling_biogpt.py: BioGptForCausalLM.forward";
constexpr const char* kXglmModel = "transformers 5.12 models/xglm/modeling_xglm.py: XGLMModel.forward";
constexpr const char* kXglmLayer = "transformers 5.12 models/xglm/modeling_xglm.py: XGLMDecoderLayer.forward";
constexpr const char* kXglmAttention = "transformers 5.12 models/xglm/modeling_xglm.py: XGLMAttention.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/biogpt/modeling_biogpt.py: BioGptForSequenceClassification.forward",
    .token = "transformers 5.12 models/biogpt/modeling_biogpt.py: BioGptForTokenClassification.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

Tensor scaled(Net&, Tensor rows) {
  return mul_scalar(std::move(rows));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "biogpt", kModel);
  Tape& t = net.tape;
  Tensor embeds = net.token_embedding("biogpt.embed_tokens", net.H, scaled);
  Tensor mask = net.attention_mask;
  if (!mask.defined()) mask = t.allocate(Shape{net.B, net.S}, Dtype::kFp32, "attention_mask");
  make_causal_masks(net, embeds, {false, true, false});
  make_position_ids(net);
  Tensor offset = add_scalar(net.shared.position_ids);
  Tensor positions = net.embedding("biogpt.embed_positions", std::move(offset), Dim(net.arch.max_positions), net.H);
  Tensor h = add(embeds, positions);
  net.model_locals = {std::move(mask), std::move(embeds), std::move(positions)};
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor q = net.linear("self_attn.q_proj", x, net.H, true);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.H, true);
  Tensor v = net.linear("self_attn.v_proj", x, net.H, true);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options = encoder_attention(net);
  options.mask = layer_mask(net);
  options.causal = true;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.out_proj", std::move(out), net.H, true);
}

Tensor fairseq_layer(Net& net, Tensor hidden, const char* source, Branch attend) {
  Scope in(net.tape, "", source);
  const double p = net.arch.residual_dropout;
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("self_attn_layer_norm", residual);
  h = attend(net, std::move(h));
  h = dropout(std::move(h), p);
  h = add(residual, std::move(h));
  residual = h;
  h = net.layer_norm("final_layer_norm", std::move(h));
  h = net.linear("fc1", std::move(h), net.F, true);
  {
    Scope act(net.tape, "activation_fn", source);
    h = activate(net.arch.activation, std::move(h));
  }
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear("fc2", std::move(h), net.H, true);
  h = dropout(std::move(h), p);
  return add(std::move(residual), std::move(h));
}

Tensor layer(Net& net, Tensor hidden) {
  return fairseq_layer(net, std::move(hidden), kLayer, self_attention);
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("biogpt.layer_norm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("output_projection", std::move(hidden), net.V);
}

// -- XGLM
// ---------------------------------------------------------------------------------------------------------------

// XGLMSinusoidalPositionalEmbedding.forward: rows of a buffer in the model's dtype, two more than positions.
Tensor xglm_embed(Net& net) {
  Scope in(net.tape, "model", kXglmModel);
  Tape& t = net.tape;
  const Dtype dtype = net.buffer_dtype(net.job.recipe.weights);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H, scaled);
  make_causal_masks(net, embeds, {true, false, false});
  t.buffer("model.embed_positions.weights", (net.arch.max_positions + 2) * net.H.n() * size_of(dtype));
  make_position_ids(net);
  Tensor positions = t.allocate(Shape{rows_of_positions(net), net.S, net.H}, dtype, "index_select");
  Tensor h = add(embeds, std::move(positions));
  net.model_locals = {std::move(embeds)};
  return dropout(std::move(h), net.arch.residual_dropout);
}

// Heads as a batch of matrices: [B·heads, S, hd], a copy.
Tensor by_heads(Net& net, Tensor x) {
  x = split_heads(net, std::move(x), net.A, net.hd);
  return reshape(std::move(x), Shape{Dim(net.B.n() * net.A.n()), net.S, net.hd});
}

// The scores with the mask added, no less than the dtype's least number, as probabilities.
Tensor xglm_probabilities(Net& net, Tensor scores) {
  const Shape flat{Dim(net.B.n() * net.A.n()), net.S, net.S};
  scores = view(std::move(scores), Shape{net.B, net.A, net.S, net.S});
  scores = add(std::move(scores), net.shared.causal_mask);
  scores = maximum(std::move(scores), net.tape.allocate(Shape{}, Dtype::kFp32, "tensor"));
  scores = view(std::move(scores), flat);
  if (scores.dtype() != Dtype::kFp16) return softmax(std::move(scores));
  scores = softmax(std::move(scores), Dtype::kFp32);
  return to(std::move(scores), Dtype::kFp16);
}

Tensor xglm_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kXglmAttention);
  net.attention_kernel = "eager";
  const Tensor x = std::move(hidden);
  Tensor q = net.linear("self_attn.q_proj", x, net.H, true);
  q = mul_scalar(std::move(q));
  Tensor k = net.linear("self_attn.k_proj", x, net.H, true);
  Tensor v = net.linear("self_attn.v_proj", x, net.H, true);
  q = by_heads(net, std::move(q));
  k = by_heads(net, std::move(k));
  v = by_heads(net, std::move(v));
  Tensor scores = matmul(q, transpose(k, 1, 2));
  scores = xglm_probabilities(net, std::move(scores));
  net.attention_weights = scores;
  const Tensor probabilities = dropout(std::move(scores), net.arch.attention_dropout);
  Tensor out = matmul(probabilities, v);
  out = view(std::move(out), Shape{net.B, net.A, net.S, net.hd});
  out = transpose(std::move(out), 1, 2);
  out = reshape(std::move(out), Shape{net.B, net.S, net.H});
  return net.linear("self_attn.out_proj", std::move(out), net.H, true);
}

Tensor xglm_layer(Net& net, Tensor hidden) {
  return fairseq_layer(net, std::move(hidden), kXglmLayer, xglm_attention);
}

Tensor xglm_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kXglmModel);
  return net.layer_norm("model.layer_norm", std::move(hidden));
}

}  // namespace

const Program kBioGptProgram = {.forward = one_stack<embed, layer, norm>,
                                .lm_head = head,
                                .own_loss = OwnLoss::kModelDtype,
                                .decoder_heads = kClasses,
                                .dropout_calls = DropoutCalls::kAll};
// XGLMPreTrainedModel names no attention kernels at all.
const Program kXglmProgram = {.forward = one_stack<xglm_embed, xglm_layer, xglm_norm>,
                              .lm_head = llama_head,
                              .own_loss = OwnLoss::kModelDtype,
                              .attention = kEagerAlone,
                              .dropout_calls = DropoutCalls::kAll};

const Family kRows[] = {
    {"biogpt", "BioGpt", "BioGptForCausalLM", kSequenceAndToken, read_biogpt_config, &kBioGptProgram, "biogpt.layers",
     kNamesNone},
    {"xglm", "XGLM", "XGLMForCausalLM", kLanguageModelOnly, read_xglm_config, &kXglmProgram, kModelLayers, kNoFlex},
};

extern const FamilyRows biogpt_rows;
const FamilyRows biogpt_rows = kRows;

}  // namespace tidemark
