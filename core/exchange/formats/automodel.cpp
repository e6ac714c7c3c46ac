// NeMo Automodel's YAML (Automodel 36044ad3 nemo_automodel/recipes/llm/train_ft.py, components/distributed/*.py,
// components/_peft/lora.py, components/loss/*.py).
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_automodel(const Look& look) {
  if (!look.is_map() || !look.has("model")) return 0;
  const Node* target = look.document.root.at("model._target_");
  if (target != nullptr && contains(target->text, "nemo_automodel")) return 96;
  return look.has("step_scheduler") && look.mentions("nemo_automodel") ? 92 : 0;
}

void read_model(Keys& keys) {
  const Node* name = keys.any({"model.pretrained_model_name_or_path", "model.config.pretrained_model_name_or_path"});
  const Node* config = keys["model.config"];
  if (name != nullptr) {
    keys.state("model", of(name->text), {name});
  } else if (config != nullptr && config->is_map()) {
    keys.state("config", to_value(*config), {config});
  } else if (config != nullptr) {
    keys.state("model", of(config->text), {config});
  }
  const Node* dtype = keys.any({"model.torch_dtype", "model.dtype"});
  const std::string word = dtype == nullptr ? "bf16" : lower_case(dtype->text);
  const bool full = contains(word, "float32") || word == "fp32";
  keys.state("precision", of(full ? "fp32" : "pure_bf16"), {dtype},
             dtype == nullptr ? "default bf16"
             : word == "auto" ? "auto: the checkpoint dtype, taken as bf16"
                              : "");
  const Node* attention = keys["model.attn_implementation"];
  const Node* backend = keys["model.backend.attn"];
  const Node* said = backend != nullptr ? backend : attention;
  if (said != nullptr) {
    const std::string text = lower_case(said->text);
    const std::string kind = text == "te" || text == "flash" ? "flash_attention_2"
                             : text == "flex"                ? "flex_attention"
                                                             : text;
    keys.state("attention", of(kind), {backend, attention});
  }
  keys.touch("model.backend");
}

void read_method(Keys& keys) {
  const Node* peft = keys["peft"];
  const Node* four = keys["quantization.load_in_4bit"];
  if (peft == nullptr) return keys.assume("method", of("full"), "no peft section");
  const bool quantised = four != nullptr && four->boolean;
  const Node* target = keys["peft._target_"];
  keys.state("method", of(quantised ? "qlora" : "lora"), {peft, target, four});
  if (quantised) {
    keys.state("quantization.bits", of(4), {four});
    const Node* kind = keys["quantization.bnb_4bit_quant_type"];
    keys.state("quantization.quant_type", of(kind == nullptr ? "nf4" : kind->text), {kind, four});
    keys.copy("quantization.double_quant", "quantization.bnb_4bit_use_double_quant");
    keys.touch("quantization");
  }
  keys.copy("adapter.r", "peft.dim");
  keys.copy("adapter.lora_alpha", "peft.alpha");
  keys.copy("adapter.lora_dropout", "peft.dropout");
  if (const Node* modules = keys["peft.target_modules"]; modules != nullptr) {
    const bool one = modules->is_list() && modules->items.size() == 1;
    keys.state("adapter.target_modules", to_value(one ? modules->items[0] : *modules), {modules});
  } else if (keys.truthy("peft.match_all_linear")) {
    keys.state("adapter.target_modules", of("all-linear"), {keys["peft.match_all_linear"]});
  }
  if (const Node* other = keys["peft.exclude_modules"]; other != nullptr)
    keys.state("adapter.exclude_modules", to_value(*other), {other});
}

void read_parallelism(Keys& keys) {
  const Node* strategy = keys.any({"distributed.strategy", "distributed._target_"});
  const std::string word = strategy == nullptr ? std::string{} : lower_case(strategy->text);
  if (strategy != nullptr) {
    const bool megatron = contains(word, "megatron");
    const bool plain = contains(word, "ddp") && !contains(word, "fsdp");
    keys.state("parallelism.fsdp", of(megatron ? "megatron_fsdp" : plain ? "none" : "fsdp2"), {strategy});
  }
  for (const auto& [path, name] : {std::pair{"parallelism.tensor", "tp_size"},
                                   {"parallelism.context", "cp_size"},
                                   {"parallelism.pipeline", "pp_size"},
                                   {"parallelism.expert", "ep_size"},
                                   {"parallelism.sequence_parallel", "sequence_parallel"}}) {
    keys.copy(path, std::string{"distributed."} + name);
  }
  if (const Node* data = keys["distributed.dp_size"]; data != nullptr && data->is_integer()) {
    keys.state("parallelism.data", to_value(*data), {data});
  } else {
    keys.unknown("parallelism.data (launcher)");
  }
  const Node* kept = keys["distributed.activation_checkpointing"];
  keys.state("gradient_checkpointing", of(kept != nullptr && kept->boolean ? "full" : "none"), {kept},
             kept == nullptr ? "default off" : "");
  const Node* piece = keys["distributed.pipeline.pp_microbatch_size"];
  const Node* local = keys["step_scheduler.local_batch_size"];
  const Node* stages = keys["distributed.pp_size"];
  if (piece != nullptr && local != nullptr && stages != nullptr && stages->integer > 1 && piece->integer > 0) {
    keys.state("micro_batch_size", to_value(*piece), {piece});
    keys.state("parallelism.num_micro_batches", of(local->integer / piece->integer), {piece, local},
               "local batch / pipeline micro-batch");
  }
}

void read_rest(Keys& keys) {
  const Node* packed = keys["packed_sequence.packed_sequence_size"];
  const bool packing = packed != nullptr && packed->integer > 0;
  keys.touch("packed_sequence");
  keys.state("packing", of(packing), {packed}, packing ? "" : "packed_sequence_size 0 or absent");
  if (packing) {
    keys.state("sequence_length", to_value(*packed), {packed});
  } else if (!keys.copy_any("sequence_length", {"dataset.seq_length", "dataset.seq_len"})) {
    keys.unknown("sequence_length (data)");
  }
  const Node* optimizer = keys["optimizer._target_"];
  const std::string name =
      optimizer == nullptr ? std::string{} : lower_case(optimizer->text.substr(optimizer->text.rfind('.') + 1));
  if (optimizer != nullptr)
    keys.state("optimizer", of(name == "adamw" || name == "adam" ? "adamw_torch" : name), {optimizer});
  if (const Node* loss = keys["loss_fn._target_"]; loss != nullptr) {
    keys.state("loss",
               of(contains(loss->text, "FusedLinear") ? "cut_cross_entropy"
                  : contains(loss->text, "Chunked")   ? "chunked"
                                                      : "default"),
               {loss});
  }
  if (const Node* fp8 = keys["fp8.enabled"]; fp8 != nullptr && fp8->boolean) keys.state("fp8", of(true), {fp8});
  if (const Node* compile = keys["compile.enabled"]; compile != nullptr && compile->boolean)
    keys.state("compile", of("full"), {compile});
  if (const Node* frozen = keys["freeze_config.freeze_vision_tower"]; frozen != nullptr && frozen->boolean) {
    keys.state("freeze", words({"vision_tower"}), {frozen});
  }
  keys.copy_any("max_grad_norm", {"max_grad_norm.max_norm", "clip_grad_norm.max_norm"});
}

void read_automodel(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  keys.assume("framework.name", of("nemo-automodel"), "the components are Automodel's");
  read_model(keys);
  read_method(keys);
  keys.copy("micro_batch_size", "step_scheduler.local_batch_size");
  keys.copy("global_batch_size", "step_scheduler.global_batch_size");
  read_parallelism(keys);
  read_rest(keys);
  const bool sees = contains(keys.text("recipe"), "VLM") || contains(keys.file, "vlm");
  keys.assume("task", of(sees ? "vlm" : "sft"), "from the path and recipe");
  keys.unknown("gpu");
  for (const char* section :
       {"dist_env", "rng", "checkpoint", "dataset", "validation_dataset", "dataloader", "validation_dataloader",
        "lr_scheduler", "ci", "optimizer", "compile", "fp8", "processor"})
    keys.touch(section);
  keys.tell_unread();
}

const Format kRows[] = {
    {"automodel", "NeMo Automodel configuration", recognise_automodel, read_automodel, 50},
};

}  // namespace

extern const FormatRows automodel_rows;
const FormatRows automodel_rows = kRows;

}  // namespace tidemark::exchange
