#include "core/runtime/nccl.hpp"

namespace tidemark {

Bytes nccl_communicator(Count ranks) {
  constexpr Bytes kMegabyte = 1'000'000;
  if (ranks < 2) return 0;
  return (ranks == 2 ? 544 : 688) * kMegabyte;
}

}  // namespace tidemark
