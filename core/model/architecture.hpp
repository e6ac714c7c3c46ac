#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units/bytes.hpp"

namespace tidemark {

struct Program;

/// What the head computes.
enum class Head : std::uint8_t {
  kCausalLm,
  kMaskedLm,
  kPreTraining,             ///< BERT: masked words and whether the second sentence follows the first
  kNextSentence,            ///< BERT: the latter alone
  kSequenceClassification,  ///< one answer per sequence
  kTokenClassification,     ///< one answer per token
  kQuestionAnswering,       ///< where a span starts and ends
  kMultipleChoice,          ///< one score per row; rows compete in groups
  kDoubleHeads,             ///< GPT-2: a causal language model and a score per row
  kImageClassification,
  kMaskedImage,  ///< ViT: the pixels of masked patches
  kSeq2SeqLm,
  kNone,  ///< the body alone
};

/// Which loss a classifier takes (`problem_type`, or what follows from the number of labels).
enum class ProblemType : std::uint8_t { kSingleLabel, kRegression, kMultiLabel };

/// Activation functions as transformers' ACT2FN names them; each saves differently for backward.
enum class Activation : std::uint8_t {
  kSilu,       ///< one fused kernel, saves its input
  kGelu,       ///< nn.GELU: erf or tanh, one fused kernel, saves its input
  kGeluNew,    ///< NewGELUActivation, gelu_new: seven elementwise kernels
  kGeluFast,   ///< FastGELUActivation, gelu_fast
  kQuickGelu,  ///< x * sigmoid(1.702 x)
  kRelu,       ///< saves its output
  kRelu2,      ///< relu squared
  kXielu,      ///< Apertus
};

/// One per layer. (Not std::vector<bool>: its packed bits are 4 KB of WebAssembly.)
using LayerFlags = std::vector<char>;

/// What is trained: one model, in Hugging Face config.json vocabulary made uniform. Dimensions are per whole model.
struct Architecture {
  const Program* program = nullptr;  ///< how its family runs (core/families); null where that is not modelled
  std::string model_type;            ///< config.json `model_type`
  std::string class_name;            ///< the class with the head that is trained: "LlamaForCausalLM"
  std::string_view layers_path = "model.layers";  ///< where that class has its list of layers
  std::string_view body_prefix = "model.";        ///< what its body's names begin with (base_model_prefix), or ""
  Head head = Head::kCausalLm;                    ///< what that class computes on top
  Count num_labels = 2;                           ///< classes of a classification head
  ProblemType problem_type = ProblemType::kSingleLabel;  ///< what the classes are

  Count hidden_size = 0;           ///< H
  Count intermediate_size = 0;     ///< F
  Count num_layers = 0;            ///< L
  Count num_heads = 0;             ///< A, query heads
  Count num_kv_heads = 0;          ///< key/value heads
  Count head_dim = 0;              ///< hd; A·hd may differ from H
  Count vocab_size = 0;            ///< V
  Count max_positions = 0;         ///< rows of a learned position table (OPT's two extra included), size of causal-mask
                                   ///< buffers; context length where positions rotate
  Count position_offset = 0;       ///< rows of that table that are no positions: 2 for OPT and RoBERTa
  bool positions_by_token = true;  ///< false where no row of a table belongs to a token: ViT's patches, T5's buckets
  Count type_vocab_size = 0;       ///< rows of BERT's token-type table
  Count rotary_dim = 0;            ///< leading dimensions of each head that rotate; head_dim when all do, 0 when none
  Count embedding_dim = 0;         ///< width of the token table where it differs from H (OPT-350m: 512), else 0
  bool tie_word_embeddings = false;  ///< the head uses the token table's storage

  Activation activation = Activation::kSilu;       ///< of the feed-forward
  Activation head_activation = Activation::kGelu;  ///< of the layer before a classifier (ModernBERT, DeBERTa, ELECTRA)
  bool attention_bias = false;                     ///< q, k, v projections carry a bias
  bool attention_out_bias = false;                 ///< the output projection carries one
  bool mlp_bias = false;                           ///< feed-forward projections carry a bias
  bool head_bias = false;                          ///< lm_head carries a bias (GPT-J, Phi)
  bool norm_bias = false;           ///< LayerNorm bias where the family makes it optional (OPT: weight, too)
  bool qk_norm = false;             ///< a norm on q and k (family decides its width)
  bool parallel_residual = false;   ///< attention and feed-forward read the same residual (NeoX)
  bool bidirectional = false;       ///< tokens attend to all others, by a mask that is always there (Gemma 3)
  bool alibi = false;               ///< attention bias by distance instead of rotation
  bool new_decoder = false;         ///< Falcon's new_decoder_architecture
  bool parallel_attention = false;  ///< Falcon's parallel_attn
  bool multi_query = false;         ///< Falcon, GPT-BigCode: one K/V head, num_kv_heads says so too
  bool norm_before = true;          ///< OPT do_layer_norm_before
  bool final_norm = true;           ///< a norm after the last layer
  Count num_layer_norms = 1;        ///< Falcon num_ln_in_parallel_attn
  bool logit_softcap = false;       ///< final_logit_softcapping is set
  bool attention_softcap = false;   ///< attn_logit_softcapping is set
  bool logit_scale = false;      ///< the logits are scaled (Cohere, Granite; even by one), or what the head reads (T5)
  bool residual_scale = false;   ///< each branch is scaled before it joins the residual (Granite), even by one
  bool embedding_scale = false;  ///< the embeddings are scaled (Granite; Gemma's program does so always)
  bool query_scale = false;      ///< q is scaled by its position (Ministral 3's llama_4_scaling_beta)
  bool clip_qkv = false;         ///< q, k, v are clamped (OLMo, MPT)
  bool classifier_bias =
      false;                  ///< the layer before a classifier or a masked language model's head has one (ModernBERT)
  bool mean_pooling = false;  ///< a sequence's vector is the mean of its tokens', not the first (ModernBERT)
  bool norm_head = false;     ///< the head normalises its weight's rows at each step (Baichuan 2)

  double attention_dropout = 0.0;   ///< on attention probabilities
  double residual_dropout = 0.0;    ///< on the output of attention and feed-forward
  double embedding_dropout = 0.0;   ///< after the embeddings
  double activation_dropout = 0.0;  ///< inside the feed-forward
  double classifier_dropout = 0.1;  ///< before a classification head
  double qa_dropout = 0.0;          ///< before the span head (DistilBERT)
  double summary_dropout = 0.1;     ///< before the row's score (GPT-2's double heads: summary_first_dropout)

  Count sliding_window = 0;         ///< tokens, 0 when no layer slides
  LayerFlags sliding_layers;        ///< per layer: attends only to the window; empty when none does
  LayerFlags no_rope_layers;        ///< per layer: no rotation (SmolLM3); empty when all rotate
  std::vector<Count> local_layers;  ///< per layer, 1 where it is of another kind: local attention (GPT-Neo), no norm
                                    ///< before its attention (ModernBERT); empty otherwise

  Count num_buckets = 0;                                   ///< T5 relative_attention_num_buckets
  Count num_decoder_layers = 0;                            ///< T5
  bool gated_mlp = false;                                  ///< T5 1.1: gated feed-forward
  Count image_size = 0, patch_size = 0, num_channels = 3;  ///< vision encoders
  Count pooler_size = 0;                                   ///< ViT: width of what the body pools
  Count encoder_stride = 0;                                ///< ViT: pixels per side that one patch's vector becomes

  std::vector<std::uint8_t> layer_kinds;  ///< per layer: which of its family's kinds it is; empty when all are alike
  std::vector<Architecture> parts;        ///< what the model has beside its language model: a vision tower, a decoder

  Count published_parameters = 0;  ///< the count that the catalog's source states, 0 when it states none
  std::string catalog_id;          ///< where it came from, empty for a pasted config

  /// The longest sequence that a learned table of positions has rows for; 0 where positions are computed.
  Count learned_positions() const {
    if (rotary_dim > 0 || alibi || !positions_by_token) return 0;
    return std::max<Count>(0, max_positions - position_offset);
  }
  Count query_size() const { return num_heads * head_dim; }  ///< Q
  Count kv_size() const { return num_kv_heads * head_dim; }  ///< K
};

}  // namespace tidemark
