// Dion: matrices get an orthonormal update by a power iteration, the rest AdamW.
#include <algorithm>
#include <string_view>

#include "core/optimizers/rows.hpp"

namespace tidemark {
namespace {

/// A matrix as the update sees it: no wider than high.
struct Matrix {
  Dim rows, columns;
};

Matrix upright(const Parameter& p) {
  const bool wide = p.shape.size(0) < p.shape.size(1);
  return {p.shape.dim(wide ? 1 : 0), p.shape.dim(wide ? 0 : 1)};
}

// axolotl_.py DionOptimizerFactory: by name, and copies that PEFT trains.
bool by_adamw(const Parameter& p) {
  const std::string_view name = p.module;
  const bool named = name.find("embed_tokens") != name.npos || name.find("lm_head") != name.npos;
  return p.shape.rank < 2 || (named && !p.is_adapter);
}

void create(OptimizerRun& run, const Parameter& p) {
  run.keep(p.shape, p.dtype, "momentum");
  if (by_adamw(p)) return run.keep(p.shape, p.dtype, "variance");
  const Matrix m = upright(p);
  run.keep(Shape{m.columns, m.columns}, p.dtype, "Q");  // rank_fraction 1: Axolotl hands no other on
}

// dion.py orthogonalize, compiled: QR of a square matrix; of a higher one by the QR of a random sketch of its rows, and
// Cholesky. cuSOLVER's workspaces are not known here.
Tensor orthogonalized(Tape& t, const Matrix& m, Dtype dtype) {
  const Shape whole{m.rows, m.columns}, square{m.columns, m.columns};
  Tensor wide;
  if (is_half(dtype)) wide = t.allocate(whole, Dtype::kFp32, "P (fp32)");
  if (m.rows.n() == m.columns.n()) {
    {
      const Tensor r = t.allocate(square, Dtype::kFp32, "R");
      wide = t.allocate(whole, Dtype::kFp32, "Q of QR");
    }
  } else {
    constexpr Count kMultiple = 128;
    const Count sketched = (m.columns.n() * 5 / 4 + (m.columns.n() % 4 != 0 ? 1 : 0) + kMultiple - 1) / kMultiple;
    const Shape small{Dim(sketched * kMultiple), m.columns};
    Tensor r;
    {
      Tensor sketch = t.allocate(Shape{small.dim(0), m.rows}, dtype, "random sketch");
      Tensor product = t.allocate(small, dtype, "sketch @ P");
      sketch.reset();
      if (is_half(dtype)) product = t.allocate(small, Dtype::kFp32, "sketch @ P (fp32)");
      r = t.allocate(square, Dtype::kFp32, "R");
    }
    wide = t.allocate(whole, Dtype::kFp32, "solve_triangular");
    {
      const Tensor squares = t.allocate(square, Dtype::kFp32, "P.mT @ P");
      r = t.allocate(square, Dtype::kFp32, "cholesky");
    }
    wide = t.allocate(whole, Dtype::kFp32, "solve_triangular");
  }
  // Solvers return columns one behind another.
  if (is_half(dtype)) wide = t.allocate(whole, dtype, "_to_copy");
  return t.allocate(whole, dtype, "contiguous");
}

// dion.py dion_update_ddp of one matrix: without a mesh a batch is one.
void update_matrix(Tape& t, const Parameter& p) {
  const Matrix m = upright(p);
  const Shape whole{m.rows, m.columns}, square{m.columns, m.columns};
  const Tensor momentum = t.allocate(whole, p.dtype, "M_batch");
  const Tensor q = t.allocate(square, p.dtype, "Q_batch");
  Tensor orthonormal = t.allocate(whole, p.dtype, "P_batch");
  orthonormal = orthogonalized(t, m, p.dtype);
  Tensor r = t.allocate(square, p.dtype, "R_batch");
  orthonormal = t.allocate(whole, p.dtype, "P_batch or zeros");
  r = t.allocate(square, p.dtype, "R_batch or Q");
  t.scratch({{p.shape.numel() * size_of(p.dtype), "P @ R.mT"}});
  const Tensor normalised = t.allocate(square, p.dtype, "column_normalize");
  t.scratch({{p.shape.numel() * size_of(p.dtype), "P @ Q.mT"}});
}

void step(OptimizerRun& run) {
  run.for_each_trained([&](const Parameter& p) {
    if (!by_adamw(p)) update_matrix(run.tape, p);
  });
}

constexpr Optimizer kRows[] = {
    {.name = "dion",
     .help = "Axolotl's Dion for matrices, AdamW for the rest",
     .source = "axolotl-contribs-mit 0.0.6 dion/dion.py: dion_update_ddp, orthogonalize",
     .create = create,
     .step = step,
     .groups = ParameterGroups::kNamed},
};

}  // namespace

extern const OptimizerRows dion_rows;
const OptimizerRows dion_rows = kRows;

}  // namespace tidemark
