#!/usr/bin/env python3
"""further_jobs.py MODELS.json > jobs.jsonl    packages' optimizers under DDP ("optims-…"), and PEFT's other adapters where GPUs divide the model ("peft-…")

../recorder/run.sh CHROOT forked.py /o2/jobs.jsonl /o2/raw.jsonl /o2/models.json; make_records.py records-multi.jsonl raw.jsonl
"""
import json
import sys

LLAMA, QWEN = "meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-0.5B"
OPTIMIZERS = ["muon", "galore_adamw", "galore_adamw_8bit", "galore_adafactor", "apollo_adamw", "grokadamw", "came_pytorch", "schedule_free_adamw",
              "schedule_free_radam", "schedule_free_sgd", "adopt_adamw", "adamw_anyprecision", "prodigy"]
LINEAR = {"target_modules": "all-linear"}
KINDS = {"ia3": {}, "loha": {"r": 8, **LINEAR}, "lokr": {"r": 8, **LINEAR}, "vera": {"r": 64, "target_modules": ["q_proj", "v_proj"]},
         "oft": {"oft_block_size": 32, **LINEAR}}
DIVIDED = {
    "zero3": {"strategy": "zero3", "data": 4, "hf_auto": True},
    "zero2": {"strategy": "zero2", "data": 4, "hf_auto": True},
    "fsdp1": {"strategy": "fsdp1", "data": 4, "wrap": "peft", "use_orig_params": False},
    "fsdp2": {"strategy": "fsdp2", "data": 4, "accelerate": "1.15.0", "mixed_precision": "no"},
}


def optimizer_jobs():
    for i, name in enumerate(OPTIMIZERS):
        ddp = {"strategy": "ddp", "data": 4, **({"gradient_as_bucket_view": True} if i % 4 == 3 else {})}
        yield {"id": f"optims-{name}", "model": QWEN, "method": "full", "precision": ("bf16", "amp_bf16")[i % 2], "optimizer": name, "parallelism": ddp}


def adapter_jobs():
    for kind, words in KINDS.items():
        for name, divided in DIVIDED.items():
            yield {"id": f"peft-{kind}-{name}", "model": LLAMA, "method": "lora", "precision": "bf16", "optimizer": "adamw_torch_fused",
                   "lora": {"kind": kind, "adapter_dtype": "bf16", **words}, "parallelism": divided}


def main():
    configs = {row["id"]: row["config"] for row in json.load(open(sys.argv[1]))}
    for job in (*optimizer_jobs(), *adapter_jobs()):
        job.update(seq_len=512, micro_batch=1, config={**configs[job.pop("model")], "num_hidden_layers": 4})
        job["config"].pop("layer_types", None)
        print(json.dumps(job))


if __name__ == "__main__":
    main()
