// Jobs whose GPUs divide matrices or layers. Expected bytes are those of tests/oracle/records-multi.jsonl.
#include <algorithm>
#include <string>

#include "core/plan/pipeline.hpp"
#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string llama(Count layers, const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "tie_word_embeddings": false, "vocab_size": 128256, "max_position_embeddings": 131072, "num_hidden_layers": )" +
         std::to_string(layers) +
         R"(}, "method": "full", "precision": "pure_bf16", "micro_batch_size": 1, "sequence_length": 2048,
    "optimizer": "adamw_torch_fused", )" +
         rest + "}";
}

std::string tensor(Count gpus) {
  return R"("framework": {"name": "torchtitan"}, "parallelism": {"tensor": )" + std::to_string(gpus) +
         R"(, "sequence_parallel": true, "loss_parallel": true})";
}

std::string pipeline(Count gpus, Count micro_batches, const std::string& more = "") {
  return R"("parallelism": {"pipeline": )" + std::to_string(gpus) + R"(, "num_micro_batches": )" +
         std::to_string(micro_batches) + more + "}";
}

TEST_CASE("tensor parallel GPUs have a part of every matrix, and norms whole") {
  const Estimate e = answered(llama(4, tensor(2)));               // llama-3.1-8b-tp-tp2-8863cf
  CHECK(held(e, Category::kWeights) == 1'923'163'136 - 2 * 512);  // the record counts rotary tables, too
  CHECK(held(e, Category::kOptimizerStates) == 3'846'344'192);
  CHECK(e.parameters.total == 1'923'125'248);
  CHECK(e.phase_live[static_cast<int>(Phase::kOptimizer)] >= 8'743'432'704);
}

TEST_CASE("the parameters of all tensor parallel GPUs, each counted once, are the model's") {
  for (const Count gpus : {1, 2, 4, 8}) {
    CHECK(answered(llama(4, tensor(gpus))).parameters.total == 1'923'125'248);
  }
}

TEST_CASE("more tensor parallel GPUs take less memory on each") {
  Bytes before = answered(llama(4, R"("framework": {"name": "torchtitan"})")).allocated.expected;
  for (const Count gpus : {2, 4, 8}) {
    const Bytes now = answered(llama(4, tensor(gpus))).allocated.expected;
    CHECK(now < before);
    before = now;
  }
}

TEST_CASE("a mesh of ones is one GPU") {
  const Estimate alone = answered(llama(6, R"("loss": "default")"));
  const Estimate ones = answered(llama(
      6,
      R"("parallelism": {"data": 1, "tensor": 1, "pipeline": 1, "sequence_parallel": true, "loss_parallel": true})"));
  CHECK(alone.allocated.expected == ones.allocated.expected);
  CHECK(alone.reserved.expected == ones.reserved.expected);
  CHECK(ones.ranks.empty());
}

TEST_CASE("the stages of a pipeline have all of the model's parameters together, and the answer is the worst one's") {
  const Estimate e = answered(llama(8, pipeline(4, 8)));
  Count parameters = 0;
  Bytes most = 0;
  for (const RankFigures& rank : e.ranks) {
    parameters += rank.parameters * (rank.last - rank.first + 1);
    most = std::max(most, rank.allocated);
  }
  CHECK(parameters == answered(llama(8, R"("loss": "default")")).parameters.total);
  CHECK(e.allocated.expected == most);
  CHECK(e.peak.rank == "pipeline stage 3");
}

TEST_CASE("a stage waits with as many micro-batches as there are stages from it to the last") {
  Pipeline how;
  how.stages = 4;
  how.micro_batches = 8;
  const auto most_alive = [&](Count rank) {
    Count alive = 0, most = 0;
    for (const PipelineAction& action : actions_of(how, rank, how.micro_batches)) {
      alive += action.forward ? 1 : -1;
      most = std::max(most, alive);
    }
    CHECK(alive == 0);
    return most;
  };
  CHECK(most_alive(0) == 4);
  CHECK(most_alive(3) == 1);
  how.schedule = PipelineSchedule::kGPipe;
  CHECK(most_alive(3) == 8);
  how.schedule = PipelineSchedule::kInterleaved;
  how.chunks = 2;
  CHECK(most_alive(0) == 11);
}

TEST_CASE("from some number on more micro-batches cost a 1F1B pipeline only what it receives them in") {
  const std::string second = R"(, "rank": 1)";
  const Bytes eight = answered(llama(4, pipeline(4, 8, second))).allocated.expected;
  const Bytes sixteen = answered(llama(4, pipeline(4, 16, second))).allocated.expected;
  CHECK(sixteen - eight == Bytes{8} * 2 * 2048 * 4096 * 2);
}

TEST_CASE("layers are cut as a layout says") {
  const Answer answer = ask(llama(8, pipeline(2, 4, R"(, "pipeline_layout": [5, 3])")));
  REQUIRE(answer.estimate);
  REQUIRE(answer.estimate->ranks.size() == 2);
  CHECK(answer.estimate->ranks[0].layers == "0-4");
  CHECK(answer.estimate->ranks[1].layers == "5-7");
  CHECK_FALSE(ask(llama(8, pipeline(2, 4, R"(, "pipeline_layout": [5, 2])"))).estimate);
}

TEST_CASE("what torch refuses is refused with a sentence") {
  CHECK_FALSE(ask(llama(4, tensor(16))).estimate);      // 8 heads of keys and values
  CHECK_FALSE(ask(llama(4, pipeline(4, 2))).estimate);  // Schedule1F1B wants 4 micro-batches
  CHECK_FALSE(ask(llama(4, pipeline(8, 8))).estimate);  // more stages than layers
  CHECK_FALSE(ask(llama(4, R"("parallelism": {"tensor": 2, "pipeline": 2})")).estimate);
}

}  // namespace
}  // namespace tidemark
