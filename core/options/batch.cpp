#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kNoBoxes = "Models that find objects are not modelled yet.";

/// Of a picture, in pixels; both 0 for what is no size.
struct Sides {
  Count height = 0, width = 0;
};

constexpr Count kLongestSide = 32768;

Sides valid(Sides sides) {
  const auto is_side = [](Count pixels) { return pixels >= 1 && pixels <= kLongestSide; };
  return is_side(sides.height) && is_side(sides.width) ? sides : Sides{};
}

/// "896x1344", "896 × 1344": height and width, in the order of the list and of what the answer says of the job.
Sides sides_of(std::string_view text) {
  Sides sides;
  Count* side = &sides.height;
  for (const char c : text) {
    const bool is_times = c == 'x' || c == 'X' || c == '\xC3';  // the first byte of the multiplication sign
    if (c >= '0' && c <= '9' && *side <= kLongestSide) {
      *side = *side * 10 + (c - '0');
    } else if (is_times && side == &sides.height) {
      side = &sides.width;
    } else if (c != ' ' && (c != '\x97' || sides.width > 0)) {
      return {};
    }
  }
  return valid(sides);
}

/// A side, a list of height and width, or a text of both.
Sides sides_of(const Value& value) {
  if (value.is_string()) return sides_of(std::string_view{value.string});
  const auto side = [](const Value& v) { return v.is_integer() ? v.integer : 0; };
  if (!value.is_array()) return valid({side(value), side(value)});
  return value.items.size() == 2 ? valid({side(value.items[0]), side(value.items[1])}) : Sides{};
}

void check_size(const OptionValue& v, const ReadSoFar&, Issues& issues) {
  if (v.document->is_null() || sides_of(*v.document).height > 0) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                    "\"image_size\" must be a number of pixels, [height, width] or \"896x1344\", each from 1 to 32768.",
                    ""});
}

void image_size(Request& r, const OptionValue& v) {
  const Sides sides = sides_of(*v.document);
  if (sides.height == 0) return;
  r.job.image_height = sides.height;
  r.job.image_width = sides.width;
}

constexpr Choice kVaes[] = {
    {"cached", number(Vae::kCached), "latents were made before: it is not on the card"},
    {"mixed_precision", number(Vae::kMixed), "encodes pictures in every step, in the dtype of mixed precision"},
    {"fp32", number(Vae::kWide), "the same in fp32, as diffusers' scripts do it for SDXL and Stable Diffusion 3"},
};

constexpr Choice kTextEncoders[] = {
    {"cached", 0, "embeddings were made before: none is on the card"},
    {"frozen", 1, "they encode prompts in every step, in the dtype of mixed precision"},
    {"trained", 1, "trained with the denoiser: answered by frozen ones, with a wide range"},
};

constexpr Option kOptions[] = {
    integer("micro_batch_size", "1", "Batch size per GPU",
            "Samples per forward pass on one GPU (per_device_train_batch_size).")
        .within(1, 1e6, "samples")
        .usually(1, 256)
        .known_as("per_device_train_batch_size,per_gpu_train_batch_size,train_micro_batch_size_per_gpu")
        .spelled("-b,--batch,--batch-size")
        .into<&TrainingJob::micro_batch_size>(),
    integer("sequence_length", "2048", "Sequence length",
            "Tokens per sample, padding included; 0 for models of pictures alone.")
        .within(0, 1e8, "tokens")
        .usually(128, 131072)
        .known_as(
            "max_seq_length,max_length,cutoff_len,sequence_len,max_seq_len,seq_length,model_max_length,block_size,"
            "context_length")
        .spelled("-s,--seq-len,--seq")
        .sets([](Request& r, const OptionValue& v) {
          r.job.sequence_length = v.integer;
          r.open.sequence_length = false;
        }),
    integer("decoder_sequence_length", "null", "Target length",
            "Target length of encoder-decoder models; sequence_length when absent.")
        .within(1, 1e8, "tokens")
        .further()
        .into<&TrainingJob::decoder_sequence_length>(),
    integer("gradient_accumulation_steps", "1", "Gradient accumulation", "Micro-batches per optimizer step.")
        .within(1, 1e9, "micro-batches")
        .spelled("-a,--grad-accum")
        .into<&TrainingJob::gradient_accumulation_steps>(),
    flag("padding", false, "Padded batches",
         "An attention mask with padding is passed: scaled_dot_product_attention then avoids its flash kernel.")
        .into<&TrainingJob::padding>(),
    flag("packing", false, "Packed samples", "Several samples are packed into each row of sequence_length.")
        .known_as("sample_packing,pack_to_max_length")
        .into<&TrainingJob::packing>(),
    integer("images_per_sample", "0", "Images per sample",
            "Pictures in each sample of a model that sees; sequence_length includes their tokens.")
        .within(0, 1e4, "images")
        .usually(0, 8)
        .further()
        .into<&TrainingJob::images_per_sample>(),
    integer("video_frames", "0", "Frames of a video",
            "Of one video in each sample, in place of images; image_size is a frame's, sequence_length includes their "
            "tokens.")
        .within(0, 1e5, "frames")
        .usually(0, 128)
        .further()
        .into<&TrainingJob::video_frames>(),
    of_type(OptionType::kAny, "image_size", "null", "Size of an image",
            "Pixels per side, [height, width] or \"896x1344\" of them; the model's own size where absent.")
        .within(0, 0, "pixels")
        .further()
        .checked(check_size)
        .sets(image_size),
    choice("vae", "\"cached\"", kVaes, "Autoencoder", "The VAE of a diffusion model, on the card or not.")
        .further()
        .into<&TrainingJob::vae>(),
    choice("text_encoders", "\"cached\"", kTextEncoders, "Text encoders",
           "Those of a diffusion model (CLIP, T5, Mistral, Qwen), on the card or not.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.text_encoders = v.choice > 0;
          r.job.trained_text_encoders = v.text == "trained";
          if (r.job.trained_text_encoders)
            r.job.stand_ins.emplace_back("text encoders that are trained, answered by frozen ones");
        }),
    integer("image_tiles", "0", "Tiles per image",
            "Pieces that each picture is cut into, the whole included; 0: one, or as the model cuts that size.")
        .within(0, 1e4, "tiles")
        .further()
        .into<&TrainingJob::image_tiles>(),
    refused("boxes_per_image", "Boxes per image", "Objects to find in an image.", kNoBoxes),
    real("audio_seconds", "null", "Seconds of audio",
         "Length of the recordings that a model of speech hears; Whisper pads all to its window.")
        .within(0.1, 1e5, "seconds")
        .usually(1, 60)
        .further()
        .into<&TrainingJob::audio_seconds>(),
    flag("padding_free", false, "Padding-free batches",
         "Samples of a batch joined into one row, without padding; all are taken to be sequence_length long.")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.foreign.padding_free = v.boolean; }),
};

}  // namespace

constinit const Topic kBatchTopic{{"batch", "Batch", true}, kPacked<kOptions>};

}  // namespace tidemark
