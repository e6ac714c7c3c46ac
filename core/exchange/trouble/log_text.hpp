#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::exchange {

/// One line of a log, without what terminals, launchers and chats put around it.
struct LogLine {
  std::string text;    ///< what the program wrote
  std::string writer;  ///< who: "[rank0]", "(RayWorker pid=12)", or empty
  int number = 0;      ///< in the file, from 1
  std::size_t at = 0;  ///< where it begins in LogText::flat
};

/// A log as its program meant it: colours, "[rank0]: ", "> " and boxes taken off; and all lines as one, because what
/// was pasted is often wrapped in the middle of a sentence.
struct LogText {
  std::vector<LogLine> lines;
  std::string flat;  ///< the lines' texts with one space between, runs of spaces as one

  /// The line that holds a place of `flat`, as an index into `lines`.
  std::size_t line_of(std::size_t at) const;
};

LogText read_log(std::string_view text);

/// Without spaces at either end.
std::string_view trimmed(std::string_view text);

}  // namespace tidemark::exchange
