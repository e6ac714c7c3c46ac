#include "core/units/letters.hpp"

namespace tidemark {

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool lies_in(std::string_view name, std::string_view outer) {
  return outer.empty() || (name.starts_with(outer) && (name.size() == outer.size() || name[outer.size()] == '.'));
}

}  // namespace tidemark
