#include "core/runtime/gpu.hpp"
#include "core/catalog/gpu_names.hpp"

#include <string>
#include <vector>

#include "core/runtime/cublas.hpp"
#include "core/runtime/cuda_context.hpp"
#include "tests/unit/catch.hpp"

namespace {

using namespace tidemark;

// A few lines of catalog/gpus.json.
std::vector<Gpu> some_gpus() {
  std::vector<Gpu> gpus;
  gpus.push_back({.name = "NVIDIA T4",
                  .aliases = {"Tesla T4", "t4"},
                  .vendor = "NVIDIA",
                  .compute_capability = 75,
                  .marketed_bytes = 16 * kGiB,
                  .nvidia_smi_bytes = 15360 * kMiB,
                  .torch_visible_bytes = 14912 * kMiB});
  gpus.push_back({.name = "NVIDIA A100 SXM 40GB",
                  .aliases = {"A100-40GB", "A100-SXM4-40GB"},
                  .vendor = "NVIDIA",
                  .compute_capability = 80,
                  .marketed_bytes = 40 * kGiB,
                  .nvidia_smi_bytes = 40960 * kMiB,
                  .torch_visible_bytes = 40441 * kMiB});
  gpus.push_back({.name = "NVIDIA A100 SXM 80GB",
                  .aliases = {"A100-80GB", "A100-SXM4-80GB", "A100"},
                  .vendor = "NVIDIA",
                  .compute_capability = 80,
                  .marketed_bytes = 80 * kGiB,
                  .nvidia_smi_bytes = 81920 * kMiB,
                  .torch_visible_bytes = 81038 * kMiB});
  gpus.push_back({.name = "NVIDIA A40",
                  .aliases = {"a40"},
                  .vendor = "NVIDIA",
                  .compute_capability = 86,
                  .marketed_bytes = 48 * kGiB,
                  .nvidia_smi_bytes = 46068 * kMiB,
                  .torch_visible_bytes = 48688 * kMiB});
  gpus.push_back({.name = "NVIDIA L4",
                  .aliases = {"l4"},
                  .vendor = "NVIDIA",
                  .compute_capability = 89,
                  .marketed_bytes = 24 * kGiB,
                  .nvidia_smi_bytes = 23034 * kMiB,
                  .torch_visible_bytes = 22563 * kMiB});
  gpus.push_back({.name = "NVIDIA L40",
                  .aliases = {"l40"},
                  .vendor = "NVIDIA",
                  .compute_capability = 89,
                  .marketed_bytes = 48 * kGiB,
                  .nvidia_smi_bytes = 46068 * kMiB});
  gpus.push_back({.name = "NVIDIA H100 SXM 80GB",
                  .aliases = {"H100", "H100 80GB HBM3"},
                  .vendor = "NVIDIA",
                  .compute_capability = 90,
                  .marketed_bytes = 80 * kGiB,
                  .nvidia_smi_bytes = 81559 * kMiB,
                  .torch_visible_bytes = 80998 * kMiB});
  gpus.push_back({.name = "NVIDIA GeForce RTX 4090",
                  .aliases = {"RTX 4090", "4090"},
                  .vendor = "NVIDIA",
                  .compute_capability = 89,
                  .marketed_bytes = 24 * kGiB,
                  .nvidia_smi_bytes = 24564 * kMiB,
                  .torch_visible_bytes = 24081 * kMiB});
  gpus.push_back({.name = "NVIDIA GeForce RTX 3080 Ti",
                  .aliases = {"RTX 3080 Ti"},
                  .vendor = "NVIDIA",
                  .compute_capability = 86,
                  .marketed_bytes = 12 * kGiB});
  gpus.push_back({.name = "AMD Instinct MI300X",
                  .aliases = {"MI300X"},
                  .vendor = "AMD",
                  .marketed_bytes = 192 * kGiB,
                  .torch_visible_bytes = 196291 * kMiB});
  gpus.push_back({.name = "Apple M2 Max",
                  .aliases = {"M2 Max"},
                  .vendor = "Apple",
                  .unified = true,
                  .marketed_bytes = 96 * kGiB,
                  .memory_options = {32 * kGiB, 64 * kGiB, 96 * kGiB}});
  return gpus;
}

std::string found(std::string_view name) {
  const std::vector<Gpu> gpus = some_gpus();
  const std::optional<GpuMatch> match = find_gpu(gpus, name);
  return match ? match->gpu.name : "";
}

}  // namespace

TEST_CASE("a GPU is found by whatever part of its name people use", "[gpu]") {
  for (const char* name : {"NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "RTX 4090", "rtx4090", "rtx-4090", "RTX_4090",
                           "4090", "4090 24GB", "RTX 4090 24 GiB", "nvidia-rtx-4090-24g"}) {
    INFO(name);
    CHECK(found(name) == "NVIDIA GeForce RTX 4090");
  }
  CHECK(found("a100") == "NVIDIA A100 SXM 80GB");
  CHECK(found("A100 80GB") == "NVIDIA A100 SXM 80GB");
  CHECK(found("NVIDIA A100-SXM4-40GB") == "NVIDIA A100 SXM 40GB");
  CHECK(found("a100-40gb") == "NVIDIA A100 SXM 40GB");
  CHECK(found("h100-80gb") == "NVIDIA H100 SXM 80GB");
  CHECK(found("NVIDIA H100 80GB HBM3") == "NVIDIA H100 SXM 80GB");
  CHECK(found("Tesla T4") == "NVIDIA T4");
  CHECK(found("L4") == "NVIDIA L4");
  CHECK(found("mi300x") == "AMD Instinct MI300X");
}

TEST_CASE("a name that is no GPU's finds none", "[gpu]") {
  CHECK(found("").empty());
  CHECK(found("nvidia").empty());
  CHECK(found("rtx").empty());
  CHECK(found("4090 48GB").empty());
  CHECK(found("A100 24GB").empty());
  CHECK(found("l400").empty());
  CHECK_FALSE(find_gpu({}, "a100"));
}

TEST_CASE("a misspelt GPU gets a suggestion", "[gpu]") {
  const std::vector<Gpu> gpus = some_gpus();
  CHECK(nearest_gpu(gpus, "rtx 4900") == "NVIDIA GeForce RTX 4090");
  CHECK(nearest_gpu(gpus, "a10080g") == "NVIDIA A100 SXM 80GB");
  CHECK(nearest_gpu(gpus, "quantum accelerator").empty());
}

TEST_CASE("usable memory is the smallest measured figure, else an estimate that says so", "[gpu]") {
  const std::vector<Gpu> gpus = some_gpus();
  const Gpu a100 = find_gpu(gpus, "a100")->gpu;
  CHECK(a100.usable_bytes() == 81038 * kMiB);
  CHECK_FALSE(a100.usable_is_estimated());

  // Measured with ECC off; by default it is on and leaves 46068 MiB.
  const Gpu a40 = find_gpu(gpus, "a40")->gpu;
  CHECK(a40.usable_is_estimated());
  CHECK(a40.usable_bytes() < 46068 * kMiB);
  CHECK(a40.usable_bytes() > 45000 * kMiB);

  const Gpu only_marketed = find_gpu(gpus, "3080 ti")->gpu;
  CHECK(only_marketed.usable_is_estimated());
  CHECK(only_marketed.usable_bytes() < 12 * kGiB);
  CHECK(only_marketed.usable_bytes() > 11 * kGiB);

  // 73728 MiB of 96 GB were seen (ggml-org/llama.cpp#3213), 21845 MiB of 32 GB (ollama/ollama#434).
  const Gpu unified = find_gpu(gpus, "m2 max")->gpu;
  CHECK(unified.usable_is_estimated());
  CHECK(unified.usable_bytes() == 72 * kGiB);
  CHECK(find_gpu(gpus, "m2 max 32gb")->gpu.usable_bytes() == 32 * kGiB / 3 * 2);
}

TEST_CASE("what the driver holds back is near the measured differences", "[gpu]") {
  // nvidia-smi and the smallest torch total, MiB, from catalog/gpus.json.
  struct Pair {
    Bytes board, torch;
  };
  for (const Pair& card :
       std::vector<Pair>{{15360, 14912},   {40960, 40441}, {81920, 81038}, {23034, 22563},   {23028, 22517},
                         {46068, 45495},   {81559, 80998}, {95830, 95320}, {143771, 143156}, {183359, 182630},
                         {284208, 283136}, {16376, 16117}, {49140, 48497}, {97887, 97249},   {32607, 32102},
                         {24564, 24081},   {8188, 7806},   {24576, 24124}, {12288, 11910},   {11264, 11012}}) {
    INFO(card.board << " MiB");
    const Bytes residual = driver_held_back(card.board * kMiB) - (card.board - card.torch) * kMiB;
    CHECK(residual > -253 * kMiB);
    CHECK(residual < 206 * kMiB);
  }
}

TEST_CASE("the CUDA context is measured where it can be, else taken from a relative", "[cuda_context]") {
  const std::vector<Gpu> gpus = some_gpus();
  CHECK(cuda_context(find_gpu(gpus, "t4")->gpu).expected == 140 * kMiB);
  CHECK(cuda_context(find_gpu(gpus, "t4")->gpu).confidence == Confidence::kMeasured);
  CHECK(cuda_context(find_gpu(gpus, "a100")->gpu).expected == 512 * kMiB);
  CHECK(cuda_context(find_gpu(gpus, "4090")->gpu).expected == 502 * kMiB);
  CHECK(cuda_context(find_gpu(gpus, "a40")->gpu).confidence == Confidence::kModelled);
  // The L4's row must not be taken for the L40, nor the other way round.
  CHECK(cuda_context(find_gpu(gpus, "l40")->gpu).confidence == Confidence::kModelled);
  for (const Gpu& gpu : gpus) {
    const CudaContext context = cuda_context(gpu);
    INFO(gpu.name);
    CHECK(context.low > 100 * kMiB);
    CHECK(context.low <= context.expected);
    CHECK(context.expected < context.high);
    CHECK(context.high < 2 * kGiB);
    CHECK_FALSE(context.source.empty());
  }
}

TEST_CASE("the cuBLAS workspace is 8.125 MiB, on Hopper 32 MiB", "[cublas]") {
  CHECK(cublas_workspace_bytes(80, false) == 8519680);
  CHECK(cublas_workspace_bytes(75, false) == 8519680);
  CHECK(cublas_workspace_bytes(80, true) == 33554432);
  CHECK(cublas_workspace_bytes(90, false) == 33554432);
  CHECK(cublas_workspace_bytes(120, false) == 8519680);
}
