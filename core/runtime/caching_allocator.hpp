#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark {

// PyTorch's CUDA caching allocator, without the memory: sizes and addresses only.
//
// `torch.cuda.memory_reserved()` is decided by the order and sizes of all requests, not by their sum, so it is found
// by replaying them. The rules are those of c10/cuda/CUDACachingAllocator.cpp, PyTorch v2.6 (unchanged in 2.14), with
// its default settings: no roundup_power2_divisions, no max_split_size, no garbage_collection_threshold. Modelled is
// one stream on a GPU that never runs out, so nothing is ever evicted and segments are never given back.
// Several streams (FSDP's all-gather, offload) do not share blocks: use one allocator for each and add them up.

// Every request is rounded up to a multiple of this (round_size; kMinBlockSize).
inline constexpr std::int64_t kMinBlockBytes = 512;
// Requests up to this are served from the small pool (get_pool; kSmallSize).
inline constexpr std::int64_t kSmallRequestBytes = std::int64_t{1} << 20;
// What the small pool asks of cudaMalloc, and the page in which its expandable segment grows (kSmallBuffer).
inline constexpr std::int64_t kSmallSegmentBytes = std::int64_t{2} << 20;
// Large requests below this share a segment of kLargeSegmentBytes (get_allocation_size; kMinLargeAlloc).
inline constexpr std::int64_t kMinLargeAllocBytes = std::int64_t{10} << 20;
// Segment for the smaller of the large requests, and the page of the large expandable segment (kLargeBuffer).
inline constexpr std::int64_t kLargeSegmentBytes = std::int64_t{20} << 20;
// Requests from kMinLargeAllocBytes on get a segment of their own, rounded up to this (kRoundLarge).
inline constexpr std::int64_t kLargeRoundingBytes = std::int64_t{2} << 20;

struct AllocatorOptions {
  // PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. One segment per pool that grows at its end, in pages of
  // kSmallSegmentBytes or kLargeSegmentBytes, instead of one cudaMalloc after another. Off by default in PyTorch.
  bool expandable_segments = false;
};

class CachingAllocator {
 public:
  // The handle of a request for nothing: PyTorch hands out a null pointer and keeps no block.
  static constexpr std::int32_t kNoBlock = -1;

  explicit CachingAllocator(AllocatorOptions options = {});

  // Takes `bytes` (at least 0; far below 2^62) and returns the handle to free them with. Handles are reused.
  std::int32_t malloc(std::int64_t bytes);

  // Gives back what `malloc` returned; each handle once. kNoBlock is allowed.
  void free(std::int32_t handle);

  // torch.cuda.memory_allocated(): bytes of the blocks in use, each counted whole. That is the sum of the requests
  // rounded up to 512 B plus the remainders (1 MiB at most) which were too small to be split off.
  std::int64_t allocated() const { return allocated_; }
  // torch.cuda.memory_reserved(): bytes obtained from the driver so far.
  std::int64_t reserved() const { return reserved_; }
  // torch.cuda.max_memory_allocated() and max_memory_reserved(): the largest since construction or reset_peaks().
  std::int64_t peak_allocated() const { return peak_allocated_; }
  std::int64_t peak_reserved() const { return peak_reserved_; }
  // torch.cuda.reset_peak_memory_stats()
  void reset_peaks();

 private:
  // A contiguous range of one segment: in use or free.
  struct Block {
    std::int64_t size = 0;               // bytes, a multiple of kMinBlockBytes
    std::int64_t address = 0;            // bytes from the start of its pool; only the order has a meaning
    std::int32_t previous = kNoBlock;    // neighbours in the same segment; only they may merge
    std::int32_t next = kNoBlock;        //
    bool is_free = false;                // in the free list of its pool
    bool is_small = false;               // which pool
  };

  // A free block, with the two values it is ordered by.
  struct FreeEntry {
    std::int64_t size = 0;
    std::int64_t address = 0;
    std::int32_t block = kNoBlock;
  };

  // Free blocks sorted by (size, address), which is PyTorch's BlockComparatorSize. One sorted array would do, but
  // inserting would move half of it; so it is cut into bins, eight per power of two, each a sorted array of its own.
  class FreeList {
   public:
    void insert(FreeEntry entry);
    void remove(std::int64_t size, std::int64_t address);
    // Removes and returns the smallest block of at least `size`, the lowest address among equals; else kNoBlock.
    std::int32_t take_best_fit(std::int64_t size);

   private:
    static constexpr std::size_t kBinsPerOctave = 8;
    static constexpr std::size_t kBins = 448;  // enough for 2^62 bytes
    static std::size_t bin_of(std::int64_t size);
    static bool comes_before(const FreeEntry& a, const FreeEntry& b);
    void remove_at(std::size_t bin, std::size_t position);

    std::array<std::vector<FreeEntry>, kBins> bins_;
    std::array<std::uint64_t, kBins / 64> occupied_{};  // one bit per bin that is not empty
  };

  struct Pool {
    FreeList free_blocks;
    std::int64_t end_address = 0;    // where the next segment begins
    std::int32_t tail = kNoBlock;    // last block of the expandable segment
  };

  std::int32_t new_block(std::int64_t size, std::int64_t address, bool is_small);
  std::int32_t grow(std::int64_t size, bool is_small);
  std::int32_t grow_expandable(std::int64_t size, bool is_small);
  void split(std::int32_t block, std::int64_t size);
  void absorb_next(std::int32_t block);

  Pool& pool(bool is_small) { return pools_[is_small ? 0 : 1]; }
  Block& at(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }

  AllocatorOptions options_;
  std::array<Pool, 2> pools_;
  std::vector<Block> blocks_;           // handles are indices into this
  std::vector<std::int32_t> unused_;    // indices of blocks that were merged away
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t peak_allocated_ = 0;
  std::int64_t peak_reserved_ = 0;
};

}  // namespace tidemark
