#include "core/step/coverage.hpp"

#include <algorithm>
#include <optional>

#include "core/job/framework.hpp"
#include "core/layers/program.hpp"
#include "core/options/options.hpp"
#include "core/plan/sharded.hpp"
#include "core/step/coverage_table.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kYes = "true";
constexpr std::string_view kNo = "false";

std::string_view head_word(Head head) {
  switch (head) {
    case Head::kCausalLm:
      return "causal_lm";
    case Head::kSequenceClassification:
      return "sequence_classification";
    case Head::kMaskedLm:
      return "masked_lm";
    case Head::kImageClassification:
      return "image_classification";
    case Head::kSeq2SeqLm:
      return "seq2seq_lm";
    case Head::kNone:
      return "none";
    default:
      return "other";
  }
}

// Releases between which the loss's copies of the logits, or what checkpointing asks for, changed.
std::string_view release_class(const Framework& framework) {
  if (framework.at_least(5, 0)) return "5";
  if (framework.at_least(4, 49)) return "4.49 to 4.57";
  if (framework.at_least(4, 46)) return "4.46 to 4.48";
  return "4.45 and before";
}

std::string_view checkpointing_class(const TrainingJob& job) {
  const bool again = job.use_reentrant;
  switch (job.checkpointing) {
    case Checkpointing::kNone:
      return "none";
    case Checkpointing::kFull:
      return again ? "full, re-entrant" : "full";
    case Checkpointing::kEvery:
      return again ? "every, re-entrant" : "every";
    case Checkpointing::kSelectiveCoreAttention:
      return "core_attn";
    case Checkpointing::kOffload:
      return again ? "offload, re-entrant" : "offload";
  }
  return {};
}

void add_adapter(std::vector<Trait>& traits, const Adapter& adapter) {
  if (adapter.kind != AdapterKind::kLora) {
    traits.push_back({"adapter.kind", choice_word("adapter.kind", static_cast<int>(adapter.kind))});
  }
  if (adapter.learns_prompt()) return;
  traits.push_back({"adapter.dtype", is_half(adapter.dtype) ? "16 bits" : "fp32"});
  traits.push_back({"adapter.target_modules",
                    adapter.target_modules.kind == ModuleChoice::Kind::kAllLinear ? "all-linear" : "a list"});
  if (adapter.lora_dropout > 0.0) traits.push_back({"adapter.lora_dropout", "above 0"});
  if (adapter.use_dora) traits.push_back({"adapter.use_dora", kYes});
  if (!adapter.modules_to_save.empty()) traits.push_back({"adapter.modules_to_save", "a list"});
}

void add_quantization(std::vector<Trait>& traits, const Quantization& quantization) {
  constexpr std::string_view kBits[] = {"2", "3", "4"};
  const int bits = quantization.bits;
  traits.push_back({"quantization.bits", bits == 8 ? "8" : kBits[bits >= 2 && bits <= 4 ? bits - 2 : 2]});
  if (!quantization.is_bitsandbytes()) {
    const int type = static_cast<int>(quantization.quant_type);
    traits.push_back({"quantization.quant_type", choice_word("quantization.quant_type", type)});
  } else if (bits == 4) {
    traits.push_back({"quantization.double_quant", quantization.double_quant ? kYes : kNo});
  }
  traits.push_back({"quantization.prepare_kbit",
                    choice_word("quantization.prepare_kbit", static_cast<int>(quantization.prepare_kbit))});
}

// By Sharding.
constexpr std::string_view kShardings[] = {"ddp", "fsdp2", "fsdp1", "zero1", "zero2", "zero3"};

constexpr std::string_view kReferences[] = {"copy", "without adapter", "precomputed", "none"};

void add_preference(std::vector<Trait>& traits, const TrainingJob& job) {
  if (job.preference == Preference::kNone) return;
  traits.push_back({"task", choice_word("task", static_cast<int>(job.preference))});
  if (!has_reference(job.preference)) return;
  traits.push_back({"reference_model", kReferences[static_cast<std::size_t>(job.reference)]});
  if (job.generates())
    traits.push_back({"rollout.engine", job.rollout.engine == RolloutEngine::kTransformers ? "transformers" : "vllm"});
  if (job.rollout.features > 0) traits.push_back({"feature_layers", kYes});
}

// Switches that most jobs leave alone: a trait only where they are moved.
void add_switches(std::vector<Trait>& traits, const TrainingJob& job) {
  const auto when = [&traits](bool moved, std::string_view option, std::string_view value) {
    if (moved) traits.push_back({option, value});
  };
  when(job.freezes_by_name(), "freeze", "a list");
  when(job.padding, "padding", kYes);
  when(job.packing, "packing", kYes);
  when(job.gradient_accumulation_steps > 1, "gradient_accumulation_steps", "above 1");
  when(job.max_grad_norm <= 0.0, "max_grad_norm", "0");
  when(job.optimizer_in_backward, "optimizer_in_backward", kYes);
  when(job.liger_rms_norm, "liger", "rms_norm");
  when(job.liger_swiglu, "liger", "swiglu");
  when(job.liger_rope, "liger", "rope");
  when(job.lora_kernels.mlp, "lora_kernels", "mlp");
  when(job.lora_kernels.qkv, "lora_kernels", "qkv");
  when(job.lora_kernels.o, "lora_kernels", "o");
  when(job.fused_attention, "fused_attn_kernel", kYes);
  when(job.method == Method::kQlora && job.quantization.experts, "quantization.moe_experts", kYes);
  when(job.offload.activations, kActivationOffloading, kYes);
  when(job.generates() && divides_weights(job), kDividedRollout, kYes);
  when(job.neftune_noise_alpha > 0.0, "neftune_noise_alpha", "above 0");
  when(job.label_smoothing > 0.0, "label_smoothing_factor", "above 0");
  when(job.float8 != Float8::kNone, "float8", choice_word("float8", static_cast<int>(job.float8)));
  const Qat& qat = job.qat;
  when(qat.is_used(), "qat.weight_dtype", choice_word("qat.weight_dtype", static_cast<int>(qat.weights)));
  when(qat.is_used(), "qat.activation_dtype", choice_word("qat.activation_dtype", static_cast<int>(qat.activations)));
  when(qat.embeddings, "qat.quantize_embedding", kYes);
  when(job.keep_outputs, "keep_outputs", kYes);
  when(!job.outputs_to_fp32, "outputs_to_fp32", kNo);
  when(!job.zero_grad_to_none, "zero_grad_to_none", kNo);
  when(job.compute_capability < 80, "gpu", "before Ampere");
  when(job.data_parallel.is_replicated(), "parallelism",
       job.data_parallel.gradient_as_bucket_view ? "ddp, bucket views" : "ddp");
  when(job.data_parallel.is_one_process(), "parallelism", "dp");
  when(job.data_parallel.is_sharded(), "parallelism", kShardings[static_cast<std::size_t>(job.data_parallel.sharding)]);
  when(job.tensor.has_dtensors(), "parallelism", "tensor");
  when(job.tensor.hooks, "parallelism", "tp_plan");
  when(job.tensor.has_dtensors() && !job.tensor.sequence, "parallelism.sequence_parallel", kNo);
  when(job.tensor.has_dtensors() && !job.tensor.loss, "parallelism.loss_parallel", kNo);
  constexpr std::string_view kSchedules[] = {"1f1b", "gpipe", "interleaved", "device_map", "zero_bubble", "zbv"};
  when(job.pipeline.is_used(), "parallelism.pipeline_schedule",
       kSchedules[static_cast<std::size_t>(job.pipeline.schedule)]);
  when(job.evaluation.micro_batch_size > 0, "evaluation",
       job.evaluation.generates      ? "generates"
       : job.evaluation.keeps_logits ? "logits kept"
                                     : kYes);
  when(job.offload.optimizer, "offload", job.offload.states_on_disk ? "optimizer, on disk" : "optimizer");
}

std::optional<std::size_t> place_of(const Trait& trait) {
  const auto table = recorded_options();
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.option == trait.option; });
  if (row == table.end()) return std::nullopt;
  std::size_t place = row->first;
  for (std::string_view rest = row->values; !rest.empty(); ++place) {
    const std::size_t end = rest.find('\n');
    if (rest.substr(0, end) == trait.value) return place;
    rest.remove_prefix(end + 1);
  }
  return std::nullopt;
}

bool met_together(std::size_t one, std::size_t other) {
  const std::size_t row = std::max(one, other), bit = std::min(one, other);
  const std::size_t begin =
      (row / 8 + 1) * (row / 8 * 4 + row % 8);  // bytes of the rows before: 1 for each of 8, then 2
  return (recorded_pairs()[begin + bit / 8] >> (bit % 8) & 1) != 0;
}

std::string in_words(const Trait& trait) {
  return std::string{trait.option} + " " + std::string{trait.value};
}

constexpr std::string_view kFamily = "model_type";
constexpr std::string_view kRelease = "framework.version";

// Most records are of transformers 5.12. Of what a later release may do otherwise, its modelling files and what loads,
// generates and divides models, each value wants a record of its own.
constexpr std::string_view kLater = "after 5.12";
constexpr std::string_view kOfTheRelease[] = {kFamily, "attention", "rollout.engine", "parallelism",
                                              "parallelism.pipeline_schedule"};

bool is_of_later_release(const Architecture& architecture, const TrainingJob& job) {
  const Program* const program = architecture.program;
  const bool of_transformers = architecture.denoiser.latents == 0 && (program == nullptr || !program->remote_code);
  return of_transformers && job.framework.at_least(5, 13);
}

bool is_later(const Trait& trait) {
  return trait.option == kRelease && trait.value == kLater;
}

bool follows_release(const Trait& trait) {
  return std::find(std::begin(kOfTheRelease), std::end(kOfTheRelease), trait.option) != std::end(kOfTheRelease);
}

}  // namespace

std::vector<Trait> traits_of(const Architecture& architecture, const TrainingJob& job) {
  std::vector<Trait> traits = {
      {kFamily, architecture.model_type},
      {"head", head_word(architecture.head)},
      {"method", choice_word("method", static_cast<int>(job.method))},
      {"precision", job.recipe.name},
      {"attention", choice_word("attention", static_cast<int>(job.attention))},
      {"gradient_checkpointing", checkpointing_class(job)},
      {"loss", choice_word("loss", static_cast<int>(job.loss))},
      {"optimizer", job.optimizer},
      {"framework.version", release_class(job.framework)},
  };
  if (is_of_later_release(architecture, job)) traits.push_back({kRelease, kLater});
  if (runs_sd_scripts(job) || runs_llama_factory_v1(job)) traits.push_back({"framework.name", job.framework.name});
  if (architecture.experts.count > 0 && !job.framework.at_least(5, 0)) {
    traits.push_back({"framework.version", "before 5, with experts"});
  }
  if (job.method == Method::kLora || job.method == Method::kQlora) add_adapter(traits, job.adapter);
  if (job.method == Method::kQlora) add_quantization(traits, job.quantization);
  add_switches(traits, job);
  if (job.data_parallel.is_sharded() && !architecture.parts.empty())
    traits.push_back({"parallelism", "a tower's parts"});
  add_preference(traits, job);
  return traits;
}

Coverage coverage_of(const Architecture& architecture, const TrainingJob& job) {
  Coverage coverage;
  coverage.stand_ins = job.stand_ins;
  coverage.not_counted = job.not_counted;
  if (runs_sd_scripts(job) && architecture.model_type != "UNet2DConditionModel") {
    coverage.stand_ins.emplace_back("sd-scripts' own code of the model, answered by diffusers' and PEFT's");
  }
  const Program* const program = architecture.program;
  if (program != nullptr && program->implementation != nullptr) {
    coverage.implementation = program->implementation;
    if (!program->recorded) coverage.unmet.push_back("framework.name " + job.framework.name);
    return coverage;
  }
  // torch_chunk_gated_delta_rule: a gated delta net's state has neither chunks nor time steps of a rank of their own.
  const StateSpace& ssm = architecture.ssm;
  const bool is_delta_net = ssm.heads > 0 && ssm.state > 0 && ssm.chunk == 0 && ssm.rank == 0;
  if (job.torch_scan && is_delta_net && is_of_later_release(architecture, job)) {
    coverage.stand_ins.push_back("the gated delta rule in torch as transformers " + std::string{kLater} +
                                 " has it, answered by 5.12's");
  }
  if (job.offload.activations) coverage.apart.push_back(kActivationOffloading);
  if (job.evaluation.generates) coverage.apart.push_back(kGenerates);
  if (job.generates() && divides_weights(job)) coverage.apart.push_back(kDividedRollout);
  const std::vector<Trait> traits = traits_of(architecture, job);
  std::vector<std::optional<std::size_t>> places;
  for (const Trait& trait : traits) {
    places.push_back(place_of(trait));
    if (!places.back()) coverage.unmet.push_back(in_words(trait));
  }
  for (std::size_t i = 0; i < traits.size(); ++i) {
    for (std::size_t j = i + 1; j < traits.size(); ++j) {
      if (!places[i] || !places[j] || met_together(*places[i], *places[j])) continue;
      const bool later = is_later(traits[i]) || is_later(traits[j]);
      if (later && !follows_release(is_later(traits[i]) ? traits[j] : traits[i])) continue;
      if (later && traits[i].option == kFamily) {
        coverage.stand_ins.push_back("what transformers " + std::string{kLater} + " does in " +
                                     std::string{traits[i].value} + ", answered by 5.12's code");
      } else if (traits[i].option == kFamily) {
        coverage.family_met = false;
      } else {
        coverage.unmet.push_back(in_words(traits[i]) + " with " + in_words(traits[j]));
      }
    }
  }
  return coverage;
}

}  // namespace tidemark
