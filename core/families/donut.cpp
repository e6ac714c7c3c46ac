// Donut: Swin over a page, and MBart's decoder that writes what stands on it.
#include "core/families/donut.hpp"

#include <string>

#include "core/families/bart.hpp"
#include "core/families/stages.hpp"
#include "core/families/swin_stages.hpp"
#include "core/families/towers.hpp"

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
  constexpr Count kPositions = 1024;
  read_picture_decoder(fields, encoder_width, kPositions, decoder);
  decoder.embedding_dropout = decoder.residual_dropout;
  fields.accept({"classif_dropout", "add_final_layer_norm", "encoder_layers", "encoder_attention_heads",
                 "encoder_ffn_dim", "encoder_layerdrop", "num_hidden_layers", "num_attention_heads",
                 "forced_eos_token_id", "normalize_before", "normalize_embedding", "static_position_embeddings",
                 "extra_pos_embeddings", "add_bias_logits"});
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
  architecture.facts.hooks_embeddings = false;  // DonutSwinEmbeddings.forward returns a tuple
  encoder.accept({"architectures", "torch_dtype", "dtype"});
  encoder.report_unread("donut-swin");
  take_decoder(fields, read_decoder(fields, architecture.hidden_size), architecture);
}

namespace {

constexpr const char* kHead = "transformers 5.12 models/mbart/modeling_mbart.py: MBartForCausalLM.forward";

constexpr SwinNames kNames = {"encoder.embeddings", "encoder.embeddings.patch_embeddings.projection",
                              "encoder.embeddings.norm", "encoder.encoder.layers"};

}  // namespace

Tensor donut_encode(Net& net) {
  return swin_encode(net, kNames);
}

Tensor donut_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("decoder.lm_head", std::move(hidden), net.V);
}

}  // namespace tidemark
