#include "core/plan/pipeline.hpp"

#include <algorithm>

#include "core/units/letters.hpp"

namespace tidemark {
namespace {

using Work = PipelineAction::Work;

// All forwards, then all backwards.
std::vector<PipelineAction> gpipe(Count micro_batches) {
  std::vector<PipelineAction> actions;
  for (Count i = 0; i < micro_batches; ++i) actions.push_back({Work::kForward, 0, i});
  for (Count i = 0; i < micro_batches; ++i) actions.push_back({Work::kBackward, 0, i});
  return actions;
}

// Schedule1F1B: the last stage has one forward ahead of its backwards, each stage before it one more.
Count warm_up(const Pipeline& how, Count rank) {
  return how.stages - rank;
}

std::vector<PipelineAction> one_forward_one_backward(Count ahead, Count micro_batches) {
  std::vector<PipelineAction> actions;
  Count forwards = 0;
  for (; forwards < std::min(ahead, micro_batches); ++forwards) actions.push_back({Work::kForward, 0, forwards});
  for (Count i = 0; i < micro_batches; ++i) {
    actions.push_back({Work::kBackward, 0, i});
    if (forwards < micro_batches) actions.push_back({Work::kForward, 0, forwards++});
  }
  return actions;
}

// ScheduleInterleaved1F1B: micro-batches in rounds, each through all chunks; _get_warmup_ops with a factor of two.
Count micro_batches_per_round(const Pipeline& how, Count micro_batches) {
  return micro_batches / std::max<Count>(1, micro_batches / how.stages);
}

std::vector<PipelineAction> interleaved(const Pipeline& how, Count rank, Count micro_batches) {
  const Count round = micro_batches_per_round(how, micro_batches);
  const Count all = how.chunks * micro_batches;
  const Count ahead = std::min((how.chunks - 1) * round + 2 * (how.stages - 1 - rank), all);
  std::vector<Count> forwards(static_cast<std::size_t>(how.chunks), 0), backwards = forwards;
  std::vector<PipelineAction> actions;
  for (Count op = 0; op < all + ahead; ++op) {
    if (op < all) {
      const auto chunk = static_cast<std::size_t>(op / round % how.chunks);
      actions.push_back({Work::kForward, chunk, forwards[chunk]++});
    }
    if (op >= ahead) {
      const auto chunk = static_cast<std::size_t>(how.chunks - 1 - (op - ahead) / round % how.chunks);
      actions.push_back({Work::kBackward, chunk, backwards[chunk]++});
    }
  }
  return actions;
}

// ScheduleInterleavedZeroBubble: one forward ahead for each GPU behind; the weights' part of a backward comes as many
// later as there are GPUs before, then all that are left.
std::vector<PipelineAction> zero_bubble(const Pipeline& how, Count rank, Count micro_batches) {
  const Count round = micro_batches_per_round(how, micro_batches);
  const Count all = how.chunks * micro_batches;
  const Count ahead = std::min((how.chunks - 1) * round + how.stages - 1 - rank, all);
  std::vector<Count> counts(static_cast<std::size_t>(3 * how.chunks), 0);
  std::vector<PipelineAction> actions;
  const auto add = [&](Work work, Count kind, Count chunk) {
    Count& count = counts[static_cast<std::size_t>(kind * how.chunks + chunk)];
    actions.push_back({work, static_cast<std::size_t>(chunk), count++});
  };
  const auto backward_chunk = [&](Count i) { return how.chunks - 1 - i / round % how.chunks; };
  Count weights = 0;
  for (Count op = 0; op < all + ahead; ++op) {
    if (op < all) add(Work::kForward, 0, op / round % how.chunks);
    if (op < ahead) continue;
    add(Work::kInput, 1, backward_chunk(op - ahead));
    if (op - ahead >= rank) add(Work::kWeights, 2, backward_chunk(weights++));
  }
  while (weights < all) add(Work::kWeights, 2, backward_chunk(weights++));
  return actions;
}

// ScheduleZBVZeroBubble._calculate_single_rank_operations: written for as many micro-batches as fill the pipeline;
// those that there are not fall out.
std::vector<PipelineAction> zero_bubble_v(const Pipeline& how, Count rank, Count micro_batches) {
  const Count filling = std::max(2 * how.stages - 1, micro_batches);
  Count forwards[2] = {}, inputs[2] = {}, weights[2] = {};
  std::vector<PipelineAction> actions;
  const auto add = [&](Work work, std::size_t chunk, Count& count) {
    if (count < micro_batches) actions.push_back({work, chunk, count});
    ++count;
  };
  const auto forward = [&](std::size_t chunk) { add(Work::kForward, chunk, forwards[chunk]); };
  const auto input = [&](std::size_t chunk) { add(Work::kInput, chunk, inputs[chunk]); };
  const auto weight = [&](std::size_t chunk) { add(Work::kWeights, chunk, weights[chunk]); };
  const auto backward = [&](std::size_t chunk) {
    input(chunk);
    weight(chunk);
  };
  for (Count i = 0; i < 2 * (how.stages - rank) - 1; ++i) forward(0);
  for (Count i = 0; i < rank; ++i) {
    forward(1);
    forward(0);
  }
  for (Count i = 0; i < how.stages - rank; ++i) {
    forward(1);
    backward(1);
  }
  while (forwards[1] < forwards[0] || forwards[0] < filling) {
    if (forwards[0] < filling) forward(0);
    backward(0);
    forward(1);
    backward(1);
  }
  for (Count i = 0; i < rank; ++i) {
    input(0);
    input(1);
  }
  for (Count i = 0; i < how.stages - rank; ++i) backward(0);
  while (weights[1] < inputs[1]) weight(1);
  while (weights[0] < inputs[0]) weight(0);
  return actions;
}

}  // namespace

std::int16_t Pipeline::card_of(std::string_view module) const {
  const Place* best = nullptr;
  for (const Place& place : places) {
    if (lies_in(module, place.module) && (best == nullptr || place.module.size() > best->module.size())) best = &place;
  }
  return best == nullptr ? 0 : best->card;
}

std::vector<ModelStage> stages_of(const Architecture& architecture, const Pipeline& how, Count rank) {
  const Count count = how.stages * how.chunks, layers = architecture.num_layers;
  std::vector<Count> cuts = {0};
  // torchtitan 0.2 distributed/pipeline_parallel.py generate_llm_fqn_per_model_part: the first stages have what is left
  // over.
  const auto with_ends = [&](Count i) {
    const Count all = layers + 2, at = all / count * i + std::min(i, all % count) - 1;
    return i == count ? layers : std::clamp<Count>(at, 0, layers);
  };
  for (Count i = 1; i <= count; ++i) {
    const auto at = static_cast<std::size_t>(i - 1);
    const Count even = how.counts_ends ? with_ends(i) : layers * i / count;
    cuts.push_back(at < how.layout.size() ? cuts.back() + how.layout[at] : even);
  }
  std::vector<ModelStage> stages;
  const bool turns = how.schedule == PipelineSchedule::kZeroBubbleV;
  for (Count k = 0; k < how.chunks; ++k) {
    const Count i = turns && k > 0 ? count - 1 - rank : rank + k * how.stages;
    const auto at = static_cast<std::size_t>(i);
    const Count head = how.head < 0 ? count - 1 : how.head;
    stages.push_back({cuts[at], cuts[at + 1], i == how.table, i == head, i == (how.norm < 0 ? head : how.norm)});
  }
  return stages;
}

Count recorded_micro_batches(const TrainingJob& job, Count rank) {
  const Pipeline& how = job.pipeline;
  // What packed layers hold in the graphs of the last stage grows with each of them.
  if (job.method == Method::kQlora && rank + 1 == how.stages) return how.micro_batches;
  // One more than wait at a time finds the gradients of the first there; one more repeats it.
  if (how.schedule == PipelineSchedule::k1F1B) return std::min(how.micro_batches, warm_up(how, rank) + 2);
  return how.micro_batches;
}

std::vector<PipelineAction> actions_of(const Pipeline& how, Count rank, Count micro_batches) {
  switch (how.schedule) {
    case PipelineSchedule::kGPipe:
      return gpipe(micro_batches);
    case PipelineSchedule::kInterleaved:
      return interleaved(how, rank, micro_batches);
    case PipelineSchedule::kZeroBubble:
      return zero_bubble(how, rank, micro_batches);
    case PipelineSchedule::kZeroBubbleV:
      return zero_bubble_v(how, rank, micro_batches);
    default:
      return one_forward_one_backward(warm_up(how, rank), micro_batches);
  }
}

std::string layers_in_words(const std::vector<ModelStage>& stages) {
  std::string words;
  for (const ModelStage& stage : stages) {
    if (stage.end == stage.begin) continue;
    if (!words.empty()) words += ", ";
    words += std::to_string(stage.begin);
    if (stage.end - stage.begin > 1) words += "-" + std::to_string(stage.end - 1);
  }
  return words.empty() ? "none" : words;
}

}  // namespace tidemark
