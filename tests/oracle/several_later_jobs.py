#!/usr/bin/env python3
"""several_later_jobs.py TYPE... > jobs.jsonl: one job of each strategy for several GPUs and each of these model types, made from the type's first
recorded job of full training (its class, lengths and pictures; of records-later.jsonl, else of another record of one GPU), for record.py under
transformers 5.24."""
import json
import pathlib
import sys

import make_records

HERE = pathlib.Path(__file__).parent
LORA = {"r": 16, "alpha": 32, "dropout": 0.05, "target_modules": "all-linear", "task_type": False}
CK = {"gradient_checkpointing": "full"}
STRATEGIES = {
    "ddp": ("full", "amp_bf16", {"parallelism": {"strategy": "ddp", "data": 2}}),
    "fsdp1": ("full", "fp32", {"parallelism": {"strategy": "fsdp1", "data": 4, "use_orig_params": True, "param_dtype": "bf16", "reduce_dtype": "bf16"}}),
    "fsdp2": ("full", "fp32", {"parallelism": {"strategy": "fsdp2", "data": 4, "param_dtype": "bf16", "reduce_dtype": "fp32"}, **CK}),
    "fsdp2-lora": ("lora", "bf16", {"parallelism": {"strategy": "fsdp2", "data": 2}, "lora": LORA}),
    "zero2": ("full", "bf16", {"parallelism": {"strategy": "zero2", "data": 2, "hf_auto": True}}),
    "zero3": ("full", "bf16", {"parallelism": {"strategy": "zero3", "data": 4, "hf_auto": True}}),
    "zero3-lora": ("lora", "bf16", {"parallelism": {"strategy": "zero3", "data": 2, "hf_auto": True}, "lora": LORA, **CK}),
}
FROM = ("records-later.jsonl", "records.jsonl", "records-beyond.jsonl", "records-extra.jsonl", "records-pairs.jsonl")
# What a job says of how it is trained, which the strategy says anew.
HOW = ("lora", "gradient_checkpointing", "use_reentrant", "padding", "optimizer", "grad_accum", "parallelism")


def first_jobs():
    jobs = {}
    lines = (line for name in FROM for line in (HERE / name).open(encoding="utf-8"))
    for row in map(json.loads, lines):
        kind = row["request"].get("config", {}).get("model_type")
        if kind and "parallelism" not in row["request"] and row["request"].get("method", "full") == "full" and kind not in jobs:
            jobs[kind] = make_records.job_of(row)
    return jobs


def main():
    jobs = first_jobs()
    for kind in sys.argv[1:]:
        if kind not in jobs:
            print(f"no job of full training with a configuration: {kind}", file=sys.stderr)
            continue
        base = {key: value for key, value in jobs[kind].items() if key not in HOW}
        if "evaluation" in base:       # behind the second step: the engine's evaluations come between steps that are as ever
            base["evaluation"] = {**base["evaluation"], "from_step": 2}
            base["steps"] = 4
        for name, (method, precision, more) in STRATEGIES.items():
            print(json.dumps({**base, "id": f"v524-{kind}-several-{name}", "method": method, "precision": precision, "grad_accum": 1, "padding": False,
                              "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "transformers": "5.24", **more}))


if __name__ == "__main__":
    main()
