// ViT: patches through a convolution, a class token, pre-norm layers, a classifier on the class token.
#include "core/blocks/losses.hpp"
#include "core/blocks/program.hpp"

namespace tidemark {
namespace {

constexpr const char* kEmbeddings = "transformers 5.12 models/vit/modeling_vit.py: ViTEmbeddings.forward";
constexpr const char* kAttention = "transformers 5.12 models/vit/modeling_vit.py: ViTAttention.forward";
constexpr const char* kMlp = "transformers 5.12 models/vit/modeling_vit.py: ViTMLP.forward";
constexpr const char* kLayer = "transformers 5.12 models/vit/modeling_vit.py: ViTLayer.forward";
constexpr const char* kHead = "transformers 5.12 models/vit/modeling_vit.py: ViTForImageClassification.forward";

// The batch is pictures; a token is a patch, and the class token is one more.
void image_inputs(Net& net) {
  net.S = Dim(net.arch.max_positions, Symbol::kSequence);
  net.T = Dim(net.B.n * net.S.n, Symbol::kTokens);
  const Dim side(net.arch.image_size);
  net.input_ids =
      net.tape.allocate(Shape{net.B, Dim(net.arch.num_channels), side, side}, net.weight_dtype(4), "pixel_values");
  net.labels = net.tape.allocate(Shape{net.B}, Dtype::kInt64, "labels");
}

Tensor embed(Net& net) {
  Scope in(net.tape, "vit.embeddings", kEmbeddings);
  const Count p = net.arch.patch_size;
  const Dim patches(net.S.n - 1);
  Tensor embeddings;
  {
    Tensor weight = net.parameter("vit.embeddings.patch_embeddings.projection", "weight",
                                  Shape{net.H, Dim(net.arch.num_channels), Dim(p), Dim(p)});
    Tensor bias = net.parameter("vit.embeddings.patch_embeddings.projection", "bias", Shape{net.H});
    Tensor patched = patch_convolution(net.input_ids, std::move(weight), std::move(bias));
    patched = view(std::move(patched), Shape{net.B, net.H, patches});
    embeddings = transpose(std::move(patched), 1, 2);
  }
  Tensor token = net.parameter("vit.embeddings", "cls_token", Shape{Dim(1), Dim(1), net.H});
  const Tensor tokens = expand(std::move(token), Shape{net.B, Dim(1), net.H});
  embeddings = cat({&tokens, &embeddings}, 1);
  Tensor positions = net.parameter("vit.embeddings", "position_embeddings", Shape{Dim(1), net.S, net.H});
  embeddings = add(std::move(embeddings), std::move(positions));
  embeddings = dropout(std::move(embeddings), net.arch.embedding_dropout);
  net.model_locals = {embeddings};
  return embeddings;
}

Tensor attention_block(Net& net, Tensor hidden) {
  Scope in(net.tape, "attention", kAttention);
  const Tensor x = std::move(hidden);
  const bool bias = net.arch.attention_bias;
  Tensor q = net.linear("attention.q_proj", x, net.Q, bias);
  q = split_heads(net, std::move(q), net.A, net.hd);
  Tensor k = net.linear("attention.k_proj", x, net.Q, bias);
  k = split_heads(net, std::move(k), net.A, net.hd);
  Tensor v = net.linear("attention.v_proj", x, net.Q, bias);
  v = split_heads(net, std::move(v), net.A, net.hd);
  AttentionOptions options;
  options.dropout = net.arch.attention_dropout;
  options.causal = false;
  options.has_groups = false;
  Tensor out = attention(net, q, k, v, options);
  return net.linear("attention.o_proj", std::move(out), net.H, true);
}

Tensor mlp(Net& net, Tensor hidden) {
  Scope in(net.tape, "mlp", kMlp);
  const Tensor x = std::move(hidden);
  Tensor h = net.linear("mlp.fc1", x, net.F, true);
  {
    Scope act(net.tape, "mlp.activation_fn", kMlp);
    h = activate(net.arch.activation, std::move(h));
  }
  return net.linear("mlp.fc2", std::move(h), net.H, true);
}

Tensor layer(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kLayer);
  const double p = net.arch.residual_dropout;
  Tensor residual = std::move(hidden);
  Tensor h = net.layer_norm("layernorm_before", residual);
  h = attention_block(net, std::move(h));
  h = dropout(std::move(h), p);
  h = add(std::move(h), residual);
  residual = h;
  h = net.layer_norm("layernorm_after", std::move(h));
  h = mlp(net, std::move(h));
  h = dropout(std::move(h), p);
  return add(std::move(h), residual);
}

Tensor head(Net& net, Tensor hidden) {
  Scope in(net.tape, "", kHead);
  Tensor sequence = net.layer_norm("vit.layernorm", std::move(hidden));
  net.model_locals = {sequence};
  Tensor pooled = select(std::move(sequence), 1);
  return net.linear("classifier", std::move(pooled), Dim(net.arch.num_labels), true);
}

}  // namespace

const Program kVitProgram = {embed, layer, head, image_inputs, plain_cross_entropy};

}  // namespace tidemark
