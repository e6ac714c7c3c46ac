#!/usr/bin/env python3
"""seldom.py KIND AMOUNT SEED > jobs.jsonl    what the pairs without a record are mostly made of

turned: adapters beside LoRA on packed bases of all libraries, under every kind of checkpoints, evaluated between steps. tuned: LoRA beside trained
tables, tied and not, under optimizers that public jobs have beside it, with accumulation. lengthened: encoder-decoders whose rows are padded, with
adapters, smoothed labels, optimizers and evaluation. aligned: TRL's tasks by LoRA and QLoRA under losses in chunks, padding, accumulation and
checkpoints in host memory. split: parts that stay as they are under FSDP and ZeRO, with accumulation and evaluation.
Jobs that PEFT, transformers, TRL or a strategy refuse leave no record.
"""
import functools
import json

import crossed
import mixed
import recipes
import threes
import varied

BESIDE_LORA = ("adafactor", "muon", "lion_8bit", "paged_lion_8bit", "paged_adamw_8bit", "adamw_torch_8bit", "schedule_free_adamw", "schedule_free_radam", "galore_adamw",
               "apollo_adamw", "came_pytorch", "prodigy", "ademamix_8bit", "adopt_adamw", "stable_adamw", "rmsprop_bnb_8bit")
TABLES = ({"modules_to_save": ["embed_tokens", "lm_head"]}, {"modules_to_save": ["embed_tokens"]}, {"modules_to_save": ["lm_head"]}, {})
CHECKPOINTS = ("none", "full", "full", "offload", {"every": 2}, {"selective": ["core_attn"]})
varied.by_type, crossed.jobs_of = map(functools.cache, (varied.by_type, crossed.jobs_of))


def checkpoints(job, dice):
    job.update(gradient_checkpointing=dice.choice(CHECKPOINTS), use_reentrant=dice.random() < 0.4)


def stripped(job, *further):
    for key in (*recipes.WORDS, "freeze", "freeze_vision", *further):
        job.pop(key, None)
    return job


def turned(ident, dice):
    kinds = ("oft", "boft", "vera", "loha", "lokr", "ia3", "adalora")
    given = dice.choice([one["lora"] for one in crossed.jobs_of("records-adapters") if one["lora"].get("kind") in kinds])
    job = stripped(recipes.decoder(dice, ident, (None, "dense", "moe", "ssm")))
    if dice.random() < 0.25:                                               # OFT alone has classes for these
        job = json.loads(json.dumps(dice.choice(crossed.jobs_of("records-quantised"))))
        job.update(id=ident, micro_batch=dice.choice([1, 2]), seq_len=dice.choice([300, 700]))
        given = dice.choice([one["lora"] for one in crossed.jobs_of("records-quantised") if one["lora"].get("kind") == "oft"])
    elif dice.random() < 0.7:
        recipes.quantised(job, dice)
    else:
        job["method"] = "lora"
    job["lora"] = crossed.adapter_for(given)
    if job["precision"] not in ("bf16", "bf16_amp"):
        job["lora"].pop("adapter_dtype", None)
    checkpoints(job, dice)
    if dice.random() < 0.6:
        threes.evaluated(job, dice)
    return job


def tuned(ident, dice):
    job = stripped(recipes.decoder(dice, ident, (None, "dense")), "task")
    job["config"]["tie_word_embeddings"] = dice.random() < 0.5
    job.update(method=dice.choice(["lora", "lora", "qlora"]), optimizer=dice.choice(BESIDE_LORA), grad_accum=dice.choice([1, 2, 3]))
    if job["method"] == "qlora":
        recipes.quantised(job, dice)
    if job["optimizer"].startswith(("galore", "apollo")):
        job.update(optim_args={"rank": dice.choice([4, 16])}, optim_target_modules=dice.choice(["all-linear", ["lora_A"], ["q_proj", "embed"]]))
    job["lora"] = {"r": dice.choice([8, 32]), "alpha": 16, "dropout": 0.0, "target_modules": dice.choice(["all-linear", ["q_proj", "v_proj"]]), **dice.choice(TABLES)}
    checkpoints(job, dice)
    return job


def lengthened(ident, dice):
    job = recipes.seq2seq(ident, dice)
    job.update(padding=True, padded_tokens=dice.choice([7, 64, 100]), use_reentrant=False)
    return threes.three(job, dice, (threes.adapter, threes.optimizer, threes.added, threes.smooth, threes.evaluated, threes.still, threes.width, threes.loose))


def aligned(ident, dice):
    job = (recipes.compared if dice.random() < 0.65 else recipes.generated)(ident, dice)
    job["padding"] = dice.random() < 0.4 and job["task"] not in ("grpo", "rloo", "gkd", "online_dpo", "ppo")
    return threes.three(job, dice, (threes.twist, threes.twist, threes.optimizer, threes.added, threes.width, threes.evaluated, threes.noise))


def split(ident, dice):
    wanted = dice.choice(["texts", "texts", "sights"])
    groups = varied.plain((wanted,), lambda job: job.get("kind") not in ("audio", "speech"))
    likes = groups[dice.choice(sorted(groups, key=str))]
    job = stripped(varied.spread(dice.choice(likes), likes, wanted, ident, dice))
    job["grad_accum"] = dice.choice([2, 3, 4])
    if job["method"] == "full":
        job["freeze"] = [dice.choice(threes.PARTS)]
    elif job["lora"].get("kind", "lora") == "lora" and job["parallelism"]["strategy"] != "fsdp1":
        job["beside"] = [dice.choice(["norm", "embed", "projector|merger|connector", "bias"])]
    if wanted == "texts" and dice.random() < 0.4:
        job["evaluation"] = {"micro_batch": job["micro_batch"] * dice.choice([1, 4]), "batches": 2}
        if job["parallelism"]["strategy"] == "zero3":
            job["evaluation"]["from_step"], job["steps"] = 2, 4
    return job


if __name__ == "__main__":
    mixed.write(globals(), "seldom", "seldom ")
