#include "core/options/harmless.hpp"

#include <cstddef>

namespace tidemark {
namespace {

constexpr std::string_view kSchedule = "it is a schedule";
constexpr std::string_view kMath = "it changes how matrices are multiplied, not what is kept";
constexpr std::string_view kOrder = "the longest batch is asked about";
constexpr std::string_view kOfPreferences =
    "it weighs losses of preferences; the Trainer's, of words, is label_smoothing_factor";
constexpr std::string_view kHost = "it concerns host memory and files";
constexpr std::string_view kBetween = "evaluation counts where evaluation.micro_batch_size says its batch";

constexpr HarmlessKey kHarmless[] = {
    {"label_smoothing", kOfPreferences},
    {"dpo_label_smoothing", kOfPreferences},
    {"tf32", kMath},
    {"group_by_length", kOrder},
    {"length_column_name", kOrder},
    {"train_sampling_strategy", kOrder},
    {"dataloader_num_workers", kHost},
    {"dataloader_pin_memory", kHost},
    {"preprocessing_num_workers", kHost},
    {"save_steps", kHost},
    {"save_strategy", kHost},
    {"save_total_limit", kHost},
    {"saves_per_epoch", kHost},
    {"output_dir", kHost},
    {"logging_steps", kHost},
    {"logging_dir", kHost},
    {"report_to", kHost},
    {"learning_rate", kSchedule},
    {"lr_scheduler_type", kSchedule},
    {"warmup_ratio", kSchedule},
    {"warmup_steps", kSchedule},
    {"num_train_epochs", kSchedule},
    {"num_epochs", kSchedule},
    {"max_steps", kSchedule},
    {"weight_decay", kSchedule},
    {"seed", kSchedule},
    {"adam_beta1", kSchedule},
    {"adam_beta2", kSchedule},
    {"adam_epsilon", kSchedule},
    {"allgather_bucket_size", "parts are gathered into the weights themselves"},
    {"round_robin_gradients", "it is the order in which gradients are divided"},
    {"bnb_4bit_compute_dtype", "it is taken to be the dtype of autocast, or of the weights"},
    {"eval_steps", kBetween},
    {"eval_strategy", kBetween},
    {"evaluation_strategy", kBetween},
    {"evals_per_epoch", kBetween},
    {"val_set_size", kBetween},
    {"val_size", kBetween},
};

constexpr ForeignKey kForeign[] = {
    {"eval_accumulation_steps,bf16_full_eval,fp16_full_eval,do_eval",
     "Of evaluation its batch size is modelled, \"evaluation\": {\"micro_batch_size\": 8}. Leave this key out."},
    {"tensor_model_parallel_size,tensor_parallel_size,pipeline_model_parallel_size,pipeline_parallel_size,"
     "context_parallel_size,expert_model_parallel_size,sequence_parallel_size,dp_shard_size,fsdp_version",
     "Write it as a key of \"parallelism\": that decides what is modelled."},
    {"recompute_granularity", "Say \"gradient_checkpointing\": \"full\", or {\"selective\": [\"core_attn\"]}."},
    {"moe_grouped_gemm", "Say \"moe\": {\"implementation\": \"grouped_mm\"}."},
    {"deepspeed",
     "Say \"parallelism\": {\"zero_stage\": 3} and \"offload\"; what its file states of sizes are keys of an object."},
    {"offload_optimizer,offload_param", "Write it as a key of \"offload\": that decides what is modelled."},
    {"freeze_extra_modules",
     "Name what is frozen instead: \"freeze\": [\"layers.0\", \"layers.1\"] with method freeze."},
    {"liger_layer_norm,liger_cross_entropy,fp8,use_scattermoe", "Not modelled yet."},
    {"zero_hpz_partition_size,zero_quantized_weights,zero_quantized_gradients,mics_shard_size",
     "ZeRO++ and MiCS are not modelled. Leave this key out."},
    {"flex_attention", "Say \"attention\": \"flex_attention\"."},
};

}  // namespace

std::span<const HarmlessKey> harmless_keys() {
  return kHarmless;
}

std::string_view why_refused(std::string_view key) {
  for (const ForeignKey& foreign : kForeign) {
    std::string_view rest = foreign.keys;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      if (rest.substr(0, comma) == key) return foreign.why;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return {};
}

std::string_view why_harmless(std::string_view key) {
  for (const HarmlessKey& harmless : kHarmless) {
    if (harmless.key == key) return harmless.why;
  }
  return {};
}

}  // namespace tidemark
