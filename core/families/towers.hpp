#pragma once

#include <string_view>
#include <vector>

#include "core/families/classes.hpp"
#include "core/layers/vision.hpp"
#include "core/model/config_fields.hpp"

/// The configurations of models that see, and the towers that several of them share.
namespace tidemark {

/// Reads `text_config`, or what else `key` says, as the family that it names, or `standard`, into the architecture,
/// whose language model that is. What the file leaves out takes the class's default size, because files of models that
/// see leave it out.
void read_language(ConfigFields& fields, Architecture& architecture, std::string_view standard,
                   std::string_view key = "text_config");
/// Reads `vision_config` as the tower that it names, or `standard`, into the first of the architecture's parts. False,
/// with an issue, where that tower is not modelled.
bool read_tower(ConfigFields& fields, Architecture& architecture, std::string_view standard);
/// What every tower's configuration says: width, depth, heads.
void read_tower_sizes(ConfigFields& fields, Architecture& tower, Count width, Count depth, Count heads, Count ffn);
/// The member `key` of a configuration as an object; null where there is none.
const Value* object_in(ConfigFields& fields, std::string_view key);
/// The same where its absence is an error; never null.
const Value& required_object(ConfigFields& fields, std::string_view key);
/// A number, or a list of two equal ones.
Count square_side(ConfigFields& fields, std::string_view key, Count class_default);

/// A tower: reader and forward, from tower.pixel_values to its last hidden state.
struct Tower {
  std::string_view model_type;                 ///< of vision_config
  void (*read)(ConfigFields&, Architecture&);  ///< into the tower's architecture
  const Program* program;                      ///< only its forward
};

/// The tower of the model as a part: as many pictures, and tokens of each.
Net& tower_part(Net& net, Dim pictures);
/// The hidden states that vision_feature_layer names, in one tensor, and the class token cut off where the model does.
Tensor selected_features(Net& net, Net& tower);

/// The model around the language model: features in the places of the pictures' tokens, and, where `returned`, among
/// the outputs (image_hidden_states). Without pictures what makes features is declared alone.
Tensor merge_features(Net& net, Tensor embeds, Tensor (*features_of)(Net& net), const char* source,
                      bool returned = true);

/// Tower and LLaVA's way to choose its hidden states: [n, tokens, width]; what the tower held is let go by
/// `let_tower_go` (llava.cpp).
void read_feature_layers(ConfigFields& fields, Architecture& tower, std::vector<Count> standard,
                         std::string_view key = "vision_feature_layer");
void let_tower_go(Net& tower);
/// The same of what its model's outputs name since transformers 5.18: its last hidden state, and all that it hands out.
void let_tower_go(Net& net, Net& tower, const Tensor& last);

/// PixtralVisionModel's forward and configuration (pixtral.cpp).
extern const Program kPixtralTower;
void read_pixtral_tower(ConfigFields& fields, Architecture& tower);

/// Idefics3VisionTransformer's forward and configuration (idefics3.cpp), whose modules it calls vision_model.
extern const Program kIdeficsTower;
void read_idefics_tower(ConfigFields& fields, Architecture& part);

/// Sides in patches.
struct PatchGrid {
  Count height = 1, width = 1;
};
/// Siglip2VisionModel's configuration and forward, on pictures of any shape, each padded to as many patches
/// (siglip2.cpp). Where it has a head, what that makes is among outer_locals.
void read_siglip2_tower(ConfigFields& fields, Architecture& tower);
Tensor siglip2_tower(Net& net, const std::vector<PatchGrid>& pictures);

/// CLIP and SigLIP: a batch of pictures, each with its text; the texts alone.
void pair_inputs(Net& net);
void pair_texts(Net& net);
/// CLIPTextModel.forward, SiglipTextModel.forward up to `hidden`, the last hidden state; the part that it ran in.
Net& text_part(Net& net, bool causal, Tensor& hidden);
/// The outputs among what `leaves` holds: all but what was made to require a gradient.
std::vector<Tensor> take_outputs(Net& net);
/// x / _get_vector_norm(x)
Tensor to_unit_length(Tensor x);
/// SiglipVisionModel.forward: the last hidden state, and among outer_locals what its head makes of it, [n, 1, width].
Tensor siglip_tower(Net& net);

/// Blip2QFormerConfig, and Blip2QFormerModel.forward of `queries` on what a tower has seen (blip_2.cpp). A bit of
/// layer_kinds says which of its layers attend to that.
inline constexpr std::uint8_t kQueryCrosses = 1;
Architecture read_qformer(ConfigFields& given);
Tensor qformer(Net& net, const char* norm, std::string_view layers, const Tensor& queries, const Tensor& seen);

/// SAM's tower: its configuration under `key`, its layer on [n, side, side, H], its neck from there to [n, channels, h,
/// w], and nn.Conv2d without a bias of such.
Architecture read_sam_tower(ConfigFields& fields, std::string_view key);
Tensor sam_layer(Net& tower, Tensor hidden);
struct NeckNames {
  const char *module, *conv1, *norm1, *conv2, *norm2;
};
Tensor sam_neck(Net& tower, const NeckNames& names, const Tensor& hidden);
Tensor sam_convolution(Net& net, const char* name, Tensor x, Dim out, Count kernel, Count stride);
/// SiglipMultiheadAttentionPoolingHead.forward; Siglip2's has a mask [n·heads, 1, S], added to the scores.
Tensor siglip_head(Net& net, const Tensor& hidden, const Tensor& mask = {});
/// SiglipTextConfig, of which the whole takes its sizes; Siglip2TextConfig has the same keys.
void read_siglip_text(ConfigFields& fields, Architecture& text);
/// A tower's last hidden state; what its head made of it becomes the last of `leaves`.
Tensor siglip_pooled(Net& net, Net& tower, Tensor hidden);
/// SiglipModel.forward, or that of a class which sees alone; `pictures` ends in siglip_pooled.
Tensor siglip_forward(Net& net, const char* source, Tensor (*pictures)(Net& net));
/// SiglipModel.forward behind both towers: a sigmoid per pair, right or wrong (siglip.cpp).
Outputs siglip_contrastive(Net& net, const Program& program, Tensor text);

/// An error where packed weights and pictures meet in a class that casts pictures to its linear layer's dtype, which is
/// that of packed numbers.
void refuse_packed_pictures(const Architecture& architecture, const TrainingJob& job, Issues& issues);

inline constexpr ClassSuffix kJudgingClasses[] = {{"ForConditionalGeneration", Head::kCausalLm},
                                                  {"ForSequenceClassification", Head::kSequenceClassification},
                                                  {"Model", Head::kNone}};
/// Where transformers has no class that classifies, ms-swift makes one of the model that it loads: the head becomes an
/// identity, and `score` is called on what it returns (ms-swift 3602360a swift/model/patcher.py:
/// _patch_sequence_classification, transformers_seq_cls_forward).
inline constexpr ClassSuffix kSeeingClasses[] = {{"ForConditionalGeneration", Head::kCausalLm},
                                                 {"ForSequenceClassification", Head::kSequenceClassification},
                                                 {"Model", Head::kNone}};
/// The same of models without a body of their own.
inline constexpr ClassSuffix kHearingClasses[] = {{"ForConditionalGeneration", Head::kCausalLm},
                                                  {"ForSequenceClassification", Head::kSequenceClassification}};
/// Qwen2.5-Omni's published files name a class of before the release.
inline constexpr ClassSuffix kOmniClasses[] = {{"ForConditionalGeneration", Head::kCausalLm},
                                               {"ForSequenceClassification", Head::kSequenceClassification},
                                               {"Model", Head::kCausalLm}};

/// An error where a picture is of another size than the table of positions, which the class does not resize: it raises
/// an error.
void check_picture_is_of_table(const Architecture& architecture, const TrainingJob& job, Issues& issues);

/// An error where re-entrant checkpoints need PEFT's hook on patch embeddings that return a tuple (swinv2.cpp).
void refuse_hooked_tuple(const TrainingJob& job, Issues& issues);

/// What DeepSeek-VL's class and its hybrid's say of themselves: the tower is "vision_model".
std::string deepseek_vl_name(const Architecture& architecture, std::string_view path);
inline constexpr ClassFacts kDeepseekVlFacts = {.flex_attention = false,
                                                .no_split = NoSplit::kAbsentToo,
                                                .pictures = PictureRule::kOwnSize,
                                                .full_name = deepseek_vl_name};

}  // namespace tidemark
