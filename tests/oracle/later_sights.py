#!/usr/bin/env python3
"""later_sights.py [FAMILY...] > jobs.jsonl: models that see and came to transformers last, a few layers of the published widths.
later_sights.py --whole CATALOG.json > jobs.jsonl: checkpoints of them with all their layers.
later_sights.py --gpus > jobs.jsonl: BLIP-2 on several GPUs.

MiniCPM-V 4.6, DeepSeek-OCR 2, EXAONE 4.5, VideoLLaMA 3, LightOnOCR, Qianfan-OCR; BLIP-2 and Aria, which came long before."""
import json
import sys

from newer_jobs import CK, EAGER, MORE_SIGHTS, TILED, lora

QWEN_TEXT = {"model_type": "qwen3_5_text", "vocab_size": 248094, "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 4,
             "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
             "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 16, "max_position_embeddings": 262144,
             "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"], "tie_word_embeddings": True}
SIGHTS = {
    "minicpmv46": {"model_type": "minicpmv4_6", "architectures": ["MiniCPMV4_6ForConditionalGeneration"], "image_token_id": 248056,
                   "video_token_id": 248057, "insert_layer_id": 2, "tie_word_embeddings": True, "text_config": QWEN_TEXT,
                   "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 5, "num_attention_heads": 16,
                                     "image_size": 980, "patch_size": 14}},
    "exaone45": {"model_type": "exaone4_5", "architectures": ["Exaone4_5_ForConditionalGeneration"], "image_token_id": 67, "video_token_id": 68,
                 "tie_word_embeddings": False,
                 "text_config": {"model_type": "exaone4", "vocab_size": 153600, "hidden_size": 5120, "intermediate_size": 27392,
                                 "num_hidden_layers": 2, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
                                 "max_position_embeddings": 131072, "sliding_window": 4096, "sliding_window_pattern": "LLLG",
                                 "layer_types": ["sliding_attention", "full_attention"]},
                 "vision_config": {"model_type": "exaone4_5_vision", "depth": 4, "hidden_size": 2048, "intermediate_size": 5120, "num_heads": 32,
                                   "num_key_value_heads": 8, "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
                                   "window_size": 112, "fullatt_block_indexes": [1, 3], "out_hidden_size": 5120}},
    "deepseek-ocr2": {"model_type": "deepseek_ocr2", "architectures": ["DeepseekOcr2ForConditionalGeneration"], "image_token_id": 128815,
                      "tie_word_embeddings": False,
                      "text_config": {"model_type": "deepseek_ocr2_text", "vocab_size": 129280, "hidden_size": 1280, "intermediate_size": 6848,
                                      "moe_intermediate_size": 896, "num_hidden_layers": 3, "num_attention_heads": 10, "num_key_value_heads": 10,
                                      "n_routed_experts": 16, "n_shared_experts": 2, "num_experts_per_tok": 6, "topk_method": "greedy",
                                      "max_position_embeddings": 8192, "mlp_layer_types": ["dense", "sparse", "sparse"], "n_group": 1,
                                      "topk_group": 1},
                      "vision_config": {"sam_config": {"hidden_size": 768, "num_hidden_layers": 4, "num_attention_heads": 12,
                                                       "global_attn_indexes": [1, 3]},
                                        "encoder_config": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 4,
                                                           "num_attention_heads": 14, "num_key_value_heads": 2}}},
    "videollama3": {"model_type": "video_llama_3", "architectures": ["VideoLlama3ForConditionalGeneration"], "image_token_id": 151655,
                    "video_token_id": 151656, "tie_word_embeddings": True,
                    "text_config": {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960,
                                    "num_hidden_layers": 4, "num_attention_heads": 12, "num_key_value_heads": 2, "max_position_embeddings": 32768,
                                    "tie_word_embeddings": True},
                    "vision_config": {"model_type": "video_llama_3_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 4,
                                      "num_attention_heads": 16, "num_channels": 3, "patch_size": 14}},
    "lightonocr": {"model_type": "lighton_ocr", "architectures": ["LightOnOcrForConditionalGeneration"], "image_token_id": 151655,
                   "spatial_merge_size": 2, "tie_word_embeddings": True,
                   "text_config": {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
                                   "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
                                   "max_position_embeddings": 40960, "tie_word_embeddings": True},
                   "vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,
                                     "num_attention_heads": 16, "head_dim": 64, "num_channels": 3, "patch_size": 14, "image_size": 1540,
                                     "hidden_act": "silu"}},
    "qianfanocr": {"model_type": "qianfan_ocr", "architectures": ["QianfanOCRForConditionalGeneration"], "image_token_id": 151671,
                   "tie_word_embeddings": False, "downsample_ratio": 0.5, "vision_feature_layer": -1,
                   "vision_feature_select_strategy": "default",
                   "text_config": {"model_type": "qwen3", "vocab_size": 153678, "hidden_size": 2560, "intermediate_size": 9728,
                                   "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                                   "max_position_embeddings": 32768},
                   "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 5, "num_attention_heads": 16,
                                     "image_size": [448, 448], "patch_size": [14, 14], "drop_path_rate": 0.1}},
}
BLIP2 = {"model_type": "blip-2", "architectures": ["Blip2ForConditionalGeneration"], "num_query_tokens": 32, "image_token_index": 50265,
         "vision_config": {"model_type": "blip_2_vision_model", "hidden_size": 1408, "intermediate_size": 6144, "num_hidden_layers": 4,
                           "num_attention_heads": 16, "image_size": 224, "patch_size": 14, "hidden_act": "gelu", "qkv_bias": True},
         "qformer_config": {"model_type": "blip_2_qformer", "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072,
                            "num_hidden_layers": 4, "num_attention_heads": 12, "cross_attention_frequency": 2, "encoder_hidden_size": 1408}}
SIGHTS["blip2-opt"] = {**BLIP2, "text_config": {
    "model_type": "opt", "vocab_size": 50304, "hidden_size": 2560, "ffn_dim": 10240, "num_hidden_layers": 4, "num_attention_heads": 32,
    "max_position_embeddings": 2048, "word_embed_proj_dim": 2560, "do_layer_norm_before": True, "dropout": 0.1}}
SIGHTS["blip2-t5"] = {**BLIP2, "image_token_index": 32100, "text_config": {
    "model_type": "t5", "vocab_size": 32128, "d_model": 2048, "d_ff": 5120, "d_kv": 64, "num_layers": 3, "num_decoder_layers": 3,
    "num_heads": 32, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "dropout_rate": 0.1,
    "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu", "decoder_start_token_id": 0, "tie_word_embeddings": False}}
SIGHTS["aria"] = {
    "model_type": "aria", "architectures": ["AriaForConditionalGeneration"], "image_token_index": 9,
    "projector_patch_to_query_dict": {"1225": 128, "4900": 256}, "vision_feature_layer": -1,
    "text_config": {"model_type": "aria_text", "vocab_size": 100352, "hidden_size": 2560, "intermediate_size": 1664, "num_hidden_layers": 2,
                    "num_attention_heads": 20, "num_key_value_heads": 20, "moe_num_experts": 64, "moe_topk": 6, "moe_num_shared_experts": 2,
                    "max_position_embeddings": 65536, "head_dim": 128},
    "vision_config": {"model_type": "idefics3_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 3,
                      "num_attention_heads": 16, "image_size": 980, "patch_size": 14}}
SMALL_PICTURE = {"images": 1, "image_size": [490, 490]}
ARIAS = [
    ("full", "full", "bf16", 1, 512, SMALL_PICTURE),
    ("large", "full", "bf16", 1, 768, {"images": 1, "image_size": [980, 980]}),
    ("tiles", "lora", "bf16", 1, 1536, {**SMALL_PICTURE, "tiles": 5, **lora(), **CK}),
    ("amp", "full", "amp_bf16", 1, 512, SMALL_PICTURE),
    ("ck", "full", "bf16", 2, 512, {**SMALL_PICTURE, **CK}),
    ("frozen", "full", "bf16", 2, 512, {**SMALL_PICTURE, "freeze": ["vision_tower"]}),
    ("eager", "full", "bf16", 1, 512, {**SMALL_PICTURE, **EAGER}),
    ("lora", "lora", "bf16_amp", 2, 512, {**SMALL_PICTURE, **lora()}),
    ("lora-attention", "lora", "bf16", 2, 512, {**SMALL_PICTURE, **lora(["q_proj", "v_proj"]), **CK}),
    ("text", "full", "bf16", 2, 512, {}),
    ("text-ck", "full", "bf16_amp", 2, 768, CK),
    ("text-lora", "lora", "bf16_amp", 2, 512, {**lora(["q_proj", "v_proj"]), **CK}),
    ("padded", "full", "bf16", 2, 512, {**SMALL_PICTURE, "padding": True}),
    ("fp32", "full", "fp32", 1, 256, {}),
    ("qlora", "qlora", "bf16_amp", 1, 512, {**SMALL_PICTURE, **lora(["q_proj", "v_proj"]), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-text", "qlora", "bf16", 2, 512, {**lora(["q_proj", "v_proj"]), "kbit_prepare": False}),
    ("fa2", "lora", "bf16", 2, 512, {**SMALL_PICTURE, **lora(["q_proj", "v_proj"]), "attention": "flash_attention_2"}),
    ("two", "lora", "bf16_amp", 2, 512, {"images": 2, "image_size": [490, 490], **lora(), **CK}),
]
# A picture of the tower's own side for each text.
BLIPS = [
    ("full", "full", "bf16", 2, 512, {}),
    ("many", "full", "bf16", 16, 64, {}),
    ("amp", "full", "amp_bf16", 4, 256, {}),
    ("bf16-amp", "full", "bf16_amp", 8, 128, {}),
    ("ck", "full", "bf16", 4, 512, CK),
    ("ck-re", "lora", "bf16_amp", 8, 128, {**lora(["q_proj", "k_proj"]), **CK, "use_reentrant": True}),
    ("wide", "full", "bf16", 8, 256, {"image_size": 364}),
    ("frozen", "full", "bf16", 8, 128, {"freeze": ["vision_model"]}),
    ("frozen-language", "full", "bf16_amp", 16, 64, {"freeze": ["vision_model", "language_model"]}),
    ("frozen-ck", "full", "bf16_amp", 8, 256, {"freeze": ["vision_model"], **CK, "grad_accum": 2}),
    ("eager", "full", "bf16", 4, 256, EAGER),
    ("lora", "lora", "bf16_amp", 8, 128, lora()),
    ("lora-qk", "lora", "bf16", 16, 64, lora(["q_proj", "k_proj"], 16, 0.05)),
    ("lora-qk-ck", "lora", "bf16", 16, 256, {**lora(["q_proj", "v_proj"], 16, 0.05), **CK}),
    ("lora-fp16", "lora", "fp16", 8, 128, lora(["q_proj", "k_proj"], 16, 0.05)),
    ("lora-fp16-all", "lora", "amp_fp16", 8, 128, lora()),
    ("qlora", "qlora", "bf16_amp", 8, 128, {**lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-none", "qlora", "bf16", 8, 128, {**lora(["q_proj", "k_proj"]), "kbit_prepare": False}),
    ("qlora-fp16", "qlora", "fp16", 8, 128, {**lora(["q_proj", "k_proj"]), "kbit_prepare": False}),
    ("int8", "qlora", "fp16", 4, 128, {**lora(["q_proj", "k_proj"], 16, 0.05), "bits": 8, "kbit_prepare": False}),
    ("padded", "lora", "bf16", 8, 128, {**lora(), "padding": True}),
    ("padded-full", "full", "bf16", 4, 256, {"padding": True}),
    ("adam8", "full", "bf16", 2, 256, {"optimizer": "adamw_8bit"}),
    ("fp32", "full", "fp32", 4, 128, {}),
]
PATCHES_OF_14 = {(512, 512): [448, 448], (384, 512): [448, 672], (768, 1280): [672, 1120]}
# Where the tower is called, whole, and how long a row must be for pictures that each have more than 400 tokens.
TOWERS = {"exaone45": ["visual"], "videollama3": ["vision_model"], "lightonocr": ["vision_encoder"]}


def job(name, config, row):
    what, method, precision, rows, length, more = row
    more = dict(more)
    if "freeze" in more and not name.startswith("blip2"):
        more["freeze"] = TOWERS.get(name, ["vision_tower"])
    if name in ("exaone45", "videollama3", "lightonocr") and "image_size" in more:        # sizes that their patches divide
        more["image_size"] = PATCHES_OF_14[tuple(more["image_size"])]
    if name == "videollama3" and "images" in more:
        tokens = more["image_size"][0] * more["image_size"][1] // 14 ** 2 + 1
        length = max(length, -(-more["images"] * tokens // 256) * 256)
    if name == "minicpmv46":
        more = {"kernels": "fla", **more}
        if "image_size" in more:                                          # a whole of 1024 patches; slices beside it
            more["image_size"] = {"full": [512, 512], "ck": [384, 640], "wide": [768, 1280]}.get(what, [448, 448])
    if name.startswith("blip2"):
        if "image_size" in more:
            config = {**config, "vision_config": {**config["vision_config"], "image_size": more.pop("image_size")}}
        more = {"images": 1, **more}
        if name == "blip2-t5":
            if "lora" in more and isinstance(more["lora"]["target_modules"], list):
                more["lora"] = {**more["lora"], "target_modules": ["q", "v"], "task_type": "SEQ_2_SEQ_LM"}
            more = {**more, "target_len": length // 2}
    if name == "deepseek-ocr2":
        more = {"experts": "grouped_mm", **more}
        if what in ("wide", "ck"):                                        # tiles beside the page: 2 x 3, 2
            more["image_size"] = {"wide": [1536, 2304], "ck": [768, 1536]}[what]
    return {"id": f"{name}-{what}", "kind": "vlm", "config": config, "method": method, "precision": precision, "micro_batch": rows, "seq_len": length,
            "grad_accum": 1, "attention": "sdpa", "padding": False, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", **more}


# Checkpoints as the catalog has them.
WHOLE = {
    "deepseek-community/DeepSeek-OCR-2": ("deepseek-ocr2", [
        ("whole-tiles", "lora", "bf16", 1, 1536, {"images": 1, "image_size": [1536, 2304], **lora(r".*language_model.*_proj")}),
        ("whole-ck", "full", "bf16", 1, 1024, {"images": 1, "image_size": [768, 1536], **CK})]),
    "openbmb/MiniCPM-V-4.6": ("minicpmv46", [("whole", "lora", "bf16_amp", 2, 512, {"images": 1, "image_size": [448, 448], **lora()})]),
    "lightonai/LightOnOCR-2-1B": ("lightonocr", [("whole", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512]})]),
    "Salesforce/blip2-opt-2.7b": ("blip2-opt", [
        ("whole-int8", "qlora", "fp16", 3, 64, {**lora(["q_proj", "k_proj"], 16, 0.05), "bits": 8, "kbit_prepare": False}),
        ("whole-ck", "lora", "bf16", 4, 128, {**lora(["q_proj", "v_proj"]), **CK})]),
    "Salesforce/blip2-flan-t5-xl": ("blip2-t5", [("whole", "lora", "bf16_amp", 4, 128, lora(["q", "v"]))]),
    "lkhl/VideoLLaMA3-2B-Image-HF": ("videollama3", [("whole", "lora", "bf16", 1, 1280, {"images": 1, "image_size": [512, 512], **lora()})]),
}


def whole(catalog):
    for model in json.load(open(catalog))["models"]:
        name, rows = WHOLE.get(model["id"], ("", []))
        for row in rows:
            tokens = {key: SIGHTS[name][key] for key in ("image_token_id", "video_token_id", "image_token_index") if key in SIGHTS[name]}
            print(json.dumps(job(name, {**{key: value for key, value in model["config"].items() if key != "dtype"}, **tokens}, row)))


STRATEGIES = {
    "ddp": ("amp_bf16", {"strategy": "ddp", "data": 4}, {}), "zero2": ("bf16", {"strategy": "zero2", "data": 4, "hf_auto": False}, CK),
    "zero3": ("bf16", {"strategy": "zero3", "data": 4, "hf_auto": True}, {}),
    "zero3-ck": ("bf16", {"strategy": "zero3", "data": 8, "hf_auto": True}, CK),
    "fsdp1-ck": ("fp32", {"strategy": "fsdp1", "data": 8, "param_dtype": "bf16", "reduce_dtype": "fp32", "use_orig_params": True}, CK),
    "fsdp2": ("fp32", {"strategy": "fsdp2", "data": 4, "param_dtype": "bf16", "reduce_dtype": "fp32"}, {})}


def on_gpus():
    for name in ("blip2-opt", "blip2-t5"):
        for what, (precision, parallelism, more) in STRATEGIES.items():
            one = job(name, SIGHTS[name], ("full", "full", "bf16", 2, 512, {}))
            print(json.dumps({**one, "id": f"{name}-{what}", "precision": precision, "parallelism": parallelism, "micro_batch": 4, "seq_len": 128,
                              **more}))


def main():
    if sys.argv[1:] == ["--gpus"]:
        return on_gpus()
    if sys.argv[1:2] == ["--whole"]:
        return whole(sys.argv[2])
    for name in sys.argv[1:] or SIGHTS:
        rows = TILED if name == "qianfanocr" else BLIPS if name.startswith("blip2") else ARIAS if name == "aria" else MORE_SIGHTS
        if name == "deepseek-ocr2":
            rows = [row for row in rows if row[0] != "fa2"]
            rows += [("loop", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512], "experts": "eager"}),
                     ("tiles-lora", "lora", "bf16_amp", 1, 1536, {"images": 1, "image_size": [1536, 1536], **lora(r".*language_model.*_proj"), **CK})]
        for row in rows:
            print(json.dumps(job(name, SIGHTS[name], row)))


if __name__ == "__main__":
    main()
