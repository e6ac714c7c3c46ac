// torch.nn.Module.parameters and its like, and the switch of a parameter that decides whether it is trained.
#include <algorithm>

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

/// What a loop over all of it takes one by one: parameters, or parts that stand in a list.
PyValue PyProgram::each(const PyValue& all, const PyObject* call) {
  PyValue one;
  if (call == nullptr) {
    one.part_of = all.part_of;
    one.part = all.part;
    return one;
  }
  const bool named = call->name == ".named_parameters" || call->name == ".named_modules";
  if (!named && call->name != ".parameters" && call->name != ".modules" && call->name != ".children") return one;
  one.part_of = call->part_of;
  one.part = call->part;
  if (!named) return one;
  PyValue pair = py_value(Kind::kList);
  pair.items.resize(2);
  pair.items[0].names_parameter = true;
  pair.items[1] = std::move(one);
  return pair;
}

/// `requires_grad = value`, or requires_grad_(value).
void PyProgram::set_trained(const PyValue& of, const PyValue& value, const Origin& place) {
  PyFreezing one;
  one.root = of.part_of >= 0 ? of.part_of : of.kind == Kind::kObject ? of.index : -1;
  one.part = of.part;
  one.place = place;
  one.test = frames_.back().test;
  one.trained = value.boolean;
  const bool tested = std::any_of(frames_.begin(), frames_.end() - 1, [](const Frame& f) { return f.test.is_known(); });
  one.is_known =
      of.part_of >= 0 && value.kind == Kind::kBool && !is_unsure() && !tested && of.part.find('?') == std::string::npos;
  // A function that nobody calls freezes what nobody hands it.
  if (freezing.size() > kMostFreezing || (resting_ && of.part_of < 0)) return;
  if (value.test.is_known() && !one.test.is_known() && of.part_of >= 0 && !is_unsure()) {  // = "head" in name
    one.is_known = one.trained = true;
    one.test = value.test;
    freezing.push_back(one);
    one.trained = false;
    one.test.none = !one.test.none;
  }
  freezing.push_back(std::move(one));
}

}  // namespace tidemark::exchange
