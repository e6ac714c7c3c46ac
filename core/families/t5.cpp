#include <string>

#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/t5/configuration_t5.py: T5Config. `d_kv` times the heads need not be the width.
// `feed_forward_proj` is "ACT" or "gated-ACT", where "gated-gelu" means gelu_new. The class ties the head whatever
// the file says (Flan-T5's "tie_word_embeddings": false only switches off the scaling of the decoder's output).
void read_t5_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.intermediate_size = fields.required({"d_ff"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"num_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.head_dim = fields.count({"d_kv", "head_dim"}, 64);
  architecture.num_kv_heads = architecture.num_heads;
  architecture.num_decoder_layers =
      fields.nullable({"num_decoder_layers"}, std::nullopt).value_or(architecture.num_layers);
  architecture.num_buckets = fields.count({"relative_attention_num_buckets"}, 32);

  const std::string projection = fields.text({"feed_forward_proj"}, "relu");
  constexpr std::string_view kGated = "gated-";
  architecture.gated_mlp = projection.compare(0, kGated.size(), kGated) == 0;
  std::string name = architecture.gated_mlp ? projection.substr(kGated.size()) : projection;
  if (projection == "gated-gelu") name = "gelu_new";
  architecture.activation = activation_named(name, "feed_forward_proj", fields);

  const double dropout = fields.probability({"dropout_rate"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = dropout;
  architecture.activation_dropout = dropout;
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, 0.0);
  architecture.logit_scale = fields.flag({"tie_word_embeddings"}, true);
  architecture.tie_word_embeddings = true;
  if (!fields.flag({"is_encoder_decoder"}, true)) {
    fields.error("INVALID_VALUE", "is_encoder_decoder", "T5's encoder alone is not modelled.");
  }
  fields.accept({"dense_act_fn", "is_gated_act", "n_positions"});
}

}  // namespace

const Family kRows[] = {
    {"t5", "T5", "T5ForConditionalGeneration", kT5Classes, read_t5_config, nullptr},
};

extern const FamilyRows t5_rows;
const FamilyRows t5_rows = kRows;

}  // namespace tidemark
