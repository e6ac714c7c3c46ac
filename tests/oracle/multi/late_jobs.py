#!/usr/bin/env python3
"""late_jobs.py MODELS.json > jobs: families that came to transformers late, and hybrids, on several GPUs ("late-…").

Decoders and models that see are those of ../newer_jobs.py, a few layers as wide as the published ones; hybrids are those of
../records-beyond.jsonl; Qwen3.5's are the published ones of MODELS.json, cut to a few layers.
"""
import copy
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import make_records  # noqa: E402
import newer_jobs  # noqa: E402

DEFAULTS = {"method": "full", "precision": "bf16", "micro_batch": 1, "seq_len": 512, "grad_accum": 1, "attention": "sdpa", "padding": False,
            "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "max_grad_norm": 1.0, "loss": "default"}
CHECKPOINTS = {"none": {}, "ck": {"gradient_checkpointing": "full", "use_reentrant": False}, "re": {"gradient_checkpointing": "full", "use_reentrant": True}}
SIZE = {"lfm2_vl": [512, 512], "gemma4_unified": [512, 512], "qwen3_5": [512, 512], "qwen3_5_moe": [512, 512]}      # others' patches are of 14
# Of its class's own list some are in no LFM2-VL, and accelerate fails (transformers' Trainer takes these from fsdp_transformer_layer_cls_to_wrap).
WRAP = {"lfm2_vl": ["Lfm2DecoderLayer", "Siglip2EncoderLayer"]}
HYBRIDS = {"granite-h": "granite-4-h-tiny-L4-lora-ck", "granite-h-dense": "granite-4-h-350m-L4-amp", "qwen3-next": "qwen3-next-80b-L4-fla-lora",
                    "gpt-oss": "gpt-oss-20b-gmm-ck", "gemma3n": "gemma3n-mm-e2b-lora-ckpt", "gemma4": "gemma4-e2b-mm-text-lora-ck"}


def hybrids():
    out = {}
    for line in open(os.path.join(HERE, "..", "records-beyond.jsonl")):
        record = json.loads(line)
        for name, of in HYBRIDS.items():
            if record["id"] == of:
                out[name] = make_records.job_of(record)["config"]
    text = out["gemma3n"]["text_config"]
    out["gemma3n-text"] = {**text, "architectures": ["Gemma3nForCausalLM"]}
    return out


def qwen35(models):
    """One round of its layers, three that carry a state and one that attends; of 256 experts 32."""
    table = {row["id"]: row["config"] for row in json.load(open(models))}
    out = {}
    for name, of in (("qwen3.5", "Qwen/Qwen3.5-0.8B"), ("qwen3.5-moe", "Qwen/Qwen3.5-35B-A3B")):
        config = copy.deepcopy(table[of])
        config["text_config"].update(num_hidden_layers=4, layer_types=config["text_config"]["layer_types"][:4])
        config["vision_config"]["depth"] = 4
        if "num_experts" in config["text_config"]:
            config["text_config"]["num_experts"] = 32
        out[name] = config
    return out


def adapter(dtype):
    return {"method": "lora", "lora": {"r": 16, "alpha": 32, "dropout": 0.0, "adapter_dtype": dtype, "target_modules": "all-linear"}}


def accelerate(method):
    """accelerate's FSDP 2 with mixed precision, as the Trainer asks for it."""
    out = {"parallelism": {"strategy": "fsdp2", "data": 4, "accelerate": "1.15.0", "mixed_precision": "bf16", "param_dtype": "bf16",
                           "reduce_dtype": "bf16", "reshard_after_forward": True}}
    return {**out, "precision": "fp32"} if method == "full" else {**out, **adapter("fp32")}


def fsdp2(method):
    out = {"parallelism": {"strategy": "fsdp2", "data": 8}}
    if method == "full":
        out["parallelism"].update(param_dtype="bf16", reduce_dtype="fp32")
        return {**out, "precision": "fp32"}
    return {**out, **adapter("bf16")}


def fsdp1(method):
    out = {"parallelism": {"strategy": "fsdp1", "data": 4}}
    if method == "full":
        out["parallelism"].update(param_dtype="bf16", reduce_dtype="fp32", use_orig_params=True)
        return {**out, "precision": "fp32"}
    out["parallelism"].update(wrap="peft", use_orig_params=False)
    return {**out, **adapter("bf16")}


def zero(stage):
    def of(method):
        out = {"parallelism": {"strategy": f"zero{stage}", "data": 4, "hf_auto": True}}
        return {**out, **(adapter("bf16") if method == "lora" else {})}
    return of


def ddp(method):
    out = {"parallelism": {"strategy": "ddp", "data": 4}}
    return {**out, "precision": "bf16_amp", **adapter("fp32")} if method == "lora" else {**out, "precision": "amp_bf16"}


HOW = {"acc": accelerate, "fsdp2": fsdp2, "fsdp1": fsdp1, "zero1": zero(1), "zero2": zero(2), "zero3": zero(3), "ddp": ddp}
DRAWN = [
    ("lfm2-moe", "acc full ck", "zero3 lora re"), ("hunyuan-moe", "zero3 full none", "fsdp2 lora ck"), ("hy3", "acc lora ck", "zero3 full ck"),
    ("mistral4", "fsdp2 full none", "zero3 lora ck"), ("afmoe", "zero3 full re", "fsdp1 lora ck", "acc lora none"), ("dots1", "acc full none", "zero3 lora none"),
    ("olmo-hybrid", "zero3 full ck", "fsdp2 lora none"), ("youtu", "acc lora none", "zero3 full none", "fsdp1 full ck"),
    ("gemma4-12b-text", "acc full ck", "zero3 lora ck", "fsdp1 lora re"), ("gemma4-12b", "zero3 full none", "acc lora ck", "fsdp1 full none"),
    ("lfm2-vl", "acc full none", "zero3 lora none", "ddp lora ck"), ("glm-ocr", "zero3 full ck", "acc lora none", "zero2 full none"),
    ("glm46v-flash", "acc full ck", "zero3 lora re"), ("paddleocr-vl", "zero3 full none", "acc lora ck", "ddp full none"),
    ("mistral-small-4", "acc full none", "zero3 lora ck"), ("granite-h", "acc lora ck", "zero3 full none"), ("granite-h-dense", "fsdp1 full none", "zero1 full ck"),
    ("qwen3-next", "acc full ck", "zero3 lora ck"), ("qwen3.5", "acc lora none", "zero3 full ck"), ("qwen3.5-moe", "zero3 lora re", "acc full none"),
    ("gpt-oss", "acc lora ck", "zero2 lora none"), ("gemma3n-text", "acc full none", "zero3 lora ck"), ("gemma3n", "zero3 full none", "acc lora ck"),
    ("gemma4", "acc lora ck", "zero3 full none"),
]


def one(name, config, words):
    how, method, checkpoint = words.split()
    kind = config["model_type"]
    job = {**DEFAULTS, "id": f"late-{name}-{how}-{method}-{checkpoint}", "config": config, **HOW[how](method), **CHECKPOINTS[checkpoint]}
    if method == "lora":
        job["micro_batch"] = 2
    if "vision_config" in config:
        job.update(kind="vlm", images=1, image_size=SIZE.get(kind, [448, 448]), seq_len=1024)
        if kind in ("gemma3n", "gemma4"):
            del job["images"], job["image_size"]
    if how == "acc" and kind in WRAP:
        job["parallelism"]["transformer_cls_names_to_wrap"] = WRAP[kind]
    if kind.startswith("qwen3"):
        job["kernels"] = "fla"
    if kind in ("granitemoehybrid", "lfm2_moe", "lfm2_vl", "olmo_hybrid"):
        job.update(kernels="torch-slow", seq_len=min(job["seq_len"], 256 if kind != "lfm2_vl" else 1024))
    return job


def main():
    configs = {**newer_jobs.DECODERS, **newer_jobs.SEEING, **hybrids(), **qwen35(sys.argv[1])}
    for name, *rows in DRAWN:
        for words in rows:
            print(json.dumps(one(name, configs[name], words)))


if __name__ == "__main__":
    main()
