// GRPO as TRL 1.9 trains it. What is expected follows from trainer/grpo_trainer.py and grpo_config.py.
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr Bytes kVocabulary = 32000, kLayers = 4, kKvHeads = 8, kHeadSize = 64;

std::string grpo(const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
    "intermediate_size": 5632, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 32768, "tie_word_embeddings": false}, "task": "grpo",
    "framework": {"name": "transformers", "version": "5.12"}, )" +
         rest + "}";
}

constexpr const char* kLora =
    R"("method": "lora", "precision": "bf16_amp", "gradient_checkpointing": "full", "micro_batch_size": 8, )";

Bytes peak_in(const Estimate& e, Phase phase) {
  return e.phase_peaks[static_cast<int>(phase)];
}

bool says(const Answer& answer, std::string_view code) {
  return std::any_of(answer.issues.begin(), answer.issues.end(), [&](const Issue& i) { return i.code == code; });
}

TEST_CASE("the prompt makes no logits: what training keeps of them grows with the answer alone") {
  const auto peak = [](int prompt, int answer) {
    return peak_in(answered(grpo(kLora + ("\"max_prompt_length\": " + std::to_string(prompt)) +
                                 ", \"max_completion_length\": " + std::to_string(answer))),
                   Phase::kBackward);
  };
  // CopySlices: two of answer + 1 tokens, two of answer tokens, all fp32 as accelerate converts the outputs.
  const Bytes of_token = 8 * kVocabulary * 4;
  const Bytes more = peak(256, 512) - peak(256, 256);
  CHECK(more > 4 * 256 * of_token);
  CHECK(more < 4 * 256 * of_token * 21 / 20);
  CHECK(peak(512, 256) - peak(256, 256) < 256 * of_token / 4);
}

TEST_CASE("generation keeps keys and values of all tokens of all answers that are generated together") {
  const auto peak = [](int steps) {
    return peak_in(answered(grpo(kLora + ("\"max_prompt_length\": 2048, \"max_completion_length\": 2048, "
                                          "\"steps_per_generation\": " +
                                          std::to_string(steps)))),
                   Phase::kGeneration);
  };
  const Bytes cache = 8 * 4096 * kLayers * kKvHeads * kHeadSize * 2 * 2;  // of eight answers, in 16 bits
  CHECK(peak(8) - peak(4) > 4 * cache);
}

TEST_CASE("without beta there is no reference, with it a copy, beside adapters the model itself") {
  const std::string full = R"("precision": "pure_bf16", "micro_batch_size": 2, "sequence_length": 512)";
  const auto weights = [&](const std::string& rest) { return held(answered(grpo(full + rest)), Category::kWeights); };
  CHECK(weights(R"(, "beta": 0.0)") == weights(""));
  CHECK(weights(R"(, "beta": 0.04)") == 2 * weights(""));
  CHECK(weights(R"(, "beta": 0.04, "method": "lora")") == weights(R"(, "method": "lora")"));
  CHECK(peak_in(answered(grpo(full + R"(, "beta": 0.04, "method": "lora")")), Phase::kScoring) >
        peak_in(answered(grpo(full + R"(, "method": "lora")")), Phase::kScoring));
}

TEST_CASE("the model scores what it generated only where that may be older than itself") {
  const auto scores = [](const std::string& rest) {
    const Estimate e = answered(grpo(kLora + ("\"sequence_length\": 1024, " + rest)));
    return peak_in(e, Phase::kScoring) > peak_in(e, Phase::kZeroGrad) + 8 * 256 * kVocabulary * 4;
  };
  CHECK(!scores(R"("gradient_accumulation_steps": 4)"));
  CHECK(!scores(R"("gradient_accumulation_steps": 4, "steps_per_generation": 2)"));
  CHECK(scores(R"("gradient_accumulation_steps": 4, "steps_per_generation": 8)"));
  CHECK(scores(R"("gradient_accumulation_steps": 4, "num_iterations": 2)"));
  CHECK(scores(R"("rollout": {"engine": "vllm", "mode": "server"})"));
}

TEST_CASE("vLLM on the same card takes its share of it, elsewhere nothing, asleep only while it generates") {
  const auto with = [](const std::string& rollout) {
    return answered(
        grpo(kLora + (R"("sequence_length": 1024, "gpu": {"memory_gib": 40}, "rollout": {"engine": "vllm", )" +
                      rollout + "}")));
  };
  const Estimate server = with(R"("mode": "server")"), beside = with(R"("gpu_memory_utilization": 0.25)");
  const Estimate asleep = with(R"("gpu_memory_utilization": 0.25, "sleep": true)");
  CHECK(beside.allocated.expected - server.allocated.expected == 10 * kGiB);
  CHECK(peak_in(asleep, Phase::kBackward) == peak_in(server, Phase::kBackward));
  CHECK(peak_in(asleep, Phase::kGeneration) - peak_in(server, Phase::kGeneration) == 10 * kGiB);
  CHECK(asleep.allocated.high >= peak_in(asleep, Phase::kBackward) + 7 * kGiB);
}

// _calculate_rewards: AutoModelForSequenceClassification(num_labels=1), of all answers that were generated together.
TEST_CASE(
    "a reward model lies whole beside what it scores, and keeps keys and values of all answers until it returns") {
  const auto judged = [](int layers) {
    return grpo(kLora + std::string{R"("sequence_length": 1024, "max_completion_length": 512, "steps_per_generation": 4,
      "rollout": {"engine": "vllm", "mode": "server"}, "reward_config": {"model_type": "llama", "dtype": "bfloat16",
      "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768, "num_hidden_layers": )"} +
                std::to_string(layers) + "}");
  };
  const Estimate few = answered(judged(8)), many = answered(judged(12));
  // Of a layer: queries and output, keys and values, three of the feed-forward, two norms; bf16.
  const Bytes layer = 2 * (2 * 2048 * 2048 + 2 * 2048 * kKvHeads * kHeadSize + 3 * 2048 * 5632 + 2 * 2048);
  CHECK(held(many, Category::kWeights) - held(few, Category::kWeights) == 4 * layer);
  const Bytes kept = 4 * 2 * (8 * 4 * 1024) * kKvHeads * kHeadSize * 2;  // keys and values of four layers
  CHECK(peak_in(many, Phase::kScoring) - peak_in(few, Phase::kScoring) == 4 * layer + kept);
  CHECK(says(ask(grpo(std::string{R"("precision": "pure_bf16", "micro_batch_size": 8, "reward_model": "qwen2.5-0.5b",
    "parallelism": {"data": 8, "fsdp": "fsdp2"})"})),
             "NOT_COUNTED"));
}

// AutoModelForSequenceClassification.from_pretrained: dtype "auto" since transformers 5, and what no config states is
// fp32.
TEST_CASE("a reward model has its own checkpoint's dtype, and an encoder is none") {
  const auto weights = [](const std::string& dtype) {
    return held(
        answered(grpo(R"("precision": "amp_bf16", "micro_batch_size": 8, "reward_config": {"model_type": "llama",
      "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_hidden_layers": 4,
      "vocab_size": 32000, "max_position_embeddings": 4096)" +
                      dtype + "}")),
        Category::kWeights);
  };
  const Bytes layer = 4 * 1024 * 1024 + 3 * 1024 * 2816 + 2 * 1024;
  const Bytes parameters = 32000 * 1024 + 4 * layer + 1024 + 1024;  // table, layers, last norm, score
  CHECK(weights("") - weights(R"(, "dtype": "bfloat16")") == 2 * parameters);
  CHECK(!ask(grpo(R"("micro_batch_size": 8, "reward_config": {"model_type": "bert", "hidden_size": 128,
    "intermediate_size": 512, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 1000})"))
             .estimate);
}

TEST_CASE("without a card vLLM's share is not counted, and the answer says so") {
  CHECK(
      says(ask(grpo(kLora + std::string{R"("sequence_length": 1024, "rollout": {"engine": "vllm"})"})), "NOT_COUNTED"));
}

TEST_CASE("what GRPOConfig refuses is told: incomplete groups, an answer longer than its row, two batches") {
  CHECK(says(ask(grpo(R"("micro_batch_size": 6)")), "INCOMPLETE_GROUPS"));
  CHECK(!says(ask(grpo(R"("micro_batch_size": 6, "num_generations": 3)")), "INCOMPLETE_GROUPS"));
  CHECK(!ask(grpo(R"("sequence_length": 512, "max_completion_length": 512)")).estimate);
  CHECK(!ask(grpo(R"("micro_batch_size": 8, "generation_batch_size": 12)")).estimate);
  CHECK(!ask(grpo(R"("micro_batch_size": 8, "generation_batch_size": 16, "steps_per_generation": 2)")).estimate);
}

constexpr const char* kZero3 = R"("precision": "deepspeed_bf16", "micro_batch_size": 8, "parallelism": {"data": 8,
  "zero_stage": 3, "zero": {"hf_auto": true}})";
constexpr const char* kFsdp2 =
    R"("precision": "pure_bf16", "micro_batch_size": 8, "parallelism": {"data": 8, "fsdp": "fsdp2"})";

// GatheredParameters: all of them at once, in 16 bits; module by module otherwise.
TEST_CASE("ZeRO-3 gathers all weights for generate(), unless ds3_gather_for_generation is off") {
  const Estimate all = answered(grpo(kZero3));
  const Estimate some = answered(grpo(std::string{kZero3} + R"(, "rollout": {"gather_weights": false})"));
  const Bytes weights = 2 * 311'445'504;  // the model's parameters, as transformers counts them
  CHECK(peak_in(all, Phase::kGeneration) > weights);
  CHECK(peak_in(some, Phase::kGeneration) < peak_in(all, Phase::kGeneration));
  const Answer other = ask(grpo(std::string{kZero3} + R"(, "ds3_gather_for_generation": false)"));
  REQUIRE(other.estimate);
  CHECK(peak_in(*other.estimate, Phase::kGeneration) == peak_in(some, Phase::kGeneration));
}

TEST_CASE("FSDP divides the weights of GRPO's model, and of the copy that it is compared with") {
  const Estimate alone = answered(grpo(kFsdp2));
  const Estimate compared = answered(grpo(std::string{kFsdp2} + R"(, "beta": 0.04)"));
  CHECK(peak_in(compared, Phase::kScoring) > peak_in(alone, Phase::kScoring));
  CHECK(ask(grpo(R"("precision": "amp_bf16", "micro_batch_size": 8, "parallelism": {"data": 8, "fsdp": "full_shard"})"))
            .estimate);
  CHECK(ask(grpo(R"("micro_batch_size": 8, "parallelism": {"data": 8})")).estimate);
  CHECK(ask(grpo(R"("micro_batch_size": 8, "parallelism": {"data": 8, "zero_stage": 2})")).estimate);
}

// Each was tried with TRL 1.9, PEFT 0.18 and torch 2.14.
TEST_CASE("what fails where GPUs divide GRPO's weights is refused in words") {
  const std::string vllm = R"(, "rollout": {"engine": "vllm", "mode": "server"})";
  const std::string lora = R"(, "method": "lora")", qlora = R"(, "method": "qlora")";
  CHECK(!ask(grpo(kFsdp2 + lora)).estimate);
  CHECK(ask(grpo(kFsdp2 + lora + vllm)).estimate);
  CHECK(
      !ask(grpo(R"("precision": "amp_bf16", "micro_batch_size": 8, "parallelism": {"data": 8, "fsdp": "full_shard"})" +
                vllm))
           .estimate);
  CHECK(ask(grpo(kZero3 + lora)).estimate);
  CHECK(!ask(grpo(kZero3 + qlora + vllm)).estimate);
}

}  // namespace
}  // namespace tidemark
