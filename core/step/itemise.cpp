#include "core/step/itemise.hpp"

#include <algorithm>
#include <cstring>

#include "core/units/decimal.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

const char* symbol_text(Symbol s) {
  switch (s) {
    case Symbol::kBatch:
      return "B";
    case Symbol::kSequence:
      return "S";
    case Symbol::kTokens:
      return "B·S";
    case Symbol::kHidden:
      return "H";
    case Symbol::kFeedForward:
      return "F";
    case Symbol::kVocab:
      return "V";
    case Symbol::kHeads:
      return "A";
    case Symbol::kKvHeads:
      return "A_kv";
    case Symbol::kHeadDim:
      return "hd";
    case Symbol::kQuery:
      return "Q";
    case Symbol::kKeyValue:
      return "K";
    case Symbol::kRank:
      return "r";
    case Symbol::kNone:
      break;
  }
  return "";
}

struct Line {
  std::string name, formula, substituted, source;
  Bytes bytes = 0;
  Count pieces = 0;
  Confidence confidence = Confidence::kExact;
};

// "2·B·S·F × 32" and "2 × 1 × 2048 × 11008 B × 32".
void write_formula(const Site& site, Count times, Bytes bytes, double factor, Line& line) {
  const std::string width = std::to_string(size_of(site.dtype));
  std::string formula = width, numbers = width;
  for (int i = 0; i < site.shape.rank; ++i) {
    const Dim& d = site.shape.dims[i];
    if (d.n() == 1) continue;
    const char* symbol = symbol_text(d.symbol());
    formula += "·";
    formula += symbol[0] != '\0' ? std::string(symbol) : std::to_string(d.n());
    numbers += " × " + std::to_string(d.n());
  }
  numbers += " B";
  if (times > 1) {
    formula += " × " + std::to_string(times);
    numbers += " × " + std::to_string(times);
  }
  Bytes exact = site.shape.numel() * size_of(site.dtype) * times;
  if (factor != 1.0 && site.category == Category::kActivations) {
    exact = bytes;
    formula += " × the calibration's factor";
    numbers += " × " + shortest_decimal(factor);
  }
  if (exact != bytes) numbers += " + " + std::to_string(bytes - exact) + " B of 512 B rounding";
  line.formula = formula;
  line.substituted = numbers;
}

std::string site_name(const ScopeName& scope, const Site& site) {
  std::string name = scope.module;
  if (name.empty()) {
    // A layer's own statements (residual additions): the method that the source names.
    const std::string source = scope.source;
    const std::size_t colon = source.rfind(": ");
    if (colon != std::string::npos) name = source.substr(colon + 2);
  }
  if (!name.empty()) name += ": ";
  name += site.op;
  if (site.backward) name += " (gradient)";
  return name;
}

/// What is live at the peak of one place.
struct Live {
  std::size_t site;
  Bytes bytes;
  Count count;
};

// Not every linker makes one of equal literals: files that name a place alike may have sites of their own for it.
bool is_same_place(const Tape& tape, const Site& a, const Site& b) {
  const ScopeName &left = tape.scopes()[static_cast<std::size_t>(a.scope)],
                  &right = tape.scopes()[static_cast<std::size_t>(b.scope)];
  return a.category == b.category && a.dtype == b.dtype && a.backward == b.backward &&
         a.shape.numel() == b.shape.numel() && std::strcmp(a.op, b.op) == 0 &&
         std::strcmp(left.module, right.module) == 0 && std::strcmp(left.source, right.source) == 0;
}

std::vector<Live> live_places(const Tape& tape, const Walk& walk) {
  std::vector<Live> places;
  for (std::size_t i = 0; i < walk.sites.size(); ++i) {
    if (walk.sites[i] == 0) continue;
    const auto known = std::find_if(places.begin(), places.end(), [&](const Live& place) {
      return is_same_place(tape, tape.sites()[place.site], tape.sites()[i]);
    });
    if (known == places.end()) {
      places.push_back({i, walk.sites[i], walk.site_counts[i]});
    } else {
      known->bytes += walk.sites[i];
      known->count += walk.site_counts[i];
    }
  }
  return places;
}

}  // namespace

std::vector<BreakdownGroup> itemise(const Simulation& simulation, const Walk& walk) {
  const Tape& tape = *simulation.tape;
  std::vector<BreakdownGroup> groups(kCategoryCount);
  for (int c = 0; c < kCategoryCount; ++c) groups[static_cast<std::size_t>(c)].category = static_cast<Category>(c);
  for (const Live& place : live_places(tape, walk)) {
    const Site& site = tape.sites()[place.site];
    const ScopeName& scope = tape.scopes()[static_cast<std::size_t>(site.scope)];
    Line line;
    line.name = site_name(scope, site);
    line.source = scope.source;
    line.bytes = place.bytes;
    write_formula(site, place.count, place.bytes, simulation.activations_factor, line);
    BreakdownGroup& group = groups[static_cast<std::size_t>(site.category)];
    group.bytes += line.bytes;
    group.entries.push_back({line.name, line.bytes, line.formula, line.substituted, line.source,
                             site.category == Category::kWorkspace ? Confidence::kModelled : Confidence::kExact});
  }
  BreakdownGroup& workspace = groups[static_cast<std::size_t>(Category::kWorkspace)];
  if (walk.workspaces > 0) {
    workspace.bytes += walk.workspaces;
    workspace.entries.push_back({"cuBLAS workspaces (forward and autograd threads)", walk.workspaces,
                                 "2 × workspace of one handle", "2 × " + std::to_string(walk.workspaces / 2) + " B",
                                 "pytorch v2.6.0 aten/src/ATen/cuda/CublasHandlePool.cpp: parseChosenWorkspaceSize",
                                 Confidence::kMeasured});
  }
  if (walk.unsplit > 0) {
    workspace.bytes += walk.unsplit;
    workspace.entries.push_back({"block remainders that the allocator does not split off", walk.unsplit,
                                 "sum over blocks of (block − request), each ≤ 1 MiB",
                                 std::to_string(walk.unsplit) + " B from the replay",
                                 "pytorch v2.6.0 c10/cuda/CUDACachingAllocator.cpp: should_split", Confidence::kExact});
  }
  for (BreakdownGroup& g : groups) {
    sort_list(g.entries, [](const BreakdownEntry& a, const BreakdownEntry& b) { return a.bytes > b.bytes; });
  }
  groups.erase(std::remove_if(groups.begin(), groups.end(), [](const BreakdownGroup& g) { return g.bytes == 0; }),
               groups.end());
  return groups;
}

namespace {

// "layers.3", or in a model of several stacks by the stack's own path: "decoder.block.3".
std::string layer_name(const LayerPlan& plan, Count layer) {
  std::string_view path = "layers";
  if (plan.stacks.size() > 1) {
    const auto behind = [layer](const LayerPlan::Stack& stack) { return stack.first + stack.layers > layer; };
    const auto stack = std::find_if(plan.stacks.begin(), plan.stacks.end(), behind);
    path = stack->path;
    layer += stack->skipped - stack->first;
  } else {
    layer += plan.stacks.front().skipped;
  }
  return std::string{path} + "." + std::to_string(layer);
}

}  // namespace

std::string place_name(const Simulation& simulation, const Moment& moment) {
  const Tape& tape = *simulation.tape;
  std::string module;
  if (moment.site >= 0) {
    const Site& site = tape.sites()[static_cast<std::size_t>(moment.site)];
    module = tape.scopes()[static_cast<std::size_t>(site.scope)].module;
  }
  if (moment.layer < 0) return module.empty() ? "model" : module;
  std::string name = layer_name(simulation.plan, moment.layer);
  if (!module.empty()) name += "." + module;
  return name;
}

std::vector<Instant> timeline(const Simulation& simulation, const Walk& walk) {
  std::vector<Instant> instants;
  instants.reserve(walk.moments.size());
  for (const Moment& m : walk.moments) {
    Instant i;
    i.phase = m.phase;
    i.total = m.total;
    for (int c = 0; c < kCategoryCount; ++c) i.bytes[c] = m.by_category[c];
    i.label = std::string(name_of(m.phase)) + ": " + place_name(simulation, m) +
              (m.peak_of_segment ? " (highest)" : " (end)");
    instants.push_back(std::move(i));
  }
  return instants;
}

}  // namespace tidemark
