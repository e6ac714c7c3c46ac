// What processors make of a picture's size. The grids are what transformers 5.12.1's own get_optimal_tiled_canvas
// gives: models/got_ocr2/image_processing_got_ocr2.py with tiles of 448 pixels, and
// models/cohere2_vision/image_processing_cohere2_vision.py with tiles of 364, of at most 12.
#include "core/job/pictures.hpp"

#include "core/layers/program.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

struct Grid {
  Count across, down;
  Count pieces() const { return across * down > 1 ? across * down + 1 : 1; }
};

struct Case {
  Count height, width;
  Grid closest, covering;
};

constexpr Case kCases[] = {
    {448, 448, {1, 1}, {2, 2}},  {720, 1280, {4, 2}, {4, 2}},  {1080, 1920, {4, 2}, {4, 3}},
    {600, 600, {1, 1}, {2, 2}},  {900, 900, {2, 2}, {3, 3}},   {364, 364, {1, 1}, {1, 1}},
    {300, 200, {2, 3}, {1, 1}},  {2000, 500, {1, 4}, {2, 6}},  {500, 2000, {4, 1}, {6, 2}},
    {1344, 896, {2, 3}, {3, 4}}, {448, 900, {2, 1}, {3, 2}},   {1000, 64, {1, 12}, {1, 3}},
    {1390, 681, {2, 4}, {2, 4}}, {1681, 2730, {3, 2}, {4, 3}}, {261, 360, {4, 3}, {1, 1}},
    {2258, 449, {1, 5}, {2, 6}}, {301, 2142, {7, 1}, {6, 1}},  {416, 1840, {4, 1}, {6, 2}},
    {1049, 435, {2, 5}, {2, 3}}, {306, 2380, {8, 1}, {7, 1}},
};

Architecture seeing(PictureRule rule, Count side) {
  Architecture whole;
  static const Program kLanguage;
  whole.language = &kLanguage;
  whole.facts.pictures = rule;
  whole.parts.resize(1);
  whole.parts.front().image_size = side;
  return whole;
}

TrainingJob with_picture(Count height, Count width) {
  TrainingJob job;
  job.images_per_sample = 1;
  job.image_height = height;
  job.image_width = width;
  return job;
}

Count tiles_of(PictureRule rule, Count side, const Case& c) {
  TrainingJob job = with_picture(c.height, c.width);
  Issues issues;
  settle_pictures(seeing(rule, side), job, issues);
  CHECK(job.image_height == 0);
  return job.image_tiles;
}

}  // namespace

TEST_CASE("a picture is cut into as many tiles as the processor of its model cuts it into") {
  for (const Case& c : kCases) {
    CAPTURE(c.height, c.width);
    CHECK(tiles_of(PictureRule::kClosestTiles, 448, c) == c.closest.pieces());
    CHECK(tiles_of(PictureRule::kCoveringTiles, 364, c) == c.covering.pieces());
  }
}

TEST_CASE("tiles that a request states are kept") {
  TrainingJob job = with_picture(720, 1280);
  job.image_tiles = 3;
  Issues issues;
  settle_pictures(seeing(PictureRule::kClosestTiles, 448), job, issues);
  CHECK(job.image_tiles == 3);
  CHECK(issues.empty());
}

TEST_CASE("a picture whose size the processor does not keep is of the tower's size, and that is said") {
  TrainingJob job = with_picture(448, 448);
  Issues issues;
  settle_pictures(seeing(PictureRule::kOwnSize, 336), job, issues);
  CHECK(job.image_height == 0);
  REQUIRE(issues.size() == 1);
  CHECK(issues.front().path == "/image_size");
}

TEST_CASE("a picture of the tower's own size is taken without a word") {
  TrainingJob job = with_picture(336, 336);
  Issues issues;
  settle_pictures(seeing(PictureRule::kOwnSize, 336), job, issues);
  CHECK(issues.empty());
}

}  // namespace tidemark
