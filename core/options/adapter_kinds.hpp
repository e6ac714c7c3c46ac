#pragma once

#include <span>
#include <string_view>

#include "core/job/training_job.hpp"
#include "core/options/option.hpp"

namespace tidemark {

/// The words for PEFT's adapters: `adapter.kind`, and `method` where it names one.
std::span<const Choice> adapter_kinds();

/// The kind of that word, with the defaults of its configuration; another word changes nothing.
void set_adapter_kind(Adapter& adapter, std::string_view word);

}  // namespace tidemark
