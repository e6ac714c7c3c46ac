#include "core/job/regex.hpp"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr std::size_t kMostStates = 5000;  // what counted repetitions may grow to
constexpr int kMostNesting = 100;          // groups inside groups
constexpr int kMostRepeats = 1000;         // {n}

using Bytes256 = Regex::Bytes256;

bool is_word(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_name(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_word(static_cast<unsigned char>(c)); });
}

Bytes256 range(int first, int last) {
  Bytes256 set;
  for (int c = first; c <= last; ++c) set.set(static_cast<std::size_t>(c));
  return set;
}

Bytes256 words() {
  Bytes256 set;
  for (int c = 0; c < 256; ++c) {
    if (is_word(static_cast<unsigned char>(c))) set.set(static_cast<std::size_t>(c));
  }
  return set;
}

/// What \d, \w, \s and their opposites stand for.
std::optional<Bytes256> named_class(char letter) {
  switch (letter) {
    case 'd':
      return range('0', '9');
    case 'D':
      return ~range('0', '9');
    case 'w':
      return words();
    case 'W':
      return ~words();
    case 's':
      return range('\t', '\r') | range(' ', ' ');
    case 'S':
      return ~(range('\t', '\r') | range(' ', ' '));
    default:
      return std::nullopt;
  }
}

void add_other_case(Bytes256& set) {
  for (std::size_t c = 'a'; c <= 'z'; ++c) {
    const std::size_t upper = c - 'a' + 'A';
    if (set[c] || set[upper]) {
      set.set(c);
      set.set(upper);
    }
  }
}

/// A node of the syntax tree.
struct Syntax {
  enum class Kind : std::uint8_t { kNothing, kBytes, kSequence, kChoice, kRepeat, kAssertion, kLookahead };
  Kind kind = Kind::kNothing;
  Bytes256 bytes;                                              ///< of kBytes
  std::vector<std::int32_t> parts;                             ///< nodes below
  int least = 0;                                               ///< of kRepeat
  int most = 0;                                                ///< of kRepeat; -1: no limit
  Regex::State::Kind assertion = Regex::State::Kind::kAccept;  ///< of kAssertion and kLookahead
};

/// Recursive descent over the expression, as CPython's re/_parser.py does it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::int32_t parse() {
    if (text_.substr(0, 4) == "(?i)") {
      fold_ = true;
      at_ = 4;
    }
    const std::int32_t root = choice(0);
    if (!failed() && at_ < text_.size()) fail("a parenthesis is closed that none opens");
    return root;
  }

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  const std::vector<Syntax>& nodes() const { return nodes_; }

 private:
  bool more() const { return at_ < text_.size() && !failed(); }
  char peek() const { return text_[at_]; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::int32_t fail(std::string what) {
    if (!failed()) error_ = std::move(what);
    return add({});
  }
  std::int32_t add(Syntax node) {
    nodes_.push_back(std::move(node));
    return static_cast<std::int32_t>(nodes_.size()) - 1;
  }
  std::int32_t add_bytes(Bytes256 set) {
    if (fold_) add_other_case(set);
    Syntax node;
    node.kind = Syntax::Kind::kBytes;
    node.bytes = set;
    return add(std::move(node));
  }
  std::int32_t add_assertion(Regex::State::Kind kind) {
    Syntax node;
    node.kind = Syntax::Kind::kAssertion;
    node.assertion = kind;
    return add(std::move(node));
  }

  std::int32_t choice(int depth) {
    if (depth > kMostNesting) return fail("groups are nested too deeply");
    Syntax node;
    node.kind = Syntax::Kind::kChoice;
    node.parts.push_back(sequence(depth));
    while (more() && take('|')) node.parts.push_back(sequence(depth));
    return node.parts.size() == 1 ? node.parts.front() : add(std::move(node));
  }

  std::int32_t sequence(int depth) {
    Syntax node;
    node.kind = Syntax::Kind::kSequence;
    while (more() && peek() != '|' && peek() != ')') node.parts.push_back(repeated(depth));
    return add(std::move(node));
  }

  std::int32_t repeated(int depth) {
    const std::int32_t piece = atom(depth);
    int least = 0;
    int most = 0;
    if (!more() || !quantifier(least, most)) return piece;
    const Syntax::Kind kind = nodes_[static_cast<std::size_t>(piece)].kind;
    if (kind == Syntax::Kind::kAssertion) return fail("there is nothing to repeat before a quantifier");
    take('?');  // lazy: the same texts match
    if (more() && peek() == '+') return fail("possessive quantifiers are not supported");
    int again = 0;
    if (more() && quantifier(again, again)) return fail("two quantifiers follow each other");
    Syntax node;
    node.kind = Syntax::Kind::kRepeat;
    node.parts.push_back(piece);
    node.least = least;
    node.most = most;
    return add(std::move(node));
  }

  bool quantifier(int& least, int& most) {
    if (take('*')) return least = 0, most = -1, true;
    if (take('+')) return least = 1, most = -1, true;
    if (take('?')) return least = 0, most = 1, true;
    return peek() == '{' && counted(least, most);
  }

  /// {3}, {2,}, {,4}, {2,4}; anything else is a literal brace.
  bool counted(int& least, int& most) {
    std::size_t i = at_ + 1;
    const auto number = [&](int otherwise) {
      if (i >= text_.size() || !is_digit(text_[i])) return otherwise;
      int value = 0;
      for (; i < text_.size() && is_digit(text_[i]); ++i) value = std::min(value * 10 + (text_[i] - '0'), 100000);
      return value;
    };
    const std::size_t first = i;
    least = most = number(0);
    const bool has_first = i > first;
    const bool has_comma = i < text_.size() && text_[i] == ',';
    if (has_comma) {
      ++i;
      most = number(-1);
    }
    if ((!has_first && !has_comma) || i >= text_.size() || text_[i] != '}') return false;
    at_ = i + 1;
    if (least > kMostRepeats || most > kMostRepeats) fail("a count is beyond " + std::to_string(kMostRepeats));
    if (most >= 0 && most < least) fail("a repetition's least is above its most");
    return true;
  }

  std::int32_t atom(int depth) {
    const char c = peek();
    ++at_;
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return char_class();
      case '\\':
        return escape();
      case '.':
        return add_bytes(~range('\n', '\n'));
      case '^':
        return add_assertion(Regex::State::Kind::kTextStart);
      case '$':
        return add_assertion(Regex::State::Kind::kLineEnd);
      case '*':
      case '+':
      case '?':
        return fail("there is nothing to repeat before \"" + std::string(1, c) + "\"");
      case '{':
        return brace();
      default:
        return add_bytes(range(static_cast<unsigned char>(c), static_cast<unsigned char>(c)));
    }
  }

  std::int32_t brace() {
    --at_;
    int count = 0;
    if (counted(count, count)) return fail("there is nothing to repeat before a count");
    ++at_;
    return add_bytes(range('{', '{'));
  }

  std::int32_t group(int depth) {
    Syntax look;
    if (take('?')) {
      if (take('=')) {
        look.assertion = Regex::State::Kind::kAhead;
      } else if (take('!')) {
        look.assertion = Regex::State::Kind::kNotAhead;
      } else if (text_.substr(at_, 2) == "P<") {
        const std::size_t end = text_.find('>', at_);
        if (end == std::string_view::npos || !is_name(text_.substr(at_ + 2, end - at_ - 2))) {
          return fail("a group's name is none");
        }
        at_ = end + 1;
      } else if (!take(':')) {
        return fail(
            "of the groups that start with \"(?\" only (?:...), (?P<name>...), (?=...), (?!...) and a leading (?i) are "
            "supported");
      }
    }
    const std::int32_t inside = choice(depth + 1);
    if (!failed() && !take(')')) return fail("a parenthesis is not closed");
    if (look.assertion == Regex::State::Kind::kAccept) return inside;
    look.kind = Syntax::Kind::kLookahead;
    look.parts.push_back(inside);
    return add(std::move(look));
  }

  std::int32_t escape() {
    if (!more()) return fail("it ends with a backslash");
    const char c = peek();
    ++at_;
    if (const auto set = named_class(c)) return add_bytes(*set);
    switch (c) {
      case 'A':
        return add_assertion(Regex::State::Kind::kTextStart);
      case 'Z':
        return add_assertion(Regex::State::Kind::kTextEnd);
      case 'b':
        return add_assertion(Regex::State::Kind::kWordEdge);
      case 'B':
        return add_assertion(Regex::State::Kind::kNoWordEdge);
      default:
        break;
    }
    if (c >= '1' && c <= '9') return fail("back-references are not supported");
    const int byte = escaped_byte(c);
    return failed() ? add({}) : add_bytes(range(byte, byte));
  }

  /// The byte that an escape outside the classes above stands for.
  int escaped_byte(char c) {
    constexpr std::string_view kLetters = "abfnrtv0";
    constexpr std::string_view kBytes{"\a\b\f\n\r\t\v\0", 8};
    if (const std::size_t i = kLetters.find(c); i != std::string_view::npos) {
      return static_cast<unsigned char>(kBytes[i]);
    }
    if (is_letter(c) || is_digit(c)) {
      fail("\"\\" + std::string(1, c) + "\" is not an escape that is supported");
      return 0;
    }
    return static_cast<unsigned char>(c);
  }

  /// One member of a class: a byte, or in `set` a class of its own.
  int class_member(Bytes256& set) {
    const char c = peek();
    ++at_;
    if (c != '\\') return static_cast<unsigned char>(c);
    if (!more()) {
      fail("it ends with a backslash");
      return 0;
    }
    const char letter = peek();
    ++at_;
    if (const auto named = named_class(letter)) {
      set |= *named;
      return -1;
    }
    return escaped_byte(letter);
  }

  std::int32_t char_class() {
    const bool inverted = take('^');
    Bytes256 set;
    for (bool first = true;; first = false) {
      if (!more()) return fail("a class of characters is not closed");
      if (!first && take(']')) break;
      const int low = class_member(set);
      const bool is_range = at_ + 1 < text_.size() && peek() == '-' && text_[at_ + 1] != ']';
      if (!is_range) {
        if (low >= 0) set.set(static_cast<std::size_t>(low));
        continue;
      }
      ++at_;
      const int high = class_member(set);
      if (low < 0 || high < low) return fail("a range of characters runs backwards");
      set |= range(low, high);
    }
    if (fold_) add_other_case(set);
    return add_bytes(inverted ? ~set : set);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool fold_ = false;  // (?i)
  std::vector<Syntax> nodes_;
  std::string error_;
};

}  // namespace

/// Makes Thompson's automaton of a syntax tree, from its end to its start.
class RegexCompiler {
 public:
  RegexCompiler(const std::vector<Syntax>& nodes, Regex& regex) : nodes_(nodes), regex_(regex) {}

  bool compile(std::int32_t root) {
    regex_.start_ = states_of(root, add({}));
    return !too_large();
  }

 private:
  using State = Regex::State;

  std::int32_t add(State state) {
    regex_.states_.push_back(state);
    return static_cast<std::int32_t>(regex_.states_.size()) - 1;
  }

  /// Repetitions of nothing make no states, but take as long.
  bool too_large() const { return regex_.states_.size() > kMostStates || visits_ > kMostStates; }

  State& state(std::int32_t index) { return regex_.states_[static_cast<std::size_t>(index)]; }

  std::int32_t fork(std::int32_t first, std::int32_t second) {
    State state;
    state.kind = State::Kind::kFork;
    state.next = first;
    state.other = second;
    return add(state);
  }

  /// The first state of what matches the node and goes on at `next`.
  std::int32_t states_of(std::int32_t index, std::int32_t next) {
    const Syntax& node = nodes_[static_cast<std::size_t>(index)];
    if (too_large()) return next;
    ++visits_;
    switch (node.kind) {
      case Syntax::Kind::kNothing:
        return next;
      case Syntax::Kind::kBytes:
        return byte_state(node, next);
      case Syntax::Kind::kSequence:
        for (std::size_t i = node.parts.size(); i > 0; --i) next = states_of(node.parts[i - 1], next);
        return next;
      case Syntax::Kind::kChoice: {
        std::int32_t first = states_of(node.parts.back(), next);
        for (std::size_t i = node.parts.size() - 1; i > 0; --i) first = fork(states_of(node.parts[i - 1], next), first);
        return first;
      }
      case Syntax::Kind::kRepeat:
        return repeat_states(node, next);
      case Syntax::Kind::kAssertion:
      case Syntax::Kind::kLookahead:
        return assertion_state(node, next);
    }
    return next;
  }

  std::int32_t byte_state(const Syntax& node, std::int32_t next) {
    const auto known = std::find(regex_.sets_.begin(), regex_.sets_.end(), node.bytes);
    State state;
    state.kind = State::Kind::kBytes;
    state.bytes = static_cast<std::int32_t>(known - regex_.sets_.begin());
    state.next = next;
    if (known == regex_.sets_.end()) regex_.sets_.push_back(node.bytes);
    return add(state);
  }

  std::int32_t repeat_states(const Syntax& node, std::int32_t next) {
    if (node.most < 0) {
      const std::int32_t loop = fork(-1, next);
      const std::int32_t body = states_of(node.parts.front(), loop);
      state(loop).next = body;
      next = loop;
    } else {
      const std::int32_t out = next;
      for (int i = node.least; i < node.most && !too_large(); ++i)
        next = fork(states_of(node.parts.front(), next), out);
    }
    for (int i = 0; i < node.least && !too_large(); ++i) next = states_of(node.parts.front(), next);
    return next;
  }

  std::int32_t assertion_state(const Syntax& node, std::int32_t next) {
    State state;
    state.kind = node.assertion;
    state.next = next;
    if (node.kind == Syntax::Kind::kLookahead) {
      state.look = regex_.looks_++;
      state.other = states_of(node.parts.front(), add({}));
    }
    return add(state);
  }

  const std::vector<Syntax>& nodes_;
  Regex& regex_;
  std::size_t visits_ = 0;  // of nodes
};

/// One text against an automaton: all states that it can be in are followed together.
class RegexRun {
 public:
  RegexRun(const Regex& regex, std::string_view text)
      : regex_(regex), text_(text), known_(static_cast<std::size_t>(regex.looks_) * (text.size() + 1), kUnknown) {}

  /// Whether a match starts at `at`; one that ends with the text, when `to_end`.
  bool matches_from(std::int32_t start, std::size_t at, bool to_end) { return walk(start, at, at, to_end); }

  /// Whether one starts anywhere from `first` to `last`.
  bool walk(std::int32_t start, std::size_t first, std::size_t last, bool to_end) {
    std::vector<std::int32_t> now, then;
    std::vector<std::size_t> seen(regex_.states_.size(), kNever);
    for (std::size_t at = first;; ++at) {
      bool accepted = false;
      for (std::int32_t state : then) follow(state, at, now, seen, accepted);
      if (at <= last) follow(start, at, now, seen, accepted);
      if (accepted && (!to_end || at == text_.size())) return true;
      if (at == text_.size() || (now.empty() && at >= last)) return false;
      then.clear();
      for (std::int32_t index : now) {
        const Regex::State& state = regex_.states_[static_cast<std::size_t>(index)];
        const auto byte = static_cast<unsigned char>(text_[at]);
        if (regex_.sets_[static_cast<std::size_t>(state.bytes)][byte]) then.push_back(state.next);
      }
      now.clear();
    }
  }

 private:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  static constexpr signed char kUnknown = -1;
  using Kind = Regex::State::Kind;

  /// Adds what can be reached without taking a byte.
  void follow(std::int32_t first, std::size_t at, std::vector<std::int32_t>& now, std::vector<std::size_t>& seen,
              bool& accepted) {
    std::vector<std::int32_t> waiting = {first};
    while (!waiting.empty()) {
      const std::int32_t index = waiting.back();
      waiting.pop_back();
      if (seen[static_cast<std::size_t>(index)] == at) continue;
      seen[static_cast<std::size_t>(index)] = at;
      const Regex::State& state = regex_.states_[static_cast<std::size_t>(index)];
      if (state.kind == Kind::kAccept) {
        accepted = true;
      } else if (state.kind == Kind::kBytes) {
        now.push_back(index);
      } else if (state.kind == Kind::kFork) {
        waiting.push_back(state.other);
        waiting.push_back(state.next);
      } else if (holds(state, at)) {
        waiting.push_back(state.next);
      }
    }
  }

  bool holds(const Regex::State& state, std::size_t at) {
    switch (state.kind) {
      case Kind::kTextStart:
        return at == 0;
      case Kind::kTextEnd:
        return at == text_.size();
      case Kind::kLineEnd:
        return at == text_.size() || (at + 1 == text_.size() && text_[at] == '\n');
      case Kind::kWordEdge:
        return at_word_edge(at);
      case Kind::kNoWordEdge:
        return !text_.empty() && !at_word_edge(at);  // of an empty text not even that is true
      case Kind::kAhead:
        return found_ahead(state, at);
      case Kind::kNotAhead:
        return !found_ahead(state, at);
      default:
        return false;
    }
  }

  bool at_word_edge(std::size_t at) const {
    const bool before = at > 0 && is_word(static_cast<unsigned char>(text_[at - 1]));
    const bool after = at < text_.size() && is_word(static_cast<unsigned char>(text_[at]));
    return before != after;
  }

  bool found_ahead(const Regex::State& state, std::size_t at) {
    const std::size_t slot = static_cast<std::size_t>(state.look) * (text_.size() + 1) + at;
    if (known_[slot] == kUnknown) known_[slot] = matches_from(state.other, at, false) ? 1 : 0;
    return known_[slot] == 1;
  }

  const Regex& regex_;
  std::string_view text_;
  std::vector<signed char> known_;  // results of lookaheads, by lookahead and place
};

std::optional<Regex> Regex::compile(std::string_view expression, std::string& error) {
  Parser parser(expression);
  const std::int32_t root = parser.parse();
  if (parser.failed()) {
    error = parser.error();
    return std::nullopt;
  }
  Regex regex;
  if (!RegexCompiler(parser.nodes(), regex).compile(root)) {
    error = "its repetitions come to more than " + std::to_string(kMostStates) + " states";
    return std::nullopt;
  }
  return regex;
}

bool Regex::matches(std::string_view text) const {
  return RegexRun(*this, text).matches_from(start_, 0, true);
}

bool Regex::occurs_in(std::string_view text) const {
  return RegexRun(*this, text).walk(start_, 0, text.size(), false);
}

bool Regex::tells_digits_apart() const {
  return std::any_of(sets_.begin(), sets_.end(), [](const Bytes256& set) {
    const Bytes256 digits = set & range('0', '9');
    return digits.any() && digits != range('0', '9');
  });
}

std::string escaped(std::string_view text) {
  std::string expression;
  for (const char c : text) {
    if (!is_word(static_cast<unsigned char>(c))) expression += '\\';
    expression += c;
  }
  return expression;
}

}  // namespace tidemark
