// EuroBERT: Llama's layers, which attend to both sides.
#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/eurobert/configuration_eurobert.py: EuroBertConfig. One switch for the biases of the
// feed-forward and of the masked language model's head.
void read_eurobert_config(ConfigFields& fields, Architecture& architecture) {
  read_llama_config(fields, architecture);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 8192);
  architecture.head_bias = architecture.mlp_bias;
  const std::string pooling = fields.text({"classifier_pooling"}, "late");
  architecture.mean_pooling = pooling != "bos";
  architecture.late_pooling = pooling == "late";
  if (pooling != "late" && pooling != "bos" && pooling != "mean") {
    fields.error("INVALID_VALUE", "classifier_pooling", "\"classifier_pooling\" is one of bos, mean, late.");
  }
  fields.accept({"mask_token_id", "clf_pooling"});
}

constexpr const char* kModel = "transformers 5.12 models/eurobert/modeling_eurobert.py: EuroBertModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/eurobert/modeling_eurobert.py: EuroBertDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/eurobert/modeling_eurobert.py: EuroBertAttention.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/eurobert/modeling_eurobert.py: EuroBertForSequenceClassification.forward";
constexpr const char* kTokens =
    "transformers 5.12 models/eurobert/modeling_eurobert.py: EuroBertForTokenClassification.forward";

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"Model", Head::kNone}};

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor h = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {h};
  make_position_ids(net);
  make_bidirectional_mask(net, h);
  rotary_tables(net, h.dtype(), net.arch.rotary_dim);
  return h;
}

Tensor both_sides(Net& net, Tensor hidden) {
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.causal = false;
  return qkv_attention(net, std::move(hidden), kAttention, rotate_both, std::move(options));
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, both_sides, llama_mlp);
}

// The sum over the tokens that are no padding, by their number.
Tensor mean_of_tokens(Net& net, Tensor x) {
  if (!net.attention_mask.defined()) return mean_over(std::move(x), 1);
  Tensor sum = mul(std::move(x), unsqueeze(net.attention_mask, 2));
  sum = sum_rows(std::move(sum));
  Tensor count = net.tape.allocate(Shape{net.B, Dim(1)}, Dtype::kInt64, "sum");
  return div_in_place(std::move(sum), std::move(count));
}

Outputs sequence(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  const Tensor last_hidden_state = std::move(hidden);
  const bool late = net.arch.late_pooling;
  Tensor x = last_hidden_state;
  if (!late) x = net.arch.mean_pooling ? mean_of_tokens(net, std::move(x)) : select(std::move(x), 1);
  x = net.classifier("dense", std::move(x), net.H, true);
  x = gelu(std::move(x));
  Tensor logits = net.classifier("classifier", x, Dim(net.arch.num_labels), true);
  if (late) logits = mean_of_tokens(net, std::move(logits));
  return classified(net, std::move(logits));
}

Outputs tokens(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kTokens);
  return labelled(net, net.classifier("classifier", std::move(hidden), Dim(net.arch.num_labels), true));
}

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, wide_masked_lm},
                                  {Head::kSequenceClassification, sequence},
                                  {Head::kTokenClassification, tokens},
                                  {Head::kNone, body_alone}};

}  // namespace

const Program kEuroBertProgram = {one_stack<embed, layer, llama_norm>, llama_head, kHeads};

const Family kRows[] = {
    {"eurobert", "EuroBert", "EuroBertForMaskedLM", kClasses, read_eurobert_config, &kEuroBertProgram},
};

extern const FamilyRows eurobert_rows;
const FamilyRows eurobert_rows = kRows;

}  // namespace tidemark
