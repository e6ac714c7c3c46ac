#include "core/job/recipe.hpp"
#include "core/options/builders.hpp"
#include "core/options/floats.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr Choice kRecipes[] = {
    {"auto", 0, "what the framework gives: the checkpoint's dtype under transformers 5, fp32 before; bf16 autocast"},
    {"bf16", 0, "the same with bf16=True", true},
    {"fp16", 0, "the same with fp16=True", true},
    {"fp32", 0, "fp32 everything"},
    {"pure_bf16", 0, "bf16 weights, gradients and optimizer states; no autocast"},
    {"bf16_amp", 0, "bf16 weights under bf16 autocast (from_pretrained(dtype=bfloat16) with Trainer bf16=True)"},
    {"fp16_bf16_amp", 0, "fp16 weights under bf16 autocast (a checkpoint of fp16 under Trainer bf16=True, Llama 2)"},
    {"amp_bf16", 0, "fp32 weights under bf16 autocast (Trainer bf16=True)"},
    {"amp_fp16", 0, "fp32 weights under fp16 autocast with loss scaling (Trainer fp16=True)"},
    {"pure_fp16", 0, "fp16 weights, gradients and optimizer states; no autocast"},
    {"deepspeed_bf16", 0, "bf16 weights and gradients, fp32 master weights and states; no autocast"},
    {"deepspeed_fp16", 0, "fp16 weights and gradients, fp32 master weights and states; no autocast"},
    {"megatron_bf16", 0, "bf16 weights, fp32 gradients, fp32 master weights and states; no autocast"},
    {"fsdp_bf16", 0, "FSDP: fp32 shards, bf16 gathered weights, gradients reduced in fp32"},
    {"fp8", 0, "fp8 linear layers", false},
};

constexpr Choice kFloatsOrNone[] = {
    {"none", kNoDtype, "none"},
    {"fp32", number(Dtype::kFp32), "32-bit float"},
    {"bf16", number(Dtype::kBf16), "bfloat16"},
    {"fp16", number(Dtype::kFp16), "half precision"},
    {"float32", number(Dtype::kFp32), "", true, "fp32"},
    {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

constexpr Choice kAutocast[] = {
    {"none", kNoDtype, "no autocast"},
    {"bf16", number(Dtype::kBf16), "torch.autocast(dtype=torch.bfloat16)"},
    {"fp16", number(Dtype::kFp16), "torch.autocast(dtype=torch.float16)"},
    {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

constexpr std::size_t kWordsOfTheFramework = 3;  // auto, bf16, fp16: no recipes, but what leads to one

constexpr int kAsLoaded = -1;
constexpr Choice kLoading[] = {
    {"auto", kAsLoaded, "the framework's own default"},  {"fp32", number(Dtype::kFp32), "32-bit float"},
    {"bf16", number(Dtype::kBf16), "bfloat16"},          {"fp16", number(Dtype::kFp16), "half precision"},
    {"float32", number(Dtype::kFp32), "", true, "fp32"}, {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
};

void precision(Request& r, const OptionValue& v) {
  const std::optional<Recipe> recipe = named_recipe(v.text);
  r.open.precision = !recipe;
  if (recipe) r.job.recipe = *recipe;
  if (v.text == "bf16") r.open.bf16 = true;
  if (v.text == "fp16") r.open.fp16 = true;
}

void start_from(Request& r, std::string_view name) {
  r.open.precision = false;
  r.job.recipe = *named_recipe(name);
  r.job.recipe.name = "custom";
}

/// A flag of the Trainer beside a recipe that says everything already.
void only_with_auto(const OptionValue&, const ReadSoFar& read, Issues& issues) {
  if (read.request.open.precision) return;
  issues.push_back({"IGNORED_OPTION", Severity::kWarning, "/precision",
                    "\"precision\" states the recipe: \"dtype\", \"bf16\" and \"fp16\" have no effect beside it.", ""});
}

/// transformers 5.12 training_args.py: __post_init__
void not_with_bf16(const OptionValue& v, const ReadSoFar& read, Issues& issues) {
  only_with_auto(v, read, issues);
  if (!v.boolean || !read.request.open.precision || !read.request.open.bf16.value_or(false)) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/fp16",
                    "At most one of \"bf16\" and \"fp16\" can be true: TrainingArguments raises a ValueError.",
                    "false"});
}

constexpr Choice kFloat8[] = {
    {"none", number(Float8::kNone), "in the dtype of the weights, or autocast's"},
    {"tensorwise", number(Float8::kTensorwise), "a scale for each tensor"},
    {"rowwise", number(Float8::kRowwise), "a scale for each row"},
};

constexpr Choice kFakeWeights[] = {
    {"none", number(FakeQuant::kNone), "training as it is"},
    {"int4", number(FakeQuant::kInt4), "4-bit integers, a scale for each group"},
    {"fp8", number(FakeQuant::kFloat8), "8-bit floats, a scale for each row"},
    {"mxfp4", number(FakeQuant::kMxfp4), "4-bit floats in blocks of 32, activations with them"},
    {"nvfp4", number(FakeQuant::kNvfp4), "4-bit floats in blocks of 16, activations with them"},
    {"float8_e4m3fn", number(FakeQuant::kFloat8), "", true, "fp8"},
    {"float8", number(FakeQuant::kFloat8), "", true, "fp8"},
    {"int8", number(FakeQuant::kInt8), "torchao has no such training: Axolotl raises a ValueError", false},
};
constexpr Choice kFakeActivations[] = {
    {"none", number(FakeQuant::kNone), "as they are"},
    {"int8", number(FakeQuant::kInt8), "8-bit integers, a scale for each token; beside int4 weights"},
    {"fp8", number(FakeQuant::kFloat8), "8-bit floats, a scale for each token"},
    {"mxfp4", number(FakeQuant::kMxfp4), "as the weights"},
    {"nvfp4", number(FakeQuant::kNvfp4), "as the weights"},
    {"float8_e4m3fn", number(FakeQuant::kFloat8), "", true, "fp8"},
    {"float8", number(FakeQuant::kFloat8), "", true, "fp8"},
    {"int4", number(FakeQuant::kInt4), "torchao has no such training: Axolotl raises a ValueError", false},
};

constexpr Option kOptions[] = {
    choice("precision", "\"auto\"", kRecipes, "Precision",
           "Recipe of mixed precision; or an object with the keys below.")
        .sets(precision)
        .opens("recipe", "amp_bf16", [](Request& r) { start_from(r, "fp32"); }),
    choice("precision.recipe", "null", std::span{kRecipes}.subspan(kWordsOfTheFramework), "Recipe to start from",
           "In the object form: the recipe to start from.")
        .further()
        .sets([](Request& r, const OptionValue& v) { start_from(r, v.text); }),
    choice("precision.weights", "null", kFloats, "Dtype of the weights",
           "Dtype of the weights; gradients and optimizer states follow unless stated.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          Recipe& recipe = r.job.recipe;
          recipe.weights = recipe.gradients = recipe.optimizer_states = static_cast<Dtype>(v.choice);
        }),
    choice("precision.autocast", "null", kAutocast, "Dtype of autocast", "Dtype of torch.autocast, or none.")
        .further()
        .into<&TrainingJob::recipe, &Recipe::autocast>(),
    choice("precision.gradients", "null", kFloats, "Dtype of the gradients", "Dtype of the gradients.")
        .further()
        .into<&TrainingJob::recipe, &Recipe::gradients>(),
    choice("precision.master_weights", "null", kFloatsOrNone, "Master weights",
           "Dtype of a second copy of the weights that the optimizer updates, or none.")
        .further()
        .sets([](Request& r, const OptionValue& v) {
          store(r.job.recipe.master_weights, v);
          if (r.job.recipe.master_weights) r.job.recipe.optimizer_states = *r.job.recipe.master_weights;
        }),
    choice("precision.optimizer_states", "null", kFloats, "Dtype of the optimizer states",
           "Dtype of the optimizer's moments, where the optimizer does not decide for itself.")
        .further()
        .into<&TrainingJob::recipe, &Recipe::optimizer_states>(),
    choice("float8", "\"none\"", kFloat8, "Products in 8-bit floats",
           "torchao's convert_to_float8_training, without torch.compile, of every linear layer but the head.")
        .known_as("fp8_recipe,float8.recipe_name")
        .further()
        .into<&TrainingJob::float8>(),
    choice("qat.weight_dtype", "\"none\"", kFakeWeights, "Weights rounded in forward",
           "Quantisation-aware training by torchao, without torch.compile: what linear layers' weights are rounded to.")
        .further()
        .into<&TrainingJob::qat, &Qat::weights>(),
    choice("qat.activation_dtype", "\"none\"", kFakeActivations, "Inputs rounded in forward",
           "What linear layers' inputs are rounded to.")
        .further()
        .into<&TrainingJob::qat, &Qat::activations>(),
    integer("qat.group_size", "32", "Group size of rounded weights", "Elements of an int4 weight that share a scale.")
        .within(2, 65536)
        .further()
        .into<&TrainingJob::qat, &Qat::group_size>(),
    flag("qat.quantize_embedding", false, "Round the token table", "The token table is rounded as weights are.")
        .further()
        .into<&TrainingJob::qat, &Qat::embeddings>(),
    choice("dtype", "\"auto\"", kLoading, "Dtype of the weights as loaded",
           "from_pretrained's dtype, where precision is auto.")
        .known_as("torch_dtype,model_dtype")
        .when("precision", "auto,bf16,fp16")
        .further()
        .checked(only_with_auto)
        .sets([](Request& r, const OptionValue& v) {
          r.open.dtype.reset();
          if (v.choice != kAsLoaded) r.open.dtype = static_cast<Dtype>(v.choice);
        }),
    open_flag("bf16", "bf16=True",
              "TrainingArguments.bf16, where precision is auto: bf16 autocast, or none when false.")
        .when("precision", "auto")
        .further()
        .checked(only_with_auto)
        .sets([](Request& r, const OptionValue& v) { r.open.bf16 = v.boolean; }),
    open_flag("fp16", "fp16=True", "TrainingArguments.fp16, where precision is auto: fp16 autocast with loss scaling.")
        .when("precision", "auto")
        .further()
        .checked(not_with_bf16)
        .sets([](Request& r, const OptionValue& v) { r.open.fp16 = v.boolean; }),
};

}  // namespace

constinit const Topic kPrecisionTopic{{"precision", "Precision", true}, kPacked<kOptions>};

}  // namespace tidemark
