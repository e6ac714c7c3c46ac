#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <CLI/CLI.hpp>

#include "core/cli/commands.hpp"
#include "core/cli/embedded.hpp"
#include "core/cli/help.hpp"
#include "core/cli/job_flags.hpp"
#include "core/cli/terminal.hpp"
#include "core/options/options.hpp"
#include "core/units/nearest.hpp"
#include "core/wire/engine.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kCommands[] = {"estimate", "fit",    "advise",     "map",     "models", "gpus",
                                          "describe", "schema", "completion", "version", "help"};

/// What CLI11 could not make sense of, told in our words with the nearest flag or command.
Issue usage_issue(const CLI::App& command, const CLI::ParseError& error) {
  Issue issue{"BAD_USAGE", Severity::kError, "", error.what(), ""};
  const std::vector<std::string> extras = command.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    // CLI11 lists them in its own order; the first that looks like a flag is what went wrong.
    std::string word = extras.front();
    for (const std::string& extra : extras) {
      if (extra.size() > 1 && extra[0] == '-') {
        word = extra;
        break;
      }
    }
    issue.message = "\"" + word + "\" is not understood here.";
    std::vector<std::string> names;
    for (const Option& option : options()) {
      for (const std::string& flag : flags_of(option)) names.push_back(flag);
    }
    for (const char* name : {"--request", "--json", "--markdown", "--bytes", "--explain", "--no-color", "--ascii",
                             "--vram-gb", "--all-gpus", "--rule-of-thumb", "--batches", "--sequences", "--quick"}) {
      names.emplace_back(name);
    }
    if (word.size() > 1 && word[0] == '-') {
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      issue.suggestion = nearest(word.substr(0, word.find('=')), candidates);
    } else if (command.get_parent() == nullptr) {
      issue.suggestion = nearest(word, kCommands);
    }
  }
  if (!issue.message.empty() && issue.message.back() != '.') issue.message += ".";
  return issue;
}

/// A search computes hundreds of jobs: memory that one gave back serves the next, instead of travelling to the kernel
/// and back each time (three times faster).
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 24);
#endif
}

int run(int argc, char** argv) {
  keep_freed_memory();
  TextStyle style = style_for_output();
  OutputFlags output;
  bool help = false;
  bool help_all = false;
  bool no_colour = false;
  bool ascii = false;
  bool version = false;
  std::string request_path;
  std::string pattern;
  std::string option_name;
  std::string document;
  std::string shell;
  JobFlags job;
  JobFlags fit_job;
  JobFlags advise_job;
  JobFlags map_job;
  CardFlags cards;

  const auto not_empty = [](const std::string& word) { return word.empty() ? "its value is empty" : std::string{}; };
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);

  const auto add_job_command = [&](const std::string& name, JobFlags& flags) {
    CLI::App* command = app.add_subcommand(name);
    command->set_help_flag();
    command->add_flag("-h,--help", help);
    command->add_flag("--help-all", help_all);
    command->add_option("--request", request_path)->check(not_empty);
    CLI::Option* json = command->add_flag("--json", output.json);
    command->add_flag("--markdown", output.markdown)->excludes(json);
    command->add_flag("--no-color,--no-colour", no_colour);
    command->add_flag("--ascii", ascii);
    flags.add_to(*command);
    return command;
  };
  CLI::App* estimate = add_job_command("estimate", job);
  estimate->add_flag("--bytes", style.bytes);
  estimate->add_flag("--explain", style.explain);
  CLI::App* fit = add_job_command("fit", fit_job);
  fit->add_flag("--all-gpus", cards.all_gpus);
  fit->add_option("--rule-of-thumb", cards.rule_of_thumb)->check(not_empty);
  CLI::App* advise = add_job_command("advise", advise_job);
  CLI::App* map = add_job_command("map", map_job);
  map->add_option("--batches", cards.batches)->check(not_empty);
  map->add_option("--sequences", cards.sequences)->check(not_empty);
  map->add_flag("--quick", cards.quick);

  CLI::App* models = app.add_subcommand("models");
  CLI::App* gpus = app.add_subcommand("gpus");
  for (CLI::App* command : {models, gpus}) {
    command->add_option("PATTERN", pattern);
    command->add_flag("--names", output.names);
  }
  CLI::App* describe = app.add_subcommand("describe");
  describe->add_option("OPTION", option_name);
  describe->add_flag("--markdown", output.markdown);
  CLI::App* schema = app.add_subcommand("schema");
  schema->add_option("WHICH", document);
  CLI::App* completion = app.add_subcommand("completion");
  completion->add_option("SHELL", shell);
  CLI::App* version_command = app.add_subcommand("version");
  CLI::App* help_command = app.add_subcommand("help");
  for (CLI::App* command : {models, gpus, describe, schema, completion, version_command, help_command}) {
    command->set_help_flag();
    command->add_flag("-h,--help", help);
    if (command != completion && command != schema && command != help_command) command->add_flag("--json", output.json);
    command->add_flag("--no-color,--no-colour", no_colour);
    command->add_flag("--ascii", ascii);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const CLI::App* command = &app;
    for (const CLI::App* chosen : app.get_subcommands()) command = chosen;
    complain({usage_issue(*command, error)});
    return kBadInput;
  }
  if (no_colour) style.colour = false;
  if (ascii) style.unicode = false;

  if (estimate->parsed() && (help || help_all)) {
    print(estimate_help(help_all, style));
    return kAnswered;
  }
  for (const CLI::App* command : {fit, advise, map}) {
    if (!command->parsed() || !(help || help_all)) continue;
    print(card_help(command->get_name(), style));
    return kAnswered;
  }
  if (help || help_command->parsed()) {
    print(general_help(style));
    return kAnswered;
  }
  if (completion->parsed()) {
    const std::string script = completion_script(shell);
    if (script.empty()) {
      complain({{"BAD_USAGE", Severity::kError, "", "Say for which shell: bash, zsh or fish.", ""}});
      return kBadInput;
    }
    print(script);
    return kAnswered;
  }

  if (schema->parsed()) return run_schema_command(document);

  Engine engine;
  if (const Issues issues = engine.load_catalog(embedded_models(), embedded_gpus()); has_error(issues)) {
    complain(issues);
    return kInternalError;
  }
  if (estimate->parsed()) return run_estimate_command(engine, job, request_path, output, style);
  if (fit->parsed()) return run_fit_command(engine, fit_job, cards, request_path, output, style);
  if (advise->parsed()) return run_advise_command(engine, advise_job, request_path, output, style);
  if (map->parsed()) return run_map_command(engine, map_job, cards, request_path, output, style);
  if (models->parsed()) return run_models_command(engine, pattern, output, style);
  if (gpus->parsed()) return run_gpus_command(engine, pattern, output, style);
  if (describe->parsed()) return run_describe_command(engine, option_name, output, style);
  if (version || version_command->parsed()) return run_version_command(engine, output);
  print_error(general_help(style_for_errors()));
  return kBadInput;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  try {
    const int status = tidemark::run(argc, argv);
    return tidemark::finish_output() ? status : tidemark::kInternalError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n", error.what());
    return tidemark::kInternalError;
  }
}
