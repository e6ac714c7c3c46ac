#include "core/report/layout.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidemark {
namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// The first `count` code points, in bytes.
std::size_t bytes_of_columns(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (!continues(text[at]) && count-- == 0) break;
    ++at;
  }
  return at;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += continues(c) ? 0U : 1U;
  return count;
}

std::string pad_right(std::string_view text, std::size_t width) {
  std::string padded{text};
  const std::size_t columns = columns_of(text);
  if (columns < width) padded.append(width - columns, ' ');
  return padded;
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return (columns < width ? std::string(width - columns, ' ') : std::string{}) + std::string{text};
}

std::string shorten(std::string_view text, std::size_t width, bool unicode) {
  const std::size_t columns = columns_of(text);
  if (columns <= width) return std::string{text};
  const std::string_view ellipsis = unicode ? "…" : "..";
  const std::size_t room = width > columns_of(ellipsis) ? width - columns_of(ellipsis) : 0;
  const std::size_t head = (room + 1) / 2;
  const std::size_t tail = room - head;
  std::string result{text.substr(0, bytes_of_columns(text, head))};
  result += ellipsis;
  result += text.substr(bytes_of_columns(text, columns - tail));
  return result;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    const std::size_t columns = columns_of(word);
    if (column > indent && column + 1 + columns > width) {
      result += '\n';
      result.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += columns;
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  return result;
}

std::string bar(double share, std::size_t width, bool unicode) {
  share = std::clamp(share, 0.0, 1.0);
  if (!unicode) return std::string(static_cast<std::size_t>(std::floor(share * static_cast<double>(width) + 0.5)), '#');
  constexpr std::string_view kPart[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::floor(share * static_cast<double>(width) * 8.0 + 0.5));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  text += kPart[eighths % 8];
  return text;
}

std::string to_ascii(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
      {"×", "x"},  {"·", "*"},  {"–", "-"},  {"—", "-"}, {"…", ".."},  {"²", "^2"},  {"→", "->"},
      {"≤", "<="}, {"≥", ">="}, {"±", "+-"}, {"−", "-"}, {"⅛", "1/8"}, {"½", "1/2"}, {"√", "sqrt"}};
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      result += text[i++];
      continue;
    }
    bool found = false;
    for (const auto& [from, to] : kReplacements) {
      if (text.substr(i, from.size()) == from) {
        result += to;
        i += from.size();
        found = true;
        break;
      }
    }
    if (found) continue;
    result += '?';
    ++i;
    while (i < text.size() && continues(text[i])) ++i;
  }
  return result;
}

}  // namespace tidemark
