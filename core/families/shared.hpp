#pragma once

#include "core/layers/net.hpp"

/// Methods of one family's modelling file that others repeat word for word; each is defined in the file of the family
/// that it is named after.
namespace tidemark {

/// LlamaModel.forward up to its loop: token table, positions, masks, rotary tables.
Tensor llama_embed(Net& net);
/// LlamaModel.norm
Tensor llama_norm(Net& net, Tensor hidden);
/// LlamaForCausalLM.lm_head
Tensor llama_head(Net& net, Tensor hidden);
/// GPTJAttention._attn and GPTNeoSelfAttention._attn: scores in fp32. GPT-Neo's are unscaled and masked by a buffer.
Tensor attention_fp32_scores(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options,
                             bool masked_by_buffer);
/// What BERT and its like tell the attention interface: both directions, softmax in the scores' dtype.
AttentionOptions encoder_attention(Net& net);
/// An encoder that ends with its last layer's norm.
Tensor no_norm(Net& net, Tensor hidden);
/// GPT2Model.forward up to its loop: token and position tables.
Tensor gpt2_embed(Net& net);
/// GPT2Model.ln_f
Tensor gpt2_norm(Net& net, Tensor hidden);
/// GPT2LMHeadModel.lm_head
Tensor gpt2_head(Net& net, Tensor hidden);
/// LlamaAttention.forward, and where the job has them Seed-OSS's and Starcoder2's dropout behind it.
Tensor llama_attention(Net& net, Tensor hidden);
/// Gate and up in one matrix: Phi3MLP.forward, Glm4MLP.forward; `source` says which.
Tensor fused_gate_mlp(Net& net, Tensor x, const char* source);
/// LlamaMLP.forward
Tensor llama_mlp(Net& net, Tensor x);
/// LlamaDecoderLayer.forward around the attention and the feed-forward of another file; `source` says which.
using Branch = Tensor (*)(Net& net, Tensor hidden);
Tensor pre_norm_layer(Net& net, Tensor hidden, const char* source, Branch attention, Branch feed_forward);

}  // namespace tidemark
