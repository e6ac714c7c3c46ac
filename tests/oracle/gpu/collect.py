#!/usr/bin/env python3
"""collect.py OUT.jsonl RESULTS.jsonl.gz…: what measure.py found, as rows of tests/measured/own.jsonl.

A row: `id`, `kind` (trainer: a library's own trainer; unsloth: Unsloth's; loop: the recorder's loop; parallel: rank 0 of several GPUs, whose collectives move nothing; drawn and
drawn_parallel: the same, of jobs that draw.py drew and no record has),
`request`, and `measured`, in bytes: `allocated` and `reserved`, torch's peaks of the second step and later, with `phase` (real loops tell them apart);
`first_step`, allocated; `process`, what the driver counts for the process at the end, and `context`, the part of it that is not torch's."""
import gzip
import json
import pathlib
import sys

import draw

RECORDS = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"real_jobs": "loop", "real_trainers": "trainer", "real_multi": "parallel", "real_unsloth": "unsloth"}
DRAWN = {"loop": "drawn", "parallel": "drawn_parallel"}


def requests():
    found = {}
    for path in sorted(RECORDS.glob("records*.jsonl")):
        for line in open(path, encoding="utf-8"):
            row = json.loads(line)
            found[row["id"]] = row["request"]
    return found


def row_of(result, asked):
    job = result["job"]
    if "error" in result or "peak" not in result or job["module"] not in KINDS:
        return None
    request, kind = job.get("request") or asked.get(job["id"]), KINDS[job["module"]]
    if job["id"].startswith("card"):               # draw.py's
        if kind == "parallel" and not draw.is_whole(job["job"]):
            return None
        kind = DRAWN[kind]
    if request is None:                            # a double that was run otherwise, or a study of its own
        return None
    if "peft" in request.get("framework", {}):     # the records' PEFT is none of the card's
        request = {**request, "framework": {k: v for k, v in request["framework"].items() if k != "peft"}}
    measured = {**{k: result["peak"][k] for k in ("allocated", "reserved")}, "phase": result["peak_phase"], "first_step": result["first_step_peak"]["allocated"]}
    if isinstance(result.get("process_bytes"), int):
        measured.update(context=result["process_bytes"] - result["reserved_now"])
        if kind != "unsloth" or result["reserved_now"] == result["peak"]["reserved"]:      # it empties the cache behind training
            measured.update(process=result["process_bytes"])
    card = result["device_name"].replace("NVIDIA ", "")
    return {"id": job["id"], "kind": kind, "request": {**request, "gpu": card}, "measured": measured}


def main():
    asked, rows = requests(), {}
    for path in sys.argv[2:]:
        for line in gzip.open(path, "rt"):
            row = row_of(json.loads(line), asked)
            if row and not row["id"].startswith("cpp-"):
                rows[row["id"]] = row
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.writelines(json.dumps(rows[i], ensure_ascii=False, separators=(",", ":")) + "\n" for i in sorted(rows))
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
