#include "core/optimizers/bitsandbytes.hpp"

namespace tidemark::bitsandbytes {
namespace {

constexpr Count kBlock = 256;         // functional.py create_quantile_map's blocksize of optimizers
constexpr Count kMinimum8bit = 4096;  // optimizer.py min_8bit_size
constexpr Count kPagedFrom = 100000;  // optimizer.py get_state_buffer: p.numel() < 1e5 stays on the device

constexpr const char* kStates[] = {"state1", "state2"};
constexpr const char* kScales[] = {"absmax1", "absmax2"};

}  // namespace

Count blocks(Count elements) {
  return (elements + kBlock - 1) / kBlock;
}

bool keeps_8bit(const Parameter& p) {
  return p.shape.numel() >= kMinimum8bit && !p.is_embedding;
}

bool is_paged(const Parameter& p) {
  return p.shape.numel() >= kPagedFrom;
}

template <int moments>
void create_32bit(OptimizerRun& run, const Parameter& p) {
  for (int i = 0; i < moments; ++i) run.keep(p.shape, Dtype::kFp32, kStates[i]);
}

template <int moments>
void create_8bit(OptimizerRun& run, const Parameter& p) {
  if (!keeps_8bit(p)) return create_32bit<moments>(run, p);
  for (int i = 0; i < moments; ++i) {
    run.keep(p.shape, Dtype::kUint8, kStates[i]);
    run.keep(Shape{Dim(blocks(p.shape.numel()))}, Dtype::kFp32, kScales[i]);
  }
}

template <int moments>
void create_paged_8bit(OptimizerRun& run, const Parameter& p) {
  if (!is_paged(p)) create_8bit<moments>(run, p);
}

template <int moments>
void create_paged_32bit(OptimizerRun& run, const Parameter& p) {
  if (!is_paged(p)) create_32bit<moments>(run, p);
}

template <int moments>
Bytes managed_32bit(const Parameter& p) {
  return is_paged(p) ? moments * p.shape.numel() * size_of(Dtype::kFp32) : 0;
}

template <int moments>
Bytes managed_8bit(const Parameter& p) {
  if (p.is_embedding) return managed_32bit<moments>(p);
  const Count n = p.shape.numel();
  return is_paged(p) ? moments * (n + blocks(n) * size_of(Dtype::kFp32)) : 0;
}

#define TIDEMARK_MOMENTS(moments)                                             \
  template void create_8bit<moments>(OptimizerRun&, const Parameter&);        \
  template void create_32bit<moments>(OptimizerRun&, const Parameter&);       \
  template void create_paged_8bit<moments>(OptimizerRun&, const Parameter&);  \
  template void create_paged_32bit<moments>(OptimizerRun&, const Parameter&); \
  template Bytes managed_8bit<moments>(const Parameter&);                     \
  template Bytes managed_32bit<moments>(const Parameter&)
TIDEMARK_MOMENTS(1);
TIDEMARK_MOMENTS(2);
#undef TIDEMARK_MOMENTS

}  // namespace tidemark::bitsandbytes
