#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// A job to be written in another tool's words: all defaults are settled, so that nothing hangs on the reader's.
struct ExportJob {
  std::string model;       ///< a Hugging Face id or a path
  std::string class_name;  ///< the class that is trained: "LlamaForCausalLM"
  std::string task;        ///< "sft"
  TrainingJob job;         ///< as the engine read it
  Value request;           ///< the same as it was asked, for the formats that are our own
  Value config;            ///< the model's config.json; null where only its name is known
  // What the engine may not be able to count, and other tools can be told all the same.
  Count zero_stage = 0;       ///< DeepSpeed's
  std::string fsdp = "none";  ///< full_shard, shard_grad_op, hybrid_shard, fsdp2
  Count gpus = 1;             ///< of the data-parallel group
  bool offload_optimizer = false, offload_parameters = false;
};

/// One file. What its format cannot say stands in it as a comment, where it has comments, and among the issues.
struct Exported {
  std::string text;
  Issues issues;
};

/// One format that jobs are written in.
struct Exporter {
  std::string_view name;  ///< "axolotl"
  std::string_view what;  ///< "Axolotl YAML"
  std::string_view file;  ///< how such a file is called: "axolotl.yaml"
  Exported (*write)(const ExportJob& job);
};
std::span<const Exporter> exporters();
const Exporter* find_exporter(std::string_view name);

// One file each.
Exported write_trainer(const ExportJob& job);
Exported write_trl(const ExportJob& job);
Exported write_unsloth(const ExportJob& job);
Exported write_axolotl(const ExportJob& job);
Exported write_llama_factory(const ExportJob& job);
Exported write_ms_swift(const ExportJob& job);
Exported write_torchtune(const ExportJob& job);
Exported write_megatron(const ExportJob& job);
Exported write_accelerate_fsdp(const ExportJob& job);
Exported write_deepspeed(const ExportJob& job);
Exported write_command(const ExportJob& job);
Exported write_request(const ExportJob& job);

/// A Python script that runs the job with random weights on a card and prints what it took; needs its `config`.
Exported write_probe(const ExportJob& job);

}  // namespace tidemark::exchange
