#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// Columns and rows of the tiles that a picture is cut into.
struct TileGrid {
  Count across = 1, down = 1;
  Count tiles() const { return across * down; }
  /// Behind or before several tiles comes the whole.
  Count pieces() const { return tiles() > 1 ? tiles() + 1 : 1; }
};

/// All grids of at most so many tiles, those of fewer first, of as many the narrower ones (transformers 5.12
/// image_processing_got_ocr2.py: get_all_supported_aspect_ratios, and its like).
template <typename Visit>
void for_each_grid(Count most, Visit visit) {
  for (Count tiles = 1; tiles <= most; ++tiles) {
    for (Count across = 1; across <= tiles; ++across) {
      if (tiles % across == 0) visit(TileGrid{across, tiles / across});
    }
  }
}

/// What a model's processor makes of a sample's pictures: a video is so many of them, one may be cut into tiles, or
/// become as large as the tower wants all of them. Sets `images_per_sample`, `image_tiles`, `image_size` to what the
/// tower gets. Errors: UNSUPPORTED_VALUE at /video_frames where the model takes no video, or a sample has pictures,
/// too.
void settle_pictures(const Architecture& architecture, TrainingJob& job, Issues& issues);

}  // namespace tidemark
