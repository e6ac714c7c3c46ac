#include "core/engine/stored_as.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/catalog/model_name.hpp"
#include "core/job/defaults.hpp"
#include "core/units/excerpt.hpp"

namespace tidemark {
namespace {

Value word(std::string_view text) {
  Value value;
  value.kind = Value::Kind::kString;
  value.string = text;
  return value;
}

Value yes() {
  Value value;
  value.kind = Value::Kind::kBool;
  value.boolean = true;
  return value;
}

Value number(std::int64_t n) {
  Value value;
  value.kind = Value::Kind::kInteger;
  value.integer = n;
  value.real = static_cast<double>(n);
  return value;
}

/// The quantization_config that checkpoints of such a name have; no members where nothing trains beside them.
Value config_of(const std::vector<std::string>& packing) {
  const auto says = [&](std::string_view text) {
    return std::find(packing.begin(), packing.end(), text) != packing.end();
  };
  Value config;
  config.kind = Value::Kind::kObject;
  const bool eight = says("8bit") || says("int8");
  if (says("gptq") || says("awq")) {
    config.members.push_back({"quant_method", word(says("awq") ? "awq" : "gptq")});
    config.members.push_back({"bits", number(eight && says("gptq") ? 8 : 4)});
  } else if (says("bnb")) {
    config.members.push_back({eight ? "load_in_8bit" : "load_in_4bit", yes()});
    // bitsandbytes' 4 bits as they are published: NF4, its scales quantised again.
    config.members.push_back({"bnb_4bit_quant_type", word("nf4")});
    config.members.push_back({"bnb_4bit_use_double_quant", yes()});
  }
  return config;
}

bool is_packed_by_others(const Value& config) {
  return config.find("quant_method") != nullptr;
}

bool names_qlora(const Value& config) {
  return config.find("load_in_4bit") != nullptr;
}

}  // namespace

void settle_stored(std::string_view typed, TrainingJob& job, Issues& issues) {
  const std::vector<std::string> repositories = repositories_in(typed);
  if (repositories.empty()) return;
  const std::vector<ModelName> names = read_model_name(repositories.front());
  if (names.empty() || names.front().packing.empty()) return;
  Value config = config_of(names.front().packing);
  // "qlora" on a base of bitsandbytes' is what its name says already, in the request's own words.
  if (job.method == Method::kQlora && !is_packed_by_others(config)) return;
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  if (!adapters || config.members.empty()) {
    if (!config.members.empty()) job.name_says = names_qlora(config) ? NameSays::kQlora : NameSays::kOtherPacking;
    issues.push_back(
        {"NOT_QUANTISED", Severity::kWarning, "/model",
         "The name " + in_quotes(typed) +
             " says how the weights are stored; the answer is about a base of 16 or 32 bits. "
             "Packed weights cannot be trained themselves: \"method\": \"qlora\" trains adapters beside them.",
         ""});
    return;
  }
  Value whole;
  whole.kind = Value::Kind::kObject;
  whole.members.push_back({"quantization_config", std::move(config)});
  settle_quantization(whole, job, issues);
  Issue& said = issues.back();
  if (said.code != "CHOSEN_QUANTIZATION") return;
  said.path = "/model";
  said.message =
      "The weights are held as the model's name says; \"method\" and \"quantization\" with the base's name say it "
      "otherwise.";
}

}  // namespace tidemark
