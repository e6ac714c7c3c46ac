#!/usr/bin/env python3
"""gkd_jobs.py RECORDS.jsonl... > jobs.jsonl    jobs of GKD (recorder/gkd.py); configs are taken from the records named, by model type, with few layers

recorder/run.sh /srv/sid /o2/jobs.jsonl /o2/raw.jsonl --models /o2/models.json --timeout 600; make_records.py --brief records-loops.jsonl raw.jsonl
"""
import json
import sys

from grpo_jobs import configurations, with_layers

LORA = {"method": "lora", "lora": {"r": 16}}
KEPT = {"gradient_checkpointing": "full"}
TEXT = {"lmbda": 0.0, "seq_len": 512}
OWN = {"lmbda": 1.0, "prompt_len": 256, "completion_len": 64, "seq_len": 320}
# id: (model type, layers of the student, what the teacher has otherwise, what the job says)
JOBS = {
    "llama-full-amp": ("llama", 3, {"num_hidden_layers": 6}, {"precision": "bf16_amp", "micro_batch": 4, "grad_accum": 2, **TEXT}),
    "llama-full-16-own": ("llama", 2, {"num_hidden_layers": 4, "intermediate_size": 16384}, {"precision": "bf16", "micro_batch": 2, **OWN}),
    "qwen2-lora-own": ("qwen2", 4, {"num_hidden_layers": 8, "hidden_size": 1536, "intermediate_size": 8960, "num_attention_heads": 12},
                       {"precision": "bf16_amp", "micro_batch": 2, "grad_accum": 2, **OWN, **LORA}),
    "qwen2-full-kept-own": ("qwen2", 6, {"num_hidden_layers": 3}, {"precision": "amp_bf16", "micro_batch": 2, **OWN, **KEPT}),
    "qwen3-forward": ("qwen3", 3, {"num_hidden_layers": 5}, {"precision": "bf16", "micro_batch": 2, "beta": 0.0, **TEXT, **KEPT}),
    "qwen3-lora-reverse": ("qwen3", 4, {"num_hidden_layers": 4}, {"precision": "bf16_amp", "micro_batch": 2, "beta": 1.0, **TEXT, **LORA}),
    "gpt2-fp32": ("gpt2", 4, {"n_layer": 12}, {"precision": "fp32", "micro_batch": 4, **TEXT}),
    "mistral-padding": ("mistral", 2, {"num_hidden_layers": 3}, {"precision": "bf16_amp", "micro_batch": 2, "padding": True, **TEXT, **LORA, **KEPT}),
}


def main():
    configs = configurations(sys.argv[1:])
    for name, (kind, layers, teacher, words) in JOBS.items():
        config = with_layers(configs[kind], layers)
        print(json.dumps({"id": "gkd-" + name, "config": config, "task": "gkd", "method": "full", "teacher": teacher, **words}))


if __name__ == "__main__":
    main()
