#!/usr/bin/env python3
"""Draws requests over all models and all options, the same ones for a seed: describe.json > requests.

    tidemark describe --json | draw.py AMOUNT [SEED] > tests/frozen/drawn.jsonl

Every option of `describe` that the engine models is drawn, by its type; what it may be comes from its row. Of an
answer only that it stays is asked, so mixtures that are refused are welcome: they must be refused in the same words.
"""
import json
import pathlib
import random
import sys

CATALOG = pathlib.Path(__file__).resolve().parents[2] / "catalog"
# Values of free options, where a row says only "a string" or "a number".
TEXTS = {
    "freeze": [["embed_tokens"], ["layers.0"], ["self_attn"], ["lm_head", "norm"], ["*.mlp.*"]],
    "adapter.target_modules": ["all-linear", "attention", ["q_proj", "v_proj"], ["c_attn"], ["query_key_value"],
                               ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], "all"],
    "adapter.modules_to_save": [["lm_head"], ["embed_tokens"], ["lm_head", "embed_tokens"]],
    "framework.version": ["4.40", "4.44.2", "4.46", "4.48.1", "4.57", "5.12"],
}
NUMBERS = {
    "micro_batch_size": [1, 1, 2, 3, 8],
    "sequence_length": [37, 128, 512, 1000, 1024, 4096],
    "gradient_accumulation_steps": [1, 2, 4],
    "adapter.r": [1, 8, 64],
    "quantization.bits": [4, 8],
    "quantization.group_size": [64, 128],
    "gradient_checkpointing.every": [2, 3],
}
# How a job is trained is drawn for each; of the other options, a few.
ALWAYS = ["method", "precision", "micro_batch_size", "sequence_length"]
# The model is drawn first; cards and a whole configuration have draws of their own.
ELSEWHERE = {"model", "config", "parameters", "architecture", "gpu", "gpus", "overrides", "calibration"}


def value_of(option, dice):
    name = option["name"]
    if name in TEXTS:
        return dice.choice(TEXTS[name])
    if name in NUMBERS:
        return dice.choice(NUMBERS[name])
    words = [v["name"] for v in option.get("values") or [] if v.get("modelled", True)]
    if option["type"] == "boolean":
        return dice.choice([True, False])
    if option["type"] == "choices":
        return dice.sample(words, min(len(words), dice.randint(1, 2)))
    if words:
        return dice.choice(words)
    if option["type"] in ("integer", "number"):
        low, high = option.get("minimum") or 0, min(option.get("maximum") or 4, 4)
        return dice.choice([low, high]) if option["type"] == "integer" else dice.choice([low, high / 2, high])
    return None


def matters(option, request):
    """Adapter options need adapters, quantisation options quantised weights; either said elsewhere is one more warning."""
    if option["group"] == "adapter":
        return request["method"] in ("lora", "qlora")
    if option["group"] == "quantization":
        return request["method"] == "qlora"
    return True


def put(request, name, value):
    *path, last = name.split(".")
    at = request
    for key in path:
        if not isinstance(at.get(key), dict):
            at[key] = {}  # an object stands where a word did
        at = at[key]
    at[last] = value


def draw(options, models, cards, dice):
    request = {"schema": 1, "model": dice.choice(models)}
    rest = [o for o in options if o["name"] not in ALWAYS]
    chosen = [o for o in options if o["name"] in ALWAYS] + dice.sample(rest, len(rest))
    wanted = dice.randint(1, 7)
    for option in chosen:
        value = value_of(option, dice)
        if value is None or not matters(option, request):
            continue
        if option["name"] not in ALWAYS:
            wanted -= 1
        if wanted < 0:
            break
        put(request, option["name"], value)
    if request["method"] == "freeze" and "freeze" not in request:
        request["freeze"] = dice.choice(TEXTS["freeze"])
    if dice.random() < 0.3:
        request["gpu"] = dice.choice(cards)
    if dice.random() < 0.06:
        request["verb"] = dice.choice(["fit", "advise", "map"])
        request.setdefault("gpu", "A100-80GB")
        if request["verb"] == "map":
            request.update(batches=[1, 4], sequences=[512, 2048], exact=dice.choice([True, False]))
    return request


def main():
    amount, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    dice = random.Random(seed)
    described = json.load(sys.stdin)
    options = [o for o in described["options"]
               if o.get("modelled", True) and o["name"].split(".")[0] not in ELSEWHERE]
    read = lambda name: json.loads((CATALOG / name).read_text(encoding="utf-8"))
    modelled = set(described["model_types"])
    # Of the models that are refused, a few: how they are refused is an answer, too.
    models = [model["id"] for model in read("models.json")["models"]
              if model.get("config", {}).get("model_type") in modelled or dice.random() < 0.1]
    cards = [card["name"] for card in read("gpus.json")["gpus"]]
    for _ in range(amount):
        print(json.dumps(draw(options, models, cards, dice)))


if __name__ == "__main__":
    main()
