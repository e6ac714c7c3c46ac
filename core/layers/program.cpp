#include "core/layers/program.hpp"

#include <algorithm>
#include <string>

namespace tidemark {

namespace {

bool asks_for_flex(const TrainingJob& job) {
  const auto is_one = [](const std::string& text) { return text.rfind("flex_attention", 0) == 0; };
  return std::any_of(job.stand_ins.begin(), job.stand_ins.end(), is_one);
}

}  // namespace

AttentionSupport attention_of(const Program& program, const Framework& framework) {
  AttentionSupport has = program.attention;
  const auto is_there = [&framework](int since) { return since == 0 || framework.at_least(5, since); };
  const bool refused = has.flash_until > 0 && framework.at_least(5, has.flash_until);
  const bool flash = is_there(has.flash_since) && !refused;
  has.sdpa = has.sdpa && is_there(has.sdpa_since);
  has.flash_attention_2 = has.flash_attention_2 && flash;
  has.flash_attention_3 = has.flash_attention_3 && flash;
  return has;
}

bool runs_eagerly(const Net& net) {
  return net.job.attention == AttentionKernel::kEager || !attention_of(*net.arch.program, net.job.framework).sdpa;
}

void check_attention(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Program* program = architecture.program;
  if (program == nullptr) return;
  if (program->check != nullptr) program->check(architecture, job, issues);
  const AttentionSupport has = attention_of(*program, job.framework);
  const bool second = job.attention == AttentionKernel::kFlashAttention2;
  if (asks_for_flex(job) && program->implementation == nullptr && !architecture.facts.flex_attention) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/attention",
         "transformers has no flex_attention for " + architecture.model_type + ": it raises an error. Use \"sdpa\".",
         "sdpa"});
    return;
  }
  // Kernels of the flash-attn packages take no bias on the scores (FalconFlashAttention2 raises on alibi). What
  // flash_attention_2 stands in for is no such kernel (Llama 4 and GPT-OSS have no flash attention, and flex
  // attention).
  const bool is_one = wants_flash(job) && (architecture.alibi || !asks_for_flex(job));
  if (is_one && (architecture.alibi || !(second ? has.flash_attention_2 : has.flash_attention_3))) {
    const std::string known = has.sdpa ? "sdpa" : "eager";
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/attention",
                      "transformers has no " + std::string{second ? "flash_attention_2" : "flash_attention_3"} +
                          " for " + architecture.model_type + (architecture.alibi ? " with alibi" : "") +
                          ": it raises an error. Use \"" + known + "\".",
                      known});
  }
  if (job.checkpointing != Checkpointing::kNone && !program->checkpoints) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing",
                      "transformers has no gradient checkpointing for " + architecture.model_type +
                          ": it raises an error. Use \"none\".",
                      "none"});
    return;
  }
  if (!job.torch_scan && !program->fused_scan) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/kernels",
                      "The kernels of mamba_ssm are not modelled for " + architecture.model_type + ". Use \"torch\".",
                      "torch"});
  }
  if (program->in_16_bits_since > 0 && is_half(job.recipe.weights) && !job.recipe.autocast &&
      !job.framework.at_least(5, program->in_16_bits_since)) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/precision",
         architecture.model_type + " raises an error in 16 bits without autocast. Use \"amp_bf16\" or \"bf16_amp\".",
         "amp_bf16"});
  }
  if (job.checkpointing == Checkpointing::kSelectiveCoreAttention && !has.core_alone) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing/selective",
                      "Recomputing the core of attention alone is not modelled for " + architecture.model_type +
                          ". Use \"full\" or {\"every\": 2}.",
                      "full"});
  }
}

std::int64_t layer_kind(const Net& net, Count layer) {
  const auto i = static_cast<std::size_t>(layer);
  std::int64_t kind = 0;
  if (net.slides(layer)) kind |= 1;
  if (i < net.arch.no_rope_layers.size() && net.arch.no_rope_layers[i]) kind |= 2;
  if (i < net.arch.local_layers.size() && net.arch.local_layers[i] != 0) kind |= 4;
  if (i < net.arch.sliding_layers.size() && net.arch.sliding_layers[i]) kind |= 8;
  if (i < net.arch.layer_kinds.size()) kind |= net.arch.layer_kinds[i] << 8;
  if (i < net.arch.experts.dense_layers.size() && net.arch.experts.dense_layers[i]) kind |= 32;
  if (net.job.checkpointing == Checkpointing::kEvery && net.job.checkpoint_every > 0 &&
      layer % net.job.checkpoint_every == 0) {
    kind |= 16;
  }
  if (net.treatments != nullptr) kind |= net.treatments->variant_of(net.first_layer + layer) << 16;
  return kind;
}

}  // namespace tidemark
