#!/usr/bin/env python3
"""numbers.py HANDLE CATALOG [NUMBER...]    each number of one configuration of every model type, in turn, becomes another: the engine answers.

Whatever stands in a config.json, the answer is a figure or an error, and comes soon: `ctest -R numbers`. A configuration is the catalog's longest of its type.
"""
import copy
import json
import subprocess
import sys
import time

PATIENCE = 20.0     # seconds; what took longest took one
NUMBERS = (2**31 - 1, 65535, 0, 1)


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def paths(value, before=()):
    """Ways to each whole number of an object, and to the first of each list of them."""
    for key, member in value.items():
        if isinstance(member, dict):
            yield from paths(member, (*before, key))
        elif isinstance(member, list) and member and whole(member[0]):
            yield (*before, key, 0)
        elif whole(member):
            yield (*before, key)


def altered(config, path, number):
    config = copy.deepcopy(config)
    place = config
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = number
    return config


class Engine:
    def __init__(self, *command):
        self.command = command
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def answers(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            if self.process.stdout.readline():
                return True
        except BrokenPipeError:
            pass
        self.process.kill()
        self.start()
        return False


def main():
    handle, catalog, *numbers = sys.argv[1:]
    entries = json.load(open(f"{catalog}/models.json"))
    longest = {}
    for entry in entries if isinstance(entries, list) else entries["models"]:
        kind = entry["config"].get("model_type") or entry["config"].get("_class_name")
        if len(str(entry["config"])) > len(str(longest.get(kind, {}).get("config", ""))):
            longest[kind] = entry
    engine, asked, wrong = Engine(handle, catalog), 0, 0
    for kind, entry in longest.items():
        sees = {"images_per_sample": 1} if entry["kind"] == "vlm" else {}
        for path in paths(entry["config"]):
            for number in map(int, numbers) if numbers else NUMBERS:
                request = {"config": altered(entry["config"], path, number), "sequence_length": 1024, "micro_batch_size": 2, **sees}
                start = time.monotonic()
                answered = engine.answers(request)
                taken = time.monotonic() - start
                asked += 1
                if not answered or taken > PATIENCE:
                    wrong += 1
                    print(f"{kind}: {'/'.join(map(str, path))} = {number}: " + ("no answer" if not answered else f"{taken:.0f} s"))
    print(f"{asked - wrong} of {asked} altered configurations of {len(longest)} model types were answered")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
