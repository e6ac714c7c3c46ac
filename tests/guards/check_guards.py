#!/usr/bin/env python3
"""Guards: exit statuses, SARIF, the hook's entry run as pre-commit runs it, and the action's script against a release in a folder.

    tests/guards/check_guards.py COMMAND
"""
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github/actions/check"
SMALL = "base_model: meta-llama/Llama-3.2-1B\nadapter: lora\nlora_r: 16\nlora_target_linear: true\nsequence_len: 2048\n"
LARGE = "base_model: meta-llama/Llama-2-70b-hf\nsequence_len: 2048\nmicro_batch_size: 4\nbf16: true\noptimizer: adamw_torch\n"
MISSING = "base_model: nobody/knows-this-model-at-all\nadapter: lora\nmicro_batch_size: 1\nsequence_len: 512\n"

failures = []


def check(what, holds, shown=""):
    if not holds:
        failures.append(f"{what}: {shown}"[:600])


class Place:
    """A folder with jobs, and the command run in it."""

    def __init__(self, folder, command):
        self.path, self.command = pathlib.Path(folder), command
        (self.path / "configs").mkdir()
        for name, text in (("configs/small job.yaml", SMALL), ("configs/large.yaml", LARGE), ("missing.yaml", MISSING),
                           ("ci.yaml", "on: [push]\njobs: {}\n")):
            (self.path / name).write_text(text)

    def run(self, *words, status=0):
        done = subprocess.run([self.command, *words], cwd=self.path, capture_output=True, text=True, timeout=120)
        check(f"{words}: status {done.returncode}, not {status}", done.returncode == status, done.stdout + done.stderr)
        return done.stdout


def check_statuses(place):
    fits = place.run("check", "configs/small job.yaml", "ci.yaml", "--gpu", "4090")
    check("a file that is no job is passed over", "1 checked, 0 too large; 1 file is no job" in fits, fits)
    large = place.run("check", "configs/small job.yaml", "configs/large.yaml", "--gpu", "4090", status=1)
    check("what is too large is told with its line", "configs/large.yaml:3: does not fit." in large, large)
    place.run("check", "missing.yaml", "--gpu", "4090")
    place.run("check", "missing.yaml", "--gpu", "4090", "--strict", status=1)
    place.run("check", "configs/large.yaml", status=2)
    longer = place.run("check", "--model", "gpt2", "--seq-len", "2048", "--gpu", "4090")
    check("what cannot run is not said to fit", longer.startswith("not estimated. The job needs") and "1024" in longer, longer)
    place.run("check", "configs/large.yaml", "--gpu", "no such card", status=2)
    place.run("check", "no-such-file.yaml", "--gpu", "4090", status=2)
    place.run("check", "--model", "llama-2-70b", "--gpu", "4090", status=1)
    rows = json.loads(place.run("check", "configs/large.yaml", "ci.yaml", "--gpu", "4090", "--json", status=1))["checks"]
    check("verdicts", [row["verdict"] for row in rows] == ["does not fit", "no job"], rows)


def check_sarif(place):
    """Against what the standard asks of a log (sarif-v2.1.0, sections 3.13, 3.14, 3.18, 3.27 to 3.30)."""
    text = place.run("check", "configs/small job.yaml", "configs/large.yaml", "missing.yaml", "--gpu", "4090", "--sarif",
                     status=1)
    log = json.loads(text)
    check("version", log["version"] == "2.1.0" and len(log["runs"]) == 1, text)
    run = log["runs"][0]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    check("driver", run["tool"]["driver"]["name"] == "Tidemark" and all(r["shortDescription"]["text"] for r in rules.values()))
    found = [(r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]) for r in run["results"]]
    check("results", [(rule, level) for rule, level, _ in found] ==
          [("does-not-fit", "error"), ("not-estimated", "note")], found)
    check("rules are known", all(rule in rules for rule, _, _ in found))
    check("messages", all(r["message"]["text"] for r in run["results"]))
    check("place", found[0][2] == {"artifactLocation": {"uri": "configs/large.yaml"}, "region": {"startLine": 3}}, found)
    one = json.loads(place.run("estimate", "configs/small job.yaml", "--vram-gb", "4", "--sarif", status=1))
    check("paths are URIs", one["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] ==
          "configs/small%20job.yaml", one)
    none = json.loads(place.run("estimate", "configs/small job.yaml", "--gpu", "4090", "--sarif"))
    check("what fits is no result", none["runs"][0]["results"] == [], none)


def check_hook(place):
    """pre-commit runs `entry args… filenames…` without a shell, entry split as shlex does."""
    import shlex

    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    hook = dict(re.findall(r"^(?:- |  )(\w+): (.+)$", text, re.M))
    check("the hook's keys", hook["id"] == "tidemark" and hook["language"] == "system", hook)
    entry = shlex.split(hook["entry"])
    check("the hook's entry", entry[0] == "tidemark", entry)
    place.run(*entry[1:], "--gpu", "4090", "configs/small job.yaml", "ci.yaml")
    place.run(*entry[1:], "--gpu", "4090", "configs/small job.yaml", "configs/large.yaml", status=1)


def release_in(folder, command):
    """What .ci/release.py makes of the command."""
    release = folder / "releases" / "v0"
    subprocess.run([sys.executable, "-B", ROOT / ".ci/release.py", "--command", command, release], check=True, capture_output=True)
    archive = release / f"tidemark-linux-{platform.machine()}.tar.gz"
    sums = dict(reversed(line.split()) for line in (release / "SHA256SUMS").read_text().splitlines())
    check("each file has its sum", all(hashlib.sha256((release / name).read_bytes()).hexdigest() == sum_ for name, sum_ in sums.items())
          and set(sums) == {path.name for path in release.iterdir()} - {"SHA256SUMS"}, sums)
    with tarfile.open(archive) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames()}
    check("what is in the archive", {"tidemark", "LICENSE", "THIRD_PARTY_NOTICES.txt", "man/man1/tidemark.1",
                                     "completions/tidemark.bash"} <= names, names)
    bill = json.loads((release / "sbom.cdx.json").read_text())
    notices = (ROOT / "THIRD_PARTY_NOTICES.txt").read_text().lower()
    missing = [part["name"] for part in bill["components"] if part["name"] not in ("libstdc++",)
               and part["name"].split("-")[0].lower() not in notices]
    check("what is compiled in has its notice", bill["bomFormat"] == "CycloneDX" and not missing, missing)
    return release, sums[archive.name]


def check_action(place, command):
    release, digest = release_in(place.path, command)
    inputs = re.findall(r"(TIDEMARK_\w+): \$\{\{ inputs\.(\w+) \}\}", (ACTION / "action.yml").read_text())
    check("the action hands on its inputs", len(inputs) == 7, inputs)

    def run(status, **given):
        settings = {"files": "configs/**/*.yaml\nci.yaml", "gpu": "4090", "arguments": "", "version": "v0", "sha256": "",
                    "releases": f"file://{release.parent}", "sarif": "tidemark.sarif", **given}
        environment = {**os.environ, **{name: settings[key] for name, key in inputs}}
        done = subprocess.run([ACTION / "check.sh"], cwd=place.path, env=environment, capture_output=True, text=True, timeout=120)
        check(f"the action with {given}: status {done.returncode}, not {status}", done.returncode == status,
              done.stdout + done.stderr)
        return done.stdout

    run(1)
    check("its SARIF", len(json.loads((place.path / "tidemark.sarif").read_text())["runs"][0]["results"]) == 1)
    run(0, files="configs/small*.yaml")
    run(0, files="configs/small*.yaml", sha256=digest)
    run(2, sha256="0" * 64)
    run(2, files="nothing/*.yaml")
    run(1, files="missing.yaml", arguments="--strict")
    (release / "SHA256SUMS").write_text(f"{'1' * 64}  tidemark-linux-{platform.machine()}.tar.gz\n")
    check("a wrong sum is told", "SHA-256 differs" in run(2))


def main():
    command = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder, command)
        check_statuses(place)
        check_sarif(place)
        check_hook(place)
        check_action(place, command)
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
