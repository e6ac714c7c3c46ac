// device_map="auto": where transformers 5.12.1 itself puts the modules of nine models (tests/oracle/device_maps.py).
#include "core/step/device_map.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/step/estimate.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

struct Placed {
  const char* model;
  int bits;                   // 0: bf16
  std::vector<Count> layers;  // of each GPU
  Count table, head;          // whose
  Count norm, rotary;         // the last norm, and what makes the rotary tables
};

const Placed kPlaced[] = {
    {"llama-3.1-8b", 0, {14, 18}, 0, 1, 1, 1},
    {"llama-3.1-8b", 0, {8, 13, 11}, 0, 2, 2, 2},
    {"llama-3.1-8b", 0, {5, 10, 10, 7}, 0, 3, 3, 3},
    {"llama-3.1-8b", 0, {1, 5, 5, 5, 5, 5, 5, 1}, 0, 7, 7, 7},
    {"llama-3.1-8b", 4, {4, 28}, 0, 1, 1, 1},
    {"llama-3.1-8b", 4, {0, 6, 26}, 1, 2, 2, 2},
    {"llama-3.1-8b", 4, {0, 3, 12, 17}, 1, 3, 3, 3},
    {"llama-3.1-8b", 4, {0, 0, 0, 0, 0, 0, 0, 32}, 7, 7, 7, 7},
    {"llama-3.1-8b", 8, {10, 22}, 0, 1, 1, 1},
    {"llama-3.1-8b", 8, {3, 13, 16}, 0, 2, 2, 2},
    {"llama-3.1-8b", 8, {0, 10, 10, 12}, 0, 3, 3, 3},
    {"llama-3.1-8b", 8, {0, 0, 5, 5, 5, 5, 5, 7}, 1, 7, 7, 7},
    {"llama-2-7b", 0, {16, 16}, 0, 1, 1, 1},
    {"llama-2-7b", 0, {10, 12, 10}, 0, 2, 2, 2},
    {"llama-2-7b", 0, {7, 9, 9, 7}, 0, 3, 3, 3},
    {"llama-2-7b", 0, {3, 5, 5, 5, 5, 5, 4, 0}, 0, 6, 6, 6},
    {"llama-2-7b", 4, {12, 20}, 0, 1, 1, 1},
    {"llama-2-7b", 4, {7, 12, 13}, 0, 2, 2, 2},
    {"llama-2-7b", 4, {4, 9, 9, 10}, 0, 3, 3, 3},
    {"llama-2-7b", 4, {0, 5, 5, 5, 5, 5, 5, 2}, 0, 7, 7, 7},
    {"llama-2-7b", 8, {14, 18}, 0, 1, 1, 1},
    {"llama-2-7b", 8, {8, 11, 13}, 0, 2, 2, 2},
    {"llama-2-7b", 8, {6, 8, 8, 10}, 0, 3, 3, 3},
    {"llama-2-7b", 8, {2, 5, 5, 5, 5, 5, 5, 0}, 0, 7, 6, 6},
    {"llama-3.2-1b", 0, {6, 10}, 0, 0, 1, 1},
    {"llama-3.2-1b", 0, {2, 8, 6}, 0, 0, 2, 2},
    {"llama-3.2-1b", 0, {1, 6, 6, 3}, 0, 0, 3, 3},
    {"llama-3.2-1b", 0, {0, 0, 0, 0, 0, 0, 0, 16}, 7, 7, 7, 7},
    {"llama-3.2-1b", 4, {0, 16}, 1, 1, 1, 1},
    {"llama-3.2-1b", 4, {0, 0, 16}, 2, 2, 2, 2},
    {"llama-3.2-1b", 4, {0, 0, 0, 16}, 3, 3, 3, 3},
    {"llama-3.2-1b", 4, {0, 0, 0, 0, 0, 0, 0, 16}, 7, 7, 7, 7},
    {"llama-3.2-1b", 8, {2, 14}, 0, 0, 1, 1},
    {"llama-3.2-1b", 8, {0, 0, 16}, 2, 2, 2, 2},
    {"llama-3.2-1b", 8, {0, 0, 0, 16}, 3, 3, 3, 3},
    {"llama-3.2-1b", 8, {0, 0, 0, 0, 0, 0, 0, 16}, 7, 7, 7, 7},
    {"smollm2-135m", 0, {11, 19}, 0, 0, 1, 1},
    {"smollm2-135m", 0, {4, 13, 13}, 0, 0, 2, 2},
    {"smollm2-135m", 0, {1, 10, 10, 9}, 0, 0, 3, 3},
    {"smollm2-135m", 0, {0, 0, 0, 0, 0, 0, 0, 30}, 7, 7, 7, 7},
    {"smollm2-135m", 4, {0, 30}, 1, 1, 1, 1},
    {"smollm2-135m", 4, {0, 0, 30}, 2, 2, 2, 2},
    {"smollm2-135m", 4, {0, 0, 0, 30}, 3, 3, 3, 3},
    {"smollm2-135m", 4, {0, 0, 0, 0, 0, 0, 0, 30}, 7, 7, 7, 7},
    {"smollm2-135m", 8, {4, 26}, 0, 0, 1, 1},
    {"smollm2-135m", 8, {0, 0, 30}, 2, 2, 2, 2},
    {"smollm2-135m", 8, {0, 0, 0, 30}, 3, 3, 3, 3},
    {"smollm2-135m", 8, {0, 0, 0, 0, 0, 0, 0, 30}, 7, 7, 7, 7},
    {"qwen2.5-7b", 0, {12, 16}, 0, 1, 1, 1},
    {"qwen2.5-7b", 0, {7, 12, 9}, 0, 2, 2, 2},
    {"qwen2.5-7b", 0, {4, 9, 9, 6}, 0, 3, 3, 3},
    {"qwen2.5-7b", 0, {0, 5, 5, 5, 5, 5, 3, 0}, 0, 7, 6, 6},
    {"qwen2.5-7b", 4, {3, 25}, 0, 1, 1, 1},
    {"qwen2.5-7b", 4, {0, 5, 23}, 1, 2, 2, 2},
    {"qwen2.5-7b", 4, {0, 2, 11, 15}, 1, 3, 3, 3},
    {"qwen2.5-7b", 4, {0, 0, 0, 0, 0, 0, 0, 28}, 7, 7, 7, 7},
    {"qwen2.5-7b", 8, {8, 20}, 0, 1, 1, 1},
    {"qwen2.5-7b", 8, {2, 12, 14}, 0, 2, 2, 2},
    {"qwen2.5-7b", 8, {0, 9, 9, 10}, 0, 3, 3, 3},
    {"qwen2.5-7b", 8, {0, 0, 5, 5, 5, 5, 5, 3}, 1, 7, 7, 7},
    {"qwen2.5-0.5b", 0, {7, 17}, 0, 0, 1, 1},
    {"qwen2.5-0.5b", 0, {2, 12, 10}, 0, 0, 2, 2},
    {"qwen2.5-0.5b", 0, {0, 0, 9, 15}, 1, 1, 3, 3},
    {"qwen2.5-0.5b", 0, {0, 0, 0, 0, 0, 0, 0, 24}, 7, 7, 7, 7},
    {"qwen2.5-0.5b", 4, {0, 24}, 1, 1, 1, 1},
    {"qwen2.5-0.5b", 4, {0, 0, 24}, 2, 2, 2, 2},
    {"qwen2.5-0.5b", 4, {0, 0, 0, 24}, 3, 3, 3, 3},
    {"qwen2.5-0.5b", 4, {0, 0, 0, 0, 0, 0, 0, 24}, 7, 7, 7, 7},
    {"qwen2.5-0.5b", 8, {0, 24}, 0, 0, 1, 1},
    {"qwen2.5-0.5b", 8, {0, 0, 24}, 2, 2, 2, 2},
    {"qwen2.5-0.5b", 8, {0, 0, 0, 24}, 3, 3, 3, 3},
    {"qwen2.5-0.5b", 8, {0, 0, 0, 0, 0, 0, 0, 24}, 7, 7, 7, 7},
    {"mistral-7b-v0.3", 0, {16, 16}, 0, 1, 1, 1},
    {"mistral-7b-v0.3", 0, {10, 12, 10}, 0, 2, 2, 2},
    {"mistral-7b-v0.3", 0, {7, 9, 9, 7}, 0, 3, 3, 3},
    {"mistral-7b-v0.3", 0, {3, 5, 5, 5, 5, 5, 4, 0}, 0, 6, 6, 6},
    {"mistral-7b-v0.3", 4, {12, 20}, 0, 1, 1, 1},
    {"mistral-7b-v0.3", 4, {7, 12, 13}, 0, 2, 2, 2},
    {"mistral-7b-v0.3", 4, {4, 9, 9, 10}, 0, 3, 3, 3},
    {"mistral-7b-v0.3", 4, {0, 5, 5, 5, 5, 5, 5, 2}, 0, 7, 7, 7},
    {"mistral-7b-v0.3", 8, {14, 18}, 0, 1, 1, 1},
    {"mistral-7b-v0.3", 8, {9, 11, 12}, 0, 2, 2, 2},
    {"mistral-7b-v0.3", 8, {6, 8, 8, 10}, 0, 3, 3, 3},
    {"mistral-7b-v0.3", 8, {2, 5, 5, 5, 5, 5, 5, 0}, 0, 7, 6, 6},
    {"llama-3.1-70b", 0, {40, 40}, 0, 1, 1, 1},
    {"llama-3.1-70b", 0, {26, 28, 26}, 0, 2, 2, 2},
    {"llama-3.1-70b", 0, {19, 21, 21, 19}, 0, 3, 3, 3},
    {"llama-3.1-70b", 0, {9, 11, 11, 11, 11, 11, 11, 5}, 0, 7, 7, 7},
    {"llama-3.1-70b", 4, {31, 49}, 0, 1, 1, 1},
    {"llama-3.1-70b", 4, {18, 28, 34}, 0, 2, 2, 2},
    {"llama-3.1-70b", 4, {11, 21, 21, 27}, 0, 3, 3, 3},
    {"llama-3.1-70b", 4, {1, 11, 11, 11, 11, 11, 11, 13}, 0, 7, 7, 7},
    {"llama-3.1-70b", 8, {34, 46}, 0, 1, 1, 1},
    {"llama-3.1-70b", 8, {21, 26, 33}, 0, 2, 2, 2},
    {"llama-3.1-70b", 8, {15, 20, 20, 25}, 0, 3, 3, 3},
    {"llama-3.1-70b", 8, {5, 10, 10, 10, 10, 10, 10, 15}, 0, 7, 7, 7},
    {"qwen3-8b", 0, {16, 20}, 0, 1, 1, 1},
    {"qwen3-8b", 0, {8, 15, 13}, 0, 2, 2, 2},
    {"qwen3-8b", 0, {5, 11, 11, 9}, 0, 3, 3, 3},
    {"qwen3-8b", 0, {0, 6, 6, 6, 6, 6, 6, 0}, 0, 7, 6, 6},
    {"qwen3-8b", 4, {3, 33}, 0, 1, 1, 1},
    {"qwen3-8b", 4, {0, 6, 30}, 1, 2, 2, 2},
    {"qwen3-8b", 4, {0, 2, 15, 19}, 1, 3, 3, 3},
    {"qwen3-8b", 4, {0, 0, 0, 0, 0, 0, 0, 36}, 7, 7, 7, 7},
    {"qwen3-8b", 8, {10, 26}, 0, 1, 1, 1},
    {"qwen3-8b", 8, {2, 15, 19}, 0, 2, 2, 2},
    {"qwen3-8b", 8, {0, 5, 12, 19}, 1, 3, 3, 3},
    {"qwen3-8b", 8, {0, 0, 6, 6, 6, 6, 6, 6}, 1, 7, 7, 7},
};

std::string llama(const std::string& rest) {
  return R"({"model": "llama-3.1-8b", "precision": "pure_bf16", "sequence_length": 2048, "optimizer": "adamw_torch",
    "framework": {"version": "5.12"})" +
         rest + "}";
}

Answer ask_catalog(const std::string& text) {
  Issues issues;
  return engine().answer(parse_json(text, "", issues));
}

Estimate on(const std::string& rest) {
  const Answer answer = ask_catalog(llama(rest));
  REQUIRE(answer.estimate);
  return *answer.estimate;
}

TEST_CASE("blocks are laid on GPUs as transformers lays them") {
  for (const Placed& placed : kPlaced) {
    const std::string method = placed.bits == 0 ? "full" : "qlora";
    const std::string quantised = R"(, "quantization": {"bits": )" + std::to_string(placed.bits) + "}";
    const Answer answer = ask_catalog(std::string{R"({"model": ")"} + placed.model +
                                      R"(", "framework": {"version": "5.12"}, "precision": "pure_bf16", "method": ")" +
                                      method + "\"" + (placed.bits == 0 ? "" : quantised) + "}");
    REQUIRE(answer.estimate);
    TrainingJob job = answer.job;
    job.pipeline.stages = static_cast<Count>(placed.layers.size());
    job.pipeline.schedule = PipelineSchedule::kDeviceMap;
    const Pipeline map = laid_out(answer.architecture, job).pipeline;
    CAPTURE(placed.model, placed.bits, placed.layers, map.layout);
    CHECK(map.layout == placed.layers);
    CHECK(map.table == placed.table);
    CHECK(map.head == placed.head);
    CHECK(map.norm == placed.norm);
    CHECK(map.rotary == placed.rotary);
  }
}

TEST_CASE("the GPUs of a device_map have the model's parameters once, and the answer is of the one that needs most") {
  const Estimate alone = on(R"(, "method": "full")");
  const Estimate two = on(R"(, "method": "full", "parallelism": {"device_map": 2})");
  REQUIRE(two.ranks.size() == 2);
  CHECK(two.ranks[0].parameters + two.ranks[1].parameters == alone.parameters.total);
  CHECK(two.ranks[0].layers == "0-13");
  CHECK(two.ranks[1].layers == "14-31");
  CHECK(two.allocated.expected == std::max(two.ranks[0].allocated, two.ranks[1].allocated));
  CHECK(two.allocated.expected < alone.allocated.expected);
  CHECK(2 * two.allocated.expected > alone.allocated.expected);
  CHECK(on(R"(, "method": "full", "parallelism": {"device_map": 1})").allocated.expected == alone.allocated.expected);
}

TEST_CASE("under a device_map adapters and packed weights are where their layers are") {
  for (const char* method : {"lora", "qlora"}) {
    const std::string rest = std::string{R"(, "method": ")"} + method + "\"";
    const Estimate alone = on(rest);
    const Estimate two = on(rest + R"(, "parallelism": {"device_map": 2})");
    Count all = 0;
    for (const RankFigures& rank : two.ranks) all += rank.parameters * (rank.last - rank.first + 1);
    CHECK(all == alone.parameters.total);
    CHECK(two.allocated.expected < alone.allocated.expected);
  }
}

TEST_CASE("micro-steps of a device_map add their gradients up") {
  for (const char* method : {"full", "lora", "qlora"}) {
    const std::string rest = std::string{R"(, "method": ")"} + method + R"(", "parallelism": {"device_map": 2})";
    const Estimate one = on(rest);
    const Estimate two = on(rest + R"(, "gradient_accumulation_steps": 2)");
    CHECK(two.allocated.expected >= one.allocated.expected);
    CHECK(on(rest + R"(, "gradient_accumulation_steps": 8)").allocated.expected == two.allocated.expected);
  }
}

TEST_CASE("the logits come back to the first GPU of a device_map") {
  const std::string rest = R"(, "method": "full", "micro_batch_size": 4, "parallelism": {"device_map": 2})";
  const Estimate dropped = on(rest);
  const Estimate kept = on(rest + R"(, "keep_outputs": true)");
  CHECK(kept.ranks[0].allocated > dropped.ranks[0].allocated);
  CHECK(kept.ranks[1].allocated == dropped.ranks[1].allocated);
}

TEST_CASE("the embeddings of a device_map may lie on another GPU than the first") {
  // Llama-3.1-8B in 4 bits on three: the second one has the table (kPlaced), the first one nothing.
  const Estimate three = on(R"(, "method": "qlora", "parallelism": {"device_map": 3})");
  REQUIRE(three.ranks.size() == 3);
  CHECK(three.ranks[0].parameters == 0);
  CHECK(three.ranks[1].parameters > 0);
}

TEST_CASE("the GPU that an answer is about is one of the device_map's, and no pipeline's") {
  const auto answers = [](const std::string& more) {
    return ask_catalog(llama(R"(, "parallelism": {"device_map": 2, )" + more + "}")).estimate.has_value();
  };
  CHECK(answers(R"("rank": 1)"));
  const auto peak = [](const char* more) {
    const std::string job = std::string{R"(, "parallelism": {"device_map": 2)"} + more + "}";
    return ask_catalog(llama(job)).estimate->allocated.expected;
  };
  CHECK(peak(R"(, "pipeline_schedule": "1f1b")") == peak(""));  // what a pipeline would have by default says nothing
  for (const char* wrong : {R"("rank": 2)", R"("rank": 64)", R"("pipeline": 2)", R"("pipeline_layout": [2, 6])",
                            R"("pipeline_schedule": "gpipe")", R"("virtual_pipeline": 2)"}) {
    CAPTURE(wrong);
    CHECK_FALSE(answers(wrong));
  }
}

TEST_CASE("a device_map is one process") {
  CHECK_FALSE(ask_catalog(llama(R"(, "parallelism": {"device_map": 2, "data": 2})")).estimate);
}

TEST_CASE("what is laid on GPUs evaluates, has packed rows and learns from preferences") {
  const std::string laid = R"(, "method": "lora", "parallelism": {"device_map": 2})";
  const Estimate plain = on(laid);
  const auto evaluated = [&](const char* more) {
    return on(laid + R"(, "evaluation": {"micro_batch_size": 16)" + more + "}").ranks;
  };
  const auto by_loss = evaluated(""), kept = evaluated(R"(, "keep_logits": true, "samples": 160)");
  CHECK(by_loss[1].allocated > plain.ranks[1].allocated);
  // Those of 160 rows of 2048 tokens and 32,000 words in 16 bits, or more, come back to the first GPU alone.
  constexpr Bytes kLogits = Bytes{160} * 2048 * 32000 * 2;
  CHECK(kept[0].allocated > kLogits);
  CHECK(kept[0].allocated > by_loss[0].allocated);
  CHECK(kept[1].allocated == by_loss[1].allocated);
  CHECK(on(laid + R"(, "packing": true, "attention": "flash_attention_2")").ranks.size() == 2);
  const Estimate pairs = on(laid + R"(, "task": "dpo")");
  // Two answers to each prompt, in rows of their own.
  CHECK(pairs.ranks[1].allocated > plain.ranks[1].allocated);
}

TEST_CASE("a reference that would lie on all GPUs of a device_map, too, is refused") {
  const auto answers = [](const std::string& reference) {
    const std::string job = R"(, "task": "dpo", "method": "lora", "parallelism": {"device_map": 2})";
    return ask_catalog(llama(job + R"(, "reference_model": )" + reference)).estimate.has_value();
  };
  CHECK_FALSE(answers(R"({"shared_with_adapter": false})"));
  CHECK(answers(R"({"shared_with_adapter": true})"));
  CHECK(answers(R"({"precompute": true})"));
}

// tests/oracle/records-multi.jsonl, mapf-internvl-lora-3g1-35431: the tower of a model that reads texts.
TEST_CASE("a GPU whose modules nothing runs has what was loaded to it") {
  const Answer answer = ask_catalog(R"({"config": {"model_type": "internvl",
      "architectures": ["InternVLForConditionalGeneration"], "downsample_ratio": 0.5, "image_token_id": 151667,
      "tie_word_embeddings": true,
      "text_config": {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14,
        "num_hidden_layers": 8, "num_key_value_heads": 2, "vocab_size": 151674, "max_position_embeddings": 32768,
        "tie_word_embeddings": true},
      "vision_config": {"model_type": "internvl_vision", "hidden_size": 1024, "intermediate_size": 4096,
        "num_attention_heads": 16, "num_hidden_layers": 4, "image_size": [448, 448], "patch_size": [14, 14],
        "attention_bias": true, "use_qk_norm": false, "use_absolute_position_embeddings": true,
        "use_mask_token": false, "use_mean_pooling": true, "layer_scale_init_value": 0.1}},
    "framework": {"version": "5.12"}, "method": "lora", "precision": "bf16_amp", "micro_batch_size": 2, "sequence_length": 1152, "padding": true,
    "adapter": {"rank": 16, "target_modules": "all-linear"}, "parallelism": {"device_map": 3, "rank": 1}})");
  REQUIRE(answer.estimate);
  constexpr Bytes kWeights = 56529664 * 2 + 1288192 * 4;
  CHECK(answer.estimate->allocated.expected >= kWeights * 0.99);
  CHECK(answer.estimate->allocated.expected <= 119380480);
}

TEST_CASE("layers of a device_map get copies of masks that lie on another GPU") {
  const Estimate full = on(R"(, "method": "lora", "micro_batch_size": 2, "parallelism": {"device_map": 2})");
  const Estimate padded =
      on(R"(, "method": "lora", "micro_batch_size": 2, "padding": true, "parallelism": {"device_map": 2})");
  // Booleans [2, 1, 2048, 2048]: one for each layer of the second, beside what attention makes of them.
  constexpr Bytes kMask = 2 * 2048 * 2048;
  CHECK(padded.ranks[1].allocated - full.ranks[1].allocated > 16 * kMask);
}

}  // namespace
}  // namespace tidemark
