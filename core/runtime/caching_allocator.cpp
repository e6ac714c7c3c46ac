#include "core/runtime/caching_allocator.hpp"

#include <algorithm>
#include <bit>
#include <utility>

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
  std::int32_t below = kNoGroup, found = lowest[bin];
  while (found != kNoGroup && group(found).size < size) {
    below = found;
    found = group(found).above;
  }
  if (found != kNoGroup && group(found).size == size) return found;
  const auto made = static_cast<std::int32_t>(groups.size());
  groups.emplace_back();
  groups.back().size = size;
  groups.back().above = found;
  groups.back().bin = static_cast<std::uint32_t>(bin);
  (below == kNoGroup ? lowest[bin] : group(below).above) = made;
  return made;
}

void CachingAllocator::FreeList::fill(const SizeGroup& group) {
  if (filled[group.bin]++ == 0) occupied[group.bin / 64] |= std::uint64_t{1} << (group.bin % 64);
}

void CachingAllocator::FreeList::empty(const SizeGroup& group) {
  if (--filled[group.bin] == 0) occupied[group.bin / 64] &= ~(std::uint64_t{1} << (group.bin % 64));
}

// A pairing heap (Fredman, Sedgewick, Sleator and Tarjan 1986): the higher of two roots becomes the lower one's first
// child.
std::int32_t CachingAllocator::meld(std::int32_t a, std::int32_t b) {
  if (a == kNoBlock || b == kNoBlock) return a == kNoBlock ? b : a;
  if (at(b).address < at(a).address) std::swap(a, b);
  Block &root = at(a), &child = at(b);
  child.sibling = root.child;
  child.before = a;
  if (root.child != kNoBlock) at(root.child).before = b;
  root.child = b;
  return a;
}

// What a root's children are without it: each two of them, then all pairs from the last one on.
std::int32_t CachingAllocator::meld_children(std::int32_t first) {
  std::int32_t pairs = kNoBlock, all = kNoBlock;
  while (first != kNoBlock) {
    const std::int32_t second = at(first).sibling;
    const std::int32_t rest = second == kNoBlock ? kNoBlock : at(second).sibling;
    const std::int32_t pair = meld(first, second);
    at(pair).sibling = pairs;
    pairs = pair;
    first = rest;
  }
  while (pairs != kNoBlock) {
    const std::int32_t rest = at(pairs).sibling;
    all = meld(all, pairs);
    pairs = rest;
  }
  return all;
}

void CachingAllocator::put_free(std::int32_t index) {
  Block& freed = at(index);
  freed.is_free = true;
  freed.child = kNoBlock;
  FreeList& list = pool(freed.pool).free_blocks;
  if (freed.group == kNoGroup) freed.group = list.group_of(freed.size);
  SizeGroup& group = list.group(freed.group);
  if (group.lowest == kNoBlock) list.fill(group);
  group.lowest = meld(group.lowest, index);
}

void CachingAllocator::take_free(std::int32_t index) {
  Block& taken = at(index);
  taken.is_free = false;
  FreeList& list = pool(taken.pool).free_blocks;
  SizeGroup& group = list.group(taken.group);
  const std::int32_t children = meld_children(taken.child);
  if (group.lowest == index) {
    group.lowest = children;
  } else {
    Block& before = at(taken.before);
    (before.child == index ? before.child : before.sibling) = taken.sibling;
    if (taken.sibling != kNoBlock) at(taken.sibling).before = taken.before;
    group.lowest = meld(group.lowest, children);
  }
  if (group.lowest == kNoBlock) list.empty(group);
}

std::int32_t CachingAllocator::take_best(Bytes size, FreeList& list) {
  const std::size_t own = FreeList::bin_of(size);
  std::size_t word = own / 64;
  std::uint64_t bits = list.occupied[word] & (~std::uint64_t{0} << (own % 64));
  while (true) {
    while (bits == 0) {
      if (++word == list.occupied.size()) return kNoBlock;
      bits = list.occupied[word];
    }
    // The request's own bin may hold smaller blocks too; in every later bin all are large enough.
    std::int32_t index = list.lowest[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
    for (; index != kNoGroup; index = list.group(index).above) {
      SizeGroup& group = list.group(index);
      if (group.size < size || group.lowest == kNoBlock) continue;
      const std::int32_t taken = group.lowest;
      take_free(taken);
      return taken;
    }
    bits &= bits - 1;
  }
}

// ---- blocks ----------------------------------------------------------------------------------------------------

CachingAllocator::CachingAllocator(AllocatorOptions options) : options_(options) {}

std::int32_t CachingAllocator::new_block(Bytes size, Bytes address, std::int16_t pool) {
  std::int32_t index = static_cast<std::int32_t>(blocks_.size());
  if (unused_.empty()) {
    blocks_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
  }
  at(index) = Block{.size = size, .address = address, .pool = pool};
  return index;
}

// alloc_block(): a new segment from the driver, all of it one block.
std::int32_t CachingAllocator::grow(Bytes size, std::int16_t of) {
  const Bytes bytes = segment_bytes(size, is_small(of));
  Pool& p = pool(of);
  const std::int32_t block = new_block(bytes, p.end_address, of);
  p.end_address += bytes;
  reserved_ += bytes;
  return block;
}

// try_allocate_expandable_block(): maps more pages at the end of the pool's segment. A free block that lies there is
// extended, so only what it lacks is mapped.
std::int32_t CachingAllocator::grow_expandable(Bytes size, std::int16_t of) {
  Pool& p = pool(of);
  const Bytes page = is_small(of) ? kSmallSegment : kLargeSegment;
  const bool extends = p.tail != kNoBlock && at(p.tail).is_free;
  const Bytes bytes = round_up(size - (extends ? at(p.tail).size : 0), page);
  reserved_ += bytes;
  if (extends) {
    take_free(p.tail);
    resize(at(p.tail), at(p.tail).size + bytes);
  } else {
    const std::int32_t block = new_block(bytes, p.end_address, of);
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
  const std::int32_t rest = new_block(at(block).size - size, at(block).address + size, at(block).pool);
  Block& front = at(block);  // taken after new_block, which may move all blocks
  Block& back = at(rest);
  back.previous = block;
  back.next = front.next;
  if (back.next != kNoBlock) at(back.next).previous = rest;
  front.next = rest;
  resize(front, size);
  Pool& p = pool(front.pool);
  if (p.tail == block) p.tail = rest;
  put_free(rest);
}

// Joins `block` and the free one behind it.
void CachingAllocator::absorb_next(std::int32_t block) {
  Block& front = at(block);
  const std::int32_t absorbed = front.next;
  const Block& back = at(absorbed);
  resize(front, front.size + back.size);
  front.next = back.next;
  if (front.next != kNoBlock) at(front.next).previous = block;
  Pool& p = pool(front.pool);
  if (p.tail == absorbed) p.tail = block;
  unused_.push_back(absorbed);
}

// ---- requests --------------------------------------------------------------------------------------------------

void CachingAllocator::add_pools(std::int16_t last) {
  pools_.resize(static_cast<std::size_t>(last) + 1);
}

std::int32_t CachingAllocator::malloc(Bytes bytes, std::int16_t stream) {
  if (bytes <= 0) return kNoBlock;
  const Bytes size = round_to_block(bytes);
  const std::int16_t of = pool_of(stream, size <= kSmallRequest);
  if (pools_.size() <= static_cast<std::size_t>(of)) add_pools(of);
  std::int32_t block = take_best(size, pool(of).free_blocks);
  if (block == kNoBlock) block = options_.expandable_segments ? grow_expandable(size, of) : grow(size, of);
  Bytes taken = at(block).size;
  if (taken != size && is_worth_splitting(taken - size, is_small(of), options_.expandable_segments)) {
    split(block, size);
    taken = size;
  }
  allocated_ += taken;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return block;
}

void CachingAllocator::free(std::int32_t handle, std::uint32_t used_on) {
  if (handle == kNoBlock) return;
  allocated_ -= at(handle).size;
  if (used_on == 0) return release(handle);
  at(handle).waits_for = used_on;
  waiting_.push_back(handle);  // insert_events()
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
