#!/usr/bin/env python3
"""Parameter counts of the real thing against the engine's: check_counts.py PATH/tidemark_handle CATALOG FILE.jsonl...

Each line of a file is {id, request, total, trainable} or without the last, counted by transformers 5.12 and PEFT 0.18 on the meta device (ids that
begin with "published": totals of the checkpoints' own files, as the catalog cites them; of mixtures of experts with `active`), or
{id, request, refused_by_peft} where PEFT raises: then the engine must refuse it too.
"""

import json
import subprocess
import sys


def fault(case, answer):
    """What is wrong with the answer to one case, or None."""
    errors = [issue["message"] for issue in answer["issues"] if issue["severity"] == "error"]
    if "refused_by_peft" in case:
        return None if errors else f"answered, but PEFT raises {case['refused_by_peft']}"
    if errors:
        return f"refused: {errors[0]}"
    counted = answer["estimate"]["parameters"]
    wrong = [f"{key} {counted[key]} for {case[key]}" for key in ("total", "trainable", "active") if counted[key] != case.get(key, counted[key])]
    return ", ".join(wrong) or None


def main():
    engine, catalog, *files = sys.argv[1:]
    cases = [json.loads(line) for name in files for line in open(name, encoding="utf-8")]
    requests = "".join(json.dumps(case["request"]) + "\n" for case in cases)
    run = subprocess.run([engine, catalog], input=requests, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    if len(answers) != len(cases):
        sys.exit(f"{len(answers)} answers to {len(cases)} requests")
    faults = [(case["id"], fault(case, answer)) for case, answer in zip(cases, answers)]
    faults = [(name, what) for name, what in faults if what]
    for name, what in faults:
        print(f"{name}: {what}")
    print(f"{len(cases) - len(faults)} of {len(cases)} counts are right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
