#!/usr/bin/env python3
"""check_own.py HANDLE CATALOG: models that no family describes must get, by their trace, the peaks that the recorder saw.

own.jsonl holds what `tidemark trace` wrote of the models of own.py, and records of the same code (own_jobs.py): the peaks of a step by phase."""
import json
import pathlib
import subprocess
import sys

BOUND = 0.02                            # of each phase's peak, but for what the allocator does not split off
UNSPLIT = 1 << 20
WORKSPACES = 2 * 8519680                # cuBLAS', in no record (tests/oracle/README.md)
PHASES = {"forward": ("forward", "loss"), "backward": ("backward",), "optimizer": ("optimizer",)}

rows = [json.loads(line) for line in open(pathlib.Path(__file__).parent / "own.jsonl", encoding="utf-8")]
traces = {row["model"]: row["trace"] for row in rows if "trace" in row}
records = [row for row in rows if "steps" in row]
asked = "".join(json.dumps({"schema": 1, "config": traces[row["model"]], **row["request"]}) + "\n" for row in records)
replies = subprocess.run(sys.argv[1:3], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()

failed, off = 0, []
for row, reply in zip(records, map(json.loads, replies), strict=True):
    if "estimate" not in reply:
        failed += 1
        print(f"{row['id']}: refused: {[i['message'] for i in reply['issues'] if i['severity'] == 'error']}")
        continue
    estimate = reply["estimate"]
    if estimate["parameters"]["total"] != row["parameters"]:
        failed += 1
        print(f"{row['id']}: {estimate['parameters']['total']} parameters, recorded are {row['parameters']}")
    for phase, ours in PHASES.items():
        peak, truth = max(estimate["phase_peaks"][name] for name in ours) - WORKSPACES, row["steps"][phase]
        off.append(peak / truth - 1)
        if abs(peak - truth) > max(BOUND * truth, UNSPLIT):
            failed += 1
            print(f"{row['id']} {phase}: {peak} B, recorded are {truth}")
near = sorted(map(abs, off))
print(f"{len(traces)} models, {len(records)} records: median {100 * near[len(near) // 2]:.4f} %, worst {100 * near[-1]:.3f} % of a phase's peak, {failed} failed")
sys.exit(1 if failed or len(traces) < 10 else 0)
