// DistributedDataParallel. Expected bytes are those of tests/oracle/records-multi.jsonl, gpt2-ddp-bf16 and its twin
// with bucket views: torch's own reducer on six layers of GPT-2.
#include <algorithm>
#include <string>

#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"

namespace tidemark {
namespace {

Answer ask(const std::string& parallelism) {
  const std::string text = R"({"schema": 1, "config": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
    "activation_function": "gelu_new", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 6, "n_positions": 1024,
    "vocab_size": 50257, "tie_word_embeddings": true}, "method": "full", "precision": "pure_bf16",
    "micro_batch_size": 4, "sequence_length": 1024, "optimizer": "adamw_torch_fused", "gpu": "A100-80GB")" +
                           parallelism + "}";
  Issues issues;
  const Value request = parse_json(text, "", issues);
  REQUIRE(issues.empty());
  Answer answer = engine().answer(request);
  REQUIRE(answer.estimate);
  return answer;
}

Bytes held(const Answer& answer, Category category) {
  Bytes sum = 0;
  for (const BreakdownGroup& group : answer.estimate->breakdown) {
    if (group.category == category) sum += group.bytes;
  }
  return sum;
}

constexpr Bytes kGradients = 163'825'152;  // one bf16 element per parameter

TEST_CASE("DDP's buckets hold one element for each gradient, beside the gradients") {
  const Answer one = ask("");
  const Answer eight = ask(R"(, "parallelism": {"data": 8})");
  CHECK(held(one, Category::kCommunication) == 0);
  CHECK(held(eight, Category::kCommunication) == kGradients);
  CHECK(eight.estimate->allocated.expected - one.estimate->allocated.expected >= kGradients);
  // The gradients are still tensors of their own: with the optimizer at work both are there.
  const auto optimizer = static_cast<std::size_t>(Phase::kOptimizer);
  CHECK(eight.estimate->phase_live[optimizer] == one.estimate->phase_live[optimizer] + kGradients);
}

// cross35422-mixed-037n: TRL's loss in chunks, which runs again in backward.
TEST_CASE("DDP's buckets are as many whatever the loss") {
  CHECK(held(ask(R"(, "loss": "chunked", "parallelism": {"data": 8})"), Category::kCommunication) == kGradients);
}

TEST_CASE("as views of the buckets gradients take no memory beside them, and the buckets never go") {
  const Answer views = ask(R"(, "parallelism": {"data": 8, "ddp": {"gradient_as_bucket_view": true}})");
  CHECK(held(views, Category::kCommunication) == 0);
  CHECK(held(views, Category::kGradients) == kGradients);
  const auto zero_grad = static_cast<std::size_t>(Phase::kZeroGrad);
  CHECK(views.estimate->phase_live[zero_grad] == ask("").estimate->phase_live[zero_grad]);
}

// torch 2.14 nn/parallel/distributed.py: _build_params_for_reducer takes all that require a gradient. SmolVLM's tower
// and connector get none without pictures.
TEST_CASE("what gets no gradient has its place in DDP's buckets, and the answer says that DDP waits for it") {
  Issues issues;
  const Answer answer = engine().answer(parse_json(R"({"model": "HuggingFaceTB/SmolVLM-256M-Instruct",
    "sequence_length": 512, "precision": "pure_bf16", "parallelism": {"data": 4}})",
                                                   "", issues));
  REQUIRE(answer.estimate);
  const Bytes gradients = 2 * answer.estimate->parameters.trainable;
  CHECK(held(answer, Category::kCommunication) / kMiB == gradients / kMiB);
  const auto waits = [](const Issue& issue) { return issue.code == "UNUSED_PARAMETERS"; };
  CHECK(std::any_of(answer.issues.begin(), answer.issues.end(), waits));
  const Answer all = ask(R"(, "parallelism": {"data": 4})");
  CHECK(std::none_of(all.issues.begin(), all.issues.end(), waits));
}

// docs/many-gpus.md: what is on a host is there for all GPUs that share it.
TEST_CASE("what each GPU keeps on its host is counted once for each that shares it") {
  const std::string offload = R"(, "gradient_checkpointing": "offload")";
  const Bytes one = ask(offload).estimate->host.expected;
  CHECK(one == Bytes{6} * 4 * 1024 * 768 * 2);  // each layer's input in bf16
  CHECK(ask(offload + R"(, "parallelism": {"data": 16})").estimate->host.expected == 8 * one);
  CHECK(ask(offload + R"(, "parallelism": {"data": 16, "gpus_per_node": 4})").estimate->host.expected == 4 * one);
  CHECK(ask(offload + R"(, "parallelism": {"data": 16, "fsdp": "fsdp2"})").estimate->host.expected == 8 * one);
}

TEST_CASE("how many GPUs there are moves nothing on each of them but NCCL's buffers") {
  const Answer eight = ask(R"(, "parallelism": {"data": 8})");
  const Answer many = ask(R"(, "parallelism": {"data": 10000})");
  CHECK(eight.estimate->allocated.expected == many.estimate->allocated.expected);
  CHECK(eight.estimate->device.expected == many.estimate->device.expected);
  CHECK(eight.estimate->device.expected > ask("").estimate->device.expected + kGradients);
}

TEST_CASE("one GPU is no parallelism, whatever DDP's settings") {
  const Answer one = ask("");
  const Answer mesh = ask(R"(, "parallelism": {"data": 1, "tensor": 1, "ddp": {"gradient_as_bucket_view": true}})");
  CHECK(one.estimate->allocated.expected == mesh.estimate->allocated.expected);
  CHECK(one.estimate->device.expected == mesh.estimate->device.expected);
}

TEST_CASE("an answer for several GPUs says that it is that of each") {
  const Answer eight = ask(R"(, "parallelism": {"data": 8})");
  const bool said = std::any_of(eight.issues.begin(), eight.issues.end(),
                                [](const Issue& issue) { return issue.code == "EACH_GPU"; });
  CHECK(said);
}

}  // namespace
}  // namespace tidemark
