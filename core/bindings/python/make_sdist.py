#!/usr/bin/env python3
"""Writes the source distribution: the tree that the wheel is built from, with pyproject.toml at its top.

    make_sdist.py FOLDER     FOLDER/tidemark-VERSION.tar.gz
"""
import io
import pathlib
import re
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TAKEN = ["CMakeLists.txt", "LICENSE", "THIRD_PARTY_NOTICES.txt", "catalog", "cmake", "core"]
INSIDE = HERE.relative_to(ROOT).as_posix()


def project_at_the_top():
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    for old, new in (('cmake.source-dir = "../../.."', 'cmake.source-dir = "."'),
                     ('wheel.packages = ["tidemark"]', f'wheel.packages = ["{INSIDE}/tidemark"]'),
                     ('readme = "README.md"', f'readme = "{INSIDE}/README.md"')):
        assert old in text, old
        text = text.replace(old, new)
    return text


def metadata(project):
    field = dict(re.findall(r'^(name|version|description|requires-python) = "(.*)"$', project, re.M))
    return (f"Metadata-Version: 2.1\nName: {field['name']}\nVersion: {field['version']}\nSummary: {field['description']}\n"
            f"Requires-Python: {field['requires-python']}\n\n{(HERE / 'README.md').read_text(encoding='utf-8')}"), field["version"]


def add(tar, name, data, executable=False):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o755 if executable else 0o644
    tar.addfile(info, io.BytesIO(data))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    project = project_at_the_top()
    about, version = metadata(project)
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *TAKEN], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    top, path = f"tidemark-{version}", folder / f"tidemark-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in sorted(filter(None, listed)):
            if (ROOT / name).is_file():
                add(tar, f"{top}/{name}", (ROOT / name).read_bytes(), name.endswith(".sh"))
        add(tar, f"{top}/pyproject.toml", project.encode())
        add(tar, f"{top}/PKG-INFO", about.encode())
    print(path)


if __name__ == "__main__":
    main()
