#include "core/families/megatron_lora.hpp"

#include "core/families/megatron.hpp"
#include "core/tape/megatron_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kAdapter = "Megatron-Bridge 0.3.1 src/megatron/bridge/peft: LoRALinear, ParallelLinearAdapter";

// A factor, of which each of the GPUs that have a part of the layer has an equal part.
Tensor factor(Net& net, const DividedLayer& layer, const char* leaf, const Shape& part) {
  const auto index = static_cast<std::size_t>(net.tape.next_parameter());
  Tensor parameter = net.adapter_weight(layer.name, leaf, part);
  const Count gpus = layer.experts > 0 ? net.job.expert * gpus_of_expert(net.job) : net.job.tensor.degree;
  net.tape.parameters()[index].whole = part.numel() * gpus;
  return parameter;
}

// peft/utils.py ParallelLinearAdapter.forward. Of A either the ranks are divided or what comes in, of B what goes out;
// between them, and behind B of a layer whose input is divided, GPUs gather the other parts. With sequence parallelism
// all of the sequence comes in, of which the first product keeps its input, and this GPU's part of it remains.
Tensor update_of(Net& net, const DividedLayer& layer, Tensor x) {
  const bool of_expert = layer.experts > 0;
  const Count parts = of_expert ? gpus_of_expert(net.job) : net.job.tensor.degree;
  const Count shards = net.job.tensor.sequence && !of_expert ? parts : 1;
  const Dim r(net.job.adapter.r, Symbol::kRank), part_of_r(net.job.adapter.r / parts, Symbol::kRank);
  const bool fused = net.job.megatron.fuses_gradients, columns = layer.divides_columns;
  x = dropout(std::move(x), net.job.adapter.lora_dropout);
  if (columns && shards > 1) x = all_gathered(std::move(x), shards);
  Tensor a = factor(net, layer, "lora_A.weight", Shape{columns ? part_of_r : r, x.dim(-1)});
  const Dim out = columns ? layer.out_features : Dim(layer.out_features.n() / parts, layer.out_features.symbol());
  Tensor b = factor(net, layer, "lora_B.weight", Shape{out, r});
  Tensor update = gathered_linear(std::move(x), std::move(a), {}, 1, fused, false);
  if (columns && parts > 1) update = all_gathered_last(std::move(update), parts);
  update = gathered_linear(std::move(update), std::move(b), {}, 1, fused, false);
  if (!columns && parts > 1) update = all_gathered_last(std::move(update), parts);
  if (!columns && shards > 1) {
    const Dim rows(net.tape.quotient(update.size(0), shards), update.dim(0).symbol());
    update = narrow(std::move(update), 0, 0, rows);
  }
  return mul_scalar(std::move(update));
}

// mcore-bridge (f020e47) src/mcore_bridge/tuners/lora.py LoraParallelLinear, on Transformer Engine's grouped layers: a
// pair of factors for each expert (Megatron-Bridge has one for all).
Tensor update_of_group(Net& net, const DividedLayer& layer, Tensor x) {
  const Dim r(net.job.adapter.r, Symbol::kRank), experts(layer.experts);
  const bool fused = net.job.megatron.fuses_gradients;
  x = dropout(std::move(x), net.job.adapter.lora_dropout);
  Tensor a = factor(net, layer, "lora_A.weight", Shape{experts, r, x.dim(-1)});
  Tensor b = factor(net, layer, "lora_B.weight", Shape{experts, layer.out_features, r});
  Tensor update = grouped_linear(std::move(x), std::move(a), fused);
  return mul_scalar(grouped_linear(std::move(update), std::move(b), fused));
}

}  // namespace

Tensor with_adapter(Net& net, const DividedLayer& layer, Tensor result_in, Tensor x) {
  const Tensor result = std::move(result_in);
  const Scope in(net.tape, layer.name, kAdapter);
  const bool grouped = layer.experts > 0 && !net.job.megatron.local_layers;
  Tensor update = grouped ? update_of_group(net, layer, std::move(x)) : update_of(net, layer, std::move(x));
  return add(result, std::move(update));
}

bool begins_graph(const Net& net) {
  return net.job.has_adapter() && net.job.checkpointing == Checkpointing::kFull && net.tape.grad_enabled();
}

Tensor as_leaf(Net& net, Tensor hidden_in) {
  Tensor hidden = std::move(hidden_in);
  if (hidden.requires_grad()) return hidden;
  hidden.change().requires_grad = true;
  net.leaves.push_back(hidden);
  return hidden;
}

}  // namespace tidemark
