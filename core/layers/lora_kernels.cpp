// Where Axolotl puts its functions into a model (067b021 src/axolotl/monkeypatch/lora_kernels.py):
// apply_lora_kernel_patches, and the attention's forward that patch_self_attn_lora rewrites.
#include <algorithm>

#include "core/job/framework.hpp"
#include "core/job/lora_kernels.hpp"
#include "core/layers/fused_lora.hpp"
#include "core/layers/net.hpp"

namespace tidemark {
namespace {

constexpr const char* kFunctions = "axolotl 067b021 src/axolotl/kernels/lora.py";

// What releases of Axolotl did otherwise.
FusedLora functions_of(const TrainingJob& job) {
  FusedLora how;
  if (job.framework.name == "unsloth") {  // kernels/fast_lora.py
    how.overwrites_input = true;
    how.casts_ahead = how.reuses_gradients = false;
    how.unpacks_into_buffer = true;
    how.unpacks_scales = !is_unsloth_by_rows(job.framework);  // kernels/nf4.py: dequantize_nf4
    return how;
  }
  how.keeps_input_twice = true;
  how.adds_in_product = axolotl_is_of(job, kFusedAddition);
  how.overwrites_input = !axolotl_is_of(job, kFreshGradient);
  return how;
}

// apply_lora_qkv and its like: one dropout for all that share x. Reference forwards of a model whose adapters are off
// get no adapter's weights, and so none.
Tensor dropped(const Net& net, const Tensor& x) {
  const double p = net.job.adapter.lora_dropout;
  return p > 0.0 && !net.adapters_off ? dropout(x, p) : Tensor();
}

}  // namespace

FusedLinear Net::fused_linear(const Projection& layer, Dim in_features) {
  Scope in(tape, layer.name, source());
  const Base base{layer.name, in_features, layer.out_features, packs_here(), {}, {}};
  FusedLinear fused;
  fused.in_features = in_features;
  fused.out_features = layer.out_features;
  fused.unpacked = job.recipe.weights;  // QuantState.dtype
  const Shape shape{layer.out_features, in_features};
  if (base.quantised) {
    fused.packed = packed_weight(layer.name, shape);
  } else {
    fused.weight = declare(layer.name, "weight", shape, ModuleKind::kLinear);
  }
  if (layer.bias) fused.bias = parameter(layer.name, "bias", Shape{layer.out_features});
  const AdapterWeights weights = adapter_weights(base);
  if (adapters_off) return fused;
  fused.a = weights.a;
  fused.b = weights.b;
  return fused;
}

void Net::at_once(const Tensor& x, std::initializer_list<Projection> layers) {
  // find_self_attn_in_layer: of attention that takes another layer's keys nothing is replaced.
  if (arch.shared_kv_layers > 0 && layer_index >= arch.num_layers - arch.shared_kv_layers) return;
  const auto adapted = [this](const Projection& layer) { return rank_of(layer.name) > 0; };
  if (!std::all_of(layers.begin(), layers.end(), adapted)) return;
  Scope in(tape, layers.size() == 1 ? layers.begin()->name : "self_attn", kFunctions);
  std::vector<FusedLinear> fused;
  for (const Projection& layer : layers) fused.push_back(fused_linear(layer, x.dim(-1)));
  Tensor seen = dropped(*this, x);
  FusedLora how = functions_of(job);
  // kernels/fast_lora.py: LoRA_W.backward: dY @ W.t()
  if (job.framework.name == "unsloth" && layers.size() == 1) how.overwrites_input = false;
  std::vector<Tensor> results = fused_projections(how, x, std::move(seen), fused);
  for (std::size_t i = results.size(); i-- > 0;) made_.emplace_back(layers.begin()[i].name, std::move(results[i]));
}

Tensor Net::gated_at_once(const Tensor& x, Dim width) {
  if (!job.lora_kernels.mlp) return {};
  const bool bias = arch.mlp_bias;
  const Projection gate{"mlp.gate_proj", width, bias}, up{"mlp.up_proj", width, bias}, down{"mlp.down_proj", H, bias};
  for (const Projection* layer : {&gate, &up, &down}) {
    if (rank_of(layer->name) == 0) return {};
  }
  Scope in(tape, "mlp", kFunctions);
  FusedMlp mlp;
  mlp.gate = fused_linear(gate, x.dim(-1));
  mlp.up = fused_linear(up, x.dim(-1));
  mlp.down = fused_linear(down, gate.out_features);
  Tensor seen = dropped(*this, x);
  return fused_mlp(functions_of(job), x, std::move(seen), mlp);
}

void qkv_at_once(Net& net, const Tensor& x, bool bias) {
  qkv_at_once(net, x, net.Q, bias);
}

void qkv_at_once(Net& net, const Tensor& x, Dim queries, bool bias) {
  qkv_at_once(net, x, queries, net.K, bias);
}

void qkv_at_once(Net& net, const Tensor& x, Dim queries, Dim keys, bool bias, bool values) {
  if (!net.job.lora_kernels.qkv) return;
  const Net::Projection q{"self_attn.q_proj", queries, bias}, k{"self_attn.k_proj", keys, bias};
  if (values) {
    net.at_once(x, {q, k, {"self_attn.v_proj", keys, bias}});
  } else {
    net.at_once(x, {q, k});
  }
}

Tensor normed_and_turned(Net& net, const char* name, Tensor x, const Tensor& cos, const Tensor& sin) {
  Scope in(net.tape, name, "axolotl 067b021 src/axolotl/kernels/gemma4_fused_rope.py: fused_rms_norm_rope");
  Tensor weight = net.parameter(name, "weight", Shape{x.dim(-1)});
  return transpose(norm_rope(std::move(x), std::move(weight), cos, sin), 1, 2);
}

void turn_at_once(Net& net, Tensor& q, Tensor& k) {
  q = normed_and_turned(net, "self_attn.q_norm", std::move(q), net.shared.cos, net.shared.sin);
  k = normed_and_turned(net, "self_attn.k_norm", std::move(k), net.shared.cos, net.shared.sin);
}

}  // namespace tidemark
