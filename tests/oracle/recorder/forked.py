#!/usr/bin/env python3
"""forked.py JOBS.jsonl OUT.jsonl MODELS.json [I/N]: as record.py, each job in a child process.

The shims use internal headers, and a process that has run some jobs dies in malloc or hangs now and then.  Here that costs one
job one of its three tries, and torch and transformers are imported once.
"""
import json
import os
import signal
import sys
import time

import record

STALLED = 40        # seconds without processor time, after which a child hangs


def done(path):
    return {json.loads(line)["job"]["id"] for line in open(path)} if os.path.exists(path) else set()


def run(job, out, registry, versions):
    import numpy
    full = {**record.DEFAULTS, **job}
    record.set_masks(full["padding"], full.get("packing"))
    numpy.random.seed(0)
    common = {"job": full, "versions": versions}
    if "parallelism" in full:
        import multi
    try:
        of_job = multi.run if "parallelism" in full else record.run_fake
        rec = {**common, "cublas_workspace_bytes": record.CUBLAS_WORKSPACE, **of_job(full, registry, job.get("steps", 2), 12)}
    except Exception as e:                          # noqa: B902 - one bad job must not stop the rest
        rec = {**common, "error": f"{type(e).__name__}: {str(e)[:400]}"}
    with open(out, "a") as f:
        f.write(json.dumps(rec) + "\n")
    print(job["id"], rec.get("error") or rec["peak"]["allocated"], flush=True)


def processor_time(pid):
    try:
        return sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
    except OSError:
        return None


def wait_for(pid):
    used, since = -1, time.time()
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        now = processor_time(pid)
        if now is not None and now > used + 3:
            used, since = now, time.time()
        if time.time() - since > STALLED:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.2)


def main():
    jobs, out, models, shard = [*sys.argv[1:], "0/1"][:4]
    versions = record.prepare("fake")
    import jobs as library
    registry = library.load_registry(models)
    i, n = map(int, shard.split("/"))
    todo = [json.loads(line) for line in open(jobs) if line.strip()][i::n]
    strategies = {job["parallelism"]["strategy"] for job in todo if "parallelism" in job}
    if strategies:
        import multi
        multi.preload(strategies)
    for job in todo:
        for _ in range(3):
            if job["id"] in done(out):
                break
            pid = os.fork()
            if pid == 0:
                run(job, out, registry, versions)
                os._exit(0)
            wait_for(pid)


if __name__ == "__main__":
    main()
