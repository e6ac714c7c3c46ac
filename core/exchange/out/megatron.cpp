// Megatron-LM@core_v0.12.0 megatron/training/arguments.py. Its models are built by flags: those of a model's
// config.json.
#include <algorithm>

#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {
namespace {

/// Decoders that these flags build: RMSNorm, SwiGLU, rotary positions. What a family has beside that.
struct Kind {
  std::string_view model_type;
  bool biases;  ///< on q, k and v
  bool norms;   ///< over q and k
};
constexpr Kind kKinds[] = {
    {"llama", false, false}, {"mistral", false, false}, {"qwen2", true, false}, {"qwen3", false, true}};

const Kind* kind_of(const Value& config) {
  const Value* type = config.find("model_type");
  for (const Kind& kind : kKinds) {
    if (type != nullptr && type->string == kind.model_type) return &kind;
  }
  return nullptr;
}

Count count_of(const Value& object, std::string_view key, Count standard) {
  const Value* value = object.find(key);
  return value != nullptr && value->is_integer() ? value->integer : standard;
}

bool is_on(const Value& object, std::string_view key, bool standard) {
  const Value* value = object.find(key);
  return value != nullptr && value->kind == Value::Kind::kBool ? value->boolean : standard;
}

void add_shape(const ExportJob& job, const Kind& kind, Command& command) {
  const Value& config = job.config;
  const Count heads = count_of(config, "num_attention_heads", 1);
  const Count groups = count_of(config, "num_key_value_heads", heads);
  const Count hidden = count_of(config, "hidden_size", 0);
  command.flag("num-layers", count_of(config, "num_hidden_layers", 0));
  command.flag("hidden-size", hidden);
  command.flag("ffn-hidden-size", count_of(config, "intermediate_size", 0));
  command.flag("num-attention-heads", heads);
  if (groups != heads) {
    command.flag("group-query-attention");
    command.flag("num-query-groups", groups);
  }
  if (const Count width = count_of(config, "head_dim", 0); width > 0 && width * heads != hidden)
    command.flag("kv-channels", width);
  command.flag("max-position-embeddings",
               std::max(count_of(config, "max_position_embeddings", 0), job.job.sequence_length));
  command.flag("vocab-size", count_of(config, "vocab_size", 0));
  command.flag("normalization", "RMSNorm");
  command.flag("swiglu");
  command.flag("disable-bias-linear");
  if (kind.biases) command.flag("add-qkv-bias");
  if (kind.norms) command.flag("qk-layernorm");
  command.flag("position-embedding-type", "rope");
  if (!is_on(config, "tie_word_embeddings", false)) command.flag("untie-embeddings-and-output-weights");
  command.flag("attention-dropout", "0");
  command.flag("hidden-dropout", "0");
}

void add_checkpointing(const ExportJob& job, Command& command, Writer& out) {
  const Value* asked = job.request.find("gradient_checkpointing");
  const Value* parts = asked == nullptr || !asked->is_object() ? nullptr : asked->find("selective");
  if (parts != nullptr && parts->is_array() && !parts->items.empty()) {
    std::string modules;
    for (const Value& part : parts->items) modules += (modules.empty() ? "" : " ") + shell(part.string);
    command.flag("recompute-granularity", "selective");
    command.flag("recompute-modules", modules);
  } else if (checkpoints(job.job)) {
    command.flag("recompute-granularity", "full");
    command.flag("recompute-method", "uniform");
    command.flag("recompute-num-layers", Count{1});
  }
  if (job.job.checkpointing == Checkpointing::kOffload)
    out.lacks("/gradient_checkpointing", "that the layers' inputs wait in host memory");
}

/// In a step: those in flight between stages, else those that gradients are gathered over.
Count micro_batches_of(const ExportJob& job) {
  const Value* how = job.request.find("parallelism");
  const Count stages = how != nullptr ? count_of(*how, "pipeline", 1) : 1;
  return stages > 1 ? count_of(*how, "num_micro_batches", stages) : job.job.gradient_accumulation_steps;
}

/// GPUs of one model: what divides it, without the data-parallel ones.
Count add_parallelism(const ExportJob& job, Command& command, Writer& out) {
  const Value* given = job.request.find("parallelism");
  const Value none;
  const Value& how = given == nullptr ? none : *given;
  Count model = 1;
  for (const auto& [key, flag] : {std::pair{"tensor", "tensor-model-parallel-size"},
                                  {"pipeline", "pipeline-model-parallel-size"},
                                  {"context", "context-parallel-size"}}) {
    const Count size = count_of(how, key, 1);
    model *= size;
    command.flag(flag, size);
  }
  if (is_on(how, "sequence_parallel", false)) command.flag("sequence-parallel");
  if (job.zero_stage > 0) command.flag("use-distributed-optimizer");
  if (job.zero_stage > 1) out.lacks("/parallelism/zero_stage", "divided gradients and weights (ZeRO-2 and 3)");
  if (job.fsdp != "none") out.lacks("/parallelism/fsdp", "FSDP");
  if (job.offload_optimizer) command.flag("optimizer-cpu-offload");
  if (job.offload_parameters) out.lacks("/offload/parameters", "weights in host memory");
  return model;
}

/// What Megatron's trainer does in its own way, whatever was asked.
void lacks_of_its_own(const ExportJob& job, Writer& out) {
  const TrainingJob& how = job.job;
  if (how.has_adapter() || how.freezes_by_name()) out.lacks("/method", "what is not trained, and adapters");
  if (has_adapter(how)) out.lacks("/adapter", "adapters");
  if (is_quantised(how)) out.lacks("/quantization", "quantised weights");
  const Recipe& recipe = how.recipe;
  if (recipe.weights != Dtype::kBf16 || recipe.gradients != Dtype::kFp32 || !recipe.master_weights)
    out.lacks("/precision",
              "this precision: its own is bf16 weights beside fp32 gradients, master weights and moments");
  if (how.optimizer != "adamw_torch_fused")
    out.lacks("/optimizer", "this optimizer: adam is Transformer Engine's or apex's fused AdamW");
  if (how.attention != AttentionKernel::kSdpa && how.attention != AttentionKernel::kFlashAttention2)
    out.lacks("/attention", "this attention");
  if (how.loss != Loss::kDefault) out.lacks("/loss", "how the loss is computed");
  if (how.packing) out.lacks("/packing", "packed rows");
  if (job.task != "pretrain" && job.task != "sft") out.lacks("/task", "the task: pretrain_gpt.py trains on text");
}

}  // namespace

Exported write_megatron(const ExportJob& job) {
  Writer out;
  Command command;
  const Kind* kind = kind_of(job.config);
  if (kind != nullptr) {
    add_shape(job, *kind, command);
    const Value* window = job.config.find("sliding_window");
    if (window != nullptr && window->is_integer() && is_on(job.config, "use_sliding_window", true))
      out.lacks("/model", "the sliding window of its attention");
    out.comment("The shape is that of " + job.model + ".");
  } else {
    out.lacks("/model", "this model: flags are written for llama, mistral, qwen2 and qwen3");
  }
  if (job.task == "sft") command.flag("finetune");
  command.flag("tokenizer-type", "HuggingFaceTokenizer");
  command.flag("tokenizer-model", shell(job.model));
  command.flag("seq-length", job.job.sequence_length);
  command.flag("micro-batch-size", job.job.micro_batch_size);
  command.flag("global-batch-size", job.job.micro_batch_size * micro_batches_of(job) * job.gpus);
  command.flag("bf16");
  command.flag("optimizer", "adam");
  command.flag("clip-grad", number(job.job.max_grad_norm));
  command.flag("lr", "1e-5");
  command.flag("train-iters", Count{1000});
  if (job.job.attention == AttentionKernel::kFlashAttention2) command.flag("attention-backend", "flash");
  add_checkpointing(job, command, out);
  const Count model = add_parallelism(job, command, out);
  command.flag("data-path", "data_text_document");
  lacks_of_its_own(job, out);
  out.comment("A job from Tidemark for Megatron-LM core_v0.12.0. Data, learning rate and length are yours to fill in.");
  out.line("torchrun --nproc_per_node " + std::to_string(job.gpus * model) + " pretrain_gpt.py" + command.lines());
  return out.finish("Megatron-LM's flags");
}

}  // namespace tidemark::exchange
