#!/usr/bin/env python3
"""draw.py HANDLE CATALOG MODELS.json SEED AMOUNT OUT.jsonl: jobs that no record has, drawn for measure.py as ../pairs.py, ../kinds.py, ../crossed.py,
../varied.py and ../multi/draw.py draw them. What they will need is asked of the engine (HANDLE: tidemark_handle); jobs that it refuses are left out and counted."""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

import plan

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "multi")]
SHARES = {"pairs": 10, "kinds": 12, "crossed": 6, "sights": 18, "texts": 12, "loops": 18, "multi": 8, "gpus": 6, "spread": 10}             # of a hundred
SPREAD = ("multi", "gpus", "spread")
OVER = 6                                                             # as many are drawn as are kept: many need what a common installation lacks


def lines(*words):
    run = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, check=True, cwd=HERE.parent)
    return [json.loads(line) for line in run.stdout.splitlines()]


def drawn(models, seed, amount):
    """(job, request) by set."""
    import importlib.util
    import make_records as one
    spec = importlib.util.spec_from_file_location("of_several", HERE.parent / "multi" / "make_records.py")
    several = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(several)
    sets = {"pairs": lines("pairs.py", "draw", models, str(amount), seed), "kinds": lines("kinds.py", str(amount), seed),
            "crossed": lines("crossed.py", str(amount), seed), "multi": lines("multi/draw.py", models, str(amount), seed),
            **{kind: lines("varied.py", kind, str(amount), seed) for kind in ("sights", "texts", "loops", "gpus", "spread")}}
    for name, jobs in sets.items():
        for job in jobs:
            full = {**one_defaults(), **job}
            if plan.is_runnable(full) and job.get("bits") != 8 and (name not in SPREAD or is_whole(full)):
                yield name, job, (several if name in SPREAD else one).request_of(full)


def is_whole(job):
    """real_multi.py packs no weights and has torch's own AdamW; DeepSpeed's loss scale starts so high that fp16 skips the first steps."""
    return job["method"] != "qlora" and job["optimizer"].startswith("adamw_torch") and job["precision"] != "fp16"


def one_defaults():
    import record
    return record.DEFAULTS


def main():
    handle, catalog, models, seed, amount, out = sys.argv[1:7]
    models = os.path.abspath(models)
    dice = random.Random(int(seed))
    found = list(drawn(models, seed, int(amount) * OVER // 4))
    asked = "".join(json.dumps({**request, "gpu": "H200"}) + "\n" for _, _, request in found)
    answers = subprocess.run([handle, catalog], input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    kept, refused = collections.defaultdict(list), collections.Counter()
    for (name, job, request), text in zip(found, answers):
        answer = json.loads(text)
        if "estimate" not in answer:
            refused[name] += 1
            continue
        need = answer["estimate"]["reserved"]["expected"]
        if need > plan.LARGEST:
            continue
        job = {**job, "id": f"card{seed}-{name}-{job['id']}"}
        line = {"module": "real_jobs", "timeout": 60, **job}
        if name in SPREAD:
            whole = 2 * answer["estimate"]["parameters"]["total"]             # DeepSpeed takes the whole model, copies it flat, and parts it
            need = max(need, 3 * whole if job["parallelism"]["strategy"].startswith("zero") else 0)
            line = {"module": "real_multi", "timeout": 90, "id": job["id"], "job": {**one_defaults(), **job}}
        kept[name].append({**line, "expect_bytes": need, "request": request})
    jobs = []
    for name, share in SHARES.items():
        dice.shuffle(kept[name])
        jobs += kept[name][:int(amount) * share // 100]
        print(name, len(kept[name]), "could run,", refused[name], "refused")
    dice.shuffle(jobs)
    with open(out, "w") as f:
        f.writelines(json.dumps(job) + "\n" for job in jobs)


if __name__ == "__main__":
    main()
