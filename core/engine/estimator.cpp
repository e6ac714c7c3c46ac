#include "core/engine/estimator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/catalog/fields.hpp"
#include "core/catalog/gpu_names.hpp"
#include "core/engine/stored_as.hpp"
#include "core/families/family.hpp"
#include "core/families/implementations.hpp"
#include "core/families/megatron.hpp"
#include "core/families/read_config.hpp"
#include "core/fit/cards.hpp"
#include "core/fit/fit.hpp"
#include "core/job/check.hpp"
#include "core/job/default_attention.hpp"
#include "core/job/default_loss.hpp"
#include "core/job/defaults.hpp"
#include "core/job/lora_kernels.hpp"
#include "core/job/peft_targets.hpp"
#include "core/job/pictures.hpp"
#include "core/job/recipe.hpp"
#include "core/job/trained_layers.hpp"
#include "core/layers/program.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/plan/pipeline.hpp"
#include "core/plan/sharded.hpp"
#include "core/runtime/cuda_context.hpp"
#include "core/runtime/nccl.hpp"
#include "core/step/estimate.hpp"
#include "core/step/module_plan.hpp"
#include "core/step/optimizer_fits.hpp"
#include "core/step/simulation.hpp"
#include "core/units/decimal.hpp"
#include "core/units/excerpt.hpp"
#include "core/units/joined.hpp"
#include "core/units/word_list.hpp"

namespace tidemark {
namespace {

/// BERT and its kin, which guess what is masked.
bool is_encoder(const Architecture& a) {
  return a.program != nullptr && a.program->heads.find(Head::kMaskedLm) != nullptr;
}

/// The catalog entry of that name, or null with an error among the issues.
const ModelEntry* named_model(const Catalog& catalog, const std::string& name, const char* path, Issues& issues) {
  const ModelMatch match = catalog.find_model(name);
  if (match.model != nullptr && !match.rule.empty()) {
    issues.push_back({"RESOLVED_MODEL", Severity::kNote, path,
                      in_quotes(name) + " is read as " + match.model->id + " (" + match.rule + ").", match.model->id});
  }
  if (match.model == nullptr) {
    const std::vector<std::string> near = catalog.nearest_models(name, 3);
    std::string message = "The catalog has no model of the name " + in_quotes(name) + ".";
    message += near.empty() ? " Paste its config.json instead."
                            : " Near it are " + joined(near) + "; or paste its config.json.";
    issues.push_back({"UNKNOWN_MODEL", Severity::kError, path, std::move(message), near.empty() ? "" : near.front()});
  }
  return match.model;
}

/// The catalog entry that the request means, or null with an error among the issues.
const ModelEntry* choose_model(const Catalog& catalog, const Request& request, Issues& issues) {
  if (request.parameters > 0.0) {
    const ModelEntry* model = catalog.model_of_size(request.parameters);
    if (model == nullptr) {
      issues.push_back({"UNKNOWN_MODEL", Severity::kError, "/parameters", "No catalog is loaded to choose from.", ""});
      return nullptr;
    }
    const auto count = static_cast<double>(model->parameters());
    const double ratio = std::max(request.parameters / count, count / request.parameters);
    issues.push_back({"ASSUMED_ARCHITECTURE", ratio > 1.25 ? Severity::kWarning : Severity::kNote, "/parameters",
                      "Only a count is given: the answer is for " + model->id + ", which has " +
                          format_grouped(model->parameters()) +
                          " parameters. Name a model or paste its config.json for one that is yours.",
                      model->id});
    return model;
  }
  return named_model(catalog, request.model, "/model", issues);
}

/// What a student learns from: the model itself where nobody says otherwise (trl 1.9 experimental/gkd/gkd_config.py).
void take_teacher(const Catalog& catalog, const Request& request, Architecture& student, Issues& issues) {
  const Value* config = request.teacher_config.is_object() ? &request.teacher_config : nullptr;
  if (config == nullptr && !request.teacher.empty()) {
    const ModelEntry* model = named_model(catalog, request.teacher, "/teacher_model", issues);
    if (model == nullptr) return;
    config = &model->config;
  }
  if (config == nullptr) {
    student.teacher = std::make_shared<Architecture>(student);
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/teacher_model",
                      "No teacher is named: a frozen copy of the model is taken, as TRL's GKDConfig says.", ""});
    return;
  }
  ConfigResult read = read_config(*config, {});
  for (Issue& issue : read.issues) {
    if (issue.severity != Severity::kError) continue;
    issue.path = "/teacher_model";
    issues.push_back(std::move(issue));
  }
  student.teacher = std::make_shared<Architecture>(without_dropout(std::move(read.architecture)));
}

/// The class that is trained; a config.json that names none is of its type's own.
std::string trained_class(const Value& config, const Request& request) {
  const Family* type = type_named(text_at(config, "model_type"));
  return class_of(config, request, type == nullptr ? std::string_view{} : type->class_name);
}

/// A group of answers is scored by a model where one is named; functions do it elsewhere.
bool is_scored_by_model(const Request& request, const TrainingJob& job) {
  const bool groups = job.preference == Preference::kGrpo || job.preference == Preference::kRloo;
  return groups && (request.judge_config.is_object() || !request.judge.empty());
}

/// What scores answers, and a copy of it that learns what they earn (trl 1.9 experimental/ppo: reward_model_path).
void take_judge(const Catalog& catalog, const Request& request, const Value& own, Architecture& policy,
                TrainingJob& job, Issues& issues) {
  const bool is_named = request.judge_config.is_object() || !request.judge.empty();
  const Value* config = request.judge_config.is_object() ? &request.judge_config : &own;
  if (config == &own && is_named) {
    Issues unknown;
    const ModelEntry* model = named_model(catalog, request.judge, "/reward_model", unknown);
    if (model != nullptr) {
      config = &model->config;
    } else {
      job.stand_ins.emplace_back(
          "a reward model that the catalog does not have, answered by one as large as the model");
    }
  }
  Request scoring;
  scoring.task = "reward";
  ConfigResult read = read_config(*config, trained_class(*config, scoring));
  for (Issue& issue : read.issues) {
    if (issue.severity != Severity::kError) continue;
    issue.path = "/reward_model";
    issues.push_back(std::move(issue));
  }
  if (job.generates() && !job.has_critic()) job.rollout.judge = loaded_by_name(job, checkpoint_dtype(*config));
  Architecture judge = without_dropout(std::move(read.architecture));
  judge.num_labels = 1;
  if (is_encoder(judge) || judge.language != nullptr || judge.head != Head::kSequenceClassification ||
      judge.num_decoder_layers > 0) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/reward_model",
                      "A reward model is modelled that is a decoder of text with a score per sequence.", ""});
  }
  policy.judge = std::make_shared<Architecture>(std::move(judge));
  if (!is_named) {
    issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/reward_model",
                      job.has_critic()
                          ? "No reward model is named: reward and value model are taken to be as large as the model, "
                            "each with a score in the place of its head."
                          : "No reward model is named: one as large as the model is taken, with a score in the place "
                            "of its head. Where functions score the answers, say \"reward_functions\": true.",
                      ""});
  }
}

/// Weights, gradients and states of a model of which only the size is known.
PartialAnswer partial_answer(const ModelEntry& model, const TrainingJob& job) {
  const Recipe& recipe = job.recipe;
  const bool adapters = job.method == Method::kLora || job.method == Method::kQlora;
  PartialAnswer partial;
  partial.model = model.id;
  partial.parameters = model.parameters();
  partial.weights = partial.parameters * size_of(recipe.weights);
  partial.note = "Parameters times bytes of the recipe";
  if (job.method == Method::kQlora) {
    partial.weights = partial.parameters * job.quantization.bits / 8;
    partial.note = "Parameters times bits, as if every parameter were quantised";
  } else if (recipe.master_weights) {
    partial.weights += partial.parameters * size_of(*recipe.master_weights);
  }
  if (adapters) {
    partial.note += "; the adapters with their gradients and states";
  } else {
    partial.gradients = partial.parameters * size_of(recipe.gradients);
    partial.optimizer_states = partial.parameters * state_bytes_per_element(job);
    partial.note += ", as if every parameter were trained";
  }
  partial.note += adapters ? ", activations, logits and workspaces are missing"
                           : "; activations, logits and workspaces are missing";
  partial.note += ": this is not the memory that the job needs.";
  return partial;
}

/// What nvidia-smi shows beyond the allocator's memory: the context of the card, and what the user states.
void add_context(Estimate& estimate, const CudaContext& context, const Overrides& overrides) {
  const auto from_gib = [](double gib) { return static_cast<Bytes>(gib * static_cast<double>(kGiB)); };
  const Bytes misc = from_gib(overrides.misc_overhead_gib.value_or(0.0));
  const auto own = [&](Bytes bytes) {
    return misc + (overrides.cuda_context_gib ? from_gib(*overrides.cuda_context_gib) : bytes);
  };
  estimate.device = {estimate.reserved.low + own(context.low), estimate.reserved.expected + own(context.expected),
                     estimate.reserved.high + own(context.high)};
}

/// What the allocator reserves beyond what is allocated, by a calibration.
void scale_cache(Estimate& estimate, double factor) {
  const auto scaled = [factor](Bytes reserved, Bytes allocated) {
    return allocated + static_cast<Bytes>(static_cast<double>(reserved - allocated) * factor);
  };
  const Range& allocated = estimate.allocated;
  Range& reserved = estimate.reserved;
  reserved = {scaled(reserved.low, allocated.low), scaled(reserved.expected, allocated.expected),
              scaled(reserved.high, allocated.high)};
}

/// Of the card that runs the job: as measured, where it was.
CudaContext context_of(const Understood& question, const std::optional<Calibration>& calibration) {
  CudaContext context = cuda_context(question.gpu);
  if (!calibration || question.cards.empty()) return context;
  const auto measured = calibration->context_of(question.cards.front().card.name);
  if (measured) context.low = context.expected = context.high = *measured;
  return context;
}

/// The card behind a name or an amount of memory, `gpu` being the catalog's entry or what stands for it; nothing with
/// an error among the issues. `divided`: among how many the job is.
std::optional<CardChoice> choose_card(const Catalog& catalog, const GpuQuery& query, Count divided, Gpu& gpu,
                                      Issues& issues) {
  const std::optional<GpuMatch> known = find_gpu(catalog.gpus(), query.name);
  if (known) gpu = known->gpu;
  CardChoice choice;
  Card& card = choice.card;
  if (query.memory_gib > 0.0) {
    choice.compute_capability = choice_of(gpu).compute_capability;
    card.visible = static_cast<Bytes>(query.memory_gib * static_cast<double>(kGiB));
    card.name = query.name.empty() ? format_gib(card.visible) : query.name;
    card.context = cuda_context(gpu).expected;
    card.estimated = "The memory that you state is taken as what torch sees; the CUDA context is estimated.";
    return choice;
  }
  if (query.name.empty() && query.vram_gb > 0.0) return card_of_size(query.vram_gb, catalog.gpus());
  if (!known) {
    const std::string near = nearest_gpu(catalog.gpus(), query.name);
    std::string message = "The catalog has no card of the name " + in_quotes(query.name) + ".";
    if (!near.empty()) message += " Near it is " + near + ".";
    message += " Or state its memory: {\"memory_gib\": 24}.";
    issues.push_back({"UNKNOWN_GPU", Severity::kError, "/gpu", std::move(message), near});
    return std::nullopt;
  }
  if (known->count > 1 && known->count == divided) {
    issues.push_back({"RESOLVED_GPU", Severity::kNote, "/gpu",
                      in_quotes(query.name) + " is " + std::to_string(divided) + " x " + gpu.name +
                          ", which divide the job among them.",
                      gpu.name});
  } else if (known->count > 1) {
    std::string message = in_quotes(query.name) + " is " + std::to_string(known->count) + " x " + gpu.name +
                          "; the answer is about one of them, which holds the whole job.";
    issues.push_back({"ONE_CARD", Severity::kWarning, "/gpu", std::move(message), gpu.name});
  } else if (known->instance) {
    issues.push_back(
        {"RESOLVED_GPU", Severity::kNote, "/gpu", in_quotes(query.name) + " has one " + gpu.name + ".", gpu.name});
  }
  return choice_of(gpu);
}

/// What several GPUs need on each beside the job itself: NCCL's buffers, unless the request states the overheads.
void count_communicator(const TrainingJob& job, double factor, Overrides& overrides, Issues& issues) {
  if (job.gpus() <= 1) return;
  std::string text =
      job.pipeline.is_used() ? "The figures are those of one of the " : "The figures are those of each of the ";
  if (job.data_parallel.is_one_process()) text = "The figures are those of the first of the ";
  text += std::to_string(job.gpus()) + " GPUs: " + in_words(job) + ".";
  if (!overrides.misc_overhead_gib && !job.pipeline.is_device_map()) {
    const auto nccl = static_cast<Bytes>(static_cast<double>(nccl_communicator(job.gpus())) * factor);
    overrides.misc_overhead_gib = static_cast<double>(nccl) / static_cast<double>(kGiB);
    text += " NCCL's buffers are assumed to take " + format_gib(nccl) +
            " more on the card; overrides.misc_overhead_gib replaces that.";
  }
  issues.push_back({"EACH_GPU", Severity::kNote, "/parallelism/data", std::move(text), ""});
}

/// Every answer that uses a calibration says so, and how far it is from what it was made of.
void tell_calibration(const Calibration& calibration, const std::vector<CardChoice>& cards, Issues& issues) {
  constexpr double kMismatch = 5.0;
  std::string text = "Calibrated by " + std::to_string(calibration.measurements) +
                     " of your measurements: " + in_words(calibration) + ". It misses them by " +
                     shortest_decimal(calibration.worst_percent) + " % at most, and each by " +
                     shortest_decimal(calibration.worst_left_out_percent) + " % where that one is left out.";
  for (const CardChoice& choice : cards) {
    if (calibration.context_of(choice.card.name)) continue;
    text += " The context of " + choice.card.name + " was not measured: it is the catalog's.";
  }
  const bool far = calibration.worst_percent > kMismatch;
  if (far) text += " Something else than what was asked for was measured, or the code is not what is modelled.";
  issues.push_back({"CALIBRATED", far ? Severity::kWarning : Severity::kNote, "/calibration", std::move(text), ""});
}

/// GPUs that the request names without counting them.
void count_gpus(const Catalog& catalog, const Request& request, TrainingJob& job) {
  DataParallel& data = job.data_parallel;
  // Expert parallelism takes its GPUs from the data-parallel ones.
  const Count degree = job.tensor.degree, experts = job.expert * gpus_of_expert(job);
  if (job.is_megatron() && data.degree == 1 && job.context == 1 && job.expert > 1) {
    data.degree = (experts + degree - 1) / degree;
  }
  // "8xH100" beside FSDP or ZeRO names all GPUs that divide the model.
  if (!job.is_megatron() && data.sharding != Sharding::kNone && data.degree == 1 && request.gpus.size() == 1) {
    const std::optional<GpuMatch> known = find_gpu(catalog.gpus(), request.gpus.front().name);
    if (known && job.gpus() == 1) data.degree = known->count;
  }
}

/// The cards that are asked about. The first decides which kernels run; without one, an A100's do.
void choose_cards(const Catalog& catalog, const Request& request, const Calibration& calibration,
                  Understood& question) {
  Answer& answer = question.answer;
  const DataParallel& data = answer.job.data_parallel;
  question.gpu.compute_capability = request.job.compute_capability;
  for (const GpuQuery& query : request.gpus) {
    Gpu gpu;
    gpu.compute_capability = request.job.compute_capability;
    std::optional<CardChoice> choice =
        choose_card(catalog, query, data.is_sharded() ? data.degree : 0, gpu, answer.issues);
    if (!choice) continue;
    if (const auto context = calibration.context_of(choice->card.name)) choice->card.context = *context;
    if (question.cards.empty()) question.gpu = std::move(gpu);
    question.cards.push_back(std::move(*choice));
  }
  if (request.calibration) tell_calibration(calibration, question.cards, answer.issues);
  if (!question.cards.empty()) answer.job.compute_capability = question.cards.front().compute_capability;
}

/// A model type that the catalog lists is not a misspelt one: Mixtral is no Mistral, gpt_oss no GPT-BigCode.
void keep_known_types(const Catalog& catalog, const Value& config, Issues& issues) {
  const std::vector<ModelEntry>& models = catalog.models();
  const std::string type = text_at(config, "model_type");
  const bool known =
      std::any_of(models.begin(), models.end(), [&](const ModelEntry& model) { return model.model_type() == type; });
  for (Issue& issue : issues) {
    if (known && issue.code == "UNSUPPORTED_ARCHITECTURE") issue.suggestion.clear();
  }
}

/// Whether the records tell of evaluation beside what divides the job: transformers' Trainer with DeepSpeed or FSDP.
bool is_evaluation_counted(const TrainingJob& job) {
  if (job.generates() || job.generates_pairs() || job.is_megatron()) return false;
  if (!job.data_parallel.is_sharded()) return true;
  if (job.tensor.is_used() || job.pipeline.is_used() || job.expert > 1 || job.context > 1) return false;
  return !divides_weights(job) || !job.evaluation.generates;
}

/// Elsewhere its forwards are not modelled.
void leave_out_evaluation(TrainingJob& job, Issues& issues) {
  if (job.evaluation.micro_batch_size == 0 || is_evaluation_counted(job)) return;
  job.evaluation.micro_batch_size = 0;
  issues.push_back({"NOT_COUNTED", Severity::kWarning, "/evaluation",
                    job.generates() || job.generates_pairs()
                        ? "Evaluation generates, too: it is not counted, but smaller than training as long as "
                          "its batch is."
                        : "Evaluation by generation or beside tensor, expert or pipeline parallelism is "
                          "not counted where GPUs divide the model; the peak of training is answered.",
                    ""});
}

/// What vLLM on the same card takes of it.
void settle_share(const std::vector<CardChoice>& cards, TrainingJob& job, Issues& issues) {
  if (!job.rolls_out() || job.rollout.engine != RolloutEngine::kVllm) return;
  const long tenths = std::lround(job.rollout.share * 1000.0);
  const std::string rest = tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10);
  std::string text = "vLLM takes " + std::to_string(tenths / 10) + rest + " % of the card's memory";
  if (cards.empty()) {
    issues.push_back({"NOT_COUNTED", Severity::kWarning, "/rollout/gpu_memory_utilization",
                      text + ", which is not counted: name the card.", ""});
    return;
  }
  take_share(cards.front().card, job);
  text += ", " + format_gib(job.rollout.reserved) + " of " + cards.front().card.name;
  if (job.rollout.sleeps) {
    text +=
        ", while it generates, and gives it back while the model trains. Its CUDA graphs and buffers for logits "
        "stay: vLLM's own test allows 7 GiB of them, by which the range is wider.";
  } else {
    text += ", as long as the job runs.";
  }
  issues.push_back({"VLLM_SHARE", Severity::kNote, "/rollout/gpu_memory_utilization", std::move(text), ""});
}

/// vLLM tests/basic_correctness/test_cumem.py: test_end_to_end: what is used after llm.sleep().
void allow_for_sleeper(const TrainingJob& job, Estimate& e) {
  constexpr Bytes kStays = 7 * kGiB;
  if (!job.rolls_out() || job.rollout.engine != RolloutEngine::kVllm || !job.rollout.sleeps) return;
  Bytes trains = 0;
  for (int phase = 0; phase < kPhaseCount; ++phase) {
    if (phase != static_cast<int>(Phase::kGeneration)) trains = std::max(trains, e.phase_peaks[phase]);
  }
  for (Range* range : {&e.allocated, &e.reserved}) range->high = std::max(range->high, trains + kStays);
}

/// TrainingArguments.use_liger_kernel of a model that Liger does not know. liger_kernel 0.8.5
/// transformers/monkey_patch.py MODEL_TYPE_TO_APPLY_LIGER_FN: "There are currently no Liger kernels supported for".
void suit_liger(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  constexpr std::string_view kKnown =
      "deepseek_v2,deepseek_v3,kimi_k2,gemma,gemma2,gemma3_text,gemma3,gemma4_text,gemma4,glm4,glm4v,glm4v_moe,gpt_oss,"
      "internvl,llama,Yi,llama4_text,llama4,llava,granite,mllama,ministral,mistral,mixtral,nemotron,olmo2,olmo3,qwen2,"
      "qwen3,qwen3_moe,qwen2_vl,qwen2_5_vl,qwen3_next,qwen3_5,qwen3_5_text,qwen3_5_moe,qwen3_5_moe_text,qwen3_vl,"
      "qwen3_vl_moe,smollm3,phi3,paligemma,falcon_h1,smolvlm,hunyuan_v1_dense,hunyuan_v1_moe,exaone4";
  if (job.loss != Loss::kLiger || architecture.head != Head::kCausalLm) return;
  if (has_word(kKnown, architecture.model_type)) return;
  const bool by_switch = job.liger_rms_norm && job.liger_swiglu && job.liger_rope;
  if (by_switch) {
    job.loss = Loss::kDefault;
    job.liger_rms_norm = job.liger_swiglu = job.liger_rope = false;
  }
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, by_switch ? "/use_liger_kernel" : "/loss",
                    "Liger 0.8 has no kernels for " + architecture.model_type +
                        ": use_liger_kernel of transformers and its like changes nothing. " +
                        (by_switch ? "The figure is that without." : "The figure is that of its loss put in by hand."),
                    ""});
}

/// A model whose modules of dropout a trainer of TRL's has switched off; functions go on dropping.
Architecture without_dropout_modules(const Architecture& dropping) {
  Architecture a = without_dropout(dropping);
  const DropoutCalls calls = a.program != nullptr ? a.program->dropout_calls : DropoutCalls::kOfAttention;
  if (is_encoder(a) || calls == DropoutCalls::kNone) return a;
  a.attention_dropout = dropping.attention_dropout;
  if (calls != DropoutCalls::kAll) return a;
  a.residual_dropout = dropping.residual_dropout;
  a.embedding_dropout = dropping.embedding_dropout;
  a.activation_dropout = dropping.activation_dropout;
  return a;
}

/// What a task alone changes of a model, or asks of it.
void suit_task(const Request& request, Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (request.task == "seq2seq" && architecture.num_decoder_layers == 0) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/task",
                      "\"seq2seq\" is of encoder-decoders; this model has no decoder of its own. Use \"sft\".", "sft"});
  }
  if (request.task == "diffusion" && architecture.denoiser.latents == 0) {
    issues.push_back({"INVALID_VALUE", Severity::kError, "/task",
                      "\"diffusion\" is of denoisers: a U-Net, or a transformer of diffusers.", "sft"});
  }
  // sentence-transformers CrossEncoder, ms-swift model/model_meta.py: num_labels is 1 where nobody says otherwise.
  if (ranks(request.task)) architecture.num_labels = 1;
  if (request.task == "prm") {
    // TRL 1.9 experimental/prm/prm_trainer.py: __init__: disable_dropout; examples/scripts/prm.py: num_labels.
    architecture = without_dropout_modules(architecture);
    architecture.num_labels = 2;
    job.adapter.lora_dropout = 0.0;
  }
  const Preference preference = request.job.preference;
  if (preference == Preference::kNone) return;
  // Of TRL's trainers; ms-swift's on Megatron-Core leave dropout as it is.
  const bool calm = !request.job.generates() || request.job.has_critic();
  if (calm && !request.job.is_megatron()) architecture = without_dropout_modules(architecture);
  if (preference == Preference::kReward) architecture.num_labels = 1;  // TRL trainer/reward_trainer.py: __init__
}

/// transformers 5.12 modeling_layers.py GenericForSequenceClassification.forward and its like. TRL's trainers and
/// ms-swift's set it themselves.
void tell_padding_id(const Request& request, const Architecture& a, const TrainingJob& job, Issues& issues) {
  const Value& config = request.config;
  const bool decodes = a.program != nullptr && a.facts.text_input && !is_encoder(a) && a.num_decoder_layers == 0;
  if (!config.is_object() || a.head != Head::kSequenceClassification || !decodes) return;
  if (job.preference != Preference::kNone || job.micro_batch_size < 2 || job.framework.name == "ms_swift") return;
  const Value* text = config.find("text_config");
  for (const Value* part : {&config, text}) {
    const Value* id = part == nullptr ? nullptr : part->find("pad_token_id");
    if (id != nullptr && !id->is_null()) return;
  }
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/config/pad_token_id",
                    "The configuration names no pad_token_id, without which the class raises a ValueError for batches "
                    "of several rows: the script is taken to set model.config.pad_token_id.",
                    ""});
}

/// What a diffusion model's script decides where the request does not: the form of checkpointing, and how long the text
/// is, because the options' own length is a language model's.
void suit_denoiser(const Denoiser& denoiser, const LeftOpen& open, TrainingJob& job, Issues& issues) {
  if (denoiser.latents == 0) return;
  if (open.use_reentrant) job.use_reentrant = checkpoints_reentrantly(denoiser, job);
  if (job.sequence_length > 0 && job.sequence_length <= Denoiser::kMostTextTokens) return;
  job.sequence_length = denoiser.text_tokens;
  const std::string taken = std::to_string(job.sequence_length);
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/sequence_length",
                    "The text is taken to be " + taken +
                        " tokens long, as diffusers' scripts cut it; a length of at most 1024 replaces that.",
                    taken});
}

/// Where nobody says a length it is no longer than the model's table of positions, as a tokenizer cuts it.
void suit_positions(const Architecture& architecture, const LeftOpen& open, TrainingJob& job, Issues& issues) {
  Count positions = architecture.learned_positions();
  if (positions == 0 && job.decoder_sequence_length == 0) positions = decoder_positions(architecture);
  const Count learned = job.has_adapter() && job.adapter.learns_prompt() ? job.adapter.num_virtual_tokens : 0;
  if (!open.sequence_length || positions <= learned || job.sequence_length + learned <= positions) return;
  job.sequence_length = positions - learned;
  const std::string taken = std::to_string(job.sequence_length);
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/sequence_length",
                    "Sequences are taken to have " + taken + " tokens, where the model's table of positions ends.",
                    taken});
}

/// Pictures are of the model's own size where the request does not say of which. A short sequence holds smaller ones of
/// a model whose processor leaves these as they are: the largest squares that it has room for are taken.
void suit_pictures(const Architecture& architecture, TrainingJob& job, Issues& issues) {
  if (job.images_per_sample == 0 || job.image_height > 0 || architecture.parts.empty()) return;
  const Architecture& tower = architecture.parts.front();
  if (!tower.pictures.keeps_size) return;
  const Count unit = tower.patch_size * std::max<Count>(architecture.pictures.merge, 1);
  const Count own = unit > 0 ? tower.image_size / unit : 0;
  if (own * own * job.images_per_sample <= job.sequence_length) return;
  TrainingJob smaller = job;
  const auto fits = [&](Count units) {
    smaller.image_height = smaller.image_width = units * unit;
    return simulate(architecture, smaller).picture_tokens <= job.sequence_length;
  };
  if (simulate(architecture, job).picture_tokens <= job.sequence_length || !fits(1)) return;
  Count least = 1, most = own;  // this many units fit, and this many do not
  while (most - least > 1) {
    const Count middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  job.image_height = job.image_width = least * unit;
  issues.push_back({"ASSUMED_DEFAULT", Severity::kNote, "/image_size",
                    "The sequence has no room for pictures of the model's own size: they are taken to be " +
                        std::to_string(job.image_height) + " pixels a side, the largest that it holds. State " +
                        "\"image_size\".",
                    ""});
}

/// What the job allocates with the kernels of that card.
Range allocated_on(const CardChoice& choice, const Answer& answer, const Estimate& result) {
  TrainingJob there = answer.job;
  there.compute_capability = choice.compute_capability;
  take_share(choice.card, there);
  if (there == answer.job) return result.allocated;
  return estimate(answer.architecture, there).allocated;
}

}  // namespace

Answer Estimator::answer(const Asked& asked) const {
  Understood question = understand(asked);
  Answer& answer = question.answer;
  if (!question.complete) return std::move(answer);
  Estimate result = estimate(answer.architecture, answer.job);
  if (!question.take(result.issues)) return std::move(answer);
  result.issues.clear();
  allow_for_sleeper(answer.job, result);
  if (question.by_count) result.architecture = answer.model;
  if (asked.request.calibration) scale_cache(result, asked.request.calibration->fragmentation);
  add_context(result, context_of(question, asked.request.calibration), answer.overrides);
  for (const CardChoice& named : question.cards) {
    CardChoice choice = named;
    choice.card = left_of(named.card, answer.overrides);
    answer.cards.push_back(std::move(choice));
    answer.fits.push_back(check_fit(allocated_on(named, answer, result), named.card, answer.overrides));
    cannot_run(answer.fits.back(), refusal_of_length(answer.architecture, answer.job.sequence_length));
  }
  answer.estimate = std::move(result);
  return std::move(answer);
}

bool Understood::take(Issues& found) {
  for (Issue& issue : found) {
    if (model != nullptr && issue.path.rfind("/config", 0) == 0) issue.path = "/model";
    // Of some models the catalog knows the type and the count alone.
    const bool unread = issue.code == "UNSUPPORTED_ARCHITECTURE" || issue.code == "MISSING_FIELD";
    if (unread && model != nullptr && model->parameters() > 0) {
      answer.partial = partial_answer(*model, answer.job);
    }
    answer.issues.push_back(std::move(issue));
  }
  return !has_error(answer.issues);
}

Understood Estimator::understand(const Asked& asked) const {
  Understood question = resolve(asked);
  bound(question.answer.issues);
  return question;
}

Understood Estimator::resolve(const Asked& asked) const {
  Understood question;
  Answer& answer = question.answer;
  answer.engine = version_;
  answer.catalog = catalog_.date();
  const Request& request = asked.request;
  answer.issues = asked.issues;
  Issues& issues = answer.issues;
  answer.job = request.job;
  question.batching = {request.job, request.foreign};
  answer.overrides = request.overrides;
  count_gpus(catalog_, request, answer.job);
  const Calibration calibration = request.calibration.value_or(Calibration{});
  count_communicator(answer.job, calibration.communication, answer.overrides, issues);
  // Everything that is wrong is told at once: a bad name does not hide behind a bad batch size.
  choose_cards(catalog_, request, calibration, question);
  const auto settle = [&](const Value& config) {
    settle_quantization(config, answer.job, issues);
    answer.job.stored = checkpoint_dtype(config);
    settle_defaults(request.open, answer.job.stored, answer.job, issues);
    settle_targets(request.open, config, answer.job, issues);
    settle_foreign(request.foreign, answer.job, issues);
    settle_share(question.cards, answer.job, issues);
    if (!question.cards.empty()) check_kernels(answer.job, issues);
  };

  ConfigResult config;
  if (request.config.is_object()) {
    settle(request.config);
    config = read_config(request.config, trained_class(request.config, request));
  } else if (!request.model.empty() || request.parameters > 0.0) {
    const ModelEntry* model = choose_model(catalog_, request, issues);
    if (model == nullptr) return question;
    question.model = model;
    question.by_count = request.parameters > 0.0;
    answer.model = model->id;
    if (!request.model.empty()) settle_stored(request.model, answer.job, issues);
    settle(model->config);
    config = read_config(model->config, trained_class(model->config, request));
    config.architecture.published_parameters = model->published;
  } else {
    return question;
  }
  keep_known_types(catalog_, request.config.is_object() ? request.config : question.model->config, config.issues);
  const bool readable = question.take(config.issues);
  answer.architecture = std::move(config.architecture);
  if (answer.model.empty()) answer.model = answer.architecture.class_name;
  if (!readable) return question;
  add_new_layers(request.foreign.new_layers, answer.architecture, issues);
  settle_trained_layers(answer.architecture.num_layers, request.foreign, answer.job, issues);
  settle_pictures(answer.architecture, answer.job, issues);
  suit_task(request, answer.architecture, answer.job, issues);
  tell_padding_id(request, answer.architecture, answer.job, issues);
  if (answer.job.has_teacher()) {
    take_teacher(catalog_, request, answer.architecture, issues);
    if (answer.architecture.teacher == nullptr) return question;
  }
  const bool scored = is_scored_by_model(request, answer.job);
  if (scored && (answer.job.data_parallel.is_sharded() || answer.job.is_megatron())) {
    answer.job.not_counted.emplace_back("a reward model beside weights that GPUs divide");
  } else if (scored || answer.job.has_judge()) {
    take_judge(catalog_, request, request.config.is_object() ? request.config : question.model->config,
               answer.architecture, answer.job, issues);
    if (answer.architecture.judge == nullptr) return question;
  }
  settle_loss(request.open.loss, answer.architecture, answer.job, issues);
  suit_liger(answer.architecture, answer.job, issues);
  suit_denoiser(answer.architecture.denoiser, request.open, answer.job, issues);
  suit_positions(answer.architecture, request.open, answer.job, issues);
  if (answer.job.is_megatron()) as_megatron(answer.job, answer.architecture, issues);
  take_implementation(answer.job, answer.architecture);
  const Program* const program = answer.architecture.program;
  if (program != nullptr && program->implementation == nullptr) {
    settle_attention(answer.architecture, answer.job, issues);
  }
  settle_axolotl_attention(answer.architecture, answer.job, issues);
  settle_lora_kernels(request.open.lora_kernels, answer.architecture, answer.job, issues);
  leave_out_evaluation(answer.job, issues);
  if (is_supported(answer.architecture)) settle_optimizer(answer.architecture, answer.job, issues);
  for (const auto check :
       {check_magnitude, check_positions, check_attention, check_model, check_sharding, check_tensor, check_pipeline}) {
    check(answer.architecture, answer.job, issues);
  }
  if (answer.architecture.head != Head::kCausalLm) {
    answer.job.loss = Loss::kDefault;
    answer.job.packing = false;
  }
  if (!has_error(issues) && is_supported(answer.architecture)) {
    Issues found = plan_modules(answer.architecture, answer.job).issues;
    issues.insert(issues.end(), found.begin(), found.end());
  }
  if (!has_error(issues) && is_supported(answer.architecture)) suit_pictures(answer.architecture, answer.job, issues);
  question.complete = !has_error(issues);
  return question;
}

}  // namespace tidemark
