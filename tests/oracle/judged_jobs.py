#!/usr/bin/env python3
"""judged_jobs.py RECORDS.jsonl... > jobs.jsonl    jobs of TRL's experimental trainers: BCO, TPO, PRM, PPO (recorder/ppo.py), online DPO (recorder/online.py); configs are taken from the records named, by model type

recorder/run.sh /srv/sid forked.py /o2/jobs.jsonl /o2/raw.jsonl /o2/models.json; make_records.py --brief records-loops.jsonl raw.jsonl
"""
import json
import sys

from grpo_jobs import configurations, with_layers

LORA = {"method": "lora", "lora": {"r": 16}}
QLORA = {"method": "qlora", "lora": {"r": 16}}
KEPT = {"gradient_checkpointing": "full"}
COPY, OFF, BEFORE = ({"reference": word} for word in ("copy", "adapter", "precomputed"))
# id: (model type, layers, what the job says)
BCO = {
    "llama-full-amp": ("llama", 3, {"precision": "bf16_amp", "micro_batch": 4, "seq_len": 512, "grad_accum": 2, **COPY}),
    "llama-full-16": ("llama", 2, {"precision": "bf16", "micro_batch": 3, "seq_len": 768, **COPY}),
    "llama-lora-kept": ("llama", 4, {"precision": "bf16_amp", "micro_batch": 4, "seq_len": 512, "padding": True, **OFF, **LORA, **KEPT}),
    "qwen2-full-kept": ("qwen2", 6, {"precision": "amp_bf16", "micro_batch": 2, "seq_len": 512, "padding": True, **COPY, **KEPT}),
    "qwen2-lora-copy": ("qwen2", 4, {"precision": "bf16_amp", "micro_batch": 2, "seq_len": 512, "grad_accum": 2, **COPY, **LORA}),
    "qwen2-lora-before": ("qwen2", 6, {"precision": "bf16_amp", "micro_batch": 4, "seq_len": 384, **BEFORE, **LORA, **KEPT}),
    "mistral-qlora": ("mistral", 3, {"precision": "bf16_amp", "micro_batch": 2, "seq_len": 512, **OFF, **QLORA, **KEPT}),
    "gpt2-fp32": ("gpt2", 4, {"precision": "fp32", "micro_batch": 1, "seq_len": 512, **COPY}),
}
TPO = {
    "llama-full": ("llama", 3, {"precision": "bf16_amp", "micro_batch": 2, "seq_len": 512, "padding": True}),
    "llama-full-16": ("llama", 4, {"precision": "bf16", "micro_batch": 1, "seq_len": 768, **KEPT}),
    "qwen2-full-kept": ("qwen2", 6, {"precision": "amp_bf16", "micro_batch": 2, "seq_len": 512, "padding": True, **KEPT}),
    "qwen2-lora": ("qwen2", 4, {"precision": "bf16_amp", "micro_batch": 3, "seq_len": 384, "grad_accum": 2, **LORA}),
    "mistral-qlora": ("mistral", 3, {"precision": "bf16_amp", "micro_batch": 2, "seq_len": 512, **QLORA, **KEPT}),
    "gpt2-fp32": ("gpt2", 4, {"precision": "fp32", "micro_batch": 1, "seq_len": 512}),
    "qwen3-lora-16": ("qwen3", 6, {"precision": "bf16", "micro_batch": 1, "seq_len": 1024, **LORA, **KEPT}),
}
OF_TOKENS = {"task_type": "TOKEN_CLS", "target_modules": ["q_proj", "v_proj", "up_proj"]}
TOKENS = {"llama": "LlamaForTokenClassification", "qwen2": "Qwen2ForTokenClassification", "qwen3": "Qwen3ForTokenClassification", "gpt2": "GPT2ForTokenClassification"}
PRM = {
    "llama-full": ("llama", 3, {"precision": "bf16_amp", "micro_batch": 4, "seq_len": 512, "padding": True}),
    "qwen2-full-kept": ("qwen2", 8, {"precision": "amp_bf16", "micro_batch": 8, "seq_len": 1024, **KEPT}),
    "qwen3-lora": ("qwen3", 4, {"precision": "bf16_amp", "micro_batch": 4, "seq_len": 768, "grad_accum": 2, "method": "lora",
                                "lora": {"r": 32, "dropout": 0.05, **OF_TOKENS}}),
    "qwen2-lora-16": ("qwen2", 6, {"precision": "bf16", "micro_batch": 2, "seq_len": 512, "method": "lora", "lora": {"r": 16, **OF_TOKENS}, **KEPT}),
    "gpt2-fp32": ("gpt2", 4, {"precision": "fp32", "micro_batch": 4, "seq_len": 512}),
}

# What TRL's scripts make of PPO: no autocast unless accelerate's own launcher asks for it, and no checkpoints (recorder/ppo.py).
PPO = {
    "llama-full-16": ("llama", 3, {"precision": "bf16", "micro_batch": 4, "prompt_len": 128, "completion_len": 48, "reference": "copy"}),
    "llama-lora-16": ("llama", 3, {"precision": "bf16", "micro_batch": 2, "prompt_len": 192, "completion_len": 64, "grad_accum": 2, "reference": "adapter", **LORA}),
    "llama-full-amp": ("llama", 2, {"precision": "bf16_amp", "micro_batch": 4, "prompt_len": 256, "completion_len": 64, "grad_accum": 2, "reference": "copy"}),
    "qwen2-full-32": ("qwen2", 4, {"precision": "fp32", "micro_batch": 2, "prompt_len": 128, "completion_len": 53, "grad_accum": 4, "reference": "copy"}),
    "qwen2-parts": ("qwen2", 4, {"precision": "bf16", "micro_batch": 4, "prompt_len": 128, "completion_len": 53, "grad_accum": 4, "rows_at_once": 4, "reference": "copy"}),
    "qwen2-lora-32": ("qwen2", 6, {"precision": "fp32", "micro_batch": 8, "prompt_len": 256, "completion_len": 32, "reference": "adapter", **LORA}),
    "qwen2-lora-padding": ("qwen2", 6, {"precision": "bf16", "micro_batch": 4, "prompt_len": 256, "completion_len": 53, "grad_accum": 2, "padding": True,
                                        "reference": "adapter", **LORA}),
    "pythia-full-32": ("gpt_neox", 4, {"precision": "fp32", "micro_batch": 4, "prompt_len": 128, "completion_len": 53, "grad_accum": 2, "reference": "copy"}),
    "pythia-lora-ones": ("gpt_neox", 4, {"precision": "bf16", "micro_batch": 2, "prompt_len": 200, "completion_len": 53, "grad_accum": 4, "rows_at_once": 1,
                                         "reference": "adapter", **LORA}),
    "qwen3-judged": ("qwen3", 4, {"precision": "bf16", "micro_batch": 4, "prompt_len": 128, "completion_len": 48, "reference": "copy",
                                  "judge": {"num_hidden_layers": 6}}),
    "llama-amp32": ("llama", 2, {"precision": "amp_bf16", "micro_batch": 2, "prompt_len": 128, "completion_len": 53, "grad_accum": 2, "reference": "copy"}),
}

# Two answers a prompt.
PAIRS = {
    "llama-full-16": ("llama", 3, {"precision": "bf16", "micro_batch": 2, "prompt_len": 128, "completion_len": 64, "judge": {}, **COPY}),
    "llama-full-amp": ("llama", 2, {"precision": "bf16_amp", "micro_batch": 2, "prompt_len": 192, "completion_len": 64, "grad_accum": 2, "judge": {}, **COPY}),
    "qwen2-full-kept": ("qwen2", 6, {"precision": "amp_bf16", "micro_batch": 2, "prompt_len": 256, "completion_len": 64, "judge": {}, **COPY, **KEPT}),
    "qwen2-functions": ("qwen2", 4, {"precision": "bf16_amp", "micro_batch": 3, "prompt_len": 128, "completion_len": 128, **COPY, **KEPT}),
    "llama-lora-kept": ("llama", 4, {"precision": "bf16_amp", "micro_batch": 2, "prompt_len": 384, "completion_len": 128, "padding": True, "judge": {},
                                     **OFF, **LORA, **KEPT}),
    "qwen2-lora-judged": ("qwen2", 4, {"precision": "bf16", "micro_batch": 4, "prompt_len": 256, "completion_len": 53, "grad_accum": 2,
                                       "judge": {"num_hidden_layers": 8}, **OFF, **LORA}),
    "qwen3-lora-32": ("qwen3", 4, {"precision": "fp32", "micro_batch": 1, "prompt_len": 512, "completion_len": 64, "grad_accum": 2, **OFF, **LORA}),
    "mistral-qlora": ("mistral", 3, {"precision": "bf16_amp", "micro_batch": 2, "prompt_len": 256, "completion_len": 64, "judge": {}, **OFF, **QLORA, **KEPT}),
    "pythia-full-16": ("gpt_neox", 6, {"precision": "bf16", "micro_batch": 4, "prompt_len": 512, "completion_len": 53, "judge": {}, **COPY}),
    "llama-lora-amp": ("llama", 4, {"precision": "bf16_amp", "micro_batch": 2, "prompt_len": 64, "completion_len": 192, "judge": {}, **OFF, **LORA}),
}


def main():
    configs = configurations(sys.argv[1:])
    for name, (kind, layers, words) in BCO.items():
        print(json.dumps({"id": "bco-" + name, "config": with_layers(configs[kind], layers), "task": "bco", "method": "full", **words}))
    for name, (kind, layers, words) in TPO.items():
        print(json.dumps({"id": "tpo-" + name, "config": with_layers(configs[kind], layers), "task": "tpo", "method": "full", **words}))
    for name, (kind, layers, words) in PRM.items():
        config = {**with_layers(configs[kind], layers), "num_labels": 2, "architectures": [TOKENS[kind]]}
        print(json.dumps({"id": "prm-" + name, "config": config, "architecture": TOKENS[kind], "task": "prm", "method": "full", **words}))
    for name, (kind, layers, words) in PPO.items():
        job = {"id": "ppo-" + name, "config": with_layers(configs[kind], layers), "task": "ppo", "method": "full", "max_grad_norm": 0.0, **words}
        print(json.dumps({**job, "seq_len": job["prompt_len"] + job["completion_len"]}))
    for name, (kind, layers, words) in PAIRS.items():
        job = {"id": "online-" + name, "config": with_layers(configs[kind], layers), "task": "online_dpo", "method": "full", **words}
        print(json.dumps({**job, "seq_len": job["prompt_len"] + job["completion_len"]}))


if __name__ == "__main__":
    main()
