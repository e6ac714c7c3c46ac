#include "core/exchange/trouble/traceback.hpp"

#include <algorithm>
#include <optional>

namespace tidemark::exchange {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last)";
constexpr std::size_t kMostFrames = 400;

bool starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

/// Up to the first of these letters.
std::string_view until(std::string_view text, std::string_view letters) {
  return text.substr(0, text.find_first_of(letters));
}

std::string with_slashes(std::string_view path) {
  std::string plain{path};
  std::replace(plain.begin(), plain.end(), '\\', '/');
  return plain;
}

/// "evaluate" of "Trainer.evaluate(self)".
std::string_view function_in(std::string_view text) {
  text = until(trimmed(text), " (");
  return text.substr(text.rfind('.') + 1);
}

/// `File "train.py", line 228, in main`, behind whatever a logger puts before it.
std::optional<Frame> python_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kIn = ", in ";
  const std::size_t file = line.find(kFile);
  if (file == std::string_view::npos) return std::nullopt;
  line.remove_prefix(file + kFile.size());
  const std::size_t quote = line.find('"');
  if (quote == std::string_view::npos) return std::nullopt;
  Frame frame;
  frame.path = with_slashes(line.substr(0, quote));
  line.remove_prefix(quote);
  if (const std::size_t in = line.find(kIn); in != std::string_view::npos) {
    frame.function = function_in(line.substr(in + kIn.size()));
  }
  return frame;
}

/// IPython's `File ~/train.py:228, in main(args)` and `/lib/torch/_tensor.py in backward(self)`; rich's
/// `/lib/torch/_tensor.py:228 in backward`.
std::optional<Frame> other_frame(std::string_view line) {
  if (starts(line, "File ")) line.remove_prefix(5);
  const bool wrapped = line.size() > 3 && line.substr(line.size() - 3) == " in";  // the function is on the next line
  const std::size_t in = wrapped ? line.size() - 3 : line.find(" in ");
  if (in == std::string_view::npos) return std::nullopt;
  const std::string_view place = line.substr(0, in);
  const std::string_view path = place.substr(0, place.find_first_of(":, ", 2));  // not the colon of "C:"
  const bool script = path.size() > 3 && path.substr(path.size() - 3) == ".py";
  const bool cell = starts(place, "<ipython-input") || starts(place, "Cell In[");
  if (!script && !cell) return std::nullopt;
  Frame frame;
  frame.path = with_slashes(path);
  if (!wrapped) frame.function = function_in(line.substr(in + 4));
  return frame;
}

/// Code of a frame: in IPython and rich the marked line, else the one below the frame.
std::string_view marked_source(std::string_view line) {
  for (std::string_view arrow : {"--->", "-->", "->", "\xe2\x9d\xb1"}) {
    if (!starts(line, arrow)) continue;
    line = trimmed(line.substr(arrow.size()));
    while (!line.empty() && line[0] >= '0' && line[0] <= '9') line.remove_prefix(1);
    while (!line.empty() && (line[0] == ' ' || static_cast<unsigned char>(line[0]) >= 0x80)) line.remove_prefix(1);
    return line;
  }
  return {};
}

/// Frames of lines [begin, end) by one writer.
std::vector<Frame> frames_between(const LogText& log, std::size_t begin, std::size_t end, std::string_view writer) {
  std::vector<Frame> frames;
  bool below_frame = false;
  for (std::size_t i = begin; i < end; ++i) {
    const LogLine& line = log.lines[i];
    if (line.writer != writer || line.text.empty()) continue;
    auto frame = python_frame(line.text);
    below_frame = below_frame && !frame;
    if (!frame) frame = other_frame(line.text);
    if (frame) {
      frame->line = line.number;
      frames.push_back(*frame);
      below_frame = line.text.find("File \"") != std::string::npos;
      continue;
    }
    const std::string_view marked = marked_source(line.text);
    if (!frames.empty() && frames.back().function.empty() && marked.empty() && !below_frame) {
      frames.back().function = function_in(line.text);
    }
    if (!frames.empty() && (below_frame || !marked.empty())) frames.back().source = marked.empty() ? line.text : marked;
    below_frame = false;
  }
  return frames;
}

bool is_header(const LogLine& line, std::string_view writer) {
  return line.writer == writer && line.text.find(kHeader) != std::string::npos;
}

/// VS Code shows the innermost frame first.
void put_outermost_first(std::vector<Frame>& frames) {
  const bool reversed =
      frames.size() > 1 && frames.back().function == "<module>" && frames.front().function != "<module>";
  if (reversed) std::reverse(frames.begin(), frames.end());
}

}  // namespace

std::vector<Frame> frames_of(const LogText& log, std::size_t message_at) {
  if (log.lines.empty()) return {};
  const std::size_t at = log.line_of(message_at);
  const std::string_view writer = log.lines[at].writer;
  std::size_t begin = at;
  while (begin > 0 && !is_header(log.lines[begin], writer)) --begin;
  std::vector<Frame> frames = frames_between(log, begin, at, writer);
  if (frames.empty()) {
    std::size_t end = at + 1;
    while (end < log.lines.size() && end - at < 2 * kMostFrames && !is_header(log.lines[end], writer)) ++end;
    frames = frames_between(log, at + 1, end, writer);
    put_outermost_first(frames);
  }
  return frames;
}

}  // namespace tidemark::exchange
