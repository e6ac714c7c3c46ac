#include "core/exchange/trouble/pickle.hpp"

#include <algorithm>

#include "core/exchange/bytes.hpp"

namespace tidemark::exchange {
namespace {

/// What no recording of ours reaches, and what fits a browser's memory.
constexpr std::size_t kMostItems = 8'000'000;

/// Opcodes by their bytes (CPython 3.13 Lib/pickletools.py: opcodes). Those that make objects or call something are
/// known by name only to be refused.
struct Refused {
  unsigned char code;
  std::string_view name;
};
constexpr Refused kRefused[] = {
    {'c', "GLOBAL"},     {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},        {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},      {'P', "PERSID"},        {'Q', "BINPERSID"},  {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {0x8f, "EMPTY_SET"}, {0x90, "ADDITEMS"},     {0x91, "FROZENSET"}, {0x96, "BYTEARRAY8"},
};

}  // namespace

const std::vector<Pickle::Ref>& Pickle::of(const Item& item) const {
  static const std::vector<Ref> kNothing;
  return item.kind == Kind::kList || item.kind == Kind::kDict ? lists_[item.list] : kNothing;
}

const Pickle::Item* Pickle::find(const Item& dict, std::string_view key) const {
  if (dict.kind != Kind::kDict) return nullptr;
  const std::vector<Ref>& members = lists_[dict.list];
  for (std::size_t i = 0; i + 1 < members.size(); i += 2) {
    const Item& candidate = items_[members[i]];
    if (candidate.kind == Kind::kString && candidate.text == key) return &items_[members[i + 1]];
  }
  return nullptr;
}

std::int64_t Pickle::integer(const Item& dict, std::string_view key) const {
  const Item* item = find(dict, key);
  return item == nullptr || item->kind != Kind::kInteger ? 0 : item->integer;
}

std::string_view Pickle::text(const Item& dict, std::string_view key) const {
  const Item* item = find(dict, key);
  return item == nullptr || item->kind != Kind::kString ? std::string_view{} : item->text;
}

/// The stack machine. Each step reads one opcode; the first trouble ends it.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, Pickle& pickle) : bytes_{bytes}, out_(pickle) {}

  std::string read() {
    while (!stopped_ && error_.empty()) step();
    if (error_.empty() && stack_.empty()) fail("damaged: nothing on the stack");
    if (error_.empty()) out_.root_ = stack_.back();
    return error_;
  }

 private:
  using Kind = Pickle::Kind;
  using Ref = Pickle::Ref;

  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  std::string_view take(std::uint64_t length) {
    const std::string_view taken = bytes_.take(length);
    if (bytes_.ended) fail("truncated");
    return taken;
  }
  std::uint64_t number(std::size_t length) {
    const std::uint64_t value = bytes_.number(length);
    if (bytes_.ended) fail("truncated");
    return value;
  }

  /// Two's complement of any length; what needs more than 64 bits is no size or address.
  std::int64_t signed_number(std::uint64_t length) {
    if (length > 9) return take(length), 0;
    const std::string_view taken = take(length);
    if (taken.empty()) return 0;
    std::uint64_t value = taken.back() < 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return static_cast<std::int64_t>(value);
  }

  void push(Pickle::Item item) {
    if (out_.items_.size() >= kMostItems) return fail("too large");
    stack_.push_back(static_cast<Ref>(out_.items_.size()));
    out_.items_.push_back(item);
  }
  void push_integer(std::int64_t value) { push({Kind::kInteger, value, {}, 0}); }
  void push_text(std::string_view text) { push({Kind::kString, 0, text, 0}); }
  void push_list(Kind kind, std::vector<Ref> items) {
    push({kind, 0, {}, static_cast<std::uint32_t>(out_.lists_.size())});
    out_.lists_.push_back(std::move(items));
  }

  /// Takes what lies above the last mark off the stack.
  std::vector<Ref> above_mark() {
    if (marks_.empty()) return fail("damaged: no mark"), std::vector<Ref>{};
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return top(stack_.size() - mark);
  }
  std::vector<Ref> top(std::size_t count) {
    if (count > stack_.size() - floor()) return fail("damaged: stack underflow"), std::vector<Ref>{};
    std::vector<Ref> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  /// Nothing below the last mark may be taken.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  /// Adds to the container on top of the stack.
  void add(Kind kind, const std::vector<Ref>& items) {
    if (!error_.empty()) return;
    if (stack_.empty() || out_.items_[stack_.back()].kind != kind) return fail("damaged: no container");
    if (kind == Kind::kDict && items.size() % 2 != 0) return fail("damaged: a key without a value");
    std::vector<Ref>& list = out_.lists_[out_.items_[stack_.back()].list];
    list.insert(list.end(), items.begin(), items.end());
    copied_ += items.size();
    if (copied_ > 4 * kMostItems) fail("too large");
  }

  void remember(std::uint64_t place) {
    if (stack_.empty()) return fail("damaged: stack underflow");
    if (place > memo_.size()) return fail("damaged: memo");
    if (place == memo_.size()) {
      memo_.push_back(stack_.back());
    } else {
      memo_[place] = stack_.back();
    }
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size()) return fail("damaged: memo");
    // A get takes two bytes of input and gives four of stack: no bomb.
    stack_.push_back(memo_[place]);
  }

  void step() {
    const auto code = static_cast<unsigned char>(number(1));
    if (bytes_.ended) return;
    if (scalar(code) || container(code) || memo(code)) return;
    for (const Refused& refused : kRefused) {
      if (refused.code == code) return fail("refuse: " + std::string{refused.name});
    }
    fail("refuse: opcode " + std::to_string(code));
  }

  bool scalar(unsigned char code) {
    switch (code) {
      case 'N':
        return push({}), true;
      case 0x88:
        return push({Kind::kBool, 1, {}, 0}), true;
      case 0x89:
        return push({Kind::kBool, 0, {}, 0}), true;
      case 'K':
        return push_integer(static_cast<std::int64_t>(number(1))), true;
      case 'M':
        return push_integer(static_cast<std::int64_t>(number(2))), true;
      case 'J':
        return push_integer(signed_number(4)), true;
      case 0x8a:
        return push_integer(signed_number(number(1))), true;
      case 0x8b:
        return push_integer(signed_number(number(4))), true;
      case 'G':
        return take(8), push({Kind::kReal, 0, {}, 0}), true;
      case 0x8c:
        return push_text(take(number(1))), true;
      case 'X':
        return push_text(take(number(4))), true;
      case 0x8d:
        return push_text(take(number(8))), true;
      case 'C':
        return push_text(take(number(1))), true;
      case 'B':
        return push_text(take(number(4))), true;
      case 0x8e:
        return push_text(take(number(8))), true;
      default:
        return false;
    }
  }

  bool container(unsigned char code) {
    switch (code) {
      case '(':
        return marks_.push_back(stack_.size()), true;
      case '}':
        return push_list(Kind::kDict, {}), true;
      case ']':
      case ')':
        return push_list(Kind::kList, {}), true;
      case 'd':
        return push_list(Kind::kDict, above_mark()), true;
      case 'l':
      case 't':
        return push_list(Kind::kList, above_mark()), true;
      case 0x85:
        return push_list(Kind::kList, top(1)), true;
      case 0x86:
        return push_list(Kind::kList, top(2)), true;
      case 0x87:
        return push_list(Kind::kList, top(3)), true;
      case 'a':
        return add(Kind::kList, top(1)), true;
      case 'e':
        return add(Kind::kList, above_mark()), true;
      case 's':
        return add(Kind::kDict, top(2)), true;
      case 'u':
        return add(Kind::kDict, above_mark()), true;
      case '0':
        return top(1), true;
      case '1':
        return above_mark(), true;
      default:
        return false;
    }
  }

  bool memo(unsigned char code) {
    switch (code) {
      case 0x80:
        if (number(1) > 5) fail("refuse: protocol");
        return true;
      case 0x95:
        return number(8), true;  // FRAME: a length that only buffers need
      case 0x94:
        return remember(memo_.size()), true;
      case 'q':
        return remember(number(1)), true;
      case 'r':
        return remember(number(4)), true;
      case 'h':
        return recall(number(1)), true;
      case 'j':
        return recall(number(4)), true;
      case '.':
        return stopped_ = true;
      default:
        return false;
    }
  }

  ByteReader bytes_;
  Pickle& out_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Ref> memo_;
  std::size_t copied_ = 0;
  bool stopped_ = false;
  std::string error_;
};

std::string read_pickle(std::string_view bytes, Pickle& pickle) {
  return PickleReader{bytes, pickle}.read();
}

}  // namespace tidemark::exchange
