#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

enum LigerKernel { kLigerRmsNorm, kLigerSwiglu, kLigerRope, kLigerLayerNorm, kLigerOther };
constexpr Choice kLigerKernels[] = {
    {"rms_norm", kLigerRmsNorm, "fused RMSNorm"},
    {"swiglu", kLigerSwiglu, "fused SwiGLU"},
    {"rope", kLigerRope, "fused rotary embedding"},
    {"geglu", kLigerOther, "fused GeGLU", false},
    {"layer_norm", kLigerLayerNorm, "fused LayerNorm: it keeps what the other does"},
    {"cross_entropy", kLigerOther, "fused cross-entropy over materialised logits", false},
};

void liger(Request& r, const OptionValue& v) {
  r.job.liger_rms_norm = r.job.liger_swiglu = r.job.liger_rope = false;
  for (int kernel : v.choices) {
    if (kernel == kLigerRmsNorm) r.job.liger_rms_norm = true;
    if (kernel == kLigerSwiglu) r.job.liger_swiglu = true;
    if (kernel == kLigerRope) r.job.liger_rope = true;
  }
}

enum LoraKernel { kMlp, kQkv, kO, kEmbedding, kNoKernel, kAutoKernels };
constexpr Choice kLoraKernels[] = {
    {"auto", kAutoKernels, "as the framework has it: Axolotl turns them on"},
    {"none", kNoKernel, "PEFT's layers"},
    {"mlp", kMlp, "gate, up and down of a feed-forward in one function"},
    {"qkv", kQkv, "q, k and v in one function"},
    {"o", kO, "the attention's output"},
    {"embedding", kEmbedding, "the token table"},
};

void lora_kernels(Request& r, const OptionValue& v) {
  LoraKernels& kernels = r.job.lora_kernels;
  kernels = {};
  r.open.lora_kernels = false;
  for (const int kernel : v.choices) {
    if (kernel == kAutoKernels) r.open.lora_kernels = true;
    if (kernel == kMlp) kernels.mlp = true;
    if (kernel == kQkv) kernels.qkv = true;
    if (kernel == kO) kernels.o = true;
    if (kernel == kEmbedding) kernels.embedding = true;
  }
}

/// Axolotl's key for one of them.
template <bool LoraKernels::*kernel>
constexpr Option lora_kernel(std::string_view name, std::string_view label) {
  return flag(name, false, label, "Axolotl's key for a word of `lora_kernels`.")
      .further()
      .sets([](Request& r, const OptionValue& v) {
        r.open.lora_kernels = false;
        r.job.lora_kernels.*kernel = v.boolean;
      });
}

constexpr Choice kCompile[] = {
    {"none", 0, "eager PyTorch"},
    {"per_block", 1, "torch.compile of each layer; the code as it is stands in where the framework is not torchtitan"},
    {"full", 2, "torch.compile of the whole model: the same"},
    {"true", 2, "", true, "full"},
    {"false", 0, "", true, "none"},
};

// Besides the words of Loss.
constexpr int kByFramework = -1;

constexpr Choice kLosses[] = {
    {"auto", kByFramework,
     "the framework's: TRL's SFTTrainer computes it in chunks since 1.7, elsewhere the model's own"},
    {"default", number(Loss::kDefault), "the model's own cross-entropy; its copies depend on framework.version"},
    {"liger", number(Loss::kLiger), "Liger's fused linear cross-entropy"},
    {"chunked", number(Loss::kChunked), "cross-entropy over chunks of the sequence: TRL's chunked_nll"},
    {"chunked_nll", number(Loss::kChunked), "", true, "chunked"},
    {"nll", number(Loss::kDefault), "", true, "default"},
    {"cut_cross_entropy", number(Loss::kCutCrossEntropy), "Apple's cut cross-entropy"},
    {"mean_square", number(Loss::kMeanSquare), "of the last hidden state: what a body without a head is trained by"},
};

constexpr Choice kScans[] = {
    {"fused", 0, "the kernels of fla, mamba_ssm and causal_conv1d, which users of such models install"},
    {"fla", 0, "", true, "fused"},
    {"mamba_ssm", 0, "", true, "fused"},
    {"torch", 1, "transformers' fall-back on torch alone, which keeps many times as much"},
    {"torch-slow", 1, "", true, "torch"},
};

void loss(Request& r, const OptionValue& v) {
  r.open.loss = v.choice == kByFramework;
  r.job.loss = r.open.loss ? Loss::kDefault : static_cast<Loss>(v.choice);
}

/// Another key that names a loss.
void state_loss(Request& r, Loss stated) {
  r.open.loss = false;
  r.job.loss = stated;
}

constexpr Option axolotls(std::string_view name, std::string_view label) {
  return flag(name, false, label, "axolotl's key for a word of `liger` or `loss`.").further();
}

constexpr Option kOptions[] = {
    choice("loss", "\"auto\"", kLosses, "Loss", "How the loss is computed from the last hidden state.").sets(loss),
    several("liger", "[]", kLigerKernels, "Liger kernels", "Liger kernels in use, besides the loss.").sets(liger),
    several("lora_kernels", "[\"auto\"]", kLoraKernels, "LoRA kernels",
            "Axolotl's functions that take the place of PEFT's LoRA layers, several of them at a time.")
        .further()
        .sets(lora_kernels),
    lora_kernel<&LoraKernels::mlp>("lora_mlp_kernel", "LoRA kernel of feed-forwards"),
    lora_kernel<&LoraKernels::qkv>("lora_qkv_kernel", "LoRA kernel of q, k and v"),
    lora_kernel<&LoraKernels::o>("lora_o_kernel", "LoRA kernel of the attention's output"),
    lora_kernel<&LoraKernels::embedding>("lora_embedding_kernel", "LoRA kernel of the token table"),
    flag("fused_attn_kernel", false, "Norm and rotation in one",
         "Axolotl's kernel that norms and turns q and k at once: Qwen3's and Qwen3.5's, and always Gemma 4's.")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.fused_attention = v.boolean; }),
    choice("compile", "\"none\"", kCompile, "torch.compile", "torch.compile.")
        .known_as("torch_compile")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.compiled = v.choice > 0; }),
    flag("use_liger_kernel", false, "All Liger kernels",
         "TrainingArguments.use_liger_kernel: the fused loss with rms_norm, swiglu and rope.")
        .known_as("use_liger,enable_liger_kernel")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (!v.boolean) return;
          state_loss(r, Loss::kLiger);
          r.job.liger_rms_norm = r.job.liger_swiglu = r.job.liger_rope = true;
        }),
    choice("kernels", "\"fused\"", kScans, "State-space kernels",
           "How layers run that keep a state instead of attending.")
        .further()
        .into<&TrainingJob::torch_scan>(),
    axolotls("liger_rms_norm", "Liger's RMSNorm").sets([](Request& r, const OptionValue& v) {
      if (v.boolean) r.job.liger_rms_norm = true;
    }),
    axolotls("liger_glu_activation", "Liger's SwiGLU")
        .known_as("liger_swiglu")
        .sets([](Request& r, const OptionValue& v) {
          if (v.boolean) r.job.liger_swiglu = true;
        }),
    axolotls("liger_rope", "Liger's rotary embedding").sets([](Request& r, const OptionValue& v) {
      if (v.boolean) r.job.liger_rope = true;
    }),
    axolotls("liger_fused_linear_cross_entropy", "Liger's loss").sets([](Request& r, const OptionValue& v) {
      if (v.boolean) state_loss(r, Loss::kLiger);
    }),
    axolotls("cut_cross_entropy", "Cut cross-entropy").sets([](Request& r, const OptionValue& v) {
      if (v.boolean) state_loss(r, Loss::kCutCrossEntropy);
    }),
};

}  // namespace

constinit const Topic kLossTopic{{"loss", "Loss and kernels", true}, kPacked<kOptions>};

}  // namespace tidemark
