#include "core/layers/rows_loss.hpp"

#include <algorithm>

namespace tidemark {
namespace {

// unsloth_zoo 2026.10.9 fused_losses/fused_linear.py, with its settings as they are where no variable is set.
constexpr Count kSplitColumns = 16384;         // _SPLIT_COLS
constexpr Count kFewestLogits = 512 * 151936;  // _MIN_LOGITS
constexpr Count kFewestRows = 512, kMostRows = 4096;
constexpr Count kTiledFrom = 4096;               // _flash_min_rows_auto, on cards of more than 24.5 GiB
constexpr Bytes kTileBudget = Bytes{256} << 20;  // _BWD_TILE_BYTES
constexpr Bytes kChunkBudget = Bytes{2} << 30;   // _CHUNK_GB

// fused_linear_rows: as many rows of logits as hold the states' bytes, a power of two, between bounds.
Count rows_at_once(Tape& t, const Tensor& weight, Count kept) {
  Count fewest = kFewestRows;
  while (fewest < kMostRows && 2 * fewest * weight.size(0) <= kFewestLogits) fewest *= 2;
  Count rows = fewest;
  while (rows < kMostRows && t.above(kept * weight.size(1), 2 * rows * weight.size(0) - 1)) rows *= 2;
  return std::min(rows, std::max<Count>(kChunkBudget / (weight.size(0) * size_of(Dtype::kFp32)), 2));
}

// Parts of the vocabulary whose statistics are taken apart.
Count splits_of(const Tensor& weight) {
  return (weight.size(0) + kSplitColumns - 1) / kSplitColumns;
}

// What is left of a chunk when the next one is made: Python's names hold it until they are given anew.
struct Chunk {
  Tensor states;    // [n, H], rows that have labels
  Tensor targets;   // [n]
  Tensor of_row;    // [n], logarithms of sums
  Tensor gradient;  // [n, H] in fp32
};

// _ce_impl's loop: fp32 logits in one buffer, in whose place their gradient is written in 16 bits.
void chunk_of_rows(Tape& t, const Tensor& weight, Count n, Chunk& last) {
  const Dtype dtype = weight.dtype();
  const Dim rows(n);
  last.states = t.allocate(Shape{rows, weight.dim(1)}, dtype, "index_select (states)");
  last.targets = t.allocate(Shape{rows}, Dtype::kInt64, "index_select (targets)");
  last.of_row = t.allocate(Shape{rows}, Dtype::kFp32, "empty (lse)");
  const Count splits = splits_of(weight);
  if (splits > 2) t.scratch({{7 * splits * n * size_of(Dtype::kFp32), "of each split"}});
  last.gradient = t.allocate(Shape{rows, weight.dim(1)}, Dtype::kFp32, "mm (input gradient, fp32)");
  t.allocate(Shape{rows, weight.dim(1)}, dtype, "to (input gradient)");
}

void in_chunks(Tape& t, const Tensor& weight, Count kept) {
  Count rows = rows_at_once(t, weight, kept);
  const bool many = t.above(kept, rows);
  if (!many) rows = kept;
  const Dim columns((weight.size(0) + 7) / 8 * 8);
  Tensor logits = t.allocate(Shape{Dim(rows), columns}, Dtype::kFp32, "empty (logits)");
  t.set_category(logits, Category::kLogitsLoss);
  Chunk last;
  chunk_of_rows(t, weight, rows, last);
  // Further ones are like the second.
  if (many) chunk_of_rows(t, weight, t.above(kept, 2 * rows) ? rows : kept - rows, last);
}

// _tiled_forward: rows by tiles of the vocabulary, beside the sum of the states' gradient in fp32.
void in_tiles(Tape& t, const Tensor& weight, Count kept) {
  const Dtype dtype = weight.dtype();
  const Count rows = std::min(kMostRows, kTileBudget / (kSplitColumns * size_of(Dtype::kFp32)));
  const Dim n(rows);
  const Tensor of_kept = t.allocate(Shape{Dim(kept)}, Dtype::kFp32, "empty (lse)");
  Tensor logits = t.allocate(Shape{n, Dim(kSplitColumns)}, Dtype::kFp32, "empty (tile of logits)");
  t.set_category(logits, Category::kLogitsLoss);
  const Tensor sum = t.allocate(Shape{n, weight.dim(1)}, Dtype::kFp32, "empty (input gradient, fp32)");
  const Tensor largest = t.allocate(Shape{n}, Dtype::kFp32, "empty (running maximum)");
  const Tensor states = t.allocate(Shape{n, weight.dim(1)}, dtype, "index_select (states)");
  const Tensor targets = t.allocate(Shape{n}, Dtype::kInt64, "index_select (targets)");
  const Tensor parts = t.allocate(Shape{Dim(8 * splits_of(weight)), n}, Dtype::kFp32, "empty (of each split)");
  // The second chunk's rows are taken while the first one's are held.
  if (t.above(kept, rows)) t.allocate(Shape{n, weight.dim(1)}, dtype, "index_select (states)");
}

}  // namespace

void logits_by_rows(Net& net, const Tensor& weight, Count tokens) {
  Tape& t = net.tape;
  const Count kept = std::max<Count>(tokens - net.B.n(), 1);
  const Tensor index = t.allocate(Shape{Dim(kept)}, Dtype::kInt64, "nonzero");
  const Tensor of_row = t.allocate(Shape{Dim(kept)}, Dtype::kFp32, "empty (log-probabilities)");
  const bool tiles = !weight.requires_grad() && splits_of(weight) > 2 && net.job.compute_capability >= 80;
  if (tiles && t.above(kept, kTiledFrom - 1)) return in_tiles(t, weight, kept);
  in_chunks(t, weight, kept);
}

}  // namespace tidemark
