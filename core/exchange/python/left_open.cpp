// What no line tells, and what was not read.
#include <algorithm>

#include "core/exchange/python/library_calls.hpp"
#include "core/exchange/python/topics.hpp"
#include "core/exchange/word_list.hpp"

namespace tidemark::exchange {
namespace {

bool is_known_trainer(const PyObject& call) {
  const std::span<const PyTrainer> all = known_trainers();
  return std::any_of(all.begin(), all.end(), [&](const PyTrainer& row) { return call.is(row.name); });
}

/// Trainers that train another model than the one that is read.
void tell_other_trainers(PyJob& job) {
  if (job.trainer == nullptr) return;
  std::size_t others = 0;
  for (const PyObject& one : job.program.objects) {
    if (!one.name.ends_with("Trainer") || !is_known_trainer(one) || one.unsure || &one == job.trainer) continue;
    const PyObject* made = job.loaded(one.find("model", 0));
    if (made != nullptr && made != job.load) ++others;
  }
  if (others == 0) return;
  job.reading.notes.push_back(std::to_string(others + 1) + " trainers of other models stand here; the last, of line " +
                              std::to_string(job.trainer->place.first) + ", is read");
}

/// Words of trainers, loaders and adapters that move no memory, or whose memory the calls around them tell.
constexpr std::string_view kHarmless =
    " model args processing_class train_dataset eval_dataset data_collator compute_metrics callbacks"
    " formatting_func preprocess_logits_for_metrics optimizers peft_config task_type cache_dir use_auth_token"
    " device_map low_cpu_mem_usage quantization_config model_init_kwargs dataset_kwargs id2label label2id"
    " label_names random_state attn_implementation bias disable_tqdm log_with project_dir save_on_each_node"
    " do_eval eval_strategy evaluation_strategy loss evaluator max_seq_length max_lora_rank"
    " importance_sampling_level mask_truncated_completions vllm_sampling_params trackio_space_id project"
    " chat_template_kwargs chat_template_path num_completions_to_print embedding_learning_rate"
    " bnb_4bit_compute_dtype batch_sampler auto_model fix_tokenizer data_seed delta prompts use_cache"
    " load_in_16bit dataloader_pin_memory dataloader_persistent_workers whisper_language whisper_task ";

bool is_harmless(std::string_view key) {
  return is_harmless_key(key) || is_in(kHarmless, key);
}

}  // namespace

void ask(PyJob& job) {
  // accelerate's big_modeling: layers one after the other on the GPUs that it sees.
  if (const PyValue* map = job.load == nullptr ? nullptr : job.load->find("device_map");
      map != nullptr && (map->text == "auto" || map->text == "balanced"))
    job.reading.notes.push_back(
        "device_map \"" + map->text +
        "\" lays the model's layers on all GPUs that the process sees: parallelism.device_map is "
        "their number, one unless a launch command says it");
  if (job.is_template() && !job.told("micro_batch_size")) {
    job.reading.notes.emplace_back("a template: its values come from the command line; give the command as well");
    job.unknown("everything that the command line says: model, batch, length, method");
  }
  if (!job.told("micro_batch_size") && !job.on("auto_find_batch_size")) job.unknown("micro_batch_size");
  if (!job.program.calls("DistributedDataParallel").empty() && !job.told("parallelism.data"))
    job.unknown("parallelism.data: DistributedDataParallel, and no file says how many processes");
  tell_other_trainers(job);
  for (const std::string& file : job.program.files) {
    job.unknown("the file " + file);
    job.reading.companions.push_back(file);
  }
  job.unknown("gpu");
}

void tell_unread(PyJob& job) {
  for (const PyObject* one :
       {job.arguments, job.trainer, job.lora, job.bitsandbytes, job.load, job.accelerator, job.lightning}) {
    if (one == nullptr || one->parsed || !one->bases.empty()) continue;
    for (const auto& [key, value] : one->fields) {
      const bool off = value.kind == PyValue::Kind::kNone || (value.kind == PyValue::Kind::kBool && !value.boolean);
      if (one->asked.contains(key) || off) continue;
      job.reading.unread.push_back({key, value.places.empty() ? one->place : value.places.front(), is_harmless(key)});
    }
  }
}

}  // namespace tidemark::exchange
