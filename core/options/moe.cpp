#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kNoExperts = "Mixtures of experts are not modelled yet.";

constexpr Choice kExperts[] = {
    {"default", 0, "the framework's own"},
    {"eager", 1, "a loop over experts", false},
    {"grouped_mm", 2, "one grouped matrix product", false},
};

constexpr Option kOptions[] = {
    choice("moe.implementation", "\"default\"", kExperts, "Experts' kernel", "How experts are computed.")
        .further()
        .refused(kNoExperts),
    real("moe.capacity_factor", "null", "Capacity factor", "Tokens that an expert accepts, relative to an even split.")
        .within(0, 1e6)
        .further()
        .refused(kNoExperts),
    real("moe.load_imbalance", "1.0", "Load imbalance", "Load of the busiest expert, relative to an even split.")
        .within(1, 1e6)
        .further()
        .refused(kNoExperts),
};

}  // namespace

constinit const Topic kMoeTopic{{"moe", "Mixtures of experts"}, kPacked<kOptions>};

}  // namespace tidemark
