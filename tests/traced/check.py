#!/usr/bin/env python3
"""check.py HANDLE CATALOG: traces of models that are also written by hand must get the answer of the hand-written program.

Each line of traces.jsonl holds a config.json (of four layers) and what `tidemark trace` recorded of that model, with torch
and transformers 5.12.1. Both are asked the same questions. The programs written by hand are held to records of the real code.
"""
import json
import pathlib
import subprocess
import sys

# Of the peak: what may lie between the two. Small tensors of integers differ, and with them how the allocator fills segments.
BOUND = 0.004
LORA = {"adapter": {"r": 16, "target_modules": "all-linear"}}
JOBS = [
    {"precision": "amp_bf16"}, {"precision": "pure_bf16"}, {"precision": "fp32"}, {"precision": "bf16_amp"},
    {"precision": "amp_bf16", "gradient_checkpointing": "full"},
    {"precision": "pure_bf16", "gradient_checkpointing": "full", "use_reentrant": True},
    {"precision": "bf16_amp", "gradient_checkpointing": "full", "method": "lora", **LORA},
    {"precision": "bf16_amp", "method": "qlora", **LORA},
]
SIZES = [(1, 512), (3, 384)]

rows = [json.loads(line) for line in open(pathlib.Path(__file__).parent / "traces.jsonl", encoding="utf-8")]
asked = [(row["id"], {"micro_batch_size": batch, "sequence_length": length, **job}, row[which])
         for row in rows for job in JOBS for batch, length in SIZES for which in ("config", "trace")]
lines = "".join(json.dumps({"schema": 1, "optimizer": "adamw_torch_fused", "framework": {"version": "5.12"}, **job, "config": config}) + "\n" for _, job, config in asked)
replies = subprocess.run(sys.argv[1:3], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
answers = [json.loads(reply) for reply in replies]

failed, equal, compared, off = 0, 0, 0, {}
for (name, job, _), hand, traced in zip(asked[::2], answers[::2], answers[1::2], strict=True):
    if "estimate" not in hand:
        continue  # transformers refuses the job
    if "estimate" not in traced:
        failed += 1
        print(f"{name} {job}: refused as a trace: {[i['message'] for i in traced['issues'] if i['severity'] == 'error']}")
        continue
    peaks = [answer["estimate"]["allocated"]["expected"] for answer in (hand, traced)]
    compared += 1
    equal += peaks[0] == peaks[1]
    off.setdefault(name, []).append(peaks[1] / peaks[0] - 1)
    if abs(off[name][-1]) > BOUND:
        failed += 1
        print(f"{name} {job}: {peaks[0]} B by hand, {peaks[1]} B as a trace")
worst = max(abs(value) for values in off.values() for value in values)
print(f"{len(off)} models, {compared} jobs: {equal} to the byte, the farthest {100 * worst:.3f} % apart, {failed} failed")
sys.exit(1 if failed or len(off) < 30 else 0)
