#include "core/step/record_evaluation.hpp"

#include <algorithm>
#include <utility>

#include "core/layers/kv_cache.hpp"
#include "core/layers/model_call.hpp"
#include "core/layers/preferences.hpp"
#include "core/layers/prompts.hpp"
#include "core/step/simulation.hpp"

namespace tidemark {
namespace {

constexpr const char* kEvaluation = "transformers 5.12 trainer.py: evaluation_loop, prediction_step";
constexpr const char* kGenerate = "transformers 5.12 generation/utils.py: _prefill, _sample, _beam_search";

// Predictions that stay are joined batch by batch: the last join holds what was there beside the whole.
void join_predictions(Net& net, const Outputs& outputs) {
  const Evaluation& evaluation = net.job.evaluation;
  if (!evaluation.keeps_logits || outputs.rest.empty()) return;
  const Tensor& batch = outputs.rest.front();
  const Count samples = std::max(evaluation.samples, evaluation.micro_batch_size);
  const auto all = [&](Count rows) {
    const Shape shape{Dim(rows * (batch.numel() / batch.size(0)))};
    return net.tape.allocate(shape, batch.dtype(), "predictions");
  };
  const Tensor before = all(std::max<Count>(samples - evaluation.micro_batch_size, 1));
  const Tensor joined = all(samples);
}

// "logits_to_keep": the head sees the last token of each row.
Tensor last_logits(Net& net, const Program& program, const Tensor& hidden) {
  if (program.lm_head == nullptr) return {};
  return program.lm_head(net, narrow(hidden, 1, hidden.size(1) - 1, Dim(1)));
}

// They are copied to fp32 for the choice of a token; beams add their own scores to the logarithms.
void choose_token(Net& net, const Tensor& logits) {
  if (!logits.defined()) return;
  const auto copy = [&](const char* op) { return net.tape.allocate(logits.shape(), Dtype::kFp32, op); };
  const Tensor scores = copy("to");
  if (net.job.evaluation.beams == 1) return;
  const Tensor logarithms = copy("log_softmax");
  const Tensor sums = copy("add");
}

// generate(): a forward of the whole prompt that keeps keys and values, then one of a token for each further one. Of
// these the last two run, where the cache is at its largest.
void generate(const Net& trained, const Architecture& calm, const TrainingJob& job, const Program& program) {
  Tape& t = trained.tape;
  Scope in(t, "", kGenerate);
  TrainingJob how = job;
  const bool decodes = calm.num_decoder_layers > 0;
  if (!decodes) how.micro_batch_size *= job.evaluation.beams;
  const Count labels = job.decoder_sequence_length > 0 ? job.decoder_sequence_length : job.sequence_length;
  const Count new_tokens = job.evaluation.new_tokens > 0 ? job.evaluation.new_tokens : labels;
  if (decodes) how.decoder_sequence_length = 1;
  // Autocast is around the forward of what accelerate has prepared; PeftModel.generate calls that of the model inside.
  if (job.has_adapter()) how.recipe.autocast = std::nullopt;
  KvCache cache;
  Net net(t, calm, how);
  net.treatments = trained.treatments;
  net.evaluates = true;
  net.keep_in(&cache);
  const WithoutGradients quiet(t);
  take_batch(net, program);
  t.set_autocast(how.recipe.autocast);
  const Count prompt = decodes ? 1 : net.S.n();
  const Tensor hidden = program.forward(net);
  net.leave_body(hidden);
  net.keep_in(nullptr);
  Tensor logits = last_logits(net, program, hidden);
  choose_token(net, logits);
  for (const Count behind : {Count{2}, Count{1}}) {
    if (new_tokens > behind) decode_until(net, cache, prompt + new_tokens - behind);
  }
  choose_token(net, logits);  // those of a further token are as large
  logits.reset();
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

std::size_t record_evaluation(const Net& trained, const Architecture& architecture, const TrainingJob& job,
                              const Program& program) {
  Tape& t = trained.tape;
  Scope in(t, "", kEvaluation);
  const Architecture calm = without_dropout(architecture);
  TrainingJob how = job;
  how.micro_batch_size = job.evaluation.micro_batch_size;
  how.adapter.lora_dropout = 0.0;
  if (how.loss == Loss::kLiger) how.loss = Loss::kDefault;  // Liger-Kernel 0.8 model/llama.py: skip_logits in training
  const std::size_t first = t.segments().size();
  t.begin_segment(Phase::kForward, -1);
  t.use_parameters_of(-1);
  if (job.evaluation.generates) {
    generate(trained, calm, how, program);
    t.use_parameters_of(-1);
  }
  Net net(t, calm, how);
  net.treatments = trained.treatments;
  net.evaluates = true;
  const WithoutGradients quiet(t);
  take_batch(net, program);
  {
    Outputs outputs = call_model(net, program);
    if (how.preference != Preference::kNone) outputs.loss = preference_loss(net, program, outputs.rest.front());
    join_predictions(net, outputs);
    let_prefix_go(net);
  }
  net.end_micro_step();
  let_batch_go(net);
  t.break_segment();
  return first;
}

}  // namespace tidemark
