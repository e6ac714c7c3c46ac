// Models of two stacks: the records of T5, and what the plan of layers leaves out.
#include <algorithm>
#include <iterator>
#include <string>

#include "core/step/estimate.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Estimate estimated(const std::string& request) {
  static const Engine engine;
  Issues issues;
  CAPTURE(request);
  const Answer a = engine.answer(parse_json(request, "", issues));
  REQUIRE(a.estimate);
  return estimate(a.architecture, a.job, {.simulate_allocator = false, .itemise = true});
}

Bytes highest(const Estimate& e) {
  return *std::max_element(std::begin(e.phase_live), std::end(e.phase_live));
}

std::string t5(int layers, const std::string& options) {
  return R"({"config": {"model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8, "vocab_size": 32128,
            "num_layers": )" +
         std::to_string(layers) + R"(, "num_decoder_layers": )" + std::to_string(layers) + "}, " + options + "}";
}

constexpr const char* kRecorded = R"("precision": "amp_bf16", "micro_batch_size": 8, "sequence_length": 512,
  "decoder_sequence_length": 128, "optimizer": "adamw_torch_fused")";

// tests/oracle/records-beyond.jsonl: t5-small-amp, peak.requested512, without cuBLAS's workspaces.
TEST_CASE("t5-small's record is met in encoder, decoder and head") {
  const Estimate e = estimated(t5(6, std::string{kRecorded} + R"(, "framework": {"version": "5.12"})"));
  CHECK(e.parameters.total == 60506624);
  constexpr Bytes kWorkspaces = 17039360;  // of cuBLAS: the recorder has none
  CHECK(highest(e) - kWorkspaces <= 3202175488 + 65536);
  CHECK(highest(e) - kWorkspaces >= 3202175488 - 65536);
}

// Of eleven layers and of twelve each is on the tape; of twenty the first and four that stand for the others.
TEST_CASE("two stacks of which a few layers stand for all reach the same peak as with every layer on the tape") {
  for (const char* checkpointing : {"none", "full"}) {
    const std::string options = std::string{kRecorded} + R"(, "gradient_checkpointing": ")" + checkpointing + "\"";
    const Bytes eleven = highest(estimated(t5(11, options)));
    const Bytes twelve = highest(estimated(t5(12, options)));
    CHECK(highest(estimated(t5(20, options))) == twelve + 8 * (twelve - eleven));
  }
}

TEST_CASE("a layer of one of several stacks is named by the stack's own path") {
  const Estimate e = estimated(t5(4, kRecorded));
  bool encoder = false, decoder = false;
  for (const Instant& i : e.timeline) {
    encoder = encoder || i.label.find("encoder.block.3") != std::string::npos;
    decoder = decoder || i.label.find("decoder.block.3") != std::string::npos;
  }
  CHECK(encoder);
  CHECK(decoder);
}

}  // namespace
}  // namespace tidemark
