#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/fields.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

/// A program's training job while it is read: the calls that make it up, and what was told of it so far.
struct PyJob {
  PyJob(PyProgram& of, std::string_view its_text, Reading& into) : program(of), text(its_text), reading(into) {}

  PyProgram& program;
  std::string_view text;  ///< the whole program's, of notebooks that of all cells
  Reading& reading;       ///< what was told

  const PyObject* trainer = nullptr;       ///< a library's, or a class that derives from one
  const PyObject* own_trainer = nullptr;   ///< a class of the program's own that is called Trainer
  const PyObject* arguments = nullptr;     ///< TrainingArguments, SFTConfig and their like
  const PyObject* parsed_flags = nullptr;  ///< what the program's own argparse returns
  const PyObject* mxfp4 = nullptr;         ///< Mxfp4Config
  const PyObject* packed = nullptr;        ///< GPTQConfig, AwqConfig or HqqConfig
  const PyObject* accelerator = nullptr;   ///< accelerate's Accelerator
  const PyObject* lightning = nullptr;     ///< its Trainer, or Fabric
  const PyObject* lora = nullptr;          ///< the adapter's configuration, LoRA's or another's
  const PyObject* bitsandbytes = nullptr;  ///< BitsAndBytesConfig
  const PyObject* prepared = nullptr;      ///< the call of prepare_model_for_kbit_training
  const PyObject* load = nullptr;          ///< the call that loads the model
  const PyValue* model_name = nullptr;     ///< where the trainer is handed a name instead
  std::string trainer_task;                ///< what the trainer's class says of the task; empty where nothing
  std::string task;                        ///< as it was told; empty before
  bool unsloth = false;                    ///< it imports unsloth
  bool trl = false;                        ///< its arguments are of a class of TRL's
  bool quantised = false;                  ///< weights are packed
  PyValue quantised_by;                    ///< the places and the reason of that

  // ---- telling
  void say(std::string_view path, Value value, std::vector<Origin> places, std::string why = {});
  void say(std::string_view path, const PyValue& value) { say(path, to_value(value), value.places, value.why); }
  void say(std::string_view path, Value value, const PyValue& by) { say(path, std::move(value), by.places, by.why); }
  /// Says the field as the first of these arguments has it that is there, where that is a number or a switch.
  void copy(std::string_view path, std::initializer_list<std::string_view> keys);
  bool told(std::string_view path) const { return find(reading, path) != nullptr; }
  /// Something to ask the person, once.
  void unknown(std::string what);

  // ---- looking up
  /// The object that a value is; null for any other value.
  const PyObject* at(const PyValue* value) const;
  /// A keyword of the trainer's arguments, of the trainer itself (older TRL), or a flag of the program's own.
  const PyValue* argument(std::string_view key) const;
  const PyValue* any_argument(std::initializer_list<std::string_view> keys) const;
  bool on(std::string_view key) const { return is_true(argument(key)); }
  /// An option of the call that loads the model, or of the trainer's model_init_kwargs.
  const PyValue* load_option(std::string_view key) const;
  /// The number that a variable of a telling name, in whatever case, was given last.
  const PyValue* variable(std::initializer_list<std::string_view> names) const;
  /// The text that a variable was given last.
  const PyValue* text_variable(std::string_view name) const;
  bool imports(std::string_view word) const;
  /// Follows wrappers, from what the trainer is given down to what is loaded.
  const PyObject* loaded(const PyValue* value, int depth = 0) const;
  /// Where the model is loaded, the trainer made and its arguments: the places of what a default decides.
  std::vector<Origin> context() const;

  // ---- what kind of program it is
  /// Its arguments come from a command line that is not known.
  bool is_command() const { return arguments != nullptr && arguments->from_command; }
  /// And nothing of the job stands in the file.
  bool is_template() const { return is_command() && !told("model"); }
  /// A configuration that a notebook writes for the program that it starts.
  bool is_written() const { return arguments != nullptr && arguments->name == "written.TrainingArguments"; }
  /// llama_index's SentenceTransformersFinetuneEngine, which has its own words and defaults.
  bool is_llama_index() const { return trainer != nullptr && trainer->is("SentenceTransformersFinetuneEngine"); }
  /// unsloth 2026.10.9 models/rl.py: TRL's configurations have defaults of Unsloth's: four rows, two micro-batches and
  /// adamw_8bit.
  bool has_unsloth_defaults() const { return unsloth && trl && arguments->bases.empty() && !is_command(); }
  /// unsloth 2026.10.9 models/loader.py: from_pretrained: full_finetuning puts out load_in_4bit, which is its default,
  /// and load_in_8bit.
  bool tunes_fully() const { return unsloth && load != nullptr && is_true(load->find("full_finetuning")); }
};

}  // namespace tidemark::exchange
