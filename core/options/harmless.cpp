#include "core/options/harmless.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kSchedule = "it is a schedule";
constexpr std::string_view kMath = "it changes how matrices are multiplied, not what is kept";
constexpr std::string_view kOrder = "the longest batch is asked about";
constexpr std::string_view kHost = "it concerns host memory and files";

constexpr HarmlessKey kHarmless[] = {
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
};

}  // namespace

std::span<const HarmlessKey> harmless_keys() {
  return kHarmless;
}

std::string_view why_harmless(std::string_view key) {
  for (const HarmlessKey& harmless : kHarmless) {
    if (harmless.key == key) return harmless.why;
  }
  return {};
}

}  // namespace tidemark
