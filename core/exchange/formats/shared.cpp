#include "core/exchange/formats/shared.hpp"

#include <array>
#include <utility>

#include "core/exchange/word_list.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string optimizer_word(std::string_view optim) {
  constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
      {"adamw_bnb_8bit", "adamw_8bit"},   {"paged_adamw", "paged_adamw_32bit"}, {"lion", "lion_32bit"},
      {"paged_lion", "paged_lion_32bit"}, {"rmsprop_bnb_32bit", "rmsprop_bnb"},
  };
  std::string word = lower_case(optim);
  if (const std::size_t dot = word.find("optimizernames."); dot != std::string::npos) word = word.substr(dot + 15);
  for (const auto& [alias, name] : kAliases) {
    if (word == alias) return std::string{name};
  }
  return word;
}

int zero_stage_of_name(std::string_view path) {
  const std::string name = lower_case(base_name(path));
  for (std::string_view before : {"zero_stage", "zero-stage", "stage", "zero", "_z", "-z", "z"}) {
    for (std::size_t at = name.find(before); at != std::string::npos; at = name.find(before, at + 1)) {
      std::size_t digit = at + before.size();
      if (digit < name.size() && (name[digit] == '_' || name[digit] == '-')) ++digit;
      const bool begins = before != "z" || at == 0;
      if (begins && digit < name.size() && name[digit] >= '0' && name[digit] <= '3') return name[digit] - '0';
    }
  }
  return -1;
}

const char* fsdp_strategy(std::string_view words) {
  const std::string word = lower_case(words);
  return contains(word, "grad_op") ? "shard_grad_op" : contains(word, "hybrid") ? "hybrid_shard" : "full_shard";
}

void state_deepspeed_file(Keys& keys, const Node* node, bool with_precision) {
  if (node == nullptr || node->text.empty()) return;
  const std::string name = lower_case(node->text);
  if (const int stage = zero_stage_of_name(name); stage >= 0) {
    keys.state("parallelism.zero_stage", of(stage), {node}, "from the file name");
    const bool all =
        contains(name, "cpuoffload_all") || (stage == 3 && contains(name, "offload") && !contains(name, "params"));
    if (all || (stage < 3 && contains(name, "offload")))
      keys.state("offload.optimizer", of("cpu"), {node}, "from the file name");
    if (all || contains(name, "cpuoffload_params"))
      keys.state("offload.parameters", of("cpu"), {node}, "from the file name");
  }
  if (with_precision && !keys.has("precision")) keys.unknown("precision: in the DeepSpeed JSON");
  keys.unknown("the DeepSpeed JSON itself: " + node->text);
  keys.reading.companions.push_back(node->text);
}

std::string quantised_by_name(std::string_view model) {
  const std::string name = lower_case(model);
  for (std::string_view word : {"awq", "gptq", "aqlm", "hqq", "eetq"}) {
    if (contains(name, word)) return std::string{word};
  }
  return contains(name, "bnb-4bit") ? "nf4" : "";
}

Value words(std::initializer_list<std::string_view> list) {
  std::vector<Value> items;
  for (std::string_view word : list) items.push_back(of(word));
  return of(std::move(items));
}

Value tidy_number(const Node& node) {
  const bool whole = node.kind == Node::Kind::kReal && node.real < 9e15 && node.real > -9e15 &&
                     node.real == static_cast<double>(static_cast<std::int64_t>(node.real));
  return whole ? of(static_cast<std::int64_t>(node.real)) : to_value(node);
}

std::span<const std::string_view> adapter_words() {
  static constexpr std::string_view kWords[] = {"init_r",
                                                "feedforward_modules",
                                                "decompose_both",
                                                "decompose_factor",
                                                "oft_block_size",
                                                "block_share",
                                                "use_cayley_neumann",
                                                "boft_block_size",
                                                "num_cayley_neumann_terms",
                                                "boft_block_num",
                                                "num_virtual_tokens",
                                                "encoder_hidden_size",
                                                "encoder_reparameterization_type"};
  return kWords;
}

// peft 5d602fdb tuners: updates of adapted modules, beside base weights that stay as they are.
bool lora_stands_for(std::string_view kind) {
  return is_in(
      " adamss beft c3a deft delora fourierft frod glora gralora hira hra lily miss peanut poly psoft pvera randlora "
      "road"
      " shira supertuning tinylora unilora vblora waveft ",
      kind);
}

Value word_list(const Node& node) {
  if (!node.is_string()) {
    // `--target_modules "q_proj", "v_proj"`: a shell ends its words at blanks.
    Value list = to_value(node);
    for (Value& word : list.items) {
      while (!word.string.empty() && word.string.back() == ',') word.string.pop_back();
    }
    return list;
  }
  if (!contains(node.text, ",") && !contains(node.text, " ")) return of(node.text);
  if (contains(node.text, "(") || contains(node.text, "*")) return of(node.text);  // a regular expression
  std::vector<Value> items;
  std::string word;
  for (char letter : node.text + ",") {
    if (letter != ',' && letter != ' ') {
      word += letter;
    } else if (!word.empty()) {
      items.push_back(of(word));
      word.clear();
    }
  }
  return of(std::move(items));
}

std::span<const OfRollout> rollout_numbers() {
  static constexpr OfRollout kNumbers[] = {{"max_completion_length", "max_completion_length"},
                                           {"num_generations", "num_generations"},
                                           {"num_iterations", "num_iterations"},
                                           {"steps_per_generation", "steps_per_generation"},
                                           {"generation_batch_size", "generation_batch_size"},
                                           {"beta", "beta"}};
  return kNumbers;
}

void state_fsdp1(Keys& keys, const OfFsdp& option) {
  constexpr const char* kAhead = "parallelism.fsdp_options.backward_prefetch";
  const Node* ahead = option("backward_prefetch");
  const std::string word = ahead == nullptr ? std::string{} : lower_case(ahead->text);
  if (contains(word, "pre") && !contains(word, "no_")) {
    keys.state(kAhead, of("backward_pre"), {ahead});
  } else if (contains(word, "post")) {
    keys.state(kAhead, of("backward_post"), {ahead});
  } else {
    keys.state(kAhead, of("none"), {ahead}, ahead == nullptr ? "accelerate's default is NO_PREFETCH" : "");
  }
  const auto copy = [&](const char* name, bool usual) {
    const Node* node = option(name);
    if (node == nullptr || !node->is_bool() || node->boolean == usual) return;
    keys.state("parallelism.fsdp_options." + std::string{name}, to_value(*node), {node});
  };
  copy("forward_prefetch", false);
  copy("use_orig_params", true);
}

std::span<const OfRollout> distillation_words() {
  static constexpr OfRollout kWords[] = {{"teacher_model", "teacher_model_name_or_path"},
                                         {"lmbda", "lmbda"},
                                         {"beta", "beta"},
                                         {"seq_kd", "seq_kd"},
                                         {"max_completion_length", "max_new_tokens"}};
  return kWords;
}

void state_rollout(Keys& keys, const std::string& prefix, std::string_view share, const char* mode, const char* why) {
  for (const OfRollout& one : rollout_numbers()) keys.copy(one.path, prefix + one.key);
  keys.assume("padding", of(true), "answers end at different lengths");
  if (!keys.truthy(prefix + "use_vllm")) {
    keys.copy("rollout.gather_weights", prefix + "ds3_gather_for_generation");
    return;
  }
  keys.state("rollout.engine", of("vllm"), {keys[prefix + "use_vllm"]});
  if (const Node* device = keys[prefix + "vllm_device"]; device != nullptr)
    keys.state("rollout.mode", of("server"), {device}, "trl before 0.17: vLLM has a GPU of its own");
  if (!keys.copy("rollout.mode", prefix + "vllm_mode") && find(keys.reading, "rollout.mode") == nullptr)
    keys.assume("rollout.mode", of(mode), why);
  keys.copy("rollout.gpu_memory_utilization", share);
  keys.copy("rollout.sleep", prefix + "vllm_enable_sleep_mode");
  keys.copy("rollout.tensor_parallel", prefix + "vllm_tensor_parallel_size");
}

}  // namespace tidemark::exchange
