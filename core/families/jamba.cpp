// Jamba: layers of Mamba or of attention without positions, before a feed-forward or experts.
#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/model/config_experts.hpp"
#include "core/tape/routing_ops.hpp"

namespace tidemark {
namespace {

// Which of each `period` layers is of the other kind.
void read_period(ConfigFields& fields, std::string_view period, std::string_view offset, Count standard[2],
                 Count numbers[2]) {
  numbers[0] = fields.count({period}, standard[0]);
  numbers[1] = fields.count({offset}, standard[1], 0);
  if (numbers[1] >= numbers[0]) fields.error("INVALID_VALUE", offset, "The offset must be smaller than the period.");
}

// transformers 5.12.1 models/jamba/configuration_jamba.py: JambaConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_dimensions(fields, architecture, 262144);
  read_kv_heads(fields, architecture, 8);
  derive_head_dim(fields, architecture);
  architecture.positions_by_token = false;
  architecture.activation = read_activation(fields, {"hidden_act"}, "silu");
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  read_experts(fields, architecture, {16, 2, 0}, {"num_experts", "num_local_experts"});
  read_aux_loss(fields, architecture);
  Count attends[2], expert[2], standard_attends[2] = {8, 4}, standard_expert[2] = {2, 1};
  read_period(fields, "attn_layer_period", "attn_layer_offset", standard_attends, attends);
  read_period(fields, "expert_layer_period", "expert_layer_offset", standard_expert, expert);
  for (Count i = 0; i < architecture.num_layers; ++i) {
    architecture.layer_kinds.push_back(i % attends[0] == attends[1] ? 1 : 0);
    architecture.experts.dense_layers.push_back(architecture.experts.count < 2 || i % expert[0] != expert[1]);
  }
  StateSpace& s = architecture.ssm;
  s.width = fields.count({"mamba_expand"}, 2) * architecture.hidden_size;
  s.state = fields.count({"mamba_d_state"}, 16);
  s.kernel = fields.count({"mamba_d_conv"}, 4);
  const Value* rank = fields.find({"mamba_dt_rank"});
  s.rank = rank != nullptr && rank->is_integer() ? rank->integer : (architecture.hidden_size + 15) / 16;
  s.conv_bias = fields.flag({"mamba_conv_bias"}, true);
  s.bias = fields.flag({"mamba_proj_bias"}, false);
  fields.accept({"use_mamba_kernels", "mamba_inner_layernorms", "num_logits_to_keep", "calc_logits_for_entire_prompt",
                 "sliding_window", "n_ctx"});
}

constexpr const char* kModel = "transformers 5.12 models/jamba/modeling_jamba.py: JambaModel.forward";
constexpr const char* kLayer = "transformers 5.12 models/jamba/modeling_jamba.py: JambaMambaDecoderLayer.forward";
constexpr const char* kMixer = "transformers 5.12 models/jamba/modeling_jamba.py: JambaMambaMixer.forward";
constexpr const char* kAttention = "transformers 5.12 models/jamba/modeling_jamba.py: JambaAttention.forward";
constexpr const char* kMoe = "transformers 5.12 models/jamba/modeling_jamba.py: JambaSparseMoeBlock.forward";
constexpr const char* kMlp = "transformers 5.12 models/jamba/modeling_jamba.py: JambaMLP.forward";
constexpr ExpertForm kExperts = {.module = "feed_forward.experts",
                                 .source = "transformers 5.12 models/jamba/modeling_jamba.py: JambaExperts.forward",
                                 .act = "feed_forward.experts.act_fn"};
constexpr GatedNames kNames = {"feed_forward", "feed_forward.gate_proj", "feed_forward.act_fn", "feed_forward.up_proj",
                               "feed_forward.down_proj"};
constexpr MambaForm kMamba = {"mamba",          "mamba.conv1d",       "mamba.x_proj",      "mamba.dt_proj",
                              "mamba.out_proj", "mamba.dt_layernorm", "mamba.b_layernorm", "mamba.c_layernorm"};

Tensor mixer(Net& net, Tensor hidden) {
  Scope in(net.tape, "mamba", kMixer);
  const StateSpace& s = net.arch.ssm;
  const Tensor x = std::move(hidden);
  Tensor projected = net.linear("mamba.in_proj", x, Dim(2 * s.width), s.bias);
  projected = transpose(std::move(projected), 1, 2);
  if (!net.job.torch_scan) return selective_mixer(net, kMamba, std::move(projected));
  return slow_scan(net, kMamba, std::move(projected), x.dtype());
}

// Since transformers 5.21 the router is JambaTopKRouter, no nn.Linear.
Tensor feed_forward(Net& net, Tensor hidden_in) {
  if (is_dense_layer(net)) return gated_mlp(net, kNames, kMlp, std::move(hidden_in), net.F);
  Scope in(net.tape, "feed_forward", kMoe);
  Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Tensor logits = router_logits(net, "feed_forward.router", hidden, 21);
  keep_router_logits(net, logits);
  Tensor weights = softmax(logits, Dtype::kFp32);
  TopK best = topk(weights, Dim(net.arch.experts.per_token));
  weights.reset();
  const Tensor narrow_weights = to(std::move(best.values), hidden.dtype());
  hidden = run_experts(net, kExperts, std::move(hidden), best.indices, narrow_weights);
  return as_sequences(net, std::move(hidden));
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  Tensor residual = std::move(hidden);
  Tensor h = rms_norm(net, "input_layernorm", residual);
  const bool attends = net.arch.layer_kinds[static_cast<std::size_t>(net.layer_index)] == 1;
  h = attends ? qkv_attention(net, std::move(h), kAttention, [](Net&, Tensor&, Tensor&) {}) : mixer(net, std::move(h));
  h = add(residual, std::move(h));
  residual = h;
  h = rms_norm(net, "pre_ff_layernorm", std::move(h));
  h = feed_forward(net, std::move(h));
  return add(std::move(residual), std::move(h));
}

Tensor embed(Net& net) {
  Scope in(net.tape, "model", kModel);
  Tensor embeds = net.token_embedding("model.embed_tokens", net.H);
  net.model_locals = {embeds};
  make_position_ids(net);
  make_causal_masks(net, embeds);
  return embeds;
}

Tensor norm(Net& net, Tensor hidden) {
  return rms_norm(net, "model.final_layernorm", std::move(hidden));
}

// csrc/selective_scan/selective_scan.cpp: "B.scalar_type() == input_type". Norms of another dtype give B and C that
// dtype.
void check(const Architecture&, const TrainingJob& job, Issues& issues) {
  const PrepareKbit prepare = job.method == Method::kQlora ? job.quantization.prepare_kbit : PrepareKbit::kOff;
  const bool other_norms = prepare == PrepareKbit::kAll || prepare == PrepareKbit::kNormsOnly ||
                           (job.recipe.autocast && *job.recipe.autocast != job.recipe.weights);
  if (job.torch_scan || !other_norms) return;
  issues.push_back(
      {"UNSUPPORTED_VALUE", Severity::kError, "/precision",
       "mamba_ssm's selective_scan raises an error: its inputs are of two dtypes where norms are in fp32. Use weights "
       "in 16 bits (\"bf16_amp\"; \"prepare_kbit\": false), or \"kernels\": \"torch\".",
       "bf16_amp"});
}

const Program kProgram = {
    .forward = one_stack<embed, layer, norm>, .lm_head = llama_head, .heads = kMoeForwards, .check = check};

}  // namespace

const Family kRows[] = {
    {"jamba", "Jamba", "JambaForCausalLM", kSequenceOnly, read_config, &kProgram, kModelLayers, kNoFlex},
};

extern const FamilyRows jamba_rows;
const FamilyRows jamba_rows = kRows;

}  // namespace tidemark
