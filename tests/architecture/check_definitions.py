#!/usr/bin/env python3
"""Every function and variable is defined once in all of the core's libraries.

A linker takes the first of two definitions without a word, and which one is first depends on the compiler: two
functions of one name and different result once crashed the build of one compiler only.

usage: check_definitions.py NM LIBRARY…
"""
import collections
import re
import subprocess
import sys

nm, *libraries = sys.argv[1:]
owners = collections.defaultdict(set)
for library in libraries:
    text = subprocess.run([nm, "--defined-only", library], check=True, capture_output=True, text=True).stdout
    member = ""
    for line in text.splitlines():
        if m := re.match(r"(\S+):$", line):
            member = m[1]
        elif m := re.match(r"[0-9a-f]+ [TDBR] (\S+)$", line):
            owners[m[1]].add((library, member))
assert len(owners) > 100, "no symbols found: are these the core's libraries?"
twice = {name: places for name, places in owners.items() if len(places) > 1}
for name, places in sorted(twice.items()):
    print(f"{name} is defined in " + " and ".join(sorted(f"{member} of {library}" for library, member in places)))
print(f"{len(owners)} definitions, {len(twice)} of them twice")
sys.exit(bool(twice))
