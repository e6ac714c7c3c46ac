#include "core/exchange/fields.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/word_list.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostUnread = 200;

// Names of what changes speed, logs or files, and no byte on the card.
constexpr std::string_view kHarmless =
    " instance_data_dir instance_prompt class_data_dir class_prompt num_class_images lr_warmup_steps"
    " max_train_steps validation_prompt validation_epochs caption_column image_column center_crop random_flip"
    " checkpointing_steps checkpoints_total_limit prior_loss_weight snr_gamma guidance_scale eval_steps"
    " evals_per_epoch eval_on_start model_author system eos_token pad_token streaming load_from_cache_file"
    " dataset_num_proc dataset_shuffle split_dataset_ratio log_completions temperature top_p top_k"
    " repetition_penalty epsilon epsilon_high reward_funcs reward_weights external_plugins"
    " create_checkpoint_symlink use_hf loss_scale zero3_save_16bit_model deepspeed_multinode_launcher"
    " downcast_bf16 learning_rate lr lr_scheduler lr_scheduler_type lr_scheduler_kwargs warmup_ratio warmup_steps"
    " num_train_epochs num_epochs epochs max_steps weight_decay seed adam_beta1 adam_beta2 adam_epsilon"
    " output_dir logging_dir logging_steps logging_strategy logging_first_step save_steps save_strategy"
    " save_total_limit saves_per_epoch save_safetensors save_only_model report_to run_name push_to_hub"
    " hub_model_id hub_strategy hub_token hub_private_repo overwrite_output_dir overwrite_cache dataset datasets"
    " dataset_dir dataset_mixer dataset_splits dataset_prepared_path dataset_name dataset_config"
    " dataset_text_field dataset_train_split dataset_test_split template chat_template plot_loss ddp_timeout"
    " dataloader_num_workers preprocessing_num_workers max_samples wandb wandb_project wandb_entity wandb_watch"
    " wandb_name wandb_log_model wandb_run_id log_level log_freq log debug do_train do_predict"
    " resume_from_checkpoint trust_remote_code special_tokens tokens train_on_inputs val_set_size strict"
    " hf_use_auth_token group_by_length tf32 early_stopping_patience local_rank xpu tokenizer_type model_type"
    " is_llama_derived_model tokenizer tokenizer_name use_fast_tokenizer shuffle shuffle_merged_datasets"
    " metric_log_level username token project_name backend out_dir logger_name data wall_clock_breakdown"
    " steps_per_print rdzv_backend same_network machine_rank main_process_ip main_process_port"
    " main_training_function tpu_env tpu_use_cluster tpu_use_sudo compute_environment use_cpu fan_in_fan_out"
    " inference_mode revision auto_mapping log_every_n_steps metric_logger profiler description"
    " include_num_input_tokens_seen include_tokens_per_second metric_for_best_model load_best_model_at_end"
    " greater_is_better remove_unused_columns dataloader_drop_last cosine_min_lr_ratio min_lr betas eps"
    " model_revision do_eval system_prompt dataset_prompt_column dataset_mixture assistant_only_loss"
    " average_tokens_across_devices hub_model_revision hub_always_push packing_strategy id2label label2id ";

/// Where the keys that the file's mapping holds are asked for by a dotted path.
bool below(std::string_view path, std::string_view prefix) {
  return path.size() > prefix.size() && path.substr(0, prefix.size()) == prefix && path[prefix.size()] == '.';
}

}  // namespace

Value of(std::vector<Value> items) {
  Value made = empty_array();
  made.items = std::move(items);
  return made;
}
Value precision_of(std::string_view weights, std::string_view autocast) {
  struct Named {
    std::string_view weights, autocast, recipe;
  };
  constexpr Named kNamed[] = {{"fp32", "", "fp32"},         {"bf16", "", "pure_bf16"},    {"fp16", "", "pure_fp16"},
                              {"fp32", "bf16", "amp_bf16"}, {"bf16", "bf16", "bf16_amp"}, {"fp32", "fp16", "amp_fp16"}};
  for (const Named& row : kNamed) {
    if (row.weights == weights && row.autocast == autocast) return of(std::string{row.recipe});
  }
  return object({{"weights", of(std::string{weights})}, {"autocast", of(std::string{autocast})}});
}

Value object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Value made = empty_object();
  for (const auto& [key, value] : members) set(made, key, value);
  return made;
}

Keys::Keys(const Node& tree, std::string name, Reading& told) : root(tree), file(std::move(name)), reading(told) {}

const Node* Keys::operator[](std::string_view dotted) {
  const Node* node = root.at(dotted);
  if (node == nullptr) return nullptr;
  touch(dotted);
  return node->is_null() ? nullptr : node;
}

const Node* Keys::any(std::initializer_list<std::string_view> names) {
  const Node* first = nullptr;
  for (std::string_view name : names) {
    const Node* node = (*this)[name];
    if (first == nullptr) first = node;
  }
  return first;
}

void Keys::touch(std::string_view dotted) {
  if (std::find(read_.begin(), read_.end(), dotted) == read_.end()) read_.emplace_back(dotted);
}

std::string Keys::text(std::string_view dotted) {
  const Node* node = (*this)[dotted];
  return node == nullptr ? std::string{} : node->text;
}

bool Keys::truthy(std::string_view dotted) {
  const Node* node = (*this)[dotted];
  if (node == nullptr) return false;
  if (node->is_bool()) return node->boolean;
  if (node->is_number()) return node->real != 0;
  if (node->is_string()) return !node->text.empty() && lower_case(node->text) != "false";
  return !node->items.empty();
}

Origin Keys::origin(const Node* node) const {
  return {file, node->line, std::max(node->line, node->last), -1};
}

void Keys::state(std::string_view path, Value value, std::initializer_list<const Node*> nodes, std::string assumed) {
  std::vector<Origin> origins;
  for (const Node* node : nodes) {
    if (node != nullptr) origins.push_back(origin(node));
  }
  exchange::state(reading, path, std::move(value), std::move(origins), std::move(assumed));
}

void Keys::assume(std::string_view path, Value value, std::string why) {
  exchange::state(reading, path, std::move(value), {}, std::move(why));
}

bool Keys::copy(std::string_view path, std::string_view dotted) {
  const Node* node = (*this)[dotted];
  if (node == nullptr) return false;
  state(path, to_value(*node), {node});
  return true;
}

bool Keys::copy_any(std::string_view path, std::initializer_list<std::string_view> names) {
  const Node* node = any(names);
  if (node == nullptr) return false;
  state(path, to_value(*node), {node});
  return true;
}

bool Keys::has(std::string_view path) const {
  return find(reading, path) != nullptr;
}

void Keys::tell_unread() {
  tell_unread(root, "", 0);
}

void Keys::tell_unread(const Node& node, const std::string& prefix, int depth) {
  for (std::size_t at = 0; at < node.keys.size() && reading.unread.size() < kMostUnread; ++at) {
    const std::string path = prefix + node.keys[at];
    const Node& item = node.items[at];
    if (std::find(read_.begin(), read_.end(), path) != read_.end()) continue;
    const bool inside =
        std::any_of(read_.begin(), read_.end(), [&](const std::string& other) { return below(other, path); });
    if (inside && item.is_map() && depth < 4) {
      tell_unread(item, path + ".", depth + 1);
    } else {
      const bool harmless = is_harmless_key(node.keys[at]) || item.is_null();
      reading.unread.push_back({path, origin(&item), harmless});
    }
  }
}

bool is_harmless_key(std::string_view key) {
  return is_in(kHarmless, key);
}

bool name_ends(const Source& source, std::string_view ending) {
  const std::string name = lower_case(source.name);
  return name.size() >= ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace tidemark::exchange
