#include "core/wire/verbs/verbs.hpp"
#include "core/wire/write_answer.hpp"

namespace tidemark {

Value run_estimate(const Engine& engine, const Value& request) {
  return write_answer(engine.answer(request));
}

}  // namespace tidemark
