#include "core/wire/json.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// The one place that meets the library: only its parser is used, event by event.
#include <nlohmann/json.hpp>

#include "core/units/bytes.hpp"
#include "core/units/decimal.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

/// Text with Python's literals made JSON, and what each of its nulls stood for.
struct Literals {
  std::string text;           ///< empty: there is none of them in it
  std::vector<double> nulls;  ///< of each null in order: 0 for one that was written so, else NaN or an infinity
};

/// Builds a Value from the parser's events, and stops it where the limits are crossed.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::vector<double> nulls = {}) : nulls_(std::move(nulls)) {}

  bool null() override {
    const double literal = null_ < nulls_.size() ? nulls_[null_] : 0.0;
    ++null_;
    return put(literal == 0.0 ? Value{} : to_value(literal));
  }
  bool boolean(bool value) override { return put(to_value(value)); }
  bool number_integer(number_integer_t value) override { return put(to_value(std::int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kLargest = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return value <= kLargest ? put(to_value(static_cast<std::int64_t>(value)))
                             : put(to_value(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return put(to_value(value)); }
  bool string(string_t& value) override { return put(to_value(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(empty_object()); }
  bool key(string_t& name) override {
    keys_.back() = name;
    return true;
  }
  bool end_object() override {
    drop_repeated_keys(stack_.back());
    return close();
  }
  bool start_array(std::size_t) override { return open(empty_array()); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    position_ = position;
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …": keep what follows the name.
    what_ = error.what();
    const std::size_t bracket = what_.find("] ");
    if (bracket != std::string::npos) what_.erase(0, bracket + 2);
    // It repeats what it read last, however long that is.
    constexpr std::size_t kLongestReason = 300;
    what_ = excerpt(what_, kLongestReason);
    return false;
  }

  Value take() { return std::move(root_); }
  const std::string& what() const { return what_; }
  bool too_large() const { return too_large_; }
  const std::vector<std::string>& repeated() const { return repeated_; }

 private:
  bool put(Value value) {
    if (++values_ > kMaxValues) {
      what_ = "more than " + format_grouped(kMaxValues) + " values";
      too_large_ = true;
      return false;
    }
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (stack_.back().is_array()) {
      stack_.back().items.push_back(std::move(value));
    } else {
      stack_.back().members.push_back({std::move(keys_.back()), std::move(value)});
    }
    return true;
  }
  bool open(Value container) {
    if (stack_.size() >= static_cast<std::size_t>(kMaxNesting)) {
      what_ = "nested more than " + std::to_string(kMaxNesting) + " levels deep";
      return false;
    }
    stack_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return put(std::move(done));
  }

  /// Of equal keys the last one counts, as in Python's json; each is told.
  void drop_repeated_keys(Value& object) {
    const std::vector<std::size_t> order = sorted_order(object.members.size(), [&](std::size_t a, std::size_t b) {
      return object.members[a].key < object.members[b].key;
    });
    std::vector<char> loses(order.size(), 0);
    bool any = false;
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (object.members[order[i]].key == object.members[order[i - 1]].key) loses[order[i - 1]] = any = true;
    }
    if (!any) return;
    std::vector<Value::Member> kept;
    for (std::size_t i = 0; i < object.members.size(); ++i) {
      if (loses[i] == 0) {
        kept.push_back(std::move(object.members[i]));
      } else if (repeated_.size() < 8) {
        repeated_.push_back(object.members[i].key);
      }
    }
    object.members = std::move(kept);
  }

  Value root_;
  std::vector<Value> stack_;       // open containers
  std::vector<std::string> keys_;  // pending key of each
  std::vector<std::string> repeated_;
  std::string what_;
  std::size_t position_ = 0;
  std::vector<double> nulls_;  // what the text's nulls stand for
  std::size_t null_ = 0;       // how many have come
  std::size_t values_ = 0;     // of every kind
  bool too_large_ = false;
};

/// Python's json writes Infinity and NaN, which JSON has not: they are sent as nulls.
Literals without_python_literals(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::pair<std::string_view, double> kWords[] = {{"-Infinity", -kInfinity},
                                                            {"Infinity", kInfinity},
                                                            {"NaN", std::numeric_limits<double>::quiet_NaN()},
                                                            {"null", 0.0}};
  Literals result;
  std::size_t copied = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    if (text[i] == '"') {
      in_string = true;
      continue;
    }
    for (const auto& [word, meaning] : kWords) {
      if (text.substr(i, word.size()) != word) continue;
      result.nulls.push_back(meaning);
      if (meaning != 0.0) {
        result.text += text.substr(copied, i - copied);
        result.text += "null";
        copied = i + word.size();
      }
      i += word.size() - 1;
      break;
    }
  }
  if (copied > 0) result.text += text.substr(copied);
  return result;
}

// One kind of iterator: the library's parser is made anew for each.
bool parse(std::string_view text, Builder& builder) {
  return nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder);
}

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
      constexpr std::string_view kHex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += "\\u00";
      out += kHex[byte / 16];
      out += kHex[byte % 16];
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

/// The fewest digits that read back as the same double: the same text from every C library that rounds correctly.
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
  Builder builder;
  bool parsed = parse(text, builder);
  if (!parsed && !builder.too_large()) {
    if (Literals cleaned = without_python_literals(text); !cleaned.text.empty()) {
      builder = Builder(std::move(cleaned.nulls));
      parsed = parse(cleaned.text, builder);
    }
  }
  if (builder.too_large()) {
    issues.push_back({"TOO_LARGE", Severity::kError, std::string{path},
                      "This document has " + builder.what() + "; leave out what is no part of the question.", ""});
    return {};
  }
  if (!parsed) {
    issues.push_back(
        {"INVALID_JSON", Severity::kError, std::string{path}, "This is not JSON: " + builder.what() + ".", ""});
    return {};
  }
  for (const std::string& key : builder.repeated()) {
    issues.push_back({"REPEATED_KEY", Severity::kWarning, std::string{path},
                      "The key " + in_quotes(key) + " stands more than once in one object; the last one counts.", ""});
  }
  return builder.take();
}

std::string write_json(const Value& value, int indent) {
  std::string out;
  write(value, indent, 0, out);
  return out;
}

}  // namespace tidemark
