#!/usr/bin/env python3
"""later.py PEFT_FOLDER < made.jsonl > later.jsonl: what transformers' classes and PEFT's LoRA on them count, of each configuration three cases: all
parameters; those of LoRA on "all-linear"; those of LoRA on two of the class's own names of linear layers (the first and the last that lie in layers).

Runs where transformers and torch are (tests/oracle/recorder/chroot.sh lays such a system out), without weights: each model is made on the meta device.
later.jsonl, which check_counts.py holds the engine to, is what this wrote with transformers 5.24.0 and PEFT 0.18.0."""
import json
import re
import sys
import warnings

sys.path[:0] = [sys.argv[1]]
warnings.filterwarnings("ignore")

import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import AutoConfig  # noqa: E402

# Where LoRA on all linear layers, once made, fails in forward, which the engine refuses: routers that return two tensors, groups of heads apart,
# layers that are convolutions.
FAILS = {"llama4", "llama4_text", "phimoe", "deepseek_v4", "squeezebert"}
TASKS = {"ForSequenceClassification": "SEQ_CLS", "ForTokenClassification": "TOKEN_CLS", "ForQuestionAnswering": "QUESTION_ANS",
         "ForQuestionAnsweringSimple": "QUESTION_ANS"}
RELEASE = {"name": "transformers", "version": ".".join(transformers.__version__.split(".")[:2]), "peft": ".".join(peft.__version__.split(".")[:2])}


def made(fields):
    fields = dict(fields)
    cls = getattr(transformers, fields["architectures"][0])
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        return cls(config)


def total(model):
    return sum(p.numel() for p in model.parameters())


def own_names(model):
    """Of the linear layers in lists of layers: the last part of the first one's name and of the last one's, but for what a convolution is called, too
    (PEFT adapts it, which is not modelled)."""
    others = {name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.modules.conv._ConvNd)}
    names = [name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and re.search(r"\.\d+\.", name)]
    names = [name for name in names if not name.isdigit() and name not in others]
    return sorted({names[0], names[-1]}) if names else None


def main():
    for line in sys.stdin:
        fields = json.loads(line)["request"]["config"]
        kind = fields["model_type"]
        request = {"config": fields, "framework": RELEASE, "sequence_length": 64, "kernels": "torch"}
        try:
            model = made(fields)
            names = own_names(model)
            task = next((task for end, task in TASKS.items() if fields["architectures"][0].endswith(end)), None)
            print(json.dumps({"id": f"later-{kind}-full", "request": {**request, "method": "full"}, "total": total(model)}, separators=(",", ":")))
            for case, targets in (("all-linear", "all-linear"), ("names", names)):
                if not targets or (case == "all-linear" and kind in FAILS):
                    continue
                request["method"], request["adapter"] = "lora", {"r": 4, "target_modules": targets}
                row = {"id": f"later-{kind}-{case}", "request": request}
                try:
                    adapted = get_peft_model(made(fields), LoraConfig(r=4, target_modules=targets, task_type=task))
                    row["total"] = total(adapted)
                    row["trainable"] = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
                except (ValueError, TypeError) as error:
                    row["refused_by_peft"] = str(error)[:80]
                print(json.dumps(row, separators=(",", ":")), flush=True)
        except Exception as error:  # noqa: B902 - code of their own, packages that are absent
            print(f"{kind}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)


if __name__ == "__main__":
    main()
