// Which pipelines are modelled.
#include <algorithm>
#include <numeric>

#include "core/layers/program.hpp"
#include "core/plan/pipeline.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kPipeline = "/parallelism/pipeline";

void refuse(Issues& issues, std::string_view path, std::string message, std::string_view suggestion = {}) {
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, std::string{path}, std::move(message), std::string{suggestion}});
}

void check_stages(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Pipeline& how = job.pipeline;
  const Count stages = how.stages * how.chunks;
  if (stages > architecture.num_layers && how.layout.empty()) {
    refuse(issues, kPipeline,
           "There are more stages than the model's " + std::to_string(architecture.num_layers) + " layers.");
  }
  const std::vector<Count>& layout = how.layout;
  // Megatron-Core counts embedding and loss as layers where it is told to: a stage may have nothing else.
  const bool empty = std::find(layout.begin(), layout.end(), 0) != layout.end() && !job.is_megatron();
  const bool fits = !empty && static_cast<Count>(layout.size()) == stages &&
                    std::accumulate(layout.begin(), layout.end(), Count{0}) == architecture.num_layers;
  if (!layout.empty() && !fits) {
    refuse(issues, "/parallelism/pipeline_layout",
           "State the layers of each of the " + std::to_string(stages) +
               " stages: " + std::to_string(architecture.num_layers) + " in all.");
  }
  if (how.rank >= how.stages) {
    refuse(issues, "/parallelism/rank", "Ranks of a pipeline count from 0 to parallelism.pipeline - 1.");
  }
}

void check_schedule(const Pipeline& how, Issues& issues) {
  constexpr std::string_view kMicroBatches = "/parallelism/num_micro_batches";
  const bool interleaved = how.schedule == PipelineSchedule::kInterleaved;
  if (how.has_chunks() == (how.chunks == 1)) {
    refuse(issues, "/parallelism/virtual_pipeline",
           "Several chunks on each GPU are the interleaved schedule's, and it has two at least.");
  }
  if (how.schedule == PipelineSchedule::kZeroBubbleV && how.chunks != 2) {
    refuse(issues, "/parallelism/virtual_pipeline", "torch's ScheduleZBVZeroBubble has two chunks on each GPU.", "2");
  }
  if (how.schedule == PipelineSchedule::k1F1B && how.micro_batches < how.stages) {
    refuse(issues, kMicroBatches, "torch's Schedule1F1B wants as many micro-batches as there are stages, at least.",
           std::to_string(how.stages));
  }
  const Count rounds = std::max<Count>(1, how.micro_batches / how.stages);
  if ((interleaved || how.schedule == PipelineSchedule::kZeroBubble) && how.micro_batches % rounds != 0) {
    refuse(issues, kMicroBatches,
           "torch's interleaved schedules want a multiple of " + std::to_string(rounds) + " micro-batches.");
  }
}

// stage.py backward_maybe_with_nosync knows DDP and fully_shard; DeepSpeed's engine ZeRO-1, without chunks.
void check_company(const TrainingJob& job, Issues& issues) {
  const DataParallel& data = job.data_parallel;
  const Sharding sharding = data.is_sharded() ? data.sharding : Sharding::kNone;
  if (sharding == Sharding::kFsdp1 || sharding > Sharding::kZero1) {
    refuse(issues, "/parallelism",
           "Beside a pipeline data parallelism is DistributedDataParallel, FSDP 2 or ZeRO-1: neither torch's schedules "
           "nor DeepSpeed's divide more.",
           "fsdp2");
  }
  if (sharding == Sharding::kZero1 && job.pipeline.schedule != PipelineSchedule::k1F1B) {
    refuse(issues, "/parallelism/pipeline_schedule", "DeepSpeed's pipeline runs 1F1B.", "1f1b");
  }
  if (job.offload.optimizer || job.offload.parameters) {
    refuse(issues, "/offload", "Offloading is not modelled beside a pipeline.", "none");
  }
}

// Records are of PEFT's LoRA and of autocast on whole stages.
void check_adapted(const TrainingJob& job, Issues& issues) {
  const bool lora =
      job.adapter.kind == AdapterKind::kLora && !job.adapter.use_dora && job.adapter.modules_to_save.empty();
  if (job.has_adapter() && !lora) {
    refuse(issues, "/adapter", "In a pipeline PEFT's LoRA is modelled, without DoRA and modules_to_save.");
  }
  const bool sharded = job.data_parallel.is_sharded(), tensor = job.tensor.is_used();
  const bool fsdp2 = sharded && job.data_parallel.sharding == Sharding::kFsdp2;
  if ((job.recipe.autocast || job.has_adapter()) && (tensor || sharded != fsdp2)) {
    refuse(issues, kPipeline,
           "Autocast and adapters are modelled in pipelines whose stages are whole, and beside FSDP 2.");
  }
}

// torch 2.14 distributed/pipelining/_backward.py: each group of weights is a backward of its own, in which a checkpoint
// would run once more.
void check_cut(const TrainingJob& job, Issues& issues) {
  if (!job.pipeline.is_cut()) return;
  constexpr std::string_view kSchedule = "/parallelism/pipeline_schedule";
  if (job.is_megatron() || job.tensor.is_used() || job.data_parallel.is_sharded() || job.method == Method::kQlora) {
    refuse(issues, kSchedule,
           "Backwards that are cut in two are modelled of torch's schedules on whole stages, without packed weights.",
           "interleaved");
  }
  if (job.checkpointing != Checkpointing::kNone) {
    refuse(
        issues, "/gradient_checkpointing",
        "A zero-bubble schedule runs a checkpointed layer again for the gradient of each weight: it is not modelled.",
        "none");
  }
}

// accelerate's hooks move hidden states and everything else that a layer is given.
void check_device_map(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  constexpr std::string_view kMap = "/parallelism/device_map";
  const bool several = architecture.num_decoder_layers > 0 || architecture.denoiser.latents > 0;
  // Layers have weights in common, which tie their cards, or take what others made (Gemma 3n and 4: keys, and columns
  // of the token's own).
  const bool shares =
      architecture.weight_groups > 0 || architecture.shared_kv_layers > 0 || architecture.layer_input_width > 0;
  if (architecture.head != Head::kCausalLm || several || shares || architecture.facts.no_split == NoSplit::kNone ||
      architecture.program == nullptr) {
    return refuse(issues, kMap,
                  "A device_map is modelled for causal language models, and for models with one that see. Leave it out "
                  "for what the whole job takes on one GPU.");
  }
  if (job.gpus() != job.pipeline.stages) {
    refuse(issues, kMap,
           "device_map is one process: beside it there are no data-, tensor- or context-parallel GPUs (the Trainer "
           "refuses it under torchrun).");
  }
  if (job.pipeline.rank >= job.pipeline.stages) {
    refuse(issues, "/parallelism/rank", "GPUs of a device_map count from 0 to parallelism.device_map - 1.");
  }
  if (job.pipeline.chunks > 1 || job.pipeline.micro_batches > 1) {
    refuse(issues, kMap, "device_map has neither chunks nor micro-batches of a pipeline.");
  }
  const bool known = job.method == Method::kFull || job.method == Method::kLora || job.method == Method::kQlora;
  const bool plain = !job.has_adapter() || job.adapter.kind == AdapterKind::kLora;
  if (!known || !plain || job.freezes_by_name() || job.optimizer_in_backward) {
    refuse(issues, kMap, "device_map is modelled for full training, LoRA and QLoRA, without an optimizer in backward.");
  }
  if (has_reference(job.preference) && job.reference == Reference::kCopy) {
    refuse(issues, "/reference_model",
           "A copy of the model that is laid on several GPUs, too, is not modelled. Precompute its log probabilities, "
           "or train an adapter, beside which no copy is needed.");
  }
  if (job.offload.optimizer || job.offload.parameters || job.checkpointing == Checkpointing::kOffload) {
    refuse(issues, kMap, "Offloading is not modelled under device_map.");
  }
  if (job.loss != Loss::kDefault) {
    refuse(issues, "/loss", "Under device_map the model's own loss is modelled.", "default");
  }
}

}  // namespace

void check_pipeline(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Pipeline& how = job.pipeline;
  if (!how.is_used()) return;
  check_cut(job, issues);
  constexpr std::string_view kOwn[] = {"torchtitan", "torchtune", "litgpt"};
  const bool own =
      job.is_megatron() || std::find(std::begin(kOwn), std::end(kOwn), job.framework.name) != std::end(kOwn);
  if (how.is_device_map() && own) {
    return refuse(issues, "/parallelism/device_map",
                  "device_map is transformers': this framework loads models itself.");
  }
  if (job.is_megatron()) return check_stages(architecture, job, issues);
  const Program* program = architecture.program;
  if (how.is_device_map()) return check_device_map(architecture, job, issues);
  if (program == nullptr || !program->is_divisible || architecture.head != Head::kCausalLm) {
    return refuse(issues, kPipeline, "Pipelines are modelled for causal language models with Llama's modules.");
  }
  check_stages(architecture, job, issues);
  check_schedule(how, issues);
  if (job.attention == AttentionKernel::kEager) {
    refuse(issues, "/attention", "The stages of a pipeline pass no masks, which eager attention needs.", "sdpa");
  }
  check_company(job, issues);
  if (job.freezes_by_name() || job.loss != Loss::kDefault || job.padding || job.packing || job.optimizer_in_backward ||
      job.preference != Preference::kNone || job.evaluation.micro_batch_size > 0 || job.offload.activations) {
    refuse(issues, kPipeline,
           "Pipelines are modelled for full training, LoRA and QLoRA with the default loss, without padding, "
           "preferences, evaluation, offloaded activations and an optimizer in backward.");
  }
  check_adapted(job, issues);
}

}  // namespace tidemark
