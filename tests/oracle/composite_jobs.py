#!/usr/bin/env python3
"""composite_jobs.py > jobs.jsonl: language models with towers: GLM-4.1V and 4.5V, Qwen2.5-Omni's thinker, Voxtral; few layers of the published widths."""
import json

GLM_VISION = {"model_type": "glm4v", "depth": 3, "hidden_size": 1536, "hidden_act": "silu", "attention_bias": False, "num_heads": 12, "in_channels": 3,
              "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 4096, "intermediate_size": 13696}
MROPE = {"rope_type": "default", "rope_theta": 10000, "mrope_section": [8, 12, 12], "partial_rotary_factor": 0.5}
GLM4V = {"model_type": "glm4v", "architectures": ["Glm4vForConditionalGeneration"], "image_token_id": 151343, "video_token_id": 151344,
         "tie_word_embeddings": False,
         "text_config": {"model_type": "glm4v_text", "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 2,
                         "num_attention_heads": 32, "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 65536,
                         "attention_bias": True, "rope_parameters": MROPE},
         "vision_config": GLM_VISION}
GLM4V_MOE = {"model_type": "glm4v_moe", "architectures": ["Glm4vMoeForConditionalGeneration"], "image_token_id": 151363, "video_token_id": 151364,
             "tie_word_embeddings": False,
             "text_config": {"model_type": "glm4v_moe_text", "vocab_size": 151552, "hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 3,
                             "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu", "max_position_embeddings": 65536,
                             "attention_bias": True, "moe_intermediate_size": 704, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_routed_experts": 32,
                             "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": True,
                             "rope_parameters": MROPE},
             "vision_config": {**GLM_VISION, "model_type": "glm4v_moe", "out_hidden_size": 2048, "intermediate_size": 5504, "depth": 2}}
OMNI = {"model_type": "qwen2_5_omni_thinker", "architectures": ["Qwen2_5OmniThinkerForConditionalGeneration"], "audio_token_index": 151646,
        "image_token_index": 151655, "video_token_index": 151656, "audio_start_token_id": 151647, "audio_end_token_id": 151648,
        "vision_start_token_id": 151652, "position_id_per_seconds": 25, "seconds_per_chunk": 2,
        "text_config": {"model_type": "qwen2_5_omni_text", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 3,
                        "num_attention_heads": 16, "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 32768,
                        "use_sliding_window": False, "tie_word_embeddings": False,
                        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [16, 24, 24]}},
        "vision_config": {"model_type": "qwen2_5_omni_vision_encoder", "depth": 4, "hidden_size": 1280, "hidden_act": "silu", "intermediate_size": 3420,
                          "num_heads": 16, "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112,
                          "out_hidden_size": 2048, "fullatt_block_indexes": [1, 3]},
        "audio_config": {"model_type": "qwen2_5_omni_audio_encoder", "num_mel_bins": 128, "encoder_layers": 4, "encoder_attention_heads": 20,
                         "encoder_ffn_dim": 5120, "d_model": 1280, "activation_function": "gelu", "max_source_positions": 1500, "n_window": 100,
                         "output_dim": 2048}}
VOXTRAL = {"model_type": "voxtral", "architectures": ["VoxtralForConditionalGeneration"], "audio_token_id": 24, "projector_hidden_act": "gelu",
           "text_config": {"model_type": "llama", "vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 3,
                           "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5},
           "audio_config": {"model_type": "voxtral_encoder", "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 4,
                            "num_attention_heads": 20, "activation_function": "gelu", "num_mel_bins": 128, "max_source_positions": 1500}}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LANGUAGE = r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_up_proj|gate_proj|up_proj|down_proj)"
CK = {"gradient_checkpointing": "full"}
FA2 = {"attention": "flash_attention_2"}
EAGER = {"attention": "eager"}


def lora(targets="all-linear", r=16, dropout=0.0):
    return {"lora": {"r": r, "alpha": 2 * r, "dropout": dropout, "target_modules": targets}}


def pictures(n, *size):
    return {"images": n, "image_size": list(size)}


def sound(seconds):
    return {"audio_seconds": seconds}


TEXT = {}
# name, config, kind; rows: what, method, precision, rows, length, inputs, further
SEES = [
    ("full", "full", "bf16", 1, 1024, pictures(1, 448, 672), {}),
    ("two", "full", "bf16", 2, 1024, pictures(2, 336, 336), {}),
    ("amp", "full", "amp_bf16", 1, 768, pictures(1, 448, 448), {}),
    ("ck", "full", "bf16", 2, 1024, pictures(1, 672, 672), CK),
    ("frozen", "full", "bf16", 2, 1024, pictures(1, 448, 672), {"freeze": ["visual"]}),
    ("frozen-ck", "full", "bf16_amp", 2, 1024, pictures(1, 448, 672), {"freeze": ["visual"], **CK}),
    ("eager", "full", "bf16", 1, 768, pictures(2, 280, 420), EAGER),
    ("fa2", "full", "bf16", 2, 1024, pictures(2, 336, 448), FA2),
    ("lora", "lora", "bf16_amp", 2, 1024, pictures(1, 448, 672), lora()),
    ("lora-language", "lora", "bf16", 2, 1024, pictures(1, 448, 672), {**lora(LANGUAGE), **CK}),
    ("lora-attention", "lora", "bf16_amp", 1, 1024, pictures(2, 448, 448), {**lora(["q_proj", "v_proj"], 8, 0.05), **FA2}),
    ("qlora", "qlora", "bf16_amp", 1, 1024, pictures(1, 672, 672), {**lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-re", "qlora", "bf16_amp", 2, 768, pictures(1, 448, 448), {**lora(LANGUAGE), **CK, "use_reentrant": True}),
    ("qlora-eager", "qlora", "bf16", 1, 768, pictures(1, 448, 448), {**lora(), **EAGER}),
    ("text", "full", "bf16", 2, 1024, TEXT, {"grad_accum": 2}),
    ("text-lora", "lora", "bf16_amp", 2, 1024, TEXT, {**lora(), **CK}),
    ("text-padded", "full", "bf16", 2, 1024, TEXT, {"padding": True}),
    ("padded", "lora", "bf16", 2, 1024, pictures(1, 448, 448), {**lora(), "padding": True}),
    ("video", "full", "bf16", 1, 1024, {"video_frames": 6, "image_size": [280, 448]}, {}),
    ("video-lora", "lora", "bf16_amp", 1, 2048, {"video_frames": 16, "image_size": [280, 336]}, {**lora(), **CK}),
    ("fp32", "full", "fp32", 1, 640, pictures(1, 448, 448), {}),
]
HEARS = [
    ("full", "full", "bf16", 2, 1024, sound(30), {}),
    ("short", "full", "bf16", 1, 1024, sound(7.5), {}),
    ("long", "full", "bf16", 1, 2048, sound(65), {}),
    ("amp", "full", "amp_bf16", 1, 768, sound(20), {}),
    ("ck", "full", "bf16", 2, 1024, sound(30), CK),
    ("frozen", "full", "bf16", 2, 1024, sound(30), {"freeze": ["audio_tower"]}),
    ("eager", "full", "bf16", 1, 1024, sound(25), EAGER),
    ("fa2", "full", "bf16", 2, 1024, sound(40), FA2),
    ("lora", "lora", "bf16_amp", 2, 1024, sound(30), lora()),
    ("lora-language", "lora", "bf16", 2, 1024, sound(12), {**lora(r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"), **CK}),
    ("lora-all-ck", "lora", "bf16", 2, 1024, sound(45), {**lora(ALL, 8, 0.05), **CK}),
    ("qlora", "qlora", "bf16_amp", 1, 1024, sound(30), {**lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-re", "qlora", "bf16_amp", 2, 1024, sound(30), {**lora(ALL), **CK, "use_reentrant": True}),
    ("qlora-none", "qlora", "bf16", 1, 768, sound(10), lora()),
    ("text", "full", "bf16", 2, 1024, TEXT, {"grad_accum": 2}),
    ("text-lora", "lora", "bf16_amp", 2, 1024, TEXT, {**lora(), **CK}),
    ("text-padded", "full", "bf16", 2, 1024, TEXT, {"padding": True}),
    ("padded", "lora", "bf16", 2, 1024, sound(30), {**lora(), "padding": True}),
    ("fp32", "full", "fp32", 1, 768, sound(30), {}),
]
BOTH = [
    ("full", "full", "bf16", 1, 2048, {**pictures(1, 448, 672), **sound(30)}, {}),
    ("picture", "full", "bf16", 2, 1024, pictures(2, 336, 336), {}),
    ("sound", "full", "bf16", 2, 1024, sound(20), {}),
    ("sound-long", "full", "bf16", 1, 2048, sound(61.3), {}),
    ("amp", "full", "amp_bf16", 1, 1024, {**pictures(1, 336, 336), **sound(15)}, {}),
    ("ck", "full", "bf16", 2, 1536, {**pictures(1, 448, 448), **sound(30)}, CK),
    ("frozen", "full", "bf16", 2, 1536, {**pictures(1, 448, 448), **sound(30)}, {"freeze": ["visual", "audio_tower"]}),
    ("frozen-ck", "full", "bf16_amp", 2, 1024, sound(30), {"freeze": ["visual", "audio_tower"], **CK}),
    ("eager", "full", "bf16", 1, 1024, {**pictures(1, 336, 448), **sound(12)}, EAGER),
    ("fa2", "full", "bf16", 2, 1536, {**pictures(2, 336, 448), **sound(20)}, FA2),
    ("fa2-sound", "lora", "bf16_amp", 2, 1024, sound(30), {**lora(ALL), **FA2}),
    ("lora", "lora", "bf16_amp", 2, 1536, {**pictures(1, 448, 448), **sound(30)}, lora()),
    ("lora-language", "lora", "bf16", 2, 1024, sound(30), {**lora(r"model\..*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"), **CK}),
    ("lora-picture", "lora", "bf16", 2, 1024, pictures(1, 448, 672), {**lora(["q_proj", "v_proj"], 8, 0.05), **CK}),
    ("qlora", "qlora", "bf16_amp", 1, 1536, {**pictures(1, 448, 448), **sound(30)}, {**lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-re", "qlora", "bf16_amp", 2, 1024, sound(30), {**lora(ALL), **CK, "use_reentrant": True}),
    ("qlora-none", "qlora", "bf16", 1, 1024, pictures(1, 448, 448), lora()),
    ("text", "full", "bf16", 2, 1024, TEXT, {"grad_accum": 2}),
    ("text-lora", "lora", "bf16_amp", 2, 1024, TEXT, {**lora(), **CK}),
    ("text-padded", "full", "bf16", 2, 1024, TEXT, {"padding": True}),
    ("padded", "lora", "bf16", 2, 1536, {**pictures(1, 448, 448), **sound(30)}, {**lora(), "padding": True}),
    ("video", "full", "bf16", 1, 1024, {"video_frames": 6, "image_size": [280, 448]}, {}),
    ("fp32", "full", "fp32", 1, 1024, {**pictures(1, 336, 336), **sound(15)}, {}),
]
# Of GLM-4.5V, whose experts take long to record, those that differ from its smaller brother's.
MOE = ("full", "two", "ck", "frozen", "eager", "fa2", "lora", "lora-language", "qlora", "qlora-re", "text", "text-lora", "amp")


def job(name, config, kind, row):
    what, method, precision, rows, length, inputs, more = row
    made = {"id": f"{name}-{what}", "kind": kind, "config": config, "method": method, "precision": precision, "micro_batch": rows, "seq_len": length,
            "grad_accum": 1, "attention": "sdpa", "padding": False, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", **inputs, **more}
    return {**made, "experts": "grouped_mm"} if "moe" in config["model_type"] else made


def main():
    for row in SEES:
        print(json.dumps(job("glm4v", GLM4V, "vlm", row)))
    for row in HEARS:
        print(json.dumps(job("voxtral", VOXTRAL, "vlm", row)))
    for row in BOTH:
        print(json.dumps(job("omni", OMNI, "vlm", row)))
    for row in SEES:
        if row[0] in MOE:
            print(json.dumps(job("glm4v-moe", GLM4V_MOE, "vlm", row)))


if __name__ == "__main__":
    main()
