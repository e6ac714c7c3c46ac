// Which modules a job trains. Expected: what PEFT 0.18 and torch do with the same configuration.
#include <string>

#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

// Two layers of 4 + 3 linear modules, H = 64, F = 128, V = 1000; the token table has 64 000 weights.
constexpr std::string_view kModel =
    R"("config":{"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,
    "num_attention_heads":4,"num_key_value_heads":4,"vocab_size":1000,"architectures":["LlamaForCausalLM"]},
    "sequence_length":16,)";
constexpr std::string_view kTiedModel =
    R"("config":{"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,
    "num_attention_heads":4,"num_key_value_heads":4,"vocab_size":1000,"tie_word_embeddings":true,
    "architectures":["LlamaForCausalLM"]},"sequence_length":16,)";

Answer answer_to(std::string_view model, const std::string& rest) {
  Issues none;
  const std::string text = "{\"schema\":1,\"precision\":\"amp_bf16\"," + std::string{model} + rest + "}";
  const Value request = parse_json(text, "", none);
  INFO(text);
  REQUIRE(none.empty());
  return engine().answer(request);
}

Answer lora(const std::string& adapter, std::string_view model = kModel) {
  return answer_to(model, R"("method":"lora","adapter":{"r":8,)" + adapter + "}");
}

ParameterCounts counts(const Answer& answer) {
  for (const Issue& issue : answer.issues) UNSCOPED_INFO(issue.message);
  REQUIRE(answer.estimate);
  return answer.estimate->parameters;
}

Issue first_of(const Answer& answer, Severity severity) {
  for (const Issue& issue : answer.issues) {
    if (issue.severity == severity) return issue;
  }
  return {};
}

constexpr Count kQuery = 8 * (64 + 64), kUp = 8 * (64 + 128), kTable = 64 * 1000;

TEST_CASE("targets are names, last parts, full names, or an expression for the whole name") {
  CHECK(counts(lora(R"("target_modules":["q_proj"])")).trainable == 2 * kQuery);
  CHECK(counts(lora(R"("target_modules":["self_attn.q_proj","up_proj"])")).trainable == 2 * (kQuery + kUp));
  CHECK(counts(lora(R"("target_modules":["model.layers.1.self_attn.q_proj"])")).trainable == kQuery);
  CHECK(counts(lora(R"("target_modules":".*\\.(q|up)_proj")")).trainable == 2 * (kQuery + kUp));
  CHECK(counts(lora(R"("target_modules":"model.layers.0.*proj")")).adapted_modules == 7);
  CHECK(counts(lora(R"("target_modules":"ALL-LINEAR")")).adapted_modules == 14);
  CHECK(counts(lora(R"("target_modules":"attention")")).trainable == 2 * 4 * kQuery);
}

TEST_CASE("targets that fit nothing are refused, as PEFT refuses them") {
  for (const char* targets : {R"("all_linear")", R"("all")", R"([".*q_proj"])", R"(["c_attn"])", R"(["*"])",
                              R"("q_proj")", R"(["layers.7"])"}) {
    CAPTURE(targets);
    const Issue issue = first_of(lora(std::string{R"("target_modules":)"} + targets), Severity::kError);
    CHECK(issue.code == "UNMATCHED_PATTERN");
    CHECK(issue.path == "/adapter/target_modules");
  }
  CHECK(first_of(lora(R"("target_modules":["q_porj"])"), Severity::kError).suggestion == "q_proj");
  CHECK(first_of(lora(R"("target_modules":"all_linear")"), Severity::kError).suggestion == "all-linear");
}

TEST_CASE("targets that are no layers of weights are refused, as PEFT refuses them") {
  for (const char* targets : {R"(["mlp"])", R"(["input_layernorm","q_proj"])", R"(".*self_attn.*")", R"("*")"}) {
    CAPTURE(targets);
    CHECK(first_of(lora(std::string{R"("target_modules":)"} + targets), Severity::kError).code == "INVALID_VALUE");
  }
}

TEST_CASE("a name that fits nothing beside others that do gets a warning") {
  const Answer answer = lora(R"("target_modules":["q_proj","c_attn"],"modules_to_save":["nope"])");
  CHECK(counts(answer).adapted_modules == 2);
  REQUIRE(answer.issues.size() >= 2);  // and what is noted of any answer
  CHECK(answer.issues[0].code == "UNMATCHED_PATTERN");
  CHECK(answer.issues[0].path == "/adapter/target_modules");
  CHECK(answer.issues[1].path == "/adapter/modules_to_save");
}

TEST_CASE("token table and output head take adapters") {
  CHECK(counts(lora(R"("target_modules":["embed_tokens"])")).trainable == 8 * (1000 + 64));
  CHECK(counts(lora(R"("target_modules":["lm_head"])")).trainable == 8 * (1000 + 64));
  CHECK(counts(lora(R"("target_modules":["lm_head","embed_tokens"])", kTiedModel)).trainable == 2 * 8 * (1000 + 64));
  CHECK(counts(lora(R"("target_modules":["embed_tokens"],"use_dora":true)")).trainable == 8 * (1000 + 64) + 64);
}

TEST_CASE("a module to save is copied, tied or not") {
  const Count base = counts(lora(R"("target_modules":["q_proj"])", kTiedModel)).total;
  for (const char* saved : {"lm_head", "embed_tokens"}) {
    const auto both =
        counts(lora(R"("target_modules":["q_proj"],"modules_to_save":[")" + std::string{saved} + "\"]", kTiedModel));
    CHECK(both.total == base + kTable);
    CHECK(both.trainable == 2 * kQuery + kTable);
    CHECK(both.saved_modules == 1);
  }
  CHECK(counts(lora(R"("target_modules":["q_proj"],"modules_to_save":["lm_head","embed_tokens"])", kTiedModel)).total ==
        base + 2 * kTable);
  // Ends of names: two norms of each layer and the last one.
  CHECK(counts(lora(R"("target_modules":["q_proj"],"modules_to_save":["norm"])")).saved_modules == 5);
  CHECK(counts(lora(R"("target_modules":["q_proj"],"modules_to_save":["mlp"])")).trainable ==
        2 * (kQuery + 3 * 64 * 128));
}

TEST_CASE("what would be both adapted and saved is refused, as PEFT refuses it") {
  CHECK(first_of(lora(R"("target_modules":["q_proj"],"modules_to_save":["proj"])"), Severity::kError).path ==
        "/adapter/modules_to_save");
  CHECK(first_of(lora(R"("target_modules":["q_proj"],"modules_to_save":["layers"])"), Severity::kError).path ==
        "/adapter/modules_to_save");
  CHECK(first_of(answer_to(kModel, R"("method":"qlora","adapter":{"modules_to_save":["down_proj"]})"), Severity::kError)
            .path == "/adapter/modules_to_save");
  // Under its full name it is no target any more.
  CHECK(counts(lora(R"("target_modules":["q_proj","v_proj"],"modules_to_save":["v_proj"])")).adapted_modules == 2);
}

TEST_CASE("ranks, layers and exclusions are PEFT's") {
  CHECK(counts(lora(R"("target_modules":["q_proj","up_proj"],"rank_pattern":{"up_proj":16})")).trainable ==
        2 * (kQuery + 2 * kUp));
  CHECK(counts(lora(R"("target_modules":["q_proj"],"rank_pattern":{"layers.0.*":16,"q_proj":4})")).trainable ==
        kQuery * 2 + kQuery / 2);
  CHECK(counts(lora(R"("target_modules":["q_proj"],"layers_to_transform":[1])")).trainable == kQuery);
  CHECK(counts(lora(R"("target_modules":["q_proj"],"layers_to_transform":1,"layers_pattern":"layers")")).trainable ==
        kQuery);
  CHECK(
      first_of(lora(R"("target_modules":["q_proj"],"layers_to_transform":[1],"layers_pattern":"h")"), Severity::kError)
          .code == "UNMATCHED_PATTERN");
  CHECK(counts(lora(R"("exclude_modules":["mlp.up_proj"])")).adapted_modules == 12);
  CHECK(counts(lora(R"("exclude_modules":".*layers\\.0\\..*")")).adapted_modules == 7);
  CHECK(first_of(lora(R"("target_modules":".*q_proj","layers_to_transform":[1])"), Severity::kError).path ==
        "/adapter/layers_to_transform");
}

TEST_CASE("an expression that cannot be read is refused with its fault") {
  CHECK(first_of(lora(R"("target_modules":"(q_proj")"), Severity::kError).message.find("not closed") !=
        std::string::npos);
  CHECK(first_of(answer_to(kModel, R"("freeze":["layers.[0"])"), Severity::kError).path == "/freeze");
}

TEST_CASE("layers are frozen by number, and freezing everything is an error") {
  const Count all = counts(answer_to(kModel, R"("method":"full")")).trainable;
  const Count layer = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64;
  const auto frozen = [&](const std::string& patterns) {
    return all - counts(answer_to(kModel, R"("method":"freeze","freeze":)" + patterns)).trainable;
  };
  CHECK(frozen(R"(["layers.0"])") == layer);
  CHECK(frozen(R"(["^model.layers.1$"])") == layer);
  CHECK(frozen(R"(["model.layers.*"])") == 2 * layer);
  CHECK(frozen(R"(["model"])") == 2 * layer + kTable + 64);
  CHECK(frozen(R"(["layers\\.[01]\\.mlp"])") == 2 * 3 * 64 * 128);
  CHECK(first_of(answer_to(kModel, R"("method":"freeze","freeze":["*"])"), Severity::kError).code == "NOTHING_TRAINED");
  CHECK(first_of(answer_to(kModel, R"("method":"freeze","freeze":["nope"])"), Severity::kWarning).code ==
        "UNMATCHED_PATTERN");
}

TEST_CASE("a tied head and the token table are frozen together") {
  const Count all = counts(answer_to(kTiedModel, R"("method":"full")")).trainable;
  for (const char* pattern : {"lm_head", "embed_tokens"}) {
    const auto request = R"("method":"freeze","freeze":[")" + std::string{pattern} + "\"]";
    CHECK(all - counts(answer_to(kTiedModel, request)).trainable == kTable);
  }
  CHECK(first_of(answer_to(kTiedModel, R"("method":"freeze","freeze":["model"])"), Severity::kError).code ==
        "NOTHING_TRAINED");
}

TEST_CASE("what is named as trainable is trained and nothing else, or of what is frozen") {
  const Count layer = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64;
  const auto trained = [](const std::string& keys) {
    return counts(answer_to(kModel, R"("method":"freeze",)" + keys)).trainable;
  };
  CHECK(trained(R"("trainable":["layers.1."])") == layer);
  CHECK(trained(R"("trainable":["^model.norm$","mlp"])") == 64 + 2 * 3 * 64 * 128);
  CHECK(trained(R"("trainable":["layers\\.[01]\\.self_attn"])") == 2 * 4 * 64 * 64);
  CHECK(trained(R"("freeze":["model.layers"],"trainable":["layers.0.mlp"])") == 2 * kTable + 64 + 3 * 64 * 128);
  CHECK(first_of(answer_to(kModel, R"("method":"freeze","trainable":["nope"])"), Severity::kError).code ==
        "NOTHING_TRAINED");
  CHECK(first_of(answer_to(kModel, R"("method":"freeze","trainable":["mlp","nope"])"), Severity::kWarning).path ==
        "/trainable");
  CHECK(counts(answer_to(kTiedModel, R"("method":"freeze","trainable":["embed_tokens"])")).trainable == kTable);
}

// The same parameters are trained, by either word for it; PEFT's rules on targets are not asked.
TEST_CASE("what is frozen by name is no adapter") {
  const auto allocated = [](const std::string& model, const std::string& method) {
    Issues none;
    const Answer answer = engine().answer(
        parse_json(R"({"schema":1,"model":")" + model + R"(","sequence_length":256,"method":")" + method +
                       R"(","freeze":["embed_tokens"],"adapter":{"target_modules":["q_proj"]}})",
                   "", none));
    for (const Issue& issue : answer.issues) UNSCOPED_INFO(issue.message);
    REQUIRE(answer.estimate);
    return answer.estimate->allocated.expected;
  };
  for (const char* model : {"OpenGVLab/InternVL2_5-1B", "google/gemma-4-E2B-it", "microsoft/Phi-3.5-MoE-instruct"}) {
    INFO(model);
    CHECK(allocated(model, "freeze") == allocated(model, "full"));
  }
}

TEST_CASE("patterns that would take for ever are refused") {
  std::string many;
  for (int i = 0; i < 1100; ++i) many += (i == 0 ? "\"" : ",\"") + std::string(50, '*') + std::to_string(i) + "\"";
  const std::string model = R"("model":"llama-2-7b",)";
  CHECK(first_of(answer_to(model, R"("method":"freeze","freeze":[)" + many + "]"), Severity::kError).code ==
        "TOO_LARGE");
}

}  // namespace
}  // namespace tidemark
