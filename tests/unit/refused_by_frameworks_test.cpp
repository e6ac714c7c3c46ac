// What a framework refuses, or passes over, is not answered in silence.
#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string job(const std::string& model, const std::string& rest) {
  const std::string length = rest.find("sequence_length") == rest.npos ? R"("sequence_length": 512, )" : "";
  return R"({"schema": 1, "precision": "bf16_amp", "micro_batch_size": 1, "model": ")" + model + "\", " + length +
         rest + "}";
}

bool says(const Answer& answer, std::string_view code, std::string_view path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.code == code && issue.path == path; });
}

// LLaMA-Factory ff6d4d12 model/adapter.py: _setup_freeze_tuning.
TEST_CASE("LLaMA Pro's layers divide those of the model") {
  const auto pro = [](int layers) {
    return ask(job("llama-3.2-1b", R"("method": "freeze", "use_llama_pro": true, "freeze_trainable_layers": )" +
                                       std::to_string(layers)));
  };
  CHECK(pro(4).estimate);
  CHECK(says(pro(3), "INVALID_VALUE", "/freeze_trainable_layers"));
  CHECK(says(pro(-2), "INVALID_VALUE", "/freeze_trainable_layers"));
}

// chatglm3-6b modeling_chatglm.py: neither `_supports_flash_attn_2` nor a class for it, and [S, B, H] everywhere.
TEST_CASE("code beside weights is not asked for what it has not") {
  CHECK(says(ask(job("THUDM/chatglm3-6b", R"("attention": "flash_attention_2")")), "UNSUPPORTED_VALUE", "/attention"));
  CHECK(ask(job("THUDM/glm-4-9b", R"("attention": "flash_attention_2")")).estimate);
  // Their forwards have no logits_to_keep, which trl's trainers and generate() look for.
  for (const char* model : {"THUDM/chatglm3-6b", "THUDM/glm-4-9b", "baichuan-inc/Baichuan2-7B-Base", "Qwen/Qwen-7B",
                            "internlm/internlm2_5-1_8b", "openbmb/MiniCPM-2B-sft-bf16"}) {
    INFO(model);
    CHECK(says(ask(job(model, R"("task": "grpo")")), "UNSUPPORTED_VALUE", "/task"));
    CHECK(says(ask(job(model, R"("evaluation": {"micro_batch_size": 1, "generate": true})")), "UNSUPPORTED_VALUE",
               "/evaluation/generate"));
    CHECK(ask(job(model, R"("task": "dpo")")).estimate);
  }
}

// lomo-optim 0.1.1 lomo_optim/adalomo.py: fuse_update.
TEST_CASE("AdaLomo steps no experts in one tensor and no convolutions, and passes over frozen ones") {
  const std::string full = R"("optimizer": "adalomo")", lora = R"("method": "lora", "optimizer": "adalomo", )";
  CHECK(says(ask(job("Qwen/Qwen3-30B-A3B", full)), "INVALID_COMBINATION", "/optimizer"));
  CHECK(ask(job("llama-3.2-1b", full)).estimate);
  CHECK(ask(job("Qwen/Qwen3-30B-A3B", lora + R"("adapter": {"target_modules": ["q_proj"]})")).estimate);
}

TEST_CASE("a prompt's length that the sequence's contradicts is told") {
  const std::string lengths = R"("max_prompt_length": 512, "max_completion_length": 128, "task": )";
  CHECK(says(ask(job("llama-3.2-1b", lengths + "\"grpo\"")), "IGNORED_OPTION", "/max_prompt_length"));
  CHECK(says(ask(job("llama-3.2-1b", lengths + "\"dpo\"")), "IGNORED_OPTION", "/max_prompt_length"));
  CHECK(!says(ask(job("llama-3.2-1b", R"("max_prompt_length": 384, "max_completion_length": 128, "task": "grpo")")),
              "IGNORED_OPTION", "/max_prompt_length"));
}

// peft 0.18 tuners/tuners_utils.py: check_target_module_exists.
TEST_CASE("numbers of layers that the model has none of are told") {
  const auto lora = [](const std::string& layers) {
    return ask(job("llama-3.2-1b", R"("method": "lora", "adapter": {"target_modules": ["q_proj"],
                                       "layers_to_transform": )" +
                                       layers + "}"));
  };
  CHECK(says(lora("[0, 16]"), "IGNORED_OPTION", "/adapter/layers_to_transform"));
  CHECK(lora("[0, 16]").estimate);
  CHECK(!says(lora("[0, 15]"), "IGNORED_OPTION", "/adapter/layers_to_transform"));
}

TEST_CASE("releases of transformers before 4 are not answered") {
  CHECK(says(ask(job("llama-3.2-1b", R"("framework": {"name": "transformers", "version": "2.0"})")), "INVALID_VALUE",
             "/framework/version"));
  CHECK(ask(job("llama-3.2-1b", R"("framework": {"name": "transformers", "version": "4.40"})")).estimate);
}

// trl 1.9 trainer/sft_trainer.py: __init__.
TEST_CASE("TRL packs no samples with pictures") {
  const std::string rest = R"("packing": true, "images_per_sample": 1, "framework": {"name": "trl"})";
  CHECK(says(ask(job("qwen2.5-vl-3b", rest)), "INVALID_COMBINATION", "/packing"));
}

// transformers 5.12.1 modeling_utils.py: _flex_attn_can_dispatch.
TEST_CASE("flex attention is answered of the classes that have it") {
  const std::string flex = R"("attention": "flex_attention")";
  CHECK(ask(job("llama-3.2-1b", flex)).estimate);
  CHECK(says(ask(job("gpt2", flex)), "UNSUPPORTED_VALUE", "/attention"));
  CHECK(says(ask(job("qwen2.5-vl-3b", flex)), "UNSUPPORTED_VALUE", "/attention"));
}

// transformers 5.12.1 models/gemma3/modeling_gemma3.py, models/qwen3_5/modeling_qwen3_5.py.
TEST_CASE("of models that see Gemma 3 and Qwen 3.5 have a class that scores sequences") {
  const auto judge = [](const std::string& model, const std::string& name) {
    return ask(job(model, "\"architecture\": \"" + name + "\", \"sequence_length\": 1024, \"images_per_sample\": 1"));
  };
  CHECK(judge("gemma-3-4b", "Gemma3ForSequenceClassification").estimate);
  CHECK(judge("qwen3.5-0.8b", "Qwen3_5ForSequenceClassification").estimate);
}

// ms-swift 3602360a swift/model/patcher.py: _patch_sequence_classification.
TEST_CASE("of models that see the others have the class that ms-swift makes, and the answer says so") {
  const Answer made =
      ask(job("qwen2.5-vl-3b", R"("architecture": "Qwen2_5_VLForSequenceClassification", "images_per_sample": 1)"));
  CHECK(made.estimate);
  CHECK(says(made, "ASSUMED_DEFAULT", "/architecture"));
  CHECK(ask(job("qwen2.5-omni-7b", R"("task": "classification", "images_per_sample": 1)")).estimate);
}

// ms-swift 3602360a swift/tuner_plugin/lora_llm.py.
TEST_CASE("what is named as trainable is trained in place beside adapters") {
  const std::string plain = R"("method": "lora", "freeze_vision": true, "freeze_projector": true)";
  const Answer adapters = ask(job("qwen2.5-vl-3b", plain));
  const Answer towers = ask(job("qwen2.5-vl-3b", plain + R"(, "trainable": ["vision_tower", "projector"])"));
  REQUIRE(adapters.estimate);
  REQUIRE(towers.estimate);
  CHECK(adapters.estimate->parameters.total == towers.estimate->parameters.total);
  // All of "visual.", by the sizes in Qwen/Qwen2.5-VL-3B-Instruct's config.json: 32 blocks, the merger, the patches.
  constexpr Count kBlock = 2 * 1280 + 1280 * 3840 + 3840 + 1280 * 1280 + 1280 + 3 * 1280 * 3420 + 2 * 3420 + 1280;
  constexpr Count kMerger = 1280 + 5120 * 5120 + 5120 + 5120 * 2048 + 2048;
  constexpr Count kVisual = 32 * kBlock + kMerger + 1280 * 3 * 2 * 14 * 14;
  CHECK(towers.estimate->parameters.trainable - adapters.estimate->parameters.trainable == kVisual);
}

// ms-swift 3602360a swift/tuners/llamapro.py.
TEST_CASE("layers that LLaMA Pro adds are trained, and nothing else is") {
  const Answer before = ask(job("llama-3.2-1b", R"("method": "full")"));
  const Answer grown = ask(job("llama-3.2-1b", R"("method": "freeze", "llama_pro_new_blocks": 4)"));
  REQUIRE(before.estimate);
  REQUIRE(grown.estimate);
  constexpr Count kLayer = 60'821'504;  // 2048 (2 2048 + 2 512) + 3 2048 8192 + 2 2048
  CHECK(grown.estimate->parameters.total - before.estimate->parameters.total == 4 * kLayer);
  CHECK(grown.estimate->parameters.trainable == 4 * kLayer);
  CHECK(says(ask(job("llama-3.2-1b", R"("method": "freeze", "llama_pro_new_blocks": 3)")), "INVALID_VALUE",
             "/llama_pro_new_blocks"));
  // Its stages would be more than it has names for.
  CHECK(says(ask(job("microsoft/swinv2-tiny-patch4-window8-256", R"("llama_pro_new_blocks": 2)")), "INVALID_VALUE",
             "/llama_pro_new_blocks"));
}

// ms-swift 3602360a swift/dataset/packing.py: a row holds pairs whose answers have packing_length tokens together.
TEST_CASE("packed pairs are answered by as many tokens in rows of their own") {
  const auto pairs = [](const std::string& length) {
    return ask(job("llama-3.2-1b", R"("task": "dpo", "attention": "flash_attention_2", )" + length));
  };
  const Answer packed = pairs(R"("packing": true, "sequence_length": 2048)");
  const Answer apart = pairs(R"("sequence_length": 1024)");
  REQUIRE(packed.estimate);
  REQUIRE(apart.estimate);
  CHECK(packed.estimate->allocated.expected == apart.estimate->allocated.expected);
  CHECK(!packed.job.stand_ins.empty());
}

// ms-swift 3602360a swift/rlhf_trainers/gkd_trainer.py: the teacher is handed what the student is.
TEST_CASE("a model that sees is distilled from one of its own type, whose tower sees the pictures too") {
  const auto distilled = [](const std::string& rest) {
    return ask(job("qwen2.5-vl-3b", R"("task": "gkd", "lmbda": 0, "images_per_sample": 1, "teacher_model": )" + rest));
  };
  const Answer alike = distilled("\"Qwen/Qwen2.5-VL-7B-Instruct\"");
  const Answer itself = distilled("\"Qwen/Qwen2.5-VL-3B-Instruct\"");
  CHECK(says(distilled("\"Qwen/Qwen2.5-3B-Instruct\""), "UNSUPPORTED_VALUE", "/teacher_model"));
  CHECK(says(alike, "INVALID_VALUE", "/teacher_model"));  // 152064 words and 151936
  REQUIRE(itself.estimate);
  CHECK(!itself.job.stand_ins.empty());
}

TEST_CASE("rewards are trained on the texts of a model that sees, not on its pictures") {
  const std::string reward = R"("task": "reward", "images_per_sample": )";
  CHECK(ask(job("gemma-3-4b", reward + "0")).estimate);
  CHECK(says(ask(job("gemma-3-4b", reward + "1")), "UNSUPPORTED_VALUE", "/task"));
}

// ml-cross-entropy 5f0c7a7 cce_backward.py: cce_backward_kernel's assertions; FSDP 2 gathers weights in bf16.
TEST_CASE("cut cross-entropy fails beside fp32 weights, unless they are gathered in 16 bits") {
  const auto cut = [](const std::string& rest) {
    return ask(R"({"model": "qwen3-0.6b", "method": "full", "loss": "cut_cross_entropy", )" + rest + "}");
  };
  CHECK(says(cut(R"("precision": "amp_bf16")"), "INVALID_VALUE", "/precision"));
  CHECK(cut(R"("precision": "bf16_amp")").estimate);
  CHECK(cut(R"("precision": "auto")").estimate);  // the checkpoint's bf16
  CHECK(cut(R"("precision": "fsdp_bf16", "parallelism": {"data": 2, "fsdp": "fsdp2"})").estimate);
}

// torch 2.14 distributed/fsdp/_flat_param.py: _validate_tensors_to_flatten.
TEST_CASE("FSDP 1 flattens what is trained apart from what is frozen") {
  const auto freezes = [](const std::string& what, const std::string& original) {
    return ask(job("llama-3.2-1b", R"("method": "full", "freeze": [")" + what +
                                       R"("], "parallelism": {"data": 4, "fsdp": "full_shard", "fsdp_options": )" +
                                       R"({"use_orig_params": )" + original + "}}"));
  };
  const char* const path = "/parallelism/fsdp_options/use_orig_params";
  CHECK(says(freezes("mlp", "false"), "UNSUPPORTED_VALUE", path));
  CHECK(says(freezes("embed_tokens", "false"), "UNSUPPORTED_VALUE", path));
  CHECK(freezes("layers.0", "false").estimate);  // a unit for itself
  CHECK(freezes("mlp", "true").estimate);
}

// transformers 5.12 quantizers/base.py get_keys_to_not_convert leaves what the last parameter's name says, which a bias
// ends; torch: "only Tensors of floating point dtype can require gradients" as PEFT's copy of the head is to be
// trained.
TEST_CASE("a head that is packed is not trained beside adapters") {
  const auto classifier = [](const char* model, const char* head, const char* task, const char* more = "") {
    return ask(job(model, std::string{R"("method": "qlora", "architecture": ")"} + head + R"(", "adapter": {"r": 8,)" +
                              R"("target_modules": ["query", "q_proj"], "task_type": ")" + task + "\"}" + more));
  };
  constexpr const char* kSaved = "/adapter/modules_to_save";
  const char* const bert = "bert-base-uncased";
  CHECK(says(classifier(bert, "BertForSequenceClassification", "SEQ_CLS"), "INVALID_VALUE", kSaved));
  CHECK(says(classifier("llama-3.2-1b", "LlamaForTokenClassification", "TOKEN_CLS"), "INVALID_VALUE", kSaved));
  // Without a bias, and by the releases that looked for the last module.
  CHECK(classifier("llama-3.2-1b", "LlamaForSequenceClassification", "SEQ_CLS").estimate);
  constexpr const char* kOlder = R"(, "framework": {"name": "transformers", "version": "4.57"})";
  CHECK(classifier(bert, "BertForSequenceClassification", "SEQ_CLS", kOlder).estimate);
}

TEST_CASE("no noise is added to embeddings that a class has not") {
  const char* const noise = R"("neftune_noise_alpha": 5.0, "sequence_length": 0)";
  CHECK(says(ask(job("facebook/wav2vec2-base", noise)), "INVALID_VALUE", "/neftune_noise_alpha"));
  CHECK(ask(job("google/vit-base-patch16-224", noise)).estimate);
  // Swinv2PatchEmbeddings.forward returns a tuple: AttributeError ('tuple' object has no attribute 'size').
  CHECK(says(ask(job("microsoft/swinv2-tiny-patch4-window8-256", noise)), "INVALID_VALUE", "/neftune_noise_alpha"));
}

// peft 0.18 tuners/boft/layer.py: TypeError (cannot assign as parameter 'bias'); 0.20 turns the input.
TEST_CASE("BOFT casts no bias in its place") {
  const auto turned = [](const char* model, const char* peft) {
    return ask(job(model, std::string{R"("method": "boft", "adapter": {"target_modules": ["q_proj", "v_proj"]}, )"} +
                              R"("framework": {"peft": ")" + peft + "\"}"));
  };
  CHECK(says(turned("facebook/opt-1.3b", "0.18"), "INVALID_COMBINATION", "/adapter/kind"));
  CHECK(turned("facebook/opt-1.3b", "0.20").estimate);
  CHECK(turned("llama-3.2-1b", "0.18").estimate);
}

// transformers 5.12 integrations/eetq.py: UnboundLocalError (grad_input).
TEST_CASE("EETQ's first layers have no gradient for a bias alone") {
  const auto biased = [](const char* rest) {
    return ask(R"({"schema": 1, "precision": "pure_fp16", "micro_batch_size": 1, "sequence_length": 512, )"
               R"("model": "Qwen/Qwen2.5-0.5B", "method": "qlora", "quantization": {"bits": 8, "quant_type": "eetq"}, )"
               R"("framework": {"version": "4.57"}, "adapter": {"target_modules": ["q_proj"], "bias": "all"}, )" +
               std::string{rest} + "}");
  };
  CHECK(says(biased(R"("gradient_checkpointing": "none")"), "INVALID_COMBINATION", "/adapter/bias"));
  CHECK(biased(R"("gradient_checkpointing": "full")").estimate);
}

// trl 1.9 trainer/dpo_trainer.py: accelerate's prepare_model.
TEST_CASE("answers are compared in fp32 under autocast, whatever the job says of its outputs") {
  const auto compared = [](const char* outputs) {
    return ask(job("llama-3.2-1b", std::string{R"("task": "dpo", "outputs_to_fp32": )"} + outputs));
  };
  const Answer kept = compared("false"), converted = compared("true");
  REQUIRE((kept.estimate && converted.estimate));
  CHECK(kept.estimate->allocated.expected == converted.estimate->allocated.expected);
  CHECK(says(kept, "IGNORED_OPTION", "/outputs_to_fp32"));
  CHECK_FALSE(says(converted, "IGNORED_OPTION", "/outputs_to_fp32"));
}

// peft 0.18 utils/other.py: _prepare_prompt_learning_config.
TEST_CASE("learned prompts want a config that names heads") {
  const char* const prompts = R"("method": "prompt_tuning", "adapter": {"num_virtual_tokens": 8})";
  for (const char* model : {"state-spaces/mamba-130m-hf", "mosaicml/mpt-7b"}) {
    INFO(model);
    CHECK(says(ask(job(model, prompts)), "INVALID_VALUE", "/adapter/kind"));
  }
  CHECK(ask(job("llama-3.2-1b", prompts)).estimate);
}

// transformers 5.12 trainer.py: compute_loss.
TEST_CASE("a class without a head is answered with a word on its loss") {
  const auto bert = [](const std::string& name) {
    return ask(job("bert-base-uncased", R"("method": "full", "architecture": ")" + name + "\""));
  };
  CHECK(says(bert("BertModel"), "ASSUMED_DEFAULT", "/loss"));
  CHECK_FALSE(says(bert("BertForMaskedLM"), "ASSUMED_DEFAULT", "/loss"));
}

// trl 1.9 trainer/kto_trainer.py: __init__; LLaMA-Factory ff6d4d12 train/kto/trainer.py calls Trainer's, ms-swift
// 3602360a rlhf_trainers/kto_trainer.py deletes it.
TEST_CASE("TRL's KTO takes no batch of one answer") {
  const auto kto = [](int batch, const std::string& framework) {
    return ask(R"({"schema": 1, "precision": "bf16_amp", "model": "llama-3.2-1b", "sequence_length": 512, "task": "kto",
                   "micro_batch_size": )" +
               std::to_string(batch) + R"(, "framework": {"name": ")" + framework + "\"}}");
  };
  for (const char* framework : {"transformers", "trl", "axolotl"}) {
    INFO(framework);
    CHECK(says(kto(1, framework), "INVALID_VALUE", "/micro_batch_size"));
    CHECK(kto(2, framework).estimate);
  }
  CHECK(kto(1, "llama_factory").estimate);
  CHECK(kto(1, "ms_swift").estimate);
}

// trl 1.9 experimental/bco/bco_trainer.py: __init__.
TEST_CASE("BCO's reference is not computed before under ZeRO-3") {
  const auto bco = [](int stage) {
    return ask(job("llama-3.2-1b", R"("task": "bco", "reference_model": {"precompute": true},
                                      "parallelism": {"data": 2, "zero_stage": )" +
                                       std::to_string(stage) + "}"));
  };
  CHECK(says(bco(3), "INVALID_COMBINATION", "/reference_model/precompute"));
  CHECK(!says(bco(2), "INVALID_COMBINATION", "/reference_model/precompute"));
}

// transformers 5.12 modeling_gemma4.py Gemma4VisionPatchEmbedder.forward, peft 0.18 tuners/lora/bnb.py: tried with the
// recorder, with and without dropout and autocast.
TEST_CASE("an adapter beside Gemma 4's packed patches wants floats") {
  const auto qlora = [](const std::string& precision, const std::string& rest) {
    return ask(R"({"schema": 1, "model": "gemma-4-e2b", "method": "qlora", "adapter": {"target_modules": "all-linear"},
                   "sequence_length": 1024, "images_per_sample": 1, "precision": ")" +
               precision + "\"" + rest + "}");
  };
  CHECK(says(qlora("bf16_amp", ""), "INVALID_COMBINATION", "/adapter/target_modules"));
  CHECK(!says(qlora("pure_bf16", ""), "INVALID_COMBINATION", "/adapter/target_modules"));
  CHECK(!says(qlora("bf16_amp", R"(, "freeze_vision": true)"), "INVALID_COMBINATION", "/adapter/target_modules"));
}

// transformers 5.12 modeling_layers.py GenericForSequenceClassification.forward.
TEST_CASE("a classifier of several rows wants a padding id, which a script may set") {
  const auto classifier = [](int batch, const std::string& rest) {
    return ask(R"({"schema": 1, "precision": "bf16_amp", "task": "classification", "sequence_length": 128, "config": {
                   "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
                   "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 256)" +
               rest + R"(}, "micro_batch_size": )" + std::to_string(batch) + "}");
  };
  CHECK(says(classifier(2, ""), "ASSUMED_DEFAULT", "/config/pad_token_id"));
  CHECK(classifier(2, "").estimate);
  CHECK(!says(classifier(1, ""), "ASSUMED_DEFAULT", "/config/pad_token_id"));
  CHECK(!says(classifier(2, R"(, "pad_token_id": 0)"), "ASSUMED_DEFAULT", "/config/pad_token_id"));
}

// trl 1.9 trainer/sft_trainer.py _ChunkedCELMHeadOutput: with outputs held a third of the peak is that, by a record.
TEST_CASE("outputs of TRL's loss in chunks are not held through backward") {
  const auto chunked = [](const std::string& keeps) {
    return ask(job("llama-3.2-1b", R"("loss": "chunked", "keep_outputs": )" + keeps));
  };
  CHECK(says(chunked("true"), "UNSUPPORTED_VALUE", "/keep_outputs"));
  CHECK(chunked("false").estimate);
}

// trl 1.9 trainer/sft_trainer.py: __init__.
TEST_CASE("rows that TRL joins without packing are told to have no bound") {
  const auto joined = [](const std::string& rest) {
    return ask(job("llama-3.2-1b", R"("framework": {"name": "trl"}, "attention": "flash_attention_2")" + rest));
  };
  CHECK(says(joined(R"(, "padding_free": true)"), "UNBOUNDED_LENGTH", "/padding_free"));
  CHECK(joined(R"(, "padding_free": true)").estimate);
  CHECK(!says(joined(R"(, "padding_free": true, "packing": true)"), "UNBOUNDED_LENGTH", "/padding_free"));
  CHECK(!says(joined(""), "UNBOUNDED_LENGTH", "/padding_free"));
}

}  // namespace
}  // namespace tidemark
