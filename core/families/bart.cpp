// BART and its like: mBART, PLBART, NLLB (M2M-100), Pegasus, Marian, Blenderbot. They differ in where norms stand and
// in their positions.
#include "core/families/bart.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/families/family.hpp"
#include "core/layers/seq2seq.hpp"

namespace tidemark {
namespace {

enum class Positions : std::uint8_t {
  kLearned,     ///< a table; the encoder looks up every row's positions, the decoder one row's
  kOneRow,      ///< a table; both look up one row's
  kSinusoidal,  ///< an nn.Embedding that is never trained
  kBuffer,      ///< a buffer, by each token's own position
  kOfWhisper,   ///< a table, looked up for every row
};

/// What a decoder calls its modules, and where its own table of tokens is, if it is not the encoder's.
struct DecoderNames {
  const char *module, *positions, *norm_embeddings, *layers, *norm, *table;
};
constexpr DecoderNames kOfModel = {
    "model.decoder",        "model.decoder.embed_positions", "model.decoder.layernorm_embedding",
    "model.decoder.layers", "model.decoder.layer_norm",      nullptr};
/// Behind an encoder of another class: VisionEncoderDecoderModel.
constexpr DecoderNames kOfCausalLm = {"decoder.model.decoder",
                                      "decoder.model.decoder.embed_positions",
                                      "decoder.model.decoder.layernorm_embedding",
                                      "decoder.model.decoder.layers",
                                      "decoder.model.decoder.layer_norm",
                                      "decoder.model.decoder.embed_tokens"};

constexpr DecoderNames kOfSpeech = {
    "model.decoder",        "model.decoder.embed_positions", nullptr,
    "model.decoder.layers", "model.decoder.layer_norm",      "model.decoder.embed_tokens"};

/// What the modelling files differ in.
struct Traits {
  std::string_view model_type;
  bool norm_first;       ///< norms before attention and feed-forward, and one behind the last layer
  bool norm_embeddings;  ///< layernorm_embedding
  bool logits_bias;      ///< the buffer final_logits_bias
  Positions positions;
  const DecoderNames* decoder = &kOfModel;
  bool caches = false;       ///< keys and values are joined to an empty cache while it trains (kBartCausalCaching)
  bool plain_table = false;  ///< the encoder itself scales the table's rows; the decoder norms them, without positions
  bool speech = false;       ///< Speech2Text: eager attention alone, rows scaled behind their table, no mask of ones
};
constexpr Traits kTraits[] = {
    {"bart", false, true, true, Positions::kLearned},
    {"mbart", true, true, true, Positions::kLearned},
    {"plbart", false, true, true, Positions::kLearned},
    {"blenderbot", true, false, true, Positions::kOneRow},
    {"blenderbot-small", false, true, true, Positions::kOneRow, &kOfModel, false, true},
    {"florence2", false, true, false, Positions::kLearned},
    {"m2m_100", true, false, false, Positions::kBuffer},
    {"pegasus", true, false, true, Positions::kSinusoidal},
    {"marian", false, false, true, Positions::kSinusoidal},
    {kBartCausal, true, true, false, Positions::kLearned, &kOfCausalLm},
    {kBartCausalCaching, true, true, false, Positions::kLearned, &kOfCausalLm, true},
    {"speech_to_text", true, false, false, Positions::kBuffer, &kOfSpeech, false, false, true},
    {"whisper", true, false, false, Positions::kOfWhisper},
};

const Traits& traits_of(const Architecture& architecture) {
  const auto is_it = [&](const Traits& traits) { return traits.model_type == architecture.model_type; };
  return *std::find_if(std::begin(kTraits), std::end(kTraits) - 1, is_it);
}
const Traits& traits_of(const Net& net) {
  return traits_of(net.arch);
}

constexpr std::string_view kUntied = "Tables of encoder, decoder and head that are not one are not modelled.";

// transformers 5.12.1 models/bart/configuration_bart.py: BartConfig, and the same classes of the others.
void read_text_config(ConfigFields& fields, Architecture& architecture, const BartDefaults& defaults) {
  read_bart_sizes(fields, architecture, defaults);
  architecture.tie_word_embeddings = true;
  if (!fields.flag({"tie_word_embeddings"}, true)) {
    fields.error("INVALID_VALUE", "tie_word_embeddings", std::string{kUntied});
  }
  fields.accept({"scale_embedding"});
}

void read_bart_config(ConfigFields& fields, Architecture& architecture) {
  read_text_config(fields, architecture, {});
  architecture.position_offset = 2;
  architecture.max_positions += 2;
  architecture.parts.front().max_positions = architecture.max_positions;
  // BartConfig.__post_init__
  if (architecture.model_type == "bart" && fields.find({"id2label"}) == nullptr &&
      fields.find({"num_labels"}) == nullptr && architecture.head == Head::kSequenceClassification) {
    architecture.num_labels = 3;
    architecture.problem_type = ProblemType::kSingleLabel;
  }
}

// transformers 5.24 models/plbart/configuration_plbart.py: PLBartConfig.
void read_plbart_config(ConfigFields& fields, Architecture& architecture) {
  read_text_config(fields, architecture, {"gelu", 0.1, 0.1, 1024});
  architecture.position_offset = 2;
  architecture.max_positions += 2;
  architecture.parts.front().max_positions = architecture.max_positions;
}

// transformers 5.24 models/blenderbot/configuration_blenderbot.py: BlenderbotConfig; BlenderbotSmallConfig.
void read_blenderbot_config(ConfigFields& fields, Architecture& architecture) {
  const Count positions = architecture.model_type == "blenderbot" ? 128 : 512;
  read_text_config(fields, architecture, {"gelu", 0.1, 0.0, positions});
  fields.accept({"encoder_no_repeat_ngram_size"});
}

void read_sinusoidal_config(ConfigFields& fields, Architecture& architecture) {
  read_text_config(fields, architecture, {});
  if (architecture.model_type != "marian") return;
  const bool one_vocabulary = fields.nullable({"decoder_vocab_size"}, std::nullopt).value_or(architecture.vocab_size) ==
                              architecture.vocab_size;
  if (!fields.flag({"share_encoder_decoder_embeddings"}, true) || !one_vocabulary) {
    fields.error("INVALID_VALUE", "share_encoder_decoder_embeddings", std::string{kUntied});
  }
}

// transformers 5.12.1 models/m2m_100/configuration_m2m_100.py: M2M100Config. Its positions grow as they are needed.
void read_m2m_100_config(ConfigFields& fields, Architecture& architecture) {
  read_text_config(fields, architecture, {"relu", 0.1, 0.1, 1024});
  architecture.positions_by_token = false;
  architecture.parts.front().positions_by_token = false;
  architecture.max_positions += 2;
  architecture.parts.front().max_positions = architecture.max_positions;
}

constexpr const char* kAttention = "transformers 5.12 models/bart/modeling_bart.py: BartAttention.forward";
constexpr const char* kWhisperAttention =
    "transformers 5.12 models/whisper/modeling_whisper.py: WhisperAttention.forward";
constexpr const char* kEncoderLayer = "transformers 5.12 models/bart/modeling_bart.py: BartEncoderLayer.forward";
constexpr const char* kDecoderLayer = "transformers 5.12 models/bart/modeling_bart.py: BartDecoderLayer.forward";
constexpr const char* kEncoder = "transformers 5.12 models/bart/modeling_bart.py: BartEncoder.forward";
constexpr const char* kDecoder = "transformers 5.12 models/bart/modeling_bart.py: BartDecoder.forward";
constexpr const char* kModel = "transformers 5.12 models/bart/modeling_bart.py: BartForConditionalGeneration.forward";
constexpr const char* kClassifier = "transformers 5.12 models/bart/modeling_bart.py: BartClassificationHead.forward";
constexpr const char* kSpan = "transformers 5.12 models/bart/modeling_bart.py: BartForQuestionAnswering.forward";

bool is_whisper(const Net& net) {
  return traits_of(net).positions == Positions::kOfWhisper;
}

// .view(B, -1, A, hd).transpose(1, 2), which Whisper makes contiguous.
Tensor into_heads(const Net& net, Tensor x) {
  const Shape four{x.dim(0), x.dim(1), net.A, net.hd};
  x = transpose(view(std::move(x), four), 1, 2);
  return is_whisper(net) ? contiguous(std::move(x)) : x;
}

Tensor attend(Net& net, const BartAttentionNames& names, const Tensor& hidden, bool causal) {
  const bool whisper = is_whisper(net);
  Scope in(net.tape, names.module, whisper ? kWhisperAttention : kAttention);
  const bool cross = &names == &kBartCross;
  Tensor query = net.linear(names.q, hidden, net.H, true);
  if (whisper) query = mul_scalar(std::move(query));
  const Tensor q = into_heads(net, std::move(query));
  const Tensor& states = cross ? net.shared.encoder_states : hidden;
  Tensor k, v;
  if (whisper) {
    k = into_heads(net, net.linear(names.k, states, net.H));
    v = into_heads(net, net.linear(names.v, states, net.H, true));
  } else {
    k = net.linear(names.k, states, net.H, true);
    v = net.linear(names.v, states, net.H, true);
    k = into_heads(net, std::move(k));
    v = into_heads(net, std::move(v));
    // GradientCheckpointingLayer.__call__ takes the cache away. cache_utils.py DynamicLayer.update: torch.cat.
    if (traits_of(net).caches && !checkpointed(net.job, net.layer_index)) {
      k = contiguous(std::move(k));
      v = contiguous(std::move(v));
    }
  }
  AttentionOptions options = encoder_attention(net);
  if (cross) options.mask = net.shared.cross_mask;
  options.causal = causal;
  options.eager = traits_of(net).speech;
  Tensor out = attention(net, q, k, v, options);
  return net.linear(names.o, std::move(out), net.H, true);
}

// An attention with its norm and its residual.
Tensor attention_block(Net& net, const BartAttentionNames& names, Tensor hidden, bool causal) {
  const bool first = traits_of(net).norm_first;
  const Tensor residual = std::move(hidden);
  Tensor out;
  {
    const Tensor x = first ? net.layer_norm(names.norm, residual) : residual;
    out = attend(net, names, x, causal);
  }
  out = dropout(std::move(out), net.arch.residual_dropout);
  out = add(residual, std::move(out));
  return first ? out : net.layer_norm(names.norm, std::move(out));
}

Tensor feed_forward(Net& net, Tensor hidden) {
  const bool first = traits_of(net).norm_first;
  const Tensor residual = std::move(hidden);
  Tensor h = first ? net.layer_norm("final_layer_norm", residual) : residual;
  {
    const Tensor wide = net.linear("fc1", h, net.F, true);
    Scope act(net.tape, "activation_fn", kEncoderLayer);
    h = activate(net.arch.activation, wide);
  }
  h = dropout(std::move(h), net.arch.activation_dropout);
  h = net.linear("fc2", std::move(h), net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  h = add(residual, std::move(h));
  return first ? h : net.layer_norm("final_layer_norm", std::move(h));
}

Tensor encoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kEncoderLayer);
  Tensor h = attention_block(net, kBartSelf, std::move(hidden), false);
  h = feed_forward(net, std::move(h));
  // BART and Marian look first whether there is anything to clamp.
  if (h.dtype() == Dtype::kFp16 && traits_of(net).norm_first) h = clamp(std::move(h));
  return h;
}

Tensor decoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kDecoderLayer);
  Tensor h = attention_block(net, kBartSelf, std::move(hidden), true);
  h = attention_block(net, kBartCross, std::move(h), false);
  return feed_forward(net, std::move(h));
}

Tensor scaled(Net&, Tensor rows) {
  return mul_scalar(std::move(rows));
}

}  // namespace

// M2M100SinusoidalPositionalEmbedding.forward: the rows of a buffer by each token's place among those that are no
// padding.
Tensor buffered_positions(Net& net, const char* name) {
  Tape& t = net.tape;
  const Dtype dtype = net.buffer_dtype(net.weight_dtype(2));
  t.buffer(name, net.arch.max_positions * net.H.n() * size_of(dtype));
  const Shape rows{net.B, net.S};
  Tensor mask = t.allocate(rows, Dtype::kInt32, "ne");
  Tensor counted = t.allocate(rows, Dtype::kInt64, "cumsum");
  Tensor position_ids = t.allocate(rows, Dtype::kInt64, "add");
  return t.allocate(Shape{net.B, net.S, net.H}, dtype, "index_select");
}

Tensor add_logits_bias(Net& net, Tensor logits, const char* source) {
  Scope in(net.tape, "", source);
  const Dtype dtype = net.buffer_dtype(net.job.recipe.weights);
  net.tape.buffer("final_logits_bias", net.V.n() * size_of(dtype));
  const Tensor bias = net.tape.part_of_buffer(Shape{Dim(1), net.V}, dtype);
  return add(std::move(logits), bias);
}

namespace {

Tensor positions(Net& net, const char* name, bool decoder) {
  Tape& t = net.tape;
  switch (traits_of(net).positions) {
    case Positions::kSinusoidal:
      return frozen_positions(net, name);
    case Positions::kBuffer:
      return buffered_positions(net, name);
    default:
      break;
  }
  const Positions kind = traits_of(net).positions;
  const bool one_row = kind == Positions::kOneRow || (decoder && kind == Positions::kLearned);
  const Tensor ids = t.allocate(Shape{one_row ? Dim(1) : net.B, net.S}, Dtype::kInt64, "position_ids");
  return net.embedding(name, ids, Dim(net.arch.max_positions), net.H);
}

Tensor bart_encode(Net& net) {
  Scope in(net.tape, "model.encoder", kEncoder);
  const bool plain = traits_of(net).plain_table;
  Tensor embeds = net.token_embedding("model.shared", net.H, plain ? nullptr : scaled);
  if (plain) embeds = mul_scalar(std::move(embeds));
  const Tensor places = positions(net, "model.encoder.embed_positions", false);
  Tensor hidden = add(embeds, places);
  if (traits_of(net).norm_embeddings) hidden = net.layer_norm("model.encoder.layernorm_embedding", std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  const bool eager = net.job.attention == AttentionKernel::kEager;
  net.shared.causal_mask = bidirectional_mask(net, embeds, eager, net.S, net.S);
  hidden = bart_encoder_layers(net, std::move(hidden), "model.encoder.layers", false);
  if (!traits_of(net).norm_first) return hidden;
  return net.layer_norm("model.encoder.layer_norm", std::move(hidden));
}

Tensor bart_forward(Net& net) {
  const Tensor ids = shift_right(net);
  return decode_behind(net, decoder_length(net), ids, bart_encode(net), bart_decode);
}

Tensor bart_lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

Outputs conditional_generation(Net& net, const Program& program, Tensor hidden) {
  Tensor logits = program.lm_head(net, std::move(hidden));
  if (traits_of(net).logits_bias) logits = add_logits_bias(net, std::move(logits), kModel);
  return seq2seq_loss(net, std::move(logits));
}

Outputs sequence_classification(Net& net, const Program&, Tensor hidden) {
  Tensor sentence = eos_states(net, hidden);
  return with_encoder_states(net, classified(net, classification_head(net, std::move(sentence), kClassifier)));
}

Outputs question_answering(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kSpan);
  Tensor logits = net.classifier("qa_outputs", std::move(hidden), Dim(2), true);
  return with_encoder_states(net, spans(net, std::move(logits)));
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, conditional_generation},
                                  {Head::kSequenceClassification, sequence_classification},
                                  {Head::kQuestionAnswering, question_answering},
                                  {Head::kNone, seq2seq_body}};

}  // namespace

void read_bart_sizes(ConfigFields& fields, Architecture& architecture, const BartDefaults& defaults) {
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.num_layers = fields.required({"encoder_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"encoder_attention_heads", "num_attention_heads"});
  architecture.num_kv_heads = architecture.num_heads;
  architecture.intermediate_size = fields.required({"encoder_ffn_dim"});
  architecture.num_decoder_layers = fields.required({"decoder_layers"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, defaults.positions);
  architecture.activation = read_activation(fields, {"activation_function"}, defaults.activation);
  architecture.residual_dropout = fields.probability({"dropout"}, defaults.dropout);
  architecture.embedding_dropout = architecture.residual_dropout;
  architecture.attention_dropout = fields.probability({"attention_dropout"}, defaults.attention_dropout);
  architecture.activation_dropout = fields.probability({"activation_dropout"}, 0.0);
  architecture.classifier_dropout = fields.probability({"classifier_dropout", "classif_dropout"}, 0.0);
  derive_head_dim(fields, architecture);
  Architecture decoder = architecture;
  decoder.num_layers = architecture.num_decoder_layers;
  decoder.num_heads = fields.required({"decoder_attention_heads"});
  decoder.num_kv_heads = decoder.num_heads;
  decoder.intermediate_size = fields.required({"decoder_ffn_dim"});
  derive_head_dim(fields, decoder);
  architecture.parts.push_back(std::move(decoder));
  for (const std::string_view key : {"encoder_layerdrop", "decoder_layerdrop"}) note_layerdrop(fields, key, 0.0);
  fields.accept({"num_hidden_layers", "num_attention_heads"});
}

Tensor bart_encoder_layers(Net& net, Tensor hidden, std::string_view layers, bool alone) {
  Stack stack{layers, net.arch.num_layers, encoder_layer};
  if (alone) stack.then = Phase::kLoss;
  hidden = net.layers(stack, std::move(hidden));
  net.shared = {};
  return hidden;
}

Tensor bart_decode(Net& net, Net& encoder, const Tensor& ids, const Tensor& encoder_states) {
  const DecoderNames& names = *traits_of(net).decoder;
  Scope in(net.tape, names.module, kDecoder);
  const bool whisper = is_whisper(net), speech = traits_of(net).speech;
  Tensor embeds;
  if (whisper) {
    Tensor features = std::exchange(encoder.input_ids, ids);
    embeds = encoder.token_embedding("model.decoder.embed_tokens", net.H);
    encoder.input_ids = std::move(features);
  } else if (names.table != nullptr) {
    Tensor pixels = std::exchange(encoder.input_ids, ids);
    embeds = encoder.token_embedding(names.table, net.H, speech ? nullptr : scaled);
    encoder.input_ids = std::move(pixels);
    if (speech) embeds = mul_scalar(std::move(embeds));
  } else {
    embeds = net.tied_embedding_of("model.shared", ids, traits_of(net).plain_table ? nullptr : scaled);
  }
  make_causal_masks(net, embeds, {.eager = speech, .padded = !whisper && !speech, .whole = true});
  net.attention_mask = encoder.attention_mask;
  const bool eager = speech || net.job.attention == AttentionKernel::kEager;
  if (!whisper && (!speech || net.job.padding))
    net.shared.cross_mask = bidirectional_mask(net, encoder_states, eager, net.S, encoder.S);
  net.attention_mask.reset();
  net.shared.encoder_states = encoder_states;
  const Tensor places = positions(net, names.positions, true);
  const bool plain = traits_of(net).plain_table;
  if (plain) embeds = net.layer_norm(names.norm_embeddings, std::move(embeds));
  Tensor hidden = add(embeds, places);
  if (traits_of(net).norm_embeddings && !plain) hidden = net.layer_norm(names.norm_embeddings, std::move(hidden));
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  Stack stack{names.layers, net.arch.num_layers, decoder_layer};
  stack.then = Phase::kLoss;
  hidden = net.layers(stack, std::move(hidden));
  net.shared = {};
  if (!traits_of(net).norm_first) return hidden;
  return net.layer_norm(names.norm, std::move(hidden));
}

Tensor frozen_table(Net& net, const char* name, Dtype dtype) {
  Parameter p;
  p.module = name;
  p.leaf = "weight";
  p.shape = Shape{Dim(net.arch.max_positions), net.H};
  p.dtype = dtype;
  p.is_embedding = true;
  return net.tape.parameter(p);
}

Tensor frozen_positions(Net& net, const char* name) {
  Scope in(net.tape, name,
           "transformers 5.12 models/pegasus/modeling_pegasus.py: PegasusSinusoidalPositionalEmbedding");
  // A table by no name that Axolotl turns back (core/layers/turned_back.cpp: stays_wide), like what is of more than two
  // dimensions.
  const Tensor table = frozen_table(net, name, net.weight_dtype(3));
  const Tensor ids = net.tape.allocate(Shape{net.S}, Dtype::kInt64, "arange");
  return embedding(ids, table);
}

const Program kBartProgram = {bart_forward, bart_lm_head, kHeads, OwnLoss::kFp32, {}, seq2seq_inputs};

const Family kRows[] = {
    {"bart", "Bart", "BartForConditionalGeneration", kBartClasses, read_bart_config, &kBartProgram,
     "model.encoder.layers"},
    {"mbart", "MBart", "MBartForConditionalGeneration", kBartClasses, read_bart_config, &kBartProgram,
     "model.encoder.layers", kNamesOtherParts},
    {"plbart", "PLBart", "PLBartForConditionalGeneration", kPLBartClasses, read_plbart_config, &kBartProgram,
     "model.encoder.layers"},
    {"blenderbot", "Blenderbot", "BlenderbotForConditionalGeneration", kPegasusClasses, read_blenderbot_config,
     &kBartProgram, "model.encoder.layers", kNamesNone},
    {"blenderbot-small", "BlenderbotSmall", "BlenderbotSmallForConditionalGeneration", kPegasusClasses,
     read_blenderbot_config, &kBartProgram, "model.encoder.layers", kNamesNone},
    {"m2m_100", "M2M100", "M2M100ForConditionalGeneration", kM2m100Classes, read_m2m_100_config, &kBartProgram,
     "model.encoder.layers"},
    {"pegasus", "Pegasus", "PegasusForConditionalGeneration", kM2m100Classes, read_sinusoidal_config, &kBartProgram,
     "model.encoder.layers", kNamesNone},
    {"marian", "Marian", "MarianMTModel", kMarianClasses, read_sinusoidal_config, &kBartProgram, "model.encoder.layers",
     kNamesNone},
};

extern const FamilyRows bart_rows;
const FamilyRows bart_rows = kRows;

}  // namespace tidemark
