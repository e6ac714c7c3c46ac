// AutoTrain's YAML (autotrain-advanced b5c98fb src/autotrain/trainers/clm/{params,utils}.py, parser.py).
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_autotrain(const Look& look) {
  if (!look.is_map() || !look.has("base_model") || !look.has("params")) return 0;
  return look.has("task") || look.has("project_name") ? 93 : 0;
}

void read_method(Keys& keys) {
  const Node* peft = keys["params.peft"];
  const Node* bits = keys["params.quantization"];
  if (peft == nullptr || !peft->boolean) return keys.state("method", of("full"), {peft}, "peft default false");
  keys.state("method", of(bits != nullptr && bits->text != "none" ? "qlora" : "lora"), {peft, bits});
  if (bits != nullptr && bits->text != "none") {
    const bool four = bits->text == "int4";
    const char* why = "autotrain: nf4, bnb_4bit_use_double_quant False (trainers/clm/utils.py)";
    keys.state("quantization.bits", of(four ? 4 : 8), {bits}, why);
    keys.state("quantization.quant_type", of(four ? "nf4" : "int8"), {bits}, why);
    if (four) keys.state("quantization.double_quant", of(false), {bits}, why);
    keys.state("quantization.prepare_kbit", of(true), {bits}, why);
  }
  const auto option = [&](const char* path, const char* key, Value standard, const char* why) {
    if (!keys.copy(path, key)) keys.assume(path, std::move(standard), why);
  };
  option("adapter.r", "params.lora_r", of(16), "default 16");
  option("adapter.lora_alpha", "params.lora_alpha", of(32), "default 32");
  option("adapter.lora_dropout", "params.lora_dropout", of(0.05), "default 0.05");
  const Node* modules = keys["params.target_modules"];
  keys.state("adapter.target_modules", modules == nullptr ? of("all-linear") : word_list(*modules), {modules},
             modules == nullptr ? "default all-linear" : "");
}

void read_lengths(Keys& keys) {
  const Node* block = keys["params.block_size"];
  const Node* model = keys["params.model_max_length"];
  const Node* other = keys.any({"params.max_seq_length", "params.max_sequence_length"});
  if (block != nullptr && block->is_number()) {
    const bool bounded = model != nullptr && model->is_number() && model->integer < block->integer;
    keys.state("sequence_length", to_value(bounded ? *model : *block), {block, model},
               "block_size bounded by model_max_length");
  } else if (other != nullptr) {
    keys.state("sequence_length", to_value(*other), {other});
  } else if (model != nullptr) {
    keys.state("sequence_length", to_value(*model), {model});
  }
  keys.copy("max_prompt_length", "params.max_prompt_length");
  if (const Node* target = keys["params.max_target_length"]; target != nullptr)
    keys.state("decoder_sequence_length", to_value(*target), {target});
  if (const Node* padding = keys["params.padding"]; padding != nullptr && padding->is_string())
    keys.state("padding", of(true), {padding});
}

void read_autotrain(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  keys.assume("framework.name", of("transformers"), "AutoTrain runs transformers' and TRL's trainers");
  keys.copy("model", "base_model");
  const Node* task = keys["task"];
  const std::string word = task == nullptr ? std::string{} : lower_case(task->text);
  const bool language = word.compare(0, 3, "llm") == 0;
  if (task != nullptr) keys.state("task", of(word == "llm" ? "sft" : language ? word.substr(4) : word), {task});
  read_method(keys);
  keys.copy("micro_batch_size", "params.batch_size");
  keys.copy_any("gradient_accumulation_steps", {"params.gradient_accumulation", "params.gradient_accumulation_steps"});
  read_lengths(keys);
  const Node* mixed = keys["params.mixed_precision"];
  const std::string dtype = mixed == nullptr ? "none" : mixed->text;
  keys.state("precision",
             of(dtype == "fp16"   ? "amp_fp16"
                : dtype == "bf16" ? "amp_bf16"
                                  : "fp32"),
             {mixed}, mixed == nullptr ? "mixed_precision default none" : "");
  if (const Node* optimizer = keys["params.optimizer"]; optimizer != nullptr) {
    keys.state("optimizer", of(optimizer_word(optimizer->text)), {optimizer});
  } else {
    keys.assume("optimizer", of("adamw_torch"), "default adamw_torch");
  }
  const Node* off = keys["params.disable_gradient_checkpointing"];
  const bool kept = language && (off == nullptr || !off->boolean);
  keys.state("gradient_checkpointing", of(kept ? "full" : "none"), {off},
             "LLM trainers enable it unless disable_gradient_checkpointing");
  if (kept) keys.assume("use_reentrant", of(true), "trainers/clm/utils.py L745-751");
  const std::string backend = keys.text("backend");
  keys.unknown(backend.empty() || contains(backend, "local") ? "gpu" : "gpu (a Spaces or endpoint backend)");
  for (const char* section : {"hub", "data"}) keys.touch(section);
  keys.tell_unread();
}

const Format kRows[] = {
    {"autotrain", "AutoTrain configuration", recognise_autotrain, read_autotrain, 50},
};

}  // namespace

extern const FormatRows autotrain_rows;
const FormatRows autotrain_rows = kRows;

}  // namespace tidemark::exchange
