// (b) Requests that are JSON: options by their names, values known and hostile.
#include "tests/fuzz/mutate.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t, std::size_t);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  fuzz::Dice dice(seed + 1);
  if (fuzz::roll(dice, 20) == 0) return LLVMFuzzerMutate(data, size, most);
  fuzz::json root = fuzz::json::parse(data, data + size, nullptr, false);
  if (root.is_discarded()) root = fuzz::json::object();
  for (std::size_t n = 1 + fuzz::roll(dice, 3); n > 0; --n) fuzz::mutate(root, dice);
  return fuzz::store(root, data, most, size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::ask(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
