// The U-Net of Stable Diffusion 1, 2 and XL: convolutions on a way down and a way up, whose states the way up takes
// over, and transformers between them that attend to the text.
#include <algorithm>

#include "core/families/family.hpp"
#include "core/families/stages.hpp"
#include "core/families/towers.hpp"
#include "core/job/framework.hpp"
#include "core/layers/diffusion.hpp"
#include "core/tape/ops/convolution.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "diffusers 0.42 models/unets/unet_2d_condition.py: UNet2DConditionModel.forward";
constexpr const char* kBlock = "diffusers 0.42 models/unets/unet_2d_blocks.py: CrossAttnDownBlock2D.forward";
constexpr const char* kResnet = "diffusers 0.42 models/resnet.py: ResnetBlock2D.forward";
constexpr const char* kTransformer = "diffusers 0.42 models/transformers/transformer_2d.py: Transformer2DModel.forward";
constexpr const char* kLayer = "diffusers 0.42 models/attention.py: BasicTransformerBlock.forward";
constexpr const char* kAttention = "diffusers 0.42 models/attention_processor.py: AttnProcessor2_0.__call__";

// Blocks of each way, and the most resnets of a block on the way up: what the names below are written for.
constexpr std::size_t kMostBlocks = 4, kMostResnets = 4;

/// What a transformer of a block calls its modules.
struct TransformerNames {
  const char *norm, *enter, *layers, *leave;
};
/// And what a block does.
struct BlockNames {
  const char* resnets;
  TransformerNames transformers[kMostResnets];
  const char* sampler;
};

// Names live for ever (Record::scopes), so they are written out; a macro, because C++20 joins no literals otherwise.
#define TIDEMARK_TRANSFORMER(block, i)                                                                               \
  {                                                                                                                  \
    block ".attentions." i ".norm", block ".attentions." i ".proj_in", block ".attentions." i ".transformer_blocks", \
        block ".attentions." i ".proj_out"                                                                           \
  }
#define TIDEMARK_BLOCK(block, sampler)                                                                         \
  {                                                                                                            \
    block ".resnets",                                                                                          \
        {TIDEMARK_TRANSFORMER(block, "0"), TIDEMARK_TRANSFORMER(block, "1"), TIDEMARK_TRANSFORMER(block, "2"), \
         TIDEMARK_TRANSFORMER(block, "3")},                                                                    \
        block sampler                                                                                          \
  }
constexpr BlockNames kBlocks[] = {TIDEMARK_BLOCK("down_blocks.0", ".downsamplers.0.conv"),
                                  TIDEMARK_BLOCK("down_blocks.1", ".downsamplers.0.conv"),
                                  TIDEMARK_BLOCK("down_blocks.2", ".downsamplers.0.conv"),
                                  TIDEMARK_BLOCK("down_blocks.3", ".downsamplers.0.conv"),
                                  TIDEMARK_BLOCK("mid_block", ""),
                                  TIDEMARK_BLOCK("up_blocks.0", ".upsamplers.0.conv"),
                                  TIDEMARK_BLOCK("up_blocks.1", ".upsamplers.0.conv"),
                                  TIDEMARK_BLOCK("up_blocks.2", ".upsamplers.0.conv"),
                                  TIDEMARK_BLOCK("up_blocks.3", ".upsamplers.0.conv")};
#undef TIDEMARK_BLOCK
#undef TIDEMARK_TRANSFORMER

/// A list of one number per block, or one number for all of them.
std::vector<Count> each_block(ConfigFields& fields, std::string_view key, std::size_t blocks, Count standard) {
  const Value* value = fields.find({key});
  if (value == nullptr || !value->is_array()) return std::vector<Count>(blocks, fields.count({key}, standard));
  std::vector<Count> counts = read_counts(fields, key, {});
  if (counts.size() == blocks) return counts;
  fields.error("INVALID_VALUE", key, "One number, or one for each of \"down_block_types\", is expected.");
  return std::vector<Count>(blocks, standard);
}

/// Keys whose every other value is another model.
constexpr std::string_view kOff[] = {"class_embed_type",
                                     "time_cond_proj_dim",
                                     "encoder_hid_dim_type",
                                     "cross_attention_norm",
                                     "time_embedding_act_fn",
                                     "timestep_post_act",
                                     "reverse_transformer_layers_per_block"};

// UNet2DConditionModel.__init__. Parts: the blocks down, the one in the middle, the blocks up; a block's part: its
// transformers.
void read_config(ConfigFields& fields, Architecture& architecture) {
  Denoiser& denoiser = architecture.denoiser;
  architecture.positions_by_token = false;
  architecture.num_channels = fields.count({"in_channels"}, 4);
  denoiser.latents = fields.count({"out_channels"}, 4);
  denoiser.text_width = fields.count({"cross_attention_dim"}, 1280);
  denoiser.groups = fields.count({"norm_num_groups"}, 32);
  denoiser.linear_projection = fields.flag({"use_linear_projection"}, false);
  architecture.image_size = kPixelsOfLatent * square_side(fields, "sample_size", 64);
  const std::vector<Count> widths = read_counts(fields, "block_out_channels", {320, 640, 1280, 1280});
  const std::size_t blocks = widths.size();
  const Value* down = fields.find({"down_block_types"});
  const Value* up = fields.find({"up_block_types"});
  const std::string middle = fields.text({"mid_block_type"}, "UNetMidBlock2DCrossAttn");
  bool known = blocks >= 1 && blocks <= kMostBlocks && middle == "UNetMidBlock2DCrossAttn";
  for (const std::string_view key : kOff) known = known && !fields.has({key});
  for (const std::string_view key : {"dual_cross_attention", "only_cross_attention", "resnet_skip_time_act",
                                     "class_embeddings_concat", "center_input_sample"}) {
    known = known && !fields.flag({key}, false);
  }
  known = known && fields.text({"resnet_time_scale_shift"}, "default") == "default" &&
          fields.text({"time_embedding_type"}, "positional") == "positional" &&
          fields.text({"act_fn"}, "silu") == "silu";
  const std::string addition = fields.text({"addition_embed_type"}, "");
  if (addition == "text_time") {
    denoiser.pooled_width = fields.required({"projection_class_embeddings_input_dim"});
    denoiser.size_width = fields.required({"addition_time_embed_dim"});
  }
  known = known && (addition.empty() || addition == "text_time") && fields.number({"dropout"}, 0.0) == 0.0;
  std::vector<Count> depths = each_block(fields, "transformer_layers_per_block", blocks, 1);
  // "attention_head_dim" has always been their number: "num_attention_heads or attention_head_dim".
  const bool has_heads = fields.has({"num_attention_heads"});
  const std::vector<Count> heads =
      each_block(fields, has_heads ? "num_attention_heads" : "attention_head_dim", blocks, 8);
  const std::vector<Count> resnets = each_block(fields, "layers_per_block", blocks, 2);
  const Count deepest = depths.empty() ? 1 : depths.back();
  for (std::size_t i = 0; known && i < blocks; ++i) {
    const bool listed = down != nullptr && up != nullptr && down->items.size() == blocks && up->items.size() == blocks;
    const std::string_view type = listed            ? std::string_view(down->items[i].string)
                                  : i + 1 == blocks ? "DownBlock2D"
                                                    : "CrossAttnDownBlock2D";
    const std::string_view back = listed            ? std::string_view(up->items[blocks - 1 - i].string)
                                  : i + 1 == blocks ? "UpBlock2D"
                                                    : "CrossAttnUpBlock2D";
    const bool attends = type == "CrossAttnDownBlock2D" && back == "CrossAttnUpBlock2D";
    known = attends || (type == "DownBlock2D" && back == "UpBlock2D");
    if (!attends) depths[i] = 0;
    known = known && depths[i] <= 100 && resnets[i] == resnets[0] && resnets[i] < static_cast<Count>(kMostResnets) &&
            widths[i] % heads[i] == 0 && widths[i] % denoiser.groups == 0;
  }
  fields.accept({"_class_name",
                 "_diffusers_version",
                 "_name_or_path",
                 "flip_sin_to_cos",
                 "freq_shift",
                 "downsample_padding",
                 "mid_block_scale_factor",
                 "norm_eps",
                 "conv_in_kernel",
                 "conv_out_kernel",
                 "upcast_attention",
                 "num_class_embeds",
                 "encoder_hid_dim",
                 "mid_block_only_cross_attention",
                 "attention_type",
                 "time_embedding_dim",
                 "addition_embed_type_num_heads",
                 "resnet_out_scale_factor",
                 "num_attention_heads",
                 "attention_head_dim"});
  if (!known) {
    fields.error(
        "UNSUPPORTED_ARCHITECTURE", "down_block_types",
        "Of U-Nets those of Stable Diffusion 1, 2 and XL are modelled: one to four blocks CrossAttnDownBlock2D "
        "or DownBlock2D, mirrored on the way up, of up to three resnets each, without dropout, class labels "
        "or another condition than SDXL's \"text_time\".");
    return;
  }
  architecture.hidden_size = widths.back();
  architecture.num_heads = architecture.num_kv_heads = architecture.head_dim = 1;
  for (std::size_t i = 0; i < 2 * blocks + 1; ++i) {
    Architecture part;
    const std::size_t of = i < blocks ? i : i == blocks ? blocks - 1 : 2 * blocks - i;
    part.denoiser = denoiser;
    part.hidden_size = widths[of];
    part.num_layers = i < blocks ? resnets[0] : i == blocks ? 2 : resnets[0] + 1;
    part.denoiser.depths = {i == blocks ? deepest : depths[of]};
    part.denoiser.heads = {heads[of]};
    part.layers_path = kBlocks[i < blocks ? i : i == blocks ? kMostBlocks : i - blocks + kMostBlocks].resnets;
    architecture.num_layers += part.num_layers;
    part.parts = {part};  // its transformers, whose layers are alike; no two resnets are
    for (Count k = 0; k < part.num_layers; ++k) part.layer_kinds.push_back(static_cast<std::uint8_t>(k));
    architecture.parts.push_back(std::move(part));
  }
}

const BlockNames& names_of(const Net& block) {
  const BlockNames* names = kBlocks;
  while (names->resnets != block.arch.layers_path) ++names;
  return *names;
}

// nn.Conv2d of 1 x 1 without a bias.
Tensor convolved_places(Tensor x, Tensor weight) {
  const Dim height = x.dim(2), width = x.dim(3);
  return convolution(std::move(x), std::move(weight), {}, {height, width});
}

// nn.Conv2d with a bias that keeps the picture's size, or halves it.
Tensor convolved(Net& net, const char* name, Tensor x, Dim out, Count kernel, Count stride = 1) {
  Scope in(net.tape, name, net.source());
  const Count edge = kernel / 2 * 2;
  const Dim height((x.size(2) + edge - kernel) / stride + 1), width((x.size(3) + edge - kernel) / stride + 1);
  Tensor weight = net.parameter(name, "weight", Shape{out, x.dim(1), Dim(kernel), Dim(kernel)});
  Tensor bias = net.parameter(name, "bias", Shape{out});
  const Count rank = kernel == 1 ? net.rank_of(name) : 0;
  if (rank == 0) return convolution(std::move(x), std::move(weight), std::move(bias), {height, width});
  const Tensor argument = std::move(x);
  Tensor result = convolution(argument, std::move(weight), std::move(bias), {height, width});
  const Dim r(rank, Symbol::kRank), one(1);
  Tensor down = net.adapter_weight(name, "lora_A.weight", Shape{r, argument.dim(1), one, one});
  Tensor up = net.adapter_weight(name, "lora_B.weight", Shape{out, r, one, one});
  return net.beside_forward(std::move(result), argument, std::move(down), std::move(up), convolved_places);
}

Tensor grouped(Net& net, const char* name, Tensor x) {
  Scope in(net.tape, name, net.source());
  const Shape channels{x.dim(1)};
  Tensor weight = net.parameter(name, "weight", channels);
  return group_norm(std::move(x), std::move(weight), net.parameter(name, "bias", channels), net.arch.denoiser.groups);
}

// diffusers divides by factors that are 1 in these models; sd-scripts does not.
Tensor divided(Net& net, Tensor x) {
  return runs_sd_scripts(net.job) ? x : mul_scalar(std::move(x));
}

Tensor resnet(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kResnet);
  Tensor residual = std::move(hidden);
  Tensor h = grouped(net, "norm1", residual);
  h = silu(std::move(h));
  h = convolved(net, "conv1", std::move(h), net.H, 3);
  Tensor told = silu(net.shared.condition);
  told = net.linear("time_emb_proj", std::move(told), net.H, true);
  told = unsqueeze(unsqueeze(std::move(told), -1), -1);
  h = add(std::move(h), told);
  h = grouped(net, "norm2", std::move(h));
  h = silu(std::move(h));
  h = convolved(net, "conv2", std::move(h), net.H, 3);
  if (residual.size(1) != net.H.n()) residual = convolved(net, "conv_shortcut", std::move(residual), net.H, 1);
  h = add(std::move(residual), std::move(h));
  return divided(net, std::move(h));  // / output_scale_factor
}

// UNetMidBlock2DCrossAttn.forward calls resnets[0] ahead of the loop that checkpoints.
Tensor middle_resnet(Net& block, Tensor hidden) {
  const Count index = block.layer_index;
  if (index == 0 || block.evaluates || !checkpointed(block.job, index)) return resnet(block, std::move(hidden));
  const bool on_host = block.job.checkpointing == Checkpointing::kOffload;
  const auto call = [&block, index](Tensor x) {
    block.layer_index = index;
    return resnet(block, std::move(x));
  };
  return block.tape.checkpoint(call, std::move(hidden), false,
                               on_host ? CheckpointInput::kOnHost : CheckpointInput::kKept);
}

/// What an attention calls its modules.
struct AttentionNames {
  const char *q, *k, *v, *out;
};
constexpr AttentionNames kSelf = {"attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0"};
constexpr AttentionNames kCross = {"attn2.to_q", "attn2.to_k", "attn2.to_v", "attn2.to_out.0"};

Tensor in_heads(Tensor x, Dim heads, Dim head_dim) {
  const Shape parts{x.dim(0), x.dim(1), heads, head_dim};
  return transpose(view(std::move(x), parts), 1, 2);
}

Tensor attention(Net& net, const AttentionNames& names, const Tensor& x, Tensor seen) {
  Scope in(net.tape, names.out, kAttention);
  // sd-scripts 48d368f library/sdxl_original_unet.py CrossAttention.forward_sdpa: context.to(x.dtype)
  if (runs_sd_scripts(net.job)) seen = to(std::move(seen), x.dtype());
  const Dim heads(net.arch.denoiser.heads.front()), head_dim(net.H.n() / heads.n());
  Tensor q = net.linear(names.q, x, net.H);
  Tensor k = net.linear(names.k, seen, net.H);
  Tensor v = net.linear(names.v, seen, net.H);
  q = in_heads(std::move(q), heads, head_dim);
  k = in_heads(std::move(k), heads, head_dim);
  v = in_heads(std::move(v), heads, head_dim);
  Tensor h = scaled_dot_product_attention(net, q, k, v, {}, 0.0, false, false);
  h = reshape(transpose(std::move(h), 1, 2), Shape{x.dim(0), x.dim(1), net.H});
  h = net.linear(names.out, std::move(h), net.H, true);
  return divided(net, std::move(h));  // / rescale_output_factor
}

// GEGLU: half of a projection times the GELU of its other half.
Tensor feed_forward(Net& net, const Tensor& x) {
  const Dim inner(4 * net.H.n());
  Tensor h = net.linear("ff.net.0.proj", x, Dim(2 * inner.n()), true);
  {
    Pieces halves = split(std::move(h), 2, {inner, inner});
    Tensor gate = gelu(std::move(halves.part[1]));
    h = mul(std::move(halves.part[0]), std::move(gate));
  }
  return net.linear("ff.net.2", std::move(h), net.H, true);
}

Tensor transformer_layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  Tensor hidden = std::move(hidden_in);
  Tensor normed = net.layer_norm("norm1", hidden);
  Tensor branch = attention(net, kSelf, normed, normed);
  hidden = add(branch, std::move(hidden));
  normed = net.layer_norm("norm2", hidden);
  branch = attention(net, kCross, normed, net.shared.encoder_states);
  hidden = add(branch, std::move(hidden));
  normed = net.layer_norm("norm3", hidden);
  const Tensor fed = feed_forward(net, normed);
  return add(fed, std::move(hidden));
}

// Places [B, H, h, w] as rows [B, h w, H] for layers, and back.
template <class Layers>
Tensor transformed(Net& net, const TransformerNames& names, const Tensor& residual, Layers layers) {
  Scope in(net.tape, "", kTransformer);
  const bool linear = net.arch.denoiser.linear_projection;
  const Dim batch = residual.dim(0), height = residual.dim(2), width = residual.dim(3);
  const Shape rows{batch, Dim(height.n() * width.n()), net.H}, places{batch, height, width, net.H};
  Tensor h = grouped(net, names.norm, residual);
  if (!linear) h = convolved(net, names.enter, std::move(h), net.H, 1);
  h = reshape(permute(std::move(h), {0, 2, 3, 1}), rows);
  if (linear) h = net.linear(names.enter, std::move(h), net.H, true);
  const Tensor last = layers(std::move(h));
  h = last;
  if (linear) h = net.linear(names.leave, std::move(h), net.H, true);
  h = contiguous(permute(view(std::move(h), places), {0, 3, 1, 2}));
  if (!linear) h = convolved(net, names.leave, std::move(h), net.H, 1);
  return add(std::move(h), residual);
}

// sd-scripts 48d368f library/original_unet.py CrossAttnDownBlock2D.forward: of Stable Diffusion 1 and 2, whose
// transformers have one layer, a checkpoint holds the whole transformer.
Tensor transformer_as_layer(Net& inner, Tensor hidden) {
  constexpr TransformerNames kInside = {"norm", "proj_in", "", "proj_out"};
  const Tensor residual = std::move(hidden);
  return transformed(inner, kInside, residual, [&](Tensor h) { return transformer_layer(inner, std::move(h)); });
}

bool is_one_layer(const Net& block) {
  return runs_sd_scripts(block.job) && block.arch.denoiser.size_width == 0;
}

Tensor attend(Net& block, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  const Count depth = block.arch.denoiser.depths.front();
  if (depth == 0) return hidden;
  block.tape.begin_segment(Phase::kForward, -1);
  const TransformerNames& names = names_of(block).transformers[block.layer_index];
  const auto inside = [&]() -> Net& {
    Net& inner = block.part(block.arch.parts.front(), block.B, block.S);
    inner.shared = block.shared;
    return inner;
  };
  if (is_one_layer(block)) return inside().layers({names.layers, depth, transformer_as_layer}, hidden);
  return transformed(block, names, hidden, [&](Tensor h) {
    return inside().layers({names.layers, depth, transformer_layer}, std::move(h));
  });
}

// sd-scripts 48d368f library/sdxl_original_unet.py: Downsample2D and Upsample2D are checkpointed as resnets are.
template <class Sampler>
Tensor sampled(Net& block, Tensor hidden, Sampler sampler) {
  const bool xl = block.arch.denoiser.size_width > 0;
  if (!runs_sd_scripts(block.job) || !xl || block.job.checkpointing != Checkpointing::kFull || block.evaluates) {
    return sampler(block, std::move(hidden));
  }
  const auto call = [&block, sampler](Tensor x) { return sampler(block, std::move(x)); };
  return block.tape.checkpoint(call, hidden, block.job.use_reentrant, CheckpointInput::kKept);
}

// What the loops of the blocks do behind each resnet. Down: the result is kept for the way up.
Tensor behind_down(Net& block, Tensor hidden) {
  hidden = attend(block, std::move(hidden));
  block.model_locals.push_back(hidden);
  return hidden;
}

Tensor behind_middle(Net& block, Tensor hidden) {
  return block.layer_index == 0 ? attend(block, std::move(hidden)) : hidden;
}

// Up: before each resnet the newest state of the way down joins.
Tensor joined(Net& block, std::size_t resnet, Tensor hidden_in) {
  const Tensor hidden = std::move(hidden_in);
  return cat({&hidden, &block.model_locals[block.model_locals.size() - 1 - resnet]}, 1);
}

Tensor behind_up(Net& block, Tensor hidden) {
  hidden = attend(block, std::move(hidden));
  const auto next = static_cast<std::size_t>(block.layer_index) + 1;
  return next < block.model_locals.size() ? joined(block, next, std::move(hidden)) : hidden;
}

void inputs(Net& net) {
  const LatentSize size = latent_size(net);
  const Denoiser& denoiser = net.arch.denoiser;
  const Dim height(size.height), width(size.width);
  net.input_ids = conditioned_input(net, Shape{net.B, Dim(net.arch.num_channels), height, width}, "sample");
  net.labels = conditioned_input(net, Shape{net.B, Dim(denoiser.latents), height, width}, "target");
  net.more_inputs.push_back(net.tape.allocate(Shape{net.B}, Dtype::kInt64, "timestep"));
  net.more_inputs.push_back(
      conditioned_input(net, Shape{net.B, net.S, Dim(denoiser.text_width)}, "encoder_hidden_states"));
  if (denoiser.size_width == 0) return;
  constexpr Count kSizes = 6;  // of the picture, its crop and its target
  const Dim pooled(denoiser.pooled_width - kSizes * denoiser.size_width);
  net.more_inputs.push_back(conditioned_input(net, Shape{net.B, pooled}, "text_embeds"));
  net.more_inputs.push_back(conditioned_input(net, Shape{net.B, Dim(kSizes)}, "time_ids"));
}

// Time, and of SDXL the pooled text and the picture's sizes: [B, 4 widths].
Tensor condition(Net& net) {
  const Dim width(4 * net.arch.parts.front().hidden_size);
  Tensor time = to(sinusoids(net, net.B.n(), net.arch.parts.front().hidden_size), net.input_ids.dtype());
  net.model_locals.push_back(time);
  Tensor told = embedded(net, "time_embedding.linear_1", "time_embedding.linear_2", std::move(time), width);
  const Denoiser& denoiser = net.arch.denoiser;
  if (denoiser.size_width == 0) return told;
  const Tensor& text = net.more_inputs[net.more_inputs.size() - 2];
  Tensor sizes = sinusoids(net, net.B.n(), denoiser.pooled_width - text.size(1));
  sizes = to(cat({&text, &sizes}, 1), told.dtype());
  Tensor more = embedded(net, "add_embedding.linear_1", "add_embedding.linear_2", std::move(sizes), width);
  net.model_locals.push_back(more);
  return add(std::move(told), std::move(more));
}

// sd-scripts 48d368f train_network.py get_noise_pred_and_target: noisy_latents.requires_grad_(train_unet), and under
// checkpoints the states of the text.
void require_gradients(Net& net) {
  if (net.job.has_adapter()) net.input_ids.change().requires_grad = true;
  if (net.job.checkpointing != Checkpointing::kNone) net.shared.encoder_states.change().requires_grad = true;
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  const std::size_t blocks = net.arch.parts.size() / 2;
  net.shared.condition = condition(net);
  net.shared.encoder_states = net.more_inputs[1];
  if (runs_sd_scripts(net.job) && net.tape.grad_enabled()) require_gradients(net);
  const auto block_of = [&](std::size_t i) -> Net& {
    Net& block = net.part(net.arch.parts[i], net.B, net.S);
    block.shared = net.shared;
    return block;
  };
  Tensor hidden = convolved(net, "conv_in", net.input_ids, Dim(net.arch.parts.front().hidden_size), 3);
  std::vector<Tensor> skipped = {hidden};
  for (std::size_t i = 0; i < blocks; ++i) {
    Net& block = block_of(i);
    Scope down(net.tape, "", kBlock);
    hidden = block.layers({names_of(block).resnets, block.arch.num_layers, resnet, true, Phase::kForward, behind_down},
                          std::move(hidden));
    if (i + 1 < blocks) {
      hidden = sampled(block, std::move(hidden),
                       [](Net& at, Tensor x) { return convolved(at, names_of(at).sampler, std::move(x), at.H, 3, 2); });
      block.model_locals.push_back(hidden);
    }
    skipped.insert(skipped.end(), block.model_locals.begin(), block.model_locals.end());
    block.model_locals.clear();
  }
  {
    Net& block = block_of(blocks);
    // sd-scripts 48d368f original_unet.py UNetMidBlock2DCrossAttn.forward: its loop has all of them.
    const bool by_loop = runs_sd_scripts(net.job);
    hidden = block.layers(
        {names_of(block).resnets, 2, by_loop ? resnet : middle_resnet, by_loop, Phase::kForward, behind_middle},
        std::move(hidden));
  }
  Net* before = nullptr;
  for (std::size_t i = 0; i < blocks; ++i) {
    Net& block = block_of(blocks + 1 + i);
    Scope up(net.tape, "", kBlock);
    const auto first = skipped.end() - static_cast<std::ptrdiff_t>(block.arch.num_layers);
    block.model_locals.assign(first, skipped.end());
    skipped.erase(first, skipped.end());
    if (before != nullptr) before->model_locals.clear();
    before = &block;
    const Tensor sample = hidden;
    hidden = joined(block, 0, std::move(hidden));
    hidden = block.layers({names_of(block).resnets, block.arch.num_layers, resnet, true, Phase::kForward, behind_up},
                          std::move(hidden));
    if (i + 1 < blocks) {
      const Tensor& next = skipped.back();
      const Shape size{net.B, block.H, next.dim(2), next.dim(3)};
      hidden = sampled(block, std::move(hidden), [size](Net& at, Tensor x) {
        const Dtype dtype = x.dtype();
        Tensor h = interpolate(std::move(x), size);
        if (runs_sd_scripts(at.job)) h = to(std::move(h), dtype);
        return convolved(at, names_of(at).sampler, std::move(h), at.H, 3);
      });
    }
  }
  net.tape.begin_segment(Phase::kLoss, -1);
  hidden = grouped(net, "conv_norm_out", std::move(hidden));
  hidden = silu(std::move(hidden));
  hidden = convolved(net, "conv_out", std::move(hidden), Dim(net.arch.denoiser.latents), 3);
  before->model_locals.clear();
  return hidden;
}

constexpr ClassSuffix kClasses[] = {{"Model", Head::kDenoising}};

const Program kProgram = {
    .forward = forward, .heads = kDenoisingHeads, .inputs = inputs, .attention = kDiffusersAttention};

}  // namespace

const Family kRows[] = {
    {"UNet2DConditionModel", "UNet2DCondition", "UNet2DConditionModel", kClasses, read_config, &kProgram,
     "down_blocks.0.resnets"},
};

extern const FamilyRows unet_rows;
const FamilyRows unet_rows = kRows;

}  // namespace tidemark
