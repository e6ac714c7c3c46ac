#pragma once

#include <vector>

#include "core/families/towers.hpp"
#include "core/model/config_experts.hpp"

/// What Qwen2-VL, Qwen2.5-VL and Qwen3-VL share; defined in qwen2_vl.cpp.
namespace tidemark {

/// Rotary keys, which move no memory, and the numbers of tokens.
void accept_rotation(ConfigFields& fields);
/// `vision_config`: what all generations' towers say alike, and `read` for the rest.
void read_qwen_tower(ConfigFields& fields, Architecture& architecture, void (*read)(ConfigFields&, Architecture&));

/// The text, rows of flattened patches in fp32, grids, and which token is a picture's; without the last; rows and grids
/// alone.
void qwen_inputs(Net& net);
void qwen_text_and_pictures(Net& net);
void qwen_picture_inputs(Net& net);
/// PatchEmbed.forward on the pictures of a tower whose part has a row per patch; `name`: of its convolution.
Tensor qwen_patches(Net& tower, bool bias, const char* source, const char* name = "visual.patch_embed.proj");
/// What the tower's forward holds besides the tables: the angles, once and doubled.
struct VisionTables {
  Tensor rotary, doubled;
};
VisionTables vision_tables(Net& tower);
VisionTables vision_tables_of(Net& tower, Tensor rotary);
/// apply_rotary_pos_emb_vision on q and k [tokens, heads, hd].
void rotate_vision(Net& tower, Tensor& q_states, Tensor& k_states);
/// VisionAttention.forward: a call per picture, or per window.
Tensor qwen_vision_attention(Net& tower, Tensor hidden, const char* source);
/// q, k, v [tokens, heads, hd] that attend within stretches of these lengths, a call for each; [tokens, H].
/// `project`: the layer behind it.
Tensor attend_in_stretches(Net& tower, Tensor q, Tensor k, Tensor v, const std::vector<Count>& lengths,
                           const char* project);
/// How many patches attend to each other in the layer that runs, call by call.
std::vector<Count> vision_lengths(const Net& tower);
/// SigLIP's attention and layer on a row of patches that attend within stretches of these lengths.
struct RowAttention {
  const char* source;           ///< the attention's forward
  const char *q, *k, *v, *out;  ///< projections
  bool turned;                  ///< q and k rotate
};
Tensor siglip_row_attention(Net& tower, Tensor hidden, const RowAttention& names, const std::vector<Count>& lengths);
Tensor siglip_row_layer(Net& tower, Tensor hidden, const char* source, const RowAttention& names,
                        const std::vector<Count>& lengths);
/// A patch of one frame in a row of its own, by nn.Conv2d: [patches, H].
Tensor row_patches(Net& tower, const char* name);
/// Qwen2VLVisionBlock.forward
Tensor qwen2_vl_block(Net& tower, Tensor hidden);
Tensor qwen_vision_mlp(Net& tower, Tensor hidden, const char* fc1, const char* fc2, const char* source);
Tensor qwen_gated_mlp(Net& tower, Tensor hidden, const char* source);
/// Qwen2_5_VLVisionBlock.forward and its like: RMS norms, a gated feed-forward.
Tensor qwen_gated_block(Net& tower, Tensor hidden, const char* source, Tensor (*attention)(Net& tower, Tensor hidden));
/// Qwen2.5-VL's tower: windows of patches, Qwen2-VL's merger. `tables`: cos and sin are made once, not in each layer.
void read_window_tower(ConfigFields& fields, Architecture& tower);
Tensor qwen_window_tower(Net& tower, const char* source, Tensor (*block)(Net& tower, Tensor hidden), bool tables);
/// Qwen2VLTextModel and the head.
extern const Program kQwen2VlLanguage;
/// Its configuration's part.
void read_qwen2_vl_text(ConfigFields& fields, Architecture& architecture);
/// Qwen3-VL's tower and language model, which Qwen3-Omni has, too: hidden states of some of the tower's layers join the
/// language model's first.
void read_qwen3_vl_tower(ConfigFields& fields, Architecture& architecture);
void read_qwen3_vl_moe_text(ConfigFields& fields, Architecture& architecture, Count kv_heads,
                            const ExpertDefaults& experts);
/// What the tower makes. It and the last hidden state are kept in net.outer_locals, the others in net.handed_out.
Tensor qwen3_vl_features(Net& net);
/// Qwen2.5-Omni's layer of an encoder of sound on [tokens, H]; `lengths`: of the stretches that attend within
/// themselves.
Tensor omni_sound_layer(Net& net, Tensor hidden, const std::vector<Count>& lengths, bool key_bias, const char* source);
/// A thinker's encoder of sound, behind its tower. What it makes must be as wide as the language model.
void add_sound(ConfigFields& fields, Architecture& architecture, Architecture sound);
/// The whole of Qwen2.5-Omni and Qwen3-Omni, of which `thinker_config` alone is trained: `model_type` and `class_name`
/// are the thinker's, `read` reads it.
void read_thinker_of(ConfigFields& fields, Architecture& architecture, const char* model_type, const char* class_name,
                     void (*read)(ConfigFields&, Architecture&));
/// What the thinkers' classes do with the last hidden state.
extern const HeadForward kThinkerHeads[2];
/// Whether the sequence has room for a recording's tokens and the two around them.
void check_recording(Count tokens, const TrainingJob& job, Issues& issues);
/// The tower's part of the model, with its pictures cast to the weights' dtype.
Net& qwen_tower_part(Net& net);
/// torch.cat of the features, split by picture.
Tensor joined_pictures(Net& net, Tensor features);
/// Features in the places of the pictures' tokens.
Tensor merge_qwen(Net& net, Tensor embeds, const char* source);

/// Positions in three dimensions: [3, B, S].
void make_positions_3d(Net& net);
/// cos and sin of them: [3, B, S, hd].
void rotary_tables_3d(Net& net, Dtype dtype);
/// freqs and what is made of them, up to the tables: of so many dimensions. `joined`: the dimensions' sections become
/// one by a cat (GLM-4V).
void rotary_tables_from_3d(Net& net, Dtype dtype, Count dimensions, bool joined = false);

}  // namespace tidemark
