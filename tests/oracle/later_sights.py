#!/usr/bin/env python3
"""later_sights.py [FAMILY...] > jobs.jsonl: models that see and came to transformers last, a few layers of the published widths.
later_sights.py --whole CATALOG.json > jobs.jsonl: checkpoints of them with all their layers.

MiniCPM-V 4.6, DeepSeek-OCR 2, EXAONE 4.5, VideoLLaMA 3, LightOnOCR, Qianfan-OCR."""
import json
import sys

from newer_jobs import CK, MORE_SIGHTS, TILED, lora

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
PATCHES_OF_14 = {(512, 512): [448, 448], (384, 512): [448, 672], (768, 1280): [672, 1120]}
# Where the tower is called, whole, and how long a row must be for pictures that each have more than 400 tokens.
TOWERS = {"exaone45": ["visual"], "videollama3": ["vision_model"], "lightonocr": ["vision_encoder"]}


def job(name, config, row):
    what, method, precision, rows, length, more = row
    more = dict(more)
    if "freeze" in more:
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
    "lkhl/VideoLLaMA3-2B-Image-HF": ("videollama3", [("whole", "lora", "bf16", 1, 1280, {"images": 1, "image_size": [512, 512], **lora()})]),
}


def whole(catalog):
    for model in json.load(open(catalog))["models"]:
        name, rows = WHOLE.get(model["id"], ("", []))
        for row in rows:
            tokens = {key: SIGHTS[name][key] for key in ("image_token_id", "video_token_id") if key in SIGHTS[name]}
            print(json.dumps(job(name, {**{key: value for key, value in model["config"].items() if key != "dtype"}, **tokens}, row)))


def main():
    if sys.argv[1:2] == ["--whole"]:
        return whole(sys.argv[2])
    for name in sys.argv[1:] or SIGHTS:
        rows = TILED if name == "qianfanocr" else MORE_SIGHTS
        if name == "deepseek-ocr2":
            rows = [row for row in rows if row[0] != "fa2"]
            rows += [("loop", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512], "experts": "eager"}),
                     ("tiles-lora", "lora", "bf16_amp", 1, 1536, {"images": 1, "image_size": [1536, 1536], **lora(r".*language_model.*_proj"), **CK})]
        for row in rows:
            print(json.dumps(job(name, SIGHTS[name], row)))


if __name__ == "__main__":
    main()
