#include "core/exchange/import.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/exchange/args.hpp"
#include "core/exchange/fields.hpp"
#include "core/exchange/notebook_files.hpp"
#include "core/exchange/own_launch.hpp"
#include "core/exchange/pins.hpp"
#include "core/job/framework.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostSources = 64;

/// Why nothing recognises a source: what whoever wrote it can mend.
std::string why_unknown(const Look& look) {
  const std::string name = "\"" + look.source.name + "\"";
  const bool is_json = look.syntax == Look::Syntax::kJson;
  if (look.source.bytes.find_first_not_of(" \t\r\n") == std::string::npos) return name + " is empty.";
  if (is_json && !look.document.error.empty()) {
    return name + " cannot be read as JSON. Line " + std::to_string(look.document.error_line) + ": " +
           look.document.error;
  }
  if (is_json && look.has("hidden_size")) return name + " says no \"model_type\", without which it describes no model.";
  return name + " looks like none of the formats that are read.";
}

/// Whether a file of that syntax may install what it runs with.
bool runs(Look::Syntax syntax) {
  return syntax == Look::Syntax::kPython || syntax == Look::Syntax::kNotebook || syntax == Look::Syntax::kShell;
}

Reading read(const Source& source, Sources all) {
  Reading reading;
  reading.file = source.name;
  const Look look = look_at(source);
  const Format* format = recognise(look);
  if (format == nullptr) {
    // What a program reads with words of its own is no job, and no hindrance to that of the program.
    const bool is_data = look.is_map() && std::any_of(all.begin(), all.end(), [&](const Source& other) {
                           return other.name != source.name && runs(syntax_of(other));
                         });
    reading.issues.push_back(
        {"UNKNOWN_FORMAT", is_data ? Severity::kNote : Severity::kError, source.name, why_unknown(look), ""});
    return reading;
  }
  reading.format = format->name;
  reading.what = format->what;
  format->read(look, all, reading);
  if (runs(look.syntax)) read_pins(look, reading);
  if (const int line = look.syntax == Look::Syntax::kYaml ? further_document(source.bytes) : 0; line > 0) {
    reading.notes.push_back("\"" + source.name +
                            "\" holds several documents; the first is read, and not what begins at line " +
                            std::to_string(line));
  }
  return reading;
}

int rank_of(const Reading& reading) {
  for (const Format* format : all_formats()) {
    if (format->name == reading.format) return format->rank;
  }
  return 0;
}

/// What a line says counts more than a line beside a rule, and that more than a default; of two alike the launcher's
/// word.
bool counts_more(const Finding& one, int rank, const Finding& other, int other_rank) {
  const auto weight = [](const Finding& finding) {
    return finding.origins.empty() ? 0 : finding.assumed.empty() ? 2 : 1;
  };
  return weight(one) != weight(other) ? weight(one) > weight(other) : rank > other_rank;
}

struct Field {
  Finding finding;
  int rank = 0;
};

Field* field_of(std::vector<Field>& fields, std::string_view path) {
  const auto at =
      std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.finding.path == path; });
  return at == fields.end() ? nullptr : &*at;
}

void merge(std::vector<Field>& fields, const Reading& reading) {
  const int rank = rank_of(reading);
  for (const Finding& finding : reading.findings) {
    Field* const known = field_of(fields, finding.path);
    if (known == nullptr) {
      fields.push_back({finding, rank});
    } else if (counts_more(finding, rank, known->finding, known->rank)) {
      *known = {finding, rank};
    }
  }
}

void append_new(std::vector<std::string>& all, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
  }
}

bool cited(const std::vector<Finding>& fields, const Origin& place) {
  return std::any_of(fields.begin(), fields.end(), [&](const Finding& field) {
    return std::any_of(field.origins.begin(), field.origins.end(), [&](const Origin& origin) {
      return origin.file == place.file && origin.first == place.first && origin.cell == place.cell;
    });
  });
}

/// Whether a script has a parser that takes this flag of a command line.
bool taken_elsewhere(const std::vector<Reading>& readings, const std::string& flag) {
  return std::any_of(readings.begin(), readings.end(), [&](const Reading& reading) {
    return std::find(reading.flags.begin(), reading.flags.end(), flag) != reading.flags.end();
  });
}

/// Whether a line of another file answers what this one leaves open.
bool answered_by_another(const std::vector<Reading>& readings, const Reading& asks, const std::string& question) {
  const std::string_view path = std::string_view{question}.substr(0, question.find_first_of(": "));
  return std::any_of(readings.begin(), readings.end(), [&](const Reading& other) {
    return &other != &asks && std::any_of(other.findings.begin(), other.findings.end(), [&](const Finding& finding) {
      return finding.path == path && !finding.origins.empty() && finding.assumed.empty();
    });
  });
}

}  // namespace

void put(Value& object, std::string_view dotted, Value value) {
  object.kind = Value::Kind::kObject;
  const std::size_t dot = dotted.find('.');
  const std::string_view key = dotted.substr(0, dot);
  auto member = std::find_if(object.members.begin(), object.members.end(),
                             [&](const Value::Member& candidate) { return candidate.key == key; });
  if (member == object.members.end()) {
    object.members.push_back({std::string{key}, Value{}});
    member = object.members.end() - 1;
  }
  if (dot == std::string_view::npos) {
    member->value = std::move(value);
  } else {
    put(member->value, dotted.substr(dot + 1), std::move(value));
  }
}

namespace {

/// Weights for which nothing says a dtype are in the checkpoint's from transformers 5 on, where that is installed.
void settle_loading(std::vector<Field>& fields) {
  const Field* release = field_of(fields, "framework.version");
  Framework installed;
  if (release == nullptr || !read_version(release->finding.value.string, installed) || !installed.at_least(5, 0))
    return;
  const std::string why = "no dtype: transformers 5 loads the checkpoint's own";
  for (Field& field : fields) {
    Finding& finding = field.finding;
    if (finding.assumed.find(kBefore5) == std::string::npos) continue;
    if (finding.path == "reference_model.dtype") {
      finding.value = of("bf16");
      finding.assumed = why + ", taken as bf16";
    } else if (finding.path == "precision" && finding.value.is_string()) {
      const bool casts = finding.value.string != "fp32";
      finding.value = of(std::string{since_5(finding.value.string)});
      finding.assumed = casts ? why : why + ", taken as bf16; no autocast";
    }
  }
}

bool says_a_model(const Reading& reading) {
  return std::any_of(reading.findings.begin(), reading.findings.end(),
                     [](const Finding& one) { return one.path == "model" || one.path == "config"; });
}

/// Beside a job, a file that trains nothing is only left out: the server that answers it, a module of callbacks.
void leave_out_other_work(std::vector<Reading>& readings) {
  if (std::none_of(readings.begin(), readings.end(), says_a_model)) return;
  for (Reading& reading : readings) {
    for (Issue& issue : reading.issues) {
      if (issue.code == "NO_JOB") issue.severity = Severity::kWarning;
    }
  }
}

Import import_all(Sources sources) {
  Import result;
  std::vector<Field> fields;
  for (const Source& source : sources) result.readings.push_back(read(source, sources));
  leave_out_other_work(result.readings);
  for (const Reading& reading : result.readings) {
    merge(fields, reading);
    append_new(result.notes, reading.notes);
    result.issues.insert(result.issues.end(), reading.issues.begin(), reading.issues.end());
  }
  settle_loading(fields);
  for (const Reading& reading : result.readings) {
    std::vector<std::string> open;
    for (const std::string& question : reading.unknowns) {
      const bool by_release =
          question.find("by version") != std::string::npos && field_of(fields, "framework.version") != nullptr;
      if (!by_release && !answered_by_another(result.readings, reading, question)) open.push_back(question);
    }
    append_new(result.unknowns, open);
  }
  result.request.kind = Value::Kind::kObject;
  for (Field& field : fields) {
    put(result.request, field.finding.path, field.finding.value);
    result.fields.push_back(std::move(field.finding));
  }
  for (Reading& reading : result.readings) {
    std::erase_if(reading.unread, [&](const Unread& one) {
      return taken_elsewhere(result.readings, one.key) && cited(result.fields, one.origin);
    });
  }
  return result;
}

/// A configuration or a command among the files names the model, or starts the script: what its docstring shows is
/// another run.
bool is_launched(const Source& script, Sources sources) {
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const Look::Syntax syntax = syntax_of(source);
    if (syntax == Look::Syntax::kPython || syntax == Look::Syntax::kNotebook) return false;
    if (syntax == Look::Syntax::kShell) {
      const TrainingScript text = training_script(look_at(source));
      if (text.launch != nullptr && starts_this(text.launch->program, script.name)) return true;
    }
    Reading reading = read(source, sources);
    return find(reading, "model") != nullptr;
  });
}

void add_own_launch(const Source& script, Sources sources, std::vector<Source>& all) {
  std::optional<Source> launch = own_launch(script);
  if (!launch || is_launched(script, sources)) return;
  // A script that names its model says the rest of the job as well, but not among how many GPUs it is divided.
  const bool divides = launch->bytes.find("--config_file") != std::string::npos;
  if (divides || !says_a_model(read(script, sources))) all.push_back(std::move(*launch));
}

/// Of a notebook that loads no model itself: what it writes and starts.
void add_notebook_files(NotebookFiles files, const Source& notebook, Sources sources, std::vector<Source>& all) {
  if (files.sources.empty()) return;
  Reading own = read(notebook, sources);
  if (says_a_model(own) || find(own, "micro_batch_size") != nullptr) return;
  for (Source& source : files.sources) {
    if (recognise(look_at(source)) != nullptr) all.push_back(std::move(source));
  }
}

/// Lines of a notebook's commands are cells' lines.
void place_in_cells(const NotebookFiles& files, const std::string& notebook, Origin& origin) {
  const std::size_t first = static_cast<std::size_t>(origin.first - 1);
  if (origin.file != files.commands || first >= files.lines.size()) return;
  const NotebookFiles::Place place = files.lines[first];
  origin = {notebook, place.line, place.line + origin.last - origin.first, place.cell};
}

void place_in_cells(const NotebookFiles& files, const std::string& notebook, Import& result) {
  const auto place = [&](Finding& finding) {
    for (Origin& origin : finding.origins) place_in_cells(files, notebook, origin);
  };
  std::for_each(result.fields.begin(), result.fields.end(), place);
  for (Reading& reading : result.readings) {
    std::for_each(reading.findings.begin(), reading.findings.end(), place);
    for (Unread& one : reading.unread) place_in_cells(files, notebook, one.origin);
  }
}

}  // namespace

Import import_sources(Sources sources) {
  if (sources.size() > kMostSources) sources = sources.first(kMostSources);
  std::vector<Source> all{sources.begin(), sources.end()};
  std::vector<std::pair<std::string, NotebookFiles>> notebooks;
  for (const Source& source : sources) {
    if (syntax_of(source) == Look::Syntax::kPython) add_own_launch(source, sources, all);
    if (syntax_of(source) != Look::Syntax::kNotebook) continue;
    notebooks.emplace_back(source.name, files_of_notebook(source));
    add_notebook_files(notebooks.back().second, source, sources, all);
  }
  Import result = import_all(all);
  for (const auto& [name, files] : notebooks) place_in_cells(files, name, result);
  return result;
}

}  // namespace tidemark::exchange
