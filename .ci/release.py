#!/usr/bin/env python3
"""Packs what was built into a release: archives, bill of materials, changelog, checksums.

    .ci/release.py --command build/release/bin/tidemark [--page dist] [--python build/python/dist] OUT

OUT/tidemark-linux-ARCHITECTURE.tar.gz   command, manual page, completions, licences
OUT/tidemark-VERSION.tgz                 the npm package, where --page has one
OUT/tidemark-VERSION….whl, .tar.gz       the Python package, where --python has one
OUT/tidemark-site.tar.gz                 page and widget as one static folder, where --page has them
OUT/sbom.cdx.json                        CycloneDX 1.5: what is compiled in
OUT/CHANGELOG.md                         subjects of commits since the last tag
OUT/SHA256SUMS                           of all of these
"""
import argparse
import gzip
import hashlib
import io
import json
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What is compiled into the artefacts; docs/dependencies.md says why. Versions: cmake/dependencies.cmake's, or the system's.
COMPONENTS = [
    ("nlohmann-json", "3.11", "MIT", "all"),
    ("CLI11", "2.1", "BSD-3-Clause", "the command"),
    ("libstdc++", "12", "GPL-3.0-with-GCC-exception", "the command"),
    ("emscripten-libc", "3.1.6", "MIT", "the page and the npm package"),
    ("xz-decompress", "0.2.3", "MIT", "the page"),
    ("nanobind", "2", "BSD-3-Clause", "the Python package"),
]


def said(*words):
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def version():
    return re.search(r"project\(tidemark VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


class Archive:
    """A tar whose bytes depend on its files alone."""

    def __init__(self, path):
        self.path, self.bytes = path, io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name, data, mode=0o644):
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(data), mode
        self.tar.addfile(info, io.BytesIO(data))

    def close(self):
        self.tar.close()
        self.path.write_bytes(gzip.compress(self.bytes.getvalue(), 9, mtime=0))


def pack_command(command, out):
    archive, top = Archive(out / f"tidemark-linux-{platform.machine()}.tar.gz"), f"tidemark-{version()}"
    archive.add(f"{top}/tidemark", command.read_bytes(), 0o755)
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.txt", "README.md"):
        archive.add(f"{top}/{name}", (ROOT / name).read_bytes())
    archive.add(f"{top}/man/man1/tidemark.1", said(command, "describe", "--man").encode())
    for shell, name in (("bash", "tidemark.bash"), ("zsh", "_tidemark"), ("fish", "tidemark.fish")):
        archive.add(f"{top}/completions/{name}", said(command, "completion", shell).encode())
    archive.close()


def pack_site(page, out):
    archive = Archive(out / "tidemark-site.tar.gz")
    archive.add("site/index.html", (page / "index.html").read_bytes())
    for path in sorted((page / "widget").iterdir()):
        archive.add(f"site/widget/{path.name}", path.read_bytes())
    archive.close()


def bill_of_materials():
    parts = [{"type": "library", "name": name, "version": number, "licenses": [{"expression": licence}],
              "description": f"in {where}"} for name, number, licence, where in COMPONENTS]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": parts,
            "metadata": {"component": {"type": "application", "name": "tidemark", "version": version(),
                                       "licenses": [{"expression": "MIT"}]}}}


def changelog():
    tag = subprocess.run(["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    subjects = said("git", "log", "--format=- %s", *([f"{tag}..HEAD"] if tag else [])).strip()
    return f"# Tidemark {version()}\n\nSince {tag or 'the beginning'}:\n\n{subjects}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", type=pathlib.Path, required=True)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    asked = parser.parse_args()
    out = asked.out
    out.mkdir(parents=True, exist_ok=True)
    pack_command(asked.command.resolve(), out)
    if asked.page:
        shutil.copy(asked.page / f"tidemark-{version()}.tgz", out)
        pack_site(asked.page, out)
    for path in sorted(asked.python.glob(f"tidemark-{version()}*")) if asked.python else []:
        shutil.copy(path, out)
    (out / "sbom.cdx.json").write_text(json.dumps(bill_of_materials(), indent=2) + "\n")
    (out / "CHANGELOG.md").write_text(changelog())
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (out / "SHA256SUMS").write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    main()
