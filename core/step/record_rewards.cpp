#include "core/step/record_rewards.hpp"

#include "core/layers/model_call.hpp"
#include "core/layers/policy.hpp"

namespace tidemark {

// trl 1.9 trainer/grpo_trainer.py: __init__ prepares it for evaluation, with autocast; nobody says use_cache.
void score_by_reward_model(Net& trained, Count answers) {
  Tape& t = trained.tape;
  Scope in(t, "reward_model", "TRL 1.9 trainer/grpo_trainer.py: _calculate_rewards");
  t.begin_segment(Phase::kForward, -1);
  const WithoutGradients quiet(t);
  const std::size_t parameters = t.parameters().size();
  Net& judge = trained.judge(false);
  judge.B = Dim(answers, Symbol::kBatch);
  judge.T = Dim(answers * judge.S.n(), Symbol::kTokens);
  judge.input_ids = t.allocate(Shape{judge.B, judge.S}, Dtype::kInt64, "input_ids");
  judge.attention_mask = t.allocate(Shape{judge.B, judge.S}, Dtype::kInt64, "attention_mask");
  begin_at(behind(trained), trained);
  score_once(judge, trained, true);
  trained.end_micro_step();
  freeze_behind(t, parameters);
}

}  // namespace tidemark
