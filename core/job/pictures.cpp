// A video is so many pictures: of Qwen's models one for each pair of frames (transformers 5.12
// models/qwen2_vl/modeling_qwen2_vl.py: get_video_features runs the tower of get_image_features, whose attention stays
// within a step of time: cu_seqlens), of the others one for each frame, in one piece
// (models/smolvlm/video_processing_smolvlm.py, models/internvl/processing_internvl.py: num_patches 1 for each frame;
// models/llava_next_video, models/llava_onevision: get_video_features).
#include "core/job/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace tidemark {
namespace {

void take_wanted_picture(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (architecture.facts.text_alone || job.images_per_sample > 0 || job.video_frames > 0) return;
  job.images_per_sample = 1;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/images_per_sample",
                    "This model wants a picture with every text: one is taken.", "1"});
}

// transformers 5.12 models/got_ocr2/image_processing_got_ocr2.py: get_optimal_tiled_canvas; OpenGVLab/InternVL
// internvl/train/dataset.py: find_closest_aspect_ratio is the same. The grid whose ratio is closest; of two as close
// the larger, where the picture fills more than half of it.
TileGrid closest_grid(Count height, Count width, Count side, Count most) {
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  const double area = static_cast<double>(height) * static_cast<double>(width);
  double least = std::numeric_limits<double>::infinity();
  TileGrid best;
  for_each_grid(most, [&](const TileGrid& grid) {
    const double off = std::fabs(ratio - static_cast<double>(grid.across) / static_cast<double>(grid.down));
    const bool fills = area > 0.5 * static_cast<double>(side * side * grid.tiles());
    if (off < least || (off == least && fills)) best = grid;
    least = std::min(least, off);
  });
  return best;
}

// transformers 5.12 models/cohere2_vision/image_processing_cohere2_vision.py: get_optimal_tiled_canvas. The grid that
// enlarges a picture least or, where all of them shrink it, shrinks it least; of two that do so alike the first, which
// has fewer tiles.
TileGrid covering_grid(Count height, Count width, Count side, Count most) {
  double best_scale = 0.0;
  TileGrid best;
  for_each_grid(most, [&](const TileGrid& grid) {
    const double scale = std::min(static_cast<double>(grid.across * side) / static_cast<double>(width),
                                  static_cast<double>(grid.down * side) / static_cast<double>(height));
    const bool better = best_scale >= 1.0 ? scale >= 1.0 && scale < best_scale : scale > best_scale;
    if (!better) return;
    best_scale = scale;
    best = grid;
  });
  return best;
}

void tell_no_tiles(Issues& issues) {
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/image_tiles",
                    "This model's processor cuts no pictures into tiles, or its size says how: their number has no "
                    "effect. State \"image_size\".",
                    "0"});
}

void tell_stated_tiles(const TrainingJob& job, Issues& issues) {
  if (job.image_height == 0) return;
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/image_size",
                    "The number of tiles is stated, and counts; what a picture of that size would be cut into does "
                    "not. Leave one of them out.",
                    ""});
}

// Behind several tiles comes the whole.
void cut_into_tiles(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  const Count side = architecture.parts.front().image_size;
  if (job.image_tiles > 0) return tell_stated_tiles(job, issues);
  if (job.image_height == 0) {
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_tiles",
                      "Each picture is taken to be one tile of " + std::to_string(side) +
                          " pixels a side; the processor cuts larger ones into up to " +
                          std::to_string(architecture.facts.most_tiles) + " and adds the whole. State \"image_size\".",
                      ""});
    return;
  }
  const auto grid_of = architecture.facts.pictures == PictureRule::kCoveringTiles ? covering_grid : closest_grid;
  const TileGrid grid = grid_of(job.image_height, job.image_width, side, architecture.facts.most_tiles);
  job.image_tiles = grid.pieces();
  if (job.image_tiles == 1) return;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_tiles",
                    "The processor cuts a picture of that size into " + std::to_string(grid.across) + " by " +
                        std::to_string(grid.down) + " tiles and adds the whole: " + std::to_string(job.image_tiles) +
                        " of " + std::to_string(side) + " pixels a side.",
                    std::to_string(job.image_tiles)});
}

// The tower sees a picture of any size: without a stated one it is its own.
void tell_taken_size(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.image_height > 0 || architecture.parts.empty()) return;
  const std::string side = std::to_string(architecture.parts.front().image_size);
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_size",
                    "Pictures of no stated size are taken to be " + side + " by " + side + " pixels.", ""});
}

// transformers 5.12 models/qwen2_vl/image_processing_qwen2_vl.py: smart_resize. Checkpoints say how many pixels they
// take, and their configuration is not at hand: 28 * 28 * 1280 is the class's own number.
void tell_pixels(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  constexpr Count kLeastBound = 28 * 28 * 1280;
  if (job.image_height == 0) return tell_taken_size(architecture, job, issues);
  if (job.image_height * job.image_width <= kLeastBound) return;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_size",
                    "The picture is taken as large as it is: if that is more than the processor's max_pixels "
                    "(preprocessor_config.json, or what the job sets), state the size that it shrinks to.",
                    ""});
}

// transformers 5.12 models/pixtral/image_processing_pixtral.py, models/idefics2/image_processing_idefics2.py:
// get_resize_output_image_size.
void shrink_to_longest(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (job.image_height == 0 || architecture.parts.empty()) return;
  const Count longer = std::max(job.image_height, job.image_width), most = architecture.parts.front().image_size;
  if (longer <= most) return;
  job.image_height = std::max<Count>(1, job.image_height * most / longer);
  job.image_width = std::max<Count>(1, job.image_width * most / longer);
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_size",
                    "The processor shrinks a picture of that size to " + std::to_string(job.image_height) + " by " +
                        std::to_string(job.image_width) + " pixels: no side is longer than " + std::to_string(most) +
                        ".",
                    ""});
}

// models/idefics3/image_processing_idefics3.py: get_number_of_image_patches, with the checkpoints' size of four tiles.
void cut_along_longer(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  constexpr Count kAlong = 4;
  const Count side = architecture.parts.front().image_size;
  const bool is_tile = job.image_height == side && job.image_width == side;
  if (job.image_tiles > 0) return is_tile ? void() : tell_stated_tiles(job, issues);
  if (job.image_height == 0 || is_tile) {
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_tiles",
                      "Each picture is taken to be one tile of " + std::to_string(side) +
                          " pixels a side (do_image_splitting false); else the processor makes each one four tiles "
                          "long and adds the whole. State \"image_size\".",
                      ""});
    return;
  }
  const auto [shorter, longer] = std::minmax(job.image_height, job.image_width);
  const Count across = kAlong * side * shorter / longer;
  const Count even = across + across % 2;
  job.image_tiles = kAlong * std::max<Count>(1, (even + side - 1) / side) + 1;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_tiles",
                    "The processor makes a picture of that size four tiles long and adds the whole: " +
                        std::to_string(job.image_tiles) + " tiles of " + std::to_string(side) + " pixels a side.",
                    std::to_string(job.image_tiles)});
}

void tell_own_size(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const auto is_own = [&job](const Architecture& tower) {
    return job.image_height == tower.image_size && job.image_width == tower.image_size;
  };
  if (job.image_height == 0 || is_own(architecture)) return;
  if (std::any_of(architecture.parts.begin(), architecture.parts.end(), is_own)) return;
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/image_size",
                    "The processor makes all pictures as large as this model's tower wants them: their size has no "
                    "effect.",
                    ""});
}

bool is_of_tiles(PictureRule rule) {
  return rule == PictureRule::kFourTiles || rule == PictureRule::kClosestTiles || rule == PictureRule::kCoveringTiles;
}

// What the tower gets is as large as it is made for, whatever a picture's size.
void settle_size(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  const PictureRule rule = architecture.facts.pictures;
  if (job.images_per_sample == 0 && architecture.language != nullptr) return;
  if (job.image_tiles > 0 && !architecture.facts.tiles && !is_of_tiles(rule)) tell_no_tiles(issues);
  switch (rule) {
    case PictureRule::kAsTheyAre:
      if (architecture.language != nullptr && job.image_tiles == 0) tell_taken_size(architecture, job, issues);
      return;
    case PictureRule::kPixels:
      return tell_pixels(architecture, job, issues);
    case PictureRule::kLongestSide:
      return shrink_to_longest(architecture, job, issues);
    case PictureRule::kOwnSize:
      tell_own_size(architecture, job, issues);
      break;
    case PictureRule::kFourTiles:
    case PictureRule::kClosestTiles:
    case PictureRule::kCoveringTiles:
      if (job.video_frames > 0 || architecture.parts.empty()) break;
      (rule == PictureRule::kFourTiles ? cut_along_longer : cut_into_tiles)(architecture, job, issues);
      break;
  }
  job.image_height = job.image_width = 0;
}

void settle_video(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (job.video_frames == 0) return;
  const Count frames = architecture.pictures.video_frames;
  if (architecture.language != nullptr && (frames == 0 || job.images_per_sample > 0)) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/video_frames",
                      frames == 0
                          ? "No video of this model is modelled: give its frames as pictures (\"images_per_sample\")."
                          : "Pictures and a video in one sample are not modelled: give one of them.",
                      "0"});
    return;
  }
  if (frames == 0) return;
  job.images_per_sample = (job.video_frames + frames - 1) / frames;
  if (frames == 1) job.image_tiles = 1;
}

}  // namespace

void settle_pictures(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  take_wanted_picture(architecture, job, issues);
  settle_video(architecture, job, issues);
  settle_size(architecture, job, issues);
}

}  // namespace tidemark
