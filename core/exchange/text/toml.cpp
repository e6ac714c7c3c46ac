// TOML 1.0 without dates, which are kept as words.
#include <utility>

#include "core/exchange/text/cursor.hpp"
#include "core/exchange/text/node.hpp"

namespace tidemark::exchange {
namespace {

class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : cursor_{text} {
    if (cursor_.starts("\xEF\xBB\xBF")) cursor_.at = 3;
  }

  Parsed parse() {
    Parsed parsed;
    parsed.root.kind = Node::Kind::kObject;
    std::vector<std::string> table;
    for (space(true); !cursor_.done(); space(true)) {
      if (cursor_.peek() == '[') {
        table = header(parsed.root);
      } else {
        member(*inside(parsed.root, table), 0);
      }
    }
    parsed.error = error_;
    parsed.error_line = error_line_;
    return parsed;
  }

 private:
  void fail(const char* why) {
    if (!error_.empty()) return;
    error_ = why;
    error_line_ = cursor_.line;
    cursor_.at = cursor_.text.size();
  }

  void space(bool lines) {
    while (!cursor_.done()) {
      const char letter = cursor_.peek();
      if (letter == '#') {
        while (!cursor_.done() && cursor_.peek() != '\n') cursor_.take();
      } else if (letter == ' ' || letter == '\t' || letter == '\r' || (lines && letter == '\n')) {
        cursor_.take();
      } else {
        return;
      }
    }
  }

  /// "a.b.'c d'".
  std::vector<std::string> path() {
    std::vector<std::string> words;
    do {
      if (!words.empty()) cursor_.take();
      space(false);
      const std::string_view ends = " \t.=]\n\r#";
      if (cursor_.peek() == '"' || cursor_.peek() == '\'') {
        words.push_back(string());
      } else {
        const std::size_t first = cursor_.at;
        while (!cursor_.done() && ends.find(cursor_.peek()) == std::string_view::npos) cursor_.take();
        words.emplace_back(cursor_.text.substr(first, cursor_.at - first));
      }
      space(false);
      if (words.back().empty() || words.size() > kMaxDepth) fail("A key is missing.");
    } while (cursor_.peek() == '.');
    return words;
  }

  /// The member of that name, made where it is not; of a list its last item.
  Node* child(Node& map, const std::string& name) {
    for (std::size_t at = 0; at < map.keys.size(); ++at) {
      if (map.keys[at] == name) {
        Node& known = map.items[at];
        return known.is_list() && !known.items.empty() ? &known.items.back() : &known;
      }
    }
    map.keys.push_back(name);
    map.items.emplace_back();
    map.items.back().line = map.items.back().last = cursor_.line;
    return &map.items.back();
  }

  Node* inside(Node& root, const std::vector<std::string>& words) {
    Node* node = &root;
    for (const std::string& word : words) {
      node = child(*node, word);
      if (node->is_null()) node->kind = Node::Kind::kObject;
    }
    return node;
  }

  std::vector<std::string> header(Node& root) {
    cursor_.take();
    const bool list = cursor_.peek() == '[';
    if (list) cursor_.take();
    std::vector<std::string> words = path();
    if (list) {
      const std::string last = words.empty() ? std::string{} : words.back();
      Node* parent = inside(root, {words.begin(), words.empty() ? words.end() : words.end() - 1});
      if (parent->find(last) == nullptr) child(*parent, last)->kind = Node::Kind::kArray;
      for (std::size_t at = 0; at < parent->keys.size(); ++at) {
        if (parent->keys[at] == last) parent->items[at].items.emplace_back().kind = Node::Kind::kObject;
      }
    }
    while (cursor_.peek() == ']') cursor_.take();
    return words;
  }

  void member(Node& table, int depth) {
    const int line = cursor_.line;
    std::vector<std::string> words = path();
    if (cursor_.take() != '=') return fail("An equals sign is missing.");
    if (words.empty()) return;
    const std::string name = std::move(words.back());
    words.pop_back();
    Node value = this->value(depth + 1);
    value.line = line;
    *child(*inside(table, words), name) = std::move(value);
  }

  Node value(int depth) {
    space(true);
    Node made;
    made.line = cursor_.line;
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      fail("It is nested too deep or has too many values.");
    } else if (cursor_.peek() == '"' || cursor_.peek() == '\'') {
      made.kind = Node::Kind::kString;
      made.text = string();
    } else if (cursor_.peek() == '[') {
      made.kind = Node::Kind::kArray;
      items(']', [&] { made.items.push_back(value(depth + 1)); });
    } else if (cursor_.peek() == '{') {
      made.kind = Node::Kind::kObject;
      items('}', [&] { member(made, depth); });
    } else {
      const std::size_t first = cursor_.at;
      const std::string_view ends = " \t\r\n,]}#";
      while (!cursor_.done() && ends.find(cursor_.peek()) == std::string_view::npos) cursor_.take();
      if (cursor_.at == first) fail("A value is missing.");
      made = plain_scalar(cursor_.text.substr(first, cursor_.at - first));
      made.line = cursor_.line;
    }
    made.last = cursor_.line;
    return made;
  }

  template <class Item>
  void items(char end, Item item) {
    cursor_.take();
    for (space(true); !cursor_.done() && cursor_.peek() != end; space(true)) {
      item();
      space(true);
      if (cursor_.peek() == ',') {
        cursor_.take();
      } else if (cursor_.peek() != end) {
        return fail("A comma or a closing bracket is missing.");
      }
    }
    if (cursor_.done()) return fail("A bracket is not closed.");
    cursor_.take();
  }

  std::string string() {
    const char mark = cursor_.peek();
    const std::string_view three = mark == '"' ? "\"\"\"" : "'''";
    const std::string_view end = cursor_.starts(three) ? three : three.substr(0, 1);
    cursor_.skip(end.size());
    if (end.size() == 3 && cursor_.peek() == '\n') cursor_.take();
    std::string text;
    while (!cursor_.done() && !cursor_.starts(end)) {
      const char letter = cursor_.take();
      if (letter == '\\' && mark == '"') {
        take_escape(cursor_, text);
      } else {
        text += letter;
      }
    }
    if (cursor_.done()) fail("A string does not end.");
    cursor_.skip(cursor_.done() ? 0 : end.size());
    return text;
  }

  Cursor cursor_;
  std::size_t nodes_ = 0;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace

Parsed parse_toml_lines(std::string_view text) {
  return TomlReader(text).parse();
}

}  // namespace tidemark::exchange
