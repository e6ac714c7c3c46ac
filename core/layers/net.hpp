#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/layers/layer_plan.hpp"
#include "core/layers/treatments.hpp"
#include "core/model/architecture.hpp"
#include "core/model/module.hpp"
#include "core/state/packed_linear.hpp"
#include "core/state/quantised_weight.hpp"
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

/// An adapter of a parameter, ready to be added to it.
struct ParameterUpdate {
  Tensor delta;        ///< PEFT until 0.20: added
  Tensor left, right;  ///< from 0.21 on: factors, whose product is added as it is made

  bool defined() const { return delta.defined() || left.defined(); }
  /// The weight with it, in the weight's dtype.
  Tensor sum(const Tensor& weight) const;
};

class Net;
struct AdapterInput;
struct FusedLinear;
struct AdapterLayer;
struct CachedAttention;
struct TraceState;

/// The layers of the model that a GPU of a pipeline runs in one go.
struct ModelStage {
  Count begin = 0, end = 0;        ///< of its list of layers
  bool first = true, last = true;  ///< the token table lies before them; the head behind them
  bool norm = true;                ///< and so does the last norm
};

/// A list of layers as a program's forward hands it to Net::layers.
struct Stack {
  std::string_view path;                               ///< LayerPlan::Stack::path
  Count layers = 0;                                    ///< its length
  Tensor (*layer)(Net& net, Tensor hidden);            ///< one of them; net.layer_index says which
  bool checkpoints = true;                             ///< its layers can be checkpointed (GradientCheckpointingLayer)
  Phase then = Phase::kForward;                        ///< the phase that what follows the list belongs to
  Tensor (*after)(Net& net, Tensor hidden) = nullptr;  ///< what the loop does behind each layer, outside its checkpoint
  bool always = false;                                 ///< checkpointed whatever the job says
  bool hands_states = false;                           ///< Shared::encoder_states is handed to each by position
  /// Takes out of net.shared what this layer is not handed by its caller; elsewhere layers are taken to get all of it.
  void (*hand)(Net& net, Count layer) = nullptr;
};

/// The model as it runs: the tape, what it is, how it is trained, and what all its layers share.
class Net {
 public:
  Net(Tape& t, const Architecture& a, const TrainingJob& j);

  /// Another part of the model beside the language model (a vision tower) or behind it (a decoder): it has dimensions,
  /// masks and tables of its own; tape, layer plan, treatments and census are the whole's. `batch` and `sequence` are
  /// what its layers see. It lives until the micro-step ends, because checkpoints run its layers again.
  Net& part(const Architecture& architecture, Dim batch, Dim sequence);

  /// The loop over a list of layers, checkpointed as the job says: `for layer in self.layers: hidden = layer(hidden)`.
  Tensor layers(const Stack& stack, Tensor hidden);

  /// Lets go of `handed_out`, each hidden state in a stretch of its layer.
  void let_handed_out_go();
  /// Adds to `image_outputs`, where the release has them.
  void keep_image_output(const Tensor& made);
  void let_image_outputs_go();
  bool returns_image_outputs() const;  ///< transformers 5.24: the model's outputs have them

  /// A micro-step begins: its forward comes to the same stacks in the same order as the one before. A pipeline's stages
  /// have a stack each.
  void begin_micro_step(std::size_t stack = 0) { next_stack_ = stack; }
  /// Outputs that the loop's names still have when its next iteration begins, and with them what their graph holds.
  void keep_until_next(std::vector<Tensor> outputs);
  /// The next iteration's outputs take these names.
  void let_last_iteration_go();
  /// A copy of the model beside it, with layers and parameters of its own.
  Net& copy();
  /// The model that it learns from, beside it: whole, without adapters.
  Net& teacher();
  /// A model that scores sequences beside it, whole and without adapters; `trains`: it is one that learns, too.
  Net& judge(bool trains);
  /// Its backward is through: nothing runs a layer again.
  void end_micro_step();
  /// Where attention keeps its keys and values while the model generates (core/layers/kv_cache.hpp); null: nowhere.
  std::vector<CachedAttention>* kv_cache() const { return whole_->kv_cache_; }
  void keep_in(std::vector<CachedAttention>* cache) { kv_cache_ = cache; }
  /// Keys that a token of this net can see: those of the sequence, and a learned prefix before them.
  Dim keys() const { return Dim(S.n() + job.prefix_length(), Symbol::kSequence); }
  /// The stacks that the forward has come to.
  const LayerPlan& plan() const { return whole_->plan_; }
  /// Where the layer instance of each layer's kind is noted, for a census: one layer of each kind runs.
  void run_kinds(std::vector<std::size_t>& kind_of_layer) { kinds_ = &kind_of_layer; }

  Tape& tape;
  const Architecture& arch;
  const TrainingJob& job;

  // Dimensions, with their names.
  Dim B, S, T, H, F, V, A, Kv, hd, Q, K;
  /// This GPU's part of the width of an expert's feed-forward, or of another that tensor parallelism divides.
  Dim width_of(Count width) const;

  Tensor input_ids, labels, attention_mask;  ///< the batch
  Tensor pixel_values;                       ///< its pictures
  Tensor image_hidden_states;                ///< what they became: among the outputs of some classes
  std::vector<Tensor> more_inputs;           ///< what else describes them: sizes, masks
  Tensor more_labels;                        ///< of heads with two losses, and where a span ends

  /// What the model's forward passes to every layer: a checkpoint holds these until its layer's backward is done.
  struct Shared {
    Tensor position_ids;           ///< [1, S] int64
    Tensor cos, sin;               ///< rotary tables [1, S, rotary_dim]
    Tensor local_cos, local_sin;   ///< a second pair (Gemma 3's local layers)
    Tensor causal_mask;            ///< what the attention interface gets, or undefined
    Tensor sliding_mask;           ///< the same for sliding layers
    Tensor bias;                   ///< a position bias (alibi; T5's, which its first layer hands on)
    Tensor cross_bias;             ///< T5: the same of the attention to the encoder
    Tensor encoder_states;         ///< what a decoder attends to
    Tensor cross_mask;             ///< with which mask
    Tensor condition;              ///< what a diffusion model's blocks are told of time and text [B, width]
    std::vector<Tensor> captured;  ///< what a traced model's layers read beside what they are handed
  };
  Shared shared;
  /// Blocks that return (hidden_states, attn_weights): the current layer's, and the tuple of the layer before, which
  /// the model's loop keeps in `outputs` until the next one is there.
  Tensor attn_weights, outputs_weights;
  /// A block of that kind returns. A recomputed one has no loop around it.
  void return_weights();
  std::vector<Tensor> model_locals;                    ///< what the model's forward keeps by name until it returns
  std::vector<Tensor> outer_locals;                    ///< the same of the model around it, which also sees
  std::vector<Tensor> wrapper_locals;                  ///< the same of PEFT's model around both
  std::vector<Tensor> router_logits;                   ///< what routers' hooks keep for the loss of their balance
  std::vector<std::int16_t> router_instances;          ///< the layers on the tape that they are of
  Tensor (*merge)(Net& net, Tensor embeds) = nullptr;  ///< what the outer one does with the token table's output
  /// Hidden states that a list of layers hands out beside its last one, and the layer on the tape that made each.
  std::vector<std::pair<std::int16_t, Tensor>> handed_out;
  /// What a tower returned and what became of it, likewise: since transformers 5.18 the model's forward has a name for
  /// that (mm_encoder_outputs), since 5.24 its outputs, too (image_outputs).
  std::vector<std::pair<std::int16_t, Tensor>> image_outputs;
  bool holds_outputs = false;              ///< who calls the model lets go of what it returns, and of these
  std::vector<Tensor> leaves;              ///< tensors made to require a gradient: the graph holds them to its end
  Tensor attention_weights;                ///< what eager attention returns beside its output: its layer has a name
                                           ///< for it ("_") and so holds it until it returns
  std::int32_t tied_embedding = -1;        ///< parameter index of the token table; not of a copy that is trained for it
  const Treatments* treatments = nullptr;  ///< how each module is trained; null: all of it is, without adapters
  Census* census = nullptr;                ///< where modules are noted as they are used, if anywhere
  /// Weights outside the layers that several layers share (Zamba 2's blocks).
  struct SharedWeights {
    std::vector<std::size_t> places;  ///< of each block's first
    bool on = false;                  ///< modules' own weights are a block's now; adapters on them are the layer's
  };
  SharedWeights blocks;
  const ModelStage* stage = nullptr;  ///< what of the model runs; null: all of it
  Tensor received;                    ///< hidden states that the stage before has sent
  Count picture_tokens = 0;           ///< of a sample's sequence that pictures take
  Tensor last_hidden;                 ///< outputs.last_hidden_state: alive until the model's forward returns
  Tensor encoder_hidden;              ///< outputs.encoder_last_hidden_state: alive as long as the outputs
  std::shared_ptr<std::vector<CachedAttention>> prefix;  ///< outputs.past_key_values of prefix tuning
  std::shared_ptr<TraceState> traced;                    ///< of a traced model: the micro-step that is under way
  bool adapters_off = false;                             ///< a forward of the model as it was without its adapters
  std::size_t own_parameters = 0;     ///< the tape's parameters behind these are a copy's; 0: there is none
  bool hands_out_all = false;         ///< output_hidden_states: `handed_out` gets what each layer returns
  bool evaluates = false;             ///< a forward beside training's: without gradients and checkpoints
  bool fuse_loss = false;             ///< the head hands its hidden states to a fused loss and returns the loss
  const char* attention_kernel = "";  ///< what the attention ran: "flash", "efficient", "cudnn", "math", "eager"
  bool has_float8_products = false;   ///< a linear layer was converted (torchao)
  Count layer_index = 0;              ///< the layer of its stack that runs now (of the model, not of the tape)
  Count first_layer = 0;              ///< number of the stack's first layer among the layers of all stacks

  // -- device_map --------------------------------------------------------------------------------------------------
  /// Several cards have modules of the model, which one process runs one after another.
  bool is_laid() const { return job.pipeline.is_device_map(); }
  /// The card of what a program calls so.
  std::int16_t card_of(std::string_view path) const;
  /// accelerate 1.14 hooks.py: AlignDevicesHook.pre_forward of a module outside the layers: its input on its card.
  Tensor arrived(const char* module, Tensor x) const;

  // -- modules with parameters ------------------------------------------------------------------------------------
  /// nn.Linear, or what PEFT and bitsandbytes make of it. `bias` declares one.
  Tensor linear(const char* name, Tensor x, Dim out_features, bool bias = false);
  /// nn.Linear that `_keep_in_fp32_modules` names: never quantised, and in fp32 where other weights are in fp16.
  Tensor wide_linear(const char* name, Tensor x, Dim out_features);
  /// nn.Linear made with dtype=torch.float32, whose input is cast to that; packed where others are.
  Tensor fp32_linear(const char* name, Tensor x, Dim out_features);
  /// x @ weight.T + bias, for modules that do not call F.linear: autocast caches no cast of the transposed weight.
  Tensor matmul_linear(const char* name, Tensor x, Dim out_features, bool bias);
  /// transformers.pytorch_utils.Conv1D: weight [in, out], always with a bias.
  Tensor conv1d(const char* name, Tensor x, Dim out_features);
  /// What an embedding's own forward does with the rows that it has looked up.
  using Scaling = Tensor (*)(Net& net, Tensor rows);
  /// nn.Embedding, or what PEFT makes of it.
  Tensor embedding(const char* name, Tensor ids, Dim rows, Dim width, Scaling scaling = nullptr);
  /// nn.Embedding of input_ids by the token table, whose output checkpointing may turn into a leaf
  Tensor token_embedding(const char* name, Dim width, Scaling scaling = nullptr);
  /// The same table under another name: a decoder's embed_tokens, tied to the encoder's.
  Tensor tied_embedding_of(const char* name, Tensor ids, Scaling scaling = nullptr);
  /// The token table's module's output with the hook that inputs_require_grads speaks of.
  Tensor hooked_inputs(Tensor embeds);
  /// The same, of whose gradient whoever holds the table is told.
  Tensor told_of_gradient(Tensor embeds);
  /// The same with NEFTune's, where training has one.
  Tensor with_noise(Tensor embeds);
  /// The output head on hidden states: nn.Linear, tied to the token table where the config says so; never quantised.
  Tensor lm_head(const char* name, Tensor x, Dim out_features, bool bias = false);
  /// The weight that it multiplies by.
  Tensor head_weight(const char* name, const Shape& shape);
  /// Logits by a head's weight, or the fused loss that takes their place.
  Tensor logits(Tensor x, Tensor weight, Tensor bias = {});
  /// A classifier's nn.Linear: never quantised.
  Tensor classifier(const char* name, Tensor x, Dim out_features, bool bias);
  /// nn.LayerNorm
  Tensor layer_norm(const char* name, Tensor x, bool affine = true, bool bias = true);
  /// nn.BatchNorm1d/2d of x [B, channels, …], with its running statistics.
  Tensor batch_norm(const char* name, Tensor x);
  /// A parameter outside any of these (norm weights, tables); `trained` false where the class itself freezes it.
  Tensor parameter(const char* name, const char* leaf, const Shape& shape, bool trained = true);
  /// One that stays in fp32 whatever the model is loaded in.
  Tensor fp32_parameter(const char* name, const char* leaf, const Shape& shape, bool trained);
  /// The weight of an nn.Linear that the forward reads without calling it: an adapter on it is there, but idle.
  Tensor linear_weight(const char* name, Dim out_features, Dim in_features);
  /// An adapter on a linear layer that is never called and whose weight is another one's.
  void idle_adapter_on(const char* name, Dim out_features, Dim in_features);
  /// One of experts: a token uses as many of its numbers as it passes through experts.
  Tensor expert_parameter(const char* name, const char* leaf, const Shape& shape);
  bool experts_stay_unpacked = false;  ///< a recomputation ended among packed ones: torch's cache is not emptied
  /// The same packed (Quantization::experts), and what bitsandbytes' parametrization unpacks of it where it is read.
  bool packs_experts() const { return uses_bitsandbytes() && job.quantization.experts; }
  QuantisedWeight packed_expert(const char* name, const char* leaf, const Shape& shape);
  Tensor unpacked_expert(const QuantisedWeight& packed, const Shape& shape);
  /// The rank of PEFT's adapter of that parameter, or 0; and what it makes of it (ParamWrapper), or nothing.
  Count expert_rank(const char* name, const char* leaf) const;
  ParameterUpdate expert_update(const char* name, const char* leaf, const Tensor& weight);

  /// Where an implementation's own code has an adapter for what a module of transformers is called: its rank, or 0.
  Count adapter_site(const char* name, bool is_output_head = false);
  /// A weight of that shape [out, in] packed as the job quantises: declared, with its constants.
  QuantisedWeight packed_weight(const char* name, const Shape& shape) {
    return packed_parameter(name, "weight", shape, false);
  }
  /// A linear layer by its name.
  struct Projection {
    const char* name;
    Dim out_features;
    bool bias = false;
  };
  /// Where one function stands for the adapted layers that share x (LoraKernels), it runs, and `linear` then hands out
  /// what it made of each.
  void at_once(const Tensor& x, std::initializer_list<Projection> layers);
  /// The same of a feed-forward's gate, up and down; undefined: its layers are called one by one.
  Tensor gated_at_once(const Tensor& x, Dim width);
  /// What stands between a module and its adapter.
  struct Base {
    const char* name;  ///< of the module
    Dim in_features;   ///< columns of A
    Dim out_features;  ///< rows of B
    bool quantised;    ///< its weight is packed
    Tensor weight;     ///< [out, in], where it is not packed
    Tensor bias;       ///< undefined where it has none
  };

  /// The model's forward returns, and its names go; a class with a head holds its outputs.
  void leave_body(Tensor last_hidden_state);

  /// How the module is treated, or null where all of it is trained.
  const Treatment* treatment(std::string_view module) const;
  /// The rank of its adapter; 0: it has none.
  Count rank_of(const char* module) const;
  /// A weight of an adapter.
  Tensor adapter_weight(const char* name, const char* leaf, const Shape& shape, bool trained = true);
  /// A matrix with what PEFT's adapter of that parameter adds to it, if it has one.
  Tensor adapted_matrix(const char* name, const char* leaf, Tensor weight);
  /// sd-scripts' adapter: two products of the module's input, scaled twice, beside its result.
  using Product = Tensor (*)(Tensor x, Tensor weight);
  Tensor beside_forward(Tensor result, const Tensor& x, Tensor down, Tensor up, Product times);
  bool quantised() const { return job.method == Method::kQlora; }
  /// Are linear layers of where the program is packed?
  bool packs_here() const;
  /// bitsandbytes' classes, and PEFT's for them.
  bool uses_bitsandbytes() const { return quantised() && job.quantization.is_bitsandbytes(); }
  bool quantised_to_int8() const { return quantised() && job.quantization.quant_type == QuantType::kInt8; }
  Dtype weight_dtype(int rank) const;
  /// Of a buffer that is made in the model's dtype, which `weights` is: what gathers parameters may leave it as it was.
  Dtype buffer_dtype(Dtype weights) const { return job.recipe.buffers.value_or(weights); }
  /// Of one that comes to a product with weights: torch refuses what stayed as it was, but under autocast.
  Dtype buffer_for_product(Dtype weights);
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
  Net(Net& whole, const Architecture& a, const TrainingJob& j, Dim batch, Dim sequence);
  const LayerPlan::Stack& planned(const Stack& stack);
  Tensor checkpointed_layer(const Stack& stack, Count layer, const Tensor& hidden);
  Tensor run_layer(const Stack& stack, Count layer, Tensor hidden);
  Tensor laid_layer(const Stack& stack, Count layer, Tensor hidden);

  const AdapterLayer* adapter_ = nullptr;  // of a kind beside LoRA
  QuantisedWeight packed_parameter(const char* name, const char* leaf, const Shape& shape, bool is_expert);

  std::vector<std::pair<const char*, Tensor>> made_;  // what at_once made, the last first
  Net* whole_ = this;                                 // the model that this is a part of
  LayerPlan plan_;                                    // of the whole
  std::vector<Tensor> last_outputs_;                  // of the iteration before
  std::size_t last_held_ = 0;                         // how much its graph holds
  std::size_t next_stack_ = 0;                        // of the whole: the stack that the forward comes to next
  std::vector<std::size_t>* kinds_ = nullptr;         // of the whole
  std::vector<CachedAttention>* kv_cache_ = nullptr;  // of the whole
  std::vector<std::unique_ptr<Net>> parts_;           // of the whole
  std::unique_ptr<TrainingJob> teaches_;              // how the teacher of the whole is loaded
  std::unique_ptr<TrainingJob> judges_;               // and how what scores beside it is

  bool trains(const char* module, const char* parameter) const;
  Dtype kept_dtype() const;
  Tensor kept_linear(const char* name, Tensor x, Dim out_features, Dtype dtype);
  Module* noted(const char* name);
  void note(const char* name, const char* leaf, ModuleKind kind);
  Tensor declare(const char* name, const char* leaf, const Shape& shape, ModuleKind kind, bool trained = true);
  Tensor declare(Parameter parameter);
  std::int32_t weight_of(const Parameter& parameter);
  /// What LoRA's layers have beside a base, in the order that they are declared in.
  struct AdapterWeights {
    Tensor a, b;
    Tensor magnitude;  ///< DoRA's alone
  };
  AdapterWeights adapter_weights(const Base& base);
  /// x by the weight of a linear layer that is not packed, and its bias.
  Tensor product(Tensor x, const Base& base);
  void idle_adapter(const Base& base);
  AdapterInput input_of_base(const Base& base, Tensor x);
  bool replaces_base(bool is_adapted) const;
  Tensor adapted_head(const Base& base, const Tensor& x);
  Tensor plain_weight(const Base& base);
  Tensor dora(const Base& base, const AdapterWeights& weights, const Tensor& result, Tensor x);
  Tensor dora_extra(const Base& base, const AdapterWeights& weights, Tensor base_result, const Tensor& x);
  /// The table's rows scaled, and the scaled update to them.
  struct DoraEmbedding {
    Tensor scale, update;
  };
  DoraEmbedding dora_embedding(const AdapterWeights& weights, const Tensor& table, Tensor ids);
  Tensor adapter(const Base& base, Tensor result, Tensor x);
  FusedLinear fused_linear(const Projection& layer, Dim in_features);
  Tensor embedding_adapter(const char* name, const Tensor& table, Tensor result, Tensor ids, bool scaled);
  Tensor quantised_linear(Base& base, Tensor x, bool bias);
  PackedLinear packed_layer() const;
};

// -- pieces that several families share ------------------------------------------------------------------------------

/// `variance = x.pow(2).mean(-1, keepdim=True)`, a name that lives until a norm returns, and
/// `torch.rsqrt(variance + epsilon)`.
struct MeanSquare {
  Tensor variance, root;
};
MeanSquare mean_square(Tensor x);
/// unsloth_zoo 2026.8.13 gradient_checkpointing.py: UnslothCheckpointFunction.forward: numbers of a checkpoint's input
/// (2 MiB of 16-bit ones) up to which it stays on the card.
inline constexpr Count kUnslothKeeps = Count{1} << 20;
/// Net::at_once of an attention's q, k and v.
void qkv_at_once(Net& net, const Tensor& x, bool bias);
void qkv_at_once(Net& net, const Tensor& x, Dim queries, bool bias);
void qkv_at_once(Net& net, const Tensor& x, Dim queries, Dim keys, bool bias, bool values = true);
/// q or k [B, S, heads, head_dim] by Axolotl's one kernel: normed, turned, and as attention wants it.
Tensor normed_and_turned(Net& net, const char* name, Tensor x, const Tensor& cos, const Tensor& sin);
void turn_at_once(Net& net, Tensor& q, Tensor& k);
/// Llama's RMSNorm: fp32 inside, weight applied in the input's dtype. Liger's kernel when the job uses it.
Tensor rms_norm(Net& net, const char* name, Tensor x);
/// The same by a weight of another kind.
Tensor normed_by(Tensor weight, Tensor x);
/// position_ids of a forward that is given none: arange(S).unsqueeze(0).
void make_position_ids(Net& net);
/// Rotary tables [1, S, dim]: LlamaRotaryEmbedding.forward, which casts them to the activations' dtype.
void rotary_tables(Net& net, Dtype dtype, Count dim);
/// A pair of tables for sliding layers and another for the rest, as far as the model has either (Gemma 3, ModernBERT).
/// `local`: columns that turn in sliding layers, where they are not the others'.
void rotary_tables_by_kind(Net& net, Dtype dtype);
void rotary_tables_by_kind(Net& net, Dtype dtype, Count local);
/// The second half of each row, negated, before the first.
Tensor rotate_half(Tensor x);
/// x·cos + rotate_half(x)·sin. x is [B, heads, S, rotary_dim].
Tensor rotate(Net& net, Tensor x);
/// The same by these tables, which broadcast.
Tensor rotate_by(Tensor x, const Tensor& cos, const Tensor& sin);
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
  bool eager = false;        ///< the class has no other form than the eager one
};
/// ALL_ATTENTION_FUNCTIONS[config._attn_implementation]: q, k, v are [B, heads, S, hd]; the result is [B, S, Q].
Tensor attention(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options);
/// torch.nn.functional.scaled_dot_product_attention: q, k, v and the result are [B, heads, S, hd].
Tensor scaled_dot_product_attention(Net& net, Tensor q, Tensor k, Tensor v, Tensor mask, double dropout, bool causal,
                                    bool enable_gqa);
/// modeling_flash_attention_utils.py _flash_attention_forward: q, k, v are [B, heads, S, hd]; the result is [B, S, Q].
Tensor flash_attention_forward(Net& net, Tensor q, Tensor k, Tensor v, const AttentionOptions& options);
/// Does the job ask for one of the kernels of the flash-attn packages?
bool wants_flash(const TrainingJob& job);
/// Whether the job checkpoints that layer as a whole.
bool checkpointed(const TrainingJob& job, Count layer);

/// The part of attention between the projections, run by `core` on q; checkpointed where the job recomputes just that.
Tensor core_attention(Net& net, Tensor q, const BlockCall& core);
/// The masks of transformers/masking_utils.py for the whole forward.
struct MaskOptions {
  bool eager = false;   ///< the family has no SDPA of its own: the additive mask, whatever the job asks for
  bool padded = false;  ///< the model makes a padding mask of ones where it gets none
  bool forced = false;  ///< `and_mask_function`: never left out
  bool whole = false;   ///< no row is padded whatever the job says: a decoder gets no mask of its labels
};
void make_causal_masks(Net& net, const Tensor& embeds, const MaskOptions& options = {});
/// create_bidirectional_mask: none without padding. `embeds` tells the dtype of an additive mask.
Tensor bidirectional_mask(Net& net, const Tensor& embeds, bool eager, Dim queries, Dim keys);
/// The same of a model's only stack, for the attention that the job asks for.
void make_bidirectional_mask(Net& net, const Tensor& embeds);
/// The mask that layer `net.layer_index` uses.
const Tensor& layer_mask(const Net& net);

/// Which kernel scaled_dot_product_attention picks: sdp_utils.cpp.
enum class SdpaKernel : std::uint8_t { kFlash, kEfficient, kCudnn, kMath };
SdpaKernel choose_sdpa(const Net& net, const Tensor& q, const Tensor& k, const Tensor& v, bool has_mask,
                       bool trains_mask, bool enable_gqa);

/// [B, S, heads·hd] → [B, heads, S, hd] as a view.
Tensor split_heads(Net& net, Tensor x, Dim heads, Dim head_dim);

}  // namespace tidemark
