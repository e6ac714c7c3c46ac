#!/usr/bin/env python3
"""release_jobs.py RELEASE SEED [EACH]: recorded jobs for record.py under another release of transformers, EACH (1) of every model type and five of every
way in which GPUs divide a model.

The release's `transformers` folder (and what it wants beside it) lies in the recorder's own folder, where Python looks first; README.md says how. A job says
`transformers`: the release that it is recorded under, which make_records.py writes into its request.
"""
import collections
import json
import pathlib
import random
import sys

import make_records

HERE = pathlib.Path(__file__).parent
LEFT_OUT = ("records-megatron.jsonl", "records-unsloth.jsonl", "records-quantised.jsonl", "records-later.jsonl")


def jobs():
    for path in sorted(HERE.glob("records*.jsonl")):
        for line in path.open(encoding="utf-8") if path.name not in LEFT_OUT else ():
            row = json.loads(line)
            if "job" in row["record"]:
                job = make_records.job_of(row)
                if not {"release", "remote", "library"} & job.keys():
                    yield row["request"], job


def main(release, seed, each="1"):
    dice = random.Random(int(seed))
    kinds = collections.defaultdict(list)
    for request, job in jobs():
        split = job.get("parallelism", {}).get("strategy")
        kinds[split or request.get("config", {}).get("model_type", request.get("model"))].append((job, 5 if split else int(each)))
    for _, rows in sorted(kinds.items()):
        for job, most in dice.sample(rows, min(rows[0][1], len(rows))):
            print(json.dumps({**job, "id": f"v{release.replace('.', '')}-{job['id']}", "transformers": release}))


if __name__ == "__main__":
    main(*sys.argv[1:])
