// Zamba 2: layers of Mamba-2, before some of which the hidden state passes, beside the embeddings, through one of a few
// transformer blocks that all such layers share; each use has small adapters of its own.
#include <algorithm>
#include <string>

#include "core/families/family.hpp"
#include "core/layers/ssm.hpp"
#include "core/layers/vision.hpp"

namespace tidemark {
namespace {

// Kinds of layers: plain ones, then those before which block 0, 1, … runs.
void read_block_types(ConfigFields& fields, Architecture& architecture) {
  const Value* types = fields.find({"layers_block_type", "layer_types"});
  if (types == nullptr || static_cast<Count>(types->items.size()) != architecture.num_layers) {
    fields.error("INVALID_VALUE", "layers_block_type",
                 "\"layers_block_type\" must be a list with one entry per layer.");
    return;
  }
  Count uses = 0;
  for (const Value& type : types->items) {
    const Count block = type.string == "hybrid" ? 1 + uses++ % architecture.weight_groups : 0;
    architecture.layer_kinds.push_back(static_cast<std::uint8_t>(block));
  }
}

// torch 2.14 distributed/fsdp: units are layers, and a block's weights lie in several of them. FullyShardedDataParallel
// makes them a part of the first one's flat tensor ("Attempting to broadcast a dimension"), and without original
// parameters a copy for each; fully_shard says it (_fully_shard/_fsdp_init.py: "is shared with a parameter already
// managed by another FSDP group").
void check_units(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const DataParallel& how = job.data_parallel;
  const std::vector<std::uint8_t>& kinds = architecture.layer_kinds;
  const auto hybrid = std::count_if(kinds.begin(), kinds.end(), [](std::uint8_t kind) { return kind > 0; });
  if (!how.is_sharded() || !is_fsdp(how.sharding) || hybrid <= architecture.weight_groups) return;
  issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/parallelism/fsdp",
                    "Layers of Zamba 2 share weights: FSDP fails with them, or unties them. Use ZeRO.", ""});
}

// Up to transformers 5.16 get_layers numbers the blocks by their layers and not by their uses: where the two differ, as
// in the released 7B, a block lacks the adapters of some of its uses and its weights cannot be tied. transformers 4
// took the blocks in turns.
void check_blocks(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_units(architecture, job, issues);
  if (!job.framework.at_least(5, 0)) return;
  if (!architecture.tie_word_embeddings) {  // modeling_utils.py get_expanded_tied_weights_keys
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/config/tie_word_embeddings",
                      "transformers 5 ties nothing where this is false: each use of a shared block has weights of its "
                      "own, which is not modelled.",
                      "true"});
    return;
  }
  if (job.framework.at_least(5, 17)) return;
  Count uses = 0;
  for (std::size_t layer = 0; layer < architecture.layer_kinds.size(); ++layer) {
    if (architecture.layer_kinds[layer] == 0) continue;
    if (static_cast<Count>(layer) % architecture.weight_groups == uses++ % architecture.weight_groups) continue;
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/framework/version",
                      "transformers 5 gives Zamba 2's adapters to the wrong uses of its shared blocks and fails with "
                      "this order of layers. Release 5.17 trains it.",
                      "5.17"});
    return;
  }
}

// transformers 5.12.1 models/zamba2/configuration_zamba2.py: Zamba2Config.
void read_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_hidden_layers"});
  architecture.num_heads = fields.required({"num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 4096);
  const Count width = fields.nullable({"intermediate_size"}, std::nullopt).value_or(0);
  architecture.intermediate_size = width > 0 ? width : 4 * architecture.hidden_size;
  read_kv_heads(fields, architecture, std::nullopt);
  architecture.head_dim = architecture.num_heads > 0 ? 2 * architecture.hidden_size / architecture.num_heads : 0;
  if (fields.flag({"use_mem_rope"}, false)) architecture.rotary_dim = architecture.head_dim;
  architecture.positions_by_token = false;
  architecture.activation = read_activation(fields, {"hidden_act"}, "gelu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.mlp_bias = fields.flag({"add_bias_linear"}, false);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.weight_groups = fields.count({"num_mem_blocks"}, 1);
  architecture.attention_adapters = fields.flag({"use_shared_attention_adapter"}, false);
  StateSpace& s = architecture.ssm;
  s.rank = fields.count({"adapter_rank"}, 128);
  s.width = fields.count({"mamba_expand"}, 2) * architecture.hidden_size;
  s.heads = fields.count({"n_mamba_heads"}, 8);
  s.head_dim = s.width / s.heads;
  s.groups = fields.count({"mamba_ngroups"}, 1);
  s.state = fields.count({"mamba_d_state"}, 64);
  s.kernel = fields.count({"mamba_d_conv"}, 4);
  s.chunk = fields.count({"chunk_size"}, 256);
  s.bias = architecture.mlp_bias;
  s.conv_bias = true;
  read_block_types(fields, architecture);
  fields.accept(
      {"use_mamba_kernels", "use_mem_eff_path",      "use_conv_bias",          "use_long_context", "num_logits_to_keep",
       "time_step_min",     "time_step_max",         "time_step_floor",        "time_step_limit",  "hybrid_layer_ids",
       "mamba_headdim",     "attention_hidden_size", "attention_head_dim",     "head_dim",         "kv_channels",
       "num_query_groups",  "ffn_hidden_size",       "use_shared_mlp_adapter", "state_size",       "conv_dimension",
       "expansion_factor",  "mamba_dt_rank",         "mamba_proj_bias"});
}

constexpr const char* kModel = "transformers 5.12 models/zamba2/modeling_zamba2.py: Zamba2Model.forward";
constexpr const char* kLayer = "transformers 5.12 models/zamba2/modeling_zamba2.py: Zamba2HybridLayer.forward";
constexpr const char* kBlock =
    "transformers 5.12 models/zamba2/modeling_zamba2.py: Zamba2AttentionDecoderLayer.forward";
constexpr const char* kAttention = "transformers 5.12 models/zamba2/modeling_zamba2.py: Zamba2Attention.forward";
constexpr const char* kMlp = "transformers 5.12 models/zamba2/modeling_zamba2.py: Zamba2MLP.forward";
constexpr const char* kMixer = "transformers 5.12 models/zamba2/modeling_zamba2.py: Zamba2MambaMixer.torch_forward";
constexpr Mamba2Form kPlain = {.module = "mamba",
                               .in_proj = "mamba.in_proj",
                               .conv1d = "mamba.conv1d",
                               .norm = "mamba.norm",
                               .out_proj = "mamba.out_proj",
                               .source = kMixer,
                               .gated_norm = gate_then_norm};
constexpr Mamba2Form kHybrid = {.module = "mamba_decoder.mamba",
                                .in_proj = "mamba_decoder.mamba.in_proj",
                                .conv1d = "mamba_decoder.mamba.conv1d",
                                .norm = "mamba_decoder.mamba.norm",
                                .out_proj = "mamba_decoder.mamba.out_proj",
                                .source = kMixer,
                                .gated_norm = gate_then_norm};

/// While it lives, modules' weights are those of a shared block, in the order of its first use.
class Block {
 public:
  Block(Net& net, std::size_t number) : net_(net) {
    const Place outside(net.tape);
    last_ = net.tape.parameter_place();
    if (net.blocks.places.size() <= number) net.blocks.places.push_back(last_);
    net.tape.set_parameter_place(net.blocks.places[number]);
    net.blocks.on = true;
  }
  ~Block() {
    const Place outside(net_.tape);
    net_.tape.set_parameter_place(std::max(last_, net_.tape.parameter_place()));
    net_.blocks.on = false;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  /// Parameters are those outside the layers, and then the layer's again.
  struct Place {
    Tape& tape;
    std::int16_t layer;
    explicit Place(Tape& t) : tape(t), layer(t.instance_of_parameters()) { tape.resume_parameters_outside_layers(); }
    ~Place() { tape.resume_parameters_of(layer); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
  };
  Net& net_;
  std::size_t last_ = 0;
};

// Layers that have this one's block.
std::ptrdiff_t uses_of_block(const Net& net) {
  const std::vector<std::uint8_t>& kinds = net.arch.layer_kinds;
  return std::count(kinds.begin(), kinds.end(), kinds[static_cast<std::size_t>(net.layer_index)]);
}

// transformers 5.12 quantizers/base.py get_keys_to_not_convert: tied weights are left as they are, a block's where a
// second layer has it.
Tensor shared_linear(Net& net, const char* name, Tensor x, Dim out_features, bool bias = false) {
  const bool left = uses_of_block(net) > 1 && !bias && net.uses_bitsandbytes() && net.job.framework.at_least(5, 0);
  return left ? net.wide_linear(name, std::move(x), out_features) : net.linear(name, std::move(x), out_features, bias);
}

// What the layer itself has inside the block: two projections through a narrow one. From transformers 5 on each layer
// makes those of all uses of its block, and calls one: PEFT puts its own on every one (get_layers: weights alone are
// tied, which lie in the first layer's).
Tensor adapter(Net& net, const char* down, const char* up, Dim width, const Tensor& x) {
  net.blocks.on = false;
  if (net.job.framework.at_least(5, 0)) {
    const Declared idle(net, true);
    for (std::ptrdiff_t other = uses_of_block(net); other > 1; --other) {
      net.idle_adapter_on(down, Dim(net.arch.ssm.rank), x.dim(-1));
      net.idle_adapter_on(up, width, Dim(net.arch.ssm.rank));
    }
  }
  Tensor h = shared_linear(net, down, x, Dim(net.arch.ssm.rank));
  h = shared_linear(net, up, std::move(h), width);
  net.blocks.on = true;
  return h;
}

Tensor attend(Net& net, const Tensor& x) {
  Scope in(net.tape, "shared_transformer.self_attn", kAttention);
  Tensor q = shared_linear(net, "shared_transformer.self_attn.q_proj", x, net.Q);
  Tensor k = shared_linear(net, "shared_transformer.self_attn.k_proj", x, net.K);
  Tensor v = shared_linear(net, "shared_transformer.self_attn.v_proj", x, net.K);
  if (net.arch.attention_adapters) {
    Tensor more = adapter(net, "shared_transformer.self_attn.linear_q_adapter_list.0.0",
                          "shared_transformer.self_attn.linear_q_adapter_list.0.1", net.Q, x);
    q = add(q, std::move(more));
    more = adapter(net, "shared_transformer.self_attn.linear_k_adapter_list.0.0",
                   "shared_transformer.self_attn.linear_k_adapter_list.0.1", net.K, x);
    k = add(k, std::move(more));
    more = adapter(net, "shared_transformer.self_attn.linear_v_adapter_list.0.0",
                   "shared_transformer.self_attn.linear_v_adapter_list.0.1", net.K, x);
    v = add(v, std::move(more));
  }
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.Kv, net.hd);
  v = split_heads(net, std::move(v), net.Kv, net.hd);
  if (net.arch.rotary_dim > 0) rotate_both(net, q, k);
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  return shared_linear(net, "shared_transformer.self_attn.o_proj", std::move(out), net.H);
}

Tensor feed_forward(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "shared_transformer.feed_forward", kMlp);
  const Tensor x = std::move(hidden_in);
  const Dim both(2 * net.F.n());
  const bool bias = net.arch.mlp_bias;
  Tensor h = shared_linear(net, "shared_transformer.feed_forward.gate_up_proj", x, both, bias);
  Tensor more = adapter(net, "shared_transformer.feed_forward.gate_up_proj_adapter_list.0.0",
                        "shared_transformer.feed_forward.gate_up_proj_adapter_list.0.1", both, x);
  h = add(h, std::move(more));
  const Pieces halves = split(h, -1, {net.F, net.F});
  Tensor open = activate(net.arch.activation, halves.part[0]);
  h = mul(std::move(open), halves.part[1]);
  return shared_linear(net, "shared_transformer.feed_forward.down_proj", h, net.H, bias);
}

Tensor shared_transformer(Net& net, std::size_t number, const Tensor& hidden) {
  const Block block(net, number);
  Scope in(net.tape, "shared_transformer", kBlock);
  Tensor h = cat({&hidden, &net.shared.encoder_states}, -1);
  h = rms_norm(net, "shared_transformer.input_layernorm", std::move(h));
  h = attend(net, h);
  h = rms_norm(net, "shared_transformer.pre_ff_layernorm", std::move(h));
  return feed_forward(net, std::move(h));
}

// Zamba2MambaDecoderLayer.forward, in a hybrid layer behind what the shared block says.
Tensor layer(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "", kLayer);
  const Tensor hidden = std::move(hidden_in);
  const std::uint8_t kind = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)];
  Tensor said, h = hidden;
  if (kind > 0) {
    said = shared_transformer(net, kind - 1U, hidden);
    said = net.linear("linear", std::move(said), net.H);
    h = add(hidden, said);
  }
  h = rms_norm(net, kind > 0 ? "mamba_decoder.input_layernorm" : "input_layernorm", std::move(h));
  h = mamba2_mixer(net, kind > 0 ? kHybrid : kPlain, std::move(h));
  return add(hidden, std::move(h));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  net.blocks = {};
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.shared.encoder_states = clone(embeds);
  net.model_locals = {embeds, net.shared.encoder_states};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  if (net.arch.rotary_dim > 0) rotary_tables(net, embeds.dtype(), net.arch.rotary_dim);
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.final_layernorm", std::move(hidden));
}

const Program kProgram = {.forward = one_stack<embed, layer, norm>, .lm_head = llama_head, .check = check_blocks};

}  // namespace

const Family kRows[] = {
    {"zamba2", "Zamba2", "Zamba2ForCausalLM", kSequenceOnly, read_config, &kProgram, kModelLayers, kNamesOtherParts},
};

extern const FamilyRows zamba2_rows;
const FamilyRows zamba2_rows = kRows;

}  // namespace tidemark
