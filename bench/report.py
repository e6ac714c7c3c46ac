#!/usr/bin/env python3
"""Runs the benchmark and writes its figures as a page: bench/report.py build/bin/tidemark_bench docs/performance.md"""
import json
import pathlib
import platform
import re
import subprocess
import sys


def processor():
    try:
        return re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def main():
    program, page = sys.argv[1:]
    run = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_repetitions=7", "--benchmark_min_time=0.2"],
        check=True, capture_output=True, text=True)
    rounds = {}
    for row in json.loads(run.stdout)["benchmarks"]:
        if row["run_type"] == "iteration":
            rounds.setdefault(row["run_name"], []).append(row)
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    lines = [
        "# How fast it is",
        "",
        "Written by `./dev docs` (`bench/report.py`); do not edit it by hand. Processor time of one call, on one core of"
        f" {processor()}, g++ {compiler}, Release build. Each figure is the median and the smallest of 7 rounds of 0.2 s;"
        " on a shared machine the smallest says most.",
        "",
        "| what is timed | layers | median | smallest |",
        "|---|---:|---:|---:|",
    ]
    for name, rows in rounds.items():
        times = sorted(row["cpu_time"] for row in rows)
        assert all(row["time_unit"] == "ns" for row in rows)
        layers = f"{rows[0]['layers']:.0f}" if "layers" in rows[0] else ""
        lines.append(f"| {name} | {layers} | {times[len(times) // 2] / 1000:.1f} µs | {times[0] / 1000:.1f} µs |")
    lines += [
        "",
        "*Peak only* records one step on the tape and takes the highest point of each stretch; equal layers are recorded"
        " once, so its time does not depend on their number. *Everything* also replays every allocation of three steps"
        " through the caching allocator, layer by layer: that is what `reserved` costs, and it grows with the layers. A *map* compiles"
        " the step once and answers 4096 pairs of micro batch size and sequence length (method.md, section 4). *Request to"
        " answer* adds reading and writing JSON, the breakdown with its formulas and the timeline.",
        "",
    ]
    pathlib.Path(page).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
