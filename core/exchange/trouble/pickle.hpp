#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::exchange {

/// What a pickle of plain data holds: None, True, numbers, words, lists, tuples and dicts. Objects are never made and
/// nothing is ever called: an opcode that would do so ends the reading. Items may be shared, and a list may hold
/// itself, so who walks through it bounds the walk. Words point into the bytes that were read.
class Pickle {
 public:
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kReal, kString, kList, kDict };
  using Ref = std::uint32_t;
  struct Item {
    Kind kind = Kind::kNone;
    std::int64_t integer = 0;  ///< of integers and booleans
    std::string_view text;     ///< of strings
    std::uint32_t list = 0;    ///< of lists and dicts: where their items are
  };

  const Item& root() const { return items_[root_]; }
  const Item& at(Ref ref) const { return items_[ref]; }
  /// Of a list its items; of a dict keys and values in turn; of others none.
  const std::vector<Ref>& of(const Item& item) const;
  /// The value of a dict's key, or null.
  const Item* find(const Item& dict, std::string_view key) const;
  std::int64_t integer(const Item& dict, std::string_view key) const;
  std::string_view text(const Item& dict, std::string_view key) const;

 private:
  friend class PickleReader;
  std::vector<Item> items_;
  std::vector<std::vector<Ref>> lists_;
  Ref root_ = 0;
};

/// Reads protocols 0x80 2 to 5. Empty when all was read; else why not: "truncated", "refuse: STACK_GLOBAL", ...
std::string read_pickle(std::string_view bytes, Pickle& pickle);

}  // namespace tidemark::exchange
