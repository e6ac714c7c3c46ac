#pragma once

#include "core/exchange/python/job.hpp"

namespace tidemark::exchange {

/// What is read of a program's job, a file per topic. A later one may ask what an earlier one told: read_job.cpp has
/// their order.

void find_parts(PyJob& job);
void read_task(PyJob& job);
void read_model(PyJob& job);
void read_quantization(PyJob& job);
void read_method(PyJob& job);
void read_arguments(PyJob& job);
/// Plugins that an Accelerator is handed, under the keys of accelerate's YAML (accelerate 1.14 utils/dataclasses.py).
void read_plugins(PyJob& job);
/// What a program divides the model by itself: torch's FullyShardedDataParallel and fully_shard, DeepSpeed's engine.
void read_wrappers(PyJob& job);
/// Lightning's Trainer and Fabric (lightning 2.5 fabric/plugins/precision/precision.py, pytorch/strategies/fsdp.py,
/// pytorch/strategies/deepspeed.py).
void read_lightning(PyJob& job);
void read_lengths(PyJob& job);
void read_checkpointing(PyJob& job);
void read_precision(PyJob& job);
/// Programs with an argparse of their own: DeepSpeed's, diffusers'.
void read_own_flags(PyJob& job);
void read_reference(PyJob& job);
void read_rollout(PyJob& job);
void read_other_models(PyJob& job);
/// What no line tells, and what to know of the reading.
void ask(PyJob& job);
/// Words of the calls that make the job which nobody asked for. What a class has by itself is no word of the job's.
void tell_unread(PyJob& job);

// ---- parts of the topics above

/// A model by its name, or by the end of a local path that speaks.
void say_model(PyJob& job, const PyValue& name);
/// nanoGPT, minGPT and those made after them. Whether it is one.
bool read_own_gpt(PyJob& job);
/// What is trained beside the model's weights, or in their place, as the configuration of the adapter says it.
void read_adapter(PyJob& job);
void read_batch(PyJob& job);
void read_optimizer(PyJob& job);
/// How the trainer's arguments divide the model.
void read_sharding(PyJob& job);
void read_evaluation(PyJob& job);
void read_padding(PyJob& job);

/// The dtype that weights are loaded or cast in: "bf16", "fp16", "fp32", "auto"; empty where nothing says it.
std::string weights_dtype(const PyJob& job, PyValue& by);
/// What nothing says of the weights' dtype comes to.
std::string no_dtype(const PyJob& job);
/// The dtype that a call loads a model in, as it is written; null where it does not say.
const PyValue* load_dtype(const PyObject& load);
/// "bf16", "fp16" or else "fp32", by such a word.
const char* dtype_of(std::string_view word);

}  // namespace tidemark::exchange
