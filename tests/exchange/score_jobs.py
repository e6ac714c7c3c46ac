#!/usr/bin/env python3
"""How many whole jobs `tidemark estimate FILE` answers, and why it refuses the others.

    tests/exchange/score_jobs.py build/bin/tidemark FOLDER [--gpu H100] [--kind KIND] [--only WORD] [--show]
    tests/exchange/score_jobs.py build/bin/tidemark CLONE --files 'examples/**/*.y*ml' [--saying WORD]

FOLDER holds <kind>/labels.jsonl and the files beside it; of a CLONE of somebody's repository each file of that pattern is a
job, where it says WORD. A file is a job where its format says a model and how it is
trained; accelerate and DeepSpeed files, headers and logs alone are none. --gpu stands in where the file names no card. A
file that does not fit is answered as well. A refusal may have several reasons: each counts once for a file. Files that
train nothing (NO_JOB) are no jobs.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

JOBS = ["axolotl", "llamafactory", "trl_yaml", "torchtune", "torchtitan", "litgpt", "autotrain", "automodel"]


def files_of(folder):
    """The main files: what other labels name as companions is handed over with those."""
    for line in (folder / "labels.jsonl").open(encoding="utf-8"):
        label = json.loads(line)
        path = folder / label["file"]
        if path.exists():
            yield [str(path)] + [str(folder / other["stored"]) for other in label.get("companions", [])
                                 if (folder / other["stored"]).exists()]


def examples_of(clone, pattern, word):
    for path in sorted(clone.glob(pattern)):
        if word in path.read_text(encoding="utf-8", errors="replace"):
            yield [str(path)]


def ask(command, files, gpu):
    run = [command, "estimate", *files, "--json"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    if '"gpu"' in done.stderr + done.stdout or done.returncode == 2:
        done = subprocess.run([*run, "--gpu", gpu], capture_output=True, text=True, timeout=120)
    text = done.stdout if done.stdout.startswith("{") else done.stderr
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"issues": [{"severity": "error", "code": "UNREADABLE", "message": text.strip()[:200]}]}


def reasons(answer):
    return {f"{issue['code']} {issue.get('path', '')}": issue["message"] for issue in answer.get("issues", [])
            if issue["severity"] == "error"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("command")
    arguments.add_argument("corpus", type=pathlib.Path)
    arguments.add_argument("--gpu", default="H100")
    arguments.add_argument("--kind", action="append", help="only this one")
    arguments.add_argument("--files", help="a pattern of files in a clone")
    arguments.add_argument("--saying", default="", help="only files whose text holds this")
    arguments.add_argument("--only", default="", help="only files whose name holds this")
    arguments.add_argument("--show", action="store_true", help="print the figure or the reason for each file")
    options = arguments.parse_args()
    counts = collections.Counter()
    answered = total = 0
    for kind in [options.corpus.name] if options.files else options.kind or JOBS:
        mine = whole = 0
        jobs = (examples_of(options.corpus, options.files, options.saying) if options.files
                else files_of(options.corpus / kind))
        for files in jobs:
            if options.only not in files[0]:
                continue
            answer = ask(options.command, files, options.gpu)
            if any(reason.startswith("NO_JOB") for reason in reasons(answer)):
                counts["trains nothing, and is not counted"] += 1
                continue
            whole += 1
            mine += "estimate" in answer
            if "estimate" not in answer:
                counts.update(reasons(answer).keys())
            if options.show:
                tell(kind, files[0], answer)
        print(f"{kind:14} {mine} of {whole}")
        answered, total = answered + mine, total + whole
    print(f"{'answered':14} {answered} of {total}")
    for reason, times in counts.most_common():
        print(f"  {times:3}  {reason}")


def tell(kind, path, answer):
    name = f"{kind}/{pathlib.Path(path).name}"
    if "estimate" in answer:
        shown = answer["estimate"]["allocated"]
        low, expected, high = (shown[key] / 2**30 for key in ("low", "expected", "high"))
        print(f"-- {name}: {expected:.1f} GiB ({low:.1f} to {high:.1f})")
        return
    print(f"-- {name}")
    for reason, message in reasons(answer).items():
        print(f"   {reason}: {message[:200]}")


if __name__ == "__main__":
    sys.exit(main())
