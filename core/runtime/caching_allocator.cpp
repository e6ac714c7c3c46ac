#include "core/runtime/caching_allocator.hpp"

#include <algorithm>
#include <bit>

namespace tidemark {
namespace {

constexpr Bytes round_up(Bytes bytes, Bytes unit) {
  return (bytes + unit - 1) / unit * unit;
}

// get_allocation_size(): what is asked of cudaMalloc to serve a request.
constexpr Bytes segment_bytes(Bytes size, bool is_small) {
  if (is_small) return kSmallSegment;
  if (size < kMinLargeAlloc) return kLargeSegment;
  return round_up(size, kLargeRounding);
}

// should_split(): is the rest of a block worth a block of its own?
constexpr bool is_worth_splitting(Bytes rest, bool is_small, bool expandable) {
  return is_small || expandable ? rest >= kMinBlockSize : rest > kSmallRequest;
}

}  // namespace

// ---- free lists ------------------------------------------------------------------------------------------------

std::size_t CachingAllocator::FreeList::bin_of(Bytes size) {
  const auto units = static_cast<std::uint64_t>(size / kMinBlockSize);
  if (units < 2 * kBinsPerOctave) return static_cast<std::size_t>(units);
  // The position of the highest bit and the four bits after it.
  const int octave = static_cast<int>(std::bit_width(units)) - 1;
  const auto step = static_cast<std::size_t>(units >> (octave - 4)) - kBinsPerOctave;
  return (static_cast<std::size_t>(octave) - 3) * kBinsPerOctave + step;
}

void CachingAllocator::put_free(std::int32_t block) {
  Block& freed = at(block);
  freed.is_free = true;
  FreeList& list = pool(freed.is_small).free_blocks;
  const std::size_t bin = FreeList::bin_of(freed.size);
  std::int32_t below = kNoBlock, above = list.lowest[bin];
  while (above != kNoBlock &&
         (at(above).size < freed.size || (at(above).size == freed.size && at(above).address < freed.address))) {
    below = above;
    above = at(above).larger;
  }
  freed.smaller = below;
  freed.larger = above;
  if (above != kNoBlock) at(above).smaller = block;
  if (below != kNoBlock) {
    at(below).larger = block;
  } else {
    list.lowest[bin] = block;
    list.occupied[bin / 64] |= std::uint64_t{1} << (bin % 64);
  }
}

void CachingAllocator::take_free(std::int32_t block) {
  Block& taken = at(block);
  taken.is_free = false;
  if (taken.larger != kNoBlock) at(taken.larger).smaller = taken.smaller;
  if (taken.smaller != kNoBlock) {
    at(taken.smaller).larger = taken.larger;
    return;
  }
  FreeList& list = pool(taken.is_small).free_blocks;
  const std::size_t bin = FreeList::bin_of(taken.size);
  list.lowest[bin] = taken.larger;
  if (taken.larger == kNoBlock) list.occupied[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
}

std::int32_t CachingAllocator::best_fit(Bytes size, bool is_small) {
  const FreeList& list = pool(is_small).free_blocks;
  std::size_t bin = FreeList::bin_of(size);
  // The request's own bin may hold smaller blocks too; in every later bin all are large enough.
  std::int32_t block = list.lowest[bin];
  while (block != kNoBlock && at(block).size < size) block = at(block).larger;
  if (block != kNoBlock) return block;
  ++bin;
  std::size_t word = bin / 64;
  if (word >= list.occupied.size()) return kNoBlock;
  std::uint64_t bits = list.occupied[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == list.occupied.size()) return kNoBlock;
    bits = list.occupied[word];
  }
  return list.lowest[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
}

// ---- blocks ----------------------------------------------------------------------------------------------------

CachingAllocator::CachingAllocator(AllocatorOptions options) : options_(options) {}

std::int32_t CachingAllocator::new_block(Bytes size, Bytes address, bool is_small) {
  std::int32_t index = static_cast<std::int32_t>(blocks_.size());
  if (unused_.empty()) {
    blocks_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  at(index) = Block{.size = size, .address = address, .is_small = is_small};
  return index;
}

// alloc_block(): a new segment from the driver, all of it one block.
std::int32_t CachingAllocator::grow(Bytes size, bool is_small) {
  const Bytes bytes = segment_bytes(size, is_small);
  Pool& p = pool(is_small);
  const std::int32_t block = new_block(bytes, p.end_address, is_small);
  p.end_address += bytes;
  reserved_ += bytes;
  return block;
}

// try_allocate_expandable_block(): maps more pages at the end of the pool's segment. A free block that lies there is
// extended, so only what it lacks is mapped.
std::int32_t CachingAllocator::grow_expandable(Bytes size, bool is_small) {
  Pool& p = pool(is_small);
  const Bytes page = is_small ? kSmallSegment : kLargeSegment;
  const bool extends = p.tail != kNoBlock && at(p.tail).is_free;
  const Bytes bytes = round_up(size - (extends ? at(p.tail).size : 0), page);
  reserved_ += bytes;
  if (extends) {
    take_free(p.tail);
    at(p.tail).size += bytes;
  } else {
    const std::int32_t block = new_block(bytes, p.end_address, is_small);
    if (p.tail != kNoBlock) {
      at(block).previous = p.tail;
      at(p.tail).next = block;
    }
    p.tail = block;
  }
  p.end_address += bytes;
  return p.tail;
}

// Cuts `block` down to `size`; the rest becomes a free block behind it.
void CachingAllocator::split(std::int32_t block, Bytes size) {
  const bool is_small = at(block).is_small;
  const std::int32_t rest = new_block(at(block).size - size, at(block).address + size, is_small);
  Block& front = at(block);  // taken after new_block, which may move all blocks
  Block& back = at(rest);
  back.previous = block;
  back.next = front.next;
  if (back.next != kNoBlock) at(back.next).previous = rest;
  front.next = rest;
  front.size = size;
  Pool& p = pool(is_small);
  if (p.tail == block) p.tail = rest;
  put_free(rest);
}

// Joins `block` and the one behind it; neither is in a free list.
void CachingAllocator::absorb_next(std::int32_t block) {
  Block& front = at(block);
  const std::int32_t absorbed = front.next;
  const Block& back = at(absorbed);
  front.size += back.size;
  front.next = back.next;
  if (front.next != kNoBlock) at(front.next).previous = block;
  Pool& p = pool(front.is_small);
  if (p.tail == absorbed) p.tail = block;
  unused_.push_back(absorbed);
}

// ---- requests --------------------------------------------------------------------------------------------------

std::int32_t CachingAllocator::malloc(Bytes bytes) {
  if (bytes <= 0) return kNoBlock;
  const Bytes size = round_to_block(bytes);
  const bool is_small = size <= kSmallRequest;
  std::int32_t block = best_fit(size, is_small);
  if (block != kNoBlock) {
    take_free(block);
  } else {
    block = options_.expandable_segments ? grow_expandable(size, is_small) : grow(size, is_small);
  }
  if (is_worth_splitting(at(block).size - size, is_small, options_.expandable_segments)) split(block, size);
  allocated_ += at(block).size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return block;
}

void CachingAllocator::free(std::int32_t handle) {
  if (handle == kNoBlock) return;
  std::int32_t block = handle;
  allocated_ -= at(block).size;
  // try_merge_blocks(), with the block before and the block behind.
  if (const std::int32_t next = at(block).next; next != kNoBlock && at(next).is_free) {
    take_free(next);
    absorb_next(block);
  }
  if (const std::int32_t previous = at(block).previous; previous != kNoBlock && at(previous).is_free) {
    take_free(previous);
    absorb_next(previous);
    block = previous;
  }
  put_free(block);
}

void CachingAllocator::reset_peaks() {
  peak_allocated_ = allocated_;
  peak_reserved_ = reserved_;
}

}  // namespace tidemark
