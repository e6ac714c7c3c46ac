// Scripts and notebooks. Read, never run (core/exchange/python/program.hpp).
#include <string>

#include "core/exchange/args.hpp"
#include "core/exchange/fields.hpp"
#include "core/exchange/other_work.hpp"
#include "core/exchange/python/program.hpp"
#include "core/exchange/python/read_job.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostBytes = 2 << 20;

int recognise_python(const Look& look) {
  return look.syntax == Look::Syntax::kPython ? 50 : 0;
}
int recognise_notebook(const Look& look) {
  return look.syntax == Look::Syntax::kNotebook && look.has("cells") ? 95 : 0;
}

/// What the file says that the command names, but for what the command says itself.
void add_configuration(Args& flags, const std::string& name, Sources all) {
  for (const Source& source : all) {
    if (name.empty() || !starts_this(name, source.name)) continue;
    const Look look = look_at(source);
    if (!look.is_map()) continue;
    for (std::size_t at = 0; at < look.document.root.keys.size(); ++at) {
      const Node& node = look.document.root.items[at];
      const std::string& key = look.document.root.keys[at];
      if (!flags.has(key)) flags.add({key, node, {{source.name, node.line, node.last}}, {}, {}});
    }
    return;
  }
}

/// A command line that was handed over beside the script and starts it gives its flags to the script's parser.
void take_command(PyProgram& program, const Look& look, Sources all) {
  for (const Source& source : all) {
    if (syntax_of(source) != Look::Syntax::kShell) continue;
    const TrainingScript text = training_script(look_at(source));
    if (text.launch == nullptr) continue;
    if (!starts_this(text.launch->program, look.source.name)) continue;
    Reading scratch;
    Args flags(scratch);
    add_arguments(flags, text.launch->arguments, source.name);
    add_configuration(flags, configuration_of(*text.launch), all);
    return program.start_with(flags.all);
  }
}

void read_python(const Look& look, Sources all, Reading& reading) {
  PyProgram program(look.source, all);
  take_command(program, look, all);
  const std::string_view text = std::string_view{look.source.bytes}.substr(0, kMostBytes);
  program.run(text, -1);
  program.run_the_rest();
  reading.flags = program.flags;
  if (const std::string work = other_work(program); !work.empty())
    return tell_other_work(reading, look.source.name, work);
  read_python_job(program, text, reading);
}

/// `%%writefile train.yaml` and `!torchrun ... train.py --config train.yaml` of one notebook are one job: a file of the
/// program's own words.
struct Written {
  Node document;
  int cell = -1;
  int before = 0;
  int launch = -1;
};

void take_written(const std::string& text, int cell, Written& written) {
  const std::size_t end = text.find('\n');
  const std::string head = text.substr(0, end);
  const bool yaml = head.find(".yaml") != std::string::npos || head.find(".yml") != std::string::npos;
  if (head.compare(0, 11, "%%writefile") != 0 || !yaml || end == std::string::npos) return;
  Parsed parsed = parse_yaml_lines(std::string_view{text}.substr(end + 1));
  if (!parsed.root.is_map() || parsed.root.find("per_device_train_batch_size") == nullptr) return;
  if (parsed.root.find("model_name_or_path") != nullptr) return;  // of TRL's words, which have a reader
  written = {std::move(parsed.root), cell, 1};
}

/// A launch in a cell: its program and its processes, as keys of the document.
void take_launch(const std::string& text, int cell, Written& written) {
  if (text.empty() || text[0] != '!' || written.cell < 0) return;
  const ShellScript script = read_shell(std::string_view{text}.substr(1));
  const std::vector<Launch> launches = launches_of(script);
  const Launch* launch = training_launch(launches);
  if (launch == nullptr) return;
  Reading scratch;
  Args options(scratch);
  add_arguments(options, launch->options, "");
  const auto add = [&](const char* key, Node value) {
    value.line = value.last = 0;
    written.document.keys.emplace_back(key);
    written.document.items.push_back(std::move(value));
  };
  if (const Arg* count = options.any({"nproc_per_node", "num_processes", "num_gpus"}); count != nullptr)
    add("nproc_per_node", count->value);
  add("program", plain_scalar(launch->program));
  written.launch = cell;
}

/// A cell that hands lines to a shell which starts a program of its own: `!python train.py`, `%%bash`.
bool starts_programs(const std::string& text) {
  const std::size_t line = text.starts_with("%%") ? text.find('\n') : text.starts_with("!") ? 0 : text.find("\n!");
  if (line == std::string::npos) return false;
  const std::size_t command = text.find_first_not_of("\n!", line);
  return command != std::string::npos && !launches_of(read_shell(std::string_view{text}.substr(command))).empty();
}

void forget(Reading& reading) {
  reading.findings.clear();
  reading.unknowns = {"model"};
  reading.unread.clear();
}

void read_notebook(const Look& look, Sources all, Reading& reading) {
  PyProgram program(look.source, all);
  std::string whole;
  Written written;
  bool launches = false;
  const Node* cells = look.find("cells");
  for (std::size_t at = 0; at < cells->items.size(); ++at) {
    const std::string text = code_of(cells->items[at]);
    if (text.empty()) continue;
    take_written(text, static_cast<int>(at), written);
    take_launch(text, static_cast<int>(at), written);
    launches = launches || starts_programs(text);
    if (text.compare(0, 2, "%%") == 0 && text.compare(0, 9, "%%capture") != 0 && text.compare(0, 6, "%%time") != 0)
      continue;
    if (whole.size() + text.size() > kMostBytes) break;
    program.run(text, static_cast<int>(at));
    whole += text + "\n";
  }
  program.run_the_rest();
  if (written.cell >= 0)
    program.add_document(written.document, "written.TrainingArguments", written.cell, written.before, written.launch);
  if (const std::string work = other_work(program); !launches && !work.empty())
    return tell_other_work(reading, look.source.name, work);
  read_python_job(program, whole, reading);
  // What it starts says the job; of its own lines only what they install counts.
  if (launches && find(reading, "model") == nullptr && find(reading, "micro_batch_size") == nullptr) forget(reading);
}

const Format kRows[] = {
    {"python", "Python script", recognise_python, read_python, 70},
    {"notebook", "notebook", recognise_notebook, read_notebook, 70},
};

}  // namespace

extern const FormatRows python_rows;
const FormatRows python_rows = kRows;

}  // namespace tidemark::exchange
