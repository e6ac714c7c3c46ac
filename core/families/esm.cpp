// ESM: language models of proteins (ESM-2, ESM-1b). BERT's modules with norms before the branches, rotation in fp32,
// and a gelu that is written out.
#include "core/families/bert_heads.hpp"
#include "core/families/family.hpp"
#include "core/layers/losses.hpp"
#include "core/layers/rotations.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/esm/configuration_esm.py: EsmConfig. ESM-1b has a table of positions and a norm before its
// layers, ESM-2 has neither.
void read_esm_config(ConfigFields& fields, Architecture& architecture) {
  read_bert_config(fields, architecture);
  architecture.type_vocab_size = 0;
  architecture.position_offset = 2;
  const std::string positions = fields.text({"position_embedding_type"}, "absolute");
  if (positions == "rotary") {
    architecture.rotary_dim = architecture.head_dim;
  } else if (positions != "absolute") {
    fields.error("INVALID_VALUE", "position_embedding_type", "Modelled are \"rotary\" and \"absolute\".");
  }
  architecture.norm_before = fields.flag({"emb_layer_norm_before"}, false);
  architecture.classifier_dropout = architecture.residual_dropout;
  architecture.embedding_scale = fields.flag({"token_dropout"}, false);
  if (fields.flag({"is_folding_model"}, false)) {
    fields.error("INVALID_VALUE", "is_folding_model", "ESMFold is not modelled; its language model is.");
  }
  fields.accept({"mask_token_id", "esmfold_config", "vocab_list", "rope_theta"});
}

constexpr const char* kModel = "transformers 5.12 models/esm/modeling_esm.py: EsmModel.forward";
constexpr const char* kEmbeddings = "transformers 5.12 models/esm/modeling_esm.py: EsmEmbeddings.forward";
constexpr const char* kSelf = "transformers 5.12 models/esm/modeling_esm.py: EsmSelfAttention.forward";
constexpr const char* kOutput = "transformers 5.12 models/esm/modeling_esm.py: EsmOutput.forward";
constexpr const char* kIntermediate = "transformers 5.12 models/esm/modeling_esm.py: EsmIntermediate.forward";
constexpr const char* kGelu = "transformers 5.12 models/esm/modeling_esm.py: gelu";
constexpr const char* kLayer = "transformers 5.12 models/esm/modeling_esm.py: EsmLayer.forward";
constexpr const char* kHead = "transformers 5.12 models/esm/modeling_esm.py: EsmLMHead.forward";
constexpr const char* kPooler = "transformers 5.12 models/esm/modeling_esm.py: EsmPooler.forward";

constexpr ClassSuffix kClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                    {"ForTokenClassification", Head::kTokenClassification},
                                    {"Model", Head::kNone}};

// x · 0.5 · (1.0 + erf(x / √2)): erf keeps its input, the product keeps both of its factors.
Tensor written_gelu(Net& net, Tensor x_in) {
  Scope in(net.tape, "", kGelu);
  const Tensor x = std::move(x_in);
  const Tensor half = mul_scalar(x);
  Tensor bell = erf(mul_scalar(x));
  bell = add_scalar(std::move(bell));
  return mul(half, std::move(bell));
}

// token_dropout: masked tokens become 0, and the rest is scaled by how many of a row are left, in fp32.
Tensor drop_tokens(Net& net, Tensor embeds_in) {
  Tape& t = net.tape;
  const Tensor embeds = std::move(embeds_in);
  Tensor mask = t.allocate(Shape{net.B, net.S, Dim(1)}, Dtype::kBool, "eq");
  Tensor h = masked_fill(embeds, std::move(mask));
  Tensor scaled = mul_scalar(h);
  Tensor left = t.allocate(Shape{net.B, Dim(1), Dim(1)}, Dtype::kFp32, "rsub");
  scaled = div(std::move(scaled), std::move(left));
  return to(std::move(scaled), embeds.dtype());
}

Tensor embeddings(Net& net) {
  Scope in(net.tape, "esm.embeddings", kEmbeddings);
  net.tape.buffer("embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor ids = position_ids_from_padding(net);
  Tensor h = net.token_embedding("esm.embeddings.word_embeddings", net.H);
  if (net.arch.embedding_scale) h = drop_tokens(net, std::move(h));
  if (net.arch.rotary_dim == 0) {
    const Tensor positions =
        net.embedding("esm.embeddings.position_embeddings", ids, Dim(net.arch.max_positions), net.H);
    h = add(std::move(h), positions);
  }
  if (net.arch.norm_before) h = net.layer_norm("esm.embeddings.layer_norm", std::move(h));
  if (net.attention_mask.defined()) {
    const Dtype dtype = h.dtype();
    h = to(mul(std::move(h), unsqueeze(net.attention_mask, 2)), dtype);
  }
  return h;
}

Tensor embed(Net& net) {
  Tensor h = embeddings(net);
  Scope in(net.tape, "", kModel);
  make_bidirectional_mask(net, h);
  if (net.arch.rotary_dim > 0) rotary_tables(net, h.dtype(), net.arch.rotary_dim);
  net.model_locals = {h};
  return h;
}

Tensor self_attention(Net& net, const Tensor& x) {
  Scope in(net.tape, "attention.self", kSelf);
  Tensor q = split_heads(net, net.linear("attention.self.query", x, net.Q, true), net.A, net.hd);
  Tensor k = split_heads(net, net.linear("attention.self.key", x, net.Q, true), net.A, net.hd);
  const Tensor v = split_heads(net, net.linear("attention.self.value", x, net.Q, true), net.A, net.hd);
  q = mul_scalar(std::move(q));
  if (net.arch.rotary_dim > 0) {
    Rotated turned = rotate_in_fp32(net, std::move(q), std::move(k));
    q = std::move(turned.q);
    k = std::move(turned.k);
  }
  return attention(net, q, k, v, encoder_attention(net));
}

// EsmSelfOutput and EsmOutput: dense, dropout, the sum.
Tensor join(Net& net, const char* module, const char* dense, Tensor x, const Tensor& input) {
  Scope in(net.tape, module, kOutput);
  Tensor h = net.linear(dense, std::move(x), net.H, true);
  h = dropout(std::move(h), net.arch.residual_dropout);
  return add(std::move(h), input);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const Tensor x = std::move(hidden);
  Tensor attended;
  {
    const Tensor normed = net.layer_norm("attention.LayerNorm", x);
    attended = join(net, "attention.output", "attention.output.dense", self_attention(net, normed), x);
    net.attention_weights.reset();  // EsmAttention.forward has the name for them, and returns
  }
  const Tensor normed = net.layer_norm("LayerNorm", attended);
  Tensor h;
  {
    Scope intermediate(net.tape, "intermediate", kIntermediate);
    h = written_gelu(net, net.linear("intermediate.dense", normed, net.F, true));
  }
  return join(net, "output", "output.dense", std::move(h), attended);
}

Tensor norm(Net& net, Tensor hidden) {
  Tensor h;
  {
    Scope in(net.tape, "", kModel);
    h = net.layer_norm("esm.encoder.emb_layer_norm_after", std::move(hidden));
  }
  // Of contacts between residues: no loss reads it.
  const Dim maps(net.arch.num_layers * net.arch.num_heads);
  const Tensor weight = net.linear_weight("esm.contact_head.regression", Dim(1), maps);
  const Tensor bias = net.parameter("esm.contact_head.regression", "bias", Shape{Dim(1)});
  return h;
}

Tensor lm_head(Net& net, Tensor hidden) {
  Scope in(net.tape, "lm_head", kHead);
  Tensor h = net.linear("lm_head.dense", std::move(hidden), net.H, true);
  h = net.layer_norm("lm_head.layer_norm", written_gelu(net, std::move(h)));
  Tensor logits = net.lm_head("lm_head.decoder", std::move(h), net.V, false);
  return add(std::move(logits), net.parameter("lm_head", "bias", Shape{net.V}));
}

Tensor pool(Net& net, const Tensor& hidden) {
  Scope in(net.tape, "pooler", kPooler);
  return tanh(net.linear("esm.pooler.dense", select(hidden, 1), net.H, true));
}

Outputs body(Net& net, const Program& program, Tensor hidden) {
  return body_with_pooler(net, program, std::move(hidden), pool);
}

constexpr HeadForward kHeads[] = {{Head::kMaskedLm, masked_lm},
                                  {Head::kSequenceClassification, roberta_sequence},
                                  {Head::kTokenClassification, encoder_tokens},
                                  {Head::kNone, body}};

}  // namespace

const Program kProgram = {one_stack<embed, layer, norm>, lm_head, kHeads};

const Family kRows[] = {
    {"esm", "Esm", "EsmForMaskedLM", kClasses, read_esm_config, &kProgram, "esm.encoder.layer", kNamesAbsentToo},
};

extern const FamilyRows esm_rows;
const FamilyRows esm_rows = kRows;

}  // namespace tidemark
