#!/usr/bin/env python3
"""together.py KIND AMOUNT SEED > jobs.jsonl    options that people put together and that no other draw did

seen: models that see with adapters beside LoRA, evaluation that keeps logits, accumulation, every precision. again: adapters of all kinds under
checkpoints of every other layer, of attention alone or in host memory. smoothed: smoothed labels beside Liger's kernels, kept outputs, packed rows and
evaluation, on decoders, encoder-decoders and what sees. stepping: optimizers that step in backward beside checkpoints, frozen parts, tied tables and
experts. added: accumulation beside all that changes what a micro-step leaves behind. frozen: parts that are not trained, on several GPUs.
Jobs that PEFT or transformers refuse leave no record.
"""
import crossed
import mixed
import recipes
import varied

STEPPING = ("lomo", "adalomo", "galore_adamw_layerwise", "galore_adamw_8bit_layerwise", "apollo_adamw_layerwise")
PARTS = ("embed", r"layers\.0\.", r"layers\.(0|1)\.", "norm", "lm_head", "mlp", "attn", r"\.bias$", "q_proj|k_proj|v_proj", "visual|vision", "language_model", "merger|projector|connector")
OF_PACKAGES = ("schedule_free_adamw", "prodigy", "came_pytorch", "adamw_torch_4bit", "muon", "adan", "grokadamw")


def clean(job, *others):
    for key in (*recipes.WORDS, "evaluation", "bits", "double_quant", "kbit_prepare", *others):
        job.pop(key, None)
    return job


def other_adapter(job, dice):
    given = dice.choice([one for one in crossed.jobs_of("records-adapters") if one["lora"].get("kind") != "prefix_tuning"])["lora"]
    job["lora"] = crossed.adapter_for(given)
    if job["precision"] not in ("bf16", "bf16_amp"):
        job["lora"].pop("adapter_dtype", None)


def seen(ident, dice):
    base, likes = mixed.base_of("sights", dice, lambda job: job.get("kind") == "vlm" and job.get("images") and job["config"].get("model_type") != "blip-2")
    job = clean(mixed.plain(base, likes, "sights", ident, dice), "freeze", "freeze_vision")
    recipes.kept(job, dice)
    job.update(method=dice.choice(["lora", "lora", "qlora"]), loss="default", grad_accum=dice.choice([1, 2, 3]), micro_batch=dice.choice([1, 2]), padding=False,
               optimizer=dice.choice(recipes.OF_ADAPTERS), precision=dice.choice(["bf16", "bf16_amp", "amp_bf16", "amp_fp16"]))
    other_adapter(job, dice)
    if job["method"] == "qlora":
        recipes.quantised(job, dice)
        job["kbit_prepare"] = dice.choice([True, False])
    if dice.random() < 0.6:
        job["evaluation"] = {"micro_batch": dice.choice([1, 2, 4, 8]), **dice.choice([{}, {"keep_logits": True, "batches": 2}])}
    if dice.random() < 0.3:
        job["label_smoothing"] = 0.1
    return job


def again(ident, dice):
    job = clean(recipes.decoder(dice, ident, (None, "dense")))
    job.update(method=dice.choice(["lora", "lora", "lora", "qlora"]), grad_accum=dice.choice([1, 1, 2]), use_reentrant=dice.random() < 0.4,
               gradient_checkpointing=dice.choice([{"every": 2}, {"every": 3}, {"selective": ["core_attn"]}, "offload", "offload"]))
    other_adapter(job, dice)
    if job["method"] == "qlora":
        recipes.quantised(job, dice)
        job["kbit_prepare"] = dice.choice([True, False])
    if dice.random() < 0.4:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4, 8])}
    return job


def smoothed(ident, dice):
    wanted = dice.choice(["texts", "texts", "sights"])
    base, likes = mixed.base_of(wanted, dice, lambda job: job.get("kind") in ("vlm", None, "dense", "moe", "encdec", "speech-encdec") and "architecture" not in job)
    job = clean(mixed.plain(base, likes, wanted, ident, dice))
    if job["method"] == "qlora":
        recipes.quantised(job, dice)
    job.update(label_smoothing=0.1, loss="default")
    if job["config"]["model_type"] in ("llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "phi3", "olmo2", "granite") and dice.random() < 0.7:
        job["liger"] = dice.sample(["rms_norm", "swiglu", "rope"], 2)
    if dice.random() < 0.3:
        job["keep_outputs"] = True
    if dice.random() < 0.3 and job["precision"] not in ("fp32", "bf16", "fp16"):
        job["outputs_fp32"] = False
    if dice.random() < 0.4:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4]), **dice.choice([{}, {"keep_logits": True, "batches": 2}])}
    if dice.random() < 0.3 and wanted == "texts" and job.get("kind") in (None, "dense", "moe"):
        job.update(packing=True, padding=False)
    return job


def stepping(ident, dice):
    wanted = dice.choice(["texts", "texts", "sights"])
    base, likes = mixed.base_of(wanted, dice, lambda job: job.get("kind") in ("vlm", None, "dense", "moe", "encdec", "encoder", "ssm"))
    job = clean(mixed.plain(base, likes, wanted, ident, dice), "lora", "freeze", "freeze_vision")
    recipes.kept(job, dice)
    job.update(method="full", optimizer=dice.choice(STEPPING), loss=dice.choice(["default", "default", "liger_flce"]) if job.get("kind") in (None, "dense") else "default",
               precision=dice.choice(["bf16", "bf16", "fp32", "amp_bf16", "bf16_amp"]))
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["attention"] = "sdpa"
    if job["optimizer"].startswith(("galore", "apollo")):
        job["optim_args"] = {"rank": dice.choice([16, 64])}
        job["optim_target_modules"] = dice.choice(["all-linear", ["attn", "mlp"]])
    recipes.suit_optimizer(job)
    if dice.random() < 0.4:
        job["freeze"] = [dice.choice(PARTS[:7])]
    if dice.random() < 0.3:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4])}
    return job


def added(ident, dice):
    wanted = dice.choice(["texts", "texts", "sights"])
    base, likes = mixed.base_of(wanted, dice)
    job = clean(mixed.plain(base, likes, wanted, ident, dice))
    if job["method"] == "qlora":
        recipes.quantised(job, dice)
    job["grad_accum"] = dice.choice([2, 3, 4])
    decoder = str(job["config"].get("architectures", [""])[0]).endswith("ForCausalLM") and "architecture" not in job
    for what in dice.sample(["keep", "neftune", "none", "evaluation", "packing", "package", "chunked", "smooth", "offload", "fp16"], 3):
        if what == "keep":
            job["keep_outputs"] = True
        elif what == "neftune":
            job["neftune"] = 5.0
        elif what == "none":
            job["zero_grad_to_none"] = False
        elif what == "evaluation":
            job["evaluation"] = {"micro_batch": dice.choice([1, 4, 8])}
        elif what == "packing" and decoder:
            job.update(packing=True, padding=False)
        elif what == "package":
            job["optimizer"] = dice.choice(OF_PACKAGES if job["method"] == "full" else recipes.OF_ADAPTERS)
        elif what == "chunked" and decoder:
            job["loss"] = "chunked"
        elif what == "smooth" and job["loss"] == "default" and wanted == "texts":
            job["label_smoothing"] = 0.1
        elif what == "offload" and job["gradient_checkpointing"] != "none":
            job["gradient_checkpointing"] = "offload"
        elif what == "fp16" and job["attention"] != "flash_attention_2":
            job["precision"] = dice.choice(["amp_fp16", "fp16_bf16_amp"])
    return job


def frozen(ident, dice):
    wanted = dice.choice(["texts", "sights"])
    groups = varied.plain((wanted,), lambda job: job.get("kind") not in ("audio", "speech"))
    key = dice.choice(sorted(groups, key=str))
    likes = groups[key]
    job = varied.spread(dice.choice(likes), likes, wanted, ident, dice)
    job.pop("freeze_vision", None)
    if job["method"] == "full":
        job["freeze"] = [dice.choice(PARTS)]
    elif dice.random() < 0.5:
        job["lora"]["layers_to_transform"] = [dice.choice([0, 1])]
    else:
        job["beside"] = [dice.choice(["norm", "visual|vision", "merger|projector|connector", "embed", "classifier|score"])]
    if dice.random() < 0.3:
        job["parallelism"]["rank"] = job["parallelism"]["data"] - 1
    return job


if __name__ == "__main__":
    mixed.write(globals(), "together", "together ")
