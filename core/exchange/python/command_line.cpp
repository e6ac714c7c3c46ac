// The command line that starts a program, and the parsers that read it: argparse, HfArgumentParser and TRL's.
#include <algorithm>
#include <utility>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

/// "gradient_accumulation_steps" of "--gradient-accumulation-steps".
std::string flag_of(const std::string& word) {
  std::string flag = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag;
}

/// Under which name add_argument keeps what it reads.
std::string destination_of(const PyObject& call) {
  std::string key;
  for (const PyValue& word : call.positional) {
    if (word.is_string() && word.text.starts_with("--") && key.empty()) key = word.text.substr(2);
    if (word.is_string() && key.empty() && !word.text.empty() && word.text[0] != '-') key = word.text;
  }
  if (const PyValue* dest = call.find("dest"); dest != nullptr && dest->is_string()) key = dest->text;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// What add_argument gives where the command does not say it.
PyValue standard_of(const PyObject& call) {
  const PyValue* standard = call.find("default");
  const PyValue* action = call.find("action");
  if (standard != nullptr) return *standard;
  if (action != nullptr && action->text == "store_true") return py_bool(false);
  if (action != nullptr && action->text == "store_false") return py_bool(true);
  const PyValue* required = call.find("required");
  const bool optional = !call.positional.empty() && call.positional[0].is_string() &&
                        call.positional[0].text.starts_with('-') && (required == nullptr || !required->boolean);
  return optional ? py_value(Kind::kNone) : PyValue{};
}

bool is_parser(const PyObject& one) {
  return one.is("ArgumentParser") || one.is("HfArgumentParser") || one.is("TrlParser") || one.is("H4ArgumentParser");
}

}  // namespace

void PyProgram::start_with(const std::deque<Arg>& given) {
  commanded_ = true;
  for (const Arg& flag : given) {
    if (!flag.unresolved.empty()) continue;
    PyValue value = py_value(flag.value, file_);
    value.places = flag.origins;
    value.why = flag.assumed;
    command_.emplace_back(flag.key, std::move(value));
  }
}

const PyValue* PyProgram::commanded(const std::string& key) {
  for (const auto& [name, value] : command_) {
    if (name != key) continue;
    flags.push_back(key);
    return &value;
  }
  return nullptr;
}

void PyProgram::add_argument(PyObject& parser, const PyObject& call) {
  const std::string key = destination_of(call);
  const PyValue* action = call.find("action");
  PyValue value = standard_of(call);
  value.places.insert(value.places.begin(), call.place);
  if (value.why.empty() && value.is_known() && !commanded_)
    value.why = "default of --" + key + "; the command may say otherwise";
  for (const PyValue& word : call.positional) {
    const PyValue* given = word.is_string() ? commanded(flag_of(word.text)) : nullptr;
    if (given == nullptr) continue;
    PyValue told = action != nullptr && action->text == "store_false" ? py_bool(false) : *given;
    inherit(told, *given);
    inherit(told, value);
    value = std::move(told);
    value.why.clear();
  }
  parser.fields.emplace_back(key, std::move(value));
}

/// A method that only parsers of arguments have; nothing for any other.
std::optional<PyValue> PyProgram::parser_method(const PyValue& self, const std::string& name, const PyObject& call) {
  if (name == "add_argument_group" || name == "add_mutually_exclusive_group") return self;
  PyObject& parser = object(self);
  if (name == "add_argument") {
    add_argument(parser, call);
    return PyValue{};
  }
  if (name == "set_defaults") {
    parser.fields.insert(parser.fields.end(), call.fields.begin(), call.fields.end());
    return PyValue{};
  }
  if (name.starts_with("parse") && is_parser(parser)) return parsed_arguments(PyObject{parser}, name);
  return std::nullopt;
}

/// What a parser of arguments returns: its defaults.
PyValue PyProgram::parsed_arguments(const PyObject& parser, const std::string& name) {
  if (parser.is("argparse.ArgumentParser") || (parser.is("ArgumentParser") && !parser.is("HfArgumentParser"))) {
    PyObject space;
    space.name = "argparse.Namespace";
    space.fields = parser.fields;
    space.place = parser.place;
    const PyValue all = keep(std::move(space));
    if (name != "parse_known_args") return all;
    PyValue pair = py_value(Kind::kList);
    pair.items = {all, PyValue{}};
    return pair;
  }
  std::vector<PyValue> kinds;
  const PyValue* given = parser.positional.empty() ? parser.find("dataclass_types") : &parser.positional[0];
  if (given != nullptr) kinds = given->kind == Kind::kList ? given->items : std::vector<PyValue>{*given};
  PyValue all = py_value(Kind::kList);
  for (const PyValue& kind : kinds) {
    PyObject one;
    one.place = parser.place;
    one.from_command = !commanded_;
    one.parsed = true;
    one.fields = command_;
    if (kind.kind == Kind::kClass) {
      for (const auto& field : class_of(kind).fields) commanded(field.first);
      all.items.push_back(instance(kind.index, std::move(one)));
    } else {
      one.name = kind.text;
      all.items.push_back(keep(std::move(one)));
    }
  }
  return all;
}

}  // namespace tidemark::exchange
