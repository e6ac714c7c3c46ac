#include "core/job/check_own_loop.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "core/job/framework.hpp"

namespace tidemark {

// LLaMA-Factory ff6d4d12 src/llamafactory/v1/trainers, core/base_trainer.py,
// plugins/trainer_plugins/distributed/interface.py.
void check_own_loop(const Architecture& a, const TrainingJob& job, Issues& issues) {
  if (!runs_llama_factory_v1(job)) return;
  const auto refuse = [&](std::string_view code, std::string_view path, std::string message, std::string instead) {
    issues.push_back({std::string{code}, Severity::kError, std::string{path}, std::move(message), std::move(instead)});
  };
  if (job.preference != Preference::kNone || a.head != Head::kCausalLm) {
    refuse(
        "UNSUPPORTED_VALUE", "/task",
        "Of LLaMA-Factory's own loop supervised training of language models is modelled. Its DPO under transformers' "
        "Trainer is framework \"llama_factory\".",
        "sft");
  }
  if (job.images_per_sample > 0 || job.video_frames > 0 || job.audio_seconds > 0.0) {
    refuse(
        "UNSUPPORTED_VALUE", "/framework/name",
        "Of LLaMA-Factory's own loop text is modelled, also of models that see; pictures under transformers' Trainer "
        "are framework \"llama_factory\".",
        "llama_factory");
  }
  if (job.recipe.autocast) {
    refuse("INVALID_COMBINATION", "/precision",
           "LLaMA-Factory's own loop autocasts nowhere: leave the precision to it, or state one without autocast.",
           "auto");
  }
  if (job.loss != Loss::kDefault) {
    refuse("INVALID_COMBINATION", "/loss",
           "LLaMA-Factory's own loop makes its loss of the logits, which a fused loss does not return: it switches "
           "Liger's off.",
           "default");
  }
  if (job.has_adapter() && job.adapter.kind != AdapterKind::kLora) {
    refuse("UNSUPPORTED_VALUE", "/method", "LLaMA-Factory's own loop has no adapters but LoRA's.", "lora");
  }
  // core/base_trainer.py: _create_batch_generator.
  if (job.packing && job.attention != AttentionKernel::kFlashAttention2) {
    refuse("INVALID_COMBINATION", "/attention", "LLaMA-Factory's own loop joins samples with flash_attention_2 alone.",
           "flash_attention_2");
  }
  if (job.evaluation.micro_batch_size > 0) {
    refuse("INVALID_COMBINATION", "/evaluation", "LLaMA-Factory's own loop evaluates nothing: leave it out.", "");
  }
  const DataParallel& how = job.data_parallel;
  if (how.is_one_process() || (how.is_sharded() && how.sharding != Sharding::kFsdp2) || job.tensor.is_used() ||
      job.pipeline.is_used()) {
    refuse("UNSUPPORTED_VALUE", "/parallelism",
           "LLaMA-Factory's own loop is modelled on one GPU, under DistributedDataParallel and FSDP 2.", "");
  }
}

}  // namespace tidemark
