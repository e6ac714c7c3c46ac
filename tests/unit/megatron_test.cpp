// Jobs of Megatron-Core. Expected peaks are golden values of Megatron-LM's functional tests (d98e8a64), in
// tests/measured/requests.jsonl.
#include <cstdlib>
#include <string>

#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

std::string gpt(const std::string& parallelism, const std::string& rest = R"("attention": "flash_attention_2")",
                const std::string& megatron = R"("gradient_accumulation_fusion": false)") {
  return R"({"schema": 1, "config": {"model_type": "gpt2", "n_embd": 512, "n_layer": 12, "n_head": 8, "n_inner": 2048,
    "n_positions": 1024, "vocab_size": 50304, "attn_pdrop": 0.1, "resid_pdrop": 0.1, "embd_pdrop": 0.1,
    "tie_word_embeddings": true}, "micro_batch_size": 4, "sequence_length": 1024, "deterministic": true, "gpu": "H100",
    "framework": {"name": "megatron"}, "megatron": {)" +
         megatron + R"(}, "parallelism": {)" + parallelism + "}, " + rest + "}";
}

bool is_near(Bytes ours, Bytes golden) {
  return std::llabs(ours - golden) <= golden / 100;
}

constexpr Count kParameters = 64'109'568;  // 12 layers of 12 H² + 13 H, V·H, S·H and the last norm's 2 H

TEST_CASE("Megatron-Core keeps 18 bytes per parameter, of which the distributed optimizer divides twelve") {
  for (const bool divides : {false, true}) {
    const Estimate e = answered(gpt(divides ? R"("data": 8, "zero_stage": 1)" : R"("data": 8)"));
    CHECK(e.parameters.total == kParameters);
    CHECK(held(e, Category::kWeights) == 2 * kParameters);
    CHECK(held(e, Category::kGradients) == 4 * kParameters);
    const Bytes states = held(e, Category::kOptimizerStates), all = 12 * kParameters / (divides ? 8 : 1);
    CHECK(states >= all);
    CHECK(states < all + 512 * 1024);  // parts are rounded up, and a block is 512 bytes
  }
}

TEST_CASE("Megatron-LM's golden values are met within a per cent") {
  const std::string eager = R"("attention": "eager")";
  CHECK(is_near(answered(gpt(R"("data": 8, "zero_stage": 1)")).allocated.expected, 2'691'792'384));         // meg-018
  CHECK(is_near(answered(gpt(R"("data": 8, "zero_stage": 1)", eager)).allocated.expected, 4'702'430'720));  // meg-013
  CHECK(is_near(
      answered(gpt(R"("data": 2, "pipeline": 4, "virtual_pipeline": 3, "num_micro_batches": 5, "rank": 3)", eager))
          .allocated.expected,
      4'622'615'552));  // meg-064
}

// ms-swift 3602360a megatron/trainers/rlhf_mixin.py: prepare_model: a second model in 16 bits, beside full training.
TEST_CASE("DPO under Megatron-Core keeps a reference's weights, and twice as many rows") {
  const Estimate own = answered(gpt(R"("data": 8)", R"("attention": "eager", "gradient_checkpointing": "full")"));
  const Estimate dpo =
      answered(gpt(R"("data": 8)", R"("attention": "eager", "gradient_checkpointing": "full", "task": "dpo")"));
  CHECK(held(dpo, Category::kWeights) == 2 * held(own, Category::kWeights));
  CHECK(held(dpo, Category::kOptimizerStates) == held(own, Category::kOptimizerStates));
  CHECK(!ask(gpt(R"("data": 8)", R"("attention": "eager", "task": "orpo")")).estimate);
}

// megatron_core 0.16.1 optimizer/cpu_offloading/hybrid_optimizer.py
TEST_CASE("an optimizer on the host leaves 6 bytes per parameter under Megatron-Core, and part of it its part") {
  const std::string rest = R"("attention": "eager", "offload": {"optimizer": "cpu")";
  const Estimate none = answered(gpt(R"("data": 8)", rest + "}"));
  CHECK(held(none, Category::kOptimizerStates) == 0);
  CHECK(none.host.expected >=
        16 * kParameters);  // fp32 copies, both moments and gradients, of each of the GPUs on a host
  const Estimate half = answered(gpt(R"("data": 8)", rest + R"(, "optimizer_fraction": 0.5})"));
  CHECK(held(half, Category::kOptimizerStates) >= 6 * kParameters);
  CHECK(held(half, Category::kOptimizerStates) < 6 * kParameters + 512 * 1024);
}

TEST_CASE("what no record holds has a wide range and says so") {
  const Answer answer = ask(gpt(R"("data": 8)"));
  REQUIRE(answer.estimate);
  const Range& r = answer.estimate->allocated;
  CHECK(r.low <= r.expected / 100 * 91);
  CHECK(r.high >= r.expected / 100 * 114);
  bool said = false;
  for (const Issue& issue : answer.issues) said = said || issue.code == "UNCOVERED_COMBINATION";
  CHECK(said);
}

// mcore-bridge f020e47 model/mm_gpts/utils.py HuggingFaceVit: transformers' tower, which nothing divides; ms-swift
// 3602360a megatron/arguments/megatron_args.py: freeze_vit and freeze_aligner are on by default.
std::string seeing(const std::string& parallelism, const std::string& rest) {
  return R"({"schema": 1, "config": {"model_type": "qwen3_vl", "text_config": {"hidden_size": 256,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1024,
    "intermediate_size": 512}, "vision_config": {"hidden_size": 128, "depth": 4, "num_heads": 4,
    "intermediate_size": 256, "out_hidden_size": 256, "deepstack_visual_indexes": [1, 2]}}, "sequence_length": 512,
    "framework": {"name": "megatron"}, "attention": "flash_attention_2", "images_per_sample": 1,
    "image_size": [256, 256], "parallelism": {)" +
         parallelism + "}, " + rest + "}";
}

TEST_CASE("a tower is whole on every tensor-parallel GPU, and costs its weights alone where it is frozen") {
  const std::string frozen = R"("freeze_vision": true, "freeze_projector": true)";
  const Estimate one = answered(seeing(R"("data": 1)", frozen));
  const Estimate two = answered(seeing(R"("tensor": 2, "sequence_parallel": true)", frozen));
  CHECK(one.parameters.total == two.parameters.total);
  const Count language = one.parameters.trainable, tower = one.parameters.total - language;
  // Embedding and head, q, k, v, output, feed-forward of four layers, and norms: Qwen3-VL's text model.
  CHECK(language == 2 * 1024 * 256 + 4 * (256 * (512 + 256) + 3 * 256 * 512 + 2 * 256 + 2 * 32) + 256);
  CHECK(held(one, Category::kGradients) >= 4 * language);
  CHECK(held(one, Category::kGradients) < 4 * language + 64 * 1024);  // parts begin at multiples of 64 numbers
  const Count divided = 2 * 1024 * 256 + 4 * (256 * (512 + 256) + 3 * 256 * 512);
  CHECK(held(two, Category::kWeights) >= 2 * (tower + language - divided / 2));
  CHECK(held(two, Category::kWeights) < 2 * (tower + language - divided / 2) + 256 * 1024);  // blocks of 512 bytes
  const Estimate trained = answered(seeing(R"("data": 1)", R"("gradient_checkpointing": "none")"));
  CHECK(trained.parameters.trainable == one.parameters.total);
}

TEST_CASE("what sees under Megatron-Core is answered as a stand-in, in one stage and with a whole sequence") {
  const std::string frozen = R"("freeze_vision": true, "freeze_projector": true)";
  bool said = false;
  for (const Issue& issue : ask(seeing(R"("data": 2)", frozen)).issues) said = said || issue.code == "STAND_IN";
  CHECK(said);
  CHECK_FALSE(ask(seeing(R"("pipeline": 2, "num_micro_batches": 4)", frozen)).estimate);
  CHECK_FALSE(ask(seeing(R"("context": 2)", frozen)).estimate);
  // Adapters are the language model's, not of the tower's layers of the same name (mlp.linear_fc1).
  const Estimate lora = answered(seeing(R"("data": 2)", frozen + R"(, "method": "lora",
    "adapter": {"r": 8, "target_modules": ["linear_fc1", "linear_fc2"]})"));
  CHECK(lora.parameters.trainable == 4 * 8 * (256 + 2 * 512 + 512 + 256));
}

std::string mixture(const std::string& parallelism, const std::string& megatron = "") {
  return R"({"schema": 1, "config": {"model_type": "qwen3_moe", "hidden_size": 256, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1024, "num_experts": 16,
      "num_experts_per_tok": 2, "moe_intermediate_size": 128, "intermediate_size": 512},
      "framework": {"name": "megatron"}, "megatron": {)" +
         megatron + R"(}, "attention": "flash_attention_2", "parallelism": {)" + parallelism + "}}";
}

TEST_CASE("expert parallel GPUs have equal parts of the experts, and all of them together the model's parameters") {
  const Estimate one = answered(mixture(R"("data": 1)"));
  // All but a part of what 16 experts of two matrices have in each of four layers, in bf16.
  constexpr Bytes kExperts = 4 * 16 * 3 * 256 * 128 * 2;
  for (const char* how : {R"("data": 4, "expert": 4)", R"("data": 4, "expert": 2, "expert_tensor": 2)",
                          R"("data": 4, "expert_tensor": 4)"}) {
    for (const char* layers : {"", R"("transformer_impl": "local")"}) {
      const Estimate four = answered(mixture(how, layers));
      CHECK(one.parameters.total == four.parameters.total);
      CHECK(held(one, Category::kWeights) - held(four, Category::kWeights) == kExperts / 4 * 3);
    }
  }
}

// megatron_core 0.16.1 transformer/moe/shared_experts.py: SharedExpertMLP, with the gate that mcore-bridge f020e47
// config/parser.py gives Qwen2-MoE's: three matrices that tensor parallelism alone divides.
TEST_CASE("a shared expert is whole beside expert parallelism, and divided by tensor parallelism") {
  const auto ask_for = [](const std::string& parallelism) {
    return answered(R"({"schema": 1, "config": {"model_type": "qwen2_moe", "hidden_size": 256, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1024, "num_experts": 16,
      "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 512,
      "intermediate_size": 512}, "framework": {"name": "megatron"}, "attention": "flash_attention_2",
      "parallelism": {)" +
                    parallelism + "}}");
  };
  const Estimate one = ask_for(R"("data": 1)"), four = ask_for(R"("data": 4, "expert": 4)");
  constexpr Bytes kRouted = 4 * 16 * 3 * 256 * 128 * 2;
  CHECK(held(one, Category::kWeights) - held(four, Category::kWeights) == kRouted / 4 * 3);
  CHECK(one.parameters.total == four.parameters.total);
  // Table, head, attention with biases of q, k and v, experts, the shared one and its gate, router, norms.
  constexpr Count kLayer = 256 * (512 + 256) + 512 + 16 * 3 * 256 * 128 + 3 * 256 * 512 + 256 + 16 * 256 + 2 * 256;
  CHECK(one.parameters.total == 2 * 1024 * 256 + 4 * kLayer + 256);
  CHECK(ask_for(R"("tensor": 2, "sequence_parallel": true)").parameters.total == one.parameters.total);
}

// megatron_core 0.16.1 transformer/multi_latent_attention.py: MLASelfAttention.__init__'s five layers, and
// DeepSeek-V3's shared expert, which has no gate.
TEST_CASE("latent attention under Megatron-Core has DeepSeek's projections, whole on every GPU") {
  const auto request = [](const std::string& parallelism) {
    return R"({"schema": 1, "config": {"model_type": "deepseek_v3", "hidden_size": 256, "num_hidden_layers": 2,
      "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024, "n_routed_experts": 8,
      "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "intermediate_size": 512,
      "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 96, "kv_lora_rank": 64,
      "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32, "tie_word_embeddings": false},
      "framework": {"name": "megatron"}, "attention": "flash_attention_2", "parallelism": {)" +
           parallelism + "}}";
  };
  constexpr Count kAttention = 256 * 96 + 96 + 96 * 8 * 48 + 256 * (64 + 16) + 64 + 64 * 8 * 64 + 8 * 32 * 256;
  constexpr Count kDense = 3 * 256 * 512, kMixture = 8 * 3 * 256 * 128 + 3 * 256 * 128 + 8 * 256;
  const Answer one = ask(request(R"("data": 1)"));
  REQUIRE(one.estimate);
  CHECK(one.estimate->parameters.total == 2 * 1024 * 256 + 2 * kAttention + kDense + kMixture + 5 * 256);
  CHECK(answered(request(R"("data": 2, "expert": 2)")).parameters.total == one.estimate->parameters.total);
  CHECK_FALSE(ask(request(R"("tensor": 2, "sequence_parallel": true)")).estimate);
  bool said = false;
  for (const Issue& issue : one.issues) said = said || issue.code == "STAND_IN";
  CHECK(said);
}

// mcore-bridge f020e47 model/modules/{gated_delta_net, gated_self_attention}.py and Megatron-Core's GatedDeltaNet: one
// projection of queries, keys, values, gates and two numbers of each head; the attention's queries have a gate.
TEST_CASE("gated delta nets under Megatron-Core are divided by tensor parallelism, and stood for") {
  const auto request = [](const char* type, const std::string& parallelism) {
    return std::string{R"({"schema": 1, "config": {"model_type": ")"} + type + R"(", "hidden_size": 256,
      "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1024,
      "intermediate_size": 512, "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 16,
      "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4, "num_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, "tie_word_embeddings": false},
      "framework": {"name": "megatron"}, "attention": "flash_attention_2", "parallelism": {)" +
           parallelism + "}}";
  };
  constexpr Count kKeys = 4 * 16, kValues = 8 * 32;
  constexpr Count kDelta =
      256 * (2 * kKeys + 2 * kValues + 2 * 8) + 4 * (2 * kKeys + kValues) + 2 * 8 + 32 + kValues * 256;
  constexpr Count kAttention = 256 * (2 * 256 + 2 * 128) + 2 * 32 + 256 * 256;
  constexpr Count kMixture = 8 * 3 * 256 * 128 + 8 * 256 + 3 * 256 * 128 + 256;
  constexpr Count kAround = 2 * 1024 * 256 + 256 + 4 * 2 * 256;
  const Answer one = ask(request("qwen3_5_moe_text", R"("data": 1)"));
  REQUIRE(one.estimate);
  CHECK(one.estimate->parameters.total == kAround + 3 * kDelta + kAttention + 4 * kMixture);
  bool said = false;
  for (const Issue& issue : one.issues) said = said || issue.code == "STAND_IN";
  CHECK(said);
  const Estimate two = answered(request("qwen3_5_moe_text", R"("tensor": 2, "sequence_parallel": true)"));
  CHECK(two.parameters.total == one.estimate->parameters.total);
  const Count divided = 3 * (kDelta - 32) + kAttention - 2 * 32;
  CHECK(held(*one.estimate, Category::kWeights) - held(two, Category::kWeights) >= divided);
  // Qwen3-Next's are transformers' modules, whole on every GPU.
  const Estimate next = answered(request("qwen3_next", R"("data": 1)"));
  const Estimate halves = answered(request("qwen3_next", R"("tensor": 2, "sequence_parallel": true)"));
  CHECK(next.parameters.total == one.estimate->parameters.total);
  CHECK(held(halves, Category::kWeights) >= held(two, Category::kWeights) + 3 * (kDelta - 1024));
  CHECK_FALSE(ask(request("qwen3_5_moe_text", R"("context": 2)")).estimate);
  CHECK_FALSE(ask(request("qwen3_5_moe_text", R"("tensor": 8, "sequence_parallel": true)")).estimate);
}

// transformers 5.12.1 models/glm4_moe/modeling_glm4_moe.py, models/glm4/modeling_glm4.py: what the checkpoints hold.
TEST_CASE("GLM-4's and GLM-4.5's layers under Megatron-Core have their biases, norms and experts, and are stood for") {
  const auto request = [](const std::string& config) {
    return R"({"schema": 1, "config": {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
      "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 1024, "intermediate_size": 512, "attention_bias": true,
      "tie_word_embeddings": false, )" +
           config + R"(}, "framework": {"name": "megatron"}, "attention": "flash_attention_2",
      "parallelism": {"data": 2}})";
  };
  constexpr Count kAttention = 256 * 512 + 512 + 256 * 256, kAround = 2 * 1024 * 256 + 256, kDense = 3 * 256 * 512;
  const Answer mixture = ask(request(R"("model_type": "glm4_moe", "n_routed_experts": 8, "n_shared_experts": 1,
      "num_experts_per_tok": 2, "moe_intermediate_size": 128, "n_group": 1, "topk_group": 1,
      "first_k_dense_replace": 1, "use_qk_norm": true)"));
  REQUIRE(mixture.estimate);
  CHECK(mixture.estimate->parameters.total ==
        kAround + 2 * (kAttention + 2 * 32 + 2 * 256) + kDense + 9 * 3 * 256 * 128 + 8 * 256);
  bool said = false;
  for (const Issue& issue : mixture.issues) said = said || issue.code == "STAND_IN";
  CHECK(said);
  CHECK(answered(request(R"("model_type": "glm4")")).parameters.total == kAround + 2 * (kAttention + kDense + 4 * 256));
}

TEST_CASE("beside tensor parallelism experts are divided as the rest, and want sequence parallelism") {
  const Estimate two = answered(mixture(R"("tensor": 2, "sequence_parallel": true)"));
  CHECK(two.parameters.total >= answered(mixture(R"("data": 1)")).parameters.total);
  CHECK_FALSE(ask(mixture(R"("tensor": 2)")).estimate);
  // Eight experts' parts need sixteen GPUs.
  CHECK_FALSE(ask(mixture(R"("data": 2, "tensor": 2, "sequence_parallel": true, "expert": 8)")).estimate);
}

TEST_CASE("Megatron-Core's own layers refuse RMSNorm beside sequence parallelism, and parts of a sequence") {
  CHECK_FALSE(ask(mixture(R"("tensor": 2, "sequence_parallel": true)", R"("transformer_impl": "local")")).estimate);
  CHECK_FALSE(ask(mixture(R"("context": 2)", R"("transformer_impl": "local")")).estimate);
  // LayerNorm is Apex'.
  CHECK(
      ask(gpt(R"("tensor": 2, "sequence_parallel": true)", R"("attention": "eager")", R"("transformer_impl": "local")"))
          .estimate);
}

TEST_CASE("where Megatron-Core does not run the step expert parallelism is refused and context parallelism stood for") {
  CHECK_FALSE(ask(R"({"schema": 1, "model": "llama-3.2-1b", "parallelism": {"expert": 2}})").estimate);
  const Answer answer = ask(R"({"schema": 1, "model": "llama-3.2-1b", "parallelism": {"context": 2}})");
  CHECK(answer.estimate);
  bool said = false;
  for (const Issue& issue : answer.issues) said = said || issue.code == "STAND_IN";
  CHECK(said);
}

TEST_CASE("tensor parallel GPUs of Megatron-Core have the model's parameters together") {
  for (const char* degree : {"2", "4"}) {
    CHECK(answered(gpt(std::string{R"("tensor": )"} + degree)).parameters.total >= kParameters);
    // The vocabulary is padded for each GPU.
    CHECK(answered(gpt(std::string{R"("tensor": )"} + degree)).parameters.total <= kParameters + 512 * 512);
  }
}

TEST_CASE("Megatron-Core's FSDP is stood for, and holds what was measured") {
  // meg-117: two tensor-parallel parts of GPT, sharded four times
  const Answer answer = ask(gpt(R"("data": 4, "tensor": 2, "fsdp": "full_shard")",
                                R"("attention": "flash_attention_2", "gradient_accumulation_steps": 2)"));
  REQUIRE(answer.estimate);
  CHECK(std::llabs(answer.estimate->allocated.expected - 1'469'652'992) < 1'469'652'992 / 20);
  CHECK(answer.job.stand_ins.size() == 1);
}

std::string bloom(const std::string& precision, const std::string& more) {
  return R"({"model": "bigscience/bloom", "method": "full", "sequence_length": 2048, "precision": )" + precision +
         R"(, "attention": "eager", "gradient_checkpointing": "full", "framework": {"name": "megatron-deepspeed"},
    "parallelism": {"tensor": 4, "pipeline": 12, "data": 8, "zero_stage": 1, "num_micro_batches": 64)" +
         more + "}}";
}

TEST_CASE("BLOOM's stages under Megatron-DeepSpeed have its parameters, and the tied table twice") {
  const Estimate e = answered(bloom(R"("megatron_bf16")", ""));
  Count parameters = 0;
  for (const RankFigures& rank : e.ranks) parameters += rank.parameters * (rank.last - rank.first + 1);
  CHECK(parameters == 176'247'271'424 + Count{250'880} * 14'336);  // its model card's count
  CHECK(e.ranks.front().layers == "0-4");  // 72 with both ends (tr11-176B-ml: type:transformer|embedding)
}

TEST_CASE("DeepSpeed keeps bf16 gradients beside their fp32 sums, and those of fp16 alone") {
  const Estimate wide = answered(bloom(R"("megatron_bf16")", R"(, "rank": 3)"));
  CHECK(held(wide, Category::kGradients) >= 3 * held(wide, Category::kWeights));
  const Estimate half = answered(bloom(
      R"({"weights": "fp16", "gradients": "fp16", "master_weights": "fp32", "optimizer_states": "fp32", "autocast": "none"})",
      R"(, "rank": 3)"));
  CHECK(held(half, Category::kGradients) == held(half, Category::kWeights));
  CHECK_FALSE(ask(bloom(R"("megatron_bf16")", R"(, "virtual_pipeline": 2)")).estimate);
}

constexpr Count kWidth = 512, kLayers = 12, kRank = 16;

std::string adapted(const std::string& parallelism) {
  return gpt(parallelism, R"("attention": "eager", "method": "lora", "adapter": {"r": 16})",
             R"("transformer_impl": "local")");
}

// ParallelLinearAdapter beside linear_qkv (H → 3 H), linear_proj (H → H), linear_fc1 (H → 4 H) and linear_fc2 (4 H →
// H).
constexpr Count kFactors = kLayers * kRank * kWidth * ((1 + 3) + (1 + 1) + (1 + 4) + (4 + 1));

TEST_CASE("of LoRA under Megatron-Core the factors alone have gradients, master weights and states") {
  for (const Count tensor : {1, 2}) {
    const Estimate e = answered(adapted(R"("data": 2, "tensor": )" + std::to_string(tensor)));
    CHECK(e.parameters.trainable == kFactors);
    CHECK(held(e, Category::kGradients) == 4 * kFactors / tensor);
    const Bytes states = held(e, Category::kOptimizerStates), all = 12 * kFactors / tensor;
    CHECK(states >= all);
    CHECK(states < all + 512 * 1024);  // a block is 512 bytes
  }
}

TEST_CASE("adapters beside Transformer Engine's layers are stood for") {
  const Answer answer = ask(gpt(R"("data": 2)", R"("method": "lora", "attention": "flash_attention_2")", ""));
  REQUIRE(answer.estimate);
  bool said = false;
  for (const Issue& issue : answer.issues) said = said || issue.code == "STAND_IN";
  CHECK(said);
}

// Two layers of eight experts, 256 wide each, whose linear_fc1 (H → 2·256) and linear_fc2 (256 → H) have a pair of
// factors.
TEST_CASE("each expert has factors of its own, on the GPUs that hold it") {
  constexpr Count kLayersOfIt = 2, kWidthOfIt = 256, kExperts = 8, kExpert = 256, kRankOfIt = 4;
  constexpr Count kOfExperts =
      kLayersOfIt * kExperts * kRankOfIt * ((kWidthOfIt + 2 * kExpert) + (kExpert + kWidthOfIt));
  for (const std::string layers : {"local", "transformer_engine"}) {
    for (const Count expert : {1, 4}) {
      const Answer answer = ask(
          R"({"schema": 1, "config": {"model_type": "mixtral", "hidden_size": 256, "intermediate_size": 256,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "num_local_experts": 8,
              "num_experts_per_tok": 2, "vocab_size": 1024, "max_position_embeddings": 512}, "sequence_length": 64,
              "framework": {"name": "megatron"}, "method": "lora", "gpu": "H100", "megatron": {"transformer_impl": ")" +
          layers + R"("}, "adapter": {"r": 4, "target_modules": ["linear_fc1", "linear_fc2"]},
              "parallelism": {"data": 4, "expert": )" +
          std::to_string(expert) + "}}");
      REQUIRE(answer.estimate);
      CHECK(answer.estimate->parameters.trainable == kOfExperts);
      CHECK(held(*answer.estimate, Category::kGradients) == 4 * kOfExperts / expert);
    }
  }
}

TEST_CASE("samples joined into one row are as many tokens under Megatron-Core") {
  const std::string rows = R"("attention": "flash_attention_2")";
  const Answer joined = ask(gpt(R"("data": 2)", rows + R"(, "padding_free": true)"));
  REQUIRE(joined.estimate);
  CHECK(joined.estimate->allocated.expected == answered(gpt(R"("data": 2)", rows)).allocated.expected);
}

TEST_CASE("a rank that tensor parallelism does not divide is refused, and so is DoRA") {
  const auto refused = [](const std::string& more) {
    const Answer answer = ask(gpt(R"("tensor": 2)", R"("attention": "eager", "method": "lora", "adapter": )" + more,
                                  R"("transformer_impl": "local")"));
    return !answer.estimate;
  };
  CHECK(refused(R"({"r": 7})"));
  CHECK(refused(R"({"r": 8, "use_dora": true})"));
  CHECK(!refused(R"({"r": 8})"));
}

}  // namespace
}  // namespace tidemark
