// Of each run of equal layers the tape has one, and the replay repeats it: what one repetition lets go another one has
// allocated, whoever gathers and keeps weights.
#include <map>
#include <set>
#include <string>

#include "core/step/simulation.hpp"
#include "core/step/walk.hpp"
#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

constexpr const char* kStrategies[] = {
    R"("gradient_checkpointing": "none")",
    R"("gradient_checkpointing": "full")",
    R"("parallelism": {"data": 8, "fsdp": "fsdp2"})",
    R"("parallelism": {"data": 64, "fsdp": "fsdp2"}, "gradient_checkpointing": "full")",
    R"("parallelism": {"data": 8, "fsdp": "fsdp2"}, "method": "lora", "gradient_checkpointing": "full")",
    R"("parallelism": {"data": 8, "fsdp": "full_shard"}, "gradient_checkpointing": "full")",
    R"("parallelism": {"data": 8, "fsdp": "full_shard", "fsdp_options": {"forward_prefetch": true}})",
    R"("parallelism": {"data": 8, "zero_stage": 3}, "gradient_checkpointing": "full")",
    R"("parallelism": {"data": 8, "zero_stage": 3}, "method": "lora")",
    R"("precision": "fsdp_bf16", "parallelism": {"data": 8, "fsdp": "fsdp2", "expert": 2}, "framework": {"name": "torchtitan"})",
    R"("gradient_checkpointing": {"every": 2})",
    R"("gradient_checkpointing": "offload", "method": "lora")",
    R"("task": "dpo", "method": "lora")",
    R"("evaluation": {"micro_batch_size": 8}, "gradient_accumulation_steps": 2)",
};

/// Of each family the checkpoint with the most parameters, whose layers are the most as well.
std::set<std::string> models() {
  std::map<std::string, const ModelEntry*> largest;
  for (const ModelEntry& model : engine().catalog().models()) {
    const ModelEntry*& known = largest[std::string{model.family}];
    if (known == nullptr || model.parameters() > known->parameters()) known = &model;
  }
  std::set<std::string> ids;
  for (const auto& [family, model] : largest) ids.emplace(model->id);
  return ids;
}

TEST_CASE("what the replay lets go it has allocated, whatever the model and the strategy") {
  for (const std::string& id : models()) {
    for (const char* strategy : kStrategies) {
      const Answer answer = ask(R"({"schema": 1, "model": ")" + id + R"(", "sequence_length": 256, )" + strategy + "}");
      if (!answer.estimate) continue;
      INFO(id << ": " << strategy);
      WalkOptions how;
      how.itemise = false;
      CHECK(walk(simulate(answer.architecture, answer.job), how).unmatched == 0);
    }
  }
}

}  // namespace
}  // namespace tidemark
