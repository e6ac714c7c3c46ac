#include "core/fit/fit.hpp"

#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

const Card kCard = {"a card", 24 * kGiB, kGiB / 2, ""};

Range needs(double low, double expected, double high) {
  const auto bytes = [](double gib) { return static_cast<Bytes>(gib * static_cast<double>(kGiB)); };
  return {bytes(low), bytes(expected), bytes(high)};
}

TEST_CASE("usable memory is what torch sees less the context") {
  const Fit fit = check_fit(needs(9, 10, 11), kCard);
  CHECK(fit.usable == 24 * kGiB - kGiB / 2);
  CHECK(fit.headroom == fit.usable - 10 * kGiB);
  CHECK(fit.utilization == Approx(10.0 / 23.5));
}

TEST_CASE("the verdict compares the range with usable memory") {
  CHECK(check_fit(needs(20, 22, 23.5), kCard).verdict == Verdict::kFits);
  CHECK(check_fit(needs(20, 22, 23.6), kCard).verdict == Verdict::kTight);
  CHECK(check_fit(needs(20, 23.5, 24), kCard).verdict == Verdict::kTight);
  CHECK(check_fit(needs(23.6, 23.7, 24), kCard).verdict == Verdict::kDoesNotFit);
  CHECK(check_fit(needs(23.6, 23.7, 24), kCard).headroom < 0);
}

TEST_CASE("a card within the range is tight, on either side of what is expected") {
  CHECK(check_fit(needs(23, 23.6, 24), kCard).verdict == Verdict::kTight);
  CHECK(check_fit(needs(23.5, 23.6, 24), kCard).verdict == Verdict::kTight);
  CHECK(check_fit(needs(23, 23.4, 24), kCard).verdict == Verdict::kTight);
}

TEST_CASE("a card falls short when more is expected than it gives, tight or not") {
  CHECK(falls_short(check_fit(needs(30, 31, 32), kCard)));
  CHECK(falls_short(check_fit(needs(23, 23.6, 24), kCard)));
  CHECK_FALSE(falls_short(check_fit(needs(23, 23.4, 24), kCard)));
  CHECK_FALSE(falls_short(check_fit(needs(1, 1, 1), kCard)));
  CHECK_FALSE(falls_short(check_fit(needs(1, 1, 1), {"a card", 0, 0, ""})));
}

TEST_CASE("stated overheads are taken off") {
  Overrides overrides;
  overrides.misc_overhead_gib = 1.0;
  overrides.fragmentation_gib = 2.0;
  overrides.cuda_context_gib = 1.0;
  CHECK(check_fit(needs(1, 1, 1), kCard, overrides).usable == 20 * kGiB);
  overrides.fragmentation_gib = 30.0;
  const Fit nothing_left = check_fit(needs(1, 1, 1), kCard, overrides);
  CHECK(nothing_left.verdict == Verdict::kDoesNotFit);
  CHECK(!nothing_left.reason.empty());
}

TEST_CASE("an unknown memory gives an unknown verdict, with the reason") {
  const Fit fit = check_fit(needs(1, 1, 1), {"a card", 0, 0, ""});
  CHECK(fit.verdict == Verdict::kUnknown);
  CHECK(!fit.reason.empty());
}

}  // namespace
}  // namespace tidemark
