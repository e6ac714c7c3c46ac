#include "core/exchange/out/export.hpp"

namespace tidemark::exchange {
namespace {

constexpr Exporter kExporters[] = {
    {"trainer", "Python: transformers' Trainer and PEFT", "train.py", write_trainer},
    {"trl", "Python: TRL's trainers and PEFT", "train.py", write_trl},
    {"unsloth", "Python: Unsloth and TRL", "train.py", write_unsloth},
    {"axolotl", "Axolotl YAML", "axolotl.yaml", write_axolotl},
    {"llamafactory", "LLaMA-Factory YAML", "llamafactory.yaml", write_llama_factory},
    {"swift", "ms-swift command", "train.sh", write_ms_swift},
    {"torchtune", "torchtune YAML", "torchtune.yaml", write_torchtune},
    {"megatron", "Megatron-LM command", "pretrain.sh", write_megatron},
    {"accelerate", "accelerate YAML with FSDP", "accelerate.yaml", write_accelerate_fsdp},
    {"deepspeed", "DeepSpeed JSON", "deepspeed.json", write_deepspeed},
    {"command", "tidemark command", "estimate.sh", write_command},
    {"request", "request as JSON", "request.json", write_request},
};

}  // namespace

std::span<const Exporter> exporters() {
  return kExporters;
}

const Exporter* find_exporter(std::string_view name) {
  for (const Exporter& exporter : kExporters) {
    if (exporter.name == name) return &exporter;
  }
  return nullptr;
}

}  // namespace tidemark::exchange
