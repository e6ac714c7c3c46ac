#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Option kOptions[] = {
    open_flag("keep_outputs", "Outputs held during backward",
              "A hand-written loop still holds the model's outputs (the logits) during backward; the Trainer does not.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.keep_outputs = v.boolean;
          r.open.keep_outputs = false;
        }),
    open_flag("outputs_to_fp32", "Outputs converted to fp32",
              "accelerate converts the outputs to fp32 under autocast; a loop of one's own does not.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.outputs_to_fp32 = v.boolean;
          r.open.outputs_to_fp32 = false;
        }),
    flag("zero_grad_to_none", true, "Gradients freed after each step",
         "zero_grad frees the gradients (torch 2.0 and later).")
        .further()
        .into<&TrainingJob::zero_grad_to_none>(),
    integer(
        "evaluation.micro_batch_size", "null", "Batch size of evaluation",
        "Samples per forward of evaluation during training (per_device_eval_batch_size); absent: it is not counted.")
        .within(1, 1e6, "samples")
        .known_as("per_device_eval_batch_size,eval_batch_size")
        .further()
        .into<&TrainingJob::evaluation, &Evaluation::micro_batch_size>(),
    flag("evaluation.keep_logits", false, "Evaluation keeps the logits",
         "compute_metrics without eval_accumulation_steps: logits of all batches stay on the card until the end.")
        .further()
        .into<&TrainingJob::evaluation, &Evaluation::keeps_logits>(),
    integer("evaluation.samples", "null", "Samples of evaluation", "Of the evaluation set, where its logits stay.")
        .within(1, 1e9, "samples")
        .further()
        .into<&TrainingJob::evaluation, &Evaluation::samples>(),
    flag("evaluation.generate", false, "Evaluation generates",
         "predict_with_generate: the model generates from each batch before its loss is taken; keys and values stay.")
        .known_as("predict_with_generate")
        .further()
        .into<&TrainingJob::evaluation, &Evaluation::generates>(),
    integer("evaluation.max_new_tokens", "null", "Tokens generated in evaluation",
            "For each row (generation_max_length); absent: as many as a row of the labels has.")
        .within(1, 1e6, "tokens")
        .known_as("generation_max_length")
        .further()
        .into<&TrainingJob::evaluation, &Evaluation::new_tokens>(),
    integer("evaluation.num_beams", "1", "Beams in evaluation", "Rows that generation keeps for each sample.")
        .within(1, 1024, "beams")
        .known_as("generation_num_beams")
        .further()
        .into<&TrainingJob::evaluation, &Evaluation::beams>(),
    real("label_smoothing_factor", "0.0", "Label smoothing",
         "The share of a label that the Trainer's LabelSmoother gives to all words: the loss is then made of fp32 "
         "logits "
         "outside of the model. DPO's own label_smoothing takes no memory.")
        .within(0, 1)
        .further()
        .into<&TrainingJob::label_smoothing>(),
    real("neftune_noise_alpha", "null", "NEFTune", "Noise on the token table's rows (transformers' Trainer); 0: none.")
        .within(0, 1e6)
        .known_as("noisy_embedding_alpha")
        .further()
        .into<&TrainingJob::neftune_noise_alpha>(),
};

}  // namespace

constinit const Topic kLoopTopic{{"loop", "Training loop details"}, kPacked<kOptions>};

}  // namespace tidemark
