// torchtitan's TOML (torchtitan v0.1.0 and v0.2.0 torchtitan/config/job_config.py: JobConfig).
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_torchtitan(const Look& look) {
  if (!look.is_map() || look.syntax != Look::Syntax::kToml) return 0;
  int score = look.document.root.at("model.flavor") != nullptr ? 60 : 0;
  for (const char* key : {"training", "parallelism", "activation_checkpoint", "job", "experimental", "float8"}) {
    if (look.has(key)) score += 12;
  }
  return score >= 48 ? std::min(score, 95) : 0;
}

constexpr const char* kDefault = " (job_config.py 29624e37)";

std::int64_t degree_of(Reading& reading, std::string_view path) {
  const Finding* found = find(reading, path);
  return found != nullptr && found->value.is_integer() ? std::max<std::int64_t>(1, found->value.integer) : 1;
}

/// "All that remain" of the GPUs that the preset's comment counts.
void divide_what_remains(Keys& keys) {
  const Finding* world = find(keys.reading, "world_size");
  if (world == nullptr || find(keys.reading, "parallelism.data") != nullptr) return;
  const std::int64_t others = degree_of(keys.reading, "parallelism.tensor") *
                              degree_of(keys.reading, "parallelism.pipeline") *
                              degree_of(keys.reading, "parallelism.context");
  if (world->value.integer % others != 0) return;
  keys.assume("parallelism.data", of(world->value.integer / others),
              "shard degree -1: all remaining GPUs of those that the comment counts");
}

void read_axes(Keys& keys) {
  for (const auto& [path, name] : {std::pair{"parallelism.tensor", "tensor_parallel_degree"},
                                   {"parallelism.pipeline", "pipeline_parallel_degree"},
                                   {"parallelism.context", "context_parallel_degree"},
                                   {"parallelism.expert", "expert_parallel_degree"},
                                   {"parallelism.data_replicate", "data_parallel_replicate_degree"}}) {
    const std::string experimental = std::string{"experimental."} + name;  // where some stood in v0.1.0
    if (!keys.copy_any(path, {std::string{"parallelism."} + name, experimental}))
      keys.assume(path, of(1), std::string{"default 1"} + kDefault);
  }
  const Node* shard = keys["parallelism.data_parallel_shard_degree"];
  const bool replicated = shard != nullptr && shard->integer == 1;
  keys.state("parallelism.fsdp", of(replicated ? "none" : "fsdp2"), {shard},
             "fully_shard when the shard degree is not 1");
  if (shard != nullptr && shard->integer > 0) {
    keys.state("parallelism.data", to_value(*shard), {shard});
  } else {
    keys.unknown("parallelism.data: shard degree -1 = all remaining GPUs of the launcher");
  }
  const Node* reshard = keys["parallelism.fsdp_reshard_after_forward"];
  keys.state("fsdp_reshard_after_forward", of(reshard == nullptr ? "default" : reshard->text), {reshard},
             reshard == nullptr ? std::string{"default default"} + kDefault : "");
  if (const Node* offload = keys["training.enable_cpu_offload"]; offload != nullptr && offload->boolean) {
    keys.state("offload.parameters", of("cpu"), {offload});
    keys.state("offload.optimizer", of("cpu"), {offload});
  }
}

void read_checkpointing(Keys& keys) {
  const Node* mode = keys["activation_checkpoint.mode"];
  const Node* option = keys["activation_checkpoint.selective_ac_option"];
  const std::string word = mode == nullptr ? "selective" : mode->text;
  Value value = of(word == "full" ? "full" : "none");
  if (word == "selective") {
    const bool every = option == nullptr || option->text != "op";
    const Node number = plain_scalar(option == nullptr ? "2" : option->text);
    value = every ? object({{"every", to_value(number)}}) : object({{"selective", of("op")}});
  }
  keys.state("gradient_checkpointing", std::move(value), {mode, option},
             mode == nullptr ? std::string{"default selective, 2"} + kDefault : "");
}

void read_training(Keys& keys) {
  if (!keys.copy_any("micro_batch_size", {"training.local_batch_size", "training.batch_size"}))
    keys.assume("micro_batch_size", of(8), std::string{"default 8"} + kDefault);
  if (!keys.copy("sequence_length", "training.seq_len"))
    keys.assume("sequence_length", of(2048), std::string{"default 2048"} + kDefault);
  if (!keys.copy("max_grad_norm", "training.max_norm"))
    keys.assume("max_grad_norm", of(1.0), std::string{"default 1.0"} + kDefault);
  if (const Node* global = keys["training.global_batch_size"]; global != nullptr && global->integer > 0)
    keys.state("global_batch_size", to_value(*global), {global});
  const Node* compile = keys.any({"compile.enable", "training.compile"});
  keys.state("compile", of(compile != nullptr && compile->boolean ? "per_block" : "none"), {compile},
             compile == nullptr ? std::string{"default false"} + kDefault : "");
  const Node* dtype = keys["training.dtype"];
  const Node* mixed = keys["training.mixed_precision_param"];
  const bool plain = mixed != nullptr && mixed->text == "float32";
  const bool half = dtype != nullptr && dtype->text == "bfloat16";
  keys.state("precision",
             of(half    ? "pure_bf16"
                : plain ? "fp32"
                        : "fsdp_bf16"),
             {dtype, mixed}, "fp32 shards, mixed_precision_param bfloat16, reduce float32 (defaults)");
  const Node* converters = keys["model.converters"];
  for (const Node& item : converters == nullptr ? std::vector<Node>{} : converters->items) {
    if (contains(item.text, "float8")) keys.state("fp8", of(true), {converters});
  }
}

void read_optimizer(Keys& keys) {
  const Node* name = keys["optimizer.name"];
  const Node* implementation = keys["optimizer.implementation"];
  const std::string word = name == nullptr ? "adamw" : lower_case(name->text);
  const bool fused = implementation == nullptr || implementation->text == "fused";
  keys.state("optimizer",
             of(word != "adamw" ? word
                : fused         ? "adamw_torch_fused"
                                : "adamw_torch"),
             {name, implementation}, implementation == nullptr ? "implementation default fused" : "");
  const Node* early = keys["optimizer.early_step_in_backward"];
  if (early != nullptr && early->boolean) keys.state("optimizer_in_backward", of(true), {early});
}

/// "# NOTE: this toml config is a preset for 64 A100 GPUs."
void read_comment(Keys& keys, std::string_view text) {
  const std::size_t at = text.find("preset for ");
  if (at == std::string_view::npos || at > 2000) return keys.unknown("gpu");
  std::string_view rest = text.substr(at + 11);
  const int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  const Node count = plain_scalar(rest.substr(0, rest.find(' ')));
  rest = rest.substr(std::min(rest.find(' ') + 1, rest.size()));
  const std::string card{rest.substr(0, rest.find_first_of(" .\n"))};
  const Origin origin{keys.file, line, line, -1};
  if (!count.is_integer() || card.empty()) return keys.unknown("gpu");
  state(keys.reading, "gpu", of(card), {origin}, "a comment");
  state(keys.reading, "world_size", to_value(count), {origin}, "a comment");
}

void read_torchtitan(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  keys.assume("framework.name", of("torchtitan"), "torchtitan's configuration");
  const bool older = keys["training.batch_size"] != nullptr || keys["training.compile"] != nullptr;
  keys.assume("framework.version", of(older ? "0.1.0" : "0.2.0"), "the release whose keys these are");
  keys.assume("task", of("pretrain"), "torchtitan trains from scratch");
  keys.assume("method", of("full"), "torchtitan trains all parameters");
  const Node* name = keys["model.name"];
  const Node* flavor = keys["model.flavor"];
  keys.copy("torchtitan_model.name", "model.name");
  keys.copy("torchtitan_model.flavor", "model.flavor");
  if (name != nullptr && flavor != nullptr)
    // "flux-flux-dev"
    keys.state("model", of(name->text == "flux" ? flavor->text : name->text + "-" + flavor->text), {name, flavor},
               "torchtitan name and flavor");
  if (name != nullptr && name->text == "flux") keys.note("a diffusion model");
  read_training(keys);
  read_axes(keys);
  read_checkpointing(keys);
  read_optimizer(keys);
  read_comment(keys, look.head);
  divide_what_remains(keys);
  for (const char* section :
       {"job", "profiling", "metrics", "lr_scheduler", "checkpoint", "validation", "comm", "inference"})
    keys.touch(section);
  keys.tell_unread();
}

const Format kRows[] = {
    {"torchtitan", "torchtitan configuration", recognise_torchtitan, read_torchtitan, 50},
};

}  // namespace

extern const FormatRows torchtitan_rows;
const FormatRows torchtitan_rows = kRows;

}  // namespace tidemark::exchange
