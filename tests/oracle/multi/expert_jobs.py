#!/usr/bin/env python3
"""expert_jobs.py MODELS.json > jobs: expert parallelism by transformers ("ep-…") and by torchtitan ("titan-…"), of models of a few layers."""
import json
import sys

QWEN, OSS, LARGE = "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b", "Qwen/Qwen3-235B-A22B"
FULL, OP = {"gradient_checkpointing": "full"}, {"gradient_checkpointing": {"selective": ["op"]}}
LORA = {"method": "lora", "lora": {"r": 16, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], "dropout": 0.0, "adapter_dtype": "fp32"}}
ON_EXPERTS = {"method": "lora", "lora": {"r": 8, "target_modules": ["q_proj", "v_proj"], "target_parameters": "experts", "dropout": 0.0, "adapter_dtype": "fp32"}}
SMALL = {"vocab_size": 16384}            # so that layers decide
DEFAULTS = {"method": "full", "micro_batch": 1, "seq_len": 1024, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused"}

MODELS = {}


def config(model, layers, **more):
    out = {**MODELS[model]["config"], "num_hidden_layers": layers, **more}
    if "layer_types" in out:
        out["layer_types"] = out["layer_types"][:layers]
    return out


def transformers(name, model, expert, layers=3, **more):
    return {**DEFAULTS, "id": f"ep-{name}", "config": config(model, layers), "precision": "bf16",
            "parallelism": {"strategy": "ep", "expert": expert}, **more}


def torchtitan(name, model, data, expert, layers=4, reduce="fp32", reshard=True, changed=SMALL, **more):
    par = {"strategy": "titan", "data": data, "expert": expert, "param_dtype": "bf16", "reduce_dtype": reduce, "groups": "separate", "reshard_last": True}
    if not reshard:
        par["reshard_after_forward"] = False
    return {**DEFAULTS, "id": f"titan-{name}", "config": config(model, layers, **changed), "precision": "fp32", "seq_len": 4096, "loss": "hf_titan",
            "parallelism": par, **more}


def jobs():
    yield transformers("qwen3moe-8", QWEN, 8)
    yield transformers("qwen3moe-4-ck", QWEN, 4, **FULL, seq_len=2048)
    yield transformers("qwen3moe-8-amp", QWEN, 8, precision="amp_bf16")
    yield transformers("qwen3moe-2-amp-ck", QWEN, 2, precision="amp_bf16", **FULL, seq_len=2048)
    yield transformers("qwen3moe-8-bf16amp-lora", QWEN, 8, precision="bf16_amp", **LORA)
    yield transformers("qwen3moe-16-lora-ck", QWEN, 16, **FULL, seq_len=4096, **LORA)
    yield transformers("qwen3moe-128-one-expert", QWEN, 128, seq_len=2048)
    yield transformers("qwen3moe-8-fp32-foreach", QWEN, 8, precision="fp32", optimizer="adamw_torch")
    yield transformers("qwen3moe-8-batched", QWEN, 8, experts="batched_mm", seq_len=128, **LORA)
    yield transformers("qwen3moe-8-lora-experts", QWEN, 8, **ON_EXPERTS)
    yield transformers("qwen3moe-8-lora-experts-ck", QWEN, 8, layers=6, seq_len=2048, **FULL, **ON_EXPERTS)
    yield transformers("qwen3moe-4-accum", QWEN, 4, grad_accum=2)
    yield transformers("gptoss-8", OSS, 8, layers=4)
    yield transformers("gptoss-4-ck", OSS, 4, layers=4, **FULL, seq_len=2048)
    yield transformers("gptoss-8-amp", OSS, 8, layers=4, precision="amp_bf16")
    yield transformers("gptoss-32-lora", OSS, 32, layers=4, seq_len=2048, **LORA)
    yield torchtitan("qwen3moe-8x8", QWEN, 8, 8)
    yield torchtitan("qwen3moe-8x8-ck", QWEN, 8, 8, **FULL)
    yield torchtitan("qwen3moe-8x2-op", QWEN, 8, 2, **OP)
    yield torchtitan("qwen3moe-16x4-ck-vocab", QWEN, 16, 4, changed={}, seq_len=8192, **FULL)
    yield torchtitan("qwen3moe-64x4", QWEN, 64, 4)
    yield torchtitan("qwen3moe-32x8-every2", QWEN, 32, 8, gradient_checkpointing={"every": 2})
    yield torchtitan("qwen3moe-16x8-noreshard", QWEN, 16, 8, reshard=False)
    yield torchtitan("qwen3moe-8x8-bf16", QWEN, 8, 8, precision="bf16", reduce="bf16")
    yield torchtitan("qwen3moe-8x4-b4-ck", QWEN, 8, 4, micro_batch=4, seq_len=2048, **FULL)
    yield torchtitan("qwen3moe-8x4-b2-op", QWEN, 8, 4, micro_batch=2, seq_len=2048, **OP)
    yield torchtitan("qwen3moe-8x8-accum", QWEN, 8, 8, grad_accum=2, seq_len=2048)
    yield torchtitan("qwen3moe-8x8-foreach", QWEN, 8, 8, optimizer="adamw_torch", seq_len=512)
    yield torchtitan("qwen3moe-8x1", QWEN, 8, 1, seq_len=2048)
    yield torchtitan("qwen3moe-256x128-ck", QWEN, 256, 128, seq_len=2048, **FULL)
    yield torchtitan("qwen3moe-235b-64x16-ck", LARGE, 64, 16, seq_len=4096, **FULL)


def main():
    for row in json.load(open(sys.argv[1])):
        for name in (row["id"], *row.get("aliases", []), *row.get("same_arch_ids", [])):
            MODELS.setdefault(name, row)
    for job in jobs():
        print(json.dumps(job))


if __name__ == "__main__":
    main()
