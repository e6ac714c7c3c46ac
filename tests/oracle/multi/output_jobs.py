#!/usr/bin/env python3
"""output_jobs.py MODELS.json > jobs.jsonl    jobs of accelerate's FSDP 2 ("out-…") by what becomes of the outputs: its policy casts those of the root to bf16

Losses outside of the model (TRL's), inside of it, and classes whose own logits are fp32 (Mamba, Mamba-2, Gemma 3 that sees).
../recorder/run.sh CHROOT forked.py /o2/jobs.jsonl /o2/raw.jsonl /o2/models.json; make_records.py records-multi.jsonl raw.jsonl
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import make_records  # noqa: E402

FULL = {"method": "full", "precision": "fp32"}
LORA = {"method": "lora", "precision": "bf16", "lora": {"r": 16, "adapter_dtype": "fp32"}}
LORA_SCORE = {**LORA, "lora": {**LORA["lora"], "task_type": "SEQ_CLS"}}
LORA_BODY = {**LORA, "lora": {**LORA["lora"], "task_type": None}}
LORA_MAMBA = {**LORA, "lora": {**LORA["lora"], "target_modules": ["in_proj"]}}
CHECKPOINTS = {"gradient_checkpointing": "full"}
WRAP = {"transformer_cls_names_to_wrap": ["Gemma3DecoderLayer", "SiglipEncoderLayer"]}    # of its classes' own list one is in no Gemma 3
MAMBA = {"micro_batch": 2, "seq_len": 512, "kernels": "mamba_ssm"}
# id: (model or type in ../records-beyond.jsonl, layers or None, what the job says)
JOBS = {
    "dpo-llama": ("meta-llama/Llama-3.2-1B", 6, FULL, {"task": "dpo", "reference": "copy"}),
    "dpo-qwen-lora": ("Qwen/Qwen2.5-1.5B", 8, LORA, {"task": "dpo", "reference": "adapter"}, CHECKPOINTS),
    "kto-qwen": ("Qwen/Qwen2.5-0.5B", 8, FULL, {"task": "kto", "reference": "precomputed", "micro_batch": 2}, CHECKPOINTS),
    "orpo-llama": ("meta-llama/Llama-3.2-1B", 6, FULL, {"task": "orpo"}),
    "simpo-mistral-lora": ("mistralai/Mistral-7B-v0.1", 3, LORA, {"task": "simpo"}, CHECKPOINTS),
    "reward-qwen": ("Qwen/Qwen2.5-0.5B", 8, FULL, {"task": "reward", "architecture": "Qwen2ForSequenceClassification"}),
    "reward-llama-lora": ("meta-llama/Llama-3.2-1B", 6, LORA_SCORE, {"task": "reward", "architecture": "LlamaForSequenceClassification"}, CHECKPOINTS),
    "classes-qwen": ("Qwen/Qwen2.5-0.5B", 8, FULL, {"architecture": "Qwen2ForSequenceClassification", "micro_batch": 4}),
    "tokens-llama": ("meta-llama/Llama-3.2-1B", 6, FULL, {"architecture": "LlamaForTokenClassification"}),
    "body-qwen": ("Qwen/Qwen2.5-0.5B", 8, FULL, {"architecture": "Qwen2Model", "loss_kind": "mean_square", "micro_batch": 4}),
    "body-llama-lora": ("meta-llama/Llama-3.2-1B", 6, LORA_BODY, {"architecture": "LlamaModel", "loss_kind": "mean_square"}, CHECKPOINTS),
    "lm-qwen-kept": ("Qwen/Qwen2.5-1.5B", 6, FULL, {"keep_outputs": True}),
    "lm-mamba": ("mamba", None, FULL, MAMBA),
    "lm-mamba-kept": ("mamba", None, FULL, MAMBA, {"keep_outputs": True}),
    "lm-mamba2-lora": ("mamba2", None, LORA_MAMBA, MAMBA),
    "dpo-mamba": ("mamba", None, FULL, MAMBA, {"task": "dpo", "reference": "precomputed"}),
    "dpo-mamba2-copy": ("mamba2", None, FULL, MAMBA, {"task": "dpo", "reference": "copy"}),
    "orpo-mamba": ("mamba", None, FULL, MAMBA, {"task": "orpo"}),
    "lm-gemma3": ("gemma3", None, FULL, CHECKPOINTS),
    "lm-gemma3-lora": ("gemma3", None, LORA),
    "dpo-gemma3-lora": ("gemma3", None, LORA, {"task": "dpo", "reference": "precomputed"}, CHECKPOINTS),
}
POLICY = {"parallelism": {"strategy": "fsdp2", "data": 4, "accelerate": "1.15.0", "mixed_precision": "bf16", "param_dtype": "bf16", "reduce_dtype": "bf16"}}


def further_jobs():
    found = {}
    for line in open(os.path.join(HERE, "..", "records-beyond.jsonl")):
        job = make_records.job_of(json.loads(line))
        kind = job.get("config", {}).get("model_type")
        if kind in ("mamba", "mamba2", "gemma3"):
            found.setdefault(kind, {key: job[key] for key in ("config", "images", "image_size", "micro_batch", "seq_len", "kind") if key in job})
    return found


def main():
    configs = {row["id"]: row["config"] for row in json.load(open(sys.argv[1]))}
    further = further_jobs()
    for name, (model, layers, *words) in JOBS.items():
        job = {"id": "out-" + name, "seq_len": 1024, **further.get(model, {})}
        if model in configs:
            job["config"] = {**configs[model], "num_hidden_layers": layers}
            job["config"].pop("layer_types", None)
            job["config"]["pad_token_id"] = 0                # classes that score need one
        for more in (*words, POLICY):
            job.update(more)
        if model == "gemma3":
            job["parallelism"] = {**job["parallelism"], **WRAP}
        print(json.dumps(job))


if __name__ == "__main__":
    main()
