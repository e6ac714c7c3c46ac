// DeepSpeed@edaa7221 runtime/config.py, runtime/zero/config.py. JSON has no comments: what it cannot say is an issue.
#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {
namespace {

void write_offload(std::string_view key, bool offloaded, const std::string& device, const Offload& how, Writer& out) {
  if (!offloaded) return;
  out.line("    \"" + std::string{key} + "\": {" + device + ", \"pin_memory\": " + (how.pinned ? "true" : "false") +
           "},");
}

std::string place(bool on_disk, Count buffers, const std::string& sizes) {
  if (!on_disk) return "\"device\": \"cpu\"";
  return R"("device": "nvme", "nvme_path": "/local_nvme", "buffer_count": )" + std::to_string(buffers) + sizes;
}

/// Of runtime/zero/config.py, as the request says them: under "deepspeed", or in Tidemark's own words.
struct Size {
  std::string_view key;
  bool by_width =
      false;  ///< transformers 5.12 integrations/deepspeed.py (trainer_config_finalize) makes it of the width
};
constexpr Size kSizes[] = {{"reduce_bucket_size", true},
                           {"allgather_bucket_size"},
                           {"stage3_prefetch_bucket_size", true},
                           {"stage3_param_persistence_threshold", true},
                           {"stage3_max_live_parameters"},
                           {"stage3_max_reuse_distance"},
                           {"sub_group_size"},
                           {"overlap_comm"},
                           {"contiguous_gradients"}};

const Value* within(const Value* object, std::string_view key) {
  return object == nullptr ? nullptr : object->find(key);
}

void write_sizes(const Value& request, Writer& out) {
  const Value* zero = within(request.find("parallelism"), "zero");
  const Value* follows = within(zero, "hf_auto");
  for (const Size& size : kSizes) {
    const Value* stated = within(request.find("deepspeed"), size.key);
    if (stated == nullptr) stated = within(zero, size.key);
    const bool says_auto = stated == nullptr ? size.by_width && follows != nullptr && follows->boolean
                                             : stated->is_string() && stated->string == "auto";
    const bool plain = stated != nullptr && (stated->is_number() || stated->is_bool());
    if (!says_auto && !plain) continue;
    out.line("    \"" + std::string{size.key} + "\": " + (says_auto ? "\"auto\"" : json_text(*stated)) + ",");
  }
}

}  // namespace

Exported write_deepspeed(const ExportJob& job) {
  Writer out;
  const TrainingJob& how = job.job;
  const bool bf16 = how.recipe.weights == Dtype::kBf16 || casts_to(how, Dtype::kBf16);
  const bool fp16 = !bf16 && (how.recipe.weights == Dtype::kFp16 || casts_to(how, Dtype::kFp16));
  out.line("{");
  out.line("  \"train_micro_batch_size_per_gpu\": " + std::to_string(how.micro_batch_size) + ",");
  out.line("  \"gradient_accumulation_steps\": " + std::to_string(how.gradient_accumulation_steps) + ",");
  out.line("  \"gradient_clipping\": " + number(how.max_grad_norm) + ",");
  out.line(std::string{"  \"bf16\": {\"enabled\": "} + (bf16 ? "true" : "false") + "},");
  out.line(std::string{"  \"fp16\": {\"enabled\": "} + (fp16 ? "true" : "false") + "},");
  out.line("  \"zero_optimization\": {");
  const Offload& offload = how.offload;
  if (job.zero_stage > 0) {
    write_offload("offload_optimizer", job.offload_optimizer, place(offload.states_on_disk, offload.state_buffers, ""),
                  offload, out);
  }
  if (job.zero_stage == 3) {
    const std::string sizes = ", \"buffer_size\": " + std::to_string(offload.weight_buffer_size) +
                              ", \"max_in_cpu\": " + std::to_string(offload.max_in_cpu);
    write_offload("offload_param", job.offload_parameters,
                  place(offload.weights_on_disk, offload.weight_buffers, sizes), offload, out);
  }
  if (job.zero_stage > 0) write_sizes(job.request, out);
  if (job.zero_stage == 3) out.line("    \"stage3_gather_16bit_weights_on_model_save\": true,");
  out.line("    \"stage\": " + std::to_string(job.zero_stage));
  out.line("  }");
  out.line("}");
  out.lacks("/model", "model, method, length, attention, checkpointing, optimizer: they belong to the script");
  if ((bf16 || fp16) && !how.recipe.master_weights) {
    out.lacks("/precision", "16-bit training without fp32 master weights: DeepSpeed always keeps them");
  }
  if (job.fsdp != "none") out.lacks("/parallelism/fsdp", "FSDP: `export accelerate` says it");
  return out.finish_without_comments("DeepSpeed's JSON");
}

}  // namespace tidemark::exchange
