#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr int kDisk = 2;
constexpr Choice kPlaces[] = {
    {"none", 0, "on the GPU"},
    {"cpu", 1, "in host memory"},
    {"nvme", kDisk, "on disk, by way of host memory (ZeRO-Infinity)"},
};
constexpr Choice kDevices[] = {
    {"none", 0, "on the GPU"},
    {"cpu", 1, "in host memory"},
    {"nvme", kDisk, "on disk", false},
};

constexpr Option place(std::string_view name, std::string_view label, std::string_view help,
                       std::span<const Choice> places = kDevices) {
  return choice(name, "\"none\"", places, label, help).further();
}

constexpr Option buffers(std::string_view name, std::string_view standard, std::string_view label,
                         std::string_view help) {
  return integer(name, standard, label, help).within(0, 1000).further();
}

constexpr Option size(std::string_view name, std::string_view standard, std::string_view label, std::string_view help) {
  return integer(name, standard, label, help).within(0, 1e12, "elements").further();
}

constexpr Option kOptions[] = {
    place("offload.optimizer", "Place of the optimizer states",
          "Where optimizer states live: on the host with FSDP's CPUOffloadPolicy.", kPlaces)
        .sets([](Request& r, const OptionValue& v) {
          r.job.offload.optimizer = v.choice != 0;
          r.job.offload.states_on_disk = v.choice == kDisk;
        }),
    place("offload.parameters", "Place of the weights", "Where weights live.", kPlaces)
        .sets([](Request& r, const OptionValue& v) {
          r.job.offload.parameters = v.choice != 0;
          r.job.offload.weights_on_disk = v.choice == kDisk;
        }),
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
    flag("offload.pin_memory", true, "Pinned", "What DeepSpeed offloads is page-locked.")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.offload.pinned = v.boolean; }),
    buffers("offload.optimizer_buffer_count", "4", "Buffers of states",
            "In host memory, each of a sub-group's fp32 elements: offload_optimizer.buffer_count.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.state_buffers = v.integer; }),
    buffers("offload.parameters_buffer_count", "5", "Buffers of weights", "In host memory: offload_param.buffer_count.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.weight_buffers = v.integer; }),
    size("offload.parameters_buffer_size", "100000000", "Size of a buffer of weights",
         "Of each: offload_param.buffer_size.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.weight_buffer_size = v.integer; }),
    size("offload.max_in_cpu", "1000000000", "Weights that stay in host memory",
         "Of each GPU's part, which the disk does not get: offload_param.max_in_cpu.")
        .sets([](Request& r, const OptionValue& v) { r.job.offload.max_in_cpu = v.integer; }),
};

}  // namespace

constinit const Topic kOffloadTopic{{"offload", "Offloading"}, kPacked<kOptions>};

}  // namespace tidemark
