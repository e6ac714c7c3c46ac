#include "core/job/check_packed.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark {
namespace {

// transformers 5.12 utils/quantization_config.py: GPTQConfig.post_init.
bool has_bits(const Quantization& q) {
  const bool common = q.bits == 4 || q.bits == 8;
  switch (q.quant_type) {
    case QuantType::kAwq:
      return q.bits == 4;
    case QuantType::kGptq:
    case QuantType::kHqq:
      return common || q.bits == 2 || q.bits == 3;
    case QuantType::kAqlm:
      return q.bits == 2;
    default:
      return common;
  }
}

// gptqmodel 7.7 nn_modules/qlinear/torch.py and gemm_awq.py SUPPORTS_GROUP_SIZE, hqq 0.2.8 core/quantize.py
// hqq_base_quant_config.
bool has_groups(const Quantization& q) {
  const Count size = q.group_size;
  const bool power = size >= 16 && (size & (size - 1)) == 0;
  switch (q.quant_type) {
    case QuantType::kGptq:
      return size == -1 || (power && size <= 1024);
    case QuantType::kAwq:
      return size == -1 || (power && size <= 128);
    case QuantType::kHqq:
      return size >= 8 && size % 8 == 0;
    default:
      return size >= 16 || q.quant_type > QuantType::kHqq;
  }
}

std::string_view name_of(QuantType type) {
  switch (type) {
    case QuantType::kGptq:
      return "GPTQ";
    case QuantType::kAwq:
      return "AWQ";
    case QuantType::kHqq:
      return "HQQ";
    case QuantType::kQuanto:
      return "quanto";
    case QuantType::kTorchao:
      return "torchao";
    case QuantType::kEetq:
      return "EETQ";
    default:
      return "AQLM";
  }
}

// Which code is taken to run where a user could have others.
void tell_code(const TrainingJob& job, Issues& issues) {
  const QuantType type = job.quantization.quant_type;
  const bool five = job.framework.at_least(5, 0);
  if (type == QuantType::kTorchao) {
    // torchao 0.18 quantization/__init__.py has no LinearActivationQuantizedTensor.
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/quantization/quant_type",
                      "Assumed: torchao 0.15 to 0.17. PEFT 0.18 fails beside 0.18 (\"cannot import name "
                      "'LinearActivationQuantizedTensor'\").",
                      ""});
  }
  if (type > QuantType::kHqq || (type == QuantType::kHqq && !five)) return;
  // transformers 5.12 quantizers/quantizer_hqq.py has no get_quantize_ops; gptqmodel 7.7 marlin.py: SUPPORTS_TRAINING.
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/quantization/quant_type",
                    type == QuantType::kHqq
                        ? "transformers 5 does not pack by HqqConfig any more: hqq's own AutoHQQHFModel.quantize_model "
                          "is assumed."
                    : five ? "Assumed: gptqmodel's layers with backend=\"auto_trainable\". Those that \"auto\" chooses "
                             "refuse to train."
                           : "Assumed: the layers of AutoGPTQ without its ExLlama kernels, or of AutoAWQ.",
                    ""});
}

// aqlm 1.1.7 inference_kernels/cuda_kernel.cpp
void check_aqlm(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const auto wrong = [&](std::string_view path, std::string message) {
    issues.push_back({"INVALID_VALUE", Severity::kError, std::string{path}, std::move(message), ""});
  };
  const Recipe& recipe = job.recipe;
  if (!is_half(recipe.weights) || recipe.autocast.value_or(recipe.weights) != recipe.weights) {
    wrong("/precision", "AQLM's kernels take 16-bit inputs in the dtype of the weights. Use \"bf16_amp\".");
  }
  // code1x16_matmat_dequant_transposed adds the layer's bias to the gradient.
  if (architecture.attention_bias || architecture.attention_out_bias || architecture.mlp_bias) {
    wrong("/quantization/quant_type",
          "AQLM's kernel adds a layer's bias to the gradient of its input, and fails where their sizes differ: this "
          "model's linear layers have biases.");
  }
}

}  // namespace

void check_packed(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Quantization& q = job.quantization;
  const std::string name{name_of(q.quant_type)};
  const auto refuse = [&](std::string_view code, std::string_view path, std::string message) {
    issues.push_back({std::string{code}, Severity::kError, std::string{path}, std::move(message), ""});
  };
  const auto wrong = [&](std::string_view path, std::string message) {
    refuse("INVALID_VALUE", path, std::move(message));
  };
  if (!has_bits(q)) {
    wrong("/quantization/bits", q.is_bitsandbytes()               ? "Quantised weights have 4 or 8 bits."
                                : q.quant_type == QuantType::kAwq ? "AWQ packs weights in 4 bits."
                                                                  : name + " packs weights in 2, 3, 4 or 8 bits.");
  }
  if (!has_groups(q)) {
    wrong("/quantization/group_size", q.is_bitsandbytes() ? "Blocks have at least 16 elements."
                                      : q.quant_type == QuantType::kHqq
                                          ? "Groups of HQQ are a multiple of 8 elements."
                                          : "Groups of " + name + " are a row (-1) or a power of two from 16 to " +
                                                (q.quant_type == QuantType::kAwq ? "128." : "1024."));
  }
  if (q.desc_act && q.quant_type != QuantType::kGptq) wrong("/quantization/desc_act", "desc_act is GPTQ's.");
  if (q.is_bitsandbytes()) return;
  if (q.double_quant) wrong("/quantization/double_quant", name + " does not pack its scales.");
  const Adapter& adapter = job.adapter;
  if (adapter.use_dora) {
    if (q.keeps_linear() || q.quant_type == QuantType::kHqq) {
      refuse("UNSUPPORTED_OPTION", "/adapter/use_dora", "DoRA beside " + name + " is not modelled yet.");
    } else {
      wrong("/adapter/use_dora", "PEFT's layers for " + name + " raise a ValueError for DoRA.");
    }
  }
  const bool wraps = !adapter.learns_prompt() && adapter.kind != AdapterKind::kLnTuning;
  const bool turns =
      adapter.kind == AdapterKind::kOft && (q.quant_type == QuantType::kGptq || q.quant_type == QuantType::kAwq);
  if (wraps && adapter.kind != AdapterKind::kLora && !turns) {
    refuse("UNSUPPORTED_OPTION", "/adapter/kind",
           "Of adapters that wrap modules LoRA is modelled yet beside " + name + ", and OFT beside GPTQ and AWQ.");
  }
  // transformers 5.12 quantizers: experts are one parameter of a layer, and no linear layers.
  if (architecture.experts.count > 0) {
    refuse("UNSUPPORTED_VALUE", "/quantization/quant_type",
           "Experts that " + name + " has packed are not modelled yet. Modelled: nf4.");
  }
  if (job.data_parallel.is_sharded() || job.tensor.is_used() || job.pipeline.is_used()) {
    refuse("UNSUPPORTED_VALUE", "/quantization/quant_type",
           "What GPUs divide of weights that " + name + " has packed is not modelled. Modelled: nf4.");
  }
  if (job.offload.activations) {
    refuse("UNSUPPORTED_OPTION", "/offload/activations",
           "What goes to the host of layers that " + name + " has packed is not modelled yet.");
  }
  if (q.quant_type == QuantType::kHqq && job.recipe.autocast && *job.recipe.autocast != job.recipe.weights) {
    wrong("/precision",
          "hqq's backward multiplies a gradient in autocast's dtype by the weight in the dtype of the others: it fails "
          "where they differ. Use \"bf16_amp\".");
  }
  if (q.quant_type == QuantType::kQuanto && q.prepare_kbit != PrepareKbit::kOff) {
    // optimum-quanto 0.2.7 tensor/weights/qbytes.py WeightQBytesTensor.__torch_dispatch__
    wrong("/quantization/prepare_kbit",
          "prepare_model_for_kbit_training makes all 16-bit weights fp32, which quanto's refuse (\"The dtype of a "
          "weights Tensor cannot be changed\").");
  }
  // transformers 5.12 integrations/eetq.py has an EetqLinear of its own; peft 0.18 tuners/lora/eetq.py dispatch_eetq
  // looks for that of the package.
  if (q.quant_type == QuantType::kEetq && job.framework.at_least(5, 0)) {
    wrong("/quantization/quant_type",
          "PEFT 0.18 does not know the layers that transformers 5 makes of EETQ's weights, and fails (\"Target module "
          "EetqLinear is not supported\"). Before transformers 5 it does.");
  }
  const Dtype compute = job.recipe.autocast.value_or(job.recipe.weights);
  if (q.quant_type == QuantType::kEetq && (job.recipe.weights != Dtype::kFp16 || compute != Dtype::kFp16)) {
    wrong("/precision", "EETQ's kernel takes fp16. Use \"pure_fp16\".");
  }
  if (q.quant_type == QuantType::kAqlm) check_aqlm(architecture, job, issues);
  if (q.quant_type == QuantType::kGptq && q.bits == 3 && !job.framework.at_least(5, 0)) {
    refuse("UNSUPPORTED_VALUE", "/quantization/bits", "How AutoGPTQ unpacks 3 bits is not modelled: use 2, 4 or 8.");
  }
  // peft 0.18 tuners/tuners_utils.py _maybe_include_all_linear_layers: nn.Linear and Conv1D, which these are not.
  const bool by_peft = job.framework.name == "transformers" || job.framework.name == "trl";
  if (by_peft && wraps && !q.keeps_linear() && adapter.target_modules.kind == ModuleChoice::Kind::kAllLinear) {
    issues.push_back({"ASSUMED_DEFAULT", Severity::kWarning, "/adapter/target_modules",
                      "PEFT's \"all-linear\" does not find layers that " + name +
                          " has packed: name the modules. The answer is that of all of them.",
                      ""});
  }
  tell_code(job, issues);
}

}  // namespace tidemark
