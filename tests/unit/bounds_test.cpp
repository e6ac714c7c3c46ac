// What a request may cost, and what an answer may repeat of it: limits on depth, documents, keys, echoes, maps.
#include <algorithm>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "core/runtime/caching_allocator.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/issue.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

struct Reply {
  Value value;
  std::size_t bytes = 0;

  const Value& issues() const { return *value.find("issues"); }
  /// The first issue of that code at that path, or null.
  const Value* issue(std::string_view code, std::string_view path) const {
    for (const Value& issue : issues().items) {
      if (issue.find("code")->string == code && issue.find("path")->string == path) return &issue;
    }
    return nullptr;
  }
  bool answered() const { return value.find("estimate") != nullptr; }
};

Reply ask(const std::string& request) {
  const std::string text = engine().handle(std::string_view{request});
  Issues none;
  Reply reply{parse_json(text, "", none), text.size()};
  REQUIRE(none.empty());
  return reply;
}

std::string llama(int layers, const std::string& more = "") {
  return R"({"config":{"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_attention_heads":8,)"
         R"("vocab_size":1000,"num_hidden_layers":)" +
         std::to_string(layers) + more + "}}";
}

// Of the processor: other programs run beside the tests.
double seconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST_CASE("two thousand layers are computed, more are refused") {
  const Reply deep = ask(llama(2000));
  REQUIRE(deep.answered());
  // Beside 121 KB of a model of 32 layers.
  CHECK(deep.bytes < 1'000'000);
  for (const int layers : {2001, 4000, 1'000'000}) {
    const Reply refused = ask(llama(layers));
    CHECK_FALSE(refused.answered());
    CHECK(refused.issue("INVALID_VALUE", "/config/num_hidden_layers") != nullptr);
  }
}

// The configuration of that entry, in which the number at the path is another.
Value altered(const std::string& id, std::initializer_list<const char*> path, std::int64_t number) {
  Issues none;
  const Value catalog = parse_json(catalog_text("models.json"), "", none);
  const std::vector<Value>& entries = catalog.is_array() ? catalog.items : catalog.find("models")->items;
  const auto entry =
      std::find_if(entries.begin(), entries.end(), [&id](const Value& one) { return one.find("id")->string == id; });
  REQUIRE(entry != entries.end());
  Value config = *entry->find("config");
  Value* place = &config;
  for (const char* key : path) place = const_cast<Value*>(place->find(key));
  REQUIRE(place != nullptr);
  place->kind = Value::Kind::kInteger;
  place->integer = number;
  place->real = static_cast<double>(number);
  return config;
}

// Each of these ended the process once: a table as long as the number, a division by what overflowed to zero.
TEST_CASE("an absurd number in a part of a model is an error with its path") {
  struct Case {
    const char* id;
    std::initializer_list<const char*> path;
    std::int64_t number = std::numeric_limits<std::int32_t>::max();
  };
  const Case cases[] = {
      {"Qwen/Qwen2-VL-7B-Instruct", {"vision_config", "spatial_merge_size"}},
      {"Qwen/Qwen2.5-VL-7B-Instruct", {"vision_config", "spatial_merge_size"}},
      {"meta-llama/Llama-3.2-11B-Vision-Instruct", {"vision_config", "image_size"}},
      {"meta-llama/Llama-3.2-11B-Vision-Instruct", {"vision_config", "num_global_layers"}},
      {"openbmb/MiniCPM-V-4.6", {"vision_config", "num_hidden_layers"}},
      {"microsoft/trocr-base-printed", {"decoder", "decoder_layers"}},
      {"stabilityai/stable-diffusion-3-medium-diffusers", {"patch_size"}},
      {"state-spaces/mamba-130m-hf", {"time_step_rank"}, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.id);
    Value request;
    request.kind = Value::Kind::kObject;
    request.members.push_back({"config", altered(c.id, c.path, c.number)});
    const Answer answer = engine().answer(request);
    CHECK_FALSE(answer.estimate);
    std::string path = "/config";
    for (const char* key : c.path) path += std::string{"/"} + key;
    const bool told = std::any_of(answer.issues.begin(), answer.issues.end(), [&path](const Issue& issue) {
      return issue.code == "INVALID_VALUE" && issue.path == path;
    });
    CHECK(told);
  }
}

TEST_CASE("a step takes time in proportion to the layers") {
  const auto time = [](int layers) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 2; ++i) best = std::min(best, seconds([&] { ask(llama(layers)); }));
    return best;
  };
  // Eight times the layers; in proportion to their square it would be 64.
  CHECK(time(480) < 24.0 * time(60));
}

TEST_CASE("the timeline of a deep model leaves layers out, and never the peak") {
  for (const int layers : {256, 300}) {
    CAPTURE(layers);
    const Reply reply = ask(llama(layers, R"(,"tie_word_embeddings":true)"));
    const Value& estimate = *reply.value.find("estimate");
    std::int64_t highest = 0;
    for (const Value& instant : estimate.find("timeline")->items) {
      highest = std::max(highest, instant.find("total")->integer);
    }
    CHECK(highest == estimate.find("allocated")->find("expected")->integer);
    CHECK(estimate.find("timeline")->items.size() < 256 * 16);
  }
}

TEST_CASE("layers without a pattern take time in proportion, too") {
  std::string kinds;
  unsigned random = 1;
  for (int i = 0; i < 300; ++i) {
    random = random * 1103515245U + 12345U;
    kinds += (random >> 16U) % 2 == 0 ? R"("sliding_attention",)" : R"("full_attention",)";
  }
  kinds.pop_back();
  const Reply reply =
      ask(R"({"config":{"model_type":"gemma3_text","hidden_size":256,"intermediate_size":512,"num_attention_heads":8,)"
          R"("head_dim":32,"vocab_size":1000,"sliding_window":64,"num_hidden_layers":300,"layer_types":[)" +
          kinds + "]}}");
  CHECK(reply.answered());
}

TEST_CASE("a document has so many values, whatever they are") {
  const Reply list = ask(R"({"model":"gpt2","image_size":[)" + repeated("0,", 8'000'000) + "0]}");
  CHECK_FALSE(list.answered());
  CHECK(list.issue("TOO_LARGE", "") != nullptr);
  CHECK(list.bytes < 1000);
  Issues issues;
  parse_json("[" + repeated("0,", kMaxValues - 2) + "0]", "", issues);
  CHECK(issues.empty());
  parse_json("[" + repeated("0,", kMaxValues - 1) + "0]", "", issues);
  CHECK(issues.size() == 1);
}

TEST_CASE("of very many unknown keys some are told and the rest counted") {
  std::string request = R"({"model":"gpt2","sequence_length":64)";
  for (int i = 0; i < 100'000; ++i) request += ",\"key" + std::to_string(i) + "\":1";
  Reply reply;
  CHECK(seconds([&] { reply = ask(request + "}"); }) < 20.0);  // it was a minute, in an optimised build
  CHECK(reply.answered());
  CHECK(reply.issues().items.size() <= 51);
  CHECK(reply.issue("UNKNOWN_KEY", "")->find("message")->string ==
        "99 960 further keys are not known either; they are ignored.");
}

TEST_CASE("what an answer repeats of a request is cut") {
  const std::string endless = repeated("x", 1'000'000);
  const std::string config =
      R"("hidden_size":256,"intermediate_size":512,"num_attention_heads":8,"vocab_size":1000,"num_hidden_layers":2)";
  for (const std::string& request :
       {R"({"model":")" + endless + "\"}", R"({"model":"gpt2","gpu":{"memory_gib":24,"name":")" + endless + "\"}}",
        R"({"config":{"model_type":")" + endless + "\"}}",
        R"({"config":{"model_type":"llama",)" + config + ",\"" + endless + "\":1}}",
        R"({"config":{"model_type":"llama",)" + config + R"(,"architectures":[")" + endless + "ForCausalLM\"]}}",
        R"({"config":{)" + config + R"(,"architectures":[")" + endless + "\"]}}",
        R"({"model":"gpt2","architecture":")" + endless + "\"}", R"({"model":"gpt2","optimizer":")" + endless + "\"}",
        R"({"model":"gpt2","framework":{"version":")" + endless + "\"}}",
        R"({"model":"gpt2","freeze":[")" + endless + "\"]}", R"({"verb":")" + endless + "\"}",
        R"({")" + endless + R"(":1,")" + endless + "\":2}", R"({"model":")" + endless}) {
    CAPTURE(request.substr(0, 80));
    CHECK(ask(request).bytes < 120'000);
  }
}

TEST_CASE("a config's unknown keys are bounded as a request's are") {
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += ",\"zkey" + std::to_string(i) + "\":1";
  const Reply reply = ask(llama(2, keys));
  CHECK(reply.answered());
  CHECK(reply.issues().items.size() <= 51);
}

TEST_CASE("lists of patterns are bounded in all") {
  const Reply few = ask(R"({"model":"gpt2","sequence_length":64,"method":"freeze","freeze":[)" +
                        repeated(R"("no_such_module",)", 1000) + R"("wte"]})");
  CHECK(few.issue("INVALID_VALUE", "/freeze") == nullptr);
  const Reply many = ask(R"({"model":"gpt2","sequence_length":64,"method":"freeze","freeze":[)" +
                         repeated(R"("no_such_module",)", 10'000) + R"("wte"]})");
  CHECK(many.issue("INVALID_VALUE", "/freeze") != nullptr);
}

TEST_CASE("exact maps are bounded by their cells and layers") {
  std::string sizes = "1";
  for (int i = 2; i <= 17; ++i) sizes += "," + std::to_string(i);
  const std::string map = R"({"verb":"map","precision":"amp_bf16","sequence_length":64,"batches":[)" + sizes +
                          R"(],"sequences":[)" + sizes + "]";
  CHECK(ask(map + R"(,"model":"smollm2-135m","exact":true})").issue("TOO_LARGE", "/exact") != nullptr);
  CHECK(ask(map + R"(,"model":"smollm2-135m"})").issues().items.empty());
  // 256 cells of a deep model.
  const std::string square = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]";
  const std::string deep = R"({"verb":"map","exact":true,"sequence_length":64,"batches":)" + square +
                           R"(,"sequences":)" + square + "," + llama(129).substr(1);
  CHECK(ask(deep).issue("TOO_LARGE", "/exact") != nullptr);
}

TEST_CASE("NaN and Infinity are no sizes in a request, and nothing in a config") {
  for (const char* option : {"sequence_length", "micro_batch_size", "max_grad_norm", "parameters"}) {
    for (const char* number : {"NaN", "Infinity", "-Infinity"}) {
      const std::string path = std::string{"/"} + option;
      CAPTURE(option, number);
      const Reply reply = ask(R"({"model":"gpt2",")" + std::string{option} + "\":" + number + "}");
      CHECK_FALSE(reply.answered());
      const Value* issue = reply.issue("INVALID_VALUE", path);
      REQUIRE(issue != nullptr);
      CHECK(issue->find("message")->string.find(number) != std::string::npos);
    }
  }
  // A null before it, and one in a string, are not mistaken for it.
  CHECK(ask(R"({"model":"gpt2","gpu":null,"sequence_length":64,"max_grad_norm":NaN})")
            .issue("INVALID_VALUE", "/max_grad_norm") != nullptr);
  CHECK(ask(R"({"verb":"fit","model":"gpt2","sequence_length":64,"rule_of_thumb":NaN})")
            .issue("INVALID_VALUE", "/rule_of_thumb") != nullptr);
  CHECK(ask(llama(2, R"(,"rope_theta":Infinity,"rms_norm_eps":NaN,"num_key_value_heads":NaN)")).answered());
}

TEST_CASE("a verb is a word") {
  for (const char* verb : {"5", "[]", "{}", "\"\"", "true"}) {
    const Reply reply = ask(R"({"model":"gpt2","verb":)" + std::string{verb} + "}");
    CHECK(reply.issue("INVALID_VALUE", "/verb") != nullptr);
  }
  CHECK(ask(R"({"model":"gpt2","sequence_length":64,"verb":null})").answered());
}

TEST_CASE("no control character comes back raw") {
  // C0, DEL, and U+009B, which some terminals take for the beginning of a command.
  for (const char* name : {"\\u001b[31m", "a\\u0007", "\\u007f", "\\u009b31m", "\\u0085"}) {
    const std::string quotes = "\"" + std::string{name} + "\"";
    for (const std::string& request :
         {R"({"model":)" + quotes + "}", R"({"model":"gpt2","gpu":)" + quotes + "}",
          R"({"model":"gpt2","gpu":{"memory_gib":24,"name":)" + quotes + "}}", R"({"model":"gpt2",)" + quotes + ":1}",
          R"({"model":"gpt2","optimizer":)" + quotes + "}", R"({"config":{"model_type":)" + quotes + "}}",
          llama(2, ",\"architectures\":[" + quotes + "]"), llama(2, "," + quotes + ":1")}) {
      CAPTURE(request);
      const std::function<bool(const Value&)> clean = [&](const Value& value) {
        if (has_control_characters(value.string)) return false;
        for (const Value& item : value.items) {
          if (!clean(item)) return false;
        }
        for (const Value::Member& member : value.members) {
          if (!clean(member.value)) return false;
        }
        return true;
      };
      CHECK(clean(ask(request).value));
    }
  }
}

TEST_CASE("what a configuration multiplies sizes by is above zero, and no more than a thousand") {
  const std::string lfm2 =
      R"({"config":{"model_type":"lfm2","architectures":["Lfm2ForCausalLM"],"hidden_size":1024,"intermediate_size":2560,"num_hidden_layers":2,"num_attention_heads":16,"num_key_value_heads":8,"vocab_size":65536,"layer_types":["conv","full_attention"],"block_ffn_dim_multiplier":)";
  const std::string swin =
      R"({"config":{"model_type":"swin","architectures":["SwinForImageClassification"],"embed_dim":96,"depths":[2,2],"num_heads":[3,6],"mlp_ratio":)";
  for (const std::string& config : {lfm2, swin}) {
    for (const char* wrong : {"-1", "0", "1e30"}) {
      const Reply reply = ask(config + wrong + "}}");
      INFO(config << wrong);
      CHECK(reply.value.find("estimate") == nullptr);
    }
    CHECK(ask(config + "2}}").value.find("estimate") != nullptr);
  }
}

TEST_CASE("an excerpt ends between characters") {
  CHECK(excerpt("short") == "short");
  CHECK(excerpt("\x1b[31mred") == "?[31mred");
  CHECK(excerpt("caf\xc3\xa9") == "caf\xc3\xa9");
  CHECK(excerpt("\xc2\x9b"
                "31m") == "?31m");
  CHECK(excerpt("abcdefghij", 8) == "abcde...");
  CHECK(excerpt("abcd\xc3\xa9ghij", 8) == "abcd...");
  CHECK(in_quotes("a") == "\"a\"");
}

TEST_CASE("of very many issues the gravest are kept") {
  Issues issues(80, Issue{"NOTE", Severity::kNote, "", "n", ""});
  issues.push_back({"BAD", Severity::kError, "", "e", ""});
  bound(issues);
  CHECK(issues.size() == 51);
  CHECK(issues.front().code == "BAD");
  CHECK(issues.back().code == "MORE_ISSUES");
  CHECK(issues.back().message == "31 further issues are not listed.");
}

#ifndef __EMSCRIPTEN__  // without a clock of processor time there
TEST_CASE("taking and giving back blocks takes the time of their number, in whatever order they come") {
  // A deep model's zero_grad gives back thousands of blocks of a few sizes, in the order of the parameters.
  const auto time = [](std::size_t blocks) {
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 7; ++round) {  // the best of several: other programs run beside the tests
      best = std::min(best, seconds([blocks] {
                        CachingAllocator allocator;
                        std::vector<std::int32_t> handles;
                        for (std::size_t i = 0; i < blocks; ++i)
                          handles.push_back(allocator.malloc(20 * kMiB + (i % 3) * kMiB));
                        // Each of them once, in an order that neither rises nor falls: 7919 shares no factor with their
                        // number.
                        for (std::size_t i = 0; i < blocks; ++i) allocator.free(handles[i * 7919 % blocks]);
                        for (std::size_t i = 0; i < blocks; ++i) allocator.malloc(20 * kMiB + (i % 3) * kMiB);
                        CHECK(allocator.reserved() == allocator.peak_reserved());
                      }));
    }
    return best;
  };
  // Sixteen times the blocks; by the square it would be 256.
  CHECK(time(64'000) < 128.0 * time(4'000));
}
#endif

}  // namespace
// Each picture, or window of one, is an attention of its own on the tape.
TEST_CASE("more pictures than can be recorded one by one are refused") {
  const auto refused = [](const std::string& sizes) {
    const std::string job = R"({"model":"qwen2.5-vl-3b","images_per_sample":1,"sequence_length":2048,)";
    return ask(job + sizes + "}").issue("TOO_LARGE", "/micro_batch_size") != nullptr;
  };
  CHECK_FALSE(refused(R"("image_size":448,"micro_batch_size":100)"));
  CHECK(refused(R"("image_size":448,"micro_batch_size":10000)"));
  CHECK(refused(R"("image_size":[32768,32768],"micro_batch_size":1)"));
}

}  // namespace tidemark
