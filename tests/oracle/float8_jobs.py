#!/usr/bin/env python3
"""float8_jobs.py > jobs.jsonl     full training with torchao's float8 products (recorder/float8.py), for records-pairs.jsonl

Both recipes meet precisions, checkpointing of both kinds, biases, batches and gradients that are accumulated."""
import copy
import json

from packed_jobs import CHECKPOINTING, MODELS

CASES = (("llama", "bf16", 0, {}), ("llama", "amp_bf16", 0, {}), ("qwen2", "amp_bf16", 1, {"micro_batch": 2}), ("mistral", "bf16", 2, {"grad_accum": 2}),
         ("qwen2", "bf16_amp", 0, {"attention": "eager"}), ("mistral", "fp32", 1, {}), ("llama", "bf16", 1, {"micro_batch": 4, "seq_len": 1024}),
         ("mistral", "amp_bf16", 0, {"micro_batch": 2, "seq_len": 1024, "optimizer": "sgd"}))


def jobs():
    for recipe in ("tensorwise", "rowwise"):
        for i, (model, precision, checkpointing, more) in enumerate(CASES):
            yield {"id": f"float8-{recipe}-{i}", "config": copy.deepcopy(MODELS[model]), "method": "full", "precision": precision, "micro_batch": 1,
                   "seq_len": 512, "arch": 90, "float8": recipe, **CHECKPOINTING[checkpointing], **more}


if __name__ == "__main__":
    for each in jobs():
        print(json.dumps(each))
