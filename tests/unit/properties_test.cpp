// What must hold for every job, whatever its numbers: drawn at random from fixed seeds.
#include <algorithm>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/runtime/cublas.hpp"
#include "core/step/estimate.hpp"
#include "core/step/quick_peak.hpp"
#include "core/step/simulation.hpp"
#include "core/step/walk.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

/// A job as the test can vary it.
struct Draw {
  std::string config;      // members of config.json that do not vary
  std::string layers_key;  // as the family spells it
  Count layers = 0;
  std::string options;        // members of the request that do not vary, each followed by a comma
  std::string checkpointing;  // JSON
  std::string adapter;        // members of the adapter, each behind a comma
  Count batch = 1, sequence = 128, rank = 8;
};

// The standard distributions differ between libraries; the generator does not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  Count below(Count n) { return static_cast<Count>(engine_() % static_cast<std::uint64_t>(n)); }
  Count between(Count low, Count high) { return low + below(high - low + 1); }
  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<Count>(values.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

std::string number(const char* key, Count value) {
  return "\"" + std::string{key} + "\": " + std::to_string(value) + ", ";
}
std::string word(const char* key, const std::string& value) {
  return "\"" + std::string{key} + "\": \"" + value + "\", ";
}

Draw draw(Dice& dice) {
  Draw d;
  const Count head = dice.pick<Count>({32, 64, 80, 128});
  const Count kv_heads = dice.between(1, 4);
  const Count groups = dice.between(1, 4);
  const Count heads = kv_heads * groups;
  const Count hidden = head * heads;
  const Count vocabulary = dice.between(1000, 40000);
  d.layers = dice.between(1, 40);
  d.layers_key = "num_hidden_layers";
  const std::string family = dice.pick<std::string>({"llama", "mistral", "qwen2", "gpt2", "gpt_neox", "opt"});
  d.config = word("model_type", family) + number("vocab_size", vocabulary);
  if (family == "gpt2") {
    d.layers_key = "n_layer";
    d.config += number("n_embd", hidden) + number("n_head", heads) + number("n_positions", 8192);
  } else if (family == "opt") {
    d.config += number("hidden_size", hidden) + number("word_embed_proj_dim", hidden) + number("ffn_dim", 4 * hidden) +
                number("num_attention_heads", heads) + number("max_position_embeddings", 8192);
  } else if (family == "gpt_neox") {
    d.config += number("hidden_size", hidden) + number("intermediate_size", 4 * hidden) +
                number("num_attention_heads", heads) + number("max_position_embeddings", 8192);
  } else {
    d.config += number("hidden_size", hidden) + number("intermediate_size", dice.between(64, 8000)) +
                number("num_attention_heads", heads) + number("num_key_value_heads", kv_heads);
  }
  d.options = word("method", dice.pick<std::string>({"full", "full", "lora", "qlora"})) +
              word("precision", dice.pick<std::string>({"fp32", "pure_bf16", "bf16_amp", "amp_bf16", "amp_fp16"})) +
              word("attention", dice.pick<std::string>({"eager", "sdpa", "sdpa", "flash_attention_2"})) +
              word("optimizer", dice.pick<std::string>({"adamw_torch", "adamw_torch_fused", "adamw_8bit",
                                                        "paged_adamw_32bit", "adafactor", "sgd", "lion_32bit"})) +
              number("gradient_accumulation_steps", dice.pick<Count>({1, 1, 2, 4}));
  d.checkpointing = dice.pick<std::string>({"\"none\"", "\"none\"", "\"full\"", "{\"every\": 2}"});
  d.batch = dice.between(1, 6);
  // Lengths that kernels need not pad: with padding, one token more can really take less.
  d.sequence = 64 * dice.between(1, 24);
  d.rank = dice.pick<Count>({1, 4, 8, 16, 64});
  return d;
}

/// With what decides which tensors wait for backward, and how they come back.
Draw draw_lifetimes(Dice& dice) {
  Draw d = draw(dice);
  d.options += word("loss", dice.pick<std::string>({"default", "liger", "chunked", "cut_cross_entropy"}));
  d.checkpointing = dice.pick<std::string>(
      {"\"none\"", "\"full\"", "\"offload\"", "{\"every\": 2}", "{\"selective\": [\"core_attn\"]}"});
  d.adapter = dice.pick<std::string>({"", ", \"use_dora\": true", ", \"lora_dropout\": 0.1"});
  if (dice.below(4) == 0) d.options += "\"use_reentrant\": true, ";
  return d;
}

std::string request_of(const Draw& d) {
  return "{\"config\": {" + d.config + "\"" + d.layers_key + "\": " + std::to_string(d.layers) + "}, " + d.options +
         "\"gradient_checkpointing\": " + d.checkpointing + ", \"adapter\": {\"r\": " + std::to_string(d.rank) +
         d.adapter + "}, " + "\"micro_batch_size\": " + std::to_string(d.batch) +
         ", \"sequence_length\": " + std::to_string(d.sequence) + "}";
}

/// The answer, or nothing when the engine refuses the job (an option or a family that it does not model).
std::optional<Answer> answer_to(const Draw& d) {
  static const Engine engine;  // every request brings its own config: no catalog is needed
  Issues issues;
  const Value request = parse_json(request_of(d), "", issues);
  REQUIRE(issues.empty());
  Answer answer = engine.answer(request);
  if (!answer.estimate) return std::nullopt;
  return answer;
}

/// Bytes in live storages at the peak: what the job needs, free of what the allocator makes of it.
Bytes peak_of(const Answer& a) {
  return estimate(a.architecture, a.job, {.simulate_allocator = false, .itemise = false}).allocated.expected;
}

Bytes activations_after_forward(const Answer& a) {
  const Estimate e = estimate(a.architecture, a.job, {.simulate_allocator = false, .itemise = true});
  Bytes bytes = 0;
  for (const Instant& i : e.timeline) {
    if (i.phase == Phase::kForward) bytes = i.bytes[static_cast<int>(Category::kActivations)];
    if (i.phase == Phase::kLoss || i.phase == Phase::kBackward) break;
  }
  return bytes;
}

constexpr int kJobs = 150;

/// Draws jobs and hands on those that the engine answers; most must be.
template <class Check>
void for_each_job(std::uint64_t seed, Check check, Draw (*drawn)(Dice&) = draw) {
  Dice dice(seed);
  int answered = 0;
  for (int i = 0; i < kJobs; ++i) {
    const Draw d = drawn(dice);
    const std::optional<Answer> a = answer_to(d);
    if (!a) continue;
    ++answered;
    const std::string request = request_of(d);
    CAPTURE(i, request);
    check(d, *a);
  }
  CHECK(answered >= kJobs * 3 / 4);
}

/// The peak of the same job with something made larger is no lower.
template <class Grow>
void check_growth(std::uint64_t seed, Grow grow) {
  for_each_job(seed, [&](const Draw& d, const Answer& before) {
    Draw larger = d;
    grow(larger);
    const std::optional<Answer> after = answer_to(larger);
    REQUIRE(after);
    CHECK(peak_of(*after) >= peak_of(before));
  });
}

TEST_CASE("the peak never falls when the batch grows") {
  check_growth(11, [](Draw& d) { ++d.batch; });
}

TEST_CASE("the peak never falls when the sequence grows") {
  check_growth(12, [](Draw& d) { d.sequence += 64; });
}

TEST_CASE("the peak never falls when the rank grows") {
  check_growth(13, [](Draw& d) { d.rank += 3; });
}

TEST_CASE("the peak never falls when layers are added") {
  check_growth(14, [](Draw& d) { ++d.layers; });
  check_growth(15, [](Draw& d) { d.layers += 7; });
}

TEST_CASE("checkpointing never raises what forward leaves behind") {
  for_each_job(16, [](const Draw& d, const Answer&) {
    Draw plain = d, every_second = d, all = d;
    plain.checkpointing = "\"none\"";
    every_second.checkpointing = "{\"every\": 2}";
    all.checkpointing = "\"full\"";
    const Bytes none = activations_after_forward(*answer_to(plain));
    const Bytes half = activations_after_forward(*answer_to(every_second));
    const Bytes full = activations_after_forward(*answer_to(all));
    CHECK(full <= half);
    CHECK(half <= none);
  });
}

TEST_CASE("the breakdown of any job sums to its peak, every group to its entries") {
  for_each_job(17, [](const Draw&, const Answer& a) {
    const Estimate& e = *a.estimate;
    Bytes sum = 0;
    for (const BreakdownGroup& group : e.breakdown) {
      Bytes entries = 0;
      for (const BreakdownEntry& entry : group.entries) {
        CHECK(entry.bytes > 0);
        CHECK_FALSE(entry.source.empty());
        CHECK_FALSE(entry.formula.empty());
        entries += entry.bytes;
      }
      CHECK(entries == group.bytes);
      sum += group.bytes;
    }
    CHECK(sum == e.allocated.expected);
  });
}

TEST_CASE("the categories of every instant sum to its total, and none is above the peak") {
  for_each_job(18, [](const Draw&, const Answer& a) {
    const Estimate& e = *a.estimate;
    REQUIRE_FALSE(e.timeline.empty());
    Bytes highest = 0;
    for (const Instant& instant : e.timeline) {
      Bytes sum = 0;
      bool negative = false;
      for (const Bytes bytes : instant.bytes) {
        sum += bytes;
        negative = negative || bytes < 0;
      }
      CAPTURE(instant.label);
      CHECK(sum == instant.total);
      CHECK_FALSE(negative);
      highest = std::max(highest, instant.total);
    }
    CHECK(highest <= e.allocated.expected);
  });
}

TEST_CASE("a step leaves no activation behind") {
  for_each_job(
      21,
      [](const Draw&, const Answer& a) {
        const Instant& last = a.estimate->timeline.back();
        CHECK(last.bytes[static_cast<int>(Category::kActivations)] == 0);
        CHECK(last.bytes[static_cast<int>(Category::kLogitsLoss)] == 0);
      },
      draw_lifetimes);
}

TEST_CASE("in full training every gradient exists at some instant") {
  for_each_job(
      22,
      [](const Draw&, const Answer& a) {
        if (a.job.method != Method::kFull) return;
        Bytes most = 0;
        for (const Instant& i : a.estimate->timeline) {
          most = std::max(most, i.bytes[static_cast<int>(Category::kGradients)]);
        }
        CHECK(most >= a.estimate->parameters.trainable * size_of(a.job.recipe.gradients));
      },
      draw_lifetimes);
}

TEST_CASE("the three figures and their ranges are in order") {
  for_each_job(19, [](const Draw&, const Answer& a) {
    const Estimate& e = *a.estimate;
    for (const Range& range : {e.allocated, e.reserved, e.device}) {
      CHECK(range.low <= range.expected);
      CHECK(range.expected <= range.high);
    }
    CHECK(e.allocated.expected <= e.reserved.expected);
    CHECK(e.reserved.expected <= e.device.expected);
    CHECK(*std::max_element(e.phase_peaks, e.phase_peaks + kPhaseCount) == e.allocated.expected);
  });
}

TEST_CASE("the quick peak is that of the full walk without the allocator") {
  for_each_job(20, [](const Draw&, const Answer& a) {
    const Simulation s = simulate(a.architecture, a.job);
    WalkOptions how;
    how.allocator = false;
    how.cublas_workspace = cublas_workspace_bytes(a.job.compute_capability, false);
    CHECK(quick_peak(s, lasting_workspaces(a.job)) == walk(s, how).peak);
  });
}

}  // namespace
}  // namespace tidemark
