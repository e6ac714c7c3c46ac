// LitGPT's YAML (litgpt 26857050 litgpt/finetune/{lora,full}.py, litgpt/pretrain.py, litgpt/args.py).
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_litgpt(const Look& look) {
  if (!look.is_map() || !(look.has("checkpoint_dir") || look.has("model_name"))) return 0;
  const Node& root = look.document.root;
  int score = 0;
  for (const char* key :
       {"train.micro_batch_size", "train.global_batch_size", "train.save_interval", "lora_query", "data.class_path",
        "logger_name", "optimizer.class_path", "out_dir", "train.max_seq_length", "initial_checkpoint_dir"}) {
    if (root.at(key) != nullptr || root.find(key) != nullptr) score += 20;
  }
  return score >= 40 ? std::min(score + 20, 92) : 0;
}

bool pretrains(Keys& keys) {
  return keys.root.find("model_name") != nullptr && keys.root.find("checkpoint_dir") == nullptr;
}

void read_method(Keys& keys) {
  const Node* rank = keys["lora_r"];
  const Node* quantize = keys["quantize"];
  const bool adapted = rank != nullptr || keys["lora_alpha"] != nullptr || keys["lora_query"] != nullptr;
  if (!adapted) return keys.assume("method", of("full"), "no lora keys");
  keys.state("method", of(quantize != nullptr ? "qlora" : "lora"), {rank, quantize});
  if (quantize != nullptr) {
    const std::string word = quantize->text;
    const bool four = contains(word, "nf4") || contains(word, "fp4");
    keys.state("quantization.bits", of(four ? 4 : 8), {quantize});
    keys.state("quantization.quant_type", of(contains(word, "nf4") ? "nf4" : four ? "fp4" : "int8"), {quantize});
    if (four) keys.state("quantization.double_quant", of(contains(word, "dq")), {quantize});
  }
  const auto option = [&](const char* path, const char* key, Value standard) {
    if (!keys.copy(path, key)) keys.assume(path, std::move(standard), "default (finetune/lora.py L56-64)");
  };
  option("adapter.r", "lora_r", of(8));
  option("adapter.lora_alpha", "lora_alpha", of(16));
  option("adapter.lora_dropout", "lora_dropout", of(0.05));
  std::vector<Value> targets;
  std::vector<Origin> origins;
  for (const auto& [key, name, standard] : {std::tuple{"lora_query", "query", true},
                                            {"lora_key", "key", false},
                                            {"lora_value", "value", true},
                                            {"lora_projection", "proj", false},
                                            {"lora_mlp", "mlp", false},
                                            {"lora_head", "lm_head", false}}) {
    const Node* node = keys[key];
    if (node != nullptr) origins.push_back(keys.origin(node));
    if (node == nullptr ? standard : node->boolean) targets.push_back(of(name));
  }
  state(keys.reading, "adapter.target_modules", of(std::move(targets)), std::move(origins));
}

void read_batch(Keys& keys) {
  const Node* micro = keys["train.micro_batch_size"];
  const Node* global = keys["train.global_batch_size"];
  const Node* devices = keys["devices"];
  const Node* nodes = keys["num_nodes"];
  keys.copy("micro_batch_size", "train.micro_batch_size");
  keys.copy("global_batch_size", "train.global_batch_size");
  const std::int64_t count = devices == nullptr ? 1 : devices->integer * (nodes == nullptr ? 1 : nodes->integer);
  if (devices != nullptr && !devices->is_integer()) {
    keys.unknown("parallelism.data: devices " + devices->text);
  } else {
    keys.state("parallelism.data", of(count), {devices, nodes}, devices == nullptr ? "default 1" : "");
    const std::int64_t rows = count * (micro == nullptr ? 1 : micro->integer);
    if (global != nullptr && rows > 0) {
      keys.state("gradient_accumulation_steps", of(std::max<std::int64_t>(1, global->integer / rows)), {global, micro},
                 "global batch / (devices x micro batch)");
    }
  }
  const char* sharding = "litgpt uses FSDPStrategy for more than one device (finetune/full.py, lora.py)";
  if (count > 1) keys.assume("parallelism.fsdp", of("full_shard"), sharding);
  const bool kept = count > 1 && find(keys.reading, "method")->value.string == "full" && !pretrains(keys);
  keys.assume(
      "gradient_checkpointing", of(kept ? "full" : "none"),
      "FSDPStrategy(activation_checkpointing_policy={Block}) with several devices in finetune/full.py; none on one");
  if (!keys.copy("sequence_length", "train.max_seq_length"))
    keys.unknown("sequence_length: longest sample of the data set");
}

void read_precision(Keys& keys) {
  const Node* node = keys["precision"];
  const std::string word = node == nullptr ? (pretrains(keys) ? "bf16-mixed" : "bf16-true") : node->text;
  const char* recipe = word == "bf16-true"    ? "pure_bf16"
                       : word == "bf16-mixed" ? "amp_bf16"
                       : word == "16-true"    ? "pure_fp16"
                       : word == "16-mixed"   ? "amp_fp16"
                                              : "fp32";
  keys.state("precision", of(recipe), {node},
             node == nullptr ? "default: bf16-true for finetune, bf16-mixed for pretrain" : "");
}

void read_optimizer(Keys& keys) {
  const Node* path = keys["optimizer.class_path"];
  const Node* whole = keys["optimizer"];
  const std::string text = path != nullptr                          ? path->text
                           : whole != nullptr && whole->is_string() ? whole->text
                                                                    : "AdamW";
  const std::string name = lower_case(text.substr(text.rfind('.') + 1));
  std::string word = name == "adamw" ? "adamw_torch" : name;
  if (contains(text, "bitsandbytes"))
    word = contains(name, "8bit") ? (contains(name, "paged") ? "paged_adamw_8bit" : "adamw_8bit") : "paged_adamw_32bit";
  keys.state("optimizer", of(word), {path, whole}, path == nullptr && whole == nullptr ? "default AdamW" : "");
  keys.touch("optimizer");
  keys.copy("max_grad_norm", "train.max_norm");
}

void read_litgpt(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  keys.assume("framework.name", of("litgpt"), "LitGPT's configuration");
  const Node* folder = keys.any({"checkpoint_dir", "model_name"});
  if (folder != nullptr) {
    const std::string text = folder->text.compare(0, 12, "checkpoints/") == 0 ? folder->text.substr(12) : folder->text;
    keys.state("model", of(text), {folder});
  }
  read_method(keys);
  read_batch(keys);
  read_precision(keys);
  read_optimizer(keys);
  keys.assume("attention", of("sdpa"), "litgpt calls scaled_dot_product_attention");
  keys.assume("loss", of("chunked"), "chunked_cross_entropy(chunk_size 0 or 128)");
  keys.assume("task", of(pretrains(keys) ? "pretrain" : "sft"), "finetune or pretrain by the file's keys");
  keys.unknown("gpu");
  for (const char* section : {"data", "eval"}) keys.touch(section);
  keys.tell_unread();
}

const Format kRows[] = {
    {"litgpt", "LitGPT configuration", recognise_litgpt, read_litgpt, 50},
};

}  // namespace

extern const FormatRows litgpt_rows;
const FormatRows litgpt_rows = kRows;

}  // namespace tidemark::exchange
