// What processors make of a picture's size. The grids are what transformers 5.12.1's own get_optimal_tiled_canvas
// gives: models/got_ocr2/image_processing_got_ocr2.py with tiles of 448 pixels, and
// models/cohere2_vision/image_processing_cohere2_vision.py with tiles of 364, of at most 12.
#include "core/job/pictures.hpp"

#include <string>
#include <utility>

#include "core/families/family.hpp"
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
  REQUIRE(issues.size() == 1);  // the size, which says otherwise, counts for nothing
  CHECK(issues[0].path == "/image_size");
  issues.clear();
  job.image_height = job.image_width = 0;
  settle_pictures(seeing(PictureRule::kClosestTiles, 448), job, issues);
  CHECK(issues.empty());
}

// models/llama4/image_processing_llama4.py: get_best_fit of find_supported_resolutions(16, 336).
TEST_CASE("Llama 4's pictures are cut into up to sixteen tiles") {
  constexpr Case kPictures[] = {{336, 336, {}, {1, 1}},   {448, 448, {}, {2, 2}},  {720, 1280, {}, {4, 3}},
                                {1080, 1920, {}, {5, 3}}, {2000, 500, {}, {2, 6}}, {100, 1500, {}, {5, 1}},
                                {1000, 1000, {}, {3, 3}}, {300, 200, {}, {1, 1}},  {364, 364, {}, {2, 2}},
                                {3000, 4000, {}, {4, 3}}, {480, 640, {}, {2, 2}}};
  Architecture whole = seeing(type_named("llama4")->facts.pictures, 336);
  whole.facts = type_named("llama4")->facts;
  for (const Case& c : kPictures) {
    CAPTURE(c.height, c.width);
    TrainingJob job = with_picture(c.height, c.width);
    Issues issues;
    settle_pictures(whole, job, issues);
    CHECK(job.image_tiles == c.covering.pieces());
  }
}

TEST_CASE("classes whose processor cuts pictures take a stated number of tiles") {
  for (const char* type : {"aria", "aya_vision", "cohere2_vision", "deepseek_ocr2", "got_ocr2", "idefics2", "idefics3",
                           "internvl", "internvl_chat", "llama4", "ovis2", "qianfan_ocr", "smolvlm"}) {
    CAPTURE(type);
    Architecture whole = seeing(PictureRule::kAsTheyAre, 336);
    whole.facts = type_named(type)->facts;
    TrainingJob job;
    job.images_per_sample = 1;
    job.image_tiles = 4;
    Issues issues;
    settle_pictures(whole, job, issues);
    CHECK(issues.empty());
    CHECK(job.image_tiles == 4);
  }
}

TEST_CASE("a number of tiles is said to have no effect on a class that cuts no pictures") {
  Architecture whole = seeing(PictureRule::kAsTheyAre, 336);
  TrainingJob job = with_picture(336, 336);
  job.image_tiles = 4;
  for (const bool tiles : {true, false}) {
    whole.facts.tiles = tiles;
    Issues issues;
    settle_pictures(whole, job, issues);
    CHECK(issues.empty() == tiles);
  }
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

// models/idefics3/image_processing_idefics3.py: get_number_of_image_patches, with tiles of 364, 384 and 512 pixels
// alike.
TEST_CASE("Idefics3's pictures become four tiles long") {
  struct Picture {
    Count height, width, tiles;
  };
  constexpr Picture kPictures[] = {{720, 1280, 13}, {1280, 720, 13}, {600, 600, 17},  {100, 1500, 5}, {365, 2000, 5},
                                   {999, 1000, 17}, {300, 200, 13},  {1344, 896, 13}, {2000, 700, 9}, {3000, 2250, 13}};
  for (const Count side : {364, 384, 512}) {
    for (const Picture& p : kPictures) {
      CAPTURE(side, p.height, p.width);
      TrainingJob job = with_picture(p.height, p.width);
      Issues issues;
      settle_pictures(seeing(PictureRule::kFourTiles, side), job, issues);
      CHECK(job.image_tiles == p.tiles);
    }
  }
}

TEST_CASE("a picture as large as the tower's tile is one tile of Idefics3's") {
  TrainingJob job = with_picture(384, 384);
  Issues issues;
  settle_pictures(seeing(PictureRule::kFourTiles, 384), job, issues);
  CHECK(job.image_tiles == 0);
}

// models/pixtral/image_processing_pixtral.py: get_resize_output_image_size, before it rounds up to whole patches.
TEST_CASE("no side of a picture is longer than Pixtral's tower takes") {
  const auto shrunk = [](Count height, Count width) {
    TrainingJob job = with_picture(height, width);
    Issues issues;
    settle_pictures(seeing(PictureRule::kLongestSide, 1540), job, issues);
    return std::pair{job.image_height, job.image_width};
  };
  CHECK(shrunk(3000, 4000) == std::pair<Count, Count>{1155, 1540});
  CHECK(shrunk(4000, 500) == std::pair<Count, Count>{1540, 192});
  CHECK(shrunk(1540, 1000) == std::pair<Count, Count>{1540, 1000});
}

TEST_CASE("the size of a picture that is taken unasked is told, and that a large one may be shrunk") {
  const auto said = [](PictureRule rule, Count height, Count width) {
    TrainingJob job = with_picture(height, width);
    Issues issues;
    settle_pictures(seeing(rule, 448), job, issues);
    CHECK(job.image_height <= height);
    return issues.empty() ? std::string{} : issues.front().path;
  };
  CHECK(said(PictureRule::kPixels, 0, 0) == "/image_size");
  CHECK(said(PictureRule::kAsTheyAre, 0, 0) == "/image_size");
  CHECK(said(PictureRule::kPixels, 720, 1280).empty());
  CHECK(said(PictureRule::kPixels, 3000, 4000) == "/image_size");
}

}  // namespace tidemark
