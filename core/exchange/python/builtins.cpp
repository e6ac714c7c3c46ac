// Functions of Python and its libraries whose result is known, or known to be unknown.
#include <optional>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

PyValue likely(PyValue value, const char* why) {
  if (value.why.empty()) value.why = why;
  return value;
}

/// int, float, str and bool.
std::optional<PyValue> converted(const std::string& name, const PyValue& from) {
  const bool number = name == "int" || name == "float";
  if (name == "str" || name == "bool") return from;
  if (!number) return std::nullopt;
  const Node node = from.is_string() ? plain_scalar(from.text) : Node{};
  if (!from.is_number() && !node.is_number()) return PyValue{};
  const double real = from.is_number() ? from.real : node.real;
  PyValue value = name == "int" ? py_integer(static_cast<std::int64_t>(real)) : py_real(real);
  inherit(value, from);
  return value;
}

PyValue dictionary_of(PyValue value, const PyFields& fields) {
  for (const auto& [key, item] : fields) put(value, key, item);
  return value;
}

/// len, max, min, dict, list and their like.
std::optional<PyValue> of_collections(const PyObject& call, const PyValue* first) {
  const std::string& name = call.name;
  if (name == "dict") {
    const bool copies = first != nullptr && first->kind == Kind::kDict;
    return dictionary_of(copies ? *first : py_value(Kind::kDict), call.fields);
  }
  if (first == nullptr) return std::nullopt;
  const bool list = first->kind == Kind::kList;
  if (name == "len" && list) return py_integer(static_cast<std::int64_t>(first->items.size()));
  if ((name == "list" || name == "tuple" || name == "sorted" || name == "set") && list) return *first;
  const bool two = call.positional.size() == 2 && first->is_number() && call.positional[1].is_number();
  if ((name != "max" && name != "min") || !two) return std::nullopt;
  const bool keep_first = (name == "max") == (first->real >= call.positional[1].real);
  return keep_first ? *first : call.positional[1];
}

PyValue joined_path(const PyObject& call) {
  std::string path;
  PyValue places;
  for (const PyValue& part : call.positional) {
    inherit(places, part);
    if (part.is_string()) path += (path.empty() ? "" : "/") + part.text;
  }
  if (path.empty()) return {};
  PyValue joined = py_text(path);
  inherit(joined, places);
  return joined;
}

/// Paths, the environment and the card.
std::optional<PyValue> of_system(const PyObject& call, const PyValue* first) {
  const std::string& name = call.name;
  const std::string word = last_word(name);
  if ((name == "os.environ.get" || name == "os.getenv") && call.positional.size() == 2)
    return likely(call.positional[1], "the environment may say otherwise");
  if (name == "os.path.join" && first != nullptr) return joined_path(call);
  const bool same = word == "Path" || name == "os.path.abspath" || name == "os.path.expanduser" || name == "open" ||
                    word == "snapshot_download";
  if (same && first != nullptr && first->is_string()) return *first;
  if (word == "is_bf16_supported" || word == "is_bfloat16_supported")
    return likely(py_bool(true), "on Ampere and later; fp16 before");
  if (name == "torch.cuda.is_available") return py_bool(true);
  return std::nullopt;
}

bool reads_document(const std::string& name) {
  const std::string word = last_word(name);
  return word == "safe_load" || word == "full_load" || name == "yaml.load" || name == "json.load" ||
         name == "tomllib.load" || name == "OmegaConf.load" || name == "omegaconf.OmegaConf.load";
}

/// Nothing is known of what they return, and no part of a job is made by them.
bool is_quiet(const std::string& name) {
  for (const char* quiet :
       {"print", "super", "isinstance", "range", "enumerate", "zip", "hasattr", "input", "id", "type"}) {
    if (name == quiet) return true;
  }
  return false;
}

}  // namespace

PyValue PyProgram::get_attribute(const PyObject& call) {
  const PyValue& of = call.positional[0];
  const std::string& name = call.positional[1].text;
  if (of.kind == Kind::kSymbol) return py_symbol(of.text + "." + name);
  if (of.kind == Kind::kObject) {
    if (const PyValue* field = object(of).find(name); field != nullptr) return *field;
  }
  return call.positional.size() > 2 ? call.positional[2] : PyValue{};
}

std::optional<PyValue> PyProgram::builtin(const PyObject& call) {
  const std::string& name = call.name;
  const std::string word = last_word(name);
  const PyValue* first = call.positional.empty() ? nullptr : &call.positional[0];
  if (std::optional<PyValue> value = first == nullptr ? std::nullopt : converted(name, *first)) return value;
  if (std::optional<PyValue> value = of_collections(call, first)) return value;
  if (std::optional<PyValue> value = of_system(call, first)) return value;
  if (name == "getattr" && call.positional.size() >= 2 && call.positional[1].is_string()) return get_attribute(call);
  if (word == "add_config_arguments" && first != nullptr) return *first;
  if (name == "vars" && first != nullptr && first->kind == Kind::kObject)
    return dictionary_of(py_value(Kind::kDict), object(*first).fields);
  if (reads_document(name) && first != nullptr && first->is_string()) return document(first->text);
  if (word == "asdict") return first == nullptr ? PyValue{} : *first;
  if (is_quiet(name)) return PyValue{};
  return std::nullopt;
}

}  // namespace tidemark::exchange
