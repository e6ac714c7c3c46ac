// Whatever is sent, the wire answers: in JSON, with a reason, without a negative byte, in bounded time and memory.
#include <chrono>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/options/options.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

std::vector<std::string> golden_requests() {
  std::vector<std::string> lines;
  std::istringstream text(text_of(std::string{TIDEMARK_TEST_DATA} + "/../../golden/requests.jsonl"));
  for (std::string line; std::getline(text, line);) {
    // The longest answers teach nothing here.
    if (line.find("describe") == std::string::npos && line.find("catalog") == std::string::npos) lines.push_back(line);
  }
  REQUIRE(lines.size() > 40);
  return lines;
}

bool has_negative_bytes(const Value& value) {
  if (value.is_number() && value.real < 0) return true;
  for (const Value& item : value.items) {
    if (has_negative_bytes(item)) return true;
  }
  for (const Value::Member& member : value.members) {
    if (has_negative_bytes(member.value)) return true;
  }
  return false;
}

/// Sends a request and checks what must hold of every answer.
void send(const std::string& request) {
  const auto start = std::chrono::steady_clock::now();
  const std::string text = engine().handle(std::string_view{request});
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const std::string shown = request.substr(0, 2000);
  CAPTURE(shown);
  // Generous: a sanitised build on a busy machine.
  CHECK(time.count() < 20.0);
  CHECK(text.size() < (8U << 20U));
  Issues trouble;
  const Value answer = parse_json(text, "", trouble);
  REQUIRE(trouble.empty());
  REQUIRE(answer.is_object());
  const Value* estimate = answer.find("estimate");
  const Value* issues = answer.find("issues");
  bool refused = false;
  if (issues != nullptr) {
    for (const Value& issue : issues->items) {
      REQUIRE(issue.find("message") != nullptr);
      CHECK_FALSE(issue.find("message")->string.empty());
      refused = refused || issue.find("severity")->string == "error";
    }
  }
  if (estimate != nullptr) {
    CHECK_FALSE(refused);
    CHECK_FALSE(has_negative_bytes(*estimate));
    std::int64_t sum = 0;
    for (const Value& group : estimate->find("breakdown")->items) sum += group.find("bytes")->integer;
    CHECK(sum == estimate->find("allocated")->find("expected")->integer);
  }
}

const std::vector<std::string>& extremes() {
  static const std::vector<std::string> values = {"0",
                                                  "-1",
                                                  "1",
                                                  "2",
                                                  "-0.0",
                                                  "0.5",
                                                  "1e-308",
                                                  "2147483648",
                                                  "4294967297",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551616",
                                                  "1e18",
                                                  "1e308",
                                                  "-1e308",
                                                  "null",
                                                  "true",
                                                  "[]",
                                                  "{}",
                                                  "\"\"",
                                                  "\"-1\"",
                                                  "\"NaN\"",
                                                  "[[[[1]]]]",
                                                  "{\"a\": {\"b\": []}}",
                                                  "\"\\u0000\"",
                                                  "\"\\ud800\"",
                                                  "\"<img src=x onerror=alert(1)>\"",
                                                  "\"../../../../etc/passwd\"",
                                                  "\"%s%n%x\""};
  return values;
}

TEST_CASE("hostile: every option takes every extreme") {
  for (const Option& option : options()) {
    const std::string name{option.name};
    const std::size_t dot = name.find('.');
    for (const std::string& value : extremes()) {
      const std::string member = dot == std::string::npos ? "\"" + name + "\": " + value
                                                          : "\"" + name.substr(0, dot) + "\": {\"" +
                                                                name.substr(dot + 1) + "\": " + value + "}";
      for (const char* method : {"full", "qlora"}) {
        if (name == "method" || name == "model") {
          send("{" + member + "}");
        } else {
          send("{\"model\": \"tinyllama\", \"method\": \"" + std::string{method} + "\", " + member + "}");
        }
      }
    }
  }
}

TEST_CASE("hostile: every field of a config takes every extreme") {
  const std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> configs = {
      {"llama",
       {{"hidden_size", "256"},
        {"intermediate_size", "512"},
        {"num_hidden_layers", "6"},
        {"num_attention_heads", "8"},
        {"num_key_value_heads", "4"},
        {"vocab_size", "1000"},
        {"head_dim", "32"},
        {"max_position_embeddings", "512"},
        {"tie_word_embeddings", "true"},
        {"attention_bias", "false"},
        {"hidden_act", "\"silu\""},
        {"rms_norm_eps", "1e-5"},
        {"rope_scaling", "null"},
        {"torch_dtype", "\"bfloat16\""},
        {"architectures", "[\"LlamaForCausalLM\"]"}}},
      {"gpt2",
       {{"n_embd", "256"},
        {"n_layer", "6"},
        {"n_head", "8"},
        {"n_positions", "512"},
        {"n_inner", "null"},
        {"vocab_size", "1000"},
        {"attn_pdrop", "0.1"},
        {"activation_function", "\"gelu_new\""}}},
      {"gemma2",
       {{"hidden_size", "256"},
        {"intermediate_size", "512"},
        {"num_hidden_layers", "6"},
        {"num_attention_heads", "8"},
        {"num_key_value_heads", "4"},
        {"vocab_size", "1000"},
        {"head_dim", "32"},
        {"sliding_window", "64"},
        {"layer_types", "null"},
        {"attn_logit_softcapping", "50.0"}}},
      {"opt",
       {{"hidden_size", "256"},
        {"ffn_dim", "512"},
        {"num_hidden_layers", "6"},
        {"num_attention_heads", "8"},
        {"word_embed_proj_dim", "128"},
        {"vocab_size", "1000"},
        {"max_position_embeddings", "512"},
        {"do_layer_norm_before", "false"}}}};
  for (const auto& [family, fields] : configs) {
    for (std::size_t changed = 0; changed < fields.size(); ++changed) {
      for (const std::string& value : extremes()) {
        std::string config = "\"model_type\": \"" + family + "\"";
        for (std::size_t i = 0; i < fields.size(); ++i) {
          config += ", \"" + fields[i].first + "\": " + (i == changed ? value : fields[i].second);
        }
        send("{\"config\": {" + config + "}, \"sequence_length\": 256}");
      }
    }
  }
}

TEST_CASE("hostile: broken bytes in good requests") {
  const std::vector<std::string> good = golden_requests();
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 1500; ++i) {
    std::string bad = good[below(good.size())];
    for (std::size_t times = 1 + below(4); times > 0 && !bad.empty(); --times) {
      const std::size_t at = below(bad.size());
      switch (below(5)) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad.erase(at, 1 + below(8));
          break;
        case 2:
          bad.insert(at, 1 + below(3), static_cast<char>(random()));
          break;
        case 3:
          bad.insert(at, bad.substr(below(bad.size()), below(40)));
          break;
        default:
          bad.resize(at);
      }
    }
    send(bad);
  }
}

TEST_CASE("hostile: strange values in good requests") {
  const std::vector<std::string> good = golden_requests();
  std::mt19937_64 random(8);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 1500; ++i) {
    Issues issues;
    Value request = parse_json(good[below(good.size())], "", issues);
    if (!request.is_object() || request.members.empty()) continue;
    for (std::size_t times = 1 + below(3); times > 0; --times) {
      Value* place = &request;
      while (place->is_object() && !place->members.empty() && (place == &request || below(3) != 0)) {
        place = &place->members[below(place->members.size())].value;
      }
      if (place == &request) break;
      Issues ignored;
      *place = parse_json(extremes()[below(extremes().size())], "", ignored);
    }
    send(write_json(request));
  }
}

}  // namespace
}  // namespace tidemark
