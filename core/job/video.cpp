// A video is so many pictures: of Qwen's models one for each pair of frames (transformers 5.12
// models/qwen2_vl/modeling_qwen2_vl.py: get_video_features runs the tower of get_image_features, whose attention stays
// within a step of time: cu_seqlens), of the others one for each frame, in one piece
// (models/smolvlm/video_processing_smolvlm.py, models/internvl/processing_internvl.py: num_patches 1 for each frame;
// models/llava_next_video, models/llava_onevision: get_video_features).
#include "core/job/video.hpp"

namespace tidemark {
namespace {

// transformers 5.12 models/blip_2/modeling_blip_2.py: Blip2VisionModel.forward raises a ValueError without pixels.
void settle_picture(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (architecture.model_type != "blip-2" || job.images_per_sample > 0 || job.video_frames > 0) return;
  job.images_per_sample = 1;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/images_per_sample",
                    "This model wants a picture with every text: one is taken.", "1"});
}

}  // namespace

void settle_video(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  settle_picture(architecture, job, issues);
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

}  // namespace tidemark
