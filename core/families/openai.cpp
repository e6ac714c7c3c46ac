// GPT: learned positions, a norm behind each branch, Conv1D projections, and scores that a buffer masks.
#include <utility>

#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.24 models/openai/configuration_openai.py: OpenAIGPTConfig. ACT_FNS: "gelu" is gelu_new.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 512);
  read_openai_dropouts(fields, architecture, 0.1);
  architecture.intermediate_size = 4 * architecture.hidden_size;
  const std::string name = fields.text({"afn"}, "gelu");
  if (name != "gelu" && name != "relu" && name != "silu" && name != "swish") {
    fields.error("INVALID_VALUE", "afn", "This class has \"relu\", \"silu\", \"gelu\" and \"swish\".");
  } else {
    architecture.activation = activation_named(name == "gelu"    ? "gelu_new"
                                               : name == "swish" ? "silu"
                                                                 : name,
                                               "afn", fields);
  }
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.final_norm = false;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"n_ctx", "n_special", "predict_special_tokens", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

constexpr const char* kModel = "transformers 5.24 models/openai/modeling_openai.py: OpenAIGPTModel.forward";
constexpr const char* kBlock = "transformers 5.24 models/openai/modeling_openai.py: Block.forward";
constexpr const char* kAttention = "transformers 5.24 models/openai/modeling_openai.py: Attention.forward";
constexpr const char* kMlp = "transformers 5.24 models/openai/modeling_openai.py: MLP.forward";
constexpr const char* kHead = "transformers 5.24 models/openai/modeling_openai.py: OpenAIGPTLMHeadModel.forward";

constexpr DecoderHeads kHeadNames = {
    .sequence = "transformers 5.24 models/openai/modeling_openai.py: OpenAIGPTForSequenceClassification.forward"};

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  Tape& t = net.tape;
  t.buffer("transformer.position_ids", size_of(Dtype::kInt64) * net.arch.max_positions);
  const Tensor ids = t.part_of_buffer(Shape{Dim(1), net.S}, Dtype::kInt64);
  if (net.attention_mask.defined()) {
    net.shared.causal_mask = t.allocate(Shape{net.B, Dim(1), Dim(1), net.S}, net.job.recipe.weights, "mul");
  }
  const Tensor embeds = net.token_embedding("transformer.tokens_embed", net.H);
  const Tensor positions = net.embedding("transformer.positions_embed", ids, Dim(net.arch.max_positions), net.H);
  Tensor h = add(embeds, positions);
  h = add_scalar(std::move(h));
  net.model_locals = {embeds, positions, net.shared.causal_mask};
  return dropout(std::move(h), net.arch.embedding_dropout);
}

// _attn
Tensor scored(Net& net, const Tensor& q, const Tensor& k, const Tensor& v) {
  Tape& t = net.tape;
  net.attention_kernel = "eager";
  Tensor w = matmul(q, k);
  w = mul_scalar(std::move(w));
  const Dtype dtype = net.buffer_for_product(net.job.recipe.weights);
  const Count side = net.arch.max_positions;
  t.buffer("attn.bias", side * side * size_of(dtype));
  const Shape square{Dim(1), Dim(1), net.S, net.S};
  const Tensor seen = t.part_of_buffer(square, dtype);
  {
    const Tensor kept = mul(std::move(w), seen);
    Tensor unseen = t.allocate(square, dtype, "rsub");
    unseen = t.allocate(square, dtype, "mul");
    w = add(kept, unseen);
  }
  if (net.shared.causal_mask.defined()) w = add(std::move(w), net.shared.causal_mask);
  w = softmax(std::move(w));
  w = dropout(std::move(w), net.arch.attention_dropout);
  return matmul(w, v);
}

Tensor attn(Net& net, const Tensor& x) {
  Scope in(net.tape, "attn", kAttention);
  const Tensor fused = net.conv1d("attn.c_attn", x, Dim(3 * net.H.n()));
  Pieces qkv = split(fused, 2, {net.H, net.H, net.H});
  const Tensor q = split_heads(net, std::move(qkv.part[0]), net.A, net.hd);
  const Tensor k = transpose(split_heads(net, std::move(qkv.part[1]), net.A, net.hd), 2, 3);
  const Tensor v = split_heads(net, std::move(qkv.part[2]), net.A, net.hd);
  Tensor a = scored(net, q, k, v);
  a = contiguous(transpose(a, 1, 2));
  a = view(std::move(a), Shape{net.B, net.S, net.H});
  a = net.conv1d("attn.c_proj", std::move(a), net.H);
  return dropout(std::move(a), net.arch.residual_dropout);
}

Tensor mlp(Net& net, const Tensor& x) {
  Scope in(net.tape, "mlp", kMlp);
  Tensor h = net.conv1d("mlp.c_fc", x, net.F);
  h = activate(net.arch.activation, std::move(h));
  const Tensor down = net.conv1d("mlp.c_proj", h, net.H);
  return dropout(down, net.arch.residual_dropout);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kBlock);
  const Tensor x = std::move(hidden);
  const Tensor a = attn(net, x);
  const Tensor n = net.layer_norm("ln_1", add(x, a));
  const Tensor m = mlp(net, n);
  return net.layer_norm("ln_2", add(n, m));
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  return net.lm_head("lm_head", std::move(hidden), net.V);
}

constexpr ClassSuffix kClasses[] = {{"LMHeadModel", Head::kCausalLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"Model", Head::kNone}};

}  // namespace

const Program kOpenAiProgram = {.forward = one_stack<embed, layer, no_norm>,
                                .lm_head = lm_head,
                                .decoder_heads = kHeadNames,
                                .attention = kEagerAlone,
                                .checkpoints = false,
                                .dropout_calls = DropoutCalls::kNone};

const Family kRows[] = {
    {"openai-gpt",
     "OpenAIGPT",
     "OpenAIGPTLMHeadModel",
     kClasses,
     read_config,
     &kOpenAiProgram,
     "transformer.h",
     {.flex_attention = false, .no_split = NoSplit::kNone}},
};

extern const FamilyRows openai_rows;
const FamilyRows openai_rows = kRows;

}  // namespace tidemark
