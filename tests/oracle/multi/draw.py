#!/usr/bin/env python3
"""draw.py MODELS.json AMOUNT SEED [accelerate] > jobs.jsonl: jobs of several GPUs drawn at random, for data parallelism whole and divided.

With `accelerate` all of them are accelerate's FSDP 2, half of the decoders' training on preferences.

Model, batch, kernel, checkpointing and adapter are those of jobs of one GPU that ../pairs.py and ../kinds.py draw; the strategy and what it
demands of precision and optimizer are drawn here.  What the real code cannot run fails in the recorder, and is left out.
"""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SHARDED = ("adamw_torch_fused", "adamw_torch_fused", "adamw_torch_fused", "adamw_8bit")


def of_one_gpu(models, amount, seed):
    run = lambda *words: subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, check=True, cwd=os.path.join(HERE, "..")).stdout  # noqa: E731
    lines = run("pairs.py", "draw", models, str(amount), str(seed)) + run("kinds.py", str(amount), str(seed))
    jobs = [json.loads(line) for line in lines.splitlines()]
    return [job for job in jobs if job.get("library") != "diffusers" and "release" not in job and not isinstance(job.get("gradient_checkpointing"), dict)]


def ddp(rng, job):
    return {"strategy": "ddp", "data": rng.choice((2, 4, 8)), "gradient_as_bucket_view": rng.random() < 0.5}


def fsdp(rng, job):
    flat = rng.random() < 0.4
    out = {"strategy": "fsdp1" if flat else "fsdp2", "data": rng.choice((2, 4, 8))}
    if job["method"] == "full":
        job["precision"] = rng.choice(("fp32", "fp32", "bf16", "amp_bf16"))
        if job["precision"] == "fp32":
            out.update(param_dtype="bf16", reduce_dtype=rng.choice(("fp32", "bf16")))
    else:
        job["precision"] = rng.choice(("bf16", "bf16_amp"))
        job["lora"]["adapter_dtype"] = "bf16" if job["precision"] == "bf16" else "fp32"
        job.update(quant_storage="bf16", kbit_prepare=False)
    if job["precision"] in ("amp_bf16", "bf16_amp"):     # as accelerate's plugin does
        out.update(param_dtype="bf16", reduce_dtype="bf16")
    if flat:
        out.update(sharding=rng.choice(("full_shard", "full_shard", "shard_grad_op")), use_orig_params=rng.random() < 0.5)
        if job["method"] != "full":
            out.update(wrap="peft", use_orig_params=False)
    else:
        out["reshard_after_forward"] = rng.random() < 0.7
    job["optimizer"] = rng.choice(SHARDED)
    return out


def accelerate(rng, job):
    """fsdp_config of the Trainer: mixed precision, which does not autocast, or none."""
    mixed = rng.random() < 0.7
    out = {"strategy": "fsdp2", "data": rng.choice((2, 4, 8)), "accelerate": "1.15.0", "mixed_precision": "bf16" if mixed else "no",
           "reshard_after_forward": rng.random() < 0.8}
    if mixed:
        out.update(param_dtype="bf16", reduce_dtype="bf16")
    job["precision"] = "fp32" if mixed and job["method"] == "full" else "bf16"
    if job["method"] != "full":
        job["lora"]["adapter_dtype"] = "fp32" if mixed else "bf16"
        job.update(quant_storage="bf16", kbit_prepare=False)
    job["optimizer"] = "adamw_torch_fused"
    decoder = str((job["config"].get("architectures") or [""])[0]).endswith("ForCausalLM")
    if decoder and rng.random() < 0.5:
        task = rng.choice(("dpo", "dpo", "kto", "orpo", "simpo"))
        reference = {"dpo": ("copy", "precomputed"), "kto": ("precomputed",)}.get(task)
        if reference and job["method"] != "full":
            reference = ("adapter", "precomputed")
        job.update(task=task, loss="default", **({"reference": rng.choice(reference)} if reference else {}))
        job.get("lora", {}).pop("dropout", None)
    return out


def zero(rng, job):
    job.update(precision=rng.choice(("bf16", "bf16", "fp16")), optimizer="adamw_torch_fused")
    if "lora" in job:
        job["lora"]["adapter_dtype"] = job["precision"]
    stage = rng.choice((1, 2, 2, 3, 3))
    return {"strategy": f"zero{stage}", "data": rng.choice((2, 4, 8)), "hf_auto": rng.random() < 0.8}


def main():
    models, amount, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(f"multi {seed}")
    for job in of_one_gpu(models, amount, seed):
        how = accelerate if sys.argv[4:] == ["accelerate"] else rng.choice((ddp, fsdp, fsdp, zero))
        job["parallelism"] = how(rng, job)
        job["id"] = job["id"] + "-" + job["parallelism"]["strategy"]
        print(json.dumps(job))


if __name__ == "__main__":
    main()
