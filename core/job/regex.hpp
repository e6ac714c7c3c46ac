#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// A regular expression as Python's `re` reads it, over bytes: literals, classes, groups, alternation, greedy and lazy
/// quantifiers, anchors, \b, lookahead and a leading (?i). Back-references, lookbehind, possessive quantifiers,
/// conditionals and other flags are refused. Matching never backtracks: its time is bounded by the product of the
/// lengths of expression and text (squared in the text where there is lookahead).
class Regex {
 public:
  /// Reads an expression; nothing, with `error` a clause for a sentence, when it is none or not one of ours.
  static std::optional<Regex> compile(std::string_view expression, std::string& error);

  /// re.fullmatch(expression, text) is not None
  bool matches(std::string_view text) const;
  /// re.search(expression, text) is not None
  bool occurs_in(std::string_view text) const;

  /// Whether it may take one digit where it does not take another.
  bool tells_digits_apart() const;
  /// States of its automaton: what a byte of text costs at most.
  std::size_t size() const { return states_.size(); }

  /// A set of bytes. (std::bitset's loops over single bits are 2 KB of WebAssembly.)
  class Bytes256 {
   public:
    void set(std::size_t byte) { words_[byte / 64] |= std::uint64_t{1} << byte % 64; }
    bool operator[](std::size_t byte) const { return (words_[byte / 64] >> byte % 64 & 1) != 0; }
    bool any() const { return *this != Bytes256{}; }
    Bytes256& operator|=(const Bytes256& other) {
      for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
      return *this;
    }
    Bytes256 operator|(const Bytes256& other) const { return Bytes256{*this} |= other; }
    Bytes256 operator&(const Bytes256& other) const { return ~(~*this | ~other); }
    Bytes256 operator~() const {
      Bytes256 others;
      for (std::size_t i = 0; i < words_.size(); ++i) others.words_[i] = ~words_[i];
      return others;
    }
    bool operator==(const Bytes256&) const = default;

   private:
    std::array<std::uint64_t, 4> words_{};
  };

  /// One state of the automaton.
  struct State {
    enum class Kind : std::uint8_t {
      kBytes,  ///< takes one byte of `bytes`
      kFork,   ///< goes on at `next` and at `other`
      kTextStart,
      kTextEnd,   ///< the end of the text and nothing else: \Z
      kLineEnd,   ///< `$`: the end, or before a last line feed
      kWordEdge,  ///< \b
      kNoWordEdge,
      kAhead,     ///< a match of the states from `other` starts here
      kNotAhead,  ///< none does
      kAccept,
    };
    Kind kind = Kind::kAccept;
    std::int32_t bytes = -1;  ///< index into the sets of bytes, of kBytes
    std::int32_t next = -1;   ///< state that follows
    std::int32_t other = -1;  ///< second branch of kFork, first state of a lookahead
    std::int32_t look = -1;   ///< number of the lookahead
  };

 private:
  friend class RegexCompiler;
  friend class RegexRun;

  std::vector<State> states_;
  std::vector<Bytes256> sets_;
  std::int32_t start_ = 0;
  std::int32_t looks_ = 0;  ///< number of lookaheads
};

/// The text as an expression that matches it alone: re.escape.
std::string escaped(std::string_view text);

}  // namespace tidemark
