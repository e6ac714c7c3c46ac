#!/usr/bin/env python3
"""plan.py OUT.jsonl [SEED]: jobs for measure.py, drawn from the records: what the libraries of a common installation run, up to 45 GiB, families in turn."""
import collections
import json
import pathlib
import random
import sys

RECORDS = pathlib.Path(__file__).resolve().parent.parent
AMOUNTS = {"records": 50, "records-extra": 60, "records-pairs": 110, "records-beyond": 250, "records-adapters": 50, "records-optimizers": 22,
           "records-loops": 40}
OPTIMIZERS = {"adamw_torch", "adamw_torch_fused", "sgd", "sgd_momentum", "adafactor", "adagrad", "rmsprop", "adamw_8bit", "adamw_bnb_8bit",
              "paged_adamw_8bit", "adamw_32bit", "adamw_bnb_32bit", "paged_adamw_32bit", "lion_8bit", "lion_32bit", "paged_lion_8bit", "paged_lion_32bit",
              "ademamix", "ademamix_8bit", "paged_ademamix_32bit", "paged_ademamix_8bit", "rmsprop_bnb", "rmsprop_bnb_32bit", "rmsprop_bnb_8bit"}
# What needs another release, packages that compile, a recorder's stand-in or an older card.
OTHERS = {"release", "kernels", "remote", "packed", "float8", "sdpa_backend", "unsloth", "lora_kernels", "axolotl", "activation_offloading", "evaluation",
          "rollout", "teacher", "own", "lisa", "expert_imbalance", "steps"}
LARGEST = 45 << 30


def is_runnable(job):
    if job.get("beside") and "lora" not in job:        # real_jobs trains all of it
        return False
    return (job["optimizer"] in OPTIMIZERS and not OTHERS & set(job) and job.get("attention") != "flash_attention_2" and job.get("arch") in (None, 80, 90)
            and job.get("library") != "sd_scripts" and job.get("task") not in ("grpo", "rloo", "gkd") and job["gradient_checkpointing"] in ("none", "full"))


def kind_of(name, job):
    if name == "records-beyond":
        return (job.get("config") or {}).get("model_type") or job.get("model")
    if name == "records-adapters":
        return job["lora"].get("kind"), job["lora"].get("use_dora")
    return job["optimizer"], job["precision"], job.get("task")


def drawn(name, amount, chance):
    kinds = collections.OrderedDict()
    rows = [json.loads(line) for line in open(RECORDS / f"{name}.jsonl", encoding="utf-8")]
    chance.shuffle(rows)
    for row in rows:
        job = {**({"config": row["request"]["config"]} if "config" in row["request"] else {}), **row["record"]["job"]}
        if is_runnable(job) and row["record"]["peak"]["allocated"] < LARGEST:
            job.update(module="real_jobs", id=row["id"], oracle=row["record"]["peak"]["allocated"], timeout=45, expect_bytes=row["record"]["peak"]["reserved"])
            kinds.setdefault(kind_of(name, job), []).append(job)
    out = []
    while len(out) < amount and any(kinds.values()):
        out += [jobs.pop() for jobs in kinds.values() if jobs]
    return out[:amount]


def main():
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 26)
    jobs = [job for name, amount in AMOUNTS.items() for job in drawn(name, amount, chance)]
    chance.shuffle(jobs)
    with open(sys.argv[1], "w") as f:
        f.writelines(json.dumps(job) + "\n" for job in jobs)


if __name__ == "__main__":
    main()
