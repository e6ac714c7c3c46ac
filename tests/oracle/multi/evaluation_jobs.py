#!/usr/bin/env python3
"""evaluation_jobs.py MODELS.json > jobs.jsonl    jobs of several GPUs with an evaluation behind each step ("evals-…"), of two batches or more

../recorder/evaluation.py runs transformers' own evaluation_loop: by the loss alone, or with all GPUs' logits and labels, which stay to its end.
../recorder/run.sh CHROOT forked.py /o2/jobs.jsonl /o2/raw.jsonl /o2/models.json; make_records.py records-multi.jsonl raw.jsonl
"""
import json
import sys

FULL = {"method": "full", "precision": "bf16"}
MIXED = {"method": "full", "precision": "fp32"}
LORA = {"method": "lora", "precision": "bf16", "lora": {"r": 16, "adapter_dtype": "bf16"}}
LORA_AMP = {"method": "lora", "precision": "bf16_amp", "lora": {"r": 16, "adapter_dtype": "fp32"}}
LORA_WIDE = {"method": "lora", "precision": "bf16", "lora": {"r": 16, "adapter_dtype": "fp32"}}
DROPS = {"lora": {**LORA["lora"], "dropout": 0.1}}
QLORA = {"method": "qlora", "precision": "bf16", "lora": {"r": 16, "adapter_dtype": "bf16"}, "quant_storage": "bf16", "kbit_prepare": False}
CHECKPOINTS = {"gradient_checkpointing": "full"}
BF16 = {"param_dtype": "bf16", "reduce_dtype": "bf16"}
SCORES = {"architecture": "Qwen2ForSequenceClassification", "micro_batch": 4}
LLAMA, QWEN, QWEN_3, MISTRAL = "meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-0.5B", "Qwen/Qwen3-1.7B", "mistralai/Mistral-7B-v0.1"


def ddp(**more):
    return {"parallelism": {"strategy": "ddp", "data": 4, **more}}


def zero(stage, **more):
    return {"parallelism": {"strategy": f"zero{stage}", "data": 4, "hf_auto": True, **more}}


def fsdp1(**more):
    return {"parallelism": {"strategy": "fsdp1", "data": 4, **more}}


def fsdp2(**more):
    return {"parallelism": {"strategy": "fsdp2", "data": 4, **more}}


def accelerate(mixed="bf16", **more):
    return {"parallelism": {"strategy": "fsdp2", "data": 4, "accelerate": "1.15.0", "mixed_precision": mixed, **(BF16 if mixed == "bf16" else {}), **more}}


def by_loss(times, batches=2):
    return {"times": times, "batches": batches}


def with_logits(times, batches=3):
    return {"times": times, "batches": batches, "keep_logits": True}


# id: (model, layers, evaluation, what the job says)
JOBS = {
    "ddp-logits": (QWEN, 4, with_logits(4), FULL, ddp()),
    "ddp-logits-lora": (LLAMA, 3, with_logits(2, 2), LORA, ddp(data=2)),
    "zero1": (LLAMA, 3, by_loss(8), FULL, zero(1)),
    "zero1-lora-logits": (QWEN, 4, with_logits(8), LORA, zero(1)),
    "zero1-like": (QWEN, 4, by_loss(1), FULL, zero(1)),
    "zero2-logits": (LLAMA, 3, with_logits(8), FULL, zero(2)),
    "zero2-lora": (QWEN_3, 4, by_loss(8), LORA, zero(2), CHECKPOINTS),
    "zero2-classes": (QWEN, 4, with_logits(8), FULL, SCORES, zero(2)),
    "zero2-dpo-lora": (LLAMA, 3, {"times": 4}, LORA, zero(2), {"task": "dpo", "reference": "adapter"}),
    "zero2-dpo-copy": (QWEN, 4, {"times": 4}, FULL, zero(2), {"task": "dpo", "reference": "copy"}),
    "zero2-generate": (QWEN, 4, {"times": 8, "generate": {"max_new_tokens": 6, "num_beams": 8}}, FULL, zero(2)),
    "zero3-offload": (LLAMA, 3, by_loss(8), FULL, zero(3, offload="all")),
    "fsdp2-offload": (LLAMA, 3, by_loss(8), MIXED, fsdp2(offload=True, **BF16)),
    "fsdp2-hybrid": (LLAMA, 3, by_loss(8), MIXED, fsdp2(data=2, replicate=2, **BF16)),
    "zero3": (LLAMA, 3, by_loss(8), FULL, zero(3)),
    "zero3-logits": (QWEN, 4, with_logits(8), FULL, zero(3)),
    "zero3-long": (MISTRAL, 6, by_loss(8), FULL, zero(3), CHECKPOINTS),
    "zero3-plain": (QWEN_3, 4, by_loss(8), FULL, zero(3, hf_auto=False)),
    "zero3-like": (MISTRAL, 3, by_loss(1), FULL, zero(3)),
    "zero3-lora": (LLAMA, 3, by_loss(8), LORA, zero(3), CHECKPOINTS),
    "zero3-lora-long": (MISTRAL, 6, by_loss(8), LORA, DROPS, zero(3)),
    "zero3-lora-logits": (QWEN, 4, with_logits(8), LORA, zero(3)),
    "zero3-live": (MISTRAL, 3, by_loss(8), FULL, zero(3, zero={"stage3_max_live_parameters": 100000000, "stage3_max_reuse_distance": 100000000})),
    "fsdp1": (LLAMA, 3, by_loss(8), MIXED, fsdp1(**BF16)),
    "fsdp1-flat-logits": (QWEN, 4, with_logits(8), FULL, fsdp1(use_orig_params=False)),
    "fsdp1-grad": (MISTRAL, 3, by_loss(8), FULL, fsdp1(sharding="shard_grad_op")),
    "fsdp1-grad-like": (MISTRAL, 3, by_loss(1), FULL, fsdp1(sharding="shard_grad_op"), CHECKPOINTS),
    "fsdp1-lora": (MISTRAL, 3, by_loss(8), LORA, fsdp1(wrap="peft", use_orig_params=False)),
    "fsdp1-lora-logits": (QWEN, 4, with_logits(8), LORA_AMP, fsdp1(wrap="peft", use_orig_params=False, **BF16)),
    "fsdp1-qlora": (LLAMA, 3, by_loss(8), QLORA, fsdp1(wrap="peft", use_orig_params=False), CHECKPOINTS),
    "fsdp2": (LLAMA, 3, by_loss(8), MIXED, fsdp2(**BF16)),
    "fsdp2-whole": (MISTRAL, 3, by_loss(8), FULL, fsdp2(reshard_after_forward=False)),
    "fsdp2-logits": (QWEN, 4, with_logits(8), FULL, fsdp2()),
    "fsdp2-accelerate": (QWEN_3, 4, by_loss(8), MIXED, accelerate()),
    "fsdp2-accelerate-like": (LLAMA, 3, by_loss(1), MIXED, accelerate()),
    "fsdp2-accelerate-logits": (MISTRAL, 3, with_logits(8), MIXED, accelerate()),
    "fsdp2-accelerate-lora": (MISTRAL, 3, by_loss(8), LORA_WIDE, accelerate(), CHECKPOINTS),
    "fsdp2-accelerate-lora-logits": (QWEN, 4, with_logits(8), LORA, accelerate("no")),
    "fsdp2-accelerate-qlora": (LLAMA, 3, by_loss(8), QLORA, accelerate("no")),
}


def main():
    configs = {row["id"]: row["config"] for row in json.load(open(sys.argv[1]))}
    for name, (model, layers, evaluation, *words) in JOBS.items():
        job = {"id": "evals-" + name, "seq_len": 512, "micro_batch": 1, "config": {**configs[model], "num_hidden_layers": layers, "pad_token_id": 0}}
        job["config"].pop("layer_types", None)
        for more in words:
            job.update(more)
        how = dict(evaluation)
        job["evaluation"] = {"micro_batch": job["micro_batch"] * how.pop("times"), **how}
        if job["parallelism"]["strategy"] == "zero3":      # what DeepSpeed lets go of it decides once, in its second step
            job["steps"] = 4
            job["evaluation"]["from_step"] = 2
        print(json.dumps(job))


if __name__ == "__main__":
    main()
