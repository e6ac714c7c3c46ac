// How long one estimate takes, and that it does not depend on the number of layers.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "core/step/estimate.hpp"
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

}  // namespace

int main(int argc, char** argv) {
  const auto estimate = [](const char* name, auto... rest) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { time_estimate(state, rest...); });
  };
  const auto request = [](const char* name, auto... rest) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { time_request(state, rest...); });
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
  request("request to answer in JSON, Llama-2-7B", "llama-2-7b", kFull);
  request("request to answer in JSON, Llama-2-70B", "llama-2-70b", kFull);

  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
