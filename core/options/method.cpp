#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kMethods[] = {
    {"full", number(Method::kFull), "every parameter is trained"},
    {"lora", number(Method::kLora), "low-rank adapters beside frozen weights (PEFT)"},
    {"qlora", number(Method::kQlora), "adapters beside quantised weights (bitsandbytes)"},
    {"freeze", number(Method::kFreeze), "the modules named by `freeze` are not trained"},
    {"oft", 0, "orthogonal adapters", false},
    {"boft", 0, "orthogonal adapters", false},
    {"ia3", 0, "learned scales", false},
    {"adalora", 0, "adapters whose ranks adapt", false},
    {"loha", 0, "Hadamard products", false},
    {"lokr", 0, "Kronecker products", false},
    {"vera", 0, "shared random adapters", false},
    {"bone", 0, "block adapters", false},
    {"prompt_tuning", 0, "learned tokens", false},
    {"prefix_tuning", 0, "learned keys and values", false},
};

constexpr std::string_view kNoPreferences =
    "Jobs with chosen and rejected answers or a reference are not modelled yet.";
constexpr std::string_view kNoRollouts = "Jobs that generate are not modelled yet.";
constexpr std::string_view kNoFurtherModels =
    "One model is modelled: no reference, reward, value or teacher beside it.";

constexpr Choice kTasks[] = {
    {"sft", 0, "next-token loss over each sample"},
    {"pretrain", 0, "next-token loss over each sample"},
    {"classification", 0, "a label per sample: ...ForSequenceClassification"},
    {"token_classification", 0, "a label per token: ...ForTokenClassification"},
    {"question_answering", 0, "a span of the sample: ...ForQuestionAnswering"},
    {"embedding", 0, "contrastive training of ...Model", false},
    {"reranker", 0, "pairs of query and document", false},
    {"reward", 0, "chosen and rejected answers, one score each", false},
    {"seq2seq", 0, "encoder and decoder", false},
    {"asr", 0, "speech to text", false},
    {"vision", 0, "images", false},
    {"vlm", 0, "images and text: next-token loss over each sample"},
    {"diffusion", 0, "denoising", false},
    {"dpo", 0, "chosen and rejected answers against a reference", false},
    {"kto", 0, "answers against a reference", false},
    {"orpo", 0, "chosen and rejected answers", false},
    {"simpo", 0, "chosen and rejected answers", false},
    {"cpo", 0, "chosen and rejected answers", false},
    {"multiple_choice", 0, "one of several answers", false},
    {"grpo", 0, "generated answers", false},
    {"rloo", 0, "generated answers", false},
    {"ppo", 0, "generated answers, with reward and value models", false},
    {"gkd", 0, "distillation from a teacher", false},
};

constexpr Option kOptions[] = {
    choice("method", "\"full\"", kMethods, "Method", "Which parameters are trained.")
        .known_as("finetuning_type,train_type")
        .into<&TrainingJob::method>(),
    texts("freeze", "[]", "Frozen modules",
          "Patterns of module names that are not trained: embed_tokens, layers.0, vision_tower.")
        .when("method", "freeze")
        .into<&TrainingJob::freeze>(),
    choice("task", "\"sft\"", kTasks, "Task", "What is learned; it chooses the head where `architecture` does not.")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.task = v.text; }),
    flag("freeze_vision", false, "Frozen vision tower",
         "The vision tower is not trained, nor adapted (ms-swift freeze_vit, LLaMA-Factory freeze_vision_tower).")
        .known_as("freeze_vit,freeze_vision_tower")
        .further()
        .into<&TrainingJob::freeze_vision>(),
    flag("freeze_projector", false, "Frozen projector",
         "What lies between the vision tower and the language model is not trained, nor adapted.")
        .known_as("freeze_aligner,freeze_multi_modal_projector")
        .further()
        .into<&TrainingJob::freeze_projector>(),
    flag("freeze_llm", false, "Frozen language model", "The language model is not trained, nor adapted.")
        .known_as("freeze_language_model")
        .further()
        .into<&TrainingJob::freeze_llm>(),
    refused("reference_model", "Reference model", "A frozen copy for preferences.", kNoPreferences),
    refused("reward_model", "Reward model", "A model that scores answers.", kNoFurtherModels),
    refused("value_model", "Value model", "A model that predicts returns.", kNoFurtherModels),
    refused("teacher_model", "Teacher model", "A model to distil from.", kNoFurtherModels),
    refused("rollout", "Generation", "Answers generated on the same card.", kNoRollouts),
    refused("num_generations", "Answers per prompt", "Answers generated for each prompt.", kNoRollouts),
    refused("max_prompt_length", "Prompt length", "Tokens of a prompt.", kNoRollouts),
    refused("max_completion_length", "Answer length", "Tokens of a generated answer.", kNoRollouts),
};

}  // namespace

constinit const Topic kMethodTopic{{"method", "Method", true}, kPacked<kOptions>};

}  // namespace tidemark
