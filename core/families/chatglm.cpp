// ChatGLM 2 and 3, and GLM-4 in its first files: the code lies beside the weights on the Hugging Face Hub, not in
// transformers. Read from public copies of THUDM/chatglm3-6b and THUDM/glm-4-9b-chat modeling_chatglm.py (rotation is
// scripted there; taken operation by operation).
#include "core/families/family.hpp"
#include "core/families/remote_code.hpp"

namespace tidemark {
namespace {

// The two generations share the model type; the vocabulary tells them apart: the older one's tensors are [S, B, H].
bool is_sequence_first(const Architecture& architecture) {
  constexpr Count kOlderVocabulary = 65024;
  return architecture.vocab_size == kOlderVocabulary;
}
bool is_sequence_first(const Net& net) {
  return is_sequence_first(net.arch);
}

// chatglm3-6b configuration_chatglm.py: ChatGLMConfig.
void read_chatglm_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.intermediate_size = fields.required({"ffn_hidden_size", "intermediate_size"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"padded_vocab_size", "vocab_size"});
  architecture.max_positions = fields.count({"seq_length"}, 2048);
  architecture.head_dim = fields.count({"kv_channels", "head_dim"}, 128);
  const bool grouped = fields.flag({"multi_query_attention"}, false);
  const Count groups = fields.count({"multi_query_group_num", "num_key_value_heads"}, 1);
  architecture.num_kv_heads = grouped ? groups : architecture.num_heads;
  architecture.rotary_dim = architecture.head_dim / 2;
  architecture.mlp_bias = fields.flag({"add_bias_linear"}, false);
  const bool biased = fields.flag({"add_qkv_bias"}, false);
  architecture.attention_bias = architecture.mlp_bias || biased;
  architecture.attention_out_bias = architecture.mlp_bias;
  architecture.final_norm = fields.flag({"post_layer_norm"}, true);
  architecture.residual_dropout = fields.probability({"hidden_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"vocab_size", "num_hidden_layers", "num_key_value_heads", "head_dim", "intermediate_size",
                 "rope_ratio", "original_rope", "rmsnorm", "layernorm_epsilon", "apply_query_key_layer_scaling",
                 "quantization_bit", "attention_softmax_in_fp32", "bias_dropout_fusion", "fp32_residual_connection",
                 "apply_residual_connection_post_layernorm", "pre_seq_len", "prefix_projection", "classifier_dropout"});
}

constexpr const char* kModel = "chatglm3-6b modeling_chatglm.py: ChatGLMModel.forward";
constexpr const char* kRotary = "chatglm3-6b modeling_chatglm.py: RotaryEmbedding.forward_impl";
constexpr const char* kLayer = "chatglm3-6b modeling_chatglm.py: GLMBlock.forward";
constexpr const char* kAttention = "chatglm3-6b modeling_chatglm.py: SelfAttention.forward";
constexpr const char* kCore = "chatglm3-6b modeling_chatglm.py: CoreAttention.forward";
constexpr const char* kNorm = "chatglm3-6b modeling_chatglm.py: RMSNorm.forward";
constexpr const char* kMlp = "chatglm3-6b modeling_chatglm.py: MLP.forward";
constexpr const char* kHead = "chatglm3-6b modeling_chatglm.py: ChatGLMForConditionalGeneration.forward";

// The tables of all positions that the model was made for, cosine and sine side by side, in the weights' dtype; what is
// used of them is a view.
void rotary_table(Net& net) {
  Scope in(net.tape, "rotary_pos_emb", kRotary);
  Tape& t = net.tape;
  const Dtype dtype = net.weight_dtype(2);
  const Dim half(net.arch.rotary_dim / 2), positions(net.arch.max_positions);
  t.buffer("transformer.rotary_pos_emb.inv_freq", half.n() * size_of(dtype));
  const Shape angles{positions, half}, pairs{positions, half, Dim(2)};
  const Tensor outer = t.allocate(angles, Dtype::kFp32, "outer");
  Tensor cache;
  {
    const Tensor cos = t.allocate(angles, Dtype::kFp32, "cos"), sin = t.allocate(angles, Dtype::kFp32, "sin");
    cache = t.allocate(pairs, Dtype::kFp32, "stack");
  }
  net.shared.cos = to(std::move(cache), dtype);
}

// get_masks: what pads is told by three products of [B, S, S] in fp32.
void padding_mask(Net& net) {
  if (!net.job.padding) return;
  Tape& t = net.tape;
  const Shape square{net.B, net.S, net.S};
  Tensor mask = t.allocate(square, Dtype::kFp32, "ones");
  mask = t.allocate(square, Dtype::kFp32, "mul");
  const Tensor less = t.allocate(square, Dtype::kBool, "lt");
  net.shared.causal_mask = view(less, Shape{net.B, Dim(1), net.S, net.S});
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.token_embedding("transformer.embedding.word_embeddings", net.H);
  if (is_sequence_first(net)) embeds = contiguous(transpose(std::move(embeds), 0, 1));
  net.model_locals = {embeds};
  padding_mask(net);
  rotary_table(net);
  return embeds;
}

// The product with the weight is made before the result is turned back.
Tensor norm_by(Net& net, const char* name, Tensor x_in) {
  Scope in(net.tape, name, kNorm);
  const Tensor x = std::move(x_in);
  const Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  MeanSquare square = mean_square(to(x, Dtype::kFp32));
  const Tensor hidden = mul(x, std::move(square.root));
  Tensor scaled = mul(weight, hidden);
  return to(std::move(scaled), x.dtype());
}

// apply_rotary_pos_emb: neighbours in the first half of each head are pairs; x is [S, B, heads, hd] or [B, heads, S,
// hd].
Tensor turned(Net& net, const Tensor& x) {
  const Count rotary = net.arch.rotary_dim;
  const Tensor turning = narrow(x, -1, 0, Dim(rotary));
  const Tensor still = narrow(x, -1, rotary, Dim(x.size(-1) - rotary));
  const Tensor even = every_other(turning, 0), odd = every_other(turning, 1);
  const Dim half(rotary / 2);
  Tensor table = narrow(net.shared.cos, 0, 0, net.S);
  const Shape beside =
      is_sequence_first(net) ? Shape{net.S, Dim(1), Dim(1), half, Dim(2)} : Shape{Dim(1), Dim(1), net.S, half, Dim(2)};
  table = view(std::move(table), beside);
  const Tensor cos = select(table, 4), sin = select(table, 4);
  Tensor left = mul(even, cos);
  Tensor right = mul(odd, sin);
  Tensor first = sub(std::move(left), std::move(right));
  left = mul(odd, cos);
  right = mul(even, sin);
  Tensor second = add(std::move(left), std::move(right));
  Tensor pairs = stack_last(std::move(first), std::move(second));
  pairs = view(std::move(pairs), turning.shape());
  return cat({&pairs, &still}, -1);
}

// Keys and values are copied out for all heads, whatever attention runs.
Tensor for_all_heads(Net& net, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const int heads = is_sequence_first(net) ? 2 : 1;
  const Dim times(net.A.n() / net.Kv.n());
  const Tensor wide = unsqueeze(x, heads + 1);
  Shape five = wide.shape();
  five.dims[heads + 1] = times;
  Tensor copied = contiguous(expand(wide, five));
  Shape four = x.shape();
  four.dims[heads] = net.A;
  four.make_contiguous();
  return view(std::move(copied), four);
}

Tensor core(Net& net, const Tensor& q_in, const Tensor& k_in, const Tensor& v_in) {
  Scope in(net.tape, "core_attention", kCore);
  const bool first = is_sequence_first(net);
  const auto heads_first = [&](const Tensor& x) { return first ? permute(x, {1, 2, 0, 3}) : x; };
  const Tensor q = heads_first(q_in), k = heads_first(k_in), v = heads_first(v_in);
  if (wants_flash(net.job)) return flash_attention_forward(net, q, k, v, {.mask = net.shared.causal_mask});
  Tensor mask;
  if (net.shared.causal_mask.defined()) {
    mask = net.tape.allocate(net.shared.causal_mask.shape(), Dtype::kBool, "bitwise_not");
  }
  const bool causal = !mask.defined();
  Tensor out = scaled_dot_product_attention(net, q, k, v, mask, 0.0, causal, false);
  out = first ? permute(std::move(out), {2, 0, 1, 3}) : contiguous(transpose(std::move(out), 1, 2));
  return reshape(std::move(out), first ? Shape{net.S, net.B, net.Q} : Shape{net.B, net.S, net.Q});
}

Tensor attend(Net& net, Tensor hidden) {
  Scope in(net.tape, "self_attention", kAttention);
  const Tensor x = std::move(hidden);
  const Count kv = net.K.n();
  const Tensor mixed =
      net.linear("self_attention.query_key_value", x, Dim(net.Q.n() + 2 * kv), net.arch.attention_bias);
  Pieces pieces = split(mixed, -1, {net.Q, net.K, net.K});
  const auto heads_of = [&](Tensor part, Dim heads) {
    const Shape four{part.dim(0), part.dim(1), heads, net.hd};
    Tensor seen = view(std::move(part), four);
    return is_sequence_first(net) ? seen : transpose(std::move(seen), 1, 2);
  };
  Tensor q = heads_of(std::move(pieces.part[0]), net.A);
  Tensor k = heads_of(std::move(pieces.part[1]), net.Kv);
  Tensor v = heads_of(std::move(pieces.part[2]), net.Kv);
  q = turned(net, q);
  k = turned(net, k);
  k = for_all_heads(net, std::move(k));
  v = for_all_heads(net, std::move(v));
  const Tensor context = core(net, q, k, v);
  return net.linear("self_attention.dense", context, net.H, net.arch.attention_out_bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.mlp_bias;
  Tensor both = net.linear("mlp.dense_h_to_4h", x, Dim(2 * net.F.n()), bias);
  {
    Pieces halves = split(both, -1, {net.F, net.F});
    Tensor gate = silu(halves.part[0]);
    both = mul(std::move(gate), halves.part[1]);
  }
  return net.linear("mlp.dense_4h_to_h", both, net.H, bias);
}

// Each name keeps what it holds until the block returns or it is given something else.
Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  const Tensor hidden = std::move(hidden_in);
  Tensor normed = norm_by(net, "input_layernorm", hidden);
  const Tensor attended = attend(net, normed);
  Tensor dropped = dropout(attended, net.arch.residual_dropout);
  const Tensor residual = add(hidden, std::move(dropped));
  normed = norm_by(net, "post_attention_layernorm", residual);
  const Tensor fed = mlp(net, normed);
  dropped = dropout(fed, net.arch.residual_dropout);
  return add(residual, std::move(dropped));
}

Tensor norm(Net& net, Tensor hidden) {
  if (!net.arch.final_norm) return hidden;
  return norm_by(net, "transformer.encoder.final_layernorm", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  // The class has no `lm_head`, so that get_output_embeddings() finds none: "all-linear" adapts it.
  constexpr const char* kName = "transformer.output_layer";
  Tensor logits = net.fuse_loss ? net.lm_head(kName, std::move(hidden), net.V)
                                : net.classifier(kName, std::move(hidden), net.V, false);
  return is_sequence_first(net) ? contiguous(transpose(std::move(logits), 0, 1)) : logits;
}

// The older code has neither `_supports_flash_attn` nor a class for it.
void check_chatglm(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_own_code(architecture, job, issues);
  if (job.attention != AttentionKernel::kFlashAttention2 || !is_sequence_first(architecture)) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/attention",
                    "transformers has no flash_attention_2 for ChatGLM 3: it raises an error. Use \"sdpa\".", "sdpa"});
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, own_causal_lm}};
// The configurations name the body; their auto_map leads to the class with the head.
constexpr ClassSuffix kClasses[] = {{"ForConditionalGeneration", Head::kCausalLm}, {"Model", Head::kCausalLm}};

}  // namespace

// CORE_ATTENTION_CLASSES of GLM-4: eager, flash_attention_2, sdpa; ChatGLM 3 calls SDPA alone.
const Program kChatGlmProgram = {.forward = one_stack<embed, layer, norm>,
                                 .lm_head = head,
                                 .heads = kHeads,
                                 .own_loss = OwnLoss::kFp32AndBack,
                                 .attention = {.flash_attention_3 = false, .core_alone = false},
                                 .remote_code = true,
                                 .check = check_chatglm};

const Family kRows[] = {
    {"chatglm", "ChatGLM", "ChatGLMForConditionalGeneration", kClasses, read_chatglm_config, &kChatGlmProgram,
     "transformer.encoder.layers"},
};

extern const FamilyRows chatglm_rows;
const FamilyRows chatglm_rows = kRows;

}  // namespace tidemark
