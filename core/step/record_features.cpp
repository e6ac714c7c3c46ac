// Energy-based fine-tuning: Axolotl 067b021 src/axolotl/core/trainers/ebft/{trainer,rewards}.py.
#include "core/step/record_features.hpp"

#include <algorithm>
#include <utility>

#include "core/layers/model_call.hpp"
#include "core/layers/policy.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {
namespace {

constexpr const char* kFeatures = "Axolotl 067b021 core/trainers/ebft/rewards.py: extract_hidden_states";

/// The copy's head has weights, but no part in it.
WholeOutputs call_copy(Net& copy, Net& trained, const Program& program) {
  Tape& t = copy.tape;
  WholeOutputs made;
  begin_at(behind(trained), trained);
  Tensor body = call_body(copy, trained, false, true, made);
  t.set_stopped(true);
  { const Outputs unused = program.heads.find(copy.arch.head)->forward(copy, program, std::move(body)); }
  t.set_stopped(false);
  return made;
}

}  // namespace

// transformers 5.12 trainer.py: __init__ has switched use_cache off. Right answers, a row to each prompt, come behind
// and need less: there are half as many rows of them at most.
void score_by_features(Net& trained, const Architecture& architecture, const TrainingJob& job, const Program& program) {
  Tape& t = trained.tape;
  Scope in(t, "feature_network", kFeatures);
  t.begin_segment(Phase::kForward, -1);
  const WithoutGradients quiet(t);
  TrainingJob how = job;
  how.micro_batch_size *= job.generated_together();
  how.recipe.autocast = std::nullopt;  // accelerate's is around the module outside
  how.rollout.answer = how.sequence_length;
  Net net(t, architecture, how);
  net.treatments = trained.treatments;
  net.evaluates = net.adapters_off = true;
  take_batch(net, program);
  const Count right = std::max<Count>(1, how.micro_batch_size / job.rollout.per_prompt);
  const Tensor right_ids = t.allocate(Shape{Dim(right), net.S}, Dtype::kInt64, "input_ids");
  const Tensor right_mask = t.allocate(Shape{Dim(right), net.S}, Dtype::kInt64, "attention_mask");
  WholeOutputs made;
  if (job.has_adapter()) {
    t.use_parameters_of(-1);
    net.begin_micro_step();
    made = call_whole(net, net, program, false, false);
    net.end_micro_step();
  } else {
    Net& copy = trained.copy();
    copy.B = net.B;
    copy.T = net.T;
    copy.input_ids = net.input_ids;
    copy.attention_mask = net.attention_mask;
    const std::size_t parameters = t.parameters().size();
    made = call_copy(copy, trained, program);
    freeze_behind(t, parameters);
    copy.input_ids.reset();
    copy.attention_mask.reset();
    trained.end_micro_step();
  }
  {
    const Tensor& body = made.hidden_states.back().second;
    const Shape wide{net.B, net.S, Dim(net.H.n() * job.rollout.features)};
    const Tensor of_batch = t.allocate(wide, body.dtype(), "cat"), joined = t.allocate(wide, body.dtype(), "cat");
  }
  let_go(net, made);
  let_batch_go(net);
}

}  // namespace tidemark
