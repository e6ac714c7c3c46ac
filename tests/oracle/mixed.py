#!/usr/bin/env python3
"""mixed.py KIND AMOUNT SEED > jobs.jsonl    pairs of options that other draws seldom have and that were wrong most often

padded: models that see or hear, whose text is padded. offloaded: OffloadActivations beside families of all kinds. evaluated: what sees, hears or
encodes, evaluated between steps. preferred: answers compared by models that see. heads: classifiers of rows, tokens and spans with LoRA and modules
saved beside it, under Liger's kernels, noise and smoothed labels. adapted: adapters beside LoRA on packed weights. noised: NEFTune beside what
sees, hears or encodes. Jobs that PEFT, transformers or TRL refuse leave no record.
"""
import json
import random
import sys

import crossed
import varied

OWN_LOSS = ("qwen2_audio", "granite_speech", "llama4", "gemma3")        # whose loss is of the tokens that are not padding


def base_of(wanted, dice, fits=lambda job: True):
    groups = varied.by_type(wanted)
    names = sorted((name for name in groups if any(map(fits, groups[name]))), key=str)
    name = dice.choice(names)
    likes = [job for job in groups[name] if fits(job)]
    return dice.choice(likes), likes


def plain(base, likes, wanted, ident, dice):
    job = varied.draw(base, likes, wanted, ident, dice)
    if isinstance(job["gradient_checkpointing"], dict) or job["gradient_checkpointing"] == "offload":
        job["gradient_checkpointing"] = "full"
    return job


def padded(ident, dice):
    own = dice.random() < 0.6
    base, likes = base_of("sights", dice, lambda job: bool(job.get("seq_len")) and (not own or job["config"].get("model_type") in OWN_LOSS))
    job = plain(base, likes, "sights", ident, dice)
    job.update(padding=True, loss="default")
    if dice.random() < 0.25:
        job["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    return job


def offloaded(ident, dice):
    wanted = dice.choice(["sights", "texts"])
    base, likes = base_of(wanted, dice)
    job = {**plain(base, likes, wanted, ident, dice), "activation_offloading": True}
    job.pop("keep_outputs", None)
    return job


def evaluated(ident, dice):
    wanted = dice.choice(["sights", "texts"])
    base, likes = base_of(wanted, dice, lambda job: wanted == "sights" or job.get("kind") in ("encoder", "encdec", "moe", "ssm"))
    return {**plain(base, likes, wanted, ident, dice), "evaluation": {"micro_batch": dice.choice([1, 2, 4, 8])}}


def preferred(ident, dice):
    base, likes = base_of("sights", dice, lambda job: job.get("kind") == "vlm" and job.get("images"))
    job = plain(base, likes, "sights", ident, dice)
    for key in ("freeze", "keep_outputs", "outputs_fp32"):                 # accelerate converts what TRL's trainers are handed
        job.pop(key, None)
    job.update(task=dice.choice(["dpo", "dpo", "kto"]), loss="default", micro_batch=dice.choice([1, 2]))
    if job["method"] == "qlora":
        job["method"] = "lora"
        for key in ("bits", "double_quant", "kbit_prepare"):
            job.pop(key, None)
    job["reference"] = dice.choice(["copy", "precomputed"] if job["method"] == "full" else ["adapter", "adapter", "precomputed", "copy"])
    if job["task"] == "kto":
        job["micro_batch"] = 2
    if dice.random() < 0.3:
        job["evaluation"] = {"micro_batch": 2}
    if dice.random() < 0.2:
        job["activation_offloading"] = True
    return job


HEADS = (("ForSequenceClassification", "SEQ_CLS"), ("ForTokenClassification", "TOKEN_CLS"), ("ForQuestionAnswering", "QUESTION_ANS"))
STEMS = ("ForCausalLM", "ForMaskedLM", "LMHeadModel")


def heads(ident, dice):
    base, likes = base_of("texts", dice, lambda job: job.get("kind") in (None, "dense", "moe", "encoder") and
                          str(job["config"].get("architectures", [""])[0]).endswith(STEMS))
    job = plain(base, likes, "texts", ident, dice)
    stem = job["config"]["architectures"][0]
    for part in STEMS:
        stem = stem.removesuffix(part)
    for key in ("packing", "neftune", "freeze", "evaluation"):
        job.pop(key, None)
    lists = [one["lora"]["target_modules"] for one in likes if isinstance(one.get("lora", {}).get("target_modules"), list)]
    job.update(method=dice.choice(["full", "lora", "lora", "lora", "qlora"]), loss="default")
    suffix, task = dice.choice(HEADS)
    job["architecture"] = stem + suffix
    if job["method"] != "full":
        job["lora"] = {"r": dice.choice([8, 16]), "alpha": 16, "dropout": dice.choice([0.0, 0.1]), "target_modules": dice.choice(lists or [["q_proj", "v_proj"]]),
                       "task_type": dice.choice([task, task, None])}
        if dice.random() < 0.4:
            job["lora"]["modules_to_save"] = [dice.choice(["embed_tokens", "word_embeddings", "score", "classifier", "norm"])]
    if job["method"] == "qlora":
        job.update(bits=dice.choice([4, 8]), double_quant=dice.random() < 0.5, kbit_prepare=dice.choice([True, False]))
    if dice.random() < 0.3 and job["config"]["model_type"] in ("llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "phi3"):
        job["liger"] = ["rms_norm", "swiglu", "rope"]
    if dice.random() < 0.2:
        job["neftune"] = 5.0
    if dice.random() < 0.25:
        job["evaluation"] = {"micro_batch": dice.choice([1, 2, 8])}
    return job


def adapted(ident, dice):
    sets = {name: crossed.jobs_of(f"records-{name}") for name in ("adapters", "quantised")}
    base, likes = base_of("texts", dice, lambda job: job.get("kind") in (None, "dense", "moe", "encdec") and "architecture" not in job)
    job = plain(base, likes, "texts", ident, dice)
    job.update(method="qlora", bits=dice.choice([4, 4, 8]), double_quant=dice.random() < 0.5, kbit_prepare=dice.choice([True, True, False]))
    job.pop("freeze", None)
    if job["precision"] in ("fp32", "fp16"):
        job["precision"] = "bf16_amp"
    apart = [one["lora"] for one in sets["adapters"] if one["lora"].get("kind") not in ("loha", "lokr", "prefix_tuning")]
    job["lora"] = crossed.adapter_for(dice.choice(apart))
    if job["precision"] not in ("bf16", "bf16_amp"):
        job["lora"].pop("adapter_dtype", None)
    if dice.random() < 0.3:
        packed = dice.choice(sets["quantised"])
        job.pop("bits"), job.pop("double_quant")
        job.update({key: packed[key] for key in ("packed", "precision", "kbit_prepare", "release") if key in packed})
        if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
            job["attention"] = "sdpa"
    return job


def noised(ident, dice):
    wanted = dice.choice(["sights", "sights", "texts"])
    base, likes = base_of(wanted, dice, lambda job: wanted == "sights" or job.get("kind") in ("encoder", "encdec"))
    return {**plain(base, likes, wanted, ident, dice), "neftune": 5.0}


def write(kinds, prefix, salt=""):
    """What the command line asks for: a kind of them, how many, a seed."""
    how, amount, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dice = random.Random(f"{salt}{how} {seed}")
    for i in range(amount):
        job = kinds[how](f"{prefix}{seed}-{how}-{i:03d}", dice)
        job["id"] += f"-{job['config'].get('model_type')}"
        print(json.dumps(job))


if __name__ == "__main__":
    write(globals(), "mixed")
