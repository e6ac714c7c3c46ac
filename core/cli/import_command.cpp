#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/cli/commands.hpp"
#include "core/cli/imported.hpp"
#include "core/cli/job_flags.hpp"
#include "core/cli/terminal.hpp"
#include "core/exchange/document.hpp"
#include "core/exchange/import.hpp"
#include "core/exchange/job.hpp"
#include "core/exchange/trouble/compare.hpp"
#include "core/report/layout.hpp"
#include "core/wire/json.hpp"

namespace tidemark {
namespace {

constexpr int kRoundsOfCompanions = 2;
/// Recordings of PyTorch's allocator are read whole: pickles have no head that tells it all.
constexpr std::size_t kMostPickleBytes = 512U << 20U;

exchange::Source source_of(const std::string& path, Issues& issues) {
  exchange::Source source{path, read_file(path, issues), 0};
  if (source.bytes.size() <= kMaxDocumentBytes || path == "-") return source;
  if (source.bytes[0] == '\x80') source.bytes = read_file(path, issues, kMostPickleBytes);
  if (std::FILE* file = std::fopen(path.c_str(), "rb"); file != nullptr) {
    if (std::fseek(file, 0, SEEK_END) == 0) source.size = static_cast<std::uint64_t>(std::ftell(file));
    std::fclose(file);
  }
  return source;
}

bool is_there(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  const bool readable = std::fgetc(file) != EOF;
  std::fclose(file);
  return readable;
}

/// A file that another one names, beside that one, from a folder around it (commands are run in a repository's root) or
/// here.
std::string place_of(const std::string& name, const std::string& file) {
  if (name.empty() || name[0] == '/') return {};
  const std::size_t slash = file.rfind('/');
  std::size_t folder = slash;
  do {
    const std::string around = folder == std::string::npos ? name : file.substr(0, folder + 1) + name;
    if (is_there(around)) return around;
    folder = folder == std::string::npos || folder == 0 ? std::string::npos : file.rfind('/', folder - 1);
  } while (folder != std::string::npos && name.find('/') != std::string::npos);
  if (is_there(name)) return name;
  const std::string bare = name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1);
  const std::string next = slash == std::string::npos ? bare : file.substr(0, slash + 1) + bare;
  return is_there(next) ? next : std::string{};
}

}  // namespace

exchange::Import import_files(const std::vector<std::string>& files, Issues& issues) {
  std::vector<exchange::Source> sources;
  for (const std::string& file : files) sources.push_back(source_of(file, issues));
  if (has_error(issues)) return {};
  exchange::Import result = exchange::import_sources(sources);
  for (int round = 0; round < kRoundsOfCompanions; ++round) {
    const std::size_t before = sources.size();
    for (const exchange::Reading& reading : result.readings) {
      for (const std::string& name : reading.companions) {
        const std::string path = place_of(name, reading.file);
        const bool known = std::any_of(sources.begin(), sources.end(),
                                       [&](const exchange::Source& source) { return source.name == path; });
        if (!path.empty() && !known) sources.push_back(source_of(path, issues));
      }
    }
    if (sources.size() == before) break;
    result = exchange::import_sources(sources);
  }
  return result;
}

namespace {

std::string place_in_words(const exchange::Origin& origin) {
  std::string text = origin.file;
  if (origin.cell >= 0) text += " cell " + std::to_string(origin.cell);
  if (origin.first > 0) text += ":" + std::to_string(origin.first);
  if (origin.last > origin.first) text += "-" + std::to_string(origin.last);
  return text;
}

std::string shown(const Value& value) {
  std::string text = value.is_string() ? value.string : write_json(value);
  if (text.size() > 72) text = text.substr(0, 69) + "...";
  return text;
}

void print_field(const exchange::Finding& field, std::string& out) {
  out += "  " + field.path + " = " + shown(field.value) + "\n";
  std::string where;
  for (const exchange::Origin& origin : field.origins) where += (where.empty() ? "" : ", ") + place_in_words(origin);
  if (!where.empty()) out += "      " + where + "\n";
  if (!field.assumed.empty()) out += "      assumed: " + field.assumed + "\n";
}

void print_unread(const exchange::Reading& reading, std::string& out) {
  std::string harmless;
  for (const exchange::Unread& key : reading.unread) {
    if (key.harmless) {
      harmless += (harmless.empty() ? "" : ", ") + key.key;
    } else {
      out += "  not read: " + key.key + " (" + place_in_words(key.origin) + ")\n";
    }
  }
  if (!harmless.empty()) out += "  take no memory: " + harmless + "\n";
}

std::string text_of(const exchange::Import& import) {
  std::string out;
  for (const exchange::Reading& reading : import.readings) {
    if (reading.format.empty()) continue;
    out += reading.file + ": " + reading.what + "\n";
    print_unread(reading, out);
    if (!reading.log.is_null()) out += write_json(reading.log, 2) + "\n";
  }
  if (!import.fields.empty()) out += "\n";
  for (const exchange::Finding& field : import.fields) print_field(field, out);
  for (const std::string& unknown : import.unknowns) out += "  ? " + unknown + "\n";
  for (const std::string& note : import.notes) out += "  note: " + note + "\n";
  return out;
}

/// Lines that are wider than the terminal, broken at spaces; what follows is indented further.
std::string broken_at(std::size_t width, std::string_view text) {
  constexpr std::size_t kFurther = 2;
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out += columns_of(line) > width ? std::string(indent, ' ') + wrap(line.substr(indent), width, indent + kFurther)
                                    : std::string{line};
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

/// A log beside a job: what the estimate says of it.
struct Beside {
  std::string file;
  exchange::Comparison comparison;
};

bool has_log(const exchange::Import& import) {
  return std::any_of(import.readings.begin(), import.readings.end(),
                     [](const exchange::Reading& reading) { return reading.log.is_object(); });
}

/// Nothing where the files state no log, or no job that can be estimated.
std::vector<Beside> compare_logs(const exchange::Import& import, const Value& job, const Engine& engine) {
  if (!has_log(import) || (job.find("model") == nullptr && job.find("config") == nullptr)) return {};
  const Answer answer = engine.answer(job);
  std::vector<Beside> all;
  if (!answer.estimate) return all;
  for (const exchange::Reading& reading : import.readings) {
    if (!reading.log.is_object() || reading.log.find("error") != nullptr) continue;
    all.push_back({reading.file, exchange::compare(*answer.estimate, reading.format, reading.log)});
  }
  return all;
}

std::string text_of(const std::vector<Beside>& all) {
  std::string out;
  for (const Beside& beside : all) {
    out += "\n" + beside.file + " beside the estimate: " + std::string{beside.comparison.verdict} + "\n";
    for (const std::string& sentence : beside.comparison.sentences) out += "  " + sentence + "\n";
    for (const exchange::Comparison::Row& row : beside.comparison.rows) {
      out += "  " + row.what + ": estimated " + format_gib(row.estimated) + ", measured " + format_gib(row.measured) +
             "\n";
    }
  }
  return out;
}

Value value_of(const std::vector<Beside>& all) {
  Value list = empty_array();
  for (const Beside& beside : all) {
    Value row = exchange::to_value(beside.comparison);
    set(row, "file", beside.file);
    list.items.push_back(std::move(row));
  }
  return list;
}

}  // namespace

std::string compare_files(const Invocation& typed, const Value& job) {
  Issues issues;
  if (typed.files.empty()) return {};
  return text_of(compare_logs(import_files(typed.files, issues), job, typed.engine));
}

Value read_files(const std::vector<std::string>& files, Issues& issues) {
  const exchange::Import import = import_files(files, issues);
  issues.insert(issues.end(), import.issues.begin(), import.issues.end());
  return has_error(issues) ? Value{} : exchange::job_of(import, issues);
}

int run_import_command(const Invocation& typed) {
  Issues issues;
  if (typed.files.empty()) {
    issues.push_back({"BAD_USAGE", Severity::kError, "", "Name the files to read, or - for standard input.", ""});
    return refuse(std::move(issues), typed.json);
  }
  const exchange::Import import = import_files(typed.files, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);
  Issues uncounted;
  const std::vector<Beside> beside = compare_logs(import, exchange::job_of(import, uncounted), typed.engine);
  if (typed.json) {
    Value document = exchange::document_of(import);
    if (!beside.empty()) set(document, "comparisons", value_of(beside));
    print(write_json(document, 2) + "\n");
  } else {
    print(broken_at(typed.style.width, text_of(import) + text_of(beside)));
    if (!import.issues.empty()) complain(import.issues);
  }
  return has_error(import.issues) ? kBadInput : kAnswered;
}

int run_scan_command(const Invocation& typed) {
  if (!typed.json && !typed.sarif && !typed.files.empty()) {
    Issues issues;
    const exchange::Import import = import_files(typed.files, issues);
    if (has_error(issues)) return refuse(std::move(issues));
    print(broken_at(typed.style.width, text_of(import)) + "\n");
  }
  return run_estimate_command(typed);
}

}  // namespace tidemark
