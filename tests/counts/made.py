#!/usr/bin/env python3
"""made.py < jobs.jsonl > made.jsonl: the order in which transformers' classes make their parameters, which is the order in which ZeRO and FSDP 1
flatten them. A line of standard input has a "request" with a "config"; what is written keeps of each list of layers the first two.

Runs where transformers and torch are (tests/oracle/recorder/chroot.sh lays such a system out), without weights: each model is made on the meta
device. tests/unit/flat_order_test.cpp holds the engine to made.jsonl, which is what this wrote with transformers 5.24.0, one class of each model type.
"""
import json
import re
import sys

import torch
import transformers
from transformers import AutoConfig


def made(request):
    fields = dict(request["config"])
    cls = getattr(transformers, fields["architectures"][0])
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        model = cls(config)
    for name, _ in model.named_parameters():
        number = re.match(r".*?\.(\d+)\.", name)
        if number is None or int(number[1]) < 2:
            yield name


def main():
    seen = set()
    for line in sys.stdin:
        request = {"config": json.loads(line)["request"]["config"]}
        kind = request["config"]["model_type"]
        if kind in seen:
            continue
        seen.add(kind)
        try:
            print(json.dumps({"request": request, "made": list(made(request))}, separators=(",", ":")), flush=True)
        except Exception as error:  # noqa: B902 - code of their own, packages that are absent
            print(f"{kind}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)


if __name__ == "__main__":
    main()
