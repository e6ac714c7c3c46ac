#!/usr/bin/env python3
"""A patch changes what was asked and nothing else: drawn changes to the fixtures, read again.

    tests/exchange/check_patch.py COMMAND FOLDER [--seed 1] [--show]

Of each change either the patched file says it or the command told that it cannot; every other field that a line states
is as before, comments are kept, and no more lines differ than fields were changed.
"""
import argparse
import difflib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

KINDS = ["axolotl", "llamafactory", "trl_yaml", "litgpt", "torchtitan", "autotrain", "torchtune", "xtuner", "python",
         "hf_shell", "swift", "tidemark"]
CHANGES = {
    "micro_batch_size": ("--micro-batch-size", [3, 5]),
    "gradient_accumulation_steps": ("--gradient-accumulation-steps", [6, 12]),
    "sequence_length": ("--sequence-length", [768, 1536]),
    "max_grad_norm": ("--max-grad-norm", [0.7]),
    "optimizer": ("--optimizer", ["adamw_8bit", "paged_adamw_8bit"]),
    "gradient_checkpointing": ("--gradient-checkpointing", ["full", "none"]),
    "adapter.r": ("--adapter-r", [24, 48]),
}


def fields(value, path=""):
    flat = {}
    for key, member in value.items():
        name = f"{path}.{key}" if path else key
        flat.update(fields(member, name) if isinstance(member, dict) and member else {name: member})
    return flat


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    text = done.stdout if done.stdout.startswith("{") else done.stderr
    return json.loads(text) if text.startswith("{") else {}


def comments(text):
    return [line.strip() for line in text.splitlines() if line.strip().startswith("#")]


def check(command, path, changes, folder):
    """What is wrong with one patch; None where the file states no job."""
    flags = [word for name, value in changes.items() for word in (CHANGES[name][0], str(value))]
    out = run(command, "export", "patch", str(path), *flags, "--json")
    if "text" not in out:
        return None, 0
    before = run(command, "import", str(path), "--json")
    if "gpu" in before["request"]:              # on a card that is too small a patch is what fits there, not what was drawn
        asked = run(command, "estimate", str(path), *flags, "--json")
        if any(fit["verdict"] == "does_not_fit" for fit in asked.get("fits", [])):
            return None, 0
    patched = folder / path.name
    patched.write_text(out["text"], encoding="utf-8")
    after = run(command, "import", str(patched), "--json")
    was, now = fields(before["request"]), fields(after["request"])
    told = {issue["path"].strip("/").replace("/", ".") for issue in out["issues"]}
    wrong = [f"{name} is {now.get(name)!r}, not {value!r}" for name, value in changes.items()
             if name not in told and now.get(name) != value]
    wrong += [f"{name} became {now.get(name)!r}" for name, value in was.items()
              if name not in changes and name not in before["assumed"] and now.get(name) != value]
    old, new = path.read_text(encoding="utf-8"), out["text"]
    if path.suffix == ".json":
        json.loads(new)
    if comments(old) != comments(new):
        wrong.append("comments differ")
    edits = [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line.startswith("+ ")]
    if len(edits) > len(changes):
        wrong.append(f"{len(edits)} lines differ")
    return wrong, len([name for name in changes if name not in told])


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("command")
    arguments.add_argument("corpus", type=pathlib.Path)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    random_ = random.Random(options.seed)
    failures = asked = written = 0
    for kind in KINDS:
        for line in (options.corpus / kind / "labels.jsonl").open(encoding="utf-8"):
            path = options.corpus / kind / json.loads(line)["file"]
            if not path.exists():
                continue
            changes = {name: random_.choice(CHANGES[name][1]) for name in random_.sample(sorted(CHANGES), 3)}
            with tempfile.TemporaryDirectory() as folder:
                wrong, done = check(options.command, path, changes, pathlib.Path(folder))
            if wrong is None:
                continue
            asked, written = asked + len(changes), written + done
            failures += bool(wrong)
            if wrong or options.show:
                print(f"{kind}/{path.name}: {changes}: {done} written; {'; '.join(wrong)}")
    print(f"{written} of {asked} changes written, {failures} patches wrong")
    return 1 if failures or written * 2 < asked else 0


if __name__ == "__main__":
    sys.exit(main())
