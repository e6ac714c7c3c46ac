#!/usr/bin/env python3
"""Files read beside one another: a command line belongs to the script that it starts, and to no other.

    tests/exchange/check_beside.py COMMAND
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from checks import Checks

SCRIPT = """import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--how_many", type=int, default=3)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B")
Trainer(model=model, args=TrainingArguments("out", per_device_train_batch_size=args.how_many)).train()
"""
COMMAND_LINE = "python train.py --how_many 7\n"
# What the script is called, and the batch that `python train.py --how_many 7` beside it means.
NAMES = {"train.py": 7, "examples__train.py": 7, "pretrain.py": 3, "other.py": 3}
# A count of GPUs that says how many each axis has, and one that does not: parallelism.data, and what is said of it.
TITAN = """# NOTE: this toml config is a preset for 64 A100 GPUs.
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
[parallelism]
tensor_parallel_degree = """
COUNTED = {
    ("four.yaml", "distributed_type: MULTI_GPU\nnum_processes: 4\n"): (4, []),
    ("two.toml", TITAN + "2\n"): (32, []),
    ("three.toml", TITAN + "3\n"): (None, ["NOT_COUNTED"]),
}


def main() -> int:
    command, checks = sys.argv[1], Checks()
    with tempfile.TemporaryDirectory() as name:
        def read(verb: str, **texts: str) -> dict:
            """Each in a folder of its own: the command opens what a file names, where it lies beside it."""
            folder = pathlib.Path(tempfile.mkdtemp(dir=name))
            files = [folder / file for file in texts]
            for file, text in zip(files, texts.values()):
                file.write_text(text, encoding="utf-8")
            done = subprocess.run([command, verb, *map(str, files), "--json"], capture_output=True, text=True, timeout=60)
            return json.loads(done.stdout or done.stderr)

        for script, batch in NAMES.items():
            got = read("import", **{script: SCRIPT, "run.sh": COMMAND_LINE})
            checks.expect(script, got["request"].get("micro_batch_size"), batch)
        for (file, text), (data, said) in COUNTED.items():
            checks.expect(file, read("import", **{file: text})["request"].get("parallelism", {}).get("data"), data)
            issues = read("estimate", **{file: text})["issues"]
            checks.expect(file, [issue["code"] for issue in issues if issue["path"].strip("/") == "world_size"], said)
    print(f"{len(NAMES) + 2 * len(COUNTED)} readings, {checks.failures} wrong")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
