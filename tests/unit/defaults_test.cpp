#include "core/job/defaults.hpp"

#include <algorithm>
#include <string>

#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"
#include "tests/unit/asked.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

/// The job that a request becomes once model, card and framework are known.
Answer answer_to(std::string_view members) {
  Issues issues;
  const Value request = parse_json("{\"sequence_length\":64," + std::string{members} + "}", "", issues);
  REQUIRE(issues.empty());
  Answer answer = engine().answer(request);
  for (const Issue& issue : answer.issues) UNSCOPED_INFO(issue.code << " " << issue.path << " " << issue.message);
  return answer;
}

/// A small Llama whose checkpoint is of that dtype.
std::string small(std::string_view dtype) {
  return R"("config":{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":64,"intermediate_size":128,)"
         R"("num_hidden_layers":2,"num_attention_heads":4,"vocab_size":256,"torch_dtype":")" +
         std::string{dtype} + "\"}";
}

std::string recipe_of(const std::string& members) {
  return answer_to(members).job.recipe.name;
}

TEST_CASE("a recipe that nobody states follows release, checkpoint and card") {
  CHECK(recipe_of(small("bfloat16")) == "bf16_amp");
  CHECK(recipe_of(small("float32")) == "amp_bf16");
  // from_pretrained of 4.x loads fp32 whatever the checkpoint holds.
  CHECK(recipe_of(small("bfloat16") + R"(,"framework":{"version":"4.46"})") == "amp_bf16");
  // The loss scaling of fp16 takes no 16-bit gradients.
  CHECK(recipe_of(small("bfloat16") + R"(,"fp16":true)") == "amp_fp16");
  CHECK(recipe_of(small("bfloat16") + R"(,"bf16":false)") == "pure_bf16");
  CHECK(recipe_of(small("bfloat16") + R"(,"torch_dtype":"float32")") == "amp_bf16");
  CHECK(recipe_of(small("bfloat16") + R"(,"precision":"amp_bf16")") == "amp_bf16");
  CHECK(recipe_of(small("float32") + R"(,"precision":"bf16")") == "amp_bf16");
}

TEST_CASE("beside quantised weights transformers 4 loads fp16") {
  const std::string job = R"(,"method":"qlora","framework":{"version":"4.46"})";
  const Recipe recipe = answer_to(small("bfloat16") + job).job.recipe;
  CHECK(recipe.weights == Dtype::kFp16);
  CHECK(recipe.autocast == Dtype::kBf16);
}

// accelerate 1.14 utils/fsdp_utils.py: fsdp2_prepare_model; utils/dataclasses.py: set_mixed_precision.
TEST_CASE("under FSDP 2 accelerate makes trained weights fp32, gathers bf16 and does not autocast") {
  const auto on = [](std::string_view strategy, std::string_view more) {
    return answer_to(small("bfloat16") + R"(,"parallelism":{"data":2,)" + std::string{strategy} + "}" +
                     std::string{more})
        .job;
  };
  CHECK(on(R"("fsdp":"fsdp2")", "").recipe.name == "fsdp_bf16");
  CHECK(on(R"("fsdp":"fsdp2")", "").data_parallel.fsdp.reduce == Dtype::kBf16);
  const TrainingJob lora = on(R"("fsdp":"fsdp2")", R"(,"method":"lora")");
  CHECK(lora.recipe.name == "pure_bf16");
  CHECK(lora.data_parallel.fsdp.param == Dtype::kBf16);
  CHECK(on(R"("fsdp":"full_shard")", "").recipe.name == "bf16_amp");
  CHECK(on(R"("ddp":{})", "").recipe.name == "bf16_amp");
}

TEST_CASE(
    "autocast that a request states under accelerate's FSDP 2 is answered as accelerate runs it, with a warning") {
  const auto on = [](std::string_view options, std::string_view more) {
    return answer_to(small("bfloat16") + R"(,"parallelism":{"data":2,"fsdp":"fsdp2")" + std::string{options} + "}" +
                     std::string{more});
  };
  const Answer full = on("", R"(,"precision":"bf16_amp")");
  CHECK(full.job.recipe.name == "fsdp_bf16");
  CHECK(full.job.data_parallel.fsdp.param == Dtype::kBf16);
  CHECK(full.job.data_parallel.fsdp.reduce == Dtype::kBf16);
  CHECK(std::any_of(full.issues.begin(), full.issues.end(), [](const Issue& i) { return i.code == "NO_AUTOCAST"; }));
  CHECK(on("", R"(,"precision":"amp_fp16")").job.data_parallel.fsdp.param == Dtype::kFp16);
  CHECK(on("", R"(,"precision":"bf16_amp","method":"lora")").job.recipe.name == "pure_bf16");
  CHECK(on("", R"(,"precision":"amp_bf16","method":"lora")").job.recipe.weights == Dtype::kFp32);
  // Whoever calls fully_shard and autocasts does it in units of one's own.
  CHECK(on(R"(,"fsdp_options":{"groups":"root"})", R"(,"precision":"bf16_amp")").job.recipe.name == "bf16_amp");
  CHECK(on("", R"(,"precision":"bf16_amp","framework":{"name":"pytorch"})").job.recipe.name == "bf16_amp");
}

TEST_CASE("an answer tells which recipe was chosen and why") {
  const Answer answer = answer_to(small("bfloat16"));
  REQUIRE(answer.issues.size() == 1);
  CHECK(answer.issues[0].code == "CHOSEN_PRECISION");
  CHECK(answer.issues[0].severity == Severity::kNote);
  CHECK(answer.issues[0].message.find("checkpoint's dtype") != std::string::npos);
  CHECK(answer_to(small("bfloat16") + R"(,"precision":"bf16_amp")").issues.empty());
}

TEST_CASE("frameworks and releases have defaults of their own") {
  const auto job = [](std::string_view framework) {
    return answer_to(small("bfloat16") + R"(,"framework":)" + std::string{framework}).job;
  };
  const TrainingJob trainer = job(R"({"name":"transformers"})");
  CHECK(trainer.optimizer == "adamw_torch_fused");
  CHECK(!trainer.use_reentrant);
  CHECK(!trainer.keep_outputs);
  CHECK(trainer.outputs_to_fp32);
  const TrainingJob older = job(R"({"version":"4.48"})");
  CHECK(older.optimizer == "adamw_torch");
  CHECK(older.use_reentrant);
  const TrainingJob by_hand = job(R"({"name":"pytorch"})");
  CHECK(by_hand.optimizer == "adamw_torch");
  CHECK(by_hand.keep_outputs);
  CHECK(!by_hand.outputs_to_fp32);
  CHECK(job(R"({"name":"LLaMA-Factory"})").recipe.name == "amp_bf16");
  CHECK(job(R"({"name":"axolotl"})").use_reentrant);
  CHECK(!job(R"({"name":"trl","version":"4.57"})").use_reentrant);
}

TEST_CASE("what the request states stands against the framework's defaults") {
  const TrainingJob job =
      answer_to(small("bfloat16") +
                R"(,"framework":{"name":"pytorch"},"keep_outputs":false,"outputs_to_fp32":true,)"
                R"("optim":"adamw_torch_fused","gradient_checkpointing_kwargs":{"use_reentrant":true})")
          .job;
  CHECK(!job.keep_outputs);
  CHECK(job.outputs_to_fp32);
  CHECK(job.optimizer == "adamw_torch_fused");
  CHECK(job.use_reentrant);
}

TEST_CASE("other tools' words are understood, or refused with a reason") {
  const TrainingJob job =
      answer_to(R"("model":"Qwen/Qwen2.5-0.5B","method":"lora","load_in_4bit":true,"lora_r":8,"lora_alpha":16,)"
                R"("per_device_train_batch_size":3,"attn_implementation":"fa2","gradient_checkpointing":true,)"
                R"("use_liger_kernel":true,"optim":"adamw_bnb_8bit","tf32":true,"bf16":true,"lora_target_linear":true)")
          .job;
  CHECK(job.method == Method::kQlora);
  CHECK(job.adapter.r == 8);
  CHECK(job.micro_batch_size == 3);
  CHECK(job.attention == AttentionKernel::kFlashAttention2);
  CHECK(job.checkpointing == Checkpointing::kFull);
  CHECK(job.loss == Loss::kLiger);
  CHECK(job.liger_rms_norm);
  CHECK(job.optimizer == "adamw_8bit");
  for (const char* refused :
       {R"("task":"xpo")", R"("rollout":{"engine":"sglang"})", R"("task":"dpo","reference_model":{"offloaded":true})",
        R"("value_model":{})", R"("boxes_per_image":3)", R"("gradient_checkpointing":"offload_disk")",
        R"("framework":{"name":"lightning"})"}) {
    CAPTURE(refused);
    const Answer answer = answer_to(small("bfloat16") + "," + refused);
    CHECK(!answer.estimate);
    const bool said = std::any_of(answer.issues.begin(), answer.issues.end(),
                                  [](const Issue& issue) { return issue.code == "UNSUPPORTED_OPTION"; });
    CHECK(said);
  }
}

TEST_CASE("what is compiled and newer kernels are answered by the nearest code, with the range of a stand-in") {
  const auto bytes_of = [](const std::string& option) {
    const Answer answer = answer_to(small("bfloat16") + option);
    REQUIRE(answer.estimate);
    return answer.estimate->allocated;
  };
  const auto wide = [](const Range& range) { return range.high - range.low > range.expected / 2; };
  const Range plain = bytes_of(""), flash = bytes_of(R"(,"attention":"flash_attention_2")");
  const Range compiled = bytes_of(R"(,"compile":"full")");
  CHECK(compiled.expected == plain.expected);
  CHECK(wide(compiled));
  CHECK(!wide(plain));
  for (const char* kernel : {R"(,"attention":"flex_attention")", R"(,"attention":"flash_attention_4")"}) {
    CHECK(bytes_of(kernel).expected == flash.expected);
    CHECK(wide(bytes_of(kernel)));
  }
}

TEST_CASE("what moves memory and is not modelled is named, and its range is wide") {
  const Answer plain = answer_to(small("bfloat16")), more = answer_to(small("bfloat16") + R"(,"not_counted":["qat"])");
  REQUIRE(more.estimate);
  CHECK(std::any_of(more.issues.begin(), more.issues.end(), [](const Issue& issue) {
    return issue.code == "NOT_COUNTED" && issue.message.find("qat") != std::string::npos;
  }));
  CHECK(more.estimate->allocated.expected == plain.estimate->allocated.expected);
  CHECK(more.estimate->allocated.high * 2 > plain.estimate->allocated.high * 3);
}

TEST_CASE("words of what is not counted are shown as text, and many of them in one line") {
  std::string many = R"("a\u001b[31mb")";
  for (int i = 0; i < 1000; ++i) many += ",\"w" + std::to_string(i) + "\"";
  const Answer answer = answer_to(small("bfloat16") + R"(,"not_counted":[)" + many + "]");
  REQUIRE(answer.estimate);
  const auto is_one = [](const Issue& issue) { return issue.code == "NOT_COUNTED"; };
  CHECK(std::count_if(answer.issues.begin(), answer.issues.end(), is_one) == 1);
  const auto said = std::find_if(answer.issues.begin(), answer.issues.end(), is_one);
  CHECK(said->message.find('\x1b') == std::string::npos);
  CHECK(said->message.find("; and 993 more") != std::string::npos);
}

TEST_CASE("where transformers stands in for a framework the answer says so and is wide") {
  const Answer own = answer_to(small("bfloat16") + R"(,"framework":{"name":"pytorch"})");
  const Answer theirs = answer_to(small("bfloat16") + R"(,"framework":{"name":"nemo-automodel"},"compile":"full")");
  REQUIRE(theirs.estimate);
  const bool said = std::any_of(theirs.issues.begin(), theirs.issues.end(), [](const Issue& issue) {
    return issue.code == "STAND_IN" && issue.severity == Severity::kWarning;
  });
  CHECK(said);
  CHECK(theirs.estimate->allocated.low * 10 < own.estimate->allocated.low * 7);
  CHECK(theirs.estimate->allocated.high * 2 > own.estimate->allocated.high * 3);
}

TEST_CASE("evaluation counts where it is stated, in a phase of its own") {
  const Answer without = answer_to(small("bfloat16"));
  const Answer with = answer_to(small("bfloat16") + R"(,"evaluation":{"micro_batch_size":64})");
  REQUIRE(with.estimate);
  CHECK(with.estimate->peak.phase == Phase::kEvaluation);
  CHECK(with.estimate->allocated.expected > without.estimate->allocated.expected);
}

TEST_CASE("two keys for one option must agree") {
  CHECK(answer_to(small("bfloat16") + R"(,"micro_batch_size":2,"per_device_train_batch_size":2)").estimate);
  CHECK(!answer_to(small("bfloat16") + R"(,"micro_batch_size":2,"per_device_train_batch_size":4)").estimate);
}

TEST_CASE("so many layers are trained from the end, from the beginning or in equal steps, and nothing else") {
  const auto frozen = [](const std::string& names) {
    return answer_to(small("bfloat16") + R"(,"method":"freeze","freeze":["embed_tokens","model.norm","lm_head",)" +
                     names + "]");
  };
  const auto counted = [](const std::string& keys) {
    return answer_to(small("bfloat16") + R"(,"method":"freeze",)" + keys);
  };
  const Answer last = counted(R"("freeze_trainable_layers":1)");
  REQUIRE(last.estimate);
  CHECK(last.estimate->allocated.expected == frozen(R"("layers.0.")").estimate->allocated.expected);
  CHECK(counted(R"("freeze_trainable_layers":-1)").estimate->allocated.expected ==
        frozen(R"("layers.1.")").estimate->allocated.expected);
  // LLaMA-Factory model/adapter.py: range(stride - 1, ...): of two layers in steps of two the second.
  CHECK(counted(R"("freeze_trainable_layers":1,"use_llama_pro":true)").estimate->allocated.expected ==
        last.estimate->allocated.expected);
  CHECK(!counted(R"("freeze_trainable_layers":1,"freeze_trainable_modules":"mlp")").estimate);
}

// Axolotl 067b021c utils/callbacks/lisa.py; ms-swift 3602360a callbacks/lisa.py, which freezes before its optimizer is
// made.
TEST_CASE("LISA's layers in turn have gradients of some and, but for ms-swift, states of all") {
  const auto of = [](const std::string& keys) { return answer_to(small("bfloat16") + keys); };
  const auto part = [](const Answer& answer, Category category) {
    REQUIRE(answer.estimate);
    return held(*answer.estimate, category);
  };
  const Answer all = of(R"(,"method":"full","precision":"pure_bf16")");
  const Answer turns = of(R"(,"method":"full","precision":"pure_bf16","lisa_layers":1)");
  const Answer swift =
      of(R"(,"method":"full","precision":"pure_bf16","lisa_layers":1,"framework":{"name":"ms_swift"})");
  const Answer frozen = of(R"(,"method":"freeze","precision":"pure_bf16","freeze":["layers.1."])");
  CHECK(part(turns, Category::kOptimizerStates) == part(all, Category::kOptimizerStates));
  CHECK(part(turns, Category::kGradients) == part(frozen, Category::kGradients));
  CHECK(part(swift, Category::kOptimizerStates) == part(frozen, Category::kOptimizerStates));
  CHECK(!of(R"(,"method":"lora","lisa_layers":1)").estimate);
  CHECK(!of(R"(,"method":"full","lisa_layers":1,"parallelism":{"data":2})").estimate);
}

TEST_CASE("a batch without padding is one row of its samples") {
  const Answer joined = answer_to(small("bfloat16") + R"(,"micro_batch_size":4,"padding_free":true)");
  CHECK(joined.job.micro_batch_size == 1);
  CHECK(joined.job.sequence_length == 256);
  CHECK(joined.job.packing);
}

TEST_CASE("what has no rule of its own is answered widely, and says what stands in") {
  for (const char* keys :
       {R"(,"task":"embedding")", R"(,"method":"qlora","quantization":{"quant_type":"torchao_nf4"})",
        R"(,"precision":"bf16_amp","packing":true,"parallelism":{"data":2,"fsdp":"fsdp2","tensor":2,"context":2})",
        R"(,"method":"lora","framework":{"name":"nemo-automodel"},"adapter":{"target_modules":"*_proj"})"}) {
    CAPTURE(keys);
    const Answer answer = answer_to(small("bfloat16") + keys);
    REQUIRE(answer.estimate);
    const Range& range = answer.estimate->allocated;
    CHECK(range.low * 10 < range.expected * 7);
    CHECK(std::any_of(answer.issues.begin(), answer.issues.end(),
                      [](const Issue& issue) { return issue.code == "STAND_IN"; }));
  }
  CHECK(answer_to(small("bfloat16") + R"(,"task":"embedding","micro_batch_size":8,"texts_per_sample":3)")
            .job.micro_batch_size == 24);
}

TEST_CASE("a method that names an adapter of PEFT has that configuration's defaults") {
  const auto adapter = [](std::string_view keys) {
    return answer_to(small("bfloat16") + std::string{keys}).job.adapter;
  };
  CHECK(adapter(R"(,"method":"oft")").block_size == 32);  // peft 0.18 tuners/oft/config.py
  CHECK(adapter(R"(,"method":"qoft","adapter":{"oft_block_size":64})").block_size == 64);
  CHECK(adapter(R"(,"method":"adalora")").r == 12);  // tuners/adalora/config.py
  CHECK(adapter(R"(,"method":"adalora","adapter":{"init_r":32})").r == 32);
  CHECK(adapter(R"(,"method":"vera")").r == 256);  // tuners/vera/config.py
  CHECK(adapter(R"(,"method":"qlora","adapter":{"kind":"ia3"})").kind == AdapterKind::kIa3);
}

TEST_CASE("a quantised checkpoint is held as it says") {
  const auto with_config = [](std::string_view own, std::string_view method) {
    std::string text = small("bfloat16");
    text.insert(text.size() - 1, ",\"quantization_config\":" + std::string{own});
    return answer_to(text + ",\"method\":\"" + std::string{method} + "\"");
  };
  const std::string nf4 = R"({"load_in_4bit":true,"bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true})";
  const TrainingJob job = with_config(nf4, "lora").job;
  CHECK(job.method == Method::kQlora);
  CHECK(job.quantization.quant_type == QuantType::kNf4);
  CHECK(job.quantization.double_quant);
  CHECK(!with_config(nf4, "full").estimate);
  CHECK(!with_config(R"({"quant_method":"compressed-tensors"})", "lora").estimate);
}

TEST_CASE("QLoRA of an 8B model by default needs what its bf16 checkpoint needs") {
  const Answer asked = answer_to(R"("model":"meta-llama/Llama-3.1-8B","method":"qlora")");
  const Answer stated = answer_to(R"("model":"meta-llama/Llama-3.1-8B","method":"qlora","precision":"bf16_amp")");
  REQUIRE(asked.estimate);
  REQUIRE(stated.estimate);
  CHECK(asked.estimate->allocated.expected == stated.estimate->allocated.expected);
}

}  // namespace
}  // namespace tidemark
