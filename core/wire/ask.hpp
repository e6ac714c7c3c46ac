#pragma once

#include <vector>

#include "core/engine/calibrate/calibrate.hpp"
#include "core/job/request.hpp"
#include "core/report/advice.hpp"
#include "core/units/value.hpp"
#include "core/wire/engine.hpp"

namespace tidemark {

// The answers to the verbs about cards, before they become JSON or text. Beside the options of an estimate a request
// may hold the keys that verbs.cpp lists for the verb.

/// Every card of the request, or the whole catalog when it names none or says "all_gpus".
FitReport ask_fit(const Engine& engine, const Value& request);

/// The first card of the request; without one there is an error among the issues.
AdviceReport ask_advice(const Engine& engine, const Value& request);

/// The first card of the request; without one every verdict is unknown.
MapReport ask_map(const Engine& engine, const Value& request);

/// The factors that the measurements of the request determine.
CalibrationReport ask_calibration(const Engine& engine, const Value& request);

// The same as JSON: what the verbs reply.
Value write_report(const FitReport& report);
Value write_report(const AdviceReport& report);
Value write_report(const MapReport& report);
Value write_report(const CalibrationReport& report);

/// A list of settings as the merge patch (RFC 7396) that writes them into a request. Its keys of other tools go where
/// an option of theirs is set.
Value merge_patch(const std::vector<Setting>& settings, const StatedAs& stated_as);

/// RFC 7396: what the patch states takes the place of what was there, and null takes it away.
void patch_with(const Value& patch, Value& target);

}  // namespace tidemark
