#!/usr/bin/env python3
"""map_jobs.py AMOUNT SEED [further] [TYPE...] > jobs.jsonl: recorded jobs of one GPU, laid on several cards by device_map="auto" ("map-…").

A type of model at a time (decoders, mixtures, hybrids and models that see): its config, batch and kernels are those of a recorded job; cards, method,
masks, checkpoints and precision are drawn. Each job is recorded once for every card. With `further` as the first type all of them evaluate, have
packed rows or learn from preferences, too ("mapf-…").
"""
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import varied  # noqa: E402

KEPT = ("config", "kind", "experts", "kernels", "images", "image_size", "tiles", "seq_len", "attention")
CHECKPOINTS = ({"gradient_checkpointing": "none"}, {"gradient_checkpointing": "full", "use_reentrant": False}, {"gradient_checkpointing": "full", "use_reentrant": True})


EVALUATED = {"evaluation": {"micro_batch": 6}}
FURTHER = (EVALUATED, {"evaluation": {"micro_batch": 4, "batches": 3, "keep_logits": True}}, {"packing": True}, {"packing": True, "attention": "flash_attention_2"}, {"packing": True, **EVALUATED})
PREFERENCES = ({"task": "dpo", "reference": "adapter"}, {"task": "dpo", "reference": "precomputed"}, {"task": "kto", "reference": "adapter"}, {"task": "orpo"}, {"task": "cpo"}, {"task": "simpo"},
               {"task": "dpo", "reference": "adapter", **EVALUATED})


def is_laid(job):
    """A causal language model, or one that sees and has one within."""
    name = str((job["config"].get("architectures") or [""])[0])
    return "architecture" not in job and job.get("kind", "dense") in ("dense", "moe", "ssm", "vlm") and name.endswith(("ForCausalLM", "ForConditionalGeneration", "LMHeadModel"))


def deepened(config):
    """Six layers at least, in the order that they have: fewer lie on one card beside a large token table."""
    config = json.loads(json.dumps(config))
    text = next((config[key] for key in ("text_config", "llm_config") if isinstance(config.get(key), dict)), config)
    for key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"):
        if isinstance(text.get(key), int) and text[key] < 6:
            times = -(-6 // text[key])
            for name, value in text.items():
                if isinstance(value, list) and len(value) == text[key]:
                    text[name] = value * times
            text[key] *= times
    return config


def one(kind, base, dice):
    job = {key: base[key] for key in KEPT if key in base}
    job["config"] = deepened(job["config"])
    method = dice.choice(("lora", "lora", "qlora", "full"))
    precision = "amp_bf16" if method == "full" and dice.random() < 0.3 else "bf16" if method == "full" else "bf16_amp"
    job.update(method=method, precision=precision, micro_batch=dice.choice((1, 2, 3)), padding=dice.random() < 0.5, grad_accum=1,
               optimizer="adamw_torch_fused", max_grad_norm=1.0, loss="default", **dice.choice(CHECKPOINTS))
    if method != "full":
        job["lora"] = {"r": 16, "alpha": 32, "dropout": 0.0, "target_modules": "all-linear"}
    if dice.further:
        sees = "images" in job or job.get("kind") == "vlm"
        job.update(dice.choice(FURTHER[:2] if sees else FURTHER + PREFERENCES * (method != "full")))
    cards = dice.choice((2, 2, 3))
    for rank in range(cards):
        yield {**job, "id": f"{'mapf' if dice.further else 'map'}-{kind}-{method}-{cards}g{rank}-{dice.seed_of}", "parallelism": {"strategy": "map", "device_map": cards, "rank": rank}}


def main():
    amount, seed, kinds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    dice = random.Random(seed)
    dice.seed_of, dice.further = seed, kinds[:1] == ["further"]
    kinds = kinds[dice.further:]
    bases = {**varied.by_type("texts"), **varied.by_type("sights")}
    laid = {kind: [job for job in jobs if is_laid(job)] for kind, jobs in sorted(bases.items()) if not kinds or kind in kinds}
    laid = {kind: jobs for kind, jobs in laid.items() if jobs}
    for kind in dice.sample(sorted(laid), min(amount, len(laid))):
        for job in one(kind, dice.choice(laid[kind]), dice):
            print(json.dumps(job))


if __name__ == "__main__":
    main()
