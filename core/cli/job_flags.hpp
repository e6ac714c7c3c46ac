#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/units/issue.hpp"
#include "core/units/value.hpp"
#include "core/wire/json.hpp"

namespace tidemark {

/// The flags of the option table, and the request that they spell.
class JobFlags {
 public:
  /// Adds one flag per option.
  void add_to(CLI::App& app);

  /// What CLI11 lets pass and nobody means: a flag twice, a word behind a switch, two models.
  void check(Issues& issues) const;

  /// `base` (a request from a file, or null) with the flags written into it. Files that flags name are read here;
  /// trouble is told in `issues`.
  Value request(Value base, Issues& issues) const;

 private:
  /// Whether a flag says what a word of the sentence says, too.
  bool states(std::string_view option) const;

  struct Flag {
    std::size_t option = 0;          // index into options()
    CLI::Option* parsed = nullptr;   // what CLI11 found
    std::vector<std::string> words;  // its words, in order
  };
  std::vector<Flag> flags_;
  std::vector<std::string> sentence_;  // words of no flag (sentence.hpp)
  std::vector<double> sizes_;          // --vram-gb
};

/// The content of a file, or of standard input for "-", up to a byte more than `limit`; an error among `issues` when it
/// cannot be read.
std::string read_file(const std::string& path, Issues& issues, std::size_t limit = kMaxDocumentBytes);

/// "--micro-batch-size" for "/micro_batch_size", or an empty text where no flag writes there.
std::string flag_for_pointer(const std::string& pointer);

}  // namespace tidemark
