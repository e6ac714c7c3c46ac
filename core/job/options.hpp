#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/request.hpp"

namespace tidemark {

/// What kind of JSON value an option takes.
enum class OptionType : std::uint8_t {
  kBool,
  kInteger,
  kReal,
  kText,
  kTextList,    ///< list of strings, or one string
  kChoice,      ///< one of Option::choices
  kChoiceList,  ///< list of them, or one
  kDocument,    ///< an object that another room reads (config.json)
  kGpu,         ///< a name, or {"memory_gib": 24}
  kGpuList,
  kAny,  ///< not read yet: only its default is accepted
};
std::string_view name_of(OptionType type);

/// One accepted word of a choice.
struct Choice {
  std::string_view name;           ///< as written in a request
  int value = 0;                   ///< the enumerator that it stands for
  std::string_view help;           ///< half a sentence
  bool modelled = true;            ///< false: known, and answered with UNSUPPORTED_OPTION
  std::string_view alias_of = {};  ///< the usual spelling, when this is another one for it
};

/// A value that has passed its option's checks.
struct OptionValue {
  bool boolean = false;             ///< kBool
  std::int64_t integer = 0;         ///< kInteger
  double real = 0.0;                ///< kReal, kInteger
  std::string text;                 ///< kText; the usual spelling of a kChoice
  std::vector<std::string> list;    ///< kTextList
  int choice = 0;                   ///< Choice::value of a kChoice
  std::vector<int> choices;         ///< kChoiceList
  std::vector<GpuQuery> gpus;       ///< kGpu, kGpuList
  const Value* document = nullptr;  ///< kDocument
};

/// One option, declared once: requests, command-line flags, `describe`, the page and the reference all read this.
struct Option {
  std::string_view name;                 ///< path in the request: "adapter.r" is {"adapter": {"r": …}}
  OptionType type = OptionType::kText;   ///< what it takes
  std::string_view standard;             ///< default, as JSON text
  std::span<const Choice> choices = {};  ///< accepted words
  double minimum = 0.0;                  ///< smallest number accepted
  double maximum = 0.0;                  ///< largest; no range when both are 0
  std::string_view unit;                 ///< of a number: "tokens", "GiB"
  std::string_view group;                ///< heading in help texts
  std::string_view help;                 ///< one sentence
  std::string_view flags;                ///< further command-line spellings, comma-separated: "--lora-r"
  bool advanced = false;                 ///< hidden from the short help
  std::string_view missing;              ///< why only the default is accepted; empty when the engine models it
  void (*apply)(Request&, const OptionValue&) = nullptr;  ///< writes the value into the request
  void (*open)(Request&) = nullptr;  ///< an object stands where this option's word could: start from a clean state
};

/// All options, in the order in which they are read and shown.
std::span<const Option> options();

/// The option of that name ("adapter.r"), or null.
const Option* find_option(std::string_view name);

/// The choice of that spelling, letters' case ignored, or null.
const Choice* find_choice(const Option& option, std::string_view word);

/// "--adapter-r" for "adapter.r".
std::string flag_of(const Option& option);

/// The same and its further spellings: {"--adapter-r", "--lora-r", "--rank"}.
std::vector<std::string> flags_of(const Option& option);

/// "/adapter/r" for "adapter.r".
std::string pointer_of(std::string_view option_name);

/// One sentence per group, for help texts: {"adapter", "LoRA adapters (read when method is lora or qlora)"}.
struct OptionGroup {
  std::string_view name;   ///< as in Option::group
  std::string_view title;  ///< heading
};
std::span<const OptionGroup> option_groups();

/// A release of a framework from free text: "5.12", "4.48.1", "4.36 (ms-swift 2.x)", "2026-07". False when none is in
/// it.
bool read_version(std::string_view text, Framework& framework);

}  // namespace tidemark
