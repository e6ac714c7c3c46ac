#include "core/step/walk.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/cublas.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

// Where a workspace lies among the other blocks decides which of them are not split, a few MiB in small jobs. The
// records leave the workspaces out of the allocator, so here they lie in a segment of their own.
constexpr Stream kWorkspaces = 7;

// Layers that the moments show: twice as many as the deepest published models have. Of deeper ones every k-th is shown.
constexpr Count kMostLayersShown = 256;

class Walker {
 public:
  Walker(const Simulation& s, const WalkOptions& o)
      : sim_(s),
        tape_(*s.tape),
        options_(o),
        allocator_(AllocatorOptions{o.expandable}),
        storage_count_(tape_.storages().size()) {
    Count repeats = 1;
    run_of_.assign(sim_.plan.tape_layers.size(), nullptr);
    for (const Run& run : sim_.plan.runs) {
      repeats = std::max(repeats, run.repeats);
      std::fill(run_of_.begin() + run.begin, run_of_.begin() + run.end, &run);
    }
    const std::size_t slots = storage_count_ * (static_cast<std::size_t>(repeats) + 1);
    if (options_.allocator) handles_.assign(slots, CachingAllocator::kNoBlock);
    if (options_.itemise) {
      result_.sites.assign(tape_.sites().size(), 0);
      result_.site_counts.assign(tape_.sites().size(), 0);
      plays_.assign(tape_.segments().size(), 0);
    }
    map_groups();
    gather_facts();
  }

  Walk run() {
    load();
    step(1);
    step(2);
    if (options_.allocator) step(3);
    if (!peak_plays_.empty()) count_sites();
    // A card of a device_map whose modules are not run has what was loaded.
    if (result_.peak == 0) result_.peak = allocated();
    if (result_.first_peak == 0) result_.first_peak = result_.peak;
    auto& moments = result_.moments;
    moments.insert(moments.begin() + static_cast<std::ptrdiff_t>(peak_place_), peak_moments_.begin(),
                   peak_moments_.end());
    return std::move(result_);
  }

 private:
  using Run = LayerPlan::Run;

  // What the replay asks of a storage at each of its events, which are many times as many as there are storages.
  struct Facts {
    Bytes bytes = 0;                   ///< as requested
    Bytes rounded = 0;                 ///< the same in whole blocks
    const Run* born_within = nullptr;  ///< the run that repeats the layer instance it was born in, or null
    std::int32_t site = 0;             ///< where it is made
    std::int16_t born_in = -1;         ///< that layer instance
    Stream stream = kMainStream;       ///< that it was allocated on
    std::int16_t category = 0;         ///< of its site
  };

  void gather_facts() {
    facts_.resize(storage_count_);
    for (std::size_t id = 0; id < storage_count_; ++id) {
      const Storage& s = tape_.storages()[id];
      Facts& facts = facts_[id];
      facts.bytes = s.bytes;
      facts.rounded = round_to_block(s.bytes);
      facts.site = s.site;
      facts.stream = s.stream;
      facts.category = static_cast<std::int16_t>(tape_.sites()[static_cast<std::size_t>(s.site)].category);
      if (birth_[id] < 0) continue;
      facts.born_in = tape_.segments()[static_cast<std::size_t>(birth_[id])].instance;
      facts.born_within = run_of(facts.born_in);
    }
  }

  // The run that repeats a layer instance, or null.
  const Run* run_of(Count instance) const {
    return instance < 0 ? nullptr : run_of_[static_cast<std::size_t>(instance)];
  }

  // For each storage: the segment it was born in, and the same storage of a neighbouring period.
  void map_groups() {
    birth_.assign(storage_count_, -1);
    death_.assign(storage_count_, -1);
    counterpart_.assign(storage_count_, -1);
    const auto& segments = tape_.segments();
    by_rank_.resize(segments.size());
    for (std::size_t g = 0; g < segments.size(); ++g) {
      for (std::uint32_t e = segments[g].begin; e < segments[g].end; ++e) {
        const Event& event = tape_.events()[e];
        if (event.kind == Event::Kind::kStreamDone) continue;
        const auto id = static_cast<std::size_t>(event.subject);
        if (!event.allocates()) {
          death_[id] = segments[g].instance;
          continue;
        }
        birth_[id] = static_cast<std::int32_t>(g);
        by_rank_[g].push_back(event.subject);
      }
    }
    // The segment of the repeated period that corresponds to one of a neighbouring period: same phase, same pass,
    // one period further.
    std::vector<std::vector<std::size_t>> of_instance(sim_.plan.tape_layers.size());
    for (std::size_t g = 0; g < segments.size(); ++g) {
      if (segments[g].instance >= 0) of_instance[static_cast<std::size_t>(segments[g].instance)].push_back(g);
    }
    twin_.assign(segments.size(), -1);
    if (sim_.plan.runs.empty()) return;
    for (std::size_t g = 0; g < segments.size(); ++g) {
      const Segment& a = segments[g];
      const Count wanted = repeated_neighbour(a.instance);
      if (wanted < 0) continue;
      // Search near g, within the same pass over the layers (segments between two of instance −1 or a turn).
      std::size_t best = segments.size();
      for (const std::size_t h : of_instance[static_cast<std::size_t>(wanted)]) {
        if (segments[h].phase != a.phase || part_of(h) != part_of(g)) continue;
        const std::size_t distance = h > g ? h - g : g - h;
        if (best == segments.size() || distance < (best > g ? best - g : g - best)) best = h;
      }
      if (best == segments.size()) continue;
      twin_[g] = static_cast<std::int32_t>(best);
      match(by_rank_[g], by_rank_[best]);
    }
  }

  // The storages of a segment and those of its twin: in their order where they are as many; else the k-th of a site
  // that is let go as many layers further is the other's k-th (a last layer whose weights stay gathered has less to do,
  // one that nobody gathered ahead has more).
  void match(const std::vector<std::int32_t>& ours, const std::vector<std::int32_t>& theirs) {
    if (ours.size() == theirs.size()) {
      for (std::size_t i = 0; i < ours.size(); ++i) counterpart_[static_cast<std::size_t>(ours[i])] = theirs[i];
      return;
    }
    std::vector<char> taken(theirs.size(), 0);
    const auto site = [this](std::int32_t id) { return tape_.storages()[static_cast<std::size_t>(id)].site; };
    for (const std::int32_t id : ours) {
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        if (taken[i] != 0 || site(theirs[i]) != site(id) || way_of(theirs[i]) != way_of(id)) continue;
        taken[i] = 1;
        counterpart_[static_cast<std::size_t>(id)] = theirs[i];
        break;
      }
    }
  }

  // How many layer instances lie between a storage's birth and the last event that lets it go, if that is in a layer.
  std::optional<int> way_of(std::int32_t id) const {
    const auto at = static_cast<std::size_t>(id);
    if (death_[at] < 0) return std::nullopt;
    return death_[at] - tape_.segments()[static_cast<std::size_t>(birth_[at])].instance;
  }

  // The repeated layer instance that is like this one, a period before or behind it; −1 where there is none.
  Count repeated_neighbour(Count instance) const {
    for (const Run& run : sim_.plan.runs) {
      if (instance < run.section_begin || instance >= run.section_end) continue;
      if (run_of(instance) != nullptr) return -1;
      for (const Count neighbour : {instance + run.period(), instance - run.period()}) {
        if (neighbour >= run.begin && neighbour < run.end) return neighbour;
      }
    }
    return -1;
  }

  // Which recorded part (micro-step, optimizer, zero_grad) a segment belongs to.
  std::size_t part_of(std::size_t segment) const {
    std::size_t part = 0;
    for (std::size_t start : sim_.micro_steps) part += segment >= start;
    part += segment >= sim_.create_states;
    part += segment >= sim_.optimizer;
    part += segment >= sim_.zero_grad;
    return part;
  }

  std::uint32_t used_on(std::int32_t storage) const {
    return tape_.storages()[static_cast<std::size_t>(storage)].used_on;
  }

  std::size_t slot(Count repetition, std::int32_t storage) const {
    return static_cast<std::size_t>(repetition) * storage_count_ + static_cast<std::size_t>(storage);
  }

  // Where a storage that segment `in` names at repetition j really lives.
  std::size_t resolve(std::int16_t in, Count j, std::int32_t storage) const {
    const std::int32_t birth = birth_[static_cast<std::size_t>(storage)];
    if (sim_.plan.runs.empty() || birth < 0) return slot(0, storage);
    const Count born = facts_[static_cast<std::size_t>(storage)].born_in;
    const Run* const here = run_of(in);
    const Run* const there = facts_[static_cast<std::size_t>(storage)].born_within;
    if (there != nullptr) {
      if (there == here) return slot(j, storage);
      // What stands before the repeated layers meets the first of them, everything behind meets the last.
      const bool before = in >= 0 && in < there->begin;
      return slot(before ? 1 : there->repeats, storage);
    }
    const std::int32_t twin = here == nullptr ? -1 : twin_[static_cast<std::size_t>(birth)];
    if (twin < 0 || run_of(tape_.segments()[static_cast<std::size_t>(twin)].instance) != here) return slot(0, storage);
    const Count neighbour = born < in ? j - 1 : j + 1;
    if (neighbour < 1 || neighbour > here->repeats) return slot(0, storage);
    const std::int32_t other = counterpart_[static_cast<std::size_t>(storage)];
    return other < 0 ? slot(0, storage) : slot(neighbour, other);
  }

  void load() {
    // Weights and buffers in the order in which the model makes them: layer by layer, each as often as it occurs.
    std::vector<std::pair<std::int32_t, std::int16_t>> all;  // storage, layer instance
    for (const Parameter& p : tape_.parameters()) all.emplace_back(p.storage, p.instance);
    for (std::size_t i = 0; i < tape_.buffers().size(); ++i) {
      all.emplace_back(tape_.buffers()[i], tape_.buffer_instances()[i]);
    }
    sort_list(all, [](const auto& a, const auto& b) { return a < b; });
    sim_.plan.in_model_order(
        all.size(), [&](std::size_t i) { return all[i].second; }, [&](std::size_t i) { persistent(all[i].first); });
  }

  void persistent(std::int32_t storage) {
    const Facts& facts = facts_[static_cast<std::size_t>(storage)];
    if (facts.bytes <= 0) return;
    live_ += facts.rounded;
    categories_[facts.category] += facts.rounded;
    if (options_.itemise) count_site(facts, 1);
    if (options_.allocator) allocator_.malloc(facts.bytes);
  }

  void workspace() {
    if (options_.cublas_workspace <= 0) return;
    const Bytes rounded = round_to_block(options_.cublas_workspace);
    live_ += rounded;
    categories_[static_cast<int>(Category::kWorkspace)] += rounded;
    result_.workspaces += rounded;
    if (options_.allocator) allocator_.malloc(options_.cublas_workspace, kWorkspaces);
  }

  void step(int number) {
    number_ = number;
    const auto& micro = sim_.micro_steps;
    for (const std::size_t m : sim_.played_in(number)) {
      const std::size_t end = m + 1 < micro.size() ? micro[m + 1] : sim_.create_states;
      range(micro[m], end);
    }
    if (number == 1) range(sim_.create_states, sim_.optimizer);
    range(sim_.optimizer, sim_.zero_grad);
    range(sim_.zero_grad, tape_.segments().size());
  }

  void range(std::size_t begin, std::size_t end) {
    const auto& segments = tape_.segments();
    std::size_t g = begin;
    while (g < end) {
      const Run* const run = run_of(segments[g].instance);
      if (run == nullptr) {
        segment(g, 0);
        ++g;
        continue;
      }
      // The segments that belong to the repeated period.
      std::size_t stop = g;
      while (stop < end && run_of(segments[stop].instance) == run) ++stop;
      const bool backwards = segments[g].phase == Phase::kBackward;
      for (Count k = 1; k <= run->repeats; ++k) {
        const Count j = backwards ? run->repeats + 1 - k : k;
        for (std::size_t h = g; h < stop; ++h) segment(h, j);
      }
      g = stop;
    }
  }

  // Each handle's as the first product of its thread runs.
  void make_workspaces(const Segment& g) {
    if (workspaces_ == 0 && g.instance >= 0 && g.phase == Phase::kForward) {
      workspace();
      ++workspaces_;
    }
    // A model without layers has made its first by now, too.
    const int least = options_.multiplies ? 0 : 1;
    while (workspaces_ >= least && workspaces_ < kCublasHandles && g.phase == Phase::kBackward) {
      workspace();
      ++workspaces_;
    }
  }

  void segment(std::size_t index, Count repetition) {
    const Segment& g = tape_.segments()[index];
    if (number_ == 1) make_workspaces(g);
    phase_ = sim_.phase_of(index);
    const Run* const here = run_of(g.instance);
    const bool records = options_.itemise && number_ == 2, replays = options_.allocator;
    std::int32_t* const row = replays ? handles_.data() + slot(here == nullptr ? 0 : repetition, 0) : nullptr;
    const Bytes at_first = allocated();
    Bytes live = live_, high_live = live_;
    High high;
    const Event* const events = tape_.events().data();
    for (std::uint32_t e = g.begin; e < g.end; ++e) {
      const Event event = events[e];
      if (event.kind == Event::Kind::kStreamDone) {
        if (replays) allocator_.stream_done(static_cast<Stream>(event.subject));
        continue;
      }
      const Facts& facts = facts_[static_cast<std::size_t>(event.subject)];
      std::int32_t* handle = nullptr;
      // Most storages are used where they are born, in layers that the same run repeats or in none.
      if (replays && facts.born_within == here) handle = row + event.subject;
      if (replays && facts.born_within != here) handle = &handles_[resolve(g.instance, repetition, event.subject)];
      if (event.allocates()) {
        live += facts.rounded;
        categories_[facts.category] += facts.rounded;
        if (replays) *handle = allocator_.malloc(facts.bytes, facts.stream);
        high_live = std::max(high_live, live);
        if (const Bytes now = replays ? allocator_.allocated() : live; now > high.total) {
          high.total = now;
          high.event = e;
          high.is_kept = !records && (number_ < 2 || now <= result_.peak);
        }
      } else {
        // On the way up each height is passed by the next one: it is kept once the memory falls again.
        if (!high.is_kept) keep(high, live);
        live -= facts.rounded;
        categories_[facts.category] -= facts.rounded;
        if (!replays) continue;
        result_.unmatched += *handle == CachingAllocator::kNoBlock && facts.rounded > 0;
        allocator_.free(*handle, event.kind == Event::Kind::kFreeAfter ? used_on(event.subject) : 0);
        *handle = CachingAllocator::kNoBlock;
      }
    }
    live_ = live;
    if (!high.is_kept) keep(high, live);
    note(high_live, std::max(at_first, high.total));
    if (number_ == 1) result_.first_peak = std::max(result_.first_peak, high.total);
    const bool is_peak = number_ >= 2 && high.total > result_.peak;
    if (is_peak) set_peak(high, index, repetition);
    if (records) set_moments(high, g, repetition, is_peak);
    if (options_.itemise) ++plays_[index];
  }

  // The highest point of a segment.
  struct High {
    Bytes total = -1;         // −1: nothing is allocated there
    Bytes live = 0;           // storages at that point
    std::uint32_t event = 0;  // that makes it
    bool is_kept = true;      // what follows is of this point
    Bytes by_category[kCategoryCount] = {};
  };

  void keep(High& high, Bytes live) const {
    high.is_kept = true;
    high.live = live;
    std::copy(categories_, categories_ + kCategoryCount, high.by_category);
  }

  Bytes allocated() const { return options_.allocator ? allocator_.allocated() : live_; }

  std::int32_t site_of(std::uint32_t event) const {
    return facts_[static_cast<std::size_t>(tape_.events()[event].subject)].site;
  }

  void note(Bytes live, Bytes allocated) {
    PhasePeak& peak = number_ == 1 ? result_.first[static_cast<int>(phase_)] : result_.steady[static_cast<int>(phase_)];
    peak.live = std::max(peak.live, live);
    peak.allocated = std::max(peak.allocated, allocated);
    if (!options_.allocator) return;
    peak.reserved = std::max(peak.reserved, allocator_.reserved());
    if (number_ >= 2) result_.reserved = std::max(result_.reserved, allocator_.reserved());
  }

  void set_peak(const High& high, std::size_t index, Count repetition) {
    result_.peak = high.total;
    result_.unsplit = high.total - high.live;
    result_.at = moment_of(high, tape_.segments()[index], repetition);
    result_.at.site = site_of(high.event);
    if (!options_.itemise) return;
    peak_segment_ = index;
    peak_end_ = high.event + 1;
    peak_plays_ = plays_;
  }

  void set_moments(const High& high, const Segment& g, Count repetition, bool is_peak) {
    const bool listed = shown(model_layer(g.instance, repetition));
    if (is_peak) {
      peak_moments_.clear();
      peak_place_ = result_.moments.size();
    } else if (!listed) {
      return;
    }
    std::vector<Moment>& moments = listed ? result_.moments : peak_moments_;
    if (high.total >= 0) {
      moments.push_back(moment_of(high, g, repetition));
      moments.back().site = site_of(high.event);
      moments.back().peak_of_segment = true;
    }
    High end;
    end.total = allocated();
    keep(end, live_);
    moments.push_back(moment_of(end, g, repetition));
  }

  // What lives at each site at the peak: of every segment as often as it was played until then.
  void count_sites() {
    const auto& segments = tape_.segments();
    const auto count = [this](std::uint32_t begin, std::uint32_t end, Count times) {
      for (std::uint32_t e = begin; times > 0 && e < end; ++e) {
        const Event& event = tape_.events()[e];
        if (event.kind == Event::Kind::kStreamDone) continue;
        const Facts& facts = facts_[static_cast<std::size_t>(event.subject)];
        count_site(facts, event.allocates() ? times : -times);
      }
    };
    for (std::size_t g = 0; g < segments.size(); ++g) count(segments[g].begin, segments[g].end, peak_plays_[g]);
    count(segments[peak_segment_].begin, peak_end_, 1);
  }

  void count_site(const Facts& facts, Count times) {
    result_.sites[static_cast<std::size_t>(facts.site)] += facts.rounded * times;
    result_.site_counts[static_cast<std::size_t>(facts.site)] += times;
  }

  bool shown(Count layer) const {
    const Count layers = sim_.plan.layers();
    const Count step = (layers + kMostLayersShown - 1) / kMostLayersShown;
    return layer < 0 || layer % step == 0 || layer == layers - 1;
  }

  Moment moment_of(const High& high, const Segment& g, Count repetition) const {
    Moment m;
    m.phase = phase_;
    m.instance = g.instance;
    m.layer = model_layer(g.instance, repetition);
    m.total = high.total;
    std::copy(high.by_category, high.by_category + kCategoryCount, m.by_category);
    m.by_category[static_cast<int>(Category::kWorkspace)] += high.total - high.live;
    return m;
  }

  Count model_layer(std::int16_t instance, Count repetition) const {
    if (instance < 0) return -1;
    const LayerPlan::TapeLayer& layer = sim_.plan.tape_layers[static_cast<std::size_t>(instance)];
    const Count first = sim_.plan.stacks[static_cast<std::size_t>(layer.stack)].first + layer.layer;
    const Run* const run = run_of(instance);
    return run != nullptr && repetition > 1 ? first + (repetition - 1) * run->period() : first;
  }

  const Simulation& sim_;
  const Tape& tape_;
  const WalkOptions& options_;
  CachingAllocator allocator_;
  std::size_t storage_count_;
  std::vector<const Run*> run_of_;  // of each layer instance
  std::vector<Facts> facts_;        // by storage
  std::vector<std::int32_t> handles_;
  std::vector<std::int32_t> birth_, counterpart_, twin_;
  std::vector<std::int16_t> death_;  // the layer instance in which a storage goes
  std::vector<std::vector<std::int32_t>> by_rank_;
  Bytes categories_[kCategoryCount] = {};
  Bytes live_ = 0;
  int number_ = 0;
  int workspaces_ = 0;
  Phase phase_ = Phase::kForward;
  std::vector<Moment> peak_moments_;  // of the highest layer so far, where it is none of those shown
  std::size_t peak_place_ = 0;        // where they belong among the moments
  std::vector<Count> plays_;          // how often each segment was played so far
  std::vector<Count> peak_plays_;     // the same as the one of the peak began
  std::size_t peak_segment_ = 0;
  std::uint32_t peak_end_ = 0;  // the event behind the one that makes the peak
  Walk result_;
};

}  // namespace

Walk walk(const Simulation& simulation, const WalkOptions& options) {
  return Walker(simulation, options).run();
}

}  // namespace tidemark
