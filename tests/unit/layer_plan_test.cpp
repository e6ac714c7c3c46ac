#include "core/layers/layer_plan.hpp"

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

using Kinds = std::vector<std::int64_t>;

Kinds repeated(const Kinds& period, int times) {
  Kinds all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), period.begin(), period.end());
  return all;
}

Kinds joined(Kinds a, const Kinds& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Each layer of the model stands on the tape once, as often as its instance counts, with a layer of its own kind.
void check_complete(const LayerPlan& plan, const std::vector<Kinds>& stacks) {
  Count layers = 0;
  for (std::size_t s = 0; s < stacks.size(); ++s) {
    const LayerPlan::Stack& stack = plan.stacks[s];
    CHECK(stack.first == layers);
    Count stands_for = 0;
    for (Count i = stack.tape_begin; i < stack.tape_end; ++i) {
      CHECK(plan.tape_layers[static_cast<std::size_t>(i)].stack == static_cast<Count>(s));
      stands_for += plan.multiplicity(i);
    }
    CHECK(stands_for == static_cast<Count>(stacks[s].size()));
    layers += stack.layers;
  }
  CHECK(plan.layers() == layers);
  for (const LayerPlan::Run& run : plan.runs) {
    for (Count i = run.begin; i < run.end; ++i) {
      const LayerPlan::TapeLayer& layer = plan.tape_layers[static_cast<std::size_t>(i)];
      const Kinds& kinds = stacks[static_cast<std::size_t>(layer.stack)];
      for (Count k = 0; k < run.repeats; ++k) {
        CHECK(kinds[static_cast<std::size_t>(layer.layer + k * run.period())] ==
              kinds[static_cast<std::size_t>(layer.layer)]);
      }
    }
  }
}

TEST_CASE("of layers that are alike four are recorded") {
  LayerPlan plan;
  const Kinds kinds = repeated({7}, 80);
  plan.add_stack("model.layers", kinds);
  check_complete(plan, {kinds});
  CHECK(plan.tape_layers.size() == 4);
  CHECK(plan.runs.size() == 1);
  CHECK(plan.multiplicity(2) == 77);
  CHECK(plan.tape_layers.back().layer == 79);
}

TEST_CASE("three dense layers before 58 with experts are recorded as three and a run of four, not as 61") {
  LayerPlan plan;
  const Kinds kinds = joined(repeated({0}, 3), repeated({1}, 58));
  plan.add_stack("model.layers", kinds);
  check_complete(plan, {kinds});
  CHECK(plan.tape_layers.size() == 7);
  CHECK(plan.multiplicity(5) == 55);
}

TEST_CASE("a stack may have several runs, with a layer of its own between them and behind them") {
  LayerPlan plan;
  const Kinds kinds = joined(joined(repeated({1}, 20), {5}), joined(repeated({2, 3}, 15), {9}));
  plan.add_stack("model.layers", kinds);
  check_complete(plan, {kinds});
  CHECK(plan.runs.size() == 2);
  CHECK(plan.tape_layers.size() == 4 + 1 + 8 + 1);
}

TEST_CASE("layers that repeat in periods are recorded as four periods and what is left over") {
  LayerPlan plan;
  const Kinds kinds = joined(repeated({0, 0, 0, 0, 0, 1}, 10), {0, 0});
  plan.add_stack("model.layers", kinds);
  check_complete(plan, {kinds});
  CHECK(plan.tape_layers.size() == 26);
}

TEST_CASE("an encoder's layers and a decoder's are two stacks, each with its run") {
  LayerPlan plan;
  const Kinds encoder = repeated({0}, 12), decoder = repeated({0}, 6);
  plan.add_stack("encoder.block", encoder);
  plan.add_stack("decoder.block", decoder);
  check_complete(plan, {encoder, decoder});
  CHECK(plan.tape_layers.size() == 8);
  CHECK(plan.multiplicity(2) == 9);
  CHECK(plan.multiplicity(6) == 3);
  CHECK(plan.run_of(2) != plan.run_of(6));
}

TEST_CASE("where no stretch repeats often enough every layer is recorded") {
  LayerPlan plan;
  const Kinds kinds = {0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 1, 0};
  plan.add_stack("model.layers", kinds);
  check_complete(plan, {kinds});
  CHECK(plan.runs.empty());
  CHECK(plan.tape_layers.size() == kinds.size());
}

TEST_CASE("a census runs one layer of each kind and knows which is like which") {
  LayerPlan plan;
  std::vector<std::size_t> kind_of_layer;
  plan.add_kinds("a", {3, 3, 4, 3}, kind_of_layer);
  plan.add_kinds("b", {3, 3}, kind_of_layer);
  CHECK(plan.tape_layers.size() == 3);
  CHECK(kind_of_layer == std::vector<std::size_t>{0, 0, 1, 0, 2, 2});
}

}  // namespace
}  // namespace tidemark
