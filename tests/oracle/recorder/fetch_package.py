#!/usr/bin/env python3
"""fetch_package.py PACKAGE==RELEASE FOLDER: the wheel or source archive of a release, as pip's index has it, unpacked into FOLDER and never built (a build
of what is unpacked here would want a GPU's compiler).  Prefers a wheel for any system, then one for Linux, then the source archive."""
import io
import json
import os
import sys
import tarfile
import urllib.request
import zipfile

from pip._internal.models.index import PyPI


def get(url, accept="*/*"):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=300) as answer:
        return answer.read()


def rank(name):
    """The order in which files of one release are preferred; None: not at all."""
    if name.endswith("none-any.whl"):
        return 0
    if name.endswith(".whl"):
        return 1 if "manylinux" in name and "x86_64" in name else None
    return 2 if name.endswith(".tar.gz") else None


def main(wanted, folder):
    package, release = wanted.split("==")
    page = json.loads(get(f"{PyPI.simple_url}/{package}/", "application/vnd.pypi.simple.v1+json"))
    stem = package.replace("-", "_").lower() + "-" + release
    files = [f for f in page["files"] if rank(f["filename"]) is not None
             and f["filename"].replace("-", "_").lower().startswith(stem.replace("-", "_"))
             and f["filename"][len(stem):][:1] in "-." and not f["filename"][len(stem):].startswith(".post")]
    if not files:
        sys.exit(f"fetch_package.py: {wanted} is not to be had")
    best = min(files, key=lambda f: rank(f["filename"]))
    data = io.BytesIO(get(best["url"]))
    os.makedirs(folder, exist_ok=True)
    if best["filename"].endswith(".whl"):
        zipfile.ZipFile(data).extractall(folder)
        return
    with tarfile.open(fileobj=data) as archive:
        for member in archive.getmembers():
            member.name = member.name.partition("/")[2].removeprefix("src/")
            if member.name:
                archive.extract(member, folder, filter="data")


if __name__ == "__main__":
    main(*sys.argv[1:])
