// What each optimizer keeps, by hand from the sources that its row cites.
#include "core/optimizers/optimizer.hpp"

#include <set>
#include <string>

#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

/// Bytes that the first step keeps for one parameter.
Bytes kept(std::string_view optimizer, Shape shape, Dtype dtype, const char* module = "") {
  Tape tape;
  TrainingJob job;
  job.optimizer = optimizer;
  job.low_rank.rank = 128;
  Parameter p;
  p.shape = shape;
  p.dtype = dtype;
  p.module = module;
  p.requires_grad = true;
  OptimizerRun run(tape, job);
  find_optimizer(optimizer)->create(run, p);
  Bytes bytes = 0;
  for (const Storage& storage : tape.storages()) bytes += storage.bytes;
  return bytes;
}

const Shape kMatrix{Dim(1000), Dim(512)};
constexpr Bytes kElements = 1000 * 512;
constexpr Bytes kBlocks = kElements / 256;

}  // namespace

TEST_CASE("every optimizer has a name of its own, and one that is modelled says whose code it follows") {
  std::set<std::string> names;
  for (const Optimizer* row : all_optimizers()) {
    INFO(row->name);
    CHECK(names.insert(row->name).second);
    if (!row->alias.empty()) CHECK(names.insert(std::string{row->alias}).second);
    CHECK_FALSE(row->help.empty());
    if (row->create != nullptr) CHECK_FALSE(std::string{row->source}.empty());
    CHECK(find_optimizer(row->name) == row);
  }
  CHECK(find_optimizer("adam") == nullptr);
}

TEST_CASE("Adam's moments have the parameter's dtype, the fused one counts its steps on the device") {
  CHECK(kept("adamw_torch", kMatrix, Dtype::kBf16) == 2 * 2 * kElements);
  CHECK(kept("adamw_torch_fused", kMatrix, Dtype::kFp32) == 2 * 4 * kElements + 4);
}

TEST_CASE("bitsandbytes keeps eight bits and a scale per block of 256, and 32 bits of small parameters") {
  CHECK(kept("adamw_8bit", kMatrix, Dtype::kBf16) == 2 * (kElements + 4 * kBlocks));
  CHECK(kept("lion_8bit", kMatrix, Dtype::kBf16) == kElements + 4 * kBlocks);
  CHECK(kept("adamw_8bit", Shape{Dim(512)}, Dtype::kBf16) == 2 * 4 * 512);
  CHECK(kept("paged_adamw_8bit", kMatrix, Dtype::kBf16) == 0);
}

// transformers 5.12.1 optimization.py Adafactor.step: grad_shape[:-1], and grad_shape[:-2] + grad_shape[-1:].
TEST_CASE("Adafactor keeps a number per row and per column of each matrix that a convolution is made of") {
  CHECK(kept("adafactor", kMatrix, Dtype::kBf16) == 4 * (1000 + 512));
  CHECK(kept("adafactor", Shape{Dim(512), Dim(256), Dim(3)}, Dtype::kFp32) == 4 * (512 * 256 + 512 * 3));
  CHECK(kept("adafactor", Shape{Dim(512)}, Dtype::kFp32) == 4 * 512);
}

TEST_CASE("schedule-free optimizers keep the iterate and, but for SGD, a second moment in the parameter's dtype") {
  CHECK(kept("schedule_free_adamw", kMatrix, Dtype::kBf16) == 2 * 2 * kElements);
  CHECK(kept("schedule_free_radam", kMatrix, Dtype::kFp32) == 2 * 4 * kElements);
  CHECK(kept("schedule_free_sgd", kMatrix, Dtype::kFp32) == 4 * kElements);
}

TEST_CASE("StableAdamW keeps a compensation of 16-bit weights, and scalars for its kernel") {
  CHECK(kept("stable_adamw", kMatrix, Dtype::kBf16) == 3 * 2 * kElements + 2 + 4);
  CHECK(kept("stable_adamw", kMatrix, Dtype::kFp32) == 2 * 4 * kElements + 4 + 1 + 4);
}

TEST_CASE("AdEMAMix keeps three averages; paged, only the scales stay on the card") {
  CHECK(kept("ademamix", kMatrix, Dtype::kBf16) == 3 * 4 * kElements);
  CHECK(kept("ademamix_8bit", kMatrix, Dtype::kBf16) == 3 * (kElements + 4 * kBlocks));
  CHECK(kept("paged_ademamix_8bit", kMatrix, Dtype::kBf16) == 3 * 4 * kBlocks);
}

TEST_CASE(
    "GaLore keeps a projector and moments of 128 rows; of fp32 gradients the projector holds all singular vectors") {
  constexpr Bytes kMoments = 2 * 128 * 1000;
  CHECK(kept("galore_adamw", kMatrix, Dtype::kBf16) == 2 * (128 * 512 + kMoments));
  CHECK(kept("galore_adamw", kMatrix, Dtype::kFp32) == 4 * (512 * 512 + kMoments));
  CHECK(kept("galore_adamw", Shape{Dim(512)}, Dtype::kBf16) == 2 * 2 * 512);
}

TEST_CASE("Q-GaLore keeps codes of its projector, a byte each, a scale and a zero for 256 of them, and its last row") {
  // AdamW's states lie beside it, 8 bits each and a scale for 256.
  CHECK(kept("q_galore_adamw8bit", kMatrix, Dtype::kBf16, "mlp.up_proj") ==
        128 * 512 + 2 * 2 * (128 * 512 / 256) + 2 * 512 + 2 * (128 * 1000 + 4 * (128 * 1000 / 256)));
  CHECK(kept("q_galore_adamw8bit", kMatrix, Dtype::kBf16, "lm_head") == 2 * (kElements + 4 * kBlocks));
}

// axolotl-contribs-mit 0.0.6 dion/dion.py _init_opt_state_dion; axolotl_.py: lm_head goes by AdamW.
TEST_CASE("Dion keeps a momentum of each matrix and a square of its smaller side, of the rest AdamW's moments") {
  CHECK(kept("dion", kMatrix, Dtype::kBf16, "mlp.up_proj") == 2 * (kElements + 512 * 512));
  CHECK(kept("dion", kMatrix, Dtype::kFp32, "lm_head") == 4 * 2 * kElements);
  CHECK(kept("dion", Shape{Dim(512)}, Dtype::kBf16) == 2 * 2 * 512);
}

// badam 1.4 block_optim.py _switch_trainable_params_single_gpu
TEST_CASE("BAdam keeps an fp32 copy of what it trains, and AdamW's moments of that copy") {
  CHECK(kept("badam", kMatrix, Dtype::kBf16) == 3 * 4 * kElements + 4);
}

TEST_CASE("APOLLO keeps random directions in the gradient's dtype, as many as its rank whatever the matrix") {
  CHECK(kept("apollo_adamw", kMatrix, Dtype::kFp32) == 4 * (128 * 512 + 2 * 128 * 1000) + 4);
  CHECK(kept("apollo_adamw", Shape{Dim(16), Dim(1000)}, Dtype::kBf16) == 2 * (128 * 16 + 2 * 128 * 1000) + 2);
}

TEST_CASE(
    "ADOPT keeps Adam's moments, torchdistx's AdamW its own in fp32, torchao's fp8 a byte and a scale per block") {
  CHECK(kept("adopt_adamw", kMatrix, Dtype::kBf16) == 2 * 2 * kElements);
  CHECK(kept("adamw_anyprecision", kMatrix, Dtype::kBf16) == 2 * 4 * kElements);
  CHECK(kept("ao_adamw_fp8", kMatrix, Dtype::kBf16) == 2 * (kElements + 4 * kBlocks));
  CHECK(kept("ao_adamw_fp8", Shape{Dim(512)}, Dtype::kBf16) == 2 * 2 * 512);
}

TEST_CASE("CAME keeps one full moment and four factors, AdaLomo two factors, LOMO nothing, GrokAdamW all on the host") {
  CHECK(kept("came_pytorch", kMatrix, Dtype::kBf16) == 4 * (kElements + 2 * (1000 + 512)));
  CHECK(kept("adalomo", kMatrix, Dtype::kBf16) == 4 * (1000 + 512));
  CHECK(kept("adalomo", Shape{Dim(1000), Dim(512), Dim(2), Dim(2)}, Dtype::kBf16) == 4 * (1000 + 512));
  CHECK(kept("lomo", kMatrix, Dtype::kBf16) == 0);
  CHECK(kept("grokadamw", kMatrix, Dtype::kBf16) == 0);
  Parameter p;
  p.shape = kMatrix;
  p.dtype = Dtype::kBf16;
  CHECK(find_optimizer("grokadamw")->managed(p) == 3 * 2 * kElements);
}
