// Flux's transformer: blocks in which picture and text have weights of their own and attend together, then blocks in
// which they are one sequence.
#include "core/families/family.hpp"
#include "core/layers/diffusion.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "diffusers 0.42 models/transformers/transformer_flux.py: FluxTransformer2DModel.forward";
constexpr const char* kDouble = "diffusers 0.42 models/transformers/transformer_flux.py: FluxTransformerBlock.forward";
constexpr const char* kSingle =
    "diffusers 0.42 models/transformers/transformer_flux.py: FluxSingleTransformerBlock.forward";
constexpr const char* kAttention = "diffusers 0.42 models/transformers/transformer_flux.py: FluxAttnProcessor.__call__";

// FluxTransformer2DModel.__init__. Its blocks of one sequence are a list of their own: denoiser.depths.
void read_config(ConfigFields& fields, Architecture& architecture) {
  Denoiser& denoiser = architecture.denoiser;
  architecture.positions_by_token = false;
  architecture.num_layers = fields.count({"num_layers"}, 19);
  denoiser.depths = {fields.count({"num_single_layers"}, 38)};
  architecture.num_heads = architecture.num_kv_heads = fields.count({"num_attention_heads"}, 24);
  architecture.head_dim = fields.count({"attention_head_dim"}, 128);
  architecture.hidden_size = architecture.num_heads * architecture.head_dim;
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_channels = fields.count({"in_channels"}, 64);
  architecture.patch_size = fields.count({"patch_size"}, 1);
  denoiser.latents = fields.count({"out_channels"}, architecture.num_channels);
  denoiser.text_width = fields.count({"joint_attention_dim"}, 4096);
  denoiser.pooled_width = fields.count({"pooled_projection_dim"}, 768);
  denoiser.guided = fields.flag({"guidance_embeds"}, false);
  denoiser.text_tokens = 512;      // max_sequence_length of diffusers' scripts
  architecture.image_size = 1024;  // the file does not say: FluxPipeline.default_sample_size x vae_scale_factor
  fields.accept({"_class_name", "_diffusers_version", "_name_or_path", "axes_dims_rope"});
  constexpr Count kMost = 2000;
  if (denoiser.depths.front() > kMost || denoiser.latents != architecture.num_channels || architecture.patch_size > 1) {
    fields.error("INVALID_VALUE", "num_single_layers",
                 "At most 2000 blocks that put out as many channels as they take are modelled, with patches of one.");
  }
}

Streams joint_attention(Net& net, const Tensor& picture, const Tensor& text) {
  Scope in(net.tape, "attn", kAttention);
  Tensor q = in_heads(net, net.linear("attn.to_q", picture, net.H, true));
  Tensor k = in_heads(net, net.linear("attn.to_k", picture, net.H, true));
  Tensor v = in_heads(net, net.linear("attn.to_v", picture, net.H, true));
  Tensor text_q = in_heads(net, net.linear("attn.add_q_proj", text, net.H, true));
  Tensor text_k = in_heads(net, net.linear("attn.add_k_proj", text, net.H, true));
  const Tensor text_v = in_heads(net, net.linear("attn.add_v_proj", text, net.H, true));
  q = head_norm(net, "attn.norm_q", std::move(q));
  k = head_norm(net, "attn.norm_k", std::move(k));
  text_q = head_norm(net, "attn.norm_added_q", std::move(text_q));
  text_k = head_norm(net, "attn.norm_added_k", std::move(text_k));
  q = cat({&text_q, &q}, 1);
  k = cat({&text_k, &k}, 1);
  v = cat({&text_v, &v}, 1);
  q = turned(net, q);
  k = turned(net, k);
  Pieces parts = split(attended(net, q, k, v), 1, {net.S, picture.dim(1)});
  Streams out;
  out.picture = net.linear("attn.to_out.0", contiguous(std::move(parts.part[1])), net.H, true);
  out.text = net.linear("attn.to_add_out", contiguous(std::move(parts.part[0])), net.H, true);
  return out;
}

/// How a stream's modules are called, and what is told of it: shift, scale and gate of both its branches.
struct StreamNames {
  const char *modulation, *norm, *second_norm, *up, *down;
};
constexpr StreamNames kPicture = {"norm1.linear", "norm1.norm", "norm2", "ff.net.0.proj", "ff.net.2"};
constexpr StreamNames kText = {"norm1_context.linear", "norm1_context.norm", "norm2_context", "ff_context.net.0.proj",
                               "ff_context.net.2"};

Tensor first_norm(Net& net, const StreamNames& names, const Tensor& x, Pieces& told) {
  Scope in(net.tape, names.modulation, kDouble);
  told = modulation(net, names.modulation, net.shared.condition, 6);
  return modulated(net.layer_norm(names.norm, x, false), told.part[1], told.part[0]);
}

// The layer hands its text on in net.shared.encoder_states.
Tensor double_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDouble);
  const Tensor picture_in = std::move(hidden), text_in = net.shared.encoder_states;
  Pieces of_picture, of_text;
  Tensor normed = first_norm(net, kPicture, picture_in, of_picture);
  Tensor text_normed = first_norm(net, kText, text_in, of_text);
  const Streams attended = joint_attention(net, normed, text_normed);
  const Tensor attention = gated(of_picture.part[2], attended.picture);
  Tensor picture = add(picture_in, attention);
  normed = net.layer_norm(kPicture.second_norm, picture, false);
  normed = modulated(std::move(normed), of_picture.part[4], of_picture.part[3]);
  Tensor fed = gelu_feed_forward(net, kPicture.up, kPicture.down, normed);
  fed = gated(of_picture.part[5], std::move(fed));
  picture = add(std::move(picture), fed);
  const Tensor text_attention = gated(of_text.part[2], attended.text);
  Tensor text = add(text_in, text_attention);
  text_normed = net.layer_norm(kText.second_norm, text, false);
  text_normed = modulated(std::move(text_normed), of_text.part[4], of_text.part[3]);
  const Tensor text_fed = gelu_feed_forward(net, kText.up, kText.down, text_normed);
  text = add(std::move(text), gated(of_text.part[5], text_fed));
  net.shared.encoder_states = clipped(std::move(text));
  return picture;
}

Tensor single_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "attn", kAttention);
  Tensor q = in_heads(net, net.linear("attn.to_q", x, net.H, true));
  Tensor k = in_heads(net, net.linear("attn.to_k", x, net.H, true));
  const Tensor v = in_heads(net, net.linear("attn.to_v", x, net.H, true));
  q = head_norm(net, "attn.norm_q", std::move(q));
  k = head_norm(net, "attn.norm_k", std::move(k));
  q = turned(net, q);
  k = turned(net, k);
  return attended(net, q, k, v);
}

Tensor single_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kSingle);
  const Tensor picture_in = std::move(hidden), text_in = net.shared.encoder_states;
  const Tensor residual = cat({&text_in, &picture_in}, 1);
  const Pieces told = modulation(net, "norm.linear", net.shared.condition, 3);
  const Tensor normed = modulated(net.layer_norm("norm.norm", residual, false), told.part[1], told.part[0]);
  Tensor fed = net.linear("proj_mlp", normed, net.F, true);
  fed = gelu(std::move(fed));
  const Tensor attention = single_attention(net, normed);
  Tensor h = cat({&attention, &fed}, 2);
  {
    Tensor out = net.linear("proj_out", h, net.H, true);
    h = gated(told.part[2], std::move(out));
  }
  h = clipped(add(residual, std::move(h)));
  net.shared.encoder_states = narrow(h, 1, 0, net.S);
  return narrow(std::move(h), 1, net.S.n(), picture_in.dim(1));
}

void inputs(Net& net) {
  const LatentSize size = latent_size(net);
  const Dim places(size.height / 2 * (size.width / 2));  // latents are packed two by two
  const Denoiser& denoiser = net.arch.denoiser;
  const Shape latents{net.B, places, Dim(net.arch.num_channels)};
  net.input_ids = conditioned_input(net, latents, "hidden_states");
  net.labels = conditioned_input(net, latents, "target");
  net.more_inputs.push_back(conditioned_input(net, Shape{net.B}, "timestep"));
  if (denoiser.guided) net.more_inputs.push_back(net.tape.allocate(Shape{net.B}, Dtype::kFp32, "guidance"));
  net.more_inputs.push_back(conditioned_input(net, Shape{net.S, Dim(3)}, "txt_ids"));
  net.more_inputs.push_back(conditioned_input(net, Shape{places, Dim(3)}, "img_ids"));
  net.more_inputs.push_back(
      conditioned_input(net, Shape{net.B, net.S, Dim(denoiser.text_width)}, "encoder_hidden_states"));
  net.more_inputs.push_back(conditioned_input(net, Shape{net.B, Dim(denoiser.pooled_width)}, "pooled_projections"));
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  Tensor hidden = net.linear("x_embedder", net.input_ids, net.H, true);
  net.shared.condition = time_and_text(net);
  net.shared.encoder_states = net.linear("context_embedder", net.more_inputs[net.more_inputs.size() - 2], net.H, true);
  // FluxPosEmbed.forward: tables [places, 1, hd] in fp32, beside A heads.
  const Shape tables{Dim(1), Dim(net.S.n() + hidden.size(1)), Dim(1), net.hd};
  net.shared.cos = net.tape.allocate(tables, Dtype::kFp32, "cat");
  net.shared.sin = net.tape.allocate(tables, Dtype::kFp32, "cat");
  hidden = net.layers({"transformer_blocks", net.arch.num_layers, double_block}, std::move(hidden));
  hidden = net.layers({"single_transformer_blocks", net.arch.denoiser.depths.front(), single_block, true, Phase::kLoss},
                      std::move(hidden));
  hidden = continuous_norm(net, "norm_out.linear", "norm_out.norm", std::move(hidden));
  return net.linear("proj_out", hidden, Dim(net.arch.denoiser.latents), true);
}

constexpr ClassSuffix kClasses[] = {{"Model", Head::kDenoising}};

const Program kProgram = {
    .forward = forward, .heads = kDenoisingHeads, .inputs = inputs, .attention = kDiffusersAttention};

}  // namespace

const Family kRows[] = {
    {"FluxTransformer2DModel", "FluxTransformer2D", "FluxTransformer2DModel", kClasses, read_config, &kProgram,
     "transformer_blocks"},
};

extern const FamilyRows flux_rows;
const FamilyRows flux_rows = kRows;

}  // namespace tidemark
