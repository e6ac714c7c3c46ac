// Stable Diffusion 3's transformer: in each block picture and text have weights of their own and attend together.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/layers/diffusion.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "diffusers 0.42 models/transformers/transformer_sd3.py: SD3Transformer2DModel.forward";
constexpr const char* kBlock = "diffusers 0.42 models/attention.py: JointTransformerBlock.forward";
constexpr const char* kAttention = "diffusers 0.42 models/attention_processor.py: JointAttnProcessor2_0.__call__";
constexpr const char* kPatches = "diffusers 0.42 models/embeddings.py: PatchEmbed.forward";

// layer_kinds: the last block lets go of the text; Stable Diffusion 3.5 medium's first ones attend twice.
constexpr std::uint8_t kLast = 1, kTwice = 2;

// SD3Transformer2DModel.__init__
void read_config(ConfigFields& fields, Architecture& architecture) {
  Denoiser& denoiser = architecture.denoiser;
  architecture.positions_by_token = false;
  architecture.num_layers = fields.count({"num_layers"}, 18);
  architecture.num_heads = architecture.num_kv_heads = fields.count({"num_attention_heads"}, 18);
  architecture.head_dim = fields.count({"attention_head_dim"}, 64);
  architecture.hidden_size = architecture.num_heads * architecture.head_dim;
  architecture.intermediate_size = 4 * architecture.hidden_size;
  architecture.num_channels = fields.count({"in_channels"}, 16);
  architecture.patch_size = fields.count({"patch_size"}, 2);
  architecture.max_positions = fields.count({"pos_embed_max_size"}, 96);
  architecture.image_size = kPixelsOfLatent * fields.count({"sample_size"}, 128);
  denoiser.latents = fields.count({"out_channels"}, 16);
  denoiser.text_width = fields.count({"joint_attention_dim"}, 4096);
  denoiser.pooled_width = fields.count({"pooled_projection_dim"}, 2048);
  denoiser.text_tokens = 154;  // 77 of CLIP's and 77 of T5's: max_sequence_length of diffusers' scripts
  const std::string qk_norm = fields.text({"qk_norm"}, "");
  architecture.qk_norm = !qk_norm.empty();
  fields.accept({"_class_name", "_diffusers_version", "_name_or_path"});
  if (fields.count({"caption_projection_dim"}, 1152) != architecture.hidden_size ||
      (architecture.qk_norm && qk_norm != "rms_norm")) {
    fields.error("INVALID_VALUE", "caption_projection_dim",
                 "The text must become as wide as the picture, and \"qk_norm\" be absent or \"rms_norm\".");
  }
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  const Value* twice = fields.find({"dual_attention_layers"});
  for (std::size_t i = 0; twice != nullptr && i < twice->items.size(); ++i) {
    const Value& layer = twice->items[i];
    if (layer.is_integer() && layer.integer >= 0 && layer.integer < architecture.num_layers) {
      architecture.layer_kinds[static_cast<std::size_t>(layer.integer)] = kTwice;
    }
  }
  architecture.layer_kinds.back() |= kLast;
}

Tensor normed_heads(Net& net, const char* name, Tensor x) {
  return net.arch.qk_norm ? diffusers_norm(net, name, std::move(x)) : x;
}

Tensor heads_first(Net& net, Tensor x) {
  return transpose(in_heads(net, std::move(x)), 1, 2);
}

Tensor attended_rows(Net& net, const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor out = scaled_dot_product_attention(net, q, k, v, {}, 0.0, false, false);
  out = transpose(std::move(out), 1, 2);
  const Shape rows{out.dim(0), out.dim(1), net.H};
  return to(reshape(std::move(out), rows), q.dtype());
}

Streams joint_attention(Net& net, const Tensor& picture, const Tensor& text, bool last) {
  Scope in(net.tape, "attn", kAttention);
  Tensor q = heads_first(net, net.linear("attn.to_q", picture, net.H, true));
  Tensor k = heads_first(net, net.linear("attn.to_k", picture, net.H, true));
  Tensor v = heads_first(net, net.linear("attn.to_v", picture, net.H, true));
  q = normed_heads(net, "attn.norm_q", std::move(q));
  k = normed_heads(net, "attn.norm_k", std::move(k));
  Tensor text_q = heads_first(net, net.linear("attn.add_q_proj", text, net.H, true));
  Tensor text_k = heads_first(net, net.linear("attn.add_k_proj", text, net.H, true));
  const Tensor text_v = heads_first(net, net.linear("attn.add_v_proj", text, net.H, true));
  text_q = normed_heads(net, "attn.norm_added_q", std::move(text_q));
  text_k = normed_heads(net, "attn.norm_added_k", std::move(text_k));
  q = cat({&q, &text_q}, 2);
  k = cat({&k, &text_k}, 2);
  v = cat({&v, &text_v}, 2);
  const Tensor rows = attended_rows(net, q, k, v);
  Streams out;
  out.picture = narrow(rows, 1, 0, picture.dim(1));
  out.text = narrow(rows, 1, picture.size(1), net.S);
  if (!last) out.text = net.linear("attn.to_add_out", std::move(out.text), net.H, true);
  out.picture = net.linear("attn.to_out.0", std::move(out.picture), net.H, true);
  return out;
}

Tensor second_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "attn2", kAttention);
  Tensor q = heads_first(net, net.linear("attn2.to_q", x, net.H, true));
  Tensor k = heads_first(net, net.linear("attn2.to_k", x, net.H, true));
  const Tensor v = heads_first(net, net.linear("attn2.to_v", x, net.H, true));
  q = normed_heads(net, "attn2.norm_q", std::move(q));
  k = normed_heads(net, "attn2.norm_k", std::move(k));
  const Tensor rows = attended_rows(net, q, k, v);
  return net.linear("attn2.to_out.0", rows, net.H, true);
}

// The block hands its text on in net.shared.encoder_states.
Tensor block(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const auto kind = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)];
  const bool last = (kind & kLast) != 0, twice = (kind & kTwice) != 0;
  const Tensor picture_in = std::move(hidden), text_in = net.shared.encoder_states;
  const Pieces told = modulation(net, "norm1.linear", net.shared.condition, twice ? 9 : 6);
  Tensor normed = net.layer_norm("norm1.norm", picture_in, false), second;
  {
    const Tensor plain = std::move(normed);
    normed = modulated(plain, told.part[1], told.part[0]);
    if (twice) second = modulated(plain, told.part[7], told.part[6]);
  }
  Pieces told_text;
  Tensor text_normed;
  if (last) {
    text_normed = continuous_norm(net, "norm1_context.linear", "norm1_context.norm", text_in);
  } else {
    told_text = modulation(net, "norm1_context.linear", net.shared.condition, 6);
    text_normed = modulated(net.layer_norm("norm1_context.norm", text_in, false), told_text.part[1], told_text.part[0]);
  }
  Streams attention = joint_attention(net, normed, text_normed, last);
  attention.picture = gated(told.part[2], std::move(attention.picture));
  Tensor picture = add(picture_in, attention.picture);
  if (twice) {
    second = gated(told.part[8], second_attention(net, second));
    picture = add(std::move(picture), second);
  }
  normed = net.layer_norm("norm2", picture, false);
  normed = modulated(std::move(normed), told.part[4], told.part[3]);
  Tensor fed = gelu_feed_forward(net, "ff.net.0.proj", "ff.net.2", normed);
  fed = gated(told.part[5], std::move(fed));
  picture = add(std::move(picture), fed);
  if (last) {
    net.shared.encoder_states.reset();
    return picture;
  }
  attention.text = gated(told_text.part[2], std::move(attention.text));
  Tensor text = add(text_in, attention.text);
  text_normed = net.layer_norm("norm2_context", text, false);
  text_normed = modulated(std::move(text_normed), told_text.part[4], told_text.part[3]);
  const Tensor text_fed = gelu_feed_forward(net, "ff_context.net.0.proj", "ff_context.net.2", text_normed);
  net.shared.encoder_states = add(std::move(text), gated(told_text.part[5], text_fed));
  return picture;
}

void inputs(Net& net) {
  const LatentSize size = latent_size(net);
  const Denoiser& denoiser = net.arch.denoiser;
  const Dim height(size.height), width(size.width);
  net.input_ids = conditioned_input(net, Shape{net.B, Dim(net.arch.num_channels), height, width}, "hidden_states");
  net.labels = conditioned_input(net, Shape{net.B, Dim(denoiser.latents), height, width}, "target");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B}, Dtype::kFp32, "timestep"));
  net.more_inputs.push_back(
      conditioned_input(net, Shape{net.B, net.S, Dim(denoiser.text_width)}, "encoder_hidden_states"));
  net.more_inputs.push_back(conditioned_input(net, Shape{net.B, Dim(denoiser.pooled_width)}, "pooled_projections"));
}

// Patches, and the middle of a table of sines that the class makes in fp32.
Tensor patched(Net& net) {
  constexpr const char* kModule = "pos_embed.proj";
  Scope in(net.tape, kModule, kPatches);
  const Dim side(net.arch.patch_size);
  const Count rows = net.arch.max_positions;
  net.tape.buffer("pos_embed", rows * rows * net.H.n() * size_of(Dtype::kFp32));
  Tensor weight = net.parameter(kModule, "weight", Shape{net.H, Dim(net.arch.num_channels), side, side});
  Tensor h = patch_convolution(net.input_ids, std::move(weight), net.parameter(kModule, "bias", Shape{net.H}));
  const Dim places(h.size(2) * h.size(3));
  const bool whole = h.size(2) == rows && h.size(3) == rows;
  h = transpose(view(std::move(h), Shape{net.B, net.H, places}), 1, 2);
  const Shape table{Dim(1), places, net.H};
  const Tensor positions =
      whole ? net.tape.part_of_buffer(table, Dtype::kFp32) : net.tape.allocate(table, Dtype::kFp32, "clone");
  const Dtype dtype = h.dtype();
  h = add(std::move(h), positions);
  return contiguous(to(std::move(h), dtype));
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  Tensor hidden = patched(net);
  net.shared.condition = time_and_text(net);
  net.shared.encoder_states = net.linear("context_embedder", net.more_inputs[net.more_inputs.size() - 2], net.H, true);
  hidden = net.layers({"transformer_blocks", net.arch.num_layers, block, true, Phase::kLoss}, std::move(hidden));
  hidden = continuous_norm(net, "norm_out.linear", "norm_out.norm", std::move(hidden));
  const Count side = net.arch.patch_size;
  hidden = net.linear("proj_out", std::move(hidden), Dim(side * side * net.arch.denoiser.latents), true);
  hidden = contiguous(transpose(std::move(hidden), 1, 2));  // each patch's columns become its pixels
  return view(std::move(hidden), net.labels.shape());
}

constexpr ClassSuffix kClasses[] = {{"Model", Head::kDenoising}};

const Program kProgram = {
    .forward = forward, .heads = kDenoisingHeads, .inputs = inputs, .attention = kDiffusersAttention};

}  // namespace

const Family kRows[] = {
    {"SD3Transformer2DModel", "SD3Transformer2D", "SD3Transformer2DModel", kClasses, read_config, &kProgram,
     "transformer_blocks"},
};

extern const FamilyRows sd3_rows;
const FamilyRows sd3_rows = kRows;

}  // namespace tidemark
