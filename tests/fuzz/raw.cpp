// (a) Raw bytes to the seam.
#include "tests/fuzz/ask.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::ask(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
