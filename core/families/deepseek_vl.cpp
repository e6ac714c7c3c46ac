// DeepSeek-VL: SigLIP's tower, all of whose patches go through two linear layers into Llama's embeddings.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kFeatures =
    "transformers 5.12 models/deepseek_vl/modeling_deepseek_vl.py: DeepseekVLModel.get_image_features";
constexpr const char* kAligner =
    "transformers 5.12 models/deepseek_vl/modeling_deepseek_vl.py: DeepseekVLAligner.forward";
constexpr const char* kModel = "transformers 5.12 models/deepseek_vl/modeling_deepseek_vl.py: DeepseekVLModel.forward";

// transformers 5.12.1 models/deepseek_vl/configuration_deepseek_vl.py: DeepseekVLConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "llama");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"image_token_id"});
  read_tower(fields, architecture, "siglip_vision_model");
}

// DeepseekVLImageProcessor: a picture's longer side becomes the tower's, and grey makes it a square.
void inputs(Net& net) {
  const Count side = net.arch.parts.front().image_size;
  picture_inputs(net, Dim(picture_count(net)), {side, side});
}

Tensor aligned(Net& net, const Tensor& encodings) {
  Scope in(net.tape, "aligner", kAligner);
  Tensor x = net.linear("aligner.linear1", encodings, net.H, true);
  x = gelu(std::move(x));
  return net.linear("aligner.linear2", std::move(x), net.H, true);
}

Tensor features(Net& net) {
  Scope in(net.tape, "", kFeatures);
  Net& tower = tower_part(net, Dim(picture_count(net)));
  Tensor made;
  {
    const Tensor last = tower.arch.program->forward(tower);
    made = aligned(net, last);
    let_tower_go(net, tower, last);
  }
  net.keep_image_output(made);
  return view(made, Shape{Dim(made.size(0) * made.size(1)), net.H});
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

const Program kProgram = {.forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs};

}  // namespace

std::string deepseek_vl_name(const Architecture& architecture, std::string_view path) {
  return name_within_body(architecture, renamed(path, "vision_tower.", "vision_model."), "language_model.");
}

const Family kRows[] = {
    {"deepseek_vl", "DeepseekVL", "DeepseekVLForConditionalGeneration", kSeeingClasses, read_config, &kProgram,
     kModelLayers, kDeepseekVlFacts},
};

extern const FamilyRows deepseek_vl_rows;
const FamilyRows deepseek_vl_rows = kRows;

}  // namespace tidemark
