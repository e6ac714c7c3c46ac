// The loops over layers: which of them the tape runs, and which are checkpointed.
#include "core/job/defaults.hpp"
#include "core/job/mixed_precision.hpp"
#include "core/layers/full_name.hpp"
#include "core/layers/program.hpp"
#include "core/layers/prompts.hpp"

namespace tidemark {

bool checkpointed(const TrainingJob& job, Count layer) {
  switch (job.checkpointing) {
    case Checkpointing::kFull:
    case Checkpointing::kOffload:
      return true;
    case Checkpointing::kEvery:
      // torchtitan 0.2 distributed/activation_checkpoint.py _apply_layer_sac counts from one.
      return (job.framework.name == "torchtitan" ? layer + 1 : layer) % job.checkpoint_every == 0;
    default:
      return false;
  }
}

namespace {

std::string layer_path(const Stack& stack, Count layer) {
  return std::string{stack.path}.append(".").append(std::to_string(layer));
}

// MixedPrecisionPolicy.cast_forward_inputs: a unit of FSDP 2 gets its input in the dtype of its gathered weights.
// Source: torch 2.14 distributed/fsdp/_fully_shard/_fsdp_state.py: FSDPState._pre_forward.
std::optional<Dtype> dtype_of_policy(const TrainingJob& job) {
  const DataParallel& how = job.data_parallel;
  if (!how.is_sharded() || how.sharding != Sharding::kFsdp2) return std::nullopt;
  return mixed_precision(job).gathered;
}

// The same of a table that layers are handed: cast for each, outside of its checkpoint.
Tensor table_as_policy_has_it(Net& net, const Tensor& table) {
  const std::optional<Dtype> gathered = dtype_of_policy(net.job);
  if (!gathered || *gathered == table.dtype()) return table;
  return net.tape.allocate(table.shape(), *gathered, "_to_copy");
}

// What is gathered with the layer before and let go in the one behind needs two layers for a period: torchtitan's
// experts in forward, and in backward what FSDP 1 made ahead in forward (FlatUnits::backward_leaves).
bool spans_three_layers(const TrainingJob& job) {
  const DataParallel& how = job.data_parallel;
  const bool ahead = how.is_sharded() && how.sharding == Sharding::kFsdp1 && how.fsdp.forward_prefetch;
  return ahead || (job.expert > 1 && job.framework.name == "torchtitan");
}

}  // namespace

std::int16_t Net::card_of(std::string_view path) const {
  return job.pipeline.card_of(full_name(whole_->arch, path));
}

Tensor Net::arrived(const char* module, Tensor x) const {
  if (!is_laid() || tape.in_layer()) return x;
  return to_card(std::move(x), card_of(module));
}

// The plan of a stack is made when the forward first comes to it, and kept.
const LayerPlan::Stack& Net::planned(const Stack& stack) {
  Net& whole = *whole_;
  LayerPlan& plan = whole.plan_;
  if (whole.next_stack_ == plan.stacks.size()) {
    first_layer = stage != nullptr ? 0 : plan.layers();
    std::vector<std::int64_t> kinds;
    kinds.reserve(static_cast<std::size_t>(stack.layers));
    // ZeRO's buckets fill across layers: none of them is like another. What FSDP 1 has of a decoder's layers stays
    // until the encoder's states have their gradient.
    const bool kept = job.frees_frozen_units_by_inputs() && whole.arch.num_decoder_layers > 0;
    // A unit that has several layers counts each of them.
    const bool apart = kept || job.runs_deepspeed() || plan.layers() < unwrapped_layers(whole.arch, job);
    const ModelStage all{0, stack.layers};
    const ModelStage& ours = stage != nullptr ? *stage : all;
    const Count alternate = spans_three_layers(job) ? 2 : 1;
    for (Count i = ours.begin; i < ours.end; ++i) {
      kinds.push_back(apart ? i : layer_kind(*this, i) * alternate + i % alternate);
    }
    for (Count i = 0; is_laid() && i < stack.layers; ++i) {
      kinds[static_cast<std::size_t>(i)] =
          kinds[static_cast<std::size_t>(i)] * 2 + (card_of(layer_path(stack, i)) == job.pipeline.rank ? 1 : 0);
    }
    if (whole.kinds_ != nullptr) {
      plan.add_kinds(stack.path, kinds, *whole.kinds_);
    } else {
      plan.add_stack(stack.path, kinds);
      plan.stacks.back().skipped = ours.begin;
    }
  }
  const LayerPlan::Stack& known = plan.stacks[whole.next_stack_++];
  first_layer = stage != nullptr ? 0 : known.first;  // the plan has a GPU's stages one after another
  return known;
}

Tensor Net::run_layer(const Stack& stack, Count layer, Tensor hidden) {
  layer_index = layer;
  Tensor cast;  // module.py _call_impl: the arguments as a hook has made them are there until forward returns
  const std::optional<Dtype> gathered = dtype_of_policy(job);
  // A tower that is declared alone gets no states; a layer of the root's unit has no hook.
  if (gathered && hidden.defined() && hidden.dtype() != *gathered &&
      first_layer + layer >= unwrapped_layers(whole_->arch, job)) {
    cast = hidden = to(std::move(hidden), *gathered);
  }
  Tensor out = is_laid() ? laid_layer(stack, layer, std::move(hidden)) : stack.layer(*this, std::move(hidden));
  attention_weights.reset();
  return out;
}

// accelerate 1.14 hooks.py: AlignDevicesHook.pre_forward: what a layer is handed from another card is copied for its
// call, and once more as it is computed again. Of tables and masks of two kinds it is handed its own.
Tensor Net::laid_layer(const Stack& stack, Count layer, Tensor hidden) {
  const std::int16_t card = card_of(layer_path(stack, layer));
  const Shared there = shared;
  const bool local = is_sliding_layer(layer) && shared.local_cos.defined(), slides_here = slides(layer);
  const auto bring = [&](Tensor Shared::*table, bool is_handed) {
    if (is_handed && (shared.*table).defined()) shared.*table = to_card(shared.*table, card);
  };
  bring(&Shared::position_ids, true);
  bring(&Shared::cos, !local);
  bring(&Shared::sin, !local);
  bring(&Shared::local_cos, local);
  bring(&Shared::local_sin, local);
  bring(&Shared::causal_mask, !slides_here);
  bring(&Shared::sliding_mask, slides_here);
  bring(&Shared::bias, true);
  const Tensor argument = to_card(std::move(hidden), card);
  Tensor out = stack.layer(*this, argument);
  shared = there;
  return out;
}

namespace {

// What T5's, BART's and DETR's loops hand to a checkpointed layer by position beside the hidden states: re-entrant
// checkpointing detaches these, and each layer's copy gets a gradient of its own (transformers 5.12
// modeling_t5.py T5Stack.forward, modeling_bart.py BartDecoder.forward, modeling_detr.py DetrDecoder.forward). A layer
// of T5 returns the biases.
constexpr Tensor Net::Shared::*kArguments[] = {&Net::Shared::bias, &Net::Shared::cross_bias, &Net::Shared::condition,
                                               &Net::Shared::encoder_states};
constexpr std::size_t kReturned = 2;

// unsloth_zoo 2026.8.13 gradient_checkpointing.py: UnslothCheckpointFunction.forward: the last layer's input and
// small ones stay where they are.
CheckpointInput input_of_checkpoint(Net& net, const Stack& stack, Count layer, const Tensor& hidden) {
  if (net.job.checkpointing != Checkpointing::kOffload) return CheckpointInput::kKept;
  if (net.job.framework.name != "unsloth") return CheckpointInput::kOnHost;
  const bool stays = layer + 1 == stack.layers || !net.tape.above(hidden.numel(), kUnslothKeeps);
  return stays ? CheckpointInput::kKept : CheckpointInput::kInBuffer;
}

bool is_trained(const Tensor& argument) {
  return argument.defined() && argument.requires_grad();
}

}  // namespace

Tensor Net::checkpointed_layer(const Stack& stack, Count layer, const Tensor& hidden) {
  const bool has_context =
      stack.hands_states || whole_->arch.num_decoder_layers > 0 || whole_->arch.denoiser.latents > 0;
  const bool by_position = job.use_reentrant && has_context;
  const bool returns = by_position && whole_->arch.num_buckets > 0;
  // What a re-entrant checkpoint was handed stays as long as the graph.
  const bool hands = stack.hand != nullptr && !job.use_reentrant;
  Shared all;
  if (hands) {
    all = shared;
    stack.hand(*this, layer);
  }
  const auto call = [this, stack, layer, returns, first = first_layer, tables = shared](Tensor x) {
    const Shared outside = std::move(shared);
    shared = tables;
    first_layer = first;
    std::size_t next = 0;
    for (const auto argument : kArguments) {
      if (next < tape.detached().size() && is_trained(shared.*argument)) shared.*argument = tape.detached()[next++];
    }
    Tensor result = run_layer(stack, layer, std::move(x));
    for (std::size_t i = 0; returns && i < kReturned; ++i) {
      if ((shared.*kArguments[i]).defined()) tape.return_also(shared.*kArguments[i]);
    }
    // What a layer hands on to the next ones it hands on once.
    if (tape.phase() != Phase::kForward) shared = outside;
    return result;
  };
  std::vector<Tensor> further;
  for (const auto argument : kArguments) {
    if (by_position && is_trained(shared.*argument)) further.push_back(shared.*argument);
  }
  const CheckpointInput where = input_of_checkpoint(*this, stack, layer, hidden);
  Tensor out = tape.checkpoint(call, hidden, job.use_reentrant, where, further);
  std::vector<Tensor> returned = tape.take_more_outputs();
  std::size_t next = 0;
  for (std::size_t i = 0; returns && i < kReturned; ++i) {
    if ((shared.*kArguments[i]).defined()) shared.*kArguments[i] = std::move(returned[next++]);
  }
  if (hands) shared = std::move(all);
  return out;
}

Tensor Net::layers(const Stack& stack, Tensor hidden) {
  const LayerPlan::Stack known = planned(stack);
  if (job.prefix_length() > 0 && !adapters_off) begin_with_prefix(*this, known);
  const bool hands_table = job.framework.name == "torchtitan" && shared.local_cos.defined();
  const Tensor table = hands_table ? shared.local_cos : Tensor();
  // transformers 5.12 utils/output_capturing.py: capture_outputs: what the first layer is handed, and what each but the
  // last returns; in the last one's place stands what the model returns (tie_last_hidden_states).
  if (hands_out_all) handed_out.emplace_back(-1, hidden);
  for (Count i = known.tape_begin; i < known.tape_end; ++i) {
    const auto instance = static_cast<std::int16_t>(i);
    const Count layer = known.skipped + plan().tape_layers[static_cast<std::size_t>(i)].layer;
    tape.begin_segment(Phase::kForward, instance);
    tape.use_parameters_of(instance);
    if (tape.placement() != nullptr) tape.placement()->enter_layer(instance, hidden.requires_grad());
    if (hands_table) shared.local_cos = table_as_policy_has_it(*this, table);
    Tensor out;
    if (stack.checkpoints && !evaluates && (stack.always || checkpointed(job, layer))) {
      out = checkpointed_layer(stack, layer, hidden);
    } else {
      out = run_layer(stack, layer, hidden);
      tape.take_more_outputs();  // nobody wants them
    }
    if (tape.placement() != nullptr) tape.placement()->leave_layer(instance);
    hidden = std::move(out);
    if (hands_out_all && i + 1 < known.tape_end) handed_out.emplace_back(instance, hidden);
    if (stack.after != nullptr) {
      tape.resume_parameters_outside_layers();
      layer_index = layer;
      hidden = stack.after(*this, std::move(hidden));
    }
  }
  if (hands_table) shared.local_cos = table;
  tape.begin_segment(stack.then, -1);
  tape.hold_leaving_inputs();
  tape.resume_parameters_outside_layers();
  return hidden;
}

namespace {

void let_go(Tape& tape, std::vector<std::pair<std::int16_t, Tensor>>& names) {
  const Phase phase = tape.phase();
  for (auto& [instance, hidden] : names) {
    tape.begin_segment(phase, instance);
    hidden.reset();
  }
  names.clear();
  tape.begin_segment(phase, -1);
}

}  // namespace

void Net::let_handed_out_go() {
  let_go(tape, handed_out);
}

void Net::keep_image_output(const Tensor& made) {
  if (job.framework.at_least(5, 18)) image_outputs.emplace_back(-1, made);
}

bool Net::returns_image_outputs() const {
  return job.framework.at_least(5, 24);
}

void Net::let_image_outputs_go() {
  if (!image_outputs.empty()) let_go(tape, image_outputs);
}

Tensor run_one_stack(Net& net, Tensor (*embed)(Net&), Tensor (*layer)(Net&, Tensor), Tensor (*norm)(Net&, Tensor),
                     void (*hand)(Net&, Count)) {
  Stack stack{net.arch.layers_path, net.arch.num_layers, layer};
  stack.then = Phase::kLoss;
  stack.hand = hand;
  Tensor hidden = embed(net);
  if (net.stage != nullptr) net.model_locals.clear();
  hidden = net.layers(stack, std::move(hidden));
  if (net.stage != nullptr && !net.stage->norm) return hidden;
  if (net.is_laid()) hidden = to_card(std::move(hidden), static_cast<std::int16_t>(net.job.pipeline.norm));
  if (net.stage != nullptr) net.model_locals = {hidden};
  return norm(net, std::move(hidden));
}

}  // namespace tidemark
