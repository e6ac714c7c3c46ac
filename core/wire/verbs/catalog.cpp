#include "core/engine/modelled.hpp"
#include "core/wire/json.hpp"
#include "core/wire/verbs/verbs.hpp"

namespace tidemark {
namespace {

Value texts(const std::vector<std::string>& list) {
  Value array = empty_array();
  for (const std::string& text : list) array.items.push_back(to_value(text));
  return array;
}

}  // namespace

Value run_catalog(const Engine& engine, const Value& request) {
  // "list" asks for "models" or "gpus" alone; "pattern" keeps the entries with a name that contains it.
  std::string pattern;
  if (const Value* value = request.find("pattern"); value != nullptr && value->is_string()) pattern = value->string;
  std::string list;
  if (const Value* value = request.find("list"); value != nullptr && value->is_string()) list = value->string;

  Value models = empty_array();
  for (const ModelEntry* model : engine.catalog().matching_models(pattern)) {
    Value row = empty_object();
    set(row, "id", model->id);
    set(row, "aliases", texts(model->aliases));
    set(row, "family", model->family);
    set(row, "kind", model->kind);
    set(row, "model_type", model->model_type());
    set(row, "parameters", std::int64_t{model->parameters()});
    set(row, "modelled", is_modelled(*model));
    models.items.push_back(std::move(row));
  }
  Value gpus = empty_array();
  for (const Gpu* gpu : engine.catalog().matching_gpus(pattern)) {
    Value row = empty_object();
    set(row, "name", gpu->name);
    set(row, "aliases", texts(gpu->aliases));
    set(row, "vendor", gpu->vendor);
    set(row, "architecture", gpu->architecture);
    set(row, "compute_capability", gpu->compute_capability);
    set(row, "marketed_bytes", std::int64_t{gpu->marketed_bytes});
    set(row, "visible_bytes", std::int64_t{gpu->usable_bytes()});
    set(row, "estimated", gpu->usable_is_estimated());
    gpus.items.push_back(std::move(row));
  }
  Value reply = empty_object();
  set(reply, "schema", 1);
  set(reply, "engine", engine_version());
  set(reply, "catalog", engine.catalog().date());
  if (list != "gpus") set(reply, "models", std::move(models));
  if (list != "models") set(reply, "gpus", std::move(gpus));
  return reply;
}

}  // namespace tidemark
