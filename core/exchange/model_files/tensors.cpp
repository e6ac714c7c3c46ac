#include "core/exchange/model_files/tensors.hpp"

#include <algorithm>

namespace tidemark::exchange {
namespace {

constexpr Count kMostElements = Count{1} << 50;

/// The number that begins there, -1 without.
Count number_at(std::string_view name, std::size_t at) {
  Count number = 0;
  std::size_t digits = 0;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && digits < 9; ++at, ++digits) {
    number = number * 10 + (name[at] - '0');
  }
  return digits == 0 || (at < name.size() && name[at] != '.') ? -1 : number;
}

}  // namespace

std::optional<Count> elements_of(const std::vector<Count>& shape) {
  Count elements = 1;
  for (Count size : shape) {
    if (size < 0 || (size > 0 && elements > kMostElements / size)) return std::nullopt;
    elements *= size;
  }
  return elements;
}

std::vector<std::pair<std::string, Count>> elements_by_dtype(const std::vector<FileTensor>& tensors) {
  std::vector<std::pair<std::string, Count>> sums;
  for (const FileTensor& tensor : tensors) {
    auto known = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == tensor.dtype; });
    if (known == sums.end()) known = sums.insert(sums.end(), {tensor.dtype, 0});
    known->second += tensor.elements;
  }
  return sums;
}

Count highest_number(const std::vector<std::string_view>& names, std::initializer_list<std::string_view> parts) {
  Count highest = -1;
  for (std::string_view name : names) {
    for (std::size_t begin = 0; begin < name.size();) {
      const std::size_t end = std::min(name.find('.', begin), name.size());
      const std::string_view part = name.substr(begin, end - begin);
      if (std::find(parts.begin(), parts.end(), part) != parts.end()) {
        highest = std::max(highest, number_at(name, end + 1));
      }
      begin = end + 1;
    }
  }
  return highest + 1;
}

Count layers_of(const std::vector<std::string_view>& names) {
  return highest_number(names, {"layers", "h", "blocks", "block", "blk", "layer"});
}

}  // namespace tidemark::exchange
