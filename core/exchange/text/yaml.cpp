// YAML 1.1 as PyYAML takes it, as far as configurations of training tools use it: no complex keys, no tags' types.
#include <algorithm>
#include <map>
#include <utility>

#include "core/exchange/text/cursor.hpp"
#include "core/exchange/text/node.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kLongestMapSearched = 2000;

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

std::size_t count_nodes(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += count_nodes(item);
  return count;
}

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) {
    if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      lines_.push_back(text.substr(0, end));
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
  }

  Parsed parse() {
    Parsed parsed;
    skip_head();
    if (!done()) parsed.root = node(-1, 0, true);
    if (!done() && error_.empty()) fail("This line does not belong to what stands above it.");
    parsed.error = error_;
    parsed.error_line = error_line_;
    return parsed;
  }

 private:
  bool done() const { return row_ >= lines_.size(); }
  int number() const { return static_cast<int>(row_) + 1; }
  std::string_view rest() const {
    return done() ? std::string_view{} : lines_[row_].substr(std::min(col_, lines_[row_].size()));
  }
  char peek(std::size_t ahead = 0) const {
    const std::string_view line = rest();
    return ahead < line.size() ? line[ahead] : '\0';
  }

  void fail(const char* why) {
    if (!error_.empty()) return;
    error_ = why;
    error_line_ = std::min(number(), static_cast<int>(lines_.size()));
    row_ = lines_.size();
  }

  static std::size_t indent_of(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    return first == std::string_view::npos ? line.size() : first;
  }
  static bool says_nothing(std::string_view line) {
    const std::size_t first = indent_of(line);
    return first >= line.size() || line[first] == '#';
  }

  /// To the first line from here on that says something; a stream's next document is not read.
  void find_content() {
    while (!done() && says_nothing(lines_[row_])) ++row_;
    col_ = done() ? 0 : indent_of(lines_[row_]);
    if (!done() && col_ == 0 && (lines_[row_].substr(0, 3) == "---" || lines_[row_].substr(0, 3) == "...")) {
      row_ = lines_.size();
    }
  }
  void next_line() {
    ++row_;
    find_content();
  }

  void skip_head() {
    while (!done() && (says_nothing(lines_[row_]) || lines_[row_][0] == '%')) ++row_;
    if (!done() && lines_[row_].substr(0, 3) == "---" && says_nothing(lines_[row_].substr(3))) ++row_;
    find_content();
  }

  void skip_blanks() {
    while (is_blank(peek())) ++col_;
  }
  bool line_is_over() {
    skip_blanks();
    return peek() == '\0' || (peek() == '#' && (col_ == 0 || is_blank(lines_[row_][col_ - 1])));
  }

  bool at_dash() const { return peek() == '-' && (peek(1) == '\0' || is_blank(peek(1))); }

  /// Where the key that begins here ends, or npos: behind a quoted word, or at a colon that a blank follows.
  std::size_t key_end() const {
    const std::string_view line = rest();
    std::size_t at = 0;
    if (!line.empty() && (line[0] == '"' || line[0] == '\'')) {
      at = line.find(line[0], 1);
      if (at == std::string_view::npos) return at;
      for (++at; at < line.size() && is_blank(line[at]); ++at) {
      }
      return at < line.size() && line[at] == ':' ? at : std::string_view::npos;
    }
    for (; at < line.size(); ++at) {
      if (line[at] == '#' && at > 0 && is_blank(line[at - 1])) break;
      if (line[at] == ':' && (at + 1 == line.size() || is_blank(line[at + 1]))) return at;
    }
    return std::string_view::npos;
  }

  /// What stands here; lines that go on are deeper than `parent`. `block` where a mapping may begin in mid-line.
  Node node(int parent, int depth, bool block) {
    Node made;
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      fail("It is nested too deep or has too many values.");
      return made;
    }
    const int line = number();
    const std::string anchor = properties();
    if (line_is_over() && !done()) {
      const int before = parent;
      next_line();
      if (!done() && static_cast<int>(col_) > before) made = node(parent, depth + 1, true);
    } else {
      made = content(parent, depth, block);
    }
    made.line = line;
    made.last = std::max(line, last_);
    if (!anchor.empty()) anchors_[anchor] = made;
    return made;
  }

  /// Anchors and tags; the anchor's name.
  std::string properties() {
    std::string anchor;
    while (peek() == '&' || peek() == '!') {
      const std::size_t first = col_;
      const bool names = peek() == '&';
      while (peek() != '\0' && !is_blank(peek())) ++col_;
      if (names) anchor = lines_[row_].substr(first + 1, col_ - first - 1);
      skip_blanks();
    }
    return anchor;
  }

  Node content(int parent, int depth, bool block) {
    if (block && at_dash()) return sequence(depth);
    if (block && key_end() != std::string_view::npos && peek() != '{' && peek() != '[') return mapping(depth);
    switch (peek()) {
      case '|':
      case '>':
        return block_scalar(parent);
      case '{':
      case '[':
      case '"':
      case '\'': {
        Node made = flow(depth);
        if (!done() && !line_is_over()) fail("Something stands behind a value.");
        end_of_line();
        return made;
      }
      case '*':
        return alias();
      default:
        return plain(parent);
    }
  }

  void end_of_line() {
    if (done()) return;
    last_ = number();
    next_line();
  }

  Node alias() {
    const std::size_t first = ++col_;
    while (peek() != '\0' && !is_blank(peek()) && peek() != ',' && peek() != '}' && peek() != ']') ++col_;
    const auto known = anchors_.find(std::string{lines_[row_].substr(first, col_ - first)});
    Node made;
    if (known == anchors_.end()) {
      fail("An alias names no anchor.");
    } else {
      nodes_ += count_nodes(known->second);
      if (nodes_ > kMaxNodes) {
        fail("Its aliases make too many values.");
      } else {
        made = known->second;
      }
    }
    if (in_flow_ == 0) end_of_line();
    return made;
  }

  Node sequence(int depth) {
    Node made;
    made.kind = Node::Kind::kArray;
    const std::size_t column = col_;
    while (!done() && col_ == column && at_dash()) {
      ++col_;
      made.items.push_back(node(static_cast<int>(column), depth + 1, true));
    }
    return made;
  }

  std::string key(std::size_t end) {
    std::string word;
    if (peek() == '"' || peek() == '\'') {
      word = quoted();
      while (peek() != ':') ++col_;
    } else {
      std::string_view text = rest().substr(0, end);
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
      word = text;
      col_ += end;
    }
    ++col_;
    return word;
  }

  Node mapping(int depth) {
    Node made;
    made.kind = Node::Kind::kObject;
    const std::size_t column = col_;
    while (!done() && col_ == column && !at_dash()) {
      const std::size_t end = key_end();
      if (end == std::string_view::npos) {
        fail("A key and a colon are missing.");
        break;
      }
      const int line = number();
      last_ = line;
      std::string name = key(end);
      Node item = value_of_key(static_cast<int>(column), depth);
      item.line = line;
      item.last = std::max(line, item.last);
      add_member(made, std::move(name), std::move(item));
    }
    return made;
  }

  /// Behind a colon: on this line, or on the next ones; a list may stand as far left as its key.
  Node value_of_key(int column, int depth) {
    if (!line_is_over()) {
      const int line = number();
      if (peek() != '&' && peek() != '!') return node(column, depth + 1, false);
      const std::string anchor = properties();
      Node made = line_is_over() ? below(column, depth) : node(column, depth + 1, false);
      made.line = line;
      if (!anchor.empty()) anchors_[anchor] = made;
      return made;
    }
    return below(column, depth);
  }

  Node below(int column, int depth) {
    next_line();
    const bool deeper = !done() && static_cast<int>(col_) > column;
    const bool list = !done() && static_cast<int>(col_) == column && at_dash();
    if (deeper || list) return node(column, depth + 1, true);
    return {};
  }

  static void add_member(Node& map, std::string name, Node item) {
    if (name == "<<") return merge(map, item);
    if (map.keys.size() < kLongestMapSearched) {
      const auto known = std::find(map.keys.begin(), map.keys.end(), name);
      if (known != map.keys.end()) {  // the last one counts
        map.items[static_cast<std::size_t>(known - map.keys.begin())] = std::move(item);
        return;
      }
    }
    map.keys.push_back(std::move(name));
    map.items.push_back(std::move(item));
  }

  static void merge(Node& map, const Node& other) {
    if (other.is_list()) {
      for (const Node& item : other.items) merge(map, item);
    }
    if (!other.is_map()) return;
    for (std::size_t at = 0; at < other.keys.size(); ++at) {
      if (map.find(other.keys[at]) == nullptr) {
        map.keys.push_back(other.keys[at]);
        map.items.push_back(other.items[at]);
      }
    }
  }

  /// A plain word, and the deeper lines behind it that belong to it.
  Node plain(int parent) {
    std::string text{plain_line()};
    end_of_line();
    while (!done() && static_cast<int>(col_) > parent && last_ + 1 == number()) {
      if (key_end() != std::string_view::npos) {
        fail("A key stands deeper than its place.");
        break;
      }
      text += ' ';
      text += plain_line();
      end_of_line();
    }
    return plain_scalar(text);
  }

  std::string_view plain_line() {
    std::string_view line = rest();
    for (std::size_t at = 1; at < line.size(); ++at) {
      if (line[at] == '#' && is_blank(line[at - 1])) line = line.substr(0, at);
    }
    while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
    return line;
  }

  Node block_scalar(int parent) {
    Node made;
    made.kind = Node::Kind::kString;
    const char fold = peek() == '>' ? ' ' : '\n';
    last_ = number();
    std::size_t indent = 0;
    for (++row_; !done(); ++row_) {
      const std::string_view line = lines_[row_];
      const std::size_t first = indent_of(line);
      const bool empty = first >= line.size();
      if (!empty && static_cast<int>(first) <= parent) break;
      if (!empty && indent == 0) indent = first;
      if (!made.text.empty() || !empty) made.text += line.substr(std::min(indent, line.size()));
      made.text += fold;
      if (!empty) last_ = number();
    }
    find_content();
    while (!made.text.empty() && (is_blank(made.text.back()) || made.text.back() == '\n')) made.text.pop_back();
    return made;
  }

  /// Inside of brackets lines do not count.
  void flow_space() {
    while (!done() && line_is_over()) {
      ++row_;
      col_ = 0;
    }
  }

  Node flow(int depth) {
    ++in_flow_;
    Node made = flow_value(depth);
    --in_flow_;
    if (!done()) last_ = number();
    return made;
  }

  Node flow_value(int depth) {
    Node made;
    flow_space();
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      fail("It is nested too deep or has too many values.");
      return made;
    }
    const int line = number();
    const char letter = peek();
    if (letter == '{' || letter == '[') {
      flow_collection(made, depth);
    } else if (letter == '"' || letter == '\'') {
      made.kind = Node::Kind::kString;
      made.text = quoted();
    } else if (letter == '*') {
      made = alias();
    } else {
      made = flow_plain();
    }
    made.line = line;
    made.last = std::min(number(), static_cast<int>(lines_.size()));
    return made;
  }

  Node flow_plain() {
    const std::size_t first = col_;
    while (peek() != '\0' && peek() != ',' && peek() != ']' && peek() != '}' &&
           !(peek() == ':' && (is_blank(peek(1)) || peek(1) == '\0')) &&
           !(peek() == '#' && col_ > 0 && is_blank(lines_[row_][col_ - 1]))) {
      ++col_;
    }
    std::string_view text = lines_[row_].substr(first, col_ - first);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return plain_scalar(text);
  }

  void flow_collection(Node& made, int depth) {
    const bool map = peek() == '{';
    const char end = map ? '}' : ']';
    made.kind = map ? Node::Kind::kObject : Node::Kind::kArray;
    ++col_;
    for (flow_space(); !done() && peek() != end; flow_space()) {
      const std::size_t row = row_;
      const std::size_t column = col_;
      Node item = flow_value(depth + 1);
      flow_space();
      if (map) {
        std::string name = item.text;
        if (peek() == ':') {
          ++col_;
          const int line = item.line;
          item = flow_value(depth + 1);
          item.line = line;
          flow_space();
        } else {
          item = {};
        }
        add_member(made, std::move(name), std::move(item));
      } else {
        made.items.push_back(std::move(item));
      }
      if (peek() == ',') ++col_;
      if (row == row_ && column == col_) return fail("A comma or a closing bracket is missing.");
    }
    if (done()) return fail("A bracket is not closed.");
    ++col_;
  }

  /// A quoted word; it may run over lines, which are folded.
  std::string quoted() {
    const char mark = peek();
    std::string text;
    ++col_;
    while (!done()) {
      const char letter = peek();
      if (letter == '\0') {
        ++row_;
        col_ = done() ? 0 : indent_of(lines_[row_]);
        text += ' ';
      } else if (letter == mark) {
        ++col_;
        if (mark == '"' || peek() != mark) return text;
        text += mark;
        ++col_;
      } else if (letter == '\\' && mark == '"') {
        Cursor cursor{lines_[row_], col_ + 1};
        take_escape(cursor, text);
        col_ = cursor.at;
      } else {
        text += letter;
        ++col_;
      }
    }
    fail("A string does not end.");
    return text;
  }

  std::vector<std::string_view> lines_;
  std::size_t row_ = 0;
  std::size_t col_ = 0;
  int last_ = 0;     // the last line that was taken
  int in_flow_ = 0;  // brackets that are open
  std::size_t nodes_ = 0;
  std::map<std::string, Node> anchors_;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace

Parsed parse_yaml_lines(std::string_view text) {
  return YamlReader(text).parse();
}

int further_document(std::string_view text) {
  bool says = false;
  int mark = 0;
  int line = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    const std::size_t first = one.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || one[first] == '#') continue;
    if (one.starts_with("---") || one.starts_with("...")) {
      if (says && mark == 0) mark = line + 1;
      continue;
    }
    if (mark > 0) return mark;
    says = true;
  }
  return 0;
}

}  // namespace tidemark::exchange
