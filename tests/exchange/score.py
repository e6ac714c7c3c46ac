#!/usr/bin/env python3
"""How well `tidemark import` reads a corpus of labelled files.

    tests/exchange/score.py build/bin/tidemark FOLDER [--kind KIND] [--show] [--check]

FOLDER holds <kind>/labels.jsonl and the files beside it. Fields are compared leaf by leaf; a field that the label calls unknown
and that is filled in without "assumed" is told apart ("invented"), and must not be. --check fails on any field that is
wrong or missing: for the fixtures of this repository.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys


def leaves(value, path=""):
    """dotted path -> value; lists are leaves, and so are a pasted config.json and a precision in parts."""
    if isinstance(value, dict) and value and path != "precision" and (path != "config" or "norm" in value):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    else:
        yield path, value


def same(ours, label):
    if isinstance(ours, bool) or isinstance(label, bool):
        return ours is label
    if isinstance(ours, (int, float)) and isinstance(label, (int, float)):
        return abs(ours - label) <= 1e-9 * max(1, abs(label))
    if isinstance(ours, list) and isinstance(label, list):
        return sorted(map(str, ours)) == sorted(map(str, label))
    return ours == label


def lines_of(origin):
    first, last = origin["lines"]
    return range(first, last + 1)


def inside(origin, label, file):
    """Whether a place that we cite is in a place that the label cites."""
    if "cell" in label and origin.get("cell") != label["cell"]:
        return False
    named = label.get("file")
    if named and not origin["file"].endswith(named.rsplit("/", 1)[-1]):
        return False
    if not named and not origin["file"].endswith(file):
        return False
    return bool(set(lines_of(origin)) & set(lines_of(label)))


def origins_for(path, provenance):
    """Places of a field, of what it is part of and of its parts."""
    for other, origins in provenance.items():
        if other == path or other.startswith(path + ".") or path.startswith(other + "."):
            yield from origins


def log_fields(label):
    return dict(leaves(label.get("reading", {})))


def compare(label, answer, counts, show):
    ours = dict(leaves(answer.get("request") or {}))
    theirs = dict(leaves(label.get("request", {})))
    assumed = answer.get("assumed", {})
    wrong = []
    for path, value in theirs.items():
        counts["fields"] += 1
        if path in ours and same(ours[path], value):
            counts["right"] += 1
        else:
            wrong.append(f"{path}: {ours.get(path, '(nothing)')!r}, label {value!r}")
    unknown = {word.split(":")[0].split(" ")[0] for word in label.get("unknowns", [])}
    for path in ours.keys() - theirs.keys():
        said = any(path == other or path.startswith(other + ".") or other.startswith(path + ".") for other in assumed)
        if path in unknown and not said:
            counts["invented"] += 1
            wrong.append(f"INVENTED {path}: {ours[path]!r}")
        else:
            counts["more"] += 1
            if show:
                wrong.append(f"  more {path}: {ours[path]!r}")
    for path, places in label.get("provenance", {}).items():
        if not places:
            continue
        counts["places"] += 1
        cited = list(origins_for(path, answer.get("provenance", {})))
        if any(inside(origin, place, label["file"].rsplit("/", 1)[-1]) for origin in cited for place in places):
            counts["placed"] += 1
        else:
            wrong.append(f"  place of {path}: {[o['lines'] for o in cited]}, label {places}")
    if "reading" in label:
        reading = next((f["reading"] for f in answer.get("files", []) if f.get("reading")), {})
        ours = dict(leaves(reading))
        for path, value in log_fields(label).items():
            counts["fields"] += 1
            if same(ours.get(path), value):
                counts["right"] += 1
            else:
                wrong.append(f"reading {path}: {ours.get(path)!r}, label {value!r}")
    return wrong


def score(command, folder, options):
    counts = collections.Counter()
    for line in (folder / "labels.jsonl").open(encoding="utf-8"):
        label = json.loads(line)
        path = folder / label["file"]
        if options.only and options.only not in label["file"]:
            continue
        if not path.exists():
            counts["absent"] += 1
            continue
        counts["files"] += 1
        files = [str(path)] + [str(folder / other["stored"]) for other in label.get("companions", [])
                               if (folder / other["stored"]).exists()]
        done = subprocess.run([command, "import", *files, "--json"], capture_output=True, text=True, timeout=60)
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        kinds = [entry.get("format") for entry in answer.get("files", [])]
        kind = label["kind"]
        if kinds and kinds[0] == kind:
            counts["recognised"] += 1
        else:
            print(f"{kind}: {label['file']}: read as {kinds[:1]} {done.stderr.strip()[:200]}")
        wrong = compare(label, answer, counts, options.more)
        if wrong and options.show:
            print(f"-- {path}")
            for word in wrong:
                print(f"   {word[:260]}")
    return counts


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("command")
    arguments.add_argument("corpus", type=pathlib.Path)
    arguments.add_argument("--kind", action="append", help="only this one")
    arguments.add_argument("--only", default="", help="only files whose name holds this")
    arguments.add_argument("--show", action="store_true", help="print what is wrong")
    arguments.add_argument("--more", action="store_true", help="and what the label does not have")
    arguments.add_argument("--check", action="store_true", help="fail where anything is wrong")
    options = arguments.parse_args()
    total = collections.Counter()
    failed = False
    for folder in sorted(path for path in options.corpus.iterdir() if (path / "labels.jsonl").exists()):
        if options.kind and folder.name not in options.kind:
            continue
        counts = score(options.command, folder, options)
        total.update(counts)
        failed |= counts["right"] < counts["fields"] or counts["invented"] > 0 or counts["recognised"] < counts["files"]
        tell(folder.name, counts)
    tell("all", total)
    return 1 if options.check and failed else 0


def tell(name, counts):
    def share(part, whole):
        return f"{counts[part]}/{counts[whole]} {100 * counts[part] / counts[whole]:5.1f} %" if counts[whole] else "-"

    print(f"{name:20} recognised {counts['recognised']}/{counts['files']}  fields {share('right', 'fields')}  "
          f"provenance {share('placed', 'places')}  invented {counts['invented']}  more {counts['more']}  "
          f"absent {counts['absent']}")


if __name__ == "__main__":
    sys.exit(main())
