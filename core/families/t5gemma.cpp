// T5Gemma: an encoder that attends both ways and a decoder, each of Gemma 2's layers and with a table of its own.
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

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, generation}, {Head::kNone, seq2seq_body}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm}, {"Model", Head::kNone}};

const Program kProgram = {.forward = forward, .lm_head = head, .heads = kHeads, .inputs = seq2seq_inputs};

}  // namespace

const Family kRows[] = {
    {"t5gemma", "T5Gemma", "T5GemmaForConditionalGeneration", kClasses, read_config, &kProgram, "model.encoder.layers"},
};

extern const FamilyRows t5gemma_rows;
const FamilyRows t5gemma_rows = kRows;

}  // namespace tidemark
