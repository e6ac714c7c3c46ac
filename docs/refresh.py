#!/usr/bin/env python3
"""Puts what the programs print into the pages that quote them: docs/refresh.py [--check] [--bin FOLDER] PAGE...

A page marks what is quoted:
    <!-- output: tidemark estimate --model llama-2-7b -->   the command's output as a code block
    <!-- answer: tidemark estimate --model gpt2 -->         the command, and its answer in a sentence
    <!-- accuracy -->                                       one row per set of records, from tidemark_truth
and ends each with <!-- end -->. Everything between is written anew; with --check only compared.
"""
import argparse
import json
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
    "records-later.jsonl": "what transformers 5.13 to 5.24 does otherwise",
    "records-megatron.jsonl": "Megatron-Core's own model and schedules",
    "records-unsloth.jsonl": "LoRA by Unsloth's own code",
    "records-multi.jsonl": "several GPUs: DDP, FSDP, ZeRO, tensor parallelism, pipelines",
    "records-loops.jsonl": "preferences, and evaluation between steps",
    "records-adapters.jsonl": "PEFT's adapters beside LoRA",
    "records-optimizers.jsonl": "optimizers of packages",
    "records-quantised.jsonl": "LoRA on packed bases: GPTQ, AWQ, HQQ, quanto, torchao, EETQ, AQLM",
    "records-offloaded.jsonl": "saved tensors in host memory",
}


def run(arguments):
    program = BIN / arguments[0]
    done = subprocess.run([program, *arguments[1:]], cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def output(command):
    return f"```text\n{run(shlex.split(command)).rstrip()}\n```"


def gib(size):
    return f"{size / 2**30:.2f} GiB"


def verdict(fit):
    room = fit["headroom_bytes"]
    words = {"fits": "fits", "tight": "is tight on", "does_not_fit": "does not fit"}.get(fit["verdict"], "may or may not fit")
    return f"; {words} {fit['gpu']}, {gib(abs(room))} {'to spare' if room >= 0 else 'too much'}"


def estimate_in_words(reply):
    found = reply["estimate"]
    size, host = found["allocated"], found["host"]["expected"]
    text = (f"**{gib(size['expected'])}** ({size['low'] / 2**30:.2f} to {size['high'] / 2**30:.2f}), reached in "
            f"{found['peak']['phase']}{''.join(verdict(fit) for fit in reply['fits'])}.")
    return text + (f" Host memory: {gib(host)}." if host else "")


def frontiers_in_words(reply):
    sizes = {row["option"]: row["largest"] for row in reply["frontiers"]}
    return f"**Batch {sizes['micro_batch_size']}**; at the batch asked for, {sizes['sequence_length']:,} tokens."


def reasons_of(reply):
    """Each reason once, without the lists of what there is instead."""
    told, reasons = set(), []
    for issue in reply["issues"]:
        message = re.sub(r"; these are: .*|Modelled are .*", "", issue["message"], flags=re.S).strip().rstrip(".")
        what, _, why = message.partition(": ")
        if issue["severity"] == "error" and message not in told:
            reasons.append(f"{what}." if why in told else f"{message}.")
            told |= {message, why} - {""}
    return " ".join(reasons)


def answer(command):
    """Of an estimate its peak and verdict, of advice how far the job goes, of a refusal its reasons."""
    words = shlex.split(command)
    done = subprocess.run([BIN / words[0], *words[1:], "--json"], cwd=ROOT, capture_output=True, text=True)
    reply = json.loads(done.stdout or done.stderr)
    if "estimate" in reply:
        text = estimate_in_words(reply)
    elif "frontiers" in reply:
        text = frontiers_in_words(reply)
    else:
        text = "Waits: " + reasons_of(reply)
    return f"```sh\n{command}\n```\n\n{text}"


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
            r"(?:all|our card: (.+), allocated)\s+n\s+(\d+)\s+unanswered\s+(\d+)\s+median\s+([\d.]+) %\s+p95\s+([\d.]+) %\s+worst\s+([\d.]+) %"
            r"\s+phase\s+([\d.]+) %\s+in range\s+([\d.]+) %", line)
        if found:
            runs, n, missing, median, p95, worst, phase, inside = found.groups()
            rows.append(f"| {f'**our own runs on an H200**: {runs}' if runs else SETS.get(name, name)} | {n} of {int(n) + int(missing)} | {median} % | {p95} % | {worst} % |"
                        f" {phase} % | {inside} % |")
    if len(rows) < 3:
        sys.exit("tidemark_truth prints no summary that docs/refresh.py understands")
    return "\n".join(rows)


def written(match):
    what = match[1].strip()
    kind, _, command = what.partition(":")
    body = {"accuracy": accuracy, "answer": lambda: answer(command.strip()), "output": lambda: output(command.strip())}[kind]()
    return f"<!-- {what} -->\n{body}\n<!-- end -->"


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=BIN)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    asked = parser.parse_args()
    BIN = asked.bin.resolve()
    stale = []
    for page in asked.pages:
        old = page.read_text(encoding="utf-8")
        new = re.sub(r"<!-- ((?:(?:output|answer):[^\n]*|accuracy)) -->\n.*?<!-- end -->", written, old, flags=re.S)
        if old != new:
            stale.append(page)
            if not asked.check:
                page.write_text(new, encoding="utf-8")
    if stale and asked.check:
        sys.exit(f"out of date (run ./dev docs): {', '.join(map(str, stale))}")


if __name__ == "__main__":
    main()
