#include "core/job/default_attention.hpp"

namespace tidemark {

// transformers 5.21 models/gemma2/modeling_gemma2.py: _supports_sdpa = False; modeling_utils.py
// get_correct_attn_implementation: sdpa that nobody asks for becomes eager, and what asks for it gets a ValueError.
void settle_attention(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  const bool squashed = architecture.attention_softcap && job.framework.at_least(5, 21);
  if (!squashed || job.attention != AttentionKernel::kSdpa) return;
  job.attention = AttentionKernel::kEager;
  issues.push_back({"CHOSEN_ATTENTION", Severity::kNote, "/attention",
                    "Scores that are squashed (attn_logit_softcapping) run eagerly since transformers 5.21, where "
                    "\"sdpa\" asked for by name raises a ValueError. flash_attention_2 makes no scores.",
                    "flash_attention_2"});
}

}  // namespace tidemark
