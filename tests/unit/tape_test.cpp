// The tape itself: what nodes keep and when they give it back, graphs beside one another, streams. Expected sizes are
// sums of the tensors that PyTorch would hold, written out beside each case.
#include <algorithm>
#include <string>
#include <utility>

#include "core/tape/ops.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

constexpr Count kN = 1024;
constexpr Bytes kUnit = 4 * kN;  // a tensor of kN fp32 numbers: the unit of the sums below

struct Level {
  Bytes now = 0, highest = 0;
};

/// What the tape's storages hold, weights apart.
Level level(const Tape& tape) {
  Level level;
  for (const Event& event : tape.events()) {
    if (event.kind == Event::Kind::kStreamDone) continue;
    const Bytes bytes = tape.storages()[static_cast<std::size_t>(event.subject)].bytes;
    level.now += event.allocates() ? bytes : -bytes;
    level.highest = std::max(level.highest, level.now);
  }
  return level;
}

int allocations(const Tape& tape, const std::string& op) {
  int n = 0;
  for (const Event& event : tape.events()) {
    if (!event.allocates()) continue;
    const Storage& storage = tape.storages()[static_cast<std::size_t>(event.subject)];
    n += tape.sites()[static_cast<std::size_t>(storage.site)].op == op ? 1 : 0;
  }
  return n;
}

Tensor weight_of(Tape& tape, const Shape& shape = Shape{Dim(kN)}) {
  Parameter p;
  p.module = "layer";
  p.leaf = "weight";
  p.shape = shape;
  p.requires_grad = true;
  tape.use_parameters_of(-1);
  return tape.parameter(p);
}

// silu(weight * input): the product keeps its input, silu the product.
Tensor forward(Tape& tape) {
  Tensor weight = weight_of(tape);
  Tensor input = tape.allocate(Shape{Dim(kN)}, Dtype::kFp32, "input");
  Tensor h = mul(std::move(weight), std::move(input));
  return silu(std::move(h));
}

void first_rule(Tape& tape, Node& n, Tensor*, Tensor* results) {
  results[0] = tape.allocate(n.input_shapes[0], n.input_dtypes[0], "first rule");
}

TEST_CASE("an output leads to the node of its own operation, whatever was recorded in between") {
  Tape tape;
  const Tensor weight = weight_of(tape);
  Node* n = tape.record("first", first_rule, {&weight});
  const Tensor between = mul_scalar(weight);
  Tensor out = tape.allocate(Shape{Dim(kN)}, Dtype::kFp32, "first");
  tape.attach(n, out);
  tape.backward(std::move(out));
  CHECK(allocations(tape, "first rule") == 1);
  CHECK(allocations(tape, "mul_backward") == 0);
}

TEST_CASE("a node whose last output dies gives back what it kept") {
  Tape tape;
  {
    const Tensor y = forward(tape);
    CHECK(level(tape).now == 3 * kUnit);  // input, product, y
  }
  CHECK(level(tape).now == 0);
}

TEST_CASE("a long chain of nodes dies without recursion") {
  Tape tape;
  Tensor x = weight_of(tape);
  for (int i = 0; i < 20000; ++i) x = add_scalar(std::move(x));
  x.reset();
  CHECK(level(tape).now == 0);
}

TEST_CASE("what the loss does not depend on lives as long as its tensor") {
  Tape tape;
  Tensor loss = forward(tape);
  Tensor aside = forward(tape);
  tape.backward(std::move(loss));
  CHECK(level(tape).now == 4 * kUnit);  // input, product and result aside; the weight's gradient
  aside.reset();
  CHECK(level(tape).now == kUnit);
}

TEST_CASE("a checkpointed block makes nothing again for a node that died") {
  for (const bool reentrant : {false, true}) {
    Tape tape;
    tape.begin_segment(Phase::kForward, 0);
    const auto block = [&tape](Tensor x) {
      { Tensor aside = forward(tape); }
      return silu(std::move(x));
    };
    Tensor weight = weight_of(tape);
    Tensor x = mul_scalar(std::move(weight));
    Tensor y = tape.checkpoint(block, std::move(x), reentrant, CheckpointInput::kKept);
    CHECK(level(tape).now == 2 * kUnit);  // x, y
    tape.backward(std::move(y));
    CHECK(level(tape).now == kUnit);  // the weight's gradient
  }
}

// torch.utils.checkpoint: a graph that a recomputation makes is run by nobody, so what its nodes keep stays as long as
// something leads there; a re-entrant one runs its graph, of which the detached input and its gradient remain.
TEST_CASE("a module that takes a tensor of a checkpointed block holds the graph behind it") {
  for (const bool reentrant : {false, true}) {
    Tape tape;
    tape.begin_segment(Phase::kForward, 0);
    const auto block = [&tape](Tensor x) {
      tape.let_module_go();
      tape.note_saved(true);
      Tensor h = silu(std::move(x));
      tape.hold_in_module(h);
      return silu(std::move(h));
    };
    Tensor weight = weight_of(tape);
    Tensor x = mul_scalar(std::move(weight));
    Tensor y = tape.checkpoint(block, std::move(x), reentrant, CheckpointInput::kKept);
    CHECK(level(tape).now == 3 * kUnit);  // x, h, y
    tape.backward(std::move(y));
    CHECK(level(tape).now == (reentrant ? 4 : 3) * kUnit);  // x, h, the weight's gradient; x's own
    tape.let_modules_go();
    CHECK(level(tape).now == kUnit);
  }
}

// The first of two pipeline stages: forward runs one micro-batch ahead of backward.
TEST_CASE("what a checkpoint is told to keep is not made again, and goes with the block's backward") {
  Tape tape;
  Tensor x = tape.allocate(Shape{Dim(kN)}, Dtype::kFp32, "x");
  x.change().requires_grad = true;
  const BlockCall block = [&tape](Tensor in) {
    tape.keep_results(true);
    Tensor h = silu(std::move(in));
    tape.keep_results(false);
    return silu(silu(std::move(h)));
  };
  Tensor out = tape.checkpoint(block, x, false, CheckpointInput::kKept);
  CHECK(level(tape).now == 3 * kUnit);  // x, what is kept, and the output
  out = mean_all(std::move(out));
  tape.backward(std::move(out));
  x.reset();
  // Forward, the one that is made again (whose output the third saves), and three gradients.
  CHECK(allocations(tape, "silu") == 3 + 1 + 3);
  CHECK(level(tape).now == 0);
}

TEST_CASE("two micro-batches under way have a graph each: 1F1B") {
  Tape tape;
  Graph odd(tape), even(tape);
  const auto run = [&tape](Graph& graph) {
    tape.record_in(graph);
    return forward(tape);
  };
  Tensor first = run(odd);
  Tensor second = run(even);
  CHECK(level(tape).now == 6 * kUnit);  // of each: input, product, result
  tape.backward(std::move(first));
  // Highest as its gradient of ones is made: six, and that one.
  CHECK(level(tape).highest == 7 * kUnit);
  CHECK(level(tape).now == 4 * kUnit);  // the second's three, the weight's gradient
  Tensor third = run(odd);
  tape.backward(std::move(second));
  // Two micro-batches, the weight's gradient, the ones.
  CHECK(level(tape).highest == 8 * kUnit);
  tape.backward(std::move(third));
  CHECK(level(tape).highest == 8 * kUnit);
  CHECK(level(tape).now == kUnit);
  CHECK(allocations(tape, "silu") == 6);  // three results, three gradients
}

TEST_CASE("an operation may have any number of outputs, inputs and kept tensors") {
  constexpr int kOutputs = 300;
  Tape tape;
  const Tensor experts = weight_of(tape, Shape{Dim(kOutputs), Dim(kN)});
  Tensor sum;
  {
    Pieces pieces = unbind(experts, 0);
    REQUIRE(pieces.part.size() == kOutputs);
    const Tensor* last = &pieces.part[kOutputs - 6];
    sum = cat({last, last + 1, last + 2, last + 3, last + 4, last + 5}, 0);
  }
  Node* n = tape.record("keeps", first_rule, {&sum});
  for (int i = 0; i < 12; ++i) tape.save(n, sum);
  tape.attach(n, sum);
  CHECK(level(tape).now == 6 * kUnit);
  tape.backward(std::move(sum));
  CHECK(allocations(tape, "split_backward zeros") == kOutputs - 6);
  CHECK(level(tape).now == kOutputs * kUnit);  // the gradient of all experts
}

TEST_CASE("memory that another stream uses is freed after it") {
  Tape tape;
  tape.set_stream(1);
  Tensor gathered = tape.allocate(Shape{Dim(kN)}, Dtype::kFp32, "all-gather");
  tape.set_stream(kMainStream);
  tape.record_stream(gathered, kMainStream);
  gathered.reset();
  tape.stream_done(kMainStream);
  const std::vector<Event> expected = {
      {Event::Kind::kAllocate, 0}, {Event::Kind::kFreeAfter, 0}, {Event::Kind::kStreamDone, kMainStream}};
  CHECK(tape.events() == expected);
  CHECK(tape.storages()[0].stream == 1);
}

}  // namespace
}  // namespace tidemark
