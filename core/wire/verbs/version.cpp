#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {

Value run_version(const Engine& engine, const Value&) {
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", engine_version());
  set(reply, "catalog", engine.catalog().date());
  return reply;
}

}  // namespace tidemark
