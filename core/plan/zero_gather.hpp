#pragma once

#include <optional>
#include <vector>

#include "core/plan/sharded.hpp"
#include "core/plan/zero_rollout.hpp"
#include "core/plan/zero_sizes.hpp"

namespace tidemark {

/// DeepSpeed's ZeRO stage 3: each GPU keeps a part of every parameter, of its gradient, master weights and states.
/// Modules' parameters are gathered as the modules run, and ahead of that as far as `max_live` lets; they stay while
/// they are used again soon. From its second step on DeepSpeed knows the order of modules: this is that step.
/// Source: DeepSpeed 0.19.8 runtime/zero/{stage3, partitioned_param_coordinator, partition_parameters}.py.
class ZeroGather : public Sharded {
 public:
  /// `reference`: a frozen copy of the model, of which only forward runs.
  ZeroGather(Tape& tape, const Architecture& architecture, const TrainingJob& job, bool reference = false);

  void collect() override;
  void begin_micro_step(bool last) override;
  void end_micro_steps() override;
  void create_states(OptimizerRun& optimizer) override;
  void step(OptimizerRun& optimizer) override;
  HostMemory host_memory(const LayerPlan& plan) const override;
  void begin_generation() override;
  void end_generation() override;
  void begin_scoring(bool without_adapters) override;
  void send_weights() override;
  void end_rollout() override { let_all_go(); }
  void follow_rollout() override;
  void begin_evaluation() override;
  void follow_evaluation() override;

  void declare(Parameter& p) override;
  void use(std::int32_t parameter) override;
  void rehearse_input(bool has_gradient) override {
    if (!tape_.declares_alone()) input_has_gradient_ = has_gradient;
  }
  void rehearse_hooked_output() override {
    if (tape_.declares_alone()) return;
    reached_ = true;
    if (!backward_.empty()) backward_.back() = true;
  }
  void rehearse_saved() override;
  void enter_layer(std::int16_t instance, bool input_needs_grad) override;
  void leave_layer(std::int16_t instance) override;
  void leave_model() override;
  void begin_token() override;
  void end_token() override;
  void backward_uses(std::int32_t parameter) override;
  Tensor backward_reads(std::int32_t storage) override;
  Tensor gathered(std::int32_t storage) override;
  /// runtime/zero/linear.py LinearFunctionForZeroStage3, which takes F.linear's place (memory_efficient_linear).
  bool linear_keeps_input() const override { return true; }
  void before_backward() override;
  void ran_again(std::int16_t) override { turn_ = next_event_; }
  void take_gradient(std::int32_t parameter, Tensor grad) override;
  void after_backward() override;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Part {
    Count count = 0;  // elements of the whole
    Count share = 0;  // of this GPU's part
    Dtype dtype = Dtype::kBf16;
    bool trained = false;
    bool persists = false;  // it is whole all the time
    bool viewed = false;    // a graph saves views of it, which outlive its release
    bool kept = false;      // it is let go with the whole backward
    bool ahead = false;     // it was gathered for a module that has not run
    Tensor whole, grad;
    Tensor saved;                   // what such a view holds
    std::int32_t flight = -1;       // the all-gather that will bring it, of several at once
    std::size_t module = 0;         // the last in forward_ that wants it
    bool is_noted = false;          // a module that wants it stands in forward_
    std::size_t fetched_for = 0;    // the last use that it has been gathered for, counted from 1
    std::vector<std::size_t> uses;  // events that want it
  };
  // A module's forward or backward: what it wants.
  struct Event {
    std::vector<std::int32_t> parameters;
    Count before = 0;        // elements that all events before it count
    Count counted = 0;       // those that it wants; none of a leaf module's
    std::vector<bool> goes;  // of its parameters, as it ends: empty until it first does
    bool graph = false;      // a graph is made
    bool leaf = false;       // a leaf module's
    bool stays = false;      // it has not ended as the next one begins
    bool again = false;      // a layer that a re-entrant checkpoint runs once more
    bool owned = false;      // what is frozen belongs to the module whose backward has begun: see let_recomputed_go
    bool ends_late = false;  // a lookup's backward: its ids have no gradient that would tell of its end
    bool frees = false;      // what was left to the stack is let go before it
    std::size_t drops = 0;   // events before it that recomputed: what is frozen of theirs goes
    Count ahead = 0;         // modules without parameters of their own that begin before it
    Count layer = 0;         // elements until its layer begins, as a leaf module counts them
    Count end = 0;           // the same until what comes behind it
  };

  // What several parameters travel in, until the last of them is waited for.
  struct Flight {
    Tensor weights, packed;
    std::vector<std::int32_t> parameters;  // in the model's order
    Count waiting = 0;
  };

  Part& part_of(std::int32_t parameter) { return parts_[static_cast<std::size_t>(parameter) - first_]; }
  static Known known(const TrainingJob& job, bool reference);
  void trace();
  void begin_pass(Known known);
  void run_token_up_to(std::int16_t instance);
  void gather_all();
  void let_all_go();
  void pass_forward();
  void note_backward(bool same_module, const Parameter& p, std::int16_t instance, bool is_noted);
  const Parameter& first_of(std::size_t module) const;
  Count elements_of(std::size_t module) const;
  bool is_leaf(const Parameter& p) const;
  bool shares(std::size_t module, std::size_t other, std::size_t length) const;
  std::int32_t read_by_wrapper(std::size_t module, std::size_t length) const;
  void open_containers(std::size_t module, std::size_t from);
  void sort_leaves(bool experts_first);
  void trace_backward(std::size_t begin, std::size_t end);
  void trace_table(bool stays);
  // Where the model's forward reads the head's weight itself.
  enum class HeadRead : std::uint8_t { kBegins, kEnds, kBackward };
  void trace_head(HeadRead read);
  void add_wrapper(std::int32_t parameter);
  void append(Event event, bool foreseen = true);
  void add_event(std::size_t module, bool graph, std::size_t from = kNone);
  std::size_t next_use(const Part& part, std::size_t from) const;
  void run(std::size_t event);
  void run_up_to(std::size_t end);
  void let_go(Part& part, bool graph);
  bool looks_up(std::size_t module) const;
  void let_kept_go();
  void let_recomputed_go(std::size_t event);
  // Of a module's forward: a backward behind it is not thought of as it lets go.
  bool forgets_backward() const {
    return in_rollout_.releases_forward && job_.generates() && !reference_ && next_event_ <= forward_end_;
  }
  Count until_again(const Event& event, const Part& part) const;
  bool is_done_with(const Part& part, const Event& event) const;
  void reduce_held();
  void add_to_bucket(std::int32_t parameter, Tensor grad);
  void fetch(std::int32_t parameter);
  void fetch_alone(std::size_t module);
  void let_last_go();
  void let_left_go();
  std::int32_t parameter_of(std::int32_t storage) const;
  void gather(const std::vector<std::int32_t>& parameters);
  void gather_together(const std::vector<std::int32_t>& missing);
  void arrive(std::int32_t parameter, std::vector<Flight>* landed = nullptr);
  void prefetch();
  void release();
  void reduce_bucket();
  void send_to_host(Count share, Tensor& last, std::vector<Tensor>& wide);
  void swap_out(std::vector<Tensor>&& wide);
  std::vector<Count> sub_groups() const;
  // Of the states; a group that is too small stays in host memory.
  bool on_disk() const;

  Tape& tape_;
  const TrainingJob& job_;
  const DataParallel& how_;
  ZeroSizes sizes_;
  Dtype dtype_;
  bool parts_on_host_, states_on_host_;
  std::vector<Tensor> unswapped_;  // fp32 gradients that the disk does not get, until the step has read them
  bool recomputes_;
  bool leaves_;               // a mixture's blocks are leaf modules
  bool experts_first_;        // they define their experts before the router
  bool saves_experts_whole_;  // no product saves a view of them
  bool body_has_table_;       // the body's forward reads the token table's weight itself, whose owner it is then, too
  bool reads_head_;           // a fused loss reads the head's weight, and does not call the head
  bool stack_ends_;           // backward tells of the stack's end: an encoder's
  bool reference_;
  Known known_;
  KnownInRollout in_rollout_;
  Count micro_steps_ = 0;          // recorded so far
  bool boundary_ = true;           // this one is the last before the optimizer's step
  Count scored_ = 0;               // forwards that score, so far
  bool scores_ = false;            // one runs
  bool whole_ = false;             // all weights are gathered at once
  bool in_token_ = false;          // a further token's forward runs
  std::size_t next_of_token_ = 0;  // then: the next module
  bool blind_ = false;             // nothing is known from here on
  bool keeps_ = false;             // nothing goes before the end of backward
  std::size_t running_ = 0;        // then: the module that runs, counted from 1
  std::size_t first_ = 0;          // parameter of those that are divided here
  std::vector<Part> parts_;
  std::vector<std::vector<std::int32_t>> forward_;  // modules, by what they want
  std::vector<std::int16_t> instances_;             // whose they are
  std::vector<bool> backward_;                      // whether backward comes to them
  std::vector<bool> saves_behind_;                  // whether what follows saves something: a dropout's mask
  std::optional<bool> input_has_gradient_;          // of the module that is noted next, where that is told
  bool reached_ = false;                            // backward comes to what the module noted last hands on
  Count seen_layers_ = 0;                           // modules of layers among those noted
  std::vector<Event> events_;
  Count deep_ = 0, layer_ = 0;  // of what is traced: see Event
  Count ahead_ = 0;
  std::int32_t read_around_ = -1;  // what the module that has just begun around another one reads of a third
  std::size_t forward_end_ = 0;    // events of the forward
  Count root_ = -1;  // Event::end of the forward, behind which the model's own modules want everything once more
  std::vector<std::pair<std::size_t, std::int32_t>> queue_;  // (event, parameter) in order
  std::size_t next_event_ = 0, next_in_queue_ = 0;
  std::size_t turn_ = kNone;  // events before the backward of a layer that a re-entrant checkpoint ran again
  Count live_ = 0;            // elements that are gathered or on their way
  std::vector<Flight> flights_;
  Count filled_ = 0;
  std::vector<std::int32_t> in_bucket_;
  std::vector<std::int32_t> held_;  // of a leaf module whose backward has not ended
  Bytes share_ = 0;                 // of the parts of the weights
  Count trained_share_ = 0;         // elements of those that are trained
};

}  // namespace tidemark
