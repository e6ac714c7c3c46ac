#!/usr/bin/env python3
"""Puts what the programs print into the pages that quote them: docs/refresh.py [--check] PAGE...

A page marks what is quoted:
    <!-- output: tidemark estimate --model llama-2-7b -->   the command's output as a code block
    <!-- accuracy -->                                       one row per set of records, from tidemark_truth
and ends each with <!-- end -->. Everything between is written anew; with --check only compared.
"""
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / "build" / "bin"

SETS = {
    "records.jsonl": "the oracle's public records",
    "records-extra.jsonl": "more oracle records: other families and options",
    "records-pairs.jsonl": "every pair of option values, and options drawn at random",
    "records-beyond.jsonl": "further kinds: experts, vision-language, encoder-decoders, speech and others",
    "records-multi.jsonl": "several GPUs (of which DDP, FSDP and ZeRO are modelled)",
}


def run(arguments):
    program = BIN / arguments[0]
    done = subprocess.run([program, *arguments[1:]], cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def output(command):
    return f"```text\n{run(shlex.split(command)).rstrip()}\n```"


def accuracy():
    rows = [
        "| compared with | answered | median error | 95 % within | worst | peak's phase right | truth inside the range |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    name = None
    for line in run(["tidemark_truth", "--root", ".", "--worst", "0"]).splitlines():
        if line.startswith("== "):
            name = line[3:].strip()
        found = re.match(
            r"all\s+n\s+(\d+)\s+unanswered\s+(\d+)\s+median\s+([\d.]+) %\s+p95\s+([\d.]+) %\s+worst\s+([\d.]+) %"
            r"\s+phase\s+([\d.]+) %\s+in range\s+([\d.]+) %", line)
        if found:
            n, missing, median, p95, worst, phase, inside = found.groups()
            rows.append(f"| {SETS.get(name, name)} | {n} of {int(n) + int(missing)} | {median} % | {p95} % | {worst} % |"
                        f" {phase} % | {inside} % |")
    if len(rows) < 3:
        sys.exit("tidemark_truth prints no summary that docs/refresh.py understands")
    return "\n".join(rows)


def written(match):
    what = match[1].strip()
    body = accuracy() if what == "accuracy" else output(what.removeprefix("output:").strip())
    return f"<!-- {what} -->\n{body}\n<!-- end -->"


def main():
    pages = [pathlib.Path(p) for p in sys.argv[1:] if p != "--check"]
    stale = []
    for page in pages:
        old = page.read_text(encoding="utf-8")
        new = re.sub(r"<!-- ((?:output:[^\n]*|accuracy)) -->\n.*?<!-- end -->", written, old, flags=re.S)
        if old != new:
            stale.append(page)
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"out of date (run ./dev docs): {', '.join(map(str, stale))}")


if __name__ == "__main__":
    main()
