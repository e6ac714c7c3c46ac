#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kExperts[] = {
    {"default", number(ExpertsKernel::kGroupedMm), "what the framework does: grouped_mm from transformers 5 on"},
    {"grouped_mm", number(ExpertsKernel::kGroupedMm), "one grouped matrix product over tokens sorted by expert"},
    {"batched_mm", number(ExpertsKernel::kBatchedMm), "every token gathers its experts' weights: for a few tokens"},
    {"eager", number(ExpertsKernel::kEager), "a loop over experts"},
    {"ktransformers", number(ExpertsKernel::kHostBf16), "in host memory, on the CPU (KTransformers), weights in bf16"},
    {"ktransformers_int8", number(ExpertsKernel::kHostInt8), "the same with weights of 8 bits"},
};

constexpr Option kOptions[] = {
    choice("moe.implementation", "\"default\"", kExperts, "Experts' kernel", "How experts are computed.")
        .known_as("experts_implementation")
        .further()
        .into<&TrainingJob::experts>(),
    real("moe.capacity_factor", "null", "Capacity factor", "Tokens that an expert accepts, relative to an even split.")
        .within(0, 1e6)
        .further()
        .refused("transformers drops no tokens: there is no capacity."),
    real("moe.load_imbalance", "1.0", "Load imbalance",
         "Tokens of the busiest expert, relative to an even split: a stated assumption, because routing depends on the "
         "data. It moves loops over experts; grouped and batched products need the same whatever the routing.")
        .within(1, 1e6)
        .further()
        .into<&TrainingJob::load_imbalance>(),
};

}  // namespace

constinit const Topic kMoeTopic{{"moe", "Mixtures of experts"}, kPacked<kOptions>};

}  // namespace tidemark
