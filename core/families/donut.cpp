// Donut: Swin over a page, and MBart's decoder that writes what stands on it.
#include "core/families/donut.hpp"

#include <string>

#include "core/families/bart.hpp"
#include "core/families/stages.hpp"
#include "core/families/swin_stages.hpp"
#include "core/families/towers.hpp"
#include "core/layers/seq2seq.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/mbart/configuration_mbart.py: MBartConfig.
Architecture read_decoder(ConfigFields& outer, Count encoder_width) {
  ConfigFields fields(required_object(outer, "decoder"), outer.path() + "/decoder", outer.issues());
  Architecture decoder;
  const std::string type = fields.text({"model_type"}, "mbart");
  if (type != "mbart") {
    fields.error("UNSUPPORTED_ARCHITECTURE", "model_type",
                 "Of decoders behind Donut's encoder, MBart's is modelled: \"" + type + "\" is not.");
    return decoder;
  }
  decoder.model_type = fields.flag({"use_cache"}, true) ? kBartCausalCaching : kBartCausal;
  decoder.hidden_size = fields.count({"d_model", "hidden_size"}, 1024);
  decoder.num_layers = fields.count({"decoder_layers", "num_hidden_layers"}, 12);
  decoder.num_heads = decoder.num_kv_heads = fields.count({"decoder_attention_heads", "num_attention_heads"}, 16);
  decoder.intermediate_size = fields.count({"decoder_ffn_dim"}, 4096);
  decoder.vocab_size = fields.count({"vocab_size"}, 50265);
  decoder.max_positions = fields.count({"max_position_embeddings"}, 1024) + 2;  // nn.Embedding(n + self.offset)
  decoder.position_offset = 2;
  decoder.activation = read_activation(fields, {"activation_function"}, "gelu");
  decoder.residual_dropout = fields.probability({"dropout"}, 0.1);
  decoder.embedding_dropout = decoder.residual_dropout;
  decoder.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  decoder.activation_dropout = fields.probability({"activation_dropout"}, 0.0);
  decoder.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  derive_head_dim(fields, decoder);
  const Count width = fields.nullable({"cross_attention_hidden_size"}, std::nullopt).value_or(0);
  if (width == 0 && encoder_width != decoder.hidden_size) decoder.pictures.width = decoder.hidden_size;
  if (width != 0 && width != encoder_width) {
    fields.error(
        "INVALID_VALUE", "cross_attention_hidden_size",
        "\"cross_attention_hidden_size\" must be the encoder's hidden_size: transformers raises a ValueError.");
  }
  note_layerdrop(fields, "decoder_layerdrop", 0.0);
  fields.accept({"architectures",           "torch_dtype",          "dtype",
                 "decoder_start_token_id",  "scale_embedding",      "is_decoder",
                 "add_cross_attention",     "is_encoder_decoder",   "classifier_dropout",
                 "classif_dropout",         "add_final_layer_norm", "encoder_layers",
                 "encoder_attention_heads", "encoder_ffn_dim",      "encoder_layerdrop",
                 "num_hidden_layers",       "num_attention_heads",  "forced_eos_token_id",
                 "normalize_before",        "normalize_embedding",  "static_position_embeddings",
                 "extra_pos_embeddings",    "add_bias_logits"});
  fields.report_unread("mbart");
  return decoder;
}

// A number, or height and width: the model has the one, its stages the other.
struct Page {
  Count height = 0, width = 0;
};
Page read_page(ConfigFields& fields) {
  const std::vector<Count> sides = read_counts(fields, "image_size", {});
  if (sides.size() == 2) return {sides[0], sides[1]};
  const Count side = fields.count({"image_size"}, 224);
  return {side, side};
}

}  // namespace

bool is_donut(const Architecture& architecture) {
  const std::string_view last =
      architecture.parts.empty() ? "" : std::string_view{architecture.parts.back().model_type};
  return last == kBartCausal || last == kBartCausalCaching;
}

void read_donut_config(ConfigFields& fields, ConfigFields& encoder, Architecture& architecture) {
  const Page page = read_page(encoder);
  architecture.image_size = page.height;
  read_swin_stages(encoder, architecture);
  for (Architecture& stage : architecture.parts) stage.image_size = page.width;
  architecture.layers_path = "encoder.encoder.layers";
  encoder.accept({"architectures", "torch_dtype", "dtype"});
  encoder.report_unread("donut-swin");
  Architecture decoder = read_decoder(fields, architecture.hidden_size);
  architecture.num_decoder_layers = decoder.num_layers;
  architecture.vocab_size = decoder.vocab_size;
  architecture.tie_word_embeddings = decoder.tie_word_embeddings;
  architecture.parts.push_back(std::move(decoder));
  fields.accept({"is_encoder_decoder", "tie_word_embeddings", "processor_class", "decoder_start_token_id"});
}

namespace {

constexpr const char* kModel =
    "transformers 5.12 models/vision_encoder_decoder/modeling_vision_encoder_decoder.py: "
    "VisionEncoderDecoderModel.forward";
constexpr const char* kHead = "transformers 5.12 models/mbart/modeling_mbart.py: MBartForCausalLM.forward";

constexpr SwinNames kNames = {"encoder.embeddings", "encoder.embeddings.patch_embeddings.projection",
                              "encoder.embeddings.norm", "encoder.encoder.layers"};

}  // namespace

void donut_pictures(Net& net) {
  swin_pictures(net);
}

Tensor donut_forward(Net& net) {
  Scope in(net.tape, "", kModel);
  const Tensor encoded = swin_encode(net, kNames);
  net.model_locals.clear();
  net.encoder_hidden = encoded;
  Net& decoder = net.part(net.arch.parts.back(), net.B, net.labels.dim(1));
  Tensor states = encoded;
  if (decoder.arch.pictures.width > 0) states = net.linear("enc_to_dec_proj", std::move(states), decoder.H, true);
  const Tensor ids = shift_right(net, net.labels.shape());
  return bart_decode(decoder, net, ids, states);
}

Tensor donut_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("decoder.lm_head", std::move(hidden), net.V);
}

void check_donut(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_swin_stages(architecture, job, issues);
}

}  // namespace tidemark
