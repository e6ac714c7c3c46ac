#!/usr/bin/env python3
"""advice.py HANDLE CATALOG [SEED [REQUESTS]]    what advice promises of a recorded request is what an estimate of the changed one says.

Requests are drawn from tests/oracle/records*.jsonl, each is asked about on a card that is drawn, too. Every patch that the answer holds
(single changes, the combination, more cards, the smallest ways, modes, the fewest cards of `fit`) is written into the request, which is
then estimated; a change that is refused there, needs other bytes or gets another verdict is a fault. `ctest -R advice-holds`.
"""
import copy
import glob
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CARDS = ["T4", "V100-16GB", "RTX 3060", "RTX 4090", "RTX 5090", "A10G", "L4", "A100-80GB", "H100", "B200"]


def handle(command, requests):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) < len(requests):
        sys.exit(f"the engine broke ({done.returncode}) on {json.dumps(requests[len(answers)])}")
    return answers


def merged(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    target = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


def promises(answer):
    """(what, patch, bytes, verdict or None) of all that an answer to `advise` offers."""
    rows = [("suggestion", row) for row in answer.get("suggestions", [])]
    rows += [("more cards", row) for row in answer.get("more_cards", [])]
    rows += [("way", row) for row in answer.get("ways", [])]
    rows += [("mode", row) for row in (answer.get("modes") or {}).get("modes", [])]
    rows += [("expandable", answer["expandable_segments"])] if answer.get("expandable_segments") else []
    combination = answer.get("combination") or {}
    rows += [("combination", combination)] if combination.get("found") else []
    for what, row in rows:
        amount = row["allocated"]["expected"] if "allocated" in row else row["allocated_bytes"]
        if amount > 0 and row.get("fit", {}).get("verdict") != "unknown":
            name = row.get("title") or row.get("how") or row.get("mode") or ""
            yield f"{what}: {name}", row["patch"], amount, row.get("fit", {}).get("verdict")


def main():
    command = sys.argv[1:3]
    seed, count = [int(word) for word in sys.argv[3:] + ["1", "150"][len(sys.argv) - 3:]]
    draw = random.Random(seed)
    records = []
    for path in sorted(glob.glob(os.path.join(HERE, "..", "oracle", "records*.jsonl"))):
        with open(path, encoding="utf-8") as lines:
            records += [(row["id"], row["request"]) for row in map(json.loads, lines)]
    asked = [(name, {**request, "gpu": draw.choice(CARDS)}) for name, request in draw.sample(records, count)]
    told = handle(command, [{**request, "verb": "advise", "frontiers": False, "tiers": False} for _, request in asked])
    fitted = handle(command, [{**request, "verb": "fit"} for _, request in asked])
    held = []
    for (name, request), advice, fits in zip(asked, told, fitted):
        held += [(name, what, merged(request, patch), amount, verdict) for what, patch, amount, verdict in promises(advice)]
        for row in fits.get("fits", []):
            fewest = row.get("fewest")
            if fewest:
                held.append((name, "fewest: " + fewest["title"], merged(request, fewest["patch"]), fewest["allocated_bytes"], "fits"))
    faults = 0
    answers = handle(command, [{**request, "verb": "estimate"} for _, _, request, _, _ in held])
    for (name, what, _, amount, verdict), answer in zip(held, answers):
        found = ((answer.get("estimate") or {}).get("allocated") or {}).get("expected")
        said = (answer.get("fits") or [{}])[0].get("verdict")
        if found == amount and verdict in (None, said):
            continue
        faults += 1
        why = [issue["message"] for issue in answer["issues"] if issue["severity"] == "error"]
        print(f"{name}, {what}: promised {amount} {verdict}, estimated {found} {said} {why[:1]}")
    print(f"{len(held) - faults} passed, {faults} failed")
    sys.exit(1 if faults or len(held) < count else 0)


if __name__ == "__main__":
    main()
