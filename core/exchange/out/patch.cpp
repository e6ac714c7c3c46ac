// Patches to files that were given. What a key is called and how its value is spelled is not told by tables: likely
// edits are tried and read again, so that whatever a format's reader knows can be patched, and nothing is written that
// it misreads.
#include "core/exchange/out/patch.hpp"

#include <algorithm>
#include <optional>

#include "core/options/options.hpp"
#include "core/units/decimal.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostBytes = 256 << 10;
constexpr int kMostTries = 400;      // readings for one change
constexpr std::size_t kContext = 3;  // lines around a change, as diff -u has them

struct Line {
  std::string text;
  int original = 0;  ///< its number in the file, from one; 0: it is new
  bool changed = false;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back({text.substr(at, end - at), static_cast<int>(lines.size()) + 1});
    at = end + 1;
  }
  return lines;
}

std::string text_of(const std::vector<Line>& lines, bool ends) {
  std::string text;
  for (const Line& line : lines) text += line.text + "\n";
  if (!ends && !text.empty()) text.pop_back();
  return text;
}

bool same(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.real == b.real;
  if (a.kind != b.kind || a.boolean != b.boolean || a.string != b.string || a.items.size() != b.items.size())
    return false;
  if (a.members.size() != b.members.size()) return false;
  for (std::size_t at = 0; at < a.items.size(); ++at) {
    if (!same(a.items[at], b.items[at])) return false;
  }
  for (std::size_t at = 0; at < a.members.size(); ++at) {
    if (a.members[at].key != b.members[at].key || !same(a.members[at].value, b.members[at].value)) return false;
  }
  return true;
}

const Finding* field_of(const Import& import, std::string_view path) {
  for (const Finding& field : import.fields) {
    if (field.path == path) return &field;
  }
  return nullptr;
}

/// A literal of a line: where it stands, without its quotes.
struct Token {
  std::size_t from = 0, to = 0;
  char quote = 0;
};

std::vector<Token> tokens_of(const std::string& line) {
  constexpr std::string_view kBetween = " \t,:=()[]{}";
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < line.size();) {
    const char letter = line[at];
    if (letter == '#' && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t')) break;
    if (kBetween.find(letter) != std::string_view::npos) {
      ++at;
    } else if (letter == '"' || letter == '\'') {
      const std::size_t end = std::min(line.find(letter, at + 1), line.size());
      tokens.push_back({at + 1, end, letter});
      at = end + 1;
    } else {
      const std::size_t end = std::min(line.find_first_of(kBetween, at), line.size());
      tokens.push_back({at, end, 0});
      at = end;
    }
  }
  return tokens;
}

/// How files spell a value, likeliest first. `python`: True for true.
std::vector<std::string> spellings(const Value& value, bool python) {
  const auto truth = [python](bool on) {
    return std::string{on ? (python ? "True" : "true") : python ? "False" : "false"};
  };
  std::vector<std::string> words;
  if (value.kind == Value::Kind::kBool) words.push_back(truth(value.boolean));
  if (value.is_integer()) words.push_back(std::to_string(value.integer));
  if (value.is_number() && !value.is_integer()) words.push_back(shortest_decimal(value.real));
  if (value.is_string()) {
    words.push_back(value.string);
    if (value.string == "full") words.push_back(truth(true));
    if (value.string == "none") words.push_back(truth(false));
  }
  return words;
}

std::vector<std::string_view> keys_of(std::string_view path) {
  std::vector<std::string_view> keys{path.substr(path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.') + 1)};
  if (const Option* option = find_option(path); option != nullptr) {
    for (std::string_view key : words_of(option->also)) keys.push_back(key);
  }
  return keys;
}

/// The work on one file.
class Editor {
 public:
  explicit Editor(std::vector<Source> sources)
      : sources_(std::move(sources)),
        lines_(lines_of(sources_[0].bytes)),
        ends_(!sources_[0].bytes.empty() && sources_[0].bytes.back() == '\n'),
        now_(import_sources(sources_)) {}

  bool change(const std::string& path, const Value& value) {
    const Finding* field = field_of(now_, path);
    if (field != nullptr && same(field->value, value)) return true;
    wanted_ = {path, value};
    tries_ = 0;
    return (field != nullptr && rewrite(*field)) || insert();
  }

  Patched finish() const {
    Patched out;
    out.text = text_of(lines_, ends_);
    out.diff = diff();
    return out;
  }

 private:
  bool is_json() const { return contains_word(sources_[0].name, ".json"); }
  bool is_python() const {
    return !now_.readings.empty() && (now_.readings[0].format == "python" || now_.readings[0].format == "notebook");
  }
  static bool contains_word(const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
  }

  /// Keeps the lines if the file that they make says what is wanted, and all else as before.
  bool accept(std::vector<Line> lines) {
    if (++tries_ > kMostTries) return false;
    std::vector<Source> sources = sources_;
    sources[0].bytes = text_of(lines, ends_);
    Import read = import_sources(sources);
    const Finding* field = field_of(read, wanted_.first);
    if (field == nullptr || !same(field->value, wanted_.second) || read.issues.size() > now_.issues.size())
      return false;
    for (const Finding& before : now_.fields) {
      if (before.path == wanted_.first || !before.assumed.empty()) continue;  // what follows by a rule may follow
      const Finding* after = field_of(read, before.path);
      if (after == nullptr || !same(after->value, before.value)) return false;
    }
    lines_ = std::move(lines);
    sources_ = std::move(sources);
    now_ = std::move(read);
    return true;
  }

  /// A literal on a line that the field stands on, replaced.
  bool rewrite(const Finding& field) {
    const std::vector<Origin> origins = field.origins;
    for (const Origin& origin : origins) {
      if (origin.file != sources_[0].name || origin.cell >= 0) continue;
      for (int number = origin.first; number <= std::min(origin.last, origin.first + 8); ++number) {
        if (number < 1 || number > static_cast<int>(lines_.size())) continue;
        if (rewrite_line(static_cast<std::size_t>(number) - 1)) return true;
      }
    }
    return false;
  }

  bool rewrite_line(std::size_t at) {
    const std::vector<Token> tokens = tokens_of(lines_[at].text);
    for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
      for (const std::string& word : spellings(wanted_.second, is_python())) {
        std::vector<Line> lines = lines_;
        lines[at].text.replace(token->from, token->to - token->from, word);
        lines[at].changed = lines[at].original > 0;
        if (accept(std::move(lines))) return true;
      }
    }
    return false;
  }

  /// A line more, made like one that states another field: "key: value", "key = value", "key=value,", "--key value \".
  bool insert() {
    const Import before = now_;
    for (const Finding& field : before.fields) {
      for (const Origin& origin : field.origins) {
        const bool alone = origin.file == sources_[0].name && origin.cell < 0 && origin.first == origin.last;
        if (!alone || origin.first < 1 || origin.first > static_cast<int>(lines_.size())) continue;
        if (insert_before(static_cast<std::size_t>(origin.first) - 1)) return true;
      }
    }
    return false;
  }

  bool insert_before(std::size_t at) {
    const std::string model = lines_[at].text;
    const std::vector<Token> tokens = tokens_of(model);
    if (tokens.size() != 2) return false;  // a key and its value
    const std::string end = model.substr(std::min(tokens[1].to + (tokens[1].quote != 0 ? 1 : 0), model.size()));
    const bool comma = end.find(',') != std::string::npos || is_json() || is_python();
    const bool goes_on = model.back() == '\\';
    const std::size_t value_at = tokens[1].from - (tokens[1].quote != 0 ? 1 : 0);
    for (std::string_view key : keys_of(wanted_.first)) {
      for (const std::string& word : spellings(wanted_.second, is_python())) {
        const bool quoted = wanted_.second.is_string() && word == wanted_.second.string;
        for (const std::string& mark : {std::string{}, std::string{"\""}}) {
          if (!mark.empty() && !quoted) continue;
          if (mark.empty() && quoted && is_json())
            continue;  // readers of YAML would take a bare word, others would not
          Line line;
          const std::string dashes = model.compare(tokens[0].from, 2, "--") == 0 ? "--" : "";
          line.text = model.substr(0, tokens[0].from) + dashes + std::string{key} +
                      model.substr(tokens[0].to, value_at - tokens[0].to) + mark + word + mark + (comma ? "," : "") +
                      (goes_on ? " \\" : "");
          std::vector<Line> lines = lines_;
          lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), std::move(line));
          if (accept(std::move(lines))) return true;
        }
      }
    }
    return false;
  }

  std::string diff() const {
    std::string text;
    const std::vector<Line> before = lines_of(first_);
    for (std::size_t at = 0; at < lines_.size(); ++at) {
      if (!is_edit(lines_[at])) continue;
      const std::size_t from = at < kContext ? 0 : at - kContext;
      std::size_t to = at;  // the last line of the hunk
      for (std::size_t next = at; next < lines_.size() && next <= to + 2 * kContext; ++next) {
        if (is_edit(lines_[next])) to = next;
      }
      to = std::min(to + kContext + 1, lines_.size());
      text += hunk(before, from, to);
      at = to - 1;
    }
    return text.empty() ? text : "--- a/" + sources_[0].name + "\n+++ b/" + sources_[0].name + "\n" + text;
  }

  static bool is_edit(const Line& line) { return line.original == 0 || line.changed; }

  std::string hunk(const std::vector<Line>& before, std::size_t from, std::size_t to) const {
    std::string body;
    int old_first = 0, old_count = 0;
    for (std::size_t at = from; at < to; ++at) {
      const Line& line = lines_[at];
      if (line.original > 0) {
        if (old_first == 0) old_first = line.original;
        ++old_count;
        const std::string& was = before[static_cast<std::size_t>(line.original) - 1].text;
        body += (line.changed ? "-" : " ") + was + "\n";
      }
      if (is_edit(line)) body += "+" + line.text + "\n";
    }
    return "@@ -" + std::to_string(old_first) + "," + std::to_string(old_count) + " +" + std::to_string(from + 1) +
           "," + std::to_string(to - from) + " @@\n" + body;
  }

  std::vector<Source> sources_;
  std::vector<Line> lines_;
  bool ends_;
  Import now_;
  std::string first_ = sources_[0].bytes;
  Change wanted_;
  int tries_ = 0;
};

void collect(const Value& value, const std::string& path, std::vector<Change>& all) {
  for (const Value::Member& member : value.members) {
    const std::string name = path.empty() ? member.key : path + "." + member.key;
    if (member.value.is_object() && !member.value.members.empty() && name != "config" && name != "gpu") {
      collect(member.value, name, all);
    } else {
      all.emplace_back(name, member.value);
    }
  }
}

}  // namespace

std::vector<Change> leaves_of(const Value& request) {
  std::vector<Change> all;
  collect(request, "", all);
  return all;
}

Patched patch(std::vector<Source> sources, const std::vector<Change>& changes) {
  Patched out;
  if (sources.empty() || sources[0].bytes.size() > kMostBytes) return out;
  Editor editor(std::move(sources));
  Issues left;
  for (const auto& [path, value] : changes) {
    if (editor.change(path, value)) continue;
    left.push_back({"NOT_EXPORTED", Severity::kWarning, pointer_of(path),
                    "The file has no words of ours for " + path + ": change it by hand.", ""});
  }
  out = editor.finish();
  out.issues = std::move(left);
  return out;
}

}  // namespace tidemark::exchange
