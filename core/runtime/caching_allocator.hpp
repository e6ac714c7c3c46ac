#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark {

// The constants of c10/cuda/CUDACachingAllocator.cpp, PyTorch v2.6, under the names they have there in brackets.
// Requests are rounded up to kMinBlockSize (core/units/bytes.hpp: round_to_block).

/// Requests up to this are served from the small pool (get_pool; kSmallSize).
inline constexpr Bytes kSmallRequest = 1 * kMiB;
/// What the small pool asks of cudaMalloc, and the page in which its expandable segment grows (kSmallBuffer).
inline constexpr Bytes kSmallSegment = 2 * kMiB;
/// Large requests below this share a segment of kLargeSegment (get_allocation_size; kMinLargeAlloc).
inline constexpr Bytes kMinLargeAlloc = 10 * kMiB;
/// Segment for the smaller of the large requests, and the page of the large expandable segment (kLargeBuffer).
inline constexpr Bytes kLargeSegment = 20 * kMiB;
/// Requests from kMinLargeAlloc on get a segment of their own, rounded up to this (kRoundLarge).
inline constexpr Bytes kLargeRounding = 2 * kMiB;

struct AllocatorOptions {
  /// PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. One segment per pool that grows at its end, in pages of
  /// kSmallSegment or kLargeSegment, instead of one cudaMalloc after another. Off by default in PyTorch.
  bool expandable_segments = false;
};

/// PyTorch's CUDA caching allocator, without the memory: sizes and addresses only.
///
/// `torch.cuda.memory_reserved()` is decided by the order and sizes of all requests, not by their sum, so it is found
/// by replaying them. The rules are those of c10/cuda/CUDACachingAllocator.cpp, PyTorch v2.6 (unchanged in 2.14), with
/// its default settings: no roundup_power2_divisions, no max_split_size, no garbage_collection_threshold. Modelled is
/// one stream on a GPU that never runs out, so nothing is ever evicted and segments are never given back.
/// Several streams (FSDP's all-gather, offload) do not share blocks: use one allocator for each and add them up.
class CachingAllocator {
 public:
  /// The handle of a request for nothing: PyTorch hands out a null pointer and keeps no block.
  static constexpr std::int32_t kNoBlock = -1;

  explicit CachingAllocator(AllocatorOptions options = {});

  /// Takes `bytes` (at least 0; far below 2^62) and returns the handle to free them with. Handles are reused.
  std::int32_t malloc(Bytes bytes);

  /// Gives back what `malloc` returned; each handle once. kNoBlock is allowed.
  void free(std::int32_t handle);

  /// torch.cuda.memory_allocated(): bytes of the blocks in use, each counted whole. That is the sum of the requests
  /// rounded up to 512 B plus the remainders (1 MiB at most) which were too small to be split off.
  Bytes allocated() const { return allocated_; }
  /// torch.cuda.memory_reserved(): bytes obtained from the driver so far.
  Bytes reserved() const { return reserved_; }
  /// torch.cuda.max_memory_allocated() and max_memory_reserved(): the largest since construction or reset_peaks().
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return peak_reserved_; }
  /// torch.cuda.reset_peak_memory_stats()
  void reset_peaks();

 private:
  // A contiguous range of one segment: in use or free.
  struct Block {
    Bytes size = 0;                    ///< a multiple of kMinBlockSize
    Bytes address = 0;                 ///< from the start of its pool; only the order has a meaning
    std::int32_t previous = kNoBlock;  ///< neighbour below in the same segment; only neighbours merge
    std::int32_t next = kNoBlock;      ///< neighbour above in the same segment
    std::int32_t smaller = kNoBlock;   ///< of the free blocks in the same bin: the next one down
    std::int32_t larger = kNoBlock;    ///< the next one up
    bool is_free = false;              ///< in the free list of its pool
    bool is_small = false;             ///< which pool
  };

  // Free blocks sorted by (size, address), which is PyTorch's BlockComparatorSize, in bins of sixteen per power of two.
  // A bin is a list through its blocks. What a forward pass takes from low to high addresses comes back from high to
  // low, so a block's place is near the lower end, where blocks are taken from, too.
  struct FreeList {
    static constexpr std::size_t kBinsPerOctave = 16;
    static constexpr std::size_t kBins = 896;  ///< enough for 2^62 bytes
    static std::size_t bin_of(Bytes size);

    FreeList() { lowest.fill(kNoBlock); }

    std::array<std::int32_t, kBins> lowest;            ///< smallest block of each bin, the lowest of equals
    std::array<std::uint64_t, kBins / 64> occupied{};  ///< one bit per bin that is not empty
  };

  struct Pool {
    FreeList free_blocks;
    Bytes end_address = 0;         ///< where the next segment begins
    std::int32_t tail = kNoBlock;  ///< last block of the expandable segment
  };

  std::int32_t new_block(Bytes size, Bytes address, bool is_small);
  std::int32_t grow(Bytes size, bool is_small);
  std::int32_t grow_expandable(Bytes size, bool is_small);
  void split(std::int32_t block, Bytes size);
  void put_free(std::int32_t block);
  void take_free(std::int32_t block);
  // The smallest free block of at least `size`, the lowest address among equals; else kNoBlock.
  std::int32_t best_fit(Bytes size, bool is_small);
  void absorb_next(std::int32_t block);

  Pool& pool(bool is_small) { return pools_[is_small ? 0 : 1]; }
  Block& at(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }

  AllocatorOptions options_;
  std::array<Pool, 2> pools_;
  std::vector<Block> blocks_;         ///< handles are indices into this
  std::vector<std::int32_t> unused_;  ///< indices of blocks that were merged away
  Bytes allocated_ = 0;
  Bytes reserved_ = 0;
  Bytes peak_allocated_ = 0;
  Bytes peak_reserved_ = 0;
};

}  // namespace tidemark
