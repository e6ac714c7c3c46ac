#include "core/runtime/cuda_context.hpp"

#include <string>

namespace tidemark {
namespace {

// Most figures are the remainder of an out-of-memory message ("process has X, Y allocated by PyTorch, Z reserved but
// unallocated": X - Y - Z); `source` names the issue in which it stands. Where there is a single report, `high` adds
// 250 MiB: kernels loaded during a run were seen to add 50 to 250 MiB.
struct Row {
  std::string_view card;    ///< gpu_key() of the card, or what it begins with; empty: all of the compute capability
  int compute_capability;   ///< read when `card` is empty
  int low, expected, high;  ///< MiB
  Confidence confidence;
  std::string_view source;
};

constexpr Confidence kMeasured = Confidence::kMeasured;
constexpr Confidence kModelled = Confidence::kModelled;

constexpr Row kRows[] = {
    {"t4", 75, 133, 140, 200, kMeasured,
     "three OOM messages, 133 to 141 MiB: ragntune/code-llama-finetune#3, Farzad-R/Finetune-LLAVA-NEXT#2, "
     "FoundationVision/GenerateU#10"},
    {"2080ti", 75, 194, 194, 444, kMeasured, "FramePack#369: 194 MiB"},
    {"p100", 60, 303, 303, 553, kMeasured, "florence2-finetuning#17: about 303 MiB"},
    {"a100", 80, 481, 512, 942, kMeasured,
     "0.49 and 0.50 GiB (CoSeR#10, Mask2DiT#4); 0.47 lazy to 0.92 GiB with all kernels loaded "
     "(stas00/ml-engineering training/performance/README.md)"},
    {"a10g", 86, 350, 645, 895, kMeasured, "mistral-finetune#69: about 0.63 GiB"},
    {"4090", 89, 471, 502, 721, kMeasured, "Phidias-Diffusion#8: 471 MiB bare, 0.49 GiB with training kernels"},
    {"6000ada", 89, 426, 429, 676, kMeasured, "unsloth-zoo#1053: 426 MiB bare; MTVCrafter#21: 429 MiB"},
    {"h100", 90, 563, 695, 977, kMeasured,
     "0.55 to 0.71 GiB before any tensor (stas00/ml-engineering training/performance/README.md, debug/pytorch.md), and "
     "50 MiB of kernels"},
    {"h200", 90, 742, 758, 977, kMeasured,
     "tests/measured/own.jsonl: 518 MiB bare; 742 to 828 MiB behind three training steps of 718 jobs, torch 2.11, CUDA "
     "13.0"},
    {"", 60, 303, 303, 553, kModelled, "as the P100"},
    {"", 61, 195, 250, 500, kModelled, "between the RTX 2080 Ti and the P100"},
    {"", 70, 303, 400, 653, kModelled, "between the P100 and the A100, by number of multiprocessors"},
    {"", 75, 133, 195, 445, kModelled, "T4, RTX 2080 Ti and an 8 GB card (vllm#12529)"},
    {"", 80, 481, 512, 942, kModelled, "as the A100"},
    {"", 86, 195, 350, 645, kModelled,
     "195 MiB on an 8 GB card (vllm#12529), 350 MiB on a 16 GB one (VSmTrans#3), 0.63 GiB on the A10G"},
    {"", 89, 350, 450, 700, kModelled, "350 MiB on a 16 GB card (VSmTrans#3), RTX 6000 Ada, RTX 4090"},
    {"", 90, 563, 695, 977, kModelled, "as the H100"},
    {"", 100, 563, 700, 1100, kModelled, "not measured; somewhat above the H100"},
    {"", 103, 563, 700, 1100, kModelled, "not measured; somewhat above the H100"},
    {"", 120, 426, 600, 977, kModelled, "not measured; between the RTX 4090 and the H100"},
    {"", 121, 426, 600, 977, kModelled, "not measured; between the RTX 4090 and the H100"},
};

constexpr Row kUnknown = {"", 0, 133, 512, 977, kModelled, "not measured; the range over all cards"};

// "a100" begins "a100sxm80gb", but "l4" shall not be found in "l40": the next character may not go on with the number.
bool is_card(std::string_view key, std::string_view card) {
  if (key.substr(0, card.size()) != card) return false;
  return key.size() == card.size() || key[card.size()] < '0' || key[card.size()] > '9';
}

const Row& row_of(const Gpu& gpu) {
  const std::string key = gpu_key(gpu.name);
  for (const Row& row : kRows) {
    if (row.card.empty() ? row.compute_capability == gpu.compute_capability : is_card(key, row.card)) return row;
  }
  return kUnknown;
}

}  // namespace

CudaContext cuda_context(const Gpu& gpu) {
  const Row& row = row_of(gpu);
  return {.low = row.low * kMiB,
          .expected = row.expected * kMiB,
          .high = row.high * kMiB,
          .confidence = row.confidence,
          .source = row.source};
}

}  // namespace tidemark
