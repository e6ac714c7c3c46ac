#include "core/fit/combination.hpp"

#include <algorithm>
#include <array>
#include <queue>

namespace tidemark {
namespace {

/// Which step of each lever: 0 for none, else one more than its index.
using Choice = std::array<std::uint8_t, kLeverCount>;

struct Node {
  int weight = 0;
  int taken = 0;  // number of steps
  int depth = 0;  // levers decided
  Choice choice = {};
  TrainingJob job;
};

/// Whether `a` comes after `b` in the queue.
struct Later {
  bool operator()(const Node& a, const Node& b) const {
    if (a.weight != b.weight) return a.weight > b.weight;
    if (a.taken != b.taken) return a.taken > b.taken;
    if (a.choice != b.choice) return a.choice > b.choice;
    return a.depth < b.depth;
  }
};

class Search {
 public:
  Search(Peaks& peaks, const TrainingJob& job, const Card& card, const std::vector<std::string>& refused,
         Count most_tries)
      : peaks_(peaks), start_(job), card_(card), refused_(refused), most_(peaks.quick_count() + most_tries) {
    first_quick_ = peaks.quick_count();
    first_full_ = peaks.full_count();
  }

  Combination run() {
    const Node start{0, 0, 0, {}, start_};
    if (!may_fit(start_, 0)) return give_up();
    std::priority_queue<Node, std::vector<Node>, Later> queue;
    queue.push(start);
    while (!queue.empty()) {
      const Node node = queue.top();
      queue.pop();
      if (peaks_.quick_count() > most_) return relax();
      if (node.depth == kLeverCount) {
        if (!fits(peaks_.quick(node.job)) || !fits(peaks_.full(node.job))) continue;
        Combination done = taken(node);
        if (!fits(done.figures)) continue;
        done.found = true;
        return done;
      }
      // Judged when its turn comes, not when it is found: most are never looked at again.
      if (!may_fit(node.job, node.depth)) continue;
      push_choices(node, queue);
    }
    return give_up();
  }

 private:
  static Lever lever_at(int depth) { return static_cast<Lever>(depth); }

  bool fits(const Figures& figures) const { return tidemark::fits(figures, card_); }

  // What several GPUs divide otherwise may be larger, and stands in the way of other levers; the shortest sequence may
  // have no room for its pictures.
  bool may_hurt(Lever lever) const {
    const bool sees = lever == Lever::kSequence && (start_.images_per_sample > 0 || start_.audio_seconds > 0.0);
    return sees || lever == Lever::kSharding || lever == Lever::kModelParallel || lever == Lever::kLoss;
  }
  /// Whether a job without that lever may be the smallest.
  bool may_stay(Lever lever) const {
    const bool in_the_way = lever == Lever::kOptimizer || lever == Lever::kOffload || lever == Lever::kCheckpointing;
    return lever == Lever::kBatch || may_hurt(lever) || (in_the_way && start_.gpus() > 1);
  }

  std::vector<Step> steps_at(int depth, const TrainingJob& job) const {
    return steps_of(lever_at(depth), job, peaks_.architecture(), refused_);
  }

  template <class Queue>
  void push_choices(const Node& node, Queue& queue) const {
    Node next = node;
    std::vector<Step> steps;
    // Of levers that offer nothing there is nothing to decide.
    while (next.depth < kLeverCount && steps.empty()) steps = steps_at(next.depth++, next.job);
    queue.push(next);
    std::uint8_t index = 0;
    for (const Step& step : steps) queue.push(with(step, ++index, next));
  }

  /// Whether some choice of the levers from `depth` on may bring the job below what the card gives. Levers whose
  /// effect grows with the step are tried at their strongest only; of those that can also make a job larger (the first
  /// halving of the batch keeps gradients through forward; Liger's loss holds the head's gradient early) every end.
  /// The expected peak is judged: its high end is wider for some options than for others.
  bool may_fit(const TrainingJob& job, int depth) {
    if (depth == kLeverCount) {
      const Figures& figures = peaks_.quick(job);
      if (strict_) return fits(figures);
      // Slack for small effects against the rule: 32-bit states of small tensors in 8-bit optimizers, masks.
      return figures.known && figures.allocated.expected <= card_.visible - card_.context + (64 * kMiB);
    }
    const std::vector<Step> steps = steps_at(depth, job);
    for (const Step& step : steps) {
      if (step.strongest && may_fit(after(step, job), depth + 1)) return true;
    }
    const Lever lever = lever_at(depth);
    if ((steps.empty() || may_stay(lever)) && may_fit(job, depth + 1)) return true;
    if (!may_hurt(lever)) return false;
    for (const Step& step : steps) {
      if (!step.strongest && may_fit(after(step, job), depth + 1)) return true;
    }
    return false;
  }

  /// The smallest of the jobs that `may_fit` would look at, with the choices that lead to it.
  Node strongest(const Node& node) {
    if (node.depth == kLeverCount) return node;
    Node best = node;
    Bytes least = -1;
    const auto consider = [&](const Node& changed) {
      Node end = strongest(changed);
      const Figures& figures = peaks_.quick(end.job);
      if (!figures.known || (least >= 0 && figures.allocated.expected >= least)) return;
      least = figures.allocated.expected;
      best = std::move(end);
    };
    const std::vector<Step> steps = steps_at(node.depth, node.job);
    const Lever lever = lever_at(node.depth);
    Node same = node;
    ++same.depth;
    if (steps.empty() || may_stay(lever)) consider(same);
    std::uint8_t index = 0;
    for (const Step& step : steps) {
      ++index;
      if (step.strongest || may_hurt(lever)) consider(with(step, index, same));
    }
    return best;
  }

  /// One lever further: `step`, the index-th of the lever before `next.depth`, is taken.
  Node with(const Step& step, std::uint8_t index, Node next) const {
    next.weight += step.cost.weight;
    ++next.taken;
    next.choice[static_cast<std::size_t>(next.depth) - 1] = index;
    next.job = after(step, next.job);
    return next;
  }

  /// Beyond the bound: from the smallest job, each lever is turned back as far as the job still fits, in their order.
  Combination relax() {
    strict_ = true;
    Node node{0, 0, 0, {}, start_};
    while (node.depth < kLeverCount) {
      Node next = node;
      ++next.depth;
      bool chosen = may_fit(node.job, next.depth);
      std::uint8_t index = 0;
      for (const Step& step : steps_at(node.depth, node.job)) {
        ++index;
        if (chosen || !may_fit(after(step, node.job), next.depth)) continue;
        chosen = true;
        next = with(step, index, next);
      }
      node = std::move(next);
    }
    Combination done = taken(node);
    done.found = fits(done.figures);
    done.proven = false;
    return done;
  }

  // The smallest job that was tried, or where the request does not take it, the job as it is.
  Combination give_up() {
    const Node start{0, 0, 0, {}, start_};
    Combination done = taken(strongest(start));
    return done.figures.known ? done : taken(start);
  }

  /// The steps of a node, and what the request with all of them is answered by.
  Combination taken(const Node& node) {
    Combination result;
    result.weight = node.weight;
    result.job = start_;
    for (int depth = 0; depth < kLeverCount; ++depth) {
      const std::uint8_t index = node.choice[static_cast<std::size_t>(depth)];
      if (index == 0) continue;
      result.steps.push_back(steps_at(depth, result.job)[index - 1U]);
      result.job = after(result.steps.back(), result.job);
    }
    result.figures = peaks_.afresh(settings_of(result.steps), result.job);
    result.tried = peaks_.quick_count() - first_quick_;
    result.verified = peaks_.full_count() - first_full_;
    return result;
  }

  Peaks& peaks_;
  const TrainingJob& start_;
  const Card& card_;
  const std::vector<std::string>& refused_;
  Count most_;
  Count first_quick_ = 0;
  Count first_full_ = 0;
  bool strict_ = false;  // judge the high end, without slack
};

}  // namespace

Combination least_harm(Peaks& peaks, const TrainingJob& job, const Card& card, const std::vector<std::string>& refused,
                       Count most_tries) {
  return Search(peaks, job, card, refused, most_tries).run();
}

}  // namespace tidemark
