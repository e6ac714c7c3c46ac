#include "core/runtime/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/units/sorted.hpp"

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

std::int32_t CachingAllocator::FreeList::group_of(Bytes size) {
  const std::size_t bin = bin_of(size);
  std::int32_t below = kNoGroup, above = lowest[bin];
  while (above != kNoGroup && group(above).size < size) {
    below = above;
    above = group(above).above;
  }
  if (above != kNoGroup && group(above).size == size) return above;
  std::int32_t made = static_cast<std::int32_t>(groups.size());
  if (unused.empty()) {
    groups.emplace_back();
  } else {
    made = unused.back();
    unused.pop_back();
  }
  group(made).size = size;
  group(made).below = below;
  group(made).above = above;
  (below == kNoGroup ? lowest[bin] : group(below).above) = made;
  if (above != kNoGroup) group(above).below = made;
  occupied[bin / 64] |= std::uint64_t{1} << (bin % 64);
  return made;
}

void CachingAllocator::FreeList::drop(std::int32_t index) {
  SizeGroup& dropped = group(index);
  dropped.heap.clear();
  const std::size_t bin = bin_of(dropped.size);
  (dropped.below == kNoGroup ? lowest[bin] : group(dropped.below).above) = dropped.above;
  if (dropped.above != kNoGroup) group(dropped.above).below = dropped.below;
  if (lowest[bin] == kNoGroup) occupied[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  unused.push_back(index);
}

bool CachingAllocator::is_there(const SizeGroup& group, const FreeBlock& entry) const {
  const Block& block = blocks_[static_cast<std::size_t>(entry.block)];
  return block.is_free && block.address == entry.address && block.size == group.size;
}

// Takes out what is free no longer, and what is there twice.
void CachingAllocator::tidy(SizeGroup& group) {
  auto& heap = group.heap;
  heap.erase(std::remove_if(heap.begin(), heap.end(), [&](const FreeBlock& entry) { return !is_there(group, entry); }),
             heap.end());
  sort_list(heap, [](const FreeBlock& a, const FreeBlock& b) { return a.address < b.address; });
  heap.erase(std::unique(heap.begin(), heap.end(),
                         [](const FreeBlock& a, const FreeBlock& b) { return a.address == b.address; }),
             heap.end());
}

void CachingAllocator::put_free(std::int32_t block) {
  Block& freed = at(block);
  freed.is_free = true;
  FreeList& list = pool_of(freed).free_blocks;
  freed.group = list.group_of(freed.size);
  SizeGroup& group = list.group(freed.group);
  ++group.count;
  group.heap.push_back({freed.address, block});
  std::push_heap(group.heap.begin(), group.heap.end(), is_higher);
  constexpr std::size_t kFewEntries = 32;
  if (group.heap.size() > 2 * group.count + kFewEntries) tidy(group);
}

// The block's entry stays in the heap until it comes to the top or the heap is tidied.
void CachingAllocator::take_free(std::int32_t block) {
  Block& taken = at(block);
  taken.is_free = false;
  FreeList& list = pool_of(taken).free_blocks;
  if (--list.group(taken.group).count == 0) list.drop(taken.group);
}

std::int32_t CachingAllocator::lowest_of(SizeGroup& group) {
  while (!is_there(group, group.heap.front())) {
    std::pop_heap(group.heap.begin(), group.heap.end(), is_higher);
    group.heap.pop_back();
  }
  return group.heap.front().block;
}

std::int32_t CachingAllocator::best_fit(Bytes size, FreeList& list) {
  std::size_t bin = FreeList::bin_of(size);
  // The request's own bin may hold smaller blocks too; in every later bin all are large enough.
  std::int32_t group = list.lowest[bin];
  while (group != kNoGroup && list.group(group).size < size) group = list.group(group).above;
  if (group != kNoGroup) return lowest_of(list.group(group));
  ++bin;
  std::size_t word = bin / 64;
  if (word >= list.occupied.size()) return kNoBlock;
  std::uint64_t bits = list.occupied[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == list.occupied.size()) return kNoBlock;
    bits = list.occupied[word];
  }
  return lowest_of(list.group(list.lowest[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))]));
}

// ---- blocks ----------------------------------------------------------------------------------------------------

CachingAllocator::CachingAllocator(AllocatorOptions options) : options_(options) {}

std::int32_t CachingAllocator::new_block(Bytes size, Bytes address, bool is_small, std::int16_t stream) {
  std::int32_t index = static_cast<std::int32_t>(blocks_.size());
  if (unused_.empty()) {
    blocks_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  at(index) = Block{.size = size, .address = address, .is_small = is_small, .stream = stream};
  return index;
}

// alloc_block(): a new segment from the driver, all of it one block.
std::int32_t CachingAllocator::grow(Bytes size, bool is_small, std::int16_t stream) {
  const Bytes bytes = segment_bytes(size, is_small);
  Pool& p = pool(is_small, stream);
  const std::int32_t block = new_block(bytes, p.end_address, is_small, stream);
  p.end_address += bytes;
  reserved_ += bytes;
  return block;
}

// try_allocate_expandable_block(): maps more pages at the end of the pool's segment. A free block that lies there is
// extended, so only what it lacks is mapped.
std::int32_t CachingAllocator::grow_expandable(Bytes size, bool is_small, std::int16_t stream) {
  Pool& p = pool(is_small, stream);
  const Bytes page = is_small ? kSmallSegment : kLargeSegment;
  const bool extends = p.tail != kNoBlock && at(p.tail).is_free;
  const Bytes bytes = round_up(size - (extends ? at(p.tail).size : 0), page);
  reserved_ += bytes;
  if (extends) {
    take_free(p.tail);
    at(p.tail).size += bytes;
  } else {
    const std::int32_t block = new_block(bytes, p.end_address, is_small, stream);
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
  const std::int32_t rest =
      new_block(at(block).size - size, at(block).address + size, at(block).is_small, at(block).stream);
  Block& front = at(block);  // taken after new_block, which may move all blocks
  Block& back = at(rest);
  back.previous = block;
  back.next = front.next;
  if (back.next != kNoBlock) at(back.next).previous = rest;
  front.next = rest;
  front.size = size;
  Pool& p = pool_of(front);
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
  Pool& p = pool_of(front);
  if (p.tail == absorbed) p.tail = block;
  unused_.push_back(absorbed);
}

// ---- requests --------------------------------------------------------------------------------------------------

// A stale entry of a free list must not be taken for a block of another pool: no two pools have an address in common.
void CachingAllocator::add_stream() {
  constexpr Bytes kPoolRange = Bytes{1} << 56;
  const auto before = static_cast<Bytes>(2 * pools_.size());
  Pools& added = pools_.emplace_back();
  added.small.end_address = before * kPoolRange;
  added.large.end_address = (before + 1) * kPoolRange;
}

std::int32_t CachingAllocator::malloc(Bytes bytes, std::int16_t stream) {
  if (bytes <= 0) return kNoBlock;
  while (pools_.size() <= static_cast<std::size_t>(stream)) add_stream();
  const Bytes size = round_to_block(bytes);
  const bool is_small = size <= kSmallRequest;
  std::int32_t block = best_fit(size, pool(is_small, stream).free_blocks);
  if (block != kNoBlock) {
    take_free(block);
  } else {
    block = options_.expandable_segments ? grow_expandable(size, is_small, stream) : grow(size, is_small, stream);
  }
  if (is_worth_splitting(at(block).size - size, is_small, options_.expandable_segments)) split(block, size);
  allocated_ += at(block).size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return block;
}

void CachingAllocator::free(std::int32_t handle, std::uint32_t used_on) {
  if (handle == kNoBlock) return;
  allocated_ -= at(handle).size;
  at(handle).waits_for = used_on;
  if (used_on == 0) {
    release(handle);
  } else {
    waiting_.push_back(handle);  // insert_events()
  }
}

void CachingAllocator::stream_done(std::int16_t stream) {
  std::vector<std::int32_t> still;
  for (const std::int32_t block : waiting_) {
    at(block).waits_for &= ~(std::uint32_t{1} << stream);
    if (at(block).waits_for == 0) {
      release(block);
    } else {
      still.push_back(block);
    }
  }
  waiting_ = std::move(still);
}

// free_block()
void CachingAllocator::release(std::int32_t freed) {
  std::int32_t block = freed;
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
