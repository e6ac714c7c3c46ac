#include "core/exchange/accelerate_keys.hpp"
#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {
namespace {

using Kind = PyValue::Kind;

void put_value(Node& tree, const std::string& path, const PyValue& value) {
  if (value.kind == Kind::kBool || value.kind == Kind::kInteger) {
    put_node(tree, path, to_node(value));
  } else if (value.is_string() || value.kind == Kind::kSymbol) {
    put_node(tree, path, text_node(last_word(value.text), 0));
  }
}

void put_fsdp(const PyJob& job, Node& tree, const PyObject& plugin) {
  for (const auto& [key, value] : plugin.fields) {
    if (key != "cpu_offload") {
      put_value(tree, "fsdp_config.fsdp_" + key, value);
      continue;
    }
    const PyObject* made = job.at(&value);  // CPUOffload(offload_params=True)
    const PyValue* offload = made == nullptr ? &value : made->find("offload_params");
    if (offload != nullptr) put_value(tree, "fsdp_config.fsdp_offload_params", *offload);
  }
}

void put_deepspeed(Node& tree, const PyObject& plugin) {
  for (const auto& [key, value] : plugin.fields) {
    if (key == "hf_ds_config" && value.is_string())
      put_node(tree, "deepspeed_config.deepspeed_config_file", text_node(value.text, 0));
    else
      put_value(tree, "deepspeed_config." + key, value);
  }
}

}  // namespace

void read_plugins(PyJob& job) {
  if (job.accelerator == nullptr) return;
  const PyObject* shards = job.at(job.accelerator->find("fsdp_plugin"));
  const PyObject* zero = job.at(job.accelerator->find("deepspeed_plugin"));
  if (shards == nullptr && zero == nullptr) return;
  Node tree;
  put_node(tree, "distributed_type", text_node(shards != nullptr ? "FSDP" : "DEEPSPEED", 0));
  if (const PyValue* mixed = job.accelerator->find("mixed_precision"); mixed != nullptr)
    put_value(tree, "mixed_precision", *mixed);
  if (shards != nullptr)
    put_fsdp(job, tree, *shards);
  else
    put_deepspeed(tree, *zero);
  const Origin place = (shards != nullptr ? shards : zero)->place;
  Reading scratch;
  Keys keys(tree, job.reading.file, scratch);
  read_accelerate_sharding(keys);
  keys.tell_unread();
  for (const Finding& one : scratch.findings) job.say(one.path, one.value, {place}, one.assumed);
  for (const Unread& one : scratch.unread) job.reading.unread.push_back({one.key, place, one.harmless});
  for (const std::string& one : scratch.unknowns) job.unknown(one);
  job.reading.companions.insert(job.reading.companions.end(), scratch.companions.begin(), scratch.companions.end());
}

}  // namespace tidemark::exchange
