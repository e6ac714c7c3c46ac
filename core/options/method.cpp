#include "core/options/adapter_kinds.hpp"
#include "core/options/builders.hpp"
#include "core/options/floats.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kMethods[] = {
    {"full", number(Method::kFull), "every parameter is trained"},
    {"lora", number(Method::kLora), "low-rank adapters beside frozen weights (PEFT)"},
    {"qlora", number(Method::kQlora), "adapters beside quantised weights (bitsandbytes)"},
    {"freeze", number(Method::kFreeze),
     "the modules named by `freeze`, or all but those of `trainable`, are not trained"},
    {"oft", number(Method::kLora), "lora with \"adapter\": {\"kind\": \"oft\"}, and so on"},
    {"qoft", number(Method::kQlora), "the same beside quantised weights"},
    {"boft", number(Method::kLora), "orthogonal adapters in butterfly factors"},
    {"ia3", number(Method::kLora), "learned scales"},
    {"adalora", number(Method::kLora), "adapters whose ranks adapt"},
    {"loha", number(Method::kLora), "Hadamard products"},
    {"lokr", number(Method::kLora), "Kronecker products"},
    {"vera", number(Method::kLora), "shared random adapters"},
    {"ln_tuning", number(Method::kLora), "norms alone"},
    {"bone", 0, "block adapters", false},
    {"adapter", 0, "bottleneck layers behind each MLP", false},
    {"longlora", 0, "LoRA with attention within shifted groups of tokens", false},
    {"reft", 0, "learned interventions on hidden states", false},
    {"prompt_tuning", number(Method::kLora), "learned tokens"},
    {"p_tuning", number(Method::kLora), "learned tokens from a small network"},
    {"prefix_tuning", 0, "learned keys and values", false},
};

void method(Request& r, const OptionValue& v) {
  r.job.method = static_cast<Method>(v.choice);
  set_adapter_kind(r.job.adapter, v.text == "qoft" ? "oft" : v.text);
}

constexpr std::string_view kTaught = "gkd,grpo";
constexpr std::string_view kScored = "ppo,online_dpo,grpo,rloo";
constexpr std::string_view kWithReference = "dpo,kto,bco,grpo,rloo,ppo,online_dpo";
constexpr std::string_view kGenerated = "grpo,rloo";
constexpr std::string_view kRolledOut = "grpo,rloo,gkd";
constexpr std::string_view kNoValueModel =
    "The value model is taken to be what the reward model is: TRL's scripts load both from reward_model_path. Name "
    "that with \"reward_model\".";

constexpr Choice kTasks[] = {
    {"sft", 0, "next-token loss over each sample"},
    {"pretrain", 0, "next-token loss over each sample"},
    {"classification", 0, "a label per sample: ...ForSequenceClassification"},
    {"token_classification", 0, "a label per token: ...ForTokenClassification"},
    {"question_answering", 0, "a span of the sample: ...ForQuestionAnswering"},
    {"embedding", 0, "texts that are compared with one another, sentence-transformers' training of ...Model"},
    {"reranker", 0, "a score for each pair of query and document: ...ForSequenceClassification with one label"},
    {"generative_reranker", 0, "the same by what the head says of two tokens, as ms-swift trains it"},
    {"reward", number(Preference::kReward),
     "chosen and rejected answers, one score each: ...ForSequenceClassification"},
    {"seq2seq", 0, "encoder and decoder: a target per sample"},
    {"asr", 0, "speech to text", false},
    {"vision", 0, "a label per picture: ...ForImageClassification"},
    {"vlm", 0, "images and text: next-token loss over each sample"},
    {"diffusion", 0, "denoising, with the encoders cached or on the card (vae, text_encoders)"},
    {"dpo", number(Preference::kDpo), "pairs of chosen and rejected answers against a reference, as TRL's DPOTrainer"},
    {"kto", number(Preference::kKto), "wanted and unwanted answers against a reference"},
    {"orpo", number(Preference::kOrpo), "pairs of answers without a reference"},
    {"simpo", number(Preference::kSimpo), "pairs of answers without a reference, nor a loss of their tokens"},
    {"cpo", number(Preference::kCpo), "pairs of answers without a reference"},
    {"grpo", number(Preference::kGrpo), "answers that the model generates itself, as TRL's GRPOTrainer"},
    {"rloo", number(Preference::kRloo), "the same answers, each weighed as a whole, as TRL's RLOOTrainer"},
    {"ppo", number(Preference::kPpo),
     "answers that the model generates itself, with a reward and a value model, as TRL's PPOTrainer"},
    {"gkd", number(Preference::kGkd), "what a teacher predicts of each token, as TRL's GKDTrainer"},
    {"prm", 0, "a label for each step of an answer, as TRL's PRMTrainer: ...ForTokenClassification"},
    {"bco", number(Preference::kBco), "wanted and unwanted answers, told apart by a classifier, as TRL's BCOTrainer"},
    {"tpo", number(Preference::kTpo), "chosen, rejected and gold answers without a reference, as TRL's TPOTrainer"},
    {"online_dpo", number(Preference::kOnlineDpo),
     "two answers that the model generates itself to each prompt, as TRL's OnlineDPOTrainer"},
    {"text_classification", 0, "", true, "classification"},
    {"sequence_classification", 0, "", true, "classification"},
    {"image_classification", 0, "", true, "vision"},
    {"sentence-transformers:pair", 0, "", true, "embedding"},
    {"sentence-transformers:pair_class", 0, "", true, "embedding"},
    {"sentence-transformers:pair_score", 0, "", true, "embedding"},
    {"sentence-transformers:qa", 0, "", true, "embedding"},
    {"multiple_choice", 0, "one of several answers", false},
    {"nash_md", 0, "pairs of generated answers", false},
    {"xpo", 0, "pairs of generated answers", false},
    {"gold", 0, "a teacher with another tokenizer", false},
    {"sdft", 0, "the model with its demonstrations as the teacher", false},
    {"sdpo", 0, "the model with feedback as the teacher", false},
    {"ssd", 0, "the model's own answers, learnt again", false},
    {"distillation", 0, "a teacher's likeliest tokens", false},
    {"async_grpo", 0, "answers that a server generates while the model learns", false},
    {"ebft", 0, "answers all over a text, compared by features", false},
};

// sglang takes a share of the card likewise, but none of its sources was read.
constexpr Choice kEngines[] = {
    {"transformers", number(RolloutEngine::kTransformers), "the model's own generate()"},
    {"vllm", number(RolloutEngine::kVllm), "vLLM, which takes a share of the card, or runs elsewhere"},
    {"sglang", 0, "SGLang", false},
};
constexpr Choice kModes[] = {
    {"colocate", number(RolloutEngine::kVllm), "in the same process, on the same card"},
    {"server", number(RolloutEngine::kServer), "on cards of its own"},
};

constexpr Option kOptions[] = {
    choice("method", "\"full\"", kMethods, "Method", "Which parameters are trained.")
        .known_as("finetuning_type,train_type")
        .sets(method),
    texts("freeze", "[]", "Frozen modules",
          "Patterns of module names that are not trained: embed_tokens, layers.0, vision_tower.")
        .when("method", "freeze")
        .into<&TrainingJob::freeze>(),
    texts("trainable", "[]", "Trained modules",
          "Patterns of names that are trained, and nothing else is; of what `freeze` names, where that is given: "
          "layers.31, lm_head. Beside adapters: what is trained with them, in place. \"vision_tower\" and "
          "\"projector\" are those parts of any model that sees.")
        .when("method", "freeze,lora,qlora")
        .into<&TrainingJob::trainable>(),
    integer("freeze_trainable_layers", "0", "Trained layers",
            "Of the layers the last so many are trained, below 0 the first so many, and nothing else; 0: as `freeze` "
            "says (LLaMA-Factory).")
        .within(-10000, 10000, "layers")
        .when("method", "freeze")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.foreign.trained_layers = v.integer; }),
    flag("use_llama_pro", false, "Every k-th layer", "The trained layers lie in equal steps, as LLaMA Pro adds them.")
        .when("method", "freeze")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.foreign.trains_expansion = v.boolean; }),
    integer("llama_pro_new_blocks", "0", "New layers (LLaMA Pro)",
            "So many layers are added as the model is loaded, in equal steps, and nothing else is trained (ms-swift).")
        .within(0, 1000, "layers")
        .known_as("llamapro_num_new_blocks")
        .when("method", "freeze")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.foreign.new_layers = v.integer;
          if (v.integer == 0) return;
          r.foreign.trained_layers = v.integer;
          r.foreign.trains_expansion = true;
        }),
    text("freeze_trainable_modules", "\"all\"", "Trained parts of them",
         "Which modules of the trained layers are trained.")
        .when("method", "freeze")
        .further()
        .refused("Parts of the trained layers are not modelled; name what is frozen with \"freeze\" instead."),
    integer("lisa_layers", "0", "Layers in turn (LISA)",
            "So many layers are trained at a time, drawn anew every few steps, and all that lies outside the layers.")
        .within(0, 10000, "layers")
        .known_as("lisa_activated_layers,lisa_n_layers")
        .when("method", "full")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.foreign.layers_in_turn = v.integer; }),
    choice("frozen_dtype", "null", kFloats, "Dtype of what is not trained",
           "Where only what is trained was cast: LLaMA-Factory loads bf16 and makes trained weights fp32.")
        .when("method", "freeze")
        .further()
        .sets([](Request& r, const OptionValue&) {
          r.job.stand_ins.emplace_back(
              "weights of another dtype where they are not trained, answered by those of the recipe");
        }),
    choice("task", "\"sft\"", kTasks, "Task", "What is learned; it chooses the head where `architecture` does not.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.task = v.text;
          r.job.preference = static_cast<Preference>(v.choice);
          r.foreign.texts_per_sample = v.text == "embedding" ? 2 : 1;
          if (r.job.distils()) r.job.rollout.answer = 128;    // trl 1.9 experimental/gkd/gkd_config.py
          if (r.job.has_critic()) r.job.rollout.answer = 53;  // trl 1.9 experimental/ppo/ppo_config.py
          // trl 1.9 experimental/online_dpo/online_dpo_config.py
          if (r.job.generates_pairs()) r.job.rollout.answer = 64;
          if (v.text != "generative_reranker") return;
          r.job.stand_ins.emplace_back("a head's logits of two tokens, answered by a score layer without the head");
        }),
    integer(
        "texts_per_sample", "2", "Texts per sample",
        "Texts that a sample compares: 2 of a pair, 3 of a triplet; of a reranker (1 unless stated) the documents that "
        "stand beside a query, each in a row of the batch.")
        .within(1, 1000, "texts")
        .when("task", "embedding,reranker,generative_reranker")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (r.task == "embedding") r.foreign.texts_per_sample = v.integer;
          if (ranks(r.task)) r.foreign.rows_per_sample = v.integer;
        }),
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
    open_flag("reference_model.present", "Reference model", "Whether the loss compares with a reference on the card.")
        .when("task", kWithReference)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.open.compares = v.boolean;
          if (v.boolean || r.job.preference == Preference::kNone) return;
          r.job.reference = r.job.generates() ? Reference::kNone : Reference::kPrecomputed;
          r.open.reference = false;
        }),
    open_flag("reference_model.shared_with_adapter", "Reference without adapter",
              "The reference is the model with its adapter switched off; else a frozen copy.")
        .when("task", kWithReference)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (!r.open.reference) return;
          r.job.reference = v.boolean ? Reference::kAdapterOff : Reference::kCopy;
          r.open.reference = false;
        }),
    flag("reference_model.precompute", false, "Precomputed reference",
         "The reference's log-probabilities are computed before training (precompute_ref_log_probs).")
        .known_as("precompute_ref_log_probs")
        .when("task", kWithReference)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (!v.boolean) return;
          r.job.reference = Reference::kPrecomputed;
          r.open.reference = false;
        }),
    of_type(OptionType::kText, "reference_model.model", "null", "Which reference",
            "The reference's name; it is taken to have the model's shape.")
        .when("task", kWithReference)
        .further(),
    text("reference_model.dtype", "null", "Reference's dtype", "Dtype of a copy; it is taken to be the model's.")
        .when("task", kWithReference)
        .further(),
    flag("reference_model.offloaded", false, "Offloaded reference", "A copy that waits in host memory.")
        .further()
        .refused("A reference in host memory is not modelled yet."),
    text(
        "reward_model", "null", "Reward model",
        "Catalog id or alias of the model that scores answers, of which PPO's value model is another copy; absent: the "
        "model itself with a score in the place of its head (ppo, online_dpo), or functions alone (grpo, rloo).")
        .from("models")
        .known_as("reward_model_path")
        .when("task", kScored)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.judge = v.text; }),
    of_type(OptionType::kDocument, "reward_config", "null", "Reward model's configuration", "Its config.json.")
        .when("task", kScored)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.judge_config = *v.document; }),
    flag("reward_functions", false, "Reward functions", "Functions alone score the answers: no reward model is there.")
        .when("task", "online_dpo")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.rollout.judged = !v.boolean; }),
    refused("value_model", "Value model", "A model that predicts returns.", kNoValueModel),
    integer("local_rollout_forward_batch_size", "64", "Answers at a time",
            "Answers that are generated and scored at a time (PPO).")
        .within(1, 1e6, "answers")
        .when("task", "ppo")
        .further()
        .into<&TrainingJob::rollout, &Rollout::rows_at_once>(),
    text("teacher_model", "null", "Teacher",
         "Catalog id or alias of the model to distil from (gkd; absent: the model itself), or that scores generated "
         "answers (grpo; absent: none does).")
        .from("models")
        .known_as("teacher_model_name_or_path")
        .when("task", kTaught)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.teacher = v.text;
          r.job.rollout.taught = true;
        }),
    of_type(OptionType::kDocument, "teacher_config", "null", "Teacher's configuration", "Its config.json.")
        .when("task", kTaught)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.teacher_config = *v.document;
          r.job.rollout.taught = true;
        }),
    refused("teacher_model_server", "Teacher elsewhere", "The address of a teacher on another machine.",
            "A teacher on another machine, of which the likeliest tokens alone come, is not modelled."),
    choice("teacher_dtype", "null", kFloats, "Teacher's dtype", "Of its weights; absent: as the student's.")
        .when("task", kTaught)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.distillation.teacher = static_cast<Dtype>(v.choice); }),
    real("lmbda", "0.5", "Student's share", "Of the micro-batches, those whose answers the student generates.")
        .within(0, 1)
        .when("task", "gkd")
        .further()
        .into<&TrainingJob::distillation, &Distillation::student_share>(),
    flag("seq_kd", false, "Teacher's answers", "The teacher generates the others.")
        .when("task", "gkd")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          if (v.boolean) r.job.stand_ins.emplace_back("answers that a teacher generates, answered without its cache");
        }),
    // trl 1.9 trainer/grpo_config.py
    real("beta", "null", "Weight of the reference",
         "KL coefficient of generated answers: 0, GRPO's default, means no reference model; RLOO's is 0.05. Of "
         "distillation 0.5: 0 is the teacher's divergence alone, 1 the student's.")
        .within(0, 1e6)
        .when("task", kRolledOut)
        .further()
        .sets([](Request& r, const OptionValue& v) {
          r.job.distillation.beta = v.real;
          if (r.job.generates() && (v.real > 0.0 || !r.open.compares)) r.open.compares = v.real > 0.0;
        }),
    choice("rollout.engine", "\"transformers\"", kEngines, "Generated by", "What generates the answers.")
        .when("task", kRolledOut)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.job.rollout.engine = static_cast<RolloutEngine>(v.choice); }),
    choice("rollout.mode", "\"colocate\"", kModes, "Where vLLM runs",
           "On the card that trains, or elsewhere (vllm_mode).")
        .known_as("vllm_mode")
        .when("rollout.engine", "vllm")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          RolloutEngine& engine = r.job.rollout.engine;
          if (engine == RolloutEngine::kVllm) engine = static_cast<RolloutEngine>(v.choice);
        }),
    real("rollout.gpu_memory_utilization", "0.3", "vLLM's share", "Of the card's memory, which vLLM on it takes.")
        .within(0.01, 1)
        .known_as("vllm_gpu_memory_utilization")
        .when("rollout.engine", "vllm")
        .further()
        .into<&TrainingJob::rollout, &Rollout::share>(),
    flag("rollout.sleep", false, "vLLM sleeps", "vLLM gives its share back while the model trains.")
        .known_as("vllm_enable_sleep_mode")
        .when("rollout.engine", "vllm")
        .further()
        .into<&TrainingJob::rollout, &Rollout::sleeps>(),
    integer("rollout.tensor_parallel", "1", "GPUs of one vLLM", "They divide its weights; each gives its share anyhow.")
        .within(1, 1024, "GPUs")
        .known_as("vllm_tensor_parallel_size")
        .when("rollout.engine", "vllm")
        .further(),
    flag("rollout.gather_weights", true, "All weights gathered",
         "ZeRO-3 gathers all weights at once while the model generates; false: module by module, for each token.")
        .known_as("ds3_gather_for_generation")
        .when("rollout.engine", "transformers")
        .further()
        .into<&TrainingJob::rollout, &Rollout::gathers>(),
    integer("num_generations", "null", "Answers per prompt",
            "Answers generated for each prompt (GRPO: 8, RLOO: 2 unless stated); a batch counts answers.")
        .within(1, 1e6, "answers")
        .when("task", kGenerated)
        .further()
        .into<&TrainingJob::rollout, &Rollout::per_prompt>(),
    integer("steps_per_generation", "null", "Micro-batches per generation",
            "Micro-batches whose answers are generated together; absent: those of an optimizer step.")
        .within(1, 1e6, "micro-batches")
        .when("task", kGenerated)
        .further()
        .into<&TrainingJob::rollout, &Rollout::micro_batches>(),
    integer("generation_batch_size", "null", "Answers per generation",
            "Answers that all GPUs generate together, in place of steps_per_generation.")
        .within(1, 1e9, "answers")
        .when("task", kGenerated)
        .further()
        .sets([](Request& r, const OptionValue& v) { r.foreign.generation_batch = v.integer; }),
    integer("num_iterations", "1", "Updates per answer", "How often is trained on what was generated.")
        .within(1, 1000)
        .when("task", kGenerated)
        .further()
        .into<&TrainingJob::rollout, &Rollout::iterations>(),
    integer("feature_layers", "0", "Layers compared",
            "Answers are scored by so many layers' states of a frozen model (Axolotl's EBFT); 0: by functions.")
        .known_as("ebft.feature_layers")
        .within(0, 1000, "layers")
        .when("task", "grpo")
        .further()
        .into<&TrainingJob::rollout, &Rollout::features>(),
    // Of jobs that do not generate, both only cut samples, which sequence_length already bounds.
    integer("max_prompt_length", "null", "Prompt length",
            "Tokens of a prompt; sequence_length counts prompt and answer.")
        .within(1, 1e8, "tokens")
        .further()
        .sets([](Request& r, const OptionValue& v) { r.foreign.prompt_length = v.integer; }),
    integer("max_completion_length", "null", "Answer length",
            "Tokens of an answer (GRPO, RLOO: 256, GKD: 128, PPO: 53, online DPO: 64 unless stated); sequence_length "
            "counts "
            "prompt and answer.")
        .known_as("response_length")
        .within(1, 1e8, "tokens")
        .further()
        .into<&TrainingJob::rollout, &Rollout::answer>(),
};

}  // namespace

constinit const Topic kMethodTopic{{"method", "Method", true}, kPacked<kOptions>};

}  // namespace tidemark
