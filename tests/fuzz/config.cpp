// (c) The input is a config.json; what surrounds it follows from its bytes, so that each config meets many jobs.
#include "tests/fuzz/mutate.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t, std::size_t);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  fuzz::Dice dice(seed + 1);
  if (fuzz::roll(dice, 30) == 0) return LLVMFuzzerMutate(data, size, most);
  fuzz::json config = fuzz::json::parse(data, data + size, nullptr, false);
  if (config.is_discarded()) config = fuzz::json::object();
  for (std::size_t n = 1 + fuzz::roll(dice, 3); n > 0; --n) fuzz::mutate_config(config, dice);
  // Known: time and memory grow with the number of layers, up to a million of them. Most inputs stay shallow.
  if (config.is_object() && fuzz::roll(dice, 20) != 0) {
    for (const char* key : {"num_hidden_layers", "n_layer", "num_layers", "n_layers"})
      if (config.contains(key) && config[key].is_number() && !(config[key] <= 100))
        config[key] = 1 + fuzz::roll(dice, 8);
  }
  return fuzz::store(config, data, most, size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const char* const kJobs[] = {
      R"("micro_batch_size":1,"sequence_length":128)",
      R"("method":"lora","adapter":{"r":16},"micro_batch_size":2,"sequence_length":512,"precision":"amp_bf16")",
      R"("method":"qlora","gradient_checkpointing":"full","sequence_length":1024)",
      R"("attention":"eager","precision":"fp32","loss":"chunked","optimizer":"adafactor")",
      R"("attention":"flash_attention_2","precision":"pure_bf16","gradient_checkpointing":{"every":3},"compile":"per_block")",
      R"("optimizer":"galore_adamw","padding":true,"gpu":"A100-80GB")",
      R"("optimizer":"muon","loss":"liger","liger":["rms_norm","swiglu","rope"],"packing":true)",
      R"("optimizer_in_backward":true,"optimizer":"adamw_8bit","gradient_checkpointing":{"selective":["core_attn"]})"};
  std::uint32_t hash = 2166136261U;
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 16777619U;
  const std::string config(reinterpret_cast<const char*>(data), size);
  fuzz::ask(std::string{"{\"schema\":1,"} + kJobs[(hash >> 7) % 8] + ",\"config\":" + config + "}");
  return 0;
}
