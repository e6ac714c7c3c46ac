#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/job/request.hpp"
#include "core/units/issue.hpp"

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

/// What has been read before an option's turn comes.
struct ReadSoFar {
  const Request& request;                   ///< with the options above applied
  std::span<const std::string_view> given;  ///< names of the options that the request states
  bool states(std::string_view name) const;
};

/// When an option, or a group of them, decides anything: `option` has one of `words`.
struct Relevance {
  std::string_view option;  ///< "method"; empty: always
  std::string_view words;   ///< comma-separated: "lora,qlora"
};

/// One option, declared once: requests, command-line flags, `describe`, the page and the reference all read this.
struct Option {
  std::string_view name;                 ///< path in the request: "adapter.r" is {"adapter": {"r": ...}}
  OptionType type = OptionType::kText;   ///< what it takes
  std::string_view standard;             ///< default, as JSON text
  std::span<const Choice> choices = {};  ///< accepted words
  std::string_view label;                ///< its title in a form, plain words: "Batch size per GPU"
  std::string_view help;                 ///< one sentence
  double minimum = 0.0;                  ///< smallest number accepted
  double maximum = 0.0;                  ///< largest; no range when both are 0
  std::string_view unit = {};            ///< of a number: "tokens", "GiB"
  double usual_minimum = 0.0;            ///< where a slider starts
  double usual_maximum = 0.0;            ///< where it ends; no slider when both are 0
  std::string_view group = {};           ///< its topic's name; options() fills it in
  std::string_view flags = {};           ///< further command-line spellings, comma-separated: "--lora-r"
  std::string_view also = {};            ///< other tools' keys for it, comma-separated paths: "lora_r,lora_rank"
  std::string_view word_key = {};        ///< in the object form, the key that holds what else is a word: "recipe"
  std::string_view word_standard = {};   ///< what a form writes under that key while its word is none of these
  std::string_view catalog = {};         ///< the list of the catalog that holds its values: "models", "gpus"
  bool advanced = false;                 ///< hidden from the short help
  bool counts = false;                   ///< on the command line, "7B" and "350M" are numbers
  bool number_is_text = false;           ///< a number stands for its digits: 5.12 without quotes
  Relevance relevant = {};               ///< when it matters, besides what its group says
  std::string_view missing = {};         ///< why only the default is accepted; empty when the engine models it
  /// Refuses a value, or notes what is assumed, in view of what stands above.
  void (*check)(const OptionValue&, const ReadSoFar&, Issues&) = nullptr;
  void (*apply)(Request&, const OptionValue&) = nullptr;  ///< writes the value into the request
  void (*automatic)(Request&) = nullptr;                  ///< "auto" stands in the number's place
  void (*open)(Request&) = nullptr;  ///< an object stands where this option's word could: start from a clean state

  // Each returns the option with one thing more said about it, so that a table reads like a list of sentences.
  constexpr Option spelled(std::string_view flags) const;
  constexpr Option known_as(std::string_view keys) const;
  constexpr Option within(double low, double high, std::string_view of = {}) const;
  constexpr Option usually(double low, double high) const;
  constexpr Option further() const;
  constexpr Option counted() const;
  constexpr Option digits() const;
  constexpr Option from(std::string_view list) const;
  constexpr Option when(std::string_view option, std::string_view words) const;
  constexpr Option refused(std::string_view why) const;
  constexpr Option checked(void (*by)(const OptionValue&, const ReadSoFar&, Issues&)) const;
  constexpr Option sets(void (*by)(Request&, const OptionValue&)) const;
  constexpr Option opens(std::string_view key, std::string_view word, void (*by)(Request&)) const;
  /// Sets one field of the job: into<&TrainingJob::adapter, &Adapter::r>().
  template <auto... path>
  constexpr Option into() const;
};

/// One heading of the form, the help and the reference.
struct OptionGroup {
  std::string_view name;    ///< as in Option::group
  std::string_view title;   ///< heading
  bool usual = false;       ///< many jobs change something in it: it stands open in a form
  Relevance relevant = {};  ///< when its options matter
};

}  // namespace tidemark
