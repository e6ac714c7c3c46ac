#!/usr/bin/env python3
"""kinds.py AMOUNT SEED > jobs.jsonl    jobs of further kinds of models, drawn at random over what else a job says

Each begins with a job of records-beyond.jsonl, a model at a time: its config, pictures and sounds stay, the rest is drawn. Jobs
that PEFT or transformers refuse, and those that make_records.py doubts, leave no record. (`sight501-…` were drawn from
the jobs of ../shared/oracle/beyond, which are among these.)
"""
import json
import os
import random
import sys

import make_records

RECORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "records-beyond.jsonl")
DRAWN = ("model", "lora", "gradient_checkpointing", "use_reentrant", "kbit_prepare", "bits", "double_quant", "attention", "grad_accum")
ONE_FORWARD = ("vision", "vision-text", "speech", "diffusion")       # no method of these keeps packed weights
LENGTHS = {"dense", "moe", "ssm", "encoder"}                         # whose length no picture or sound decides


def jobs_by_model():
    models = {}
    for line in open(RECORDS):
        job = make_records.job_of(json.loads(line))
        if job.get("kind") in (None, "diffusion") or "config" not in job:
            continue
        models.setdefault(json.dumps(job["config"], sort_keys=True), []).append(job)
    return list(models.values())


def draw(base, ident, dice):
    job = {key: value for key, value in base.items() if key not in DRAWN}
    kind = job["kind"]
    job.update(id=ident, precision=dice.choice(["fp32", "bf16", "amp_bf16", "amp_fp16", "bf16_amp"]),
               attention=dice.choice(["sdpa", "sdpa", "eager", "flash_attention_2"]),
               method=dice.choice(["full", "lora", "lora"] + ([] if kind in ONE_FORWARD else ["qlora", "qlora"])),
               optimizer=dice.choice(["adamw_torch", "adamw_torch_fused", "adamw_8bit", "paged_adamw_8bit", "adafactor", "lion_8bit",
                                      "sgd_momentum", "rmsprop"]),
               micro_batch=dice.choice([3, 6, 8] if kind in ONE_FORWARD else [1, 2, 3]), grad_accum=dice.choice([1, 1, 2]))
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["precision"] = "bf16"
    if dice.random() < 0.5:
        job.update(gradient_checkpointing="full", use_reentrant=dice.random() < 0.4)
    if "experts" in job:
        job["experts"] = dice.choice(["grouped_mm", "eager", "batched_mm"])
    if kind in LENGTHS and job.get("seq_len"):
        job.update(seq_len=dice.choice([256, 320, 384, 512]), padding=dice.random() < 0.3)
    if job["method"] != "full":
        job.pop("freeze", None)
        job["lora"] = {"r": dice.choice([4, 8, 16, 32]), "alpha": 16, "dropout": dice.choice([0.0, 0.05]), "target_modules": "all-linear"}
        if kind in ("encoder", *ONE_FORWARD):
            job["lora"]["task_type"] = None
    if job["method"] == "qlora":
        job.update(bits=dice.choice([4, 4, 4, 8]), double_quant=dice.random() < 0.5, kbit_prepare=dice.choice([True, False, "norms"]))
    return job


def main():
    amount, seed = int(sys.argv[1]), int(sys.argv[2])
    dice = random.Random(seed)
    models = jobs_by_model()
    dice.shuffle(models)
    for i in range(amount):
        base = dice.choice(models[i % len(models)])
        print(json.dumps(draw(base, f"sight{seed}-{i:03d}-{base['config'].get('model_type')}", dice)))


if __name__ == "__main__":
    main()
