#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"

namespace tidemark {

/// `video_frames` in pictures, as the model's tower gets them. Errors: UNSUPPORTED_VALUE at /video_frames where the
/// model takes no video, or a sample has pictures, too.
void settle_video(const Architecture& architecture, TrainingJob& job, Issues& issues);

}  // namespace tidemark
