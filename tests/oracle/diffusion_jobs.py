#!/usr/bin/env python3
"""diffusion_jobs.py > JOBS.jsonl: denoisers of records-beyond.jsonl with frozen encoders beside them that work in each step (recorder/diffusion.py)."""
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


def main():
    with open(os.path.join(HERE, "records-beyond.jsonl")) as file:
        known = {row["id"]: row["record"]["job"] for row in map(json.loads, file)}
    for name, (of, change) in JOBS.items():
        job = {**known[of], **change, "id": "encodes-" + name}
        if job["method"] == "full":
            job.pop("lora", None)
        print(json.dumps(job))


if __name__ == "__main__":
    main()
