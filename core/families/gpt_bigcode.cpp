// GPT-BigCode (SantaCoder, StarCoder): GPT-2 with nn.Linear and one key/value head.
#include "core/families/family.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/gpt_bigcode/configuration_gpt_bigcode.py: GPTBigCodeConfig (SantaCoder, StarCoder).
void read_gpt_bigcode_config(ConfigFields& fields, Architecture& architecture) {
  read_openai_dimensions(fields, architecture, 1024);
  read_openai_dropouts(fields, architecture, 0.1);
  architecture.activation = read_activation(fields, {"activation_function"}, "gelu_pytorch_tanh");
  architecture.multi_query = fields.flag({"multi_query"}, true);
  if (architecture.multi_query) architecture.num_kv_heads = 1;
  architecture.attention_bias = true;
  architecture.attention_out_bias = true;
  architecture.mlp_bias = true;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  fields.accept({"num_key_value_heads", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "inference_runner", "validate_runner_input", "pre_allocate_kv_cache", "max_sequence_length",
                 "max_batch_size"});
  reject_cross_attention(fields);
}

constexpr const char* kModel = "transformers 5.12 models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeModel.forward";
constexpr const char* kBlock = "transformers 5.12 models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeBlock.forward";
constexpr const char* kAttention =
    "transformers 5.12 models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeMLP.forward";

constexpr DecoderHeads kClasses = {
    .sequence =
        "transformers 5.12 models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeForSequenceClassification.forward",
    .token = "transformers 5.12 models/gpt_bigcode/modeling_gpt_bigcode.py: GPTBigCodeForTokenClassification.forward",
    .token_module = "classifier",
    .token_loss_fp32 = false};

Tensor attn(Net& net, Tensor hidden) {
  Scope in(net.tape, "attn", kAttention);
  const Tensor x = std::move(hidden);
  Tensor q, k, v;
  Tensor fused = net.linear("attn.c_attn", x, Dim(net.H.n() + 2 * net.K.n()), true);
  if (net.arch.multi_query) {
    fused = unsqueeze(std::move(fused), 1);
    Pieces qkv = split(std::move(fused), 3, {net.H, net.K, net.K});
    q = view(std::move(qkv.part[0]), Shape{net.B, net.S, net.A, net.hd});
    q = transpose(std::move(q), 1, 2);
    k = std::move(qkv.part[1]);
    v = std::move(qkv.part[2]);
  } else {
    fused = view(std::move(fused), Shape{net.B, net.S, net.A, Dim(3 * net.hd.n())});
    fused = transpose(std::move(fused), 1, 2);
    Pieces qkv = split(std::move(fused), 3, {net.hd, net.hd, net.hd});
    q = std::move(qkv.part[0]);
    k = std::move(qkv.part[1]);
    v = std::move(qkv.part[2]);
  }
  AttentionOptions options;
  options.mask = layer_mask(net);
  options.dropout = net.arch.attention_dropout;
  Tensor out = attention(net, q, k, v, options);
  out = net.linear("attn.c_proj", std::move(out), net.H, true);
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
  return add(std::move(residual), feed_forward);
}

Tensor embed(Net& net) {
  Scope in(net.tape, "transformer", kModel);
  const Count positions = net.arch.max_positions;
  net.tape.buffer("transformer.bias", positions * positions);
  return gpt2_embed(net);
}

}  // namespace

const Program kGptBigCodeProgram = {.forward = one_stack<embed, layer, gpt2_norm>,
                                    .lm_head = gpt2_head,
                                    .heads = kDecoderForwards,
                                    .own_loss = OwnLoss::kModelDtype,
                                    .decoder_heads = kClasses,
                                    .dropout_calls = DropoutCalls::kNone};

const Family kRows[] = {
    {"gpt_bigcode", "GPTBigCode", "GPTBigCodeForCausalLM", kSequenceAndToken, read_gpt_bigcode_config,
     &kGptBigCodeProgram, "transformer.h", kNoFlex},
};

extern const FamilyRows gpt_bigcode_rows;
const FamilyRows gpt_bigcode_rows = kRows;

}  // namespace tidemark
