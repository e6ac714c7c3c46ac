#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

constexpr Verb kVerbs[] = {
    {"estimate", "the memory of one training job, itemised; the default", run_estimate},
    {"fit", "which cards the job fits: those asked for, or the whole catalog", run_fit},
    {"catalog", "models and GPUs that are known by name", run_catalog},
    {"describe", "every option with its default, values, unit and help", run_describe},
    {"version", "versions of the engine, the schema and the catalog", run_version},
    {"advise", "what to change so that a job fits"},
    {"map", "batch sizes against sequence lengths"},
    {"scan", "options found in a training script"},
    {"import", "a request from another program's settings"},
    {"export", "another program's settings from a request"},
    {"calibrate", "factors fitted to your own measurements"},
};

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

}  // namespace tidemark
