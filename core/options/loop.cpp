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
    refused("evaluation", "Evaluation during training", "Batches of evaluation between steps.",
            "The peak of training is answered; evaluation is not modelled yet."),
    refused("neftune_noise_alpha", "NEFTune", "Noise on the embeddings.",
            "Not modelled yet: one more embedding output."),
};

}  // namespace

constinit const Topic kLoopTopic{{"loop", "Training loop details"}, kPacked<kOptions>};

}  // namespace tidemark
