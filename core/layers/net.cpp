#include "core/layers/net.hpp"

#include <algorithm>
#include <utility>

#include "core/job/framework.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/layers/adapter.hpp"
#include "core/layers/fake_quant.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/prompts.hpp"
#include "core/layers/tensor_parallel.hpp"
#include "core/layers/turned_back.hpp"
#include "core/state/int8_weight.hpp"
#include "core/tape/float8_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

namespace {

// torch.chunk: the first GPU's part is a whole one.
Dim part_of(Count size, Symbol meaning, const TrainingJob& job) {
  return Dim((size + job.tensor.degree - 1) / job.tensor.degree, meaning);
}

// All of its heads and columns on this GPU.
void undivide(Net& net) {
  const Architecture& a = net.arch;
  net.F = Dim(a.intermediate_size, Symbol::kFeedForward);
  net.V = Dim(a.vocab_size, Symbol::kVocab);
  net.A = Dim(a.num_heads, Symbol::kHeads);
  net.Kv = Dim(a.num_kv_heads, Symbol::kKvHeads);
  net.Q = Dim(a.query_size(), Symbol::kQuery);
  net.K = Dim(a.kv_size(), Symbol::kKeyValue);
}

// DeepSpeed 0.19.8 runtime/engine.py _configure_distributed_model: module.half(), module.bfloat16(), whatever a model
// has made in fp32.
Dtype fp32_unless_cast(const TrainingJob& job) {
  return job.runs_deepspeed() ? job.recipe.weights : Dtype::kFp32;
}

// transformers 5.12 modeling_utils.py _get_dtype_plan: `_keep_in_fp32_modules` counts in fp16 alone; until 4.57 also
// beside packed weights (quantizers/base.py use_keep_in_fp32_modules). DeepSpeed casts them, too.
Dtype kept(Dtype dtype, const TrainingJob& job) {
  if (job.runs_deepspeed()) return dtype;
  const bool packed = job.method == Method::kQlora && !job.framework.at_least(5, 0);
  return dtype == Dtype::kFp16 || packed ? Dtype::kFp32 : dtype;
}

}  // namespace

Net::Net(Tape& t, const Architecture& a, const TrainingJob& j)
    : tape(t),
      arch(a),
      job(j),
      B(j.micro_batch_size * answers_per_sample(j.preference), Symbol::kBatch),
      S(j.virtual_tokens() + (j.context > 1 ? t.quotient(j.sequence_length, j.context) : j.sequence_length),
        Symbol::kSequence),
      T(B.n() * S.n(), Symbol::kTokens),
      H(a.hidden_size, Symbol::kHidden),
      F(part_of(a.intermediate_size, Symbol::kFeedForward, j)),
      V(j.tensor.hooks ? Dim(a.vocab_size, Symbol::kVocab) : part_of(a.vocab_size, Symbol::kVocab, j)),
      A(part_of(a.num_heads, Symbol::kHeads, j)),
      Kv(part_of(a.num_kv_heads, Symbol::kKvHeads, j)),
      hd(a.head_dim, Symbol::kHeadDim),
      Q(part_of(a.query_size(), Symbol::kQuery, j)),
      K(part_of(a.kv_size(), Symbol::kKeyValue, j)),
      adapter_(adapter_layer(j.adapter.kind)) {}

Dim Net::width_of(Count width) const {
  return job.tensor.is_used() ? part_of(width, Symbol::kFeedForward, job) : Dim(width);
}

Net::Net(Net& whole, const Architecture& a, const TrainingJob& j, Dim batch, Dim sequence) : Net(whole.tape, a, j) {
  B = batch;
  S = sequence;
  T = Dim(batch.n() * sequence.n(), Symbol::kTokens);
  treatments = whole.treatments;
  census = whole.census;
  whole_ = &whole;
  if (is_laid()) tape.go_to_card(0);  // where the batch lies
}

Net& Net::part(const Architecture& architecture, Dim batch, Dim sequence) {
  whole_->parts_.push_back(std::unique_ptr<Net>(new Net(*whole_, architecture, job, batch, sequence)));
  Net& other = *whole_->parts_.back();
  // mcore-bridge f020e47 src/mcore_bridge/model/mm_gpts/utils.py: HuggingFaceVit: each tensor-parallel GPU has all of
  // it.
  if (job.is_megatron() && &architecture != &arch) undivide(other);
  return other;
}

Net& Net::copy() {
  Net& other = part(arch, B, S);
  other.treatments = nullptr;
  other.evaluates = true;
  return other;
}

Net& Net::teacher() {
  if (!whole_->teaches_) {
    whole_->teaches_ = std::make_unique<TrainingJob>(job);
    whole_->teaches_->method = Method::kFull;
    whole_->teaches_->recipe.weights = job.distillation.teacher.value_or(job.recipe.weights);
  }
  whole_->parts_.push_back(std::unique_ptr<Net>(new Net(*whole_, *arch.teacher, *whole_->teaches_, B, S)));
  Net& other = *whole_->parts_.back();
  other.treatments = nullptr;
  other.evaluates = true;
  return other;
}

Net& Net::judge(bool trains) {
  if (!whole_->judges_) {
    whole_->judges_ = std::make_unique<TrainingJob>(job);
    whole_->judges_->method = Method::kFull;
    whole_->judges_->recipe.weights = job.rollout.judge.value_or(job.recipe.weights);
  }
  whole_->parts_.push_back(std::unique_ptr<Net>(new Net(*whole_, *arch.judge, *whole_->judges_, B, S)));
  Net& other = *whole_->parts_.back();
  other.treatments = nullptr;
  other.evaluates = !trains;
  return other;
}

void Net::end_micro_step() {
  // What a hook made of the inputs; families keep other tensors beside it.
  const auto leaf = std::find_if(leaves.begin(), leaves.end(),
                                 [](const Tensor& t) { return t.defined() && t.body().is_detached_leaf; });
  if (job.offload.activations && leaf != leaves.end()) tape.keep_behind_last_node(std::move(*leaf));
  leaves.clear();
  parts_.clear();
  // A recurrent state stays, a dictionary goes with its checkpoints, unless Axolotl has it in a module.
  if (arch.ssm.width == 0 && !job.fused_attention) tape.let_modules_go();
}

void Net::keep_until_next(std::vector<Tensor> outputs) {
  last_outputs_ = std::move(outputs);
  last_held_ = tape.held();
}

void Net::let_last_iteration_go() {
  last_outputs_.clear();
  tape.let_oldest_go(std::exchange(last_held_, 0));
}

const Treatment* Net::treatment(std::string_view module) const {
  if (treatments == nullptr) return nullptr;
  return tape.in_layer() ? treatments->inside(first_layer + layer_index, module) : treatments->outside(module);
}

bool Net::trains(const char* module, const char* parameter) const {
  if (treatments == nullptr) return true;
  const Treatment* how = treatment(module);
  return how != nullptr && how->trains(parameter);
}

Count Net::rank_of(const char* module) const {
  const Treatment* how = treatment(module);
  return how == nullptr ? 0 : how->rank;
}

Dtype Net::weight_dtype(int rank) const {
  // peft/utils/other.py prepare_model_for_kbit_training: every 16-bit parameter that is not packed becomes fp32, but
  // for models that GPTQ, HQQ and others (is_gptq_quantized, …) have packed. AWQ is not among them.
  const QuantType packed = job.quantization.quant_type;
  const bool prepared = uses_bitsandbytes() || (quantised() && packed == QuantType::kAwq);
  if (prepared && is_half(job.recipe.weights)) {
    if (job.quantization.prepare_kbit == PrepareKbit::kAll) return Dtype::kFp32;
    if (job.quantization.prepare_kbit == PrepareKbit::kNormsOnly && rank <= 1) return Dtype::kFp32;
    // Experts are no module of which axolotl's words speak (stays_wide).
    if (job.quantization.prepare_kbit == PrepareKbit::kNormsBack && rank > 2) return Dtype::kFp32;
  }
  return arch.kept_in_fp32 ? kept(job.recipe.weights, job) : job.recipe.weights;
}

bool Net::slides(Count layer) const {
  const Count length = job.sequence_length + job.virtual_tokens();
  if (arch.sliding_window <= 0 || !tape.above(length, arch.sliding_window - 1)) return false;
  const auto i = static_cast<std::size_t>(layer);
  return i < arch.sliding_layers.size() && arch.sliding_layers[i];
}

bool Net::is_sliding_layer(Count layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return i < arch.sliding_layers.size() && arch.sliding_layers[i];
}

bool Net::inputs_require_grads() const {
  // ms-swift 3602360a megatron/trainers/base.py: _prepare_vit_gradient_checkpointing asks for it of towers that are
  // trained.
  if (job.is_megatron()) return false;
  const ClassFacts& facts = whole_->arch.facts;
  if (facts.always_checkpoints && job.has_adapter()) return true;  // PEFT asks is_gradient_checkpointing
  if (!facts.hooks_embeddings) return false;
  // unsloth_zoo 2026.8.13 training_utils.py: prepare_model_for_training(use_reentrant=True).
  if (job.framework.name == "unsloth" && job.has_adapter()) return true;
  if (job.checkpointing == Checkpointing::kNone || job.checkpointing == Checkpointing::kSelectiveCoreAttention) {
    return false;
  }
  // transformers 5.12 modeling_utils.py: gradient_checkpointing_enable asks for it whatever is trained; until 4.57 it
  // was left to PEFT, as it still is of models whose main input is no text.
  if (job.framework.at_least(5, 0) && facts.text_input) return true;
  if (job.method == Method::kFull && !facts.text_input) return false;
  // peft 0.18 peft_model.py: _prepare_model_for_gradient_checkpointing asks for it on every model that is not
  // quantised, utils/other.py: prepare_model_for_kbit_training on those that are.
  if (job.use_reentrant || job.method == Method::kLora) return true;
  return job.method == Method::kQlora && job.quantization.prepare_kbit != PrepareKbit::kOff;
}

bool Net::rotates(Count layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return arch.rotary_dim > 0 && (i >= arch.no_rope_layers.size() || !arch.no_rope_layers[i]);
}

Module* Net::noted(const char* name) {
  if (census == nullptr) return nullptr;
  const auto layer = static_cast<std::size_t>(std::max<int>(tape.instance_of_parameters(), 0));
  if (census->layers.size() <= layer) census->layers.resize(layer + 1);
  std::vector<Module>& modules = tape.in_layer() ? census->layers[layer] : census->outside;
  for (Module& module : modules) {
    if (module.path == name) return &module;
  }
  modules.push_back({});
  modules.back().path = name;
  return &modules.back();
}

void Net::note(const char* name, const char* leaf, ModuleKind kind) {
  Module* const module = noted(name);
  if (module == nullptr) return;
  if (kind != ModuleKind::kOther) module->kind = kind;
  module->parameters.push_back(leaf);
}

Tensor Net::declare(const char* name, const char* leaf, const Shape& shape, ModuleKind kind, bool trained) {
  note(name, leaf, kind);
  if (Module* const module = noted(name); module != nullptr && shape.rank == 2) {
    const bool turned = kind == ModuleKind::kConv1d;
    module->in_features = shape.dims[turned ? 0 : 1].n();
    module->out_features = shape.dims[turned ? 1 : 0].n();
  }
  Parameter p;
  p.module = name;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = weight_dtype(shape.rank);
  p.requires_grad = trained && trains(name, leaf);
  p.is_embedding = kind == ModuleKind::kEmbedding;
  return declare(p);
}

// unsloth 2026.8.19 models/_utils.py: offload_input_embeddings, offload_output_embeddings: with its own checkpoints the
// originals of what is trained in copies are files. A tied one stays while the other module reads it.
bool originals_are_files(const Net& net) {
  const bool tied = net.arch.tie_word_embeddings && net.job.adapter.modules_to_save.size() < 2;
  return net.job.framework.name == "unsloth" && net.job.checkpointing == Checkpointing::kOffload && !tied;
}

// peft/utils/other.py ModulesToSaveWrapper: the original stays, frozen and unused; its copy is trained.
Tensor Net::declare(Parameter p) {
  if (!p.is_adapter && is_half(p.dtype) && stays_wide(*this, p.module)) p.dtype = Dtype::kFp32;
  if (job.tensor.is_used()) p.whole = whole_elements(*this, p.shape);
  if (is_laid() && !tape.in_layer()) tape.go_to_card(card_of(p.module));
  const Treatment* how = treatment(p.module);
  if (how == nullptr || !how->copied) return tape.existing_parameter(weight_of(p));
  p.requires_grad = false;
  std::int32_t used = -1;
  if (!originals_are_files(*this)) used = weight_of(p);
  p.requires_grad = true;
  p.is_adapter = true;
  const std::int32_t copied = tape.declare(p);
  if (!adapters_off) used = copied;
  return used < 0 ? Tensor() : tape.existing_parameter(used);
}

std::int32_t Net::weight_of(const Parameter& p) {
  if (!blocks.on || p.is_adapter) return tape.declare(p);
  const std::int16_t layer = tape.instance_of_parameters();
  tape.resume_parameters_outside_layers();
  const std::int32_t weight = tape.declare(p);
  tape.resume_parameters_of(layer);
  return weight;
}

void Net::return_weights() {
  Tensor weights = std::move(attn_weights);
  if (job.use_reentrant && job.checkpointing != Checkpointing::kNone && weights.defined()) tape.return_also(weights);
  if (tape.phase() == Phase::kForward) outputs_weights = std::move(weights);
}

Tensor Net::parameter(const char* name, const char* leaf, const Shape& shape, bool trained) {
  const ModuleKind kind = shape.rank == 4 || shape.rank == 5 ? ModuleKind::kConvolution : ModuleKind::kOther;
  Tensor weight = declare(name, leaf, shape, kind, trained);
  return adapted_matrix(name, leaf, std::move(weight));
}

Tensor Net::fp32_parameter(const char* name, const char* leaf, const Shape& shape, bool trained) {
  note(name, leaf, ModuleKind::kOther);
  if (Module* const module = noted(name); module != nullptr && shape.rank == 2) module->in_features = shape.dims[1].n();
  Parameter p;
  p.module = name;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = fp32_unless_cast(job);
  p.requires_grad = trained && trains(name, leaf);
  return adapted_matrix(name, leaf, declare(p));
}

Tensor Net::linear_weight(const char* name, Dim out_features, Dim in_features) {
  Base base{name, in_features, out_features, false, {}, {}};
  base.weight = declare(name, "weight", Shape{out_features, in_features}, ModuleKind::kLinear);
  if (Module* module = noted(name)) module->is_quantised = true;
  if (rank_of(name) > 0) idle_adapter(base);
  return base.weight;
}

void Net::idle_adapter_on(const char* name, Dim out_features, Dim in_features) {
  if (rank_of(name) > 0) idle_adapter({name, in_features, out_features, false, {}, {}});
}

// axolotl 067b021 src/axolotl/monkeypatch/moe_quant.py; bitsandbytes 0.50 nn/parametrize.py replace_parameter_4bit.
QuantisedWeight Net::packed_expert(const char* name, const char* leaf, const Shape& shape) {
  if (Module* module = noted(name)) module->is_expert = true;
  return packed_parameter(name, leaf, shape, true);
}

Tensor Net::unpacked_expert(const QuantisedWeight& packed, const Shape& shape) {
  const Dim columns = shape.dim(-1);
  if (job.quantization.quant_type == QuantType::kInt8) {
    // bitsandbytes 0.50 backends/default/ops.py int8_vectorwise_dequant: by the rows' scales, then by a 127th: in fp32.
    const Tensor scaled = tape.allocate(shape, Dtype::kFp32, "dequantised weight (of its scales)");
    return tape.allocate(shape, Dtype::kFp32, "dequantised weight");
  }
  return view(dequantised_weight(tape, Dim(shape.numel() / columns.n()), columns, packed, job.recipe.weights), shape);
}

Tensor Net::expert_parameter(const char* name, const char* leaf, const Shape& shape) {
  if (packs_experts()) return unpacked_expert(packed_expert(name, leaf, shape), shape);
  const std::int32_t index = tape.next_parameter();
  Tensor weight = parameter(name, leaf, shape);
  tape.parameters()[static_cast<std::size_t>(index)].is_expert = true;
  if (Module* module = noted(name)) module->is_expert = true;
  return weight;
}

// peft 0.21 tuners/lora/layer.py: _LoraFactorsProxy.forward, outside of autocast.
Tensor ParameterUpdate::sum(const Tensor& weight) const {
  if (delta.defined()) return add(weight, delta);
  Tape& t = weight.tape();
  const std::optional<Dtype> around = t.autocast();
  t.set_autocast(std::nullopt);
  Tensor out = baddbmm(weight, left, right);
  t.set_autocast(around);
  return out;
}

Count Net::expert_rank(const char* name, const char* leaf) const {
  const Treatment* how = treatment(name);
  return how == nullptr ? 0 : how->adapts(leaf);
}

// peft tuners/lora/layer.py ParamWrapper: get_delta_factors of 0.21, get_delta_weight before, the update of all experts
// at once; _activate_lora, whose register_parametrization makes a sum with the weight to check its shape.
ParameterUpdate Net::expert_update(const char* name, const char* leaf, const Tensor& weight) {
  const Count rank = expert_rank(name, leaf);
  if (rank == 0) return {};
  const Dim experts = weight.dim(0), in = weight.dim(1), out = weight.dim(2), r(rank, Symbol::kRank);
  const bool up = std::string_view{leaf} != "down_proj";
  const Dim rows(r.n() * experts.n());
  Tensor a = adapter_weight(name, up ? "gate_up_proj.lora_A.weight" : "down_proj.lora_A.weight", Shape{rows, in},
                            job.trains_first_factors());
  Tensor b = adapter_weight(name, up ? "gate_up_proj.lora_B.weight" : "down_proj.lora_B.weight", Shape{out, rows});
  if (adapters_off) return {};
  a = view(std::move(a), Shape{experts, r, in});
  b = view(std::move(b), Shape{out, r, experts});
  b = permute(std::move(b), {2, 0, 1});
  ParameterUpdate update;
  if (job.framework.peft >= kPeftOfFactors) {
    update.left = to(transpose(std::move(a), -2, -1), weight.dtype());
    update.right = to(transpose(std::move(b), -2, -1), weight.dtype());
  } else {
    Tensor delta = matmul(std::move(b), std::move(a));
    delta = permute(std::move(delta), {0, 2, 1});
    delta = mul_scalar(std::move(delta));
    update.delta = to(std::move(delta), weight.dtype());
  }
  { const Tensor check = update.sum(weight); }
  return update;
}

// The same of a matrix: Linear.get_delta_weight.
Tensor Net::adapted_matrix(const char* name, const char* leaf, Tensor weight_in) {
  const Tensor weight = std::move(weight_in);
  const Treatment* how = treatment(name);
  const Count rank = how == nullptr || weight.shape().rank != 2 ? 0 : how->adapts(leaf);
  if (rank == 0) return weight;
  const Dim r(rank, Symbol::kRank);
  Tensor a = adapter_weight(name, "lora_A.weight", Shape{r, weight.dim(1)}, job.trains_first_factors());
  Tensor b = adapter_weight(name, "lora_B.weight", Shape{weight.dim(0), r});
  if (adapters_off) return weight;
  ParameterUpdate update;
  Tensor delta = matmul(std::move(b), std::move(a));
  update.delta = to(mul_scalar(std::move(delta)), weight.dtype());
  { const Tensor check = update.sum(weight); }
  return update.sum(weight);
}

Tensor Net::embedding(const char* name, Tensor ids_in, Dim rows, Dim width, Scaling scaling) {
  Scope in(tape, name, source());
  const Tensor ids = arrived(name, std::move(ids_in));
  const bool is_token_table = tape.next_parameter() == tied_embedding;
  const Tensor weight =
      fake_quantised_table(*this, declare(name, "weight", Shape{rows, width}, ModuleKind::kEmbedding));
  const bool divided = job.tensor.has_dtensors() && !job.is_megatron();  // whose own table is megatron.cpp's
  Tensor result = divided ? divided_embedding(*this, ids, weight) : tidemark::embedding(ids, weight);
  if (scaling != nullptr) result = scaling(*this, std::move(result));
  if (rank_of(name) == 0) return result;
  // peft 0.18 utils/other.py prepare_model_for_kbit_training runs before the adapters come: the hook is on the table
  // below them. transformers' Trainer asks when they are there.
  const bool prepared = job.method == Method::kQlora && job.quantization.prepare_kbit != PrepareKbit::kOff;
  if (is_token_table && prepared) result = hooked_inputs(std::move(result));
  return embedding_adapter(name, weight, std::move(result), ids, scaling != nullptr);
}

Tensor Net::token_embedding(const char* name, Dim width, Scaling scaling) {
  if (stage != nullptr && !stage->first) return std::move(received);
  tied_embedding = tape.next_parameter();
  if (job.prefix_length() > 0 && !adapters_off) lengthen_mask(*this, Dim(job.prefix_length()));
  Tensor embeds = embedding(name, input_ids, V, width, scaling);
  if (Module* module = noted(name)) module->is_token_table = true;
  embeds = with_noise(told_of_gradient(hooked_inputs(std::move(embeds))));
  if (job.virtual_tokens() > 0) embeds = behind_prompt(*this, std::move(embeds));
  return merge == nullptr ? embeds : merge(*this, std::move(embeds));
}

// The hook is on every module that get_input_embeddings() of a part names: on a decoder's table, too.
Tensor Net::tied_embedding_of(const char* name, Tensor ids_in, Scaling scaling) {
  Scope in(tape, name, source());
  const Tensor weight = tape.existing_parameter(whole_->tied_embedding);
  Tensor rows = tidemark::embedding(std::move(ids_in), weight);
  if (scaling != nullptr) rows = scaling(*this, std::move(rows));
  return hooked_inputs(std::move(rows));
}

namespace {
void keep_gradient(Tape&, Node& n, Tensor* g, Tensor*) {
  n.graph->hold(g[0], n.instance);
}
}  // namespace

// modeling_utils.py enable_input_require_grads: a hook on the table's module turns its output into a leaf that requires
// a gradient, where no weight before it does; the graph holds the leaf to its end.
Tensor Net::hooked_inputs(Tensor embeds_in) {
  Tensor embeds = std::move(embeds_in);
  if (!inputs_require_grads() || !tape.makes_graphs() || embeds.requires_grad()) return embeds;
  embeds.change().requires_grad = embeds.change().is_detached_leaf = true;
  tape.tell_hooked_output();
  // accumulate_grad.h: its gradient waits for all that read it, then it is the leaf's own, as long as that lives.
  tape.attach(tape.record("AccumulateGrad", keep_gradient, {&embeds}), embeds);
  whole_->leaves.push_back(embeds);
  if (job.offload.activations)
    tape.keep_behind_last_node(tape.allocate(embeds.shape(), embeds.dtype(), "inputs before"));
  return embeds;
}

// Of a leaf no node but this one runs in backward.
Tensor Net::told_of_gradient(Tensor embeds_in) {
  const Tensor embeds = std::move(embeds_in);
  const bool is_leaf = embeds.body().is_detached_leaf;
  if (tape.placement() == nullptr || !is_leaf) return embeds;
  const auto tell = [](Tape& t, Node& n, Tensor* g, Tensor* r) {
    t.placement()->backward_returns(static_cast<std::int32_t>(n.attributes[0]));
    r[0] = std::move(g[0]);
  };
  Node* n = tape.record("pre_backward", tell, {&embeds});
  if (n == nullptr) return embeds;
  n->attributes[0] = tied_embedding;
  Tensor out = embeds;
  tape.attach(n, out);
  return out;
}

// transformers 5.12 integrations/neftune.py neftune_post_forward_hook: output + torch.zeros_like(output).uniform_(…).
// It is on what get_input_embeddings() of the whole names: an encoder-decoder's `shared`, which nobody calls but
// Florence-2.
Tensor Net::with_noise(Tensor embeds_in) {
  const Tensor embeds = std::move(embeds_in);
  if (job.neftune_noise_alpha <= 0.0 || evaluates) return embeds;
  if (arch.num_decoder_layers > 0 && arch.language == nullptr) return embeds;
  Tensor noise = zeros(tape, embeds.shape(), embeds.dtype(), "zeros_like");
  return add(embeds, std::move(noise));
}

// What torchao 0.18 convert_to_float8_training converts, where it is told to leave alone what float8 products cannot
// take (torch._scaled_mm wants sizes that are multiples of 16).
Tensor Net::product(Tensor x, const Base& base) {
  constexpr Count kMultiple = 16;
  const bool fits = base.in_features.n() % kMultiple == 0 && base.out_features.n() % kMultiple == 0;
  if (job.float8 == Float8::kNone || !fits) return fake_quantised_linear(*this, std::move(x), base.weight, base.bias);
  has_float8_products = true;
  return float8_linear(std::move(x), base.weight, base.bias, job.float8 == Float8::kRowwise);
}

namespace {

// peft 0.18 tuners/oft/gptq.py GPTQOFTLinear.forward: a product of what is not turned yet, which is there until the
// other one takes its name. gptqmodel's layers for AWQ are GPTQ's for PEFT.
bool multiplies_twice(const TrainingJob& job, const PackedLinear& packed) {
  const bool by_gptq = packed.type == QuantType::kGptq || (packed.type == QuantType::kAwq && !packed.former);
  return job.adapter.kind == AdapterKind::kOft && by_gptq;
}

}  // namespace

Tensor Net::linear(const char* name, Tensor x_in, Dim out_features, bool bias) {
  if (job.lora_kernels.o && std::string_view{name} == "self_attn.o_proj") at_once(x_in, {{name, out_features, bias}});
  if (!made_.empty() && std::string_view{made_.back().first} == name) {
    Tensor result = std::move(made_.back().second);
    made_.pop_back();
    return result;
  }
  Scope in(tape, name, source());
  Tensor x = before_projection(*this, name, arrived(name, std::move(x_in)));
  Base base{name, x.dim(-1), out_features, packs_here(), {}, {}};
  const bool is_adapted = rank_of(name) > 0;
  Tensor input, unturned, unturned_weight;
  AdapterInput adapted;
  if (is_adapted) {
    input = x;
    if (base.quantised && multiplies_twice(job, packed_layer())) {
      unturned = quantised_linear(base, x, bias);
      // torch/utils/checkpoint.py _recomputation_hook: a recomputation's own graph holds what it saves.
      if (tape.recomputing() && !job.use_reentrant && packed_layer().type == QuantType::kGptq)
        unturned_weight = tape.allocate(Shape{base.in_features, base.out_features}, x.dtype(), "dequantised weight");
    }
    adapted = input_of_base(base, std::move(x));
    x = adapted.x;
  }
  // DoRA's magnitude reads the base's weight, too, and its backward comes.
  if (!is_adapted || !job.adapter.use_dora) tape.tell_input(x);
  Tensor result;
  if (unturned.defined()) {
    result = packed_linear(std::move(x), base.out_features, packed_layer(), base.bias);
    unturned.reset();
    unturned_weight.reset();
  } else if (base.quantised) {
    result = quantised_linear(base, std::move(x), bias);
  } else {
    base.weight = declare(name, "weight", Shape{out_features, base.in_features}, ModuleKind::kLinear);
    if (Module* module = noted(name)) module->is_quantised = true;
    if (bias) base.bias = parameter(name, "bias", Shape{out_features});
    if (!replaces_base(is_adapted)) result = product(std::move(x), base);
  }
  if (!is_adapted) return behind_projection(*this, name, std::move(result));
  return adapter(base, std::move(result), std::move(input));
}

Dtype Net::kept_dtype() const {
  return kept(weight_dtype(2), job);
}

// quantizers/base.py get_modules_to_not_convert: `_keep_in_fp32_modules` are among them.
Tensor Net::wide_linear(const char* name, Tensor x, Dim out_features) {
  return kept_linear(name, std::move(x), out_features, kept_dtype());
}

Tensor Net::fp32_linear(const char* name, Tensor x, Dim out_features) {
  if (packs_here()) return linear(name, std::move(x), out_features);
  Tensor result = kept_linear(name, std::move(x), out_features, fp32_unless_cast(job));
  if (Module* module = noted(name)) module->is_quantised = true;
  return result;
}

Tensor Net::kept_linear(const char* name, Tensor x_in, Dim out_features, Dtype dtype) {
  Scope in(tape, name, source());
  Tensor x = arrived(name, std::move(x_in));
  Base base{name, x.dim(-1), out_features, false, {}, {}};
  note(name, "weight", ModuleKind::kLinear);
  Parameter p;
  p.module = name;
  p.leaf = "weight";
  p.shape = Shape{out_features, base.in_features};
  p.dtype = dtype;
  p.requires_grad = trains(name, "weight");
  base.weight = declare(p);
  Tensor kept = to(std::move(x), base.weight.dtype());  // by the same name
  const bool is_adapted = rank_of(name) > 0;
  if (replaces_base(is_adapted)) return adapter(base, {}, std::move(kept));
  const AdapterInput adapted = is_adapted ? input_of_base(base, kept) : AdapterInput{kept, {}};
  Tensor result = tidemark::linear(adapted.x, base.weight);
  if (!is_adapted) return result;
  return adapter(base, std::move(result), std::move(kept));
}

Tensor Net::matmul_linear(const char* name, Tensor x_in, Dim out_features, bool bias) {
  // replace_with_bnb_linear asks for `type(module) is nn.Linear`: such modules stay in 16 bits.
  Scope in(tape, name, source());
  const Tensor x = std::move(x_in);
  Base base{name, x.dim(-1), out_features, false, {}, {}};
  base.weight = declare(name, "weight", Shape{out_features, base.in_features}, ModuleKind::kLinear);
  const bool is_adapted = rank_of(name) > 0;
  const AdapterInput adapted = is_adapted ? input_of_base(base, x) : AdapterInput{x, {}};
  Tensor result = matmul(adapted.x, transpose(base.weight, 0, 1));
  if (bias) {
    base.bias = parameter(name, "bias", Shape{out_features});
    result = add(std::move(result), base.bias);
  }
  if (!is_adapted) return result;
  return adapter(base, std::move(result), x);
}

Tensor Net::conv1d(const char* name, Tensor x_in, Dim out_features) {
  Scope in(tape, name, source());
  Tensor x = std::move(x_in);
  Base base{name, x.dim(-1), out_features, packs_here(), {}, {}};
  const bool is_adapted = rank_of(name) > 0;
  Tensor input;
  AdapterInput adapted;
  if (is_adapted) {
    input = x;
    adapted = input_of_base(base, std::move(x));
    x = adapted.x;
  }
  Tensor result;
  if (base.quantised) {
    // transformers 5.12 integrations/bitsandbytes.py replace_with_bnb_linear: a Linear4bit of the transposed weight.
    result = quantised_linear(base, std::move(x), true);
  } else {
    const Tensor weight = declare(name, "weight", Shape{base.in_features, out_features}, ModuleKind::kConv1d);
    if (Module* module = noted(name)) module->is_quantised = true;
    base.bias = parameter(name, "bias", Shape{out_features});
    result = conv1d_addmm(std::move(x), weight, base.bias);
    if (is_adapted) base.weight = transpose(weight, 0, 1);
  }
  if (!is_adapted) return result;
  return adapter(base, std::move(result), std::move(input));
}

Tensor Net::adapter_weight(const char* name, const char* leaf, const Shape& shape, bool trained) {
  Parameter p;
  p.module = name;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = job.adapter.dtype;
  p.requires_grad = trained;
  p.is_adapter = true;
  return declare(p);
}

void Net::idle_adapter(const Base& base) {
  if (adapter_ == nullptr) {
    adapter_weights(base);
    return;
  }
  if (adapter_->before != nullptr) adapter_->before(*this, base, {});
  adapter_->behind(*this, base, {}, {});
}

bool Net::replaces_base(bool is_adapted) const {
  return is_adapted && !adapters_off && adapter_ != nullptr && adapter_->instead;
}

AdapterInput Net::input_of_base(const Base& base, Tensor x_in) {
  AdapterInput in{std::move(x_in), {}};
  if (adapter_ == nullptr || adapter_->before == nullptr) return in;
  if (!adapters_off) return adapter_->before(*this, base, in.x);
  adapter_->before(*this, base, {});
  return in;
}

Net::AdapterWeights Net::adapter_weights(const Base& base) {
  const Dim r(rank_of(base.name), Symbol::kRank);
  AdapterWeights w;
  w.a = adapter_weight(base.name, "lora_A.weight", Shape{r, base.in_features}, job.trains_first_factors());
  w.b = adapter_weight(base.name, "lora_B.weight", Shape{base.out_features, r});
  if (job.adapter.use_dora) w.magnitude = adapter_weight(base.name, "lora_magnitude_vector", Shape{base.out_features});
  return w;
}

namespace {

// FSDP 1 with units of adapters: outside of its unit's forward an original parameter has the dtype of its part. PEFT
// casts to that, the unit back (torch 2.14 fully_sharded_data_parallel.py: MixedPrecision.cast_forward_inputs). Without
// original parameters the module still has the view of the last gathered tensor (_flat_param.py: _use_unsharded_views).
Dtype dtype_outside_unit(const TrainingJob& job) {
  const DataParallel& how = job.data_parallel;
  const bool apart = how.is_sharded() && how.sharding == Sharding::kFsdp1 && how.fsdp.trained_leaves;
  return apart && how.fsdp.use_orig_params && widens_trained(job) ? Dtype::kFp32 : job.adapter.dtype;
}

}  // namespace

// sd-scripts 48d368f networks/lora.py LoRAModule.forward, which takes the place of the base's.
Tensor Net::beside_forward(Tensor result_in, const Tensor& x, Tensor down, Tensor up, Product times) {
  const Tensor result = std::move(result_in);
  Tensor update = times(x, std::move(down));
  if (job.adapter.lora_dropout > 0.0) update = dropout(std::move(update), job.adapter.lora_dropout);
  update = times(std::move(update), std::move(up));
  Tensor scaled = mul_scalar(update);      // * multiplier
  scaled = mul_scalar(std::move(scaled));  // * scale
  return add(result, std::move(scaled));
}

// peft/tuners/lora/layer.py Linear.forward; for packed bases peft/tuners/lora/bnb.py Linear4bit.forward and
// Linear8bitLt.forward (peft 0.18).
Tensor Net::adapter(const Base& base, Tensor result_in, Tensor x_in) {
  if (adapter_ != nullptr && !adapters_off) return adapter_->behind(*this, base, std::move(result_in), x_in);
  Tensor result = std::move(result_in);
  if (adapter_ != nullptr) return adapter_->behind(*this, base, std::move(result), {});
  if (adapters_off) {
    adapter_weights(base);  // they are there, but idle
    return result;
  }
  const Tensor argument = std::move(x_in);  // a module's arguments live until the call returns
  if (runs_sd_scripts(job)) {
    AdapterWeights weights = adapter_weights(base);
    return beside_forward(std::move(result), argument, std::move(weights.a), std::move(weights.b),
                          [](Tensor in, Tensor weight) { return tidemark::linear(std::move(in), std::move(weight)); });
  }
  Tensor x = argument;
  const Dtype result_dtype = result.dtype();
  // peft/tuners/lora/gptq.py, awq.py, hqq.py and aqlm.py differ in what they cast, and when; none clones. gptqmodel's
  // layers for AWQ are GPTQ's for PEFT.
  const PackedLinear packed = packed_layer();
  const bool by_gptq = packed.type == QuantType::kGptq || (packed.type == QuantType::kAwq && !packed.former);
  const bool aqlm = base.quantised && packed.type == QuantType::kAqlm;
  const bool casts_first =
      base.quantised && ((packed.type == QuantType::kAwq && packed.former) || aqlm || packed.type == QuantType::kEetq);
  const bool ordinary = !base.quantised || job.quantization.keeps_linear();
  const bool bitsandbytes = base.quantised && uses_bitsandbytes();
  if (bitsandbytes && !quantised_to_int8()) result = clone(std::move(result));
  const bool convert = ordinary || by_gptq || !tape.autocast();
  const Dtype seen = dtype_outside_unit(job);
  if (convert) x = to(std::move(x), seen);
  const AdapterWeights weights = adapter_weights(base);
  if (job.adapter.use_dora) {
    result = dora(base, weights, result, std::move(x));
    return convert ? to(std::move(result), result_dtype) : result;
  }
  Tensor y = dropout(x, job.adapter.lora_dropout);
  if (convert && seen != job.adapter.dtype) y = to(std::move(y), job.adapter.dtype);  // cast_forward_inputs
  y = tidemark::linear(std::move(y), weights.a);
  y = tidemark::linear(std::move(y), weights.b);
  if (casts_first && convert) y = to(std::move(y), result_dtype);
  y = mul_scalar(std::move(y));
  if (bitsandbytes && convert) y = to(std::move(y), result_dtype);
  if (aqlm) return add_in_place(std::move(result), std::move(y));
  result = add(std::move(result), std::move(y));
  return convert ? to(std::move(result), result_dtype) : result;
}

// peft/tuners/lora/layer.py Embedding.forward (peft 0.18): rows of A's transpose, then a product with B's.
Tensor Net::embedding_adapter(const char* name, const Tensor& table, Tensor result_in, Tensor ids, bool scaled) {
  Tensor result = std::move(result_in);
  const Dtype result_dtype = result.dtype();
  const Dim r(rank_of(name), Symbol::kRank), rows = table.dim(0), width = table.dim(1);
  AdapterWeights weights;
  weights.a = transpose(adapter_weight(name, "lora_embedding_A", Shape{r, rows}), 0, 1);
  weights.b = transpose(adapter_weight(name, "lora_embedding_B", Shape{width, r}), 0, 1);
  if (job.adapter.use_dora) weights.magnitude = adapter_weight(name, "lora_magnitude_vector", Shape{width});
  if (adapters_off) return result;
  if (job.adapter.use_dora) {
    DoraEmbedding dora = dora_embedding(weights, table, std::move(ids));
    if (scaled) dora.update = mul_scalar(std::move(dora.update));
    result = mul(dora.scale, std::move(result));
    result = add(std::move(result), std::move(dora.update));
    return to(std::move(result), result_dtype);
  }
  const Tensor after_a = tidemark::embedding(std::move(ids), std::move(weights.a));
  Tensor update = matmul(after_a, std::move(weights.b));
  update = mul_scalar(std::move(update));
  if (scaled) update = mul_scalar(std::move(update));
  result = add(std::move(result), std::move(update));
  return to(std::move(result), result_dtype);
}

Count Net::adapter_site(const char* name, bool is_output_head) {
  if (Module* const module = noted(name)) {
    module->kind = ModuleKind::kLinear;
    module->is_output_head = is_output_head;
  }
  return rank_of(name);
}

QuantisedWeight Net::packed_parameter(const char* name, const char* leaf, const Shape& shape, bool is_expert) {
  const Count columns = shape.size(-1), rows = shape.numel() / columns;
  QuantisedWeight packed = uses_bitsandbytes() ? quantised_weight(job.quantization, rows, columns)
                                               : packed_parts(packed_layer(), rows, columns);
  Parameter p;
  p.module = name;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = Dtype::kUint8;
  p.is_expert = is_expert;
  p.storage_bytes = packed.packed;
  const std::size_t known = tape.parameters().size();
  packed.storage = tape.existing_parameter(weight_of(p)).storage();
  const std::int16_t layer = tape.instance_of_parameters();
  if (blocks.on) tape.resume_parameters_outside_layers();
  const bool counted = blocks.on && tape.parameters().size() == known;
  for (const QuantisedWeight::Part& part : packed.state) {
    if (part.bytes > 0 && !counted) tape.buffer(part.name, part.bytes, Category::kWeights);
  }
  tape.resume_parameters_of(layer);
  return packed;
}

// optimum 2.3 gptq/quantizer.py convert_model: GPTQ packs what lies in the layers.
bool Net::packs_here() const {
  return quantised() && !arch.unpacked && (job.quantization.quant_type != QuantType::kGptq || tape.in_layer());
}

PackedLinear Net::packed_layer() const {
  const Quantization& q = job.quantization;
  PackedLinear layer{q.quant_type, q.bits, q.group_size, q.desc_act, !job.framework.at_least(5, 0), job.recipe.weights};
  // gptqmodel 7.7 registers scales and biases in fp16, and transformers 5 loads them as they are; AutoGPTQ had the
  // layer's dtype (optimum: weight_dtype), AutoAWQ fp16, HQQ its compute_dtype.
  const bool gptq = q.quant_type == QuantType::kGptq;
  if (q.quant_type == QuantType::kAwq || q.quant_type == QuantType::kEetq || (gptq && !layer.former))
    layer.scales = Dtype::kFp16;
  return layer;
}

Tensor Net::quantised_linear(Base& base, Tensor x_in, bool bias) {
  const Tensor argument = std::move(x_in);
  Tensor x = argument;
  const Dtype input_dtype = x.dtype();
  const QuantisedWeight packed = packed_weight(base.name, Shape{base.out_features, base.in_features});
  if (!uses_bitsandbytes()) {
    const PackedLinear layer = packed_layer();
    if (bias) {
      Parameter p;
      p.module = base.name;
      p.leaf = "bias";
      p.shape = Shape{base.out_features};
      p.dtype = layer.scales;
      base.bias = declare(p);
    }
    return packed_linear(std::move(x), base.out_features, layer, base.bias);
  }
  if (bias) base.bias = parameter(base.name, "bias", Shape{base.out_features});
  if (quantised_to_int8()) return int8_linear(std::move(x), base.out_features);
  Dtype compute = Dtype::kBf16;
  if (job.recipe.autocast) {
    compute = *job.recipe.autocast;
  } else if (is_half(job.recipe.weights)) {
    compute = job.recipe.weights;
  }
  x = to(std::move(x), compute);
  // bitsandbytes 0.50 autograd/_functions.py MatMul4Bit: backward unpacks to quant_state.dtype, that of the weight
  // which was packed, and converts. Seen on an H200 (tests/measured/own.jsonl).
  const Unpacking unpacking = {.through = job.recipe.weights, .in_backward_alone = true};
  x = dequantised_linear(std::move(x), base.out_features, packed, base.bias, unpacking);
  return to(std::move(x), input_dtype);
}

// peft/utils/integrations.py dequantize_module_weight: of a packed weight a copy, in the dtype that it was packed from.
Tensor Net::plain_weight(const Base& base) {
  if (!base.quantised) return base.weight;
  if (quantised_to_int8()) return dequantised_int8_weight(tape, base.out_features, base.in_features);
  const QuantisedWeight packed = quantised_weight(job.quantization, base.out_features.n(), base.in_features.n());
  return dequantised_weight(tape, base.out_features, base.in_features, packed, job.recipe.weights);
}

Tensor Net::head_weight(const char* name, const Shape& shape) {
  if (!arch.tie_word_embeddings || tied_embedding < 0) return declare(name, "weight", shape, ModuleKind::kLinear);
  note(name, "weight", ModuleKind::kLinear);
  if (Module* module = noted(name)) module->is_tied = true;
  const Treatment* how = treatment(name);
  if (how == nullptr || !how->copied) return tape.existing_parameter(tied_embedding);
  // A module to save is copied with a weight of its own: the copy is tied to nothing.
  Parameter copy;
  copy.module = name;
  copy.leaf = "weight";
  copy.shape = shape;
  copy.dtype = weight_dtype(shape.rank);
  copy.requires_grad = true;
  copy.is_adapter = true;
  return tape.parameter(copy);
}

Tensor Net::lm_head(const char* name, Tensor x_in, Dim out_features, bool bias) {
  Scope in(tape, name, source());
  Tensor x = enter_divided(*this, std::move(x_in));
  x = before_projection(*this, name, std::move(x));
  Base base{name, x.dim(-1), out_features, false, {}, {}};
  base.weight = head_weight(name, Shape{out_features, base.in_features});
  if (Module* module = noted(name)) module->is_output_head = true;
  if (bias) base.bias = parameter(name, "bias", Shape{out_features});
  // A fused loss reads the weight and never calls the module: its adapter is there, but idle.
  if (fuse_loss && rank_of(name) > 0) idle_adapter(base);
  // get_act_offloading_ctx_manager: nothing that the module `lm_head` saves is moved.
  const bool called = !fuse_loss && std::string_view{name} == "lm_head";
  const bool offloads = called && tape.set_offloading(false);
  Tensor result = fuse_loss || rank_of(name) == 0 ? logits(std::move(x), std::move(base.weight), std::move(base.bias))
                                                  : adapted_head(base, x);
  if (offloads) tape.set_offloading(true);
  return result;
}

// A Linear of the head, never packed, and its adapter.
Tensor Net::adapted_head(const Base& base, const Tensor& x) {
  if (replaces_base(true)) return adapter(base, {}, x);
  const AdapterInput adapted = input_of_base(base, x);
  Tensor result = tidemark::linear(adapted.x, base.weight, base.bias);
  return adapter(base, std::move(result), x);
}

Tensor Net::logits(Tensor x, Tensor weight, Tensor bias) {
  if (!fuse_loss)
    return behind_head(*this, fake_quantised_linear(*this, std::move(x), std::move(weight), std::move(bias)));
  if (job.loss == Loss::kChunked) return chunked_loss(*this, std::move(x), std::move(weight), std::move(bias));
  if (job.loss == Loss::kCutCrossEntropy) return cut_cross_entropy(*this, std::move(x), std::move(weight));
  return liger_fused_loss(*this, std::move(x), std::move(weight));
}

Tensor Net::classifier(const char* name, Tensor x_in, Dim out_features, bool bias) {
  // transformers 5.12 quantizers/base.py get_keys_to_not_convert: the output embeddings are left as they are, and what
  // the last parameter's name says: with a bias that is "….bias", which names no module.
  // It was packed before an adapter could save it.
  const bool is_packed =
      bias && std::string_view{name} != "lm_head" && job.framework.at_least(5, 0) && job.quantization.is_bitsandbytes();
  if (uses_bitsandbytes() && is_packed) return linear(name, std::move(x_in), out_features, bias);
  Scope in(tape, name, source());
  const Tensor x = std::move(x_in);
  Base base{name, x.dim(-1), out_features, false, {}, {}};
  base.weight = declare(name, "weight", Shape{out_features, base.in_features}, ModuleKind::kLinear);
  if (Module* module = noted(name)) module->is_quantised = is_packed;
  if (bias) base.bias = parameter(name, "bias", Shape{out_features});
  return rank_of(name) == 0 ? fake_quantised_linear(*this, x, base.weight, base.bias) : adapted_head(base, x);
}

void Net::leave_body(Tensor last_hidden_state) {
  last_hidden = std::move(last_hidden_state);
  shared = {};  // masks and tables
  model_locals.clear();
  outer_locals.clear();
  if (!returns_image_outputs()) let_image_outputs_go();
  outputs_weights.reset();
}

Tensor Net::layer_norm(const char* name, Tensor x_in, bool affine, bool bias) {
  Scope in(tape, name, source());
  Tensor x = arrived(name, std::move(x_in));
  Tensor weight, b;
  const Dim width = x.dim(-1);
  if (affine) weight = parameter(name, "weight", Shape{width});
  if (affine && bias) b = parameter(name, "bias", Shape{width});
  return tidemark::layer_norm(std::move(x), std::move(weight), std::move(b));
}

Dtype Net::buffer_for_product(Dtype weights) {
  const Dtype dtype = buffer_dtype(weights);
  if (dtype != weights && !job.recipe.autocast) tape.tell_mixed_dtypes();
  return dtype;
}

Tensor Net::batch_norm(const char* name, Tensor x) {
  Scope in(tape, name, source());
  const Dim channels = x.dim(1);
  for (const char* leaf : {"running_mean", "running_var"}) {
    tape.buffer(leaf, channels.n() * size_of(buffer_dtype(weight_dtype(1))));
  }
  tape.buffer("num_batches_tracked", size_of(Dtype::kInt64));
  const Tensor weight = parameter(name, "weight", Shape{channels});
  return tidemark::batch_norm(std::move(x), weight, parameter(name, "bias", Shape{channels}));
}

}  // namespace tidemark
