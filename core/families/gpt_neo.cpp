// GPT-Neo: GPT-2's layout with nn.Linear; scores in fp32 and unscaled, global and local layers masked by a buffer.
#include <algorithm>
#include <string>

#include "core/families/family.hpp"

namespace tidemark {
namespace {

// GPTNeoConfig.expand_attention_types_params: [[["global", "local"], 12]] means twelve such pairs. Where the file has
// none, the class takes those twelve and refuses any other depth; every published model alternates, so we do.
void read_attention_types(ConfigFields& fields, Architecture& architecture) {
  const Value* types = fields.find({"attention_types"});
  if (types == nullptr || types->is_null()) {
    for (Count layer = 0; layer < architecture.num_layers; ++layer) architecture.local_layers.push_back(layer % 2);
    if (architecture.num_layers != 24) {
      fields.note("ASSUMED_DEFAULT", "attention_types",
                  "\"attention_types\" is absent; global and local layers are taken to alternate.");
    }
  } else {
    for (const Value& group : types->items) {
      if (group.items.size() != 2 || !group.items[0].is_array() || !group.items[1].is_integer()) {
        fields.error("WRONG_TYPE", "attention_types",
                     "\"attention_types\" must look like [[[\"global\", \"local\"], 12]].");
        return;
      }
      const Count repeats = std::min(group.items[1].integer, architecture.num_layers);
      for (Count repeat = 0; repeat < repeats; ++repeat) {
        for (const Value& type : group.items[0].items) architecture.local_layers.push_back(type.string == "local");
        if (static_cast<Count>(architecture.local_layers.size()) > architecture.num_layers) break;
      }
    }
  }
  if (static_cast<Count>(architecture.local_layers.size()) != architecture.num_layers) {
    fields.error("INVALID_VALUE", "attention_types",
                 "\"attention_types\" does not describe " + std::to_string(architecture.num_layers) + " layers.");
  }
}

// transformers 5.12.1 models/gpt_neo/configuration_gpt_neo.py: GPTNeoConfig. Its q, k, v have no bias, the rest has
// (modeling_gpt_neo.py: GPTNeoSelfAttention).
void read_gpt_neo_config(ConfigFields& fields, Architecture& architecture) {
  architecture.hidden_size = fields.required({"hidden_size"});
  architecture.num_layers = fields.required({"num_layers", "num_hidden_layers"});
  architecture.num_heads = fields.required({"num_heads", "num_attention_heads"});
  architecture.vocab_size = fields.required({"vocab_size"});
  architecture.max_positions = fields.count({"max_position_embeddings"}, 2048);
  architecture.num_kv_heads = architecture.num_heads;
  derive_head_dim(fields, architecture);
  architecture.intermediate_size =
      fields.nullable({"intermediate_size"}, std::nullopt).value_or(4 * architecture.hidden_size);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_new");
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.norm_bias = true;
  architecture.residual_dropout = fields.probability({"resid_dropout"}, 0.0);
  architecture.embedding_dropout = fields.probability({"embed_dropout"}, 0.0);
  architecture.attention_dropout = fields.probability({"attention_dropout"}, 0.0);
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.sliding_window = fields.count({"window_size"}, 256);
  fields.accept({"attention_layers"});
  read_attention_types(fields, architecture);
}

constexpr const char* kModel = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoBlock.forward";
constexpr const char* kAttention = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoSelfAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoMLP.forward";

constexpr DecoderHeads kClasses = {
    .sequence = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoForSequenceClassification.forward",
    .token = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoForTokenClassification.forward",
    .span = "transformers 5.12 models/gpt_neo/modeling_gpt_neo.py: GPTNeoForQuestionAnswering.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn.attention", kAttention);
  const Tensor x = std::move(hidden);
  net.tape.buffer("attn.attention.bias", net.arch.max_positions * net.arch.max_positions);
  Tensor q = net.linear("attn.attention.q_proj", x, net.H);
  Tensor k = net.linear("attn.attention.k_proj", x, net.H);
  Tensor v = net.linear("attn.attention.v_proj", x, net.H);
  q = split_heads(net, std::move(q), net.A, net.hd);
  k = split_heads(net, std::move(k), net.A, net.hd);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.mask = net.shared.causal_mask;
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention_fp32_scores(net, q, k, v, options, true);
  out = net.linear("attn.attention.out_proj", std::move(out), net.H, true);
  return dropout(std::move(out), net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("ln_1", residual);
  const Tensor attn_output = attn(net, h);
  h = add(attn_output, std::move(residual));
  residual = h;
  h = net.layer_norm("ln_2", residual);
  const Tensor feed_forward = c_fc_mlp(net, h, kMlp);
  h = add(std::move(residual), feed_forward);
  net.return_weights();
  return h;
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tensor embeds = net.token_embedding("transformer.wte", net.H);
  make_position_ids(net);
  make_causal_masks(net, embeds, {true, false, false});
  Tensor positions = net.embedding("transformer.wpe", net.shared.position_ids, Dim(net.arch.max_positions), net.H);
  Tensor h = add(embeds, positions);
  net.model_locals = {std::move(embeds), std::move(positions)};
  return dropout(std::move(h), net.arch.embedding_dropout);
}

}  // namespace

Tensor c_fc_mlp(Net& net, Tensor hidden, const char* source) {
  Scope in(net.tape, "mlp", source);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.c_fc", x, net.F, true);
  {
    Scope act(net.tape, "mlp.act", source);
    h = activate(net.arch.activation, std::move(h));
  }
  h = net.linear("mlp.c_proj", std::move(h), net.H, true);
  return dropout(std::move(h), net.arch.residual_dropout);
}

// GPT_NEO_ATTENTION_CLASSES: eager and flash_attention_2.
const Program kGptNeoProgram = {.forward = one_stack<embed, layer, gpt2_norm>,
                                .lm_head = gpt2_head,
                                .own_loss = OwnLoss::kFp32AndBack,
                                .decoder_heads = kClasses,
                                .attention = {.sdpa = false, .flash_attention_3 = false},
                                .dropout_calls = DropoutCalls::kNone};

const Family kRows[] = {
    {"gpt_neo", "GPTNeo", "GPTNeoForCausalLM", kFourHeads, read_gpt_neo_config, &kGptNeoProgram, "transformer.h",
     kNoFlex},
};

extern const FamilyRows gpt_neo_rows;
const FamilyRows gpt_neo_rows = kRows;

}  // namespace tidemark
