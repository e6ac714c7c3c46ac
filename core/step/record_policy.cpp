// TRL 1.9 experimental/ppo/ppo_trainer.py: PPOTrainer.train.
#include "core/step/record_policy.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/layers/model_call.hpp"
#include "core/layers/preferences.hpp"

namespace tidemark {
namespace {

constexpr const char* kTrain = "TRL 1.9 experimental/ppo/ppo_trainer.py: train";
constexpr const char* kValue = "TRL 1.9 experimental/ppo/ppo_trainer.py: PolicyAndValueWrapper";

class PolicySteps {
 public:
  PolicySteps(Net& net, const Program& program) : net_(net), program_(program) { declare(); }
  ~PolicySteps() {
    probabilities_.reset();
    let_go(net_, names_);
  }
  PolicySteps(const PolicySteps&) = delete;
  PolicySteps& operator=(const PolicySteps&) = delete;

  void run() {
    Tape& t = net_.tape;
    ++calls_;
    t.begin_segment(Phase::kForward, -1);
    t.use_parameters_of(-1);
    take_batch(net_, program_);
    {
      Scored scored = forward();
      t.begin_segment(Phase::kLoss, -1);
      Tensor root = ppo_loss(net_, names_.outputs.rest.front(), std::move(scored.values));
      t.backward(std::move(root));
    }
    t.begin_segment(Phase::kBackward, -1);
    t.let_graph_go();
    net_.end_micro_step();
    // Behind the last micro-batch gradients are gone before.
    const bool is_last = net_.job.gradient_accumulation_steps == 1 || calls_ > 1;
    if (!is_last) log_policy(net_, names_.outputs.rest.front(), probabilities_);
    let_batch_go(net_);
  }

 private:
  // Parameters are told apart by the order they are declared in: those that are generated with come first.
  void declare() {
    Tape& t = net_.tape;
    const WithoutGradients quiet(t);
    t.set_stopped(true);
    t.begin_segment(Phase::kForward, -1);
    t.use_parameters_of(-1);
    take_batch(net_, program_);
    net_.begin_micro_step();
    { const Outputs unused = call_model(net_, program_); }
    net_.end_micro_step();
    let_batch_go(net_);
    t.set_stopped(false);
    value_ = behind(net_);
  }

  // PolicyAndValueWrapper.forward: the value model's own outputs have a name until it returns. What had the names of
  // this micro-batch's outputs goes then.
  Scored forward() {
    Tape& t = net_.tape;
    Net& value = net_.judge(true);
    value.input_ids = net_.input_ids;
    value.attention_mask = net_.attention_mask;
    t.set_autocast(net_.job.recipe.autocast);
    Scored scored;
    {
      const Scope in(t, "value_model", kValue);
      begin_at(value_, net_);
      scored = call_judge(value, net_, true);
    }
    t.begin_segment(Phase::kForward, -1);
    t.use_parameters_of(-1);
    net_.begin_micro_step();
    WholeOutputs made = call_whole(net_, net_, program_, true);
    let_go(net_, scored.rest);
    let_go(net_, names_);
    names_ = std::move(made);
    value.input_ids.reset();
    value.attention_mask.reset();
    return scored;
  }

  Net& net_;
  const Program& program_;
  Place value_;
  WholeOutputs names_;    // output
  Tensor probabilities_;  // prob_dist
  int calls_ = 0;
};

/// Another number of rows than training's.
void widen(Net& net, Count rows) {
  net.B = Dim(rows, Symbol::kBatch);
  net.T = Dim(rows * net.S.n(), Symbol::kTokens);
}

void share_batch(const Net& from, Net& to) {
  to.input_ids = from.input_ids;
  to.attention_mask = from.attention_mask;
}

void let_batch_of(Net& net) {
  net.input_ids.reset();
  net.attention_mask.reset();
}

}  // namespace

std::function<void()> policy_steps(Net& net, const Program& program) {
  const auto steps = std::make_shared<PolicySteps>(net, program);
  return [steps] { steps->run(); };
}

Count policy_rows(const TrainingJob& job) {
  return std::min(job.rollout.rows_at_once, job.micro_batch_size * job.generated_together());
}

void score_policy(Simulation& s, Net& trained, const Architecture& architecture, const TrainingJob& job,
                  const Program& program) {
  Tape& t = trained.tape;
  Scope in(t, "", kTrain);
  t.begin_segment(Phase::kForward, -1);
  const WithoutGradients quiet(t);
  TrainingJob how = job;
  how.micro_batch_size = policy_rows(job);
  how.recipe.autocast = std::nullopt;  // accelerate has prepared the module around policy and value model alone
  const std::size_t parameters = t.parameters().size();
  Net policy(t, architecture, how);
  policy.treatments = trained.treatments;
  policy.evaluates = true;
  take_batch(policy, program);
  const auto score = [&](Net& net, Net& whole) {
    WholeOutputs made = call_whole(net, whole, program, false);
    t.begin_segment(Phase::kLoss, -1);
    score_answers(net, made.outputs.rest.front());
    let_go(net, made);
  };
  if (job.reference == Reference::kAdapterOff) {
    policy.adapters_off = true;
    t.use_parameters_of(-1);
    policy.begin_micro_step();
    score(policy, policy);
  } else if (job.reference == Reference::kCopy) {
    Scope in_copy(t, "ref_model", kTrain);
    Net& copy = trained.copy();
    widen(copy, how.micro_batch_size);
    share_batch(policy, copy);
    begin_at(behind(trained), trained);
    score(copy, trained);
    let_batch_of(copy);
  }
  const auto judge = [&](const Place& place) {
    Net& net = trained.judge(false);
    widen(net, how.micro_batch_size);
    share_batch(policy, net);
    t.begin_segment(Phase::kForward, -1);
    begin_at(place, trained);
    Scored scored = call_judge(net, trained, false);
    let_go(trained, scored.rest);
    let_batch_of(net);
  };
  // The value model's forward makes what the reward model's makes.
  {
    Scope in_reward(t, "reward_model", kTrain);
    judge(behind(trained));
  }
  trained.end_micro_step();
  policy.end_micro_step();
  let_batch_go(policy);
  freeze_behind(t, parameters);
  s.plan = trained.plan();
}

}  // namespace tidemark
