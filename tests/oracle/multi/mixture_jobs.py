#!/usr/bin/env python3
"""mixture_jobs.py > jobs: mixtures of experts divided by FSDP and ZeRO ("mix-…"), and checkpoints in host memory under ZeRO-3 ("hold-…").

The models are those of ../records-beyond.jsonl, with few layers: of each type the first one that is a plain causal LM.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import make_records  # noqa: E402

TYPES = ("mixtral", "qwen3_moe", "deepseek_v2", "gpt_oss", "olmoe", "glm4_moe", "granitemoe", "ernie4_5_moe")
DEFAULTS = {"method": "full", "precision": "bf16", "micro_batch": 2, "seq_len": 512, "grad_accum": 1, "attention": "sdpa", "padding": False,
            "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "max_grad_norm": 1.0, "loss": "default", "experts": "grouped_mm"}
CHECKPOINTS = {"none": {}, "ck": {"gradient_checkpointing": "full", "use_reentrant": False}, "re": {"gradient_checkpointing": "full", "use_reentrant": True},
               "host": {"gradient_checkpointing": "offload"}}
ADAPTER = {"r": 16, "alpha": 32, "dropout": 0.0, "adapter_dtype": "bf16", "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}
METHODS = {"full": {}, "lora": {"method": "lora", "lora": ADAPTER},
           "qlora": {"method": "qlora", "lora": ADAPTER, "kbit_prepare": False, "quant_storage": "bf16"}}


# Llama 4's experts are multiplied as they lie: layers of Scout's widths.
SCOUT = {"num_hidden_layers": 3}


def configs():
    found = {}
    for line in open(os.path.join(HERE, "..", "records-beyond.jsonl")):
        job = make_records.job_of(json.loads(line))
        config = job.get("config", {})
        if config.get("model_type") in (*TYPES, "llama4_text") and config["architectures"][0].endswith("ForCausalLM"):
            found.setdefault(config["model_type"], config)
    return found


def fsdp(version, method, data, reduce="fp32"):
    """Full: fp32 masters and bf16 in between; adapters: all in bf16, as the parts of one unit must be."""
    out = {"parallelism": {"strategy": f"fsdp{version}", "data": data}}
    if method == "full":
        out["parallelism"].update(param_dtype="bf16", reduce_dtype=reduce)
        out["precision"] = "fp32"
        if version == 1:
            out["parallelism"]["use_orig_params"] = True
    elif version == 1:
        out["parallelism"].update(wrap="peft", use_orig_params=False)
    return out


def jobs():
    model = configs()
    dense = {"llama": {"architectures": ["LlamaForCausalLM"], "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192,
                       "max_position_embeddings": 131072, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 4,
                       "num_key_value_heads": 8, "rope_theta": 500000.0, "tie_word_embeddings": True, "vocab_size": 128256}}

    def one(name, config, method, checkpoint, placed, **more):
        return {**DEFAULTS, "id": name, "config": config, **METHODS[method], **CHECKPOINTS[checkpoint], **placed, **more}

    for kind in TYPES:
        if kind not in model:
            continue
        for version in (2, 1):
            for method, checkpoint, data in (("full", "none", 4), ("full", "ck", 8), ("lora", "re", 2), ("qlora", "ck", 4)):
                if version == 1 and kind not in ("mixtral", "qwen3_moe", "gpt_oss"):
                    continue
                if kind == "gpt_oss" and method == "qlora":
                    continue
                yield one(f"mix-{kind}-fsdp{version}-{method}-{checkpoint}", model[kind], method, checkpoint, fsdp(version, method, data))
        yield one(f"mix-{kind}-ddp-full-ck", model[kind], "full", "ck", {"parallelism": {"strategy": "ddp", "data": 4}}, precision="amp_bf16")
        yield one(f"mix-{kind}-zero2-full-ck", model[kind], "full", "ck", {"parallelism": {"strategy": "zero2", "data": 4, "hf_auto": True}})
        yield one(f"mix-{kind}-zero3-full-re", model[kind], "full", "re", {"parallelism": {"strategy": "zero3", "data": 8, "hf_auto": True}}, grad_accum=2)
    zero3 = {"parallelism": {"strategy": "zero3", "data": 4, "hf_auto": True}}
    for kind in ("deepseek_v2", "gpt_oss", "olmoe", "glm4_moe"):               # DeepSpeed takes none of their blocks for leaf modules
        for method in ("full", "lora"):
            for checkpoint in ("none", "ck", "re"):
                if (method, checkpoint) != ("full", "re"):
                    yield one(f"mix-{kind}-zero3-{method}-{checkpoint}", model[kind], method, checkpoint, zero3)
    scout = {**model["llama4_text"], **SCOUT}
    for method, checkpoint in (("full", "none"), ("full", "ck"), ("lora", "none"), ("lora", "ck"), ("lora", "re"), ("qlora", "ck")):
        yield one(f"mix-llama4-zero3-{method}-{checkpoint}", scout, method, checkpoint, zero3)
    for kind, config in {**dense, "mixtral": model["mixtral"], "qwen3_moe": model["qwen3_moe"], "deepseek_v2": model["deepseek_v2"]}.items():
        for method in METHODS:
            yield one(f"hold-{kind}-zero3-{method}", config, method, "host", zero3)
    for method in METHODS:
        yield one(f"hold-mixtral-fsdp2-{method}", model["mixtral"], method, "host", fsdp(2, method, 4))


if __name__ == "__main__":
    for job in jobs():
        if job["config"]["model_type"] == "llama":
            job.pop("experts")
        print(json.dumps(job))
