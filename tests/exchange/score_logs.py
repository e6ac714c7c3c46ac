#!/usr/bin/env python3
"""How much of labelled logs and model files `tidemark import` reads as the labels say.

    tests/exchange/score_logs.py COMMAND CORPUS [--kind oom] [--show] [--bar 0.98]

COMMAND is the `tidemark` binary; CORPUS a folder of kinds with labels.jsonl and files, as the shared corpus. Of each
label every leaf of `reading` (or of `request`, for model files) counts: a null must be absent or null. A label whose
reading is an error wants a refusal. Prints a line per kind; --show the differences. Exit status 1 below the bar in any kind.
"""
import argparse
import json
import pathlib
import subprocess
import sys

KINDS = ["oom", "nvidia_smi", "memory_summary", "snapshot", "safetensors_header", "safetensors_index", "gguf_header"]


def leaves(value, path=""):
    """(path, leaf) of a document; an empty list or object is a leaf."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from leaves(member, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        yield f"{path}.length", len(value)
        for place, item in enumerate(value):
            yield from leaves(item, f"{path}.{place}")
    else:
        yield path, value


def same(wanted, got) -> bool:
    if wanted in (None, [], {}) and got in (None, [], {}):
        return True
    if isinstance(wanted, float) or isinstance(got, float):
        return isinstance(got, (int, float)) and abs(wanted - got) <= 1e-9 * max(abs(wanted), 1e-30)
    return type(wanted) is type(got) and wanted == got


def read(command: str, path: pathlib.Path) -> tuple[dict, int]:
    done = subprocess.run([command, "import", "--json", str(path)], capture_output=True, text=True, timeout=60)
    try:
        return json.loads(done.stdout or done.stderr), done.returncode
    except json.JSONDecodeError:
        return {}, done.returncode


def score(label: dict, answer: dict) -> list[tuple[str, object, object, bool]]:
    """(path, wanted, got, right) of each leaf."""
    reading = label.get("reading")
    wanted = reading if reading is not None else label["request"]
    refused = any(issue.get("severity") == "error" for issue in answer.get("issues", []))
    if "error" in wanted or "truncated file: refuse" in label.get("unknowns", []):
        return [("refused", True, refused, refused)]
    first = (answer.get("files") or [{}])[0]
    got = first.get("reading") if reading is not None else answer.get("request")
    found = dict(leaves(got or {}))
    rows = [("kind", label["kind"], first.get("format"), label["kind"] == first.get("format"))]
    for path, value in leaves(wanted):
        rows.append((path, value, found.get(path), same(value, found.get(path))))
    return rows


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("command")
    arguments.add_argument("corpus", type=pathlib.Path)
    arguments.add_argument("--kind", action="append")
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--bar", type=float, default=0.98, help="the share below which it fails")
    options = arguments.parse_args()
    worst = 1.0
    for kind in options.kind or KINDS:
        folder = options.corpus / kind
        if not (folder / "labels.jsonl").exists():
            continue
        right = total = files = 0
        for line in (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines():
            label = json.loads(line)
            if not (folder / label["file"]).exists():
                continue
            answer, status = read(options.command, folder / label["file"])
            rows = score(label, answer)
            if status not in (0, 1, 2):
                rows.append(("status", 0, status, False))
            files += 1
            total += len(rows)
            right += sum(row[3] for row in rows)
            if options.show:
                for path, wanted, got, fine in rows:
                    if not fine:
                        print(f"  {label['file']}: {path}: label {wanted!r}, read {got!r}")
        if total:
            worst = min(worst, right / total)
            print(f"{kind:20} {files:3} files  {right:4} of {total:4} fields  {100 * right / total:6.2f} %")
    return 0 if worst >= options.bar else 1


if __name__ == "__main__":
    sys.exit(main())
