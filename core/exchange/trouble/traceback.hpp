#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/trouble/log_text.hpp"

namespace tidemark::exchange {

/// One frame of a Python traceback, as far as the text has it.
struct Frame {
  std::string path;           ///< "/site-packages/torch/optim/adamw.py", whatever the platform
  std::string_view function;  ///< "step"
  std::string_view source;    ///< the line of code, or empty
  int line = 0;               ///< of the log
};

/// The frames that belong to a message, outermost first: those of the traceback before it, by the same writer; behind
/// it where it comes first, as VS Code shows it. Python's own form, IPython's and rich's. Their words point into the
/// log.
std::vector<Frame> frames_of(const LogText& log, std::size_t message_at);

}  // namespace tidemark::exchange
