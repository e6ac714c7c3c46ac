#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {

Value run_fit(const Engine& engine, const Value& request) {
  const auto asks_for_cards = [](const Value* value) { return value != nullptr && !value->is_null(); };
  Value everything = request;
  if (!asks_for_cards(request.find("gpu")) && !asks_for_cards(request.find("gpus"))) {
    Value names = empty_array();
    for (const Gpu& gpu : engine.catalog().gpus()) names.items.push_back(to_value(gpu.name));
    Value filtered = empty_object();
    for (const Value::Member& member : request.members) {
      if (member.key != "gpu" && member.key != "gpus") filtered.members.push_back(member);
    }
    set(filtered, "gpus", std::move(names));
    everything = std::move(filtered);
  }
  const Answer answer = engine.answer(everything);
  if (!answer.estimate) return write_answer(answer);
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", answer.engine);
  set(reply, "catalog", answer.catalog);
  set(reply, "allocated", write_range(answer.estimate->allocated));
  set(reply, "fits", write_fits(answer.fits));
  set(reply, "issues", write_issues(answer.issues));
  return reply;
}

}  // namespace tidemark
