#!/usr/bin/env python3
"""qat_jobs.py [--sharded] > jobs.jsonl     quantisation-aware training by torchao (recorder/qat.py), for records-pairs.jsonl (--sharded: records-multi.jsonl)

Each kind that Axolotl makes meets precisions, checkpointing of both kinds, biases, batches and gradients that are accumulated."""
import copy
import json
import sys

from packed_jobs import CHECKPOINTING, MODELS

KINDS = {"int8-int4": {"weight_dtype": "int4", "activation_dtype": "int8"}, "int4": {"weight_dtype": "int4"},
         "fp8": {"weight_dtype": "fp8", "activation_dtype": "fp8"}, "fp8-int4": {"weight_dtype": "int4", "activation_dtype": "fp8"},
         "mxfp4": {"weight_dtype": "mxfp4", "activation_dtype": "mxfp4"}, "nvfp4": {"weight_dtype": "nvfp4", "activation_dtype": "nvfp4"}}
CASES = (("llama", "bf16", 0, {}, {}), ("qwen2", "amp_bf16", 1, {"micro_batch": 2}, {"group_size": 64}), ("mistral", "bf16", 2, {"grad_accum": 2}, {}),
         ("llama", "bf16", 1, {"micro_batch": 4, "seq_len": 1024}, {"group_size": 16}), ("qwen2", "bf16_amp", 0, {"attention": "eager"}, {}),
         ("mistral", "amp_bf16", 0, {"micro_batch": 2, "seq_len": 1024, "optimizer": "sgd"}, {"group_size": 128}))
PUBLISHED = (("meta-llama/Llama-3.2-1B", "int8-int4", {"seq_len": 2048, "gradient_checkpointing": "full"}, {"group_size": 32}),
             ("Qwen/Qwen3-0.6B", "int8-int4", {"seq_len": 1024}, {"group_size": 256}), ("Qwen/Qwen3-0.6B", "fp8", {"seq_len": 2048, "micro_batch": 2, "gradient_checkpointing": "full"}, {}),
             ("google/gemma-3-1b-it", "int4", {"seq_len": 1024, "gradient_checkpointing": "full"}, {"group_size": 64}),
             ("meta-llama/Llama-3.2-1B", "int8-int4", {"seq_len": 1024, "loss": "liger_flce", "gradient_checkpointing": "full"}, {}),
             ("Qwen/Qwen2.5-0.5B", "int8-int4", {"seq_len": 512, "optimizer": "adamw_8bit"}, {"quantize_embedding": True}),
             ("Qwen/Qwen2.5-0.5B", "fp8", {"seq_len": 512}, {"quantize_embedding": True}))
SHARDED = (("llama", "int8-int4", "fp32", "full"), ("mistral", "int8-int4", "bf16", "none"), ("qwen2", "fp8", "fp32", "full"), ("llama", "int4", "fp32", "none"))


def sharded():
    for i, (model, kind, precision, checkpointing) in enumerate(SHARDED):
        mixed = {"param_dtype": "bf16", "reduce_dtype": "fp32"} if precision == "fp32" else {}
        yield {"id": f"qat-fsdp2-{i}", "config": copy.deepcopy(MODELS[model]), "method": "full", "precision": precision, "micro_batch": 1, "seq_len": 512,
               "gradient_checkpointing": checkpointing, "qat": KINDS[kind], "parallelism": {"strategy": "fsdp2", "data": 4, **mixed}}


def jobs():
    for i, (model, kind, more, group) in enumerate(PUBLISHED):
        yield {"id": f"qat-published-{i}", "model": model, "method": "full", "precision": "bf16", "micro_batch": 1, "arch": 90,
               "qat": {**KINDS[kind], **group}, **more}
    for kind, qat in KINDS.items():
        for i, (model, precision, checkpointing, more, group) in enumerate(CASES):
            group = {} if kind in ("mxfp4", "nvfp4") else group
            yield {"id": f"qat-{kind}-{i}", "config": copy.deepcopy(MODELS[model]), "method": "full", "precision": precision, "micro_batch": 1,
                   "seq_len": 512, "arch": 90, "qat": {**qat, **group}, **CHECKPOINTING[checkpointing], **more}


if __name__ == "__main__":
    for each in sharded() if "--sharded" in sys.argv else jobs():
        print(json.dumps(each))
