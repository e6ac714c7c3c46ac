#!/usr/bin/env python3
"""Pages hold together: links lead to files and headings that are there, and the commands of docs/seeds.md are understood.

    tests/docs/check_pages.py COMMAND
"""
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "wasm/README.md", ROOT / "core/bindings/python/README.md"]
PLACEHOLDERS = ("…", "|", ">", ".py", ".json", ".txt", ".yaml")


def anchors(page):
    """As GitHub makes them of headings."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            yield re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")


def broken_links(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists():
            yield f"{page.name}: no {target}"
        elif anchor and place.suffix == ".md" and anchor not in anchors(place):
            yield f"{page.name}: no heading {target}"


def commands(page):
    for code in re.findall(r"`(tidemark [^`\n]+)`", page.read_text(encoding="utf-8")):
        if not any(mark in code for mark in PLACEHOLDERS):
            yield code


def refused(command, asked):
    words = shlex.split(asked)[1:]
    if len(words) < 2:
        return
    if words[0] == "check" and "--gpu" not in words:
        words += ["--gpu", "4090"]
    whole = words[0] not in ("estimate", "fit", "advise", "check", "map") or any(w in words for w in ("--model", "--params"))
    run = subprocess.run([command, *words] if whole else [command, words[0], "--model", "gpt2", *words[1:]],
                         capture_output=True, text=True, timeout=120)
    # What cannot be answered yet is an answer; what is not understood is none.
    if "BAD_USAGE" in run.stderr or "is not understood" in run.stderr:
        yield f"{asked}: {run.stderr[:200]}"


def versions():
    """The one version, wherever it has to stand."""
    yield re.search(r"project\(tidemark VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    yield re.search(r'"version": "([\d.]+)"', (ROOT / "wasm/package.json").read_text())[1]
    yield re.search(r'^version = "([\d.]+)"', (ROOT / "core/bindings/python/pyproject.toml").read_text(), re.M)[1]
    yield re.search(r"default: v([\d.]+)", (ROOT / ".github/actions/check/action.yml").read_text())[1]


def main():
    command = sys.argv[1]
    failures = [failure for page in PAGES if page.exists() for failure in broken_links(page)]
    asked = sorted(set(commands(ROOT / "docs/seeds.md")))
    failures += [failure for one in asked for failure in refused(command, one)]
    if len(set(versions())) != 1:
        failures.append(f"versions differ: {list(versions())}")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{len(PAGES)} pages, {len(asked)} commands: {len(failures)} failed")
    return 1 if failures or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
