// T5, mT5 and UMT5: an encoder and a decoder with relative positions, RMS norms and no biases; attention in Python, and
// from transformers 5.15 on by the function that the attention interface hands out.
#include <string>

#include "core/families/biased_attention.hpp"
#include "core/families/family.hpp"
#include "core/layers/kv_cache.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/seq2seq.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/t5/configuration_t5.py: T5Config. `d_kv` times the heads need not be the width.
// `feed_forward_proj` is "ACT" or "gated-ACT", where "gated-gelu" means gelu_new. The classes tie the head whatever
// the file says.
void read_dimensions(ConfigFields& fields, Architecture& architecture, std::string_view standard_projection) {
  architecture.body_prefix = "";  // the classes hold encoder and decoder themselves, or a T5Model by another name
  architecture.positions_by_token = false;
  architecture.hidden_size = fields.required({"d_model", "hidden_size"});
  architecture.intermediate_size = fields.required({"d_ff"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"num_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.head_dim = fields.count({"d_kv", "head_dim"}, 64);
  architecture.num_kv_heads = architecture.num_heads;
  architecture.num_decoder_layers =
      fields.nullable({"num_decoder_layers"}, std::nullopt).value_or(architecture.num_layers);
  architecture.num_buckets = fields.count({"relative_attention_num_buckets"}, 32);

  const std::string projection = fields.text({"feed_forward_proj"}, standard_projection);
  constexpr std::string_view kGated = "gated-";
  architecture.gated_mlp = projection.compare(0, kGated.size(), kGated) == 0;
  std::string name = architecture.gated_mlp ? projection.substr(kGated.size()) : projection;
  if (projection == "gated-gelu") name = "gelu_new";
  // A file's own is set last (PreTrainedConfig.__post_init__): BLIP-2's T5 has "gelu".
  name = fields.text({"dense_act_fn"}, name);
  architecture.activation = activation_named(name, "feed_forward_proj", fields);

  const double dropout = fields.probability({"dropout_rate"}, 0.1);
  architecture.residual_dropout = dropout;
  architecture.embedding_dropout = dropout;
  architecture.attention_dropout = dropout;
  architecture.activation_dropout = dropout;
  architecture.classifier_dropout = fields.probability({"classifier_dropout"}, 0.0);
  architecture.tie_word_embeddings = true;
  const bool encoder_only = architecture.head == Head::kEncoder || architecture.head == Head::kTokenClassification;
  if (!fields.flag({"is_encoder_decoder"}, true) && !encoder_only) {
    fields.error("INVALID_VALUE", "is_encoder_decoder",
                 "This is an encoder alone: say \"architecture\": \"T5EncoderModel\".");
  }
  fields.accept({"is_gated_act", "n_positions"});
}

// The decoder differs in its depth alone. Of T5 and mT5 the first layer of each has the table of positions. Backward
// comes to the last layer first: the gradient of the shared bias that it makes is no sum yet, which the next layer
// allocates and all others add to in place. So the last is a kind of its own, and the one beside it none that stands
// for the others.
void add_decoder(Architecture& architecture, bool shares_positions) {
  Architecture decoder = architecture;
  decoder.num_layers = architecture.num_decoder_layers;
  architecture.parts.push_back(std::move(decoder));
  if (!shares_positions) return;
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  Architecture& part = architecture.parts.front();
  part.layer_kinds.assign(static_cast<std::size_t>(part.num_layers), 0);
  for (Architecture* stack : {&architecture, &part}) {
    if (stack->layer_kinds.empty()) continue;
    stack->layer_kinds.back() = 2;
    stack->layer_kinds.front() = 1;
  }
}

// "tie_word_embeddings": false of Flan-T5 only switches off the scaling of the decoder's output.
void read_t5_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, "relu");
  architecture.logit_scale = fields.flag({"tie_word_embeddings"}, true);
  add_decoder(architecture, true);
}

// transformers 5.12.1 models/mt5/configuration_mt5.py: MT5Config. mT5 never scales.
void read_mt5_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, "gated-gelu");
  fields.accept({"tie_word_embeddings"});
  add_decoder(architecture, true);
}

// transformers 5.12.1 models/umt5/configuration_umt5.py: UMT5Config. It always scales: the head is always tied.
void read_umt5_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, "gated-gelu");
  fields.accept({"tie_word_embeddings", "scalable_attention"});
  architecture.logit_scale = true;
  add_decoder(architecture, false);
}

constexpr const char* kNorm = "transformers 5.12 models/t5/modeling_t5.py: T5LayerNorm.forward";
constexpr const char* kFeedForward = "transformers 5.12 models/t5/modeling_t5.py: T5LayerFF.forward";
constexpr const char* kDense = "transformers 5.12 models/t5/modeling_t5.py: T5DenseActDense.forward";
constexpr const char* kGatedDense = "transformers 5.12 models/t5/modeling_t5.py: T5DenseGatedActDense.forward";
constexpr const char* kAttention = "transformers 5.12 models/t5/modeling_t5.py: T5Attention.forward";
constexpr const char* kBias = "transformers 5.12 models/t5/modeling_t5.py: T5Attention.compute_bias";
constexpr const char* kBlock = "transformers 5.12 models/t5/modeling_t5.py: T5Block.forward";
constexpr const char* kStack = "transformers 5.12 models/t5/modeling_t5.py: T5Stack.forward";
constexpr const char* kHead = "transformers 5.12 models/t5/modeling_t5.py: T5ForConditionalGeneration.forward";
constexpr const char* kClassifier = "transformers 5.12 models/t5/modeling_t5.py: T5ClassificationHead.forward";
constexpr const char* kTokens = "transformers 5.12 models/t5/modeling_t5.py: T5ForTokenClassification.forward";
constexpr const char* kSpan = "transformers 5.12 models/t5/modeling_t5.py: T5ForQuestionAnswering.forward";

/// What the class calls the modules outside its layers.
struct Names {
  const char *shared, *encoder, *encoder_norm, *decoder, *decoder_norm;
};
constexpr Names kOwn = {"shared", "encoder.block", "encoder.final_layer_norm", "decoder.block",
                        "decoder.final_layer_norm"};
// T5ForSequenceClassification and T5ForTokenClassification hold a model of their own.
constexpr Names kHeld = {"transformer.shared", "transformer.encoder.block", "transformer.encoder.final_layer_norm",
                         "transformer.decoder.block", "transformer.decoder.final_layer_norm"};

const Names& names_of(const Net& net) {
  const Head head = net.arch.head;
  return head == Head::kSequenceClassification || head == Head::kTokenClassification ? kHeld : kOwn;
}

bool is_umt5(const Net& net) {
  return net.arch.model_type == "umt5";
}

// The mean and the product in fp32, and back where the weight is in 16 bits.
Tensor t5_norm(Net& net, const char* name, const Tensor& x) {
  Scope in(net.tape, name, kNorm);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  MeanSquare square = mean_square(to(x, Dtype::kFp32));
  Tensor hidden = mul(x, std::move(square.root));
  if (is_half(weight.dtype())) hidden = to(std::move(hidden), weight.dtype());
  return mul(weight, std::move(hidden));
}

// "clamp inf values to enable fp16 training"
Tensor clamp_infinities(Net& net, Tensor x_in) {
  Tensor x = std::move(x_in);
  if (x.dtype() != Dtype::kFp16) return x;
  { Tensor infinite = net.tape.allocate(x.shape(), Dtype::kBool, "isinf"); }
  return clamp(std::move(x));
}

Tensor feed_forward(Net& net, const char* norm, const char* inner, const char* gate, const char* outer, Tensor hidden) {
  Scope in(net.tape, "DenseReluDense", kFeedForward);
  const Tensor residual = std::move(hidden);
  Tensor forwarded = t5_norm(net, norm, residual);
  {
    Scope dense(net.tape, "DenseReluDense", gate == nullptr ? kDense : kGatedDense);
    const Tensor x = std::move(forwarded);
    Tensor h = net.linear(inner, x, net.F);
    h = activate(net.arch.activation, std::move(h));
    if (gate != nullptr) {
      const Tensor activated = std::move(h);
      const Tensor straight = net.linear(gate, x, net.F);
      h = mul(activated, straight);
      h = dropout(std::move(h), net.arch.activation_dropout);
      h = net.wide_linear(outer, std::move(h), net.H);
    } else {
      h = dropout(std::move(h), net.arch.activation_dropout);
      h = net.wide_linear(outer, std::move(h), net.H);
    }
    forwarded = std::move(h);
  }
  Tensor dropped = dropout(forwarded, net.arch.residual_dropout);
  return add(residual, std::move(dropped));
}

// Of every pair of positions the bucket that their distance falls into.
Tensor buckets(Net& net, bool both_ways) {
  Tape& t = net.tape;
  const Shape square{net.S, net.S};
  const auto whole = [&](const char* op) { return t.allocate(square, Dtype::kInt64, op); };
  const auto real = [&](const char* op) { return t.allocate(square, Dtype::kFp32, op); };
  Tensor distance = whole("sub");
  Tensor result;
  if (both_ways) {
    Tensor later = t.allocate(square, Dtype::kBool, "gt");
    Tensor half = whole("to");
    result = whole("mul");
    half.reset();
    later.reset();
    distance = whole("abs");
  } else {
    Tensor none = whole("zeros_like");
    Tensor least = whole("min");
    none.reset();
    distance = whole("neg");
  }
  const Tensor small = t.allocate(square, Dtype::kBool, "lt");
  Tensor far = real("float");
  for (const char* op : {"div", "log", "div", "mul"}) far = real(op);
  far = whole("to");
  far = whole("add");
  {
    const Tensor last = whole("full_like");
    far = whole("min");
  }
  Tensor chosen = whole("where");
  return both_ways ? result : chosen;
}

// The table's row of each pair's bucket, [1, A, S, S].
Tensor position_bias(Net& net, bool both_ways) {
  constexpr const char* kTable = "layer.0.SelfAttention.relative_attention_bias";
  Scope in(net.tape, kTable, kBias);
  const Tensor bucket = buckets(net, both_ways);
  Tensor values = net.embedding(kTable, bucket, Dim(net.arch.num_buckets), net.A);
  values = permute(std::move(values), {2, 0, 1});
  return unsqueeze(std::move(values), 0);
}

/// One of the two attentions of a layer: its modules' names.
struct AttentionNames {
  const char *module, *norm, *q, *k, *v, *o;
};
constexpr AttentionNames kSelf = {"layer.0.SelfAttention",   "layer.0.layer_norm",      "layer.0.SelfAttention.q",
                                  "layer.0.SelfAttention.k", "layer.0.SelfAttention.v", "layer.0.SelfAttention.o"};
constexpr AttentionNames kCross = {"layer.1.EncDecAttention",   "layer.1.layer_norm",
                                   "layer.1.EncDecAttention.q", "layer.1.EncDecAttention.k",
                                   "layer.1.EncDecAttention.v", "layer.1.EncDecAttention.o"};

void keep_gradient(Tape& t, Node& n, Tensor* g, Tensor*) {
  t.hold(&n, g[0]);
}

// "position_bias.requires_grad = True": a leaf that is no parameter. The graph holds it, and its gradient, to the end.
Tensor as_leaf(Net& net, Tensor x) {
  const Checkpointing how = net.job.checkpointing;
  const bool checkpoints = how != Checkpointing::kNone && how != Checkpointing::kSelectiveCoreAttention;
  if (is_umt5(net) || !checkpoints) return x;
  x.change().requires_grad = true;
  Node* const leaf = net.tape.record("AccumulateGrad", keep_gradient, {&x});
  net.tape.hold(leaf, x);
  net.tape.attach(leaf, x);
  return x;
}

/// The release 5.N since which the attention interface runs it.
constexpr int kByInterface = 15;

bool by_interface(const Net& net) {
  return net.job.framework.at_least(5, kByInterface);
}

bool is_eager(const Net& net) {
  return !by_interface(net) || net.job.attention == AttentionKernel::kEager;
}

const Tensor& mask_of(const Net& net, bool cross) {
  return cross ? net.shared.cross_mask : net.shared.causal_mask;
}

/// What a layer's attention is made of.
struct States {
  Tensor q, k, v;          ///< [B, A, S, hd]
  Tensor bias;             ///< [1, A, S, K]
  Tensor scores, weights;  ///< [B, A, S, K], names of the forward's that live to its end
};

// The bias that the first layer makes and the others get; UMT5's layers make their own. Without a table it is zeros,
// which checkpointing makes require a gradient.
Tensor first_bias(Net& net, const States& of, bool cross, bool decoder) {
  Tensor bias;
  if (cross) {
    const Dtype dtype = of.scores.defined() ? of.scores.dtype() : of.q.dtype();  // since 5.15 the queries'
    bias = zeros(net.tape, Shape{Dim(1), net.A, of.q.dim(2), of.k.dim(2)}, dtype);
    bias = as_leaf(net, std::move(bias));
  } else {
    bias = position_bias(net, !decoder);
  }
  const Tensor& mask = mask_of(net, cross);
  if (mask.defined() && !by_interface(net)) bias = add(std::move(bias), mask);
  return bias;
}

// T5Attention.forward until 5.14, which multiplies before it has a bias
Tensor written_out(Net& net, States& of) {
  of.scores = add_in_place(std::move(of.scores), of.bias);
  of.weights = to(of.scores, Dtype::kFp32);
  of.weights = softmax(std::move(of.weights));
  of.weights = to(std::move(of.weights), of.scores.dtype());
  of.weights = dropout(std::move(of.weights), net.arch.attention_dropout);
  return matmul(of.weights, of.v);
}

// eager_attention_forward
Tensor eager(Net& net, const BiasedAttention& of) {
  Tensor weights = matmul(of.q, transpose(of.k, 3, 2));
  weights = mul_scalar(std::move(weights));
  weights = add(std::move(weights), of.bias);
  if (of.mask.defined()) weights = add(std::move(weights), of.mask);
  weights = softmax(std::move(weights));
  net.attention_weights = dropout(std::move(weights), net.arch.attention_dropout);
  return matmul(net.attention_weights, of.v);
}

}  // namespace

Tensor biased_attention(Net& net, const BiasedAttention& of) {
  net.attention_kernel = "eager";
  if (net.job.attention == AttentionKernel::kEager) return eager(net, of);
  // create_position_bias_mask: where the mask says no, the bias is the least number.
  Tensor bias = of.bias;
  if (of.mask.defined() || of.causal) {
    Tensor allowed = of.mask;
    if (!of.mask.defined()) allowed = net.tape.allocate(Shape{of.q.dim(2), of.k.dim(2)}, Dtype::kBool, "ge");
    const Tensor least = net.tape.allocate(Shape{}, bias.dtype(), "min_dtype");
    bias = where(std::move(allowed), std::move(bias), least);
  }
  bias = contiguous(std::move(bias));  // sdpa_attention_forward's name for it is there until the call returns
  return scaled_dot_product_attention(net, of.q, of.k, of.v, bias, net.arch.attention_dropout, false, false);
}

namespace {

Tensor attend(Net& net, const AttentionNames& names, const Tensor& hidden, bool decoder) {
  Scope in(net.tape, names.module, kAttention);
  const bool cross = &names == &kCross;
  const auto heads = [&net](Tensor x) {
    const Shape four{x.dim(0), x.dim(1), net.A, net.hd};
    return transpose(view(std::move(x), four), 1, 2);
  };
  States of;
  of.q = heads(net.linear(names.q, hidden, net.Q));
  const Tensor& states = cross ? net.shared.encoder_states : hidden;
  of.k = heads(net.linear(names.k, states, net.Q));
  of.v = heads(net.linear(names.v, states, net.Q));
  if (decoder) keep_keys(net, of.k, of.v, !cross);
  if (!by_interface(net)) of.scores = matmul(of.q, transpose(of.k, 3, 2));
  of.bias = is_umt5(net) ? Tensor() : cross ? net.shared.cross_bias : net.shared.bias;
  if (!of.bias.defined()) of.bias = first_bias(net, of, cross, decoder);
  if (!is_umt5(net)) (cross ? net.shared.cross_bias : net.shared.bias) = of.bias;
  net.attention_kernel = "eager";
  Tensor out = !by_interface(net)
                   ? written_out(net, of)
                   : biased_attention(net, {of.q, of.k, of.v, of.bias, mask_of(net, cross), decoder && !cross});
  if (by_interface(net)) of.weights = std::move(net.attention_weights);
  out = contiguous(transpose(std::move(out), 1, 2));
  const Shape rows{out.dim(0), out.dim(1), net.Q};
  out = reshape(std::move(out), rows);
  return net.linear(names.o, std::move(out), net.H);
}

// T5LayerSelfAttention.forward, T5LayerCrossAttention.forward
Tensor attention_layer(Net& net, const AttentionNames& names, Tensor hidden, bool decoder) {
  const Tensor residual = std::move(hidden);
  const Tensor normed = t5_norm(net, names.norm, residual);
  const Tensor output = attend(net, names, normed, decoder);
  Tensor dropped = dropout(output, net.arch.residual_dropout);
  return add(residual, std::move(dropped));
}

Tensor encoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const Tensor attended = attention_layer(net, kSelf, std::move(hidden), false);
  Tensor h = clamp_infinities(net, attended);
  const char* gate = net.arch.gated_mlp ? "layer.1.DenseReluDense.wi_1" : nullptr;
  h = feed_forward(net, "layer.1.layer_norm",
                   gate != nullptr ? "layer.1.DenseReluDense.wi_0" : "layer.1.DenseReluDense.wi", gate,
                   "layer.1.DenseReluDense.wo", std::move(h));
  return clamp_infinities(net, std::move(h));
}

Tensor decoder_layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const Tensor attended = attention_layer(net, kSelf, std::move(hidden), true);
  Tensor h = clamp_infinities(net, attended);
  const Tensor crossed = attention_layer(net, kCross, std::move(h), true);
  h = clamp_infinities(net, crossed);
  const char* gate = net.arch.gated_mlp ? "layer.2.DenseReluDense.wi_1" : nullptr;
  h = feed_forward(net, "layer.2.layer_norm",
                   gate != nullptr ? "layer.2.DenseReluDense.wi_0" : "layer.2.DenseReluDense.wi", gate,
                   "layer.2.DenseReluDense.wo", std::move(h));
  return clamp_infinities(net, std::move(h));
}

// T5Stack.forward behind its masks: inputs_embeds keeps its name to the end.
Tensor run_stack(Net& net, const Stack& stack, const char* norm, const Tensor& embeds) {
  Tensor hidden = dropout(embeds, net.arch.embedding_dropout);
  hidden = net.layers(stack, std::move(hidden));
  Scope in(net.tape, "", kStack);
  hidden = t5_norm(net, norm, hidden);
  hidden = dropout(std::move(hidden), net.arch.embedding_dropout);
  net.shared = {};
  return hidden;
}

bool encoder_only(const Net& net) {
  return net.arch.head == Head::kEncoder || net.arch.head == Head::kTokenClassification;
}

Tensor encode(Net& net, const Names& names) {
  Scope in(net.tape, "encoder", kStack);
  const Tensor embeds = net.token_embedding(names.shared, net.H);
  net.shared.causal_mask = bidirectional_mask(net, embeds, is_eager(net), net.S, net.S);
  Stack stack{names.encoder, net.arch.num_layers, encoder_layer};
  if (encoder_only(net)) stack.then = Phase::kLoss;
  return run_stack(net, stack, names.encoder_norm, embeds);
}

Tensor decode(Net& net, const Names& names, const Tensor& ids, const Tensor& encoder_states, Net& encoder) {
  Scope in(net.tape, "decoder", kStack);
  const Tensor embeds = net.tied_embedding_of(names.shared, ids);
  make_causal_masks(net, embeds, {.eager = is_eager(net), .whole = true});
  net.attention_mask = encoder.attention_mask;
  net.shared.cross_mask = bidirectional_mask(net, encoder_states, is_eager(net), net.S, encoder.S);
  net.attention_mask.reset();
  net.shared.encoder_states = encoder_states;
  Stack stack{names.decoder, net.arch.num_layers, decoder_layer};
  stack.then = Phase::kLoss;
  return run_stack(net, stack, names.decoder_norm, embeds);
}

Tensor t5_forward(Net& net) {
  const Names& names = names_of(net);
  Tensor encoder_states = encode(net, names);
  if (encoder_only(net)) return encoder_states;
  encoder_states = for_decoder(net, std::move(encoder_states));
  Net& decoder = net.part(net.arch.parts.front(), decoder_rows(net), decoder_length(net));
  const Tensor ids = shift_right(net);
  net.encoder_hidden = encoder_states;
  return decode(decoder, names, ids, encoder_states, net);
}

Tensor t5_lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

Outputs conditional_generation(Net& net, const Program& program, Tensor hidden) {
  if (net.arch.logit_scale) hidden = mul_scalar(std::move(hidden));
  return seq2seq_loss(net, program.lm_head(net, hidden));
}

Outputs sequence_classification(Net& net, const Program&, Tensor hidden) {
  Tensor sentence = eos_states(net, hidden);
  return with_encoder_states(net, classified(net, classification_head(net, std::move(sentence), kClassifier)));
}

Outputs token_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kTokens);
  const Tensor dropped = dropout(std::move(hidden), net.arch.classifier_dropout);
  Tensor logits = net.classifier("classifier", dropped, Dim(net.arch.num_labels), true);
  Outputs out;
  out.loss = plain_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

Outputs question_answering(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kSpan);
  Tensor logits = net.classifier("qa_outputs", std::move(hidden), Dim(2), true);
  return with_encoder_states(net, spans(net, std::move(logits)));
}

constexpr HeadForward kHeads[] = {{Head::kSeq2SeqLm, conditional_generation},
                                  {Head::kSequenceClassification, sequence_classification},
                                  {Head::kTokenClassification, token_classification},
                                  {Head::kQuestionAnswering, question_answering},
                                  {Head::kEncoder, body_alone},
                                  {Head::kNone, seq2seq_body}};

// T5Block.forward returns the bias that it was handed, and each layer's gradient of it ends in a cycle of references:
// with padding as large as all scores, and there until Python's collector comes by. UMT5's layers have biases of their
// own.
void check(const Architecture& a, const TrainingJob& job, Issues& issues) {
  const DataParallel& how = job.data_parallel;
  const bool lingers = job.padding || (how.is_sharded() && how.sharding == Sharding::kFsdp1);
  const bool checkpoints =
      job.checkpointing != Checkpointing::kNone && job.checkpointing != Checkpointing::kSelectiveCoreAttention;
  if (a.num_decoder_layers == 0 || a.model_type == "umt5" || !lingers || !checkpoints || !job.use_reentrant) return;
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, "/use_reentrant",
       "Re-entrant checkpointing of T5 with a padding mask or under FSDP 1 leaves gradients of position biases to "
       "Python's garbage collector: what they hold at a moment is not known. Set \"use_reentrant\" to false.",
       "false"});
}

}  // namespace

// No `_supports_sdpa` until 5.14, no `_supports_flash_attn`.
const Program kT5Program = {.forward = t5_forward,
                            .lm_head = t5_lm_head,
                            .heads = kHeads,
                            .inputs = seq2seq_inputs,
                            .attention = sdpa_alone_since(kByInterface),
                            .check = check};

const Family kRows[] = {
    {"t5", "T5", "T5ForConditionalGeneration", kT5Classes, read_t5_config, &kT5Program, "encoder.block", kNoFlex},
    {"mt5", "MT5", "MT5ForConditionalGeneration", kT5Classes, read_mt5_config, &kT5Program, "encoder.block", kNoFlex},
    {"umt5", "UMT5", "UMT5ForConditionalGeneration", kT5Classes, read_umt5_config, &kT5Program, "encoder.block",
     kNoFlex},
};

extern const FamilyRows t5_rows;
const FamilyRows t5_rows = kRows;

}  // namespace tidemark
