#!/usr/bin/env python3
"""trace.py JOB [options]: one job, every allocation and free of one step, and who is alive at each phase's peak.

JOB is a JSON object, or FILE:ID - a .jsonl file of jobs or of records (the part after the last colon is the id).

  --layers N        the same model with N layers      --step N     the step shown (default 2)
  --set KEY=VALUE   override a job field (VALUE is JSON if it parses: micro_batch=1, attention=eager), repeatable
  --out FILE        write there instead of standard output     --quiet   no event list, only the peaks
  --full            list weights, gradients and optimizer states one group per line, too

Events, one per line, tab-separated:
  index  phase  +|-  bytes  total  op  shape  dtype  module  kind
`total` is the sum of live storages after the event, each rounded up to 512 B.  `-` lines repeat what is freed.
`kind` is what the storage turned out to be in the end (weights, gradients, optimizer_state, input, weight_cast,
workspace, recomputed; - = any other).  With gradient accumulation phases carry the micro-step: forward.2.
"""
import argparse
import json
import re
import sys
from collections import Counter

import record
from trace_config import shrink

PERSISTENT = ("weights", "gradients", "optimizer_state")


def find_job(text):
    if text.lstrip().startswith("{"):
        return json.loads(text)
    path, _, wanted = text.rpartition(":")
    for line in open(path):
        row = json.loads(line)
        row = row.get("record", row)
        row = row.get("job", row)
        if row.get("id") == wanted:
            return row
    sys.exit(f"no job {wanted} in {path}")


def phases(tr, step):
    """[(name, first event, end)] of one step."""
    out, count = [], Counter()
    for (start, name, at), (end, _, _) in zip(tr.marks, tr.marks[1:]):
        if at == step:
            count[name] += 1
            out.append((name, count[name], start, end))
    many = max(count.values()) > 1
    return [(f"{n}.{k}" if many and n in ("forward", "backward") else n, a, b) for n, k, a, b in out]


def shape(rec):
    return "[" + ",".join(map(str, rec.shape)) + "]"


def dump(tr, step, quiet, full, out):
    from tracker import rounded
    total, live = 0, {}
    first = min(a for _, a, _ in phases(tr, step))

    def play(i):
        nonlocal total
        rec = tr.recs[abs(tr.events[i]) - 1]
        if tr.events[i] > 0:
            live[rec.id] = rec
            total += rounded(rec.nbytes)
        else:
            live.pop(rec.id)
            total -= rounded(rec.nbytes)
        return rec

    for i in range(first):
        play(i)
    print(f"# step {step} starts with {total} bytes alive", file=out)
    if not quiet:
        print("# index\tphase\t+/-\tbytes\ttotal\top\tshape\tdtype\tmodule\tkind", file=out)
    peaks = []
    for name, a, b in phases(tr, step):
        best, at, who = total, None, dict(live)
        for i in range(a, b):
            rec = play(i)
            born = tr.events[i] > 0
            if total > best:
                best, at, who = total, i, dict(live)
            if not quiet:
                print(i, name, "+" if born else "-", rec.nbytes, total, rec.op, shape(rec), rec.dtype, rec.mod or "-", rec.kind or "-",
                      sep="\t", file=out)
        peaks.append((name, best, at, who, total))
    for name, best, at, who, end in peaks:
        print(f"\n# == {name}: peak {best} bytes ({best / 2**30:.4f} GiB) "
              + (f"at event {at}" if at is not None else "at its start") + f", {end} alive at its end", file=out)
        groups, bytes_of = Counter(), {}
        for rec in who.values():
            key = ("(all)", "", "", "", rec.kind) if rec.kind in PERSISTENT and not full else \
                (re.sub(r"\.\d+(?=\.|$)", ".*", rec.mod) or "-", rec.op, shape(rec), rec.dtype, rec.kind or "-")
            groups[key] += 1
            bytes_of[key] = bytes_of.get(key, 0) + rounded(rec.nbytes)
        print("# bytes\tcount\tmodule\top\tshape\tdtype\tkind", file=out)
        for key, n in sorted(groups.items(), key=lambda t: -bytes_of[t[0]]):
            print(bytes_of[key], n, *key, sep="\t", file=out)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("job")
    ap.add_argument("--models", default=record.os.path.join(record.HERE, "models.json"))
    ap.add_argument("--layers", type=int)
    ap.add_argument("--step", type=int, default=2)
    ap.add_argument("--set", action="append", default=[])
    ap.add_argument("--out")
    ap.add_argument("--quiet", action="store_true")
    ap.add_argument("--full", action="store_true")
    a = ap.parse_args()
    job = {**record.DEFAULTS, "id": "trace", **find_job(a.job)}
    for item in a.set:
        key, _, value = item.partition("=")
        try:
            job[key] = json.loads(value)
        except ValueError:
            job[key] = value
    record.prepare("fake")
    record.set_masks(job["padding"])
    import jobs
    registry = jobs.load_registry(a.models)
    if a.layers:
        job["config"] = shrink(job.get("config") or registry[job["model"]]["config"], a.layers)
    kept = []
    plain = record.analyse
    record.analyse = lambda tr, *rest: (kept.append(tr), plain(tr, *rest))[1]
    rec = record.run_fake(job, registry, a.step, 0)
    out = open(a.out, "w") if a.out else sys.stdout
    print("# job", json.dumps(job), file=out)
    print("# parameters", json.dumps(rec["parameters"]), "attention", rec["sdpa_kernel"], file=out)
    dump(kept[0], a.step, a.quiet, a.full, out)


if __name__ == "__main__":
    main()
