#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr std::string_view kNoImages = "Vision-language models are not modelled yet.";

constexpr Option kOptions[] = {
    integer("micro_batch_size", "1", "Batch size per GPU",
            "Samples per forward pass on one GPU (per_device_train_batch_size).")
        .within(1, 1e6, "samples")
        .usually(1, 256)
        .known_as("per_device_train_batch_size,per_gpu_train_batch_size,train_micro_batch_size_per_gpu")
        .spelled("-b,--batch,--batch-size")
        .into<&TrainingJob::micro_batch_size>(),
    integer("sequence_length", "2048", "Sequence length", "Tokens per sample, padding included.")
        .within(1, 1e8, "tokens")
        .usually(128, 131072)
        .known_as(
            "max_seq_length,max_length,cutoff_len,sequence_len,max_seq_len,seq_length,model_max_length,block_size")
        .spelled("-s,--seq-len,--seq")
        .into<&TrainingJob::sequence_length>(),
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
    integer("images_per_sample", "0", "Images per sample", "Images per sample of a vision-language model.")
        .within(0, 1e4, "images")
        .further()
        .refused(kNoImages),
    of_type(OptionType::kAny, "image_size", "[336, 336]", "Size of an image", "Height and width of an image.")
        .within(0, 0, "pixels")
        .further()
        .refused(kNoImages),
    refused("image_tiles", "Tiles per image", "Tiles that an image is cut into.", kNoImages),
    refused("boxes_per_image", "Boxes per image", "Objects to find in an image.", kNoImages),
    refused("audio_seconds", "Seconds of audio", "Length of a recording.", "Models of speech are not modelled yet."),
    refused("padding_free", "Padding-free batches", "Samples of a batch joined into one row.",
            "Say the same with packing true, micro_batch_size 1 and sequence_length the sum of the samples' lengths."),
};

}  // namespace

constinit const Topic kBatchTopic{{"batch", "Batch", true}, kPacked<kOptions>};

}  // namespace tidemark
