// Distillation as TRL 1.9 trains it. What is expected follows from experimental/gkd/gkd_trainer.py and gkd_config.py.
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr Bytes kVocabulary = 32000, kHidden = 1024, kFeedForward = 2816;

std::string config(int layers, int vocabulary = 32000) {
  return R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024,
    "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768,
    "tie_word_embeddings": false, "num_hidden_layers": )" +
         std::to_string(layers) + R"(, "vocab_size": )" + std::to_string(vocabulary) + "}";
}

std::string distils(const std::string& teacher, const std::string& rest = "") {
  return R"({"schema": 1, "task": "gkd", "precision": "bf16_amp", "micro_batch_size": 2,
    "framework": {"name": "transformers", "version": "5.12"}, "config": )" +
         config(2) + (teacher.empty() ? "" : ", \"teacher_config\": " + teacher) + rest +
         (rest.find("sequence_length") == rest.npos ? R"(, "sequence_length": 512})" : "}");
}

Bytes peak_in(const Estimate& e, Phase phase) {
  return e.phase_peaks[static_cast<int>(phase)];
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

TEST_CASE("a teacher lies whole beside the student and keeps nothing for backward") {
  const auto weights = [](int layers, const char* dtype) {
    return held(answered(distils(config(layers), std::string{R"(, "teacher_dtype": ")"} + dtype + "\"")),
                Category::kWeights);
  };
  // Four projections, three of the feed-forward, two norms.
  const Bytes layer = 4 * kHidden * kHidden + 3 * kHidden * kFeedForward + 2 * kHidden;
  CHECK(weights(8, "bf16") - weights(4, "bf16") == 4 * layer * 2);
  CHECK(weights(8, "fp32") - weights(4, "fp32") == 4 * layer * 4);
  const Estimate e = answered(distils(config(8)));
  CHECK(e.parameters.total == answered(distils(config(4))).parameters.total);
}

TEST_CASE("the divergence from the mean of both holds seventeen tensors of the logits' size") {
  const auto peak = [](int tokens, const char* beta) {
    return peak_in(answered(distils(config(2), ", \"lmbda\": 0, \"sequence_length\": " + std::to_string(tokens) +
                                                   ", \"beta\": " + beta)),
                   Phase::kLoss);
  };
  // Both logits, both divided by the temperature, both logarithms, both in the stack, their mixture, of each divergence
  // what it is the product of and itself (the teacher's share needs no gradient of its difference), both scaled, the
  // sum.
  const Bytes of_token = 2 * kVocabulary * 4;
  const double more = static_cast<double>(peak(1024, "0.5") - peak(512, "0.5"));
  CHECK(more / static_cast<double>(512 * of_token) > 16.9);
  CHECK(more / static_cast<double>(512 * of_token) < 17.9);
  CHECK(peak(512, "0") < peak(512, "0.5"));
  CHECK(peak(512, "1") < peak(512, "0.5"));
}

TEST_CASE("a student that answers itself does so in a phase of its own, with a cache unless layers are checkpointed") {
  CHECK(peak_in(answered(distils(config(4), ", \"lmbda\": 0")), Phase::kGeneration) == 0);
  const Estimate e = answered(distils(config(4)));
  CHECK(peak_in(e, Phase::kGeneration) > 0);
  CHECK(peak_in(e, Phase::kScoring) == 0);
  CHECK(peak_in(e, Phase::kGeneration) < peak_in(e, Phase::kLoss));
  const Answer longer = ask(distils(config(4), R"(, "max_prompt_length": 700, "max_completion_length": 68)"));
  CHECK(longer.job.sequence_length == 768);
}

// ms-swift's GRPO, whose answers vLLM generates elsewhere.
std::string answers_with(const std::string& rest, const char* framework = "ms_swift",
                         const char* precision = "bf16_amp") {
  return R"({"schema": 1, "task": "grpo", "precision": ")" + std::string{precision} +
         R"(", "micro_batch_size": 2, "num_generations": 1,
    "sequence_length": 512, "rollout": {"engine": "vllm", "mode": "server"}, "framework": {"name": ")" +
         std::string{framework} + R"("}, "config": )" + config(2) + rest + "}";
}

TEST_CASE("a teacher that scores generated answers lies whole beside the policy") {
  const Estimate taught = answered(answers_with(R"(, "teacher_config": )" + config(8)));
  const Estimate smaller = answered(answers_with(R"(, "teacher_config": )" + config(4)));
  const Bytes layer = 4 * kHidden * kHidden + 3 * kHidden * kFeedForward + 2 * kHidden;
  CHECK(held(taught, Category::kWeights) - held(smaller, Category::kWeights) == 4 * layer * 2);
  CHECK(taught.parameters.total == smaller.parameters.total);
  // It runs in the phase in which answers are scored: 32,000 words more are rows of its table and head, and of logits
  // that are there in 16 bits and in fp32.
  const auto scoring = [](int words) {
    return peak_in(answered(answers_with(R"(, "teacher_config": )" + config(2, words))), Phase::kScoring);
  };
  constexpr Bytes kMore = 32000, kScored = 2 * 257;  // rows times logits_to_keep of 256 tokens of an answer
  CHECK(scoring(64000) - scoring(32000) >= kMore * (2 * kHidden * 2 + kScored * (2 + 4)));
}

TEST_CASE("a teacher of generated answers is ms-swift's, and without one answers of a prompt are compared") {
  const std::string teacher = R"(, "teacher_config": )" + config(4);
  CHECK(says(ask(answers_with(teacher, "trl")), "UNSUPPORTED_VALUE", "/teacher_model"));
  CHECK(says(ask(answers_with("")), "INVALID_VALUE", "/num_generations"));
  const std::string divided = R"(, "parallelism": {"data": 2, "zero_stage": 3})";
  const std::string copied = R"(, "reference_model": {"present": true, "shared_with_adapter": false})";
  const char* const zero = "deepspeed_bf16";
  CHECK(says(ask(answers_with(teacher + divided + copied, "ms_swift", zero)), "UNSUPPORTED_VALUE", "/teacher_model"));
  CHECK(ask(answers_with(teacher + divided, "ms_swift", zero)).estimate);
}

TEST_CASE("what TRL's trainer refuses of a teacher is refused") {
  CHECK(says(ask(distils(config(2, 32064))), "INVALID_VALUE", "/teacher_model"));
  CHECK(says(ask(distils(config(2), ", \"beta\": 2")), "INVALID_VALUE", "/beta"));
  CHECK(says(ask(distils("", R"(, "teacher_model": "no-such-model")")), "UNKNOWN_MODEL", "/teacher_model"));
  CHECK(says(ask(distils("")), "ASSUMED_DEFAULT", "/teacher_model"));
}

}  // namespace
}  // namespace tidemark
