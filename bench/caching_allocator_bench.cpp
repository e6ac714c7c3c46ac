// How long the caching allocator takes per request: replays the traces of the unit tests.
//   tidemark_allocator_bench tests/unit/data/allocator_traces.txt
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/runtime/caching_allocator.hpp"

namespace {

struct Trace {
  std::string name;                  // as in the file
  std::vector<std::int64_t> events;  // > 0: request of that many bytes; <= 0: free request number -event
};

std::vector<Trace> read_traces(const char* path) {
  std::vector<Trace> traces;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("trace ", 0) == 0) traces.push_back({line.substr(6), {}});
    if (line.rfind("e ", 0) != 0 || traces.empty()) continue;
    std::istringstream fields(line.substr(2));
    std::string event;
    while (fields >> event) {
      if (event != "r") traces.back().events.push_back(std::stoll(event));
    }
  }
  return traces;
}

double nanoseconds_per_event(const Trace& trace, bool expandable, std::int64_t& checksum) {
  constexpr int kRounds = 200;
  std::vector<std::int32_t> handles;
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) {
    tidemark::CachingAllocator allocator({.expandable_segments = expandable});
    handles.clear();
    for (const std::int64_t event : trace.events) {
      if (event > 0) {
        handles.push_back(allocator.malloc(event));
      } else {
        allocator.free(handles[static_cast<std::size_t>(-event)]);
      }
    }
    checksum += allocator.peak_reserved();
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  return time.count() / kRounds / static_cast<double>(trace.events.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s allocator_traces.txt\n", argv[0]);
    return 2;
  }
  std::int64_t checksum = 0;
  for (const Trace& trace : read_traces(argv[1])) {
    const double plain = nanoseconds_per_event(trace, false, checksum);
    const double expandable = nanoseconds_per_event(trace, true, checksum);
    std::printf("%-32s %6zu events  %6.1f ns default  %6.1f ns expandable\n", trace.name.c_str(), trace.events.size(),
                plain, expandable);
  }
  return checksum == 0 ? 1 : 0;  // keeps the work from being optimised away
}
