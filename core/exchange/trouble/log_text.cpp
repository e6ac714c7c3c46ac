#include "core/exchange/trouble/log_text.hpp"

#include <algorithm>

namespace tidemark::exchange {
namespace {

constexpr std::string_view kSpaces = " \t\r\f\v";
/// How rich and IPython draw boxes, in UTF-8: all box drawings begin with these two bytes (U+2500 to U+257F).
constexpr std::string_view kBox = "\xe2\x94";
constexpr std::string_view kBoxHeavy = "\xe2\x95";
/// U+00A0, which browsers copy instead of spaces.
constexpr std::string_view kHardSpace = "\xc2\xa0";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Colours and cursor moves (ESC [ ... letter) and hard spaces.
std::string without_escapes(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    } else if (line.substr(i, kHardSpace.size()) == kHardSpace) {
      out += ' ';
      ++i;
    } else {
      out += line[i];
    }
  }
  return out;
}

/// How long "[rank0]:", "[0]:" or "(RayWorker pid=12)" at the begin of a line is; 0 without one.
std::size_t writer_length(std::string_view line) {
  if (line.empty() || (line[0] != '[' && line[0] != '(')) return 0;
  const std::size_t end = line.find(line[0] == '[' ? ']' : ')');
  if (end == std::string_view::npos || end > 80) return 0;
  const std::string_view inside = line.substr(1, end - 1);
  if (line[0] == '(') return inside.find("pid=") == std::string_view::npos ? 0 : end + 1;
  std::string_view number = inside;
  for (std::string_view word : {"rank", "default"}) {
    if (number.substr(0, word.size()) == word) number.remove_prefix(word.size());
  }
  const bool all = std::all_of(number.begin(), number.end(), is_digit);
  return all && end + 1 < line.size() && line[end + 1] == ':' ? end + 1 : 0;
}

/// Takes quotes, boxes and the E of pytest off the begin of a line; whether there was something.
bool strip_once(std::string_view& line) {
  line = trimmed(line);
  for (std::string_view mark : {kBox, kBoxHeavy}) {
    if (line.substr(0, 2) == mark && line.size() >= 3) return line.remove_prefix(3), true;
  }
  if (line.substr(0, 1) == ">" || line.substr(0, 1) == "`") return line.remove_prefix(1), true;
  if (line.substr(0, 4) == "E   ") return line.remove_prefix(4), true;
  return false;
}

void strip_end(std::string_view& line) {
  line = trimmed(line);
  while (line.size() >= 3) {
    const std::string_view last = line.substr(line.size() - 3, 2);
    if (last != kBox && last != kBoxHeavy) break;
    line = trimmed(line.substr(0, line.size() - 3));
  }
  while (!line.empty() && line.back() == '`') line.remove_suffix(1);
}

LogLine read_line(std::string_view raw, int number) {
  LogLine line;
  line.number = number;
  const std::string plain = without_escapes(raw);
  std::string_view rest = plain;
  while (strip_once(rest)) continue;
  if (const std::size_t length = writer_length(rest); length > 0) {
    line.writer = rest.substr(0, length);
    rest.remove_prefix(length);
    if (rest.substr(0, 1) == ":") rest.remove_prefix(1);
    while (strip_once(rest)) continue;
  }
  strip_end(rest);
  line.text = rest;
  return line;
}

void append_flat(std::string& flat, std::string_view text) {
  for (char c : text) {
    const char plain = kSpaces.find(c) == std::string_view::npos ? c : ' ';
    if (plain != ' ' || (!flat.empty() && flat.back() != ' ')) flat += plain;
  }
  if (!flat.empty() && flat.back() != ' ') flat += ' ';
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

LogText read_log(std::string_view text) {
  LogText log;
  log.flat.reserve(text.size());
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    LogLine& line = log.lines.emplace_back(read_line(text.substr(begin, end - begin), ++number));
    line.at = log.flat.size();
    append_flat(log.flat, line.text);
    begin = end + 1;
  }
  return log;
}

std::size_t LogText::line_of(std::size_t at) const {
  const auto after = std::upper_bound(lines.begin(), lines.end(), at,
                                      [](std::size_t place, const LogLine& l) { return place < l.at; });
  return after == lines.begin() ? 0 : static_cast<std::size_t>(after - lines.begin()) - 1;
}

}  // namespace tidemark::exchange
