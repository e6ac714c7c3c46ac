#pragma once

#include <string>
#include <vector>

#include "core/cli/command_table.hpp"

namespace tidemark {

// What each command does; the table names them.
int run_estimate_command(const Invocation& typed);
int run_scan_command(const Invocation& typed);
int run_check_command(const Invocation& typed);
int run_import_command(const Invocation& typed);
int run_export_command(const Invocation& typed);
int run_probe_command(const Invocation& typed);
int run_trace_command(const Invocation& typed);
int run_calibrate_command(const Invocation& typed);
int run_fit_command(const Invocation& typed);
int run_advise_command(const Invocation& typed);
int run_map_command(const Invocation& typed);
int run_models_command(const Invocation& typed);
int run_gpus_command(const Invocation& typed);
int run_describe_command(const Invocation& typed);
int run_schema_command(const Invocation& typed);
int run_completion_command(const Invocation& typed);
int run_version_command(const Invocation& typed);
int run_help_command(const Invocation& typed);

/// The request that a file (or "-", or none) and the flags make together; an error among the issues when it is meant
/// for another verb or cannot be read.
Value read_job(const Invocation& typed, Issues& issues);

/// The request that files of other tools spell, as far as the engine knows its keys; what it cannot count is a warning.
Value read_files(const std::vector<std::string>& files, Issues& issues);

/// What logs among the files say beside an estimate of the job, for a person; empty without logs.
std::string compare_files(const Invocation& typed, const Value& job);

/// Prints issues to standard error: for people, naming flags instead of JSON paths where there are any; with --json as
/// the engine's reply to a bad request.
void complain(Issues issues, bool json = false);

/// The same, as a command's end.
int refuse(Issues issues, bool json = false);

}  // namespace tidemark
