// Shell scripts that serve, ask, measure or convert a model: read so that nobody takes one for a job.
#include "core/exchange/other_work.hpp"

namespace tidemark::exchange {
namespace {

int recognise_other_work(const Look& look) {
  if (look.syntax != Look::Syntax::kShell) return 0;
  return other_work(training_script(look)).empty() ? 0 : 97;
}

void read_other_work(const Look& look, Sources, Reading& reading) {
  tell_other_work(reading, look.source.name, other_work(training_script(look)));
}

const Format kRows[] = {
    {"no_training", "command that trains nothing", recognise_other_work, read_other_work, 0},
};

}  // namespace

extern const FormatRows other_work_rows;
const FormatRows other_work_rows = kRows;

}  // namespace tidemark::exchange
