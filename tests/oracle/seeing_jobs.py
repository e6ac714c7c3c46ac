#!/usr/bin/env python3
"""seeing_jobs.py [t5gemma2 | …] > jobs.jsonl: models of pictures and text, and of text alone, that came later, run by transformers 5.24, a few layers
of the published widths."""
import json
import sys

CK = {"gradient_checkpointing": "full"}
EAGER = {"attention": "eager"}
FLASH = {"attention": "flash_attention_2"}
PADDED = {"padding": True}
PICTURE = {"images": 1}


def lora(targets="all-linear", **more):
    return {"lora": {"r": 16, "alpha": 32, "target_modules": targets, "dropout": 0.05, **more}}


QV = ["q_proj", "v_proj"]
T5G_TEXT = {"model_type": "t5gemma2_text", "vocab_size": 262144, "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
            "max_position_embeddings": 32768, "sliding_window": 512, "query_pre_attn_scalar": 256,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]}
SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
          "num_hidden_layers": 2, "patch_size": 14, "vision_use_head": False}
T5G = {"model_type": "t5gemma2", "architectures": ["T5Gemma2ForConditionalGeneration"], "tie_word_embeddings": True,
       "encoder": {"model_type": "t5gemma2_encoder", "text_config": T5G_TEXT, "vision_config": SIGLIP, "mm_tokens_per_image": 256},
       "decoder": {**T5G_TEXT, "model_type": "t5gemma2_decoder"}}
WIDE = {"hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 8, "num_key_value_heads": 4}
T5G_WIDE = {**T5G, "encoder": {**T5G["encoder"], "text_config": {**T5G_TEXT, **WIDE}}, "decoder": {**T5G["decoder"], **WIDE}}


DIFF = {"model_type": "diffllama", "architectures": ["DiffLlamaForCausalLM"], "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 2048, "tie_word_embeddings": False}
JET = {"model_type": "jetmoe", "architectures": ["JetMoeForCausalLM"], "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
       "num_hidden_layers": 2, "num_key_value_heads": 16, "kv_channels": 128, "num_local_experts": 8, "num_experts_per_tok": 2,
       "max_position_embeddings": 4096, "tie_word_embeddings": True}
DOGE = {"model_type": "doge", "architectures": ["DogeForCausalLM"], "vocab_size": 32768, "hidden_size": 1024, "intermediate_size": 2048,
        "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 2048, "tie_word_embeddings": True}


def texts(config, prefix, *more):
    """What is asked of every decoder."""
    return [("full", config, "full", "bf16", 2, 512, {}), ("amp", config, "full", "amp_bf16", 2, 333, {}),
            ("lora", config, "lora", "bf16_amp", 2, 512, lora()), ("fp32", config, "full", "fp32", 1, 400, {}),
            ("eager", config, "full", "bf16", 2, 512, EAGER), ("padded", config, "full", "bf16_amp", 2, 512, PADDED),
            ("cls", {**head(config, f"{prefix}ForSequenceClassification"), "pad_token_id": 0}, "full", "bf16", 2, 512, {}), *more]


def decoder(config, prefix, *more):
    return texts(config, prefix, ("ck", config, "full", "bf16_amp", 2, 1024, CK),
                 ("qlora", config, "qlora", "bf16_amp", 2, 512, {**lora(["q_proj", "v_proj"]), **CK}), *more)


def head(config, name):
    return {**config, "architectures": [name], "num_labels": 3}


JOBS = {
    "t5gemma2": [
        ("text", T5G, "full", "bf16", 2, 512, {"target_len": 128}), ("text-amp", T5G, "full", "amp_bf16", 2, 333, {"target_len": 100}),
        ("text-bf16-amp", T5G_WIDE, "full", "bf16_amp", 1, 512, {"target_len": 128}),
        ("text-ck", T5G, "full", "bf16_amp", 4, 1024, {**CK, "target_len": 256}), ("text-fp32", T5G, "full", "fp32", 1, 700, {"target_len": 64}),
        ("text-eager", T5G, "full", "bf16", 2, 512, {**EAGER, "target_len": 128}),
        ("text-padded", T5G, "full", "bf16", 2, 640, {**PADDED, "target_len": 128}),
        ("text-lora", T5G_WIDE, "lora", "bf16", 2, 512, {**lora(QV, task_type=False), "target_len": 128}),
        ("text-qlora", T5G_WIDE, "qlora", "bf16_amp", 2, 512, {**lora(QV, task_type=False), **CK, "target_len": 128}),
        ("picture", T5G, "full", "bf16", 2, 512, {**PICTURE, "target_len": 128}),
        ("picture-ck", T5G_WIDE, "full", "bf16_amp", 2, 600, {**PICTURE, **CK, "target_len": 128}),
        ("pictures-fp32", T5G, "full", "fp32", 1, 777, {"images": 2, "target_len": 100}),
        ("picture-frozen", T5G, "full", "bf16", 2, 512, {**PICTURE, "freeze": ["vision_tower"], "target_len": 128}),
        ("picture-lora", T5G_WIDE, "lora", "bf16", 2, 512, {**PICTURE, **lora(QV, task_type=False), **CK, "target_len": 128}),
        ("picture-qlora", T5G_WIDE, "qlora", "bf16_amp", 1, 512, {**PICTURE, **lora(QV, task_type=False), "target_len": 128}),
        ("text-long", T5G, "full", "bf16", 1, 2048, {**CK, "target_len": 777}),
    ],
    "diffllama": decoder(DIFF, "DiffLlama", ("fa2", DIFF, "full", "bf16", 2, 512, FLASH), ("fa2-padded", DIFF, "full", "bf16", 2, 512, {**FLASH, **PADDED}),
                         ("token", head(DIFF, "DiffLlamaForTokenClassification"), "full", "bf16", 2, 512, {}),
                         ("span", {**DIFF, "architectures": ["DiffLlamaForQuestionAnswering"]}, "full", "amp_bf16", 2, 512, {})),
    "jetmoe": texts(JET, "JetMoe", ("fa2", JET, "full", "bf16", 2, 512, FLASH),
                    ("qlora", JET, "qlora", "bf16", 2, 512, lora(["kv_proj"]))),
    "doge": decoder(DOGE, "Doge"),
}


def main():
    for family in sys.argv[1:] or JOBS:
        for what, config, method, precision, rows, length, more in JOBS[family]:
            sees = "images" in more or "vision_config" in config
            print(json.dumps({"id": f"v524-{family.replace('_', '-')}-{what}", "kind": "vlm" if sees else "text", "config": config, "method": method,
                              "precision": precision, "micro_batch": rows, "seq_len": length, "grad_accum": 1, "attention": "sdpa", "padding": False,
                              "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "transformers": "5.24", **more}))


if __name__ == "__main__":
    main()
