#!/usr/bin/env python3
"""sd_script_jobs.py > JOBS.jsonl: LoRA and full fine-tuning by kohya-ss/sd-scripts (recorder/sd_scripts.py), of Stable Diffusion 1.5 and SDXL."""
import json

DEFAULTS = {"library": "sd_scripts", "kind": "diffusion", "method": "lora", "precision": "bf16_amp", "micro_batch": 1, "seq_len": 77, "grad_accum": 1, "attention": "sdpa",
            "gradient_checkpointing": "none", "optimizer": "adamw_torch", "max_grad_norm": 1.0, "lora": {"r": 16, "alpha": 16}}
CK = {"gradient_checkpointing": "full"}
SMALL = {"model": "stable-diffusion-v1-5/stable-diffusion-v1-5", "architecture": "sd15", "image_size": 512}
LARGE = {"model": "stabilityai/stable-diffusion-xl-base-1.0", "architecture": "sdxl", "image_size": 1024}
FULL = {"method": "full", "precision": "amp_bf16"}
JOBS = {
    "sd15": SMALL,
    "sd15-b4-ck": {**SMALL, **CK, "micro_batch": 4, "optimizer": "adamw_8bit"},
    "sd15-fp16-768": {**SMALL, "precision": "fp16_amp", "image_size": 768, "lora": {"r": 32, "alpha": 16}},
    "sd15-fp32-ck": {**SMALL, **CK, "precision": "fp32", "micro_batch": 2},
    "sd15-accumulates": {**SMALL, **CK, "micro_batch": 2, "grad_accum": 2},
    "sd15-full-ck": {**SMALL, **CK, **FULL, "micro_batch": 2, "optimizer": "adamw_8bit"},
    "sdxl": LARGE,
    "sdxl-ck": {**LARGE, **CK},
    "sdxl-b4-ck-8bit": {**LARGE, **CK, "micro_batch": 4, "optimizer": "adamw_8bit", "lora": {"r": 32, "alpha": 16}},
    "sdxl-fp16-768": {**LARGE, "precision": "fp16_amp", "image_size": 768, "optimizer": "adamw_8bit"},
    "sdxl-b2-r128-ck": {**LARGE, **CK, "micro_batch": 2, "lora": {"r": 128, "alpha": 1}, "optimizer": "lion_8bit"},
    "sdxl-long-512": {**LARGE, "image_size": 512, "seq_len": 225},
    "sdxl-b8-512-ck": {**LARGE, **CK, "image_size": 512, "micro_batch": 8, "optimizer": "adafactor"},
    "sdxl-fp32": {**LARGE, "precision": "fp32", "image_size": 512},
    "sdxl-bf16-adapter-ck": {**LARGE, **CK, "lora": {"r": 16, "alpha": 16, "adapter_dtype": "bf16"}},
    "sdxl-full-ck": {**LARGE, **CK, **FULL, "optimizer": "adafactor"},
    "sdxl-full-bf16-ck": {**LARGE, **CK, **FULL, "precision": "bf16", "optimizer": "adamw_8bit", "micro_batch": 2},
}


def main():
    for name, job in JOBS.items():
        job = {**DEFAULTS, **job, "id": "kohya-" + name}
        if job["method"] == "full":
            job.pop("lora")
        print(json.dumps(job))


if __name__ == "__main__":
    main()
