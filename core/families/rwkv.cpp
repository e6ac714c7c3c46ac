// RWKV-4: a weighted mean over all tokens before, kept as a state, and a feed-forward, both mixed with the token
// before.
#include "core/families/family.hpp"
#include "core/families/no_attention.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/rwkv/configuration_rwkv.py: RwkvConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"context_length", "max_position_embeddings"}, 1024);
  architecture.positions_by_token = false;
  architecture.num_heads = architecture.num_kv_heads = 1;
  const Count width = architecture.hidden_size;
  architecture.ssm.width = fields.nullable({"attention_hidden_size"}, std::nullopt).value_or(width);
  architecture.intermediate_size = fields.nullable({"intermediate_size"}, std::nullopt).value_or(4 * width);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  architecture.norm_bias = true;
  architecture.layer_kinds.assign(static_cast<std::size_t>(architecture.num_layers), 0);
  if (!architecture.layer_kinds.empty()) architecture.layer_kinds.front() = 1;  // pre_ln
  fields.accept({"rescale_every", "layer_norm_epsilon"});
}

constexpr const char* kModel = "transformers 5.12 models/rwkv/modeling_rwkv.py: RwkvModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/rwkv/modeling_rwkv.py: RwkvBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/rwkv/modeling_rwkv.py: RwkvSelfAttention.forward";
constexpr const char* kFeedForward = "transformers 5.12 models/rwkv/modeling_rwkv.py: RwkvFeedForward.forward";
constexpr const char* kLoop = "transformers 5.12 models/rwkv/modeling_rwkv.py: rwkv_linear_attention_cpu";
constexpr const char* kKernel = "transformers 5.12 models/rwkv/modeling_rwkv.py: RwkvLinearAttention";
constexpr const char* kHead = "transformers 5.12 models/rwkv/modeling_rwkv.py: RwkvForCausalLM.forward";

// hidden * mix + shifted * (1 - mix)
Tensor mixed(Net& net, const char* module, const char* leaf, const Tensor& hidden, const Tensor& shifted) {
  const Tensor mix = net.parameter(module, leaf, Shape{Dim(1), Dim(1), net.H});
  Tensor own = mul(hidden, mix);
  Tensor rest = neg(mix);  // rsub
  rest = mul(shifted, std::move(rest));
  return add(std::move(own), std::move(rest));
}

/// The state of rwkv_linear_attention_cpu.
struct State {
  Tensor numerator, denominator, maximum;
};

// One token: the output, and the next state.
Tensor step(const Tensor& key, const Tensor& value, const Tensor& first, const State& s) {
  Tensor sum = add(key, first);
  const Tensor highest = maximum(s.maximum, std::move(sum));
  const Tensor e1 = exp(sub(s.maximum, highest));
  sum = add(key, first);
  const Tensor e2 = exp(sub(std::move(sum), highest));
  Tensor left = mul(e1, s.numerator), right = mul(e2, value);
  const Tensor numerator = add(std::move(left), std::move(right));
  left = mul(e1, s.denominator);
  const Tensor denominator = add(std::move(left), e2);
  return div(numerator, denominator);
}

void advance(const Tensor& key, const Tensor& value, const Tensor& decay, State& s) {
  Tensor decayed = add(s.maximum, decay);
  Tensor highest = maximum(std::move(decayed), key);
  decayed = add(s.maximum, decay);
  const Tensor e1 = exp(sub(std::move(decayed), highest));
  const Tensor e2 = exp(sub(key, highest));
  Tensor left = mul(e1, s.numerator), right = mul(e2, value);
  s.numerator = add(std::move(left), std::move(right));
  left = mul(e1, s.denominator);
  s.denominator = add(std::move(left), e2);
  s.maximum = std::move(highest);
}

Tensor loop(Net& net, const Tensor& time_decay, const Tensor& first, const Tensor& key, const Tensor& value) {
  Scope in(net.tape, "attention", kLoop);
  const Shape row{key.dim(0), key.dim(2)};
  Tensor output = zeros(net.tape, key.shape(), key.dtype(), "zeros_like");
  State state;
  state.numerator = zeros(net.tape, row, Dtype::kFp32, "zeros_like");
  state.denominator = zeros(net.tape, row, Dtype::kFp32, "zeros_like");
  state.maximum = zeros(net.tape, row, Dtype::kFp32, "zeros_like");
  state.maximum = zeros(net.tape, row, Dtype::kFp32, "sub");
  const Tensor decay = neg(exp(time_decay));
  const Count tokens = net.tape.quotient(net.S.n(), 1);
  for (Count i = 0; i < tokens; ++i) {
    const Tensor current = to(select(key, 1), Dtype::kFp32), seen = select(value, 1);
    Tensor out = to(step(current, seen, first, state), output.dtype());
    output = copy_into(std::move(output), row, std::move(out));
    advance(current, seen, decay, state);
  }
  return output;
}

// nn.ZeroPad2d((0, 0, 1, -1)): each token's predecessor.
Tensor time_shift(Tensor hidden) {
  return pad(std::move(hidden), 1, 0);
}

Tensor attention_block(Net& net, Tensor hidden_in) {
  constexpr const char* kModule = "attention";
  Scope in(net.tape, kModule, kAttention);
  const Tensor hidden = std::move(hidden_in);
  const Dim width(net.arch.ssm.width);
  const Tensor time_decay = net.parameter(kModule, "time_decay", Shape{width});
  const Tensor first = net.parameter(kModule, "time_first", Shape{width});
  Tensor receptance, key, value;
  {
    const Tensor shifted = time_shift(hidden);
    key = mixed(net, kModule, "time_mix_key", hidden, shifted);
    value = mixed(net, kModule, "time_mix_value", hidden, shifted);
    receptance = mixed(net, kModule, "time_mix_receptance", hidden, shifted);
    key = net.linear("attention.key", std::move(key), width);
    value = net.linear("attention.value", std::move(value), width);
    receptance = sigmoid(net.linear("attention.receptance", std::move(receptance), width));
  }
  Tensor out;
  if (net.job.torch_scan) {
    out = loop(net, time_decay, first, key, value);
  } else {
    Scope kernel(net.tape, kModule, kKernel);
    out = wkv(time_decay, first, key, value);
  }
  Tensor gated = mul(receptance, out);
  return net.linear("attention.output", std::move(gated), net.H);
}

Tensor feed_forward(Net& net, Tensor hidden_in) {
  constexpr const char* kModule = "feed_forward";
  Scope in(net.tape, kModule, kFeedForward);
  const Tensor hidden = std::move(hidden_in);
  const Tensor shifted = time_shift(hidden);
  Tensor key = mixed(net, kModule, "time_mix_key", hidden, shifted);
  Tensor receptance = mixed(net, kModule, "time_mix_receptance", hidden, shifted);
  key = net.linear("feed_forward.key", std::move(key), net.F);
  key = power(relu(std::move(key)));
  const Tensor value = net.linear("feed_forward.value", key, net.H);
  receptance = sigmoid(net.linear("feed_forward.receptance", std::move(receptance), net.H));
  return mul(receptance, value);
}

Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kBlock);
  Tensor hidden = std::move(hidden_in);
  if (net.layer_index == 0) hidden = net.layer_norm("pre_ln", std::move(hidden));
  Tensor attention = attention_block(net, net.layer_norm("ln1", hidden));
  hidden = add(std::move(hidden), attention);
  Tensor fed = feed_forward(net, net.layer_norm("ln2", hidden));
  return add(std::move(hidden), fed);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "rwkv", kModel);
  Tensor embeds = net.token_embedding("rwkv.embeddings", net.H);
  net.model_locals = {embeds};
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return net.layer_norm("rwkv.ln_out", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("head", std::move(hidden), net.V);
}

const Program kProgram = {.forward = one_stack<embed, layer, norm>, .lm_head = head, .attention = kNoAttention};

}  // namespace

const Family kRows[] = {
    {"rwkv", "Rwkv", "RwkvForCausalLM", kLanguageModelOnly, read_config, &kProgram, "rwkv.blocks", kNoFlex},
};

extern const FamilyRows rwkv_rows;
const FamilyRows rwkv_rows = kRows;

}  // namespace tidemark
