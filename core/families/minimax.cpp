// MiniMax-Text-01: lightning attention, which hands a state from block to block, now and then softmax attention, and
// Mixtral's experts.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/layers/ssm.hpp"
#include "core/model/config_experts.hpp"
#include "core/model/config_ssm.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/minimax/configuration_minimax.py: MiniMaxConfig. Published files say `rotary_dim`, which
// nobody reads: all of a head turns unless the rope dictionary has a factor. The factors alpha and beta multiply
// whatever they are.
void read_minimax_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 4096 * 32);
  read_kv_heads(fields, architecture, 8);
  read_head_dim(fields, architecture);
  read_rotary_factor(fields, architecture, 1.0);
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  slide_everywhere(architecture, fields.nullable({"sliding_window"}, std::nullopt).value_or(0));
  read_experts(fields, architecture, {8, 2, 0}, {"num_local_experts", "num_experts"});
  architecture.experts.normalised = true;
  architecture.experts.jitter = fields.number({"router_jitter_noise"}, 0.0) > 0.0;
  read_aux_loss(fields, architecture);
  architecture.ssm.chunk = fields.count({"block_size"}, 256);
  read_layer_kinds(fields, architecture, {"full_attention", "linear_attention"}, 2);
  fields.accept({"rotary_dim", "attn_type_list", "full_attn_alpha_factor", "full_attn_beta_factor",
                 "linear_attn_alpha_factor", "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"});
}

constexpr const char* kLayer = "transformers 5.12 models/minimax/modeling_minimax.py: MiniMaxDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/minimax/modeling_minimax.py: MiniMaxAttention.forward";
constexpr const char* kLightning =
    "transformers 5.12 models/minimax/modeling_minimax.py: MiniMaxLightningAttention.forward";

/// Queries, keys and values [B, A, S, hd].
struct Heads {
  Tensor query, key, value;
};

// What lies between the projections, block by block: within a block scores by distance, and what the state of the
// blocks before says. The names are the method's and live until it returns. The state of the last block has a name in
// the layer, too.
Tensor block_by_block(Net& net, const Heads& x) {
  Tape& t = net.tape;
  const Count block = net.arch.ssm.chunk;
  const Dtype dtype = net.buffer_for_product(net.weight_dtype(1));
  const Count blocks = t.quotient_up(net.S.n(), block);
  Tensor state = zeros(t, Shape{net.B, net.A, net.hd, net.hd}, x.value.dtype());
  std::vector<Tensor> outputs;
  Tensor decay, scores, intra, inter, output, added;
  for (Count i = 0; i < blocks; ++i) {
    const Dim n(i + 1 < blocks ? block : net.S.n() - (blocks - 1) * block);
    const Tensor q = narrow(x.query, 2, i * block, n), k = narrow(x.key, 2, i * block, n),
                 v = narrow(x.value, 2, i * block, n);
    const Tensor by_token = t.part_of_buffer(Shape{net.A, n, Dim(1)}, dtype);  // query_decay and key_decay
    {
      Tensor rate = neg(t.part_of_buffer(Shape{net.A, Dim(1), Dim(1)}, dtype));
      rate = mul_scalar(std::move(rate));
      decay = exp(std::move(rate));
    }
    scores = matmul(q, transpose(k, -1, -2));
    {
      Tensor weighted = mul(scores, t.part_of_buffer(Shape{Dim(1), net.A, n, n}, dtype));
      intra = matmul(std::move(weighted), v);
    }
    {
      Tensor weighted = mul(q, by_token);
      inter = matmul(std::move(weighted), state);
    }
    output = add(inter, intra);
    outputs.push_back(output);
    {
      Tensor weighted = mul(k, by_token);
      added = matmul(transpose(std::move(weighted), -1, -2), v);
    }
    Tensor kept = mul(state, decay);
    state = add(std::move(kept), added);
  }
  Tensor joined = cat(outputs, -2);
  outputs.clear();
  net.attention_weights = std::move(state);
  joined = reshape(transpose(std::move(joined), 1, 2), Shape{net.B, net.S, net.Q});
  return rms_norm(net, "self_attn.norm", std::move(joined));
}

Tensor lightning_attention(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "self_attn", kLightning);
  const Tensor hidden = std::move(hidden_in);
  const Count heads = net.A.n(), block = net.arch.ssm.chunk, bytes = size_of(net.buffer_dtype(net.weight_dtype(1)));
  net.tape.buffer("self_attn.slope_rate", heads * bytes);
  net.tape.buffer("self_attn.query_decay", heads * block * bytes);
  net.tape.buffer("self_attn.key_decay", heads * block * bytes);
  net.tape.buffer("self_attn.diagonal_decay", heads * block * block * bytes);
  Tensor qkv = net.linear("self_attn.qkv_proj", hidden, Dim(3 * net.Q.n()));
  qkv = activate(net.arch.activation, std::move(qkv));
  const Pieces three =
      split(view(std::move(qkv), Shape{net.B, net.S, net.A, Dim(3 * net.hd.n())}), 3, {net.hd, net.hd, net.hd});
  Heads x = {transpose(three.part[0], 1, 2), transpose(three.part[1], 1, 2), transpose(three.part[2], 1, 2)};
  Tensor mask;
  if (net.attention_mask.defined()) {
    mask = net.tape.allocate(net.attention_mask.shape(), Dtype::kBool, "to");
    Tensor padded = net.tape.allocate(mask.shape(), Dtype::kBool, "bitwise_not");
    padded = unsqueeze(unsqueeze(std::move(padded), 1), -1);
    x.value = masked_fill(std::move(x.value), std::move(padded));
  }
  Tensor out = block_by_block(net, x);
  {
    Tensor gate = net.linear("self_attn.output_gate", hidden, net.Q);
    gate = sigmoid(std::move(gate));
    out = mul(std::move(gate), std::move(out));
  }
  return net.linear("self_attn.out_proj", std::move(out), net.H);
}

Tensor softmax_attention(Net& net, Tensor hidden) {
  return qkv_attention(net, std::move(hidden), kAttention, rotate_both);
}

// residual * alpha + hidden * beta
Tensor weighted_sum(const Tensor& residual, const Tensor& hidden) {
  Tensor kept = mul_scalar(residual), said = mul_scalar(hidden);
  return add(std::move(kept), std::move(said));
}

// The residuals are the norms' outputs.
Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  const bool lightning = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  Tensor residual = rms_norm(net, "input_layernorm", std::move(hidden_in));
  Tensor h = lightning ? lightning_attention(net, residual) : softmax_attention(net, residual);
  h = weighted_sum(residual, h);
  h = rms_norm(net, "post_attention_layernorm", h);
  residual = h;
  h = mixtral_mlp(net, std::move(h));
  return weighted_sum(residual, h);
}

const Program kMiniMaxProgram = {one_stack<llama_embed, layer, llama_norm>, llama_head, kMoeForwards};

}  // namespace

const Family kRows[] = {
    {"minimax", "MiniMax", "MiniMaxForCausalLM", kFourHeads, read_minimax_config, &kMiniMaxProgram},
};

extern const FamilyRows minimax_rows;
const FamilyRows minimax_rows = kRows;

}  // namespace tidemark
