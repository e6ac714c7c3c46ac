// BLIP: BLIP-2's ViT with attention of its own, and BERT's layers that write what it sees, each of which attends to its
// patches.
#include "core/families/blip.hpp"

#include <string>
#include <utility>

#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/families/towers.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "transformers 5.24 models/blip/modeling_blip.py: BlipForConditionalGeneration.forward";
constexpr const char* kTowerAttention = "transformers 5.24 models/blip/modeling_blip.py: BlipAttention.forward";
constexpr const char* kText = "transformers 5.24 models/blip/modeling_blip_text.py: BlipTextModel.forward";
constexpr const char* kEmbeddings = "transformers 5.24 models/blip/modeling_blip_text.py: BlipTextEmbeddings.forward";
constexpr const char* kLayer = "transformers 5.24 models/blip/modeling_blip_text.py: BlipTextLayer.forward";
constexpr const char* kAttention = "transformers 5.24 models/blip/modeling_blip_text.py: BlipTextSelfAttention.forward";
constexpr const char* kOutput = "transformers 5.24 models/blip/modeling_blip_text.py: BlipTextOutput.forward";
constexpr const char* kHead = "transformers 5.24 models/blip/modeling_blip_text.py: BlipTextLMHeadModel.forward";

// transformers 5.24 models/blip/configuration_blip.py: BlipTextConfig.
void read_text(ConfigFields& fields, Architecture& architecture) {
  architecture.vocab_size = fields.count({"vocab_size"}, 30524);
  architecture.hidden_size = fields.count({"hidden_size"}, 768);
  architecture.intermediate_size = fields.count({"intermediate_size"}, 3072);
  architecture.num_layers = fields.count({"num_hidden_layers"}, 12);
  architecture.num_heads = architecture.num_kv_heads = fields.count({"num_attention_heads"}, 8);
  architecture.max_positions = fields.count({"max_position_embeddings"}, 512);
  derive_head_dim(fields, architecture);
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_bias = architecture.attention_out_bias = true;
  architecture.mlp_bias = architecture.norm_bias = architecture.head_bias = true;
  architecture.residual_dropout = architecture.embedding_dropout = fields.probability({"hidden_dropout_prob"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_probs_dropout_prob"}, 0.0);
  if (!fields.flag({"is_decoder"}, true)) {
    fields.error("INVALID_VALUE", "is_decoder", "A text that does not attend to its picture is not modelled.");
  }
  if (fields.probability({"label_smoothing"}, 0.0) > 0.0) {
    fields.error("UNSUPPORTED_VALUE", "label_smoothing", "A loss of smoothed labels is not modelled here: set it to 0.",
                 "0");
  }
  fields.accept({"model_type", "architectures", "torch_dtype", "dtype", "_name_or_path", "add_cross_attention",
                 "encoder_hidden_size", "projection_dim", "tie_word_embeddings", "sep_token_id"});
  fields.report_unread("blip_text_model");
}

Tensor tower_attention(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attn", kTowerAttention);
  const Tensor x = std::move(hidden);
  const BlipHeads heads = blip_heads(net, x);
  Tensor scores = matmul(heads.q, transpose(heads.k, 2, 3));
  scores = mul_scalar(std::move(scores));
  net.attention_weights = softmax(scores);  // the layer has a name for it
  net.attention_weights = dropout(std::move(net.attention_weights), net.arch.attention_dropout);
  Tensor context = permute(matmul(net.attention_weights, heads.v), {0, 2, 1, 3});
  context = reshape(std::move(context), Shape{net.B, net.S, net.H});
  return net.linear("self_attn.projection", context, net.H, true);
}

Tensor tower_layer(Net& net, Tensor hidden) {
  return blip_layer(net, std::move(hidden), tower_attention);
}

/// Names of one of a layer's two attentions.
struct AttentionNames {
  const char *module, *query, *key, *value, *output, *dense, *norm;
};
constexpr AttentionNames kSelf = {
    "attention.self",   "attention.self.query",   "attention.self.key",        "attention.self.value",
    "attention.output", "attention.output.dense", "attention.output.LayerNorm"};
constexpr AttentionNames kCross = {"crossattention.self",
                                   "crossattention.self.query",
                                   "crossattention.self.key",
                                   "crossattention.self.value",
                                   "crossattention.output",
                                   "crossattention.output.dense",
                                   "crossattention.output.LayerNorm"};

Tensor by_heads(const Net& net, Tensor x_in) {
  Tensor x = std::move(x_in);
  const Shape four{x.dim(0), x.dim(1), net.A, net.hd};
  return transpose(view(std::move(x), four), 1, 2);
}

/// What an attention returns: both have a name where it is called.
struct Attended {
  Tensor context, probabilities;
};

Attended attend(Net& net, const AttentionNames& names, const Tensor& hidden, const Tensor& states, const Tensor& mask) {
  Scope in(net.tape, names.module, kAttention);
  const Tensor q = by_heads(net, net.linear(names.query, hidden, net.Q, true));
  const Tensor k = by_heads(net, net.linear(names.key, states, net.Q, true));
  const Tensor v = by_heads(net, net.linear(names.value, states, net.Q, true));
  Attended out;
  Tensor scores = matmul(q, transpose(k, 2, 3));
  scores = mul_scalar(std::move(scores));
  if (mask.defined()) scores = add(std::move(scores), mask);
  out.probabilities = softmax(scores);
  const Tensor dropped = dropout(out.probabilities, net.arch.attention_dropout);
  out.context = matmul(dropped, v);
  out.context = contiguous(permute(std::move(out.context), {0, 2, 1, 3}));
  out.context = view(std::move(out.context), Shape{net.B, net.S, net.Q});
  return out;
}

/// BlipTextAttention.forward; `weights`: the layer's name for what it returns beside.
Tensor attention_block(Net& net, const AttentionNames& names, const Tensor& hidden, const Tensor& states,
                       const Tensor& mask, Tensor& weights) {
  Attended attended = attend(net, names, hidden, states, mask);
  Tensor out = bert_join(net, names.output, names.dense, names.norm, kOutput, attended.context, hidden);
  weights = std::move(attended.probabilities);
  return out;
}

Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  const Tensor hidden = std::move(hidden_in);
  Tensor attended, weights;
  attended = attention_block(net, kSelf, hidden, hidden, net.shared.causal_mask, weights);
  attended = attention_block(net, kCross, attended, net.shared.encoder_states, {}, weights);
  Tensor wide;
  {
    Scope wider(net.tape, "intermediate", kLayer);
    wide = net.linear("intermediate.dense", attended, net.F, true);
    wide = activate(net.arch.activation, std::move(wide));
  }
  return bert_join(net, "output", "output.dense", "output.LayerNorm", kOutput, wide, attended);
}

Tensor embeddings(Net& net) {
  const char* const kModule = "text_decoder.bert.embeddings";
  Scope in(net.tape, kModule, kEmbeddings);
  Tape& t = net.tape;
  t.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
  const Tensor embeds = net.token_embedding("text_decoder.bert.embeddings.word_embeddings", net.H);
  const Tensor places =
      net.embedding("text_decoder.bert.embeddings.position_embeddings", ids, Dim(net.arch.max_positions), net.H);
  const Tensor sum = add_in_place(embeds, places);
  Tensor h = net.layer_norm("text_decoder.bert.embeddings.LayerNorm", sum);
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// BlipTextModel.forward on what the tower has made.
Tensor write(Net& net) {
  Scope in(net.tape, "text_decoder.bert", kText);
  Tensor h = embeddings(net);
  net.model_locals = {h};
  make_causal_masks(net, h, {.eager = true});
  net.shared.encoder_states = net.image_hidden_states;
  Stack stack{"text_decoder.bert.encoder.layer", net.arch.num_layers, layer};
  stack.hands_states = true;
  return net.layers(stack, std::move(h));
}

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  const Architecture& eye = net.arch.parts.front();
  Net& tower = net.part(eye, net.B, Dim(eye.max_positions));
  tower.pixel_values = net.pixel_values;
  BlipSeen seen = blip_tower(tower, tower_layer);
  tower.pixel_values.reset();
  net.wrapper_locals.push_back(std::move(seen.pooled));
  net.image_hidden_states = std::move(seen.last);
  return write(net);
}

constexpr BertHeadNames kNames = {"text_decoder.cls.predictions", "text_decoder.cls.predictions.transform.dense",
                                  "text_decoder.cls.predictions.transform.LayerNorm",
                                  "text_decoder.cls.predictions.decoder"};

// The whole has no get_output_embeddings(): all-linear means its head, too.
Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, kNames.module, kHead);
  Tensor logits = bert_predictions(net, kNames, std::move(hidden), net.H, net.arch.activation);
  if (net.census == nullptr) return logits;
  for (Module& module : net.census->outside) {
    if (module.path == kNames.decoder) module.is_output_head = false;
  }
  return logits;
}

const Program kLanguage = {write, lm_head};

// BlipConfig, whose __post_init__ sets encoder_hidden_size.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.parts.push_back(read_blip_tower(fields, false));
  architecture.language = &kLanguage;
  fields.accept({"projection_dim", "logit_scale_init_value", "image_text_hidden_size", "label_smoothing",
                 "initializer_factor", "initializer_range"});
}

// The class's own loss, in the model's dtype, of a shifted copy that keeps its name.
Outputs caption(Net& net, const Program& program, Tensor hidden) {
  Outputs out;
  const Tensor logits = program.lm_head(net, std::move(hidden));
  out.rest = {logits, std::move(net.image_hidden_states)};
  if (net.job.has_outer_loss()) return out;
  Scope in(net.tape, "", kHead);
  const Dim rows(net.S.n() - 1);
  const Tensor shifted = contiguous(narrow(logits, 1, 0, rows));
  Tensor labels = net.tape.allocate(Shape{Dim(net.B.n() * rows.n())}, Dtype::kInt64, "labels");
  out.loss = cross_entropy(view(shifted, Shape{labels.dim(0), net.V}), labels);
  return out;
}

void inputs(Net& net) {
  text_inputs(net);
  const Architecture& eye = net.arch.parts.front();
  const Dim side(eye.image_size);
  net.pixel_values =
      net.tape.allocate(Shape{net.B, Dim(eye.num_channels), side, side}, net.weight_dtype(4), "pixel_values");
}

// The loss is the class's own, of all logits; its processor makes a row of a text and its picture.
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  const auto refuse = [&](bool asked, const char* path, const char* why, const char* instead) {
    if (asked) issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, path, why, instead});
  };
  refuse(job.images_per_sample != 1, "/images_per_sample",
         "BlipProcessor takes one picture for each text, and the class wants one with every text.", "1");
  refuse(job.preference != Preference::kNone, "/task",
         "TRL's trainers on preferences and on generated answers want a chat template, and BLIP has none.", "");
  refuse(job.loss != Loss::kDefault, "/loss",
         "BLIP's class computes its loss itself, from all logits: none takes its place. Use \"default\".", "default");
  refuse(job.packing, "/packing", "BlipProcessor makes a row of each text and its picture: they are not packed.",
         "false");
  refuse(
      job.adapter.learns_prompt() && job.has_adapter(), "/adapter/kind",
      "PEFT's models with a learned prompt hand over no input_ids, without which BLIP's forward fails. Use \"lora\".",
      "lora");
  const bool prepares = job.method == Method::kQlora && job.quantization.prepare_kbit != PrepareKbit::kOff;
  const bool asks = job.use_reentrant || job.method == Method::kLora || prepares;
  refuse(
      job.has_adapter() && job.checkpointing != Checkpointing::kNone && asks, "/gradient_checkpointing",
      "PEFT makes checkpointed models' embeddings ask for a gradient, and BLIP adds positions to these in place, which "
      "fails. Use \"none\".",
      "none");
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, caption}};
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kCausalLm}};
const Program kProgram = {.forward = forward,
                          .lm_head = lm_head,
                          .heads = kHeads,
                          .inputs = inputs,
                          .attention = kEagerAlone,
                          .check = check};
constexpr ClassFacts kFacts = {.flex_attention = false,
                               .text_input = false,
                               .text_alone = false,
                               .no_split = NoSplit::kEmbeddings,
                               .pictures = PictureRule::kOwnSize,
                               .full_name = name_as_is};

}  // namespace

const Family kRows[] = {
    {"blip", "Blip", "BlipForConditionalGeneration", kClasses, read_config, &kProgram,
     "text_decoder.bert.encoder.layer", kFacts},
};

extern const FamilyRows blip_rows;
const FamilyRows blip_rows = kRows;

}  // namespace tidemark
