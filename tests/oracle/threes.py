#!/usr/bin/env python3
"""threes.py KIND AMOUNT SEED > jobs.jsonl    three rare options at once, on what other draws seldom had

pictured, heard, filmed, encoded, translated: what sees, hears, moves, encodes or translates. denoised: denoisers of diffusers and sd-scripts. asked: TRL's tasks.
packed: bases that other libraries quantised. fast: Unsloth. older: former releases. compared: preferences evaluated on several GPUs. mixed_up: experts and hybrids. divided: any of these but Unsloth's
on several GPUs. Of each kind three options are drawn of those that it may have: adapters and optimizers of other packages, evaluation, checkpoints in host
memory, frozen parts, kept outputs and the like. Jobs that PEFT, transformers or TRL refuse leave no record.
"""
import functools
import json
import random

import crossed
import make_records
import mixed
import recipes
import unsloth_jobs
import varied

OPTIMIZERS = tuple(name for name in (*recipes.OPTIMIZERS, "ademamix", "apollo_adamw", "schedule_free_radam", "lion_8bit", "adafactor", "muon", "galore_adamw_8bit_layerwise",
                                     "paged_lion_8bit", "adamw_bnb_8bit", "rmsprop_bnb_32bit") if name != "adam_mini")
KINDS_OF = ("loha", "lokr", "oft", "vera", "ia3", "boft", "adalora")
SPLIT = ("oft", "ia3", "lokr", "vera")                     # which are modelled where GPUs divide the model
varied.by_type, crossed.jobs_of = map(functools.cache, (varied.by_type, crossed.jobs_of))
PARTS = ("embed", r"\.0\.", r"layers?\.[01]\.", "norm", "bias", "encoder", "mlp|fc1|intermediate", "query|q_proj")


# -- options ------------------------------------------------------------------------------------------
def adapter(job, dice):
    given = dice.choice([one["lora"] for one in crossed.jobs_of("records-adapters") if one["lora"].get("kind") in KINDS_OF])
    if job["method"] == "full":
        job["method"] = "lora"
    job.pop("freeze", None), job.pop("freeze_vision", None)
    saved = job.get("lora", {} if job.get("kind") in (None, "dense", "moe", "ssm", "encdec", "vlm") else {"task_type": False})
    job["lora"] = {**crossed.adapter_for(given), **{key: saved[key] for key in ("task_type",) if key in saved}}
    if isinstance(saved.get("target_modules"), list) and given["kind"] != "ia3" and dice.random() < 0.5:
        job["lora"]["target_modules"] = saved["target_modules"]
    if job["precision"] not in ("bf16", "bf16_amp"):
        job["lora"].pop("adapter_dtype", None)


def twist(job, dice):
    """What LoRA says beside its rank."""
    if job["method"] == "full" or job["lora"].get("kind", "lora") != "lora":
        return adapter(job, dice) if job["method"] == "full" else None
    layers = [{"layers_to_transform": [0]}, {"layers_to_transform": [1]}] if isinstance(job["lora"].get("target_modules"), list) else []
    return job["lora"].update(dice.choice([{"use_dora": True}, {"bias": "all"}, {"bias": "lora_only"}, *layers]))


def optimizer(job, dice):
    job["optimizer"] = dice.choice(OPTIMIZERS if job["method"] == "full" else (*recipes.OF_ADAPTERS, "muon", "lion_8bit", "ademamix_8bit", "adafactor", "came_pytorch"))
    if job["optimizer"].startswith(("galore", "apollo")):
        job["optim_args"] = {"rank": dice.choice([16, 64])}
        job["optim_target_modules"] = dice.choice(["all-linear", ["attn", "mlp"], ["attention", "layer"]])
    recipes.suit_optimizer(job)


def evaluated(job, dice):
    job["evaluation"] = {"micro_batch": dice.choice([1, 2, 4, 8]), **dice.choice([{}, {}, {"keep_logits": True, "batches": 2}])}


def held(job, dice):
    job.update(gradient_checkpointing=dice.choice(["offload", "offload", "full"]), use_reentrant=dice.random() < 0.5)


def added(job, dice):
    job["grad_accum"] = 1 if job["optimizer"] in ("lomo", "adalomo") or job["optimizer"].endswith("layerwise") else dice.choice([2, 3])


def loose(job, dice):
    job.update(dice.choice([{"keep_outputs": True}, {"zero_grad_to_none": False}, {"outputs_fp32": False} if "amp" in job["precision"] else {"keep_outputs": True}]))


def still(job, dice):
    if job["method"] == "full":
        job["freeze"] = [dice.choice(PARTS)]
    elif job["lora"].get("kind", "lora") == "lora":
        job["beside"] = [dice.choice(["norm", "embed", "classifier|score", "projector|merger|connector", "bias"])]


def width(job, dice):
    job["precision"] = dice.choice(["fp16_bf16_amp", "amp_fp16", "fp16", "fp32", "amp_bf16"])
    if "lora" in job:
        job["lora"].pop("adapter_dtype", None)


def offloaded(job, dice):
    if job["gradient_checkpointing"] != "offload":
        job["activation_offloading"] = True


def noise(job, dice):
    job["neftune"] = 5.0


def smooth(job, dice):
    job.update(label_smoothing=0.1, loss="default")


def shorter(job, dice):
    job.update(padding=True, padded_tokens=dice.choice([7, 64]))


def liger(job, dice):
    if job["config"]["model_type"] in ("llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "phi3", "olmo2", "granite"):
        job["liger"] = dice.sample(["rms_norm", "swiglu", "rope"], 2)
    else:
        job["loss"] = "liger_flce"


def chunked(job, dice):
    job["loss"] = "chunked"


def rows(job, dice):
    job.update(packing=True, padding=False)


ANY = (adapter, twist, optimizer, optimizer, held, added, loose, still, width)
WORDS = (*ANY, noise, smooth, offloaded, evaluated)


def three(job, dice, pool):
    for option in dice.sample(pool, 3):
        option(job, dice)
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["attention"] = "sdpa"
    return job


# -- kinds --------------------------------------------------------------------------------------------
def of_kinds(wanted, kinds, pool, ident, dice, fits=lambda job: True):
    base, likes = mixed.base_of(wanted, dice, lambda job: (job.get("kind") or "dense") in kinds and fits(job))
    job = mixed.plain(base, likes, wanted, ident, dice)
    for key in recipes.WORDS:
        job.pop(key, None)
    if job["optimizer"] == "adamw_hf":
        job["optimizer"] = "sgd"
    if "lora" in job and not isinstance(job["lora"]["target_modules"], list):
        job["lora"].pop("layers_to_transform", None)
    return three(job, dice, pool)


def pictured(ident, dice):
    return of_kinds("sights", ("vision", "vision-text"), (*ANY, evaluated), ident, dice)


def heard(ident, dice):
    return of_kinds("sights", ("audio", "speech", "audio-text", "speech-encdec"), (*ANY, evaluated), ident, dice)


def filmed(ident, dice):
    return of_kinds("sights", ("vision", "vlm"), WORDS, ident, dice, lambda job: job.get("video_frames") or job["config"]["model_type"] in ("videomae", "vivit"))


def encoded(ident, dice):
    job = of_kinds("texts", ("encoder",), WORDS, ident, dice)
    if dice.random() < 0.4:                                # sentence embeddings: a body, and a mean of its states
        job.update(architecture=body_of(job), loss_kind="mean_square", loss="default")
        job.pop("label_smoothing", None)
        if "lora" in job:
            job["lora"]["task_type"] = "FEATURE_EXTRACTION"
    return job


def body_of(job):
    named = make_records.class_of(job)
    return named if named.endswith("Model") else named.partition("For")[0] + "Model"


def translated(ident, dice):
    return of_kinds("texts", ("encdec",), WORDS, ident, dice, lambda job: "architecture" not in job)


def mixed_up(ident, dice):
    return of_kinds("texts", ("moe", "ssm"), (*WORDS, rows, chunked, shorter), ident, dice, lambda job: "architecture" not in job)


def older(ident, dice):
    job = recipes.decoder(dice, ident, (None, "dense"))
    job["release"] = dice.choice(["4.44", "4.46", "4.57", "4.57"])
    if job["release"] != "4.57":
        job["loss"] = make_records.old_loss(job["config"]["model_type"], job["release"]) or "default"
    return three(job, dice, (*ANY, noise, offloaded, evaluated, shorter))


def asked(ident, dice):
    job = (recipes.compared if dice.random() < 0.6 else recipes.generated)(ident, dice)
    return three(job, dice, (adapter, twist, optimizer, added, width, noise, evaluated, liger, offloaded))


def packed(ident, dice):
    given = json.loads(json.dumps(dice.choice(crossed.jobs_of("records-quantised"))))
    job = {**given, "id": ident, "gradient_checkpointing": dice.choice(["none", "full"]), "micro_batch": dice.choice([1, 2, 3]), "seq_len": dice.choice([384, 700, 1024])}
    pool = (twist, optimizer, held, added, loose, noise, evaluated, offloaded, shorter, rows, chunked, liger, smooth)
    if dice.random() < 0.3:
        job.update(task=dice.choice(["dpo", "orpo", "kto"]), micro_batch=2, loss="default")
        job.update({"reference": "adapter"} if job["task"] != "orpo" else {})
        pool = (twist, optimizer, added, noise, evaluated)
    return three(job, dice, pool)


def fast(ident, dice):
    given = dice.choice(crossed.jobs_of("records-unsloth"))
    job = {**given, "id": ident, "micro_batch": dice.choice([1, 2, 3, 5]), "seq_len": dice.choice([300, 512, 1024, 1900, 3000])}
    job["unsloth"] = {"backend": dice.choice(["xformers", "fa2"]), "padding_free": dice.random() < 0.6}
    job["config"] = {**job["config"], "num_hidden_layers": dice.choice([2, 3, 5]), "vocab_size": dice.choice([32000, 50001, job["config"]["vocab_size"]])}
    job["lora"] = {"r": dice.choice([8, 32, 128]), "alpha": 16, "dropout": dice.choice([0.0, 0.0, 0.1]), "target_modules": dice.choice([unsloth_jobs.ALL, unsloth_jobs.ALL[:4], unsloth_jobs.ALL[4:]])}
    job["optimizer"] = dice.choice([*recipes.OF_ADAPTERS, "lion_8bit", "muon", "adafactor"])
    job["grad_accum"] = dice.choice([1, 2])
    if dice.random() < 0.2:
        job["lora"]["modules_to_save"] = dice.choice([["lm_head"], ["embed_tokens", "lm_head"]])
    return job


def denoised(ident, dice):
    base = dice.choice([one for one in crossed.jobs_of("records-beyond") + crossed.jobs_of("records-extra") if one.get("kind") == "diffusion" and "config" in one or one.get("library") == "sd_scripts"])
    job = {**json.loads(json.dumps(base)), "id": ident, "micro_batch": dice.choice([1, 2, 3, 5]), "image_size": dice.choice([256, 512, 512, 768])}
    if job["library"] == "sd_scripts":
        for option in dice.sample((optimizer, added, held), 2):
            option(job, dice)
        job["gradient_checkpointing"] = "full" if job["gradient_checkpointing"] == "offload" else job["gradient_checkpointing"]
        return {**job, "use_reentrant": False}
    for key, most in (("num_layers", 3), ("num_single_layers", 3)):
        if key in job["config"]:
            job["config"][key] = dice.choice([2, most])
            for name in ("dual_attention_layers",):
                if name in job["config"]:
                    job["config"][name] = [i for i in job["config"][name] if i < job["config"][key]]
    job.pop("vae", None), job.pop("text_encoders", None), job.pop("model", None)
    if dice.random() < 0.3:
        job["vae"] = dice.choice(["mixed_precision", "fp32"])
    if dice.random() < 0.4:
        job["method"] = "full" if job["method"] == "lora" else "lora"
        job.pop("lora", None)
    if job["method"] == "lora":
        job["lora"] = {"r": dice.choice([4, 16, 64]), "alpha": 16, "dropout": dice.choice([0.0, 0.05]), "task_type": None, "target_modules": dice.choice([["to_k", "to_q", "to_v", "to_out.0"], "all-linear"])}
    job.update(gradient_checkpointing=dice.choice(["none", "full"]), use_reentrant=False, seq_len=dice.choice([77, 128, 300]))
    three(job, dice, (adapter, adapter, twist, optimizer, optimizer, added, width, still))
    if "lora" in job:
        job["lora"]["task_type"] = None
    return job


def compared(ident, dice):
    """Preferences evaluated between steps where GPUs divide the model."""
    base = mixed.base_of("texts", dice, lambda job: (job.get("kind") or "dense") == "dense" and "architecture" not in job and not job["config"].get("layer_types")
                         and str(job["config"].get("architectures", [""])[0]).endswith("ForCausalLM"))[0]
    job = {"id": ident, "config": {**base["config"], "vocab_size": 16000, "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 1}, "method": dice.choice(["full", "lora", "qlora"]), "precision": "bf16",
           "micro_batch": dice.choice([2, 3]), "seq_len": dice.choice([300, 512]), "grad_accum": dice.choice([1, 2]), "attention": "sdpa", "padding": False, "loss": "default",
           "gradient_checkpointing": dice.choice(["none", "full"]), "use_reentrant": False, "optimizer": "adamw_torch_fused", "task": dice.choice(["dpo", "dpo", "kto", "orpo", "simpo", "cpo", "reward"])}
    if job["method"] != "full":
        job["lora"] = {"r": dice.choice([8, 32]), "target_modules": "all-linear"}
    if job["task"] in ("dpo", "kto"):
        job["reference"] = dice.choice(["copy", "precomputed"] if job["method"] == "full" else ["adapter", "precomputed"])
    if job["task"] == "reward":
        job["architecture"] = job["config"]["architectures"][0].replace("ForCausalLM", "ForSequenceClassification")
        job.get("lora", {}).update(task_type="SEQ_CLS")
    split = dice.choice((varied.of_fsdp1, varied.of_fsdp2, varied.of_fsdp2, varied.of_zero, varied.of_zero, varied.of_ddp))
    job["parallelism"] = split(job, dice)
    job["evaluation"] = {"micro_batch": job["micro_batch"] * dice.choice([1, 2, 4]), "batches": 2}
    if job["parallelism"]["strategy"] == "zero3":
        job["evaluation"]["from_step"], job["steps"] = 2, 4
    job["id"] += "-" + job["parallelism"]["strategy"]
    return job


def divided(ident, dice):
    how = dice.choice([pictured, filmed, encoded, encoded, translated, mixed_up, asked, asked, older, denoised])
    job = how(ident, dice)
    for key in ("activation_offloading", "arch", "outputs_fp32", "zero_grad_to_none", "packing", "optim_args", "optim_target_modules", "bits"):
        job.pop(key, None)
    if isinstance(job["gradient_checkpointing"], dict):
        job["gradient_checkpointing"] = "full"
    if job["loss"] not in ("default", "chunked"):
        job["loss"] = "default"
    if job.get("release", "4.57") != "4.57":               # whose loss the recorder would run
        job.pop("release")
    kept = job["optimizer"]
    split = dice.choice(varied.SPREAD)
    if job.get("lora", {}).get("kind", "lora") not in ("lora", *(SPLIT if split is not varied.of_fsdp1 and dice.random() < 0.5 else ())):
        job["lora"] = {"r": 8, "target_modules": job["lora"].get("target_modules", "all-linear"), **{key: job["lora"][key] for key in ("task_type",) if key in job["lora"]}}
    job["parallelism"] = split(job, dice)
    if split is varied.of_ddp and kept in ("muon", "came_pytorch", "schedule_free_adamw", "prodigy", "lion_8bit", "adafactor"):
        job["optimizer"] = kept
    elif split is not varied.of_zero and dice.random() < 0.2:
        job["optimizer"] = dice.choice(["adamw_8bit", "sgd_momentum", "rmsprop", "adagrad"])
    if job["optimizer"] not in ("adamw_torch", "adamw_torch_fused", "adamw_8bit", "sgd_momentum", "rmsprop", "adagrad", "muon", "came_pytorch", "schedule_free_adamw", "prodigy", "lion_8bit", "adafactor"):
        job["optimizer"] = "adamw_torch_fused"
    if job["parallelism"]["strategy"] == "zero3" and "evaluation" in job:
        job["evaluation"].update(batches=2, from_step=2)
        job["steps"] = 4
    job["id"] += "-" + job["parallelism"]["strategy"]
    return job


if __name__ == "__main__":
    import sys
    how, amount, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    many = random.Random(f"threes {how} {seed}")
    for i in range(amount):
        made = globals()[how](f"threes{seed}-{how}-{i:03d}", many)
        made["id"] += f"-{made.get('config', {}).get('model_type') or made.get('architecture', '')}"
        print(json.dumps(made))
