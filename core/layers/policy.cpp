// TRL 1.9 experimental/ppo/ppo_trainer.py: forward, PolicyAndValueWrapper, train; experimental/utils.py: get_reward.
#include "core/layers/policy.hpp"

#include <algorithm>
#include <utility>

#include "core/layers/model_call.hpp"
#include "core/layers/preferences.hpp"

namespace tidemark {
namespace {

constexpr const char* kJudge = "TRL 1.9 experimental/ppo/ppo_trainer.py: PolicyAndValueWrapper.forward; get_reward";
constexpr const char* kMetrics = "TRL 1.9 experimental/ppo/ppo_trainer.py: train (prob_dist, entropy)";

// accelerate 1.14 utils/operations.py: convert_to_fp32: all hidden states, each where its layer is.
void convert_hidden_states(Net& net, WholeOutputs& made) {
  Tape& t = net.tape;
  auto wide = made.hidden_states;
  for (auto& [instance, hidden] : wide) {
    t.begin_segment(t.phase(), instance);
    hidden = to(std::move(hidden), Dtype::kFp32);
  }
  for (auto& [instance, hidden] : made.hidden_states) {
    t.begin_segment(t.phase(), instance);
    hidden.reset();
  }
  t.begin_segment(t.phase(), -1);
  made.hidden_states = std::move(wide);
}

}  // namespace

Place behind(const Net& net) {
  const auto outside = [](const auto& of, auto instance) { return std::count_if(of.begin(), of.end(), instance); };
  Place place;
  place.stack = net.plan().stacks.size();
  place.parameters =
      static_cast<std::size_t>(outside(net.tape.parameters(), [](const Parameter& p) { return p.instance < 0; }));
  place.buffers = outside(net.tape.buffer_instances(), [](std::int16_t instance) { return instance < 0; });
  return place;
}

void begin_at(const Place& place, Net& whole) {
  Tape& t = whole.tape;
  whole.begin_micro_step(place.stack);
  t.use_parameters_of(-1);
  t.set_parameter_place(place.parameters);
  for (Count k = 0; k < place.buffers; ++k) t.buffer("", 0);
}

void let_go(Net& net, WholeOutputs& names) {
  Tape& t = net.tape;
  names.outputs = {};
  let_cache_go(net, names.cache);
  for (auto& [instance, hidden] : names.hidden_states) {
    t.begin_segment(t.phase(), instance);
    hidden.reset();
  }
  names.hidden_states.clear();
  t.begin_segment(t.phase(), -1);
}

WholeOutputs call_whole(Net& net, Net& whole, const Program& program, bool prepared, bool caches) {
  WholeOutputs made;
  if (caches) whole.keep_in(&made.cache);
  net.hands_out_all = true;
  made.outputs = call_model(net, program, prepared);
  net.hands_out_all = false;
  whole.keep_in(nullptr);
  made.hidden_states = std::exchange(net.handed_out, {});
  if (prepared && net.job.recipe.autocast && net.job.outputs_to_fp32) convert_hidden_states(net, made);
  return made;
}

Tensor call_body(Net& net, Net& whole, bool caches, bool hands_out, WholeOutputs& made) {
  if (caches) whole.keep_in(&made.cache);
  net.hands_out_all = hands_out;
  Tensor body = net.arch.program->forward(net);
  net.hands_out_all = false;
  whole.keep_in(nullptr);
  made.hidden_states = std::exchange(net.handed_out, {});
  made.hidden_states.emplace_back(-1, body);
  net.leave_body(body);
  net.last_hidden.reset();
  net.shared = {};
  net.wrapper_locals.clear();
  return body;
}

Scored call_judge(Net& judge, Net& whole, bool caches, bool hands_out) {
  Scope in(judge.tape, "", kJudge);
  const Program& program = *judge.arch.program;
  Scored made;
  Tensor body = call_body(judge, whole, caches, hands_out, made.rest);
  made.values = judge.classifier(program.decoder_heads.sequence_module, std::move(body), Dim(1), false);
  return made;
}

void score_once(Net& judge, Net& whole, bool caches) {
  Tape& t = judge.tape;
  t.set_autocast(judge.job.recipe.autocast);
  {
    Scored scored = call_judge(judge, whole, caches, false);
    let_go(whole, scored.rest);
  }
  t.set_autocast(std::nullopt);
  t.clear_autocast_cache();
  judge.input_ids.reset();
  judge.attention_mask.reset();
}

void freeze_behind(Tape& tape, std::size_t parameters) {
  std::vector<Parameter>& all = tape.parameters();
  for (std::size_t i = parameters; i < all.size(); ++i) all[i].requires_grad = false;
}

void log_policy(Net& net, const Tensor& logits, Tensor& probabilities) {
  Scope in(net.tape, "metrics", kMetrics);
  const WithoutGradients quiet(net.tape);
  const Shape shape{logits.dim(0), Dim(net.job.answer_length()), logits.dim(2)};
  const auto some = [&](const char* op) { return net.tape.allocate(shape, logits.dtype(), op); };
  probabilities = some("softmax");
  { const Tensor exponents = some("exp"); }
  const Tensor products = some("mul");
}

}  // namespace tidemark
