#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kDevices[] = {
    {"none", 0, "on the GPU"},
    {"cpu", 1, "in host memory"},
    {"nvme", 2, "on disk", false},
};

constexpr Option place(std::string_view name, std::string_view label, std::string_view help) {
  return choice(name, "\"none\"", kDevices, label, help).further();
}

constexpr Option kOptions[] = {
    place("offload.optimizer", "Place of the optimizer states",
          "Where optimizer states live: on the host with FSDP's CPUOffloadPolicy.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.optimizer = v.choice != 0; }),
    place("offload.parameters", "Place of the weights", "Where weights live.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.parameters = v.choice != 0; }),
    place("offload.gradients", "Place of the gradients", "Where gradients live.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.gradients = v.choice != 0; }),
    place(
        "offload.activations", "Place of the activations",
        "Where saved activations live: activation_offloading in other words; see also gradient_checkpointing offload.")
        .sets([](Request& r, const OptionValue& v) {
          if (v.choice != 0) r.job.offload.activations = true;
        }),
    real("offload.optimizer_fraction", "1.0", "Offloaded share",
         "Share of the optimizer states that is offloaded; of no effect without offloading.")
        .within(0, 1)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.offload.optimizer_share = v.real; }),
};

}  // namespace

constinit const Topic kOffloadTopic{{"offload", "Offloading"}, kPacked<kOptions>};

}  // namespace tidemark
