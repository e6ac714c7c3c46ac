#!/usr/bin/env python3
"""mixture_jobs.py [FAMILY...] > jobs.jsonl: mixtures of experts that came with transformers 5.24, three to five layers of each: Kimi Linear (on torch
alone), MiMo-V2-Flash, Sarvam, Hy4, Step 3.7's texts. The recorder's flash attention does not pad values as 5.24's does, so Kimi Linear's has no record;
Hy4's indexer casts its input to the dtype of a packed weight, which fails, so its QLoRA has none."""
import json
import sys

CK = {"gradient_checkpointing": "full"}
EAGER = {"attention": "eager"}
QV = ["q_proj", "v_proj"]


def lora(r=16, dropout=0.05, targets="all-linear"):
    return {"lora": {"r": r, "alpha": 2 * r, "dropout": dropout, "target_modules": targets}}


# name: method, precision, rows, length, further
ROWS = {
    "full": ("full", "bf16_amp", 2, 512, {}),
    "ckpt": ("full", "bf16_amp", 2, 512, CK),
    "reent": ("full", "bf16_amp", 2, 512, {**CK, "use_reentrant": True}),
    "lora": ("lora", "bf16_amp", 2, 384, lora()),
    "lora-ckpt": ("lora", "bf16", 2, 512, {**lora(8, 0.0, QV), **CK}),
    "qlora": ("qlora", "bf16_amp", 2, 384, lora()),
    "eager": ("full", "bf16_amp", 2, 300, EAGER),
    "fa2": ("full", "bf16_amp", 2, 512, {"attention": "flash_attention_2"}),
    "padded": ("full", "bf16_amp", 4, 384, {"padding": True}),
    "pure": ("full", "bf16", 2, 512, {}),
    "amp": ("full", "amp_bf16", 2, 256, {}),
    "odd": ("full", "bf16_amp", 3, 333, {**EAGER, "padding": True}),
    "fp32": ("full", "fp32", 1, 400, {"grad_accum": 2}),
}
COMMON = {"dtype": "bfloat16", "pad_token_id": 0}
SIZES = {"hidden_size": 512, "intermediate_size": 1024, "moe_intermediate_size": 256, "num_attention_heads": 8, "vocab_size": 8192}
TURNS = {"rope_type": "default", "rope_theta": 10000.0}
LATENT = {"kv_lora_rank": 128, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64, "num_key_value_heads": 8}
# family: configuration, what its lengths are divided by, jobs that it lacks, what all its jobs have
FAMILIES = {
    "kimi-linear": ({"model_type": "kimi_linear", "architectures": ["KimiLinearForCausalLM"], **COMMON, **SIZES, **LATENT, "num_hidden_layers": 3,
                     "layer_types": ["linear_attention", "linear_attention", "full_attention"], "num_experts": 16, "num_experts_per_token": 4,
                     "num_shared_experts": 1, "linear_head_dim": 64, "linear_num_heads": 4, "linear_conv_kernel_dim": 4, "model_max_length": 4096},
                    3, ("fa2",), {"kernels": "torch"}),
    "mimo-v2-flash": ({"model_type": "mimo_v2_flash", "architectures": ["MiMoV2FlashForCausalLM"], **COMMON, **SIZES, "num_hidden_layers": 4,
                       "num_key_value_heads": 2, "head_dim": 96, "v_head_dim": 64, "n_routed_experts": 16, "num_experts_per_tok": 4, "sliding_window": 129,
                       "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"], "max_position_embeddings": 4096,
                       "rope_parameters": {"full_attention": {**TURNS, "rope_theta": 5000000.0, "partial_rotary_factor": 0.334},
                                           "sliding_attention": {**TURNS, "partial_rotary_factor": 0.334}}}, 1, ("fa2",), EAGER),
    "sarvam-moe": ({"model_type": "sarvam_moe", "architectures": ["Glm4MoeForCausalLM"], **COMMON, **SIZES, "num_hidden_layers": 4, "num_key_value_heads": 2,
                    "head_dim": 64, "num_experts": 16, "num_experts_per_tok": 4, "num_shared_experts": 1, "max_position_embeddings": 4096}, 1, (), {}),
    "hy-v4": ({"model_type": "hy_v4", "architectures": ["HYV4ForCausalLM"], **COMMON, **SIZES, **LATENT, "num_hidden_layers": 3, "n_routed_experts": 16,
               "num_experts_per_tok": 4, "q_lora_rank": 192, "index_topk": 128, "index_head_dim": 64, "index_n_heads": 4, "hc_mult": 4,
               "max_position_embeddings": 4096}, 2, ("fa2", "qlora"), EAGER),
    "step3p7": ({"model_type": "step3p7", "architectures": ["Step3p7ForConditionalGeneration"], "dtype": "bfloat16", "image_token_id": 8000,
                 "projector_bias": False,
                 "text_config": {**SIZES, "pad_token_id": 0, "share_expert_dim": 256, "num_hidden_layers": 3, "num_key_value_heads": 2, "head_dim": 64,
                                 "n_routed_experts": 16, "num_experts_per_tok": 4, "sliding_window": 128, "num_sliding_attention_heads": 12,
                                 "layer_types": ["full_attention", "sliding_attention", "full_attention"], "mlp_layer_types": ["dense", "sparse", "sparse"],
                                 "moe_router_scaling_factor": 3.0, "max_position_embeddings": 4096,
                                 "rope_parameters": {"full_attention": {**TURNS, "partial_rotary_factor": 0.5},
                                                     "sliding_attention": {**TURNS, "partial_rotary_factor": 1.0}}},
                 "vision_config": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 112, "patch_size": 14,
                                   "mlp_ratio": 4.0}}, 2, ("fa2",), {}),
}


def main():
    for family in sys.argv[1:] or FAMILIES:
        config, parts, lacks, further = FAMILIES[family]
        for name, (method, precision, rows, length, own) in ROWS.items():
            if name in lacks:
                continue
            job = {"id": f"v524-{family}-{name}", "config": config, "method": method, "precision": precision, "micro_batch": rows, "seq_len": length // parts,
                   "attention": "sdpa", "gradient_checkpointing": "none", "optimizer": "adamw_torch", "transformers": "5.24", **own, **further}
            if family == "hy-v4" and name == "lora-ckpt":
                job["lora"] = {**job["lora"], "target_modules": ["q_a_proj", "kv_b_proj"]}
            print(json.dumps(job))


if __name__ == "__main__":
    main()
