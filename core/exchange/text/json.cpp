#include <algorithm>
#include <utility>

#include "core/exchange/text/cursor.hpp"
#include "core/exchange/text/node.hpp"

namespace tidemark::exchange {
namespace {

/// JSON's grammar by recursive descent, with what people write beside it.
class JsonReader {
 public:
  JsonReader(std::string_view text, bool strict) : cursor_{text}, strict_(strict) {
    if (cursor_.starts("\xEF\xBB\xBF")) cursor_.at = 3;
  }

  Parsed parse() {
    Parsed parsed;
    parsed.root = value(0);
    space();
    if (!cursor_.done()) fail("Something stands behind the end of the JSON.");
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

  void space() {
    while (!cursor_.done()) {
      const char letter = cursor_.peek();
      if (letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r') {
        cursor_.take();
      } else if (!strict_ && (letter == '#' || cursor_.starts("//"))) {
        while (!cursor_.done() && cursor_.peek() != '\n') cursor_.take();
      } else if (!strict_ && cursor_.starts("/*")) {
        while (!cursor_.done() && !cursor_.starts("*/")) cursor_.take();
        cursor_.skip(cursor_.done() ? 0 : 2);
      } else {
        return;
      }
    }
  }

  Node value(int depth) {
    space();
    Node node;
    node.line = node.last = cursor_.line;
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      fail("It is nested too deep or has too many values.");
    } else if (cursor_.peek() == '{') {
      map(node, depth);
    } else if (cursor_.peek() == '[') {
      list(node, depth);
    } else if (cursor_.peek() == '"') {
      node.kind = Node::Kind::kString;
      node.text = string();
    } else {
      word(node);
    }
    node.last = cursor_.line;
    return node;
  }

  std::string string() {
    std::string text;
    cursor_.take();
    while (!cursor_.done() && cursor_.peek() != '"') {
      const char letter = cursor_.take();
      if (letter == '\\') {
        take_escape(cursor_, text);
      } else {
        text += letter;
      }
    }
    if (cursor_.done()) fail("A string does not end.");
    cursor_.take();
    return text;
  }

  void word(Node& node) {
    const std::size_t first = cursor_.at;
    const std::string_view ends = ",]}: \t\r\n#/\"";
    while (!cursor_.done() && ends.find(cursor_.peek()) == std::string_view::npos) cursor_.take();
    const std::string_view word = cursor_.text.substr(first, cursor_.at - first);
    const int line = node.line;
    if (word.empty()) return fail("A value is missing.");
    if (word == "null") return;
    node = plain_scalar(word);
    node.line = node.last = line;
    const bool named = word == "NaN" || word == "Infinity" || word == "-Infinity";
    // A template's placeholder, BATCH_SIZE, stands there without quotes.
    if (strict_ && node.is_string() && !named) fail("A word is neither a number, a string, true, false nor null.");
  }

  /// Behind a member: a comma, or the end.
  bool goes_on(char end) {
    space();
    if (cursor_.peek() == ',') {
      cursor_.take();
      space();
      if (strict_ || cursor_.peek() != end) return true;
    }
    if (cursor_.peek() == end) {
      cursor_.take();
    } else {
      fail("A comma or a closing bracket is missing.");
    }
    return false;
  }

  void list(Node& node, int depth) {
    node.kind = Node::Kind::kArray;
    cursor_.take();
    space();
    if (cursor_.peek() == ']') {
      cursor_.take();
      return;
    }
    do {
      node.items.push_back(value(depth + 1));
    } while (error_.empty() && goes_on(']'));
  }

  void map(Node& node, int depth) {
    node.kind = Node::Kind::kObject;
    cursor_.take();
    space();
    if (cursor_.peek() == '}') {
      cursor_.take();
      return;
    }
    do {
      member(node, depth);
    } while (error_.empty() && goes_on('}'));
    if (strict_ && error_.empty()) no_key_twice(node);
  }

  void no_key_twice(const Node& node) {
    std::vector<std::string_view> keys(node.keys.begin(), node.keys.end());
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) fail("A key stands there twice.");
  }

  void member(Node& node, int depth) {
    space();
    const int line = cursor_.line;
    if (cursor_.peek() != '"') return fail("A key is missing.");
    std::string key = string();
    space();
    if (cursor_.take() != ':') return fail("A colon is missing.");
    Node item = value(depth + 1);
    item.line = line;
    node.keys.push_back(std::move(key));
    node.items.push_back(std::move(item));
  }

  Cursor cursor_;
  bool strict_;
  std::size_t nodes_ = 0;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace

Parsed parse_json_lines(std::string_view text, bool strict) {
  return JsonReader(text, strict).parse();
}

}  // namespace tidemark::exchange
