#!/usr/bin/env python3
"""llamafactory_jobs.py AMOUNT SEED > jobs.jsonl    LLaMA-Factory's own loop (recorder/llamafactory.py), on one GPU and under its FSDP 2

Full training, LoRA and QLoRA; head tied to the table and not; rows that are full, padded and packed; checkpoints, which are its
default, and none; gradients added up; parameters in host memory.
"""
import json
import random
import sys

MODELS = ["Qwen/Qwen3-0.6B", "Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-1.5B", "meta-llama/Llama-3.2-1B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
          "google/gemma-2-2b", "microsoft/Phi-3-mini-4k-instruct", "HuggingFaceTB/SmolLM2-360M", "mistralai/Mistral-7B-v0.1", "meta-llama/Llama-3.1-8B"]


def draw(number, dice):
    model = dice.choice(MODELS)
    method = dice.choice(["full", "full", "full", "lora", "lora", "qlora"])
    job = {"id": f"llamafactory-v1-{number}-{model.rpartition('/')[2].lower()}-{method}", "trainer": "llamafactory_v1", "model": model, "method": method,
           "precision": "fp32" if method == "full" else "bf16", "micro_batch": dice.choice([1, 1, 2, 4]), "seq_len": dice.choice([512, 1024, 2048]),
           "grad_accum": dice.choice([1, 1, 1, 2]), "attention": dice.choice(["sdpa", "sdpa", "eager", "flash_attention_2"]), "optimizer": "adamw_torch"}
    if dice.random() < 0.8:
        job.update(gradient_checkpointing="full", use_reentrant=False)
    if method != "full":
        job.update(adapter_first=True, lora={"r": dice.choice([8, 16, 64]), "dropout": dice.choice([0.0, 0.05]), "adapter_dtype": "fp32",
                                             "target_modules": dice.choice(["all-linear", ["q_proj", "v_proj"]]) if "Phi" not in model else "all-linear"})
    if method == "qlora":
        job.update(kbit_prepare=False, double_quant=dice.random() < 0.5)
    rows = dice.choice(["full", "full", "padded", "packed"])
    if rows == "padded" and job["micro_batch"] > 1:
        job["padding"] = True
    if rows == "packed":                               # padding_free, which asks for the kernel
        job.update(packing=True, attention="flash_attention_2", micro_batch=1)
    if dice.random() < 0.5 and method != "qlora":
        job["parallelism"] = {"strategy": "fsdp2", "data": dice.choice([2, 4, 8]), "llamafactory": True, "param_dtype": "bf16", "reduce_dtype": "fp32"}
        if dice.random() < 0.15:
            job["parallelism"]["offload"] = True
        if dice.random() < 0.15:
            job["parallelism"]["reshard_after_forward"] = False
    if method == "full" and "parallelism" not in job and job["attention"] == "flash_attention_2":
        job["attention"] = "sdpa"                      # nobody autocasts, and the kernel takes no fp32
        job.pop("packing", None)
    return job


def main():
    dice = random.Random(int(sys.argv[2]))
    for number in range(int(sys.argv[1])):
        print(json.dumps(draw(number, dice)))


if __name__ == "__main__":
    main()
