#!/usr/bin/env python3
"""diffusion_jobs.py > JOBS.jsonl: denoisers of records-beyond.jsonl with frozen encoders beside them that work in each step, and those of families that came
later, a few blocks as wide as the published ones (recorder/diffusion.py)."""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
FLUX, XL, SD15, SD3, SD35 = "flux.1-dev-L2-4-lora", "sdxl-lora-1024", "sd15-lora-b4", "sd3-lora-ck", "sd3.5-lora-b2-512"
SD15_FULL, FLUX_FULL = "sd-1.5-unet-full-ck", "flux.1-dev-L2-4-full-ck"
BOTH = {"text_encoders": "frozen", "vae": "mixed_precision"}
WIDE = {"text_encoders": "frozen", "vae": "fp32"}
CK = {"gradient_checkpointing": "full"}
# A record's job, and what is different.
JOBS = {
    "sd15-both": (SD15, BOTH),
    "sd15-both-ck-b8": (SD15, {**BOTH, **CK, "micro_batch": 8}),
    "sd15-vae-768": (SD15, {"vae": "mixed_precision", "micro_batch": 1, "image_size": 768}),
    "sd15-text": (SD15, {"text_encoders": "frozen", "micro_batch": 1}),
    "sd15-full-both-ck": (SD15_FULL, BOTH),
    "sd15-full-fp32": (SD15_FULL, {**WIDE, "precision": "fp32", "gradient_checkpointing": "none", "micro_batch": 1, "optimizer": "adamw_torch"}),
    "sd15-accumulates": (SD15, {**BOTH, **CK, "micro_batch": 2, "grad_accum": 2}),
    "sd15-fp16": (SD15, {**BOTH, "precision": "fp16_amp", "micro_batch": 2}),
    "sdxl-wide": (XL, WIDE),
    "sdxl-wide-ck": (XL, {**WIDE, **CK}),
    "sdxl-wide-ck-b4": (XL, {**WIDE, **CK, "micro_batch": 4}),
    "sdxl-both-ck-b2-768": (XL, {**BOTH, **CK, "micro_batch": 2, "image_size": 768}),
    "sdxl-vae": (XL, {"vae": "fp32", "image_size": 512}),
    "sdxl-text-ck": (XL, {"text_encoders": "frozen", **CK, "image_size": 512}),
    "sdxl-full-wide-ck": (XL, {**WIDE, **CK, "method": "full", "precision": "amp_bf16", "optimizer": "adamw_8bit"}),
    "sd3-wide-ck": (SD3, WIDE),
    "sd3-vae-ck-b4": (SD3, {"vae": "fp32", "micro_batch": 4}),
    "sd35-both": (SD35, BOTH),
    "flux-vae": (FLUX, {"vae": "mixed_precision"}),
    "flux-both-ck": (FLUX, {**BOTH, **CK}),
    "flux-vae-ck-b4": (FLUX, {"vae": "mixed_precision", **CK, "micro_batch": 4}),
    "flux-full-both-ck": (FLUX_FULL, BOTH),
}

# Configurations as diffusers' converter of FLUX.2 writes them (scripts/convert_flux2_to_diffusers.py: get_flux2_transformer_config) and as
# QwenImageTransformer2DModel's defaults are, with fewer blocks.
F2 = {"patch_size": 1, "in_channels": 128, "attention_head_dim": 128, "timestep_guidance_channels": 256, "mlp_ratio": 3.0}
DEV = {**F2, "num_layers": 2, "num_single_layers": 3, "num_attention_heads": 48, "joint_attention_dim": 15360, "guidance_embeds": True}
KLEIN4 = {**F2, "num_layers": 2, "num_single_layers": 3, "num_attention_heads": 24, "joint_attention_dim": 7680, "guidance_embeds": False}
KLEIN9 = {**F2, "num_layers": 3, "num_single_layers": 4, "num_attention_heads": 32, "joint_attention_dim": 12288, "guidance_embeds": False}
QWEN = {"patch_size": 2, "in_channels": 64, "out_channels": 16, "num_layers": 3, "attention_head_dim": 128, "num_attention_heads": 24, "joint_attention_dim": 3584,
        "guidance_embeds": False}
COMMON = {"kind": "diffusion", "library": "diffusers", "image_size": 1024, "micro_batch": 1, "seq_len": 512, "grad_accum": 1, "attention": "sdpa", "padding": False,
          "gradient_checkpointing": "none", "optimizer": "adamw_torch", "max_grad_norm": 1.0, "loss": "default"}
HEADS = ["to_k", "to_q", "to_v", "to_out.0"]
# The scripts' own targets: train_dreambooth_lora_flux2.py names the layers of Flux 2's blocks of one sequence, too.
LORA = {"method": "lora", "precision": "bf16", "lora": {"r": 4, "alpha": 4, "dropout": 0.0, "task_type": None, "target_modules": HEADS}}
SINGLE = {**LORA, "singles": True}
FULL = {"method": "full", "precision": "amp_bf16"}
AMP = {"precision": "bf16_amp"}
FP16 = {"precision": "fp16_amp"}
F2_CLASS, QWEN_CLASS = "Flux2Transformer2DModel", "QwenImageTransformer2DModel"
# A family's class, its config, and what is different of the job.
LATER = {
    "flux2-klein-4b-lora": (F2_CLASS, KLEIN4, {**SINGLE, **AMP}),
    "flux2-klein-4b-lora-ck": (F2_CLASS, KLEIN4, {**SINGLE, **AMP, **CK}),
    "flux2-klein-4b-lora-b4-512": (F2_CLASS, KLEIN4, {**SINGLE, **AMP, "micro_batch": 4, "image_size": 512}),
    "flux2-klein-4b-full-ck": (F2_CLASS, KLEIN4, {**FULL, **CK, "optimizer": "adamw_8bit"}),
    "flux2-klein-4b-full": (F2_CLASS, KLEIN4, {**FULL, "image_size": 512}),
    "flux2-klein-4b-full-fp32": (F2_CLASS, KLEIN4, {**FULL, "precision": "fp32", "image_size": 256}),
    "flux2-klein-4b-vae": (F2_CLASS, KLEIN4, {**SINGLE, **AMP, "vae": "mixed_precision"}),
    "flux2-klein-4b-both-ck": (F2_CLASS, KLEIN4, {**SINGLE, **AMP, **BOTH, **CK}),
    "flux2-klein-4b-both-ck-b2": (F2_CLASS, KLEIN4, {**SINGLE, **AMP, **WIDE, **CK, "micro_batch": 2}),
    "flux2-klein-9b-lora-fp16": (F2_CLASS, KLEIN9, {**SINGLE, **FP16, "image_size": 768}),
    "flux2-klein-9b-lora-accumulates": (F2_CLASS, KLEIN9, {**LORA, **AMP, **CK, "grad_accum": 2, "micro_batch": 2}),
    "flux2-klein-9b-both": (F2_CLASS, KLEIN9, {**SINGLE, **AMP, **BOTH, "image_size": 512}),
    "flux2-dev-lora": (F2_CLASS, DEV, {**SINGLE, **AMP}),
    "flux2-dev-lora-pure": (F2_CLASS, DEV, {**SINGLE, "image_size": 512}),
    "flux2-dev-lora-ck-b2": (F2_CLASS, DEV, {**SINGLE, **AMP, **CK, "micro_batch": 2, "optimizer": "adamw_8bit"}),
    "flux2-dev-vae-ck": (F2_CLASS, DEV, {**LORA, **AMP, **CK, "vae": "mixed_precision"}),
    "flux2-dev-both-ck": (F2_CLASS, DEV, {**LORA, **AMP, **CK, **BOTH, "image_size": 768}),
    "flux2-dev-full-ck": (F2_CLASS, DEV, {**FULL, **CK, "optimizer": "adamw_8bit"}),
    "qwen-image-lora": (QWEN_CLASS, QWEN, {**LORA, **AMP}),
    "qwen-image-lora-ck": (QWEN_CLASS, QWEN, {**LORA, **AMP, **CK}),
    "qwen-image-lora-pure": (QWEN_CLASS, QWEN, {**LORA, "image_size": 512, "seq_len": 128}),
    "qwen-image-lora-b4-768": (QWEN_CLASS, QWEN, {**LORA, **AMP, "micro_batch": 4, "image_size": 768, "seq_len": 77}),
    "qwen-image-lora-ck-b2-fp16": (QWEN_CLASS, QWEN, {**LORA, **FP16, **CK, "micro_batch": 2, "grad_accum": 2}),
    "qwen-image-lora-all": (QWEN_CLASS, QWEN, {**LORA, **AMP, "lora": {"r": 16, "alpha": 16, "dropout": 0.0, "task_type": None, "target_modules": "all-linear"}, "image_size": 512}),
    "qwen-image-full": (QWEN_CLASS, QWEN, {**FULL, "image_size": 512}),
    "qwen-image-full-ck": (QWEN_CLASS, QWEN, {**FULL, **CK, "optimizer": "adamw_8bit"}),
    "qwen-image-full-fp32": (QWEN_CLASS, QWEN, {**FULL, "precision": "fp32", "image_size": 256}),
    "qwen-image-text-ck": (QWEN_CLASS, QWEN, {**LORA, **AMP, **CK, "text_encoders": "frozen"}),
    "qwen-image-vae": (QWEN_CLASS, QWEN, {**LORA, **AMP, "vae": "mixed_precision"}),
    "qwen-image-vae-ck-b2": (QWEN_CLASS, QWEN, {**LORA, **AMP, **CK, "vae": "mixed_precision", "micro_batch": 2}),
    "qwen-image-both-ck-512": (QWEN_CLASS, QWEN, {**LORA, **AMP, **CK, **WIDE, "image_size": 512}),
}


def main():
    with open(os.path.join(HERE, "records-beyond.jsonl")) as file:
        known = {row["id"]: row["record"]["job"] for row in map(json.loads, file)}
    for name, (of, change) in JOBS.items():
        job = {**known[of], **change, "id": "encodes-" + name}
        if job["method"] == "full":
            job.pop("lora", None)
        print(json.dumps(job))
    for name, (architecture, config, change) in LATER.items():
        job = {**COMMON, **change, "id": name, "architecture": architecture, "config": config}
        if job.pop("singles", False):
            names = [f"single_transformer_blocks.{i}.attn.{part}" for part in ("to_qkv_mlp_proj", "to_out") for i in range(config["num_single_layers"])]
            job["lora"] = {**job["lora"], "target_modules": [*HEADS, *names]}
        print(json.dumps(job))


if __name__ == "__main__":
    main()
