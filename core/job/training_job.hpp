#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units/bytes.hpp"
#include "core/units/dtype.hpp"

namespace tidemark {

enum class Method : std::uint8_t { kFull, kLora, kQlora, kFreeze };
enum class AttentionKernel : std::uint8_t { kEager, kSdpa, kFlashAttention2, kFlashAttention3, kXformers, kMath };
enum class Checkpointing : std::uint8_t { kNone, kFull, kEvery, kSelectiveCoreAttention, kOffload };
enum class Loss : std::uint8_t { kDefault, kLiger, kChunked, kCutCrossEntropy };
enum class QuantType : std::uint8_t { kNf4, kFp4, kInt8 };
enum class PrepareKbit : std::uint8_t { kOff, kAll, kNormsOnly };

/// Names of Hugging Face `optim` that differ in memory.
enum class Optimizer : std::uint8_t {
  kAdamwTorch,       ///< torch.optim.AdamW, foreach
  kAdamwTorchFused,  ///< torch.optim.AdamW, fused
  kAdamw8bit,        ///< bitsandbytes, block-wise 8-bit states
  kPagedAdamw8bit,   ///< the same, states of ≥ 1e5 elements in managed memory
  kAdamw32bit,       ///< bitsandbytes, fp32 states ("adamw_bnb_32bit")
  kPagedAdamw32bit,
  kAdamwTorchao8bit,  ///< "adamw_torch_8bit"
  kAdamwTorchao4bit,  ///< "adamw_torch_4bit"
  kAdafactor,
  kSgd,
  kSgdMomentum,
  kLion32bit,
  kLion8bit,
  kPagedLion32bit,
  kPagedLion8bit,
  kGaloreAdamw,
  kApolloAdamw,
  kAdamMini,
  kMuon,
  kAdagrad,
  kRmsprop,
  kAdamwHf,  ///< transformers' own AdamW (gone in version 5): a loop over parameters
};

/// Every decision of mixed precision, so that no answer hides behind "16 bytes per parameter".
struct Recipe {
  std::string name = "amp_bf16";                 ///< as requested, or "custom"
  Dtype weights = Dtype::kFp32;                  ///< of the parameters as loaded
  std::optional<Dtype> autocast = Dtype::kBf16;  ///< torch.autocast's dtype; absent when there is none
  Dtype gradients = Dtype::kFp32;                ///< dtype of `.grad`
  std::optional<Dtype> master_weights;    ///< a second copy that the optimizer updates; absent when there is none
  Dtype optimizer_states = Dtype::kFp32;  ///< of the moments, where the optimizer does not decide for itself
};

/// PEFT LoraConfig.
struct Adapter {
  Count r = 16;                              ///< rank
  double lora_alpha = 32.0;                  ///< scaling numerator; moves no memory
  double lora_dropout = 0.0;                 ///< probability
  bool all_linear = true;                    ///< every linear but the output head
  std::vector<std::string> target_modules;   ///< module names (suffixes) when not all_linear
  std::vector<std::string> modules_to_save;  ///< trained in full beside the adapters
  Dtype dtype = Dtype::kFp32;                ///< of A and B
  bool use_dora = false;                     ///< a magnitude vector per adapted module
};

/// bitsandbytes and friends.
struct Quantization {
  int bits = 4;  ///< 4 or 8
  QuantType quant_type = QuantType::kNf4;
  bool double_quant = true;                      ///< block scales are quantised again
  Count group_size = 64;                         ///< elements that share a scale
  PrepareKbit prepare_kbit = PrepareKbit::kOff;  ///< peft.prepare_model_for_kbit_training was called
};

/// Releases whose memory behaviour differs (mechanics: version switches).
struct Framework {
  std::string name = "transformers";
  int major = 5;  ///< of the version
  int minor = 12;
  bool at_least(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};

/// How the model is trained on one GPU. All defaults are those of the contract.
struct TrainingJob {
  Method method = Method::kFull;
  Adapter adapter;                  ///< read when method is lora or qlora
  Quantization quantization;        ///< read when method is qlora
  std::vector<std::string> freeze;  ///< module-name patterns that are not trained
  Recipe recipe;
  Count micro_batch_size = 1;         ///< B
  Count sequence_length = 2048;       ///< S
  Count decoder_sequence_length = 0;  ///< target length of encoder–decoders; 0 = S
  Count gradient_accumulation_steps = 1;
  bool padding = false;  ///< a 2-D attention mask with zeros is passed
  bool packing = false;  ///< several samples per row, block-diagonal attention
  AttentionKernel attention = AttentionKernel::kSdpa;
  Checkpointing checkpointing = Checkpointing::kNone;
  Count checkpoint_every = 1;  ///< k, when kEvery
  bool use_reentrant = false;
  Optimizer optimizer = Optimizer::kAdamwTorchFused;
  double max_grad_norm = 1.0;  ///< 0 = no clipping
  bool optimizer_in_backward = false;
  Loss loss = Loss::kDefault;
  bool liger_rms_norm = false, liger_swiglu = false, liger_rope = false;  ///< Liger kernels in use
  bool keep_outputs = false;         ///< a hand-written loop holds `outputs` through backward
  bool outputs_to_fp32 = true;       ///< accelerate converts the outputs under autocast
  bool zero_grad_to_none = true;     ///< torch ≥ 2.0
  bool expandable_segments = false;  ///< allocator setting
  Framework framework;
  int compute_capability = 80;  ///< of the GPU that runs it; decides kernels and workspaces
  Bytes misc_overhead = 0;      ///< overrides.misc_overhead_gib
};

}  // namespace tidemark
