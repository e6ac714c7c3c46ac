// Megatron-Core's GPTModel with Transformer Engine's layers or its own: sequence first, tensor and sequence parallel.
#include "core/families/megatron.hpp"

#include <string>

#include "core/layers/moe.hpp"
#include "core/layers/program.hpp"
#include "core/tape/megatron_ops.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kModel = "megatron_core 0.16.1 models/gpt/gpt_model.py: GPTModel.forward";
constexpr const char* kEmbedding =
    "megatron_core 0.16.1 models/common/embeddings/language_model_embedding.py: LanguageModelEmbedding.forward";
constexpr const char* kLayer = "megatron_core 0.16.1 transformer/transformer_layer.py: TransformerLayer.forward";
constexpr const char* kAttention = "megatron_core 0.16.1 transformer/attention.py: SelfAttention.forward";
constexpr const char* kCore = "megatron_core 0.16.1 transformer/dot_product_attention.py: DotProductAttention.forward";
constexpr const char* kMlp = "megatron_core 0.16.1 transformer/mlp.py: MLP.forward";
constexpr const char* kExperts = "megatron_core 0.16.1 transformer/moe/{token_dispatcher, experts}.py: TEGroupedMLP";
constexpr const char* kLoss = "megatron_core 0.16.1 models/common/language_module: compute_language_model_loss";
constexpr const char* kBatch = "Megatron-LM megatron/training/utils.py: get_batch_on_this_tp_rank";

/// What a model type's layers are made of, as a GPTModel's arguments say it.
struct Form {
  std::string_view model_type;
  bool rms = true;       ///< RMSNorm, else LayerNorm with a bias
  bool gated = true;     ///< SwiGLU in one matrix, else GELU
  bool learned = false;  ///< a table of positions
};
constexpr Form kForms[] = {
    {"llama"},
    {"mistral"},
    {"qwen2"},
    {"qwen3"},
    {"qwen3_moe"},
    {"mixtral"},
    {"gpt2", false, false, true},
    {"gpt_neox", false, false},
    {"bloom", false, false},
    {"starcoder2", false, false},
};

const Form* form_of(std::string_view model_type) {
  for (const Form& form : kForms) {
    if (form.model_type == model_type) return &form;
  }
  return nullptr;
}

Count shards_of_sequence(const Net& net) {
  return net.job.tensor.sequence ? net.job.tensor.degree : 1;
}

// Tokens, labels, their weights, positions and a mask that Transformer Engine's kernels do not read
// (create_attention_mask_in_dataloader is on unless switched off).
void inputs(Net& net) {
  const Scope in(net.tape, "batch", kBatch);
  const Shape rows{net.B, net.S};
  const bool first = net.stage == nullptr || net.stage->first, last = net.stage == nullptr || net.stage->last;
  const auto take = [&](Dtype dtype, const char* name) { return net.tape.allocate(rows, dtype, name); };
  if (first) net.input_ids = take(Dtype::kInt64, "tokens");
  if (last) {
    net.labels = take(Dtype::kInt64, "labels");
    net.more_inputs.push_back(take(Dtype::kFp32, "loss_mask"));
  }
  net.attention_mask = net.tape.allocate(Shape{net.B, Dim(1), net.S, Dim(net.job.sequence_length, Symbol::kSequence)},
                                         Dtype::kBool, "attention_mask");
  if (first) net.more_inputs.push_back(take(Dtype::kInt64, "position_ids"));
}

// ColumnParallelLinear, TELayerNormColumnParallelLinear behind its norm.
bool fuses_gradients(const Net& net) {
  return net.job.megatron.fuses_gradients;
}

// This GPU's part of a parameter that all tensor-parallel ones divide.
Tensor part_of(Net& net, const char* name, const char* leaf, const Shape& part) {
  const auto index = static_cast<std::size_t>(net.tape.next_parameter());
  Tensor parameter = net.parameter(name, leaf, part);
  net.tape.parameters()[index].whole = part.numel() * net.job.tensor.degree;
  return parameter;
}

Tensor column(Net& net, const char* name, Tensor x, Dim out, bool has_bias) {
  const Scope in(net.tape, name, net.source());
  Tensor weight = part_of(net, name, "weight", Shape{out, x.dim(-1)});
  Tensor bias;
  if (has_bias) bias = part_of(net, name, "bias", Shape{out});
  return gathered_linear(std::move(x), std::move(weight), std::move(bias), shards_of_sequence(net),
                         fuses_gradients(net));
}

// RowParallelLinear: summed in place, or reduced and scattered.
Tensor row(Net& net, const char* name, Tensor x, bool has_bias) {
  const Scope in(net.tape, name, net.source());
  Tensor weight = part_of(net, name, "weight", Shape{net.H, x.dim(-1)});
  Tensor bias;
  if (has_bias) bias = net.parameter(name, "bias", Shape{net.H});
  Tensor out = gathered_linear(std::move(x), std::move(weight), std::move(bias), 1, fuses_gradients(net));
  const Count shards = shards_of_sequence(net);
  return shards > 1 ? reduce_scattered(std::move(out), shards) : out;
}

Tensor norm(Net& net, const char* name, Tensor x) {
  return net.layer_norm(name, std::move(x), true, !form_of(net.arch.model_type)->rms);
}

Tensor embed(Net& net) {
  if (net.stage != nullptr && !net.stage->first) return std::move(net.received);
  const Scope in(net.tape, "embedding", kEmbedding);
  net.tied_embedding = net.tape.next_parameter();
  Tensor hidden = embedding(net.input_ids, net.parameter("embedding.word_embeddings", "weight", Shape{net.V, net.H}));
  if (form_of(net.arch.model_type)->learned) {
    const Tensor table =
        net.parameter("embedding.position_embeddings", "weight", Shape{Dim(net.arch.max_positions), net.H});
    const Tensor positions = embedding(net.more_inputs.back(), table);
    hidden = add(std::move(hidden), positions);
  }
  if (net.arch.alibi) hidden = norm(net, "embedding.word_embeddings.norm", std::move(hidden));  // --embed-layernorm
  hidden = contiguous(permute(std::move(hidden), {1, 0, 2}));
  const Count shards = shards_of_sequence(net);
  if (shards > 1) hidden = reduce_scattered(std::move(hidden), shards);
  return dropout(std::move(hidden), net.arch.residual_dropout);
}

// [S, B, heads, hd] → [B·heads, S, hd]: a view.
Tensor by_head(Tensor x, Dim heads) {
  const Shape merged{x.dim(0), heads, x.dim(3)};
  return transpose(reshape(std::move(x), merged), 0, 1);
}

// Unfused: scores and, behind a kernel that scales, masks and takes the softmax, probabilities.
Tensor scores_and_product(Net& net, Tensor q, Tensor k, Tensor v) {
  const Count rows = net.B.n() * net.A.n();
  const Dim heads(rows);
  if (k.size(2) != q.size(2)) {
    const Shape wide{q.dim(0), q.dim(1), k.dim(2), Dim(q.size(2) / k.size(2)), q.dim(3)};
    const auto repeat = [&](Tensor x) {
      const Shape apart{x.dim(0), x.dim(1), x.dim(2), Dim(1), x.dim(3)};
      x = view(std::move(x), apart);
      return reshape(expand(std::move(x), wide), q.shape());
    };
    k = repeat(std::move(k));
    v = repeat(std::move(v));
  }
  q = by_head(std::move(q), heads);
  k = transpose(by_head(std::move(k), heads), 1, 2);
  v = by_head(std::move(v), heads);
  Tensor p = matmul(std::move(q), std::move(k));
  p = softmax(std::move(p));
  p = dropout(std::move(p), net.arch.attention_dropout);
  Tensor out = matmul(std::move(p), std::move(v));
  out = view(std::move(out), Shape{net.B, net.A, net.S, net.hd});
  return contiguous(permute(std::move(out), {2, 0, 1, 3}));
}

// get_attention_backend: cuDNN's kernel goes first from Hopper on, which on Blackwell is not deterministic; else the
// flash-attn package's, whose output is put in order behind it.
bool runs_flash_package(const Net& net) {
  const int capability = net.job.compute_capability;
  return net.job.context == 1 && (capability < 90 || (capability >= 100 && net.job.deterministic));
}

Tensor core_attention_of(Net& net, Tensor q, Tensor k, Tensor v) {
  const Scope in(net.tape, "self_attention.core_attention", kCore);
  // get_qkv_layout: what lies apart from rotated queries and keys is copied, and the projection's output let go.
  if (net.rotates(net.layer_index) && !net.job.megatron.local_layers) v = clone(std::move(v));
  if (net.job.attention == AttentionKernel::kEager || net.job.megatron.local_layers) {
    net.attention_kernel = "eager";
    return scores_and_product(net, std::move(q), std::move(k), std::move(v));
  }
  net.attention_kernel = "flash";
  if (net.job.context > 1) {  // the ring sends a copy of keys and values (AttnFuncWithCPAndKVP2P)
    k = clone(std::move(k));
    v = clone(std::move(v));
  }
  q = permute(std::move(q), {1, 2, 0, 3});
  k = permute(std::move(k), {1, 2, 0, 3});
  v = permute(std::move(v), {1, 2, 0, 3});
  Tensor out = flash_attention(std::move(q), std::move(k), std::move(v), net.arch.attention_dropout);
  if (runs_flash_package(net)) out = clone(std::move(out));
  return permute(std::move(out), {2, 0, 1, 3});
}

Tensor attention_of(Net& net, Tensor hidden) {
  const Scope in(net.tape, "self_attention", kAttention);
  const Count per_group = net.A.n() / net.Kv.n() * net.hd.n();
  const Dim all(net.Q.n() + 2 * net.K.n());
  Tensor mixed = column(net, "self_attention.linear_qkv", std::move(hidden), all, net.arch.attention_bias);
  mixed = view(std::move(mixed), Shape{net.S, net.B, net.Kv, Dim(per_group + 2 * net.hd.n())});
  Pieces parts = split(std::move(mixed), 3, {Dim(per_group), net.hd, net.hd});
  Tensor q = reshape(std::move(parts.part[0]), Shape{net.S, net.B, net.A, net.hd});
  Tensor k = std::move(parts.part[1]), v = std::move(parts.part[2]);
  if (net.arch.qk_norm) {
    q = norm(net, "self_attention.q_layernorm", std::move(q));
    k = norm(net, "self_attention.k_layernorm", std::move(k));
  }
  if (net.rotates(net.layer_index)) {  // fused_apply_rotary_pos_emb keeps its tables alone
    q = mul_scalar(std::move(q));
    k = mul_scalar(std::move(k));
  }
  Tensor out = core_attention(net, std::move(q),
                              [&net, k, v](Tensor query) { return core_attention_of(net, std::move(query), k, v); });
  out = view(std::move(out), Shape{net.S, net.B, net.Q});
  return row(net, "self_attention.linear_proj", std::move(out), net.arch.attention_out_bias);
}

Tensor mlp(Net& net, Tensor hidden) {
  const Scope in(net.tape, "mlp", kMlp);
  const bool gated = form_of(net.arch.model_type)->gated;
  const Dim wide(gated ? 2 * net.F.n() : net.F.n(), Symbol::kFeedForward);
  Tensor h = column(net, "mlp.linear_fc1", std::move(hidden), wide, net.arch.mlp_bias);
  if (gated) {  // bias_swiglu_impl keeps both halves
    Pieces halves = split(std::move(h), 2, {net.F, net.F});
    h = liger_swiglu(std::move(halves.part[0]), std::move(halves.part[1]));
  } else {
    h = gelu(std::move(h));
  }
  return row(net, "mlp.linear_fc2", std::move(h), net.arch.mlp_bias);
}

// One of the experts' weights, of which each of the expert-parallel GPUs has an equal part.
Tensor experts_weight(Net& net, const char* leaf, Dim in, Dim out) {
  const std::int32_t index = net.tape.next_parameter();
  const Shape part{Dim(net.arch.experts.count / net.job.expert), in, out};
  Tensor weight = net.expert_parameter("mlp.experts", leaf, part);
  net.tape.parameters()[static_cast<std::size_t>(index)].whole = part.numel() * net.job.expert;
  return weight;
}

// MoEAlltoAllTokenDispatcher: each token once for each of its experts, sent to their GPU, in the order of its experts;
// back the same way. As many come as go: the experts are taken to be chosen evenly. The fused activation also weighs
// (weighted_bias_swiglu_impl) and keeps its input alone.
Tensor experts(Net& net, Tensor hidden_in) {
  const Scope in(net.tape, "mlp", kExperts);
  const Tensor hidden = std::move(hidden_in);
  const Experts& e = net.arch.experts;
  const Dim tokens(hidden.numel() / net.H.n(), Symbol::kTokens), rows(tokens.n() * e.per_token), width(e.width);
  const Tensor flat = view(hidden, Shape{tokens, net.H});
  constexpr SoftmaxRouter kRouter = {.module = "mlp.router", .source = kExperts};
  Routing routing = softmax_routing(net, kRouter, flat);
  const bool several = net.job.expert > 1;
  Tensor x = index_some(flat, routing.indices, rows);
  if (several) x = mul_scalar(std::move(x));  // all_to_all
  if (several) x = mul_scalar(std::move(x));  // sort_chunks_by_idxs
  const Tensor offsets = net.tape.allocate(Shape{Dim(e.count / net.job.expert)}, Dtype::kInt64, "tokens_per_expert");
  x = grouped_mm(std::move(x), experts_weight(net, "linear_fc1", net.H, Dim(2 * e.width)), offsets);
  Pieces halves = split(std::move(x), 1, {width, width});
  x = liger_swiglu(std::move(halves.part[0]), std::move(halves.part[1]));
  Tensor weights = view(std::move(routing.weights), Shape{rows, Dim(1)});
  weights = to(std::move(weights), x.dtype());
  x = add(std::move(x), std::move(weights));
  x = grouped_mm(std::move(x), experts_weight(net, "linear_fc2", width, net.H), offsets);
  if (several) x = mul_scalar(std::move(x));
  if (several) x = mul_scalar(std::move(x));
  x = sum_over(view(std::move(x), Shape{tokens, Dim(e.per_token), net.H}), 1, false);
  return view(std::move(x), hidden.shape());
}

// bias_dropout_add behind either branch.
Tensor layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  Tensor residual = std::move(hidden);
  Tensor h = norm(net, "input_layernorm", residual);
  h = attention_of(net, std::move(h));
  h = dropout(std::move(h), p);
  residual = add(std::move(residual), std::move(h));
  h = norm(net, "pre_mlp_layernorm", residual);
  h = net.arch.experts.count > 0 && !is_dense_layer(net) ? experts(net, std::move(h)) : mlp(net, std::move(h));
  h = dropout(std::move(h), p);
  return add(std::move(residual), std::move(h));
}

Tensor final_norm(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  return norm(net, "decoder.final_layernorm", std::move(hidden));
}

Tensor output_layer(Net& net, Tensor hidden) {
  const Scope in(net.tape, "", kModel);
  Tensor weight = net.head_weight("output_layer", Shape{net.V, net.H});
  const Scope inner(net.tape, "output_layer", kModel);
  return gathered_linear(std::move(hidden), std::move(weight), {}, shards_of_sequence(net), false);
}

Outputs loss(Net& net, const Program& program, Tensor hidden) {
  const Tensor logits = program.lm_head(net, std::move(hidden));
  const Scope in(net.tape, "loss", kLoss);
  constexpr int kCopies[] = {1, 2, 0};
  const int copies = kCopies[static_cast<std::size_t>(net.job.megatron.loss)];
  Tensor losses = vocab_parallel_cross_entropy(logits, transpose(net.labels, 0, 1), copies);
  return {mean_all(std::move(losses)), {}};
}

Tensor forward(Net& net) {
  // Transformer Engine's own workspace for cuBLAS (module/base.py: get_cublas_workspace_size_bytes).
  if (!net.job.megatron.local_layers) {
    net.tape.buffer("cuBLAS workspace of Transformer Engine", (net.job.compute_capability >= 90 ? 32 : 4) * kMiB,
                    Category::kWorkspace);
    // What autograd gets in the place of a fused gradient: a tensor for each shape of weight, which stays
    // (get_dummy_wgrad).
    if (fuses_gradients(net) && net.tape.parameters().empty()) {
      const bool gated = form_of(net.arch.model_type)->gated;
      const Shape shapes[] = {Shape{Dim(net.Q.n() + 2 * net.K.n()), net.H}, Shape{net.H, net.Q},
                              Shape{Dim(gated ? 2 * net.F.n() : net.F.n()), net.H}, Shape{net.H, net.F}};
      for (const Shape& shape : shapes) {
        net.tape.standing(shape, net.job.recipe.weights, "dummy_wgrad", Category::kWorkspace);
      }
    }
  } else if (net.tape.parameters().empty() && !net.arch.alibi) {
    // Where the scores are added to: parallel_state.get_global_memory_buffer("mpu"), which stays.
    net.tape.standing(Shape{Dim(net.B.n() * net.A.n()), net.S, net.S}, net.job.recipe.weights, "mpu",
                      Category::kWorkspace);
  }
  return run_one_stack(net, embed, layer, final_norm);
}

constexpr HeadForward kHeads[] = {{Head::kCausalLm, loss}};

const Program kProgram = {
    .forward = forward, .lm_head = output_layer, .heads = kHeads, .inputs = inputs, .implementation = "megatron"};
const Program kBigScience = {.forward = forward,
                             .lm_head = output_layer,
                             .heads = kHeads,
                             .inputs = inputs,
                             .implementation = "megatron-deepspeed"};

/// Megatron-Core has no alibi; BigScience's fork has two-matrix feed-forwards, LayerNorm and as many heads of keys as
/// of queries alone, and no experts.
bool is_known(const Form& form, const Architecture& a, const TrainingJob& job) {
  if (!job.is_megatron_deepspeed()) return !a.alibi;
  return !form.rms && !form.gated && a.num_heads == a.num_kv_heads && a.experts.count == 0;
}

}  // namespace

void as_megatron(TrainingJob& job, Architecture& architecture, Issues& issues) {
  const Form* form = form_of(architecture.model_type);
  if (form == nullptr || !is_known(*form, architecture, job) || architecture.head != Head::kCausalLm ||
      architecture.parallel_residual || architecture.sliding_window > 0) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/framework/name",
         "Under Megatron-Core these are modelled: causal language models of Llama's, Mistral's, Mixtral's, "
         "Qwen's, GPT-2's, GPT-NeoX's (without parallel residual) and StarCoder 2's layers, without "
         "windows; under Megatron-DeepSpeed GPT-2's, GPT-NeoX's and BLOOM's. Not " +
             architecture.model_type + " as it stands here.",
         ""});
    return;
  }
  architecture.program = job.is_megatron_deepspeed() ? &kBigScience : &kProgram;
  // --pp-partition-method "type:transformer|embedding" is for layers that do not divide without their ends.
  const Count stages = job.pipeline.stages, layers = architecture.num_layers;
  job.pipeline.counts_ends = job.is_megatron_deepspeed() && layers % stages != 0 && (layers + 2) % stages == 0;
  const Count multiple = 128 * job.tensor.degree;
  architecture.vocab_size = (architecture.vocab_size + multiple - 1) / multiple * multiple;
}

}  // namespace tidemark
