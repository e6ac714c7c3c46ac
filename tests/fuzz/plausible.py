#!/usr/bin/env python3
"""plausible.py HANDLE CATALOG    of every model in the catalog, what less must take takes less, whatever the code behind it.

What holds of any training, without a record: a longer or larger batch takes no less, a checkpoint, an adapter, a fused kernel or one
more shard no more; weights, gradients and AdamW's two moments in 16 bits are eight bytes for each parameter and little more; the
expected figure lies within its range, and the allocator reserves what it hands out. `ctest -R plausible`.
"""
import json
import subprocess
import sys

BASE = {"schema": 1, "method": "full", "precision": "pure_bf16", "micro_batch_size": 1, "sequence_length": 512}
CHECKPOINTS = {"gradient_checkpointing": "full"}


def on_eight(**how):
    return {"precision": "auto", "parallelism": {"data": 8, **how}}


ASKED = {
    "base": {},
    "two rows": {"micro_batch_size": 2},
    "twice the tokens": {"sequence_length": 1024},
    "checkpoints": CHECKPOINTS,
    "eager": {"attention": "eager"},
    "flash_attention_2": {"attention": "flash_attention_2"},
    "LoRA with checkpoints": {"method": "lora", **CHECKPOINTS},
    "DDP": on_eight(),
    "ZeRO-1": on_eight(zero_stage=1),
    "ZeRO-2": on_eight(zero_stage=2),
    "ZeRO-3": on_eight(zero_stage=3),
    "ZeRO-3 with checkpoints": {**CHECKPOINTS, **on_eight(zero_stage=3)},
    "LoRA, ZeRO-3 with checkpoints": {"method": "lora", **CHECKPOINTS, **on_eight(zero_stage=3)},
    "FSDP 2": on_eight(fsdp="fsdp2"),
    "FSDP 2 with checkpoints": {**CHECKPOINTS, **on_eight(fsdp="fsdp2")},
    "LoRA, FSDP 2 with checkpoints": {"method": "lora", **CHECKPOINTS, **on_eight(fsdp="fsdp2")},
}
# The first takes at most so many times the second. What is above one is not of the job itself: workspaces that another kernel
# asks for, what an engine gathers (all of a model of which it finds no layers), of LoRA in small models what its layers keep, and under
# FSDP 2 its fp32, where full training is mixed (DPT's neck, which no checkpoint lets go).
NO_MORE = [
    ("base", "two rows", 1.01), ("base", "twice the tokens", 1.01), ("checkpoints", "base", 1.01),
    ("flash_attention_2", "eager", 1.01), ("LoRA with checkpoints", "checkpoints", 1.2), ("ZeRO-1", "DDP", 1.02),
    ("ZeRO-2", "ZeRO-1", 1.02), ("ZeRO-3", "ZeRO-2", 1.05), ("FSDP 2", "DDP", 1.02), ("FSDP 2 with checkpoints", "FSDP 2", 1.02),
    ("ZeRO-3 with checkpoints", "ZeRO-3", 1.02), ("LoRA, ZeRO-3 with checkpoints", "ZeRO-3 with checkpoints", 1.05),
    ("LoRA, FSDP 2 with checkpoints", "FSDP 2 with checkpoints", 1.1), ("LoRA, FSDP 2 with checkpoints", "LoRA with checkpoints", 2.5),
]
# deepspeed 0.18 runtime/zero/config.py: reduce_bucket_size of 5e8 elements in 16 bits, and its copy on the wire.
ZERO_BUCKETS = 2 * 500_000_000 * 2
# Eight, less what gets no gradient: indexers, layers that predict further tokens, and of models that see or hear the towers.
LEAST_BYTES_A_PARAMETER, LEAST_BESIDE_TOWERS = 7.8, 5.0
# Of models with more parameters than this, all else is small beside them.
FEW_ACTIVATIONS, MOST_BYTES_A_PARAMETER = 3e8, 12


def answers(handle, catalog, requests):
    run = subprocess.run([handle, catalog], input="".join(json.dumps(one) + "\n" for one in requests), capture_output=True, text=True, check=True)
    return [json.loads(line).get("estimate") for line in run.stdout.splitlines()]


def faults(told, towers):
    expected = {name: estimate["allocated"]["expected"] for name, estimate in told.items() if estimate}
    for less, more, slack in NO_MORE:
        buckets = ZERO_BUCKETS if less == "ZeRO-1" else 0
        if less in expected and more in expected and expected[less] > slack * expected[more] + buckets:
            yield f"{less} takes {expected[less] / 2**30:.2f} GiB and {more} {expected[more] / 2**30:.2f}"
    for name, estimate in told.items():
        for figure in ("allocated", "reserved", "device"):
            if estimate and not estimate[figure]["low"] <= estimate[figure]["expected"] <= estimate[figure]["high"]:
                yield f"{name}: the {figure} figure lies outside its range"
        if estimate and estimate["reserved"]["expected"] < estimate["allocated"]["expected"]:
            yield f"{name}: less is reserved than allocated"
    if "checkpoints" in expected:
        trained = told["checkpoints"]["parameters"]["trainable"]
        if expected["checkpoints"] < (LEAST_BESIDE_TOWERS if towers else LEAST_BYTES_A_PARAMETER) * trained:
            yield f"{expected['checkpoints'] / trained:.2f} bytes a parameter are too few"
        if trained > FEW_ACTIVATIONS and expected["checkpoints"] > MOST_BYTES_A_PARAMETER * trained:
            yield f"{expected['checkpoints'] / trained:.2f} bytes a parameter are too many"


def main():
    handle, catalog = sys.argv[1:3]
    rows = json.loads(open(f"{catalog}/models.json", encoding="utf-8").read())
    rows = rows if isinstance(rows, list) else rows["models"]
    # One of a family and model type: the others are the same code.
    models = {(row["family"], row["config"].get("model_type")): row for row in rows}.values()
    requests = [{**BASE, **options, "model": model["id"]} for model in models for options in ASKED.values()]
    estimates = iter(answers(handle, catalog, requests))
    failed = answered = 0
    for model in models:
        told = {name: next(estimates) for name in ASKED}
        answered += sum(estimate is not None for estimate in told.values())
        towers = any(key.endswith("_config") for key in model["config"])
        found = list(faults(told, towers))
        failed += bool(found)
        for fault in found:
            print(f"FAILED: {model['id']}: {fault}")
    print(f"{answered} answers of {len(models)} models; {len(models) - failed} passed, {failed} failed")
    return 1 if failed or answered < len(models) else 0


if __name__ == "__main__":
    sys.exit(main())
