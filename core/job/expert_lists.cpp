#include "core/job/expert_lists.hpp"

namespace tidemark {

bool listed_by_unsloth(const Architecture& architecture, const TrainingJob& job) {
  // unsloth_zoo 2026.10.9 temporary_patches/gpt_oss.py: GptOssExpertsBnb4bit.
  return architecture.model_type == "gpt_oss" && job.framework.name == "unsloth" && job.method == Method::kQlora;
}

bool lists_experts(const Architecture& architecture, const TrainingJob& job) {
  return architecture.experts.listed || !job.framework.at_least(5, 0) || listed_by_unsloth(architecture, job);
}

}  // namespace tidemark
