#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Option kOptions[] = {
    of_type(OptionType::kGpu, "gpu", "null", "Graphics card",
            "Card to check: a catalog name or alias, {\"memory_gib\": 24} as torch sees it or {\"vram_gb\": 24} as on "
            "the box (on the command line 24GiB and --vram-gb 24; repeatable).")
        .from("gpus")
        .spelled("-g")
        .sets([](Request& r, const OptionValue& v) { r.gpus = v.gpus; }),
    of_type(OptionType::kGpuList, "gpus", "[]", "Several cards", "Several cards to check.")
        .from("gpus")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.gpus.insert(r.gpus.end(), v.gpus.begin(), v.gpus.end()); }),
};

}  // namespace

constinit const Topic kGpuTopic{{"gpu", "GPU", true}, kPacked<kOptions>};

}  // namespace tidemark
