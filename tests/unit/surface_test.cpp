// A surface is one peak for each pair of batch size and sequence length: the quick estimate's, found another way.
#include <set>
#include <string>
#include <vector>

#include "core/engine/modelled.hpp"
#include "core/step/estimate.hpp"
#include "core/step/simulation.hpp"
#include "core/step/surface.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

// Ways to train that make steps of different kinds.
const std::vector<std::string> kWays = {
    R"("method": "full")",
    R"("method": "lora", "precision": "bf16_amp", "gradient_checkpointing": "full")",
    R"("method": "qlora", "attention": "eager", "optimizer": "paged_adamw_8bit")",
    R"("method": "full", "precision": "bf16_amp", "padding": true, "gradient_accumulation_steps": 4)",
    R"("method": "lora", "loss": "liger", "attention": "flash_attention_2")",
    R"("method": "full", "loss": "chunked", "gradient_checkpointing": {"every": 2}, "packing": true)",
};

/// Asks for one model of each type that the engine knows, trained in each of these ways.
template <class Check>
void for_models(const std::vector<std::string>& ways, Check check) {
  std::set<std::string> types;
  for (const ModelEntry& model : engine().catalog().models()) {
    if (!is_modelled(model) || !types.insert(std::string{model.model_type()}).second) continue;
    for (const std::string& way : ways) {
      const std::string request = "{\"model\": \"" + model.id + "\", " + way + "}";
      Issues issues;
      const Engine::Question question = engine().read(parse_json(request, "", issues));
      CAPTURE(request);
      if (!question.complete) {  // some families have no flash attention, or nothing to quantise
        REQUIRE(has_error(question.answer.issues));
        continue;
      }
      if (is_supported(question.answer.architecture)) check(question.answer);
    }
  }
  CHECK(types.size() > 30);
}

Bytes quick_estimate(const Answer& a, Count batch, Count sequence) {
  TrainingJob job = a.job;
  job.micro_batch_size = batch;
  job.sequence_length = sequence;
  return estimate(a.architecture, job, {.simulate_allocator = false, .itemise = false}).allocated.expected;
}

void check_cells(const Answer& a, const std::vector<Count>& batches, const std::vector<Count>& sequences) {
  const Surface surface = peak_surface(a.architecture, a.job, batches, sequences);
  REQUIRE(surface.peaks.size() == batches.size() * sequences.size());
  std::size_t i = 0;
  for (const Count batch : batches) {
    for (const Count sequence : sequences) {
      const Bytes peak = surface.peaks[i++];
      if (peak < 0) continue;  // beyond 64 bits
      CAPTURE(batch, sequence);
      CHECK(peak == quick_estimate(a, batch, sequence));
    }
  }
}

TEST_CASE("a surface holds the quick estimate of every cell") {
  for_models(kWays, [](const Answer& a) { check_cells(a, {1, 2, 3, 16, 512}, {128, 384, 1024, 4096, 57344}); });
}

TEST_CASE("a surface holds for lengths that kernels pad") {
  for_models({kWays[0], kWays[3], kWays[4]}, [](const Answer& a) {
    check_cells(a, {1, 2, 5, 10}, {1, 17, 100, 127, 129, 1000, 3071, 3072, 3073});
  });
}

TEST_CASE("a surface over sizes that a page shows is compiled, not estimated cell by cell") {
  std::vector<Count> batches, sequences;
  for (Count batch = 1; batch <= 64; ++batch) batches.push_back(batch);
  for (Count length = 128; length <= 64 * 128; length += 128) sequences.push_back(length);
  for_models({kWays[0], kWays[1], kWays[4]}, [&](const Answer& a) {
    // Its scores are of pairs of (S + 197) tokens, a size of three terms, where a compiled step's has two at most: cell
    // by cell, and its table of positions ends at 512 tokens.
    if (a.architecture.model_type == "layoutlmv3") return;
    // Its scores are of S tokens and of S / 4 or S / 128 stretches: three terms as well.
    if (a.architecture.model_type == "deepseek_v4") return;
    // Their similarities are B x B, where a compiled step's sizes grow as B at most.
    if (a.architecture.model_type == "clip" || a.architecture.model_type == "siglip") return;
    // Costs of its boxes are of all predictions and all objects of the batch: B x B again.
    if (a.architecture.model_type == "yolos") return;
    // How blocks divide the rows of sums as many as pictures is a power of two.
    if (a.architecture.model_type == "convnextv2") return;
    const Surface surface = peak_surface(a.architecture, a.job, batches, sequences);
    // Groups of two or three cells are not worth a compilation; Liger's chunks, powers of two, make a dozen of them.
    CHECK(surface.one_by_one < 4096 / 20);
    CHECK(surface.recordings < 4096 / 20);
  });
}

TEST_CASE("a surface without sizes is empty") {
  CHECK(peak_surface({}, {}, {}, {}).peaks.empty());
}

}  // namespace
}  // namespace tidemark
