#include "core/exchange/trouble/snapshot.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/exchange/trouble/pickle.hpp"

namespace tidemark::exchange {
namespace {

/// Lists may be shared, so their sum may be far more than the file: this many steps are taken.
constexpr Count kMostSteps = 40'000'000;
constexpr std::size_t kMostSites = 12;

using Item = Pickle::Item;

/// One device's events, replayed.
struct Replay {
  struct Live {
    Bytes bytes = 0;
    const Item* entry = nullptr;
  };
  std::unordered_map<std::int64_t, Live> live;
  Bytes now = 0;
  Bytes peak = 0;
  std::size_t peak_at = 0;  ///< how many entries were replayed by then
};

void replay(const Pickle& pickle, const std::vector<Pickle::Ref>& entries, std::size_t count, Replay& out) {
  for (std::size_t i = 0; i < count; ++i) {
    const Item& entry = pickle.at(entries[i]);
    const std::string_view action = pickle.text(entry, "action");
    const std::int64_t address = pickle.integer(entry, "addr");
    if (action == "alloc") {
      const Bytes bytes = pickle.integer(entry, "size");
      out.live[address] = {bytes, &entry};
      out.now += bytes;
      if (out.now > out.peak) {
        out.peak = out.now;
        out.peak_at = i + 1;
      }
    } else if (action == "free_completed") {
      const auto known = out.live.find(address);
      if (known == out.live.end()) continue;
      out.now -= known->second.bytes;
      out.live.erase(known);
    }
  }
}

/// The innermost frame of a script: torch's own files say little.
std::string site_of(const Pickle& pickle, const Item& entry) {
  const Item* frames = pickle.find(entry, "frames");
  if (frames == nullptr) return "unknown";
  const Item* chosen = nullptr;
  for (Pickle::Ref ref : pickle.of(*frames)) {
    const Item& frame = pickle.at(ref);
    const std::string_view file = pickle.text(frame, "filename");
    if (file.size() < 3 || file.substr(file.size() - 3) != ".py") continue;
    const bool own = file.find("/torch/") == std::string_view::npos;
    if (chosen == nullptr || own) chosen = &frame;
    if (own) break;
  }
  if (chosen == nullptr) return "unknown";
  const std::string_view file = pickle.text(*chosen, "filename");
  return std::string{file.substr(file.rfind('/') + 1)} + ":" + std::to_string(pickle.integer(*chosen, "line")) + " " +
         std::string{pickle.text(*chosen, "name")};
}

std::vector<MemorySnapshot::Site> sites_of(const Pickle& pickle, const Replay& replay) {
  std::map<std::string, Bytes> by_site;
  for (const auto& [address, live] : replay.live) by_site[site_of(pickle, *live.entry)] += live.bytes;
  std::vector<MemorySnapshot::Site> sites;
  for (const auto& [name, bytes] : by_site) sites.push_back({name, bytes});
  std::sort(sites.begin(), sites.end(),
            [](const auto& a, const auto& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name; });
  if (sites.size() > kMostSites) sites.resize(kMostSites);
  return sites;
}

/// What lies allocated on each device at the end.
using ByDevice = std::unordered_map<std::int64_t, Bytes>;

ByDevice read_segments(const Pickle& pickle, const Item& segments, MemorySnapshot& out) {
  ByDevice allocated;
  for (Pickle::Ref ref : pickle.of(segments)) {
    const Item& segment = pickle.at(ref);
    ++out.segments;
    out.reserved += pickle.integer(segment, "total_size");
    out.allocated += pickle.integer(segment, "allocated_size");
    allocated[pickle.integer(segment, "device")] += pickle.integer(segment, "allocated_size");
  }
  return allocated;
}

/// A list of entries per device. The peak is that of the device whose was highest.
bool read_traces(const Pickle& pickle, const Item& traces, ByDevice allocated, MemorySnapshot& out) {
  Bytes base = 0;
  std::int64_t device = -1;
  for (Pickle::Ref ref : pickle.of(traces)) {
    const std::vector<Pickle::Ref>& entries = pickle.of(pickle.at(ref));
    ++device;
    out.traces += static_cast<Count>(entries.size());
    if (out.traces > kMostSteps) return false;
    for (Pickle::Ref entry : entries) {
      if (pickle.text(pickle.at(entry), "action") == "oom") ++out.out_of_memories;
    }
    Replay whole;
    replay(pickle, entries, entries.size(), whole);
    if (whole.peak <= out.trace_peak) continue;
    Replay until_peak;
    replay(pickle, entries, whole.peak_at, until_peak);
    out.trace_peak = whole.peak;
    base = std::max<Bytes>(allocated[device] - whole.now, 0);
    out.at_peak = sites_of(pickle, until_peak);
  }
  out.peak = out.traces == 0 ? 0 : out.trace_peak + base;
  return true;
}

}  // namespace

bool looks_like_pickle(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

std::optional<MemorySnapshot> read_snapshot(std::string_view bytes, std::string& error) {
  Pickle pickle;
  error = read_pickle(bytes, pickle);
  if (!error.empty()) return std::nullopt;
  MemorySnapshot out;
  const Item& root = pickle.root();
  const Item* segments = pickle.find(root, "segments");
  // Until torch 2.0 it was the list of segments alone.
  if (segments == nullptr && root.kind == Pickle::Kind::kList) segments = &root;
  if (segments == nullptr) return error = "a pickle, but no memory snapshot", std::nullopt;
  ByDevice allocated = read_segments(pickle, *segments, out);
  const Item* traces = pickle.find(root, "device_traces");
  if (traces != nullptr && !read_traces(pickle, *traces, std::move(allocated), out))
    return error = "too large", std::nullopt;
  return out;
}

}  // namespace tidemark::exchange
