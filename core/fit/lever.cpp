#include "core/fit/lever.hpp"

#include <algorithm>

#include "core/fit/gpu_levers.hpp"
#include "core/job/check.hpp"
#include "core/job/defaults.hpp"
#include "core/job/recipe.hpp"
#include "core/layers/program.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/plan/pipeline.hpp"
#include "core/plan/sharded.hpp"

namespace tidemark {
namespace {

// Weights. One rule stands above the single figures: everything that costs only time adds up to less than giving up
// full fine-tuning or cutting samples. docs/advice.md tells the reasons.
constexpr Cost kFusedAdamw{1,
                           Harm::kNothing,
                           "faster: one kernel instead of many",
                           "the same up to rounding",
                           "none",
                           "PyTorch documentation, torch.optim.AdamW: fused"};
constexpr Cost kSdpa{1,        Harm::kNothing,
                     "faster", "the same up to rounding",
                     "none",   "PyTorch documentation, torch.nn.functional.scaled_dot_product_attention"};
constexpr Cost kFlash2{3,
                       Harm::kNothing,
                       "faster or equal; needs the flash-attn package",
                       "the same up to rounding",
                       "none",
                       "Dao 2023, FlashAttention-2, arXiv:2307.08691"};
constexpr Cost kChunkedLoss{2,
                            Harm::kNothing,
                            "equal, within a few per cent",
                            "the same up to rounding",
                            "none",
                            "torchtune documentation, CEWithChunkedOutputLoss"};
constexpr Cost kLigerLoss{4,
                          Harm::kNothing,
                          "equal or faster; needs the liger-kernel package and a model it knows",
                          "the same up to rounding",
                          "none",
                          "Hsu et al. 2024, Liger Kernel, arXiv:2410.10989"};
constexpr Cost kEveryOther{10,
                           Harm::kSpeed,
                           "half of the layers run forward twice: about a sixth more work",
                           "the same up to rounding",
                           "none",
                           "Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174"};
constexpr Cost kEveryLayer{20,
                           Harm::kSpeed,
                           "every layer runs forward twice: 20 to 40 % slower",
                           "the same up to rounding",
                           "none",
                           "Korthikanti et al. 2022, Reducing Activation Recomputation, arXiv:2205.05198"};
constexpr Cost kOffloadInputs{32,
                              Harm::kSpeed,
                              "as checkpointing every layer, and each layer's input travels to host memory and back",
                              "the same up to rounding",
                              "none",
                              "PyTorch documentation, torch.autograd.graph.save_on_cpu"};
constexpr Cost kEightBit{20,
                         Harm::kNumerics,
                         "equal",
                         "optimizer states are kept in 8 bits, block by block",
                         "equal to 32-bit states on the tasks that its authors tried",
                         "Dettmers et al. 2022, 8-bit Optimizers via Block-wise Quantization, arXiv:2110.02861"};
constexpr Cost kPagedEightBit{28,
                              Harm::kNumerics,
                              "slower where the states do not stay on the card: they are paged",
                              "optimizer states are kept in 8 bits, block by block",
                              "equal to 32-bit states on the tasks that its authors tried",
                              "Dettmers et al. 2023, QLoRA, section 3: paged optimizers, arXiv:2305.14314"};
constexpr Cost kAdafactor{40,
                          Harm::kTraining,
                          "equal or slower",
                          "another algorithm: a factored second moment",
                          "close to Adam after its learning rate is tuned anew",
                          "Shazeer and Stern 2018, Adafactor, arXiv:1804.04235"};
constexpr Cost kLion8{45,
                      Harm::kTraining,
                      "equal or faster",
                      "another algorithm: the sign of one moment, in 8 bits",
                      "needs a learning rate 3 to 10 times smaller and more weight decay",
                      "Chen et al. 2023, Symbolic Discovery of Optimization Algorithms, arXiv:2302.06675"};
constexpr Cost kAutocast{15,
                         Harm::kNumerics,
                         "faster",
                         "matrix products in bf16, weights in fp32",
                         "equal to fp32 in practice",
                         "Kalamkar et al. 2019, A Study of BFLOAT16 for Deep Learning Training, arXiv:1905.12322"};
constexpr Cost kBf16Weights{40,
                            Harm::kNumerics,
                            "faster",
                            "weights and optimizer states in bf16: small updates are rounded away",
                            "can converge worse, the more the smaller the learning rate",
                            "Zamirai et al. 2020, Revisiting BFloat16 Training, arXiv:2010.06192"};
constexpr Cost kPureBf16{
    46,
    Harm::kNumerics,
    "faster",
    "as bf16 weights, and norms, softmax and residuals in bf16 where the model does not say otherwise",
    "can converge worse, the more the smaller the learning rate",
    "Zamirai et al. 2020, Revisiting BFloat16 Training, arXiv:2010.06192"};
constexpr Cost kNoAutocast{6,        Harm::kNumerics,
                           "faster", "norms, softmax and residuals in bf16 as well",
                           "small",  "Zamirai et al. 2020, Revisiting BFloat16 Training, arXiv:2010.06192"};
constexpr Cost kFrozenBf16{5,
                           Harm::kNumerics,
                           "faster",
                           "frozen weights are rounded to bf16; adapters stay in fp32",
                           "none seen: most checkpoints are published in bf16",
                           "PEFT documentation, autocast_adapter_dtype"};
constexpr Cost kBf16Adapters{15,
                             Harm::kNumerics,
                             "faster",
                             "adapters and their optimizer states in bf16",
                             "can converge worse; PEFT keeps adapters in fp32 for this reason",
                             "PEFT documentation, autocast_adapter_dtype"};
constexpr Cost kGradientsBf16{15,
                              Harm::kNumerics,
                              "equal",
                              "gradients are accumulated in bf16 instead of fp32",
                              "small with few micro-batches per step",
                              "Zamirai et al. 2020, Revisiting BFloat16 Training, arXiv:2010.06192"};
constexpr Cost kLora{100,
                     Harm::kTraining,
                     "faster",
                     "only low-rank adapters are trained",
                     "learns less and forgets less than full fine-tuning",
                     "Biderman et al. 2024, LoRA Learns Less and Forgets Less, arXiv:2405.09673"};
constexpr Cost kQlora{130,
                      Harm::kTraining,
                      "slower than LoRA: weights are dequantised in each pass",
                      "only low-rank adapters are trained, beside weights in 4 bits",
                      "equal to 16-bit LoRA on the tasks that its authors tried",
                      "Dettmers et al. 2023, QLoRA, arXiv:2305.14314"};
constexpr Cost kQuantise{30,
                         Harm::kTraining,
                         "slower: weights are dequantised in each pass",
                         "frozen weights in 4 bits",
                         "equal to 16-bit LoRA on the tasks that its authors tried",
                         "Dettmers et al. 2023, QLoRA, arXiv:2305.14314"};
constexpr Cost kSmallerBatch{
    5,
    Harm::kSpeed,
    "smaller kernels, the same samples per optimizer step: slower",
    "the same up to rounding (transformers 4.46 and later weigh micro-batches by their tokens)",
    "none",
    "Hugging Face blog, Fixing Gradient Accumulation, 2024"};
constexpr Cost kShorter{110,
                        Harm::kTraining,
                        "faster",
                        "samples are cut, or split, at the shorter length",
                        "what reaches further back is not learned",
                        "TRL documentation, SFTConfig: max_length"};
constexpr Cost kLowerRank{12,
                          Harm::kTraining,
                          "equal",
                          "adapters of a lower rank",
                          "small on the tasks that its authors tried; less room for large data sets",
                          "Hu et al. 2021, LoRA, section 7.2, arXiv:2106.09685"};

constexpr Cost kCachedEncoders{3,
                               Harm::kNothing,
                               "faster: each sample is encoded once, before training; kept on disk or in host memory",
                               "the same latents and embeddings, if nothing is drawn anew in each epoch",
                               "none without random crops and captions that are left out",
                               "diffusers documentation, DreamBooth: cache_latents, pre_compute_text_embeddings"};

constexpr Count kShortest = 256;  // tokens below which nobody trains
constexpr Count kLowestRank = 4;

bool has_adapters(const TrainingJob& job) {
  return job.method == Method::kLora || job.method == Method::kQlora;
}
bool computes_in_half(const TrainingJob& job) {
  return job.recipe.autocast || is_half(job.recipe.weights);
}
bool has_bf16(const TrainingJob& job) {
  return job.compute_capability >= 80;
}

class Steps {
 public:
  explicit Steps(Lever lever) : lever_(lever) {}

  void add(std::string title, std::vector<Setting> settings, const Cost& cost, int times = 1) {
    Step step;
    step.lever = lever_;
    step.title = std::move(title);
    step.settings = std::move(settings);
    step.cost = cost;
    step.cost.weight = cost.weight * times;
    list_.push_back(std::move(step));
  }

  /// `strongest` counts from the front; the last one when it is not given.
  std::vector<Step> done(std::size_t strongest = static_cast<std::size_t>(-1)) {
    if (!list_.empty()) list_[std::min(strongest, list_.size() - 1)].strongest = true;
    return std::move(list_);
  }

 private:
  Lever lever_;
  std::vector<Step> list_;
};

/// Another method, with the recipe stated where leaving it to the framework would change it, too.
std::vector<Setting> to_method(const TrainingJob& job, std::string_view method) {
  std::vector<Setting> settings = {set_word("method", method)};
  const bool named = named_recipe(job.recipe.name).has_value();
  if (named && precision_follows_method(job)) settings.push_back(set_word("precision", job.recipe.name));
  return settings;
}

std::vector<Step> method_steps(const TrainingJob& job) {
  Steps steps(Lever::kMethod);
  if (!job.has_adapter()) {
    // Beside a base that its name calls packed an adapter is what that says (core/engine/stored_as.hpp).
    if (job.name_says == NameSays::kNothing) {
      steps.add("LoRA adapters instead of all weights", to_method(job, "lora"), kLora);
    }
    if (job.name_says != NameSays::kOtherPacking) {
      steps.add("QLoRA: adapters beside 4-bit weights", to_method(job, "qlora"), kQlora);
    }
  } else if (job.method == Method::kLora) {
    steps.add("Frozen weights in 4 bits (QLoRA)", to_method(job, "qlora"), kQuantise);
  }
  return steps.done();
}

std::vector<Step> precision_steps(const TrainingJob& job) {
  Steps steps(Lever::kPrecision);
  if (!has_bf16(job)) return steps.done();  // Turing and Volta emulate it
  const Recipe& recipe = job.recipe;
  const Setting amp = set_word("precision", "bf16_amp");
  const Setting pure = set_word("precision", "pure_bf16");
  const bool wide = recipe.weights == Dtype::kFp32;
  if (has_adapters(job)) {
    if (wide) steps.add("Frozen weights in bf16", {amp}, kFrozenBf16);
    if (job.adapter.dtype == Dtype::kFp32 && is_half(recipe.weights) && !recipe.autocast) {
      steps.add("Adapters in bf16", {set_word("adapter.dtype", "bf16")}, kBf16Adapters);
    } else if (job.adapter.dtype == Dtype::kFp32) {
      steps.add("Frozen weights and adapters in bf16, no autocast", {pure, set_word("adapter.dtype", "bf16")},
                kBf16Adapters);
    } else if (wide || recipe.autocast) {
      steps.add("Frozen weights in bf16, no autocast", {pure}, kNoAutocast);
    }
    return steps.done();
  }
  if (recipe.master_weights) {
    if (recipe.gradients == Dtype::kFp32 && recipe.weights == Dtype::kBf16) {
      steps.add("Gradients in bf16", {set_word("precision", "deepspeed_bf16")}, kGradientsBf16);
    }
    steps.add("Weights and optimizer states in bf16, no master copy", {pure}, kPureBf16);
  } else if (wide) {
    if (!recipe.autocast) steps.add("bf16 autocast", {set_word("precision", "amp_bf16")}, kAutocast);
    steps.add("Weights and optimizer states in bf16, under autocast", {amp}, kBf16Weights);
    steps.add("Everything in bf16, no autocast", {pure}, kPureBf16);
  } else if (recipe.weights == Dtype::kBf16 && recipe.autocast) {
    steps.add("No autocast: everything in bf16", {pure}, kNoAutocast);
  }
  return steps.done();
}

std::vector<Step> sequence_steps(const TrainingJob& job, const Architecture& architecture) {
  Steps steps(Lever::kSequence);
  if (architecture.image_size > 0) return steps.done();
  int halvings = 1;
  for (Count length = job.sequence_length / 2; length >= kShortest; length /= 2, ++halvings) {
    if (length > 64) length -= length % 64;
    steps.add("Sequences of " + format_grouped(length) + " tokens", {set_count("sequence_length", length)}, kShorter,
              halvings);
  }
  return steps.done();
}

std::vector<Step> optimizer_steps(const TrainingJob& job) {
  Steps steps(Lever::kOptimizer);
  const auto to = [&](std::string title, std::string_view word, Cost cost, int already) {
    cost.weight -= already;
    steps.add(std::move(title), {set_word("optimizer", word)}, cost);
  };
  // In backward means one parameter at a time; bitsandbytes and transformers' Adafactor are not used that way.
  if (job.optimizer_in_backward) return steps.done();
  const auto after_8bit = [&](int already) {
    to("8-bit AdamW in managed memory (paged)", "paged_adamw_8bit", kPagedEightBit, already);
  };
  const Optimizer& row = *find_optimizer(job.optimizer);
  const bool paged = row.managed != nullptr;
  if (row.rule == "adamw" && row.state_bits == 32) {
    std::size_t strongest = 1;
    if (job.optimizer == "adamw_torch") {
      to("Fused AdamW", "adamw_torch_fused", kFusedAdamw, 0);
      ++strongest;
    }
    if (!paged) {
      to("8-bit AdamW", "adamw_8bit", kEightBit, 0);
    } else {
      strongest = 0;
    }
    after_8bit(0);
    to("Adafactor", "adafactor", kAdafactor, 0);
    to("8-bit Lion", "lion_8bit", kLion8, 0);
    return steps.done(strongest);
  }
  if (paged && row.state_bits == 8) return steps.done();
  if (row.rule == "adamw" && row.state_bits == 8) after_8bit(kEightBit.weight);
  if (row.rule == "lion") {
    if (row.state_bits == 32 && !paged) to("8-bit Lion", "lion_8bit", kEightBit, 0);
    to("8-bit Lion in managed memory (paged)", "paged_lion_8bit", kPagedEightBit,
       row.state_bits == 8 ? kEightBit.weight : 0);
  }
  return steps.done();
}

std::vector<Step> checkpointing_steps(const TrainingJob& job) {
  Steps steps(Lever::kCheckpointing);
  const auto add = [&](std::string title, std::vector<Setting> settings, Cost cost, int already) {
    cost.weight -= already;
    steps.add(std::move(title), std::move(settings), cost);
  };
  int already = 0;
  switch (job.checkpointing) {
    case Checkpointing::kNone:
      add("Checkpoint every second layer", {set_count("gradient_checkpointing.every", 2)}, kEveryOther, 0);
      break;
    case Checkpointing::kEvery:
    case Checkpointing::kSelectiveCoreAttention:
      already = kEveryOther.weight / 2;
      break;
    case Checkpointing::kFull:
      already = kEveryLayer.weight;
      break;
    case Checkpointing::kOffload:
      return steps.done();
  }
  if (job.checkpointing != Checkpointing::kFull) {
    add("Checkpoint every layer", {set_word("gradient_checkpointing", "full")}, kEveryLayer, already);
  }
  add("Checkpoint every layer, inputs in host memory", {set_word("gradient_checkpointing", "offload")}, kOffloadInputs,
      already);
  return steps.done();
}

std::vector<Step> batch_steps(const TrainingJob& job) {
  Steps steps(Lever::kBatch);
  if (job.optimizer_in_backward) return steps.done();
  const Count samples = job.micro_batch_size * job.gradient_accumulation_steps;
  int halvings = 1;
  for (Count batch = job.micro_batch_size; batch > 1; ++halvings) {
    // The largest divisor that at least halves it, so that an optimizer step sees exactly as many samples.
    Count next = batch / 2;
    while (job.micro_batch_size % next != 0) --next;
    batch = next;
    steps.add("Micro-batches of " + format_grouped(batch) + ", " + format_grouped(samples / batch) + " per step",
              {set_count("micro_batch_size", batch), set_count("gradient_accumulation_steps", samples / batch)},
              kSmallerBatch, halvings);
  }
  return steps.done();
}

std::vector<Step> loss_steps(const TrainingJob& job, const Architecture& architecture) {
  Steps steps(Lever::kLoss);
  if (architecture.head != Head::kCausalLm) return steps.done();
  if (job.loss == Loss::kDefault) {
    steps.add("Cross-entropy in chunks", {set_word("loss", "chunked")}, kChunkedLoss);
  }
  if (job.loss == Loss::kDefault || job.loss == Loss::kChunked) {
    steps.add("Fused linear cross-entropy (Liger)", {set_word("loss", "liger")}, kLigerLoss);
  }
  return steps.done();
}

std::vector<Step> attention_steps(const TrainingJob& job, const Architecture& architecture) {
  Steps steps(Lever::kAttention);
  const bool plain = job.attention == AttentionKernel::kEager || job.attention == AttentionKernel::kMath;
  if (!plain && job.attention != AttentionKernel::kSdpa) return steps.done();
  const Program* program = architecture.program;
  if (program == nullptr) return steps.done();
  if (plain && program->attention.sdpa && !architecture.attention_softcap) {
    steps.add("torch scaled_dot_product_attention", {set_word("attention", "sdpa")}, kSdpa);
  }
  if (program->attention.flash_attention_2 && !architecture.alibi && architecture.head == Head::kCausalLm &&
      job.compute_capability >= 80 && computes_in_half(job)) {
    steps.add("FlashAttention-2", {set_word("attention", "flash_attention_2")}, kFlash2);
  }
  return steps.done();
}

std::vector<Step> rank_steps(const TrainingJob& job) {
  Steps steps(Lever::kRank);
  if (!has_adapters(job)) return steps.done();
  int halvings = 1;
  for (Count rank = job.adapter.r / 2; rank >= kLowestRank; rank /= 2, ++halvings) {
    steps.add("Adapters of rank " + format_grouped(rank), {set_count("adapter.r", rank)}, kLowerRank, halvings);
  }
  return steps.done();
}

std::vector<Step> encoder_steps(const TrainingJob& job) {
  Steps steps(Lever::kEncoders);
  std::vector<Setting> cached;
  if (job.vae != Vae::kCached) cached.push_back(set_word("vae", "cached"));
  if (job.text_encoders && !job.trained_text_encoders) cached.push_back(set_word("text_encoders", "cached"));
  if (!cached.empty()) steps.add("Latents and embeddings made before", std::move(cached), kCachedEncoders);
  return steps.done();
}

}  // namespace

std::string_view name_of(Lever lever) {
  switch (lever) {
    case Lever::kMethod:
      return "method";
    case Lever::kPrecision:
      return "precision";
    case Lever::kSharding:
      return "sharding";
    case Lever::kModelParallel:
      return "model_parallel";
    case Lever::kSequence:
      return "sequence";
    case Lever::kOptimizer:
      return "optimizer";
    case Lever::kOffload:
      return "offload";
    case Lever::kCheckpointing:
      return "checkpointing";
    case Lever::kBatch:
      return "batch";
    case Lever::kLoss:
      return "loss";
    case Lever::kAttention:
      return "attention";
    case Lever::kRank:
      return "rank";
    case Lever::kEncoders:
      return "encoders";
  }
  return "";
}

std::string_view name_of(Harm harm) {
  switch (harm) {
    case Harm::kNothing:
      return "nothing";
    case Harm::kSpeed:
      return "speed";
    case Harm::kNumerics:
      return "numerics";
    case Harm::kTraining:
      return "training";
  }
  return "";
}

namespace {

std::vector<Step> all_steps_of(Lever lever, const TrainingJob& job, const Architecture& architecture) {
  switch (lever) {
    case Lever::kMethod:
      return method_steps(job);
    case Lever::kPrecision:
      return precision_steps(job);
    case Lever::kSharding:
      return sharding_steps(job);
    case Lever::kModelParallel:
      return model_parallel_steps(job, architecture);
    case Lever::kSequence:
      return sequence_steps(job, architecture);
    case Lever::kOptimizer:
      return optimizer_steps(job);
    case Lever::kOffload:
      return offload_steps(job);
    case Lever::kCheckpointing:
      return checkpointing_steps(job);
    case Lever::kBatch:
      return batch_steps(job);
    case Lever::kLoss:
      return loss_steps(job, architecture);
    case Lever::kAttention:
      return attention_steps(job, architecture);
    case Lever::kRank:
      return rank_steps(job);
    case Lever::kEncoders:
      return encoder_steps(job);
  }
  return {};
}

}  // namespace

std::vector<Step> steps_of(Lever lever, const TrainingJob& job, const Architecture& architecture,
                           const std::vector<std::string>& refused) {
  std::vector<Step> steps = all_steps_of(lever, job, architecture);
  const bool divided = job.gpus() > 1 || job.is_megatron();
  // Not all of them go together with a model that several GPUs divide, or with one that is no language model: a
  // denoiser's weights are not packed.
  const auto is_refused = [&](const Step& step) {
    if (std::find(refused.begin(), refused.end(), step.title) != refused.end()) return true;
    Issues issues;
    const TrainingJob changed = after(step, job);
    check_attention(architecture, changed, issues);
    check_model(architecture, changed, issues);
    if (!divided) return has_error(issues);
    check_sharding(architecture, changed, issues);
    check_tensor(architecture, changed, issues);
    check_pipeline(architecture, changed, issues);
    return has_error(issues);
  };
  steps.erase(std::remove_if(steps.begin(), steps.end(), is_refused), steps.end());
  const bool marked = std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.strongest; });
  if (!steps.empty() && !marked) steps.back().strongest = true;
  return steps;
}

std::vector<Setting> settings_of(const std::vector<Step>& steps) {
  std::vector<Setting> settings;
  for (const Step& step : steps) settings.insert(settings.end(), step.settings.begin(), step.settings.end());
  return settings;
}

TrainingJob after(const Step& step, const TrainingJob& job) {
  TrainingJob changed = job;
  for (const Setting& setting : step.settings) apply(setting, changed);
  return changed;
}

}  // namespace tidemark
