#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark {

/// Which layers of a model the tape runs, and which of them stand for many.
///
/// A model has one stack of layers or several (nn.ModuleList: an encoder's and a decoder's, a vision tower's and a
/// language model's). The layers of a stack are of kinds; layers of equal kind behave alike. Where a sequence of p
/// kinds (the period; Gemma 3: 6, most models: 1) repeats more than four times, four periods go on the tape: the first,
/// the second, one that stands for all others in the middle, and the last. They are the run's section; a stack may have
/// several (DeepSeek-V3: three dense layers, then a run of 58 with experts).
struct LayerPlan {
  /// A list of layers of the model, in the order in which the forward comes to them.
  struct Stack {
    std::string_view path;  ///< in the class with a head, as the program names it for ever: "model.layers"
    Count layers = 0;       ///< of the model
    Count first = 0;        ///< number of its first layer among all stacks' layers
    Count skipped = 0;      ///< layers of the list before it that other GPUs have
    Count tape_begin = 0;   ///< its first layer on the tape
    Count tape_end = 0;     ///< one past its last
  };
  /// A layer on the tape.
  struct TapeLayer {
    Count stack = 0;  ///< index into stacks
    Count layer = 0;  ///< of that stack; the first one that it stands for
  };
  /// Tape layers that stand for many.
  struct Run {
    Count begin = 0;          ///< first tape layer of the repeated period
    Count end = 0;            ///< one past its last
    Count repeats = 1;        ///< how often that period occurs in the model
    Count section_begin = 0;  ///< first tape layer of the periods around it, which are like it
    Count section_end = 0;    ///< one past their last

    Count period() const { return end - begin; }
    bool operator==(const Run& o) const { return begin == o.begin && end == o.end && repeats == o.repeats; }
  };

  std::vector<Stack> stacks;           ///< those that the forward has come to
  std::vector<TapeLayer> tape_layers;  ///< what each layer instance on the tape is
  std::vector<Run> runs;               ///< in the order of the tape, apart from each other

  /// The run that a layer instance is repeated by, or null.
  const Run* run_of(Count instance) const {
    for (const Run& run : runs) {
      if (instance >= run.begin && instance < run.end) return &run;
    }
    return nullptr;
  }
  /// How many model layers a layer instance stands for.
  Count multiplicity(Count instance) const {
    const Run* run = run_of(instance);
    return run == nullptr ? 1 : run->repeats;
  }
  /// Visits `count` things that the tape has once for each layer instance in the order of the model: layer by layer,
  /// each as often as it occurs. `instance_of(i)` is the i-th one's layer instance; those of a run follow each other.
  template <typename InstanceOf, typename Visit>
  void in_model_order(std::size_t count, InstanceOf instance_of, Visit visit) const {
    for (std::size_t i = 0; i < count;) {
      const Run* const run = run_of(instance_of(i));
      std::size_t stop = i + 1;
      while (run != nullptr && stop < count && run_of(instance_of(stop)) == run) ++stop;
      for (Count k = 0; k < (run == nullptr ? 1 : run->repeats); ++k) {
        for (std::size_t j = i; j < stop; ++j) visit(j);
      }
      i = stop;
    }
  }
  /// Layers of the model, of all stacks.
  Count layers() const { return stacks.empty() ? 0 : stacks.back().first + stacks.back().layers; }

  /// Adds a stack whose layers are of these kinds.
  void add_stack(std::string_view path, const std::vector<std::int64_t>& kinds);
  /// Adds a stack of which one layer of each kind is on the tape, once. `kind_of_layer` gets, for each of its layers,
  /// the layer instance of its kind.
  void add_kinds(std::string_view path, const std::vector<std::int64_t>& kinds,
                 std::vector<std::size_t>& kind_of_layer);

 private:
  Stack& open(std::string_view path, std::size_t layers);
  void add_part(const std::vector<std::int64_t>& kinds, std::size_t begin, std::size_t end);
};

}  // namespace tidemark
