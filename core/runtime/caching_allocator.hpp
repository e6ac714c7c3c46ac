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
/// a GPU that never runs out, so nothing is ever evicted and segments are never given back. Streams (FSDP's
/// all-gather, offload) do not share blocks: each has its pools.
class CachingAllocator {
 public:
  /// The handle of a request for nothing: PyTorch hands out a null pointer and keeps no block.
  static constexpr std::int32_t kNoBlock = -1;

  explicit CachingAllocator(AllocatorOptions options = {});

  /// Takes `bytes` (at least 0; far below 2^56) for a stream, counted from 0 and at most 31, and returns the handle to
  /// free them with. Handles are reused.
  std::int32_t malloc(Bytes bytes, std::int16_t stream = 0);

  /// Gives back what `malloc` returned; each handle once. kNoBlock is allowed. Where other streams use the block
  /// (record_stream), one bit each in `used_on`, it is no longer counted and serves nobody before they are done.
  void free(std::int32_t handle, std::uint32_t used_on = 0);

  /// A stream finished its work, and the allocator saw it (process_events).
  void stream_done(std::int16_t stream);

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
  static constexpr std::int32_t kNoGroup = -1;

  // A contiguous range of one segment: in use or free.
  struct Block {
    Bytes size = 0;                    ///< a multiple of kMinBlockSize
    Bytes address = 0;                 ///< every pool has its own range; only the order has a meaning
    std::int32_t previous = kNoBlock;  ///< neighbour below in the same segment; only neighbours merge
    std::int32_t next = kNoBlock;      ///< neighbour above in the same segment
    std::int32_t group = kNoGroup;     ///< of the free blocks of the same size; kNoGroup: not looked up yet
    std::int16_t pool = 0;             ///< index into pools_
    bool is_free = false;              ///< in the free list of its pool
    std::int32_t child = kNoBlock;     ///< of the heap of its group: the first below it,
    std::int32_t sibling = kNoBlock;   ///< the next beside it (of the lowest block none is read),
    std::int32_t before = kNoBlock;    ///< and the one before it, or where it is the first the one above
    std::uint32_t waits_for = 0;       ///< streams that still use it, one bit each (stream_uses)
  };

  // The free blocks of one size, a heap by their addresses; once there have been some, the group stays.
  struct SizeGroup {
    Bytes size = 0;                  ///< of each
    std::int32_t lowest = kNoBlock;  ///< the root
    std::int32_t above = kNoGroup;   ///< group of the next larger size in the same bin
    std::uint32_t bin = 0;           ///< that has it
  };

  // Free blocks sorted by (size, address), which is PyTorch's BlockComparatorSize: groups of one size, in bins of
  // sixteen per power of two. A deep model frees thousands of blocks of a few sizes.
  struct FreeList {
    static constexpr std::size_t kBinsPerOctave = 16;
    static constexpr std::size_t kBins = 896;  ///< enough for 2^62 bytes
    static std::size_t bin_of(Bytes size);

    FreeList() { lowest.fill(kNoGroup); }

    // The group of that size; an empty one is made where there is none.
    std::int32_t group_of(Bytes size);
    // It gets its first block, or has lost its last.
    void fill(const SizeGroup& group);
    void empty(const SizeGroup& group);
    SizeGroup& group(std::int32_t index) { return groups[static_cast<std::size_t>(index)]; }

    std::array<std::int32_t, kBins> lowest;            ///< group of the smallest size of each bin
    std::array<std::int32_t, kBins> filled{};          ///< how many groups of each bin have blocks
    std::array<std::uint64_t, kBins / 64> occupied{};  ///< one bit per bin where some do
    std::vector<SizeGroup> groups;                     ///< of all bins
  };

  struct Pool {
    FreeList free_blocks;
    Bytes end_address = 0;         ///< where the next segment begins
    std::int32_t tail = kNoBlock;  ///< last block of the expandable segment
  };

  // Of each stream two pools, for small requests and for large ones.
  static std::int16_t pool_of(std::int16_t stream, bool is_small) {
    return static_cast<std::int16_t>(2 * stream + (is_small ? 0 : 1));
  }
  static bool is_small(std::int16_t pool) { return pool % 2 == 0; }

  std::int32_t new_block(Bytes size, Bytes address, std::int16_t pool);
  std::int32_t grow(Bytes size, std::int16_t pool);
  std::int32_t grow_expandable(Bytes size, std::int16_t pool);
  void release(std::int32_t block);
  void split(std::int32_t block, Bytes size);
  std::int32_t meld(std::int32_t a, std::int32_t b);
  std::int32_t meld_children(std::int32_t first);
  void put_free(std::int32_t block);
  void take_free(std::int32_t block);
  // Takes the smallest free block of at least `size`, the lowest address among equals; else kNoBlock.
  std::int32_t take_best(Bytes size, FreeList& list);
  void absorb_next(std::int32_t block);

  void add_pools(std::int16_t pool);
  Pool& pool(std::int16_t index) { return pools_[static_cast<std::size_t>(index)]; }
  static void resize(Block& block, Bytes size) {
    block.size = size;
    block.group = kNoGroup;
  }
  Block& at(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }

  AllocatorOptions options_;
  std::vector<Pool> pools_;            ///< of each stream two (pool_of)
  std::vector<Block> blocks_;          ///< handles are indices into this
  std::vector<std::int32_t> unused_;   ///< indices of blocks that were merged away
  std::vector<std::int32_t> waiting_;  ///< freed, but in use by other streams
  Bytes allocated_ = 0;
  Bytes reserved_ = 0;
  Bytes peak_allocated_ = 0;
  Bytes peak_reserved_ = 0;
};

}  // namespace tidemark
