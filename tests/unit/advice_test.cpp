#include "core/fit/advice.hpp"

#include <functional>
#include <string>

#include "core/fit/map.hpp"
#include "core/step/estimate.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

/// A Llama of four layers, so that thousands of jobs can be computed in full.
const std::string kConfig =
    R"("config":{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":512,"intermediate_size":1408,)"
    R"("num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":16000,)"
    R"("max_position_embeddings":4096,"tie_word_embeddings":false})";

Answer read(const std::string& rest) {
  Issues issues;
  const Answer answer = Engine{}.answer(parse_json("{" + kConfig + rest + "}", "", issues));
  REQUIRE(issues.empty());
  REQUIRE(answer.estimate);
  return answer;
}

Card card_of(Bytes usable) {
  return {"a card", usable, 0, ""};
}

Bytes fresh(const Architecture& architecture, const TrainingJob& job) {
  return estimate(architecture, job).allocated.expected;
}

TEST_CASE("a setting is written as a request with it would be read") {
  TrainingJob job = read("").job;
  CHECK(apply(set_count("gradient_checkpointing.every", 2), job));
  CHECK(job.checkpointing == Checkpointing::kEvery);
  CHECK(job.checkpoint_every == 2);
  CHECK(apply(set_word("gradient_checkpointing", "full"), job));
  CHECK(job.checkpointing == Checkpointing::kFull);
  CHECK(apply(set_word("precision", "pure_bf16"), job));
  CHECK(job.recipe.weights == Dtype::kBf16);
  CHECK_FALSE(apply(set_word("precision", "fp8"), job));
  CHECK_FALSE(apply(set_count("micro_batch_size", 0), job));
  CHECK_FALSE(apply(set_word("no_such_option", "full"), job));
}

TEST_CASE("the last setting of an option stands") {
  const auto settings = merged({set_count("gradient_checkpointing.every", 2), set_word("loss", "liger"),
                                set_word("gradient_checkpointing", "offload"), set_word("loss", "chunked")});
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].option == "loss");
  CHECK(settings[0].value.string == "chunked");
  CHECK(settings[1].option == "gradient_checkpointing");
}

TEST_CASE("steps change the job, cost something, and one of a lever is the strongest") {
  for (const char* rest : {"", R"(,"method":"lora","attention":"eager","micro_batch_size":12)",
                           R"(,"method":"qlora","precision":"pure_bf16","optimizer":"adamw_torch")",
                           R"(,"precision":"megatron_bf16","gradient_checkpointing":{"every":3})"}) {
    const Answer answer = read(rest);
    for (int lever = 0; lever < kLeverCount; ++lever) {
      const auto steps = steps_of(static_cast<Lever>(lever), answer.job, answer.architecture);
      int strongest = 0;
      int before = 0;
      for (const Step& step : steps) {
        CAPTURE(rest, step.title);
        strongest += step.strongest ? 1 : 0;
        CHECK(step.cost.weight > before);
        before = step.cost.weight;
        CHECK_FALSE(step.cost.source.empty());
        TrainingJob job = answer.job;
        for (const Setting& setting : step.settings) CHECK(apply(setting, job));
      }
      CHECK(strongest == (steps.empty() ? 0 : 1));
    }
  }
}

TEST_CASE("a smaller micro-batch leaves as many samples in a step") {
  const Answer answer = read(R"(,"micro_batch_size":12,"gradient_accumulation_steps":3)");
  const auto steps = steps_of(Lever::kBatch, answer.job, answer.architecture);
  REQUIRE(steps.size() == 3);
  for (const Step& step : steps) {
    const TrainingJob job = after(step, answer.job);
    CHECK(job.micro_batch_size * job.gradient_accumulation_steps == 36);
  }
  CHECK(after(steps.back(), answer.job).micro_batch_size == 1);
}

TEST_CASE("quick peaks bound full ones from below") {
  const Answer answer = read(R"(,"micro_batch_size":4,"sequence_length":1024,"attention":"eager")");
  Peaks peaks(answer.architecture);
  for (int lever = 0; lever < kLeverCount; ++lever) {
    for (const Step& step : steps_of(static_cast<Lever>(lever), answer.job, answer.architecture)) {
      CAPTURE(step.title);
      const TrainingJob job = after(step, answer.job);
      CHECK(peaks.quick(job).allocated.expected <= peaks.full(job).allocated.expected);
      CHECK(peaks.full(job).allocated.expected == fresh(answer.architecture, job));
    }
  }
}

TEST_CASE("what advice promises is what a fresh estimate says") {
  const Answer answer = read(R"(,"micro_batch_size":8,"sequence_length":2048,"attention":"eager")");
  Peaks peaks(answer.architecture);
  const Bytes now = fresh(answer.architecture, answer.job);
  for (const Bytes usable : {now / 2, now / 5, now / 20}) {
    const Advice advice = advise(peaks, answer.job, card_of(usable), {});
    CHECK(advice.now.allocated.expected == now);
    CHECK_FALSE(advice.suggestions.empty());
    int weight = 0;
    for (const Suggestion& s : advice.suggestions) {
      CAPTURE(s.step.title);
      CHECK(s.figures.allocated.expected == fresh(answer.architecture, after(s.step, answer.job)));
      CHECK(s.saved == now - s.figures.allocated.expected);
      CHECK(s.saved > 0);
      CHECK(s.step.cost.weight >= weight);
      weight = s.step.cost.weight;
    }
    REQUIRE(advice.combination);
    const Combination& c = *advice.combination;
    CHECK(c.found);
    CHECK(c.proven);
    CHECK(c.figures.allocated.expected == fresh(answer.architecture, c.job));
    CHECK(c.figures.allocated.high <= usable);
  }
}

/// Calls `visit` for every choice of one step or none per lever.
void every_choice(const TrainingJob& job, const Architecture& architecture, int depth, int weight,
                  const std::function<void(const TrainingJob&, int)>& visit) {
  if (depth == kLeverCount) {
    visit(job, weight);
    return;
  }
  every_choice(job, architecture, depth + 1, weight, visit);
  for (const Step& step : steps_of(static_cast<Lever>(depth), job, architecture)) {
    every_choice(after(step, job), architecture, depth + 1, weight + step.cost.weight, visit);
  }
}

TEST_CASE("no combination of less harm fits") {
  for (
      const char* rest :
      {R"(,"attention":"flash_attention_2","sequence_length":480,"micro_batch_size":2,"adapter":{"r":8},)"
       R"("optimizer":"adamw_8bit")",
       R"(,"method":"lora","loss":"liger","gradient_checkpointing":"full","attention":"eager","micro_batch_size":4,)"
       R"("sequence_length":1024,"adapter":{"r":4},"optimizer":"paged_adamw_8bit")",
       R"(,"precision":"pure_bf16","gradient_checkpointing":"offload","loss":"chunked","sequence_length":480,)"
       R"("micro_batch_size":12,"adapter":{"r":4})",
       R"(,"precision":"deepspeed_bf16","parallelism":{"data":2},"attention":"flash_attention_2","sequence_length":480,)"
       R"("optimizer":"adamw_torch","loss":"liger","adapter":{"r":4})",
       R"(,"precision":"pure_bf16","parallelism":{"data":4,"fsdp":"fsdp2"},"sequence_length":480,"micro_batch_size":2,)"
       R"("optimizer":"adamw_torch","adapter":{"r":4})"}) {
    CAPTURE(rest);
    const Answer answer = read(rest);
    struct Tried {
      int weight;
      Bytes high;
    };
    std::vector<Tried> all;
    Peaks peaks(answer.architecture);
    Bytes largest = 0;
    Bytes smallest = peaks.full(answer.job).allocated.high;
    every_choice(answer.job, answer.architecture, 0, 0, [&](const TrainingJob& job, int weight) {
      if (!peaks.full(job).known) return;
      const Bytes high = peaks.full(job).allocated.high;
      all.push_back({weight, high});
      largest = std::max(largest, high);
      smallest = std::min(smallest, high);
    });
    REQUIRE(all.size() > 50);
    constexpr int kBudgets = 24;
    for (int i = 0; i < kBudgets; ++i) {
      const Bytes usable = smallest + (largest - smallest) * i * i / (kBudgets * kBudgets);
      int least = -1;
      for (const Tried& tried : all) {
        if (tried.high <= usable && (least < 0 || tried.weight < least)) least = tried.weight;
      }
      CAPTURE(usable);
      REQUIRE(least >= 0);
      Peaks own(answer.architecture);
      const Combination found = least_harm(own, answer.job, card_of(usable));
      CHECK(found.found);
      CHECK(found.proven);
      CHECK(found.weight == least);
      CHECK(found.figures.allocated.high <= usable);
    }
    // Nothing does: told, with the smallest job that there is.
    const Combination none = least_harm(peaks, answer.job, card_of(smallest / 2));
    CHECK_FALSE(none.found);
    CHECK(none.proven);
    CHECK(none.figures.known);
    TrainingJob job = answer.job;
    for (const Step& step : none.steps) job = after(step, job);
    CHECK(fresh(answer.architecture, job) == none.figures.allocated.expected);
  }
}

TEST_CASE("a bounded search still finds a combination") {
  const Answer answer = read(R"(,"micro_batch_size":16,"sequence_length":4096,"attention":"eager")");
  Peaks peaks(answer.architecture);
  const Bytes now = fresh(answer.architecture, answer.job);
  const Combination best = least_harm(peaks, answer.job, card_of(now / 40));
  REQUIRE(best.found);
  Peaks other(answer.architecture);
  const Combination good = least_harm(other, answer.job, card_of(now / 40), {}, 3);
  CHECK(good.found);
  CHECK_FALSE(good.proven);
  CHECK(good.weight >= best.weight);
  CHECK(good.figures.allocated.high <= now / 40);
}

// The shortest sequences have no room for nine tiles of 256 tokens.
TEST_CASE("one change that makes a job with pictures fit is found, whatever sequences have no room for them") {
  const Answer answer = ask(R"({"schema": 1, "model": "OpenGVLab/InternVL3-1B-hf", "method": "lora",
    "images_per_sample": 1, "image_size": [720, 1280], "sequence_length": 4096})");
  REQUIRE(answer.estimate);
  Card card;
  card.visible = answer.estimate->allocated.expected - kGiB / 2;
  Peaks peaks(answer.architecture);
  const Combination found = least_harm(peaks, answer.job, card);
  CHECK(found.found);
  CHECK(found.steps.size() == 1);
}

TEST_CASE("advice offers no change that the model's class refuses") {
  const auto offered = [](Lever lever, const std::string& job) {
    const Answer answer = ask(R"({"schema": 1, )" + job + "}");
    REQUIRE(answer.estimate);
    return steps_of(lever, answer.job, answer.architecture);
  };
  for (const Step& step : offered(Lever::kMethod, R"("model": "deepseek-ai/DeepSeek-V2-Lite", "method": "lora",
                                                    "framework": {"version": "5.12"})")) {
    CHECK(step.title.find("QLoRA") == std::string::npos);
  }
  CHECK(offered(Lever::kCheckpointing, R"("config": {"model_type": "swin", "architectures":
    ["SwinForImageClassification"], "embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24],
    "window_size": 7}, "method": "full", "micro_batch_size": 8)")
            .empty());
}

TEST_CASE("frontiers are exact") {
  for (const char* rest : {"", R"(,"method":"lora","gradient_checkpointing":"full","micro_batch_size":2)"}) {
    const Answer answer = read(rest);
    for (const Bytes usable : {kGiB, 3 * kGiB, 24 * kGiB}) {
      const Card card = card_of(usable);
      for (const Quantity quantity : {Quantity::kMicroBatch, Quantity::kSequence, Quantity::kRank}) {
        Peaks peaks(answer.architecture);
        const Frontier f = frontier(peaks, answer.job, quantity, card);
        CAPTURE(rest, usable, std::string{option_of(quantity)}, f.largest);
        const bool adapters = answer.job.method == Method::kLora;
        CHECK(f.applies == (quantity != Quantity::kRank || adapters));
        if (!f.applies) continue;
        const auto fits = [&](Count n) {
          TrainingJob job = answer.job;
          REQUIRE(apply(set_count(option_of(quantity), n), job));
          const Estimate e = estimate(answer.architecture, job);
          return check_fit(e.allocated, card).verdict == Verdict::kFits;
        };
        if (f.largest > 0) CHECK(fits(f.largest));
        if (!f.open && !f.ends) CHECK_FALSE(fits(f.largest + 1));
      }
    }
  }
}

TEST_CASE("the tier table grows with the card; the preset stands beside it") {
  const Answer answer = read(R"(,"gradient_checkpointing":"full")");
  Peaks peaks(answer.architecture);
  Count before = 0;
  for (const Tier& tier : tiers(peaks, answer.job, {})) {
    CHECK(tier.batch.largest > before);
    before = tier.batch.largest;
  }
  CHECK(preset_batch(80) == 8);
  CHECK(preset_batch(32) == 6);
  CHECK(preset_batch(24) == 4);
  CHECK(preset_batch(16) == 2);
  CHECK(preset_batch(12) == 1);
}

TEST_CASE("modes are recomputed, not believed") {
  CHECK(mode_for(0.9) == Mode::kNone);
  CHECK(mode_for(1.2) == Mode::kBalanced);
  CHECK(mode_for(2.0) == Mode::kAggressive);
  CHECK(mode_for(5.0) == Mode::kAggressiveSmaller);
  const Answer answer = read(R"(,"micro_batch_size":8,"gradient_checkpointing":"full","optimizer":"adamw_8bit")");
  Peaks peaks(answer.architecture);
  const ModeTable table = modes(peaks, answer.job, card_of(4 * kGiB));
  // The job's own techniques are taken away first.
  TrainingJob plain = answer.job;
  REQUIRE(apply(set_word("gradient_checkpointing", "none"), plain));
  REQUIRE(apply(set_word("optimizer", "adamw_torch_fused"), plain));
  CHECK(table.unoptimised.allocated.expected == fresh(answer.architecture, plain));
  REQUIRE(table.modes.size() == kModeCount);
  for (const ModeOutcome& outcome : table.modes) {
    CAPTURE(std::string{name_of(outcome.mode)});
    TrainingJob job = answer.job;
    for (const Setting& setting : outcome.settings) REQUIRE(apply(setting, job));
    CHECK(outcome.figures.allocated.expected == fresh(answer.architecture, job));
    if (outcome.mode == table.recommended) CHECK(table.recommended_fits == (outcome.fit.verdict == Verdict::kFits));
  }
}

TEST_CASE("cards are ranked by what people choose by") {
  const Answer answer = read(R"(,"micro_batch_size":16,"sequence_length":4096)");
  Peaks peaks(answer.architecture);
  const Bytes need = peaks.full(answer.job).allocated.expected;
  std::vector<CardChoice> cards;
  const auto add = [&](const char* name, Bytes visible) {
    CardChoice choice;
    choice.card = {name, visible, 0, ""};
    cards.push_back(choice);
  };
  add("far too small", need / 4);
  add("huge", 4 * need);
  add("unknown", 0);
  add("too small", need / 2);
  add("just right", need + need / 4);
  add("tight, a byte short", need - 1);
  add("tight", need + 1);
  const auto ranked = rank_cards(peaks, answer.job, cards, {}, 0.5);
  std::string order;
  for (const CardFit& row : ranked) order += row.fit.gpu + ";";
  CHECK(order == "just right;huge;tight;tight, a byte short;too small;far too small;unknown;");
  CHECK(ranked[1].within_share);
  CHECK_FALSE(ranked[0].within_share);
  const auto smallest = smallest_card(peaks, answer.job, cards);
  REQUIRE(smallest);
  CHECK(smallest->fit.gpu == "just right");
  CHECK_FALSE(smallest_card(peaks, answer.job, std::span{cards}.first(1)));
}

TEST_CASE("a map has the peak of each cell") {
  const Answer answer = read("");
  Peaks peaks(answer.architecture);
  const Count batches[] = {4, 1};
  const Count sequences[] = {512, 1024};
  const FitMap map = fit_map(peaks, answer.job, batches, sequences, card_of(2 * kGiB));
  REQUIRE(map.cells.size() == 4);
  CHECK(map.batches == std::vector<Count>{1, 4});
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t s = 0; s < 2; ++s) {
      TrainingJob job = answer.job;
      job.micro_batch_size = map.batches[b];
      job.sequence_length = map.sequences[s];
      CHECK(map.at(b, s).allocated.expected == fresh(answer.architecture, job));
    }
  }
}

}  // namespace
}  // namespace tidemark
