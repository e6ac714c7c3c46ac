#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/class_facts.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

struct ModelTrace;
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
  kReplacedTokens,          ///< ELECTRA: was each token replaced
  kDoubleHeads,             ///< GPT-2: a causal language model and a score per row
  kImageClassification,
  kMaskedImage,  ///< ViT: the pixels of masked patches
  kSeq2SeqLm,
  kEncoder,              ///< an encoder-decoder's encoder alone
  kCtc,                  ///< letters of speech, aligned by the loss
  kAudioClassification,  ///< Whisper's encoder: one answer per recording
  kDenoising,            ///< what a diffusion model predicts of a latent: the noise, the velocity
  kNone,                 ///< the body alone
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

/// A mixture of experts: feed-forwards of which each token passes through a few.
struct Experts {
  Count count = 0;              ///< E, of one layer; 0: no mixture
  Count per_token = 0;          ///< k, those that a token passes through
  Count width = 0;              ///< columns of each between its two projections
  Count shared_width = 0;       ///< of the feed-forward that all tokens pass through beside them; 0: none
  Count latent = 0;             ///< columns that a token's state is projected to before them; 0: it is not (Nemotron-H)
  Count groups = 1;             ///< DeepSeek: experts are chosen from the best of so many groups
  Count groups_per_token = 1;   ///< how many of these a token may choose from
  bool normalised = false;      ///< the weights of a token's experts are divided by their sum
  bool limited_groups = false;  ///< DeepSeek-V2: only the best groups are looked at (group_limited_greedy)
  bool aux_loss = false;        ///< output_router_logits: the routers' balance joins the loss
  bool jitter = false;          ///< the input is multiplied by noise
  bool bias = false;            ///< the shared feed-forward's or the router's linear layers carry one
  bool listed = false;          ///< experts are lists of linear layers in every release
  LayerFlags dense_layers;      ///< per layer: a plain feed-forward instead; empty when none is
};

/// DeepSeek's attention: keys and values are projected down, and up again (multi-head latent attention).
struct LatentAttention {
  Count query_rank = 0;      ///< of the queries' own projection down; 0: they have none
  Count rank = 0;            ///< of keys and values; 0: plain attention
  Count rope_dim = 0;        ///< columns of a head of q and k that rotate
  Count plain_dim = 0;       ///< those that do not
  Count value_dim = 0;       ///< columns of a head of v
  bool interleaved = false;  ///< neighbouring columns rotate as pairs
  Count index_heads = 0;     ///< of what chooses the tokens that a token attends to (DeepSeek-V3.2); 0: all of them
  Count index_dim = 0;       ///< columns of each
  Count index_tokens = 0;    ///< how many it chooses
  Count index_block = 1;     ///< of neighbours that are chosen together (MiniMax-M3), and then counted as one
};

/// DeepSeek-V4's layers: attention to stretches of tokens that became one key each, outputs by groups of heads, and
/// several residual streams.
struct CompressedAttention {
  Count few = 0;         ///< tokens of a stretch where the indexer chooses among them (CSA); 0: not such a model
  Count many = 0;        ///< of a stretch where all before are attended to (HCA)
  Count groups = 0;      ///< of heads whose outputs are projected apart
  Count group_rank = 0;  ///< columns that each group is projected to
  Count streams = 0;     ///< of the residual (hyper-connections)
  Count iterations = 0;  ///< of Sinkhorn's normalisation of what mixes them
};

/// Layers that hand a state from token to token instead of attending: Mamba's, gated delta nets, short convolutions.
struct StateSpace {
  Count width = 0;         ///< of what is scanned: the layer's inner width
  Count heads = 0;         ///< that it is cut into; a gated delta net's of values
  Count head_dim = 0;      ///< columns of each
  Count groups = 0;        ///< of heads that share B and C; a gated delta net's heads of queries and keys
  Count state = 0;         ///< numbers of the state per column; columns of a gated delta net's keys
  Count kernel = 0;        ///< tokens that its convolution sees
  Count chunk = 0;         ///< tokens that are scanned at once
  Count rank = 0;          ///< of Mamba's time step
  bool bias = false;       ///< its projections carry one
  bool conv_bias = false;  ///< its convolution carries one
  bool norm = true;        ///< a gated norm before it is projected back
};

/// How pictures become tokens of a language model, or what a vision tower is like.
struct Pictures {
  Count merge = 1;         ///< patches per side that become one token (spatial_merge_size, scale_factor)
  Count frames = 1;        ///< of a patch (Qwen's temporal_patch_size)
  Count video_frames = 0;  ///< of a video that become one picture; 0: its processor takes none
  Count window = 0;        ///< pixels per side of what a windowed layer attends to (Qwen 2.5)
  Count tokens = 0;        ///< per picture, where the configuration says so
  Count width = 0;         ///< of what the tower hands out, where that is not its own
  Count positions = 0;     ///< rows of the table of positions, where the picture's size does not say
  Count depth = 0;         ///< layers of the resampler (Idefics 2)
  Count heads = 0, kv_heads = 0, head_dim = 0;  ///< of the resampler
  bool drops_class_token = false;               ///< the features are those of the patches alone
  bool keeps_size = false;                      ///< a picture up to the tower's size stays as large as it is (Pixtral)
  bool bias = true;                             ///< of the projector
  Activation activation = Activation::kGelu;    ///< of the projector
  std::vector<Count> layers;  ///< numbers of layers that are special: read by the projector, or of full attention
  std::vector<Count> grids;   ///< heights and widths, in turn, that a picture is fitted to
};

/// What a diffusion model is told, and how its U-Net is built. Its depth, heads and widths are the architecture's own
/// where it is a transformer.
struct Denoiser {
  Count latents = 0;                 ///< channels of what it predicts; 0: no diffusion model
  Count text_width = 0;              ///< columns of the text encoder's states
  Count pooled_width = 0;            ///< columns of what else it is told of the text; 0: nothing (SDXL: with the sizes)
  Count size_width = 0;              ///< SDXL: columns that each of a picture's six sizes becomes
  Count text_tokens = 77;            ///< of a prompt, where the request does not say (CLIP's)
  Count groups = 32;                 ///< of channels that a U-Net's norms take together
  std::vector<Count> depths, heads;  ///< of a block's attentions: transformer layers, 0: none; their heads
  bool linear_projection = false;    ///< these are entered and left by nn.Linear, not by nn.Conv2d
  bool guided = false;               ///< Flux: the scale of its guidance is embedded, too
  /// Tokens beyond which a request's length is none of a prompt: twice what the text encoders of these models read.
  static constexpr Count kMostTextTokens = 1024;
};

/// What is trained: one model, in Hugging Face config.json vocabulary made uniform. Dimensions are per whole model.
struct Architecture {
  const Program* program = nullptr;  ///< how its family runs (core/families); null where that is not modelled
  std::string model_type;            ///< config.json `model_type`
  std::string class_name;            ///< the class with the head that is trained: "LlamaForCausalLM"
  std::string_view layers_path = "model.layers";  ///< where that class has its list of layers
  std::string_view body_prefix = "model.";        ///< what its body's names begin with (base_model_prefix), or ""
  ClassFacts facts;                               ///< what that class says of itself
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
  Count task_type_vocab_size = 0;  ///< rows of ERNIE's table of task types
  Count rotary_dim = 0;            ///< leading dimensions of each head that rotate; head_dim when all do, 0 when none
  Count rotary_dim_since_18 = 0;   ///< the same from transformers 5.18 on, where that is another number
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
  bool fp32_logits = false;      ///< the language model of InternVL's own code returns them so (InternLM 2)
  bool residual_scale = false;   ///< each branch is scaled before it joins the residual (Granite), even by one
  bool embedding_scale = false;  ///< the embeddings are scaled (Granite; Gemma's program does so always)
  bool query_scale = false;      ///< q is scaled by its position (Ministral 3's llama_4_scaling_beta)
  bool content_to_position = false;   ///< DeBERTa: scores of queries and positions' keys are added
  bool position_to_content = false;   ///< DeBERTa: of keys and positions' queries
  bool shares_position_keys = false;  ///< DeBERTa: positions go through the same projections as tokens
  bool norm_positions = false;        ///< DeBERTa: a norm over the table of relative positions
  bool clip_qkv = false;              ///< q, k, v are clamped (OLMo, MPT)
  bool classifier_bias =
      false;                  ///< the layer before a classifier or a masked language model's head has one (ModernBERT)
  bool mean_pooling = false;  ///< a sequence's vector is the mean of its tokens', not the first (ModernBERT)
  bool late_pooling = false;  ///< each token is classified, and their scores are averaged (EuroBERT)
  bool norm_head = false;     ///< the head normalises its weight's rows at each step (Baichuan 2)

  double attention_dropout = 0.0;   ///< on attention probabilities
  double residual_dropout = 0.0;    ///< on the output of attention and feed-forward
  double embedding_dropout = 0.0;   ///< after the embeddings
  double activation_dropout = 0.0;  ///< inside the feed-forward
  double classifier_dropout = 0.1;  ///< before a classification head
  double qa_dropout = 0.0;          ///< before the span head (DistilBERT)
  double drop_path = 0.0;           ///< the most that a whole branch is left out with (Swin, SegFormer)
  double summary_dropout = 0.1;     ///< before the row's score (GPT-2's double heads: summary_first_dropout)

  Count sliding_window = 0;         ///< tokens, 0 when no layer slides
  LayerFlags sliding_layers;        ///< per layer: attends only to the window; empty when none does
  LayerFlags no_rope_layers;        ///< per layer: no rotation (SmolLM3); empty when all rotate
  std::vector<Count> local_layers;  ///< per layer, 1 where it is of another kind: local attention (GPT-Neo), no norm
                                    ///< before its attention (ModernBERT); empty otherwise

  Experts experts;                 ///< of mixtures of experts
  LatentAttention latent;          ///< of DeepSeek's attention
  CompressedAttention compressed;  ///< of DeepSeek-V4's
  StateSpace ssm;                  ///< of layers that do not attend

  Count num_buckets = 0;         ///< T5 relative_attention_num_buckets; DeBERTa: half its table
  Count num_decoder_layers = 0;  ///< of an encoder-decoder
  bool gated_mlp = false;        ///< T5 1.1: gated feed-forward
  Count image_size = 0, patch_size = 0, num_channels = 3;  ///< vision encoders
  Count pooler_size = 0;                                   ///< ViT: width of what the body pools
  Count encoder_stride = 0;                                ///< ViT: pixels per side that one patch's vector becomes
  bool has_mask_token = false;                             ///< a vector that stands for masked patches or frames

  std::vector<Count> conv_dims, conv_kernels, conv_strides;  ///< Wav2Vec2's convolutions over the wave
  bool conv_bias = false;                                    ///< they carry a bias
  Count position_kernel = 0, position_groups = 0;            ///< its convolution that tells positions
  bool group_norm = false;                                   ///< one norm after the first convolution; else after each
  bool masks_time = false;                                   ///< SpecAugment masks stretches of time
  double feature_dropout = 0.0, head_dropout = 0.0;          ///< after their projection, and before the head

  Count weight_groups = 0;          ///< ALBERT: groups of layers with the same weights; Zamba 2: blocks taken in turns
  bool attention_adapters = false;  ///< Zamba 2: each use of such a block has adapters of its own on q, k, v
  Count layer_input_width = 0;      ///< Gemma 4, 3n: columns that each layer gets of its own from a token; 0: none
  Count layer_input_vocab = 0;      ///< rows of their table
  Count shared_kv_layers = 0;       ///< the last layers that take keys and values of one before them
  bool double_wide_mlp = false;     ///< whose feed-forward is twice as wide

  std::vector<Count> layer_windows;       ///< Longformer, per layer: tokens of the window around one, even numbers
  std::vector<std::uint8_t> layer_kinds;  ///< per layer: which of its family's kinds it is; empty when all are alike
  Pictures pictures;                      ///< of a model that sees, and of its tower
  Denoiser denoiser;                      ///< of a diffusion model
  const Program* language = nullptr;      ///< how the language model of a model that sees runs; null elsewhere
  bool unpacked = false;                  ///< a part whose linear layers a quantiser leaves as they are, by their names
  bool kept_in_fp32 = false;              ///< a part that stays in fp32 where others are in fp16 (BLIP-2's Q-Former)
  std::vector<Architecture> parts;        ///< what the model has beside its language model: a vision tower, a decoder

  std::shared_ptr<const ModelTrace>
      trace;  ///< of code that no family here is (core/families/model_trace.cpp); null elsewhere

  std::shared_ptr<const Architecture> teacher;  ///< whom it learns from (GKD); null elsewhere
  std::shared_ptr<const Architecture> judge;    ///< what scores and values its answers (PPO); null elsewhere

  Count published_parameters = 0;  ///< the count that the catalog's source states, 0 when it states none

  /// The longest sequence that a learned table of positions has rows for; 0 where positions are computed.
  Count learned_positions() const {
    if (rotary_dim > 0 || alibi || !positions_by_token) return 0;
    return std::max<Count>(0, max_positions - position_offset);
  }
  Count query_size() const { return num_heads * head_dim; }  ///< Q
  Count kv_size() const { return num_kv_heads * head_dim; }  ///< K
};

/// The same model with all dropout off: in evaluation, and where a trainer switches it off.
Architecture without_dropout(Architecture architecture);

}  // namespace tidemark
