#!/usr/bin/env python3
"""Draws requests of all models and options, the same ones for a seed: tidemark describe --json | draw.py AMOUNT [SEED]

Options that decide what lives how long are mixed freely; many a mixture is refused, and must be refused in the same
words by every build.
"""
import json
import pathlib
import random
import sys

CATALOG = pathlib.Path(__file__).resolve().parents[2] / "catalog" / "models.json"


def main():
    amount, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    dice = random.Random(seed)
    words = {
        option["name"]: [value["name"] for value in option.get("values") or [] if value.get("modelled", True)]
        for option in json.load(sys.stdin)["options"]
    }
    models = [model["id"] for model in json.loads(CATALOG.read_text(encoding="utf-8"))["models"]]

    def some(values):
        return dice.sample(values, min(len(values), dice.randint(1, 2)))

    for _ in range(amount):
        request = {"schema": 1, "model": dice.choice(models)}
        for name in ("precision", "attention", "optimizer", "loss"):
            request[name] = dice.choice(words[name])
        request["method"] = dice.choice(["full", "lora", "qlora"])
        request["micro_batch_size"] = dice.choice([1, 1, 2, 3, 5])
        request["sequence_length"] = dice.choice([37, 128, 512, 1000, 1024, 4096])
        request["gradient_accumulation_steps"] = dice.choice([1, 1, 2, 4])
        request["gradient_checkpointing"] = dice.choice(
            ["none", "none", "full", "offload", {"every": 2}, {"selective": some(words["gradient_checkpointing.selective"])}])
        if words["liger"] and dice.random() < 0.3:
            request["liger"] = some(words["liger"])
        for name in ("use_reentrant", "padding", "packing", "keep_outputs", "outputs_to_fp32", "zero_grad_to_none",
                     "optimizer_in_backward"):
            if dice.random() < 0.2:
                request[name] = dice.choice([True, False])
        if request["method"] != "full":
            request["adapter"] = {"r": dice.choice([1, 8, 64]), "lora_dropout": dice.choice([0.0, 0.1]),
                                  "use_dora": dice.random() < 0.2}
            if dice.random() < 0.2:
                request["adapter"]["modules_to_save"] = ["lm_head", "embed_tokens"]
        if request["method"] == "qlora":
            request["quantization"] = {"bits": dice.choice([4, 8]), "double_quant": dice.choice([True, False]),
                                       "prepare_kbit": dice.choice([True, False, "norms_only"])}
        if dice.random() < 0.3:
            request["framework"] = {"name": "transformers", "version": dice.choice(["4.40", "4.44", "4.46", "4.50"])}
        if dice.random() < 0.3:
            request["gpu"] = dice.choice(["4090", "H100", "V100", "A100-80GB"])
        print(json.dumps(request))


if __name__ == "__main__":
    main()
