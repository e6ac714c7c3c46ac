#include "core/job/lora_kernels.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {
namespace {

/// Model types whose attention's forward patch_self_attn_lora can rewrite (monkeypatch/lora_kernels.py: QKV_PATCHES,
/// ORIGINAL_O_CODE, against transformers 5.12.1), and which are modelled so.
constexpr std::string_view kPatched[] = {
    "apertus",
    "arcee",
    "cohere2",
    "cwm",
    "ernie4_5",
    "ernie4_5_moe",
    "exaone4",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma4",
    "gemma4_text",
    "gemma4_unified",
    "gemma4_unified_text",
    "glm",
    "glm4",
    "gpt_oss",
    "granite",
    "granitemoe",
    "helium",
    "hunyuan_v1_dense",
    "jamba",
    "llama",
    "minimax",
    "ministral",
    "ministral3",
    "mistral",
    "mistral3",
    "mixtral",
    "phimoe",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_5_text",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_vl",
    "qwen3_vl_moe",
    "seed_oss",
    "smollm3",
    "starcoder2",
    "vaultgemma",
};
/// The same, of which PEFT's layers stand in.
constexpr std::string_view kPatchedElsewhere[] = {
    "bamba", "granitemoehybrid", "granitemoeshared", "nemotron_h", "zamba",
};

template <std::size_t N>
bool is_among(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// utils/schemas/config.py: check_auto_enable_lora_kernels.
bool by_default(const TrainingJob& job) {
  const bool rl = job.preference != Preference::kNone && job.preference != Preference::kReward;
  if (job.framework.name != "axolotl" || rl || !axolotl_is_of(job, kKernelsByDefault)) return false;
  if (job.method == Method::kQlora && job.quantization.bits == 8) return false;
  if (job.adapter.lora_dropout > 0.0 && !axolotl_is_of(job, kWithDropout)) return false;
  return !(job.data_parallel.is_sharded() && job.data_parallel.sharding == Sharding::kFsdp1);
}

void refuse(const char* why, const char* instead, Issues& issues) {
  issues.push_back({"UNSUPPORTED_OPTION", Severity::kError, "/lora_kernels", why, instead});
}

// What Axolotl's validators raise (utils/schemas/validation.py: check_lora_kernels_8bit; config.py:
// check_multigpu_lora_kernels).
void check(const TrainingJob& job, Issues& issues) {
  if (!job.has_adapter() || job.adapter.kind != AdapterKind::kLora) {
    refuse("lora_kernels are functions for LoRA's layers: set method to lora or qlora, or leave them out.", "none",
           issues);
  } else if (job.method == Method::kQlora && job.quantization.bits == 8) {
    refuse("Axolotl's LoRA kernels are not compatible with 8-bit weights: it raises a ValueError.", "none", issues);
  } else if (job.data_parallel.is_sharded() && job.data_parallel.sharding == Sharding::kFsdp1) {
    refuse("Axolotl's LoRA kernels are not compatible with FSDP 1: it raises a ValueError. Use FSDP 2.", "none",
           issues);
  }
}

// Targets are full names or their last parts; expressions are not looked through.
bool adapts_token_table(const Adapter& adapter) {
  const std::vector<std::string>& names = adapter.target_modules.names;
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.ends_with("embed_tokens"); });
}

// monkeypatch/models/qwen3_5/modeling.py: where rows are packed the forward is Axolotl's own, which calls functions for
// what of linear attention is adapted.
bool adapts_linear_attention(std::string_view type, const Adapter& adapter) {
  const std::vector<std::string>& names = adapter.target_modules.names;
  return type.starts_with("qwen3_5") && (adapter.target_modules.kind != ModuleChoice::Kind::kNames ||
                                         std::any_of(names.begin(), names.end(), [](std::string_view name) {
                                           return name.find("in_proj_") != name.npos || name.ends_with("out_proj");
                                         }));
}

// Why PEFT's layers stand in for the functions; empty: they are modelled.
std::string_view not_modelled(std::string_view type, const TrainingJob& job) {
  const std::optional<Dtype>& cast = job.recipe.autocast;
  const PrepareKbit prepared = job.quantization.prepare_kbit;
  const bool widened =
      job.method == Method::kQlora && prepared != PrepareKbit::kOff && prepared != PrepareKbit::kNormsBack;
  if (is_among(kPatchedElsewhere, type) || (type.starts_with("gemma4") && !job.fused_attention)) return "in this model";
  if (job.lora_kernels.embedding && adapts_token_table(job.adapter)) return "on the token table";
  if (job.packing && adapts_linear_attention(type, job.adapter)) return "in linear attention of packed rows";
  if (job.adapter.use_dora) return "with DoRA";
  if (job.adapter.bias != TrainedBiases::kNone) return "with trained biases";
  if (job.method == Method::kQlora && !job.quantization.is_bitsandbytes()) return "on weights that others packed";
  if ((cast && *cast != job.recipe.weights) || (widened && is_half(job.recipe.weights)))
    return "on hidden states in fp32, which they do not take under autocast";
  if (job.tensor.is_used() || job.pipeline.is_used() || job.context > 1) return "where GPUs divide the model";
  return {};
}

}  // namespace

bool axolotl_is_of(const TrainingJob& job, int day) {
  if (job.framework.date > 0) return job.framework.date >= day;
  return job.framework.at_least(5, 0) || (day <= kKernelsByDefault && job.framework.at_least(4, 51));
}

void settle_lora_kernels(bool open, const Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (job.framework.name == "unsloth") return;  // as_unsloth has decided
  const bool lora = job.has_adapter() && job.adapter.kind == AdapterKind::kLora;
  if (open && lora && by_default(job)) {
    job.lora_kernels = {true, true, true, axolotl_is_of(job, kWithDropout)};
    issues.push_back({"CHOSEN_KERNELS", Severity::kNote, "/lora_kernels",
                      "LoRA's layers are left to the framework: Axolotl puts functions of its own in their place "
                      "(lora_mlp_kernel, lora_qkv_kernel, lora_o_kernel) where nothing is said.",
                      ""});
  }
  if (!job.lora_kernels.any()) return;
  if (!open) check(job, issues);
  const std::string_view type = architecture.model_type;
  if (!is_among(kPatched, type) && !is_among(kPatchedElsewhere, type)) {
    const bool attention = job.lora_kernels.qkv || job.lora_kernels.o;
    // Axolotl looks for gate_proj, up_proj and down_proj in the `mlp` of layers of any class, which experts have not.
    const Experts& experts = architecture.experts;
    const bool has_mlp = experts.count == 0 || !experts.dense_layers.empty();
    if (!attention && job.lora_kernels.mlp && has_mlp) {
      job.stand_ins.emplace_back("Axolotl's LoRA kernels in this model, answered by PEFT's layers");
    }
    job.lora_kernels = {};
    if (!attention) return;
    issues.push_back({"UNPATCHED_MODEL", Severity::kWarning, "/lora_kernels",
                      "Axolotl cannot put its LoRA kernels into the attention of this model and stops: set "
                      "lora_qkv_kernel and lora_o_kernel to false. The figure is that of PEFT's layers.",
                      "none"});
    return;
  }
  const std::string_view why = not_modelled(type, job);
  if (why.empty() && axolotl_is_of(job, kWithDropout)) return;
  if (!why.empty()) job.lora_kernels = {};
  job.stand_ins.push_back(why.empty() ? std::string{"LoRA kernels of Axolotl before 0.16, answered by those of 0.16"}
                                      : "Axolotl's LoRA kernels " + std::string{why} + ", answered by PEFT's layers");
}

namespace {

// loaders/patch_manager.py: _apply_sdpa_varlen_patch: packed rows without a mask, by torch's varlen_attn.
bool runs_varlen(const Architecture& architecture, const TrainingJob& job) {
  const bool slides = architecture.sliding_window > 0;
  return job.framework.name == "axolotl" && axolotl_is_of(job, kVariableLengths) && job.packing &&
         job.attention == AttentionKernel::kSdpa && !slides && architecture.head_dim <= 256;
}

}  // namespace

// loaders/patch_manager.py: _apply_model_specific_patches, _FUSED_ATTN_KERNEL_SUPPORTED.
void settle_axolotl_attention(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  constexpr std::string_view kFused[] = {"qwen3",        "qwen3_5",   "qwen3_5_moe", "qwen3_5_moe_text",
                                         "qwen3_5_text", "qwen3_moe", "qwen3_vl"};
  const std::string_view type = architecture.model_type;
  if (runs_varlen(architecture, job))
    job.stand_ins.emplace_back("Axolotl's attention of packed rows (sdpa_varlen), answered by attention under a mask");
  if (type.starts_with("gemma4")) {
    job.fused_attention |= job.framework.name == "axolotl" && axolotl_is_of(job, kFusedNorms);
  } else if (job.fused_attention && !is_among(kFused, type)) {
    job.fused_attention = false;
    issues.push_back({"UNPATCHED_MODEL", Severity::kWarning, "/fused_attn_kernel",
                      "Axolotl has no such kernel for this model and leaves its attention as it is.", "false"});
  }
}

}  // namespace tidemark
