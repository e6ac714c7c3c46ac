#include "core/cli/commands.hpp"

#include <algorithm>

#include "core/cli/checked.hpp"
#include "core/cli/completion.hpp"
#include "core/cli/embedded.hpp"
#include "core/cli/help.hpp"
#include "core/cli/man.hpp"
#include "core/cli/schema.hpp"
#include "core/cli/terminal.hpp"
#include "core/engine/modelled.hpp"
#include "core/fit/fit.hpp"
#include "core/options/options.hpp"
#include "core/report/layout.hpp"
#include "core/report/markdown.hpp"
#include "core/units/letters.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/json.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {
namespace {

Value catalog_request(std::string_view list, const std::string& pattern) {
  Value request = empty_object();
  set(request, "verb", "catalog");
  set(request, "list", list);
  set(request, "pattern", pattern);
  return request;
}

int nothing_matches(std::string_view what, const std::string& pattern) {
  return refuse({{"NO_MATCH", Severity::kError, "", "No " + std::string{what} + " matches \"" + pattern + "\".", ""}});
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// What stands in a message's first quotes.
std::string_view quoted_in(std::string_view message) {
  const std::size_t open = message.find('"');
  const std::size_t close = open == std::string_view::npos ? open : message.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view{} : message.substr(open + 1, close - open - 1);
}

/// What people type in the place of another flag: a size for a model, a count for a card, DoRA for a method.
void name_the_other_flag(Issue& issue) {
  const std::string name{quoted_in(issue.message)};
  const std::size_t digits = std::min(name.find_first_not_of("0123456789."), name.size());
  const std::string_view unit = std::string_view{name}.substr(digits);
  if (issue.code == "UNKNOWN_MODEL" && digits > 0 && (unit == "b" || unit == "B" || unit == "m" || unit == "M"))
    issue.message += " A size alone is said by --params " + name + ".";
  if (issue.code == "UNKNOWN_GPU" && digits > 0 && unit.empty())
    issue.message += " How many there are is said by --num-gpus " + name + ".";
  if (issue.code == "INVALID_VALUE" && issue.path == "--method" &&
      issue.message.find(" \"dora\";") != std::string::npos)
    issue.message += " DoRA is --method lora --use-dora.";
}

/// Who typed flags reads flags, not JSON paths and objects.
void name_flags(Issues& issues) {
  for (Issue& issue : issues) {
    if (const std::string flag = flag_for_pointer(issue.path); !flag.empty()) issue.path = flag;
    replace(issue.message, "{\"memory_gib\": 24}", "--gpu 24GiB");
    replace(issue.message, "{\"vram_gb\": 24}", "--gpu 24GB");
    name_the_other_flag(issue);
    if (issue.code == "MISSING_MODEL" && issue.path.empty()) {
      issue.message =
          "Say which model is trained: --model NAME (`tidemark models` lists them), --config config.json, --params 7B, "
          "or the files of the job.";
      issue.suggestion = "tidemark estimate --model llama-3.1-8b --method lora --gpu 4090";
    }
  }
}

/// What was chosen for a job that is refused helps nobody: errors stand alone, with what may be their cause.
void drop_notes_beside_errors(Issues& issues) {
  if (!has_error(issues)) return;
  std::erase_if(issues, [](const Issue& issue) { return issue.severity == Severity::kNote; });
}

std::string finished(std::string text, const TextStyle& style) {
  return style.unicode ? text : to_ascii(text);
}

/// The checkpoint of the same architecture that a pattern found, where no name of the row itself has it.
std::string name_that_matches(const ModelEntry& model, const std::string& pattern) {
  const std::string wanted = lower_case(pattern);
  const auto matches = [&](const std::string& name) { return lower_case(name).find(wanted) != std::string::npos; };
  if (wanted.empty() || matches(model.id) || matches(std::string{model.family}) ||
      std::any_of(model.aliases.begin(), model.aliases.end(), matches))
    return {};
  const auto found = std::find_if(model.same_arch_ids.begin(), model.same_arch_ids.end(), matches);
  return found == model.same_arch_ids.end() ? std::string{} : "also " + *found;
}

}  // namespace

void complain(Issues issues, bool json) {
  bound(issues);
  if (json) {
    print_error(write_json(write_errors(issues), 2) + "\n");
    return;
  }
  drop_notes_beside_errors(issues);
  name_flags(issues);
  print_error(render_issues(issues, style_for_errors()));
}

int refuse(Issues issues, bool json) {
  complain(std::move(issues), json);
  return kBadInput;
}

Value read_job(const Invocation& typed, Issues& issues) {
  const std::string verb{typed.command.verb()->name};
  Value base;
  typed.job.check(issues);
  if (!typed.files.empty()) base = read_files(typed.files, issues);
  if (!has_error(issues) && !typed.request_path.empty()) {
    const std::string text = read_file(typed.request_path, issues);
    if (!has_error(issues)) base = parse_json(text, "", issues);
    if (!has_error(issues) && !base.is_object()) {
      issues.push_back({"INVALID_VALUE", Severity::kError, "", "A request is a JSON object.", ""});
    }
  }
  if (!has_error(issues)) base = typed.job.request(std::move(base), issues);
  if (const Value* other = base.find("verb"); other != nullptr && !other->is_null() && other->string != verb) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/verb",
                      "`tidemark " + verb + "` answers requests of the verb \"" + verb + "\".", ""});
  }
  if (base.is_object()) typed.keys.write_into(base);
  return base;
}

int run_estimate_command(const Invocation& typed) {
  Issues issues;
  const Value base = read_job(typed, issues);
  if (has_error(issues)) return refuse(std::move(issues), typed.json);

  Answer answer = typed.engine.answer(base);
  answer.issues.insert(answer.issues.begin(), issues.begin(), issues.end());
  if (!answer.estimate) {
    if (typed.json) {
      print_error(write_json(write_answer(answer), 2) + "\n");
    } else if (answer.partial) {
      name_flags(answer.issues);
      print_error(render_text(answer, style_for_errors()));
    } else {
      complain(std::move(answer.issues));
    }
    return kBadInput;
  }
  if (typed.sarif) {
    Checked checked;
    judge(answer, typed.engine, base, checked);
    find_place(typed.files, checked);
    print(write_json(sarif_of({checked}), 2) + "\n");
  } else if (typed.json) {
    print(write_json(write_answer(answer), 2) + "\n");
  } else if (typed.markdown) {
    print(render_markdown(answer, typed.style.explain));
  } else {
    print(render_text(answer, typed.style) + finished(compare_files(typed, base), typed.style));
  }
  for (const Fit& fit : answer.fits) {
    if (falls_short(fit)) return kDoesNotFit;
  }
  return kAnswered;
}

int run_models_command(const Invocation& typed) {
  const TextStyle& style = typed.style;
  const auto models = typed.engine.catalog().matching_models(typed.word);
  if (models.empty()) return nothing_matches("model", typed.word);
  if (typed.json) {
    print(typed.engine.handle(catalog_request("models", typed.word), 2) + "\n");
    return kAnswered;
  }
  std::string out;
  if (typed.names) {
    for (const ModelEntry* model : models) {
      out += model->id + "\n";
      for (const std::string& alias : model->aliases) out += alias + "\n";
    }
    print(out);
    return kAnswered;
  }
  std::size_t id_width = 0;
  for (const ModelEntry* model : models) id_width = std::max(id_width, columns_of(model->id));
  id_width = std::min(id_width, style.width / 2);
  std::size_t left_out = 0;
  for (const ModelEntry* model : models) {
    const bool modelled = is_modelled(*model);
    if (!modelled) ++left_out;
    std::string names = name_that_matches(*model, typed.word);
    for (const std::string& alias : model->aliases) names += (names.empty() ? "" : ", ") + alias;
    const std::size_t used = id_width + 2 + 17 + 2 + 2;
    std::string line = pad_right(shorten(model->id, id_width, style.unicode), id_width) + "  " +
                       pad_left(model->parameters() > 0 ? format_grouped(model->parameters()) : "?", 17) + "  " +
                       (modelled ? "  " : "- ");
    if (style.width > used + 8) line += shorten(names, style.width - used, style.unicode);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  out += "\n" + std::to_string(models.size()) + (models.size() == 1 ? " model" : " models");
  if (left_out > 0) out += "; " + std::to_string(left_out) + " marked - are not modelled yet";
  print(finished(out + "\n", style));
  return kAnswered;
}

int run_gpus_command(const Invocation& typed) {
  const TextStyle& style = typed.style;
  const auto gpus = typed.engine.catalog().matching_gpus(typed.word);
  if (gpus.empty()) return nothing_matches("card", typed.word);
  if (typed.json) {
    print(typed.engine.handle(catalog_request("gpus", typed.word), 2) + "\n");
    return kAnswered;
  }
  std::string out;
  if (typed.names) {
    for (const Gpu* gpu : gpus) {
      for (const std::string& alias : gpu->aliases) {
        // Shells split at spaces.
        if (alias.find(' ') == std::string::npos) out += alias + "\n";
      }
    }
    print(out);
    return kAnswered;
  }
  std::size_t name_width = 0;
  for (const Gpu* gpu : gpus) name_width = std::max(name_width, columns_of(gpu->name));
  name_width = std::min(name_width, style.width / 2);
  out += pad_right("", name_width) + "  " + pad_left("sold as", 7) + "  " + pad_left("torch sees", 13) + "\n";
  for (const Gpu* gpu : gpus) {
    std::string names;
    for (const std::string& alias : gpu->aliases) names += (names.empty() ? "" : ", ") + alias;
    const std::size_t used = name_width + 2 + 7 + 2 + 13 + 2;
    std::string line =
        pad_right(shorten(gpu->name, name_width, style.unicode), name_width) + "  " +
        pad_left(format_gib(gpu->marketed_bytes, 0).substr(0, format_gib(gpu->marketed_bytes, 0).find(' ')) + " GB",
                 7) +
        "  " + pad_left((gpu->usable_is_estimated() ? "~ " : "") + format_gib(gpu->usable_bytes()), 13) + "  ";
    if (style.width > used + 8) line += shorten(names, style.width - used, style.unicode);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  out += "\n" + std::to_string(gpus.size()) + (gpus.size() == 1 ? " card" : " cards") +
         "; ~ marks figures that nobody measured\n";
  print(finished(std::move(out), style));
  return kAnswered;
}

int run_describe_command(const Invocation& typed) {
  if (typed.json) {
    Value request = empty_object();
    set(request, "verb", "describe");
    print(typed.engine.handle(request, 2) + "\n");
    return kAnswered;
  }
  if (typed.manual) {
    print(manual_page());
    return kAnswered;
  }
  if (typed.markdown) {
    print(render_reference());
    return kAnswered;
  }
  const std::string text = describe_help(typed.word, typed.style);
  if (text.empty()) {
    std::vector<std::string_view> names;
    for (const Option& candidate : options()) names.push_back(candidate.name);
    return refuse({{"UNKNOWN_OPTION", Severity::kError, "", "There is no option \"" + typed.word + "\".",
                    nearest(typed.word, names)}});
  }
  print(text);
  return kAnswered;
}

int run_schema_command(const Invocation& typed) {
  if (typed.word == "request") {
    print(write_json(request_schema(), 2) + "\n");
  } else if (typed.word == "answer") {
    print(embedded_answer_schema());
  } else {
    return refuse({{"BAD_USAGE", Severity::kError, "", "Say of what: request or answer.", ""}});
  }
  return kAnswered;
}

int run_trace_command(const Invocation&) {
  print(embedded_trace_script());
  return kAnswered;
}

int run_completion_command(const Invocation& typed) {
  const std::string script = completion_script(typed.word);
  if (script.empty()) {
    return refuse({{"BAD_USAGE", Severity::kError, "", "Say for which shell: bash, zsh or fish.", ""}});
  }
  print(script);
  return kAnswered;
}

int run_version_command(const Invocation& typed) {
  if (typed.json) {
    Value request = empty_object();
    set(request, "verb", "version");
    print(typed.engine.handle(request, 2) + "\n");
  } else {
    print("tidemark " + std::string{engine_version()} + " (schema 1, catalog of " + typed.engine.catalog().date() +
          ")\n");
  }
  return kAnswered;
}

int run_help_command(const Invocation& typed) {
  print(general_help(typed.style));
  return kAnswered;
}

}  // namespace tidemark
