// How long one estimate takes, and that it does not depend on the number of layers.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/step/estimate.hpp"
#include "core/step/surface.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const tidemark::Engine& engine() {
  static const tidemark::Engine loaded = [] {
    tidemark::Engine fresh;
    const std::string directory = TIDEMARK_CATALOG;
    fresh.load_catalog(read_file(directory + "/models.json"), read_file(directory + "/gpus.json"));
    return fresh;
  }();
  return loaded;
}

std::string request_text(const std::string& model, const std::string& options) {
  return R"({"model": ")" + model + R"(", "precision": "pure_bf16", "sequence_length": 4096)" + options + "}";
}

/// Model and job as the wire reads them, so that only the estimate itself is timed.
tidemark::Answer prepared(const std::string& model, const std::string& options) {
  tidemark::Issues issues;
  tidemark::Answer answer = engine().answer(tidemark::parse_json(request_text(model, options), "", issues));
  if (!answer.estimate) {
    for (const tidemark::Issue& issue : answer.issues) std::fprintf(stderr, "%s\n", issue.message.c_str());
    std::exit(1);
  }
  return answer;
}

/// The estimate alone, of `model` with `layers` layers (0: as many as it has).
void time_estimate(benchmark::State& state, const char* model, const char* options, tidemark::Count layers,
                   tidemark::EstimateOptions what) {
  tidemark::Answer question = prepared(model, options);
  if (layers > 0) question.architecture.num_layers = layers;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tidemark::estimate(question.architecture, question.job, what));
  }
  state.counters["layers"] = static_cast<double>(question.architecture.num_layers);
}

/// Peaks of 64 micro batch sizes by 64 sequence lengths.
void time_map(benchmark::State& state, const char* model, const char* options) {
  const tidemark::Answer question = prepared(model, options);
  std::vector<tidemark::Count> batches, sequences;
  for (tidemark::Count i = 1; i <= 64; ++i) {
    batches.push_back(i);
    sequences.push_back(128 * i);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(tidemark::peak_surface(question.architecture, question.job, batches, sequences));
  }
}

/// JSON in, JSON out, as the page and the command do it.
void time_request(benchmark::State& state, const char* model, const char* options) {
  const std::string request = request_text(model, options);
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string answer = engine().handle(std::string_view{request});
    bytes = answer.size();
    benchmark::DoNotOptimize(bytes);
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

constexpr tidemark::EstimateOptions kPeak{.simulate_allocator = false, .itemise = false};
constexpr tidemark::EstimateOptions kItemised{.simulate_allocator = false, .itemise = true};
constexpr tidemark::EstimateOptions kEverything{.simulate_allocator = true, .itemise = true};
constexpr const char* kFull = "";
constexpr const char* kQlora = R"(, "method": "qlora", "gradient_checkpointing": "full")";
// JSON has the last of two equal keys: the precision of each strategy's own launchers.
constexpr const char* kDdp = R"(, "parallelism": {"data": 8})";
constexpr const char* kFsdp2 =
    R"(, "precision": "fsdp_bf16", "gradient_checkpointing": "full", "parallelism": {"data": 8, "fsdp": "fsdp2"})";
constexpr const char* kFsdp2Many =
    R"(, "precision": "fsdp_bf16", "gradient_checkpointing": "full", "parallelism": {"data": 10000, "fsdp": "fsdp2"})";
constexpr const char* kFsdp1 =
    R"(, "precision": "fsdp_bf16", "gradient_checkpointing": "full", "parallelism": {"data": 8, "fsdp": "full_shard"})";
constexpr const char* kZero2 = R"(, "precision": "deepspeed_bf16", "parallelism": {"data": 8, "zero_stage": 2})";
constexpr const char* kZero3 =
    R"(, "precision": "deepspeed_bf16", "gradient_checkpointing": "full", "parallelism": {"data": 8, "zero_stage": 3})";
constexpr const char* kZero3Lora =
    R"(, "method": "lora", "precision": "deepspeed_bf16", "parallelism": {"data": 8, "zero_stage": 3})";
constexpr const char* kTitan =
    R"(, "framework": {"name": "torchtitan"}, "precision": "fsdp_bf16", "parallelism": {"data": 8, "fsdp": "fsdp2", "tensor": 4, "sequence_parallel": true, "loss_parallel": true})";
constexpr const char* kPipeline = R"(, "parallelism": {"pipeline": 4, "num_micro_batches": 8})";
constexpr const char* kMegatron =
    R"(, "framework": {"name": "megatron"}, "precision": "auto", "parallelism": {"data": 8, "tensor": 4, "sequence_parallel": true, "pipeline": 4, "num_micro_batches": 32})";

}  // namespace

int main(int argc, char** argv) {
  const auto estimate = [](const char* name, auto... rest) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { time_estimate(state, rest...); });
  };
  const auto request = [](const char* name, auto... rest) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { time_request(state, rest...); });
  };
  const auto map = [](const char* name, auto... rest) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { time_map(state, rest...); });
  };
  estimate("peak only, Llama-2-7B", "llama-2-7b", kFull, 0, kPeak);
  estimate("peak only, Llama-2-7B with 80 layers", "llama-2-7b", kFull, 80, kPeak);
  estimate("peak only, Llama-2-7B with 800 layers", "llama-2-7b", kFull, 800, kPeak);
  estimate("peak only, Llama-2-70B", "llama-2-70b", kFull, 0, kPeak);
  estimate("peak only, Llama-2-7B, QLoRA and checkpointing", "llama-2-7b", kQlora, 0, kPeak);
  estimate("peak, breakdown and timeline, Llama-2-7B", "llama-2-7b", kFull, 0, kItemised);
  estimate("everything with the allocator, Llama-2-7B", "llama-2-7b", kFull, 0, kEverything);
  estimate("everything with the allocator, Llama-2-70B", "llama-2-70b", kFull, 0, kEverything);
  estimate("everything with the allocator, Llama-2-7B, QLoRA and checkpointing", "llama-2-7b", kQlora, 0, kEverything);
  estimate("peak only, DDP of 8 GPUs, Llama-2-7B", "llama-2-7b", kDdp, 0, kPeak);
  estimate("peak only, FSDP 2 of 8 GPUs, Llama-2-7B", "llama-2-7b", kFsdp2, 0, kPeak);
  estimate("peak only, FSDP 2 of 10 000 GPUs, Llama-2-7B", "llama-2-7b", kFsdp2Many, 0, kPeak);
  estimate("peak only, FSDP 1 of 8 GPUs, Llama-2-7B", "llama-2-7b", kFsdp1, 0, kPeak);
  estimate("peak only, ZeRO-2 of 8 GPUs, Llama-2-7B", "llama-2-7b", kZero2, 0, kPeak);
  estimate("peak only, ZeRO-3 of 8 GPUs, Llama-2-7B", "llama-2-7b", kZero3, 0, kPeak);
  estimate("peak only, ZeRO-3 of 8 GPUs, Llama-2-70B", "llama-2-70b", kZero3, 0, kPeak);
  estimate("peak only, ZeRO-3 of 8 GPUs, LoRA, Llama-2-7B", "llama-2-7b", kZero3Lora, 0, kPeak);
  estimate("peak only, torchtitan, FSDP 2 of 8 by TP of 4, Llama-2-7B", "llama-2-7b", kTitan, 0, kPeak);
  estimate("peak only, a pipeline of 4, Llama-2-7B", "llama-2-7b", kPipeline, 0, kPeak);
  estimate("peak only, Megatron-Core, 8 by TP of 4 by a pipeline of 4, Llama-2-7B", "llama-2-7b", kMegatron, 0, kPeak);
  estimate("peak only, Megatron-Core, 8 by TP of 4 by a pipeline of 4, Llama-2-70B", "llama-2-70b", kMegatron, 0,
           kPeak);
  map("map of 64 x 64 peaks, Llama-2-7B", "llama-2-7b", kFull);
  map("map of 64 x 64 peaks, Llama-2-7B, QLoRA and checkpointing", "llama-2-7b", kQlora);
  request("request to answer in JSON, Llama-2-7B", "llama-2-7b", kFull);
  request("request to answer in JSON, Llama-2-70B", "llama-2-70b", kFull);

  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
