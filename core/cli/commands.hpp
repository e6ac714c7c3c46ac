#pragma once

#include <string>

#include "core/cli/job_flags.hpp"
#include "core/report/text.hpp"
#include "core/wire/engine.hpp"

namespace tidemark {

/// What the process returns (CONTRACT.md).
enum ExitStatus { kAnswered = 0, kDoesNotFit = 1, kBadInput = 2, kInternalError = 3 };

/// How the answer is printed.
struct OutputFlags {
  bool json = false;
  bool markdown = false;
  bool names = false;  ///< models, gpus: names only, one a line
};

/// `request_path` is the file of --request, "-" for standard input, or empty.
int run_estimate_command(const Engine& engine, const JobFlags& flags, const std::string& request_path,
                         const OutputFlags& output, const TextStyle& style);
int run_models_command(const Engine& engine, const std::string& pattern, const OutputFlags& output,
                       const TextStyle& style);
int run_gpus_command(const Engine& engine, const std::string& pattern, const OutputFlags& output,
                     const TextStyle& style);
int run_describe_command(const Engine& engine, const std::string& option, const OutputFlags& output,
                         const TextStyle& style);
int run_schema_command(const std::string& which);
int run_version_command(const Engine& engine, const OutputFlags& output);

/// What `fit`, `advise` and `map` take beside the job.
struct CardFlags {
  bool all_gpus = false;      ///< fit: the whole catalog
  std::string rule_of_thumb;  ///< fit: a share, "0.8"
  std::string batches;        ///< map: "1,2,4"
  std::string sequences;      ///< map: "512,1024"
  bool quick = false;         ///< map: quick figures
};
int run_fit_command(const Engine& engine, const JobFlags& flags, const CardFlags& cards,
                    const std::string& request_path, const OutputFlags& output, const TextStyle& style);
int run_advise_command(const Engine& engine, const JobFlags& flags, const std::string& request_path,
                       const OutputFlags& output, const TextStyle& style);
int run_map_command(const Engine& engine, const JobFlags& flags, const CardFlags& cards,
                    const std::string& request_path, const OutputFlags& output, const TextStyle& style);

/// The request that a file (or "-", or none) and the flags make together; an error among the issues when it is meant
/// for another verb or cannot be read.
Value read_job(const JobFlags& flags, const std::string& request_path, const std::string& verb, Issues& issues);

/// Prints issues to standard error: for people, naming flags instead of JSON paths where there are any; with --json as
/// the engine's reply to a bad request.
void complain(Issues issues, const OutputFlags& output = {});

}  // namespace tidemark
