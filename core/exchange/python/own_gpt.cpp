// GPT-2's shape in programs that write the model themselves.
#include <string_view>
#include <utility>

#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// minGPT's models by name (mingpt/model.py: GPT.__init__).
struct MinGpt {
  std::string_view name;
  int layers, heads, width;
};
constexpr MinGpt kMinGpts[] = {{"openai-gpt", 12, 12, 768},  {"gpt2", 12, 12, 768},     {"gpt2-medium", 24, 16, 1024},
                               {"gpt2-large", 36, 20, 1280}, {"gpt2-xl", 48, 25, 1600}, {"gopher-44m", 8, 16, 512},
                               {"gpt-mini", 6, 6, 192},      {"gpt-micro", 4, 4, 128},  {"gpt-nano", 3, 3, 48}};

/// Their names and GPT2Config's.
constexpr std::pair<std::string_view, std::string_view> kKeys[] = {{"n_embd", "n_embd"},
                                                                   {"emb_dim", "n_embd"},
                                                                   {"n_layer", "n_layer"},
                                                                   {"n_layers", "n_layer"},
                                                                   {"n_head", "n_head"},
                                                                   {"n_heads", "n_head"},
                                                                   {"vocab_size", "vocab_size"},
                                                                   {"block_size", "n_positions"},
                                                                   {"context_length", "n_positions"},
                                                                   {"bias", "bias"}};

/// The model by its type, and what minGPT's trainer takes where nothing is set (mingpt/trainer.py: get_default_config;
/// AdamW by GPT.configure_optimizers).
bool read_mingpt(PyJob& job) {
  if (!job.imports("mingpt")) return false;
  for (const PyObject& one : job.program.objects) {
    if (one.is("Trainer.get_default_config")) {
      if (const PyValue* batch = one.find("batch_size"); batch != nullptr)
        job.say("micro_batch_size", *batch);
      else
        job.say("micro_batch_size", of(64), {one.place}, "default of mingpt.trainer");
    }
    if (one.is("mingpt.trainer.Trainer"))
      job.say("optimizer", of("adamw_torch"), {one.place}, "as minGPT's configure_optimizers makes it");
    const PyValue* type = one.is("GPT.get_default_config") ? one.find("model_type") : nullptr;
    for (const MinGpt& shape : kMinGpts) {
      if (type == nullptr || type->text != shape.name) continue;
      job.say("config",
              object({{"model_type", of("gpt2")},
                      {"n_layer", of(shape.layers)},
                      {"n_head", of(shape.heads)},
                      {"n_embd", of(shape.width)}}),
              type->places, "minGPT's '" + type->text + "'");
    }
  }
  return job.told("config");
}

/// nanoGPT and those made after it: the shape by keywords or by a dictionary.
bool read_shape(PyJob& job, const PyObject& one) {
  const bool by_dictionary = !one.positional.empty() && one.positional[0].kind == Kind::kDict;
  Value config = object({{"model_type", of("gpt2")}});
  std::vector<Origin> places{one.place};
  for (const auto& [theirs, ours] : kKeys) {
    const PyValue* value = by_dictionary ? one.positional[0].find(theirs) : one.find(theirs);
    if (value == nullptr || !(value->is_number() || value->kind == Kind::kBool)) continue;
    set(config, ours, to_value(*value));
    cite(places, value);
  }
  if (config.find("n_embd") == nullptr || config.find("n_layer") == nullptr) return false;
  job.say("config", std::move(config), std::move(places));
  return true;
}

}  // namespace

bool read_own_gpt(PyJob& job) {
  if (read_mingpt(job)) return true;
  if (const PyValue* start = job.text_variable("init_from"); start != nullptr && start->text.starts_with("gpt2")) {
    say_model(job, *start);
    return true;
  }
  for (const PyObject& one : job.program.objects) {
    if (contains(one.name, "GPT") && read_shape(job, one)) return true;
  }
  return false;
}

}  // namespace tidemark::exchange
