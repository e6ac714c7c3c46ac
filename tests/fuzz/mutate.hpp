// A mutator that keeps JSON JSON: it sets, drops, doubles and swaps members, with the names and values of `describe`.
#pragma once

#include <random>
#include <vector>

#include "tests/fuzz/ask.hpp"

namespace fuzz {

struct Vocabulary {
  struct Option {
    std::string name;
    std::vector<json> values;
  };
  std::vector<Option> options;
  std::vector<std::string> models, gpus;
  std::vector<json> configs;
};

inline const Vocabulary& vocabulary() {
  static const Vocabulary instance = [] {
    Vocabulary v;
    const json d = json::parse(engine().handle(std::string_view{R"({"schema":1,"verb":"describe"})"}));
    for (const json& option : d["options"]) {
      Vocabulary::Option o{option["name"].get<std::string>(), {}};
      if (option.contains("values") && option["values"].is_array())
        for (const json& value : option["values"]) o.values.push_back(value["name"]);
      if (option.contains("default")) o.values.push_back(option["default"]);
      v.options.push_back(std::move(o));
    }
    const json models = json::parse(read_file(std::string{TIDEMARK_CATALOG} + "/models.json"));
    for (const json& model : models["models"]) {
      v.models.push_back(model["id"].get<std::string>());
      if (model.contains("config")) v.configs.push_back(model["config"]);
    }
    const json gpus = json::parse(read_file(std::string{TIDEMARK_CATALOG} + "/gpus.json"));
    for (const json& gpu : gpus["gpus"]) v.gpus.push_back(gpu.value("name", "A100"));
    return v;
  }();
  return instance;
}

using Dice = std::minstd_rand;
inline std::size_t roll(Dice& dice, std::size_t n) {
  return n == 0 ? 0 : dice() % n;
}

inline json some_number(Dice& dice) {
  static const std::vector<json> kNumbers = {0,
                                             1,
                                             2,
                                             3,
                                             4,
                                             5,
                                             7,
                                             8,
                                             16,
                                             31,
                                             32,
                                             63,
                                             64,
                                             100,
                                             127,
                                             128,
                                             255,
                                             256,
                                             1000,
                                             1023,
                                             1024,
                                             4096,
                                             65535,
                                             65536,
                                             100000,
                                             1000000,
                                             16777216,
                                             2147483647,
                                             2147483648LL,
                                             4294967295LL,
                                             4294967296LL,
                                             1000000000000LL,
                                             4611686018427387904LL,
                                             9223372036854775807LL,
                                             -1,
                                             -2,
                                             -1000,
                                             -2147483648LL,
                                             (std::int64_t)-9223372036854775807LL - 1,
                                             18446744073709551615ULL,
                                             0.0,
                                             0.5,
                                             0.1,
                                             1.5,
                                             -0.5,
                                             1e-300,
                                             1e18,
                                             1e19,
                                             1e100,
                                             1e308,
                                             -1e308,
                                             5e-324,
                                             0.9999999999,
                                             1.0,
                                             2.0,
                                             1e9};
  return roll(dice, 3) == 0 ? json(static_cast<std::int64_t>(roll(dice, 300))) : kNumbers[roll(dice, kNumbers.size())];
}

inline json some_value(Dice& dice) {
  switch (roll(dice, 12)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return false;
    case 3:
      return "";
    case 4:
      return json::array();
    case 5:
      return json::object();
    case 6:
      return json::array({some_number(dice), some_number(dice)});
    case 7: {
      const auto& o = vocabulary().options[roll(dice, vocabulary().options.size())];
      return o.values.empty() ? json("x") : o.values[roll(dice, o.values.size())];
    }
    case 8: {
      static const std::vector<std::string> kWords = {"all-linear",
                                                      "q_proj",
                                                      "lm_head",
                                                      ".*",
                                                      "*",
                                                      "**",
                                                      "(a+)+$",
                                                      "[",
                                                      "\\",
                                                      "model.layers.0.*",
                                                      "auto",
                                                      "bf16",
                                                      "fp32",
                                                      "none",
                                                      "full",
                                                      "A100",
                                                      "24",
                                                      "1e400",
                                                      "-1",
                                                      "NaN",
                                                      "\x01",
                                                      "é",
                                                      "embed_tokens",
                                                      "attention",
                                                      "sliding_attention",
                                                      "full_attention",
                                                      "relu",
                                                      "silu",
                                                      "gelu",
                                                      "float16",
                                                      "bfloat16"};
      return kWords[roll(dice, kWords.size())];
    }
    default:
      return some_number(dice);
  }
}

inline void put(json& root, const std::string& dotted, json value) {
  json* at = &root;
  std::size_t from = 0;
  for (std::size_t dot; (dot = dotted.find('.', from)) != std::string::npos; from = dot + 1) {
    json& next = (*at)[dotted.substr(from, dot - from)];
    if (!next.is_object()) next = json::object();
    at = &next;
  }
  (*at)[dotted.substr(from)] = std::move(value);
}

inline void collect(json& node, std::vector<json*>& all) {
  all.push_back(&node);
  if (node.is_structured())
    for (json& child : node) collect(child, all);
}

/// Members of the config are set by name, too.
inline void mutate_config(json& config, Dice& dice) {
  if (!config.is_object()) config = json::object();
  switch (roll(dice, 6)) {
    case 0:
      config = vocabulary().configs[roll(dice, vocabulary().configs.size())];
      return;
    case 1: {  // a key of another model's config
      const json& other = vocabulary().configs[roll(dice, vocabulary().configs.size())];
      if (other.empty()) return;
      auto it = other.begin();
      std::advance(it, roll(dice, other.size()));
      config[it.key()] = it.value();
      return;
    }
    case 2:
      if (!config.empty()) {
        auto it = config.begin();
        std::advance(it, roll(dice, config.size()));
        config.erase(it);
      }
      return;
    default:
      if (!config.empty()) {
        auto it = config.begin();
        std::advance(it, roll(dice, config.size()));
        if (it.value().is_number() && roll(dice, 3) != 0)
          it.value() = some_number(dice);
        else if (it.value().is_structured() && roll(dice, 2) == 0) {
          std::vector<json*> all;
          collect(it.value(), all);
          *all[roll(dice, all.size())] = some_value(dice);
        } else
          it.value() = some_value(dice);
      }
  }
}

inline void mutate(json& root, Dice& dice) {
  if (!root.is_object()) root = {{"schema", 1}, {"model", "llama-2-7b"}};
  const Vocabulary& v = vocabulary();
  switch (roll(dice, 10)) {
    case 0:
    case 1:
    case 2: {  // an option, with a value that it knows
      const auto& option = v.options[roll(dice, v.options.size())];
      put(root, option.name,
          option.values.empty() || roll(dice, 4) == 0 ? some_value(dice)
                                                      : option.values[roll(dice, option.values.size())]);
      return;
    }
    case 3: {
      const auto& option = v.options[roll(dice, v.options.size())];
      put(root, option.name, some_number(dice));
      return;
    }
    case 4: {
      std::vector<json*> all;
      collect(root, all);
      *all[roll(dice, all.size())] = some_value(dice);
      return;
    }
    case 5:
      if (!root.empty()) {
        auto it = root.begin();
        std::advance(it, roll(dice, root.size()));
        root.erase(it);
      }
      return;
    case 6:
      root.erase("config");
      root.erase("parameters");
      root["model"] = v.models[roll(dice, v.models.size())];
      return;
    case 7:
      root["gpu"] = v.gpus[roll(dice, v.gpus.size())];
      return;
    case 8: {
      root.erase("model");
      root.erase("parameters");
      json config = root.value("config", json::object());
      mutate_config(config, dice);
      root["config"] = std::move(config);
      return;
    }
    default: {
      static const char* const kVerbs[] = {"estimate", "fit", "advise", "map", "describe", "catalog", "version", "x"};
      root["verb"] = kVerbs[roll(dice, 8)];
      static const char* const kKeys[] = {"batches", "sequences", "exact",    "frontiers",
                                          "tiers",   "modes",     "all_gpus", "rule_of_thumb"};
      root[kKeys[roll(dice, 8)]] = some_value(dice);
    }
  }
}

inline std::size_t store(const json& root, std::uint8_t* data, std::size_t most, std::size_t size) {
  const std::string text = root.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > most) return size;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

}  // namespace fuzz
