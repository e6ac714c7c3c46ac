// Cards are found by what people type: tests/catalog/gpu_strings.csv holds such names and what they mean.
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/catalog/gpu_names.hpp"
#include "core/fit/cards.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

const std::vector<Gpu>& gpus() {
  return engine().catalog().gpus();
}

Answer answer_to(const std::string& request) {
  Issues issues;
  return engine().answer(parse_json(request, "", issues));
}

bool has_code(const Issues& issues, std::string_view code) {
  for (const Issue& issue : issues) {
    if (issue.code == code) return true;
  }
  return false;
}

double usable_gib(std::string_view name) {
  return static_cast<double>(find_gpu(gpus(), name)->gpu.usable_bytes()) / static_cast<double>(kGiB);
}

}  // namespace

TEST_CASE("cards as people type them are the cards that they mean") {
  std::stringstream lines(text_of(std::string{TIDEMARK_CATALOG} + "/../tests/catalog/gpu_strings.csv"));
  std::string line;
  std::getline(lines, line);
  int all = 0;
  while (std::getline(lines, line)) {
    CAPTURE(line);
    const std::size_t first = line.find(',');
    const std::size_t last = line.rfind(',');
    const std::optional<GpuMatch> match = find_gpu(gpus(), line.substr(0, first));
    REQUIRE(match);
    const std::regex wanted(line.substr(first + 1, last - first - 1), std::regex::icase);
    CHECK(std::regex_search(match->gpu.name, wanted));
    const std::string sizes = "/" + line.substr(last + 1) + "/";
    CHECK(sizes.find("/" + std::to_string(match->gpu.marketed_bytes / kGiB) + "/") != std::string::npos);
    ++all;
  }
  CHECK(all == 93);
}

TEST_CASE("every card is found by its own names, also with a count") {
  for (const Gpu& gpu : gpus()) {
    CAPTURE(gpu.name);
    CHECK(find_gpu(gpus(), gpu.name)->gpu.name == gpu.name);
    for (const std::string& alias : gpu.aliases) {
      CAPTURE(alias);
      CHECK(find_gpu(gpus(), alias)->gpu.name == gpu.name);
    }
    for (const Gpu::Instance& instance : gpu.instances) {
      CAPTURE(instance.name);
      CHECK(find_gpu(gpus(), instance.name)->gpu.name == gpu.name);
      CHECK(find_gpu(gpus(), instance.name)->count == instance.count);
    }
  }
  for (const char* typed : {"2x t4", "2 x T4", "2xT4", "t4 x2", "T4 x 2", "2 * t4", "t4x2", "T4:2", "gpu:t4:2"}) {
    CAPTURE(typed);
    REQUIRE(find_gpu(gpus(), typed));
    CHECK(find_gpu(gpus(), typed)->gpu.name == "NVIDIA T4");
    CHECK(find_gpu(gpus(), typed)->count == 2);
  }
}

TEST_CASE("what logs say of a card is what is usable") {
  // GiB as torch's messages or Metal state them; sources in catalog/gpus.json and core/runtime/gpu.cpp.
  CHECK(usable_gib("GB10") == Approx(121.69).margin(0.01));
  CHECK(usable_gib("RTX A6000") == Approx(47.53).margin(0.01));
  CHECK(usable_gib("7900 xtx") == Approx(23.98).margin(0.01));
  CHECK(usable_gib("1080 ti") == Approx(10.91).margin(0.01));
  CHECK(usable_gib("a4000") == Approx(15.61).margin(0.01));
  CHECK(usable_gib("a30") == Approx(23.53).margin(0.01));
  CHECK(usable_gib("m1 max 64gb") == 48.0);
  CHECK(usable_gib("m3 max") == 96.0);
  CHECK(usable_gib("m2 ultra") == 144.0);
  CHECK(usable_gib("m3 ultra") == 384.0);
}

TEST_CASE("an amount of memory in place of a card is a card sold with it") {
  for (const char* typed : {"24gb", "24 GB", "24GB", "24g"}) {
    CAPTURE(typed);
    REQUIRE(read_memory_text(typed));
    CHECK(read_memory_text(typed)->vram_gb == 24.0);
  }
  CHECK(read_memory_text("24 GiB")->memory_gib == 24.0);
  CHECK_FALSE(read_memory_text("4090 24GB"));
  CHECK_FALSE(read_memory_text("24"));

  const std::string job = R"({"model": "gpt2", "sequence_length": 64, "gpu": )";
  const Answer typed = answer_to(job + "\"24gb\"}");
  const Answer stated = answer_to(job + R"({"vram_gb": 24}})");
  REQUIRE(typed.fits.size() == 1);
  REQUIRE(stated.fits.size() == 1);
  CHECK(typed.fits.front().usable == stated.fits.front().usable);
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); };
  CHECK(gib(card_of_size(24, gpus()).card.visible) == Approx(23.5).margin(0.05));
  CHECK(gib(card_of_size(80, gpus()).card.visible) == Approx(79.1).margin(0.05));
}

TEST_CASE("several cards or a rented machine are answered for one card, and the answer says so") {
  const Answer answer = answer_to(R"({"model": "gpt2", "sequence_length": 64, "gpu": "p4d.24xlarge"})");
  REQUIRE(answer.fits.size() == 1);
  CHECK(answer.fits.front().gpu == "NVIDIA A100 SXM 40GB");
  CHECK(has_code(answer.issues, "ONE_CARD"));
  CHECK(has_code(answer_to(R"({"model": "gpt2", "sequence_length": 64, "gpu": "2x t4"})").issues, "ONE_CARD"));
  CHECK_FALSE(has_code(answer_to(R"({"model": "gpt2", "sequence_length": 64, "gpu": "t4"})").issues, "ONE_CARD"));
}

TEST_CASE("a card's figures do not depend on the cards that are asked beside it") {
  const std::string job = R"({"verb": "fit", "model": "tinyllama", "sequence_length": 256, "micro_batch_size": 2, )";
  const auto rows = [&](const std::string& cards) {
    Issues issues;
    return ask_fit(engine(), parse_json(job + "\"gpus\": " + cards + "}", "", issues)).cards;
  };
  for (const char* asked : {"\"RX 6800 XT\"", "\"T4\"", "{\"memory_gib\": 30}", "\"H100\""}) {
    const std::vector<CardFit> alone = rows("[" + std::string{asked} + "]");
    REQUIRE(alone.size() == 1);
    for (const char* beside : {"\"H200\"", "\"V100\"", "\"A10G\""}) {
      for (const std::string& list :
           {"[" + std::string{asked} + ", " + beside + "]", "[" + std::string{beside} + ", " + asked + "]"}) {
        CAPTURE(list);
        bool seen = false;
        for (const CardFit& row : rows(list)) {
          if (row.fit.gpu != alone.front().fit.gpu) continue;
          seen = true;
          CHECK(row.allocated.expected == alone.front().allocated.expected);
          CHECK(row.fit.verdict == alone.front().fit.verdict);
        }
        CHECK(seen);
      }
    }
  }
}

}  // namespace tidemark
