#!/usr/bin/env python3
"""make_unsloth_jobs.py MODELS.json OUT.jsonl: jobs of real_unsloth.py, each with Tidemark's request for it."""
import json
import sys

ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LLAMA, LLAMA8, MISTRAL = "meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.1"
QWEN3, GEMMA, GRANITE = "Qwen/Qwen3-0.6B", "google/gemma-2b", "ibm-granite/granite-3.3-8b-instruct"
GEMMA3, PHI4, SMOL = "google/gemma-3-1b-it", "microsoft/Phi-4-mini-instruct", "HuggingFaceTB/SmolLM2-360M"
# model, layers (None: all), method, checkpoints, rows, length, attention, further
ROWS = [
    *((LLAMA, None, "qlora", "unsloth", 2, 2048, kernel, {}) for kernel in ("xformers", "sdpa")),
    *((LLAMA, None, "lora", "full", 2, 1024, kernel, {}) for kernel in ("xformers", "sdpa")),
    *((LLAMA, None, "lora", "none", 2, 512, kernel, {}) for kernel in ("xformers", "sdpa")),
    *((LLAMA8, 4, "qlora", "unsloth", 2, 2048, kernel, {}) for kernel in ("xformers", "sdpa")),
    *((QWEN3, 8, "qlora", "unsloth", 2, 2048, kernel, {}) for kernel in ("xformers", "sdpa")),
    (LLAMA8, None, "qlora", "unsloth", 2, 2048, "xformers", {}),
    (LLAMA8, None, "qlora", "unsloth", 1, 8192, "sdpa", {}),
    (LLAMA, None, "qlora", "unsloth", 2, 1024, "xformers", {"peft": {"lora_dropout": 0.05}}),
    (LLAMA, None, "lora", "unsloth", 2, 1024, "xformers", {"peft": {"target_modules": ["q_proj", "v_proj"]}}),
    (LLAMA, None, "lora", "unsloth", 2, 1024, "xformers", {"peft": {"target_modules": ALL + ["embed_tokens", "lm_head"]}}),
    (MISTRAL, 6, "qlora", "unsloth", 2, 2048, "xformers", {}),
    (MISTRAL, 6, "lora", "none", 2, 1024, "xformers", {}),
    (GEMMA, 6, "qlora", "unsloth", 2, 2048, "xformers", {}),
    (GEMMA, 6, "lora", "none", 2, 512, "xformers", {}),
    (GRANITE, 6, "qlora", "unsloth", 2, 2048, "xformers", {}),
    (GRANITE, 6, "lora", "none", 1, 1024, "xformers", {}),
    (LLAMA, None, "qlora", "unsloth", 1, 32768, "xformers", {}),
    (QWEN3, None, "lora", "unsloth", 4, 8192, "xformers", {}),
    (LLAMA, None, "full", "unsloth", 2, 1024, "xformers", {"args": {"optim": "adamw_torch_fused"}}),
    (QWEN3, None, "full", "unsloth", 2, 1024, "xformers", {}),
    (GEMMA3, None, "qlora", "unsloth", 2, 1024, "xformers", {}),
    (GEMMA3, None, "lora", "none", 2, 1024, "xformers", {}),
    (PHI4, 8, "qlora", "unsloth", 2, 1024, "xformers", {}),
    (SMOL, None, "qlora", "unsloth", 2, 2048, "sdpa", {}),
    (LLAMA, None, "qlora", "unsloth", 2, 1024, "xformers", {"trainer": "dpo", "data": {"prompt": 512}, "args": {"max_length": 1024}}),
    (LLAMA, None, "qlora", "unsloth", 4, 512, "xformers",
     {"trainer": "grpo", "data": {"prompt": 256}, "args": {"max_completion_length": 256, "num_generations": 4}}),
]
NEED = 5 << 30


def request_of(job, method, checkpoints):
    args, adapter = job["args"], job.get("peft")
    task = job.get("trainer", "sft")
    q = {"schema": 1, "config": job["config"], "method": method, "precision": "bf16_amp", "micro_batch_size": args["per_device_train_batch_size"],
         "sequence_length": job["data"]["length"], "gradient_accumulation_steps": 1, "attention": job["backend"], "padding": task != "sft",
         "gradient_checkpointing": checkpoints, "optimizer": args.get("optim", "adamw_8bit"), "max_grad_norm": 1.0,
         "framework": {"name": "unsloth", "version": "2026.10.9"}}
    if adapter:
        names = adapter["target_modules"]
        saved = [name for name in names if name in ("embed_tokens", "lm_head")]
        q["adapter"] = {"r": 16, "lora_alpha": 16, "lora_dropout": adapter.get("lora_dropout", 0.0), "dtype": "fp32",
                        "target_modules": [name for name in names if name not in saved], **({"modules_to_save": saved} if saved else {})}
    if method == "qlora":
        q["quantization"] = {"bits": 4, "quant_type": "nf4", "double_quant": True}
    if task != "sft":
        q["task"] = task
    if task == "grpo":
        q.update(num_generations=args["num_generations"], max_completion_length=args["max_completion_length"])
    return q


def main(models, out):
    configs = {}
    for row in json.load(open(models)):
        for name in (row["id"], *row.get("aliases", []), *row.get("same_arch_ids", [])):
            configs.setdefault(name, row["config"])
    with open(out, "w") as f:
        for number, (model, layers, method, checkpoints, rows, length, kernel, more) in enumerate(ROWS):
            config = dict(configs[model])
            if layers:
                config.update(num_hidden_layers=layers, **({"layer_types": config["layer_types"][:layers]} if "layer_types" in config else {}))
            args = {"per_device_train_batch_size": rows, "bf16": True, **more.get("args", {})}
            job = {"module": "real_unsloth", "id": f"unsloth-{number}-{model.split('/')[-1]}-{method}-{more.get('trainer', checkpoints)}-{rows}x{length}-{kernel}",
                   "config": config, "backend": kernel, "timeout": 170, "expect_bytes": NEED, "args": args,
                   "unsloth": {"load_in_4bit": method == "qlora", **({"full_finetuning": True} if method == "full" else {})},
                   "data": {"length": length, **more.get("data", {})}, **({"trainer": more["trainer"]} if "trainer" in more else {})}
            if method == "full":
                args["gradient_checkpointing"] = True
            else:
                job["peft"] = {"target_modules": ALL, "use_gradient_checkpointing": {"unsloth": "unsloth", "full": True, "none": False}[checkpoints],
                               **more.get("peft", {})}
            f.write(json.dumps({**job, "request": request_of(job, method, checkpoints)}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
