#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/tape/ops.hpp"

/// How a block program is written
/// -------------------------------
/// A program is the forward method of a modelling file, statement by statement, on shape-only tensors: C++ scopes give
/// Python's lifetimes and the operations know what autograd keeps. Rules:
///  * name the module with `Scope in(net.tape, "mlp", kSource)` and cite the method in kSource;
///  * declare parameters by using them: net.linear("mlp.gate_proj", x, net.F). The census is what a run declares;
///  * `std::move` a tensor into its last use exactly where Python drops its last name; locals that Python keeps until
///    the function returns stay in a local here too;
///  * one allocating call per statement when a call has several tensor arguments: C++ leaves their order open;
///  * branches on the architecture or the job, never on sizes that vary with the batch.
namespace tidemark {

/// The model as it runs: the tape, what it is, how it is trained, and what all its layers share.
class Net {
 public:
  Net(Tape& t, const Architecture& a, const TrainingJob& j);

  Tape& tape;
  const Architecture& arch;
  const TrainingJob& job;

  // Dimensions, with their names.
  Dim B, S, T, H, F, V, A, Kv, hd, Q, K;

  Tensor input_ids, labels, attention_mask;  ///< the batch

  /// What the model's forward passes to every layer: a checkpoint holds these until its layer's backward is done.
  struct Shared {
    Tensor position_ids;          ///< [1, S] int64
    Tensor cos, sin;              ///< rotary tables [1, S, rotary_dim]
    Tensor local_cos, local_sin;  ///< a second pair (Gemma 3's local layers)
    Tensor causal_mask;           ///< what the attention interface gets, or undefined
    Tensor sliding_mask;          ///< the same for sliding layers
    Tensor bias;                  ///< a position bias (alibi)
  };
  Shared shared;
  /// Blocks that return (hidden_states, attn_weights): the current layer's, and the tuple of the layer before, which
  /// the model's loop keeps in `outputs` until the next one is there.
  Tensor attn_weights, outputs_weights;
  /// A block of that kind returns. A recomputed one has no loop around it.
  void return_weights();
  std::vector<Tensor> model_locals;   ///< what the model's forward keeps by name until it returns
  std::vector<Tensor> leaves;         ///< tensors made to require a gradient: the graph holds them to its end
  Tensor attention_weights;           ///< what eager attention returns beside its output: its layer has a name
                                      ///< for it ("_") and so holds it until it returns
  std::int32_t tied_embedding = -1;   ///< parameter index of the token table
  Tensor last_hidden;                 ///< outputs.last_hidden_state: alive until the model's forward returns
  bool fuse_loss = false;             ///< the head hands its hidden states to a fused loss and returns the loss
  const char* attention_kernel = "";  ///< what the attention ran: "flash", "efficient", "math", "eager"
  Count layer_index = 0;              ///< the layer that runs now (of the model, not of the tape)

  // -- modules with parameters ------------------------------------------------------------------------------------
  /// nn.Linear, or what PEFT and bitsandbytes make of it. `bias` declares one.
  Tensor linear(const char* name, Tensor x, Dim out_features, bool bias = false);
  /// x @ weight.T + bias, for modules that do not call F.linear: autocast caches no cast of the transposed weight.
  Tensor matmul_linear(const char* name, Tensor x, Dim out_features, bool bias);
  /// transformers.pytorch_utils.Conv1D: weight [in, out], always with a bias.
  Tensor conv1d(const char* name, Tensor x, Dim out_features);
  /// nn.Embedding
  Tensor embedding(const char* name, Tensor ids, Dim rows, Dim width);
  /// The output head on hidden states: nn.Linear, tied to the token table where the config says so; never quantised.
  Tensor lm_head(const char* name, Tensor x, Dim out_features, bool bias = false);
  /// nn.LayerNorm
  Tensor layer_norm(const char* name, Tensor x, bool affine = true, bool bias = true);
  /// A parameter outside any of these (norm weights, tables).
  Tensor parameter(const char* name, const char* leaf, const Shape& shape);

  /// Whether the parameters of this module get gradients: method, freeze patterns.
  bool trains(std::string_view module) const;
  bool adapted(std::string_view module) const;
  bool quantised() const { return job.method == Method::kQlora; }
  Dtype weight_dtype(int rank) const;
  /// The source cited by the module that runs.
  const char* source() const { return tape.scopes()[static_cast<std::size_t>(tape.scope())].source; }
  /// Does layer i attend only to a window that is shorter than the sequence?
  bool slides(Count layer) const;
  /// Is layer i of the sliding kind, whatever the sequence?
  bool is_sliding_layer(Count layer) const;
  /// Is the output of the token table made to require a gradient (enable_input_require_grads)?
  bool inputs_require_grads() const;
  /// Does layer i rotate q and k?
  bool rotates(Count layer) const;

 private:
  bool saved_whole(std::string_view module) const;
  Tensor declare(const char* name, const char* leaf, const Shape& shape, bool is_embedding);
  Tensor dora_scale(const char* name, const Tensor& weight_a, const Tensor& weight_b, Dim in_features, Dim out_features,
                    Dtype dtype);
  Tensor dora_result(Tensor base, Tensor update, Tensor scale, Dtype dtype);
  Tensor adapter(const char* name, Tensor result, Tensor x, Dim in_features, Dim out_features, bool quantised_base);
  Tensor quantised_linear(const char* name, Tensor x, Dim out_features, bool bias);
};

// -- pieces that several families share ------------------------------------------------------------------------------

/// Llama's RMSNorm: fp32 inside, weight applied in the input's dtype. Liger's kernel when the job uses it.
Tensor rms_norm(Net& net, const char* name, Tensor x);
/// position_ids of a forward that is given none: arange(S).unsqueeze(0).
void make_position_ids(Net& net);
/// Rotary tables [1, S, dim]: LlamaRotaryEmbedding.forward, which casts them to the activations' dtype.
void rotary_tables(Net& net, Dtype dtype, Count dim);
/// x·cos + rotate_half(x)·sin. x is [B, heads, S, rotary_dim].
Tensor rotate(Net& net, Tensor x);
/// ACT2FN
Tensor activate(Activation activation, Tensor x);
/// repeat_kv of the modelling files: a copy when there is something to repeat.
Tensor repeat_kv(Tensor x, Count times);

/// What the attention interface of transformers is told besides q, k, v.
struct AttentionOptions {
  Tensor mask;               ///< additive or boolean, or undefined
  double dropout = 0.0;      ///< on the probabilities
  bool causal = true;        ///< module.is_causal
  bool has_groups = true;    ///< module.num_key_value_groups exists
  bool softcap = false;      ///< Gemma 2's tanh on the scores (eager only)
  bool softmax_fp32 = true;  ///< eager softmax with dtype=float32, then cast back
  bool cast_back = true;     ///< … to the query's dtype, where autocast left fp32 probabilities
  bool scale = true;         ///< eager multiplies the scores by the scaling
};
/// ALL_ATTENTION_FUNCTIONS[config._attn_implementation]: q, k, v are [B, heads, S, hd]; the result is [B, S, Q].
Tensor attention(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options);
/// torch.nn.functional.scaled_dot_product_attention: q, k, v and the result are [B, heads, S, hd].
Tensor scaled_dot_product_attention(Net& net, Tensor q, Tensor k, Tensor v, Tensor mask, double dropout, bool causal,
                                    bool enable_gqa);
/// The masks of transformers/masking_utils.py for the whole forward.
struct MaskOptions {
  bool eager = false;   ///< the family has no SDPA of its own: the additive mask, whatever the job asks for
  bool padded = false;  ///< the model makes a padding mask of ones where it gets none
  bool forced = false;  ///< `and_mask_function`: never left out
};
void make_causal_masks(Net& net, const Tensor& embeds, const MaskOptions& options = {});
/// create_bidirectional_mask: none without padding.
void make_bidirectional_mask(Net& net, const Tensor& embeds);
/// The mask that layer `net.layer_index` uses.
const Tensor& layer_mask(const Net& net);

/// Which kernel scaled_dot_product_attention picks: sdp_utils.cpp.
enum class SdpaKernel : std::uint8_t { kFlash, kEfficient, kMath };
SdpaKernel choose_sdpa(const Net& net, const Tensor& q, const Tensor& k, const Tensor& v, bool has_mask,
                       bool enable_gqa);

/// [B, S, heads·hd] → [B, heads, S, hd] as a view.
Tensor split_heads(Net& net, Tensor x, Dim heads, Dim head_dim);

}  // namespace tidemark
