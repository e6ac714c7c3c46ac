#include "core/layers/program.hpp"

#include <algorithm>
#include <string>

#include "core/units/word_list.hpp"

namespace tidemark {

namespace {

/// Types whose class says `_supports_flex_attn = False` (transformers 5.12.1 modeling_utils.py:
/// _flex_attn_can_dispatch).
constexpr std::string_view kNoFlex =
    "aria,bamba,blip-2,bloom,codegen,ctrl,deberta,deberta-v2,deepseek_v32,ernie4_5_vl_moe,falcon,falcon_h1,glm4v,"
    "glm46v,glm_moe_dsa,glm_ocr,got_ocr2,gpt2,gpt_bigcode,gpt_neo,gptj,jamba,minicpmv4_6,mpnet,mpt,mt5,nemotron,"
    "olmo_hybrid,olmoe,persimmon,qwen2_5_omni,qwen2_5_omni_thinker,qwen2_5_vl,qwen2_audio,qwen2_vl,qwen3_5,"
    "qwen3_5_moe,qwen3_5_moe_text,qwen3_5_text,qwen3_next,qwen3_omni_moe,qwen3_omni_moe_thinker,qwen3_vl,"
    "recurrent_gemma,stablelm,swin,t5,umt5,video_llama_3,xglm";

bool asks_for_flex(const TrainingJob& job) {
  const auto is_one = [](const std::string& text) { return text.rfind("flex_attention", 0) == 0; };
  return std::any_of(job.stand_ins.begin(), job.stand_ins.end(), is_one);
}

}  // namespace

void check_attention(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  const Program* program = architecture.program;
  if (program == nullptr) return;
  if (program->check != nullptr) program->check(architecture, job, issues);
  const AttentionSupport& has = program->attention;
  const bool second = job.attention == AttentionKernel::kFlashAttention2;
  if (asks_for_flex(job) && program->implementation == nullptr && has_word(kNoFlex, architecture.model_type)) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/attention",
         "transformers has no flex_attention for " + architecture.model_type + ": it raises an error. Use \"sdpa\".",
         "sdpa"});
    return;
  }
  // Kernels of the flash-attn packages take no bias on the scores (FalconFlashAttention2 raises on alibi). What
  // flash_attention_2 stands in for is no such kernel (Llama 4 and GPT-OSS have no flash attention, and flex
  // attention).
  const bool is_one = wants_flash(job) && (architecture.alibi || !asks_for_flex(job));
  if (is_one && (architecture.alibi || !(second ? has.flash_attention_2 : has.flash_attention_3))) {
    const std::string known = has.sdpa ? "sdpa" : "eager";
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/attention",
                      "transformers has no " + std::string{second ? "flash_attention_2" : "flash_attention_3"} +
                          " for " + architecture.model_type + (architecture.alibi ? " with alibi" : "") +
                          ": it raises an error. Use \"" + known + "\".",
                      known});
  }
  if (job.checkpointing != Checkpointing::kNone && !program->checkpoints) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing",
                      "transformers has no gradient checkpointing for " + architecture.model_type +
                          ": it raises an error. Use \"none\".",
                      "none"});
    return;
  }
  if (!job.torch_scan && !program->fused_scan) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/kernels",
                      "The kernels of mamba_ssm are not modelled for " + architecture.model_type + ". Use \"torch\".",
                      "torch"});
  }
  if (is_half(job.recipe.weights) && !job.recipe.autocast && !program->runs_in_16_bits) {
    issues.push_back(
        {"UNSUPPORTED_VALUE", Severity::kError, "/precision",
         architecture.model_type + " raises an error in 16 bits without autocast. Use \"amp_bf16\" or \"bf16_amp\".",
         "amp_bf16"});
  }
  if (job.checkpointing == Checkpointing::kSelectiveCoreAttention && !has.core_alone) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/gradient_checkpointing/selective",
                      "Recomputing the core of attention alone is not modelled for " + architecture.model_type +
                          ". Use \"full\" or {\"every\": 2}.",
                      "full"});
  }
}

std::string full_name(const Architecture& architecture, std::string_view path) {
  const std::string_view body = architecture.body_prefix;
  // mcore-bridge f020e47 src/mcore_bridge/model/mm_gpt_model.py: a GPTModel is the language model, table and head too.
  const Program* language = architecture.language;
  const bool of_gpt_model =
      path.starts_with("embedding.") || path.starts_with("decoder.") || path.starts_with("output_layer");
  if (of_gpt_model && language != nullptr && language->implementation != nullptr) {
    return std::string{"language_model."}.append(path);
  }
  constexpr std::string_view kTower = "vision_tower.";  // as most that hold one name it
  // Of a model that sees, the language model's program names its own modules ("model.norm") and the head. All else lies
  // beside the language model in the body.
  // Llama4ForConditionalGeneration: a causal language model, head and all, beside the rest.
  // InternVLChatModel does the same.
  if (architecture.model_type == "llama4" || architecture.model_type == "internvl_chat") {
    const bool is_language = path.substr(0, 7) == "lm_head" || path.substr(0, body.size()) == body;
    return std::string{is_language ? "language_model." : ""}.append(path);
  }
  // Blip2ForConditionalGeneration: what it sees with lies beside a language model with its head.
  if (architecture.model_type == "blip-2") {
    const bool is_language = !path.empty() && !path.starts_with("vision_model.") && !path.starts_with("qformer.") &&
                             !path.starts_with("language_projection");
    return std::string{is_language ? "language_model." : ""}.append(path);
  }
  // Thinkers (Qwen2.5-Omni, Qwen3-Omni): the language model is "model", towers and head lie beside it.
  if (architecture.model_type.ends_with("_thinker")) return std::string{path};
  if (architecture.language != nullptr && path.substr(0, 7) != "lm_head") {
    const bool is_language = path.substr(0, body.size()) == body;
    if (is_language) path.remove_prefix(body.size());
    std::string name{architecture.head == Head::kNone ? std::string_view{} : body};
    const std::string_view type = architecture.model_type;
    const bool idefics = type.substr(0, 7) == "idefics" || type == "smolvlm";
    // Phi-4 multimodal: the language model is the body itself, what it sees and hears with one of its modules.
    const bool phi = type == "phi4_multimodal";
    if (phi && !is_language) name += "embed_tokens_extend.";
    if (phi && path.starts_with(kTower)) {
      name += "image_embed.img_processor.";
      path.remove_prefix(kTower.size());
    }
    if (is_language && !phi) name += idefics ? "text_model." : "language_model.";
    constexpr std::string_view kModel = "vision_model.";
    if (type == "aria" && path.starts_with(kModel)) {  // Idefics 3's tower by another name
      name += kTower;
      path.remove_prefix(kModel.size());
    }
    constexpr std::string_view kProjector = "multi_modal_projector.";
    const bool lighton = type == "lighton_ocr";
    if ((lighton || type.starts_with("deepseek_vl")) && path.starts_with(kTower)) {
      name += lighton ? "vision_encoder." : "vision_model.";
      path.remove_prefix(kTower.size());
    } else if (lighton && path.starts_with(kProjector)) {
      name += "vision_projection.";
      path.remove_prefix(kProjector.size());
    }
    return name.append(path);
  }
  // SigLIP's tower alone, as those that hold it name it.
  if (architecture.model_type == "siglip" && path.substr(0, kTower.size()) == kTower) {
    return std::string{"vision_model."}.append(path.substr(kTower.size()));
  }
  // The body alone is the model: its modules' names lack `base_model_prefix`.
  if (architecture.head == Head::kNone && path.substr(0, body.size()) == body) path.remove_prefix(body.size());
  return std::string{path};
}

std::int64_t layer_kind(const Net& net, Count layer) {
  const auto i = static_cast<std::size_t>(layer);
  std::int64_t kind = 0;
  if (net.slides(layer)) kind |= 1;
  if (i < net.arch.no_rope_layers.size() && net.arch.no_rope_layers[i]) kind |= 2;
  if (i < net.arch.local_layers.size() && net.arch.local_layers[i] != 0) kind |= 4;
  if (i < net.arch.sliding_layers.size() && net.arch.sliding_layers[i]) kind |= 8;
  if (i < net.arch.layer_kinds.size()) kind |= net.arch.layer_kinds[i] << 8;
  if (i < net.arch.experts.dense_layers.size() && net.arch.experts.dense_layers[i]) kind |= 32;
  if (net.job.checkpointing == Checkpointing::kEvery && net.job.checkpoint_every > 0 &&
      layer % net.job.checkpoint_every == 0) {
    kind |= 16;
  }
  if (net.treatments != nullptr) kind |= net.treatments->variant_of(net.first_layer + layer) << 16;
  return kind;
}

}  // namespace tidemark
