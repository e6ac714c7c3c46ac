// Commands of a shell script: what is assigned before them, which branches they stand in, what they write.
#include "core/exchange/text/shell.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/exchange/text/shell_arithmetic.hpp"
#include "core/exchange/text/shell_words.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kMostCommands = 20'000;
constexpr std::size_t kMostDocuments = 32;
constexpr std::size_t kMostBranches = 200;  // in one another
constexpr std::size_t kLongestScript = 1 << 20;

/// Words whose arguments assign.
bool is_declaration(const std::string& word) {
  return word == "export" || word == "declare" || word == "local" || word == "readonly";
}

class ShellReader : public ShellWords {
 public:
  explicit ShellReader(ShellScript& script) : script_(script) {}

  void run(const Lined& text, int depth) {
    if (depth > kDeepest || text.text.size() > kLongestScript) return;
    const Inside inside(*this, text);
    const int outer_depth = std::exchange(depth_, depth);
    while (!done() && script_.commands.size() < kMostCommands) read_command();
    depth_ = outer_depth;
  }

 private:
  struct Pending {
    std::string name;
    ShellVariable value;
    bool adds = false;  // NAME+=value
  };
  struct Branch {
    bool active = true;  // this side is read
    bool taken = false;  // a side before it surely is
  };
  struct HereMark {
    std::string end;      // the line that ends the document
    bool quoted = false;  // nothing in it is expanded
  };

  bool is_on() const {
    return std::all_of(branches_.begin(), branches_.end(), [](const Branch& branch) { return branch.active; });
  }

  /// One simple command, up to a separator.
  void read_command() {
    ShellCommand command;
    std::vector<HereMark> here;
    std::string redirected;
    while (!done()) {
      skip_blanks();
      const char letter = peek();
      if (letter == '\0') break;
      if (letter == '\n') {
        ++at_;
        break;
      }
      if (letter == ';' || letter == '&' || letter == '|') {
        const bool merged = letter == '&' && peek(1) == '>';
        while (peek() == letter) ++at_;
        if (merged) {
          skip_redirection(redirected, here);
          continue;
        }
        break;
      }
      if (letter == '(' || letter == ')') {
        ++at_;
        if (letter == ')') break;
        continue;
      }
      if (letter == '<' || letter == '>') {
        skip_redirection(redirected, here);
        continue;
      }
      if (!take_assignment(command)) take_words(command.words);
    }
    for (const HereMark& mark : here) read_document(mark, redirected);
    if (!here.empty() && !command.words.empty() && command.words[0].word() == "read")
      assign_document(command.words.back().word());
    if (!command.words.empty() || !command.environment.empty()) finish(command);
  }

  void skip_redirection(std::string& file, std::vector<HereMark>& here) {
    const bool document = starts("<<") && !starts("<<<");
    const bool out = peek() == '>';
    while (peek() == '<' || peek() == '>' || peek() == '-' || peek() == '|') ++at_;
    if (peek() == '&') {
      ++at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      if (peek() == '-') ++at_;
      return;
    }
    skip_blanks();
    const bool quoted = peek() == '\'' || peek() == '"';
    std::vector<ShellWord> target;
    take_words(target);
    const std::string word = target.empty() ? std::string{} : target[0].word();
    if (document) here.push_back({word, quoted});
    if (out) file = word;
  }

  void read_document(const HereMark& mark, const std::string& file) {
    HereDocument document{file, {}, line()};
    while (!done()) {
      std::size_t stop = text_->text.find('\n', at_);
      if (stop == std::string::npos) stop = text_->text.size();
      std::string row = text_->text.substr(at_, stop - at_);
      const std::size_t first = row.find_first_not_of(" \t");
      std::string bare = first == std::string::npos ? std::string{} : row.substr(first);
      while (!bare.empty() && is_shell_space(bare.back())) bare.pop_back();
      if (bare == mark.end) {
        at_ = std::min(stop + 1, text_->text.size());
        break;
      }
      document.text += (mark.quoted ? row : expanded(row)) + "\n";
      at_ = std::min(stop + 1, text_->text.size());
      if (stop == text_->text.size()) break;
    }
    if (script_.documents.size() < kMostDocuments) script_.documents.push_back(std::move(document));
  }

  /// `read -r -d '' NAME <<EOF`: the document is the variable's value.
  void assign_document(const std::string& name) {
    if (script_.documents.empty()) return;
    const HereDocument& document = script_.documents.back();
    ShellWord word;
    int line = document.line;
    for (char letter : document.text) {
      // A backslash goes on with the next line.
      word.text.add(letter == '\\' ? ' ' : letter, line);
      if (letter == '\n') ++line;
    }
    ShellVariable value;
    value.items.push_back(std::move(word));
    variables_[name] = std::move(value);
  }

  /// NAME=value, NAME+=value, NAME=(items), in front of a command or as one.
  bool take_assignment(ShellCommand& command) {
    if (!command.words.empty() && !is_declaration(command.words[0].word())) return false;
    std::size_t end = at_;
    while (end < text_->text.size() && is_shell_name(text_->text[end], end == at_)) ++end;
    const bool adds = text_->text.compare(end, 2, "+=") == 0;
    if (end == at_ || end >= text_->text.size() || (text_->text[end] != '=' && !adds)) return false;
    const std::string name = text_->text.substr(at_, end - at_);
    at_ = end + (adds ? 2 : 1);
    ShellVariable value;
    if (peek() == '(') {
      take_array(value);
    } else {
      std::vector<ShellWord> words;
      if (!is_shell_space(peek()) && peek() != ';' && peek() != '\0' && peek() != '&' && peek() != ')')
        take_words(words, true);
      value.items.push_back(words.empty() ? ShellWord{} : std::move(words[0]));
    }
    if (!value.items.empty()) command.environment[name] = value.items[0];
    pending_.push_back({name, std::move(value), adds});
    return true;
  }

  void take_array(ShellVariable& value) {
    value.array = true;
    ++at_;
    while (!done()) {
      skip_blanks();
      if (peek() == '\n') {
        ++at_;
      } else if (peek() == ')' || peek() == '\0') {
        break;
      } else {
        const std::size_t before = at_;
        take_words(value.items);
        if (at_ == before) ++at_;
      }
    }
    if (peek() == ')') ++at_;
  }

  void finish(ShellCommand& command) {
    std::vector<Pending> pending = std::exchange(pending_, {});
    while (!command.words.empty() && take_keyword(command)) {
    }
    if (!is_on()) return;
    if (command.words.empty() || is_declaration(command.words[0].word())) {
      for (Pending& one : pending) assign(one);
      if (command.words.empty()) return;
    }
    nested_script(command);
    script_.commands.push_back(std::move(command));
  }

  /// `bash -c "torchrun ..."`.
  void nested_script(const ShellCommand& command) {
    for (std::size_t at = 0; at + 2 < command.words.size(); ++at) {
      const std::string& word = command.words[at].word();
      const bool shell = word == "bash" || word == "sh" || word.ends_with("/bash");
      const std::string& flag = command.words[at + 1].word();
      if (!shell || flag.empty() || flag[0] != '-' || flag.back() != 'c') continue;
      const Lined text = command.words[at + 2].text;
      return run(text, depth_ + 1);
    }
  }

  void assign(Pending& one) {
    const auto found = variables_.find(one.name);
    std::vector<ShellWord>& items = one.value.items;
    if (found == variables_.end()) {
      variables_[one.name] = std::move(one.value);
      return;
    }
    ShellVariable& known = found->second;
    if (one.adds && known.array) {
      known.items.insert(known.items.end(), items.begin(), items.end());
      return;
    }
    if (known.items.empty() || items.empty()) {
      if (!one.adds) known = std::move(one.value);
      return;
    }
    if (one.adds) {
      const std::vector<int>& lines = items[0].text.lines;
      return append_word(known.items[0], items[0], lines.empty() ? 0 : lines[0]);
    }
    const std::string& now = items[0].word();
    const std::string& before = known.items[0].word();
    if (now != before) note_twice(one.name);
    const bool argument = now.size() >= 2 && now[0] == '$' && now[1] >= '0' && now[1] <= '9';
    if (argument && !before.empty() && before[0] != '$') {
      known.items[0].tentative = true;
      return;
    }
    known = std::move(one.value);
  }

  void note_twice(const std::string& name) {
    if (std::find(script_.twice.begin(), script_.twice.end(), name) == script_.twice.end())
      script_.twice.push_back(name);
  }

  /// `if` and its like: which sides are read. What stands behind is a command, but for tests.
  bool take_branch(const std::string& word, ShellCommand& command) {
    if (word == "if" && branches_.size() < kMostBranches) branches_.push_back({true, false});
    if (word == "if" || word == "elif") {
      const std::optional<bool> holds = test(command.words);
      command.words.clear();
      if (branches_.empty()) return false;
      Branch& branch = branches_.back();
      const bool reached = word == "if" || !branch.taken;
      branch.active = reached && holds.value_or(true);
      branch.taken = branch.taken || (reached && holds.value_or(false));
      return false;
    }
    if (word == "else" && !branches_.empty()) branches_.back().active = !branches_.back().taken;
    if (word == "fi" && !branches_.empty()) branches_.pop_back();
    return true;
  }

  /// Takes a keyword off the front; whether something may be left behind it.
  bool take_keyword(ShellCommand& command) {
    const std::string word = command.words[0].word();
    const bool branches = word == "if" || word == "elif" || word == "else" || word == "fi";
    if (branches || word == "then" || word == "do" || word == "done" || word == "{" || word == "}" || word == "!" ||
        word == "time" || word == "esac") {
      command.words.erase(command.words.begin());
      return !branches || take_branch(word, command);
    }
    if (word == "for" && command.words.size() >= 4 && command.words[2].word() == "in" && is_on()) {
      Pending first{command.words[1].word(), {}, false};
      first.value.items.push_back(command.words[3]);
      assign(first);
    }
    if (word == "while" || word == "until" || word == "case" || word == "function" || word == "for")
      command.words.clear();
    return false;
  }

  /// `[ a = b ]` of known values; nothing where it cannot be told.
  static std::optional<bool> test(const std::vector<ShellWord>& all) {
    std::vector<std::string> words;
    for (const ShellWord& word : all) {
      if (word.word().find('$') != std::string::npos) return std::nullopt;
      if (word.word() != "[" && word.word() != "]" && word.word() != "[[" && word.word() != "]]")
        words.push_back(word.word());
    }
    if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n")) return (words[0] == "-n") != words[1].empty();
    if (words.size() != 3) return std::nullopt;
    if (words[1] == "=" || words[1] == "==") return words[0] == words[2];
    if (words[1] == "!=") return words[0] != words[2];
    const std::optional<long long> left = shell_arithmetic(words[0]);
    const std::optional<long long> right = shell_arithmetic(words[2]);
    if (!left || !right) return std::nullopt;
    if (words[1] == "-eq") return *left == *right;
    if (words[1] == "-ne") return *left != *right;
    if (words[1] == "-gt") return *left > *right;
    if (words[1] == "-ge") return *left >= *right;
    if (words[1] == "-lt") return *left < *right;
    if (words[1] == "-le") return *left <= *right;
    return std::nullopt;
  }

  ShellScript& script_;
  std::vector<Pending> pending_;
  std::vector<Branch> branches_;
};

}  // namespace

void Lined::add(const Lined& other) {
  text += other.text;
  lines.insert(lines.end(), other.lines.begin(), other.lines.end());
}

std::vector<int> ShellWord::lines() const {
  std::vector<int> all;
  const auto add = [&](int line) {
    if (line > 0 && std::find(all.begin(), all.end(), line) == all.end()) all.push_back(line);
  };
  for (int line : text.lines) add(line);
  for (int line : uses) add(line);
  return all;
}

ShellScript read_shell(std::string_view text) {
  ShellScript script;
  Lined lined;
  int line = 1;
  lined.lines.reserve(text.size());
  for (char letter : text) {
    lined.add(letter, line);
    if (letter == '\n') ++line;
  }
  ShellReader reader(script);
  reader.run(lined, 0);
  for (auto& [name, value] : reader.variables()) {
    if (!value.items.empty()) script.variables[name] = value.items[0];
  }
  return script;
}

}  // namespace tidemark::exchange
