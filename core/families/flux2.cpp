// Flux 2's transformer: as Flux's, but time and guidance are told to all blocks at once, no layer has a bias, and a
// block of one sequence projects attention and gated feed-forward together.
#include "core/families/family.hpp"
#include "core/layers/diffusion.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel =
    "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2Transformer2DModel.forward";
constexpr const char* kTime =
    "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2TimestepGuidanceEmbeddings.forward";
constexpr const char* kDouble =
    "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2TransformerBlock.forward";
constexpr const char* kSingle =
    "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2SingleTransformerBlock.forward";
constexpr const char* kAttention =
    "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2AttnProcessor.__call__";
constexpr const char* kParallel =
    "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2ParallelSelfAttnProcessor.__call__";
constexpr const char* kGate = "diffusers 0.42 models/transformers/transformer_flux2.py: Flux2SwiGLU.forward";

// Flux2Transformer2DModel.__init__. Its blocks of one sequence are a list of their own: denoiser.depths.
void read_config(ConfigFields& fields, Architecture& architecture) {
  Denoiser& denoiser = architecture.denoiser;
  architecture.positions_by_token = false;
  architecture.num_layers = fields.count({"num_layers"}, 8);
  denoiser.depths = {fields.count({"num_single_layers"}, 48)};
  architecture.num_heads = architecture.num_kv_heads = fields.count({"num_attention_heads"}, 48);
  architecture.head_dim = fields.count({"attention_head_dim"}, 128);
  architecture.hidden_size = architecture.num_heads * architecture.head_dim;
  const double inner = fields.multiplier({"mlp_ratio"}, 3.0) * static_cast<double>(architecture.hidden_size);
  architecture.intermediate_size = static_cast<Count>(inner);
  architecture.num_channels = denoiser.latents = fields.count({"in_channels"}, 128);
  denoiser.text_width = fields.count({"joint_attention_dim"}, 15360);
  denoiser.guided = fields.flag({"guidance_embeds"}, true);
  denoiser.text_tokens = 512;      // max_sequence_length of diffusers' scripts
  architecture.image_size = 1024;  // the file does not say: Flux2Pipeline.default_sample_size x vae_scale_factor
  fields.accept({"_class_name", "_diffusers_version", "_name_or_path", "axes_dims_rope", "rope_theta", "eps"});
  constexpr Count kMost = 2000, kColumns = 256;
  if (denoiser.depths.front() > kMost || fields.count({"patch_size"}, 1) > 1 ||
      fields.count({"out_channels"}, denoiser.latents) != denoiser.latents ||
      fields.count({"timestep_guidance_channels"}, kColumns) != kColumns) {
    fields.error("INVALID_VALUE", "num_single_layers",
                 "At most 2000 blocks that put out as many channels as they take are modelled, with patches of one.");
  }
}

/// net.shared.captured: what all blocks are told, before it is split. A pair of sets for each stream of the first
/// blocks, one for the rest.
enum Told : std::size_t { kPicture, kText, kSequence };

void tell(Net& net, const char* linear, Count count) {
  Tensor h = silu(net.shared.condition);
  net.shared.captured.push_back(net.linear(linear, std::move(h), Dim(count * net.H.n())));
}

Pieces told(Net& net, Told of, std::size_t count) {
  return split(net.shared.captured[of], 1, std::vector<Dim>(count, net.H));
}

Tensor gated_halves(Net& net, const Tensor& x) {
  Scope in(net.tape, "act_fn", kGate);
  Tensor gate = silu(narrow(x, 2, 0, net.F));
  return mul(std::move(gate), narrow(x, 2, net.F.n(), net.F));
}

Tensor feed_forward(Net& net, const char* in, const char* out, const Tensor& x) {
  Tensor h = net.linear(in, x, Dim(2 * net.F.n()));
  h = gated_halves(net, h);
  return net.linear(out, std::move(h), net.H);
}

Streams joint_attention(Net& net, const Tensor& picture, const Tensor& text) {
  Scope in(net.tape, "attn", kAttention);
  Tensor q = net.linear("attn.to_q", picture, net.H), k = net.linear("attn.to_k", picture, net.H);
  Tensor v = net.linear("attn.to_v", picture, net.H);
  Tensor text_q = net.linear("attn.add_q_proj", text, net.H), text_k = net.linear("attn.add_k_proj", text, net.H);
  const Tensor text_v = in_heads(net, net.linear("attn.add_v_proj", text, net.H));
  v = in_heads(net, std::move(v));
  q = head_norm(net, "attn.norm_q", in_heads(net, std::move(q)));
  k = head_norm(net, "attn.norm_k", in_heads(net, std::move(k)));
  text_q = head_norm(net, "attn.norm_added_q", in_heads(net, std::move(text_q)));
  text_k = head_norm(net, "attn.norm_added_k", in_heads(net, std::move(text_k)));
  q = cat({&text_q, &q}, 1);
  k = cat({&text_k, &k}, 1);
  v = cat({&text_v, &v}, 1);
  q = turned(net, q);
  k = turned(net, k);
  Pieces parts = split(attended(net, q, k, v), 1, {net.S, picture.dim(1)});
  Streams out;
  out.text = net.linear("attn.to_add_out", std::move(parts.part[0]), net.H);
  out.picture = net.linear("attn.to_out.0", std::move(parts.part[1]), net.H);
  return out;
}

// The layer hands its text on in net.shared.encoder_states.
Tensor double_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDouble);
  const Tensor picture_in = std::move(hidden), text_in = net.shared.encoder_states;
  const Pieces of_picture = told(net, kPicture, 6), of_text = told(net, kText, 6);
  Tensor normed = modulated(net.layer_norm("norm1", picture_in, false), of_picture.part[1], of_picture.part[0]);
  Tensor text_normed = modulated(net.layer_norm("norm1_context", text_in, false), of_text.part[1], of_text.part[0]);
  const Streams attended = joint_attention(net, normed, text_normed);
  const Tensor attention = gated(of_picture.part[2], attended.picture);
  Tensor picture = add(picture_in, attention);
  normed = net.layer_norm("norm2", picture, false);
  normed = modulated(std::move(normed), of_picture.part[4], of_picture.part[3]);
  const Tensor fed = feed_forward(net, "ff.linear_in", "ff.linear_out", normed);
  picture = add(std::move(picture), gated(of_picture.part[5], fed));
  const Tensor text_attention = gated(of_text.part[2], attended.text);
  Tensor text = add(text_in, text_attention);
  text_normed = net.layer_norm("norm2_context", text, false);
  text_normed = modulated(std::move(text_normed), of_text.part[4], of_text.part[3]);
  const Tensor text_fed = feed_forward(net, "ff_context.linear_in", "ff_context.linear_out", text_normed);
  text = add(std::move(text), gated(of_text.part[5], text_fed));
  net.shared.encoder_states = clipped(std::move(text));
  return picture;
}

Tensor parallel_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "attn", kParallel);
  Pieces both = split(net.linear("attn.to_qkv_mlp_proj", x, Dim(3 * net.H.n() + 2 * net.F.n())), 2,
                      {Dim(3 * net.H.n()), Dim(2 * net.F.n())});
  Pieces heads = split(both.part[0], 2, {net.H, net.H, net.H});
  Tensor q = head_norm(net, "attn.norm_q", in_heads(net, std::move(heads.part[0])));
  Tensor k = head_norm(net, "attn.norm_k", in_heads(net, std::move(heads.part[1])));
  const Tensor v = in_heads(net, std::move(heads.part[2]));
  q = turned(net, q);
  k = turned(net, k);
  Tensor rows = attended(net, q, k, v);
  const Tensor fed = gated_halves(net, both.part[1]);
  rows = cat({&rows, &fed}, 2);
  return net.linear("attn.to_out", std::move(rows), net.H);
}

Tensor single_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kSingle);
  const Tensor residual = std::move(hidden);
  const Pieces of_both = told(net, kSequence, 3);
  const Tensor normed = modulated(net.layer_norm("norm", residual, false), of_both.part[1], of_both.part[0]);
  const Tensor attention = parallel_attention(net, normed);
  return clipped(add(residual, gated(of_both.part[2], attention)));
}

void inputs(Net& net) {
  constexpr Count kAxes = 4;
  const LatentSize size = latent_size(net);
  const Dim places(size.height / 2 * (size.width / 2));  // latents are packed two by two
  const Denoiser& denoiser = net.arch.denoiser;
  const Shape latents{net.B, places, Dim(net.arch.num_channels)};
  net.input_ids = conditioned_input(net, latents, "hidden_states");
  net.labels = conditioned_input(net, latents, "target");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B}, Dtype::kFp32, "timestep"));
  if (denoiser.guided) net.more_inputs.push_back(net.tape.allocate(Shape{Dim(1)}, Dtype::kFp32, "guidance"));
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, net.S, Dim(kAxes)}, Dtype::kInt64, "txt_ids"));
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B, places, Dim(kAxes)}, Dtype::kInt64, "img_ids"));
  net.more_inputs.push_back(
      conditioned_input(net, Shape{net.B, net.S, Dim(denoiser.text_width)}, "encoder_hidden_states"));
}

Tensor told_of_time(Net& net) {
  Scope in(net.tape, "time_guidance_embed", kTime);
  const Dtype dtype = net.input_ids.dtype();
  Tensor time = embedded_time(net, "time_guidance_embed.timestep_embedder.linear_1",
                              "time_guidance_embed.timestep_embedder.linear_2", dtype, false);
  if (!net.arch.denoiser.guided) return time;
  Tensor guidance = embedded_time(net, "time_guidance_embed.guidance_embedder.linear_1",
                                  "time_guidance_embed.guidance_embedder.linear_2", dtype, false);
  return add(std::move(time), std::move(guidance));
}

// Flux2PosEmbed.forward: tables [places, hd] in fp32, of either stream and of both, which all have names.
std::vector<Tensor> position_tables(Net& net, Dim places) {
  std::vector<Tensor> parts;
  for (const Dim& rows : {net.S, places, net.S, places}) {
    parts.push_back(net.tape.allocate(Shape{Dim(1), rows, Dim(1), net.hd}, Dtype::kFp32, "cat"));
  }
  net.shared.cos = cat({&parts[0], &parts[1]}, 1);
  net.shared.sin = cat({&parts[2], &parts[3]}, 1);
  return parts;
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  net.shared.condition = told_of_time(net);
  net.shared.captured.clear();
  tell(net, "double_stream_modulation_img.linear", 6);
  tell(net, "double_stream_modulation_txt.linear", 6);
  tell(net, "single_stream_modulation.linear", 3);
  Tensor hidden = net.linear("x_embedder", net.input_ids, net.H);
  net.shared.encoder_states = net.linear("context_embedder", net.more_inputs.back(), net.H);
  const std::vector<Tensor> tables = position_tables(net, hidden.dim(1));
  const Count places = hidden.size(1);
  hidden = net.layers({"transformer_blocks", net.arch.num_layers, double_block}, std::move(hidden));
  const Tensor text = std::move(net.shared.encoder_states);
  hidden = cat({&text, &hidden}, 1);
  hidden = net.layers({"single_transformer_blocks", net.arch.denoiser.depths.front(), single_block, true, Phase::kLoss},
                      std::move(hidden));
  hidden = narrow(std::move(hidden), 1, net.S.n(), Dim(places));
  hidden = continuous_norm(net, "norm_out.linear", "norm_out.norm", std::move(hidden), false);
  return net.linear("proj_out", std::move(hidden), Dim(net.arch.denoiser.latents));
}

constexpr ClassSuffix kClasses[] = {{"Model", Head::kDenoising}};

const Program kProgram = {
    .forward = forward, .heads = kDenoisingHeads, .inputs = inputs, .attention = kDiffusersAttention};

}  // namespace

const Family kRows[] = {
    {"Flux2Transformer2DModel", "Flux2Transformer2D", "Flux2Transformer2DModel", kClasses, read_config, &kProgram,
     "transformer_blocks"},
};

extern const FamilyRows flux2_rows;
const FamilyRows flux2_rows = kRows;

}  // namespace tidemark
