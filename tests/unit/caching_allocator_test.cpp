#include "core/runtime/caching_allocator.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/catch.hpp"

namespace {

using tidemark::AllocatorOptions;
using tidemark::CachingAllocator;
using tidemark::kKiB;
using tidemark::kMiB;

struct Figures {
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::int64_t peak_allocated = 0;
  std::int64_t peak_reserved = 0;

  bool operator==(const Figures&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Figures& f) {
  return out << f.allocated << ' ' << f.reserved << ' ' << f.peak_allocated << ' ' << f.peak_reserved;
}

Figures figures(const CachingAllocator& a) {
  return {a.allocated(), a.reserved(), a.peak_allocated(), a.peak_reserved()};
}

// One allocator and the handles it gave out for the requests of a trace, in order.
struct Replay {
  CachingAllocator allocator;
  std::vector<std::int32_t> handles;

  explicit Replay(AllocatorOptions options) : allocator(options) {}

  void apply(const std::string& event) {
    if (event == "r") {
      allocator.reset_peaks();
    } else if (event[0] == '+') {
      handles.push_back(allocator.malloc(std::stoll(event)));
    } else {
      allocator.free(handles[std::stoul(event.substr(1))]);
    }
  }
};

}  // namespace

TEST_CASE("the allocator agrees with the recorder's model on every trace", "[caching_allocator]") {
  std::ifstream file(std::string(TIDEMARK_TEST_DATA) + "/allocator_traces.txt");
  REQUIRE(file);
  std::string line;
  std::string name;
  std::vector<std::string> events;
  Replay plain{{}};
  Replay expandable{{.expandable_segments = true}};
  int checks = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string kind;
    fields >> kind;
    if (kind == "trace") {
      name = line.substr(6);
      plain = Replay{{}};
      expandable = Replay{{.expandable_segments = true}};
    } else if (kind == "e") {
      std::string event;
      while (fields >> event) {
        plain.apply(event);
        expandable.apply(event);
      }
    } else if (kind == "d" || kind == "x") {
      Figures expected;
      fields >> expected.allocated >> expected.reserved >> expected.peak_allocated >> expected.peak_reserved;
      INFO("trace " << name << ", check point " << checks << ", mode " << kind);
      REQUIRE(figures(kind == "d" ? plain.allocator : expandable.allocator) == expected);
      ++checks;
    }
  }
  CHECK(checks > 900);
}

TEST_CASE("requests are rounded up to 512 bytes and small ones share a segment of 2 MiB", "[caching_allocator]") {
  CachingAllocator a;
  a.malloc(1);
  a.malloc(513);
  CHECK(a.allocated() == 512 + 1024);
  CHECK(a.reserved() == 2 * kMiB);
  a.malloc(kMiB);
  CHECK(a.reserved() == 2 * kMiB);
  a.malloc(kMiB);
  CHECK(a.reserved() == 4 * kMiB);
}

TEST_CASE("a request for nothing takes nothing", "[caching_allocator]") {
  CachingAllocator a;
  const std::int32_t handle = a.malloc(0);
  CHECK(handle == CachingAllocator::kNoBlock);
  a.free(handle);
  CHECK(a.allocated() == 0);
  CHECK(a.peak_reserved() == 0);
}

TEST_CASE("large segments are 20 MiB below 10 MiB and multiples of 2 MiB from there on", "[caching_allocator]") {
  CachingAllocator a;
  a.malloc(kMiB + 1);
  CHECK(a.reserved() == 20 * kMiB);
  a.malloc(10 * kMiB);  // fits in the rest of the first segment
  CHECK(a.reserved() == 20 * kMiB);
  a.malloc(10 * kMiB);
  CHECK(a.reserved() == 30 * kMiB);
  a.malloc(21 * kMiB);
  CHECK(a.reserved() == 52 * kMiB);
}

TEST_CASE("a rest of at most 1 MiB is not split off and counts as allocated", "[caching_allocator]") {
  CachingAllocator a;
  a.malloc(21 * kMiB);  // segment of 22 MiB
  CHECK(a.allocated() == 22 * kMiB);
  a.malloc(21 * kMiB - 512);
  CHECK(a.allocated() == 22 * kMiB + 21 * kMiB - 512);

  CachingAllocator expandable{{.expandable_segments = true}};
  expandable.malloc(21 * kMiB);
  CHECK(expandable.allocated() == 21 * kMiB);
  CHECK(expandable.reserved() == 40 * kMiB);
}

TEST_CASE("the smallest block that fits is taken, then the lowest address", "[caching_allocator]") {
  CachingAllocator a;
  const auto big = a.malloc(64 * kMiB);
  const auto middle = a.malloc(32 * kMiB);
  a.free(big);
  a.free(middle);
  a.malloc(30 * kMiB);  // from the segment of 32 MiB
  a.malloc(64 * kMiB);
  CHECK(a.reserved() == 96 * kMiB);
}

TEST_CASE("neighbours merge inside a segment but not across segments", "[caching_allocator]") {
  CachingAllocator a;
  const auto first = a.malloc(kMiB);
  const auto second = a.malloc(kMiB);
  const auto third = a.malloc(kMiB);
  a.free(first);
  a.free(third);
  a.free(second);
  CHECK(a.allocated() == 0);
  CHECK(a.reserved() == 4 * kMiB);

  const auto x = a.malloc(12 * kMiB);
  const auto y = a.malloc(12 * kMiB);
  a.free(x);
  a.free(y);
  a.malloc(24 * kMiB);
  CHECK(a.reserved() == (4 + 12 + 12 + 24) * kMiB);

  CachingAllocator expandable{{.expandable_segments = true}};
  const auto p = expandable.malloc(12 * kMiB);
  const auto q = expandable.malloc(12 * kMiB);
  expandable.free(p);
  expandable.free(q);
  expandable.malloc(24 * kMiB);
  CHECK(expandable.reserved() == 40 * kMiB);
}

TEST_CASE("an expandable segment maps only what the free block at its end lacks", "[caching_allocator]") {
  CachingAllocator a{{.expandable_segments = true}};
  a.malloc(30 * kMiB);  // two pages of 20 MiB, 10 MiB left
  CHECK(a.reserved() == 40 * kMiB);
  a.malloc(25 * kMiB);
  CHECK(a.reserved() == 60 * kMiB);
  a.malloc(700 * kKiB);  // the small pool has its own
  CHECK(a.reserved() == 62 * kMiB);
}

TEST_CASE("peaks last until they are reset", "[caching_allocator]") {
  CachingAllocator a;
  const auto handle = a.malloc(100 * kMiB);
  a.free(handle);
  CHECK(a.allocated() == 0);
  CHECK(a.peak_allocated() == 100 * kMiB);
  CHECK(a.peak_reserved() == 100 * kMiB);
  a.reset_peaks();
  CHECK(a.peak_allocated() == 0);
  CHECK(a.peak_reserved() == 100 * kMiB);
}

TEST_CASE("streams share no blocks", "[caching_allocator]") {
  CachingAllocator allocator;
  const std::int32_t first = allocator.malloc(3 * kMiB, 0);
  CHECK(allocator.reserved() == 20 * kMiB);  // kLargeBuffer
  const std::int32_t second = allocator.malloc(3 * kMiB, 1);
  CHECK(allocator.reserved() == 40 * kMiB);
  allocator.malloc(1 * kKiB, 0);
  allocator.malloc(1 * kKiB, 1);
  CHECK(allocator.reserved() == 44 * kMiB);  // kSmallBuffer, twice
  allocator.free(first);
  // 17 MiB are free on stream 1, 20 on stream 0: eighteen fit on stream 0 alone.
  allocator.malloc(18 * kMiB, 1);
  CHECK(allocator.reserved() == 62 * kMiB);
  allocator.malloc(18 * kMiB, 0);
  CHECK(allocator.reserved() == 62 * kMiB);
  allocator.free(second);
  CHECK(allocator.allocated() == 36 * kMiB + 2 * kKiB);
}

TEST_CASE("a block that another stream uses waits for it", "[caching_allocator]") {
  CachingAllocator allocator;
  const std::uint32_t on_streams_1_and_2 = 6;
  allocator.free(allocator.malloc(12 * kMiB), on_streams_1_and_2);
  CHECK(allocator.allocated() == 0);
  const std::int32_t other = allocator.malloc(12 * kMiB);
  CHECK(allocator.reserved() == 24 * kMiB);
  allocator.stream_done(1);
  CHECK(allocator.malloc(12 * kMiB) != other);
  CHECK(allocator.reserved() == 36 * kMiB);  // still in use on stream 2
  allocator.stream_done(2);
  allocator.malloc(12 * kMiB);
  CHECK(allocator.reserved() == 36 * kMiB);
}
