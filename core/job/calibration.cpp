#include "core/job/calibration.hpp"

#include "core/units/decimal.hpp"

namespace tidemark {
namespace {

/// Beyond these a factor says that something else was measured.
constexpr double kLeastFactor = 0.1;
constexpr double kMostFactor = 10.0;
constexpr Bytes kMostContext = 1024 * kGiB;

bool read_factor(const Value& factors, std::string_view name, double& factor) {
  const Value* value = factors.find(name);
  if (value == nullptr || value->is_null()) return true;
  if (!value->is_number() || !(value->real >= kLeastFactor && value->real <= kMostFactor)) return false;
  factor = value->real;
  return true;
}

bool read_contexts(const Value& factors, std::vector<Calibration::Context>& contexts) {
  const Value* list = factors.find("context");
  if (list == nullptr || list->is_null()) return true;
  for (const Value& row : list->items) {
    const Value* gpu = row.find("gpu");
    const Value* bytes = row.find("bytes");
    if (gpu == nullptr || !gpu->is_string() || bytes == nullptr || !bytes->is_integer()) return false;
    if (bytes->integer < 0 || bytes->integer > kMostContext) return false;
    contexts.push_back({gpu->string, bytes->integer});
  }
  return list->is_array();
}

void read_percent(const Value& document, std::string_view name, double& percent) {
  const Value* errors = document.find("errors");
  const Value* row = errors == nullptr ? nullptr : errors->find(name);
  const Value* worst = row == nullptr ? nullptr : row->find("worst_percent");
  if (worst != nullptr && worst->is_number()) percent = worst->real;
}

}  // namespace

std::optional<Bytes> Calibration::context_of(const std::string& gpu) const {
  for (const Context& context : contexts) {
    if (context.gpu == gpu) return context.bytes;
  }
  return std::nullopt;
}

std::optional<Calibration> read_calibration(const Value& document) {
  if (const Value* inner = document.find("calibration"); inner != nullptr) return read_calibration(*inner);
  const Value* factors = document.find("factors");
  const Value* measurements = document.find("measurements");
  if (factors == nullptr || !factors->is_object() || measurements == nullptr) return std::nullopt;
  Calibration calibration;
  calibration.measurements = static_cast<Count>(measurements->items.size());
  read_percent(document, "calibrated", calibration.worst_percent);
  read_percent(document, "left_out", calibration.worst_left_out_percent);
  const bool readable = read_factor(*factors, "activations", calibration.activations) &&
                        read_factor(*factors, "fragmentation", calibration.fragmentation) &&
                        read_factor(*factors, "communication", calibration.communication) &&
                        read_contexts(*factors, calibration.contexts);
  if (!readable) return std::nullopt;
  return calibration;
}

std::string in_words(const Calibration& calibration) {
  std::string words;
  const auto add = [&words](const std::string& part) { words += (words.empty() ? "" : ", ") + part; };
  const auto factor = [&](const char* what, double by) {
    if (by != 1.0) add(std::string{what} + " × " + shortest_decimal(by));
  };
  factor("activations", calibration.activations);
  factor("what is cached", calibration.fragmentation);
  factor("NCCL's buffers", calibration.communication);
  for (const Calibration::Context& context : calibration.contexts) {
    add("context of " + context.gpu + " " + format_gib(context.bytes));
  }
  return words.empty() ? "no factor determined" : words;
}

}  // namespace tidemark
