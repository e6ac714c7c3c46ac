// GPT-2 and what grew out of its configuration: GPT-BigCode, GPT-Neo, GPT-J, GPT-NeoX.
#include <algorithm>
#include <string>
#include <vector>

#include "core/model/config_common.hpp"
#include "core/model/families/families.hpp"

namespace tidemark {

namespace {

// GPT2Config, GPTBigCodeConfig and GPTJConfig: OpenAI's names, with `attribute_map` accepting the usual ones.
void read_openai_dimensions(ConfigFields& fields, Architecture& architecture, Count max_positions) {
  architecture.hidden_size = fields.required({"n_embd", "hidden_size"});
  architecture.num_layers = fields.required({"n_layer", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_head", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"n_positions", "max_position_embeddings"}, max_positions);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.intermediate_size = fields.nullable({"n_inner"}, std::nullopt).value_or(4 * architecture.hidden_size);
  architecture.norm_bias = true;
}

void read_openai_dropouts(ConfigFields& fields, Architecture& architecture, double class_default) {
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, class_default);
  architecture.embedding_dropout = fields.probability({"embd_pdrop"}, class_default);
  architecture.attention_dropout = fields.probability({"attn_pdrop"}, class_default);
}

void reject_cross_attention(ConfigFields& fields) {
  if (fields.flag({"add_cross_attention"}, false)) {
    fields.error("INVALID_VALUE", "add_cross_attention", "Cross-attention in this family is not modelled yet.");
  }
}

}  // namespace

// transformers 5.12.1 models/gpt2/configuration_gpt2.py: GPT2Config.
void read_gpt2_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 1024);
  read_openai_dropouts(fields, architecture, 0.1);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.classifier_dropout = 0.0;  // GPT2ForSequenceClassification has none
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  reject_cross_attention(fields);
  if (fields.flag({"reorder_and_upcast_attn"}, false)) {
    fields.warning("INVALID_VALUE", "reorder_and_upcast_attn",
                   "Attention with \"reorder_and_upcast_attn\" keeps fp32 scores; it is estimated without them.");
  }
}

// transformers 5.12.1 models/gpt_bigcode/configuration_gpt_bigcode.py: GPTBigCodeConfig (SantaCoder, StarCoder).
void read_gpt_bigcode_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 1024);
  read_openai_dropouts(fields, architecture, 0.1);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_pytorch_tanh");
  architecture.multi_query = fields.flag({"multi_query"}, true);
  if (architecture.multi_query) architecture.num_kv_heads = 1;
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"num_key_value_heads", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "inference_runner", "validate_runner_input", "pre_allocate_kv_cache", "max_sequence_length",
                 "max_batch_size"});
  reject_cross_attention(fields);
}

namespace {

// GPTNeoConfig.expand_attention_types_params: [[["global", "local"], 12]] means twelve such pairs. Where the file has
// none, the class takes those twelve and refuses any other depth; every published model alternates, so we do.
void read_attention_types(ConfigFields& fields, Architecture& architecture) {
  const Value* types = fields.find({"attention_types"});
  if (types == nullptr || types->is_null()) {
    for (Count layer = 0; layer < architecture.num_layers; ++layer) architecture.local_layers.push_back(layer % 2);
    if (architecture.num_layers != 24) {
      fields.note("ASSUMED_DEFAULT", "attention_types",
                  "\"attention_types\" is absent; global and local layers are taken to alternate.");
    }
  } else {
    for (const Value& group : types->items) {
      if (group.items.size() != 2 || !group.items[0].is_array() || !group.items[1].is_integer()) {
        fields.error("WRONG_TYPE", "attention_types",
                     "\"attention_types\" must look like [[[\"global\", \"local\"], 12]].");
        return;
      }
      const Count repeats = std::min(group.items[1].integer, architecture.num_layers);
      for (Count repeat = 0; repeat < repeats; ++repeat) {
        for (const Value& type : group.items[0].items) architecture.local_layers.push_back(type.string == "local");
        if (static_cast<Count>(architecture.local_layers.size()) > architecture.num_layers) break;
      }
    }
  }
  if (static_cast<Count>(architecture.local_layers.size()) != architecture.num_layers) {
    fields.error("INVALID_VALUE", "attention_types",
                 "\"attention_types\" does not describe " + std::to_string(architecture.num_layers) + " layers.");
  }
}

}  // namespace

// transformers 5.12.1 models/gpt_neo/configuration_gpt_neo.py: GPTNeoConfig. Its q, k, v have no bias, the rest has
// (modeling_gpt_neo.py: GPTNeoSelfAttention).
void read_gpt_neo_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"num_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.intermediate_size =
      fields.nullable({"intermediate_size"}, std::nullopt).value_or(4 * architecture.hidden_size);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"resid_dropout"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embed_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.sliding_window = fields.count({"window_size"}, 256);
  fields.accept({"attention_layers"});
  read_attention_types(fields, architecture);
}

// transformers 5.12.1 models/gptj/configuration_gptj.py: GPTJConfig. No bias in the attention, one in the feed-forward
// and in the head (modeling_gptj.py).
void read_gptj_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 2048);
  read_openai_dropouts(fields, architecture, 0.0);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  // Without `rotary_dim` the whole head rotates, with tables as wide as the model.
  architecture.rotary_dim = fields.nullable({"rotary_dim"}, 64).value_or(architecture.head_dim);
  architecture.parallel_residual = true;
  architecture.mlp_bias = true;
  architecture.head_bias = true;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

// transformers 5.12.1 models/gpt_neox/configuration_gpt_neox.py: GPTNeoXConfig (Pythia, NeoX-20B). A quarter of each
// head rotates.
void read_gpt_neox_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 2048);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  const double rotary_share = fields.number({"rotary_pct"}, 0.25);
  read_rotary_factor(fields, architecture, rotary_share);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = fields.flag({"attention_bias"}, true);
  architecture.attention_out_bias = architecture.attention_bias;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.parallel_residual = fields.flag({"use_parallel_residual"}, true);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  // One probability for the embeddings and for what both branches add (modeling_gpt_neox.py).
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.embedding_dropout = architecture.residual_dropout;
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
}

}  // namespace tidemark
