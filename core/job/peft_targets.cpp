#include "core/job/peft_targets.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/units/word_list.hpp"

namespace tidemark {
namespace {

/// Models of a kind of adapter and what it goes on; both are lists.
struct Row {
  std::string_view models, modules;
};

// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING; those of BOFT, LoHa, LoKr, OFT and VeRA are its copies.
constexpr Row kLora[] = {
    {"llama,llama4,mistral,mixtral,stablelm,gemma,gemma2,gemma3_text,qwen2,qwen3,bart,opt,gptj,gpt_neo",
     "q_proj,v_proj"},
    {"gpt2,gpt_bigcode", "c_attn"},
    {"bloom,gpt_neox,falcon,chatglm,RefinedWeb,RefinedWebModel", "query_key_value"},
    {"bert,roberta,xlm-roberta,electra,layoutlm", "query,value"},
    {"t5,mt5", "q,v"},
    {"blip-2", "q,v,q_proj,v_proj"},
    {"deberta-v2", "query_proj,value_proj"},
    {"deberta", "in_proj"},
    {"mpt", "Wqkv"},
    {"codegen", "qkv_proj"},
    {"phi", "q_proj,v_proj,fc1,fc2"},
    {"rwkv", "key,value,receptance,output"},
};
// …VERA… differs in one.
constexpr Row kVera[] = {{"phi", "q_proj,v_proj"}};
// TRANSFORMERS_MODELS_TO_ADALORA_TARGET_MODULES_MAPPING
constexpr Row kAdaLora[] = {
    {"llama,llama4,gptj,gpt_neo,gemma,gemma2,gemma3_text,qwen2,qwen3", "q_proj,v_proj"},
    {"bart,opt", "q_proj,k_proj,v_proj,out_proj,fc1,fc2"},
    {"gpt2,gpt_bigcode", "c_attn"},
    {"bloom,gpt_neox", "query_key_value"},
    {"t5", "q,k,v,o,wi,wo"},
    {"mt5", "q,k,v,o,wi_0,wi_1,wo"},
    {"bert", "query,value"},
    {"roberta", "query,key,value,dense"},
    {"deberta-v2", "query_proj,key_proj,value_proj,dense"},
    {"deberta", "in_proj"},
};
// TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING
constexpr Row kIa3[] = {
    {"llama,mistral", "k_proj,v_proj,down_proj"},
    {"llama4,gemma,gemma2,gemma3_text,qwen2,qwen3", "q_proj,v_proj,down_proj"},
    {"mixtral", "k_proj,v_proj,w2"},
    {"gpt2,gpt_bigcode", "c_attn,mlp.c_proj"},
    {"bloom", "query_key_value,mlp.dense_4h_to_h"},
    {"gpt_neox,falcon,RefinedWeb,RefinedWebModel", "query_key_value,dense_4h_to_h"},
    {"bert,roberta", "key,value,output.dense"},
    {"deberta-v2", "key_proj,value_proj,output.dense"},
    {"deberta", "in_proj,output.dense"},
    {"opt", "q_proj,k_proj,fc2"},
    {"bart,phi", "q_proj,v_proj,fc2"},
    {"gptj", "q_proj,v_proj,fc_out"},
    {"gpt_neo", "q_proj,v_proj,c_proj"},
    {"t5", "k,v,wo"},
    {"mt5", "k,v,wi_1"},
};
// TRANSFORMERS_MODELS_TO_LNTUNING_TARGET_MODULES_MAPPING
constexpr Row kLnTuning[] = {
    {"llama,mistral,gemma", "input_layernorm,post_attention_layernorm,norm"},
    {"gemma2,gemma3_text",
     "input_layernorm,post_attention_layernorm,pre_feedforward_layernorm,post_feedforward_layernorm,norm"},
    {"qwen2,qwen3", "post_attention_layernorm"},
    {"bloom,falcon", "input_layernorm,post_attention_layernorm,ln_f"},
    {"llava", "multi_modal_projector,input_layernorm,post_attention_layernorm,norm,embed_tokens,lm_head"},
    {"t5,mt5", "layer_norm,final_layer_norm"},
    {"bart", "self_attn_layer_norm,encoder_attn_layer_norm,final_layer_norm"},
    {"gpt2", "ln_1,ln_2,ln_f"},
    {"gptj", "ln_1,ln_f"},
    {"phi", "input_layernorm,final_layernorm"},
};

template <std::size_t N>
std::string_view look_up(const Row (&rows)[N], std::string_view model_type) {
  const Row* found = std::find_if(std::begin(rows), std::end(rows),
                                  [model_type](const Row& row) { return has_word(row.models, model_type); });
  return found == std::end(rows) ? std::string_view{} : found->modules;
}

}  // namespace

std::string_view peft_targets(AdapterKind kind, std::string_view model_type) {
  switch (kind) {
    case AdapterKind::kAdaLora:
      return look_up(kAdaLora, model_type);
    case AdapterKind::kIa3:
      return look_up(kIa3, model_type);
    case AdapterKind::kLnTuning:
      return look_up(kLnTuning, model_type);
    case AdapterKind::kVera:
      if (const std::string_view own = look_up(kVera, model_type); !own.empty()) return own;
      [[fallthrough]];
    default:
      return look_up(kLora, model_type);
  }
}

void settle_targets(const LeftOpen& open, const Value& config, TrainingJob& job, Issues& issues) {
  Adapter& adapter = job.adapter;
  ModuleChoice& targets = adapter.target_modules;
  if (!job.has_adapter() || targets.kind != ModuleChoice::Kind::kByPeft) return;
  const Value* type = config.find("model_type");
  const std::string name = type != nullptr && type->is_string() ? type->string.substr(0, 60) : std::string{};
  const std::string_view own = peft_targets(adapter.kind, name);
  const auto say = [&](const char* code, Severity severity, std::string message, const char* suggestion) {
    issues.push_back({code, severity, "/adapter/target_modules", std::move(message), suggestion});
  };
  if (!own.empty()) {
    const std::vector<std::string_view> words = words_of(own);
    targets = {ModuleChoice::Kind::kNames, {words.begin(), words.end()}, {}};
    say("CHOSEN_TARGETS", Severity::kNote,
        "The adapted modules are left to PEFT, whose own for " + name + " are " + std::string{own} + ".", "");
  } else if (!open.targets || adapter.kind == AdapterKind::kLnTuning) {
    say("INVALID_VALUE", Severity::kError,
        "PEFT has no modules of its own for the model type " + name + ": it raises a ValueError. Name them.",
        adapter.kind == AdapterKind::kLnTuning ? "" : "all-linear");
  } else {
    targets = {ModuleChoice::Kind::kAllLinear, {}, {}};
    say("ASSUMED_DEFAULT", Severity::kNote,
        "PEFT has no modules of its own for the model type " + name +
            " and asks for them: all linear layers are taken here.",
        "");
  }
}

}  // namespace tidemark
