#include "core/plan/zero_partition.hpp"

#include <algorithm>
#include <utility>

#include "core/plan/zero_sizes.hpp"

namespace tidemark {
namespace {

constexpr const char* kSource = "DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py: DeepSpeedZeroOptimizer";

// reduction_stream, on which reductions run with overlap_comm.
constexpr Stream kReduction = 1;

}  // namespace

ZeroPartition::ZeroPartition(Tape& tape, const Architecture& architecture, const TrainingJob& job)
    : tape_(tape),
      architecture_(architecture),
      job_(job),
      how_(job.data_parallel),
      dtype_(job.recipe.weights),
      bucket_size_(zero_sizes(architecture, job).reduce_bucket),
      on_host_(job.offload.optimizer),
      pipelined_(job.pipeline.is_used()) {}

// -- who holds what -------------------------------------------------------------------------------------------------

// What is trained becomes a view of the flat tensor; the rest stays as it is, on every GPU.
void ZeroPartition::declare(Parameter& p) {
  if (p.requires_grad) p.storage_bytes = -1;
  parts_.emplace_back();
}

// __init__: the flat tensor is padded to a multiple of two elements for each GPU; a part's master weights are fp32.
void ZeroPartition::collect() {
  Count count = 0;
  for (const std::size_t i : flat_order(tape_.parameters(), parts_.size(), architecture_)) {
    const Parameter& p = tape_.parameters()[i];
    if (!p.requires_grad) continue;
    parts_[i].offset = count;
    parts_[i].count = p.shape.numel();
    count += parts_[i].count;
  }
  const Count alignment = 2 * how_.degree;
  const Count padded = (count + alignment - 1) / alignment * alignment;
  share_ = padded / how_.degree;
  // Where no GPU is named it is the one in whose part the token table begins.
  const Count rank = how_.rank < 0 && share_ > 0 ? parts_.front().offset / share_ : how_.rank;
  begin_ = pipelined_ ? 0 : rank * share_;
  for (const Part& part : parts_) ours_ += is_ours(part) ? part.count : 0;
  const Scope in(tape_, "ZeRO", kSource);
  tape_.resume_parameters_outside_layers();
  tape_.buffer("flat weights", padded * size_of(dtype_), Category::kWeights);
  if (!on_host_) {
    tape_.buffer("master weights", share_ * size_of(Dtype::kFp32), Category::kOptimizerStates);
    return;
  }
  // temp_grad_buffer_for_gpu_offload
  for (const Part& part : parts_) largest_ = std::max(largest_, part.count);
  tape_.buffer("largest gradient", largest_ * size_of(dtype_), Category::kCommunication);
}

// What a GPU copies out of the buckets is as large as all parameters that its part touches, and is there from the last
// of them on, to which backward comes first: most has the GPU that touches most, or the last one.
std::vector<Count> ZeroPartition::further_ranks() const {
  if (pipelined_ || how_.rank >= 0 || share_ == 0) return {};
  std::vector<Count> touched(static_cast<std::size_t>(how_.degree));
  for (const Part& part : parts_) {
    if (part.count == 0) continue;
    const Count last = (part.offset + part.count - 1) / share_;
    for (Count gpu = part.offset / share_; gpu <= last; ++gpu) touched[static_cast<std::size_t>(gpu)] += part.count;
  }
  const Count most = std::max_element(touched.begin(), touched.end()) - touched.begin();
  std::vector<Count> further;
  for (const Count gpu : {how_.degree - 1, most}) {
    if (gpu * share_ != begin_ && (further.empty() || further.front() != gpu)) further.push_back(gpu);
  }
  return further;
}

// __init__: master weights, their gradients, a 16-bit copy and a buffer of the largest gradient, all pinned unless
// pin_memory is false; the states of the optimizer, which runs on the host.
HostMemory ZeroPartition::host_memory(const LayerPlan&) const {
  constexpr Count kFp32Copies = 2;  // weights and gradients
  HostMemory sum;
  if (!on_host_) return sum;
  const bool pinned = job_.offload.pinned;
  sum.keep(share_ * size_of(Dtype::kFp32), pinned, kFp32Copies);
  sum.keep(share_ * size_of(dtype_), pinned);
  sum.keep(largest_ * size_of(dtype_), pinned);
  sum.add(flat_states_on_host(tape_, job_));
  return sum;
}

void ZeroPartition::end_micro_steps() {
  become_flat(tape_, share_);
}

// -- gradients ------------------------------------------------------------------------------------------------------

void ZeroPartition::set_up_buckets() {
  if (buffers_[0].defined()) return;
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  for (int i = 0; i < (how_.zero.overlap ? 2 : 1); ++i) {
    buffers_[i] = tape_.allocate(elements(bucket_size_), dtype_, "ipg_bucket");
  }
  tape_.set_default_category(before);
  current_ = 0;
}

// process_gradients: stage 1 without overlap_comm reduces after backward.
void ZeroPartition::take_gradient(std::int32_t parameter, Tensor grad) {
  Part& part = part_of(parameter);
  if (!part.grad.defined()) part.grad = std::move(grad);
  part.came = true;
  const Scope in(tape_, "ZeRO", kSource);
  set_up_buckets();
  if (partitions_gradients() || (how_.zero.overlap && boundary_ && !pipelined_)) add_to_bucket(parameter);
}

// reduce_independent_p_g_buckets_and_remove_grads: a gradient that is larger than a bucket stays where it is.
void ZeroPartition::add_to_bucket(std::int32_t parameter) {
  Part& part = part_of(parameter);
  if (filled_ + part.count > bucket_size_) {
    reduce_bucket();
    if (how_.zero.overlap) current_ = 1 - current_;
  }
  if (part.count <= bucket_size_) part.grad = buffers_[current_];
  filled_ += part.count;
  gathered_.push_back(parameter);
}

// average_tensor, allreduce_and_scatter: slices by the GPU that they belong to, one after another in the bucket, are
// reduced as soon as they are more than a bucket; several are copied into one tensor first (flatten).
void ZeroPartition::average() {
  Count slices = 0, count = 0, owner = -1;
  Tensor copy;
  const auto flush = [&] {
    if (slices > 1) copy = tape_.allocate(elements(count), dtype_, "flatten");
    copy.reset();
    slices = count = 0;
  };
  std::vector<std::pair<Count, Count>> pieces;  // GPU, elements
  for (const std::int32_t p : gathered_) {
    const Part& part = part_of(p);
    for (Count at = part.offset; at < part.offset + part.count;) {
      const Count gpu = at / share_;
      const Count end = std::min((gpu + 1) * share_, part.offset + part.count);
      if (gpu != owner) pieces.emplace_back(gpu, 0);
      pieces.back().second += end - at;
      owner = gpu;
      at = end;
    }
  }
  for (const auto& piece : pieces) {
    ++slices;
    count += piece.second;
    if (count > bucket_size_) flush();
  }
  if (slices > 0) flush();
}

// reduce_ipg_grads: what overlaps this GPU's part is copied out of the bucket; stage 2 lets go of the rest.
void ZeroPartition::reduce_bucket() {
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kCommunication);
  if (how_.zero.overlap) tape_.set_stream(kReduction);
  average();
  for (const std::int32_t p : gathered_) {
    if (is_ours(part_of(p))) {
      keep_ours(part_of(p));
    } else if (partitions_gradients()) {
      part_of(p).grad.reset();
    }
  }
  tape_.set_stream(kMainStream);
  tape_.set_default_category(before);
  gathered_.clear();
  filled_ = 0;
}

// copy_grads_in_partition with the optimizer on the host: the norm in fp64 (set_norm_for_param_grad_in_gpu), then an
// fp32 copy that is sent there.
void ZeroPartition::send_to_host(Part& part) {
  const Count ours = overlap(part);
  { const Tensor wide = tape_.allocate(elements(ours * 2), Dtype::kFp32, "to fp64 (norm)"); }
  { const Tensor copy = tape_.allocate(elements(ours), Dtype::kFp32, "to fp32"); }
  part.grad.reset();
}

// copy_grads_in_partition
void ZeroPartition::keep_ours(Part& part) {
  if (on_host_) return send_to_host(part);
  if (!kept_.defined()) {
    kept_ = tape_.allocate(elements(ours_), dtype_, "grads_in_partition");
    tape_.set_category(kept_, Category::kGradients);
  }
  part.grad = kept_;
}

// independent_gradient_partition_epilogue, which stage 1 runs in a step's last micro-step alone.
void ZeroPartition::after_backward() {
  if (!pipelined_) reduce_all();
}

// runtime/pipe/engine.py _exec_reduce_grads, then reduce_gradients(pipeline_parallel=True).
void ZeroPartition::reduce_chunk() {
  tape_.begin_segment(Phase::kReduce, -1);
  reduce_all();
}

void ZeroPartition::reduce_all() {
  if (!partitions_gradients() && !boundary_) return;
  const Scope in(tape_, "ZeRO", kSource);
  if (!partitions_gradients() && (!how_.zero.overlap || pipelined_)) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].grad.defined()) add_to_bucket(static_cast<std::int32_t>(i));
    }
  }
  reduce_bucket();
  if (!accumulated_.defined()) accumulated_ = kept_;
  for (Tensor& buffer : buffers_) buffer.reset();
  kept_.reset();
  stand_in_for_absent();
  for (Part& part : parts_) {
    part.grad.reset();
    part.came = false;
  }
}

// get_all_grad_tensors: zeros of a whole parameter's shape for each that got no gradient, a tower without pictures,
// say. Those of the first micro-step stay, those of later ones are added to them.
void ZeroPartition::stand_in_for_absent() {
  if (on_host_) return;
  std::vector<Tensor> zeros;
  for (const Part& part : parts_) {
    if (part.came || !is_ours(part)) continue;
    zeros.push_back(tape_.allocate(elements(part.count), dtype_, "zeros_like"));
    tape_.set_category(zeros.back(), Category::kGradients);
  }
  if (zeros_.empty()) zeros_ = std::move(zeros);
}

// -- the optimizer --------------------------------------------------------------------------------------------------

// step: norms in fp64 of each gradient, then one flat fp32 gradient.
void ZeroPartition::prepare_step() {
  if (on_host_) return;
  const Scope in(tape_, "ZeRO", kSource);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kWorkspace);
  Count slices = 0;
  for (const Part& part : parts_) {
    if (!is_ours(part)) continue;
    ++slices;
    const Count count = overlap(part);
    const Tensor wide = tape_.allocate(elements(count * 2), Dtype::kFp32, "to fp64 (norm)");
  }
  Tensor flat;
  if (slices > 1) flat = tape_.allocate(elements(share_), dtype_, "flatten");
  flat_ = tape_.allocate(elements(share_), Dtype::kFp32, "gradient of the part");
  tape_.set_category(flat_, Category::kGradients);
  flat.reset();
  accumulated_.reset();
  zeros_.clear();
  tape_.set_default_category(before);
}

void ZeroPartition::create_states(OptimizerRun& optimizer) {
  if (!on_host_) create_flat_states(optimizer);
}

void ZeroPartition::step(OptimizerRun& optimizer) {
  if (on_host_) return;
  const Scope in(tape_, "ZeRO", kSource);
  const Category before = tape_.default_category();
  tape_.set_default_category(Category::kWorkspace);
  step_flat(optimizer);
  flat_.reset();
  tape_.set_default_category(before);
}

}  // namespace tidemark
