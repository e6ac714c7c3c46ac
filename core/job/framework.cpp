#include "core/job/framework.hpp"

#include <cctype>

namespace tidemark {

bool read_version(std::string_view text, Framework& framework) {
  const Framework newest;
  std::size_t at = 0;
  while (at < text.size() && !std::isdigit(static_cast<unsigned char>(text[at]))) {
    // "core, main branch 2026-08-19" and "v5.12" carry their number behind words.
    ++at;
  }
  if (at == text.size()) return false;
  const auto read_number = [&](int& number_read) {
    const std::size_t start = at;
    long value = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && value < 100000) {
      value = value * 10 + (text[at] - '0');
      ++at;
    }
    number_read = static_cast<int>(value);
    return at > start;
  };
  int first = 0;
  int second = 0;
  read_number(first);
  if (at < text.size() && (text[at] == '.' || text[at] == '-')) {
    ++at;
    read_number(second);
  }
  if (first >= 2018 && first <= 2100) {
    // A date. Releases whose memory differs: 4.46 (October 2024) and 5.0 (end of 2025).
    const int month = first * 12 + (second >= 1 && second <= 12 ? second : 12);
    if (month >= 2025 * 12 + 12) {
      framework.major = newest.major;
      framework.minor = newest.minor;
    } else {
      framework.major = 4;
      framework.minor = month >= 2024 * 12 + 11 ? 57 : 44;
    }
    return true;
  }
  if (first > 99) return false;
  framework.major = first;
  framework.minor = second;
  return true;
}

bool is_date(std::string_view text) {
  return text.size() >= 4 && text.substr(0, 2) == "20" && std::isdigit(static_cast<unsigned char>(text[3])) != 0;
}

}  // namespace tidemark
