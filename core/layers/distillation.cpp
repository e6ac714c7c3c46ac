#include "core/layers/distillation.hpp"

#include <utility>

#include "core/layers/model_call.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kTeacher = "TRL 1.9 experimental/gkd/gkd_trainer.py: compute_loss";
constexpr const char* kJsd = "TRL 1.9 experimental/gkd/gkd_trainer.py: generalized_jsd_loss";

Outputs teacher_outputs(Net& net, const Placements& placements) {
  Tape& t = net.tape;
  Scope in(t, "teacher_model", kTeacher);
  if (net.own_parameters == 0) net.own_parameters = t.parameters().size();
  Net& teacher = net.teacher();
  teacher.input_ids = net.input_ids;
  teacher.attention_mask = net.attention_mask;
  teacher.pixel_values = net.pixel_values;
  Outputs outputs = call_copy(teacher, *teacher.arch.program, placements);
  teacher.input_ids.reset();
  teacher.attention_mask.reset();
  teacher.pixel_values.reset();
  t.begin_segment(Phase::kLoss, -1);
  return outputs;
}

// torch/csrc/autograd/FunctionsManual.cpp: logsumexp_backward: grad * (self - result).exp().
void logsumexp_backward(Tape& t, Node& n, Tensor*, Tensor* r) {
  const Shape& both = n.input_shapes[0];
  const Tensor difference = t.allocate(both, n.input_dtypes[0], "sub");
  const Tensor exponents = t.allocate(both, n.input_dtypes[0], "exp");
  r[0] = t.allocate(both, n.input_dtypes[0], "logsumexp_backward");
}

// torch.logsumexp(torch.stack([…]), dim=0) of both logarithms, each with its share's.
Tensor mixture(const Tensor& student, const Tensor& teacher) {
  Tape& t = student.tape();
  Tensor both;
  {
    const Tensor first = add_scalar(student);
    const Tensor second = add_scalar(teacher);
    both = cat({&first, &second}, 0);
  }
  Node* n = t.record("logsumexp", logsumexp_backward, {&both});
  t.save(n, both);
  Tensor out = t.allocate(student.shape().contiguous(), student.dtype(), "logsumexp");
  t.attach(n, out);
  t.save(n, out);
  return out;
}

// ATen/native/Loss.cpp: _kl_div_log_target: exp(target) * (target - input).
Tensor kl_div(const Tensor& input, const Tensor& target) {
  const Tensor difference = sub(target, input);
  const Tensor weights = exp(target);
  return mul(weights, difference);
}

// jsd[mask]: all tokens may count.
Tensor of_completions(Net& net, const Tensor& divergences) {
  const Dim rows(divergences.size(0) * divergences.size(1));
  Tensor indices = net.tape.allocate(Shape{rows}, Dtype::kInt64, "nonzero");
  return index_rows(view(divergences, Shape{rows, divergences.dim(2)}), std::move(indices));
}

Tensor divergence(Net& net, const Tensor& student, const Tensor& teacher) {
  const Tensor cooled = mul_scalar(student);
  const Tensor of_teacher = mul_scalar(teacher);
  const Tensor log_probs = log_softmax(cooled);
  const Tensor targets = log_softmax(of_teacher);
  const double beta = net.job.distillation.beta;
  if (beta == 0.0) return mean_all(of_completions(net, kl_div(log_probs, targets)));
  if (beta == 1.0) return mean_all(of_completions(net, kl_div(targets, log_probs)));
  const Tensor mixed = mixture(log_probs, targets);
  const Tensor kl_teacher = kl_div(mixed, targets);
  const Tensor kl_student = kl_div(mixed, log_probs);
  Tensor both;
  {
    const Tensor first = mul_scalar(kl_teacher);
    const Tensor second = mul_scalar(kl_student);
    both = add(first, second);
  }
  both = of_completions(net, both);
  return mean_all(both);
}

}  // namespace

Tensor distillation_loss(Net& net, Tensor logits_in, const Placements& placements) {
  const Tensor logits = std::move(logits_in);
  const Outputs outputs = teacher_outputs(net, placements);
  Scope in(net.tape, "loss", kJsd);
  const Dim tokens(net.S.n() - 1, Symbol::kSequence);
  const Tensor student = narrow(logits, 1, 0, tokens);
  const Tensor teacher = narrow(outputs.rest.front(), 1, 0, tokens);
  return divergence(net, student, teacher);
}

}  // namespace tidemark
