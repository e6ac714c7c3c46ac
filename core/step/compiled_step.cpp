#include "core/step/compiled_step.hpp"

#include <algorithm>

#include "core/tape/reduction.hpp"

namespace tidemark {
namespace {

constexpr std::int32_t kDoesNotGrow = -1;

Bytes bytes_of(const Simulation& s, std::size_t storage) {
  return s.tape->storages()[storage].bytes;
}

bool same_allocations(const Simulation& a, const Simulation& b) {
  const auto same_segment = [](const Segment& x, const Segment& y) {
    return x.phase == y.phase && x.instance == y.instance && x.begin == y.begin && x.end == y.end;
  };
  const auto same_parameter = [](const Parameter& x, const Parameter& y) {
    return x.storage == y.storage && x.instance == y.instance;
  };
  const auto &parameters = a.tape->parameters(), &others = b.tape->parameters();
  const auto &segments = a.tape->segments(), &other_segments = b.tape->segments();
  return a.tape->events() == b.tape->events() && a.tape->storages().size() == b.tape->storages().size() &&
         a.tape->buffers() == b.tape->buffers() && a.plan.runs == b.plan.runs && a.micro_steps == b.micro_steps &&
         a.create_states == b.create_states && a.optimizer == b.optimizer &&
         std::equal(segments.begin(), segments.end(), other_segments.begin(), other_segments.end(), same_segment) &&
         std::equal(parameters.begin(), parameters.end(), others.begin(), others.end(), same_parameter);
}

// The guarded storage that the same place of the program makes.
bool is_same_place(const GuardedStorage& a, const GuardedStorage& b) {
  return a.storage == b.storage && a.each == b.each && a.guard.kind == b.guard.kind &&
         a.guard.offset == b.guard.offset && a.guard.parameter == b.guard.parameter;
}

// B^i · S^j's place among the powers (terms_of's order), or kPowers when it is none of them.
std::size_t power(int batch, int sequence, const std::vector<Term>& terms) {
  std::size_t p = 0;
  while (p < kPowers && (terms[p].batch != batch || terms[p].sequence != sequence)) ++p;
  return p;
}

// Whether the polynomial is nowhere negative for B and S from `least` on: all its coefficients around that corner are
// positive or zero. Order of the coefficients as in terms_of: 1, S, B, BS, S², BS².
bool never_negative(const std::array<double, kPowers>& c, Extents least) {
  const auto b = static_cast<double>(least.batch), s = static_cast<double>(least.sequence);
  const auto from = [s](double one, double linear, double square) {
    return one + linear * s + square * s * s >= 0.0 && linear + 2.0 * square * s >= 0.0 && square >= 0.0;
  };
  return from(c[0] + c[2] * b, c[1] + c[3] * b, c[4] + c[5] * b) && from(c[2], c[3], c[5]);
}

// What each term is at each recording.
std::vector<Samples> values_of(const std::vector<Term>& terms, const std::vector<MovingGuard>& quotients,
                               const std::array<Recording, kSamples>& recordings) {
  std::vector<Samples> values(terms.size());
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (std::size_t i = 0; i < kSamples; ++i) values[t][i] = terms[t].value(recordings[i].at, quotients);
  }
  return values;
}

// A guard's outcome lies between slope · quantity + low and slope · quantity + high.
struct Bounds {
  double slope, low, high;
};

Bounds bounds_of(const Guard& guard) {
  const auto divisor = static_cast<double>(guard.parameter), offset = static_cast<double>(guard.offset);
  switch (guard.kind) {
    case Guard::Kind::kBlocks:  // ceil(rows / (256 · height)), or more of them, but no more than fill the card
      return {1.0 / (static_cast<double>(kMostValues) * divisor), -1.0, offset + 1.0};
    case Guard::Kind::kDivided:
      return {0.0, 0.0, 1.0};
    default:  // floor((q + offset) / d)
      return {1.0 / divisor, offset / divisor - 1.0, offset / divisor};
  }
}

}  // namespace

std::optional<CompiledStep> CompiledStep::compile(std::array<Recording, kSamples>&& recordings, Bytes workspaces,
                                                  const Grid& grid) {
  const Simulation& first = recordings[0].simulation;
  for (std::size_t i = 1; i < kSamples; ++i) {
    if (!same_allocations(first, recordings[i].simulation)) return std::nullopt;
  }
  CompiledStep step;
  for (const Guard& guard : first.tape->guards()) {
    if (guard.kind == Guard::Kind::kQuotient) step.quotients_.emplace_back(guard, recordings[0].at);
  }
  if (!step.find_guarded(recordings)) return std::nullopt;
  step.terms_ = terms_of(step.quotients_.size());
  if (!step.find_kinds(recordings, grid)) return std::nullopt;
  Level start;
  start.fixed = workspaces;
  start.count.assign(step.kinds_.size(), 0);
  for (const Lasting& l : lasting_storages(first)) step.add(start, bytes_of(first, l.storage), l.storage, l.times);
  step.first_ = std::move(recordings[0].simulation);
  step.find_instants(start, grid);
  step.term_values_.resize(step.terms_.size());
  step.kind_sizes_.resize(step.kinds_.size());
  return step;
}

// The storages that are as large as a guard says: what it goes by grows as its three quantities do.
bool CompiledStep::find_guarded(const std::array<Recording, kSamples>& recordings) {
  guarded_.assign(recordings[0].simulation.tape->storages().size(), {0, 0});
  const std::vector<Samples> powers = values_of(terms_of(0), {}, recordings);
  const std::vector<GuardedStorage>& first = recordings[0].simulation.tape->guarded_storages();
  for (std::size_t g = 0; g < first.size(); ++g) {
    Samples quantities{};
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::vector<GuardedStorage>& all = recordings[i].simulation.tape->guarded_storages();
      if (all.size() != first.size() || !is_same_place(all[g], first[g])) return false;
      const auto storage = static_cast<std::size_t>(all[g].storage);
      if (bytes_of(recordings[i].simulation, storage) != all[g].each * all[g].guard.outcome()) return false;
      quantities[i] = all[g].guard.quantity;
    }
    const std::optional<Growth> growth = growth_through(quantities, powers);
    if (!growth) return false;
    const MovingGuard moving(first[g].guard, *growth);
    const auto found = std::find_if(quotients_.begin(), quotients_.end(),
                                    [&](const MovingGuard& other) { return other.is_like(moving); });
    guarded_[static_cast<std::size_t>(first[g].storage)] = {static_cast<std::size_t>(found - quotients_.begin()),
                                                            first[g].each};
    if (found == quotients_.end()) quotients_.push_back(moving);
  }
  return true;
}

bool CompiledStep::find_kinds(const std::array<Recording, kSamples>& recordings, const Grid& grid) {
  const std::vector<Samples> term_values = values_of(terms_, quotients_, recordings);
  std::vector<Samples> known;  // of each kind
  const std::size_t storages = recordings[0].simulation.tape->storages().size();
  kind_of_.assign(storages, kDoesNotGrow);
  for (std::size_t id = 0; id < storages; ++id) {
    Samples sizes{};
    for (std::size_t i = 0; i < kSamples; ++i) sizes[i] = bytes_of(recordings[i].simulation, id);
    const auto [quotient, each] = guarded_[id];
    const std::size_t guarded_term = kPowers + kTermsOfAQuotient * quotient;
    // Sizes are never negative: these stand for no others.
    if (each > 0) {
      sizes = {-1, -each, static_cast<Bytes>(quotient)};
    } else if (sizes[0] == sizes[1] && sizes[0] == sizes[2]) {
      continue;
    }
    const auto place = std::find(known.begin(), known.end(), sizes);
    kind_of_[id] = static_cast<std::int32_t>(place - known.begin());
    if (place != known.end()) continue;
    known.push_back(sizes);
    const std::optional<Growth> growth =
        each > 0 ? Growth{guarded_term, guarded_term, each, 0} : growth_through(sizes, term_values);
    if (!growth) return false;
    Kind kind;
    kind.growth = *growth;
    if (!bound(kind, grid)) return false;
    kinds_.push_back(kind);
  }
  return true;
}

bool CompiledStep::bound(Kind& kind, const Grid& grid) const {
  kind.aligned = true;
  const auto put = [&](const Term& term, Count coefficient) {
    const auto c = static_cast<double>(coefficient);
    Count step = coefficient % kMinBlockSize;
    if (term.batch == 1) step = step * grid.common.batch % kMinBlockSize;
    for (int i = 0; i < term.sequence; ++i) step = step * grid.common.sequence % kMinBlockSize;
    if (step != 0) kind.aligned = false;
    std::size_t p = power(term.batch, term.sequence, terms_);
    if (term.quotient < 0) {
      kind.low[p] += c;
      kind.high[p] += c;
      return true;
    }
    const MovingGuard& quotient = quotients_[static_cast<std::size_t>(term.quotient)];
    const Bounds of = bounds_of(quotient.at(grid.least));
    if (coefficient < 0) return false;
    kind.low[p] += c * of.low;
    kind.high[p] += c * of.high;
    const auto add_part = [&](std::size_t part, Count of_it) {
      if (of_it == 0 || of.slope == 0.0) return true;
      const std::size_t moved = power(term.batch + terms_[part].batch, term.sequence + terms_[part].sequence, terms_);
      if (moved == kPowers || of_it < 0) return false;
      kind.low[moved] += c * of.slope * static_cast<double>(of_it);
      kind.high[moved] += c * of.slope * static_cast<double>(of_it);
      return true;
    };
    const Growth& quantity = quotient.quantity();
    const bool is_unknown = quotient.kind() == Guard::Kind::kQuotient && quantity.first == 0 && quantity.b == 0;
    return !is_unknown && add_part(quantity.first, quantity.a) && add_part(quantity.second, quantity.b);
  };
  const Growth& g = kind.growth;
  if (!put(terms_[g.first], g.a) || (g.b != 0 && !put(terms_[g.second], g.b))) return false;
  if (!kind.aligned) kind.high[0] += static_cast<double>(kMinBlockSize);  // what rounding adds, the least block too
  return true;
}

void CompiledStep::add(Level& level, Bytes bytes, std::int32_t storage, Count times) const {
  const std::int32_t of = kind_of_[static_cast<std::size_t>(storage)];
  const auto n = static_cast<double>(times);
  if (of == kDoesNotGrow) {
    const Bytes rounded = times * round_to_block(bytes);
    level.fixed += rounded;
    level.low[0] += static_cast<double>(rounded);
    level.high[0] += static_cast<double>(rounded);
    return;
  }
  const Kind& kind = kinds_[static_cast<std::size_t>(of)];
  level.count[static_cast<std::size_t>(of)] += static_cast<std::int32_t>(times);
  for (std::size_t p = 0; p < kPowers; ++p) {
    level.low[p] += n * kind.low[p];
    level.high[p] += n * kind.high[p];
  }
}

void CompiledStep::find_instants(Level& level, const Grid& grid) {
  const std::vector<Event>& events = first_.tape->events();
  std::vector<Level> best;
  const auto run = [&](Level& here, const Stretch& stretch, bool look) {
    bool rising = true;
    for (std::uint32_t e = stretch.begin; e < stretch.end; ++e) {
      const Event& event = events[e];
      if (event.kind == Event::Kind::kStreamDone) continue;
      // Highest where something is let go next.
      if (event.frees() && rising && look) keep(best, here, grid.least);
      rising = event.allocates();
      add(here, bytes_of(first_, static_cast<std::size_t>(event.subject)), event.subject, rising ? 1 : -1);
    }
    if (rising && look) keep(best, here, grid.least);
  };
  for (const Stretch& stretch : stretches_of(first_)) {
    Level after = level;
    run(after, stretch, !stretch.before_peak);
    if (stretch.times > 1) {
      // The repetitions change the level by equal steps: the highest is at the first or at the last.
      const Count more = stretch.times - 2;
      Level last = after;
      last.fixed += more * (after.fixed - level.fixed);
      for (std::size_t k = 0; k < kinds_.size(); ++k) {
        last.count[k] += static_cast<std::int32_t>(more) * (after.count[k] - level.count[k]);
      }
      for (std::size_t p = 0; p < kPowers; ++p) {
        last.low[p] += static_cast<double>(more) * (after.low[p] - level.low[p]);
        last.high[p] += static_cast<double>(more) * (after.high[p] - level.high[p]);
      }
      after = std::move(last);
      run(after, stretch, !stretch.before_peak);
    }
    level = std::move(after);
  }
  for (const Level& l : best) instants_.push_back(ready(l));
}

void CompiledStep::keep(std::vector<Level>& best, const Level& level, Extents least) const {
  const auto covers = [&](const Level& over, const Level& under) {
    Polynomial difference;
    for (std::size_t p = 0; p < kPowers; ++p) difference[p] = over.low[p] - under.high[p];
    if (never_negative(difference, least)) return true;
    if (over.fixed < under.fixed) return false;
    for (std::size_t k = 0; k < over.count.size(); ++k) {
      if (over.count[k] < under.count[k]) return false;
    }
    return true;
  };
  for (const Level& other : best) {
    if (covers(other, level)) return;
  }
  best.erase(std::remove_if(best.begin(), best.end(), [&](const Level& other) { return covers(level, other); }),
             best.end());
  best.push_back(level);
}

CompiledStep::Instant CompiledStep::ready(const Level& level) const {
  Instant instant;
  instant.fixed = level.fixed;
  instant.coefficients.assign(terms_.size(), 0);
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const std::int32_t n = level.count[k];
    if (n == 0) continue;
    const Growth& g = kinds_[k].growth;
    if (kinds_[k].aligned) {
      instant.coefficients[g.first] += n * g.a;
      instant.coefficients[g.second] += n * g.b;
    } else {
      instant.rounded.emplace_back(k, n);
    }
  }
  return instant;
}

bool CompiledStep::predicts(const Recording& recording) const {
  if (!same_allocations(first_, recording.simulation)) return false;
  for (std::size_t id = 0; id < kind_of_.size(); ++id) {
    Bytes expected = bytes_of(first_, id);
    if (kind_of_[id] != kDoesNotGrow) {
      const Growth& g = kinds_[static_cast<std::size_t>(kind_of_[id])].growth;
      expected = g.a * terms_[g.first].value(recording.at, quotients_) +
                 g.b * terms_[g.second].value(recording.at, quotients_);
    }
    if (expected != bytes_of(recording.simulation, id)) return false;
  }
  return true;
}

Bytes CompiledStep::peak(Extents at) {
  for (std::size_t t = 0; t < terms_.size(); ++t) term_values_[t] = terms_[t].value(at, quotients_);
  std::fill(kind_sizes_.begin(), kind_sizes_.end(), -1);
  Bytes peak = 0;
  for (const Instant& instant : instants_) {
    Bytes live = instant.fixed;
    for (std::size_t t = 0; t < term_values_.size(); ++t) live += instant.coefficients[t] * term_values_[t];
    for (const auto& [k, count] : instant.rounded) {
      Bytes& size = kind_sizes_[k];
      if (size < 0) {
        const Growth& g = kinds_[k].growth;
        size = round_to_block(g.a * term_values_[g.first] + g.b * term_values_[g.second]);
      }
      live += count * size;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace tidemark
