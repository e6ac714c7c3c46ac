#pragma once

#include "core/layers/kv_cache.hpp"
#include "core/layers/program.hpp"

namespace tidemark {

/// Where a model's stacks, parameters and buffers begin on the tape behind those of the models before it.
struct Place {
  std::size_t stack = 0, parameters = 0;
  Count buffers = 0;
};

/// Behind all that there is: where a model beside these begins.
Place behind(const Net& net);

/// A forward of that model begins. `whole`: the net that it is a part of, or itself.
void begin_at(const Place& place, Net& whole);

/// The model's outputs of a forward with output_hidden_states=True, as far as names keep them.
struct WholeOutputs {
  Outputs outputs;  ///< logits
  KvCache cache;    ///< past_key_values
  std::vector<std::pair<std::int16_t, Tensor>> hidden_states;
};

/// The names go, each tensor in a stretch of its layer.
void let_go(Net& net, WholeOutputs& names);

/// PPOTrainer's forward() of a language model: all logits, hidden states and, where nothing is said of use_cache
/// (`caches`), keys and values. `prepared`: by accelerate.
WholeOutputs call_whole(Net& net, Net& whole, const Program& program, bool prepared, bool caches = true);

/// The same of the model inside, without its head, whose last hidden state is returned.
Tensor call_body(Net& net, Net& whole, bool caches, bool hands_out, WholeOutputs& made);

/// The same of a model that scores: a number for each token, and what its outputs have beside. `caches`: nothing is
/// said of use_cache; `hands_out`: with output_hidden_states=True.
struct Scored {
  Tensor values;
  WholeOutputs rest;
};
Scored call_judge(Net& judge, Net& whole, bool caches, bool hands_out = true);

/// The same once, as accelerate has prepared it, of the batch that it was handed; batch and outputs go.
void score_once(Net& judge, Net& whole, bool caches);

/// What was declared behind the first so many parameters is not trained.
void freeze_behind(Tape& tape, std::size_t parameters);

/// PPOTrainer's loss of a micro-batch, from logits and values of all tokens.
Tensor ppo_loss(Net& net, const Tensor& logits, Tensor values);

/// What it logs of a micro-batch's logits behind its backward; the probabilities keep their name.
void log_policy(Net& net, const Tensor& logits, Tensor& probabilities);

}  // namespace tidemark
