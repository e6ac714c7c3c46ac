// OPT: learned positions counted from the mask, pre-norm; OPT-350m norms after each branch and embeds in 512
// dimensions.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/opt/configuration_opt.py: OPTConfig. The position table has two rows more than positions
// (modeling_opt.py: OPTLearnedPositionalEmbedding), and OPT-350m embeds in a smaller width, norms after each branch
// and has no final norm.
void read_opt_config(ConfigFields& fields, Architecture& architecture) {
  architecture.position_offset = 2;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"ffn_dim"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048) + 2;
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  const Count table_width = fields.nullable({"word_embed_proj_dim"}, std::nullopt).value_or(architecture.hidden_size);
  if (table_width != architecture.hidden_size) architecture.embedding_dim = table_width;
  architecture.activation = read_activation(fields, {"activation_function"}, "relu");
  const bool bias = fields.flag({"enable_bias"}, true);
  architecture.attention_bias = bias;
  architecture.attention_out_bias = bias;
  architecture.mlp_bias = bias;
  architecture.norm_bias = fields.flag({"layer_norm_elementwise_affine"}, true);
  architecture.norm_before = fields.flag({"do_layer_norm_before"}, true);
  architecture.final_norm = architecture.norm_before && !fields.flag({"_remove_final_layer_norm"}, false);
  architecture.residual_dropout = fields.probability({"dropout"}, 0.1);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"activation_dropout"});  // in the published files; the class no longer has it
  note_layerdrop(fields, "layerdrop", 0.0);
}

constexpr const char* kModel = "transformers 5.12 models/opt/modeling_opt.py: OPTDecoder.forward";
constexpr const char* kLayer = "transformers 5.12 models/opt/modeling_opt.py: OPTDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/opt/modeling_opt.py: OPTAttention.forward";
constexpr const char* kHead = "transformers 5.12 models/opt/modeling_opt.py: OPTForCausalLM.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/opt/modeling_opt.py: OPTForSequenceClassification.forward",
    .span = "transformers 5.12 models/opt/modeling_opt.py: OPTForQuestionAnswering.forward"};

Tensor self_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("self_attn.q_proj", x, net.Q, bias);
  q = mul_scalar(std::move(q));
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("self_attn.k_proj", x, net.Q, bias);
  Tensor v = net.linear("self_attn.v_proj", x, net.Q, bias);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.out_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  const bool before = net.arch.norm_before;
  Tensor residual = hidden;
  Tensor h = std::move(hidden);
  if (before) h = net.layer_norm("self_attn_layer_norm", std::move(h), net.arch.norm_bias);
  h = self_attention(net, std::move(h));
  h = dropout(std::move(h), p);
  h = add(residual, std::move(h));
  if (!before) h = net.layer_norm("self_attn_layer_norm", std::move(h), net.arch.norm_bias);
  const Shape shape = h.shape();
  h = reshape(std::move(h), Shape{net.T, net.H});
  residual = h;
  if (before) h = net.layer_norm("final_layer_norm", std::move(h), net.arch.norm_bias);
  h = net.linear("fc1", std::move(h), net.F, net.arch.mlp_bias);
  {
    Scope act(net.tape, "activation_fn", kLayer);
    h = activate(net.arch.activation, std::move(h));
  }
  h = net.linear("fc2", std::move(h), net.H, net.arch.mlp_bias);
  h = dropout(std::move(h), p);
  h = add(residual, std::move(h));
  h = view(std::move(h), shape);
  if (!before) h = net.layer_norm("final_layer_norm", std::move(h), net.arch.norm_bias);
  return h;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model.decoder", kModel);
  Tape& t = net.tape;
  const Dim width = net.arch.embedding_dim > 0 ? Dim(net.arch.embedding_dim) : net.H;
  Tensor embeds = net.token_embedding("model.decoder.embed_tokens", width);
  const Shape rows{net.B, net.job.prefix_length() > 0 ? net.keys() : net.S};
  Tensor mask = net.attention_mask;
  if (!mask.defined()) mask = t.allocate(rows, Dtype::kFp32, "attention_mask");
  Tensor ids = t.allocate(rows, mask.dtype(), "cumsum");
  ids = mul(std::move(ids), mask);
  ids = add_scalar(std::move(ids));
  ids = to(std::move(ids), Dtype::kInt64);
  if (net.job.prefix_length() > 0) ids = narrow(std::move(ids), 1, net.job.prefix_length(), net.S);
  make_causal_masks(net, embeds, {false, true, false});
  Tensor offset = add_scalar(ids);
  Tensor positions =
      net.embedding("model.decoder.embed_positions", std::move(offset), Dim(net.arch.max_positions), net.H);
  net.shared.position_ids = std::move(ids);
  if (net.arch.embedding_dim > 0) embeds = net.linear("model.decoder.project_in", std::move(embeds), net.H);
  Tensor h = add(embeds, positions);
  net.model_locals = {std::move(mask), std::move(embeds), std::move(positions)};
  return h;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  Tensor h = std::move(hidden);
  if (net.arch.final_norm) h = net.layer_norm("model.decoder.final_layer_norm", std::move(h), net.arch.norm_bias);
  if (net.arch.embedding_dim > 0)
    h = net.linear("model.decoder.project_out", std::move(h), Dim(net.arch.embedding_dim));
  return h;
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

}  // namespace

const Program kOptProgram = {.forward = one_stack<embed, layer, norm>,
                             .lm_head = head,
                             .heads = kDecoderForwards,
                             .own_loss = OwnLoss::kModelDtype,
                             .decoder_heads = kClasses,
                             .dropout_calls = DropoutCalls::kAll};

constexpr ClassFacts kFacts = {.made_first = "project_out decoder.final_layer_norm"};

const Family kRows[] = {
    {"opt", "OPT", "OPTForCausalLM", kSequenceAndSpan, read_opt_config, &kOptProgram, "model.decoder.layers", kFacts},
};

extern const FamilyRows opt_rows;
const FamilyRows opt_rows = kRows;

}  // namespace tidemark
