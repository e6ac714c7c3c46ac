// What optimizers of packages refuse, as their own code does.
#include <string>

#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Answer answer_to(const std::string& keys) {
  Issues none;
  return engine().answer(parse_json(R"({"schema":1,"sequence_length":64,)" + keys + "}", "", none));
}

Bytes allocated(const std::string& keys) {
  const Answer answer = answer_to(keys);
  for (const Issue& issue : answer.issues) UNSCOPED_INFO(issue.message);
  REQUIRE(answer.estimate);
  return answer.estimate->allocated.expected;
}

std::string refused_at(const std::string& keys) {
  const Answer answer = answer_to(keys);
  CHECK_FALSE(answer.estimate);
  for (const Issue& issue : answer.issues) {
    if (issue.severity == Severity::kError) return issue.path;
  }
  return "";
}

const std::string kGalore = R"("model":"Qwen/Qwen2.5-0.5B","precision":"pure_bf16","optimizer":"galore_adamw")";

TEST_CASE("GaLore projects the modules that it is told, by parts of their names or a whole expression") {
  const Bytes all = allocated(kGalore);
  const Bytes mlp = allocated(kGalore + R"(,"optim_target_modules":["mlp"])");
  CHECK(mlp > all);
  CHECK(allocated(kGalore + R"(,"optim_target_modules":".*\\.mlp\\..*")") == mlp);
  CHECK(allocated(kGalore + R"(,"optim_target_modules":"all-linear")") == all);
  CHECK(allocated(kGalore + R"(,"optim_args":"rank=16, update_proj_gap=100")") < all);
}

TEST_CASE("what the Trainer raises an error for gets none of our numbers") {
  CHECK(refused_at(kGalore + R"(,"optim_target_modules":["nope"])") == "/optim_target_modules");
  CHECK(refused_at(kGalore + R"(,"optim_target_modules":"(")") == "/optim_target_modules");
  CHECK(refused_at(kGalore + R"(,"optim_target_modules":"attention")") == "/optim_target_modules");
  CHECK(refused_at(kGalore + R"(,"optim_args":"rank=none")") == "/optim_args");
  CHECK(refused_at(kGalore + R"(,"optim_args":"rank")") == "/optim_args");
  // GPT-2's layers are Conv1D, and its head is the token table.
  CHECK(refused_at(R"("model":"gpt2","optimizer":"galore_adamw")") == "/optim_target_modules");
  const std::string twice = R"("model":"Qwen/Qwen2.5-0.5B","gradient_accumulation_steps":2,"optimizer":")";
  CHECK(refused_at(twice + R"(galore_adamw_layerwise")") == "/optimizer");
  CHECK(allocated(twice + R"(lomo")") > 0);
  const std::string two = R"("model":"Qwen/Qwen2.5-0.5B","parallelism":{"data":2},"optimizer":")";
  CHECK(refused_at(two + R"(apollo_adamw_layerwise")") == "/optimizer");
  CHECK(refused_at(two + R"(lomo")") == "/optimizer");
  CHECK(allocated(two + R"(galore_adamw")") > 0);
}

TEST_CASE("Adam-mini takes models whose query and key weights are whole heads, and no adapters") {
  CHECK(allocated(R"("model":"Qwen/Qwen2.5-0.5B","optimizer":"adam_mini")") > 0);
  CHECK(refused_at(R"("model":"google/gemma-2-2b","optimizer":"adam_mini")") == "/optimizer");
  CHECK(refused_at(R"("model":"Qwen/Qwen2.5-0.5B","method":"lora","optimizer":"adam_mini")") == "/optimizer");
}

TEST_CASE("optimizers that step in backward keep no gradients") {
  const std::string full = R"("model":"Qwen/Qwen2.5-0.5B","precision":"pure_bf16","optimizer":")";
  CHECK(allocated(full + R"(lomo")") < allocated(full + R"(sgd")"));
}

}  // namespace
}  // namespace tidemark
