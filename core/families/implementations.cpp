#include "core/families/implementations.hpp"

#include <algorithm>
#include <string>

#include "core/job/defaults.hpp"
#include "core/job/framework.hpp"

namespace tidemark {
namespace {

// unsloth 2026.8.19 models/llama.py: get_peft_model allows these alone. A copy in 16 bits is trained as it is; one of
// fp16 becomes fp32, which is not modelled.
bool saves_what_unsloth_can(const TrainingJob& job) {
  if (job.framework.name != "unsloth" || job.recipe.weights != Dtype::kBf16) return false;
  const std::vector<std::string>& saved = job.adapter.modules_to_save;
  return std::all_of(saved.begin(), saved.end(),
                     [](const std::string& name) { return name == "embed_tokens" || name == "lm_head"; });
}

// What none of these frameworks' own code does, or does in a way that is not modelled.
bool is_plain(const TrainingJob& job, const Architecture& a) {
  const Adapter& adapter = job.adapter;
  const bool adapted = job.method == Method::kLora || job.method == Method::kQlora;
  const bool scores_rows = is_unsloth_by_rows(job.framework) && adapted && has_reference(job.preference) &&
                           job.reference != Reference::kCopy;
  if (a.head != Head::kCausalLm || job.attention == AttentionKernel::kEager) return false;
  if (job.preference != Preference::kNone && !scores_rows) return false;
  if (adapted && adapter.kind != AdapterKind::kLora) return false;
  const bool saves = !adapter.modules_to_save.empty() && !saves_what_unsloth_can(job);
  if (adapted ? adapter.use_dora || saves || adapter.bias != TrainedBiases::kNone
              : job.has_adapter() || job.freezes_by_name()) {
    return false;
  }
  if (job.method == Method::kQlora && (job.quantization.bits != 4 || !job.quantization.is_bitsandbytes())) {
    return false;
  }
  if (job.liger_rms_norm || job.liger_swiglu || job.liger_rope || job.selective_op) return false;
  return !job.data_parallel.is_used() && !job.tensor.is_used() && !job.pipeline.is_used() && job.context == 1;
}

// unsloth_zoo 2026.8.13 compiler.py: all causal models get its fused loss, which Liger's is most like.
void take_fused_loss(TrainingJob& job, const Architecture& a) {
  const bool divided = job.data_parallel.is_sharded() || job.tensor.is_used() || job.pipeline.is_used();
  if (a.head != Head::kCausalLm || job.preference != Preference::kNone || divided) return;
  if (job.loss == Loss::kDefault) job.loss = Loss::kLiger;
}

}  // namespace

bool take_implementation(TrainingJob& job, Architecture& architecture) {
  if (architecture.rotary_dim_since_18 > 0 && job.framework.at_least(5, 18)) {
    architecture.rotary_dim = architecture.rotary_dim_since_18;
  }
  ClassFacts& facts = architecture.facts;
  if (facts.named_anew_since > 0 && job.framework.at_least(5, facts.named_anew_since))
    facts.no_split = facts.named_anew;
  const DataParallel& data = job.data_parallel;
  // transformers 5.12 models/swin/modeling_swin.py: _no_split_modules, SwinStage.
  if (architecture.model_type == "swin" && data.is_sharded() && data.sharding < Sharding::kZero1) {
    job.stand_ins.emplace_back("units of whole stages, answered by a unit for each layer");
  }
  // One small record of these (tests/oracle/README.md) is a sixth above what follows from the other decoders'.
  if (architecture.model_type.rfind("gemma3n", 0) == 0 && job.offload.activations) {
    job.stand_ins.emplace_back("activations of Gemma 3n in host memory, answered as those of other decoders");
  }
  if (runs_own_code(job)) {  // nothing stands in for it yet
    if (as_torchtitan(job, architecture)) return true;
    stand_in(job);
  }
  if (job.framework.name == "torchtitan") {
    divide_experts_like_weights(job);
    return false;
  }
  const bool plain = is_stood_for(job.framework) && is_plain(job, architecture);
  const bool taken = !plain                              ? false
                     : job.framework.name == "litgpt"    ? as_litgpt(job, architecture)
                     : job.framework.name == "torchtune" ? as_torchtune(job, architecture)
                     : job.framework.name == "unsloth"   ? as_unsloth(job, architecture)
                                                         : false;
  if (!taken) {
    if (job.framework.name == "unsloth") take_fused_loss(job, architecture);
    return false;
  }
  std::vector<std::string>& all = job.stand_ins;
  // A name of other models' modules that defaults.cpp has put beside these.
  ModuleChoice& targets = job.adapter.target_modules;
  const auto names = [&targets](const char* name) {
    return std::find(targets.names.begin(), targets.names.end(), name) != targets.names.end();
  };
  if (targets.kind == ModuleChoice::Kind::kNames && (names("q_proj") || names("v_proj"))) {
    targets.names.erase(std::remove(targets.names.begin(), targets.names.end(), "qkv_proj"), targets.names.end());
  }
  // What core/job/defaults.cpp says of a framework before the model is known.
  const std::string said = job.framework.name + "'s step and its own code";
  const auto is_said = [&said](const std::string& text) { return text.compare(0, said.size(), said) == 0; };
  all.erase(std::remove_if(all.begin(), all.end(), is_said), all.end());
  return true;
}

}  // namespace tidemark
