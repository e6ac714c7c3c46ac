// BLIP-2: a ViT whose q, k and v are one projection, learned queries that a Q-Former lets attend to its patches, a
// linear layer into OPT's embeddings or those of T5's encoder.
#include <algorithm>
#include <string>
#include <utility>

#include "core/families/blip.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/seq2seq.hpp"

namespace tidemark {
namespace {

constexpr const char* kEmbeddings = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2VisionEmbeddings.forward";
constexpr const char* kTower = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2VisionModel.forward";
constexpr const char* kTowerLayer = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2EncoderLayer.forward";
constexpr const char* kTowerAttention = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2Attention.forward";
constexpr const char* kTowerMlp = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2MLP.forward";
constexpr const char* kQformer = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2QFormerModel.forward";
constexpr const char* kQformerLayer = "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2QFormerLayer.forward";
constexpr const char* kQformerAttention =
    "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2QFormerMultiHeadAttention.forward";
constexpr const char* kQformerJoin =
    "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2QFormerSelfOutput.forward";
constexpr const char* kFeatures =
    "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2ForConditionalGeneration.get_image_features";
constexpr const char* kModel =
    "transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2ForConditionalGeneration.forward";

// The last two of the architecture's parts; T5's decoder lies before them.
const Architecture& tower_of(const Net& net) {
  return net.arch.parts[net.arch.parts.size() - 2];
}

const Architecture& qformer_of(const Net& net) {
  return net.arch.parts.back();
}

bool has_decoder_only(const Net& net) {
  return net.arch.num_decoder_layers == 0;
}

}  // namespace

// transformers 5.12.1 models/blip_2/configuration_blip_2.py: Blip2VisionConfig; models/blip/configuration_blip.py:
// BlipVisionConfig, which has no qkv_bias and other sizes.
Architecture read_blip_tower(ConfigFields& fields, bool second) {
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture tower;
  if (second) {
    read_tower_sizes(vision, tower, 1408, 39, 16, 6144);
  } else {
    read_tower_sizes(vision, tower, 768, 12, 12, 3072);
  }
  tower.num_channels = 3;  // Blip2VisionEmbeddings: in_channels=3
  tower.image_size = square_side(vision, "image_size", second ? 224 : 384);
  tower.patch_size = square_side(vision, "patch_size", second ? 14 : 16);
  tower.activation = read_activation(vision, {"hidden_act"}, "gelu");
  tower.attention_bias = !second || vision.flag({"qkv_bias"}, true);
  if (tower.image_size < tower.patch_size) {
    vision.error("INVALID_VALUE", "patch_size", "A patch is larger than the image.");
    return tower;
  }
  const Count patches = tower.image_size / tower.patch_size;
  tower.max_positions = patches * patches + 1;  // and the class token
  vision.accept({"model_type", "architectures", "torch_dtype", "dtype", "dropout", "projection_dim",
                 "initializer_factor", "_name_or_path"});
  vision.report_unread(second ? "blip_2_vision_model" : "blip_vision_model");
  return tower;
}

// Blip2QFormerConfig. With use_qformer_text_input each layer has a second feed-forward, for text.
Architecture read_qformer(ConfigFields& given) {
  Architecture part;
  part.hidden_size = given.count({"hidden_size"}, 768);
  part.num_layers = given.count({"num_hidden_layers"}, 12);
  part.num_heads = part.num_kv_heads = given.count({"num_attention_heads"}, 12);
  part.intermediate_size = given.count({"intermediate_size"}, 3072);
  part.activation = read_activation(given, {"hidden_act"}, "gelu");
  part.residual_dropout = given.probability({"hidden_dropout_prob"}, 0.1);
  part.attention_dropout = given.probability({"attention_probs_dropout_prob"}, 0.1);
  part.pictures.width = given.count({"encoder_hidden_size"}, 1408);
  derive_head_dim(given, part);
  const Count every = std::max<Count>(1, given.count({"cross_attention_frequency"}, 2));
  for (Count i = 0; i < part.num_layers; ++i) part.layer_kinds.push_back(i % every == 0 ? kQueryCrosses : 0);
  if (given.flag({"use_qformer_text_input"}, false)) {
    given.error("UNSUPPORTED_VALUE", "use_qformer_text_input",
                "A Q-Former that reads text, as models that retrieve have it, is not modelled: set it to false.",
                "false");
  }
  given.accept({"model_type", "architectures", "torch_dtype", "dtype", "vocab_size", "max_position_embeddings",
                "position_embedding_type", "classifier_dropout", "_name_or_path"});
  given.report_unread("blip_2_qformer");
  return part;
}

namespace {

// Blip2Config, whose __post_init__ sets encoder_hidden_size.
void read_config(ConfigFields& fields, Architecture& architecture) {
  const Value& text = required_object(fields, "text_config");
  const Value* named = text.find("model_type");
  const std::string type = named != nullptr && named->is_string() ? named->string : "opt";
  if (type != "opt" && type != "t5") {
    fields.error("UNSUPPORTED_ARCHITECTURE", "text_config",
                 "Of language models behind a Q-Former, OPT and T5 are modelled: \"" + type + "\" is not.");
    return;
  }
  const bool encodes = type == "t5";
  if (encodes) {
    architecture.head = Head::kSeq2SeqLm;
    architecture.layers_path = "encoder.block";
  }
  const Family* family = type_named(type);
  ConfigFields language(text, fields.path() + "/text_config", fields.issues());
  family->read(language, architecture);
  language.accept({"model_type", "architectures", "torch_dtype", "dtype", "_name_or_path"});
  language.report_unread(type);
  architecture.language = family->program;
  Architecture tower = read_blip_tower(fields, true);
  ConfigFields given(required_object(fields, "qformer_config"), fields.path() + "/qformer_config", fields.issues());
  Architecture queries = read_qformer(given);
  queries.unpacked = queries.kept_in_fp32 = true;  // _keep_in_fp32_modules
  queries.pictures.width = tower.hidden_size;
  queries.pictures.tokens = fields.count({"num_query_tokens"}, 32);
  architecture.parts.push_back(std::move(tower));
  architecture.parts.push_back(std::move(queries));
  fields.accept({"image_token_index", "image_token_id", "image_text_hidden_size", "use_decoder_only_language_model",
                 "is_encoder_decoder", "tie_word_embeddings", "initializer_factor", "initializer_range"});
}

// -- the tower --------------------------------------------------------------------------------------------------------

Tensor embeddings(Net& net) {
  const char* const kPatches = "vision_model.embeddings.patch_embedding";
  Scope in(net.tape, "vision_model.embeddings", kEmbeddings);
  const Dim side(net.arch.patch_size), one(1);
  Tensor weight = net.parameter(kPatches, "weight", Shape{net.H, Dim(net.arch.num_channels), side, side});
  Tensor bias = net.parameter(kPatches, "bias", Shape{net.H});
  Tensor pixels = to(net.pixel_values, weight.dtype());
  Tensor convolved = patch_convolution(std::move(pixels), std::move(weight), std::move(bias));
  const Shape rows{net.B, net.H, Dim(net.S.n() - 1)};
  const Tensor patches = transpose(view(std::move(convolved), rows), 1, 2);
  Tensor row = net.parameter("vision_model.embeddings", "class_embedding", Shape{one, one, net.H});
  const Tensor token = expand(std::move(row), Shape{net.B, one, net.H});
  Tensor hidden = cat({&token, &patches}, 1);
  Tensor positions = net.parameter("vision_model.embeddings", "position_embedding", Shape{one, net.S, net.H});
  hidden = add(std::move(hidden), std::move(positions));
  return net.hooked_inputs(std::move(hidden));
}

}  // namespace

BlipHeads blip_heads(Net& net, const Tensor& x) {
  BlipHeads heads;
  heads.mixed = net.linear("self_attn.qkv", x, Dim(3 * net.H.n()), net.arch.attention_bias);
  heads.mixed = reshape(std::move(heads.mixed), Shape{net.B, net.S, Dim(3), net.A, net.hd});
  heads.mixed = permute(std::move(heads.mixed), {2, 0, 3, 1, 4});
  heads.q = select(heads.mixed, 0);
  heads.k = select(heads.mixed, 0);
  heads.v = select(heads.mixed, 0);
  return heads;
}

namespace {

Tensor tower_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kTowerAttention);
  const Tensor x = std::move(hidden);
  const BlipHeads heads = blip_heads(net, x);
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  options.softmax_fp32 = options.cast_back = false;
  const Tensor out = attention(net, heads.q, heads.k, heads.v, options);
  return net.linear("self_attn.projection", out, net.H, true);
}

Tensor tower_mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kTowerMlp);
  Tensor h = net.linear("mlp.fc1", std::move(hidden), net.F, true);
  {
    Scope act(net.tape, "mlp.activation_fn", kTowerMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

}  // namespace

Tensor blip_layer(Net& net, Tensor hidden, Branch attention) {
  Scope in(net.tape, "", kTowerLayer);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("layer_norm1", residual);
  h = attention(net, std::move(h));
  h = add(std::move(h), residual);
  residual = h;
  h = net.layer_norm("layer_norm2", std::move(h));
  h = tower_mlp(net, h);  // which keeps its name here meanwhile
  h = add(std::move(h), residual);
  net.attention_weights.reset();
  return h;
}

BlipSeen blip_tower(Net& net, Branch layer) {
  const char* const kNorm = "vision_model.post_layernorm";
  Scope in(net.tape, "vision_model", kTower);
  const Tensor embeds = embeddings(net);
  const Tensor hidden = net.layers({"vision_model.encoder.layers", net.arch.num_layers, layer}, embeds);
  const std::int32_t weight = net.tape.next_parameter();
  BlipSeen seen;
  seen.last = net.layer_norm(kNorm, hidden);
  Scope norm(net.tape, kNorm, kTower);
  seen.pooled =
      layer_norm(select(seen.last, 1), net.tape.existing_parameter(weight), net.tape.existing_parameter(weight + 1));
  return seen;
}

namespace {

Tensor tower_layer(Net& net, Tensor hidden) {
  return blip_layer(net, std::move(hidden), tower_attention);
}

// -- the Q-Former -----------------------------------------------------------------------------------------------------

/// Names of one of a layer's two attentions.
struct AttentionNames {
  const char *module, *query, *key, *value, *dense, *norm;
};
constexpr AttentionNames kSelf = {"attention.attention",     "attention.attention.query",
                                  "attention.attention.key", "attention.attention.value",
                                  "attention.output.dense",  "attention.output.LayerNorm"};
constexpr AttentionNames kCross = {"crossattention.attention",     "crossattention.attention.query",
                                   "crossattention.attention.key", "crossattention.attention.value",
                                   "crossattention.output.dense",  "crossattention.output.LayerNorm"};

Tensor by_heads(const Net& net, Tensor x_in) {
  Tensor x = std::move(x_in);
  const Shape four{x.dim(0), x.dim(1), net.A, net.hd};
  return permute(view(std::move(x), four), {0, 2, 1, 3});
}

/// What an attention returns: both have a name where it is called.
struct Attended {
  Tensor context, probabilities;
};

Attended attend(Net& net, const AttentionNames& names, const Tensor& hidden, const Tensor& states, const Tensor& mask) {
  Scope in(net.tape, names.module, kQformerAttention);
  const Tensor k = by_heads(net, net.linear(names.key, states, net.Q, true));
  const Tensor v = by_heads(net, net.linear(names.value, states, net.Q, true));
  Tensor q = by_heads(net, net.linear(names.query, hidden, net.Q, true));
  // Queries that have not met a picture are the same for all.
  const Shape of_each{k.dim(0), q.dim(1), q.dim(2), q.dim(3)};
  if (q.size(0) != k.size(0)) q = expand(std::move(q), of_each);
  Attended out;
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  if (mask.defined()) scores = add(std::move(scores), mask);
  out.probabilities = softmax(scores);
  Tensor dropped = dropout(out.probabilities, net.arch.attention_dropout);
  dropped = to(std::move(dropped), v.dtype());
  out.context = matmul(dropped, v);
  out.context = contiguous(permute(std::move(out.context), {0, 2, 1, 3}));
  const Shape rows{out.context.dim(0), out.context.dim(1), net.Q};
  out.context = view(std::move(out.context), rows);
  return out;
}

// Blip2QFormerSelfOutput.forward, Blip2QFormerOutput.forward
Tensor join(Net& net, const char* dense, const char* norm, const Tensor& x, const Tensor& input) {
  Scope in(net.tape, "", kQformerJoin);
  Tensor h = net.linear(dense, x, net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  Tensor sum = add(h, input);
  return net.layer_norm(norm, std::move(sum));
}

Tensor attention_block(Net& net, const AttentionNames& names, const Tensor& hidden, const Tensor& states,
                       const Tensor& mask) {
  const Attended attended = attend(net, names, hidden, states, mask);
  return join(net, names.dense, names.norm, attended.context, hidden);
}

Tensor feed_forward(Net& net, const Tensor& hidden) {
  Tensor wide;
  {
    Scope in(net.tape, "intermediate_query", kQformerLayer);
    wide = net.linear("intermediate_query.dense", hidden, net.F, true);
    wide = activate(net.arch.activation, std::move(wide));
  }
  return join(net, "output_query.dense", "output_query.LayerNorm", wide, hidden);
}

Tensor query_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kQformerLayer);
  const Tensor attended = attention_block(net, kSelf, hidden, hidden, net.shared.causal_mask);
  Tensor queried = attended;
  if ((net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] & kQueryCrosses) != 0) {
    queried = attention_block(net, kCross, attended, net.shared.encoder_states, net.shared.cross_mask);
  }
  return feed_forward(net, queried);
}

}  // namespace

Tensor qformer(Net& net, const char* norm, std::string_view layers, const Tensor& queries, const Tensor& seen) {
  Scope in(net.tape, "qformer", kQformer);
  const Dtype original = queries.dtype();
  Tensor embeds = net.layer_norm(norm, queries);
  embeds = dropout(std::move(embeds), net.arch.residual_dropout);
  { const Tensor of_mask = to(embeds, original); }
  net.shared.encoder_states = to(seen, original);
  { const Tensor of_mask = to(embeds, original); }
  Tensor asked = net.layers({layers, net.arch.num_layers, query_layer}, embeds);
  net.shared = {};
  return asked;
}

namespace {

Tensor ask(Net& net, const Tensor& seen) {
  const Dim one(1);
  const Tensor ones = net.tape.allocate(Shape{seen.dim(0), seen.dim(1)}, Dtype::kInt64, "ones");
  Tensor tokens = net.parameter("", "query_tokens", Shape{one, net.S, net.H});
  const Tensor queries = expand(std::move(tokens), Shape{net.B, net.S, net.H});
  return qformer(net, "qformer.layernorm", "qformer.encoder.layer", queries, seen);
}

// -- the whole --------------------------------------------------------------------------------------------------------

/// Pictures of a micro batch: one for each text (Blip2Processor.__call__).
Dim pictures(const Net& net) {
  return Dim(picture_count(net));
}

Tensor pixels(Net& net) {
  const Architecture& tower = tower_of(net);
  const Dim side(tower.image_size);
  return net.tape.allocate(Shape{pictures(net), Dim(tower.num_channels), side, side}, net.weight_dtype(4),
                           "pixel_values");
}

void inputs(Net& net) {
  (has_decoder_only(net) ? text_inputs : seq2seq_inputs)(net);
  net.pixel_values = pixels(net);
}

// What the pictures become, and, among the outputs, what it came from.
Tensor features(Net& net) {
  Scope in(net.tape, "", kFeatures);
  Net& tower = net.part(tower_of(net), pictures(net), Dim(tower_of(net).max_positions));
  tower.pixel_values = net.pixel_values;
  BlipSeen seen = blip_tower(tower, tower_layer);
  Net& queries = net.part(qformer_of(net), pictures(net), Dim(qformer_of(net).pictures.tokens));
  Tensor asked = ask(queries, seen.last);
  Tensor narrowed = to(asked, seen.last.dtype());
  Tensor made = net.linear("language_projection", std::move(narrowed), net.H, true);
  for (Tensor* output : {&seen.last, &seen.pooled, &asked}) net.wrapper_locals.push_back(std::move(*output));
  return made;
}

Tensor merge(Net& net, Tensor embeds) {
  const Shape rows{net.B, net.S};
  if (!net.attention_mask.defined()) {
    net.attention_mask = net.tape.allocate(rows, Dtype::kInt64, "ones_like");
  }
  Tensor merged = scatter_features(net, std::move(embeds), net.image_hidden_states, kModel);
  net.wrapper_locals.push_back(merged);
  return merged;
}

Tensor forward(Net& net) {
  net.image_hidden_states = features(net);
  net.merge = merge;
  return net.arch.language->forward(net);
}

/// The outputs: what pictures became, beside the language model's own.
void add_pictures(Net& net, Outputs& out) {
  constexpr std::size_t kFromPictures = 3;
  const std::size_t count = std::min(kFromPictures, net.wrapper_locals.size());
  for (std::size_t i = 0; i < count; ++i) out.rest.push_back(net.wrapper_locals[i]);
}

// Until 5.16 the loss is the class's own: of logits[:, -labels.size(1):], which is all of them and a slice's node, in
// the model's dtype. `outputs` holds the language model's own logits beside these.
Outputs causal(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  const Tensor whole = program.lm_head(net, std::move(hidden));
  net.last_hidden.reset();
  Scope in(net.tape, "", kModel);
  Tensor logits = select(unsqueeze(whole, 0), 0);
  out.loss = net.job.framework.at_least(5, 17) ? causal_lm_loss(net, logits, OwnLoss::kFp32)
                                               : shifted_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  add_pictures(net, out);
  out.rest.push_back(whole);
  net.image_hidden_states.reset();
  if (!net.job.padding) net.attention_mask.reset();
  return out;
}

Outputs sequence_to_sequence(Net& net, const Program&, Tensor hidden) {
  const Program& language = *net.arch.language;
  Outputs out = language.heads.find(Head::kSeq2SeqLm)->forward(net, language, std::move(hidden));
  net.last_hidden.reset();
  const Tensor logits = out.rest.front();
  add_pictures(net, out);
  out.rest.push_back(logits);
  net.image_hidden_states.reset();
  if (!net.job.padding) net.attention_mask.reset();
  return out;
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Program& language = *architecture.language;
  if (language.check != nullptr) language.check(architecture, job, issues);
  if (job.images_per_sample != 1) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/images_per_sample",
                      "Blip2Processor takes one picture for each text, and the class wants one with every text.", "1"});
  }
  if (job.preference != Preference::kNone) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/task",
                      "TRL's trainers on preferences and on generated answers want a chat template, and BLIP-2 has "
                      "none.",
                      ""});
  }
  if (job.loss != Loss::kDefault && architecture.num_decoder_layers == 0) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/loss",
         "BLIP-2's class computes its loss itself, from all logits: none takes its place. Use \"default\".",
         "default"});
  }
  if (job.packing) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/packing",
                      "Blip2Processor makes a row of each text and its picture: they are not packed.", "false"});
  }
  if (job.adapter.learns_prompt() && job.has_adapter()) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/adapter/kind",
         "PEFT's models with a learned prompt hand over no input_ids, without which BLIP-2's forward fails. "
         "Use \"lora\".",
         "lora"});
  }
  if (architecture.num_decoder_layers > 0 && job.checkpointing == Checkpointing::kSelectiveCoreAttention) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing/selective",
                      "Recomputing the core of attention alone is not modelled for T5. Use \"full\".", "full"});
  }
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, causal}, {Head::kSeq2SeqLm, sequence_to_sequence}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kCausalLm}};

// "_supports_flash_attn = False  # because self.qformer does not support FA2"
const Program kProgram = {.forward = forward,
                          .lm_head = language_head,
                          .heads = kHeads,
                          .inputs = inputs,
                          .attention = kNoFlash,
                          .check = check};

// Blip2ForConditionalGeneration: what it sees with lies beside a language model with its head.
std::string full_name_of(const Architecture&, std::string_view path) {
  const bool is_language = !path.empty() && !path.starts_with("vision_model.") && !path.starts_with("qformer.") &&
                           !path.starts_with("language_projection");
  return std::string{is_language ? "language_model." : ""}.append(path);
}

constexpr ClassFacts kFacts = {.flex_attention = false,
                               .text_input = false,
                               .text_alone = false,
                               .no_split = NoSplit::kAbsentToo,
                               .pictures = PictureRule::kOwnSize,
                               .full_name = full_name_of};

}  // namespace

// Without pixels Blip2VisionModel.forward raises a ValueError.
const Family kRows[] = {
    {"blip-2", "Blip2", "Blip2ForConditionalGeneration", kClasses, read_config, &kProgram, "model.decoder.layers",
     kFacts},
};

extern const FamilyRows blip_2_rows;
const FamilyRows blip_2_rows = kRows;

}  // namespace tidemark
