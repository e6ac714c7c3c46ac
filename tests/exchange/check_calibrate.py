#!/usr/bin/env python3
"""Calibrations from files: measurements that are made around the estimate's own figures give the factors that they were made with.

    tests/exchange/check_calibrate.py COMMAND
"""
import json
import pathlib
import subprocess
import sys
import tempfile

MIB = 2**20
JOB = {"model": "meta-llama/Llama-3.2-1B", "sequence_length": 512}
CARD = "NVIDIA A100 80GB PCIe"
FACTOR = 1.25  # of what is cached
MORE = 64 * MIB  # of the context


def summary(allocated, reserved):
    """As torch.cuda.memory_summary() lays it out; its cells are floored."""
    def row(what, size):
        return f"| {what:<21} | {size // MIB:6d} MiB | {size // MIB:6d} MiB | {9 * size // MIB:6d} MiB | {size // MIB:6d} MiB |\n"
    return ("|                  PyTorch CUDA memory summary, device ID 0                 |\n"
            "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |\n"
            + row("Allocated memory", allocated) + row("GPU reserved memory", reserved))


def main() -> int:
    command, failures = sys.argv[1], []

    def run(*words, status=0):
        done = subprocess.run([command, *map(str, words)], capture_output=True, text=True, timeout=120)
        if done.returncode != status:
            failures.append(f"{words}: status {done.returncode}, not {status}: {done.stderr[:300]}")
        return json.loads(done.stdout or done.stderr or "{}")

    def check(what, holds):
        if not holds:
            failures.append(what)

    def figures(*words):
        estimate = run("estimate", *words, "--gpu", CARD, "--json")["estimate"]
        return [estimate[key]["expected"] for key in ("allocated", "reserved", "device")]

    words = ["--model", JOB["model"], "--seq-len", "512"]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        allocated, reserved, device = figures(*words)
        cached, context = reserved - allocated, device - reserved
        measured = allocated + int(FACTOR * cached)
        probe, mine = place / "probe.json", place / "mine.json"
        probe.write_text(json.dumps({
            "tidemark_probe": 1, "job": JOB, "gpu": {"name": CARD}, "allocated_bytes": allocated,
            "reserved_bytes": measured, "device_bytes": measured + context + MORE}))

        # A probe is a measurement by itself, and what it gives is used as a file.
        reply = run("calibrate", probe, "--json")
        mine.write_text(json.dumps(reply))
        factors = reply["calibration"]["factors"]
        check("the factor of what is cached", abs(factors["fragmentation"] - FACTOR) < 1e-4)
        check("the context", abs(factors["context"][0]["bytes"] - context - MORE) < 1024)
        check("no other factor", factors["activations"] is None and factors["communication"] is None)
        after = figures(*words, "--calibration", mine)
        check("the estimate uses it", abs(after[1] - measured) < cached * 1e-3 and
              abs(after[2] - measured - context - MORE) < cached * 1e-3)
        told = run("estimate", *words, "--calibration", mine, "--json")
        check("the answer says so", any(issue["code"] == "CALIBRATED" for issue in told["issues"]))

        # A summary needs a job beside it: a file's, or flags'.
        text = place / "summary.txt"
        text.write_text(summary(allocated, measured))
        reply = run("calibrate", text, *words, "--gpu", CARD, "--json")
        check("a summary and flags", abs(reply["calibration"]["factors"]["fragmentation"] - FACTOR) < 0.01)
        request = place / "job.json"
        request.write_text(json.dumps({"verb": "calibrate", **JOB, "gpu": CARD}))
        reply = run("calibrate", text, "--request", request, "--json")
        check("a summary and a request", abs(reply["calibration"]["factors"]["fragmentation"] - FACTOR) < 0.01)
        check("a summary without a job is refused", "issues" in run("calibrate", text, "--json", status=2))

        # Both together are two measurements.
        reply = run("calibrate", probe, text, *words, "--json")
        check("two measurements", len(reply["calibration"]["measurements"]) == 2)

        # What is no measurement.
        oom = place / "oom.txt"
        oom.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
                       "of 23.65 GiB of which 1.00 GiB is free.\n")
        check("a message about exhausted memory is refused",
              run("calibrate", oom, *words, "--json", status=2)["issues"][0]["code"] == "NOT_A_MEASUREMENT")
        broken = place / "broken.json"
        broken.write_text('{"factors": {"activations": "large"}, "measurements": []}')
        check("another document is refused",
              run("estimate", *words, "--calibration", broken, "--json", status=2)["issues"][0]["path"] == "/calibration")
        run("calibrate", "--json", status=2)

    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
