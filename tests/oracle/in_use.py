#!/usr/bin/env python3
"""in_use.py KIND AMOUNT SEED > jobs.jsonl    options that public jobs combine, drawn at random over small dense decoders

tuned: LoRA and its kin as Axolotl's examples have them: bases prepared with norms turned back, rows packed with samples, evaluation, its LoRA
kernels, optimizers in 8 bits. preferred: TRL's trainers on preferences under re-entrant and offloaded checkpoints, fp16, adapters in 16 bits.
generated: GRPO and RLOO likewise. evaluated: SFT with evaluation. fused: Liger's kernels. cut: Apple's cut cross-entropy. older: transformers
4.57. divided: one of several GPUs. smoothed: label smoothing. encoders: those of text and encoder-decoders, evaluated. seeing:
models that see, divided and evaluated. rare: pieces frozen or saved, optimizers in 4 bits. Jobs that PEFT or TRL
refuse leave no record.
"""
import json
import random
import sys

import lora_kernel_jobs

MODELS = ("llama", "llama", "qwen2", "qwen3", "qwen3", "mistral", "gemma", "gemma2", "gemma3_text", "smollm3", "granite", "phi3", "olmo2")
FURTHER = {"phi3": ("Phi3ForCausalLM", {"sliding_window": None}), "olmo2": ("Olmo2ForCausalLM", {})}
LISTS = ("all-linear", "all-linear", ["q_proj", "k_proj", "v_proj", "o_proj"], ["q_proj", "v_proj"])
OPTIMIZERS = ("adamw_8bit", "adamw_8bit", "paged_adamw_32bit", "paged_adamw_8bit", "adamw_torch_fused", "adamw_torch", "adamw_torch_8bit")


def model(dice):
    kind = dice.choice(MODELS)
    name, own = FURTHER.get(kind) or lora_kernel_jobs.MODELS[kind]
    config = {"model_type": kind, "architectures": [name], **lora_kernel_jobs.SIZES, **own}
    config.update(num_hidden_layers=dice.choice([2, 3, 4]), vocab_size=dice.choice([1000, 16000, 32003]))
    return config


def job(dice):
    config = model(dice)
    made = {"config": config, "method": dice.choice(["full", "lora", "lora", "qlora", "qlora"]), "precision": "bf16_amp",
            "micro_batch": dice.choice([1, 2, 2, 4]), "seq_len": dice.choice([384, 511, 512, 777, 1024]), "grad_accum": dice.choice([1, 2, 4]),
            "attention": dice.choice(["sdpa", "flash_attention_2", "flash_attention_2"]), "optimizer": dice.choice(OPTIMIZERS),
            "gradient_checkpointing": dice.choice(["none", "full", "full", "offload"]), "use_reentrant": dice.random() < 0.5,
            "max_grad_norm": dice.choice([1.0, 1.0, 0.0]), "arch": dice.choice([80, 90])}
    if made["method"] != "full":
        targets = dice.choice(LISTS)
        if targets != "all-linear" and config["model_type"] == "phi3":
            targets = ["qkv_proj", "o_proj"]
        made["lora"] = {"r": dice.choice([8, 16, 32]), "alpha": 16, "dropout": dice.choice([0.0, 0.05, 0.05]), "target_modules": targets}
    if made["method"] == "qlora":
        made.update(kbit_prepare=dice.choice(["norms_back", "norms_back", True, False]), bits=dice.choice([4, 4, 8]), double_quant=dice.random() < 0.7)
    return made


def tuned(dice):
    made = job(dice)
    if dice.random() < 0.6:
        made["packing"] = True
    else:
        made["padding"] = dice.random() < 0.5
    if dice.random() < 0.5:
        made["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    if made["method"] != "full" and made.get("bits") != 8 and made["config"]["model_type"] not in ("phi3", "olmo2") and dice.random() < 0.4:
        made["lora_kernels"] = dice.choice([["mlp", "qkv", "o"], ["mlp", "qkv", "o"], ["qkv", "o"]])
    if "lora_kernels" not in made and dice.random() < 0.25:
        made["loss"] = "liger_flce"
    if dice.random() < 0.12 and made["gradient_checkpointing"] != "offload":
        made["activation_offloading"] = True
    return made


def preferred(dice):
    made = job(dice)
    made["task"] = dice.choice(["dpo", "dpo", "dpo", "kto", "orpo", "simpo", "cpo", "reward"])
    made["precision"] = dice.choice(["bf16_amp", "bf16", "amp_fp16", "amp_bf16", "fp16_bf16_amp"])
    if made["task"] in ("dpo", "kto"):
        shared = made["method"] != "full"
        made["reference"] = dice.choice(["adapter", "adapter", "precomputed"] if shared else ["copy", "precomputed"])
    if made["task"] == "kto":
        made["micro_batch"] = max(2, made["micro_batch"])
    if made["task"] == "reward":
        config = made["config"]
        config["architectures"] = [config["architectures"][0].replace("ForCausalLM", "ForSequenceClassification")]
        made["architecture"] = config["architectures"][0]
        if "lora" in made:
            made["lora"]["task_type"] = "SEQ_CLS"
    if "lora" in made and made["precision"] in ("bf16", "bf16_amp") and dice.random() < 0.35:
        made["lora"]["adapter_dtype"] = "bf16"
    made["padding"] = dice.random() < 0.3
    if dice.random() < 0.25:
        made["evaluation"] = {"micro_batch": dice.choice([2, 4])}
    if dice.random() < 0.15 and made["gradient_checkpointing"] in ("none", "full"):
        made["activation_offloading"] = True
    return made


def generated(dice):
    made = job(dice)
    made.update(task=dice.choice(["grpo", "grpo", "rloo"]), prompt_len=dice.choice([128, 200, 256]), completion_len=dice.choice([32, 48, 61]),
                micro_batch=dice.choice([2, 4]), attention=dice.choice(["sdpa", "sdpa", "flash_attention_2"]))
    if dice.random() < 0.4:
        made.update(rollout="vllm", completion_len=dice.choice([256, 511]))
    if dice.random() < 0.5:
        made["reference"] = "adapter" if "lora" in made else "copy"
    made["seq_len"] = made["prompt_len"] + made["completion_len"]
    if "lora" in made and dice.random() < 0.2:
        made["lora"]["adapter_dtype"] = "bf16"
    return made


def evaluated(dice):
    made = job(dice)
    made["loss"] = dice.choice(["chunked", "chunked", "liger_flce", "default"])
    made["evaluation"] = {"micro_batch": dice.choice([1, 2, 8])}
    if "lora" in made and dice.random() < 0.35:
        made["lora"]["adapter_dtype"] = "bf16"
    if dice.random() < 0.3:
        made["packing"] = True
    if dice.random() < 0.2 and made["method"] == "lora":
        made["lora"]["modules_to_save"] = ["lm_head", "embed_tokens"]
    return made


def fused(dice):
    made = job(dice)
    made["liger"] = dice.choice([["rms_norm", "swiglu", "rope"], ["rms_norm", "swiglu", "rope"], ["rms_norm", "swiglu"], ["rms_norm"], ["rope"]])
    made["loss"] = dice.choice(["liger_flce", "liger_flce", "default"])
    made["precision"] = dice.choice(["bf16_amp", "bf16_amp", "bf16", "amp_bf16"])
    if dice.random() < 0.4:
        made["packing"] = True
    if dice.random() < 0.4:
        made["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    return made


def cut(dice):
    made = tuned(dice)
    made.pop("lora_kernels", None), made.pop("activation_offloading", None)
    return {**made, "loss": "cut_cross_entropy"}


def older(dice):
    made = dice.choice([job, generated, preferred])(dice)
    if "task" not in made:
        made["loss"] = dice.choice(["default", "liger_flce"])
        if dice.random() < 0.4:
            made["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    if dice.random() < 0.5:
        made.update(gradient_checkpointing="offload", use_reentrant=True, activation_offloading=False)
    return {**made, "release": "4.57"}


def divided(dice):
    """One of several GPUs, as DeepSpeed's and FSDP's users have them: rows packed, Liger's loss, evaluation, states in host memory."""
    made = job(dice)
    strategy = dice.choice(["zero2", "zero3", "zero3", "fsdp2", "fsdp2"])
    made.update(optimizer="adamw_torch_fused", precision="bf16", loss=dice.choice(["default", "default", "liger_flce"]), kbit_prepare=False)
    if made["gradient_checkpointing"] == "offload":
        made["gradient_checkpointing"] = "full"
    if strategy == "fsdp2":
        split = {"strategy": strategy, "data": dice.choice([2, 4, 8])}
        made["use_reentrant"] = False
        if made["method"] == "full":
            made["precision"] = "fp32"
            split.update(param_dtype="bf16", reduce_dtype="fp32")
            made["arch"] = 80
        made.update(bits=4, quant_storage="bf16")
    else:
        split = {"strategy": strategy, "data": dice.choice([2, 4, 8]), "hf_auto": True}
        offload = dice.choice(["none", "none", "optimizer", "all" if strategy == "zero3" else "optimizer"])
        split.update({"offload": offload} if offload != "none" else {})
    if "lora" in made:
        made["lora"]["adapter_dtype"] = "bf16"
    if dice.random() < 0.6:
        made["packing"] = True
    if dice.random() < 0.3:
        made["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    return as_first(made, split)


def smoothed(dice):
    made = job(dice)
    made["precision"] = dice.choice(["bf16_amp", "bf16", "amp_bf16", "amp_fp16", "fp32"])
    if made["precision"] == "fp32":
        made["attention"] = "sdpa"
    if dice.random() < 0.3:
        made["padding"] = True
    if dice.random() < 0.4:
        made["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    return {**made, "label_smoothing": 0.1}


def encoders(dice):
    """Recorded encoders and encoder-decoders of text, evaluated between steps."""
    import varied
    bases = [one for jobs in varied.by_type("texts").values() for one in jobs if one.get("kind") in ("encoder", "encdec")]
    base = dice.choice(bases)
    made = {key: base[key] for key in varied.KEPT if key in base}
    made.update(method="full", precision=dice.choice(["bf16_amp", "amp_bf16", "amp_fp16"]), micro_batch=dice.choice([2, 4, 8]),
                grad_accum=dice.choice([1, 2]), attention=dice.choice(["sdpa", "sdpa", "eager"]), use_reentrant=dice.random() < 0.6,
                gradient_checkpointing=dice.choice(["none", "full", "offload"]), optimizer=dice.choice(OPTIMIZERS), padding=dice.random() < 0.3,
                evaluation={"micro_batch": dice.choice([2, 8, 16])})
    if base["method"] == "lora" and base.get("lora", {}).get("kind", "lora") == "lora":
        made.update(method="lora", lora=base["lora"])
    return {**made, "release": "4.57"} if dice.random() < 0.5 else made


def seeing(dice):
    """Recorded jobs of several GPUs that see, evaluated between steps or under Liger's loss; teachers and their students (GKD) divided."""
    import varied
    rows = [varied.make_records.job_of(row) for row in varied.rows_of("records-multi") if "job" in row["record"]]
    made = dict(dice.choice([one for one in rows if one.get("images") and not one.get("task") and "config" in one and "evaluation" not in one]))
    taught = [one for one in map(varied.make_records.job_of, varied.rows_of("records-loops")) if one.get("task") == "gkd"]
    if dice.random() < 0.25:
        made = {**dice.choice(taught), "precision": "bf16", "parallelism": {"strategy": dice.choice(["zero2", "zero3"]), "data": 4, "hf_auto": True},
                "attention": dice.choice(["sdpa", "flash_attention_2"])}
        if "lora" in made:
            made["lora"] = {**made["lora"], "adapter_dtype": "bf16"}
        return made
    made["loss"] = dice.choice(["default", "default", "liger_flce"])
    if made["config"]["model_type"] == "blip-2":           # of which Liger knows nothing
        made["loss"] = "default"
    made["evaluation"] = {"micro_batch": dice.choice([1, 2, 4])}
    return as_first(made, made["parallelism"])


def rare(dice):
    made = tuned(dice)
    for key in ("activation_offloading", "loss"):
        made.pop(key, None)
    if made["method"] == "full":
        return {**made, "freeze": [dice.choice(["layers\\.0\\.", "embed_tokens", "mlp"])]}
    if dice.random() < 0.4:
        made["lora"]["modules_to_save"] = ["lm_head", "embed_tokens"]
        made.pop("lora_kernels", None)
        if dice.random() < 0.5:
            made.pop("packing", None), made.pop("evaluation", None)
            made.update(task="dpo", reference="adapter")
    else:
        made["optimizer"] = dice.choice(["adamw_torch_4bit", "paged_adamw_8bit", "paged_adamw_32bit"])
        if "lora_kernels" in made and made["method"] == "qlora":
            made["kbit_prepare"] = "norms_back"
    return made


def as_first(made, split):
    """As multi/evaluation_jobs.py has it: what ZeRO-3 lets go of it decides once, in its second step."""
    if split["strategy"] == "zero3" and "evaluation" in made:
        made["evaluation"].update(batches=2, from_step=2)
        made["steps"] = 4
    return {**made, "parallelism": split}


def main():
    how, amount, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dice = random.Random(seed)
    for i in range(amount):
        made = globals()[how](dice)
        print(json.dumps({"loss": "default", "padding": False, **made, "id": f"{how}{seed}-{i:03d}-{made['config']['model_type']}"}))


if __name__ == "__main__":
    main()
