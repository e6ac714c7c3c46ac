#!/usr/bin/env python3
"""The answers are frozen: what the engine says to thousands of requests, as a figure and a hash for each.

    check.py HANDLE              compares with answers.tsv; "N passed, N failed"
    check.py HANDLE --some N …   only one request in N
    check.py HANDLE --write      writes answers.tsv anew: its diff is what the change altered, and is reviewed as such
    check.py HANDLE --against OTHER
                                 compares two builds of the engine, byte for byte

HANDLE is build/bin/tidemark_handle. Requests: the golden ones, those of every oracle record and every measurement, and
those drawn by draw.py (drawn.jsonl: kept, so that a new option changes no request).
"""
import hashlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ANSWERS = HERE / "answers.tsv"
SOURCES = ["tests/golden/requests.jsonl", "tests/frozen/drawn.jsonl", "tests/measured/requests.jsonl",
           "tests/oracle/records*.jsonl"]
# What these verbs say is the tables themselves, which have checks of their own.
TABLES = {"describe", "catalog", "version"}


def request_of(line):
    """The request of a line and its name, if it has one: records and measurements hold theirs beside their truth."""
    try:
        document = json.loads(line)
    except json.JSONDecodeError:
        return line, None  # the golden requests have broken ones
    request = document.get("request", document) if isinstance(document, dict) else document
    if isinstance(request, dict) and request.get("verb") in TABLES:
        return None, None
    return json.dumps(request), document.get("id") if isinstance(document, dict) else None


def requests():
    """(name, request's text) in a fixed order."""
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                text, name = request_of(line)
                if text:
                    yield f"{path.relative_to(ROOT / 'tests').with_suffix('')}:{name or number}", text


def ask(handle, asked):
    """One answer a request. The version and the catalog's date are no part of what is frozen."""
    lines = "".join(text + "\n" for _, text in asked)
    run = subprocess.run([handle, str(ROOT / "catalog")], input=lines, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{handle}: exit status {run.returncode}\n{run.stderr[-2000:]}")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    for answer in answers:
        answer.pop("engine", None)
        answer.pop("catalog", None)
    if len(answers) != len(asked):
        sys.exit(f"{handle}: {len(answers)} answers to {len(asked)} requests")
    return answers


def row_of(answer):
    """What a person compares, then the hash of the whole."""
    text = json.dumps(answer, ensure_ascii=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    estimate = answer.get("estimate")
    if estimate:
        return f"{estimate['allocated']['expected']}\t{estimate['peak']['phase']}\t{digest}"
    errors = sorted({i["code"] for i in answer.get("issues", []) if i.get("severity") == "error"})
    return f"{','.join(errors) or 'answered'}\t-\t{digest}"


def report(asked, ours, theirs, what):
    changed = [(name, request, a, b) for (name, request), a, b in zip(asked, ours, theirs) if a != b]
    for name, request, a, b in changed[:20]:
        print(f"FAILED: {name}: {request[:240]}\n  now    {str(a)[:200]}\n  {what} {str(b)[:200]}")
    print(f"{len(asked) - len(changed)} passed, {len(changed)} failed")
    return 1 if changed else 0


def main():
    handle, *rest = sys.argv[1:]
    asked = list(requests())
    if rest[:1] == ["--some"]:  # one in so many, for builds that are slow
        asked, rest = asked[::int(rest[1])], rest[2:]
    answers = ask(handle, asked)
    if rest[:1] == ["--against"]:
        return report(asked, answers, ask(rest[1], asked), "before")
    rows = [f"{name}\t{row_of(answer)}" for (name, _), answer in zip(asked, answers)]
    if rest[:1] == ["--write"]:
        ANSWERS.write_text("\n".join(rows) + "\n", encoding="utf-8")
        print(f"{len(rows)} answers written")
        return 0
    frozen = dict(line.split("\t", 1) for line in ANSWERS.read_text(encoding="utf-8").splitlines())
    missing = set(frozen) - {name for name, _ in asked}
    if missing:
        print(f"FAILED: frozen, and asked no more: {sorted(missing)[:5]}")
    return report(asked, rows, [f"{name}\t{frozen.get(name)}" for name, _ in asked], "frozen") or bool(missing)


if __name__ == "__main__":
    sys.exit(main())
