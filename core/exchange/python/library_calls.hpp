#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/exchange/python/object.hpp"

namespace tidemark::exchange {

/// What a call is by its name: transformers, PEFT, TRL, Unsloth, sentence-transformers and timm.

/// A class of trainers, and what it says of the task; empty where that is open.
struct PyTrainer {
  std::string_view name;
  std::string_view task;
};
std::span<const PyTrainer> known_trainers();

/// A trainer's arguments: TrainingArguments and what derives from it.
bool is_arguments(const PyObject& call);

/// It makes the model, with weights or without.
bool loads_model(const PyObject& call);

/// unsloth 2026.10.9 __init__.py: FastLanguageModel, FastVisionModel, FastModel and others.
bool is_fast_adapter(const PyObject& call);

/// unsloth 2026.10.9 models/sentence_transformer.py: 16 bits, nothing checkpointed and an encoder's modules unless
/// they are told.
bool is_fast_encoder(const PyObject& call);

/// The kind of adapter that a configuration of PEFT's beside LoraConfig makes; empty for any other object.
std::string_view adapter_kind(const PyObject& call);

/// The kind of a configuration of PEFT's that the request does not have, in small letters: "fourierft"; empty for any
/// other object.
std::string unmodelled_kind(const PyObject& call);

}  // namespace tidemark::exchange
