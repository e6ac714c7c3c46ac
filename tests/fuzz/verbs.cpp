// (d) Advice, maps and the fit of every card.
#include "tests/fuzz/mutate.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  fuzz::Dice dice(seed + 1);
  fuzz::json root = fuzz::json::parse(data, data + size, nullptr, false);
  if (root.is_discarded()) root = fuzz::json::object();
  for (std::size_t n = 1 + fuzz::roll(dice, 3); n > 0; --n) fuzz::mutate(root, dice);
  if (!root.is_object()) root = fuzz::json::object();
  // A search asks hundreds of times: shallow models keep a sanitised one under a second.
  if (!root.contains("config") && fuzz::roll(dice, 20) != 0) {
    root.erase("model");
    root.erase("parameters");
    root["config"] = fuzz::vocabulary().configs[fuzz::roll(dice, fuzz::vocabulary().configs.size())];
  }
  if (root.contains("config") && root["config"].is_object()) {
    for (const char* key : {"num_hidden_layers", "n_layer", "num_layers", "n_layers"})
      if (root["config"].contains(key)) root["config"][key] = 1 + fuzz::roll(dice, 3);
    root["config"].erase("layer_types");
  }
  static const char* const kVerbs[] = {"advise", "map", "fit"};
  const std::size_t verb = fuzz::roll(dice, 3);
  root["verb"] = kVerbs[verb];
  if (verb == 0 && !root.contains("gpu"))
    root["gpu"] = fuzz::vocabulary().gpus[fuzz::roll(dice, fuzz::vocabulary().gpus.size())];
  if (verb == 1) {
    for (const char* key : {"batches", "sequences"}) {
      fuzz::json list = fuzz::json::array();
      for (std::size_t n = fuzz::roll(dice, 6); n > 0; --n) list.push_back(fuzz::some_number(dice));
      if (fuzz::roll(dice, 3) != 0)
        for (auto& item : list) item = 1 + fuzz::roll(dice, 5000);
      if (!list.empty()) root[key] = list;
    }
  }
  return fuzz::store(root, data, most, size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::ask(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
