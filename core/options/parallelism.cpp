#include "core/options/builders.hpp"
#include "core/options/floats.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kOneGpuOnly =
    "Of jobs on several GPUs only DistributedDataParallel is modelled so far (parallelism.data alone).";
constexpr std::string_view kNoDdp = "This switch of DistributedDataParallel is not modelled yet.";

constexpr Option degree(std::string_view name, std::string_view label, std::string_view help) {
  return integer(name, "1", label, help).within(1, 1e6, "GPUs").further().refused(kOneGpuOnly);
}

constexpr Choice kFsdp[] = {
    {"none", 0, "no FSDP"},
    {"full_shard", 1, "FSDP 1, ZeRO-3 like", false},
    {"shard_grad_op", 2, "FSDP 1, ZeRO-2 like", false},
    {"hybrid_shard", 3, "FSDP 1, sharded inside a node", false},
    {"fsdp2", 4, "fully_shard", false},
};

constexpr Option kOptions[] = {
    integer("parallelism.data", "1", "GPUs, data parallel",
            "GPUs that each train the whole model on other rows: DistributedDataParallel.")
        .within(1, 1e6, "GPUs")
        .sets([](Request& r, const OptionValue& v) { r.job.data_parallel.degree = v.integer; }),
    flag("parallelism.ddp.gradient_as_bucket_view", false, "Gradients inside the buckets",
         "DDP's gradients are views of its buckets instead of copies beside them.")
        .further()
        .known_as("ddp_gradient_as_bucket_view")
        .sets([](Request& r, const OptionValue& v) { r.job.data_parallel.gradient_as_bucket_view = v.boolean; }),
    real("parallelism.ddp.bucket_cap_mb", "25", "DDP bucket size", "MiB of gradients that DDP reduces together.")
        .within(0, 1e6, "MiB")
        .further()
        .known_as("ddp_bucket_cap_mb")
        .sets([](Request& r, const OptionValue& v) { r.job.data_parallel.bucket_cap_mb = v.real; }),
    flag("parallelism.ddp.find_unused", false, "DDP looks for unused parameters",
         "DDP walks the graph for parameters without a gradient.")
        .further()
        .known_as("ddp_find_unused_parameters")
        .refused(kNoDdp),
    flag("parallelism.ddp.static_graph", false, "DDP with a static graph", "The graph is the same in each step.")
        .further()
        .refused(kNoDdp),
    degree("parallelism.tensor", "Tensor parallel", "Tensor-parallel degree."),
    degree("parallelism.pipeline", "Pipeline stages", "Pipeline stages."),
    degree("parallelism.context", "Context parallel", "Context-parallel degree."),
    degree("parallelism.expert", "Expert parallel", "Expert-parallel degree."),
    degree("parallelism.expert_tensor", "Tensor parallel inside experts", "Tensor-parallel degree inside experts."),
    flag("parallelism.sequence_parallel", false, "Sequence parallel",
         "Activations outside tensor-parallel regions are sharded too.")
        .further()
        .refused(kOneGpuOnly),
    integer("parallelism.zero_stage", "0", "ZeRO stage", "DeepSpeed ZeRO stage.")
        .within(0, 3)
        .further()
        .refused(kOneGpuOnly),
    choice("parallelism.fsdp", "\"none\"", kFsdp, "FSDP", "Fully sharded data parallelism.")
        .further()
        .refused(kOneGpuOnly),
    integer("parallelism.virtual_pipeline", "1", "Chunks per pipeline stage", "Model chunks per pipeline stage.")
        .within(1, 1e6)
        .further()
        .refused(kOneGpuOnly),
    integer("parallelism.num_micro_batches", "1", "Micro-batches in the pipeline", "Micro-batches in a pipeline step.")
        .within(1, 1e9)
        .further()
        .refused(kOneGpuOnly),
    integer("parallelism.gpus_per_node", "8", "GPUs per host", "GPUs that share a host; of no effect on one GPU.")
        .within(1, 1e6, "GPUs")
        .further(),
    choice("parallelism.fsdp_mixed_precision.param", "\"bf16\"", kFloats, "FSDP weights",
           "Dtype of unsharded weights; of no effect on one GPU.")
        .further(),
    choice("parallelism.fsdp_mixed_precision.reduce", "\"fp32\"", kFloats, "FSDP reduction",
           "Dtype of gradient reduction; of no effect on one GPU.")
        .further(),
    flag("parallelism.reshard_after_forward", true, "Sharded again after forward",
         "Weights are sharded again after forward; of no effect on one GPU.")
        .further(),
    of_type(OptionType::kAny, "parallelism.pipeline_layout", "null", "Layers of each stage",
            "Layers of each pipeline stage.")
        .further()
        .refused(kOneGpuOnly),
    refused("parallelism.fsdp_options", "FSDP settings", "Settings of FSDP.", kOneGpuOnly),
    refused("parallelism.zero", "ZeRO settings", "DeepSpeed's own keys.", kOneGpuOnly),
    refused("parallelism.loss_parallel", "Loss parallel", "The loss over shards of the vocabulary.", kOneGpuOnly),
    refused("parallelism.pipeline_schedule", "Pipeline schedule", "1f1b, gpipe, interleaved, zero_bubble.",
            kOneGpuOnly),
    refused("parallelism.rank", "Rank", "The rank that the answer is about.", kOneGpuOnly),
    refused("deepspeed", "DeepSpeed", "A DeepSpeed configuration.", kOneGpuOnly),
    refused("fsdp", "FSDP", "FSDP in the words of TrainingArguments.", kOneGpuOnly),
};

}  // namespace

constinit const Topic kParallelismTopic{{"parallelism", "Parallelism"}, kPacked<kOptions>};

}  // namespace tidemark
