#!/usr/bin/env python3
"""sft_jobs.py MODELS.json > jobs.jsonl    jobs with SFTTrainer's loss (`loss` chunked: recorder/losses.py), of few layers

recorder/run.sh /srv/sid forked.py /o2/jobs.jsonl /o2/raw.jsonl /o2/models.json; make_records.py --brief records-loops.jsonl raw.jsonl
"""
import json
import sys

QWEN, LLAMA, SMALL, MISTRAL, GEMMA = ("Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.2-1B", "mistralai/Mistral-7B-v0.1",
                                      "google/gemma-2-2b")
LORA = {"method": "lora", "lora": {"r": 16, "target_modules": ["q_proj", "v_proj"]}}
QLORA = {**LORA, "method": "qlora"}
KEPT = {"gradient_checkpointing": "full"}
EAGER = {"attention": "eager"}
# id: (model, layers, what the job says)
JOBS = {
    "qwen-full-16-amp": (QWEN, 4, {"precision": "bf16_amp", "seq_len": 2048, "micro_batch": 2, **KEPT}),
    "qwen-full-amp": (QWEN, 4, {"precision": "amp_bf16", "seq_len": 2048, "micro_batch": 2, **KEPT}),
    "qwen-full-16": (QWEN, 4, {"precision": "bf16", "seq_len": 2048}),
    "qwen-full-fp32": (QWEN, 4, {"precision": "fp32", "seq_len": 1024}),
    "qwen-one-chunk": (QWEN, 2, {"precision": "bf16_amp", "seq_len": 128}),
    "qwen-two-chunks": (QWEN, 2, {"precision": "bf16", "seq_len": 300}),
    "qwen-packed": (QWEN, 4, {"precision": "bf16_amp", "seq_len": 4096, "packing": True, "attention": "flash_attention_2", **KEPT}),
    "llama-full-16-amp": (LLAMA, 2, {"precision": "bf16_amp", "seq_len": 1024, **KEPT}),
    "llama-full-amp": (LLAMA, 2, {"precision": "amp_bf16", "seq_len": 1024}),
    "llama-full-16": (LLAMA, 2, {"precision": "bf16", "seq_len": 1024, **KEPT}),
    "llama-full-fp32": (LLAMA, 2, {"precision": "fp32", "seq_len": 512}),
    "llama-accumulated": (LLAMA, 2, {"precision": "bf16_amp", "seq_len": 1024, "grad_accum": 2, **KEPT}),
    "llama-lora-16-amp": (LLAMA, 4, {"precision": "bf16_amp", "seq_len": 2048, **LORA, **KEPT}),
    "llama-lora-16": (LLAMA, 4, {"precision": "bf16", "seq_len": 2048, "micro_batch": 2, **LORA}),
    "llama-lora-head": (LLAMA, 2, {"precision": "bf16_amp", "seq_len": 1024, "method": "lora",
                                   "lora": {"r": 16, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}}),
    "small-lora-amp": (SMALL, 4, {"precision": "amp_bf16", "seq_len": 1024, "micro_batch": 2, **LORA, **KEPT}),
    "small-offloaded": (SMALL, 4, {"precision": "bf16_amp", "seq_len": 2048, "activation_offloading": True}),
    "llama-qlora": (LLAMA, 4, {"precision": "bf16_amp", "seq_len": 2048, "kbit_prepare": False, **QLORA, **KEPT}),
    "llama-qlora-prepared": (LLAMA, 4, {"precision": "bf16_amp", "seq_len": 1024, "kbit_prepare": True, **QLORA, **KEPT}),
    "mistral-full-padded": (MISTRAL, 2, {"precision": "bf16_amp", "seq_len": 1024, "micro_batch": 4, "padding": True, **KEPT}),
    "mistral-lora-padded": (MISTRAL, 4, {"precision": "bf16_amp", "seq_len": 1024, "micro_batch": 4, "padding": True, **LORA}),
    "gemma-2-lora": (GEMMA, 2, {"precision": "bf16_amp", "seq_len": 1024, "micro_batch": 2, **EAGER, **LORA, **KEPT}),
    "gemma-2-full-16": (GEMMA, 2, {"precision": "bf16", "seq_len": 300, **EAGER}),
    "phi-2-full": ("microsoft/phi-2", 2, {"precision": "bf16_amp", "seq_len": 2048, **KEPT}),
    "cohere-lora": ("CohereForAI/aya-23-8B", 2, {"precision": "bf16_amp", "seq_len": 2048, **LORA, **KEPT}),
    "gpt2-full-amp": ("openai-community/gpt2", 4, {"precision": "amp_bf16", "seq_len": 1024, "micro_batch": 8}),
}


def main():
    rows = {row["id"]: row["config"] for row in json.load(open(sys.argv[1]))}
    for name, (model, layers, words) in JOBS.items():
        config = {k: v for k, v in rows[model].items() if k not in ("_name_or_path", "transformers_version")}
        config["n_layer" if config["model_type"] == "gpt2" else "num_hidden_layers"] = layers
        config.pop("layer_types", None)
        print(json.dumps({"id": "sft-" + name, "config": config, "loss": "chunked", **words}))


if __name__ == "__main__":
    main()
