#pragma once

#include <string>
#include <string_view>

#include "core/exchange/out/export.hpp"
#include "core/job/training_job.hpp"
#include "core/units/value.hpp"

namespace tidemark::exchange {

/// The request without what says how its job lies on several GPUs: other tools are told it even where the engine cannot
/// count it.
Value without_sharding(Value request);

/// A job to be written. `model` is the catalog's name for it, empty where the request's own counts; `job` is what the
/// engine understood of the request without its sharding.
ExportJob export_job(std::string_view model, std::string class_name, TrainingJob job, Value request, Value config);

}  // namespace tidemark::exchange
