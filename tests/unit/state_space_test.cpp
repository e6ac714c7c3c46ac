#include <algorithm>
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Answer answer_to(const std::string& members) {
  Issues issues;
  const Value request = parse_json("{" + members + "}", "", issues);
  REQUIRE(issues.empty());
  return engine().answer(request);
}

bool says(const Answer& answer, std::string_view path, Severity severity) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.path == path && issue.severity == severity; });
}

const std::string kMamba =
    R"("config":{"model_type":"mamba","hidden_size":64,"num_hidden_layers":2,"vocab_size":256},"micro_batch_size":2)";
const std::string kMamba2 =
    R"("config":{"model_type":"mamba2","hidden_size":64,"num_hidden_layers":2,"vocab_size":256,"num_heads":8,)"
    R"("head_dim":16,"n_groups":1,"state_size":32,"chunk_size":32},"micro_batch_size":2,"sequence_length":128)";

TEST_CASE("the kernels of layers with a state are named in the answer, and torch's own path needs more") {
  const Answer fused = answer_to(kMamba2);
  const Answer torch = answer_to(kMamba2 + R"(,"kernels":"torch-slow")");
  REQUIRE(fused.estimate);
  REQUIRE(torch.estimate);
  CHECK(says(fused, "/kernels", Severity::kNote));
  CHECK(torch.estimate->allocated.expected > fused.estimate->allocated.expected);
  for (const char* name : {"fla", "mamba_ssm", "fused"}) {
    const Answer same = answer_to(kMamba2 + R"(,"kernels":")" + name + "\"");
    REQUIRE(same.estimate);
    CHECK(same.estimate->allocated.expected == fused.estimate->allocated.expected);
  }
}

// csrc/selective_scan/selective_scan.cpp: "B.scalar_type() == input_type"; seen with the real model's code
// (tests/oracle/recorder/kernels_mamba.py).
TEST_CASE("Jamba's scan on fused kernels takes inputs of one dtype") {
  const std::string jamba = R"("model":"ai21labs/Jamba-v0.1","sequence_length":4096,"precision":)";
  CHECK(answer_to(jamba + R"("bf16_amp")").estimate);
  CHECK(answer_to(jamba + R"("pure_bf16")").estimate);
  for (const char* precision : {"amp_bf16", "fp16_bf16_amp"}) {
    const Answer mixed = answer_to(jamba + "\"" + precision + "\"");
    CHECK(!mixed.estimate);
    CHECK(says(mixed, "/precision", Severity::kError));
  }
}

TEST_CASE("a scan that goes token by token in Python is modelled for short sequences only") {
  CHECK(answer_to(kMamba + R"(,"sequence_length":512,"kernels":"torch")").estimate);
  const Answer longer = answer_to(kMamba + R"(,"sequence_length":513,"kernels":"torch")");
  CHECK(!longer.estimate);
  CHECK(says(longer, "/kernels", Severity::kError));
  CHECK(answer_to(kMamba + R"(,"sequence_length":513)").estimate);
}

TEST_CASE("adapters on what PEFT refuses in a Mamba model are refused") {
  const std::string lora = kMamba2 + R"(,"method":"lora","adapter":{"target_modules":)";
  CHECK(says(answer_to(lora + "\"all-linear\"}"), "/adapter/target_modules", Severity::kError));
  CHECK(says(answer_to(lora + "[\"out_proj\"]}"), "/adapter/target_modules", Severity::kError));
  CHECK(answer_to(lora + "[\"in_proj\"]}").estimate);
}

// OlmoHybridConfig.validate_architecture, transformers 5.12.
TEST_CASE("OLMo-Hybrid wants layers of both kinds, and runs on torch alone") {
  const auto ask_olmo = [](const std::string& config, const std::string& options) {
    return answer_to(
        R"("config":{"model_type":"olmo_hybrid","hidden_size":256,"intermediate_size":384,"num_hidden_layers":4,)"
        R"("num_attention_heads":4,"vocab_size":256)" +
        config + R"(},"sequence_length":128)" + options);
  };
  CHECK(ask_olmo("", R"(,"kernels":"torch")").estimate);
  CHECK(says(ask_olmo("", ""), "/kernels", Severity::kError));
  const std::string alike = R"(,"layer_types":["full_attention","full_attention","full_attention","full_attention"])";
  CHECK(says(ask_olmo(alike, R"(,"kernels":"torch")"), "/config/layer_types", Severity::kError));
}

TEST_CASE("only models of pictures or of sound alone take no sequence length") {
  CHECK(says(answer_to(kMamba + R"(,"sequence_length":0)"), "/sequence_length", Severity::kError));
  const std::string vit =
      R"("config":{"model_type":"vit","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,)"
      R"("num_attention_heads":4,"image_size":32,"patch_size":8},"micro_batch_size":2,"sequence_length":)";
  const Answer none = answer_to(vit + "0");
  REQUIRE(none.estimate);
  CHECK(none.estimate->allocated.expected == answer_to(vit + "2048").estimate->allocated.expected);
  const std::string wav2vec2 =
      R"("config":{"model_type":"wav2vec2","hidden_size":48,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":96,"vocab_size":32,"num_conv_pos_embedding_groups":4},"audio_seconds":5)";
  const Answer heard = answer_to(wav2vec2 + R"(,"sequence_length":0)");
  REQUIRE(heard.estimate);
  CHECK(heard.estimate->allocated.expected ==
        answer_to(wav2vec2 + R"(,"sequence_length":1024)").estimate->allocated.expected);
}

// transformers 5.12.1 modeling_zamba2.py get_layers: a block is numbered by its layer, its adapters by its uses; from
// 5.17 on both are by their uses.
TEST_CASE("Zamba 2's blocks are taken in turns, in transformers 5 to 5.16 where layers and uses agree") {
  const auto zamba = [](const char* types, const char* version) {
    return answer_to(R"("config":{"model_type":"zamba2","hidden_size":64,"num_hidden_layers":6,"vocab_size":256,)"
                     R"("num_attention_heads":4,"n_mamba_heads":8,"num_mem_blocks":2,"layers_block_type":[)" +
                     std::string(types) +
                     R"(]},"micro_batch_size":1,"sequence_length":128,"framework":{"name":"transformers","version":")" +
                     version + "\"}");
  };
  const char* const agree = R"("hybrid","mamba","mamba","hybrid","hybrid","hybrid")";
  const char* const differ = R"("hybrid","mamba","hybrid","mamba","hybrid","hybrid")";
  CHECK(zamba(agree, "5.12").estimate);
  const Answer refused = zamba(differ, "5.12");
  CHECK(!refused.estimate);
  CHECK(says(refused, "/framework/version", Severity::kError));
  CHECK(zamba(differ, "4.57").estimate);
  CHECK(zamba(differ, "5.24").estimate);
}

}  // namespace
}  // namespace tidemark
