#include "core/layers/preferences.hpp"

#include <algorithm>

#include "core/layers/distillation.hpp"
#include "core/layers/model_call.hpp"
#include "core/layers/policy.hpp"

namespace tidemark {
namespace {

constexpr const char* kLogps = "TRL 1.9 trainer/utils.py: selective_log_softmax";
constexpr const char* kMetrics = "TRL 1.9 trainer/dpo_trainer.py, kto_trainer.py: _compute_loss, entropy_from_logits";
constexpr const char* kSft = "TRL 1.9 trainer/sft_trainer.py: compute_loss, entropy_from_logits";
constexpr const char* kBco = "TRL 1.9 experimental/bco/bco_trainer.py: forward, get_batch_loss_metrics";
constexpr const char* kOnline = "TRL 1.9 experimental/online_dpo/online_dpo_trainer.py: _forward, training_step";
constexpr const char* kPairs = "TRL 1.9 experimental/orpo/orpo_trainer.py, cpo_trainer.py: concatenated_forward";
constexpr const char* kTriples = "TRL 1.9 experimental/tpo/tpo_trainer.py: _compute_loss";
constexpr const char* kReference = "TRL 1.9 trainer/dpo_trainer.py: _compute_loss (ref_model, use_adapter)";
constexpr const char* kGrpo = "TRL 1.9 trainer/grpo_trainer.py: _compute_loss";
constexpr const char* kRloo = "TRL 1.9 trainer/rloo_trainer.py: _compute_loss";
constexpr const char* kPpo = "TRL 1.9 experimental/ppo/ppo_trainer.py: train (pg_loss, vf_loss)";
constexpr const char* kTokens = "TRL 1.9 trainer/grpo_trainer.py: _get_per_token_logps_and_entropies";
constexpr const char* kReward = "TRL 1.9 trainer/reward_trainer.py: compute_loss";

// entropy_from_logits: rows of logits at a time.
constexpr Count kChunk = 128;

Shape row_of(const Shape& rows) {
  return {rows.dims[1], rows.dims[2]};
}

// Row by row, then a stack, as the loop over `logits` made them; gather's gradient is added to that of fp32 logits.
void log_probabilities_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Shape& rows = n.input_shapes[0];
  const Shape row = row_of(rows);
  const Dtype dtype = n.input_dtypes[0];
  std::vector<Tensor> made;
  for (Count i = 0; i < rows.dims[0].n(); ++i) {
    if (dtype == Dtype::kFp32) {
      const Tensor difference = t.allocate(row, dtype, "sub");
      const Tensor exponents = t.allocate(row, dtype, "exp");
      made.push_back(t.allocate(row, dtype, "logsumexp_backward"));
    } else {
      Tensor selected = t.allocate(row, dtype, "gather_backward");
      made.push_back(t.allocate(row, dtype, "log_softmax_backward"));
      selected.reset();
      n.saved[static_cast<std::size_t>(i)].tensor.reset();  // each row is a node of its own
    }
  }
  const Shape whole{rows.dims[0], rows.dims[1], rows.dims[2]};
  r[0] = t.allocate(whole, dtype, "unbind_backward");
  made.clear();
  if (dtype == Dtype::kFp32) const Tensor selected = t.allocate(whole, dtype, "gather_backward");
}

// torch/csrc/autograd/FunctionsManual.cpp: logsumexp_backward: grad * (self - result).exp().
void row_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Tensor difference = t.allocate(n.input_shapes[0], n.input_dtypes[0], "sub");
  const Tensor exponents = t.allocate(n.input_shapes[0], n.input_dtypes[0], "exp");
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "logsumexp_backward");
}

void less_sums_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  for (std::size_t i = 0; i < n.inputs.size(); ++i) r[i] = t.allocate(n.input_shapes[i], n.input_dtypes[i], "sub");
}

// The same node by node: what hooks see of fp32 logits are gather's input and each row, of others the logarithms of
// each row twice, and the second time they stay.
Tensor rows_of_their_own(const Tensor& logits) {
  Tape& t = logits.tape();
  const Shape tokens{logits.dim(0), logits.dim(1)};
  const bool wide = logits.dtype() == Dtype::kFp32;
  std::vector<Tensor> parts;
  if (wide) parts.push_back(gather_last(logits, t.allocate(tokens, Dtype::kInt64, "labels"), Dim(1)));
  for (const Tensor& row : unbind(logits, 0).part) {
    if (!wide) {
      Tensor labels = t.allocate(Shape{row.dim(0)}, Dtype::kInt64, "labels");
      parts.push_back(gather_last(log_softmax(row), std::move(labels), Dim(1)));
      continue;
    }
    Node* n = t.record("logsumexp", row_backward, {&row});
    parts.push_back(t.allocate(Shape{row.dim(0)}, row.dtype(), "logsumexp"));
    { const Tensor less_maxima = t.allocate(row.shape(), row.dtype(), "logsumexp of one row"); }
    t.save(n, row);
    t.save(n, parts.back());
    t.attach(n, parts.back());
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& part : parts) inputs.push_back(&part);
  Node* n = t.record("sub", less_sums_backward, inputs.data(), inputs.size());
  Tensor out = t.allocate(tokens, logits.dtype(), "per_token_logps");
  t.attach(n, out);
  return out;
}

// selective_log_softmax: fp32 logits less their logsumexp; of 16 bits log_softmax, which backward needs.
Tensor log_probabilities(Net& net, const Tensor& logits) {
  Scope in(net.tape, "log-probabilities", kLogps);
  Tape& t = net.tape;
  if (net.job.offload.activations) return rows_of_their_own(logits);
  const Shape row = row_of(logits.shape());
  const Dtype dtype = logits.dtype();
  Node* n = t.record("selective_log_softmax", log_probabilities_backward, {&logits});
  Tensor out = t.allocate(Shape{logits.dim(0), logits.dim(1)}, dtype, "per_token_logps");
  if (dtype == Dtype::kFp32) {
    Tensor normalizers = t.allocate(Shape{logits.dim(0), logits.dim(1)}, dtype, "logsumexp");
    { const Tensor less_maxima = t.allocate(row, dtype, "logsumexp of one row"); }
    t.save(n, logits);
    t.save(n, normalizers);
  } else {
    Tensor of_row;
    for (Count i = 0; i < logits.size(0); ++i) {
      of_row = t.allocate(row, dtype, "log_softmax of one row");
      t.save(n, of_row);
    }
  }
  t.attach(n, out);
  return out;
}

// LLaMA-Factory 0.9 train/trainer_utils.py get_batch_logps: the log_softmax of all.
Tensor whole_log_probabilities(Tensor logits) {
  Tensor labels = logits.tape().allocate(Shape{logits.dim(0), logits.dim(1)}, Dtype::kInt64, "labels");
  return gather_last(log_softmax(std::move(logits)), std::move(labels), Dim(1));
}

Tensor shifted(Net& net, const Tensor& logits) {
  return narrow(logits, 1, 0, Dim(net.S.n() - 1, Symbol::kSequence));
}

// Its models give log-probabilities in the place of logits (core/families/unsloth.cpp).
bool are_log_probabilities(const Tensor& logits) {
  return logits.shape().rank == 2;
}

bool keeps_all(const Net& net) {
  return net.job.framework.name == "llama_factory";
}

Tensor loss_of(Net& net, const Tensor& logits) {
  if (are_log_probabilities(logits)) return mean_all(logits);
  Tensor part = shifted(net, logits);
  Tensor tokens = keeps_all(net) ? whole_log_probabilities(std::move(part)) : log_probabilities(net, part);
  return mean_all(std::move(tokens));
}

}  // namespace

// TRL 1.9 models/utils.py: prepare_deepspeed, prepare_fsdp: what is divided has no autocast around it.
Outputs call_copy(Net& net, const Program& program, const Placements& placements) {
  Tape& t = net.tape;
  const bool divided = placements.reference != nullptr;
  if (divided) t.set_placement(placements.reference);
  if (t.placement() != nullptr) t.placement()->enter_model();
  Outputs outputs = call_without_gradients(net, program, !divided);
  if (divided) t.set_placement(placements.own);
  return outputs;
}

namespace {

// The outputs of the reference, which _compute_loss holds to its end.
Outputs reference_outputs(Net& net, const Program& program, const Placements& placements) {
  Tape& t = net.tape;
  Scope in(t, net.job.reference == Reference::kCopy ? "ref_model" : "", kReference);
  Outputs outputs;
  if (net.job.reference == Reference::kCopy) {
    if (net.own_parameters == 0) net.own_parameters = t.parameters().size();
    Net& copy = net.copy();
    copy.input_ids = net.input_ids;
    copy.attention_mask = net.attention_mask;
    copy.pixel_values = net.pixel_values;
    outputs = call_copy(copy, program, placements);
    copy.input_ids.reset();
    copy.attention_mask.reset();
    copy.pixel_values.reset();
  } else {
    net.begin_micro_step();
    t.use_parameters_of(-1);
    if (t.placement() != nullptr) t.placement()->enter_model();
    net.adapters_off = true;
    outputs = call_without_gradients(net, program);
    net.adapters_off = false;
  }
  t.begin_segment(Phase::kLoss, -1);
  const WithoutGradients quiet(t);
  { const Tensor unused = loss_of(net, outputs.rest.front()); }
  return outputs;
}

Tensor rows_like(Net& net, const Tensor& logits, Count rows, const char* name) {
  return net.tape.allocate(Shape{Dim(rows), net.V}, logits.dtype(), name);
}

// By chunks of a copy in rows.
void entropy_of(Net& net, const Tensor& logits) {
  Tape& t = net.tape;
  const Count rows = logits.size(0) * logits.size(1);
  const auto some = [&](Count count, const char* name) { return rows_like(net, logits, count, name); };
  const Tensor flat = logits.size(0) > 1 ? some(rows, "reshape") : logits;
  const bool several = t.above(rows, kChunk);
  const Count chunk = several ? kChunk : rows;
  Tensor before;
  if (several) before = some(chunk, "log_softmax of one chunk");
  const Tensor logps = some(chunk, "log_softmax of one chunk");
  before.reset();
  const Tensor exponents = some(chunk, "exp");
  const Tensor products = some(chunk, "mul");
}

// Entropy; then the logits of each side's completions, all of whose tokens may count.
void log_metrics(Net& net, const Tensor& shift) {
  Scope in(net.tape, "metrics", kMetrics);
  const Count rows = shift.size(0) * shift.size(1);
  const auto some = [&](Count count, const char* name) { return rows_like(net, shift, count, name); };
  entropy_of(net, shift);
  const Count sides = std::max<Count>(2, answers_per_sample(net.job.preference));
  const Count side = (shift.size(0) + sides - 1) / sides * shift.size(1);
  if (net.job.preference == Preference::kKto) {
    const Tensor chosen = some(side, "index_select");
    const Tensor rejected = some(rows - side, "index_select");
    const Tensor of_completions = some(side, "index");
  } else {
    const Tensor of_completions = some(side, "index");
  }
}

// The second run of the same model declares nothing.
bool runs_reference(const Net& net) {
  return net.job.reference == Reference::kCopy || (net.job.reference == Reference::kAdapterOff && !net.tape.stopped());
}

Tensor against_reference(Net& net, const Program& program, const Tensor& logits, const Placements& placements) {
  Tensor loss = loss_of(net, logits);
  Outputs reference;
  if (runs_reference(net)) reference = reference_outputs(net, program, placements);
  if (keeps_all(net) || are_log_probabilities(logits)) return loss;
  const WithoutGradients quiet(net.tape);
  log_metrics(net, shifted(net, logits));
  return loss;
}

// What BCOTrainer.forward returns beside log-probabilities: the logits of each side's rows, as indexing copies them.
struct Sides {
  Tensor chosen, rejected;
};

Sides sides_of(Net& net, const Tensor& logits) {
  const Count rows = logits.size(0), chosen = (rows + 1) / 2;
  const auto some = [&](Count count) {
    return net.tape.allocate(Shape{Dim(count), logits.dim(1), logits.dim(2)}, logits.dtype(), "index");
  };
  Sides sides;
  sides.chosen = some(chosen);
  if (rows > chosen) sides.rejected = some(rows - chosen);
  return sides;
}

// The policy's logits of each side are there until metrics are made of them, behind the reference's forward.
Tensor bco_loss(Net& net, const Program& program, Tensor logits_in, const Placements& placements) {
  Scope in(net.tape, "loss", kBco);
  Tensor loss;
  Sides sides;
  {
    const Tensor logits = std::move(logits_in);
    loss = loss_of(net, logits);
    sides = sides_of(net, logits);
  }
  if (!runs_reference(net)) return loss;
  const Outputs reference = reference_outputs(net, program, placements);
  const WithoutGradients quiet(net.tape);
  const Sides others = sides_of(net, reference.rest.front());
  return loss;
}

// OnlineDPOTrainer._forward: logarithms of all that the answer's tokens could have been.
Tensor of_answers(Net& net, Tensor logits_in) {
  Tensor logits = std::move(logits_in);
  if (are_log_probabilities(logits)) return logits;
  const Count answer = net.job.answer_length();
  Tensor part = narrow(logits, 1, net.S.n() - answer - 1, Dim(answer));
  logits.reset();
  return whole_log_probabilities(std::move(part));
}

// Nobody told the reward model of use_cache, nor a reference: the script does, of checkpoints alone.
bool caches(const Net& net) {
  return net.job.checkpointing == Checkpointing::kNone;
}

// A forward without gradients whose outputs are the log-probabilities of the answers, as _forward returns them.
void score_by(Net& net, Net& model, const Program& program, bool caches) {
  Tape& t = net.tape;
  KvCache cache;
  if (caches) net.keep_in(&cache);
  Outputs outputs = call_without_gradients(model, program);
  net.keep_in(nullptr);
  t.begin_segment(Phase::kLoss, -1);
  { const Tensor unused = of_answers(net, outputs.rest.front()); }
  outputs = {};
  let_cache_go(net, cache);
}

void score_by_reference(Net& net, const Program& program) {
  if (net.job.reference == Reference::kAdapterOff) {
    net.begin_micro_step();
    net.tape.use_parameters_of(-1);
    net.adapters_off = true;
    score_by(net, net, program, false);
    net.adapters_off = false;
    return;
  }
  Scope in(net.tape, "ref_model", kOnline);
  Net& copy = net.copy();
  copy.input_ids = net.input_ids;
  copy.attention_mask = net.attention_mask;
  score_by(net, copy, program, caches(net));
  copy.input_ids.reset();
  copy.attention_mask.reset();
}

void score_by_judge(Net& net) {
  Tape& t = net.tape;
  Scope in(t, "reward_model", kOnline);
  Net& judge = net.judge(false);
  judge.input_ids = net.input_ids;
  judge.attention_mask = net.attention_mask;
  t.begin_segment(Phase::kForward, -1);
  score_once(judge, net, caches(net));
  t.begin_segment(Phase::kLoss, -1);
}

// Behind the policy's forward, whose graph is there, come the reference's and the reward model's.
void score_pairs(Net& net, const Program& program) {
  Tape& t = net.tape;
  const WithoutGradients quiet(t);
  const std::size_t place = t.parameter_place();
  if (net.own_parameters == 0) net.own_parameters = t.parameters().size();
  score_by_reference(net, program);
  if (!net.job.has_judge()) return;
  t.resume_parameters_outside_layers();
  // Without adapters the model's second forward has not come to all of its parameters.
  if (net.job.reference == Reference::kAdapterOff) t.set_parameter_place(place);
  score_by_judge(net);
}

Tensor online_loss(Net& net, const Program& program, Tensor logits) {
  Scope in(net.tape, "loss", kOnline);
  Tensor tokens = of_answers(net, std::move(logits));
  score_pairs(net, program);
  return mean_all(std::move(tokens));
}

// Cross entropy of the chosen half beside the log-probabilities of both.
Tensor without_reference(Net& net, const Tensor& logits) {
  Scope in(net.tape, "loss", kPairs);
  Tensor loss;
  if (net.job.preference != Preference::kSimpo) {
    Tensor chosen = narrow(logits, 0, 0, Dim(net.B.n() / 2, Symbol::kBatch));
    chosen = contiguous(shifted(net, chosen));
    const Shape flat{Dim(chosen.size(0) * chosen.size(1)), net.V};
    Tensor target = net.tape.allocate(Shape{flat.dims[0]}, Dtype::kInt64, "labels");
    loss = cross_entropy(view(std::move(chosen), flat), std::move(target));
  }
  Tensor odds = loss_of(net, logits);
  return loss.defined() ? add(std::move(loss), std::move(odds)) : odds;
}

// Cross entropy of the gold answers, whose logits a mask selects, beside the log-probabilities of all three.
Tensor triple_loss(Net& net, const Tensor& logits) {
  Scope in(net.tape, "loss", kTriples);
  const Tensor shift = shifted(net, logits);
  Tensor score = mean_all(log_probabilities(net, shift));
  const Dim third(net.B.n() / 3, Symbol::kBatch);
  const Count rows = third.n() * shift.size(1);
  Tensor gold = view(narrow(shift, 0, 2 * third.n(), third), Shape{Dim(rows), net.V});
  gold = index_rows(std::move(gold), net.tape.allocate(Shape{Dim(rows)}, Dtype::kInt64, "nonzero"));
  Tensor likelihood = cross_entropy(std::move(gold), net.tape.allocate(Shape{Dim(rows)}, Dtype::kInt64, "labels"));
  Tensor loss = add(std::move(score), std::move(likelihood));
  const WithoutGradients quiet(net.tape);
  log_metrics(net, shift);
  return loss;
}

// torch/csrc/autograd/functions/tensor.cpp: CopySlices::apply, behind the gradient of a view that was divided in place
// (FunctionsManual.cpp: as_strided_backward).
void tempered_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  const Shape whole{n.input_shapes[0].dims[0], n.input_shapes[0].dims[1], n.input_shapes[0].dims[2]};
  const Dtype dtype = n.input_dtypes[0];
  const Shape part = g[0].shape();
  Tensor grad = t.allocate(whole, dtype, "as_strided_backward");
  g[0].reset();
  r[0] = t.allocate(whole, dtype, "new_empty_strided");
  Tensor slice = t.allocate(part, dtype, "clone");
  const Tensor divided = t.allocate(part, dtype, "div");
  slice.reset();
}

// logits[:, :-1, :].div_(temperature)
Tensor tempered(Net& net, const Tensor& logits) {
  Tape& t = net.tape;
  Node* n = t.record("div_", tempered_backward, {&logits});
  Tensor out;
  {
    const WithoutGradients quiet(t);
    out = narrow(logits, 1, 0, Dim(net.job.answer_length()));
  }
  t.attach(n, out);
  return out;
}

void ratios_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  r[0] = t.allocate(n.input_shapes[0], n.input_dtypes[0], "exp_backward");
}

// _get_per_token_logps_and_entropies of what is trained.
Tensor logarithms_of(Net& net, Tensor logits_in) {
  Scope in(net.tape, "", kTokens);
  const Tensor logits = std::move(logits_in);
  if (are_log_probabilities(logits)) return logits;
  const Tensor divided = tempered(net, logits);
  Tensor tokens = log_probabilities(net, divided);
  const WithoutGradients quiet(net.tape);
  entropy_of(net, divided);
  return tokens;
}

// What backward needs of the loss: ratios, and both products that the smaller one is taken of.
Tensor grpo_loss(Net& net, Tensor logits) {
  Scope in(net.tape, "loss", kGrpo);
  Tape& t = net.tape;
  const Tensor tokens = logarithms_of(net, std::move(logits));
  Node* n = t.record("clipped ratios", ratios_backward, {&tokens});
  Tensor out = t.allocate(Shape{}, Dtype::kFp32, "loss");
  const Shape three{Dim(3), tokens.dim(0), tokens.dim(1)};
  const Tensor ratios = t.allocate(three, tokens.dtype(), "ratios and their products");
  t.save(n, ratios);
  t.attach(n, out);
  return out;
}

// The same of whole answers: of their tokens only a mask is needed, which the batch holds.
Tensor rloo_loss(Net& net, Tensor logits) {
  Scope in(net.tape, "loss", kRloo);
  Tape& t = net.tape;
  const Tensor tokens = logarithms_of(net, std::move(logits));
  Node* n = t.record("clipped ratios of sums", ratios_backward, {&tokens});
  const Tensor masked = t.allocate(tokens.shape(), tokens.dtype(), "mul");
  Tensor out = t.allocate(Shape{}, Dtype::kFp32, "loss");
  t.save(n, t.allocate(Shape{Dim(3), tokens.dim(0)}, tokens.dtype(), "ratios and their products"));
  t.attach(n, out);
  return out;
}

}  // namespace

// `logits /= temperature` of a view, as GRPO's; what backward needs of both losses beside.
Tensor ppo_loss(Net& net, const Tensor& logits, Tensor values) {
  Scope in(net.tape, "loss", kPpo);
  Tape& t = net.tape;
  const Tensor tokens = log_probabilities(net, tempered(net, logits));
  Node* n = t.record("clipped ratios", ratios_backward, {&tokens});
  Tensor of_policy = t.allocate(Shape{}, Dtype::kFp32, "pg_loss");
  t.save(n, t.allocate(Shape{Dim(3), tokens.dim(0), tokens.dim(1)}, tokens.dtype(), "ratios and their products"));
  t.attach(n, of_policy);
  Tensor of_values = mean_all(std::move(values));
  return add(std::move(of_policy), std::move(of_values));
}

// Without gradients, of the logits that the model returned; its losses in chunks and Liger's return none.
void log_sft_metrics(Net& net, const Outputs& outputs) {
  const TrainingJob& job = net.job;
  const bool logs = job.framework.name == "trl" && job.framework.at_least(4, 53) && net.arch.head == Head::kCausalLm;
  if (!logs || job.preference != Preference::kNone || job.loss != Loss::kDefault || outputs.rest.empty()) return;
  Scope in(net.tape, "metrics", kSft);
  const WithoutGradients quiet(net.tape);
  const Tensor shift = shifted(net, outputs.rest.front());
  entropy_of(net, shift);
  const Tensor predictions = net.tape.allocate(Shape{shift.dim(0), shift.dim(1)}, Dtype::kInt64, "argmax");
}

void score_answers(Net& net, const Tensor& logits) {
  if (are_log_probabilities(logits)) return;
  Scope in(net.tape, "log-probabilities", kTokens);
  const Tensor unused = log_probabilities(net, tempered(net, logits));
}

Tensor preference_loss(Net& net, const Program& program, Tensor logits_in, const Placements& placements) {
  Tensor logits = logits_outside(std::move(logits_in));
  if (net.job.distils()) return distillation_loss(net, std::move(logits), placements);
  if (net.job.generates_pairs()) return online_loss(net, program, std::move(logits));
  if (net.job.preference == Preference::kRloo) return rloo_loss(net, std::move(logits));
  if (net.job.generates()) return grpo_loss(net, std::move(logits));
  if (net.job.preference == Preference::kTpo) return triple_loss(net, logits);
  if (net.job.preference == Preference::kBco) return bco_loss(net, program, std::move(logits), placements);
  if (has_reference(net.job.preference)) return against_reference(net, program, logits, placements);
  if (net.job.preference != Preference::kReward) return without_reference(net, logits);
  Scope in(net.tape, "loss", kReward);
  return mean_all(logits);
}

}  // namespace tidemark
