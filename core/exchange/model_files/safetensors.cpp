#include "core/exchange/model_files/safetensors.hpp"

#include <algorithm>

#include "core/exchange/text/node.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // tensor.rs: MAX_HEADER_SIZE

struct DtypeBits {
  std::string_view name;
  int bits;
};
constexpr DtypeBits kDtypes[] = {
    {"F64", 64},    {"F32", 32},    {"F16", 16}, {"BF16", 16}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},   {"I64", 64},  {"I32", 32},    {"I16", 16},    {"I8", 8},
    {"U64", 64},    {"U32", 32},    {"U16", 16}, {"U8", 8},    {"BOOL", 8},    {"C64", 64},
};

int bits_of(std::string_view dtype) {
  for (const DtypeBits& known : kDtypes) {
    if (known.name == dtype) return known.bits;
  }
  return 0;
}

std::uint64_t header_length(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

struct Extent {
  std::int64_t begin, end;
};

/// One entry of the header; why not, or empty.
std::string read_tensor(const std::string& name, const Node& entry, FileTensor& tensor, Extent& extent) {
  const Node* dtype = entry.find("dtype");
  const Node* shape = entry.find("shape");
  const Node* offsets = entry.find("data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr || !shape->is_list() || offsets->items.size() != 2) {
    return "tensor \"" + name + "\" lacks dtype, shape or data_offsets";
  }
  tensor.name = name;
  tensor.dtype = dtype->text;
  for (const Node& size : shape->items) tensor.shape.push_back(size.is_integer() ? size.integer : -1);
  const auto elements = elements_of(tensor.shape);
  const int bits = bits_of(tensor.dtype);
  if (bits == 0) return "tensor \"" + name + "\" has the unknown dtype \"" + tensor.dtype + "\"";
  if (!elements) return "tensor \"" + name + "\" has no possible shape";
  tensor.elements = *elements;
  extent = {offsets->items[0].integer, offsets->items[1].integer};
  if ((extent.end - extent.begin) * 8 != *elements * bits) {
    return "tensor \"" + name + "\" does not take as many bytes as its shape and dtype";
  }
  return {};
}

/// The data lie one behind the other, from the first byte, without gaps.
std::string check_extents(std::vector<Extent>& extents, Bytes& data_bytes) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  for (const Extent& extent : extents) {
    if (extent.begin != data_bytes) return "the tensors' data do not lie one behind the other";
    data_bytes = extent.end;
  }
  return {};
}

std::string check_frame(std::string_view bytes, std::uint64_t size) {
  if (bytes.size() < kLengthBytes) return "the file is too short to have a header";
  const std::uint64_t length = header_length(bytes);
  if (length > kMostHeaderBytes) return "its header would have more than 100 MB";
  if (kLengthBytes + length > size) return "its header is longer than the file: the download was cut off";
  if (kLengthBytes + length > bytes.size()) return "only a part of its header was handed over";
  return {};
}

}  // namespace

bool looks_like_safetensors(std::string_view bytes) {
  return bytes.size() > kLengthBytes && bytes[kLengthBytes] == '{' && header_length(bytes) < (std::uint64_t{1} << 40);
}

std::string read_safetensors(std::string_view bytes, std::uint64_t size, ModelHeader& header) {
  if (std::string why = check_frame(bytes, size); !why.empty()) return why;
  const Parsed parsed = parse_json_lines(bytes.substr(kLengthBytes, header_length(bytes)), true);
  if (!parsed.error.empty() || !parsed.root.is_map()) return "its header is no JSON object: " + parsed.error;
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < parsed.root.keys.size(); ++i) {
    const std::string& name = parsed.root.keys[i];
    if (name == "__metadata__") {
      header.metadata = to_value(parsed.root.items[i]);
      continue;
    }
    std::string why = read_tensor(name, parsed.root.items[i], header.tensors.emplace_back(), extents.emplace_back());
    if (!why.empty()) return why;
  }
  return check_extents(extents, header.data_bytes);
}

}  // namespace tidemark::exchange
