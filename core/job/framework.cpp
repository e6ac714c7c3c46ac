#include "core/job/framework.hpp"

#include <cctype>
#include <iterator>

namespace tidemark {
namespace {

// A commit's hash, which tells no date: at least seven hexadecimal digits, letters among them.
bool is_commit(std::string_view text) {
  const bool letters = text.find_first_of("abcdef") != std::string_view::npos;
  return letters && text.size() >= 7 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The newest minor release of transformers 5 at the end of a month: https://pypi.org/project/transformers/#history.
int minor_of(int month, int newest) {
  constexpr int kJune = 2026 * 12 + 6;
  constexpr int kMinors[] = {12, 14, 16, 18, 22};  // June to October 2026
  if (month < kJune) return kMinors[0];
  const auto at = static_cast<std::size_t>(month - kJune);
  return at < std::size(kMinors) ? kMinors[at] : newest;
}

}  // namespace

bool read_version(std::string_view text, Framework& framework) {
  const Framework newest;
  if (is_commit(text)) {
    framework.major = newest.major;
    framework.minor = newest.minor;
    return true;
  }
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
    // A date. Releases whose memory differs: 4.46 (October 2024), 5.0 (end of 2025), and those behind 5.12.
    const int month = first * 12 + (second >= 1 && second <= 12 ? second : 12);
    if (month >= 2025 * 12 + 12) {
      framework.major = newest.major;
      framework.minor = minor_of(month, newest.minor);
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

int date_in(std::string_view text) {
  struct Release {
    std::string_view version;
    int date;
  };
  // https://pypi.org/project/torchtitan/#history, https://pypi.org/project/unsloth/#history
  constexpr Release kReleases[] = {{"0.1", date_of(2025, 6, 18)},    {"0.2.0", date_of(2025, 10, 18)},
                                   {"0.2.1", date_of(2025, 12, 26)}, {"0.2", date_of(2026, 2, 20)},
                                   {"0.", date_of(2100, 1, 1)},      {"2026.10.9", kUnslothRows}};
  for (const Release& release : kReleases) {
    if (text.substr(0, release.version.size()) == release.version) return release.date;
  }
  if (!is_date(text)) return 0;
  const auto number = [text](std::size_t at, std::size_t length, int otherwise) {
    int value = 0;
    for (std::size_t i = at; i < at + length; ++i) {
      if (i >= text.size() || std::isdigit(static_cast<unsigned char>(text[i])) == 0) return otherwise;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  // Of a month alone its middle, of a year its.
  return date_of(number(0, 4, 2100), number(5, 2, 7), number(8, 2, 15));
}

bool is_date(std::string_view text) {
  return text.size() >= 4 && text.substr(0, 2) == "20" && std::isdigit(static_cast<unsigned char>(text[3])) != 0;
}

bool runs_llama_factory_v1(const TrainingJob& job) {
  return job.framework.name == "llama_factory_v1";
}

bool runs_sd_scripts(const TrainingJob& job) {
  return job.framework.name == "sd_scripts";
}

}  // namespace tidemark
