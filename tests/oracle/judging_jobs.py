#!/usr/bin/env python3
"""judging_jobs.py RECORDS.jsonl CATALOG.json > jobs.jsonl    models that see with a head that classifies, and rewards of their texts
judging_jobs.py --beside RECORDS.jsonl > jobs.jsonl         adapters of the language model, and the tower trained in place
judging_jobs.py --made RECORDS.jsonl... > jobs.jsonl        the same of types without such a class, as ms-swift makes it

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
# What ms-swift makes of classes that transformers has no judge of (recorder/scored.py): of each type jobs of records with pictures or sound, with a head
# that classifies in the place of the language model's.
MADE = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_moe", "glm4v", "glm4v_moe", "glm46v", "glm_ocr", "internvl", "llava", "llava_next",
        "llava_next_video", "llava_onevision", "idefics2", "idefics3", "smolvlm", "mistral3", "paligemma", "ovis2", "mllama", "gemma3n", "gemma4",
        "gemma4_unified", "lfm2_vl", "paddleocr_vl", "deepseek_vl", "deepseek_vl_hybrid", "qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
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


def made(path, each=4):
    """`each` jobs of each type, full training and adapters in turn; losses that fuse the head are the language model's alone."""
    found = {}
    for line in open(path):
        row = json.loads(line)
        job = {"config": row["request"].get("config", {}), **row["record"].get("job", {})}
        kind = job.get("config", {}).get("model_type")
        plain = job.get("loss", "default") == "default" and not job.get("task") and not job.get("loss_kind") and "evaluation" not in job
        name = (job.get("architecture") or job["config"].get("architectures", [""])[0]) if kind in MADE else ""
        if plain and name.endswith("ForConditionalGeneration"):
            found.setdefault(kind, {}).setdefault(job["method"] == "full", []).append((name, job))
    for kind in MADE:
        both = found.get(kind, {})
        for full in (True, False):
            rows = both.get(full, [])
            for name, job in rows[:: max(1, len(rows) // (each // 2))][: each // 2]:
                config = json.loads(json.dumps({**job["config"], "num_labels": 3}))
                config.get("text_config", config)["pad_token_id"] = 0
                config.pop("architectures", None)
                if not full:
                    job = {**job, "lora": {**job.get("lora", {}), "task_type": "SEQ_CLS"}}
                yield {**job, "id": f"judges-made-{job['id']}", "config": config, "architecture": name.replace("ForConditionalGeneration", "ForSequenceClassification")}


# Names of the tower and of what lies between it and the language model (ms-swift 3602360a swift/model/model_arch.py).
TOWERS = {"qwen2_5_vl": ["visual"], "qwen2_vl": ["visual"], "qwen3_vl": ["visual"], "llava": ["vision_tower", "multi_modal_projector"],
          "idefics3": ["vision_model", "connector"], "paligemma": ["vision_tower", "multi_modal_projector"]}


def beside(path):
    """LoRA of the language model, and its tower trained in place: swift/tuner_plugin/lora_llm.py."""
    for line in open(path):
        row = json.loads(line)
        job = {"config": row["request"].get("config", {}), **row["record"].get("job", {})}
        kind = job["config"].get("model_type")
        targets = str(job.get("lora", {}).get("target_modules"))
        if kind in TOWERS and job["method"] == "lora" and "language_model" in targets and not job.get("task") and not row["id"].startswith("judges"):
            yield {**{k: v for k, v in job.items() if k != "freeze_vision"}, "id": f"beside-{job['id']}", "beside": TOWERS[kind]}


def main():
    if sys.argv[1] == "--beside":
        for job in beside(sys.argv[2]):
            print(json.dumps(job))
        return
    if sys.argv[1] == "--made":
        for path in sys.argv[2:]:
            for job in made(path):
                print(json.dumps(job))
        return
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
