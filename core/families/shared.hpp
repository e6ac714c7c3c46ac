#pragma once

#include "core/layers/net.hpp"
#include "core/model/config_fields.hpp"

/// Methods of one family's modelling file that others repeat word for word; each is defined in the file of the family
/// that it is named after.
namespace tidemark {

/// LlamaModel.forward up to its loop: token table, positions, masks, rotary tables.
Tensor llama_embed(Net& net);
/// The same of another file; `wide_tables`: its rotary embedding leaves the tables in fp32.
Tensor decoder_embed(Net& net, const char* source, bool wide_tables);
/// LlamaModel.norm
Tensor llama_norm(Net& net, Tensor hidden);
/// `hidden_states = self.norm(hidden_states)`: the name holds what goes in until the norm returns.
Tensor held_norm(Net& net, Tensor hidden);
/// LlamaForCausalLM.lm_head
Tensor llama_head(Net& net, Tensor hidden);
/// GPTJAttention._attn and GPTNeoSelfAttention._attn: scores in fp32. GPT-Neo's are unscaled and masked by a buffer.
Tensor attention_fp32_scores(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options,
                             bool masked_by_buffer);
/// LlamaConfig's keys.
void read_llama_config(ConfigFields& fields, Architecture& architecture);
/// BertConfig's keys, which others extend.
void read_bert_config(ConfigFields& fields, Architecture& architecture);
/// What the embeddings' modules are called.
struct EmbeddingNames {
  const char *module, *words, *types, *positions, *norm;  ///< no norm, no positions: null
  const char* tasks = nullptr;                            ///< ERNIE's table of task types
};
/// BertEmbeddings.forward; `from_padding`: positions are counted from the padding id, as RoBERTa's are.
Tensor bert_embeddings(Net& net, const EmbeddingNames& names, Dim width, bool from_padding);
/// create_position_ids_from_input_ids of RoBERTa and MPNet: the position of each token, counted from the padding id.
Tensor position_ids_from_padding(Net& net);
/// BertLayer.forward
Tensor bert_layer(Net& net, Tensor hidden);
/// BertLayer.feed_forward_chunk
Tensor bert_feed_forward(Net& net, const Tensor& attended);
/// BertSelfOutput.forward, BertOutput.forward: dense, dropout, norm of the sum.
Tensor bert_join(Net& net, const char* module, const char* dense, const char* norm, const char* source, Tensor x,
                 const Tensor& input);
/// What BERT and its like tell the attention interface: both directions, softmax in the scores' dtype.
AttentionOptions encoder_attention(Net& net);
/// An encoder that ends with its last layer's norm.
Tensor no_norm(Net& net, Tensor hidden);
/// ViTLayer.forward
Tensor vit_layer(Net& net, Tensor hidden);
/// How a mixer of Mamba's kind names its modules.
struct MambaForm {
  const char *module, *conv1d, *x_proj, *dt_proj, *out_proj;
  const char *dt_norm = nullptr, *b_norm = nullptr, *c_norm = nullptr;  ///< Jamba's, over time steps, B and C
  bool unit = false;  ///< Falcon-Mamba's: the same without weights, of B first
};
/// MambaMixer.slow_forward and JambaMambaMixer.slow_forward behind in_proj: x [B, 2D, S].
Tensor slow_scan(Net& net, const MambaForm& form, Tensor projected, Dtype dtype);
/// The same on causal_conv1d's and mamba_ssm's kernels, one for the convolution and one for the scan.
Tensor selective_mixer(Net& net, const MambaForm& form, Tensor projected);
/// GPTNeoMLP.forward, GPTBigCodeMLP.forward: up, activation, down, dropout; `source` says which.
Tensor c_fc_mlp(Net& net, Tensor hidden, const char* source);
/// GPT2Model.forward up to its loop: token and position tables.
Tensor gpt2_embed(Net& net);
/// GPT2Model.ln_f
Tensor gpt2_norm(Net& net, Tensor hidden);
/// GPT2LMHeadModel.lm_head
Tensor gpt2_head(Net& net, Tensor hidden);
/// What a file does to q and k between their projections and the attention: norms, rotation.
using Turn = void (*)(Net& net, Tensor& q, Tensor& k);
/// LlamaAttention.forward with another file's `turn`, and where the model has one Seed-OSS's and Starcoder2's dropout
/// behind it; `source` says which file.
Tensor qkv_attention(Net& net, Tensor hidden, const char* source, Turn turn);
/// The same with what the file tells the attention interface.
Tensor qkv_attention(Net& net, Tensor hidden, const char* source, Turn turn, AttentionOptions options);
/// LlamaAttention.forward
Tensor llama_attention(Net& net, Tensor hidden);
/// Ministral3Attention.forward: q times a number for each position (get_llama_4_attn_scale).
Tensor scale_queries(Net& net, Tensor q);
/// q and k turned by the model's tables.
void rotate_both(Net& net, Tensor& q, Tensor& k);
/// Qwen3Attention.forward
Tensor qwen3_attention(Net& net, Tensor hidden);
/// Glm4DecoderLayer.forward
Tensor glm4_layer(Net& net, Tensor hidden);
/// Gate and up in one matrix: Phi3MLP.forward, Glm4MLP.forward; `source` says which.
Tensor fused_gate_mlp(Net& net, Tensor x, const char* source);
/// LlamaMLP.forward
Tensor llama_mlp(Net& net, Tensor x);
/// LlamaDecoderLayer.forward around the attention and the feed-forward of another file; `source` says which.
using Branch = Tensor (*)(Net& net, Tensor hidden);
using Norm = Tensor (*)(Net& net, const char* name, Tensor x);
Tensor pre_norm_layer(Net& net, Tensor hidden, const char* source, Branch attention, Branch feed_forward,
                      Norm norm = rms_norm);
/// nn.LayerNorm
Tensor affine_norm(Net& net, const char* name, Tensor x);
/// NemotronMLP.forward: up, activation, down; `source` says which file.
Tensor ungated_mlp(Net& net, Tensor hidden, const char* source);
/// GraniteDecoderLayer.forward: the same with each branch's result multiplied by a factor, around another file's norm
/// and attention; `source` says which.
Tensor scaled_layer(Net& net, Tensor hidden, const char* source, Norm norm, Branch attention);

}  // namespace tidemark
