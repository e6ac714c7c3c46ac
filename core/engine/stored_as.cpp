#include "core/engine/stored_as.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/model_name.hpp"
#include "core/job/defaults.hpp"
#include "core/units/excerpt.hpp"

namespace tidemark {
namespace {

/// Whether the word names a width that weights are trained in ("BF16"): nothing is packed then.
bool is_whole(std::string_view word) {
  constexpr std::string_view kWhole[] = {"bf16", "fp16", "f16", "float16", "fp32", "f32", "float32"};
  return std::find(std::begin(kWhole), std::end(kWhole), word) != std::end(kWhole);
}

/// How checkpoints of such a name hold their weights; nothing where nothing trains beside them.
std::optional<Quantization> packed_as(const std::vector<std::string>& packing) {
  const auto says = [&](std::string_view text) {
    return std::find(packing.begin(), packing.end(), text) != packing.end();
  };
  const bool eight = says("8bit") || says("int8");
  Quantization packed;
  if (says("aqlm") && says("1x16")) {  // of its kinds the one that is modelled: a codebook of 2^16 vectors
    packed.quant_type = QuantType::kAqlm;
    packed.bits = 2;
    packed.double_quant = false;
    return packed;
  }
  if (says("gptq") || says("awq")) {
    packed.quant_type = says("awq") ? QuantType::kAwq : QuantType::kGptq;
    packed.bits = eight && !says("awq") ? 8 : 4;
    packed.group_size = 128;
    packed.double_quant = false;
    return packed;
  }
  if (!says("bnb")) return std::nullopt;
  // bitsandbytes' 4 bits as they are published: NF4, its scales quantised again.
  packed.quant_type = eight ? QuantType::kInt8 : QuantType::kNf4;
  packed.bits = eight ? 8 : 4;
  packed.double_quant = !eight;
  return packed;
}

}  // namespace

void settle_stored(std::string_view typed, TrainingJob& job, Issues& issues) {
  const std::vector<std::string> repositories = repositories_in(typed);
  if (repositories.empty()) return;
  const std::vector<ModelName> names = read_model_name(repositories.front());
  if (names.empty()) return;
  const std::vector<std::string>& packing = names.front().packing;
  if (std::all_of(packing.begin(), packing.end(), is_whole)) return;
  const std::optional<Quantization> packed = packed_as(packing);
  // "qlora" on a base of bitsandbytes' is what its name says already, in the request's own words.
  if (job.method == Method::kQlora && !(packed && !packed->is_bitsandbytes())) return;
  if (packed && (job.method == Method::kLora || job.method == Method::kQlora)) {
    return hold_packed(*packed,
                       {"CHOSEN_QUANTIZATION", Severity::kNote, "/model",
                        "The weights are held as the model's name says; \"method\" and \"quantization\" with the "
                        "base's name say it otherwise.",
                        ""},
                       job, issues);
  }
  if (packed) job.name_says = packed->quant_type == QuantType::kNf4 ? NameSays::kQlora : NameSays::kOtherPacking;
  issues.push_back(
      {"NOT_QUANTISED", Severity::kWarning, "/model",
       "The name " + in_quotes(typed) +
           " says how the weights are stored; the answer is about a base of 16 or 32 bits. "
           "Packed weights cannot be trained themselves: \"method\": \"qlora\" trains adapters beside them.",
       ""});
}

}  // namespace tidemark
