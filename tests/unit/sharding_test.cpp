// Jobs whose model several GPUs divide. Expected bytes are those of tests/oracle/records-multi.jsonl.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string llama(Count layers, const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "head_dim": 64,
    "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8,
    "tie_word_embeddings": true, "vocab_size": 128256, "max_position_embeddings": 131072, "num_hidden_layers": )" +
         std::to_string(layers) + R"(}, "method": "full", "micro_batch_size": 1, "optimizer": "adamw_torch_fused", )" +
         rest + "}";
}

std::string fsdp2(Count gpus, const std::string& more = "") {
  return R"("sequence_length": 2048, "precision": "fsdp_bf16", "parallelism": {"data": )" + std::to_string(gpus) +
         R"(, "fsdp": "fsdp2")" + more + "}";
}

std::string zero(int stage, Count gpus, const std::string& more = "") {
  return R"("sequence_length": 1024, "precision": "deepspeed_bf16", "parallelism": {"data": )" + std::to_string(gpus) +
         R"(, "zero_stage": )" + std::to_string(stage) + more + "}";
}

TEST_CASE("fully_shard keeps parts, and at the loss the root's weights and the next layer's all-gather") {
  // llama-3.2-1b-fsdp2-e31eb6
  const Estimate e = answered(llama(4, fsdp2(8, R"(, "fsdp_options": {"groups": "root"})")));
  CHECK(held(e, Category::kWeights) == 252'979'200 - 2 * 512);  // the record counts rotary tables, too
  CHECK(held(e, Category::kOptimizerStates) == 505'975'808);
  CHECK(held(e, Category::kCommunication) == 525'340'672 + 121'643'008);
  CHECK(e.parameters.total == 505'956'352);
}

// DeepSpeed 0.19.8 runtime/zero/parameter_offload.py: the last module that ran again is the first of the backward, and
// lets its weight go as its input has its gradient (varied73939-s014-vaultgemma-zero3).
TEST_CASE("a layer that runs again under ZeRO-3 lets its last weight go before what ran ahead of it") {
  const Estimate e = answered(R"({"schema": 1, "config": {"model_type": "vaultgemma", "architectures":
    ["VaultGemmaForCausalLM"], "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 4096, "num_key_value_heads": 4, "head_dim": 256, "hidden_activation":
    "gelu_pytorch_tanh", "max_position_embeddings": 8192, "sliding_window": 512, "pad_token_id": 1}, "method": "full",
    "precision": "deepspeed_bf16", "micro_batch_size": 4, "sequence_length": 353, "padding": true,
    "gradient_checkpointing": "full", "use_reentrant": true, "optimizer": "adamw_torch_fused", "parallelism":
    {"data": 6, "zero_stage": 3, "zero": {"hf_auto": true}}, "offload": {"optimizer": "cpu", "parameters": "cpu"}})");
  constexpr Bytes kMatrix = 15'925'248, kRecorded = 110'592'512;  // of the feed-forward; of communication at the peak
  CHECK(std::abs(held(e, Category::kCommunication) - kRecorded) < kMatrix);
}

// transformers 5.12 models/detr: all of the backbone is frozen (varied73939-s025-detr-zero2).
TEST_CASE("ZeRO-2 keeps what a class itself freezes whole on every GPU") {
  const Estimate e = answered(R"({"schema": 1, "config": {"model_type": "detr", "use_timm_backbone": false,
    "use_pretrained_backbone": false, "backbone": null, "backbone_config": {"model_type": "resnet", "depths":
    [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "embedding_size": 64, "layer_type": "bottleneck",
    "out_features": ["stage4"]}, "d_model": 256, "encoder_layers": 3, "decoder_layers": 2, "num_queries": 100,
    "num_labels": 91}, "architecture": "DetrForObjectDetection", "method": "full", "precision": "deepspeed_bf16",
    "micro_batch_size": 12, "image_size": [480, 640], "optimizer": "adamw_torch_fused", "parallelism": {"data": 6,
    "zero_stage": 2, "zero": {"hf_auto": true}}, "offload": {"optimizer": "cpu"}})");
  constexpr Bytes kRecorded = 62'760'960;  // with the norms' buffers
  CHECK(std::abs(held(e, Category::kWeights) - kRecorded) < kMiB);
}

// units-got_ocr2-acc-full, recorded: of an fp32 picture of 1024 x 1024 pixels the policy's copy is a third more.
TEST_CASE("FSDP's mixed precision casts pictures, and the fp32 ones stay beside the copy") {
  const Estimate e = answered(
      R"({"schema": 1, "config": {"model_type": "got_ocr2", "architectures": ["GotOcr2ForConditionalGeneration"],
    "image_token_index": 151859, "tie_word_embeddings": true, "text_config": {"model_type": "qwen2",
    "vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768,
    "tie_word_embeddings": true}, "vision_config": {"hidden_size": 768, "num_hidden_layers": 4,
    "num_attention_heads": 12, "image_size": 1024, "patch_size": 16, "window_size": 14,
    "global_attn_indexes": [1, 3], "output_channels": 256, "mlp_dim": 3072}},
    "method": "full", "precision": "fsdp_bf16", "sequence_length": 1024, "attention": "sdpa",
    "optimizer": "adamw_torch_fused", "images_per_sample": 1, "image_size": [1024, 1024], "gpu": "A100-80GB",
    "framework": {"name": "transformers", "version": "5.12"}, "parallelism": {"data": 4, "fsdp": "fsdp2",
    "fsdp_mixed_precision": {"param": "bf16", "reduce": "bf16"}}})");
  CHECK(std::abs(e.allocated.expected - 6'636'968'448) < 2 * kMiB);
}

TEST_CASE("ZeRO keeps a flat copy of all weights and one GPU's share of masters and states") {
  const Estimate e = answered(llama(4, zero(2, 8)));  // llama-3.2-1b-zero2-e6cd6b, but for its loss
  CHECK(held(e, Category::kWeights) == 1'011'912'704);
  CHECK(held(e, Category::kCommunication) == 2'000'000'000);
  CHECK(e.parameters.trainable == 505'956'352);
}

TEST_CASE("the GPUs of ZeRO-2 differ, and the range reaches the one that needs most") {
  const auto job = [](const std::string& rank) {
    const std::string how = R"(, "zero": {"hf_auto": true})" + rank;
    std::string text = llama(8, zero(2, 2, how));
    text.replace(text.find("128256"), 6, "8192");  // else the logits decide, and all need the same
    return text.replace(text.find("1024"), 4, "4000");
  };
  const Answer any = ask(job(""));
  REQUIRE(any.estimate);
  const Bytes first = answered(job(R"(, "rank": 0)")).allocated.expected;
  const Bytes last = answered(job(R"(, "rank": 1)")).allocated.expected;
  CHECK(any.estimate->allocated.expected == first);
  CHECK(last > first * 101 / 100);
  CHECK(any.estimate->allocated.high >= last);
  const auto says = [](const Answer& answer, const char* code) {
    return std::any_of(answer.issues.begin(), answer.issues.end(), [code](const Issue& i) { return i.code == code; });
  };
  CHECK(says(any, "GPUS_DIFFER"));
  CHECK_FALSE(ask(job(R"(, "rank": 2)")).estimate);
  CHECK(says(ask(llama(2, fsdp2(4, R"(, "rank": 1)"))), "IGNORED_OPTION"));
}

TEST_CASE("ZeRO-3 keeps gathered what is used again soon: all of a small model at its loss") {
  const Estimate e = answered(llama(4, zero(3, 8, R"(, "zero": {"hf_auto": true})")));  // llama-3.2-1b-zero3-offall
  CHECK(held(e, Category::kCommunication) == 1'020'264'448);
  const std::string off = R"(, "offload": {"optimizer": "cpu", "parameters": "cpu"})";
  const Estimate host = answered(llama(4, zero(3, 8, R"(, "zero": {"hf_auto": true})") + off));
  CHECK(held(host, Category::kCommunication) == 1'020'264'448);
  CHECK(host.host.expected == Bytes{8} * (Bytes{252'978'176} + 505'956'356 + 379'467'264 + 126'489'088));
}

TEST_CASE("ZeRO-3's optimizer and its parameters go to the host each by itself, and so does any optimizer") {
  const auto with = [](const char* offload, const char* optimizer = "adamw_torch_fused") {
    std::string text = llama(4, zero(3, 8, R"(, "zero": {"hf_auto": true})") + R"(, "offload": )" + offload);
    const std::string_view torch = "adamw_torch_fused";
    return answered(text.replace(text.find(torch), torch.size(), optimizer));
  };
  // llama-3.2-1b-zero3-offload-optimizer, -parameters and -offall-8bit: what one of eight GPUs has on the host.
  const Estimate states = with(R"({"optimizer": "cpu"})"), parts = with(R"({"parameters": "cpu"})");
  CHECK(states.host.expected == 8 * (Bytes{252'978'176} + 505'956'356 + 379'467'264));
  CHECK(held(states, Category::kOptimizerStates) == 0);
  CHECK(parts.host.expected == 8 * Bytes{126'489'088});
  CHECK(held(parts, Category::kOptimizerStates) == 252'978'176 + 505'956'356 + 508);
  const Estimate bits = with(R"({"optimizer": "cpu", "parameters": "cpu"})", "adamw_8bit");
  CHECK(bits.host.expected - 8 * (Bytes{252'978'176} + 379'467'264 + 126'489'088) - 8 * Bytes{128'467'528} < 8 * 4096);
}

// Records nvme-llama-opt, -params, -all and -opt-sub: what one of eight (two) GPUs has on the host.
TEST_CASE("on the way to the disk states and weights pass through buffers in host memory") {
  const auto host = [](const char* offload, Count gpus = 8, const char* sizes = R"("hf_auto": true)") {
    const std::string how = std::string{R"(, "zero": {)"} + sizes + "}";
    return answered(llama(4, zero(3, gpus, how) + R"(, "offload": )" + offload)).host.expected;
  };
  CHECK(host(R"({"optimizer": "nvme"})") == 8 * (Bytes{126'489'088} + 1'011'912'704));
  CHECK(host(R"({"parameters": "nvme"})") == 8 * (Bytes{126'489'088} + 1'000'002'560));
  CHECK(host(R"({"optimizer": "nvme", "parameters": "nvme"})") == 8 * (2 * Bytes{126'489'088} + 2'011'915'264));
  CHECK(host(R"({"optimizer": "nvme", "optimizer_buffer_count": 1000})") == 8 * (Bytes{126'489'088} + 252'978'176'000));
  CHECK(host(R"({"optimizer": "nvme"})", 2, R"("hf_auto": true, "sub_group_size": 100000000)") ==
        2 * (Bytes{505'956'352} + 2'101'346'304));
}

TEST_CASE("gradients that the disk does not get whole stay on the card until the step") {
  const auto peak = [](const char* place) {
    const std::string offload = std::string{R"(, "offload": {"optimizer": ")"} + place + "\"}";
    std::string job = llama(4, zero(3, 3, R"(, "zero": {"hf_auto": true})") + offload);
    const std::string_view length = "1024";
    return answered(job.replace(job.find(length), length.size(), "32")).allocated.expected;
  };
  CHECK(peak("nvme") > peak("cpu") + Bytes{100'000'000});  // a third of a matrix is no multiple of 256 elements
}

TEST_CASE("what DeepSpeed fails on on the way to the disk is refused") {
  const auto error = [](int stage, const char* offload) {
    for (const Issue& issue : ask(llama(4, zero(stage, 2) + R"(, "offload": )" + offload)).issues) {
      if (issue.severity == Severity::kError) return issue.path;
    }
    return std::string{};
  };
  CHECK(error(2, R"({"optimizer": "nvme"})") == "/offload");
  CHECK(error(3, R"({"optimizer": "nvme", "optimizer_buffer_count": 3})") == "/offload/optimizer_buffer_count");
  CHECK(error(3, R"({"parameters": "nvme"})") == "/offload/parameters_buffer_size");
  CHECK(error(3, R"({"parameters": "nvme", "parameters_buffer_size": 140000000})").empty());
}

TEST_CASE("a DeepSpeed configuration's own words mean what parallelism.zero says") {
  const auto peak = [](const std::string& rest, const std::string& sizes) {
    return answered(llama(4, zero(3, 8, sizes) + rest)).allocated.expected;
  };
  CHECK(peak(R"(, "deepspeed": {"reduce_bucket_size": 1000000, "overlap_comm": true})", "") ==
        peak("", R"(, "zero": {"reduce_bucket_size": 1000000})"));
  CHECK(peak(R"(, "deepspeed": {"reduce_bucket_size": "auto", "allgather_bucket_size": 200000000})", "") ==
        peak("", R"(, "zero": {"hf_auto": true})"));
  CHECK(peak(R"(, "deepspeed": {"stage3_max_live_parameters": "auto"})", "") == peak("", ""));
  const Answer refused = ask(llama(4, zero(3, 8) + R"(, "deepspeed": {"zero_hpz_partition_size": 8})"));
  CHECK(refused.estimate == std::nullopt);
  CHECK(std::any_of(refused.issues.begin(), refused.issues.end(), [](const Issue& issue) {
    return issue.severity == Severity::kError && issue.path == "/deepspeed/zero_hpz_partition_size";
  }));
}

std::string mixtral(const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"],
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 3, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000},
    "micro_batch_size": 2, "sequence_length": 512, "precision": "deepspeed_bf16", "optimizer": "adamw_torch_fused",
    "parallelism": {"data": 4, "zero_stage": 3, "zero": {"hf_auto": true}}, )" +
         rest + "}";
}

TEST_CASE("ZeRO-3 gathers a mixture's block at once, and re-entrant checkpoints keep all that is frozen gathered") {
  const std::string lora = R"("method": "lora", "adapter": {"r": 16, "target_modules": ["q_proj", "k_proj", "v_proj",
    "o_proj"]}, "gradient_checkpointing": "full", "use_reentrant": )";
  // leaf-mixtral-big-lora-re: all layers' experts, and what those of one travelled in
  const Bytes experts = 2 * 3 * Bytes{8} * 14336 * 4096;
  const Answer kept = ask(mixtral(lora + "true"));
  REQUIRE(kept.estimate);
  CHECK(held(*kept.estimate, Category::kCommunication) > 4 * experts);
  CHECK(std::any_of(kept.issues.begin(), kept.issues.end(), [](const Issue& i) { return i.code == "FROZEN_STAYS"; }));
  CHECK(held(answered(mixtral(lora + "false")), Category::kCommunication) < 2 * experts);
}

std::string evaluated(const std::string& more, const std::string& precision, const std::string& parallelism) {
  return llama(3, R"("sequence_length": 512, "evaluation": {"micro_batch_size": 8)" + more + R"(}, "precision": ")" +
                      precision + R"(", "parallelism": {"data": 4, )" + parallelism + "}");
}

TEST_CASE("evaluation beside ZeRO and FSDP is a forward of its own batch on what is gathered for it") {
  const auto peaks_at = [](const std::string& request, Bytes recorded) {
    const Estimate e = answered(request);
    CHECK(e.peak.phase == Phase::kEvaluation);
    CHECK(std::llabs(e.allocated.expected - recorded) * 100 < recorded);
  };
  const std::string zero_3 = R"("zero_stage": 3, "zero": {"hf_auto": true})";
  peaks_at(evaluated("", "deepspeed_bf16", zero_3), 7'950'529'024);  // evals-zero3
  peaks_at(evaluated("", "deepspeed_bf16", R"("zero_stage": 1, "zero": {"hf_auto": true})"),
           7'496'976'384);  // evals-zero1
  peaks_at(evaluated("", "fsdp_bf16",
                     R"("fsdp": "full_shard", "fsdp_mixed_precision": {"param": "bf16", "reduce": "bf16"})"),
           7'133'123'584);  // evals-fsdp1
  peaks_at(evaluated("", "fsdp_bf16",
                     R"("fsdp": "fsdp2", "fsdp_mixed_precision": {"param": "bf16", "reduce": "bf16"},
                     "fsdp_options": {"groups": "root"})"),
           7'253'732'864);  // evals-fsdp2
  // evals-zero2-logits: 96 samples of all GPUs
  peaks_at(evaluated(R"(, "keep_logits": true, "samples": 96)", "deepspeed_bf16",
                     R"("zero_stage": 2, "zero": {"hf_auto": true})"),
           27'443'184'640);
}

TEST_CASE("evaluation that no record tells of beside divided weights is left out in words") {
  const auto leaves_out = [](const Answer& answer) {
    return std::any_of(answer.issues.begin(), answer.issues.end(),
                       [](const Issue& issue) { return issue.code == "NOT_COUNTED" && issue.path == "/evaluation"; });
  };
  const std::string zero_3 = R"("zero_stage": 3, "zero": {"hf_auto": true})";
  CHECK(leaves_out(ask(evaluated(R"(, "generate": true)", "deepspeed_bf16", zero_3))));
  CHECK_FALSE(leaves_out(ask(evaluated("", "deepspeed_bf16", zero_3))));
}

TEST_CASE("FSDP 1 gathers in place and puts a unit's gradient together before it is reduced") {
  const std::string flat = R"("sequence_length": 1024, "precision": "fsdp_bf16", "parallelism": {"data": 8, "fsdp": )";
  const Estimate e = answered(llama(4, flat + R"("full_shard"})"));  // llama-3.2-1b-fsdp1-nolimit
  CHECK(held(e, Category::kWeights) == 252'978'176);
  CHECK(held(e, Category::kCommunication) == 646'983'680);
  // llama-3.2-1b-fsdp1-pre-None: nothing is gathered ahead of time
  const std::string late = flat + R"("full_shard", "fsdp_options": {"backward_prefetch": null}})";
  CHECK(held(answered(llama(4, late)), Category::kCommunication) == 525'340'672);
}

TEST_CASE("from two shards on memory never grows with their number") {
  for (const std::string& more : {fsdp2(2), zero(1, 2), zero(2, 2, R"(, "zero": {"hf_auto": true})"), zero(3, 2)}) {
    Bytes before = 0;
    // These divide the rows of every weight: fully_shard pads what others leave over.
    for (const Count gpus : {2, 4, 8, 64, 256}) {
      std::string job = more;
      job.replace(job.find(R"("data": 2)"), 9, R"("data": )" + std::to_string(gpus));
      const Estimate e = answered(llama(2, job));
      const Bytes peak = *std::max_element(std::begin(e.phase_live), std::end(e.phase_live));
      if (before > 0) CHECK(peak <= before);
      before = peak;
    }
  }
}

TEST_CASE("a mesh of ones is one GPU, whatever divides the model") {
  const std::string one = R"("sequence_length": 512, "precision": "pure_bf16")";
  const Bytes alone = answered(llama(2, one)).device.expected;
  for (const std::string mesh : {R"("fsdp": "fsdp2")", R"("zero_stage": 2)", R"("ddp": {"bucket_cap_mb": 9})"}) {
    CHECK(answered(llama(2, one + R"(, "parallelism": {"data": 1, )" + mesh + "}")).device.expected == alone);
  }
}

TEST_CASE("each further layer adds the same to a sharded job") {
  for (const std::string& job : {fsdp2(8), fsdp2(8, R"(, "reshard_after_forward": 4)"), zero(1, 8)}) {
    const auto live = [&](Count layers) { return answered(llama(layers, job)).phase_live[1]; };
    CHECK(live(9) - live(8) == live(8) - live(7));
  }
}

TEST_CASE("offloaded parts wait in host memory, for each GPU of a host") {
  const std::string off = R"(, "offload": {"optimizer": "cpu", "parameters": "cpu", "gradients": "cpu"})";
  const Estimate e = answered(llama(4, fsdp2(8) + off));
  CHECK(held(e, Category::kOptimizerStates) == 0);
  // Pinned parts and gradients, two moments, a step counter for each parameter.
  const Bytes parts = 252'978'176;
  CHECK(e.host.expected == 8 * (4 * parts + 38 * 4));
}

// torch 2.14 ATen/core/CachingHostAllocator.h: allocate.
TEST_CASE("pinned memory comes in powers of two: each part of FSDP 2, each flat buffer of ZeRO-3") {
  const std::string off = R"(, "offload": {"optimizer": "cpu", "parameters": "cpu", "gradients": "cpu"})";
  const Host parts = answered(llama(4, fsdp2(8) + off)).host;
  // All but the token table's are powers of two; it, and its gradient, have 128,256 x 2,048 fp32 elements on 8 GPUs.
  CHECK(parts.high - parts.expected == 8 * 2 * ((Bytes{1} << 27) - Bytes{128'256} * 2'048 * 4 / 8));
  const Host flat =
      answered(llama(4, zero(3, 8, R"(, "zero": {"hf_auto": true})") + R"(, "offload": {"optimizer": "cpu",
        "parameters": "cpu"})"))
          .host;
  // Weights and their gradients in 16 bits, gradients in fp32; neither master weights nor states are pinned.
  CHECK(flat.high - flat.expected == 8 * (2 * ((Bytes{1} << 27) - 126'489'088) + (Bytes{1} << 28) - 252'978'176));
  CHECK(answered(llama(4, fsdp2(8))).host.high == 0);
}

TEST_CASE("ZeRO-2 with its optimizer on the host keeps no fp32 copies and states on the card, and frees none there") {
  const Estimate e = answered(llama(2, zero(2, 8) + R"(, "offload": {"optimizer": "cpu"})"));
  CHECK(held(e, Category::kOptimizerStates) == 0);
  // stage_1_and_2.py: weights, gradients and two moments in fp32, a 16-bit copy, and the largest gradient on each GPU.
  const Bytes share = e.parameters.total / 8, largest = Bytes{128'256} * 2'048 * 2;
  CHECK(e.host.expected >= 8 * (share * 18 + largest));
  CHECK(e.host.expected <= 8 * (share * 18 + largest) + 8 * 4096);
}

TEST_CASE("FSDP 1 keeps adapters apart from what is frozen, in fp32 under mixed precision") {
  const std::string lora = R"("sequence_length": 512, "adapter": {"r": 8, "target_modules":
    "all-linear", "dtype": "bf16"}, "parallelism": {"data": 8, "fsdp": "full_shard"}, )";
  for (const auto& [precision, bytes] : {std::pair{"pure_bf16", 2}, {"bf16_amp", 4}}) {
    std::string job = llama(4, lora + R"("precision": ")" + precision + "\"");
    job.replace(job.find(R"("method": "full")"), 16, R"("method": "lora")");
    const Estimate e = answered(job);
    const Bytes frozen = 2 * e.parameters.base, trained = bytes * e.parameters.trainable;
    const Bytes weights = held(e, Category::kWeights);
    CHECK(weights >= (frozen + trained) / 8);
    CHECK(weights <= (frozen + trained) / 8 + 10 * 512);  // ten units, each a block
    CHECK(held(e, Category::kOptimizerStates) <= 2 * trained / 8 + 1024 * 512);
  }
}

TEST_CASE("a fused loss takes less where GPUs divide the head, too") {
  const Estimate fused = answered(llama(4, fsdp2(8) + R"(, "loss": "liger")"));
  CHECK(fused.allocated.expected < answered(llama(4, fsdp2(8))).allocated.expected);
}

TEST_CASE("sharding with offload and no count of GPUs is answered for two, and says so") {
  const Answer answer = ask(llama(2, R"("sequence_length": 512, "precision": "pure_bf16", "parallelism":
    {"fsdp": "fsdp2"}, "offload": {"optimizer": "cpu", "parameters": "cpu", "gradients": "cpu"})"));
  REQUIRE(answer.estimate);
  const auto assumed = [](const Issue& issue) { return issue.code == "ASSUMED_GPUS"; };
  CHECK(std::any_of(answer.issues.begin(), answer.issues.end(), assumed));
}

// tests/oracle/records-multi.jsonl: stacks-*. A tower's layers are units like all others.
TEST_CASE("towers, encoders and decoders are divided, layer by layer") {
  const std::string vision = R"({"schema": 1, "model": "Qwen/Qwen2-VL-2B-Instruct", "method": "full", "optimizer":
    "adamw_torch_fused", "micro_batch_size": 1, "precision": "pure_bf16", "sequence_length": 1024, "parallelism": )";
  Bytes before = 0;
  for (const std::string gpus : {"2", "8", "32"}) {
    const Estimate e = answered(vision + R"({"data": )" + gpus + R"(, "fsdp": "fsdp2"}})");
    const Bytes part = 2 * e.parameters.total / std::stoi(gpus), weights = held(e, Category::kWeights);
    CHECK(weights >= part);
    CHECK(weights < part + part / 100);
    if (before > 0) CHECK(e.allocated.expected < before);
    before = e.allocated.expected;
  }
}

TEST_CASE("a tower that never runs is divided with the rest") {
  for (const std::string model : {"Qwen/Qwen2-VL-2B-Instruct", "google/gemma-3-4b-it", "llava-hf/llava-1.5-7b-hf"}) {
    for (const std::string how : {R"("fsdp": "fsdp2")", R"("fsdp": "full_shard")", R"("zero_stage": 3)"}) {
      const std::string job = R"({"schema": 1, "model": ")" + model + R"(", "method": "full", "optimizer":
        "adamw_torch_fused", "micro_batch_size": 1, "sequence_length": 2048, "parallelism": {"data": 8, )" +
                              how + "}";
      const Estimate text = answered(job + R"(, "images_per_sample": 0})");
      const Estimate seen = answered(job + R"(, "images_per_sample": 1})");
      CHECK(text.parameters.total == seen.parameters.total);
      CHECK(held(text, Category::kOptimizerStates) >= held(seen, Category::kOptimizerStates) / 2);
    }
  }
}

// torch 2.14 _flat_param.py: requires_grad is the flat parameter's, and its views' (stacks-qwen2-vl-fsdp1-*: softmax of
// a frozen tower is saved, whose patches lie in the root with the trained token table).
TEST_CASE(
    "FSDP 1 computes gradients of what is frozen beside what is trained, and so saves a frozen tower's activations") {
  const std::string job = R"({"schema": 1, "model": "Qwen/Qwen2-VL-2B-Instruct", "method": "full", "optimizer":
    "adamw_torch_fused", "micro_batch_size": 1, "precision": "pure_bf16", "sequence_length": 1024, "images_per_sample": 1,
    "image_size": [672, 672], "freeze": ["vision_tower"], "parallelism": {"data": 8, "fsdp": )";
  const Estimate flat = answered(job + R"("full_shard"}})"), split = answered(job + R"("fsdp2"}})");
  const auto saved = [](const Estimate& e) { return held(e, Category::kActivations); };
  CHECK(saved(flat) > 2 * saved(split));
  CHECK(flat.parameters.trainable == split.parameters.trainable);
}

// torch 2.14 _fsdp_state.py: cast_forward_inputs (stacks-bert-fsdp2-full-amp_bf16-4).
TEST_CASE("FSDP 2 with autocast hands each layer its input in bf16, which fp32 norms would have kept in fp32") {
  const std::string bert = R"({"schema": 1, "model": "google-bert/bert-base-uncased", "method": "full", "optimizer":
    "adamw_torch_fused", "micro_batch_size": 16, "precision": "amp_bf16", "sequence_length": 128)";
  const Bytes alone = held(answered(bert + "}"), Category::kActivations);
  const Bytes divided =
      held(answered(bert + R"(, "parallelism": {"data": 4, "fsdp": "fsdp2"}})"), Category::kActivations);
  const Bytes hidden = Bytes{16} * 128 * 768 * 4;
  CHECK(alone - divided >= 11 * hidden);
}

TEST_CASE("QLoRA is divided by ZeRO, where k-bit preparation makes nothing fp32; ZeRO-3 divides packed weights, too") {
  const auto qlora = [](int stage, const char* prepare) {
    std::string job = llama(2, zero(stage, 4) + R"(, "quantization": {"prepare_kbit": )" + prepare + "}");
    job.replace(job.find(R"("method": "full")"), 16, R"("method": "qlora")");
    return job;
  };
  for (const int stage : {1, 2, 3}) {
    CHECK(held(answered(qlora(stage, "true")), Category::kWeights) ==
          held(answered(qlora(stage, "false")), Category::kWeights));
  }
  CHECK(held(answered(qlora(3, "true")), Category::kWeights) <
        held(answered(qlora(2, "true")), Category::kWeights) / 2);
  std::string eight = qlora(3, "true");
  eight.replace(eight.find(R"("prepare_kbit")"), 0, R"("bits": 8, )");
  CHECK_FALSE(ask(eight).estimate);
}

// DeepSpeed 0.19.8 runtime/zero/linear.py: setup_context saves input, weight and bias (stacks-*-zero3-lora-*).
TEST_CASE("under ZeRO-3 a frozen linear keeps its input, which a dropout before the adapter did not") {
  std::string job = llama(2, zero(3, 4) + R"(, "adapter": {"lora_dropout": 0.05, "target_modules": ["down_proj"]})");
  job.replace(job.find(R"("method": "full")"), 16, R"("method": "lora")");
  const Estimate e = answered(job);
  const auto product = [](const BreakdownEntry& entry) {
    return entry.name == "mlp: mul" && entry.bytes == 2 * 1024 * 8192;
  };
  CHECK(std::any_of(e.breakdown.begin(), e.breakdown.end(), [&](const auto& category) {
    return std::any_of(category.entries.begin(), category.entries.end(), product);
  }));
}

// Records dora-*; peft 0.18 tuners/lora/dora.py reads lora_A.weight.shape[1] outside of lora_A's forward.
TEST_CASE("DoRA is divided by FSDP and ZeRO, but not where lora_A is a flat unit of its own") {
  const auto dora = [](const std::string& how) {
    std::string job = llama(2, how + R"(, "adapter": {"use_dora": true, "dtype": "bf16"})");
    job.replace(job.find(R"("method": "full")"), 16, R"("method": "lora")");
    return ask(job);
  };
  const std::string flat = R"("sequence_length": 512, "precision": "pure_bf16", "parallelism": {"data": 4, "fsdp":
    "full_shard", "fsdp_options": {"wrap": ")";
  CHECK(dora(flat + R"(layers"}})").estimate);
  CHECK_FALSE(dora(flat + R"(peft"}})").estimate);
  CHECK(dora(R"("sequence_length": 512, "precision": "pure_bf16", "parallelism": {"data": 4, "fsdp": "fsdp2"})")
            .estimate);
  CHECK(dora(zero(3, 4)).estimate);
  CHECK_FALSE(dora(zero(3, 4) + R"(, "gradient_checkpointing": "full")").estimate);
}

// torch 2.14 distributed/fsdp/_flat_param.py: "Must flatten tensors with uniform `requires_grad`".
TEST_CASE("FSDP 1 without original parameters flattens no adapters with the frozen weights of their unit") {
  const auto lora = [](const std::string& options) {
    std::string job = llama(2, R"("sequence_length": 512, "precision": "pure_bf16", "adapter": {"dtype": "bf16"},
      "parallelism": {"data": 4, "fsdp": "full_shard", "fsdp_options": {)" +
                                   options + "}}");
    job.replace(job.find(R"("method": "full")"), 16, R"("method": "lora")");
    return ask(job);
  };
  CHECK_FALSE(lora(R"("wrap": "layers", "use_orig_params": false)").estimate);
  CHECK(lora(R"("wrap": "layers", "use_orig_params": true)").estimate);
  CHECK(lora(R"("wrap": "peft", "use_orig_params": false)").estimate);
}

// torch 2.14 nn/parallel/_functions.py; records dp-*.
// torch aten/src/ATen/autocast_mode.h: linalg_vector_norm is told what to return, its argument is not cast.
TEST_CASE("under autocast the norm of DoRA's merged 16-bit weight takes no fp32 copy of it") {
  const auto dora = [](const char* method, const char* checkpoints, const char* how) {
    return answered(R"({"schema": 1, "config": {"model_type": "mistral", "architectures": ["MistralForCausalLM"],
      "hidden_size": 5120, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "intermediate_size": 14336, "vocab_size": 4096, "tie_word_embeddings": false}, "method": ")" +
                    std::string{method} + R"(", "precision": "bf16_amp", "micro_batch_size": 1, "sequence_length": 1000,
      "optimizer": "adamw_torch_fused", "keep_outputs": true, "outputs_to_fp32": false, "attention": "math",
      "use_reentrant": false, "gradient_checkpointing": ")" +
                    checkpoints + R"(", "adapter": {"r": 8, "lora_alpha": 16, "lora_dropout": 0.0, "target_modules":
      "all-linear", "dtype": "fp32", "use_dora": true}, "quantization": {"quant_storage": "bf16", "prepare_kbit": false,
      "double_quant": false}, "parallelism": {"data": 4, )" +
                    how + "}}");
  };
  constexpr Bytes kWorkspaces = 17'039'360;  // cuBLAS's, which the records count apart
  const auto near = [](const Estimate& e, Bytes recorded) {
    return std::abs(e.allocated.expected - recorded - kWorkspaces) < 2 * kMiB;
  };
  const char* const split = R"("fsdp": "fsdp2", "fsdp_options": {"groups": "root"})";
  CHECK(near(dora("qlora", "none", split), 2'578'159'104));  // dora-amp-fsdp2
  CHECK(near(dora("lora", "full", split), 2'929'368'576));   // dora-amp-fsdp2-lora
}

TEST_CASE("nn.DataParallel's first GPU joins all logits, and adds gradients up beside its own; frozen ones are zeros") {
  const std::string rest = R"("sequence_length": 1024, "precision": "pure_bf16")";
  const auto dp = [&](Count gpus, const std::string& how = R"(, "data_parallel": "dp")") {
    return llama(2, rest + R"(, "parallelism": {"data": )" + std::to_string(gpus) + how + "}");
  };
  const Estimate four = answered(dp(4));
  const auto at = [](const Estimate& e, Phase phase) { return e.phase_peaks[static_cast<std::size_t>(phase)]; };
  const Bytes logits = Bytes{2} * 1024 * 128256;
  CHECK(std::abs(at(answered(dp(8)), Phase::kLoss) - at(four, Phase::kLoss) - 4 * logits) < 2 * kMiB);
  std::string adapters = dp(4), alone_too = llama(2, rest);
  for (std::string* job : {&adapters, &alone_too}) job->replace(job->find(R"("full")"), 6, R"("lora")");
  const Bytes weights = held(answered(alone_too), Category::kWeights);
  CHECK(at(answered(adapters), Phase::kBackward) >= 3 * (weights - 8 * kMiB));
  CHECK_FALSE(ask(dp(4, R"(, "data_parallel": "dp", "fsdp": "fsdp2")")).estimate);
  CHECK_FALSE(ask(dp(4, R"(, "data_parallel": "dp", "tensor": 2)")).estimate);
}

TEST_CASE("under nn.DataParallel the Trainer autocasts nothing, and says so") {
  const Answer answer = ask(llama(2, R"("sequence_length": 1024, "precision": "amp_bf16", "parallelism": {"data": 2,
    "data_parallel": "dp"})"));
  REQUIRE(answer.estimate);
  const Answer wide = ask(llama(2, R"("sequence_length": 1024, "precision": "fp32", "parallelism": {"data": 2,
    "data_parallel": "dp"})"));
  CHECK(answer.estimate->allocated.expected == wide.estimate->allocated.expected);
  CHECK(
      std::any_of(answer.issues.begin(), answer.issues.end(), [](const Issue& i) { return i.code == "NO_AUTOCAST"; }));
}

// bitsandbytes 0.50 autograd/_functions.py: ctx.tensors = (None, B), a view of what DeepSpeed gathered; records
// qlora-zero3-4-live and -ckr.
TEST_CASE("under ZeRO-3 graphs keep the packed weights that they saw, unless re-entrant checkpoints make none") {
  const auto peak = [](const std::string& rest) {
    std::string job = llama(8, zero(3, 4, R"(, "zero": {"stage3_max_live_parameters": 50000000,
      "stage3_max_reuse_distance": 50000000, "reduce_bucket_size": 1000000})") +
                                   R"(, "gradient_checkpointing": "full")" + rest);
    job.replace(job.find(R"("method": "full")"), 16, R"("method": "qlora")");
    return answered(job).phase_peaks[static_cast<std::size_t>(Phase::kForward)];
  };
  const Bytes kept = peak(R"(, "use_reentrant": false)"), let_go = peak(R"(, "use_reentrant": true)");
  CHECK(kept > let_go + Bytes{8} * 1000000);
}

TEST_CASE("what packed weights are made of is said where it decides: FSDP 1 flattens no bytes, FSDP 2 casts no words") {
  const auto qlora = [](const std::string& how, const char* words, const char* rest = "") {
    std::string job =
        llama(2, how + R"(, "precision": "pure_bf16", "quantization": {"quant_storage": ")" + words + "\"}" + rest);
    job.replace(job.find(R"("method": "full")"), 16, R"("method": "qlora")");
    return ask(job);
  };
  const std::string flat = R"("parallelism": {"data": 4, "fsdp": "full_shard"})";
  const std::string split = R"("parallelism": {"data": 4, "fsdp": "fsdp2"})";
  CHECK(qlora(flat, "bf16").estimate);
  CHECK_FALSE(qlora(flat, "uint8").estimate);
  CHECK(qlora(split, "uint8").estimate);
  CHECK(qlora(split, "fp32").estimate);
  CHECK_FALSE(qlora(R"("parallelism": {"data": 4, "fsdp": "fsdp2", "fsdp_mixed_precision": {"param": "bf16",
    "reduce": "fp32"}})",
                    "fp32")
                  .estimate);
}

// Records bits-*: bitsandbytes' own code on parts. FSDP 2's DTensors it refuses itself.
TEST_CASE("8-bit optimizers work on parts that are plain tensors: FSDP 1's and ZeRO's") {
  const auto states = [](const std::string& how, const char* optimizer) {
    std::string job = llama(2, how);
    job.replace(job.find("adamw_torch_fused"), 17, optimizer);
    const Answer answer = ask(job);
    return answer.estimate ? held(*answer.estimate, Category::kOptimizerStates) : Bytes{-1};
  };
  const std::string named = R"("precision": "pure_bf16", "parallelism": {"data": 4, "fsdp": "full_shard"})";
  const std::string flat = R"("precision": "pure_bf16", "parallelism": {"data": 4, "fsdp": "full_shard",
    "fsdp_options": {"use_orig_params": false}})";
  CHECK(states(flat, "adamw_8bit") < states(flat, "adamw_torch_fused") * 52 / 100);
  CHECK(states(named, "adamw_8bit") > 2 * states(flat, "adamw_8bit"));  // the table is found, and stays at 32 bits
  CHECK(states(named, "paged_adamw_8bit") < states(named, "adamw_8bit") / 10);
  // ZeRO's flat part is no token table: 2 bytes of states and 4 of master weights an element, against 12.
  const Bytes small = states(zero(2, 4), "adamw_8bit"), wide = states(zero(2, 4), "adamw_torch_fused");
  CHECK(small < wide * 52 / 100);
  CHECK(small > wide * 49 / 100);
  const std::string split = R"("precision": "pure_bf16", "parallelism": {"data": 4, "fsdp": "fsdp2"})";
  CHECK(states(split, "adamw_8bit") == -1);
  CHECK(states(split, "adamw_torch_4bit") == -1);
  CHECK(states(split, "adamw_torch_8bit") > 0);
}

TEST_CASE("FlashAttention takes what FSDP gathers in bf16, though its parts are fp32") {
  const std::string flash = R"(, "attention": "flash_attention_2", "gpu": "A100-80GB")";
  CHECK(ask(llama(2, fsdp2(8) + flash)).estimate);
  const Answer wide = ask(llama(2, R"("sequence_length": 512, "precision": "fp32")" + flash));
  CHECK_FALSE(wide.estimate);
  // One GPU gathers nothing, whatever a policy says.
  const Answer alone = ask(llama(2, R"("sequence_length": 512, "precision": "fp32", "parallelism": {"data": 1, "fsdp":
    "fsdp2", "fsdp_mixed_precision": {"param": "bf16", "reduce": "fp32"}})" +
                                        flash));
  CHECK_FALSE(alone.estimate);
}

TEST_CASE(
    "a re-entrant checkpoint's layer is gathered as in forward: what it arrived in stays until it has run again") {
  const std::string job = R"({"schema": 1, "config": {"model_type": "ministral", "architectures":
    ["MinistralForCausalLM"], "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 4096,
    "max_position_embeddings": 32768, "sliding_window": 512}, "method": "full", "precision": "amp_bf16",
    "micro_batch_size": 3, "sequence_length": 320, "attention": "math", "gradient_checkpointing": "full",
    "use_reentrant": true, "optimizer": "adamw_torch_fused", "parallelism": {"data": 8, "fsdp": "fsdp2",
    "fsdp_mixed_precision": {"param": "bf16", "reduce": "bf16"}, "fsdp_options": {"groups": "root"}}})";
  const Estimate e = answered(job);  // draw2902-003-ministral-8b-fsdp2
  // The layer and the root, what the layer arrived in, and the gradients of the one before it, all in bf16.
  CHECK(held(e, Category::kCommunication) == 134'230'016 + 2 * 100'671'488);
}

TEST_CASE("under FSDP 1 PEFT hands units of adapters what it has in bf16, but where original parameters are fp32") {
  const std::string job = R"({"schema": 1, "config": {"model_type": "electra", "architectures":
    ["ElectraForPreTraining"], "vocab_size": 30522, "embedding_size": 768, "hidden_size": 768, "num_hidden_layers": 4,
    "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2},
    "architecture": "ElectraForQuestionAnswering", "method": "lora", "precision": "bf16_amp", "micro_batch_size": 1,
    "sequence_length": 384, "optimizer": "adamw_torch_fused", "adapter": {"r": 4, "target_modules": "all-linear",
    "task_type": "none", "dtype": "fp32"}, "parallelism": {"data": 2, "fsdp": "shard_grad_op", "fsdp_mixed_precision":
    {"param": "bf16", "reduce": "bf16"}, "fsdp_options": {"wrap": "peft", "use_orig_params": )";
  const Estimate views = answered(job + "false}}}");  // sight2801-003-electra-fsdp1
  CHECK(held(views, Category::kActivations) == 49'770'496 + 5'308'416);
  const Bytes widened = 4 * Bytes{384} * 3072;
  CHECK(held(answered(job + "true}}}"), Category::kActivations) >= held(views, Category::kActivations) + widened);
}

// torch fails on jobs of these in the recorder ("uniform original parameter dtype", "scalar parameters").
TEST_CASE("FSDP refuses trained weights of two dtypes in a unit, and a scalar") {
  const auto answers = [](const std::string& model, const std::string& rest) {
    return ask(R"({"schema": 1, "model": ")" + model + R"(", "parallelism": {"data": 8, "fsdp": )" + rest + "}")
        .estimate.has_value();
  };
  const std::string full = R"("fsdp2"}, "sequence_length": 512, "precision": )";
  CHECK_FALSE(answers("baidu/ERNIE-4.5-21B-A3B-PT", full + R"("pure_bf16")"));
  CHECK(answers("baidu/ERNIE-4.5-21B-A3B-PT", full + R"("fsdp_bf16")"));
  CHECK(answers("baidu/ERNIE-4.5-21B-A3B-PT", full + R"("pure_bf16", "method": "lora")"));
  const std::string flat = R"("full_shard"}, "sequence_length": 512, "precision": "pure_bf16")";
  CHECK_FALSE(answers("baidu/ERNIE-4.5-21B-A3B-PT", flat + R"(, "method": "lora")"));
  CHECK_FALSE(answers("openai/clip-vit-base-patch32", R"("fsdp2"}, "precision": "pure_bf16")"));
  CHECK(answers("openai/clip-vit-base-patch32", R"(null}, "precision": "pure_bf16")"));
}

TEST_CASE("what is not modelled about a sharded job is refused in words") {
  for (const std::string& rest :
       {fsdp2(8) + R"(, "optimizer": "adamw_8bit")", zero(2, 8) + R"(, "offload": {"parameters": "cpu"})",
        fsdp2(8, R"(, "fsdp_options": {"replicate": 8})")}) {
    std::string text = llama(2, rest);
    const std::size_t first = text.find(R"("optimizer": "adamw_torch_fused", )");
    if (rest.find("8bit") != std::string::npos) text.erase(first, 34);
    const Answer answer = ask(text);
    CHECK_FALSE(answer.estimate);
    CHECK(has_error(answer.issues));
  }
}

}  // namespace
}  // namespace tidemark
