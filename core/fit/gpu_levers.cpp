#include "core/fit/gpu_levers.hpp"

#include <algorithm>
#include <string>

#include "core/job/defaults.hpp"
#include "core/job/recipe.hpp"
#include "core/layers/program.hpp"

namespace tidemark {
namespace {

// Weights: docs/advice.md. What several GPUs divide among them costs less than what is computed twice, and the whole of
// a step's time never as much as training something else.
constexpr std::string_view kZero = "Rajbhandari et al. 2020, ZeRO, section 7, arXiv:1910.02054";
constexpr Cost kProcesses{1,
                          Harm::kNothing,
                          "faster: a process for each GPU, gradients reduced during backward",
                          "the same up to rounding",
                          "none",
                          "PyTorch documentation, torch.nn.DataParallel"};
constexpr Cost kStage1{2,      Harm::kNothing, "equal: as much is sent as without", "the same up to rounding",
                       "none", kZero};
constexpr Cost kStage2{
    3,      Harm::kSpeed, "equal, but with gradient accumulation each micro-step reduces", "the same up to rounding",
    "none", kZero};
constexpr Cost kGathered{8,
                         Harm::kSpeed,
                         "half as much again is sent: weights are gathered in forward and in backward",
                         "the same up to rounding",
                         "none",
                         "Zhao et al. 2023, PyTorch FSDP, arXiv:2304.11277"};
constexpr Cost kStage3{9,
                       Harm::kSpeed,
                       "half as much again is sent: weights are gathered in forward and in backward",
                       "the same up to rounding",
                       "none",
                       kZero};
constexpr Cost kTensor{12,
                       Harm::kSpeed,
                       "two collectives in each layer wait for one another; wants NVLink",
                       "the same up to rounding",
                       "none",
                       "Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053; Korthikanti et al. 2022, arXiv:2205.05198"};
constexpr Cost kContext{14,
                        Harm::kSpeed,
                        "keys and values go round the GPUs in each layer",
                        "the same up to rounding",
                        "none",
                        "Liu et al. 2023, Ring Attention, arXiv:2310.01889"};
constexpr Cost kExperts{13,
                        Harm::kSpeed,
                        "tokens are sent to their experts and back in each layer",
                        "the same up to rounding",
                        "none",
                        "Lepikhin et al. 2020, GShard, arXiv:2006.16668"};
constexpr Cost kStages{16,
                       Harm::kSpeed,
                       "GPUs wait at both ends of a step: (stages - 1) / micro-batches of its time",
                       "the same up to rounding",
                       "none",
                       "Narayanan et al. 2021, Efficient Large-Scale Language Model Training, arXiv:2104.04473"};
constexpr Cost kOptimizerOnHost{24,
                                Harm::kSpeed,
                                "slower: the step runs on the processor, gradients and weights cross PCIe",
                                "the same up to rounding",
                                "none",
                                "Ren et al. 2021, ZeRO-Offload, arXiv:2101.06840"};
constexpr Cost kAllOnHost{28,
                          Harm::kSpeed,
                          "slower: as above, and weights cross PCIe in forward and in backward",
                          "the same up to rounding",
                          "none",
                          "Rajbhandari et al. 2021, ZeRO-Infinity, arXiv:2104.07857; PyTorch, CPUOffloadPolicy"};

Step step_of(Lever lever, std::string title, std::vector<Setting> settings, const Cost& cost, int already = 0) {
  Step step;
  step.lever = lever;
  step.title = std::move(title);
  step.settings = std::move(settings);
  step.cost = cost;
  step.cost.weight -= already;
  return step;
}

std::vector<Step> done(std::vector<Step> steps) {
  if (!steps.empty()) steps.back().strongest = true;
  return steps;
}

/// The recipe as it is, unless the settings state one, where leaving it to the framework would change it with the
/// strategy.
std::vector<Setting> stating_recipe(const TrainingJob& job, std::vector<Setting> settings) {
  if (named_recipe(job.recipe.name)) settings.insert(settings.begin(), set_word("precision", job.recipe.name));
  return merged(settings);
}

}  // namespace

std::vector<Setting> to_fsdp2(const TrainingJob& job) {
  std::vector<Setting> settings = {set_word("parallelism.fsdp", "fsdp2")};
  const bool by_engine = job.data_parallel.sharding >= Sharding::kZero1;
  const bool widens = job.recipe.autocast && job.outputs_to_fp32 && !job.has_adapter();
  if (by_engine || widens) settings.push_back(set_word("precision", "fsdp_bf16"));
  return stating_recipe(job, std::move(settings));
}

namespace {

/// The most of a host's GPUs that data-parallel ones can be regrouped in, by halves; 1 where they cannot.
Count regrouped(const TrainingJob& job) {
  const Count gpus = job.data_parallel.degree;
  Count group = std::min(gpus, job.data_parallel.per_node);
  while (gpus % group != 0) --group;
  return group;
}

/// Fewer samples are alive at a time: as many more micro-steps.
Setting as_many_samples(const TrainingJob& job, Count group) {
  return set_count("gradient_accumulation_steps", job.gradient_accumulation_steps * group);
}

/// Where torch's plan does not go, transformers' own does: a tied head, adapters, other modules than Llama's.
bool goes_by_tp_plan(const TrainingJob& job, const Architecture& architecture) {
  const Program* program = architecture.program;
  if (job.is_megatron() || is_stood_for(job.framework) || program == nullptr || !program->has_tp_plan) return false;
  return !program->is_divisible || architecture.tie_word_embeddings || job.has_adapter();
}

void add_tensor(const TrainingJob& job, const Architecture& architecture, std::vector<Step>& steps) {
  const bool used = job.tensor.is_used(), planned = goes_by_tp_plan(job, architecture);
  if (used && !planned && !job.tensor.sequence) {
    steps.push_back(step_of(Lever::kModelParallel, "Sequence parallel beside tensor parallelism",
                            {set_flag("parallelism.sequence_parallel", true)}, kTensor, kTensor.weight - 1));
  }
  // Megatron-Core pads the vocabulary to a multiple of 128 for each: what is padded already must do.
  const Count columns = job.is_megatron() ? 128 : 1;
  const auto divides = [&](Count group) {
    if (architecture.num_kv_heads % group != 0) return false;
    return planned || (job.sequence_length % group == 0 && architecture.vocab_size % (columns * group) == 0);
  };
  Count group = used ? 1 : regrouped(job);
  while (group > 1 && !divides(group)) group /= 2;
  if (group < 2) return;
  std::vector<Setting> settings = {set_count("parallelism.data", job.data_parallel.degree / group),
                                   set_count("parallelism.tensor", group)};
  if (!planned) settings.push_back(set_flag("parallelism.sequence_parallel", true));
  settings.push_back(as_many_samples(job, group));
  std::string title = planned ? "transformers' tp_plan over " : "Tensor parallelism over ";
  title += std::to_string(group) + " GPUs of a host";
  if (!planned && !job.is_megatron()) settings.push_back(set_flag("parallelism.loss_parallel", true));
  const Sharding now = job.data_parallel.sharding;
  const bool zero = now >= Sharding::kZero1;
  // Both plans go with FSDP 2 alone: several hosts' copies of a part are divided by it.
  const bool among_hosts = !job.is_megatron() && job.data_parallel.degree > group && (zero || now == Sharding::kNone);
  if (among_hosts) {
    title += ", FSDP 2 among hosts";
    const std::vector<Setting> divided = to_fsdp2(job);
    settings.insert(settings.end(), divided.begin(), divided.end());
    if (zero) settings.push_back(set_count("parallelism.zero_stage", 0));
  } else {
    settings = stating_recipe(job, std::move(settings));
  }
  steps.push_back(step_of(Lever::kModelParallel, std::move(title), std::move(settings), kTensor));
}

void add_stages(const TrainingJob& job, const Architecture& architecture, std::vector<Step>& steps) {
  Count group = job.pipeline.is_used() || job.is_megatron_deepspeed() ? 1 : regrouped(job);
  while (group > architecture.num_layers) group /= 2;
  if (group < 2) return;
  std::vector<Setting> settings = {set_count("parallelism.data", job.data_parallel.degree / group),
                                   set_count("parallelism.pipeline", group),
                                   set_count("parallelism.num_micro_batches", group * job.gradient_accumulation_steps),
                                   set_count("gradient_accumulation_steps", 1)};
  if (job.data_parallel.sharding == Sharding::kFsdp2) {
    settings.push_back(set_flag("parallelism.reshard_after_forward", false));
  }
  steps.push_back(step_of(Lever::kModelParallel, "A pipeline of " + std::to_string(group) + " GPUs",
                          stating_recipe(job, std::move(settings)), kStages));
}

// Megatron-Core's alone: elsewhere a GPU's part of the sequence stands for context parallelism.
void add_megatron(const TrainingJob& job, const Architecture& architecture, std::vector<Step>& steps) {
  const Count group = regrouped(job);
  if (!job.is_megatron() || group < 2) return;
  if (architecture.experts.count % group == 0 && architecture.experts.count > 0 && job.expert == 1) {
    steps.push_back(step_of(Lever::kModelParallel, "Experts divided among " + std::to_string(group) + " GPUs",
                            {set_count("parallelism.expert", group)}, kExperts));
  }
  if (job.context == 1) {
    steps.push_back(step_of(Lever::kModelParallel,
                            "Context parallelism over " + std::to_string(group) + " GPUs of a host",
                            {set_count("parallelism.data", job.data_parallel.degree / group),
                             set_count("parallelism.context", group), as_many_samples(job, group)},
                            kContext));
  }
}

}  // namespace

std::vector<Step> sharding_steps(const TrainingJob& job) {
  std::vector<Step> steps;
  const DataParallel& how = job.data_parallel;
  if (!how.is_used()) return steps;
  const Sharding now = how.sharding;
  const auto to = [&](std::string title, std::vector<Setting> settings, const Cost& cost, int already) {
    if (how.one_process) settings.push_back(set_word("parallelism.data_parallel", "ddp"));
    if (now == Sharding::kNone) settings = stating_recipe(job, std::move(settings));
    steps.push_back(step_of(Lever::kSharding, std::move(title), std::move(settings), cost, already));
  };
  if (is_fsdp(now)) {
    if (how.replicas > 1) {
      to("Parts divided among all GPUs, not in each group", {set_count("parallelism.fsdp_options.replicate", 1)},
         kGathered, kGathered.weight - 4);
    }
    if (now == Sharding::kFsdp1 && how.fsdp.keeps_gathered) {
      to("FSDP 1 that lets weights go after forward", {set_word("parallelism.fsdp", "full_shard")}, kGathered, 0);
    }
    if (now == Sharding::kFsdp2 && !how.fsdp.reshard_after_forward && !job.pipeline.is_used()) {
      to("Weights let go after forward (FSDP 2)", {set_flag("parallelism.reshard_after_forward", true)}, kGathered, 0);
    }
    return done(std::move(steps));
  }
  if (job.is_megatron()) {
    if (now == Sharding::kNone) {
      steps.push_back(step_of(Lever::kSharding, "Megatron-Core's distributed optimizer",
                              {set_count("parallelism.zero_stage", 1)}, kStage1));
    }
    return done(std::move(steps));
  }
  if (how.one_process) to("DistributedDataParallel: a process for each GPU", {}, kProcesses, 0);
  const int already = now == Sharding::kZero1 ? kStage1.weight : now == Sharding::kZero2 ? kStage2.weight : 0;
  if (now < Sharding::kZero1) to("ZeRO-1", {set_count("parallelism.zero_stage", 1)}, kStage1, 0);
  if (now < Sharding::kZero2) to("ZeRO-2", {set_count("parallelism.zero_stage", 2)}, kStage2, already);
  if (now == Sharding::kNone) to("FSDP 2", to_fsdp2(job), kGathered, 0);
  if (now < Sharding::kZero3) to("ZeRO-3", {set_count("parallelism.zero_stage", 3)}, kStage3, already);
  return done(std::move(steps));
}

std::vector<Step> model_parallel_steps(const TrainingJob& job, const Architecture& architecture) {
  std::vector<Step> steps;
  const bool apart = job.data_parallel.one_process || job.optimizer_in_backward;
  if (job.gpus() == 1 || apart || (job.context > 1 && !job.is_megatron())) return steps;
  add_tensor(job, architecture, steps);
  add_megatron(job, architecture, steps);
  add_stages(job, architecture, steps);
  return done(std::move(steps));
}

std::vector<Step> offload_steps(const TrainingJob& job) {
  std::vector<Step> steps;
  const DataParallel& how = job.data_parallel;
  if (!how.is_sharded() || job.is_megatron()) return steps;
  const Setting optimizer = set_word("offload.optimizer", "cpu"), weights = set_word("offload.parameters", "cpu");
  const bool fully = is_fsdp(how.sharding), has_stage3 = how.sharding == Sharding::kZero3;
  const auto add = [&steps](std::string title, std::vector<Setting> settings, const Cost& cost) {
    steps.push_back(step_of(Lever::kOffload, std::move(title), std::move(settings), cost));
  };
  if (fully && !job.offload.optimizer) {
    const std::string name = how.sharding == Sharding::kFsdp1 ? "CPUOffload" : "CPUOffloadPolicy";
    add("Weights, gradients and states in host memory (" + name + ")",
        {optimizer, weights, set_word("offload.gradients", "cpu")}, kAllOnHost);
  }
  if (!fully && !job.offload.optimizer) {
    add("Optimizer states in host memory (ZeRO-Offload)", {optimizer}, kOptimizerOnHost);
  }
  if (has_stage3 && !job.offload.parameters) {
    add("Weights and optimizer states in host memory (ZeRO-Infinity)", {optimizer, weights}, kAllOnHost);
  }
  return done(std::move(steps));
}

}  // namespace tidemark
