#!/usr/bin/env python3
"""crossed.py AMOUNT SEED > jobs.jsonl    what one set of records is about on the models of the others, drawn at random

Adapters beside LoRA, optimizers of packages, packed bases, preferences and evaluation, activations in host memory: each was
recorded on a few models. Here each meets kinds of models, checkpoints, precisions, attention and one another. Jobs that PEFT or transformers
refuse leave no record.
"""
import json
import os
import random
import sys

import make_records

HERE = os.path.dirname(os.path.abspath(__file__))
# What makes a job one of its set, and how often the set is drawn.
SETS = {"adapters": (("method", "lora", "kbit_prepare", "double_quant", "bits"), 5),
        "optimizers": (("optimizer", "optim_args", "optim_target_modules"), 4),
        "quantised": (("method", "packed", "kbit_prepare", "lora", "release"), 2),
        "loops": (("task", "reference", "evaluation", "prompt_len", "completion_len", "rollout", "steps_per_generation", "num_iterations"), 3),
        "offloaded": (("activation_offloading",), 2)}
MODEL = ("config", "config_source", "kind", "experts", "kernels", "architecture", "images", "image_size", "audio_seconds", "target_len", "seq_len")
KINDS = (None, "dense", "moe", "ssm", "encoder", "encdec")     # what sees or hears has towers that few of these loops know
LINEAR = ("lora", "oft", "boft", "loha", "lokr", "vera", "adalora")


def jobs_of(name):
    return [make_records.job_of(json.loads(line)) for line in open(os.path.join(HERE, f"{name}.jsonl"))]


def models(names):
    found = {}
    for job in (job for name in names for job in jobs_of(name)):
        if "config" in job and job.get("kind") in KINDS and not job.get("task") and job["config"].get("architectures", [""])[0]:
            found.setdefault(job["config"].get("model_type"), []).append(job)
    return found


def adapter_for(lo):
    """The adapter on another model: by names that all have."""
    lo = dict(lo)
    if lo.get("kind", "lora") in LINEAR:
        lo["target_modules"] = "all-linear"
    elif lo["kind"] == "ia3":
        lo.pop("target_modules", None), lo.pop("feedforward_modules", None)     # PEFT's own for the model type
    return lo


def draw(special, words, base, ident, dice):
    job = {key: base[key] for key in MODEL if key in base}
    job.update(id=ident, method=dice.choice(["full", "lora", "qlora"]), precision=dice.choice(["fp32", "bf16", "bf16_amp", "amp_bf16", "amp_fp16"]),
               attention=dice.choice(["sdpa", "sdpa", "eager", "flash_attention_2"]), micro_batch=dice.choice([1, 2, 3]),
               grad_accum=dice.choice([1, 1, 2]), padding=dice.random() < 0.3, loss="default", max_grad_norm=dice.choice([1.0, 1.0, 0.0]),
               optimizer=dice.choice(["adamw_torch_fused", "adamw_torch", "adamw_8bit", "paged_adamw_8bit", "lion_8bit", "adafactor"]),
               gradient_checkpointing=dice.choice(["none", "full"]), use_reentrant=dice.random() < 0.4, arch=dice.choice([80, 80, 90]))
    job.update({key: special[key] for key in words if key in special})
    if "prompt_len" in job:
        job["seq_len"] = special["seq_len"]                     # a prompt and its answer
    if job["method"] == "qlora" and job.get("reference") == "copy":
        job.pop("reference")                                    # the recorder's copy is not packed; TRL packs it like the policy
    if "rollout" in job:
        job["micro_batch"] = 2                                  # a prompt's answers are at least two
    if job["method"] != "full":
        given = special.get("lora") if "lora" in words else None
        job["lora"] = adapter_for(given) if given else {"r": dice.choice([8, 16]), "target_modules": "all-linear"}
        if job["precision"] not in ("bf16", "bf16_amp"):
            job["lora"].pop("adapter_dtype", None)              # said of a base in 16 bits
        if job.get("kind") == "encoder":
            job["lora"]["task_type"] = None
    if job["method"] == "qlora" and "packed" not in job:
        job.setdefault("kbit_prepare", dice.choice([True, False]))
        job.setdefault("bits", dice.choice([4, 4, 8]))
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["precision"] = "bf16"
    return job


def main():
    amount, seed = int(sys.argv[1]), int(sys.argv[2])
    dice = random.Random(seed)
    sets = {name: jobs_of(f"records-{name}") for name in SETS}
    all_models = models(["records", "records-beyond", "records-extra", "records-pairs"])
    types = sorted(all_models)
    dice.shuffle(types)
    for i in range(amount):
        name = dice.choices(list(SETS), [weight for _, weight in SETS.values()])[0]
        base = dice.choice(all_models[types[i % len(types)]])
        special = dice.choice(sets[name])
        head = base.get("architecture", base["config"]["architectures"][0])
        if special.get("task") and ("ForCausalLM" not in head or special["task"] == "reward"):
            special, name = dice.choice(sets["offloaded"]), "offloaded"        # preferences are of language models
        print(json.dumps(draw(special, SETS[name][0], base, f"crossed{seed}-{i:03d}-{name}-{types[i % len(types)]}", dice)))


if __name__ == "__main__":
    main()
