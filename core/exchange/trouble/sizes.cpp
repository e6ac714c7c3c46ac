#include "core/exchange/trouble/sizes.hpp"

#include "core/exchange/trouble/log_text.hpp"

namespace tidemark::exchange {
namespace {

struct SizeUnit {
  std::string_view name;
  Bytes bytes;
};
constexpr SizeUnit kUnits[] = {
    {"bytes", 1}, {"byte", 1},  {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB},       {"TiB", 1024 * kGiB},
    {"KB", kKiB}, {"MB", kMiB}, {"GB", kGiB},  {"kB", kKiB},  {"TB", 1024 * kGiB}, {"B", 1},
};

bool of_number(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-';
}

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

Bytes unit_of(std::string_view name) {
  for (const SizeUnit& unit : kUnits) {
    if (unit.name == name) return unit.bytes;
  }
  return 0;
}

/// "-12.50" times a unit, rounded half away from zero; nothing beyond what a card may have.
std::optional<Bytes> scaled(std::string_view number, Bytes unit) {
  const bool negative = number.substr(0, 1) == "-";
  if (negative) number.remove_prefix(1);
  Bytes digits = 0, scale = 1;
  bool point = false;
  if (number.empty()) return std::nullopt;
  for (char c : number) {
    if (c == '-' || (c == '.' && point)) return std::nullopt;
    if (c == '.') {
      point = true;
    } else if (scale < 1000) {
      digits = digits * 10 + (c - '0');
      if (point) scale *= 10;
      if (digits > (Bytes{1} << 60) / unit) return std::nullopt;
    }
  }
  const Bytes bytes = (digits * unit * 2 + scale) / (2 * scale);
  return negative ? -bytes : bytes;
}

}  // namespace

std::optional<Bytes> size_in(std::string_view text) {
  text = trimmed(text);
  std::size_t end = 0;
  while (end < text.size() && of_number(text[end])) ++end;
  const Bytes unit = unit_of(trimmed(text.substr(end)));
  return unit == 0 ? std::nullopt : scaled(text.substr(0, end), unit);
}

std::optional<Bytes> size_before(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end > 0 && text[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && letter(text[begin - 1])) --begin;
  while (begin > 0 && text[begin - 1] == ' ') --begin;
  while (begin > 0 && of_number(text[begin - 1])) --begin;
  return size_in(text.substr(begin, end - begin));
}

std::optional<Bytes> size_after(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  std::size_t end = at;
  while (end < text.size() && of_number(text[end])) ++end;
  while (end < text.size() && text[end] == ' ') ++end;
  while (end < text.size() && letter(text[end])) ++end;
  return size_in(text.substr(at, end - at));
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::int64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

}  // namespace tidemark::exchange
