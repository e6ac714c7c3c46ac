// CTRL: a decoder of 2019 with computed positions in fp32, a mask of its own and no kernel for its attention.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/ctrl/configuration_ctrl.py: CTRLConfig. Every projection has a bias (modeling_ctrl.py).
void read_ctrl_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"n_embd", "hidden_size"});
  architecture.intermediate_size = fields.required({"dff"});
  architecture.num_layers = fields.required({"n_layer", "num_hidden_layers"});
  architecture.num_heads = fields.required({"n_head", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"n_positions", "max_position_embeddings"}, 256);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.head_bias = true;
  architecture.activation = Activation::kRelu;
  architecture.residual_dropout = fields.probability({"resid_pdrop"}, 0.1);
  architecture.embedding_dropout = fields.probability({"embd_pdrop"}, 0.1);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"n_ctx", "attn_pdrop"});  // in the published file; the class has no such
}

constexpr const char* kModel = "transformers 5.12 models/ctrl/modeling_ctrl.py: CTRLModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/ctrl/modeling_ctrl.py: EncoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/ctrl/modeling_ctrl.py: MultiHeadAttention.forward";
constexpr const char* kScores = "transformers 5.12 models/ctrl/modeling_ctrl.py: scaled_dot_product_attention";
constexpr const char* kHead = "transformers 5.12 models/ctrl/modeling_ctrl.py: CTRLLMHeadModel.forward";

constexpr DecoderHeads kHeads = {
    .sequence = "transformers 5.12 models/ctrl/modeling_ctrl.py: CTRLForSequenceClassification.forward",
    .sequence_module = "classifier"};

constexpr ClassSuffix kClasses[] = {{"LMHeadModel", Head::kCausalLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"Model", Head::kNone}};

// The release 5.N that wrote it again: attention by transformers' interface, positions in the rows' dtype.
constexpr int kByInterface = 13;

bool by_interface(const Net& net) {
  return net.job.framework.at_least(5, kByInterface);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  const Dtype dtype = by_interface(net) ? net.weight_dtype(2) : Dtype::kFp32;
  t.buffer("transformer.pos_encoding", net.arch.max_positions * net.H.n() * size_of(dtype));
  Tensor ids = t.allocate(Shape{Dim(1), net.S}, Dtype::kInt64, "position_ids");
  if (net.attention_mask.defined() && !by_interface(net)) {
    // (1.0 - attention_mask) * finfo.min, in the weights' dtype
    const Shape row{net.B, Dim(1), Dim(1), net.S};
    Tensor mask = t.allocate(row, net.job.recipe.weights, "to");
    Tensor inverted = t.allocate(row, mask.dtype(), "rsub");
    net.shared.sliding_mask = t.allocate(row, mask.dtype(), "mul");
  }
  Tensor embeds = net.token_embedding("transformer.w", net.H);
  if (by_interface(net)) {
    make_causal_masks(net, embeds, {runs_eagerly(net), false, false});
  } else {
    net.shared.causal_mask = t.allocate(Shape{net.S, net.S}, Dtype::kFp32, "triu");
  }
  embeds = scale_in_place(std::move(embeds));
  Tensor positions = t.allocate(Shape{Dim(1), net.S, net.H}, dtype, "index");
  Tensor h = add(embeds, positions);
  h = add_scalar(std::move(h));  // no token types: a plain zero
  net.model_locals = {std::move(ids), std::move(embeds), std::move(positions)};
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// All its tensors have names, and live until it returns.
Tensor weighted(Net& net, const Tensor& q, const Tensor& k, const Tensor& v) {
  Scope in(net.tape, "multi_head_attention", kScores);
  net.attention_kernel = "eager";
  const Tensor product = matmul(q, permute(k, {0, 1, 3, 2}));
  Tensor scores = mul_scalar(product);
  {
    const Tensor mask = mul_scalar(net.shared.causal_mask);
    scores = add_in_place(std::move(scores), mask);
  }
  if (net.shared.sliding_mask.defined()) scores = add(std::move(scores), net.shared.sliding_mask);
  net.attn_weights = softmax(scores);
  return matmul(net.attn_weights, v);
}

Tensor attend(Net& net, const Tensor& normed) {
  Scope in(net.tape, "multi_head_attention", kAttention);
  Tensor q = net.linear("multi_head_attention.Wq", normed, net.H, true);
  Tensor k = net.linear("multi_head_attention.Wk", normed, net.H, true);
  Tensor v = net.linear("multi_head_attention.Wv", normed, net.H, true);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  if (by_interface(net)) {
    AttentionOptions options = encoder_attention(net);
    options.dropout = 0;
    options.causal = true;
    Tensor attended = attention(net, q, k, v, options);
    return net.linear("multi_head_attention.dense", std::move(attended), net.H, true);
  }
  Tensor out = weighted(net, q, k, v);
  const Tensor scaled = permute(std::move(out), {0, 2, 1, 3});
  const Tensor rows = reshape(scaled, Shape{net.B, net.S, net.H});
  return net.linear("multi_head_attention.dense", rows, net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  const double p = net.arch.residual_dropout;
  const Tensor normed = net.layer_norm("layernorm1", x);
  const Tensor attended = attend(net, normed);
  const Tensor dropped = dropout(attended, p);
  const Tensor out1 = add(x, dropped);
  const Tensor out2 = net.layer_norm("layernorm2", out1);
  Tensor fed = net.linear("ffn.0", out2, net.F, true);
  fed = relu(std::move(fed));
  fed = net.linear("ffn.2", std::move(fed), net.H, true);
  fed = dropout(std::move(fed), p);
  Tensor sum = add(out1, fed);
  net.return_weights();
  return sum;
}

Tensor norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kModel);
  return net.layer_norm("transformer.layernorm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V, true);
}

constexpr ClassFacts kFacts = {.flex_attention = false, .no_split = NoSplit::kNone};

}  // namespace

// CTRLPreTrainedModel names no checkpointing; until transformers 5.12 its positions made the hidden states fp32, which
// layers in 16 bits refuse outside autocast.
const Program kCtrlProgram = {.forward = one_stack<embed, layer, norm>,
                              .lm_head = head,
                              .own_loss = OwnLoss::kModelDtype,
                              .decoder_heads = kHeads,
                              .attention = sdpa_alone_since(kByInterface),
                              .checkpoints = false,
                              .dropout_calls = DropoutCalls::kNone,
                              .in_16_bits_since = kByInterface};

const Family kRows[] = {
    {"ctrl", "CTRL", "CTRLLMHeadModel", kClasses, read_ctrl_config, &kCtrlProgram, "transformer.h", kFacts},
};

extern const FamilyRows ctrl_rows;
const FamilyRows ctrl_rows = kRows;

}  // namespace tidemark
