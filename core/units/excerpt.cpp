#include "core/units/excerpt.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kEllipsis = "...";

/// Bytes of the control character that begins there, or 0. In UTF-8 the C1 ones are C2 80 to C2 9F.
std::size_t control_length(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7F) return 1;
  if (byte != 0xC2 || at + 1 == text.size()) return 0;
  const auto second = static_cast<unsigned char>(text[at + 1]);
  return second >= 0x80 && second <= 0x9F ? 2 : 0;
}

/// The text's beginning of at most `longest` bytes that does not end within a character.
std::string_view beginning(std::string_view text, std::size_t longest) {
  std::size_t end = longest < text.size() ? longest : text.size();
  const auto continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U; };
  while (end < text.size() && end > 0 && continues()) --end;
  return text.substr(0, end);
}

}  // namespace

bool has_control_characters(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (control_length(text, i) > 0) return true;
  }
  return false;
}

std::string excerpt(std::string_view text, std::size_t longest) {
  const bool cut = text.size() > longest;
  const std::string_view kept = cut ? beginning(text, longest - kEllipsis.size()) : text;
  std::string result;
  for (std::size_t i = 0; i < kept.size();) {
    const std::size_t length = control_length(kept, i);
    result += length > 0 ? '?' : kept[i];
    i += length > 0 ? length : 1;
  }
  if (cut) result += kEllipsis;
  return result;
}

std::string in_quotes(std::string_view text) {
  return "\"" + excerpt(text) + "\"";
}

}  // namespace tidemark
