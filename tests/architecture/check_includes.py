#!/usr/bin/env python3
"""No arrow up between the rooms of core/, and so no circle: each file includes its own room and those before it.

The order stands once, in docs/architecture.md, in the paragraph that begins with "**Arrows point one way.**": the names
in backquotes before the colon's sentence ends, lowest first.

    tests/architecture/check_includes.py [--graph]
"""
import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+"core/([a-z_]+)/[^"]+"', re.M)
PARAGRAPH = re.compile(r"^\*\*Arrows point one way\.\*\*[^:]*: ([^.]*)\.", re.M | re.S)


def order_of_rooms(page: str) -> list[str]:
    found = PARAGRAPH.search(page)
    if found is None:
        sys.exit('docs/architecture.md has no paragraph "**Arrows point one way.** ...: `room`, `room`."')
    return re.findall(r"`([a-z_]+)`", found[1])


def includes() -> dict[tuple[str, str], list[str]]:
    """(room, included room) -> the files that do so."""
    arrows = collections.defaultdict(list)
    for path in sorted((ROOT / "core").rglob("*.[ch]pp")):
        room = path.relative_to(ROOT / "core").parts[0]
        for other in INCLUDE.findall(path.read_text(encoding="utf-8")):
            arrows[room, other].append(str(path.relative_to(ROOT)))
    return arrows


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--graph", action="store_true", help="print which room includes which")
    options = arguments.parse_args()
    order = order_of_rooms((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    place = {room: number for number, room in enumerate(order)}
    arrows = includes()
    if options.graph:
        for room in order:
            print(f"{room}: {' '.join(other for other in order if (room, other) in arrows and other != room)}")
    failures = []
    rooms = {path.name for path in (ROOT / "core").iterdir() if path.is_dir() and list(path.rglob("*.[ch]pp"))}
    for room in sorted(rooms - set(order)):
        failures.append(f"core/{room} has no place in the order of docs/architecture.md")
    for room in sorted(set(order) - rooms):
        failures.append(f"docs/architecture.md orders {room}, and there is no core/{room}")
    for (room, other), files in sorted(arrows.items()):
        if room in place and other in place and place[other] > place[room]:
            failures.append(f"{room} includes {other}, which stands above it: {', '.join(files)}")
    for failure in failures:
        print(failure)
    print(f"{len(arrows)} arrows between {len(order)} rooms, {len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
