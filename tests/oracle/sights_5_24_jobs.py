#!/usr/bin/env python3
"""sights_5_24_jobs.py [blip | hunyuan-vl] > jobs.jsonl: models that see, run by transformers 5.24, a few layers of the published widths."""
import copy
import json
import sys

CK = {"gradient_checkpointing": "full"}
EAGER = {"attention": "eager"}
PICTURE = {"images": 1, "image_size": [512, 512]}


def lora(targets="all-linear", **more):
    return {"lora": {"r": 16, "alpha": 32, "target_modules": targets, "dropout": 0.05, **more}}


def untasked(targets="all-linear"):
    """PeftModelForCausalLM hands over inputs_embeds, of which BLIP's forward would have two: a PeftModel does not."""
    return lora(targets, task_type=False)


BLIP = {"model_type": "blip", "architectures": ["BlipForConditionalGeneration"], "dtype": "float32", "tie_word_embeddings": True,
        "text_config": {"model_type": "blip_text_model", "vocab_size": 30524, "hidden_size": 768, "encoder_hidden_size": 768,
                        "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 12, "max_position_embeddings": 512,
                        "hidden_act": "gelu", "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0},
        "vision_config": {"model_type": "blip_vision_model", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3,
                          "num_attention_heads": 12, "image_size": 384, "patch_size": 16, "hidden_act": "gelu", "attention_dropout": 0.0}}
WIDE = copy.deepcopy(BLIP)
WIDE["text_config"].update(attention_probs_dropout_prob=0.1, hidden_dropout_prob=0.1)
WIDE["vision_config"].update(hidden_size=1024, intermediate_size=4096, num_attention_heads=16, image_size=224, attention_dropout=0.1)
HUNYUAN = {"model_type": "hunyuan_vl", "architectures": ["HunYuanVLForConditionalGeneration"], "dtype": "bfloat16", "image_token_id": 120120,
           "tie_word_embeddings": True,
           "text_config": {"model_type": "hunyuan_vl_text", "vocab_size": 120818, "hidden_size": 1024, "intermediate_size": 3584,
                           "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
                           "max_position_embeddings": 32768,
                           "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0,
                                               "mrope_section": [16, 16, 16, 16]},
                           "tie_word_embeddings": True},
           "vision_config": {"model_type": "hunyuan_vl_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 2,
                             "num_attention_heads": 16, "num_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 1,
                             "max_image_size": 2048, "hidden_act": "gelu", "out_hidden_size": 1024, "text_hidden_size": 1024,
                             "interpolate_mode": "bilinear"}}
# name, configuration, method, precision, rows, tokens, what else
JOBS = {
    "blip": [
        ("full", BLIP, "full", "bf16_amp", 4, 64, {}), ("wide-full", WIDE, "full", "bf16_amp", 4, 64, {}),
        ("amp", BLIP, "full", "amp_bf16", 4, 64, {}), ("ck", BLIP, "full", "bf16_amp", 8, 64, CK),
        ("ck-re", BLIP, "full", "amp_bf16", 8, 64, {**CK, "use_reentrant": True}), ("fp32", BLIP, "full", "fp32", 3, 333, {}),
        ("padded", BLIP, "full", "amp_bf16", 4, 128, {"padding": True}), ("padded-ck", BLIP, "full", "bf16", 4, 128, {"padding": True, **CK}),
        ("eager", BLIP, "full", "bf16", 2, 256, EAGER), ("long", BLIP, "full", "bf16_amp", 2, 512, {}),
        ("frozen", BLIP, "full", "bf16_amp", 8, 64, {"freeze": ["vision_model"]}),
        ("frozen-ck", BLIP, "full", "amp_bf16", 8, 64, {"freeze": ["vision_model"], **CK}),
        ("lora", BLIP, "lora", "bf16_amp", 4, 64, untasked()), ("lora-qv", BLIP, "lora", "bf16", 4, 128, untasked(["query", "value"])),
        ("qlora", BLIP, "qlora", "bf16_amp", 4, 64, untasked(["query", "value", "qkv"])),
        ("qlora-none", BLIP, "qlora", "bf16", 4, 64, {**untasked(), "kbit_prepare": False}),
        ("accum", BLIP, "full", "amp_bf16", 4, 64, {"grad_accum": 2})],
    "hunyuan-vl": [
        ("full", HUNYUAN, "full", "bf16", 2, 512, PICTURE), ("bf16-amp", HUNYUAN, "full", "bf16_amp", 2, 512, PICTURE),
        ("amp", HUNYUAN, "full", "amp_bf16", 1, 512, PICTURE), ("ck", HUNYUAN, "full", "bf16_amp", 2, 512, {**PICTURE, **CK}),
        ("ck-re", HUNYUAN, "full", "bf16", 2, 512, {**PICTURE, **CK, "use_reentrant": True}),
        ("wide", HUNYUAN, "full", "bf16", 1, 1333, {"images": 2, "image_size": [512, 768]}),
        ("text", HUNYUAN, "full", "bf16_amp", 3, 333, {}), ("text-lora-ck", HUNYUAN, "lora", "bf16", 2, 512, {**lora(["q_proj", "v_proj"]), **CK}),
        ("lora", HUNYUAN, "lora", "bf16_amp", 2, 512, {**PICTURE, **lora()}),
        ("lora-ck", HUNYUAN, "lora", "bf16", 2, 512, {**PICTURE, **lora(["q_proj", "v_proj"]), **CK}),
        ("frozen", HUNYUAN, "full", "bf16", 2, 512, {**PICTURE, "freeze": ["vision_tower"]}),
        ("eager", HUNYUAN, "full", "bf16", 1, 512, {**PICTURE, **EAGER}),
        ("fa2", HUNYUAN, "full", "bf16", 1, 512, {**PICTURE, "attention": "flash_attention_2"}),
        ("padded", HUNYUAN, "full", "bf16", 2, 512, {**PICTURE, "padding": True}),
        ("qlora", HUNYUAN, "qlora", "bf16_amp", 2, 512, {**PICTURE, **lora(["q_proj", "v_proj"]), **CK}),
        ("qlora-text", HUNYUAN, "qlora", "bf16_amp", 2, 512, lora(["q_proj", "v_proj"])), ("fp32", HUNYUAN, "full", "fp32", 1, 400, PICTURE)],
}


def main():
    for family in sys.argv[1:] or JOBS:
        for what, config, method, precision, rows, length, more in JOBS[family]:
            more = {"images": 1, **more} if family == "blip" else more          # with every text
            print(json.dumps({"id": f"{family}-{what}", "kind": "vlm", "config": config, "method": method, "precision": precision,
                              "micro_batch": rows, "seq_len": length, "grad_accum": 1, "attention": "sdpa", "padding": False,
                              "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "transformers": "5.24", **more}))


if __name__ == "__main__":
    main()
