#include "core/wire/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/units/decimal.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

/// Bytes of the well-formed UTF-8 sequence at `at`, or 0.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  std::size_t length = 0;
  std::uint32_t point = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    point = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    point = lead & 0x0FU;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    point = lead & 0x07U;
  } else {
    return 0;
  }
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
    point = point << 6U | (byte(at + i) & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return overlong || surrogate || point > 0x10FFFF ? 0 : length;
}

/// Reads one document, character by character, into the Value where it belongs.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool read(Value& document) {
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) at_ = kByteOrderMark.size();
    if (!value(document, 0)) return false;
    skip_space();
    return at_ == text_.size() || fail("something follows the end of the document");
  }

  const std::string& what() const { return what_; }
  std::size_t position() const { return at_; }
  const std::vector<std::string>& repeated() const { return repeated_; }

 private:
  static constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

  bool fail(const char* what) {
    what_ = what;
    return false;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  bool value(Value& out, int depth) {
    skip_space();
    const char c = peek();
    if (c == '{' || c == '[') {
      if (depth >= kMaxNesting) {
        what_ = "nested more than " + std::to_string(kMaxNesting) + " levels deep";
        return false;
      }
      ++at_;
      return c == '{' ? object(out, depth + 1) : array(out, depth + 1);
    }
    if (c == '"') {
      out.kind = Value::Kind::kString;
      return string(out.string);
    }
    if (take("true")) {
      out = to_value(true);
      return true;
    }
    if (take("false")) {
      out = to_value(false);
      return true;
    }
    // Python's json writes Infinity and NaN, and some config.json files hold them: they are read as null.
    if (take("null") || take("NaN") || take("Infinity") || take("-Infinity")) return true;
    return number(out);
  }

  bool object(Value& out, int depth) {
    out.kind = Value::Kind::kObject;
    skip_space();
    if (take('}')) return true;
    for (;;) {
      skip_space();
      out.members.emplace_back();
      Value::Member& member = out.members.back();
      if (peek() != '"') return fail("a key is expected, in double quotes");
      if (!string(member.key)) return false;
      skip_space();
      if (!take(':')) return fail("a colon is expected after a key");
      if (!value(member.value, depth)) return false;
      skip_space();
      if (take('}')) break;
      if (!take(',')) return fail("a comma or } is expected");
    }
    drop_repeated_keys(out);
    return true;
  }

  bool array(Value& out, int depth) {
    out.kind = Value::Kind::kArray;
    skip_space();
    if (take(']')) return true;
    for (;;) {
      out.items.emplace_back();
      if (!value(out.items.back(), depth)) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("a comma or ] is expected");
    }
  }

  bool string(std::string& out) {
    ++at_;
    for (;;) {
      std::size_t plain = at_;
      while (plain < text_.size() && is_plain(text_[plain])) ++plain;
      out += text_.substr(at_, plain - at_);
      at_ = plain;
      if (at_ >= text_.size()) return fail("a string does not end");
      if (take('"')) return true;
      if (take('\\')) {
        if (!escape(out)) return false;
        continue;
      }
      const std::size_t length = static_cast<unsigned char>(text_[at_]) < 0x20 ? 0 : utf8_length(text_, at_);
      if (length == 0) return fail("a string holds a control character or a byte that is not UTF-8");
      out += text_.substr(at_, length);
      at_ += length;
    }
  }
  static bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

  bool escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = kNames.find(peek()); i != std::string_view::npos && at_ < text_.size()) {
      ++at_;
      out += kMeanings[i];
      return true;
    }
    std::uint32_t point = 0;
    if (!take('u') || !four_digits(point)) return fail("no such escape in a string");
    if (point >= 0xD800 && point < 0xE000) {  // a surrogate: the first half of a pair
      std::uint32_t second = 0;
      if (point >= 0xDC00 || !take("\\u") || !four_digits(second) || second < 0xDC00 || second > 0xDFFF) {
        return fail("a surrogate without its other half in a string");
      }
      point = 0x10000 + ((point - 0xD800) << 10U) + (second - 0xDC00);
    }
    write_utf8(point, out);
    return true;
  }
  bool four_digits(std::uint32_t& number) {
    constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
    for (int i = 0; i < 4; ++i) {
      const std::size_t digit = at_ < text_.size() ? kDigits.find(text_[at_]) : std::string_view::npos;
      if (digit == std::string_view::npos) return false;
      number = number * 16 + digit % 16;
      ++at_;
    }
    return true;
  }
  static void write_utf8(std::uint32_t point, std::string& out) {
    const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | (point >> shift & 0x3FU)); };
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else if (point < 0x800) {
      out += static_cast<char>(0xC0U | point >> 6U);
      tail(0);
    } else if (point < 0x10000) {
      out += static_cast<char>(0xE0U | point >> 12U);
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xF0U | point >> 18U);
      tail(12);
      tail(6);
      tail(0);
    }
  }

  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }
  bool digits() {
    if (!is_digit()) return fail("a number breaks off");
    while (is_digit()) ++at_;
    return true;
  }
  bool number(Value& out) {
    const std::size_t begin = at_;
    const bool negative = take('-');
    if (!is_digit()) return fail("a value is expected");
    if (!take('0') && !digits()) return false;
    const std::size_t whole_end = at_;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('-')) take('+');
      if (!digits()) return false;
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    std::int64_t integer = 0;
    if (at_ == whole_end && whole_number(text.substr(negative ? 1 : 0), negative, integer)) {
      out = to_value(integer);
      return true;
    }
    out = to_value(read_decimal(text));
    return std::isfinite(out.real) || fail("a number is too large");
  }
  /// False where 64 bits do not hold it.
  static bool whole_number(std::string_view digits, bool negative, std::int64_t& number) {
    for (const char c : digits) {
      const int digit = negative ? '0' - c : c - '0';
      if (__builtin_mul_overflow(number, std::int64_t{10}, &number) ||
          __builtin_add_overflow(number, std::int64_t{digit}, &number)) {
        return false;
      }
    }
    return true;
  }

  /// Of equal keys the last one counts, as in Python's json; each is told.
  void drop_repeated_keys(Value& object) {
    std::vector<Value::Member>& members = object.members;
    const auto order =
        sorted_order(members.size(), [&](std::size_t a, std::size_t b) { return members[a].key < members[b].key; });
    std::vector<char> repeated_later(members.size());
    bool any = false;
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (members[order[i]].key != members[order[i - 1]].key) continue;
      repeated_later[order[i - 1]] = true;
      any = true;
    }
    if (!any) return;
    std::vector<Value::Member> kept;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!repeated_later[i]) {
        kept.push_back(std::move(members[i]));
      } else if (repeated_.size() < kMostRepeatedKeys) {
        repeated_.push_back(std::move(members[i].key));
      }
    }
    members = std::move(kept);
  }

  static constexpr std::size_t kMostRepeatedKeys = 8;  // that are told

  std::string_view text_;
  std::size_t at_ = 0;
  std::string what_;
  std::vector<std::string> repeated_;
};

void write_string(std::string_view text, std::string& out) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        ++i;
        continue;
      case '\\':
        out += "\\\\";
        ++i;
        continue;
      case '\n':
        out += "\\n";
        ++i;
        continue;
      case '\t':
        out += "\\t";
        ++i;
        continue;
      case '\r':
        out += "\\r";
        ++i;
        continue;
      default:
        break;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<std::size_t>(c) >> 4U];
      out += kDigits[static_cast<std::size_t>(c) & 0xFU];
      ++i;
      continue;
    }
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      out += "\xEF\xBF\xBD";  // U+FFFD
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  out += '"';
}

void write_real(double real, std::string& out) {
  if (!std::isfinite(real)) {
    out += "null";
    return;
  }
  const std::string text = shortest_decimal(real);
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void new_line(int indent, int depth, std::string& out) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

void write(const Value& value, int indent, int depth, std::string& out) {
  switch (value.kind) {
    case Value::Kind::kNull:
      out += "null";
      return;
    case Value::Kind::kBool:
      out += value.boolean ? "true" : "false";
      return;
    case Value::Kind::kInteger:
      out += std::to_string(value.integer);
      return;
    case Value::Kind::kReal:
      write_real(value.real, out);
      return;
    case Value::Kind::kString:
      write_string(value.string, out);
      return;
    case Value::Kind::kArray: {
      bool first = true;
      out += '[';
      for (const Value& item : value.items) {
        if (!first) out += ',';
        first = false;
        new_line(indent, depth + 1, out);
        write(item, indent, depth + 1, out);
      }
      if (!first) new_line(indent, depth, out);
      out += ']';
      return;
    }
    case Value::Kind::kObject: {
      bool first = true;
      out += '{';
      for (const auto& [name, member] : value.members) {
        if (!first) out += ',';
        first = false;
        new_line(indent, depth + 1, out);
        write_string(name, out);
        out += indent == 0 ? ":" : ": ";
        write(member, indent, depth + 1, out);
      }
      if (!first) new_line(indent, depth, out);
      out += '}';
      return;
    }
  }
}

}  // namespace

Value parse_json(std::string_view text, std::string_view path, Issues& issues) {
  if (text.size() > kMaxDocumentBytes) {
    issues.push_back({"TOO_LARGE", Severity::kError, std::string{path},
                      "This text has " + std::to_string(text.size()) + " bytes; at most " +
                          std::to_string(kMaxDocumentBytes) + " are read.",
                      ""});
    return {};
  }
  Reader reader(text);
  Value document;
  if (!reader.read(document)) {
    const std::string_view before = text.substr(0, reader.position());
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    issues.push_back({"INVALID_JSON", Severity::kError, std::string{path},
                      "This is not JSON: " + reader.what() + " (line " + std::to_string(line) + ", column " +
                          std::to_string(column) + ").",
                      ""});
    return {};
  }
  for (const std::string& key : reader.repeated()) {
    issues.push_back({"REPEATED_KEY", Severity::kWarning, std::string{path},
                      "The key \"" + key + "\" stands more than once in one object; the last one counts.", ""});
  }
  return document;
}

std::string write_json(const Value& value, int indent) {
  std::string out;
  write(value, indent, 0, out);
  return out;
}

Value to_value(bool boolean) {
  Value value;
  value.kind = Value::Kind::kBool;
  value.boolean = boolean;
  return value;
}

Value to_value(std::int64_t integer) {
  Value value;
  value.kind = Value::Kind::kInteger;
  value.integer = integer;
  value.real = static_cast<double>(integer);
  return value;
}

Value to_value(double real) {
  Value value;
  value.kind = Value::Kind::kReal;
  value.real = real;
  return value;
}

Value to_value(std::string_view text) {
  Value value;
  value.kind = Value::Kind::kString;
  value.string = text;
  return value;
}

Value empty_object() {
  Value value;
  value.kind = Value::Kind::kObject;
  return value;
}

Value empty_array() {
  Value value;
  value.kind = Value::Kind::kArray;
  return value;
}

}  // namespace tidemark
