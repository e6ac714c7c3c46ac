#include "core/report/text.hpp"

#include <string>
#include <utility>

#include "core/report/layout.hpp"
#include "core/report/markdown.hpp"
#include "core/report/words.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Answer small_answer() {
  Answer answer;
  answer.model = "some/model";
  Estimate e;
  e.allocated = {9 * kGiB, 10 * kGiB, 11 * kGiB};
  e.reserved = {10 * kGiB, 11 * kGiB, 12 * kGiB};
  e.device = {11 * kGiB, 12 * kGiB, 13 * kGiB};
  e.first_step_allocated = 8 * kGiB;
  e.peak = {Phase::kBackward, "model.layers.3.mlp.down_proj", "rank 0"};
  e.breakdown = {{Category::kWeights,
                  6 * kGiB,
                  {{"a_proj: weight", 4 * kGiB, "2·P", "2 × 2 147 483 648 B", "a source", Confidence::kExact},
                   {"b_proj: weight", 2 * kGiB, "2·P", "", "", Confidence::kModelled}}},
                 {Category::kActivations, 4 * kGiB, {{"x", 4 * kGiB, "", "", "", Confidence::kMeasured}}}};
  for (int i = 0; i < 100; ++i) {
    Instant instant;
    instant.label = "forward: layer " + std::to_string(i);
    instant.phase = i < 50 ? Phase::kForward : Phase::kBackward;
    instant.total = (i < 50 ? i : 100 - i) * kGiB / 10;
    instant.bytes[0] = instant.total;
    e.timeline.push_back(instant);
  }
  e.parameters = {1000, 10, 1000, 990, 990};
  e.attention_kernel = "flash";
  answer.estimate = e;
  Fit fit;
  fit.gpu = "A CARD";
  fit.usable = 9 * kGiB;
  fit.verdict = Verdict::kDoesNotFit;
  fit.headroom = -kGiB;
  fit.utilization = 10.0 / 9.0;
  answer.fits.push_back(fit);
  answer.issues.push_back({"SOME_CODE", Severity::kWarning, "/a/b", "Something is odd.", "c"});
  return answer;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a report names the peak, its range, its moment and the verdict") {
  const std::string text = render_text(small_answer());
  CHECK(has(text, "10.00 GiB  (9.00 – 11.00 GiB)  10.74 GB"));
  CHECK(has(text, "in backward, at model.layers.3.mlp.down_proj"));
  CHECK(has(text, "does not fit"));
  CHECK(has(text, "1.00 GiB too much"));
  CHECK(has(text, "weights"));
  CHECK(has(text, "SOME_CODE"));
  CHECK(text.back() == '\n');
}

TEST_CASE("a preference is named before what is trained") {
  TrainingJob job;
  CHECK(method_in_words(job) == "full fine-tuning");
  for (const auto& [preference, words] :
       {std::pair{Preference::kDpo, "DPO, full fine-tuning"}, std::pair{Preference::kKto, "KTO, full fine-tuning"},
        std::pair{Preference::kOrpo, "ORPO, full fine-tuning"}, std::pair{Preference::kCpo, "CPO, full fine-tuning"},
        std::pair{Preference::kSimpo, "SimPO, full fine-tuning"},
        std::pair{Preference::kReward, "reward model, full fine-tuning"},
        std::pair{Preference::kGrpo, "GRPO, full fine-tuning"}, std::pair{Preference::kTpo, "TPO, full fine-tuning"},
        std::pair{Preference::kOnlineDpo, "online DPO, full fine-tuning"}}) {
    job.preference = preference;
    CHECK(method_in_words(job) == words);
  }
}

TEST_CASE("no line is wider than asked, none ends in a space") {
  for (std::size_t width : {40U, 60U, 80U, 120U}) {
    for (bool explain : {false, true}) {
      TextStyle style;
      style.width = width;
      style.explain = explain;
      const std::string text = render_text(small_answer(), style);
      std::size_t start = 0;
      while (start < text.size()) {
        const std::size_t end = text.find('\n', start);
        const std::string line = text.substr(start, end - start);
        CAPTURE(width, line);
        if (width >= 60) CHECK(columns_of(line) <= width);
        if (!line.empty()) CHECK(line.back() != ' ');
        start = end + 1;
      }
    }
  }
}

TEST_CASE("colour only when told, ASCII when told") {
  CHECK(!has(render_text(small_answer()), "\x1b"));
  TextStyle style;
  style.colour = true;
  CHECK(has(render_text(small_answer(), style), "\x1b[31m"));
  style.colour = false;
  style.unicode = false;
  for (char c : render_text(small_answer(), style)) REQUIRE(static_cast<unsigned char>(c) < 0x80);
}

TEST_CASE("exact bytes and explanations on request") {
  TextStyle style;
  CHECK(!has(render_text(small_answer(), style), "10 737 418 240 B"));
  CHECK(!has(render_text(small_answer(), style), "a source"));
  style.bytes = true;
  style.explain = true;
  CHECK(has(render_text(small_answer(), style), "10 737 418 240 B"));
  CHECK(has(render_text(small_answer(), style), "exact: a source"));
  CHECK(has(render_text(small_answer(), style), "2·P → 2 × 2 147 483 648 B"));
}

TEST_CASE("a long timeline keeps the moments that matter") {
  const std::string text = render_text(small_answer());
  CHECK(has(text, "layer 49"));
  CHECK(has(text, "layer 99"));
  CHECK(!has(text, "layer 20"));
}

TEST_CASE("Markdown has the same figures") {
  const std::string text = render_markdown(small_answer(), true);
  CHECK(has(text, "## some/model: 10.00 GiB"));
  CHECK(has(text, "| **total** | **10.00 GiB (10 737 418 240 B)** | |"));
  CHECK(has(text, "**does not fit**"));
  CHECK(has(text, "a source"));
}

TEST_CASE("shares are rounded to what can be read") {
  CHECK(percent(0.0) == "0.0 %");
  CHECK(percent(0.0001) == "< 0.1 %");
  CHECK(percent(0.0123) == "1.2 %");
  CHECK(percent(0.0996) == "10 %");
  CHECK(percent(0.5) == "50 %");
  CHECK(percent(1.0) == "100 %");
}

TEST_CASE("amounts keep digits that say something") {
  CHECK(readable(kGiB) == "1.00 GiB");
  CHECK(readable(kGiB / 4) == "0.25 GiB");
  CHECK(readable(8519680 * 2) == "16.3 MiB");
  CHECK(readable(512) == "0.5 KiB");
  CHECK(readable(0) == "0.00 GiB");
  CHECK(readable(-kMiB) == "-1.0 MiB");
}

TEST_CASE("layout counts columns, not bytes") {
  CHECK(columns_of("×·–") == 3);
  CHECK(pad_right("×", 3) == "×  ");
  CHECK(pad_left("×", 3) == "  ×");
  CHECK(shorten("model.layers.31.mlp", 11) == "model…1.mlp");
  CHECK(shorten("short", 11) == "short");
  CHECK(wrap("one two three", 9, 2) == "one two\n  three");
  CHECK(bar(0.5, 4, true) == "██");
  CHECK(bar(0.5, 4, false) == "##");
  CHECK(bar(2.0, 4, false) == "####");
  CHECK(bar(0.0, 4, true).empty());
  CHECK(to_ascii("2 × 3 · 4 → €") == "2 x 3 * 4 -> ?");
}

TEST_CASE("the reference lists every option") {
  const std::string text = render_reference();
  CHECK(has(text, "### `adapter.r`"));
  CHECK(has(text, "`--lora-r`"));
  CHECK(has(text, "not modelled yet"));
}

}  // namespace
}  // namespace tidemark
