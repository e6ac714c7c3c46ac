// VideoLLaMA 3: SigLIP's layers on a row of patches that rotate, each of which is a token; two linear layers; Qwen2
// behind them.
#include <vector>

#include "core/families/family.hpp"
#include "core/families/qwen_vl.hpp"
#include "core/families/towers.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTower =
    "transformers 5.12 models/video_llama_3/modeling_video_llama_3.py: VideoLlama3VisionModel.forward";
constexpr const char* kLayer =
    "transformers 5.12 models/video_llama_3/modeling_video_llama_3.py: VideoLlama3VisionEncoderLayer.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/video_llama_3/modeling_video_llama_3.py: VideoLlama3VisionAttention.forward";
constexpr const char* kProjector =
    "transformers 5.12 models/video_llama_3/modeling_video_llama_3.py: VideoLlama3Projector.forward";
constexpr const char* kModel =
    "transformers 5.12 models/video_llama_3/modeling_video_llama_3.py: VideoLlama3Model.forward";
constexpr RowAttention kNames = {kAttention,         "self_attn.q_proj",   "self_attn.k_proj",
                                 "self_attn.v_proj", "self_attn.out_proj", true};

// transformers 5.12.1 models/video_llama_3/configuration_video_llama_3.py: VideoLlama3Config, VideoLlama3VisionConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "qwen2");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false) || architecture.tie_word_embeddings;
  accept_rotation(fields);
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  read_tower_sizes(vision, tower, 768, 12, 12, 3072);
  tower.activation = read_activation(vision, {"hidden_act"}, "gelu_pytorch_tanh");
  tower.patch_size = square_side(vision, "patch_size", 16);
  tower.attention_bias = tower.attention_out_bias = true;
  tower.image_size = 32 * tower.patch_size;  // where the job leaves it open, as large as Qwen2-VL's
  tower.max_positions = 1;
  vision.accept({"model_type", "layer_norm_eps", "torch_dtype", "dtype"});
  vision.report_unread("video_llama_3_vision");
  architecture.parts.push_back(std::move(tower));
}

void inputs(Net& net) {
  qwen_text_and_pictures(net);
  integer_input(net, Shape{Dim(picture_count(net))}, "image_merge_sizes");
}

Tensor layer(Net& net, Tensor hidden) {
  return siglip_row_layer(net, std::move(hidden), kLayer, kNames, vision_lengths(net));
}

// pixel_unshuffle by VideoLlama3ImageProcessor's merge_size of 1: each picture stretched to its own size. Its channels
// lie last, as here its rows do.
Tensor stretched(Net& net, Tensor hidden) {
  std::vector<Tensor> made;
  const Pieces pictures = split(std::move(hidden), 0, vision_lengths(net));
  for (const Tensor& picture : pictures.part) {
    const Shape rows = picture.shape(), one{Dim(1), Dim(1), rows.dims[0], rows.dims[1]};
    made.push_back(view(interpolate(view(picture, one), one), rows));
  }
  return cat(made, 0);
}

Tensor tower(Net& net) {
  Scope in(net.tape, "vision_model", kTower);
  const Tensor positions = net.tape.allocate(Shape{net.S, Dim(2)}, Dtype::kInt64, "position_ids");
  Tensor hidden = net.hooked_inputs(row_patches(net, "vision_model.embeddings.patch_embedding"));
  const VisionTables tables = vision_tables(net);
  hidden = net.layers({"vision_model.encoder.layers", net.arch.num_layers, layer}, std::move(hidden));
  hidden = stretched(net, net.layer_norm("vision_model.post_layernorm", std::move(hidden)));
  net.shared = {};
  return hidden;
}

Tensor features(Net& net) {
  Net& eyes = qwen_tower_part(net);
  Tensor hidden = tower(eyes);
  eyes.pixel_values.reset();
  {
    Scope in(net.tape, "projector", kProjector);
    hidden = net.linear("projector.readout.0", std::move(hidden), net.H, true);
    hidden = gelu(std::move(hidden));
    hidden = net.linear("projector.readout.2", std::move(hidden), net.H, true);
  }
  return joined_pictures(net, std::move(hidden));
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs};

constexpr ClassFacts kFacts = {.flex_attention = false, .pictures = PictureRule::kPixels};

}  // namespace

const Family kRows[] = {
    {"video_llama_3", "VideoLlama3", "VideoLlama3ForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows video_llama_3_rows;
const FamilyRows video_llama_3_rows = kRows;

}  // namespace tidemark
