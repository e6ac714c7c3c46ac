// Models are found by what people type: tests/catalog/model_strings.csv holds such names and what they mean;
// tests/catalog/registry_names.csv names of the registries of Axolotl, LLaMA-Factory, ms-swift, TRL and Unsloth, with
// the totals that Hugging Face states of these very repositories.
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/catalog/model_name.hpp"
#include "core/engine/modelled.hpp"
#include "core/step/simulation.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

std::string found(std::string_view typed) {
  const ModelMatch match = engine().catalog().find_model(typed);
  return match.model == nullptr ? std::string{} : match.model->id;
}

std::string first_suggestion(std::string_view typed) {
  const std::vector<std::string> near = engine().catalog().nearest_models(typed, 3);
  return near.empty() ? std::string{} : near.front();
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

std::string tail_of(const std::string& id) {
  return id.substr(id.find('/') + 1);
}

}  // namespace

TEST_CASE("names as people type them mean the model that they mean") {
  std::stringstream lines(text_of(std::string{TIDEMARK_CATALOG} + "/../tests/catalog/model_strings.csv"));
  std::string line;
  std::getline(lines, line);
  int resolved = 0;
  int all = 0;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = fields_of(line);
    REQUIRE(fields.size() == 3);
    CAPTURE(line);
    const bool named = fields[2] == "resolved";
    const std::string model = named ? found(fields[0]) : first_suggestion(fields[0]);
    CHECK(std::regex_search(model, std::regex(fields[1], std::regex::icase)));
    if (!named) CHECK(found(fields[0]).empty());
    resolved += named ? 1 : 0;
    ++all;
  }
  CHECK(all == 149);
  CHECK(resolved * 100 >= all * 95);
}

TEST_CASE("names that registries of training tools hold mean models of the size that is published") {
  std::stringstream lines(text_of(std::string{TIDEMARK_CATALOG} + "/../tests/catalog/registry_names.csv"));
  std::string line;
  std::getline(lines, line);
  int totals = 0;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = fields_of(line);
    REQUIRE(fields.size() == 4);
    CAPTURE(line);
    const ModelMatch match = engine().catalog().find_model(fields[0]);
    CHECK((match.model == nullptr ? std::string{} : match.model->id) == fields[1]);
    if (fields[2].empty() || match.model == nullptr) continue;
    CHECK(match.model->parameters() == std::stoll(fields[2]));
    ++totals;
  }
  CHECK(totals > 100);
}

TEST_CASE("every model is found by its id however it is written") {
  // unsloth's copies of Phi 3.5 and 4 have another class than the originals: its names, and no others, mean them.
  std::set<std::string> copied;
  for (const ModelEntry& model : engine().catalog().models()) {
    if (model.id.starts_with("unsloth/")) copied.insert(tail_of(model.id));
  }
  CHECK(copied.size() == 2);
  for (const ModelEntry& model : engine().catalog().models()) {
    const std::string tail = tail_of(model.id);
    const bool is_copy = model.id.starts_with("unsloth/");
    CAPTURE(model.id);
    for (const std::string& typed :
         {model.id, "https://huggingface.co/" + model.id, "https://huggingface.co/" + model.id + "/tree/main",
          "hf.co/" + model.id, model.id + "/", model.id + "@main", " " + model.id + " ", "/models/" + tail,
          "/data/hub/models--" + std::regex_replace(model.id, std::regex("/"), "--") + "/snapshots/0123abcd",
          "unsloth/" + tail, "unsloth/" + tail + "-bnb-4bit", "unsloth/" + tail + "-unsloth-bnb-4bit",
          "TheBloke/" + tail + "-GGUF", "TheBloke/" + tail + "-AWQ", tail + "-GPTQ", tail + ".Q4_K_M.gguf",
          tail + "-FP8"}) {
      CAPTURE(typed);
      if (copied.count(tail) > 0 && is_copy != (typed.find("unsloth") != std::string::npos)) continue;
      CHECK(found(typed) == model.id);
      std::string upper = typed;
      for (char& c : upper)
        c = c >= 'a' && c <= 'z' && typed.find("://") == std::string::npos ? static_cast<char>(c - 'a' + 'A') : c;
      CHECK(found(upper) == model.id);
    }
  }
}

TEST_CASE("other spellings of the separators mean the same model") {
  CHECK(found("llama3_1_8b") == "meta-llama/Llama-3.1-8B");
  CHECK(found("llama2_7b") == "meta-llama/Llama-2-7b-hf");
  CHECK(found("qwen2-5-7b-instruct") == "Qwen/Qwen2.5-7B");
  CHECK(found("llama-v3p1-8b-instruct") == "meta-llama/Llama-3.1-8B");
  CHECK(found("smollm2-1-7b") == "HuggingFaceTB/SmolLM2-1.7B");
  CHECK(found("qwen2.5:7b-instruct-q4_K_M") == "Qwen/Qwen2.5-7B");
}

TEST_CASE("a name that may mean several models is not guessed") {
  for (const char* typed : {"llama", "mistral", "qwen", "deepseek-r1:8b", "gemma 27b", "t5", "bert", "granite 8b"}) {
    CAPTURE(typed);
    CHECK(found(typed).empty());
  }
}

TEST_CASE("suggestions keep the family and the size") {
  CHECK(first_suggestion("lama 3.1 8b") == "meta-llama/Llama-3.1-8B");
  CHECK(first_suggestion("Qwen2.5-7B-Roleplay-v2") == "Qwen/Qwen2.5-7B");
  CHECK(first_suggestion("gemma-3-27b-it-qat-q4_0-gguf") == "google/gemma-3-27b-it");
  for (const std::string& id : engine().catalog().nearest_models("Llama 3.1 8B Storyteller", 9)) {
    CAPTURE(id);
    CHECK(id.find("70B") == std::string::npos);
  }
  CHECK(engine().catalog().nearest_models("wholly-unheard-of-31b", 3).empty());
}

TEST_CASE("the answer says how a name was read") {
  Issues issues;
  const Answer answer =
      engine().answer(parse_json(R"({"model": "unsloth/Llama-3.2-1B-Instruct-bnb-4bit"})", "", issues));
  CHECK(answer.model == "meta-llama/Llama-3.2-1B");
  bool told = false;
  for (const Issue& issue : answer.issues) {
    told = told || (issue.code == "RESOLVED_MODEL" && issue.severity == Severity::kNote && issue.path == "/model" &&
                    issue.message.find("base") != std::string::npos);
  }
  CHECK(told);
  CHECK(answer.estimate);
}

TEST_CASE("only a name that says how weights are packed is told so") {
  const auto told = [](const std::string& typed) {
    Issues issues;
    const Answer answer = engine().answer(parse_json("{\"model\": \"" + typed + "\"}", "", issues));
    bool packed = false;
    for (const Issue& issue : answer.issues) packed = packed || issue.code == "NOT_QUANTISED";
    return packed;
  };
  CHECK(told("OpenGVLab/InternVL2-26B-AWQ"));
  CHECK(told("Qwen/Qwen3-8B-FP8"));
  // a width, and an active size
  CHECK_FALSE(told("unsloth/Qwen3-8B-BF16"));
  CHECK_FALSE(told("mistralai/Ministral-3-8B-Instruct-2512-BF16"));
  CHECK_FALSE(told("ibm-granite/granite-3.1-1b-a400m-base"));
}

TEST_CASE("a model that is known and not modelled is not taken for a misspelt one") {
  for (const char* request : {R"({"model": "mixtral-8x7b"})", R"({"model": "gpt-oss-20b"})",
                              R"({"config": {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}})"}) {
    CAPTURE(request);
    Issues issues;
    const Answer answer = engine().answer(parse_json(request, "", issues));
    for (const Issue& issue : answer.issues) {
      if (issue.code == "UNSUPPORTED_ARCHITECTURE") CHECK(issue.suggestion.empty());
    }
  }
}

TEST_CASE("no entry of the catalog is offered as modelled and refused") {
  for (const ModelEntry& model : engine().catalog().models()) {
    if (!is_modelled(model)) continue;
    Issues issues;
    const Engine::Question question = engine().read(parse_json("{\"model\": \"" + model.id + "\"}", "", issues));
    CAPTURE(model.id);
    CHECK(is_supported(question.answer.architecture));
  }
}

}  // namespace tidemark
