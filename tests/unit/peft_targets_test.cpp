#include "core/job/peft_targets.hpp"

#include <algorithm>
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

std::string config_of(const std::string& model_type, const std::string& head) {
  return R"("config":{"model_type":")" + model_type + R"(","architectures":[")" + head +
         R"("],"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":256})";
}

Answer answer_to(const std::string& config, const std::string& members) {
  Issues issues;
  const Value request = parse_json("{\"sequence_length\":64," + config + "," + members + "}", "", issues);
  REQUIRE(issues.empty());
  return engine().answer(request);
}

bool says(const Answer& answer, std::string_view code) {
  return std::any_of(answer.issues.begin(), answer.issues.end(), [&](const Issue& i) { return i.code == code; });
}

// Expected: peft 0.18 utils/constants.py.
TEST_CASE("modules that nobody names are PEFT's own for the model type") {
  CHECK(peft_targets(AdapterKind::kLora, "qwen2") == "q_proj,v_proj");
  CHECK(peft_targets(AdapterKind::kLoKr, "phi") == "q_proj,v_proj,fc1,fc2");
  CHECK(peft_targets(AdapterKind::kVera, "phi") == "q_proj,v_proj");
  CHECK(peft_targets(AdapterKind::kVera, "gpt2") == "c_attn");
  CHECK(peft_targets(AdapterKind::kIa3, "llama") == "k_proj,v_proj,down_proj");
  CHECK(peft_targets(AdapterKind::kIa3, "qwen3") == "q_proj,v_proj,down_proj");
  CHECK(peft_targets(AdapterKind::kAdaLora, "roberta") == "query,key,value,dense");
  CHECK(peft_targets(AdapterKind::kLora, "qwen3_moe").empty());
}

TEST_CASE(
    "adapters beside LoRA go on PEFT's own modules, LoRA on all linear layers, unless the request says otherwise") {
  const std::string llama = config_of("llama", "LlamaForCausalLM");
  const Answer ia3 = answer_to(llama, R"("method":"ia3")");
  CHECK(says(ia3, "CHOSEN_TARGETS"));
  // Two layers of k_proj and v_proj (64 outputs) and of down_proj, whose 128 inputs are scaled.
  CHECK(ia3.estimate->parameters.trainable == 2 * (64 + 64 + 128));
  const Answer lora = answer_to(llama, R"("method":"lora")");
  CHECK_FALSE(says(lora, "CHOSEN_TARGETS"));
  CHECK(lora.estimate->parameters.adapted_modules == 14);
  const Answer left = answer_to(llama, R"("method":"lora","adapter":{"target_modules":"auto"})");
  CHECK(says(left, "CHOSEN_TARGETS"));
  CHECK(left.estimate->parameters.adapted_modules == 4);
  const Answer named = answer_to(llama, R"("method":"ia3","adapter":{"target_modules":["q_proj","down_proj"]})");
  CHECK_FALSE(says(named, "CHOSEN_TARGETS"));
  CHECK(named.estimate->parameters.adapted_modules == 4);
}

TEST_CASE("where PEFT has no modules of its own, those that were left to it are an error, and else all linear layers") {
  const std::string olmo = config_of("olmo2", "Olmo2ForCausalLM");
  const Answer asked = answer_to(olmo, R"("method":"lora","adapter":{"target_modules":"auto"})");
  CHECK(says(asked, "INVALID_VALUE"));
  const Answer open = answer_to(olmo, R"("method":"lokr")");
  CHECK(says(open, "ASSUMED_DEFAULT"));
  CHECK(open.estimate->parameters.adapted_modules == 14);
}

}  // namespace
}  // namespace tidemark
