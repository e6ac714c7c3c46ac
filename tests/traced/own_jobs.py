#!/usr/bin/env python3
"""own_jobs.py > jobs.jsonl                               what the recorder runs of own.py's models (recorder/own_models.py)
own_jobs.py --rows RAW.jsonl FOLDER > own.jsonl          its answers beside the requests, and the traces of FOLDER/own-NAME.json"""
import json
import sys

PRECISIONS = ({"precision": "fp32"}, {"precision": "bf16"}, {"precision": "amp_bf16"}, {"precision": "bf16_amp"},
              {"precision": "amp_bf16", "gradient_checkpointing": "full"}, {"precision": "bf16", "gradient_checkpointing": "full"})
STACKS = ("recommender", "value-network")        # have none
NAMES = {"bf16": "pure_bf16"}


def jobs():
    from own import MODELS, TIMM
    for name in MODELS:
        for i, how in enumerate(PRECISIONS[:4] if name in (*STACKS, *TIMM) else PRECISIONS):
            batch, length = ((8, 128), (4, 256))[i % 2]
            yield {"id": f"own-{name}-{i}", "own": name, "method": "full", "micro_batch": batch, "seq_len": length, **how}


def row(record):
    """The request but for the config, which is the trace; peaks by phase of the second step."""
    job = record["job"]
    request = {"method": "full", "precision": NAMES.get(job["precision"], job["precision"]), "micro_batch_size": job["micro_batch"],
               "sequence_length": job["seq_len"], "gradient_checkpointing": job["gradient_checkpointing"], "optimizer": job["optimizer"],
               "gpu": "A100-80GB"}
    return {"id": job["id"], "model": job["own"], "request": request, "steps": {k: v["allocated"] for k, v in record["steps"]["2"].items()},
            "parameters": record["parameters"]["total"]}


if __name__ == "__main__":
    if len(sys.argv) < 3:
        for each in jobs():
            print(json.dumps(each))
        sys.exit()
    records = [json.loads(line) for line in open(sys.argv[2])]
    for record in records:
        if "error" in record:
            sys.exit(f"{record['job']['id']}: {record['error']}")
    for name in dict.fromkeys(record["job"]["own"] for record in records):
        with open(f"{sys.argv[3]}/own-{name}.json") as f:
            print(json.dumps({"model": name, "trace": json.load(f)}, separators=(",", ":")))
    for record in records:
        print(json.dumps(row(record), separators=(",", ":")))
