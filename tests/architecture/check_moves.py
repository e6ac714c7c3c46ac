#!/usr/bin/env python3
"""check_moves.py: nothing is asked of a tensor in the call that it is moved into.

C++ leaves the order of arguments open: `view(std::move(x), Shape{x.dim(0)})` is right where the last argument comes
first (g++) and reads a tensor that is gone where the first does (clang, so WebAssembly too).
"""
import pathlib
import re
import sys

MOVE = re.compile(r"std::move\(([A-Za-z_]\w*)\)")
CONTROL = re.compile(r"\b(if|while|for|switch|return)\s*$")


def closing(text, at):
    """Where the parenthesis that opens at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text)


def calls_around(text, at):
    """The argument lists that hold the position, from the innermost out, as far as the statement goes."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if text[i] in ";{}" and depth == 0 and text[i] != "{" and text[i] != "}":
            return
        if text[i] == ")":
            depth += 1
        elif text[i] == "(":
            if depth > 0:
                depth -= 1
            elif CONTROL.search(text[:i]):
                return
            else:
                yield text[i + 1 : closing(text, i)]


def faults(path):
    text = re.sub(r"//[^\n]*", lambda m: " " * len(m.group()), path.read_text(encoding="utf-8"))
    for move in MOVE.finditer(text):
        asked = re.compile(rf"(?<![\w.]){move.group(1)}\.(dim|shape|size|numel|dtype|tape|body|defined)\(")
        for arguments in calls_around(text, move.start()):
            if "[" in arguments and "{" in arguments and "](" in arguments:
                break  # a lambda's body is statements of its own
            if asked.search(arguments):
                yield text.count("\n", 0, move.start()) + 1, move.group(1)
                break


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    found = [(path.relative_to(root), line, name) for path in sorted((root / "core").rglob("*.cpp")) for line, name in faults(path)]
    for path, line, name in found:
        print(f"FAILED: {path}:{line}: `{name}` is moved into a call that also asks it something: ask before")
    print(f"{len(found)} found")
    return bool(found)


sys.exit(main())
