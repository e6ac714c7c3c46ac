#include "core/exchange/python/job.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/python/library_calls.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// Wrappers around a model that are followed, one in the other.
constexpr int kMostWrappers = 8;
/// Of a loop of one's own: enough to show where it moves the model and steps.
constexpr std::size_t kMostContext = 8;

}  // namespace

void PyJob::say(std::string_view path, Value value, std::vector<Origin> places, std::string why) {
  if (value.is_null()) return;
  state(reading, path, std::move(value), std::move(places), std::move(why));
}

void PyJob::copy(std::string_view path, std::initializer_list<std::string_view> keys) {
  const PyValue* value = any_argument(keys);
  if (value != nullptr && (value->is_number() || value->kind == Kind::kBool)) say(path, *value);
}

void PyJob::unknown(std::string what) {
  if (std::find(reading.unknowns.begin(), reading.unknowns.end(), what) == reading.unknowns.end())
    reading.unknowns.push_back(std::move(what));
}

const PyObject* PyJob::at(const PyValue* value) const {
  const bool object = value != nullptr && value->kind == Kind::kObject && value->index >= 0;
  return object ? &program.objects[static_cast<std::size_t>(value->index)] : nullptr;
}

const PyValue* PyJob::argument(std::string_view key) const {
  for (const PyObject* one : {arguments, trainer, parsed_flags}) {
    const PyValue* value = one == nullptr ? nullptr : one->find(key);
    if (value != nullptr && value->is_known() && value->kind != Kind::kNone && value->kind != Kind::kObject)
      return value;
  }
  return nullptr;
}

const PyValue* PyJob::any_argument(std::initializer_list<std::string_view> keys) const {
  for (std::string_view key : keys) {
    if (const PyValue* value = argument(key); value != nullptr) return value;
  }
  return nullptr;
}

const PyValue* PyJob::load_option(std::string_view key) const {
  const PyValue* value = load == nullptr ? nullptr : load->find(key);
  if (value != nullptr && value->is_known()) return value;
  const PyValue* kwargs = arguments == nullptr ? nullptr : arguments->find("model_init_kwargs");
  return kwargs == nullptr ? nullptr : kwargs->find(key);
}

const PyValue* PyJob::variable(std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names) {
    for (auto one = program.assignments.rbegin(); one != program.assignments.rend(); ++one) {
      if (lower_case(one->name) == name && one->value.is_number()) return &one->value;
    }
  }
  return nullptr;
}

const PyValue* PyJob::text_variable(std::string_view name) const {
  for (auto one = program.assignments.rbegin(); one != program.assignments.rend(); ++one) {
    if (one->name == name && one->value.is_string()) return &one->value;
  }
  return nullptr;
}

bool PyJob::imports(std::string_view word) const {
  return contains(text, "import " + std::string{word}) || contains(text, "from " + std::string{word});
}

const PyObject* PyJob::loaded(const PyValue* value, int depth) const {
  const PyObject* one = at(value);
  if (one == nullptr || depth > kMostWrappers) return nullptr;
  if (loads_model(*one)) return one;
  for (const char* wrapper : {"get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training",
                              "PeftModel.from_pretrained", "DataParallel", "DistributedDataParallel", "torch.compile",
                              "prepare", "FSDP", "apply_chat_template"}) {
    if (!one->is(wrapper) && one->name != std::string{"."} + wrapper) continue;
    return loaded(one->positional.empty() ? one->find("model") : &one->positional[0], depth + 1);
  }
  return nullptr;
}

std::vector<Origin> PyJob::context() const {
  std::vector<Origin> places;
  for (const PyObject* one : {load, arguments, trainer, own_trainer, accelerator}) {
    if (one != nullptr) places.push_back(one->place);
  }
  cite(places, text_variable("init_from"));
  for (const PyObject& one : program.objects) {
    if (trainer != nullptr || places.size() > kMostContext) break;
    const bool moved = one.name == ".to" || one.name == ".cuda" || one.is("AdamW");
    const bool steps = contains(lower_case(one.name), "optimizer") && one.name != ".zero_grad";
    if (!moved && !steps) continue;
    // What is moved is the model where a call made it.
    if (moved && one.self >= 0) places.push_back(program.objects[static_cast<std::size_t>(one.self)].place);
    places.push_back(one.place);
  }
  return places;
}

}  // namespace tidemark::exchange
