// Qwen-Image's transformer: in each block picture and text have weights of their own and attend together.
#include "core/families/family.hpp"
#include "core/layers/diffusion.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel =
    "diffusers 0.42 models/transformers/transformer_qwenimage.py: QwenImageTransformer2DModel.forward";
constexpr const char* kBlock =
    "diffusers 0.42 models/transformers/transformer_qwenimage.py: QwenImageTransformerBlock.forward";
constexpr const char* kAttention =
    "diffusers 0.42 models/transformers/transformer_qwenimage.py: QwenDoubleStreamAttnProcessor2_0.__call__";
constexpr const char* kRotation = "diffusers 0.42 models/transformers/transformer_qwenimage.py: apply_rotary_emb_qwen";
constexpr const char* kPositions = "diffusers 0.42 models/transformers/transformer_qwenimage.py: QwenEmbedRope.forward";

// QwenImageTransformer2DModel.__init__
void read_config(ConfigFields& fields, Architecture& architecture) {
  Denoiser& denoiser = architecture.denoiser;
  architecture.positions_by_token = false;
  architecture.num_layers = fields.count({"num_layers"}, 60);
  architecture.num_heads = architecture.num_kv_heads = fields.count({"num_attention_heads"}, 24);
  architecture.head_dim = fields.count({"attention_head_dim"}, 128);
  architecture.hidden_size = architecture.num_heads * architecture.head_dim;
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_channels = fields.count({"in_channels"}, 64);
  architecture.patch_size = fields.count({"patch_size"}, 2);
  denoiser.latents = fields.count({"out_channels"}, 16);
  denoiser.text_width = fields.count({"joint_attention_dim"}, 3584);
  denoiser.text_tokens = 512;      // max_sequence_length of diffusers' script
  architecture.image_size = 1024;  // the file does not say: QwenImagePipeline.default_sample_size x vae_scale_factor
  fields.accept({"_class_name", "_diffusers_version", "_name_or_path", "axes_dims_rope", "guidance_embeds",
                 "pooled_projection_dim"});
  for (const char* key : {"zero_cond_t", "use_additional_t_cond", "use_layer3d_rope"}) {
    if (fields.flag({key}, false)) {
      fields.error("UNSUPPORTED_VALUE", key, "Of Qwen-Image the form that is told one time of one picture is modelled.",
                   "false");
    }
  }
}

// As complex numbers in fp32; the product keeps nothing but the table. x is [B, places, A, hd].
Tensor turned_complex(Net& net, const Tensor& x) {
  Scope in(net.tape, "attn", kRotation);
  const Tensor wide = to(x, Dtype::kFp32);
  Tensor out = mul_scalar(wide);
  return to(std::move(out), x.dtype());
}

Streams joint_attention(Net& net, const Tensor& picture, const Tensor& text) {
  Scope in(net.tape, "attn", kAttention);
  Tensor q = in_heads(net, net.linear("attn.to_q", picture, net.H, true));
  Tensor k = in_heads(net, net.linear("attn.to_k", picture, net.H, true));
  const Tensor v = in_heads(net, net.linear("attn.to_v", picture, net.H, true));
  Tensor text_q = in_heads(net, net.linear("attn.add_q_proj", text, net.H, true));
  Tensor text_k = in_heads(net, net.linear("attn.add_k_proj", text, net.H, true));
  const Tensor text_v = in_heads(net, net.linear("attn.add_v_proj", text, net.H, true));
  q = diffusers_norm(net, "attn.norm_q", std::move(q));
  k = diffusers_norm(net, "attn.norm_k", std::move(k));
  text_q = diffusers_norm(net, "attn.norm_added_q", std::move(text_q));
  text_k = diffusers_norm(net, "attn.norm_added_k", std::move(text_k));
  q = turned_complex(net, q);
  k = turned_complex(net, k);
  text_q = turned_complex(net, text_q);
  text_k = turned_complex(net, text_k);
  const Tensor joint_q = cat({&text_q, &q}, 1), joint_k = cat({&text_k, &k}, 1), joint_v = cat({&text_v, &v}, 1);
  const Tensor rows = attended(net, joint_q, joint_k, joint_v, net.shared.cross_mask);
  Tensor text_rows = narrow(rows, 1, 0, net.S), picture_rows = narrow(rows, 1, net.S.n(), picture.dim(1));
  Streams out;
  out.picture = net.linear("attn.to_out.0", contiguous(std::move(picture_rows)), net.H, true);
  out.text = net.linear("attn.to_add_out", contiguous(std::move(text_rows)), net.H, true);
  return out;
}

// The block hands its text on in net.shared.encoder_states.
Tensor block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const Tensor picture_in = std::move(hidden), text_in = net.shared.encoder_states;
  const Pieces of_picture = modulation(net, "img_mod.1", net.shared.condition, 6);
  const Pieces of_text = modulation(net, "txt_mod.1", net.shared.condition, 6);
  const Tensor normed = net.layer_norm("img_norm1", picture_in, false);
  const Tensor told = modulated(normed, of_picture.part[1], of_picture.part[0]);
  const Tensor text_normed = net.layer_norm("txt_norm1", text_in, false);
  const Tensor text_told = modulated(text_normed, of_text.part[1], of_text.part[0]);
  const Streams attended = joint_attention(net, told, text_told);
  Tensor picture = add(picture_in, gated(of_picture.part[2], attended.picture));
  Tensor text = add(text_in, gated(of_text.part[2], attended.text));
  const Tensor normed2 = net.layer_norm("img_norm2", picture, false);
  const Tensor told2 = modulated(normed2, of_picture.part[4], of_picture.part[3]);
  const Tensor fed = gelu_feed_forward(net, "img_mlp.net.0.proj", "img_mlp.net.2", told2);
  picture = add(std::move(picture), gated(of_picture.part[5], fed));
  const Tensor text_normed2 = net.layer_norm("txt_norm2", text, false);
  const Tensor text_told2 = modulated(text_normed2, of_text.part[4], of_text.part[3]);
  const Tensor text_fed = gelu_feed_forward(net, "txt_mlp.net.0.proj", "txt_mlp.net.2", text_told2);
  text = add(std::move(text), gated(of_text.part[5], text_fed));
  net.shared.encoder_states = clipped(std::move(text));
  return clipped(std::move(picture));
}

void inputs(Net& net) {
  const LatentSize size = latent_size(net);
  const Count side = net.arch.patch_size;
  const Dim places(size.height / side * (size.width / side));
  const Denoiser& denoiser = net.arch.denoiser;
  net.input_ids = conditioned_input(net, Shape{net.B, places, Dim(net.arch.num_channels)}, "hidden_states");
  net.labels = conditioned_input(net, Shape{net.B, places, Dim(side * side * denoiser.latents)}, "target");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B}, Dtype::kFp32, "timestep"));
  net.more_inputs.push_back(
      conditioned_input(net, Shape{net.B, net.S, Dim(denoiser.text_width)}, "encoder_hidden_states"));
}

// Tables of 4096 positions each way, and the picture's own, stay on the device; what a list has is copied out of it.
Tensor position_tables(Net& net, Dim places) {
  Scope in(net.tape, "pos_embed", kPositions);
  constexpr Count kPositionsEachWay = 4096;
  const Bytes row = net.hd.n() * size_of(Dtype::kFp32);  // hd / 2 complex numbers
  net.tape.buffer("pos_freqs", kPositionsEachWay * row);
  net.tape.buffer("neg_freqs", kPositionsEachWay * row);
  net.tape.buffer("video_freqs", places.n() * row);
  return net.tape.allocate(Shape{places, net.hd}, Dtype::kFp32, "cat");
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  Tensor hidden = net.linear("img_in", net.input_ids, net.H, true);
  Tensor text = diffusers_norm(net, "txt_norm", net.more_inputs.back());
  net.shared.encoder_states = net.linear("txt_in", std::move(text), net.H, true);
  net.shared.condition = embedded_time(net, "time_text_embed.timestep_embedder.linear_1",
                                       "time_text_embed.timestep_embedder.linear_2", hidden.dtype());
  net.shared.cos = position_tables(net, hidden.dim(1));
  hidden = net.layers({"transformer_blocks", net.arch.num_layers, block, true, Phase::kLoss}, std::move(hidden));
  hidden = continuous_norm(net, "norm_out.linear", "norm_out.norm", std::move(hidden));
  return net.linear("proj_out", std::move(hidden), net.labels.dim(2), true);
}

constexpr ClassSuffix kClasses[] = {{"Model", Head::kDenoising}};

const Program kProgram = {
    .forward = forward, .heads = kDenoisingHeads, .inputs = inputs, .attention = kDiffusersAttention};

}  // namespace

const Family kRows[] = {
    {"QwenImageTransformer2DModel", "QwenImageTransformer2D", "QwenImageTransformer2DModel", kClasses, read_config,
     &kProgram, "transformer_blocks"},
};

extern const FamilyRows qwen_image_rows;
const FamilyRows qwen_image_rows = kRows;

}  // namespace tidemark
