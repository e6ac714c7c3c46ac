#include "core/cli/command_table.hpp"

#include <algorithm>

#include "core/cli/commands.hpp"
#include "core/options/options.hpp"

namespace tidemark {
namespace {

constexpr CommandFlag kFlags[] = {
    {"vram-gb", "X", "A card of which only the size on the box is known; repeatable."},
    {"request", "FILE", "A request as JSON, - for standard input; flags take precedence."},
    {"json", "", "Print the response (docs/schema.md) and nothing else."},
    {"markdown", "", "Print Markdown."},
    {"sarif", "", "Print what does not fit as SARIF 2.1.0 (docs/guards.md)."},
    {"strict", "", "A job that cannot be estimated is a failure, too."},
    {"man", "", "Print a manual page: tidemark describe --man | man -l -"},
    {"bytes", "", "Print exact bytes beside each figure."},
    {"explain", "", "Open every entry: formula, numbers, source, how it is known."},
    {"names", "", "Print names only, one a line."},
    {"no-color", "", "Plain text without colours; NO_COLOR is respected as well."},
    {"ascii", "", "Plain text without box drawings."},
    {"help", "", "Print help."},
    {"help-all", "", "Print help with all options."},
};

constexpr std::string_view kOfJob = "vram-gb,request,json,markdown,no-color,ascii,help,help-all";
constexpr std::string_view kOfList = "json,names,no-color,ascii,help";
constexpr std::string_view kOfText = "no-color,ascii,help";

constexpr Command kCommands[] = {
    {.name = "estimate",
     .flags = "vram-gb,request,json,markdown,sarif,bytes,explain,no-color,ascii,help,help-all",
     .run = run_estimate_command,
     .usage = "estimate [--model NAME | --config FILE | --params N] [options] [--gpu CARD]\n"
              "estimate --request FILE   (- for standard input; flags take precedence)\n"
              "estimate FILE... [options] [--gpu CARD]        (a script, a configuration, a launch command)",
     .files = true},
    {.name = "scan",
     .flags = "vram-gb,request,json,markdown,sarif,bytes,explain,no-color,ascii,help,help-all",
     .run = run_scan_command,
     .help = "what the files of a job say, and what it needs: import and estimate at once",
     .usage = "scan FILE... [options] [--gpu CARD]",
     .about = "Reads files as `import` does, prints what they say and then the estimate. Nothing in them is run.",
     .files = true,
     .asks = "estimate"},
    {.name = "check",
     .flags = "vram-gb,request,json,sarif,strict,no-color,ascii,help,help-all",
     .run = run_check_command,
     .help = "guard: whether the jobs of files fit their cards, each file a job of its own",
     .usage = "check FILE... [options] [--gpu CARD] [--sarif]",
     .about = "For continuous integration and pre-commit. Files that hold no job are passed over. Exit status 1 when a "
              "job does not fit, 2 when no card is named (docs/guards.md).",
     .files = true,
     .asks = "estimate"},
    {.name = "import",
     .flags = "json,no-color,ascii,help",
     .run = run_import_command,
     .help = "read a job from files of other tools: scripts, configurations, launch commands, logs",
     .usage = "import FILE... [--json]   (- for standard input)",
     .about = "The format is recognised. Each field is told with the file and line that it stands in, or why it is "
              "assumed. Nothing in the files is run.",
     .files = true},
    {.name = "export",
     .flags = "vram-gb,request,json,no-color,ascii,help,help-all",
     .run = run_export_command,
     .help = "write a job as another tool's file: a script, a configuration, a command",
     .word = "FORMAT",
     .words =
         "trainer,trl,unsloth,axolotl,llamafactory,swift,torchtune,megatron,accelerate,deepspeed,command,request,patch",
     .usage = "export FORMAT --model NAME [options]\n"
              "export FORMAT FILE...                          (a job that stands in other tools' files)\n"
              "export patch FILE... --gpu CARD [options]      (the file's own lines, changed so that it fits: a diff)",
     .about = "Prints the file. What the format cannot say stands in it as a comment and is told on standard error.",
     .files = true,
     .asks = "estimate"},
    {.name = "probe",
     .flags = "vram-gb,request,json,no-color,ascii,help,help-all",
     .run = run_probe_command,
     .help = "write a script that measures a job on a card: random weights, a few steps, one JSON",
     .usage = "probe --model NAME [options] > probe.py        (then: python probe.py > measured.json)\n"
              "probe FILE... > probe.py",
     .about = "The script runs the job in a child process that may take no more than a share of the card and prints "
              "peaks by phase; `tidemark import measured.json` sets them beside the estimate.",
     .files = true,
     .asks = "estimate"},
    {.name = "trace",
     .flags = kOfText,
     .run = run_trace_command,
     .help = "write a script that records your own model, so that it can be estimated",
     .usage =
         "trace > tidemark_trace.py\n"
         "                                               python tidemark_trace.py my_file.py:build my_file.py:batch -o "
         "my-model.json\n"
         "                                               tidemark estimate --config my-model.json",
     .about =
         "The script runs one forward of your model on fake tensors: on the CPU, without weights, in seconds. What "
         "it writes takes the place of a config.json, for any batch, length, precision and method (docs/trace.md).",
     .catalog = false},
    {.name = "calibrate",
     .flags = kOfJob,
     .run = run_calibrate_command,
     .usage = "calibrate measured.json... [--json] > mine.json    (what the scripts of `tidemark probe` print)\n"
              "calibrate train.yaml memory_summary.txt nvidia-smi.txt [options]\n"
              "estimate ... --calibration mine.json",
     .about = "Fits what measurements determine, by least squares: the CUDA context of the card, NCCL's buffers, what "
              "the allocator caches and, where --activations asks for it, activations. Tells how far each measurement "
              "is from the estimate, with the factors and with factors fitted to the others (docs/calibration.md).",
     .files = true},
    {.name = "fit",
     .flags = kOfJob,
     .run = run_fit_command,
     .usage = "fit --model NAME [options]                     (all cards that we know)\n"
              "fit --model NAME [options] --gpu 4090 --gpu A100-80GB --vram-gb 24",
     .about =
         "The verdict on each card, smallest that fits first. Exit status 1 when a named card does not do, or none "
         "of all.",
     .files = true},
    {.name = "advise",
     .flags = kOfJob,
     .run = run_advise_command,
     .usage = "advise --model NAME [options] --gpu CARD",
     .about =
         "Whether the job fits the card; if not, the combination of changes that does least harm; each change by "
         "itself with what it saves and costs; the largest batch, sequence and rank; MemScale's modes. Exit status "
         "1 when the job as it is does not fit.",
     .files = true},
    {.name = "map",
     .flags = kOfJob,
     .run = run_map_command,
     .usage = "map --model NAME [options] --gpu CARD [--batches 1,2,4] [--sequences 512,1024]",
     .about = "Peaks over micro-batch sizes (rows) and sequence lengths (columns).",
     .files = true},
    {.name = "models",
     .flags = kOfList,
     .run = run_models_command,
     .help = "models known by name; `tidemark models qwen` keeps those that match",
     .word = "PATTERN"},
    {.name = "gpus",
     .flags = kOfList,
     .run = run_gpus_command,
     .help = "cards known by name, with the memory that PyTorch really sees",
     .word = "PATTERN"},
    {.name = "describe",
     .flags = "json,markdown,man,no-color,ascii,help",
     .run = run_describe_command,
     .help = "every option with its default and values; `tidemark describe optimizer` for one",
     .word = "OPTION"},
    {.name = "schema",
     .flags = kOfText,
     .run = run_schema_command,
     .help = "JSON Schemas: `tidemark schema request`, `tidemark schema answer`",
     .word = "WHICH",
     .words = "request,answer",
     .catalog = false},
    {.name = "completion",
     .flags = kOfText,
     .run = run_completion_command,
     .help = "shell completion: `source <(tidemark completion bash)`, zsh, fish",
     .word = "SHELL",
     .words = "bash,zsh,fish",
     .catalog = false},
    {.name = "version", .flags = "json,no-color,ascii,help", .run = run_version_command},
    {.name = "help", .flags = kOfText, .run = run_help_command, .help = "this page", .catalog = false},
};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::span<const CommandFlag> command_flags() {
  return kFlags;
}

std::vector<const CommandFlag*> flags_of(const Command& command) {
  std::vector<const CommandFlag*> flags;
  for (std::string_view name : words_of(command.flags)) {
    for (const CommandFlag& flag : kFlags) {
      if (flag.name == name) flags.push_back(&flag);
    }
  }
  return flags;
}

std::vector<std::string> option_flags() {
  std::vector<std::string> names;
  for (const Option& option : options()) {
    for (std::string& flag : flags_of(option)) names.push_back(std::move(flag));
  }
  return names;
}

std::vector<std::string> further_flags_of(const Command& command) {
  std::vector<std::string> names;
  if (command.of_job()) {
    for (const VerbKey& key : command.verb()->keys) {
      for (std::string& flag : flags_of(key)) names.push_back(std::move(flag));
    }
  }
  for (const CommandFlag* flag : flags_of(command)) names.push_back("--" + std::string{flag->name});
  return names;
}

}  // namespace tidemark
