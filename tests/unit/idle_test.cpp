// Options that decide nothing beside the others say so, and what contradicts itself is refused.
#include <string>

#include "core/options/options.hpp"
#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

const std::string kLlama =
    R"("config": {"model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 5000}, "sequence_length": 64)";

Answer ask_llama(const std::string& options) {
  return ask("{" + kLlama + ", " + options + "}");
}

/// The severity and the place of the first issue that is more than a note: "warning /beta".
std::string first_trouble(const std::string& options) {
  for (const Issue& issue : ask_llama(options).issues) {
    if (issue.severity == Severity::kNote) continue;
    return (issue.severity == Severity::kError ? "error " : "warning ") + issue.path;
  }
  return "";
}

}  // namespace

TEST_CASE("a task chooses the class of a configuration that names none") {
  const Answer plain = ask_llama(R"("precision": "pure_bf16")");
  const Answer labels = ask_llama(R"("precision": "pure_bf16", "task": "classification")");
  REQUIRE(plain.estimate);
  REQUIRE(labels.estimate);
  CHECK(plain.architecture.class_name == "LlamaForCausalLM");
  CHECK(labels.architecture.class_name == "LlamaForSequenceClassification");
  CHECK(labels.estimate->parameters.total == plain.estimate->parameters.total - 5000 * 128 + 2 * 128);
}

TEST_CASE("an option that counts beside another one alone is told to have no effect") {
  CHECK(first_trouble(R"("beta": 0.1)") == "warning /beta");
  CHECK(first_trouble(R"("rollout": {"engine": "vllm"})") == "warning /rollout/engine");
  CHECK(first_trouble(R"("use_reentrant": true)") == "warning /use_reentrant");
  CHECK(first_trouble(R"("parallelism": {"pipeline_schedule": "gpipe"})") == "warning /parallelism/pipeline_schedule");
  CHECK(first_trouble(R"("parallelism": {"data": 2, "zero": {"reduce_bucket_size": 1000}})") ==
        "warning /parallelism/zero/reduce_bucket_size");
  CHECK(first_trouble(R"("method": "lora", "adapter": {"oft_block_size": 16})") == "warning /adapter/oft_block_size");
  CHECK(first_trouble(R"("method": "ia3", "adapter": {"r": 64})") == "warning /adapter/r");
  CHECK(first_trouble(R"("moe": {"load_imbalance": 2.0})") == "warning /moe/load_imbalance");
  CHECK(first_trouble(R"("task": "classification", "architecture": "LlamaForCausalLM")") == "warning /task");
}

TEST_CASE("an option of one release of FSDP is told to have no effect on the other") {
  const auto beside = [](const char* fsdp, const char* option) {
    return first_trouble(R"("parallelism": {"data": 2, "fsdp": ")" + std::string{fsdp} + R"(", "fsdp_options": {)" +
                         option + "}}");
  };
  CHECK(beside("fsdp2", R"("use_orig_params": false)") == "warning /parallelism/fsdp_options/use_orig_params");
  CHECK(beside("fsdp2", R"("backward_prefetch": "none")") == "warning /parallelism/fsdp_options/backward_prefetch");
  CHECK(beside("full_shard", R"("groups": "resharded_root")") == "warning /parallelism/fsdp_options/groups");
  CHECK(beside("full_shard", R"("backward_prefetch": "none")").empty());
  CHECK(beside("fsdp2", R"("groups": "resharded_root")").empty());
  CHECK(first_trouble(R"("method": "full", "freeze_trainable_layers": 1)") == "warning /freeze_trainable_layers");
}

TEST_CASE("defaults that are written out have no effect to speak of") {
  CHECK(first_trouble(R"("beta": null, "use_reentrant": null, "num_iterations": 1, "adapter": null)").empty());
  CHECK(first_trouble(R"("parallelism": {"data": 1, "pipeline_schedule": "1f1b", "num_micro_batches": 1})").empty());
}

TEST_CASE("what a framework refuses is refused") {
  CHECK(first_trouble(R"("bf16": true, "fp16": true)") == "error /fp16");
  CHECK(first_trouble(R"("method": "qlora", "load_in_4bit": true, "load_in_8bit": true)") == "error /load_in_8bit");
  CHECK(first_trouble(R"("method": "oft", "adapter": {"kind": "lora"})") == "error /adapter/kind");
  CHECK(first_trouble(R"("method": "ia3", "adapter": {"bias": "all"})") == "error /adapter/bias");
  CHECK(first_trouble(R"("precision": {"recipe": "pure_fp16", "autocast": "fp16"})") == "warning /precision");
}

// A reference model runs with idle adapters: those that stand in the place of their module gave nothing.
TEST_CASE("every kind of adapter is answered or refused in words beside every task") {
  for (const Choice& kind : find_option("adapter.kind")->choices) {
    for (const Choice& task : find_option("task")->choices) {
      CAPTURE(kind.name, task.name);
      const Answer a = ask_llama(R"("method": "lora", "micro_batch_size": 1, "adapter": {"kind": ")" +
                                 std::string{kind.name} + R"("}, "task": ")" + std::string{task.name} + "\"");
      bool refused = false;
      for (const Issue& issue : a.issues) refused = refused || issue.severity == Severity::kError;
      CHECK(a.estimate.has_value() == !refused);
    }
  }
}

TEST_CASE("AdaLoRA's rank is init_r, whatever r says") {
  const auto adapted = [](const std::string& words) {
    const Answer a =
        ask_llama(R"("method": "lora", "adapter": {"kind": "adalora", "target_modules": "all-linear")" + words + "}");
    REQUIRE(a.estimate);
    return a.estimate->parameters.trainable;
  };
  CHECK(adapted(R"(, "r": 64)") == adapted(""));
  CHECK(adapted(R"(, "init_r": 64)") > adapted(""));
}

TEST_CASE("models without attention take no flash-attn") {
  const std::string mamba = R"({"config": {"model_type": "mamba", "hidden_size": 128, "num_hidden_layers": 2,
      "vocab_size": 5000}, "sequence_length": 64, "attention": "flash_attention_2"})";
  const Answer a = ask(mamba);
  REQUIRE(has_error(a.issues));
  CHECK(!a.estimate);
}

TEST_CASE("Liger's switch changes nothing of a model that it does not know") {
  const std::string phi = R"("config": {"model_type": "phi", "hidden_size": 128, "intermediate_size": 256,
      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 5000}, "sequence_length": 64)";
  const Estimate plain = answered("{" + phi + "}");
  CHECK(answered("{" + phi + R"(, "use_liger_kernel": true})").allocated.expected == plain.allocated.expected);
  CHECK(answered("{" + phi + R"(, "loss": "liger"})").allocated.expected != plain.allocated.expected);
}

}  // namespace tidemark
