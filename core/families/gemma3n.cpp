// Gemma 3n (text): a layer works on one of four hidden states and predicts and corrects the others (AltUp), beside its
// attention runs a path of low rank (LAuReL), and feed-forwards of the first layers drop what is below a cut.
#include "core/families/family.hpp"
#include "core/families/gemma4.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr std::uint8_t kSparse = 4;  ///< in layer_kinds
constexpr Count kStates = 4;         ///< altup_num_inputs

void read_sparsity(ConfigFields& fields, Architecture& architecture) {
  const auto layers = static_cast<std::size_t>(architecture.num_layers);
  architecture.layer_kinds.resize(layers);
  const Value* given = fields.find({"activation_sparsity_pattern"});
  if (given != nullptr && given->is_array() && given->items.size() == layers) {
    for (std::size_t i = 0; i < layers; ++i) architecture.layer_kinds[i] |= given->items[i].real > 0.0 ? kSparse : 0;
  } else if (given != nullptr && !given->is_null()) {
    fields.error("INVALID_VALUE", "activation_sparsity_pattern", "A list with one entry per layer is expected.");
  } else if (layers > 10) {
    for (std::size_t i = 0; i < 10; ++i) architecture.layer_kinds[i] |= kSparse;
  }
}

// transformers 5.12.1 models/gemma3n/configuration_gemma3n.py: Gemma3nTextConfig. All layers' heads are alike.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_gemma_text(fields, architecture, {32768, 2, 30.0, 5});
  Architecture global;
  global.head_dim = architecture.head_dim;
  global.num_kv_heads = architecture.num_kv_heads;
  architecture.parts.push_back(std::move(global));
  read_layer_inputs(fields, architecture);
  architecture.latent.rank = fields.count({"laurel_rank"}, 64);
  read_shared_layers(fields, architecture, 15);
  read_sparsity(fields, architecture);
  if (fields.count({"altup_num_inputs"}, kStates) != kStates || !fields.flag({"altup_correct_scale"}, true)) {
    fields.error("INVALID_VALUE", "altup_num_inputs", "Only four hidden states, corrected by a scale, are modelled.");
  }
  fields.accept({"altup_active_idx", "altup_coef_clip"});
}

constexpr const char* kModel = "transformers 5.12 models/gemma3n/modeling_gemma3n.py: Gemma3nTextModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/gemma3n/modeling_gemma3n.py: Gemma3nTextDecoderLayer.forward";
constexpr const char* kLaurel = "transformers 5.12 models/gemma3n/modeling_gemma3n.py: Gemma3nTextLaurelBlock.forward";
constexpr const char* kMlp = "transformers 5.12 models/gemma3n/modeling_gemma3n.py: Gemma3nTextMLP.forward";
constexpr const char* kAltUp = "transformers 5.12 models/gemma3n/modeling_gemma3n.py: Gemma3nTextAltUp";

// compute_router_modalities, whose modules a layer uses twice: they are declared at `place`.
Tensor modalities(Net& net, const Tensor& x, std::size_t place) {
  const std::size_t here = net.tape.parameter_place();
  net.tape.set_parameter_place(place);
  Tensor inputs = gemma4_norm(net, "altup.router_norm", x);
  inputs = mul_scalar(std::move(inputs));
  Tensor routed = net.linear("altup.modality_router", inputs, Dim(kStates));
  if (here != place) net.tape.set_parameter_place(here);
  return to(tanh(to(std::move(routed), Dtype::kFp32)), x.dtype());
}

Tensor predict(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "altup", kAltUp);
  const Dim states(kStates);
  Tensor coefs = net.linear("altup.prediction_coefs", modalities(net, select(hidden, 0), net.tape.parameter_place()),
                            Dim(kStates * kStates));
  coefs = permute(view(std::move(coefs), Shape{net.B, net.S, states, states}), {0, 1, 3, 2});
  Tensor out = matmul(permute(hidden, {1, 2, 3, 0}), std::move(coefs));
  out = permute(std::move(out), {3, 0, 1, 2});
  out = contiguous(add_to_view(std::move(out), hidden, false));
  return to(std::move(out), hidden.dtype());
}

Tensor correct(Net& net, const Tensor& predictions, const Tensor& activated, std::size_t router) {
  Scope in(net.tape, "altup", kAltUp);
  const Dim states(kStates);
  const Tensor routed = modalities(net, activated, router);
  Tensor innovation = sub(activated, select(predictions, 0));
  innovation = repeat_rows(view(std::move(innovation), Shape{Dim(1), net.T, net.H}), states);
  innovation = view(std::move(innovation), predictions.shape());
  Tensor weight = clamp(net.linear_weight("altup.correction_coefs", states, states));
  Tensor coefs = add_scalar(linear(routed, std::move(weight)));
  coefs = unsqueeze(permute(std::move(coefs), {2, 0, 1}), -1);
  Tensor out = mul(std::move(innovation), std::move(coefs));
  return to(add_in_place(std::move(out), predictions), activated.dtype());
}

Tensor laurel(Net& net, const Tensor& x) {
  Scope in(net.tape, "laurel", kLaurel);
  Tensor h = net.linear("laurel.linear_left", x, Dim(net.arch.latent.rank));
  h = net.linear("laurel.linear_right", std::move(h), net.H);
  h = gemma4_norm(net, "laurel.post_laurel_norm", std::move(h));
  return add(x, std::move(h));
}

// _gaussian_topk
Tensor cut(Net& net, const Tensor& x) {
  const Tensor factor = net.tape.allocate(Shape{}, x.dtype(), "icdf");
  const Tensor mean = mean_last(x);
  Tensor cutoff = mul_scalar(std_last(x));
  cutoff = add(mean, std::move(cutoff));
  return relu(sub(x, std::move(cutoff)));
}

Tensor mlp(Net& net, const Tensor& x) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor gate = net.linear("mlp.gate_proj", x, net.F);
  if ((kind_of(net) & kSparse) != 0) gate = cut(net, gate);
  const Tensor active = activate(net.arch.activation, gate);
  const Tensor up = net.linear("mlp.up_proj", x, net.F);
  return net.linear("mlp.down_proj", mul(active, up), net.H);
}

Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  const Tensor hidden = into_first_layer(net, std::move(hidden_in));
  const std::size_t router = net.tape.parameter_place();
  const Tensor predictions = predict(net, hidden);
  const Tensor active = select(predictions, 0);
  const Tensor normed = gemma4_norm(net, "input_layernorm", active);
  const Tensor low_rank = laurel(net, normed);
  Tensor attended = gemma4_attention(net, normed, true);
  attended = gemma4_norm(net, "post_attention_layernorm", std::move(attended));
  const Tensor gated = add(active, attended);
  const Tensor both = mul_scalar(add(gated, low_rank));
  const Tensor before = gemma4_norm(net, "pre_feedforward_layernorm", both);
  const Tensor made = mlp(net, before);
  const Tensor after = gemma4_norm(net, "post_feedforward_layernorm", made);
  const Tensor activated = add(both, after);
  Tensor corrected = correct(net, predictions, activated, router);
  Tensor first = clone(select(corrected, 0));
  {
    const Tensor scale = net.parameter("altup", "correct_output_scale", Shape{net.H});
    const Dtype dtype = first.dtype();
    first = to(mul(to(std::move(first), scale.dtype()), scale), dtype);
  }
  first = through_layer_input(net, std::move(first));
  return add_to_view(std::move(corrected), std::move(first), true);
}

// mean(x²)
Tensor magnitude(const Tensor& x) {
  return mean_last(power(x));
}

// The states beside the first, each through a matrix of its own and as large as the first.
Tensor four_states(Net& net, const Tensor& hidden, const char* const (&names)[kStates - 1], Dtype dtype) {
  const bool ends = hidden.shape().rank == 4;
  std::vector<Tensor>& states = net.model_locals;
  const Tensor first = ends ? select(hidden, 0) : hidden;
  const Tensor target = power(magnitude(first));
  if (ends) states.resize(1);
  std::vector<Tensor> made = {unsqueeze(first, 0)};
  for (const char* name : names) {
    const Tensor state = to(net.linear(name, ends ? select(hidden, 0) : hidden, net.H), dtype);
    Tensor size = magnitude(state);
    Tensor least = net.tape.allocate(Shape{}, Dtype::kFp32, "to");
    size = sqrt(maximum(std::move(size), std::move(least)));
    states.push_back(div(mul(state, target), std::move(size)));
    made.push_back(unsqueeze(states.back(), 0));
  }
  return cat(made, 0);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  const Tensor embeds = gemma4_embeds(net, true);
  Tensor states =
      four_states(net, embeds, {"model.altup_projections.0", "model.altup_projections.1", "model.altup_projections.2"},
                  embeds.dtype());
  gemma4_tables(net, states.dtype());
  return states;
}

Tensor final_norm(Net& net, Tensor hidden) {
  Scope in(net.tape, "model", kModel);
  const Dtype dtype = net.model_locals.front().dtype();
  Tensor all = four_states(
      net, std::move(hidden),
      {"model.altup_unembed_projections.0", "model.altup_unembed_projections.1", "model.altup_unembed_projections.2"},
      dtype);
  return gemma4_norm(net, "model.norm", mean_over(std::move(all), 0));
}

constexpr ClassSuffix kClasses[] = {{"ForCausalLM", Head::kCausalLm}, {"TextModel", Head::kNone}};

// altup_coef_clip clamps weights, which are packed. Of this model Unsloth loads its own packed checkpoints, in which
// these are not (unsloth 2026.8.19 models/mapper.py: FLOAT_TO_INT_MAPPER).
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  if (job.method != Method::kQlora || job.framework.name == "unsloth") return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/method",
                    "transformers clamps weights of Gemma 3n's layers, which fails where they are quantised. Use lora.",
                    "lora"});
}

const Program kProgram = {.forward = one_stack<embed, layer, final_norm>, .lm_head = gemma4_head, .check = check};

}  // namespace

constexpr ClassFacts kFacts = {.behind_language = "model.embed_tokens_per_layer model.per_layer model.altup"};

const Family kRows[] = {
    {"gemma3n_text", "Gemma3n", "Gemma3nForCausalLM", kClasses, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows gemma3n_rows;
const FamilyRows gemma3n_rows = kRows;

}  // namespace tidemark
