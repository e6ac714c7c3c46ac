#pragma once

#include "core/model/architecture.hpp"
#include "core/model/config_fields.hpp"

namespace tidemark {

// What the keys of each family's config.json mean, one reader per configuration class of transformers 5.12.1
// (models/<name>/configuration_<name>.py), with that class's defaults and what its modelling file hard-wires.
// Depth is checked before a reader runs, so that lists with one entry per layer stay small.

void read_llama_config(ConfigFields& fields, Architecture& architecture);
void read_smollm3_config(ConfigFields& fields, Architecture& architecture);
void read_mistral_config(ConfigFields& fields, Architecture& architecture);
void read_ministral_config(ConfigFields& fields, Architecture& architecture);
void read_ministral3_config(ConfigFields& fields, Architecture& architecture);
void read_qwen2_config(ConfigFields& fields, Architecture& architecture);
void read_qwen3_config(ConfigFields& fields, Architecture& architecture);
void read_seed_oss_config(ConfigFields& fields, Architecture& architecture);
void read_gemma_config(ConfigFields& fields, Architecture& architecture);
void read_gemma2_config(ConfigFields& fields, Architecture& architecture);
void read_gemma3_text_config(ConfigFields& fields, Architecture& architecture);
void read_phi_config(ConfigFields& fields, Architecture& architecture);
void read_phi3_config(ConfigFields& fields, Architecture& architecture);
void read_gpt2_config(ConfigFields& fields, Architecture& architecture);
void read_gpt_bigcode_config(ConfigFields& fields, Architecture& architecture);
void read_gpt_neo_config(ConfigFields& fields, Architecture& architecture);
void read_gptj_config(ConfigFields& fields, Architecture& architecture);
void read_gpt_neox_config(ConfigFields& fields, Architecture& architecture);
void read_opt_config(ConfigFields& fields, Architecture& architecture);
void read_bloom_config(ConfigFields& fields, Architecture& architecture);
void read_falcon_config(ConfigFields& fields, Architecture& architecture);
void read_mpt_config(ConfigFields& fields, Architecture& architecture);
void read_stablelm_config(ConfigFields& fields, Architecture& architecture);
void read_olmo_config(ConfigFields& fields, Architecture& architecture);
void read_olmo2_config(ConfigFields& fields, Architecture& architecture);
void read_olmo3_config(ConfigFields& fields, Architecture& architecture);
void read_granite_config(ConfigFields& fields, Architecture& architecture);
void read_starcoder2_config(ConfigFields& fields, Architecture& architecture);
void read_internlm2_config(ConfigFields& fields, Architecture& architecture);
void read_baichuan_config(ConfigFields& fields, Architecture& architecture);
void read_cohere_config(ConfigFields& fields, Architecture& architecture);
void read_cohere2_config(ConfigFields& fields, Architecture& architecture);
void read_glm_config(ConfigFields& fields, Architecture& architecture);
void read_nemotron_config(ConfigFields& fields, Architecture& architecture);
void read_apertus_config(ConfigFields& fields, Architecture& architecture);
void read_helium_config(ConfigFields& fields, Architecture& architecture);
void read_bert_config(ConfigFields& fields, Architecture& architecture);
void read_distilbert_config(ConfigFields& fields, Architecture& architecture);
void read_vit_config(ConfigFields& fields, Architecture& architecture);
void read_t5_config(ConfigFields& fields, Architecture& architecture);

}  // namespace tidemark
