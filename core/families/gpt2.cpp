// GPT-2: learned positions, pre-norm, Conv1D projections.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/gpt2/configuration_gpt2.py: GPT2Config.
void read_gpt2_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 1024);
  read_openai_dropouts(fields, architecture, 0.1);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.summary_dropout = fields.probability({"summary_first_dropout"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  reject_cross_attention(fields);
  if (fields.flag({"reorder_and_upcast_attn"}, false)) {
    fields.warning("INVALID_VALUE", "reorder_and_upcast_attn",
                   "Attention with \"reorder_and_upcast_attn\" keeps fp32 scores; it is estimated without them.");
  }
}

constexpr const char* kModel = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2Model.forward";
constexpr const char* kBlock = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2Block.forward";
constexpr const char* kAttention = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2MLP.forward";
constexpr const char* kHead = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2LMHeadModel.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2ForSequenceClassification.forward",
    .token = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2ForTokenClassification.forward",
    .span = "transformers 5.12 models/gpt2/modeling_gpt2.py: GPT2ForQuestionAnswering.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor fused = net.conv1d("attn.c_attn", x, Dim(3 * net.H.n()));
  Pieces qkv = split(std::move(fused), 2, {net.H, net.H, net.H});
  Tensor k = split_heads(net, std::move(qkv.part[1]), net.A, net.hd);
  Tensor v = split_heads(net, std::move(qkv.part[2]), net.A, net.hd);
  Tensor q = split_heads(net, std::move(qkv.part[0]), net.A, net.hd);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  options.has_groups = false;
  options.softmax_fp32 = false;
  Tensor out = attention(net, q, k, v, options);
  out = net.conv1d("attn.c_proj", std::move(out), net.H);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.conv1d("mlp.c_fc", x, net.F);
  {
    Scope act(net.tape, "mlp.act", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  h = net.conv1d("mlp.c_proj", std::move(h), net.H);
  return dropout(std::move(h), net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("ln_1", residual);
  const Tensor attn_output = attn(net, h);
  h = add(attn_output, std::move(residual));
  residual = h;
  h = net.layer_norm("ln_2", residual);
  const Tensor feed_forward = mlp(net, h);
  return add(std::move(residual), feed_forward);
}

}  // namespace

Tensor gpt2_embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.token_embedding("transformer.wte", net.H);
  make_position_ids(net);
  Tensor positions = net.embedding("transformer.wpe", net.shared.position_ids, Dim(net.arch.max_positions), net.H);
  Tensor h = add(embeds, positions);
  make_causal_masks(net, embeds);
  net.model_locals = {std::move(embeds), std::move(positions)};
  return dropout(std::move(h), net.arch.embedding_dropout);
}

Tensor gpt2_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.ln_f", std::move(hidden));
}

Tensor gpt2_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

const Program kGpt2Program = {.forward = one_stack<gpt2_embed, layer, gpt2_norm>,
                              .lm_head = gpt2_head,
                              .heads = kGpt2Forwards,
                              .own_loss = OwnLoss::kModelDtype,
                              .decoder_heads = kClasses,
                              .dropout_calls = DropoutCalls::kNone};

const Family kRows[] = {
    {"gpt2", "GPT2", "GPT2LMHeadModel", kGpt2Classes, read_gpt2_config, &kGpt2Program, "transformer.h", kNoFlex},
};

extern const FamilyRows gpt2_rows;
const FamilyRows gpt2_rows = kRows;

}  // namespace tidemark
