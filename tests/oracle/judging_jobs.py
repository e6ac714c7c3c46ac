#!/usr/bin/env python3
"""judging_jobs.py RECORDS.jsonl CATALOG.json > jobs.jsonl    models that see with a head that classifies, and rewards of their texts

recorder/run.sh /srv/sid /o2/jobs.jsonl /o2/raw.jsonl --models /o2/models.json --timeout 600; make_records.py --brief records-beyond.jsonl raw.jsonl (reward-…: records-loops.jsonl)
"""
import json
import sys

LORA = {"method": "lora", "lora": {"r": 16, "task_type": "SEQ_CLS", "target_modules": ["q_proj", "v_proj", "gate_proj", "down_proj"]}}
GEMMA = {"images": 1, "image_size": 896, "seq_len": 320}
FLA = {"kernels": "fla"}
QWEN = {"images": 1, "image_size": 448, "seq_len": 512, **FLA}
JOBS = {
    "judges-gemma3-full": ("gemma3", {"precision": "bf16", "micro_batch": 2, **GEMMA}),
    "judges-gemma3-lora": ("gemma3", {"precision": "bf16_amp", "micro_batch": 2, "grad_accum": 2, **GEMMA, **LORA}),
    "judges-gemma3-text": ("gemma3", {"precision": "amp_bf16", "micro_batch": 4, "seq_len": 512, "gradient_checkpointing": "full"}),
    "judges-qwen3.5-full": ("qwen3_5", {"precision": "bf16_amp", "micro_batch": 2, **QWEN}),
    "judges-qwen3.5-lora": ("qwen3_5", {"precision": "bf16", "micro_batch": 1, "gradient_checkpointing": "full", **QWEN, **LORA}),
    "judges-qwen3.5-text": ("qwen3_5", {"precision": "bf16", "micro_batch": 4, "seq_len": 768, **FLA}),
    "reward-gemma3-lora": ("gemma3", {"task": "reward", "precision": "bf16_amp", "micro_batch": 2, "seq_len": 384, **LORA}),
    "reward-qwen3.5-full": ("qwen3_5", {"task": "reward", "precision": "bf16_amp", "micro_batch": 1, "seq_len": 512, "gradient_checkpointing": "full", **FLA}),
}
CLASSES = {"gemma3": "Gemma3ForSequenceClassification", "qwen3_5": "Qwen3_5ForSequenceClassification"}


def few_layers(config):
    """As wide as it is, with four layers of text and two of pictures."""
    config = json.loads(json.dumps(config))
    text, vision = config["text_config"], config["vision_config"]
    text["num_hidden_layers"] = 4
    if "layer_types" in text:
        text["layer_types"] = text["layer_types"][:4]
    vision["num_hidden_layers" if "num_hidden_layers" in vision else "depth"] = 2
    text["pad_token_id"] = 0
    return config


def main():
    records, catalog = sys.argv[1:]
    configs = {}
    for entry in [json.loads(line)["request"].get("config", {}) for line in open(records)] + [m["config"] for m in json.load(open(catalog))["models"]]:
        if "text_config" in entry:
            configs.setdefault(entry.get("model_type"), entry)
    for name, (kind, words) in JOBS.items():
        config = {**few_layers(configs[kind]), "num_labels": 1 if words.get("task") else 3}
        print(json.dumps({"id": name, "kind": "vlm", "config": config, "architecture": CLASSES[kind], "method": "full", **words}))


if __name__ == "__main__":
    main()
