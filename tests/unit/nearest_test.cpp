#include "core/units/nearest.hpp"

#include <string_view>
#include <vector>

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

const std::vector<std::string_view> kWords = {"micro_batch_size", "sequence_length", "adamw_torch", "adafactor", "r"};

TEST_CASE("a misspelling finds its word") {
  CHECK(nearest("micro_batchsize", kWords) == "micro_batch_size");
  CHECK(nearest("sequnece_length", kWords) == "sequence_length");
  CHECK(nearest("Micro-Batch-Size", kWords) == "micro_batch_size");
  CHECK(nearest("adafctor", kWords) == "adafactor");
}

TEST_CASE("a beginning finds the whole") {
  CHECK(nearest("adamw", kWords) == "adamw_torch");
}

TEST_CASE("what resembles nothing finds nothing") {
  CHECK(nearest("wombat", kWords).empty());
  CHECK(nearest("", kWords).empty());
  CHECK(nearest(std::string(100000, 'x'), kWords).empty());
}

TEST_CASE("a swap of neighbours is one edit") {
  const std::vector<std::string_view> words = {"abcd", "abdc"};
  CHECK(nearest("bacd", words) == "abcd");
}

}  // namespace
}  // namespace tidemark
