#!/usr/bin/env python3
"""varied.py sights|texts|gpus|spread|loops AMOUNT SEED > jobs.jsonl    recorded jobs with other sizes, widths and options, drawn at random,
a type of model at a time
varied.py towers SEED > jobs.jsonl    adapters beside a tower, under ZeRO-3

sights: models that see or hear; texts: language models and encoders; gpus: jobs of several GPUs, a strategy at a time; spread: jobs of one GPU of all
kinds, spread over several by a strategy whose own options are drawn; loops: tasks, adapters, packed bases and packages' optimizers, several at once.
Where kinds.py and crossed.py keep what a job is fed and how its model is made, this draws that as well: layers, widths, vocabularies, dropout, odd
lengths, sizes of pictures, kinds of checkpoints, losses, pieces of the model that are frozen. Jobs that PEFT or transformers refuse leave no record.
"""
import json
import os
import random
import sys

import crossed
import make_records

HERE = os.path.dirname(os.path.abspath(__file__))
BASES = ("records", "records-beyond", "records-extra", "records-pairs")
SEEING = ("vision", "vlm", "speech", "audio", "audio-text", "vision-text", "speech-encdec")
PICTURES = {"qwen2_vl": 28, "qwen2_5_vl": 28, "qwen3_vl": 32, "qwen3_vl_moe": 32, "qwen3_5": 32, "glm4v": 28, "glm4v_moe": 28, "glm46v": 28, "glm_ocr": 28,
            "ernie4_5_vl_moe": 28, "exaone4_5": 28, "video_llama_3": 28, "lighton_ocr": 28, "mistral3": 28, "paddleocr_vl": 28, "lfm2_vl": 32,
            "gemma4": 48, "gemma4_unified": 48, "segformer": 32, "detr": 32, "llava_next": 8, "llava_onevision": 8, "dinov3_vit": 16, "convnextv2": 32,
            "qwen2_5_omni_thinker": 28, "qwen3_omni_moe_thinker": 32, "deepseek_ocr2": 64, "phi4_multimodal": 28}
KEPT = ("config", "kind", "experts", "kernels", "architecture", "images", "image_size", "tiles", "video_frames", "audio_seconds", "target_len", "seq_len",
        "loss_kind", "adapter_first", "freeze", "freeze_vision")
OPTIMIZERS = ("adamw_torch", "adamw_torch_fused", "adamw_torch_fused", "adamw_8bit", "paged_adamw_8bit", "paged_adamw_32bit", "adafactor", "lion_8bit", "lion_32bit",
              "sgd", "sgd_momentum", "rmsprop", "adagrad", "adamw_32bit", "adamw_hf")


def rows_of(name):
    """But for those that were drawn here."""
    return [row for row in map(json.loads, open(os.path.join(HERE, f"{name}.jsonl"))) if not row["id"].startswith("varied")]


def by_type(wanted):
    """Model type -> recorded jobs of one GPU that say their config."""
    found = {}
    for name in BASES:
        for row in rows_of(name):
            job = make_records.job_of(row)
            kind = job.get("kind") or "dense"
            plain = "config" in job and not job.get("library") and not job.get("remote") and not job.get("task") and "parallelism" not in job
            if plain and (kind in SEEING or job["config"].get("model_type") == "layoutlmv3") == (wanted == "sights") and kind != "diffusion":
                found.setdefault(job["config"].get("model_type"), []).append(job)
    return found


def reshaped(config, dice):
    """Other widths that a config of the type may have: each changed seldom, so that most models stay as they are."""
    config = json.loads(json.dumps(config))
    parts = [config] + [config[key] for key in ("text_config", "vision_config", "decoder", "encoder", "audio_config") if isinstance(config.get(key), dict)]
    for part in parts:
        for key in ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner", "moe_intermediate_size"):
            if isinstance(part.get(key), int) and dice.random() < 0.2:
                part[key] = part[key] * dice.choice([3, 5, 6]) // 4 // 64 * 64 or part[key]
        for key in ("num_hidden_layers", "n_layer", "depth", "encoder_layers", "decoder_layers", "num_decoder_layers"):
            if isinstance(part.get(key), int) and dice.random() < 0.3 and not any(isinstance(v, list) and len(v) == part[key] for v in part.values()):
                part[key] = max(2, part[key] + dice.choice([-1, 1]))
        for key in ("attention_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "resid_pdrop", "attn_pdrop", "activation_dropout",
                    "drop_path_rate", "dropout_rate"):
            if key in part and dice.random() < 0.25:
                part[key] = 0.0 if part[key] else 0.1
        if isinstance(part.get("vocab_size"), int) and dice.random() < 0.2 and part["vocab_size"] > 10000:
            part["vocab_size"] += dice.choice([1, 7, 64, 1000])
        if "attention_bias" in part and dice.random() < 0.2:
            part["attention_bias"] = not part["attention_bias"]
    if "tie_word_embeddings" in config and dice.random() < 0.25:
        config["tie_word_embeddings"] = not config["tie_word_embeddings"]
        if isinstance(config.get("text_config"), dict) and "tie_word_embeddings" in config["text_config"]:
            config["text_config"]["tie_word_embeddings"] = config["tie_word_embeddings"]
    return config


def sizes(job, dice):
    """Other pictures, rows and lengths; what a picture takes of the row is no more than it was."""
    kind = job["config"].get("model_type")
    size = job.get("image_size")
    step = PICTURES.get(kind)
    if step and size:
        h, w = size if isinstance(size, list) else (size, size)
        job["image_size"] = [max(step, x // step * step - step * dice.choice([0, 0, 1, 2, 3])) for x in dice.sample([h, w], 2)]
    if job.get("seq_len") and kind not in ("florence2", "layoutlmv3"):
        job["seq_len"] += dice.choice([0, 0, 64, 128, 33, 101, 250])
    if job.get("target_len"):
        job["target_len"] = max(8, job["target_len"] + dice.choice([0, 0, -13, 16, 40]))
    if job.get("audio_seconds") and kind in ("wavlm", "wav2vec2", "hubert", "qwen2_audio", "voxtral", "qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"):
        job["audio_seconds"] = max(2, job["audio_seconds"] - dice.choice([0, 0, 1.5, 4]))
    seeing = job.get("kind") in ("vision", "vision-text", "audio", "speech")
    job["micro_batch"] = dice.choice([2, 3, 5, 8, 12] if seeing else [1, 1, 2, 3, 4])


def checkpoints(job, dice):
    how = dice.random()
    if how < 0.45:
        return
    job["gradient_checkpointing"] = "full"
    if how > 0.9:
        job["gradient_checkpointing"] = "offload"
    elif how > 0.82 and job.get("kind", "dense") == "dense":
        job["gradient_checkpointing"] = dice.choice([{"every": 2}, {"selective": ["core_attn"]}])
    job["use_reentrant"] = dice.random() < 0.35


def adapter(job, base, likes, dice):
    job["lora"] = {"r": dice.choice([4, 8, 16, 32, 64]), "alpha": 16, "dropout": dice.choice([0.0, 0.0, 0.05]), "target_modules": "all-linear"}
    lists = [one["lora"]["target_modules"] for one in likes if one.get("lora", {}).get("target_modules", "all-linear") != "all-linear"]
    if lists and dice.random() < 0.5:
        job["lora"]["target_modules"] = dice.choice(lists)
    own = [one["lora"]["task_type"] for one in likes if "task_type" in one.get("lora", {})]
    if job.get("kind") in (*SEEING, "encoder") and job.get("kind") != "vlm" or job["config"].get("model_type") in ("blip-2", "layoutlmv3"):
        job["lora"]["task_type"] = own[0] if own else False
    elif str(job.get("architecture")).endswith("ForSequenceClassification"):
        job["lora"]["task_type"] = "SEQ_CLS"
    if dice.random() < 0.12:
        job["lora"]["use_dora"] = True
    if dice.random() < 0.15 and job["precision"] in ("bf16", "bf16_amp"):
        job["lora"]["adapter_dtype"] = "bf16"
    if dice.random() < 0.1:
        job["lora"]["layers_to_transform"] = [0, 1]
    if dice.random() < 0.1 and "architecture" not in job:
        job["lora"]["modules_to_save"] = ["lm_head"]
    if job["method"] == "qlora":
        job.update(bits=dice.choice([4, 4, 4, 8]), double_quant=dice.random() < 0.5, kbit_prepare=dice.choice([True, True, False, "norms"]))


def options(job, likes, wanted, dice):
    kind = job.get("kind") or "dense"
    apart = kind in ("vision", "vision-text", "speech", "audio")
    job.update(method=dice.choice(["full", "full", "lora", "lora"] + ([] if apart else ["qlora"])),
               precision=dice.choice(["fp32", "bf16", "bf16", "amp_bf16", "amp_fp16", "bf16_amp", "bf16_amp", "fp16", "fp16_bf16_amp"]),
               attention=dice.choice(["sdpa", "sdpa", "sdpa", "eager", "flash_attention_2"]), optimizer=dice.choice(OPTIMIZERS),
               grad_accum=dice.choice([1, 1, 2, 3]), padding=bool(job.get("seq_len")) and dice.random() < 0.25, max_grad_norm=dice.choice([1.0, 1.0, 0.0]),
               arch=dice.choice([80, 80, 80, 90]))
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["precision"] = "bf16"
    checkpoints(job, dice)
    if job["method"] != "full":
        job.pop("freeze", None), job.pop("freeze_vision", None)
        adapter(job, job, likes, dice)
    elif "freeze" not in job and "freeze_vision" not in job and dice.random() < 0.25:
        frozen = [one["freeze"] for one in likes if "freeze" in one]
        job["freeze"] = dice.choice(frozen or [["embed_tokens"]]) if wanted == "sights" else [dice.choice(["embed", "layers\\.0\\.", "norm", "lm_head", "mlp"])]
    if "experts" in job:
        job["experts"] = dice.choice(["grouped_mm", "grouped_mm", "eager", "batched_mm"])
    if kind == "dense" and dice.random() < 0.2:
        job["loss"] = "liger_flce"
    for key, value, often in (("keep_outputs", True, 0.06), ("outputs_fp32", False, 0.06), ("zero_grad_to_none", False, 0.06)):
        if dice.random() < often and (key != "outputs_fp32" or job["precision"] not in ("fp32", "bf16", "fp16")):
            job[key] = value
    if wanted == "texts" and kind in ("dense", "moe", "ssm"):
        if dice.random() < 0.08:
            job["neftune"] = 5.0
        if dice.random() < 0.06 and job["gradient_checkpointing"] in ("none", "full"):
            job["activation_offloading"] = True
        if dice.random() < 0.1:
            job["evaluation"] = {"micro_batch": dice.choice([2, 8])}
        if dice.random() < 0.06 and not job["padding"]:
            job["packing"] = True


def draw(base, likes, wanted, ident, dice):
    job = {key: base[key] for key in KEPT if key in base}
    job.update(id=ident, loss="default", gradient_checkpointing="none", use_reentrant=False, config=reshaped(base["config"], dice))
    sizes(job, dice)
    options(job, likes, wanted, dice)
    return job


# -- several GPUs ------------------------------------------------------------------------------------
OFTEN = {"ddp": 2, "fsdp1": 3, "fsdp2": 4, "zero1": 2, "zero2": 3, "zero3": 4, "tp": 2, "pp": 2, "megatron": 2}       # of 28; the others once each


def strategies():
    found = {}
    for row in rows_of("records-multi") + rows_of("records-megatron"):
        if "job" not in row["record"]:                   # some draws kept none
            continue
        job = make_records.job_of(row)
        if "config" in job and not job.get("task") and "awaits_recording" not in row:
            of_strategy = found.setdefault(job["parallelism"]["strategy"], {})
            of_strategy.setdefault((job["config"].get("model_type"), job["method"]), []).append(job)
    return found


def on_gpus(base, ident, dice):
    """A recorded job with other sizes, checkpoints, methods' ranks and numbers of GPUs; precision stays, which its strategy wants."""
    job = json.loads(json.dumps(base))
    par = job["parallelism"]
    job.update(id=ident, config=reshaped(base["config"], dice))
    sizes(job, dice)
    strategy = par["strategy"]
    if strategy in ("ddp", "fsdp1", "fsdp2") or strategy.startswith("zero"):
        par["data"] = dice.choice([2, 3, 4, 8, 16])
    if strategy == "ddp":
        par.update(gradient_as_bucket_view=dice.random() < 0.5)
        if dice.random() < 0.3:
            par["bucket_cap_mb"] = dice.choice([1, 10, 100])
    if strategy == "fsdp2" and "accelerate" not in par and dice.random() < 0.5:
        par["reshard_after_forward"] = dice.choice([True, False])
    if strategy.startswith("zero") and dice.random() < 0.4:
        par["offload"] = dice.choice(["none", "optimizer"] + (["all"] if strategy == "zero3" else []))
    if strategy not in ("pp", "megatron", "titan"):
        job["grad_accum"] = dice.choice([1, 1, 2, 3])
        if dice.random() < 0.5:
            job["gradient_checkpointing"] = dice.choice(["none", "full"])
            job["use_reentrant"] = dice.random() < 0.3
    if "lora" in job:
        job["lora"]["r"] = dice.choice([4, 8, 32, 64])
    if strategy not in ("megatron", "titan"):
        job["attention"] = dice.choice([job.get("attention", "sdpa"), "sdpa", "eager"])
    return job


WORLDS = (2, 3, 4, 6, 8)


def of_ddp(job, dice):
    out = {"strategy": "ddp", "data": dice.choice(WORLDS), "gradient_as_bucket_view": dice.random() < 0.5}
    if dice.random() < 0.4:
        out["bucket_cap_mb"] = dice.choice([1, 5, 50, 200])
    return out


def halves(job, out, dice):
    """What FSDP's mixed precision wants of the weights: autocast as accelerate has it, or 16 bits of fp32 weights, reduced in either."""
    if job["method"] == "full":
        job["precision"] = dice.choice(("fp32", "fp32", "bf16", "amp_bf16"))
    else:
        job["precision"] = dice.choice(("bf16", "bf16", "bf16_amp"))
        job["lora"]["adapter_dtype"] = "bf16" if job["precision"] == "bf16" else "fp32"
        job.update(quant_storage="bf16", kbit_prepare=False)
    if job["precision"] != "bf16":                                        # the request of autocast alone is of the Trainer, which sets both
        out.update(param_dtype="bf16", reduce_dtype=dice.choice(("fp32", "bf16")))
    if job["precision"] == "fp32" and job["attention"] == "flash_attention_2":
        job["attention"] = "sdpa"
    job["optimizer"] = dice.choice(("adamw_torch_fused", "adamw_torch_fused", "adamw_torch", "adamw_8bit", "sgd_momentum"))


def of_fsdp1(job, dice):
    out = {"strategy": "fsdp1", "data": dice.choice(WORLDS), "use_orig_params": dice.random() < 0.5}
    halves(job, out, dice)
    out["sharding"] = dice.choice(("full_shard", "full_shard", "shard_grad_op", "hybrid_shard"))
    if out["sharding"] == "hybrid_shard":
        out["replicate"] = dice.choice((2, 3))
    if dice.random() < 0.3:
        out["backward_prefetch"] = dice.choice(("backward_post", None))
    for key, value in (("forward_prefetch", True), ("limit_all_gathers", False)):
        if dice.random() < 0.2:
            out[key] = value
    if job["method"] != "full" and dice.random() < 0.8:
        out.update(wrap="peft", use_orig_params=False)
    return out


def of_fsdp2(job, dice):
    out = {"strategy": "fsdp2", "data": dice.choice(WORLDS), "reshard_after_forward": dice.choice((True, True, False))}
    halves(job, out, dice)
    if dice.random() < 0.3:
        mixed = dice.choice(("bf16", "bf16", "no"))
        for key in ("param_dtype", "reduce_dtype"):
            out.pop(key, None)
        if mixed == "bf16":
            out.update(param_dtype="bf16", reduce_dtype="bf16")
        job["precision"] = "fp32" if mixed == "bf16" and job["method"] == "full" and job["attention"] != "flash_attention_2" else "bf16"
        if job["method"] != "full":
            job["lora"]["adapter_dtype"] = "fp32" if mixed == "bf16" else "bf16"
        return {**out, "accelerate": "1.15.0", "mixed_precision": mixed}
    for key, value in (("replicate", 2), ("groups", "separate"), ("offload", True), ("no_sync", True), ("reshard_last", False)):
        if dice.random() < 0.2:
            out[key] = value
    return out


def of_zero(job, dice):
    stage = dice.choice((1, 2, 2, 3, 3, 3))
    job.update(precision=dice.choice(("bf16", "bf16", "fp16")), optimizer="adamw_torch_fused")
    if "lora" in job:
        job["lora"]["adapter_dtype"] = job["precision"]
    out = {"strategy": f"zero{stage}", "data": dice.choice(WORLDS), "hf_auto": dice.random() < 0.6}
    choices = {"overlap_comm": (False,)} if out["hf_auto"] else {"overlap_comm": (False,), "reduce_bucket_size": (1e6, 2e7, 2e8)}
    if stage == 3 and not out["hf_auto"]:
        choices.update(stage3_param_persistence_threshold=(0, 1e4, 1e6), stage3_prefetch_bucket_size=(0, 1e6, 5e8), stage3_max_live_parameters=(1e7, 1e9))
    words = {key: dice.choice(values) for key, values in choices.items() if dice.random() < 0.4}
    if words:
        out["zero"] = {key: int(value) if not isinstance(value, bool) else value for key, value in words.items()}
    if dice.random() < 0.3:
        out["offload"] = dice.choice(["optimizer"] + (["all", "parameters"] if stage == 3 else []))
    return out


SPREAD = (of_ddp, of_fsdp1, of_fsdp1, of_fsdp2, of_fsdp2, of_fsdp2, of_zero, of_zero, of_zero)


def plain_words(job):
    """Words that recorder and request take for the same: a tied head has no name of its own among named_parameters(), and PEFT is told of a
    task by the job's kind."""
    if job.get("freeze") == ["lm_head"]:
        job.pop("freeze")
    if "lora" in job and str(job.get("architecture")).endswith("ForImageClassification"):
        job["lora"]["task_type"] = False


def small(job, dice):
    """A vocabulary that does not hide the layers."""
    if "vocab_size" in job["config"] and dice.random() < 0.5 and job.get("kind", "dense") == "dense":
        job["config"].update(vocab_size=4096, pad_token_id=1, bos_token_id=1, eos_token_id=1)


def spread(base, likes, wanted, ident, dice):
    job = draw(base, likes, wanted, ident, dice)
    plain_words(job)
    for key in ("activation_offloading", "evaluation", "packing", "neftune", "arch"):
        job.pop(key, None)
    if isinstance(job["gradient_checkpointing"], dict) or job["gradient_checkpointing"] == "offload":
        job["gradient_checkpointing"] = "full"
    if wanted == "texts":
        small(job, dice)
    how = dice.choice(SPREAD)
    job["parallelism"] = how(job, dice)
    if how is not of_ddp:
        for key in ("outputs_fp32", "zero_grad_to_none"):
            job.pop(key, None)
        if job["loss"] != "default":
            job["loss"] = "default"                                       # Liger's view of the head stays with the tracker
    job["id"] += "-" + job["parallelism"]["strategy"]
    return job


# -- what loops, adapters and packages do, several at once -------------------------------------------
def task_of(job, dice):
    """A task of TRL's with what its trainer is told; rewards are of classes that score."""
    task = dice.choice(("dpo", "dpo", "kto", "kto", "bco", "orpo", "simpo", "cpo", "tpo", "reward", "reward", "grpo", "grpo", "rloo", "gkd"))
    for key in ("evaluation", "packing", "neftune", "keep_outputs", "activation_offloading"):
        job.pop(key, None)
    job.update(task=task, loss="default")
    job.pop("freeze", None)
    if task in ("dpo", "kto", "bco"):
        job["reference"] = dice.choice(("copy", "precomputed") if job["method"] == "full" else ("adapter", "adapter", "precomputed", "copy"))
    if job["method"] == "qlora" and job.get("reference") == "copy":
        job["reference"] = "adapter"                                       # the recorder's copy is not packed
    if task == "reward":
        job["architecture"] = job["config"]["architectures"][0].replace("ForCausalLM", "ForSequenceClassification")
        if "lora" in job:
            job["lora"]["task_type"] = "SEQ_CLS"
            job["lora"].pop("modules_to_save", None)
    if task in ("grpo", "rloo"):
        job.update(prompt_len=dice.choice((96, 128, 200)), completion_len=dice.choice((128, 257)), micro_batch=dice.choice((2, 4)), padding=False)
        job["seq_len"] = job["prompt_len"] + job["completion_len"]
        if dice.random() < 0.5:
            job["reference"] = "copy" if job["method"] == "full" else "adapter"
        if dice.random() < 0.4:
            job["rollout"] = "vllm"
        if dice.random() < 0.2 and task == "grpo":
            job.update(num_iterations=2, steps=3)
    if task == "gkd":
        job.update(teacher={"num_hidden_layers": job["config"].get("num_hidden_layers", 2) + 1}, lmbda=0.0, beta=dice.choice((0.0, 0.5, 1.0)))
    if isinstance(job["gradient_checkpointing"], dict) or job["gradient_checkpointing"] == "offload":
        job["gradient_checkpointing"] = "full"                             # TRL's trainers undo the recorder's own patches


def several(base, likes, sets, ident, dice):
    job = draw(base, likes, "texts", ident, dice)
    plain_words(job)
    job.pop("arch", None)
    small(job, dice)
    task = str(job["config"].get("architectures", [""])[0]).endswith("ForCausalLM") and "architecture" not in job and dice.random() < 0.7
    if job["method"] == "qlora" and dice.random() < 0.5:
        packed = dice.choice(sets["quantised"])
        for key in ("bits", "double_quant"):
            job.pop(key, None)
        job.update({key: packed[key] for key in ("packed", "precision", "kbit_prepare", "release") if key in packed})
        job["lora"].pop("use_dora", None), job["lora"].pop("adapter_dtype", None)
    elif job["method"] != "full" and dice.random() < 0.6:
        saved = job["lora"].get("task_type")
        job["lora"] = crossed.adapter_for(dice.choice(sets["adapters"])["lora"])
        if job["precision"] not in ("bf16", "bf16_amp"):
            job["lora"].pop("adapter_dtype", None)
        if saved is not None:
            job["lora"]["task_type"] = saved
    if task:
        task_of(job, dice)
    if dice.random() < 0.35:
        special = dice.choice(sets["optimizers"])
        job.update({key: special[key] for key in ("optimizer", "optim_args", "optim_target_modules") if key in special})
    asks = job.get("task") in (None, "dpo", "kto", "reward", "gkd")       # whose configs have it (trl 1.9)
    if dice.random() < 0.2 and asks and job["gradient_checkpointing"] in ("none", "full"):
        job["activation_offloading"] = True
    return job


TOWERS = ("llava", "llava_next", "gemma3", "paligemma", "idefics3", "qwen2_vl", "qwen2_5_vl", "internvl", "qwen3_vl", "mistral3", "lfm2_vl", "ovis2", "aya_vision",
          "glm4v")


def towers(seed):
    """LoRA of the language model where a record has it, in the weights' dtype."""
    dice = random.Random(f"frozen towers {seed}")
    groups, made = by_type("sights"), 0
    for kind in TOWERS:
        seeing = [job for job in groups.get(kind, []) if job["method"] == "lora" and job.get("images")]
        beside = [job for job in seeing if "language" in (job["lora"].get("target_modules") or "") and isinstance(job["lora"]["target_modules"], str)]
        if not seeing:
            continue
        job = json.loads(json.dumps(dice.choice(beside or seeing)))
        again = dice.random() < 0.4
        job.update(id=f"varied{seed}-{made:03d}-{kind}-zero3", precision="bf16", optimizer="adamw_torch_fused",
                   gradient_checkpointing=dice.choice(["full", "full", "none"]), use_reentrant=again, attention=dice.choice(["sdpa", "eager"]), grad_accum=1,
                   loss="default", parallelism={"strategy": "zero3", "data": dice.choice([2, 4, 8]), "hf_auto": True})
        job["lora"]["adapter_dtype"] = "bf16"
        job.pop("release", None), job.pop("arch", None)
        print(json.dumps(job))
        made += 1


def plain(kinds, wanted):
    """Types of `kinds` with whether they see: (wanted, type) -> jobs."""
    return {(kind, name): jobs for kind in kinds for name, jobs in by_type(kind).items() if wanted(jobs[0])}


def drawn(wanted, dice):
    """Types, and what makes a job of one of them."""
    if wanted == "gpus":
        groups = strategies()
        return ([name for name in sorted(groups, key=str) for _ in range(OFTEN.get(name, 1))],
                lambda kind, ident: on_gpus(dice.choice(groups[kind][dice.choice(sorted(groups[kind], key=str))]), ident, dice))
    if wanted == "spread":
        groups = plain(("texts", "sights"), lambda job: job.get("kind") not in ("audio", "speech"))
        types = sorted(key for key in groups for _ in range(2 if key[0] == "texts" else 1))
        return types, lambda kind, ident: spread(dice.choice(groups[kind]), groups[kind], kind[0], ident, dice)
    groups = by_type("texts" if wanted == "loops" else wanted)
    if wanted == "loops":
        sets = {name: crossed.jobs_of(f"records-{name}") for name in crossed.SETS}
        return sorted(groups, key=str), lambda kind, ident: several(dice.choice(groups[kind]), groups[kind], sets, ident, dice)
    return sorted(groups, key=str), lambda kind, ident: draw(dice.choice(groups[kind]), groups[kind], wanted, ident, dice)


def main():
    if sys.argv[1] == "towers":
        return towers(int(sys.argv[2]))
    wanted, amount, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dice = random.Random(f"varied {wanted} {seed}")
    types, make = drawn(wanted, dice)
    dice.shuffle(types)
    for i in range(amount):
        kind = types[i % len(types)]
        print(json.dumps(make(kind, f"varied{seed}-{i:03d}-{kind if isinstance(kind, str) or kind is None else kind[1]}")))


if __name__ == "__main__":
    main()
