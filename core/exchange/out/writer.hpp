#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/out/export.hpp"

namespace tidemark::exchange {

/// What a format lacks that has no word for PEFT's own choice of modules.
inline constexpr const char* kNoneByPeft = "modules of PEFT's choice; all linear layers are adapted here";

/// Text line by line, with `#` comments, and the list of what could not be said.
class Writer {
 public:
  void line(std::string text = {}) { text_ += std::move(text) + "\n"; }
  void comment(std::string_view text) { line("# " + std::string{text}); }
  /// "key: value"; nothing for an empty value.
  void yaml(std::string_view key, std::string_view value, int indent = 0);
  void yaml(std::string_view key, Count value, int indent = 0) {
    yaml(key, std::string_view{std::to_string(value)}, indent);
  }
  void yaml(std::string_view key, const std::string& value, int indent = 0) {
    yaml(key, std::string_view{value}, indent);
  }
  void yaml(std::string_view key, bool value, int indent = 0) {
    yaml(key, std::string_view{value ? "true" : "false"}, indent);
  }
  void yaml(std::string_view key, const char* value, int indent = 0) { yaml(key, std::string_view{value}, indent); }
  /// A block list, an item a line.
  void yaml_list(std::string_view key, const std::vector<std::string>& items, int indent = 0);
  /// What the format cannot say: an issue now, and a comment with finish().
  void lacks(std::string_view path, std::string what);

  /// The text under the comments that belong on top.
  Exported finish(std::string_view format);
  Exported finish_without_comments(std::string_view format);

 private:
  std::string text_;
  std::vector<std::pair<std::string, std::string>> lacking_;
};

/// "bfloat16" as torch calls it.
std::string_view torch_name(Dtype dtype);
/// A number as Python, YAML and JSON read it: "0.05", "1".
std::string number(double value);
/// "Meta-Llama": a word in quotes with escapes, as all three read it.
std::string quoted(std::string_view word);
/// JSON over lines, as an object reads best.
std::string json_text(const Value& value);
/// ["q_proj", "v_proj"].
std::string quoted_list(const std::vector<std::string>& words);

/// A word of the shell, quoted where it holds more than letters and the like.
std::string shell(std::string_view word);

/// The flags of a command, one a line: " \\\n    --flag value".
class Command {
 public:
  void flag(std::string_view name) { lines_ += " \\\n    --" + std::string{name}; }
  void flag(std::string_view name, std::string_view value) {
    flag(name);
    lines_ += " " + std::string{value};
  }
  void flag(std::string_view name, Count value) { flag(name, std::to_string(value)); }
  void flag(std::string_view name, const char* value) { flag(name, std::string_view{value}); }
  void flag(std::string_view name, bool value) { flag(name, std::string_view{value ? "true" : "false"}); }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

bool has_adapter(const TrainingJob& job);
bool is_quantised(const TrainingJob& job);
/// Whether each layer is run again in backward, wherever its input waits.
bool checkpoints(const TrainingJob& job);
/// transformers' attn_implementation.
std::string_view attention_name(AttentionKernel kernel);
/// Names for adapters where "attention" was asked for.
std::vector<std::string> attention_modules(const ExportJob& job);
/// Autocast under bf16=True, respectively fp16=True.
bool casts_to(const TrainingJob& job, Dtype dtype);

/// Whether the optimizer projects gradients (GaLore, APOLLO), and is told how by `optim_args`.
bool projects(const TrainingJob& job);
/// "rank=128"
std::string optim_args(const TrainingJob& job);

/// What none of the tools that load Hugging Face models is told: gradients or states apart from the weights, parts of
/// layers run again, pictures.
void lacks_in_common(const ExportJob& job, Writer& out);
/// The same, and copies that only DeepSpeed keeps.
void lacks_without_deepspeed(const ExportJob& job, Writer& out);

}  // namespace tidemark::exchange
