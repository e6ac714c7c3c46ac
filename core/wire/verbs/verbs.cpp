#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

constexpr VerbKey kFitKeys[] = {
    {"all_gpus", "boolean", "false", "Every card of the catalog, beside those that are named; so it is when none is."},
    {"rule_of_thumb", "number", "null",
     "A share of each card, 0.8 for \"keep the peak below 80 %\": told beside the verdict."},
    {"fewest", "boolean", "true", "How many of each card the job takes, divided among them."},
};
constexpr VerbKey kAdviseKeys[] = {
    {"frontiers", "boolean", "true", "Largest micro-batch, sequence and rank that fit."},
    {"tiers", "boolean", "true", "Largest micro-batch for the sizes that cards are sold in."},
    {"modes", "boolean", "true", "MemScale's modes, recomputed for this job."},
};
constexpr VerbKey kMapKeys[] = {
    {"batches", "integers", "null", "Micro-batch sizes, the rows; powers of two when absent."},
    {"sequences", "integers", "null", "Sequence lengths, the columns; powers of two when absent."},
    {"cards", "integers", "null",
     "Numbers of cards, the rows in place of micro-batch sizes: divided as the job says, else by FSDP 2 or ZeRO."},
    {"exact",
     "boolean",
     "null",
     "Full estimates; false for quick ones, a few thousandths low. Up to 256 cells are exact when it is absent.",
     {},
     "--quick"},
};
constexpr VerbKey kCatalogKeys[] = {
    {"list", "string", "null", "\"models\" or \"gpus\" alone.", "models,gpus"},
    {"pattern", "string", "\"\"", "Only entries with a name that contains it."},
};

constexpr VerbKey kCalibrateKeys[] = {
    {"measurements", "measurements", "[]",
     "What was measured: each the \"job\" that ran, where it differs from the request's own options, and "
     "\"allocated_bytes\", \"reserved_bytes\", \"device_bytes\" or some of them."},
    {"activations", "boolean", "false",
     "Fit a factor on activations, too: for models whose code is not what Tidemark knows."},
};

constexpr Verb kVerbs[] = {
    {"estimate", "the memory of one training job, itemised; the default", run_estimate, {}, true},
    {"fit", "which cards the job fits: those asked for, or the whole catalog", run_fit, kFitKeys, true},
    {"advise", "what to change so that a job fits a card, and how far it goes there", run_advise, kAdviseKeys, true},
    {"map", "peaks over micro-batch sizes and sequence lengths, against a card", run_map, kMapKeys, true},
    {"catalog", "models and GPUs that are known by name", run_catalog, kCatalogKeys},
    {"describe", "every option with its default, values, unit and help", run_describe},
    {"version", "versions of the engine, the schema and the catalog", run_version},
    {"calibrate", "factors fitted to your own measurements", run_calibrate, kCalibrateKeys, true},
    {"scan", "options found in a training script"},
    {"import", "a request from another program's settings"},
    {"export", "another program's settings from a request"},
};

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace tidemark
