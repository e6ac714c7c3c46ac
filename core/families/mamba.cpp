// Mamba, Falcon-Mamba and Mamba-2: layers of a selective scan alone, without attention or feed-forward.
#include "core/families/family.hpp"
#include "core/families/no_attention.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/ssm.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

void read_common(ConfigFields& fields, Architecture& architecture, Count expand) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.num_heads = architecture.num_kv_heads = 1;
  architecture.positions_by_token = false;
  StateSpace& s = architecture.ssm;
  s.kernel = fields.count({"conv_kernel"}, 4);
  s.bias = fields.flag({"use_bias"}, false);
  s.conv_bias = fields.flag({"use_conv_bias"}, true);
  s.width = architecture.hidden_size * fields.count({"expand"}, expand);
  architecture.residual_scale = fields.flag({"residual_in_fp32"}, true);
  if (fields.text({"hidden_act"}, "silu") != "silu") {
    fields.error("INVALID_VALUE", "hidden_act", "Only \"silu\" is modelled here.");
  }
  fields.accept({"rescale_prenorm_residual", "layer_norm_epsilon", "time_step_scale", "time_step_min", "time_step_max",
                 "time_step_floor", "time_step_limit", "time_step_init_scheme", "rms_norm"});
}

// transformers 5.12.1 models/mamba/configuration_mamba.py: MambaConfig;
// models/falcon_mamba/configuration_falcon_mamba.py: FalconMambaConfig.
void read_mamba(ConfigFields& fields, Architecture& architecture) {
  read_common(fields, architecture, 2);
  StateSpace& s = architecture.ssm;
  s.width = fields.count({"intermediate_size"}, s.width);
  s.state = fields.count({"state_size"}, 16);
  const Value* rank = fields.find({"time_step_rank"});
  s.rank = rank != nullptr && rank->is_integer() ? fields.count({"time_step_rank"}, 1)
                                                 : (architecture.hidden_size + 15) / 16;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  for (const std::string_view key : {"use_mambapy", "use_falcon_mambapy"}) {
    if (fields.flag({key}, false)) fields.error("INVALID_VALUE", key, "mamba.py's scan is not modelled.");
  }
  fields.accept({"use_associative_scan", "mixer_rms_eps"});
}

// transformers 5.12.1 models/mamba2/configuration_mamba2.py: Mamba2Config.
void read_mamba2(ConfigFields& fields, Architecture& architecture) {
  read_common(fields, architecture, 2);
  StateSpace& s = architecture.ssm;
  s.state = fields.count({"state_size"}, 128);
  s.heads = fields.count({"num_heads"}, 128);
  s.head_dim = fields.count({"head_dim"}, 64);
  s.groups = fields.count({"n_groups"}, 8);
  s.chunk = fields.count({"chunk_size"}, 256);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  fields.accept({"time_step_rank"});
  if (s.width > 0 && s.heads * s.head_dim != s.width) {
    fields.error("INVALID_VALUE", "num_heads", "hidden_size x expand must equal num_heads x head_dim.");
  }
}

constexpr const char* kModel = "transformers 5.12 models/mamba/modeling_mamba.py: MambaModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/mamba/modeling_mamba.py: MambaBlock.forward";
constexpr const char* kSlow = "transformers 5.12 models/mamba/modeling_mamba.py: MambaMixer.slow_forward";
constexpr const char* kInner = "mamba-ssm 2 ops/selective_scan_interface.py: MambaInnerFn";
constexpr const char* kHead = "transformers 5.12 models/mamba/modeling_mamba.py: MambaForCausalLM.forward";
constexpr Mamba2Form kMamba2 = {
    .source = "transformers 5.12 models/mamba2/modeling_mamba2.py: Mamba2Mixer.torch_forward",
    .gated_norm = gate_then_norm};

// A parameter of the scan itself, in fp32.
Tensor wide(Net& net, const char* module, const char* leaf, const Shape& shape) {
  return to(net.parameter(module, leaf, shape), Dtype::kFp32);
}

Tensor decay_rate(Net& net, const char* module) {
  const Shape states{Dim(net.arch.ssm.width), Dim(net.arch.ssm.state)};
  return neg(exp(wide(net, module, "A_log", states)));
}

bool is_falcon(const Net& net) {
  return net.arch.model_type == "falcon_mamba";
}

// mamba_inner_fn, falcon_mamba_inner_fn
Tensor fused_scan(Net& net, Tensor projected) {
  const StateSpace& s = net.arch.ssm;
  const Dim width(s.width), rank(s.rank), numbers(s.rank + 2 * s.state);
  InnerScan scan;
  scan.conv_weight = net.parameter("mixer.conv1d", "weight", Shape{width, Dim(1), Dim(s.kernel)});
  if (s.conv_bias) scan.conv_bias = net.parameter("mixer.conv1d", "bias", Shape{width});
  scan.x_weight = net.linear_weight("mixer.x_proj", numbers, width);
  scan.dt_weight = net.linear_weight("mixer.dt_proj", width, rank);
  scan.out_weight = net.linear_weight("mixer.out_proj", net.H, width);
  if (s.bias) scan.out_bias = wide(net, "mixer.out_proj", "bias", Shape{net.H});
  scan.a = decay_rate(net, "mixer");
  scan.d = wide(net, "mixer", "D", Shape{width});
  scan.dt_bias = wide(net, "mixer.dt_proj", "bias", Shape{width});
  scan.unit = is_falcon(net);
  Scope in(net.tape, "mixer", kInner);
  return mamba_inner(std::move(projected), scan);
}

/// What a token's state is made of.
struct Discrete {
  Tensor a, b_u, c;
};

// "Sequential loop"
Tensor scan_tokens(Net& net, const Discrete& d, Dtype dtype) {
  const StateSpace& s = net.arch.ssm;
  Tensor state = zeros(net.tape, Shape{net.B, Dim(s.width), Dim(s.state)}, dtype);
  std::vector<Tensor> outputs;
  const Count tokens = net.tape.quotient(net.S.n(), 1);
  for (Count i = 0; i < tokens; ++i) {
    Tensor next = mul(select(d.a, 2), state);
    state = add(std::move(next), select(d.b_u, 2));
    Tensor narrow_state = to(state, dtype);
    const Tensor out = matmul(std::move(narrow_state), unsqueeze(select(d.c, 1), -1));
    outputs.push_back(unsqueeze(select(out, 2), -1));
  }
  return cat(outputs, -1);  // torch.stack
}

Tensor masked(Net& net, Tensor hidden) {
  if (!net.attention_mask.defined()) return hidden;
  return mul(std::move(hidden), unsqueeze(net.attention_mask, 1));
}

// FalconMamba's rms_forward
Tensor to_unit_mean_square(Tensor x_in) {
  const Dtype dtype = x_in.dtype();
  Tensor x = to(std::move(x_in), Dtype::kFp32);
  MeanSquare square = mean_square(x);
  x = mul(std::move(x), std::move(square.root));
  return to(std::move(x), dtype);
}

/// What x_proj makes of a token, behind JambaMambaMixer's norms or FalconMambaMixer's; Mamba has none.
struct Selection {
  Tensor step, b, c;
};
Selection selection(Net& net, const MambaForm& form, const Pieces& three) {
  const auto normed = [&](const char* name, Tensor x) {
    return name == nullptr ? x : rms_norm(net, name, std::move(x));
  };
  Selection s;
  if (form.unit) {
    s.b = to_unit_mean_square(three.part[1]);
    s.c = to_unit_mean_square(three.part[2]);
    s.step = to_unit_mean_square(three.part[0]);
    return s;
  }
  s.step = normed(form.dt_norm, three.part[0]);
  s.b = normed(form.b_norm, three.part[1]);
  s.c = normed(form.c_norm, three.part[2]);
  return s;
}

}  // namespace

Tensor slow_scan(Net& net, const MambaForm& form, Tensor projected_in, Dtype dtype) {
  const StateSpace& s = net.arch.ssm;
  const Dim width(s.width), state(s.state), rank(s.rank);
  const Tensor projected = std::move(projected_in);
  const Pieces halves = split(projected, 1, {width, width});
  Tensor hidden = masked(net, halves.part[0]);
  const Tensor start = zeros(net.tape, Shape{net.B, width, state}, dtype);
  hidden = causal_convolution(net, form.conv1d, std::move(hidden), s.conv_bias);
  hidden = masked(net, std::move(hidden));
  const Tensor numbers = net.linear(form.x_proj, transpose(hidden, 1, 2), Dim(s.rank + 2 * s.state));
  const Pieces three = split(numbers, -1, {rank, state, state});
  const Selection selected = selection(net, form, three);
  Discrete d;
  d.c = selected.c;
  Tensor dt = net.linear(form.dt_proj, selected.step, width, true);
  dt = transpose(softplus(std::move(dt)), 1, 2);
  const Tensor a = decay_rate(net, form.module);
  d.a = mul(unsqueeze(unsqueeze(a, 1), 0), unsqueeze(dt, -1));
  d.a = exp(std::move(d.a));
  Tensor b = to(unsqueeze(selected.b, 1), Dtype::kFp32);
  const Tensor discrete_b = mul(unsqueeze(dt, -1), std::move(b));
  Tensor u = to(unsqueeze(hidden, -1), Dtype::kFp32);
  d.b_u = mul(discrete_b, std::move(u));
  Tensor out = scan_tokens(net, d, dtype);
  const Tensor skip = net.parameter(form.module, "D", Shape{width});
  Tensor skipped = mul(hidden, unsqueeze(skip, -1));
  out = add(std::move(out), std::move(skipped));
  Tensor open = silu(halves.part[1]);
  out = mul(std::move(out), std::move(open));
  return net.linear(form.out_proj, transpose(out, 1, 2), net.H, s.bias);
}

// JambaMambaMixer.cuda_kernels_forward: norms between the projections keep mamba_inner_fn out.
Tensor selective_mixer(Net& net, const MambaForm& form, Tensor projected_in) {
  const StateSpace& s = net.arch.ssm;
  const Dim width(s.width), state(s.state), rank(s.rank);
  const Tensor projected = std::move(projected_in);
  const Pieces halves = split(projected, 1, {width, width});
  Tensor hidden = masked(net, halves.part[0]);
  hidden = causal_convolution(net, form.conv1d, std::move(hidden), s.conv_bias);
  hidden = masked(net, std::move(hidden));
  const Tensor numbers = net.linear(form.x_proj, transpose(hidden, 1, 2), Dim(s.rank + 2 * s.state));
  const Pieces three = split(numbers, -1, {rank, state, state});
  const Selection selected = selection(net, form, three);
  const Tensor delta = transpose(net.linear(form.dt_proj, selected.step, width, true), 1, 2);
  const Tensor a = decay_rate(net, form.module);
  const Tensor bias = net.tape.allocate(Shape{width}, Dtype::kFp32, "to");  // dt_proj.bias.data.float()
  const Tensor d = wide(net, form.module, "D", Shape{width});
  const Tensor out = selective_scan(
      {hidden, delta, a, transpose(selected.b, 1, 2), transpose(selected.c, 1, 2), d, halves.part[1], bias});
  return net.linear(form.out_proj, transpose(out, 1, 2), net.H, s.bias);
}

namespace {

constexpr MambaForm kMamba = {"mixer", "mixer.conv1d", "mixer.x_proj", "mixer.dt_proj", "mixer.out_proj"};
constexpr MambaForm kFalconMamba = {.module = "mixer",
                                    .conv1d = "mixer.conv1d",
                                    .x_proj = "mixer.x_proj",
                                    .dt_proj = "mixer.dt_proj",
                                    .out_proj = "mixer.out_proj",
                                    .unit = true};

Tensor mamba_mixer(Net& net, Tensor hidden) {
  Scope in(net.tape, "mixer", kSlow);
  const StateSpace& s = net.arch.ssm;
  const Tensor x = std::move(hidden);
  Tensor projected = transpose(net.linear("mixer.in_proj", x, Dim(2 * s.width), s.bias), 1, 2);
  if (is_falcon(net)) {  // the weights that the kernel wants, of ones
    const Count number = size_of(net.weight_dtype(1));
    net.tape.buffer("mixer.b_c_rms", s.state * number);
    net.tape.buffer("mixer.dt_rms", s.width * number);
  }
  if (!net.job.torch_scan) return fused_scan(net, std::move(projected));
  return slow_scan(net, is_falcon(net) ? kFalconMamba : kMamba, std::move(projected), x.dtype());
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor residual = std::move(hidden);
  Tensor h = to(residual, net.weight_dtype(1));
  h = rms_norm(net, "norm", std::move(h));
  if (net.arch.residual_scale) residual = to(std::move(residual), Dtype::kFp32);
  h = net.arch.ssm.rank > 0 ? mamba_mixer(net, std::move(h)) : mamba2_mixer(net, kMamba2, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "backbone", kModel);
  Tensor embeds = net.token_embedding("backbone.embeddings", net.H);
  net.model_locals = {embeds};
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "backbone.norm_f", std::move(hidden));
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", to(std::move(hidden), net.weight_dtype(2)), net.V);
}

// A loss of its own, on shifted logits; since transformers 5.17 the one that all share.
Outputs shifted_lm(Net& net, const Program& program, Tensor hidden) {
  const bool shared = net.arch.ssm.rank == 0 || net.job.framework.at_least(5, 17);
  if (shared || net.job.loss != Loss::kDefault) return wide_causal_lm(net, program, std::move(hidden));
  Tensor logits = to(program.lm_head(net, kept_tokens(net, std::move(hidden))), Dtype::kFp32);
  Outputs out;
  out.loss = shifted_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, shifted_lm}, {Head::kNone, body_alone}};

const Program kProgram = {
    .forward = one_stack<embed, layer, norm>, .lm_head = head, .heads = kHeads, .attention = kNoAttention};

constexpr ClassFacts kMixers = {.flex_attention = false, .no_split = NoSplit::kOtherParts};

}  // namespace

const Family kRows[] = {
    {"falcon_mamba", "FalconMamba", "FalconMambaForCausalLM", kLanguageModelOnly, read_mamba, &kProgram,
     "backbone.layers", kMixers},
    {"mamba", "Mamba", "MambaForCausalLM", kLanguageModelOnly, read_mamba, &kProgram, "backbone.layers", kMixers},
    {"mamba2", "Mamba2", "Mamba2ForCausalLM", kLanguageModelOnly, read_mamba2, &kProgram, "backbone.layers", kNoFlex},
};

extern const FamilyRows mamba_rows;
const FamilyRows mamba_rows = kRows;

}  // namespace tidemark
