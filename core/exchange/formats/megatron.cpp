// Megatron-LM's command lines, with Megatron-DeepSpeed's and Pai's (Megatron-LM core_v0.12.0
// megatron/training/arguments.py; Megatron-DeepSpeed megatron/arguments.py).
#include <algorithm>
#include <string>
#include <utility>

#include "core/exchange/args.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_megatron(const Look& look) {
  if (look.syntax != Look::Syntax::kShell) return 0;
  const bool sizes =
      look.mentions("--num-layers") || look.mentions("--encoder-num-layers") || look.mentions("--hidden-size");
  if (sizes &&
      (look.mentions("-micro-batch-size") || look.mentions("--seq-length") || look.mentions("--num-attention-heads")))
    return 92;
  const bool program = look.mentions("pretrain_gpt.py") || look.mentions("pretrain_mamba.py") ||
                       look.mentions("pretrain_vlm.py") || look.mentions("pretrain_t5.py") ||
                       look.mentions("pretrain_bert.py");
  return program && look.mentions("-model-parallel-size") ? 90 : 0;
}

struct Facts {
  std::string program;
  bool swiglu = false;
  bool rms = false;
  bool bias = true;
  std::string positions;
};

void copy_config(Args& args, const char* name, std::initializer_list<std::string_view> flags) {
  const std::string path = std::string{"config."} + name;
  for (std::string_view flag : flags) {
    const Arg* arg = args.find(flag);
    if (arg == nullptr) continue;
    return args.state(path, to_value(arg->value), {arg});
  }
  for (const Arg& arg : args.all) {
    const bool asked = std::find(flags.begin(), flags.end(), arg.key) != flags.end();
    if (asked && !arg.unresolved.empty()) args.unknown(std::string{name} + ": " + arg.unresolved + " (shell variable)");
  }
}

/// ffn_hidden_size is 4 h, of SwiGLU 8/3 h rounded to 64 (arguments.py: validate_args).
void read_width(Args& args, const Facts& facts) {
  copy_config(args, "intermediate_size", {"ffn_hidden_size"});
  const Arg* hidden = args.find("hidden_size");
  if (args.has("ffn_hidden_size") || hidden == nullptr) return;
  const std::int64_t h = hidden->value.integer;
  const std::int64_t width = facts.swiglu ? h * 4 * 2 / 3 / 64 * 64 : 4 * h;
  args.state("config.intermediate_size", of(width), {hidden},
             "ffn_hidden_size default 4 x hidden (2/3 of it, rounded to 64, with --swiglu)");
}

void read_shape(Args& args, Facts& facts) {
  facts.swiglu = args.has("swiglu");
  copy_config(args, "num_hidden_layers", {"num_layers", "encoder_num_layers"});
  copy_config(args, "num_decoder_layers", {"decoder_num_layers"});
  copy_config(args, "hidden_size", {"hidden_size"});
  read_width(args, facts);
  copy_config(args, "num_attention_heads", {"num_attention_heads"});
  if (args.has("group_query_attention") || args.has("num_key_value_heads"))
    copy_config(args, "num_key_value_heads", {"num_query_groups", "num_key_value_heads"});
  copy_config(args, "head_dim", {"kv_channels"});
  copy_config(args, "max_position_embeddings", {"max_position_embeddings"});
  copy_config(args, "vocab_size", {"vocab_size"});
  copy_config(args, "num_experts", {"num_experts"});
  copy_config(args, "num_experts_per_tok", {"moe_router_topk"});
  copy_config(args, "moe_intermediate_size", {"moe_ffn_hidden_size"});
  copy_config(args, "moe_shared_expert_intermediate_size", {"moe_shared_expert_intermediate_size"});
  copy_config(args, "q_lora_rank", {"q_lora_rank"});
  copy_config(args, "kv_lora_rank", {"kv_lora_rank"});
  copy_config(args, "mtp_num_layers", {"mtp_num_layers"});
}

void read_kind(Args& args, Facts& facts) {
  const char* why = "the flag or its absence (arguments.py)";
  const Arg* norm = args.find("normalization");
  const Arg* position = args.find("position_embedding_type");
  const Arg* rotary = args.any({"use_rotary_position_embeddings", "use_rotary_position_embedding"});
  const std::string kind = norm == nullptr ? "LayerNorm" : norm->value.text;
  facts.rms = kind == "RMSNorm";
  facts.bias = !args.has("disable_bias_linear");
  facts.positions = position != nullptr ? position->value.text : rotary != nullptr ? "rope" : "learned_absolute";
  args.state("config.tie_word_embeddings", of(!args.has("untie_embeddings_and_output_weights")),
             {args.find("untie_embeddings_and_output_weights")}, why);
  args.state("config.mlp", of(facts.swiglu ? "swiglu" : "gelu"), {args.find("swiglu")}, why);
  args.state("config.norm", of(kind), {norm}, why);
  args.state("config.bias", of(facts.bias), {args.find("disable_bias_linear")}, why);
  args.state("config.position_embedding", of(facts.positions), {position, rotary}, why);
  for (const char* name : {"attention_dropout", "hidden_dropout"}) {
    const std::string path = std::string{"config."} + name;
    if (!args.copy(path, {name})) args.assume(path, of(0.1), "default 0.1 (arguments.py L1465-1467)");
  }
  const bool llama = facts.swiglu && facts.rms && (facts.positions == "rope" || facts.positions == "rotary");
  const bool gpt2 = !facts.swiglu && !facts.rms && facts.positions == "learned_absolute";
  const Arg* norms = llama ? args.find("qk_layernorm") : nullptr;
  const Arg* biases = llama ? args.find("add_qkv_bias") : nullptr;
  std::string type = norms != nullptr ? "qwen3" : biases != nullptr ? "qwen2" : llama ? "llama" : gpt2 ? "gpt2" : "";
  if (contains(facts.program, "bert")) type = "bert";
  if (contains(facts.program, "t5")) type = "t5";
  if (type.empty()) return args.unknown("an architecture of the catalog that matches these flags");
  args.assume("config.model_type", of(type), "the nearest Hugging Face architecture to the flags");
}

void read_training(Args& args, const Facts& facts) {
  const Arg* finetune = args.find("finetune");
  args.state("task", of(finetune != nullptr || contains(facts.program, "sft") ? "sft" : "pretrain"), {finetune},
             finetune == nullptr ? "no --finetune" : "");
  args.copy("micro_batch_size", {"micro_batch_size"});
  args.copy("global_batch_size", {"global_batch_size"});
  args.copy("sequence_length", {"seq_length", "encoder_seq_length"});
  args.copy("decoder_sequence_length", {"decoder_seq_length"});
  if (!args.copy("max_grad_norm", {"clip_grad"})) args.assume("max_grad_norm", of(1.0), "default 1.0");
  const Arg* optimizer = args.find("optimizer");
  const std::string name = optimizer == nullptr ? "adam" : optimizer->value.text;
  args.state("optimizer", of(name == "adam" ? "adamw_torch_fused" : name), {optimizer},
             "--optimizer adam (default): fused Adam of TE or apex");
}

void read_precision(Args& args) {
  const Arg* bf16 = args.find("bf16");
  const Arg* fp16 = args.find("fp16");
  const Arg* wide = args.find("accumulate_allreduce_grads_in_fp32");
  if (bf16 != nullptr) {
    args.state("precision", of("megatron_bf16"), {bf16});
  } else if (fp16 != nullptr) {
    args.state("precision",
               object({{"weights", of("fp16")},
                       {"gradients", of(wide != nullptr ? "fp32" : "fp16")},
                       {"master_weights", of("fp32")},
                       {"optimizer_states", of("fp32")}}),
               {fp16, wide});
  } else {
    args.unknown("precision: neither --bf16 nor --fp16 resolves");
  }
  if (const Arg* format = args.find("fp8_format"); format != nullptr) {
    args.state("fp8.format", of(format->value.text), {format});
  } else if (const Arg* old = args.any({"fp8_hybrid", "fp8_e4m3"}); old != nullptr) {
    args.state("fp8.format", of(old->key == "fp8_hybrid" ? "hybrid" : "e4m3"), {old});
  }
  if (args.told("fp8.format"))
    args.state("fp8.param_gather", of(args.has("fp8_param_gather")), {args.find("fp8_param_gather")},
               "the flag or its absence");
}

void read_memory(Args& args) {
  const Arg* sharded = args.find("use_distributed_optimizer");
  args.state("distributed_optimizer", of(sharded != nullptr), {sharded},
             sharded == nullptr ? "off by default: every rank keeps all optimizer states" : "");
  const Arg* granularity = args.find("recompute_granularity");
  const Arg* light = args.find("recompute_activations");
  const Arg* old =
      args.any({"checkpoint_activations", "activations_checkpoint_method", "deepspeed_activation_checkpointing"});
  const Arg* modules = args.find("recompute_modules");
  if (light != nullptr || (granularity != nullptr && granularity->value.text == "selective")) {
    Value kept = modules == nullptr ? words({"core_attn"}) : to_value(modules->value);
    if (kept.is_string()) kept = of(std::vector<Value>{kept});
    args.state("gradient_checkpointing", object({{"selective", std::move(kept)}}), {light, granularity, modules});
  } else if (granularity != nullptr || old != nullptr) {
    args.state("gradient_checkpointing", of("full"), {granularity, old});
  } else {
    args.assume("gradient_checkpointing", of("none"), "no recompute flag");
  }
  const Arg* flash = args.any({"use_flash_attn", "use_flash_attn_v2", "use_flash_attn_v1"});
  const Arg* backend = args.find("attention_backend");
  const bool fast = flash != nullptr || (backend != nullptr && contains(backend->value.text, "flash"));
  args.state("attention", of(fast ? "flash_attention_2" : "sdpa"), {flash, backend},
             fast ? "" : "Transformer Engine picks a fused kernel (--attention-backend auto)");
  const Arg* offload = args.any({"optimizer_cpu_offload", "cpu_optimizer"});
  if (offload != nullptr) {
    args.state("offload.optimizer", of("cpu"), {offload});
    if (!args.copy("offload.optimizer_fraction", {"optimizer_offload_fraction"}))
      args.assume("offload.optimizer_fraction", of(1.0), "default 1.0");
  }
  if (args.has("moe_grouped_gemm")) args.state("moe.implementation", of("grouped_mm"), {args.find("moe_grouped_gemm")});
  args.copy("moe.dispatcher", {"moe_token_dispatcher_type"});
  args.copy("moe.capacity_factor", {"moe_expert_capacity_factor"});
}

std::int64_t size_of(Args& args, const char* flag) {
  const Arg* arg = args.find(flag);
  return arg == nullptr || !arg->value.is_integer() ? 1 : std::max<std::int64_t>(1, arg->value.integer);
}

void read_parallelism(Args& args, const Launch& launch, const std::string& file) {
  for (const auto& [path, key] : {std::pair{"parallelism.tensor", "tensor_model_parallel_size"},
                                  {"parallelism.pipeline", "pipeline_model_parallel_size"},
                                  {"parallelism.context", "context_parallel_size"},
                                  {"parallelism.expert", "expert_model_parallel_size"},
                                  {"parallelism.expert_tensor", "expert_tensor_parallel_size"},
                                  {"parallelism.zero_stage", "zero_stage"},
                                  {"layers_per_virtual_stage", "num_layers_per_virtual_pipeline_stage"}}) {
    args.copy(path, {key});
  }
  if (const Arg* sequence = args.find("sequence_parallel"); sequence != nullptr)
    args.state("parallelism.sequence_parallel", of(true), {sequence});
  Reading scratch;
  Args options(scratch);
  add_arguments(options, launch.options, file);
  const Arg* processes = options.any({"nproc_per_node", "num_gpus"});
  const Arg* nodes = options.any({"nnodes", "num_nodes"});
  const bool counted = processes != nullptr && processes->value.is_integer();
  if (counted) args.state("parallelism.gpus_per_node", to_value(processes->value), {processes});
  const bool open = (options.has("nnodes") || options.has("num_nodes")) && nodes == nullptr;
  if (!counted || open) return args.unknown("world size (parallelism.data)");
  const std::int64_t world = processes->value.integer * (nodes == nullptr ? 1 : nodes->value.integer);
  args.state("world_size", of(world), {processes, nodes});
  bool known = true;
  for (const Arg& arg : args.all) known &= arg.unresolved.empty() || !contains(arg.key, "parallel_size");
  if (!known) return args.unknown("parallelism.data: a parallel size is not set in the file");
  const std::int64_t model = size_of(args, "tensor_model_parallel_size") *
                             size_of(args, "pipeline_model_parallel_size") * size_of(args, "context_parallel_size");
  if (world < model || world % model != 0)
    return args.unknown("parallelism.data: " + std::to_string(world) + " GPUs are started and a model takes " +
                        std::to_string(model));
  args.state("parallelism.data", of(world / model), {processes, nodes}, "world size / (tensor x pipeline x context)");
}

/// A kind of tokenizer whose published files all hold as many words (config.json, vocab_size): openai-community/gpt2,
/// google-bert/bert-base-uncased and -cased, meta-llama/Llama-2-7b-hf. Megatron-LM core_v0.12.0
/// training/tokenizer/tokenizer.py: build_tokenizer.
void read_vocabulary(Args& args) {
  constexpr std::pair<std::string_view, std::int64_t> kWords[] = {{"GPT2BPETokenizer", 50257},
                                                                  {"BertWordPieceLowerCase", 30522},
                                                                  {"BertWordPieceCase", 28996},
                                                                  {"Llama2Tokenizer", 32000}};
  args.unknown("vocab_size (tokenizer files), padded to a multiple of 128 x tensor parallel");
  const Arg* kind = args.find("tokenizer_type");
  for (const auto& [name, count] : kWords) {
    if (kind != nullptr && kind->value.text == name)
      args.state("config.vocab_size", of(count), {kind}, "the words of " + std::string{name} + "'s published files");
  }
}

void read_megatron(const Look& look, Sources, Reading& reading) {
  const std::string& file = look.source.name;
  const TrainingScript text = training_script(look);
  const Launch* launch = text.launch;
  if (launch == nullptr) return tell_no_launch(reading, look);
  Args args(reading);
  Facts facts;
  facts.program = lower_case(base_name(launch->program));
  read_script(args, look, text);
  state(reading, "framework.name", of("megatron"), {}, "Megatron's flags");
  read_shape(args, facts);
  read_kind(args, facts);
  read_training(args, facts);
  read_precision(args);
  read_memory(args);
  read_parallelism(args, *launch, file);
  if (!args.has("vocab_size")) read_vocabulary(args);
  if (!args.told("gpu")) args.unknown("gpu");
  for (const Arg& arg : args.all) {
    if (!arg.unresolved.empty()) args.unknown("shell variable " + arg.unresolved);
  }
  args.tell_unread();
}

const Format kRows[] = {
    {"megatron", "Megatron command", recognise_megatron, read_megatron, 80},
};

}  // namespace

extern const FormatRows megatron_rows;
const FormatRows megatron_rows = kRows;

}  // namespace tidemark::exchange
