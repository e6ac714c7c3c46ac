#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// The model as Megatron-Core's GPTModel, or BigScience's GPTModelPipe, builds it: its program in place of
/// transformers', the vocabulary padded to a multiple of 128 for each tensor-parallel GPU (megatron/training/tokenizer:
/// _vocab_size_with_padding). An error where GPTModel has no such layers, or the program does not know them.
void as_megatron(TrainingJob& job, Architecture& architecture, Issues& issues);

/// GPUs that divide each expert (expert_tensor_parallel_size): unless it is stated, as many as divide the rest.
inline Count gpus_of_expert(const TrainingJob& job) {
  return job.expert_tensor > 0 ? job.expert_tensor : job.tensor.degree;
}

}  // namespace tidemark
