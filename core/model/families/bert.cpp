#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

namespace {

// The families here put a bias on everything.
void set_all_biases(Architecture& architecture) {
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.head_bias = true;
}

}  // namespace

// transformers 5.12.1 models/bert/configuration_bert.py: BertConfig; models/roberta/configuration_roberta.py:
// RobertaConfig has the same keys. RoBERTa's position table counts from the padding id: its files say 514 for 512.
void read_bert_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 512);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.type_vocab_size = fields.count({"type_vocab_size"}, 2);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  set_all_biases(architecture);
  architecture.norm_before = false;
  architecture.final_norm = false;
  const double dropout = fields.probability({"hidden_dropout_prob"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.1);
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, dropout);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  for (const std::string_view key : {"is_decoder", "add_cross_attention"}) {
    if (fields.flag({key}, false)) {
      fields.error("INVALID_VALUE", key, "This family is modelled as an encoder only.");
    }
  }
  // The pooler's sizes in some published files are those of its other libraries.
  fields.accept({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type"});
}

// transformers 5.12.1 models/distilbert/configuration_distilbert.py: DistilBertConfig.
void read_distilbert_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"dim", "hidden_size"});
  architecture.intermediate_size = fields.required({"hidden_dim"});
  architecture.num_layers = fields.required({"n_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 512);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"activation"}, "gelu");
  set_all_biases(architecture);
  architecture.norm_before = false;
  architecture.final_norm = false;
  const double dropout = fields.probability({"dropout"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.1);
  architecture.classifier_dropout = fields.probability({"seq_classif_dropout"}, 0.2);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"qa_dropout", "sinusoidal_pos_embds", "tie_weights_"});
}

}  // namespace tidemark
