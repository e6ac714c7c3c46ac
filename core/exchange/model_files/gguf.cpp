#include "core/exchange/model_files/gguf.hpp"

#include <cmath>
#include <cstring>

#include "core/exchange/bytes.hpp"
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::uint64_t kMostEntries = 1'000'000;
constexpr std::uint64_t kLongestName = 65'536;
constexpr std::uint32_t kMostDimensions = 8;
/// ggml.h: ggml_type has some forty so far. Sums are kept by type, so their number is bounded.
constexpr std::uint64_t kHighestType = 255;

/// GGUF's types of metadata (gguf.md: gguf_metadata_value_type).
enum MetadataType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
constexpr std::size_t kScalarBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// What std::pow and std::log10 would give, whose tables are 5 KB of a page's reader.
double power_of_ten(int exponent) {
  double power = 1.0;
  for (int i = 0; i < exponent; ++i) power *= 10.0;
  return power;
}

int decimal_exponent(double magnitude) {
  int exponent = 0;
  for (; magnitude >= 10.0; magnitude /= 10.0) ++exponent;
  for (; magnitude < 1.0; magnitude *= 10.0) --exponent;
  return exponent;
}

/// The number with the fewest digits that is this float: 1e-05, not 9.99999975e-06.
double shortest(float number) {
  if (number == 0.0F || !std::isfinite(number)) return static_cast<double>(number);
  const int exponent = decimal_exponent(std::fabs(number));
  for (int digits = 1; digits <= 9; ++digits) {
    const int shift = digits - 1 - exponent;
    const double power = power_of_ten(std::abs(shift));
    const double scaled = std::round(shift >= 0 ? number * power : number / power);
    const double candidate = shift >= 0 ? scaled / power : scaled * power;
    if (static_cast<float>(candidate) == number) return candidate;
  }
  return static_cast<double>(number);
}

class GgufReader {
 public:
  explicit GgufReader(std::string_view bytes) : bytes_{bytes} {}

  bool ended() const { return bytes_.ended; }

  std::string_view take(std::uint64_t length) { return bytes_.take(length); }
  std::uint64_t number(std::size_t length) { return bytes_.number(length); }
  std::string_view word(bool first_version) { return take(number(first_version ? 4 : 8)); }

  Value scalar(std::uint32_t type) {
    const std::size_t length = kScalarBytes[type];
    const std::uint64_t raw = number(length);
    if (type == kF32) {
      float real = 0.0F;
      const auto bits = static_cast<std::uint32_t>(raw);
      std::memcpy(&real, &bits, sizeof real);
      return of(shortest(real));
    }
    if (type == kF64) {
      double real = 0.0;
      std::memcpy(&real, &raw, sizeof real);
      return of(real);
    }
    if (type == kBool) return of(raw != 0);
    const bool negative = (type == kI8 || type == kI16 || type == kI32) && raw >> (8 * length - 1) != 0;
    return of(static_cast<std::int64_t>(negative ? raw - (std::uint64_t{1} << (8 * length)) : raw));
  }

 private:
  ByteReader bytes_;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view bytes, GgufHeader& out) : in_(bytes), out_(out) {}

  std::string read() {
    if (in_.take(4) != "GGUF") return "it does not begin with GGUF's magic";
    out_.version = static_cast<std::int64_t>(in_.number(4));
    if (out_.version < 1 || out_.version > 3) return "its GGUF version is not 1, 2 or 3 (a big-endian file?)";
    const std::size_t width = first() ? 4 : 8;
    const std::uint64_t tensors = in_.number(width), entries = in_.number(width);
    if (tensors > kMostEntries || entries > kMostEntries) return "it states more tensors than any model has";
    out_.model.metadata.kind = Value::Kind::kObject;
    for (std::uint64_t i = 0; i < entries && !in_.ended(); ++i) {
      if (std::string why = entry(); !why.empty()) return why;
    }
    for (std::uint64_t i = 0; i < tensors && !in_.ended(); ++i) {
      if (std::string why = tensor(); !why.empty()) return why;
    }
    out_.whole = !in_.ended();
    return {};
  }

 private:
  bool first() const { return out_.version == 1; }

  std::string entry() {
    const std::string_view key = in_.word(first());
    const auto type = static_cast<std::uint32_t>(in_.number(4));
    if (in_.ended()) return {};
    if (key.size() > kLongestName || type > kF64) return "its metadata are damaged";
    Value value;
    if (type == kString) {
      value = of(in_.word(first()));
    } else if (type == kArray) {
      if (!array(value)) return "its metadata are damaged";
    } else {
      value = in_.scalar(type);
    }
    if (!in_.ended()) out_.model.metadata.members.push_back({std::string{key}, std::move(value)});
    return {};
  }

  /// Passes over it: vocabularies are long, and only their length says something about memory.
  bool array(Value& value) {
    const auto type = static_cast<std::uint32_t>(in_.number(4));
    const std::uint64_t length = in_.number(first() ? 4 : 8);
    if (in_.ended()) return true;
    if (type > kF64 || type == kArray) return false;
    if (type == kString) {
      for (std::uint64_t i = 0; i < length && !in_.ended(); ++i) in_.word(first());
    } else if (length > (std::uint64_t{1} << 40)) {
      return false;
    } else {
      in_.take(length * kScalarBytes[type]);
    }
    value = object({{"length", of(static_cast<std::int64_t>(length))}});
    return true;
  }

  std::string tensor() {
    FileTensor tensor;
    tensor.name = in_.word(first());
    const auto dimensions = static_cast<std::uint32_t>(in_.number(4));
    if (in_.ended()) return {};
    if (dimensions > kMostDimensions) return "a tensor has too many dimensions";
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      tensor.shape.insert(tensor.shape.begin(), static_cast<Count>(in_.number(first() ? 4 : 8)));
    }
    const std::uint64_t type = in_.number(4);
    if (type > kHighestType) return "a tensor has an unknown type";
    tensor.dtype = std::to_string(type);
    in_.number(8);  // the offset of its data
    const auto elements = elements_of(tensor.shape);
    if (!elements) return "a tensor has no possible shape";
    tensor.elements = *elements;
    if (!in_.ended()) out_.model.tensors.push_back(std::move(tensor));
    return {};
  }

  GgufReader in_;
  GgufHeader& out_;
};

}  // namespace

std::string read_gguf(std::string_view bytes, GgufHeader& header) {
  return HeaderReader{bytes, header}.read();
}

}  // namespace tidemark::exchange
