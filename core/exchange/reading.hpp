#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/text/node.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// A file as it was handed over. Who has files reads them: this room opens none. Of a file that is only a header and
/// then gigabytes (safetensors), `bytes` are the first of them and `size` tells how many there are.
struct Source {
  std::string name;        ///< "configs/train.yaml"; "-" for what was pasted
  std::string bytes;       ///< text, or a file's first bytes
  std::uint64_t size = 0;  ///< of the whole file; 0: bytes is all of it
};

/// Where something stands: lines of a file, counted from one; in a notebook also the cell, counted from zero among all.
struct Origin {
  std::string file;
  int first = 0;
  int last = 0;
  int cell = -1;
};

/// One field of the request, where it stands, and why where no line says so by itself. Both may be there: a line
/// decides it together with a rule.
struct Finding {
  std::string path;  ///< "adapter.r"
  Value value;
  std::vector<Origin> origins;
  std::string assumed;  ///< the rule or the default with its source; empty where the file says it
};

/// A key of the file that had no effect on the reading.
struct Unread {
  std::string key;
  Origin origin;
  bool harmless = false;  ///< known to take no memory (a learning rate)
};

/// What one file says.
struct Reading {
  std::string file;    ///< the source's name
  std::string format;  ///< the format's name
  std::string what;    ///< in words: "Axolotl configuration"
  std::vector<Finding> findings;
  std::vector<std::string> unknowns;  ///< what to ask the person: "gpu"
  std::vector<std::string> notes;
  std::vector<Unread> unread;
  std::vector<std::string> companions;  ///< files that this one names, as it spells them: a DeepSpeed JSON
  std::vector<std::string> flags;       ///< of a script: those of the command line beside it that its parser takes
  Value log;  ///< of logs and measurements: FORMAT's `reading`, an object of bytes and words; else null
  Issues issues;
};

/// All that was handed over, for readers that look into a sibling (a module, a YAML file named by a script).
using Sources = std::span<const Source>;

/// A source as recognisers and readers see it: what it is written in, and its document where it is one. Made once.
struct Look {
  enum class Syntax { kText, kJson, kYaml, kToml, kPython, kShell, kNotebook, kBinary };
  const Source& source;
  Syntax syntax = Syntax::kText;
  Parsed document;        ///< of JSON, YAML, TOML and notebooks; root is null elsewhere
  std::string_view head;  ///< the first 64 KiB

  bool is_map() const { return document.root.is_map(); }
  const Node* find(std::string_view key) const { return document.root.find(key); }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool mentions(std::string_view word) const { return head.find(word) != std::string_view::npos; }
};
Look look_at(const Source& source);
/// The code in a notebook's cell; empty where it holds text.
std::string code_of(const Node& cell);
/// What a source is written in, without its document: by its name, or its first lines where that says nothing.
Look::Syntax syntax_of(const Source& source);

/// One format. A file of core/exchange/formats defines `const FormatRows <file>_rows`; the build collects them.
struct Format {
  std::string_view name;  ///< "axolotl", as in the corpus's kinds
  std::string_view what;  ///< "Axolotl configuration"
  /// How sure it is that the source is of this format: 0 not at all, 100 without doubt. Cheap, and never wrong about
  /// a file of another format that has a higher score.
  int (*recognise)(const Look& look);
  /// Reads it; the caller has set `format` and `what`.
  void (*read)(const Look& look, Sources all, Reading& reading);
  /// Whose word counts where two files state one field: the higher (a command line over the file that it names).
  int rank = 50;
};
using FormatRows = std::span<const Format>;

/// Every format, in the order of the files' names.
std::span<const Format* const> all_formats();

/// The format of a source, or null where it looks like none.
const Format* recognise(const Look& look);

/// Says that the job has something that moves memory and that no option tells; each kind once.
void not_counted(Reading& reading, std::string what, std::vector<Origin> origins = {});

/// trl 1.9 trainer/dpo_trainer.py: _compute_loss: "sft" among the names of loss_type: a copy of the chosen answers'
/// logits and their cross entropy.
constexpr const char* kChosenCrossEntropy = "\"sft\" in loss_type";
template <typename Node>
bool names_sft(const Node* loss_type) {
  if (loss_type == nullptr) return false;
  bool found = loss_type->text == "sft";
  for (const Node& one : loss_type->items) found |= one.text == "sft";
  return found;
}

/// Says that what the file asks for cannot be together, so that there is no job: the framework refuses it as well.
void contradicts(Reading& reading, std::string what);
/// transformers 5.12 training_args.py: __post_init__: ValueError "At most one of fp16 and bf16 can be True".
void refuse_both_halves(Reading& reading, bool bf16, bool fp16);
/// transformers 5.12 utils/quantization_config.py: BitsAndBytesConfig: ValueError "only one can be used".
void refuse_both_widths(Reading& reading, bool four, bool eight);
/// transformers 5.12 trainer_utils.py: validate_quantization_for_training: weights packed in `bits` beside which
/// nothing is trained. `says` is what the file says of it: "load_in_4bit".
void refuse_packed_alone(Reading& reading, std::string_view says);

/// In a precision's reason: nothing says the dtype that weights are loaded in, so that the release decides
/// (transformers 5.0 modeling_utils.py: from_pretrained: dtype "auto", the checkpoint's; fp32 before).
inline constexpr std::string_view kBefore5 = "fp32 weights before transformers 5";
/// The precision that comes of the same words since: "amp_bf16" is "bf16", what bf16=True gives beside such weights.
std::string_view since_5(std::string_view before);

/// What a reader says about one field.
void state(Reading& reading, std::string_view path, Value value, std::vector<Origin> origins, std::string assumed = {});

/// Whether the field was told.
Finding* find(Reading& reading, std::string_view path);

/// TRL's tasks whose trainers generate the answers that they train on.
inline bool generates_answers(std::string_view task) {
  return task == "grpo" || task == "rloo";
}

}  // namespace tidemark::exchange
