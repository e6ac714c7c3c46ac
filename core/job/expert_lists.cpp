#include "core/job/expert_lists.hpp"

namespace tidemark {

bool lists_experts(const Architecture& architecture, const TrainingJob& job) {
  // unsloth_zoo 2026.10.9 temporary_patches/gpt_oss.py: GptOssExpertsBnb4bit.
  const bool by_unsloth =
      architecture.model_type == "gpt_oss" && job.framework.name == "unsloth" && job.method == Method::kQlora;
  return architecture.experts.listed || !job.framework.at_least(5, 0) || by_unsloth;
}

}  // namespace tidemark
