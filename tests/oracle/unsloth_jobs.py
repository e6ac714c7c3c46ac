#!/usr/bin/env python3
"""unsloth_jobs.py MODELS.json: jobs of Unsloth's FastLanguageModel (recorder/unslothed.py), for record.py, each in a process of its own."""
import json
import sys

MODELS = {"llama": "meta-llama/Llama-3.2-1B", "llama8": "meta-llama/Llama-3.1-8B", "mistral": "mistralai/Mistral-7B-v0.1", "qwen2": "Qwen/Qwen2.5-0.5B",
          "qwen2b": "Qwen/Qwen2.5-7B", "qwen3": "Qwen/Qwen3-0.6B", "qwen3b": "Qwen/Qwen3-8B",
          "gemma": "google/gemma-2b", "granite": "ibm-granite/granite-3.3-8b-instruct"}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# short name, layers (None: all), method, checkpointing, rows, length, further
ROWS = [
    ("llama", None, "qlora", "unsloth", 2, 2048, {}),
    ("llama", None, "lora", "unsloth", 2, 1024, {}),
    ("llama8", 4, "qlora", "unsloth", 1, 2048, {"precision": "fp16_amp", "arch": 75}),
    ("llama8", 4, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit", "grad_accum": 2}),
    ("llama8", 4, "lora", "full", 2, 1024, {}),
    ("llama8", 3, "lora", "none", 1, 1024, {}),
    ("llama8", 3, "qlora", "none", 2, 512, {"lora": {"r": 64}}),
    ("llama8", 4, "qlora", "unsloth", 1, 8192, {"optimizer": "adamw_8bit"}),
    ("mistral", 4, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit"}),
    ("mistral", 4, "qlora", "unsloth", 1, 1024, {"precision": "fp16_amp", "arch": 75, "optimizer": "adamw_8bit"}),
    ("mistral", 4, "lora", "unsloth", 4, 512, {}),
    ("mistral", 3, "lora", "none", 2, 1024, {}),
    ("mistral", 4, "qlora", "full", 1, 4096, {"use_reentrant": True}),
    ("qwen2", None, "qlora", "unsloth", 4, 1024, {"optimizer": "adamw_8bit"}),
    ("qwen2", 6, "lora", "unsloth", 2, 512, {}),
    ("qwen2", 6, "lora", "none", 2, 512, {}),
    ("qwen2", 6, "qlora", "full", 2, 1024, {}),
    ("qwen2b", 4, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit", "grad_accum": 2}),
    ("qwen2b", 4, "lora", "none", 1, 1024, {}),
    ("qwen3", 8, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit"}),
    ("qwen3", 8, "lora", "unsloth", 2, 1024, {}),
    ("qwen3", 6, "lora", "none", 2, 512, {"grad_accum": 2}),
    ("qwen3", 6, "qlora", "full", 2, 1024, {}),
    ("qwen3", 6, "qlora", "unsloth", 2, 1024, {"precision": "fp16_amp", "arch": 75}),
    ("qwen3b", 4, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit", "lora": {"r": 32}}),
    ("qwen3b", 4, "lora", "full", 1, 2048, {"use_reentrant": True}),
    # the slow path: dropout, and adapters on some layers alone
    ("llama", 6, "qlora", "unsloth", 2, 1024, {"lora": {"dropout": 0.05}}),
    ("llama", 6, "lora", "none", 2, 512, {"lora": {"dropout": 0.1}}),
    ("llama", 6, "lora", "unsloth", 2, 1024, {"lora": {"target_modules": ["q_proj", "v_proj"]}}),
    ("llama", 6, "qlora", "none", 2, 512, {"lora": {"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}}),
    ("qwen3", 6, "qlora", "unsloth", 2, 1024, {"lora": {"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}}),
    ("mistral", 4, "lora", "unsloth", 1, 2048, {"lora": {"target_modules": ["gate_proj", "up_proj", "down_proj"]}}),
    # flash-attn in the place of xFormers
    ("llama8", 4, "qlora", "unsloth", 2, 2048, {"backend": "fa2"}),
    ("mistral", 4, "lora", "none", 2, 1024, {"backend": "fa2"}),
    ("qwen3", 6, "lora", "unsloth", 2, 1024, {"backend": "fa2"}),
    ("qwen2", 6, "lora", "full", 2, 1024, {"backend": "fa2"}),
    # rows that are padded: a plain Trainer, or padding_free=False
    ("llama8", 4, "qlora", "unsloth", 2, 2048, {"padding_free": False}),
    ("llama", 6, "lora", "none", 4, 512, {"padding_free": False}),
    ("mistral", 4, "qlora", "full", 2, 1024, {"padding_free": False}),
    ("qwen2", 6, "qlora", "unsloth", 2, 1024, {"padding_free": False}),
    ("qwen3", 6, "lora", "unsloth", 2, 1024, {"padding_free": False, "backend": "fa2"}),
    # inputs too small to leave the card; many chunks of logits; the first step's states
    ("llama", 6, "qlora", "unsloth", 1, 256, {}),
    ("qwen2", 6, "lora", "unsloth", 8, 2048, {"optimizer": "adamw_8bit"}),
    ("qwen3", 4, "lora", "unsloth", 4, 8192, {}),
    ("llama", 4, "qlora", "unsloth", 1, 32768, {}),
    # continued pretraining: the head and the table are trained, too
    ("llama", 4, "lora", "unsloth", 2, 1024, {"lora": {"modules_to_save": ["embed_tokens", "lm_head"]}}),
    ("mistral", 3, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit", "lora": {"r": 128, "modules_to_save": ["embed_tokens", "lm_head"]}}),
    ("qwen3b", 3, "qlora", "none", 1, 1024, {"lora": {"modules_to_save": ["lm_head"]}}),
    ("qwen2b", 3, "qlora", "full", 1, 2048, {"lora": {"modules_to_save": ["embed_tokens"]}}),
    # further families
    ("gemma", 4, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit"}),
    ("gemma", 3, "lora", "none", 2, 512, {}),
    ("gemma", 4, "lora", "unsloth", 2, 1024, {"lora": {"dropout": 0.1}}),
    ("gemma", 4, "qlora", "full", 2, 1024, {"backend": "fa2", "padding_free": False}),
    ("granite", 4, "qlora", "unsloth", 2, 2048, {"optimizer": "adamw_8bit"}),
    ("granite", 3, "lora", "none", 1, 1024, {}),
    ("granite", 4, "lora", "full", 2, 1024, {"backend": "fa2"}),
    ("granite", 3, "qlora", "unsloth", 2, 1024, {"padding_free": False, "grad_accum": 2}),
]


def main(path):
    configs = {}
    for row in json.load(open(path)):
        for name in (row["id"], *row.get("aliases", []), *row.get("same_arch_ids", [])):
            configs[name] = row["config"]
    for number, (short, layers, method, checkpointing, rows, length, more) in enumerate(ROWS):
        more = dict(more)
        how = {key: more.pop(key) for key in ("backend", "padding_free") if key in more}
        lora = {"r": 16, "alpha": 16, "target_modules": ALL, **more.pop("lora", {})}
        job = {"id": f"unsloth-{short}-{method}-{checkpointing}-{rows}x{length}-{number}", "method": method, "precision": "bf16_amp", "micro_batch": rows,
               "seq_len": length, "grad_accum": 1, "gradient_checkpointing": checkpointing, "use_reentrant": checkpointing == "unsloth",
               "optimizer": "adamw_torch_fused", "unsloth": how, "lora": lora, **more}
        if checkpointing == "unsloth":
            job["steps"] = 3                        # the second buffer of checkpoints grows in the second pass
        config = configs[MODELS[short]]
        job["config"] = {**config, "num_hidden_layers": layers or config["num_hidden_layers"]}
        if short == "granite":
            job["config"]["residual_multiplier"] = 0.22     # with 1 autograd skips the product
        print(json.dumps(job))


if __name__ == "__main__":
    main(*sys.argv[1:])
