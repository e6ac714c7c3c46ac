#include "core/exchange/python/object.hpp"

#include <algorithm>

namespace tidemark::exchange {
namespace {

bool ends_so(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  return name.size() == ending.size() || ending.front() == '.' || name[name.size() - ending.size() - 1] == '.';
}

}  // namespace

PyObject::PyObject() = default;
PyObject::PyObject(const PyObject& other) = default;
PyObject::PyObject(PyObject&& other) noexcept = default;
PyObject& PyObject::operator=(const PyObject& other) = default;
PyObject& PyObject::operator=(PyObject&& other) noexcept = default;
PyObject::~PyObject() = default;

const PyValue* PyObject::find(std::string_view key) const {
  for (std::size_t at = fields.size(); at-- > 0;) {
    if (fields[at].first != key) continue;
    asked.emplace(key);
    return &fields[at].second;
  }
  return nullptr;
}

const PyValue* PyObject::find(std::string_view key, std::size_t position) const {
  const PyValue* named = find(key);
  return named != nullptr || position >= positional.size() ? named : &positional[position];
}

bool PyObject::is(std::string_view ending) const {
  return ends_so(name, ending) ||
         std::any_of(bases.begin(), bases.end(), [&](const std::string& base) { return ends_so(base, ending); });
}

}  // namespace tidemark::exchange
