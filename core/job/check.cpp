#include "core/job/check.hpp"

#include <algorithm>
#include <string>

namespace tidemark {
namespace {

void add(Issues& issues, std::string_view code, Severity severity, std::string_view path, std::string message) {
  issues.push_back({std::string{code}, severity, std::string{path}, std::move(message), ""});
}

/// The first of the options under that key ("adapter."), or an empty name.
std::string_view first_under(const std::vector<std::string_view>& given, std::string_view prefix) {
  for (std::string_view name : given) {
    if (name.substr(0, prefix.size()) == prefix) return name;
  }
  return {};
}

}  // namespace

void check_request(const Request& request, const std::vector<std::string_view>& given, Issues& issues) {
  const TrainingJob& job = request.job;

  const int sources = int{!request.model.empty()} + int{request.config.is_object()} + int{request.parameters > 0.0};
  if (sources == 0 && !has_error(issues)) {
    add(issues, "MISSING_MODEL", Severity::kError, "",
        "Say which model is trained: \"model\" (a catalog name), \"config\" (a config.json) or \"parameters\" (a "
        "count).");
  } else if (sources > 1) {
    add(issues, "INVALID_VALUE", Severity::kError, "",
        "Give one of \"model\", \"config\" and \"parameters\": they say the same thing in different ways.");
  }

  const Quantization& quantization = job.quantization;
  if (quantization.bits != 4 && quantization.bits != 8) {
    add(issues, "INVALID_VALUE", Severity::kError, "/quantization/bits", "Quantised weights have 4 or 8 bits.");
  }

  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  if (const auto name = first_under(given, "adapter."); !adapters && !name.empty()) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/adapter",
        "Adapter settings have no effect unless \"method\" is \"lora\" or \"qlora\".");
  }
  if (const auto name = first_under(given, "quantization."); job.method != Method::kQlora && !name.empty()) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/quantization",
        "Quantisation settings have no effect unless \"method\" is \"qlora\".");
  }
  if (job.method == Method::kFreeze && job.freeze.empty()) {
    add(issues, "IGNORED_OPTION", Severity::kWarning, "/freeze",
        "\"method\" is \"freeze\" but no module is named in \"freeze\": everything is trained.");
  }
  if (adapters && !job.adapter.all_linear && job.adapter.target_modules.empty()) {
    add(issues, "INVALID_VALUE", Severity::kError, "/adapter/target_modules",
        "Name at least one module to adapt, or \"all-linear\".");
  }
  if (job.gradient_accumulation_steps > 1 && job.optimizer_in_backward) {
    add(issues, "INVALID_VALUE", Severity::kError, "/optimizer_in_backward",
        "An optimizer that steps in backward cannot accumulate gradients: gradient_accumulation_steps must be 1.");
  }

  // Token counts that no GPU could hold, and whose squares would leave 64 bits.
  constexpr double kMostTokens = 4294967296.0;      // 2^32
  constexpr double kMostScores = 17592186044416.0;  // 2^44, B·S²
  const auto batch = static_cast<double>(job.micro_batch_size);
  const auto length = static_cast<double>(std::max(job.sequence_length, job.decoder_sequence_length));
  if (batch * length > kMostTokens || batch * length * length > kMostScores) {
    add(issues, "TOO_LARGE", Severity::kError, "/sequence_length",
        "micro_batch_size x sequence_length is beyond what can be computed: at most 2^32 tokens, and "
        "micro_batch_size x sequence_length^2 at most 2^44.");
  }
}

void check_magnitude(const Architecture& a, const TrainingJob& job, Issues& issues) {
  // A generous bound on every sum of bytes: parameters with all copies, everything that any layer could keep, logits.
  const auto real = [](Count count) { return static_cast<double>(std::max<Count>(count, 0)); };
  const double tokens =
      real(job.micro_batch_size) * real(std::max({job.sequence_length, job.decoder_sequence_length, Count{1}}));
  const double positions = std::max(tokens, real(job.micro_batch_size) * real(a.image_size) * real(a.image_size));
  const double length = positions / std::max(1.0, real(job.micro_batch_size));
  const double layers = real(a.num_layers) + real(a.num_decoder_layers) + 2.0;
  const double width = real(a.hidden_size) + real(a.intermediate_size) + real(a.query_size()) +
                       2.0 * real(a.kv_size()) + real(job.adapter.r) + 64.0;
  const double heads = std::max(real(a.num_heads), real(a.num_kv_heads)) + 1.0;
  const double vocabulary = real(a.vocab_size) + real(a.max_positions) + real(a.type_vocab_size) + real(a.num_labels);
  const double parameters = layers * 8.0 * width * width + 2.0 * vocabulary * width;
  const double bytes = 64.0 * parameters + layers * positions * (256.0 * width + 32.0 * heads * length) +
                       32.0 * positions * vocabulary + 16.0 * real(a.max_positions) * real(a.max_positions);
  constexpr double kMost = 4611686018427387904.0;  // 2^62
  if (!(bytes < kMost)) {
    add(issues, "TOO_LARGE", Severity::kError, "",
        "This model and batch are beyond what can be computed: byte counts would leave 64 bits. Look for a dimension "
        "with too many digits.");
  }
}

void check_positions(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Count positions = architecture.learned_positions();
  if (positions == 0 || job.sequence_length <= positions) return;
  const std::string most = std::to_string(positions);
  issues.push_back({"SEQUENCE_TOO_LONG", Severity::kWarning, "/sequence_length",
                    "The model's table of positions ends at " + most +
                        ": longer sequences fail with an index error, whatever the memory. Use at most " + most + ".",
                    most});
}

}  // namespace tidemark
