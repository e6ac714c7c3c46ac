// Moonshine: three convolutions over the wave, an encoder and a decoder whose heads turn in part and are filled up to a
// multiple of eight.
#include <algorithm>
#include <string_view>

#include "core/families/family.hpp"
#include "core/families/wav2vec2.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/rotations.hpp"
#include "core/layers/seq2seq.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/ops/convolution.hpp"

namespace tidemark {
namespace {

// Of the class's own convolutions over the wave: kernels and strides (MoonshineEncoder.__init__).
constexpr Count kKernels[] = {127, 7, 3}, kStrides[] = {64, 3, 2};

constexpr const char* kOneNumber =
    "Moonshine's class gives its last layer's heads to all layers: one number for encoder and decoder is modelled.";

// transformers 5.24 models/moonshine/configuration_moonshine.py: MoonshineConfig. `encoder_stride`: what a head's
// columns are filled up to a multiple of.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"intermediate_size"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.num_layers = fields.required({"encoder_num_hidden_layers"});
  architecture.num_decoder_layers = fields.required({"decoder_num_hidden_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"encoder_num_attention_heads"});
  const Count heads = fields.required({"decoder_num_attention_heads", "num_attention_heads"});
  architecture.num_kv_heads =
      fields.nullable({"encoder_num_key_value_heads"}, std::nullopt).value_or(architecture.num_heads);
  const Count keys =
      fields.nullable({"decoder_num_key_value_heads", "num_key_value_heads"}, std::nullopt).value_or(heads);
  const bool known = architecture.num_heads > 0 && heads > 0;
  if (known && (heads != architecture.num_heads || keys != architecture.num_kv_heads)) {
    fields.error("INVALID_VALUE", "encoder_num_attention_heads", kOneNumber);
  }
  if (architecture.num_kv_heads != architecture.num_heads) {
    fields.error("INVALID_VALUE", "encoder_num_key_value_heads",
                 "Moonshine's class cuts queries into as many heads as keys: other numbers raise an error there.");
  }
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 0.9);
  architecture.rotary_dim += architecture.rotary_dim % 2;  // as many columns as frequencies have pairs
  if (architecture.rotary_dim > architecture.head_dim) {
    fields.error("INVALID_VALUE", "partial_rotary_factor", "Columns of a head turn in pairs: an odd number has none.");
  }
  architecture.encoder_stride = fields.nullable({"pad_head_dim_to_multiple_of"}, std::nullopt).value_or(1);
  constexpr Count kWidestHead = 256;  // of flash kernels, for whose sake heads are filled up
  if (architecture.encoder_stride > kWidestHead) {
    fields.error("INVALID_VALUE", "pad_head_dim_to_multiple_of", "No kernel takes heads of more than 256 columns.");
  }
  architecture.attention_bias = fields.flag({"attention_bias"}, false);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.activation = read_activation(fields, {"encoder_hidden_act"}, "gelu");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 512);
  Architecture decoder = architecture;
  decoder.num_layers = architecture.num_decoder_layers;
  decoder.activation = read_activation(fields, {"decoder_hidden_act", "hidden_act"}, "silu");
  architecture.parts.push_back(std::move(decoder));
}

constexpr const char* kEncoder = "transformers 5.24 models/moonshine/modeling_moonshine.py: MoonshineEncoder.forward";
constexpr const char* kDecoder = "transformers 5.24 models/moonshine/modeling_moonshine.py: MoonshineDecoder.forward";
constexpr const char* kAttention =
    "transformers 5.24 models/moonshine/modeling_moonshine.py: MoonshineAttention.forward";
constexpr const char* kEncoderLayer =
    "transformers 5.24 models/moonshine/modeling_moonshine.py: MoonshineEncoderLayer.forward";
constexpr const char* kDecoderLayer =
    "transformers 5.24 models/moonshine/modeling_moonshine.py: MoonshineDecoderLayer.forward";
constexpr const char* kHead =
    "transformers 5.24 models/moonshine/modeling_moonshine.py: MoonshineForConditionalGeneration.forward";

Count frames_behind(Count samples, std::size_t convolution) {
  return std::max<Count>(0, samples - kKernels[convolution]) / kStrides[convolution] + 1;
}

// Its feature extractor's mask of samples is there where something is padded.
void inputs(Net& net) {
  Count frames = wave_samples(net);
  net.input_ids = given_pixels(net, Shape{net.B, Dim(frames)}, "input_values");
  if (net.job.padding) net.attention_mask = net.tape.allocate(net.input_ids.shape(), Dtype::kInt64, "attention_mask");
  for (std::size_t i = 0; i < std::size(kKernels); ++i) frames = frames_behind(frames, i);
  net.S = Dim(frames);
  net.T = Dim(net.B.n() * frames);
  const Count length = net.job.decoder_sequence_length;
  const Dim target = length > 0 ? Dim(length) : Dim(net.job.sequence_length, Symbol::kSequence);
  net.labels = net.tape.allocate(Shape{net.B, target}, Dtype::kInt64, "labels");
}

struct Names {
  const char *module, *q, *k, *v, *o;
};
constexpr Names kSelf = {"self_attn", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"};
constexpr Names kCross = {"encoder_attn", "encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj",
                          "encoder_attn.o_proj"};

Tensor attend(Net& net, const Names& names, const Tensor& hidden, bool causal) {
  Scope in(net.tape, names.module, kAttention);
  const bool crosses = &names == &kCross;
  const Tensor& states = crosses ? net.shared.encoder_states : hidden;
  const auto heads = [&](const char* name, const Tensor& x) {
    const Shape four{net.B, x.dim(1), net.A, net.hd};
    return transpose(view(net.linear(name, x, net.Q, net.arch.attention_bias), four), 1, 2);
  };
  Tensor q = heads(names.q, hidden);
  Tensor k = heads(names.k, states);
  Tensor v = heads(names.v, states);
  if (!crosses) {
    Rotated turned = rotate_pairs(net, std::move(q), std::move(k), true);
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  const Count unit = net.arch.encoder_stride, filled = (net.hd.n() + unit - 1) / unit * unit - net.hd.n();
  if (filled > 0) {
    q = pad_last(std::move(q), filled);
    k = pad_last(std::move(k), filled);
    v = pad_last(std::move(v), filled);
  }
  AttentionOptions options;
  options.mask = crosses ? net.shared.cross_mask : net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  options.causal = causal;
  Tensor out = attention(net, q, k, v, options);
  if (filled > 0) {
    out = view(std::move(out), Shape{net.B, hidden.dim(1), net.A, Dim(net.hd.n() + filled)});
    out = narrow(std::move(out), 3, 0, net.hd);
    out = reshape(std::move(out), Shape{net.B, hidden.dim(1), net.Q});
  }
  return net.linear(names.o, std::move(out), net.H);
}

Tensor normed(Net& net, const char* name, const Tensor& x) {
  return net.layer_norm(name, x, true, false);
}

Tensor attention_block(Net& net, const char* norm, const Names& names, Tensor hidden, bool causal) {
  const Tensor residual = std::move(hidden);
  Tensor out;
  {
    const Tensor x = normed(net, norm, residual);
    out = attend(net, names, x, causal);
  }
  return add(residual, std::move(out));
}

Tensor encoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kEncoderLayer);
  const Tensor residual = attention_block(net, "input_layernorm", kSelf, std::move(hidden), false);
  Tensor h;
  {
    const Tensor x = normed(net, "post_attention_layernorm", residual);
    h = activate(net.arch.activation, net.linear("mlp.fc1", x, net.F, true));
    h = net.linear("mlp.fc2", std::move(h), net.H, true);
  }
  return add(residual, std::move(h));
}

Tensor decoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDecoderLayer);
  hidden = attention_block(net, "input_layernorm", kSelf, std::move(hidden), true);
  const Tensor residual = attention_block(net, "post_attention_layernorm", kCross, std::move(hidden), false);
  Tensor h;
  {
    const Tensor x = normed(net, "final_layernorm", residual);
    const Pieces halves = split(net.linear("mlp.fc1", x, Dim(2 * net.F.n()), true), 2, {net.F, net.F});
    h = activate(net.arch.activation, halves.part[1]);
    h = mul(std::move(h), halves.part[0]);
    h = net.linear("mlp.fc2", std::move(h), net.H, true);
  }
  return add(residual, std::move(h));
}

Tensor convolved(Net& net, const char* name, Tensor x, Dim out, std::size_t which, bool bias) {
  const Dim frames(frames_behind(x.size(2), which));
  return frame_convolution(net, name, std::move(x), out, kKernels[which], frames, bias, false);
}

Tensor grouped_norm(Net& net, Tensor x) {
  constexpr const char* kName = "model.encoder.groupnorm";
  Scope in(net.tape, kName, kEncoder);
  const Tensor scale = net.parameter(kName, "weight", Shape{net.H});
  const Tensor shift = net.parameter(kName, "bias", Shape{net.H});
  return group_norm(std::move(x), scale, shift, 1);
}

Tensor encode(Net& net) {
  Scope in(net.tape, "encoder", kEncoder);
  Tensor h = convolved(net, "model.encoder.conv1", unsqueeze(net.input_ids, 1), net.H, 0, false);
  h = net.hooked_inputs(std::move(h));  // the encoder's get_input_embeddings() is the first convolution
  h = tanh(std::move(h));
  h = grouped_norm(net, std::move(h));
  h = gelu(convolved(net, "model.encoder.conv2", std::move(h), Dim(2 * net.H.n()), 1, true));
  h = gelu(convolved(net, "model.encoder.conv3", std::move(h), net.H, 2, true));
  h = permute(std::move(h), {0, 2, 1});
  if (net.job.padding) make_bidirectional_mask(net, h);
  make_position_ids(net);
  rotary_tables(net, h.dtype(), net.arch.rotary_dim);
  h = net.layers({"model.encoder.layers", net.arch.num_layers, encoder_layer}, std::move(h));
  net.shared = {};
  return net.layer_norm("model.encoder.layer_norm", std::move(h), true, false);
}

Tensor decode(Net& net, Net& decoder, Tensor ids, const Tensor& states) {
  Scope in(net.tape, "decoder", kDecoder);
  Tensor wave = std::exchange(net.input_ids, std::move(ids));
  const Tensor embeds = net.token_embedding("model.decoder.embed_tokens", decoder.H);
  net.input_ids = std::move(wave);
  make_position_ids(decoder);
  make_causal_masks(decoder, embeds, {.whole = true});
  const bool eager = net.job.attention == AttentionKernel::kEager;
  if (net.job.padding) {
    decoder.attention_mask = net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt32, "int");  // output_attention_mask
    decoder.shared.cross_mask = bidirectional_mask(decoder, embeds, eager, decoder.S, net.S);
  }
  decoder.shared.encoder_states = states;
  rotary_tables(decoder, embeds.dtype(), decoder.arch.rotary_dim);
  const Stack stack{"model.decoder.layers", decoder.arch.num_layers, decoder_layer, true, Phase::kLoss};
  Tensor hidden = decoder.layers(stack, embeds);
  decoder.shared = {};
  return net.layer_norm("model.decoder.norm", std::move(hidden), true, false);
}

Tensor forward(Net& net) {
  const Dim target = net.labels.dim(1);
  Net& decoder = net.part(net.arch.parts.front(), decoder_rows(net), target);
  Tensor ids = shift_right(net, Shape{net.B, target});
  const Tensor states = for_decoder(net, encode(net));
  net.encoder_hidden = states;
  return decode(net, decoder, std::move(ids), states);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("proj_out", std::move(hidden), net.V);
}

// ForCausalLMLoss, on an fp32 copy; the labels are not moved again.
Outputs generation(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  Tensor logits = program.lm_head(net, std::move(hidden));
  Tensor wide = to(logits, Dtype::kFp32);
  out.rest = {std::move(logits)};
  out.loss = plain_cross_entropy(net, std::move(wide));
  return with_encoder_states(net, std::move(out));
}

void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (!job.padding || !wants_flash(job)) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/attention",
                    "Padded waves under FlashAttention are not modelled for Moonshine: no record covers them.",
                    "sdpa"});
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, generation}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}};

const Program kProgram = {.forward = forward, .lm_head = head, .heads = kHeads, .inputs = inputs, .check = check};

constexpr ClassFacts kFacts = {.flex_attention = false, .text_input = false};

}  // namespace

const Family kRows[] = {
    {"moonshine", "Moonshine", "MoonshineForConditionalGeneration", kClasses, read_config, &kProgram,
     "model.encoder.layers", kFacts},
};

extern const FamilyRows moonshine_rows;
const FamilyRows moonshine_rows = kRows;

}  // namespace tidemark
