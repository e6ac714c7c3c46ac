#!/usr/bin/env python3
"""optimizer_jobs.py MODELS.json > jobs.jsonl     jobs of optimizers of packages (recorder/packages.py), for records-optimizers.jsonl

Each optimizer meets full training in two precisions, where the step is the peak; adapters under checkpointing; and gradients that are
accumulated.  Those that project gradients are also told which, and to what rank.
"""
import json
import sys

NAMES = ["galore_adamw", "galore_adamw_8bit", "galore_adafactor", "galore_adamw_layerwise", "galore_adamw_8bit_layerwise", "apollo_adamw",
         "apollo_adamw_layerwise", "grokadamw", "came_pytorch", "schedule_free_adamw", "schedule_free_radam", "schedule_free_sgd", "lomo", "adalomo",
         "muon", "adam_mini", "adamw_torch_8bit", "adamw_torch_4bit", "ademamix", "ademamix_8bit", "paged_ademamix_32bit", "paged_ademamix_8bit",
         "rmsprop_bnb_8bit", "rmsprop_bnb_32bit", "adopt_adamw", "ao_adamw_fp8", "adamw_anyprecision", "lorafa", "badam", "dion", "q_galore_adamw8bit", "prodigy"]
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
QWEN, SMOLLM, GEMMA = "Qwen/Qwen2.5-0.5B", "HuggingFaceTB/SmolLM3-3B", "google/gemma-2-2b"
CUT = {"num_hidden_layers": 4}


def jobs_of(name):
    job = {"micro_batch": 1, "seq_len": 64, "optimizer": name}
    if name == "lorafa":
        yield from lorafa_jobs(job)
        return
    for precision in ("bf16", "amp_bf16"):
        yield {**job, "id": f"{name}-{precision}", "model": QWEN, "config_overrides": CUT, "method": "full", "precision": precision}
    if name not in ("adam_mini", "badam", "q_galore_adamw8bit"):      # likewise its adapters; theirs are not
        yield {**job, "id": f"{name}-lora", "model": SMOLLM, "config_overrides": CUT, "method": "lora", "precision": "bf16_amp", "seq_len": 256,
               "lora": {"r": 16, "target_modules": LINEAR, "adapter_dtype": "fp32", "dropout": 0.0}, "gradient_checkpointing": "full",
               "attention": "flash_attention_2", "padding": True}
    if name == "adam_mini":      # its step views queries and keys as heads of hidden_size ** 2 / heads elements, which these models' are not
        return
    # Layerwise optimizers do not accumulate; LOMO wants a second pass for losses in fp16.
    yield {**job, "id": f"{name}-accumulated", "model": GEMMA, "config_overrides": CUT, "method": "full", "attention": "eager", "micro_batch": 2,
           "precision": "bf16" if name in ("lomo", "adalomo") else "amp_fp16", "grad_accum": 1 if name.endswith("layerwise") else 2,
           "max_grad_norm": 0.0, "gradient_checkpointing": "full", "use_reentrant": True}
    if name in ("galore_adamw", "apollo_adamw"):
        yield {**job, "id": f"{name}-attention", "model": QWEN, "config_overrides": CUT, "method": "full", "precision": "bf16",
               "optim_target_modules": ["attn"], "optim_args": {"rank": 16}}
    if name == "apollo_adamw":
        yield {**job, "id": f"{name}-svd", "model": QWEN, "config_overrides": CUT, "method": "full", "precision": "amp_bf16",
               "optim_target_modules": r".*\.(mlp|self_attn)\..*", "optim_args": {"rank": 32, "proj": "svd"}}


def lorafa_jobs(job):
    """Adapters alone, whose first factor is frozen: with and without what else keeps a layer's input."""
    lora = {"r": 16, "alpha": 32, "target_modules": LINEAR, "dropout": 0.0}
    for i, (model, more, settings) in enumerate((
            (SMOLLM, {"precision": "bf16_amp", "gradient_checkpointing": "full"}, {}),
            (QWEN, {"precision": "bf16"}, {"adapter_dtype": "bf16"}),
            (QWEN, {"precision": "bf16_amp", "padding": True}, {"dropout": 0.05, "r": 64}),
            (QWEN, {"precision": "amp_bf16", "grad_accum": 2}, {"target_modules": ["q_proj", "v_proj"]}),
            (GEMMA, {"precision": "bf16", "attention": "eager", "gradient_checkpointing": "full", "use_reentrant": True}, {"r": 32}),
            (SMOLLM, {"precision": "bf16_amp", "method": "qlora", "kbit_prepare": True}, {"r": 128}),
            (QWEN, {"precision": "bf16_amp", "seq_len": 512}, {"modules_to_save": ["lm_head"]}))):
        yield {**job, "id": f"lorafa-{i}", "model": model, "config_overrides": CUT, "method": "lora", "seq_len": 256, "micro_batch": 2,
               "lora": {**lora, **settings}, **more}


def whole(job, models):
    """The config given whole, cut to a few layers."""
    config = {**next(row["config"] for row in models if row["id"] == job["model"]), **job.pop("config_overrides")}
    return {**{key: value for key, value in job.items() if key != "model"}, "config": config}


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        registry = json.load(f)
    for each in NAMES:
        for one in jobs_of(each):
            print(json.dumps(whole(one, registry)))
