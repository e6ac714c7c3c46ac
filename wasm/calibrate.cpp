// The verb "calibrate" of the browser's engine: it takes calibrations, and leaves the fitting to the command.
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {

Value run_calibrate(const Engine&, const Value&) {
  return write_errors({{"UNSUPPORTED_VERB", Severity::kError, "/verb",
                        "This engine uses calibrations and fits none: the command does (`tidemark calibrate`), and the "
                        "Python package.",
                        ""}});
}

}  // namespace tidemark
