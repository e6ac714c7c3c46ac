#include "core/exchange/out/writer.hpp"

#include "core/optimizers/low_rank.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/units/decimal.hpp"

namespace tidemark::exchange {
namespace {

std::string json(const Value& value, int indent);

std::string json_members(const Value& value, int indent) {
  const std::string space(static_cast<std::size_t>(indent) + 2, ' ');
  std::string out = "{";
  for (const Value::Member& member : value.members) {
    out += (out.size() > 1 ? ",\n" : "\n") + space + quoted(member.key) + ": " + json(member.value, indent + 2);
  }
  return out + "\n" + std::string(static_cast<std::size_t>(indent), ' ') + "}";
}

std::string json(const Value& value, int indent) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return value.boolean ? "true" : "false";
    case Value::Kind::kInteger:
      return std::to_string(value.integer);
    case Value::Kind::kReal:
      return number(value.real);
    case Value::Kind::kString:
      return quoted(value.string);
    case Value::Kind::kArray: {
      std::string out = "[";
      for (const Value& item : value.items) out += (out.size() > 1 ? ", " : "") + json(item, indent);
      return out + "]";
    }
    case Value::Kind::kObject:
      return value.members.empty() ? "{}" : json_members(value, indent);
  }
  return {};
}

}  // namespace

void Writer::yaml(std::string_view key, std::string_view value, int indent) {
  if (value.empty()) return;
  line(std::string(static_cast<std::size_t>(indent), ' ') + std::string{key} + ": " + std::string{value});
}

void Writer::yaml_list(std::string_view key, const std::vector<std::string>& items, int indent) {
  const std::string space(static_cast<std::size_t>(indent), ' ');
  line(space + std::string{key} + ":");
  for (const std::string& item : items) line(space + "  - " + quoted(item));
}

void Writer::lacks(std::string_view path, std::string what) {
  lacking_.emplace_back(std::string{path}, std::move(what));
}

Exported Writer::finish_without_comments(std::string_view format) {
  Exported out{std::move(text_), {}};
  for (const auto& [path, what] : lacking_) {
    out.issues.push_back(
        {"NOT_EXPORTED", Severity::kWarning, path, std::string{format} + " cannot say it: " + what + ".", ""});
  }
  return out;
}

Exported Writer::finish(std::string_view format) {
  std::string top;
  for (const auto& [path, what] : lacking_) top += "# Not said here: " + what + ".\n";
  text_ = top + text_;
  return finish_without_comments(format);
}

std::string_view torch_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return "bfloat16";
    case Dtype::kFp16:
      return "float16";
    default:
      return "float32";
  }
}

std::string number(double value) {
  return shortest_decimal(value);
}

std::string quoted(std::string_view word) {
  std::string out = "\"";
  for (char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + "\"";
}

std::string json_text(const Value& value) {
  return json(value, 0);
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string out = "[";
  for (const std::string& word : words) out += (out.size() > 1 ? ", " : "") + quoted(word);
  return out + "]";
}

std::string shell(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string{word};
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return out + "'";
}

bool has_adapter(const TrainingJob& job) {
  return job.method == Method::kLora || job.method == Method::kQlora;
}

bool is_quantised(const TrainingJob& job) {
  return job.method == Method::kQlora && job.quantization.is_bitsandbytes();
}

bool checkpoints(const TrainingJob& job) {
  return job.checkpointing != Checkpointing::kNone;
}

std::string_view attention_name(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kEager:
      return "eager";
    case AttentionKernel::kFlashAttention2:
      return "flash_attention_2";
    case AttentionKernel::kFlashAttention3:
      return "flash_attention_3";
    default:
      return "sdpa";
  }
}

/// peft 0.18.0 utils/constants.py names the modules of older families otherwise.
std::vector<std::string> attention_modules(const ExportJob& job) {
  if (job.class_name.rfind("GPT2", 0) == 0) return {"c_attn"};
  if (job.class_name.rfind("GPTNeoX", 0) == 0) return {"query_key_value", "dense"};
  return {"q_proj", "k_proj", "v_proj", "o_proj"};
}

bool casts_to(const TrainingJob& job, Dtype dtype) {
  return job.recipe.autocast == dtype;
}

void lacks_in_common(const ExportJob& job, Writer& out) {
  if (job.job.method == Method::kQlora && !is_quantised(job.job)) {
    out.lacks("/quantization", "weights that are not bitsandbytes': name a checkpoint that holds them so packed");
  }
  // transformers 5.12.1 training_args.py: OptimizerNames has no such words.
  for (std::string_view name : {"adam_mini", "adamw_bnb_32bit", "sgd_momentum", "adamw_hf"}) {
    if (job.job.optimizer == name) out.lacks("/optimizer", "the optimizer " + std::string{name});
  }
  const Recipe& recipe = job.job.recipe;
  if (recipe.gradients != recipe.weights && !recipe.master_weights) {
    out.lacks("/precision/gradients", "gradients in another dtype than the weights");
  }
  if (job.job.checkpointing == Checkpointing::kEvery ||
      job.job.checkpointing == Checkpointing::kSelectiveCoreAttention) {
    out.lacks("/gradient_checkpointing", "that only some layers or parts of them are run again; here all are");
  }
  if (job.job.attention == AttentionKernel::kMath || job.job.attention == AttentionKernel::kXformers) {
    out.lacks("/attention", "which kernel scaled_dot_product_attention takes");
  }
  if (job.job.images_per_sample > 0) out.lacks("/images_per_sample", "how many pictures a sample has: the data tell");
  if (job.job.video_frames > 0) out.lacks("/video_frames", "how many frames a video has: the data tell");
  if (job.job.optimizer_in_backward && !find_optimizer(job.job.optimizer)->in_backward) {
    out.lacks("/optimizer_in_backward", "that each parameter is updated during backward");
  }
}

bool projects(const TrainingJob& job) {
  return find_optimizer(job.optimizer)->groups == ParameterGroups::kProjected;
}

std::string optim_args(const TrainingJob& job) {
  return "rank=" + std::to_string(projection_rank(job)) + (job.low_rank.by_svd ? ",proj=svd" : "");
}

void lacks_without_deepspeed(const ExportJob& job, Writer& out) {
  lacks_in_common(job, out);
  if (job.job.recipe.master_weights) {
    out.lacks("/precision/master_weights", "a second copy of the weights for the optimizer: DeepSpeed keeps one");
  }
}

}  // namespace tidemark::exchange
