#include "core/exchange/trouble/phase.hpp"

namespace tidemark::exchange {
namespace {

/// A frame says a phase when each of its three texts holds the rule's word: in the path anywhere, the function by its
/// begin ("=" before it: in full), the source line anywhere. The first rule that holds decides, so what is particular
/// stands first.
struct PhaseRule {
  std::string_view phase;
  std::string_view path;
  std::string_view function;
  std::string_view source;
};

constexpr PhaseRule kRules[] = {
    // DeepSpeed makes the states before the first step (runtime/zero/stage_1_and_2.py, stage3.py).
    {"optimizer_init", "", "initialize_optimizer_states", ""},
    {"optimizer_init", "", "", "initialize_optimizer_states("},
    {"optimizer_init", "", "_create_fp32_partitions", ""},
    // vLLM (v1/worker/gpu_worker.py, device_allocator/cumem.py) and who calls it.
    {"rollout_wake_up", "", "wake_up", ""},
    {"rollout_wake_up", "", "", ".wake_up("},
    {"engine_init", "vllm", "determine_num_available_blocks", ""},
    {"engine_init", "vllm", "determine_available_memory", ""},
    {"engine_init", "vllm", "_initialize_kv_caches", ""},
    {"engine_init", "vllm", "initialize_cache", ""},
    {"engine_init", "vllm", "initialize_from_config", ""},
    {"engine_init", "vllm", "profile_run", ""},
    {"engine_init", "vllm", "load_model", ""},
    {"engine_init", "vllm", "init_device", ""},
    {"rollout", "vllm/", "", ""},
    {"rollout", "sglang/", "", ""},
    {"rollout", "", "_generate_and_score_completions", ""},
    {"rollout", "", "generate_sequences", ""},
    {"rollout", "", "rollout", ""},
    // torch/autograd; a script's own call. A custom Function's backward as well.
    {"backward", "torch/autograd/__init__.py", "", ""},
    {"backward", "torch/autograd/graph.py", "_engine_run_backward", ""},
    {"backward", "", "=backward", ""},
    {"backward", "", "", ".backward("},
    {"backward", "", "training_backward", ""},
    // torch/optim, bitsandbytes, DeepSpeed, accelerate.
    {"optimizer", "torch/optim/", "", ""},
    {"optimizer", "bitsandbytes/optim/", "", ""},
    {"optimizer", "optim", "=step", ""},
    {"optimizer", "deepspeed", "=step", ""},
    {"optimizer", "", "_multi_tensor_", ""},
    {"optimizer", "", "_single_tensor_", ""},
    {"optimizer", "", "init_state", ""},
    {"optimizer", "", "clip_grad_norm", ""},
    {"optimizer", "grad_scaler", "", ""},
    {"optimizer", "", "", "optimizer.step("},
    {"optimizer", "", "", "optim.step("},
    {"optimizer", "", "", "scaler.step("},
    {"optimizer", "", "", "state['exp_avg"},
    {"optimizer", "", "", "state[\"exp_avg"},
    {"optimizer", "deepspeed/runtime", "_take_model_step", ""},
    // Weights on their way to the card.
    {"load", "", "_load_state_dict_into_meta_model", ""},
    {"load", "", "set_module_tensor_to_device", ""},
    {"load", "", "_move_model_to_device", ""},
    {"load", "", "_load_pretrained_model", ""},
    {"load", "", "from_pretrained", ""},
    {"load", "", "load_checkpoint", ""},
    {"load", "", "load_state_dict", ""},
    {"load", "", "=load_model", ""},
    {"load", "", "prepare_model_for_kbit_training", ""},
    {"load", "", "create_quantized_param", ""},
    {"load", "", "_configure_distributed_model", ""},
    {"load", "", "dispatch_model", ""},
    {"load", "torch/serialization.py", "", ""},
    {"load", "nn/modules/module.py", "=convert", ""},
    {"load", "nn/modules/module.py", "=to", ""},
    {"load", "nn/modules/module.py", "=_apply", ""},
    {"load", "nn/modules/module.py", "=cuda", ""},
    {"load", "nn/modules", "=__init__", ""},
    {"load", "nn/modules", "=reset_parameters", ""},
    {"load", "", "", ".from_pretrained("},
    {"load", "", "", "model.to("},
    {"load", "", "", "model.cuda("},
    {"load", "", "", "load_state_dict("},
    {"evaluation", "", "evaluat", ""},
    {"evaluation", "", "prediction_", ""},
    {"evaluation", "", "=predict", ""},
    {"evaluation", "", "validat", ""},
    {"evaluation", "", "_validat", ""},
    {"evaluation", "", "=eval", ""},
    {"evaluation", "", "=generate", ""},
    {"evaluation", "", "", ".evaluate("},
    {"evaluation", "", "", "model.generate("},
    {"forward", "", "=forward", ""},
    {"forward", "", "_conv_forward", ""},
    {"forward", "", "compute_loss", ""},
    {"forward", "", "_call_impl", ""},
    {"load", "modeling_utils.py", "", ""},
    {"forward", "modeling_", "", ""},
    {"forward", "nn/modules/", "", ""},
    {"forward", "nn/functional.py", "", ""},
    {"forward", "/loss", "", ""},
    {"forward", "/lora.py", "", ""},
    {"forward", "peft/tuners", "", ""},
    {"forward", "flash_attn", "", ""},
    {"forward", "", "cross_entropy", ""},
    {"forward", "", "", "cross_entropy("},
    {"forward", "", "", "logits.float("},
    {"forward", "", "", "model(**"},
    {"forward", "", "", "model(input"},
    {"forward", "", "", "= model("},
    {"forward", "", "", "= self.model("},
    {"forward", "", "", "trainer.model("},
};

bool function_is(std::string_view function, std::string_view word) {
  if (word.substr(0, 1) == "=") return function == word.substr(1);
  return function.substr(0, word.size()) == word;
}

bool holds(const PhaseRule& rule, const Frame& frame) {
  return frame.path.find(rule.path) != std::string::npos && function_is(frame.function, rule.function) &&
         frame.source.find(rule.source) != std::string_view::npos;
}

std::string_view phase_of_frame(const Frame& frame) {
  for (const PhaseRule& rule : kRules) {
    if (holds(rule, frame)) return rule.phase;
  }
  return frame.function.find("_loss") == std::string_view::npos ? std::string_view{} : std::string_view{"forward"};
}

/// Whether a frame's word counts below one that was said before.
bool counts_below(std::string_view outer, std::string_view inner) {
  if (inner.empty()) return false;
  if (inner != "forward") return true;
  return outer != "backward" && outer != "evaluation" && outer != "load" && outer != "engine_init" &&
         outer != "rollout" && outer != "rollout_wake_up";
}

std::string in_words(const Frame& frame) {
  std::string words{frame.path.substr(frame.path.rfind('/') + 1)};
  if (!frame.function.empty()) words += ": " + std::string{frame.function};
  if (!frame.source.empty()) words += ": " + std::string{frame.source};
  return words;
}

}  // namespace

DiedIn phase_of(const std::vector<Frame>& frames) {
  DiedIn died;
  for (const Frame& frame : frames) {
    const std::string_view phase = phase_of_frame(frame);
    if (!counts_below(died.phase, phase)) continue;
    died = {phase, in_words(frame), frame.line};
  }
  return died;
}

}  // namespace tidemark::exchange
