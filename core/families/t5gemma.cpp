// T5Gemma: an encoder that attends both ways and a decoder, each of Gemma 2's layers and with a table of its own.
// T5Gemma 2: the same of Gemma 3's layers, with one table for both, whose encoder sees (SigLIP), and whose decoder
// attends to itself and to the encoder at once.
#include <algorithm>
#include <string>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/families/gemma.hpp"
#include "core/families/towers.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/norms.hpp"
#include "core/layers/seq2seq.hpp"

namespace tidemark {
namespace {

constexpr const char* kEncoder = "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaEncoder.forward";
constexpr const char* kDecoder = "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaDecoder.forward";
constexpr const char* kEncoderLayer =
    "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaEncoderLayer.forward";
constexpr const char* kDecoderLayer =
    "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaSelfAttention.forward";
constexpr const char* kCross = "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaCrossAttention.forward";
constexpr const char* kModel2 = "transformers 5.24 models/t5gemma2/modeling_t5gemma2.py: T5Gemma2Encoder.forward";
constexpr const char* kText2 = "transformers 5.24 models/t5gemma2/modeling_t5gemma2.py: T5Gemma2TextEncoder.forward";
constexpr const char* kDecoder2 = "transformers 5.24 models/t5gemma2/modeling_t5gemma2.py: T5Gemma2Decoder.forward";
constexpr const char* kSelf2 = "transformers 5.24 models/t5gemma2/modeling_t5gemma2.py: T5Gemma2SelfAttention.forward";
constexpr const char* kMerged =
    "transformers 5.24 models/t5gemma2/modeling_t5gemma2.py: T5Gemma2MergedAttention.forward";
constexpr const char* kTable2 = "model.encoder.text_model.embed_tokens";
constexpr const char* kHead =
    "transformers 5.12 models/t5gemma/modeling_t5gemma.py: T5GemmaForConditionalGeneration.forward";

// T5GemmaModuleConfig under `key`; what the whole says of dropout counts.
void read_module(ConfigFields& fields, std::string_view key, Architecture& a) {
  ConfigFields module(required_object(fields, key), fields.path() + "/" + std::string{key}, fields.issues());
  read_gemma2_config(module, a);
  a.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  module.accept({"model_type", "is_decoder", "dropout_rate", "cross_attention_hidden_size", "architectures", "dtype",
                 "torch_dtype"});
  module.report_unread("t5gemma");
}

// transformers 5.12.1 models/t5gemma/configuration_t5gemma.py: T5GemmaConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  Architecture decoder;
  read_module(fields, "decoder", decoder);
  read_module(fields, "encoder", architecture);
  architecture.logit_softcap = decoder.logit_softcap;
  architecture.num_decoder_layers = decoder.num_layers;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (architecture.vocab_size != decoder.vocab_size) {
    fields.error("INVALID_VALUE", "encoder", "An encoder with a vocabulary of its own is not modelled.");
  }
  if (fields.probability({"dropout_rate"}, 0.0) > 0.0) {
    fields.error("INVALID_VALUE", "dropout_rate", "Dropout of T5Gemma's branches is not modelled: set it to 0.");
  }
  fields.accept({"classifier_dropout_rate", "vocab_size", "is_encoder_decoder"});
  architecture.parts.push_back(std::move(decoder));
}

Tensor branch(Net& net, const char* before, const char* behind, Tensor hidden, Branch inner) {
  const Tensor residual = std::move(hidden);
  Tensor h = gemma_norm(net, before, residual);
  h = inner(net, std::move(h));
  h = gemma_norm(net, behind, std::move(h));
  return add(residual, std::move(h));
}

AttentionOptions options_of(const Net& net, bool causal) {
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = causal;
  options.softcap = net.arch.attention_softcap;
  return options;
}

Tensor self_attention(Net& net, Tensor hidden) {
  AttentionOptions options = options_of(net, net.shared.encoder_states.defined());
  options.mask = layer_mask(net);
  return qkv_attention(net, std::move(hidden), kAttention, rotate_both, std::move(options));
}

Tensor cross_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "cross_attn", kCross);
  const Tensor x = std::move(hidden), states = net.shared.encoder_states;
  const auto heads = [&](const char* name, const Tensor& from, Dim count) {
    const Tensor h = net.linear(name, from, Dim(count.n() * net.hd.n()), net.arch.attention_bias);
    return transpose(view(h, Shape{h.dim(0), h.dim(1), count, net.hd}), 1, 2);
  };
  const Tensor q = heads("cross_attn.q_proj", x, net.A);
  const Tensor k = heads("cross_attn.k_proj", states, net.Kv), v = heads("cross_attn.v_proj", states, net.Kv);
  AttentionOptions options = options_of(net, false);
  options.mask = net.shared.cross_mask;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("cross_attn.o_proj", std::move(out), net.H, net.arch.attention_out_bias);
}

Tensor feed_forward(Net& net, Tensor hidden) {
  return branch(net, "pre_feedforward_layernorm", "post_feedforward_layernorm", std::move(hidden), llama_mlp);
}

Tensor self_branch(Net& net, Tensor hidden) {
  return branch(net, "pre_self_attn_layernorm", "post_self_attn_layernorm", std::move(hidden), self_attention);
}

Tensor encoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kEncoderLayer);
  return feed_forward(net, self_branch(net, std::move(hidden)));
}

Tensor decoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDecoderLayer);
  Tensor h = self_branch(net, std::move(hidden));
  h = branch(net, "pre_cross_attn_layernorm", "post_cross_attn_layernorm", std::move(h), cross_attention);
  return feed_forward(net, std::move(h));
}

// hidden_states * normalizer, rotary tables, layers, norm; inputs_embeds keeps its name.
Tensor run(Net& net, const Stack& stack, const char* norm, const Tensor& embeds) {
  rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  Tensor hidden = net.layers(stack, mul_scalar(embeds));
  hidden = gemma_norm(net, norm, std::move(hidden));
  net.shared = {};
  return hidden;
}

// make_default_2d_attention_mask
Tensor default_mask(Net& net) {
  return net.tape.allocate(Shape{net.B, net.S}, Dtype::kInt64, "to");
}

Tensor encode(Net& net) {
  Scope in(net.tape, "encoder", kEncoder);
  const Tensor embeds = net.hooked_inputs(net.embedding("model.encoder.embed_tokens", net.input_ids, net.V, net.H));
  make_position_ids(net);
  const Tensor mask = net.attention_mask.defined() ? Tensor() : default_mask(net);
  make_bidirectional_mask(net, embeds);
  make_window_mask(net, embeds);
  return run(net, {"model.encoder.layers", net.arch.num_layers, encoder_layer}, "model.encoder.norm", embeds);
}

Tensor decode(Net& net, Net& decoder, Tensor ids, const Tensor& states) {
  Scope in(net.tape, "decoder", kDecoder);
  net.input_ids = std::move(ids);
  const Tensor embeds = net.token_embedding("model.decoder.embed_tokens", decoder.H);
  make_position_ids(decoder);
  const Tensor mask = default_mask(decoder);
  make_causal_masks(decoder, embeds, {.whole = true});
  decoder.attention_mask = net.attention_mask;
  decoder.shared.cross_mask =
      wants_flash(net.job)
          ? net.attention_mask
          : bidirectional_mask(decoder, embeds, net.job.attention == AttentionKernel::kEager, decoder.S, net.S);
  decoder.attention_mask.reset();
  decoder.shared.encoder_states = states;
  const Stack stack{"model.decoder.layers", decoder.arch.num_layers, decoder_layer, true, Phase::kLoss};
  return run(decoder, stack, "model.decoder.norm", embeds);
}

Tensor forward(Net& net) {
  Net& decoder = net.part(net.arch.parts.front(), decoder_rows(net), decoder_length(net));
  Tensor ids = shift_right(net);
  const Tensor states = for_decoder(net, encode(net));
  net.encoder_hidden = states;
  return decode(net, decoder, std::move(ids), states);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "lm_head", kHead);
  return gemma_softcap(net, net.lm_head("lm_head.out_proj", std::move(hidden), net.V));
}

// ForMaskedLMLoss, on an fp32 copy; the last hidden state is among the outputs.
Outputs generation(Net& net, const Program& program, Tensor hidden) {
  Tensor logits = program.lm_head(net, hidden);
  Outputs out;
  out.loss = plain_cross_entropy(net, to(logits, Dtype::kFp32));
  out.rest = {std::move(logits), std::move(hidden)};
  return with_encoder_states(net, std::move(out));
}

// One of T5Gemma 2's stacks, whose keys are Gemma 3's; what the whole says of dropout counts.
void read_stack2(ConfigFields& fields, ConfigFields& stack, Architecture& a) {
  read_gemma3_text_config(stack, a);
  a.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  if (a.bidirectional || a.sliding_window == 0) {
    stack.error("INVALID_VALUE", a.bidirectional ? "use_bidirectional_attention" : "sliding_window",
                "T5Gemma 2 has a window in each stack, and says itself which of them look both ways.");
  }
  stack.accept({"model_type", "is_decoder", "dropout_rate", "cross_attention_hidden_size", "architectures", "dtype",
                "torch_dtype"});
}

// transformers 5.24 models/t5gemma2/configuration_t5gemma2.py: T5Gemma2Config.
void read_config2(ConfigFields& fields, Architecture& architecture) {
  ConfigFields encoder(required_object(fields, "encoder"), fields.path() + "/encoder", fields.issues());
  ConfigFields text(required_object(encoder, "text_config"), encoder.path() + "/text_config", fields.issues());
  read_stack2(fields, text, architecture);
  text.report_unread("t5gemma2");
  read_gemma3_pictures(encoder, architecture);
  encoder.accept({"model_type", "initializer_range", "tie_word_embeddings", "dtype", "torch_dtype", "architectures"});
  encoder.report_unread("t5gemma2");
  Architecture decoder;
  ConfigFields other(required_object(fields, "decoder"), fields.path() + "/decoder", fields.issues());
  read_stack2(fields, other, decoder);
  other.report_unread("t5gemma2");
  architecture.logit_softcap = decoder.logit_softcap;
  architecture.num_decoder_layers = decoder.num_layers;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  if (architecture.vocab_size != decoder.vocab_size || architecture.hidden_size != decoder.hidden_size) {
    fields.error("INVALID_VALUE", "decoder", "T5Gemma 2's two stacks have one width and one vocabulary.");
  }
  if (!architecture.tie_word_embeddings) {
    fields.error("INVALID_VALUE", "tie_word_embeddings", "T5Gemma 2 with three tables of tokens is not modelled.");
  }
  if (fields.probability({"dropout_rate"}, 0.0) > 0.0) {
    fields.error("INVALID_VALUE", "dropout_rate", "Dropout of T5Gemma's branches is not modelled: set it to 0.");
  }
  fields.accept({"classifier_dropout_rate", "vocab_size", "is_encoder_decoder", "image_token_index", "eoi_token_index",
                 "image_token_id", "eoi_token_id"});
  architecture.parts.push_back(std::move(decoder));
}

// Rows times a number, and a vector of its own where a token says that a picture ends.
Tensor scaled_rows(Net& net, Tensor rows, Tensor ending) {
  Tape& t = net.tape;
  t.buffer("embed_tokens.embed_scale", size_of(Dtype::kFp32));
  Tensor scale = t.allocate(Shape{}, rows.dtype(), "to");
  Tensor embeds = mul(std::move(rows), std::move(scale));
  const Count pictures = net.job.images_per_sample > 0 ? picture_count(net) : 0;
  const Tensor mask = t.allocate(net.input_ids.shape(), Dtype::kBool, "eq");
  const Shape ends{Dim(std::max<Count>(1, pictures)), net.H};
  const Tensor last = expand(to(std::move(ending), embeds.dtype()), ends);
  return put_rows(std::move(embeds), mask, last);
}

Tensor encoder_rows(Net& net, Tensor rows) {
  net.blocks.places = {net.tape.parameter_place()};
  Tensor ending = net.parameter(kTable2, "eoi_embedding", Shape{net.H});
  return scaled_rows(net, std::move(rows), std::move(ending));
}

// The same vector again.
Tensor decoder_rows2(Net& net, Tensor rows) {
  const std::size_t here = net.tape.parameter_place();
  net.tape.set_parameter_place(net.blocks.places.front());
  Tensor ending = net.parameter(kTable2, "eoi_embedding", Shape{net.H});
  net.tape.set_parameter_place(here);
  return scaled_rows(net, std::move(rows), std::move(ending));
}

Tensor merge2(Net& net, Tensor embeds) {
  Tensor merged = merge_features(net, std::move(embeds), gemma3_features, kModel2, false);
  net.let_image_outputs_go();  // its encoder takes the pooled ones alone
  return merged;
}

const Tensor& mask2(const Net& net) {
  return net.is_sliding_layer(net.layer_index) ? net.shared.sliding_mask : net.shared.causal_mask;
}

// A layer is handed the mask and the tables of its kind.
void hand_by_kind(Net& net, Count layer) {
  (net.is_sliding_layer(layer) ? net.shared.causal_mask : net.shared.sliding_mask).reset();
}

void turn2(Net& net, Tensor& q, Tensor& k) {
  q = gemma_norm(net, "self_attn.q_norm", std::move(q));
  k = gemma_norm(net, "self_attn.k_norm", std::move(k));
  rotate_both(net, q, k);
}

Tensor self_attention2(Net& net, Tensor hidden) {
  AttentionOptions options = options_of(net, false);
  options.mask = mask2(net);
  return qkv_attention(net, std::move(hidden), kSelf2, turn2, std::move(options));
}

// Keys and values of both, from the same matrices.
Tensor merged_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kMerged);
  Tape& t = net.tape;
  const Tensor x = std::move(hidden), states = net.shared.encoder_states;
  const auto heads = [&](const char* name, const Tensor& from, Dim count) {
    const Tensor h = net.linear(name, from, Dim(count.n() * net.hd.n()), net.arch.attention_bias);
    return transpose(view(h, Shape{h.dim(0), h.dim(1), count, net.hd}), 1, 2);
  };
  Tensor q = heads("self_attn.q_proj", x, net.A);
  const std::size_t keys = t.parameter_place();
  Tensor k = heads("self_attn.k_proj", x, net.Kv);
  Tensor v = heads("self_attn.v_proj", x, net.Kv);
  q = gemma_norm(net, "self_attn.q_norm", std::move(q));
  const std::size_t norm = t.parameter_place();
  k = gemma_norm(net, "self_attn.k_norm", std::move(k));
  rotate_both(net, q, k);
  const std::size_t behind = t.parameter_place();
  t.set_parameter_place(keys);
  Tensor cross_k = heads("self_attn.k_proj", states, net.Kv);
  const Tensor cross_v = heads("self_attn.v_proj", states, net.Kv);
  t.set_parameter_place(norm);
  cross_k = gemma_norm(net, "self_attn.k_norm", std::move(cross_k));
  t.set_parameter_place(behind);
  k = cat({&k, &cross_k}, 2);
  v = cat({&v, &cross_v}, 2);
  AttentionOptions options = options_of(net, false);
  options.mask = mask2(net);
  Tensor out = attention(net, q, k, v, options);
  return net.linear("self_attn.o_proj", std::move(out), net.H, net.arch.attention_bias);
}

template <Tensor (*attend)(Net&, Tensor)>
Tensor layer2(Net& net, Tensor hidden) {
  Scope in(net.tape, "", net.shared.encoder_states.defined() ? kDecoder2 : kText2);
  return feed_forward(net,
                      branch(net, "pre_self_attn_layernorm", "post_self_attn_layernorm", std::move(hidden), attend));
}

Tensor run2(Net& net, const Stack& stack, const char* norm, const Tensor& embeds) {
  rotary_tables_by_kind(net, embeds.dtype());
  Tensor hidden = net.layers(stack, embeds);
  hidden = gemma_norm(net, norm, std::move(hidden));
  net.shared = {};
  return hidden;
}

// A mask of [B, 1, queries, keys] that is always made: in memory of its own where rows are padded.
Tensor made_mask(Net& net, const Tensor& embeds, Dim queries, Dim keys) {
  Tape& t = net.tape;
  const Shape scores{net.B, Dim(1), queries, keys};
  Tensor mask = net.job.padding
                    ? t.allocate(scores, Dtype::kBool, "padding mask (bool)")
                    : expand(t.allocate(Shape{Dim(1), Dim(1), queries, keys}, Dtype::kBool, "mask"), scores);
  if (net.job.attention == AttentionKernel::kEager) mask = t.allocate(scores, embeds.dtype(), "eager mask");
  return mask;
}

Tensor encode2(Net& net) {
  net.merge = merge2;
  const Tensor embeds = net.token_embedding(kTable2, net.H, encoder_rows);
  net.merge = nullptr;
  Scope in(net.tape, "encoder", kText2);
  make_position_ids(net);
  make_bidirectional_mask(net, embeds);
  net.shared.sliding_mask = made_mask(net, embeds, net.S, net.S);
  Stack stack{"model.encoder.text_model.layers", net.arch.num_layers, layer2<self_attention2>};
  stack.hand = hand_by_kind;
  Tensor hidden = run2(net, stack, "model.encoder.text_model.norm", embeds);
  net.outer_locals.clear();
  return hidden;
}

Tensor decode2(Net& net, Net& decoder, Tensor ids, const Tensor& states) {
  Scope in(net.tape, "decoder", kDecoder2);
  net.input_ids = std::move(ids);
  const Tensor embeds = net.tied_embedding_of("model.decoder.embed_tokens", net.input_ids, decoder_rows2);
  make_position_ids(decoder);
  make_causal_masks(decoder, embeds, {.forced = true, .whole = true});
  Net::Shared& all = decoder.shared;
  const Tensor full = std::move(all.causal_mask), sliding = std::move(all.sliding_mask);
  const Tensor cross = made_mask(net, embeds, decoder.S, net.S);
  all.causal_mask = cat({&full, &cross}, -1);
  all.sliding_mask = cat({&sliding, &cross}, -1);
  all.encoder_states = states;
  Stack stack{"model.decoder.layers", decoder.arch.num_layers, layer2<merged_attention>, true, Phase::kLoss};
  stack.hand = hand_by_kind;
  return run2(decoder, stack, "model.decoder.norm", embeds);
}

Tensor forward2(Net& net) {
  Net& decoder = net.part(net.arch.parts.back(), decoder_rows(net), decoder_length(net));
  Tensor ids = shift_right(net);
  const Tensor states = for_decoder(net, encode2(net));
  net.encoder_hidden = states;
  return decode2(net, decoder, std::move(ids), states);
}

void inputs2(Net& net) {
  seq2seq_inputs(net);
  if (net.job.images_per_sample == 0) return;
  const PictureSize size = picture_size(net);
  const Shape pixels{Dim(picture_count(net)), Dim(net.arch.parts.front().num_channels), Dim(size.height),
                     Dim(size.width)};
  net.pixel_values = given_pixels(net, pixels);
  integer_input(net, Shape{net.B, net.S}, "token_type_ids");
}

std::string name2(const Architecture& architecture, std::string_view path) {
  const bool sees = path.starts_with("vision_tower") || path.starts_with("multi_modal_projector");
  const std::string name = std::string{sees ? "model.encoder." : ""}.append(path);
  return architecture.head == Head::kNone ? renamed(name, "model.", "") : name;
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, generation}, {Head::kNone, seq2seq_body}};
// T5Gemma2Model makes no decoder input of labels.
constexpr ClassSuffix kClasses2[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}, {"Model", Head::kNone}};

const Program kProgram = {.forward = forward, .lm_head = head, .heads = kHeads, .inputs = seq2seq_inputs};
const Program kProgram2 = {
    .forward = forward2, .lm_head = head, .heads = kHeads, .inputs = inputs2, .attention = kNoFlash};

constexpr ClassFacts kFacts = {
    .says_width = false, .layer_first = "self_attn mlp", .made_first = "encoder.norm decoder.norm"};
constexpr ClassFacts kFacts2 = {.flex_attention = false,
                                .says_width = false,
                                .no_split = NoSplit::kAbsentToo,
                                .pictures = PictureRule::kOwnSize,
                                .full_name = name2};

}  // namespace

const Family kRows[] = {
    {"t5gemma2", "T5Gemma2", "T5Gemma2ForConditionalGeneration", kClasses2, read_config2, &kProgram2,
     "model.encoder.text_model.layers", kFacts2},
    {"t5gemma", "T5Gemma", "T5GemmaForConditionalGeneration", kClasses, read_config, &kProgram, "model.encoder.layers",
     kFacts},
};

extern const FamilyRows t5gemma_rows;
const FamilyRows t5gemma_rows = kRows;

}  // namespace tidemark
