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

// GotOcr2ImageProcessor, Cohere2VisionImageProcessor: max_patches is 12, and behind several tiles comes the whole.
void cut_into_tiles(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  constexpr Count kMostTiles = 12;
  if (job.image_tiles > 0 || job.video_frames > 0 || architecture.parts.empty()) return;
  const Count side = architecture.parts.front().image_size;
  if (job.image_height == 0) {
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_tiles",
                      "Each picture is taken to be one tile of " + std::to_string(side) +
                          " pixels a side; the processor cuts larger ones into up to " + std::to_string(kMostTiles) +
                          " and adds the whole. State \"image_size\".",
                      ""});
    return;
  }
  const auto grid_of = architecture.facts.pictures == PictureRule::kCoveringTiles ? covering_grid : closest_grid;
  const TileGrid grid = grid_of(job.image_height, job.image_width, side, kMostTiles);
  job.image_tiles = grid.pieces();
  if (job.image_tiles == 1) return;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_tiles",
                    "The processor cuts a picture of that size into " + std::to_string(grid.across) + " by " +
                        std::to_string(grid.down) + " tiles and adds the whole: " + std::to_string(job.image_tiles) +
                        " of " + std::to_string(side) + " pixels a side.",
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

// What the tower gets is as large as it is made for, whatever a picture's size.
void settle_size(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  const PictureRule rule = architecture.facts.pictures;
  const bool sees = job.images_per_sample > 0 || architecture.language == nullptr;
  if (rule == PictureRule::kAsTheyAre || !sees) return;
  if (rule == PictureRule::kOwnSize) {
    tell_own_size(architecture, job, issues);
  } else {
    cut_into_tiles(architecture, job, issues);
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
