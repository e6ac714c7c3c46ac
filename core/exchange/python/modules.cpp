// Modules, and documents that a program opens: those that were handed over beside it are read.
#include <algorithm>
#include <utility>

#include "core/exchange/fields.hpp"
#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

void PyProgram::run_import(const PyStatement& statement) {
  if (import_sibling(statement)) return;
  if (statement.names.empty()) return import_whole(statement);
  for (std::size_t at = 0; at + 1 < statement.names.size(); at += 2) {
    if (statement.names[at] != "*")
      assign_name(statement.names[at + 1], py_symbol(statement.text + "." + statement.names[at]));
  }
}

/// `import module as alias`
void PyProgram::import_whole(const PyStatement& statement) {
  const std::string alias = statement.targets.empty() ? std::string{} : statement.targets[0].text;
  const std::string first = statement.text.substr(0, statement.text.find('.'));
  const Scope* scope = first == statement.text ? module_of(first) : nullptr;
  if (scope == nullptr) {
    if (!first.empty()) assign_name(alias.empty() ? first : alias, py_symbol(alias.empty() ? first : statement.text));
    return;
  }
  PyObject module;
  module.name = statement.text;
  module.place = {file_, statement.line, statement.last, cell_};
  for (const auto& [name, value] : *scope) module.fields.emplace_back(name, value);
  assign_name(alias.empty() ? first : alias, keep(std::move(module)));
}

/// `from .module import name` of a module that was handed over as well.
bool PyProgram::import_sibling(const PyStatement& statement) {
  const std::size_t first = statement.text.find_first_not_of('.');
  if (first == std::string::npos || statement.names.empty()) return false;
  const Scope* scope = module_of(statement.text.substr(first));
  if (scope == nullptr) return false;
  for (std::size_t at = 0; at + 1 < statement.names.size(); at += 2) {
    const auto known = scope->find(statement.names[at]);
    if (known != scope->end()) assign_name(statement.names[at + 1], known->second);
    if (statement.names[at] != "*") continue;
    for (const auto& [name, value] : *scope) assign_name(name, value);
  }
  return true;
}

PyProgram::Scope* PyProgram::module_of(const std::string& name) {
  std::string path = name;
  std::replace(path.begin(), path.end(), '.', '/');
  path += ".py";
  for (const Source& source : all_) {
    if (source.name == main_.name || !source.name.ends_with(path)) continue;
    if (source.name.size() > path.size() && source.name[source.name.size() - path.size() - 1] != '/') continue;
    if (const auto known = modules_.find(source.name); known != modules_.end()) return &known->second;
    Scope& scope = modules_[source.name];
    if (depth_ <= kDeepestImport) run_module(source, scope);
    return &scope;
  }
  return nullptr;
}

void PyProgram::run_module(const Source& source, Scope& scope) {
  const std::string file = std::exchange(file_, source.name);
  const int cell = std::exchange(cell_, -1);
  code_.push_back(parse_python(source.bytes));
  frames_.emplace_back();
  frames_.back().globals = &scope;
  ++depth_;
  run_all(code_.back());
  --depth_;
  frames_.pop_back();
  file_ = file;
  cell_ = cell;
}

PyValue PyProgram::document(const std::string& path) {
  const std::string name{base_name(path)};
  for (const Source& source : all_) {
    if (base_name(source.name) != name) continue;
    const Look look = look_at(source);
    if (look.document.root.is_map()) return py_value(look.document.root, source.name);
  }
  if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
  return {};
}

void PyProgram::add_document(const Node& node, const std::string& name, int cell, int lines_before, int launch_cell) {
  PyObject one;
  one.name = name;
  const PyValue value = py_value(node, file_);
  one.place = {file_, node.line + lines_before, node.last + lines_before, cell};
  for (std::size_t at = 0; at < value.keys.size(); ++at) {
    PyValue field = value.items[at];
    for (Origin& place : field.places) {
      const bool launched = place.first == 0;
      place = {file_, launched ? 1 : place.first + lines_before, launched ? 1 : place.last + lines_before,
               launched ? launch_cell : cell};
    }
    one.fields.emplace_back(value.keys[at], std::move(field));
  }
  keep(std::move(one));
}

}  // namespace tidemark::exchange
