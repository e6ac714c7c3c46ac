#pragma once

#include "core/blocks/net.hpp"

namespace tidemark {

/// Token ids and labels: one per token, or one per row for classification; a mask where the job pads.
void text_inputs(Net& net);

/// The three parts of a decoder's forward. Each mirrors a method of the family's modelling file.
struct Program {
  /// Embeddings, position tables and masks: what the model's forward does before its loop over the layers.
  Tensor (*embed)(Net& net) = nullptr;
  /// One layer; net.layer_index says which.
  Tensor (*layer)(Net& net, Tensor hidden) = nullptr;
  /// What follows the loop up to the logits: final norm and head.
  Tensor (*head)(Net& net, Tensor hidden) = nullptr;
  /// The batch on the device: net.input_ids, net.labels, net.attention_mask.
  void (*inputs)(Net& net) = text_inputs;
  /// From the head's logits. Fused losses replace a causal language model's only.
  Tensor (*loss)(Net& net, Tensor logits) = nullptr;
};

/// The program of a family, or null when we have none.
const Program* program_for(const Architecture& architecture);

/// Whether two layers behave alike in memory: layers with equal kinds are simulated once.
std::int64_t layer_kind(const Net& net, Count layer);

// -- the families (one file each)
// --------------------------------------------------------------------------------------
extern const Program kLlamaProgram;
extern const Program kGpt2Program;
extern const Program kGptBigCodeProgram;
extern const Program kGptNeoXProgram;
extern const Program kOptProgram;
extern const Program kBertProgram;
extern const Program kDistilBertProgram;
extern const Program kVitProgram;
extern const Program kBloomProgram;
extern const Program kFalconProgram;
extern const Program kGptJProgram;
extern const Program kGptNeoProgram;
extern const Program kMptProgram;
extern const Program kQwen3Program;
extern const Program kGemmaProgram;
extern const Program kGemma2Program;
extern const Program kGemma3Program;
extern const Program kPhiProgram;
extern const Program kPhi3Program;
extern const Program kStableLmProgram;
extern const Program kOlmoProgram;
extern const Program kOlmo2Program;
extern const Program kGraniteProgram;
extern const Program kStarcoder2Program;
extern const Program kCohereProgram;
extern const Program kGlmProgram;
extern const Program kGlm4Program;
extern const Program kNemotronProgram;
extern const Program kApertusProgram;
extern const Program kHeliumProgram;
extern const Program kInternLm2Program;
extern const Program kBaichuanProgram;

/// LlamaModel.forward up to its loop: token table, positions, masks, rotary tables.
Tensor llama_embed(Net& net);
/// LlamaModel.norm and lm_head.
Tensor llama_head(Net& net, Tensor hidden);
/// GPTJAttention._attn and GPTNeoSelfAttention._attn: scores in fp32. GPT-Neo's are unscaled and masked by a buffer.
Tensor attention_fp32_scores(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options,
                             bool masked_by_buffer);
/// GPT2Model.forward up to its loop: token and position tables.
Tensor gpt2_embed(Net& net);
/// GPT2Model.ln_f and lm_head.
Tensor gpt2_head(Net& net, Tensor hidden);
/// LlamaAttention.forward, and where the job has them Seed-OSS's and Starcoder2's dropout behind it.
Tensor llama_attention(Net& net, Tensor hidden);
/// Gate and up in one matrix: Phi3MLP.forward, Glm4MLP.forward; `source` says which.
Tensor fused_gate_mlp(Net& net, Tensor x, const char* source);
/// LlamaMLP.forward
Tensor llama_mlp(Net& net, Tensor x);

}  // namespace tidemark
