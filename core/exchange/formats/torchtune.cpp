// torchtune's YAML (torchtune bd2a0fc7 recipes/*.py, torchtune/models/*/_model_builders.py). The recipe and the
// download stand in comments.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_torchtune(const Look& look) {
  if (!look.is_map()) return 0;
  const Node* component = look.document.root.at("model._component_");
  if (component != nullptr && contains(component->text, "torchtune")) return 95;
  return look.mentions("_component_:") && look.mentions("torchtune.") ? 90 : 0;
}

/// A comment line that holds a word, and its number; empty where none does.
struct Comment {
  std::string text;
  int line = 0;
};
Comment comment_with(std::string_view text, std::string_view word) {
  int line = 1;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    const std::size_t first = row.find_first_not_of(" \t");
    if (first != std::string_view::npos && row[first] == '#' && contains(row, word)) return {std::string{row}, line};
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++line;
  }
  return {};
}

/// The word behind another one, at a blank.
std::string word_behind(const std::string& text, std::string_view before) {
  std::size_t at = text.find(before);
  if (at == std::string::npos) return {};
  at = text.find_first_not_of(" =", at + before.size());
  return at == std::string::npos ? std::string{} : text.substr(at, text.find_first_of(" \t", at) - at);
}

struct Facts {
  std::string recipe;
  bool distributed = false;
};

void read_recipe(Keys& keys, std::string_view text, Facts& facts) {
  const Comment run = comment_with(text, "tune run");
  std::string rest = run.text.substr(std::min(run.text.find("tune run") + 8, run.text.size()));
  for (std::string word; !rest.empty(); rest = rest.substr(std::min(rest.find_first_of(' '), rest.size()))) {
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    word = rest.substr(0, rest.find(' '));
    if (contains(word, "_") && word[0] != '-') {
      facts.recipe = word;
      break;
    }
  }
  const Origin run_line{keys.file, run.line, run.line, -1};
  const Comment named = facts.recipe.empty() ? Comment{} : comment_with(text, facts.recipe);
  if (named.line > 0)
    state(keys.reading, "recipe", of(facts.recipe), {{keys.file, named.line, named.line, -1}, run_line});
  facts.distributed =
      contains(facts.recipe, "distributed") || (facts.recipe.empty() && comment_with(text, "distributed").line > 0);
  const std::string count = word_behind(run.text, "--nproc_per_node");
  const Node processes = plain_scalar(count.empty() ? word_behind(run.text, "--nproc-per-node") : count);
  if (facts.distributed && processes.is_integer()) {
    state(keys.reading, "parallelism.data", to_value(processes), {run_line}, "from the comment");
  } else if (!facts.distributed && !facts.recipe.empty()) {
    keys.assume("parallelism.data", of(1), "single-device recipe");
  } else {
    keys.unknown("parallelism.data (launcher)");
  }
}

void read_model(Keys& keys, std::string_view text) {
  const Node* component = keys["model._component_"];
  if (component != nullptr) keys.state("torchtune_builder", of(component->text), {component});
  const Comment download = comment_with(text, "tune download");
  const std::string name = word_behind(download.text, "tune download");
  if (!name.empty()) {
    state(keys.reading, "model", of(name), {{keys.file, download.line, download.line, -1}},
          "from the comment" + (component == nullptr ? std::string{} : "; the component is " + component->text));
  } else if (const Node* folder = keys["checkpointer.checkpoint_dir"]; folder != nullptr) {
    keys.state("model", of(folder->text), {folder}, "the checkpoint's folder");
  }
}

void read_method(Keys& keys, const Facts& facts) {
  const Node* component = keys["model._component_"];
  const Node* base = keys["model.quantize_base"];
  const std::string name =
      component == nullptr ? std::string{} : std::string{component->text.substr(component->text.rfind('.') + 1)};
  const bool quantised = contains(name, "qlora") || (base != nullptr && base->boolean);
  const bool adapted = contains(name, "lora") || contains(facts.recipe, "lora");
  keys.state("method", of(!adapted ? "full" : quantised ? "qlora" : "lora"), {component, base});
  if (!adapted) return;
  if (quantised) {
    keys.state("quantization.bits", of(4), {component, base}, "NF4Tensor of torchao");
    keys.state("quantization.quant_type", of("torchao_nf4"), {component, base}, "NF4Tensor of torchao");
    keys.state("quantization.double_quant", of(true), {component, base},
               "NF4Tensor of torchao: block 64, scaler block 256");
  }
  keys.copy("adapter.r", "model.lora_rank");
  keys.copy("adapter.lora_alpha", "model.lora_alpha");
  if (!keys.copy("adapter.lora_dropout", "model.lora_dropout"))
    keys.assume("adapter.lora_dropout", of(0.0), "default 0.0");
  if (keys.truthy("model.use_dora")) keys.copy("adapter.use_dora", "model.use_dora");
  const Node* modules = keys["model.lora_attn_modules"];
  std::vector<Value> targets;
  if (modules != nullptr) targets = to_value(*modules).items;
  if (keys.truthy("model.apply_lora_to_mlp")) {
    for (const char* word : {"w1", "w2", "w3"}) targets.push_back(of(word));
  }
  if (keys.truthy("model.apply_lora_to_output")) targets.push_back(of("output"));
  keys.state("adapter.target_modules", of(std::move(targets)), {modules, keys["model.apply_lora_to_mlp"]});
  if (const Node* dtype = keys["dtype"]; dtype != nullptr) keys.state("adapter.dtype", of(dtype->text), {dtype});
}

void read_optimizer(Keys& keys) {
  const Node* component = keys["optimizer._component_"];
  const Node* fused = keys["optimizer.fused"];
  if (component == nullptr) return;
  const std::string name = lower_case(component->text.substr(component->text.rfind('.') + 1));
  std::string word = name;
  if (name == "adamw") word = fused != nullptr && fused->boolean ? "adamw_torch_fused" : "adamw_torch";
  if (name == "pagedadamw8bit") word = "paged_adamw_8bit";
  if (name == "pagedadamw" || name == "pagedadamw32bit") word = "paged_adamw_32bit";
  if (name == "adamw8bit") word = contains(component->text, "torchao") ? "adamw_torch_8bit" : "adamw_8bit";
  if (name == "adamw4bit") word = "adamw_torch_4bit";
  keys.state("optimizer", of(word), {component, fused});
  keys.copy("optimizer_in_backward", "optimizer_in_bwd");
  if (const Node* clip = keys["clip_grad_norm"]; clip != nullptr) {
    keys.state("max_grad_norm", to_value(*clip), {clip});
  } else {
    keys.assume("max_grad_norm", of(0), "clip_grad_norm null: no clipping");
  }
}

void read_memory(Keys& keys) {
  const Node* kept = keys["enable_activation_checkpointing"];
  const Node* moved = keys["enable_activation_offloading"];
  const bool on = kept != nullptr && kept->boolean;
  const bool off = moved != nullptr && moved->boolean;
  keys.state("gradient_checkpointing", of(on && off ? "offload" : on ? "full" : "none"), {kept, moved});
  if (off && !on) keys.state("offload.activations", of("cpu"), {moved});
  const Node* compile = keys["compile"];
  const bool compiled = compile != nullptr && (compile->is_map() ? keys.truthy("compile.model") : compile->boolean);
  keys.state("compile", of(compiled ? "per_block" : "none"), {compile});
  keys.touch("compile");
  const Node* dtype = keys["dtype"];
  if (dtype != nullptr) {
    const std::string recipe = dtype->text == "bf16" ? "pure_bf16" : dtype->text == "fp16" ? "pure_fp16" : dtype->text;
    keys.state("precision", of(recipe), {dtype});
  }
  if (const Node* loss = keys["loss._component_"]; loss != nullptr) {
    const bool chunked = contains(loss->text, "Linear") || contains(loss->text, "Chunked");
    keys.state("loss", of(chunked ? "chunked" : "default"), {loss});
  }
}

void read_parallelism(Keys& keys, const Facts& facts) {
  if (facts.distributed) {
    const char* why = "distributed recipes shard with fully_shard";
    keys.assume("parallelism.fsdp", of("fsdp2"), why);
    const Node* reshard = keys["fsdp_reshard_after_forward"];
    keys.state("parallelism.reshard_after_forward", of(reshard == nullptr || reshard->boolean), {reshard},
               reshard == nullptr ? "default true" : "");
  }
  if (const Node* offload = keys["fsdp_cpu_offload"]; offload != nullptr && offload->boolean) {
    keys.state("offload.parameters", of("cpu"), {offload});
    keys.state("offload.optimizer", of("cpu"), {offload});
  }
  if (const Node* layers = keys["custom_sharded_layers"]; layers != nullptr)
    keys.state("custom_sharded_layers", to_value(*layers), {layers});
  for (const auto& [path, name] :
       {std::pair{"parallelism.tensor", "tensor_parallel_dim"}, {"parallelism.context", "context_parallel_dim"}}) {
    if (const Node* node = keys[name]; node != nullptr && node->integer > 1) keys.state(path, to_value(*node), {node});
  }
}

std::string task_of(const std::string& recipe) {
  for (const auto& [word, task] :
       {std::pair{"dpo", "dpo"}, {"ppo", "ppo"}, {"grpo", "grpo"}, {"knowledge_distillation", "kd"}, {"kd_", "kd"}}) {
    if (contains(recipe, word)) return task;
  }
  return "sft";
}

void read_torchtune(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  Facts facts;
  keys.assume("framework.name", of("torchtune"), "the components are torchtune's");
  read_recipe(keys, look.head, facts);
  read_model(keys, look.head);
  read_method(keys, facts);
  keys.copy("micro_batch_size", "batch_size");
  if (!keys.copy("gradient_accumulation_steps", "gradient_accumulation_steps"))
    keys.assume("gradient_accumulation_steps", of(1), "default 1");
  if (!keys.copy_any("sequence_length", {"tokenizer.max_seq_len", "dataset.max_seq_len"})) {
    keys.unknown("sequence_length: tokenizer.max_seq_len is null: the longest sample decides");
  }
  keys.copy("packing", "dataset.packed");
  read_optimizer(keys);
  read_memory(keys);
  read_parallelism(keys, facts);
  keys.assume("task", of(task_of(facts.recipe)), "from the recipe");
  keys.unknown("gpu");
  for (const char* section : {"tokenizer", "dataset", "checkpointer", "lr_scheduler", "metric_logger", "profiler"})
    keys.touch(section);
  keys.tell_unread();
}

const Format kRows[] = {
    {"torchtune", "torchtune configuration", recognise_torchtune, read_torchtune, 50},
};

}  // namespace

extern const FormatRows torchtune_rows;
const FormatRows torchtune_rows = kRows;

}  // namespace tidemark::exchange
