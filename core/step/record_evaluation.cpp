#include "core/step/record_evaluation.hpp"

#include <algorithm>
#include <utility>

#include "core/layers/kv_cache.hpp"
#include "core/layers/label_smoothing.hpp"
#include "core/layers/model_call.hpp"
#include "core/layers/policy.hpp"
#include "core/layers/preferences.hpp"
#include "core/layers/prompts.hpp"
#include "core/plan/sharded.hpp"
#include "core/plan/zero_rollout.hpp"
#include "core/step/record_features.hpp"
#include "core/step/record_policy.hpp"
#include "core/step/record_rewards.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {
namespace {

constexpr const char* kEvaluation = "transformers 5.12 trainer.py: evaluation_loop, prediction_step";
constexpr const char* kRollout = "TRL 1.9 trainer/grpo_trainer.py: _generate_and_score_completions";
constexpr const char* kTeacher = "ms-swift 3602360a rlhf_trainers/grpo_trainer.py: _compute_teacher_logps";
constexpr const char* kVllm =
    "TRL 1.9 generation/vllm_generation.py: gpu_memory_utilization; vLLM v1/worker/utils.py: request_memory";
constexpr const char* kGenerate = "transformers 5.12 generation/utils.py: _prefill, _sample, _beam_search";

// What evaluation_loop keeps of all batches and GPUs where metrics are computed of logits: these, or labels
// (transformers 5.12 trainer_pt_utils.py: EvalLoopContainer.add). As the last batch begins those of all before it are
// there.
class Kept {
 public:
  Kept(Tape& tape, const TrainingJob& job) : tape_(tape), batch_(job.evaluation.micro_batch_size) {
    const DataParallel& how = job.data_parallel;
    together_ = batch_ * (how.is_used() && !how.is_one_process() ? how.degree : 1);
    earlier_ = std::max<Count>(job.evaluation.samples - together_, 0);
  }
  bool has_earlier() const { return earlier_ > 0; }

  /// Of a batch that stands for all but the last: until the next one's are there, its own have a name.
  void begin(std::vector<Tensor> of_batch) {
    name_ = gather(std::move(of_batch));
    all_ = earlier_ > together_ ? sized(name_, together_, earlier_) : name_;
  }
  /// Of the last: what was there lives beside the whole.
  void join(std::vector<Tensor> of_batch) {
    name_.clear();
    name_ = gather(std::move(of_batch));
    if (has_earlier()) all_ = sized(name_, together_, earlier_ + together_);
  }

 private:
  // accelerate 1.14 utils/operations.py: _gpu_gather.
  std::vector<Tensor> gather(std::vector<Tensor> of_batch) {
    return together_ > batch_ ? sized(of_batch, batch_, together_) : of_batch;
  }
  // The same of another number of samples.
  std::vector<Tensor> sized(const std::vector<Tensor>& like, Count before, Count samples) {
    std::vector<Tensor> made;
    for (const Tensor& one : like) {
      Shape shape = one.shape();
      shape.dims[0] = Dim(shape.size(0) / before * samples);
      shape.make_contiguous();
      made.push_back(tape_.allocate(shape, one.dtype(), "predictions"));
    }
    return made;
  }

  Tape& tape_;
  Count batch_;         // samples of one GPU's batch
  Count together_ = 1;  // the same of all GPUs
  Count earlier_ = 0;   // in the batches before the last
  std::vector<Tensor> all_, name_;
};

// "logits_to_keep": the head sees the last token of each row.
Tensor last_logits(Net& net, const Program& program, const Tensor& hidden) {
  if (program.lm_head == nullptr) return {};
  return program.lm_head(net, narrow(hidden, 1, hidden.size(1) - 1, Dim(1)));
}

// They are copied to fp32 for the choice of a token; beams add their own scores to the logarithms. What is sampled from
// has names of its own until the next token's is there (ATen/native/Distributions.cpp multinomial_out: one draw is the
// largest of as many quotients).
void choose_token(Net& net, const Tensor& logits, std::vector<Tensor>& names) {
  if (!logits.defined()) return;
  const auto copy = [&](const char* op) { return net.tape.allocate(logits.shape(), Dtype::kFp32, op); };
  Tensor scores = copy("to");
  names.clear();
  if (net.job.rolls_out()) {
    Tensor tempered;
    // A temperature other than 1: TemperatureLogitsWarper.
    if (net.job.has_critic() || net.job.generates_pairs()) tempered = copy("div");
    Tensor probabilities = copy("softmax");
    const Tensor draws = copy("multinomial: exponential_");
    names = {std::move(scores), std::move(probabilities), std::move(tempered)};
    return;
  }
  if (net.job.evaluation.beams == 1) return;
  const Tensor logarithms = copy("log_softmax");
  const Tensor sums = copy("add");
}

// generate(): a forward of the whole prompt that keeps keys and values, then one of a token for each further one. Of
// these the last two run, where the cache is at its largest. Without a cache (`keeps`) each is one of all tokens.
void generate(const Net& trained, const Architecture& calm, const TrainingJob& job, const Program& program,
              bool keeps = true) {
  Tape& t = trained.tape;
  Scope in(t, "", kGenerate);
  TrainingJob how = job;
  const bool decodes = calm.num_decoder_layers > 0;
  if (t.placement() != nullptr) t.placement()->enter_model();
  if (!decodes) how.micro_batch_size *= job.evaluation.beams;
  const Count labels = job.decoder_sequence_length > 0 ? job.decoder_sequence_length : job.sequence_length;
  const Count new_tokens = job.evaluation.new_tokens > 0 ? job.evaluation.new_tokens : labels;
  if (decodes) how.decoder_sequence_length = 1;
  // Autocast is around the forward of what accelerate has prepared; PeftModel.generate calls that of the model inside.
  if (job.has_adapter() || job.has_critic()) how.recipe.autocast = std::nullopt;
  KvCache cache;
  Net net(t, calm, how);
  net.treatments = trained.treatments;
  net.evaluates = true;
  if (keeps) net.keep_in(&cache);
  const WithoutGradients quiet(t);
  take_batch(net, program);
  t.set_autocast(how.recipe.autocast);
  const Count prompt = decodes ? 1 : net.S.n();
  const Tensor hidden = program.forward(net);
  net.leave_body(hidden);
  net.keep_in(nullptr);
  Tensor logits = last_logits(net, program, hidden);
  if (t.placement() != nullptr) t.placement()->leave_model();
  std::vector<Tensor> names;
  choose_token(net, logits, names);
  // TRL 1.9 experimental/ppo/ppo_trainer.py: generate: output_scores: what each token was drawn from, in fp32.
  Tensor scores;
  if (job.has_critic()) scores = t.allocate(Shape{Dim(new_tokens), net.B, net.V}, Dtype::kFp32, "scores");
  for (const Count behind : {Count{2}, Count{1}}) {
    if (new_tokens > behind) decode_until(net, cache, prompt + new_tokens - behind);
  }
  choose_token(net, logits, names);  // those of a further token are as large
  logits.reset();
  names.clear();
  if (scores.defined()) const Tensor stacked = t.allocate(scores.shape(), Dtype::kFp32, "stack");
  scores.reset();
  t.set_autocast(std::nullopt);
  t.clear_autocast_cache();
  let_cache_go(net, cache);
  net.last_hidden.reset();
  net.encoder_hidden.reset();
  net.model_locals.clear();
  net.wrapper_locals.clear();
  net.end_micro_step();
  let_batch_go(net);
}

}  // namespace

namespace {

// evaluation_loop's next batch, by prediction_step. `divided`: what the model and its reference are called by, where
// their weights are divided.
Outputs evaluate(Net& net, const Program& program, const Divided& divided) {
  Tape& t = net.tape;
  t.begin_segment(Phase::kForward, -1);
  t.use_parameters_of(-1);
  take_batch(net, program);
  if (divided.own != nullptr) {
    divided.own->begin_evaluation();
    divided.own->enter_model();
  }
  if (divided.reference != nullptr) divided.reference->begin_scoring(false);
  net.holds_outputs = true;
  Outputs outputs = call_model(net, program);
  if (net.job.preference != Preference::kNone) {
    outputs.loss = preference_loss(net, program, outputs.rest.front(), {divided.own, divided.reference});
  }
  if (net.job.label_smoothing > 0.0) outputs.loss = label_smoothed_loss(net, outputs);
  log_sft_metrics(net, outputs);
  let_prefix_go(net);
  return outputs;
}

void record_batches(const Net& trained, const Architecture& calm, const TrainingJob& how, const Program& program,
                    const Divided& divided) {
  Tape& t = trained.tape;
  Kept logits(t, how), labels(t, how);
  const bool keeps = how.evaluation.keeps_logits;
  const int batches = divided.own != nullptr || (keeps && logits.has_earlier()) ? 2 : 1;
  for (int batch = 1; batch <= batches; ++batch) {
    Net net(t, calm, how);
    net.treatments = trained.treatments;
    net.evaluates = true;
    Outputs outputs = evaluate(net, program, divided);
    const auto keep = [&](Kept& kept, std::vector<Tensor> made) {
      batch < batches ? kept.begin(std::move(made)) : kept.join(std::move(made));
    };
    if (keeps) {
      keep(logits, std::move(outputs.rest));
      if (net.labels.defined()) keep(labels, {net.labels});
    }
    outputs = {};
    net.let_image_outputs_go();
    net.end_micro_step();
    let_batch_go(net);
  }
}

void exchange(Tape& t, std::vector<Declared>& declared) {
  for (std::size_t i = 0; i < declared.size(); ++i) {
    Parameter& p = t.parameters()[i];
    std::swap(p.shape, declared[i].shape);
    std::swap(p.dtype, declared[i].dtype);
    std::swap(p.instance, declared[i].instance);
  }
}

}  // namespace

std::size_t record_evaluation(const Net& trained, const Architecture& architecture, const TrainingJob& job,
                              const Program& program, std::vector<Declared>& declared, const Divided& divided) {
  Tape& t = trained.tape;
  Scope in(t, "", kEvaluation);
  const Architecture calm = without_dropout(architecture);
  TrainingJob how = job;
  how.micro_batch_size = job.evaluation.micro_batch_size;
  how.adapter.lora_dropout = 0.0;
  // Liger-Kernel 0.8 model/llama.py: skip_logits in training. unsloth 2026.8.19 models/llama.py: CausalLM_fast_forward
  // and unsloth_zoo 2026.8.13 compiler.py give a loss and no logits wherever there are labels.
  if (how.loss == Loss::kLiger && how.framework.name != "unsloth") how.loss = Loss::kDefault;
  const std::size_t first = t.segments().size();
  // self.model: of DeepSpeed's first stages, whose optimizer alone divides something, not what is trained.
  Placement* const placement = t.placement();
  if (job.data_parallel.is_sharded()) t.set_placement(divided.own);
  exchange(t, declared);
  t.begin_segment(Phase::kForward, -1);
  t.use_parameters_of(-1);
  if (job.evaluation.generates) generate(trained, calm, how, program);
  {
    const WithoutGradients quiet(t);
    record_batches(trained, calm, how, program, divided);
  }
  if (divided.own != nullptr) divided.own->end_rollout();
  t.break_segment();
  t.set_placement(placement);
  exchange(t, declared);
  return first;
}

namespace {

/// A forward without gradients for each micro-batch that was generated: the names of one hold its logits until those of
/// the next are there, so that a second one shows the peak. `whole` is what `net` is a part of, `divided` what divides
/// its weights: TRL prepares a copy without accelerate's autocast then (models/utils.py: prepare_deepspeed,
/// prepare_fsdp).
void score(Net& net, Net& whole, const Program& program, Count batches, const Place& place, Sharded* divided) {
  Tensor logits;
  const bool prepared = divided == nullptr || &net == &whole;
  for (Count i = 0; i < std::min<Count>(batches, 2); ++i) {
    begin_at(place, whole);
    if (divided != nullptr) {
      divided->begin_scoring(net.adapters_off);
      divided->enter_model();
    }
    Outputs outputs = call_without_gradients(net, program, prepared);
    logits = std::move(outputs.rest.front());
    score_answers(net, logits);
  }
}

/// The same of a copy of the model. Of one that is divided all parameters are asked for beforehand.
void score_copy(Net& copy, Net& trained, const Program& program, Count batches, Sharded* own, Sharded* divided) {
  Tape& t = copy.tape;
  const Place place = behind(trained);
  if (divided != nullptr) {
    t.set_placement(divided);
    t.set_stopped(true);
    score(copy, trained, program, 1, place, divided);
    t.set_stopped(false);
    divided->collect();
  }
  score(copy, trained, program, batches, place, divided);
  if (divided == nullptr) return;
  divided->end_rollout();
  t.set_placement(own);
}

Tensor allocate_bytes(Tape& t, Bytes bytes, const char* name) {
  Tensor out = t.allocate(Shape{Dim(bytes)}, Dtype::kBool, name);
  t.set_category(out, Category::kBuffers);
  return out;
}

/// Ids and masks of prompts and answers, advantages and what was scored, until the next ones replace them.
Bytes buffered_bytes(const TrainingJob& job, Count answers) {
  const bool others = job.rollout.engine != RolloutEngine::kTransformers,
             by_whole = job.preference == Preference::kRloo;
  const Count of_tokens =
      Count{scores_itself(job)} + Count{others} + Count{job.reference != Reference::kNone} + Count{job.has_teacher()};
  const Count scored = by_whole ? 2 : 1 + job.answer_length() * of_tokens;  // advantages are among them
  return answers * (job.sequence_length * 2 * size_of(Dtype::kInt64) + scored * size_of(Dtype::kFp32));
}

/// PPOTrainer's batch_generation: rows after rows, then all in one; the logits of all keep a name until the next are
/// there.
Bytes logits_of_answers(const Net& net, Count rows) {
  return rows * net.job.answer_length() * net.V.n() * size_of(Dtype::kFp32);
}

/// vLLM on the same card, which keeps its share or gives it back while the model trains.
void generate_by_vllm(Tape& t, const Rollout& rollout) {
  if (rollout.reserved == 0 || !rollout.sleeps) return;
  Scope in(t, "vLLM", kVllm);
  const Tensor woken = allocate_bytes(t, rollout.reserved, "its share of the card");
}

}  // namespace

std::vector<Declared> declared_in(const Tape& tape) {
  std::vector<Declared> all;
  for (const Parameter& p : tape.parameters()) all.push_back({p.shape, p.dtype, p.instance});
  return all;
}

void record_rollout(Simulation& s, Net& trained, const Architecture& architecture, const TrainingJob& job,
                    const Program& program, std::vector<Declared>& declared, const Divided& divided) {
  Tape& t = trained.tape;
  const Rollout& rollout = job.rollout;
  // self.model: where its weights are whole on every GPU it is not what DDP or DeepSpeed's engine make of it.
  Placement* const placement = t.placement();
  t.set_placement(divided.own);
  exchange(t, declared);
  const Count batches = job.generated_together();
  const Count answers = job.micro_batch_size * batches * answers_per_sample(job.preference);
  Scope in(t, "", kRollout);
  t.resume_parameters_outside_layers();
  if (job.generates()) t.further_buffer("generated answers", buffered_bytes(job, answers), Category::kBuffers);
  const Count rows = job.has_critic() ? policy_rows(job) : answers;
  if (job.has_critic()) {
    t.further_buffer("logits of generated answers", logits_of_answers(trained, answers), Category::kBuffers);
  }
  if (rollout.engine == RolloutEngine::kVllm && !rollout.sleeps && rollout.reserved > 0) {
    Scope in_vllm(t, "vLLM", kVllm);
    t.buffer("its share of the card", rollout.reserved);
  }
  t.begin_segment(Phase::kForward, -1);
  s.generation = t.segments().size() - 1;
  t.use_parameters_of(-1);
  if (rollout.engine == RolloutEngine::kTransformers) {
    TrainingJob how = job;
    how.micro_batch_size = rows;
    how.sequence_length = std::max<Count>(1, job.sequence_length - job.answer_length());
    how.evaluation = {rows, false, 0, true, job.answer_length(), 1};
    // trl 1.9 experimental/gkd/gkd_trainer.py, online_dpo/online_dpo_trainer.py: __init__: use_cache.
    const bool keeps = job.generates() || job.checkpointing == Checkpointing::kNone;
    if (!keeps) {
      how.sequence_length = job.sequence_length - 1;
      how.evaluation.new_tokens = 1;
    }
    if (divided.own != nullptr) divided.own->begin_generation();
    Tensor before;
    if (answers > rows) before = allocate_bytes(t, logits_of_answers(trained, answers - rows), "logits of rows before");
    generate(trained, architecture, how, program, keeps);
    if (job.has_critic()) {
      const Tensor last = allocate_bytes(t, logits_of_answers(trained, rows), "stack");
      const Tensor padded = allocate_bytes(t, logits_of_answers(trained, answers), "full");
    }
    if (divided.own != nullptr) divided.own->end_generation();
  } else if (divided.own != nullptr) {
    divided.own->send_weights();
  }
  if (rollout.engine == RolloutEngine::kVllm) {
    generate_by_vllm(t, rollout);
  }
  t.break_segment();
  s.scoring = t.segments().size();
  if (job.has_critic()) {
    score_policy(s, trained, architecture, job, program);
  } else if (job.generates()) {
    t.begin_segment(Phase::kForward, -1);
    const WithoutGradients quiet(t);
    const Tensor next = allocate_bytes(t, buffered_bytes(job, answers), "generated answers");
    const Tensor joined = allocate_bytes(t, answers * job.sequence_length * 2 * size_of(Dtype::kInt64), "cat");
    const std::size_t parameters = t.parameters().size();
    Net net(t, architecture, job);
    net.treatments = trained.treatments;
    net.evaluates = true;
    take_batch(net, program);
    if (scores_itself(job)) score(net, net, program, batches, {}, divided.own);
    if (job.reference == Reference::kAdapterOff) {
      net.adapters_off = true;
      score(net, net, program, batches, {}, divided.own);
    }
    const auto score_by = [&](Net& other, const Program& of_other) {
      other.input_ids = net.input_ids;
      other.attention_mask = net.attention_mask;
      score_copy(other, trained, of_other, batches, divided.own, divided.reference);
      other.input_ids.reset();
      other.attention_mask.reset();
      trained.end_micro_step();
    };
    if (job.reference == Reference::kCopy) {
      Scope in_copy(t, "ref_model", kRollout);
      score_by(trained.copy(), program);
    }
    if (job.has_teacher()) {
      Scope in_teacher(t, "teacher_model", kTeacher);
      score_by(trained.teacher(), *architecture.teacher->program);
    }
    freeze_behind(t, parameters);
    net.end_micro_step();
    let_batch_go(net);
    // Beside weights that GPUs divide it is told as not counted (core/engine/estimator.cpp).
    if (architecture.judge != nullptr && divided.own == nullptr) score_by_reward_model(trained, answers);
    if (rollout.features > 0) score_by_features(trained, architecture, job, program);
    s.plan = trained.plan();
  }
  if (divided.own != nullptr) divided.own->end_rollout();
  t.break_segment();
  s.scored = t.segments().size();
  t.set_placement(placement);
  exchange(t, declared);
}

}  // namespace tidemark
