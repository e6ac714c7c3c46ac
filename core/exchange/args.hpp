#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/fields.hpp"
#include "core/exchange/text/shell.hpp"

namespace tidemark::exchange {

/// A named argument of a command or a call, and where it and what it is made of stand.
struct Arg {
  std::string key;  ///< without dashes, with underscores
  Node value;
  std::vector<Origin> origins;
  std::string assumed;     ///< why its value is only likely: a script's own default
  std::string unresolved;  ///< what is not known of it: "$1"; then value is no value
  bool read = false;
};

/// The arguments of one command or call; the last of a name counts.
class Args {
 public:
  explicit Args(Reading& told) : reading(told) {}
  void add(Arg arg);

  /// The argument of that name, or null; also null where its value is unknown, which becomes a question once.
  Arg* find(std::string_view key);
  Arg* any(std::initializer_list<std::string_view> keys);
  bool has(std::string_view key) const;
  bool on(std::string_view key);  ///< there, and not false
  std::string text(std::string_view key);

  void state(std::string_view path, Value value, std::initializer_list<const Arg*> args, std::string assumed = {});
  bool copy(std::string_view path, std::initializer_list<std::string_view> keys);
  void assume(std::string_view path, Value value, std::string why) {
    exchange::state(reading, path, std::move(value), {}, std::move(why));
  }
  void unknown(std::string what);
  bool told(std::string_view path) const { return exchange::find(reading, path) != nullptr; }
  /// Arguments that nobody asked for.
  void tell_unread();

  Reading& reading;
  std::deque<Arg> all;
};

/// What starts a program: torchrun, accelerate launch, deepspeed, python, swift, ...
struct Launch {
  std::string launcher;              ///< "torchrun", "accelerate", "deepspeed", "python", "swift", "megatron", ...
  std::string program;               ///< "train.py", "verl.trainer.main_ppo"; of swift and its like the word behind it
  std::vector<ShellWord> options;    ///< the launcher's own
  std::vector<ShellWord> arguments;  ///< the program's
  const ShellCommand* command = nullptr;
};

/// The launches of a script, in order.
std::vector<Launch> launches_of(const ShellScript& script);
/// "name" of `--name` and `--name=value`; empty where the word is no flag.
std::string_view flag_of(std::string_view word);
/// Whether the program is given `--name` or `--name=value`.
bool has_flag(const Launch& launch, std::string_view name);
/// Of several the one that trains; null where there is none.
const Launch* training_launch(const std::vector<Launch>& launches);

/// Whether a command that starts `program` starts this file, wherever they lie (and where folders
/// are part of the name: "examples__train.py").
bool starts_this(std::string_view program, std::string_view file);

/// A shell script and its launch that trains, if any.
struct TrainingScript {
  ShellScript script;            ///< as read
  std::vector<Launch> launches;  ///< of it
  const Launch* launch;          ///< among them; null where none trains
};
TrainingScript training_script(const Look& look);
/// Says that others train as well, with other words, and which is read.
void tell_other_launches(Reading& reading, const TrainingScript& text);
/// Says that none does.
void tell_no_launch(Reading& reading, const Look& look);

/// `--key value`, `--key=value`, `--flag`, `a.b=c`.
void add_arguments(Args& args, const std::vector<ShellWord>& words, const std::string& file);
Arg arg_of(std::string key, const ShellWord& word, const std::string& file);

/// `--config recipe.yaml` of TrlParser, or the one word behind the program that HfArgumentParser takes for a file;
/// empty where there is none.
std::string configuration_of(const Launch& launch);

/// A variable of the command's environment or of the script, or null.
const ShellWord* environment_of(const ShellScript& script, const Launch* launch, const std::string& name);

/// What the environment and the launcher say: visible GPUs, the allocator, GPUs and nodes.
void read_environment(Args& args, const ShellScript& script, const Launch* launch, const std::string& file);
/// Processes in all by the launcher's options; states parallelism.data or asks for it.
void read_launcher(Args& args, const Launch& launch, const std::string& file);
/// A file of accelerate's by the name that TRL gives its own, which others copy: each but for the one of a single GPU
/// has eight processes and bf16 (trl v1.9.0 trl/accelerate_configs, examples/accelerate_configs). The file itself
/// counts more.
void state_trl_config(Args& args, const Arg& config);
/// llamafactory-cli train starts torchrun with a process for each GPU in sight, or NPROC_PER_NODE, on NNODES.
void read_llamafactory_processes(Args& args, const TrainingScript& text, const std::string& file);
/// #SBATCH lines, the environment and the program's arguments of a script that starts a training.
void read_script(Args& args, const Look& look, const TrainingScript& text);
/// #SBATCH lines.
void read_slurm_header(Reading& reading, std::string_view text, const std::string& file);

}  // namespace tidemark::exchange
