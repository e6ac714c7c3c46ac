// What a node keeps of a model while its processes load it. Seen with transformers 5.12.1 and safetensors 0.8 on a CPU:
// of a checkpoint of 637 MiB in bf16 none was a process's own memory where it was loaded in bf16, twice as much in
// fp32.
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr Count kParameters = 16'384 * 256 + 2 * (4 * 256 * 256 + 3 * 256 * 1'024 + 2 * 256) + 256;

Bytes at_load(const std::string& rest, const std::string& stored = "bfloat16") {
  return answered(R"({"schema": 1, "config": {"model_type": "llama", "vocab_size": 16384, "hidden_size": 256,
    "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
    "tie_word_embeddings": true, "torch_dtype": ")" +
                  stored + R"("}, "micro_batch_size": 1, "sequence_length": 128, )" + rest + "}")
      .host.load;
}

TEST_CASE("each process that reads a model in another dtype has the whole of it") {
  const Bytes fp32 = kParameters * 4;
  CHECK(at_load(R"("precision": "amp_bf16")") == fp32);
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 4})") == 4 * fp32);
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 16})") == 8 * fp32);
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 16, "gpus_per_node": 4})") == 4 * fp32);
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 8, "fsdp": "full_shard"})") == 8 * fp32);
}

TEST_CASE("one process reads for its node where FSDP loads efficiently, and in nn.DataParallel there is one") {
  const Bytes fp32 = kParameters * 4;
  const std::string one = R"("fsdp_options": {"cpu_ram_efficient_loading": true})";
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 8, "fsdp": "fsdp2", )" + one + "}") == fp32);
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 8, "data_parallel": "dp"})") == fp32);
}

TEST_CASE("a mapped file is nobody's memory: the checkpoint's own dtype, from transformers 4.51 on") {
  CHECK(at_load(R"("precision": "bf16_amp", "parallelism": {"data": 8})") == 0);
  CHECK(at_load(R"("precision": "amp_bf16", "parallelism": {"data": 8})", "float32") == 0);
  const std::string older = R"("precision": "bf16_amp", "framework": {"name": "transformers", "version": "4.50"})";
  CHECK(at_load(older) == kParameters * 2);
}

TEST_CASE("what is loaded straight to its GPU, or in parts, is not in host memory") {
  CHECK(at_load(R"("method": "qlora", "precision": "amp_bf16")") == 0);
  CHECK(at_load(R"("precision": "deepspeed_bf16", "parallelism": {"data": 8, "zero_stage": 3})", "float32") == 0);
  CHECK(at_load(R"("precision": "amp_bf16", "framework": {"name": "trl"})") == 0);
}

TEST_CASE("a reference model is read beside the one that is trained") {
  const std::string job = R"("precision": "amp_bf16", "framework": {"name": "trl"}, "parallelism": {"data": 2})";
  CHECK(at_load(job + R"(, "task": "dpo")") == 2 * at_load(job));
}

}  // namespace
}  // namespace tidemark
