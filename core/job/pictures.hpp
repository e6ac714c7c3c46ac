#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// What a model's processor makes of a sample's pictures: a video is so many of them, one may be cut into tiles, or
/// become as large as the tower wants all of them. Sets `images_per_sample`, `image_tiles`, `image_size` to what the
/// tower gets. Errors: UNSUPPORTED_VALUE at /video_frames where the model takes no video, or a sample has pictures,
/// too.
void settle_pictures(const Architecture& architecture, TrainingJob& job, Issues& issues);

}  // namespace tidemark
