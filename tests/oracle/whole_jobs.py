#!/usr/bin/env python3
"""whole_jobs.py AMOUNT SEED > jobs.jsonl    whole models of the catalog, as deep and as wide as published, with options that people combine

A type of model at a time, one of its models at random; what it is fed (pictures, recordings, classes with other heads) is as in a recorded job
of its type, the rest is drawn. Mixtures are taken up to 36 billion parameters, all others up to 9: the recorder's time goes with layers. Jobs that
PEFT or transformers refuse leave no record.
"""
import json
import os
import random
import sys

import varied

CATALOG = os.path.join(varied.HERE, "..", "..", "catalog", "models.json")
MOST = {False: 9e9, True: 36e9}
APART = ("vision", "vision-text", "speech", "audio", "speech-encdec")                     # no method of these keeps packed weights
FUSED = ("mamba_ssm", "fla")


def models():
    """Model type -> its configs."""
    found = {}
    for row in json.load(open(CATALOG))["models"]:
        config, size = row["config"], row["parameters"].get("computed") or 0
        mixture = any("expert" in key for part in (config, config.get("text_config", {})) for key in part)
        if row["kind"] != "diffusion" and 1e8 < size < MOST[mixture]:
            found.setdefault(config["model_type"], []).append(config)
    return found


def sections(config, base):
    """What a catalog leaves out of a config of this type: the sections of rotations in time, height and width."""
    config = {**config}
    for part, like in ((config, base), (config.get("text_config"), base.get("text_config", {}))):
        rotations = [key for key in ("rope_scaling", "rope_parameters") if "mrope_section" in str(like.get(key))]
        if part is config:
            config.update({key: like[key] for key in rotations if key not in config})
        elif part is not None:
            config["text_config"] = {**{key: like[key] for key in rotations}, **part}
    return config


def fed(config, likes, dice):
    """What a recorded job of the type says of its inputs and class: of the same class, and on fused kernels, where there is one."""
    for wanted in (lambda job: job["config"].get("architectures") == config.get("architectures") and "architecture" not in job,
                   lambda job: job.get("kernels") in FUSED):
        likes = [job for job in likes if wanted(job)] or likes
    base = dice.choice(likes) if likes else {}
    made = {key: base[key] for key in varied.KEPT if key in base and key not in ("seq_len", "freeze", "freeze_vision")}
    if made.get("kernels") == "torch-slow" and config["model_type"] in ("falcon_mamba", "mamba"):
        made["kernels"] = "mamba_ssm"                                                      # token by token, else
    if config["model_type"] == "glm":
        config = {**config, "pad_token_id": 0}                                             # the class's own lies outside of smaller vocabularies
    if config["model_type"] not in varied.PICTURES:
        made.pop("image_size", None)                                                       # the config's own
    return {**made, "config": sections(config, base.get("config", {}))}, base.get("seq_len", 512)


def lengths(job, least, dice):
    kind = job.get("kind") or "dense"
    job["micro_batch"] = dice.choice([2, 4, 7, 8, 16] if kind in APART else [4, 8, 9, 16, 32] if kind == "encoder" else [1, 1, 2, 2, 3, 4])
    job["seq_len"] = dice.choice([127, 128, 256, 384, 511, 512] if kind in ("encoder", "encdec") else [511, 512, 777, 1023, 1024, 1536, 2048, 2047])
    if kind == "vlm" or "audio" in kind or job["config"]["model_type"] in varied.PICTURES:
        job["seq_len"] = least + dice.choice([0, 1, 128, 255])
    if kind in APART:
        job["seq_len"] = least
    if "target_len" in job:
        job["target_len"] = dice.choice([job["target_len"], 63, 128])


def adapter(job, likes, dice):
    kind = job.get("kind") or "dense"
    varied.adapter(job, job, likes, dice)
    job["lora"].pop("layers_to_transform", None)
    if kind in ("dense", "vlm", "ssm", "moe") and dice.random() < 0.35:
        job["lora"]["target_modules"] = dice.choice([["q_proj", "v_proj"], ["q_proj", "k_proj", "v_proj", "o_proj"]])


def habits(job, dice):
    """What SFT of language models goes with."""
    for key, value, often in (("neftune", 5.0, 0.12), ("label_smoothing", 0.1, 0.12), ("evaluation", {"micro_batch": dice.choice([1, 2, 8])}, 0.25),
                              ("packing", True, 0.15), ("loss", dice.choice(["liger_flce", "chunked"]), 0.4)):
        if dice.random() < often:
            job[key] = value
    if job.get("packing"):
        job["padding"] = False
    if "label_smoothing" in job:
        job["loss"] = "default"                                                            # of logits, which neither makes
    if job["loss"] == "liger_flce" and dice.random() < 0.7:
        job["liger"] = ["rms_norm", "swiglu", "rope"]


def draw(config, likes, ident, dice):
    job, least = fed(config, likes, dice)
    kind = job.get("kind") or "dense"
    job.update(id=ident, loss="default", method=dice.choice(["full", "lora", "lora"] + ([] if kind in APART else ["qlora", "qlora"])),
               precision=dice.choice(["bf16_amp", "bf16_amp", "bf16", "bf16", "fp32", "amp_bf16"]), grad_accum=dice.choice([1, 1, 2, 3, 4]),
               attention=dice.choice(["sdpa", "sdpa", "flash_attention_2", "eager"]), max_grad_norm=dice.choice([1.0, 1.0, 0.3, 0.0]),
               optimizer=dice.choice(["adamw_torch_fused", "adamw_torch_fused", "adamw_8bit", "paged_adamw_8bit", "adafactor"]),
               gradient_checkpointing=dice.choice(["none", "full", "full"]), use_reentrant=dice.random() < 0.4, arch=dice.choice([80, 80, 90]))
    lengths(job, least, dice)
    job["padding"] = kind not in APART and dice.random() < 0.3
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["precision"] = "bf16"
    if job["method"] != "full":
        adapter(job, likes, dice)
    if "Causal" in str(config.get("architectures")) and "architecture" not in job:
        habits(job, dice)
    return job


def main():
    amount, seed = int(sys.argv[1]), int(sys.argv[2])
    dice = random.Random(f"whole {seed}")
    catalog, likes = models(), {**varied.by_type("texts"), **varied.by_type("sights")}
    types = sorted(name for name in catalog if name in likes or "moe" in name)
    dice.shuffle(types)
    for i in range(amount):
        name = types[i % len(types)]
        print(json.dumps(draw(dice.choice(catalog[name]), likes.get(name, []), f"whole{seed}-{i:03d}-{name}", dice)))


if __name__ == "__main__":
    main()
