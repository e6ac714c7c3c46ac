#include <algorithm>
#include <array>

#include "core/options/builders.hpp"
#include "core/options/floats.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kNotYet =
    "Of jobs on several GPUs data, tensor and pipeline parallelism are modelled so far (parallelism.data with fsdp or "
    "zero_stage, .tensor, .pipeline).";

/// One of DeepSpeed's sizes.
// What of a release is looked at.
constexpr std::size_t kLongestRelease = 20;

// "auto" is DeepSpeed's own (runtime/config_utils.py: DeepSpeedConfigModel).
constexpr Option elements(std::string_view name, std::string_view label, std::string_view help) {
  Option option = integer(name, "null", label, help).within(0, 1e15, "elements").further();
  option.automatic = [](Request&) {};
  return option;
}

// "auto" is what the Trainer makes of the model's width (transformers 5.12 integrations/deepspeed.py:
// trainer_config_finalize).
constexpr Option by_width(std::string_view name, std::string_view label, std::string_view help) {
  Option option = elements(name, label, help);
  option.automatic = [](Request& r) { r.job.data_parallel.zero.hf_auto = true; };
  return option;
}

constexpr Choice kFsdp[] = {
    {"none", number(Sharding::kNone), "no FSDP"},
    {"fsdp2", number(Sharding::kFsdp2), "FSDP 2: fully_shard on every layer"},
    {"full_shard", number(Sharding::kFsdp1), "FSDP 1, weights let go after forward"},
    {"shard_grad_op", number(Sharding::kFsdp1), "FSDP 1, weights kept from forward to backward"},
    {"hybrid_shard", number(Sharding::kFsdp1), "FSDP 1, weights let go after forward; see fsdp_options.replicate"},
};

constexpr Choice kDataParallels[] = {
    {"ddp", 0, "a process for each: torchrun, accelerate launch"},
    {"dp", 1,
     "nn.DataParallel: one process, as \"python train.py\" runs the Trainer where it sees several; the first GPU's"},
};

constexpr Choice kFloatsOrAuto[] = {
    {"auto", kNoDtype, "fsdp_bf16: bf16, reduced in fp32; autocast's dtype under autocast; else the weights' own"},
    {"fp32", number(Dtype::kFp32), "32-bit float"},
    {"bf16", number(Dtype::kBf16), "bfloat16"},
    {"fp16", number(Dtype::kFp16), "half precision"},
    {"float32", number(Dtype::kFp32), "", true, "fp32"},
    {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

constexpr Choice kBackwardPrefetch[] = {
    {"backward_pre", number(BackwardPrefetch::kPre), "before the backward of the unit in front of it"},
    {"backward_post", number(BackwardPrefetch::kPost), "after it"},
    {"none", number(BackwardPrefetch::kNone), "not ahead of time"},
    {"null", number(BackwardPrefetch::kNone), "", true, "none"},
};

constexpr Choice kWraps[] = {
    {"auto", 2, "peft beside adapters, as the Trainer asks; layers where use_orig_params is stated as true"},
    {"layers", 0, "each layer is a unit, with what is frozen and what is trained in it"},
    {"peft", 1, "and each trained module without children"},
};

constexpr Choice kSchedules[] = {
    {"1f1b", number(PipelineSchedule::k1F1B), "Schedule1F1B: a backward as soon as there is one"},
    {"gpipe", number(PipelineSchedule::kGPipe), "ScheduleGPipe: all forwards, then all backwards"},
    {"interleaved", number(PipelineSchedule::kInterleaved), "ScheduleInterleaved1F1B: several chunks on each GPU"},
    {"zero_bubble", number(PipelineSchedule::kZeroBubble), "ScheduleInterleavedZeroBubble: backwards cut in two"},
    {"zbv", number(PipelineSchedule::kZeroBubbleV),
     "ScheduleZBVZeroBubble: the same, the second chunk on the way back"},
    {"dualpipev", 0, "a forward and a backward side by side; zbv is the nearest that is modelled", false},
};

constexpr Choice kGroups[] = {
    {"root", number(FsdpGroups::kRoot), "embedding, norm and head stay in the root's unit"},
    {"separate", number(FsdpGroups::kSeparate), "torchtitan: embedding, and norm with head, are units of their own"},
    {"accelerate", number(FsdpGroups::kAccelerate),
     "accelerate from 1.14 on: embedding, and norm with head; a tied table is one unit with norm and head"},
    {"resharded_root", number(FsdpGroups::kReshardedRoot),
     "accelerate until 1.13: the root's unit is let go after forward, too"},
};

bool reads_layout(const Value& value) {
  if (!value.is_array()) return false;
  for (const Value& item : value.items) {
    if (!item.is_integer() || item.integer < 0) return false;
  }
  return true;
}

void layout(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (reads_layout(*v.document)) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/parallelism/pipeline_layout",
                    "Write the number of layers of each stage: [9, 8, 8, 7].", ""});
}

bool reads_reshard(const Value& value) {
  return value.is_bool() || (value.is_integer() && value.integer > 0);
}

void reshard(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (reads_reshard(*v.document)) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/parallelism/reshard_after_forward",
                    "Write true, false, or into how many parts weights are cut after forward.", "true"});
}

void one_way(const OptionValue& v, const ReadSoFar& read, Issues& issues) {
  if (v.choice == number(Sharding::kNone) || read.request.job.data_parallel.sharding == Sharding::kNone) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/parallelism/fsdp",
                    "FSDP and ZeRO divide the same things: state one of parallelism.fsdp and zero_stage.", "none"});
}

Fsdp& fsdp(Request& r) {
  return r.job.data_parallel.fsdp;
}

Zero& zero(Request& r) {
  return r.job.data_parallel.zero;
}

/// "0.19.8" as 0, 19 and 8; what is missing is 0.
std::array<int, 3> release_of(std::string_view text) {
  std::array<int, 3> numbers{};
  std::size_t part = 0;
  for (const char letter : text.substr(0, kLongestRelease)) {
    if (letter == '.') ++part;
    const bool digit = letter >= '0' && letter <= '9';
    if (part == numbers.size() || (letter != '.' && !digit)) break;
    if (digit) numbers[part] = std::min(10 * numbers[part] + (letter - '0'), 1000);
  }
  return numbers;
}

void check_release(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (release_of(v.text) > std::array{0, 0, 0}) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/parallelism/zero/version",
                    "\"parallelism.zero.version\" holds no version number; write DeepSpeed's release (\"0.19.8\").",
                    "0.19.8"});
}

constexpr Option kOptions[] = {
    integer("parallelism.data", "1", "GPUs, data parallel",
            "GPUs that each train on other rows: DistributedDataParallel, or sharded as below.")
        .spelled("--dp,--num-gpus")
        .within(1, 1e6, "GPUs")
        .sets([](Request& r, const OptionValue& v) { r.job.data_parallel.degree = v.integer; }),
    choice("parallelism.data_parallel", "\"ddp\"", kDataParallels, "Data parallel", "Who runs data-parallel GPUs.")
        .further()
        .into<&TrainingJob::data_parallel, &DataParallel::one_process>(),
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
    // torch 2.14 csrc/distributed/c10d/reducer.cpp: initialize_local_used_map makes four bytes for each trained
    // parameter; should_rebuild_buckets leaves the buckets in the order of the parameters, whose sum is the same.
    flag("parallelism.ddp.find_unused", false, "DDP looks for unused parameters",
         "DDP walks the graph for parameters without a gradient, as the Trainer has it; of no effect on memory.")
        .further()
        .known_as("ddp_find_unused_parameters"),
    flag("parallelism.ddp.static_graph", false, "DDP with a static graph",
         "The graph is the same in each step; of no effect on memory.")
        .further(),
    integer("parallelism.tensor", "1", "GPUs, tensor parallel",
            "GPUs that divide heads and feed-forward of every layer: transformers' tp_plan; with the two below torch's "
            "parallelize_module, which divides the vocabulary, too.")
        .spelled("--tp")
        .within(1, 1e6, "GPUs")
        .further()
        .into<&TrainingJob::tensor, &TensorParallel::degree>(),
    integer("parallelism.pipeline", "1", "GPUs, pipeline stages",
            "GPUs that have some of the layers each: torch.distributed.pipelining.")
        .spelled("--pp")
        .within(1, 1e6, "GPUs")
        .further()
        .into<&TrainingJob::pipeline, &Pipeline::stages>(),
    integer("parallelism.device_map", "1", "GPUs, device_map auto",
            "GPUs on which device_map=\"auto\" lays the layers, one after another, in one process (naive).")
        .within(1, 64, "GPUs")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (v.integer == 1 && r.job.pipeline.is_device_map()) r.job.pipeline = {};
          if (v.integer == 1) return;
          r.job.pipeline.stages = v.integer;
          r.job.pipeline.schedule = PipelineSchedule::kDeviceMap;
        }),
    integer("parallelism.context", "1", "GPUs, context parallel",
            "GPUs that have a part of every sequence each: Megatron-Core's.")
        .spelled("--cp")
        .within(1, 1e6, "GPUs")
        .further()
        .into<&TrainingJob::context>(),
    integer(
        "parallelism.expert", "1", "GPUs, expert parallel",
        "GPUs that divide the experts of a mixture: some of the data-parallel ones under Megatron-Core and torchtitan; "
        "transformers' own share a batch.")
        .spelled("--ep")
        .within(1, 1e6, "GPUs")
        .further()
        .into<&TrainingJob::expert>(),
    integer("parallelism.expert_tensor", "null", "GPUs, tensor parallel in experts",
            "GPUs that divide each expert of a mixture: Megatron-Core's; else as many as parallelism.tensor.")
        .within(1, 1e6, "GPUs")
        .further()
        .into<&TrainingJob::expert_tensor>(),
    flag("parallelism.sequence_parallel", false, "Sequence parallel",
         "Outside attention and feed-forward tensor-parallel GPUs have a part of the sequence each.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.tensor.sequence = v.boolean;
          r.open.sequence_parallel = false;
        }),
    integer("parallelism.zero_stage", "0", "ZeRO stage",
            "DeepSpeed: 1 divides optimizer states and master weights, 2 gradients too, 3 weights too.")
        .spelled("--zero")
        .within(0, 3)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          constexpr Sharding kStages[] = {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3};
          if (v.integer > 0) r.job.data_parallel.sharding = kStages[v.integer];
        }),
    choice("parallelism.fsdp", "\"none\"", kFsdp, "FSDP", "Fully sharded data parallelism.")
        .further()
        .checked(one_way)
        .sets([](Request& r, const OptionValue& v) {
          if (v.choice == number(Sharding::kNone)) return;
          r.job.data_parallel.sharding = static_cast<Sharding>(v.choice);
          fsdp(r).keeps_gathered = v.text == "shard_grad_op";
        }),
    integer("parallelism.virtual_pipeline", "1", "Chunks per pipeline stage",
            "Stretches of layers that each GPU of a pipeline has (interleaved).")
        .within(1, 1e6)
        .further()
        .into<&TrainingJob::pipeline, &Pipeline::chunks>(),
    integer("parallelism.num_micro_batches", "null", "Micro-batches in the pipeline",
            "Micro-batches of micro_batch_size rows that a pipeline's step runs; by default as many as it has stages.")
        .within(1, 4096)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.pipeline.micro_batches = v.integer;
          r.open.micro_batches = false;
        }),
    integer("parallelism.gpus_per_node", "8", "GPUs per host",
            "GPUs that share a host: what each keeps in host memory is counted so often.")
        .within(1, 1e6, "GPUs")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.data_parallel.per_node = v.integer; }),
    choice("parallelism.fsdp_mixed_precision.param", "\"auto\"", kFloatsOrAuto, "FSDP weights",
           "Dtype of gathered weights.")
        .further()
        .sets([](Request& r, const OptionValue& v) { store(fsdp(r).param, v); }),
    choice("parallelism.fsdp_mixed_precision.reduce", "\"auto\"", kFloatsOrAuto, "FSDP reduction",
           "Dtype in which gradients are reduced.")
        .further()
        .sets([](Request& r, const OptionValue& v) { store(fsdp(r).reduce, v); }),
    of_type(OptionType::kAny, "parallelism.reshard_after_forward", "true", "Sharded again after forward",
            "Weights are let go after forward: true, false, or the number of parts that they are cut into (FSDP 2).")
        .further()
        .checked(reshard)
        .sets([](Request& r, const OptionValue& v) {
          fsdp(r).reshard_after_forward = !v.document->is_bool() || v.document->boolean;
          fsdp(r).reshard_to = v.document->is_bool() ? 0 : v.document->integer;
          r.open.reshard = false;
        }),
    choice("parallelism.fsdp_options.groups", "\"root\"", kGroups, "FSDP units outside the layers",
           "Which unit holds what lies outside the layers (FSDP 2). Under transformers, TRL, axolotl, LLaMA-Factory, "
           "ms-swift and accelerate it is \"accelerate\" unless it is stated (\"resharded_root\" with transformers 4), "
           "under torchtitan \"separate\".")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          fsdp(r).groups = static_cast<FsdpGroups>(v.choice);
          r.open.fsdp_groups = false;
        }),
    flag("parallelism.fsdp_options.reshard_last", true, "The last layer is sharded again",
         "The last layer's weights are let go after forward, too (FSDP 2); torchtitan keeps them.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          fsdp(r).reshard_last = v.boolean;
          r.open.reshard_last = false;
        }),
    flag("parallelism.fsdp_options.no_sync", false, "Gradients reduced once a step",
         "With gradient accumulation only the last micro-step reduces gradients; until then they are kept whole.")
        .further()
        .sets([](Request& r, const OptionValue& v) { fsdp(r).no_sync = v.boolean; }),
    flag("parallelism.fsdp_options.use_orig_params", true, "Parameters keep their names",
         "FSDP 1: the optimizer sees parameters, not one flat tensor for each unit.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          fsdp(r).use_orig_params = v.boolean;
          if (v.boolean) r.open.fsdp_wrap = false;
        }),
    flag("parallelism.fsdp_options.cpu_ram_efficient_loading", false, "One process reads the model",
         "Of a node; else each does, into host memory.")
        .further()
        .sets([](Request& r, const OptionValue& v) { fsdp(r).cpu_ram_efficient_loading = v.boolean; }),
    flag("parallelism.fsdp_options.limit_all_gathers", true, "All-gathers are limited",
         "FSDP 1: the host waits where more than two all-gathers are under way; moves no allocation.")
        .further(),
    choice("parallelism.fsdp_options.backward_prefetch", "\"backward_pre\"", kBackwardPrefetch, "Gathering in backward",
           "FSDP 1: when the weights that backward needs next are gathered.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          fsdp(r).backward_prefetch = static_cast<BackwardPrefetch>(v.choice);
        }),
    flag("parallelism.fsdp_options.forward_prefetch", false, "Gathering in forward",
         "FSDP 1: the next layer's weights are gathered before a layer runs.")
        .further()
        .sets([](Request& r, const OptionValue& v) { fsdp(r).forward_prefetch = v.boolean; }),
    choice("parallelism.fsdp_options.wrap", "\"auto\"", kWraps, "FSDP 1 units", "Which modules are units (FSDP 1).")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          fsdp(r).trained_leaves = v.choice == 1;
          r.open.fsdp_wrap = v.choice == 2;
        }),
    integer("parallelism.fsdp_options.replicate", "1", "Replicas of all shards",
            "Groups of GPUs that hold all shards each (HSDP); parallelism.data counts all GPUs.")
        .within(1, 1e6)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.data_parallel.replicas = v.integer; }),
    of_type(OptionType::kAny, "parallelism.pipeline_layout", "null", "Layers of each stage",
            "Layers of each pipeline stage, as a list; else they are cut as evenly as they come.")
        .further()
        .checked(layout)
        .sets([](Request& r, const OptionValue& v) {
          r.job.pipeline.layout.clear();
          for (const Value& item : v.document->items) r.job.pipeline.layout.push_back(item.integer);
        }),
    flag("parallelism.zero.hf_auto", false, "ZeRO sizes are \"auto\"",
         "Sizes follow the model's width, as the Trainer resolves \"auto\"; else they are DeepSpeed's own.")
        .further()
        .sets([](Request& r, const OptionValue& v) { zero(r).hf_auto = v.boolean; }),
    flag("parallelism.zero.overlap_comm", true, "Reduction during backward",
         "Two buckets for gradients instead of one.")
        .known_as("deepspeed.overlap_comm")
        .further()
        .sets([](Request& r, const OptionValue& v) { zero(r).overlap = v.boolean; }),
    text("parallelism.zero.version", "null", "DeepSpeed's release",
         "0.19.8; with transformers 4 one before 0.19.3 is taken, which lets go of frozen weights behind re-entrant "
         "checkpoints.")
        .digits()
        .further()
        .checked(check_release)
        .sets([](Request& r, const OptionValue& v) {
          r.open.deepspeed = false;
          zero(r).keeps_frozen = release_of(v.text) >= std::array{0, 19, 3};
        }),
    by_width("parallelism.zero.reduce_bucket_size", "reduce_bucket_size", "Elements of a bucket of gradients.")
        .known_as("deepspeed.reduce_bucket_size")
        .sets([](Request& r, const OptionValue& v) { zero(r).reduce_bucket = v.integer; }),
    by_width("parallelism.zero.stage3_prefetch_bucket_size", "stage3_prefetch_bucket_size",
             "Elements of weights that are gathered ahead.")
        .known_as("deepspeed.stage3_prefetch_bucket_size")
        .sets([](Request& r, const OptionValue& v) { zero(r).prefetch_bucket = v.integer; }),
    by_width("parallelism.zero.stage3_param_persistence_threshold", "stage3_param_persistence_threshold",
             "Parameters of fewer elements stay whole.")
        .known_as("deepspeed.stage3_param_persistence_threshold")
        .sets([](Request& r, const OptionValue& v) { zero(r).persistence_threshold = v.integer; }),
    elements("parallelism.zero.stage3_max_live_parameters", "stage3_max_live_parameters",
             "Elements that may be whole at a time.")
        .known_as("deepspeed.stage3_max_live_parameters")
        .sets([](Request& r, const OptionValue& v) { zero(r).max_live = v.integer; }),
    elements("parallelism.zero.stage3_max_reuse_distance", "stage3_max_reuse_distance",
             "What is used again within so many elements stays whole.")
        .known_as("deepspeed.stage3_max_reuse_distance")
        .sets([](Request& r, const OptionValue& v) { zero(r).max_reuse_distance = v.integer; }),
    elements("parallelism.zero.sub_group_size", "sub_group_size", "Elements of parts that stage 3 steps together.")
        .known_as("deepspeed.sub_group_size")
        .sets([](Request& r, const OptionValue& v) { zero(r).sub_group = v.integer; }),
    flag("parallelism.zero.contiguous_gradients", true, "contiguous_gradients", "Gradients are copied into buckets.")
        .known_as("deepspeed.contiguous_gradients")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (!v.boolean) r.job.stand_ins.emplace_back("gradients that lie apart, answered by those in buckets");
        }),
    flag("parallelism.loss_parallel", false, "Loss parallel",
         "Tensor-parallel GPUs take the loss of the logits that each of them has, without gathering them.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.tensor.loss = v.boolean;
          r.open.loss_parallel = false;
        }),
    choice("parallelism.pipeline_schedule", "\"1f1b\"", kSchedules, "Pipeline schedule",
           "In which order a pipeline runs its micro-batches.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          Pipeline& how = r.job.pipeline;
          if (!how.is_device_map()) how.schedule = static_cast<PipelineSchedule>(v.choice);
        }),
    integer("parallelism.rank", "null", "Rank",
            "The GPU that the answer is about: else the worst of a pipeline, and of ZeRO-1 and -2 the one with the "
            "token table.")
        .within(0, 1e6)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.pipeline.rank = r.job.data_parallel.rank = v.integer; }),
    refused("fsdp", "FSDP", "FSDP in the words of TrainingArguments.", kNotYet),
};

}  // namespace

constinit const Topic kParallelismTopic{{"parallelism", "Parallelism"}, kPacked<kOptions>};

}  // namespace tidemark
