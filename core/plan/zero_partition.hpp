#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/plan/sharded.hpp"

namespace tidemark {

/// DeepSpeed's ZeRO stages 1 and 2: weights lie in one flat tensor on every GPU; of an equal part of it this GPU
/// keeps fp32 master weights and optimizer states. Gradients gather in buckets that are reduced as they fill;
/// stage 2 keeps those alone that overlap this GPU's part.
/// Source: DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py: DeepSpeedZeroOptimizer.
class ZeroPartition : public Sharded {
 public:
  ZeroPartition(Tape& tape, const Architecture& architecture, const TrainingJob& job);

  void collect() override;
  void begin_micro_step(bool last) override { boundary_ = last; }
  void end_micro_steps() override;
  void prepare_step() override;
  void create_states(OptimizerRun& optimizer) override;
  void step(OptimizerRun& optimizer) override;
  HostMemory host_memory(const LayerPlan& plan) const override;
  std::vector<Count> further_ranks() const override;

  void declare(Parameter& p) override;
  void take_gradient(std::int32_t parameter, Tensor grad) override;
  void after_backward() override;
  void reduce_chunk() override;

 private:
  // A trained parameter in the flat tensor.
  struct Part {
    Count offset = 0, count = 0;
    Tensor grad;
    bool came = false;  // a gradient of it, in this backward
  };

  bool partitions_gradients() const { return how_.sharding == Sharding::kZero2; }
  // Elements of it that are this GPU's.
  Count overlap(const Part& part) const {
    return std::min(part.offset + part.count, begin_ + share_) - std::max(part.offset, begin_);
  }
  bool is_ours(const Part& part) const { return part.count > 0 && overlap(part) > 0; }
  Part& part_of(std::int32_t parameter) { return parts_[static_cast<std::size_t>(parameter)]; }
  void set_up_buckets();
  void reduce_all();
  void add_to_bucket(std::int32_t parameter);
  void reduce_bucket();
  void average();
  void keep_ours(Part& part);
  void send_to_host(Part& part);
  void stand_in_for_absent();

  Tape& tape_;
  const Architecture& architecture_;
  const TrainingJob& job_;
  const DataParallel& how_;
  Dtype dtype_;              // of weights and gradients
  Count bucket_size_ = 0;    // elements
  Count share_ = 0;          // elements of the flat tensor that are this GPU's
  Count begin_ = 0;          // where they begin
  bool on_host_;             // master weights and the optimizer are
  Count largest_ = 0;        // elements of the largest trained parameter
  Count ours_ = 0;           // elements of the parameters that overlap them
  bool pipelined_;           // gradients are reduced when all micro-batches are through
  bool boundary_ = true;     // this micro-step is the last before the optimizer's
  std::vector<Part> parts_;  // by parameter
  // IPGBucket
  Tensor buffers_[2];
  int current_ = 0;
  Count filled_ = 0;
  std::vector<std::int32_t> gathered_;
  Tensor kept_;                // grads_in_partition
  Tensor accumulated_;         // those of earlier micro-steps
  std::vector<Tensor> zeros_;  // in place of gradients that never came, kept as long
  Tensor flat_;                // what the optimizer gets
};

}  // namespace tidemark
