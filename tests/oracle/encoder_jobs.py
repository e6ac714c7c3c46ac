#!/usr/bin/env python3
"""encoder_jobs.py [FAMILY...] > jobs.jsonl: encoders of text that came after more_families.py, two or three layers of the published widths.

XLM-RoBERTa-XL, ERNIE 3.0, Nomic's embedding model, Jina's, EuroBERT: each head that they have, by the options that change what an encoder keeps."""
import json
import sys

import more_families


def encoder(kind, prefix, heads, targets, **more):
    return {f"{kind}-{head}": (more_families.encoder(kind, prefix + head, **more), targets) for head in heads}


COMMON = ["ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"]
QKV = ["q_proj", "k_proj", "v_proj"]
FAMILIES = {
    **encoder("xlm-roberta-xl", "XLMRobertaXL", [*COMMON, "ForQuestionAnswering", "Model"], more_families.BERT, vocab_size=250880,
              hidden_size=2560, intermediate_size=10240, num_attention_heads=32, type_vocab_size=1, max_position_embeddings=514),
    **encoder("ernie", "Ernie", [*COMMON, "Model"], more_families.BERT, vocab_size=40000, type_vocab_size=4,
              use_task_id=True, task_type_vocab_size=3, hidden_act="gelu", pad_token_id=0),
    **encoder("nomic_bert", "NomicBert", [*COMMON, "Model"], QKV, vocab_size=30528, max_position_embeddings=2048, hidden_act="silu", pad_token_id=0,
              hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    **encoder("jina_embeddings_v3", "JinaEmbeddingsV3", [*COMMON, "ForQuestionAnswering", "Model"], QKV, vocab_size=250002, hidden_size=1024,
              intermediate_size=4096, num_attention_heads=16, type_vocab_size=1, max_position_embeddings=8194),
    **encoder("eurobert", "EuroBert", [*COMMON, "Model"], QKV, vocab_size=128256, max_position_embeddings=8192, hidden_act="silu", num_key_value_heads=12,
              rms_norm_eps=1e-5),
}
# EuroBERT's larger models share keys and values; its other ways to a sequence's vector.
FAMILIES["eurobert-2.1b"] = ({**FAMILIES["eurobert-ForMaskedLM"][0], "hidden_size": 2304, "intermediate_size": 6144, "num_attention_heads": 18,
                              "num_key_value_heads": 6}, QKV)
for pooling in ("mean", "bos"):
    FAMILIES["eurobert-" + pooling] = ({**FAMILIES["eurobert-ForSequenceClassification"][0], "classifier_pooling": pooling}, QKV)

# name: method, precision, rows, tokens, further
ROWS = {
    "amp": ("full", "amp_bf16", 8, 384, {}),
    "pure": ("full", "bf16", 4, 512, {"padding": True}),
    "fp32": ("full", "fp32", 4, 256, {"attention": "eager", "padding": True, "grad_accum": 2}),
    "fa2": ("full", "amp_bf16", 8, 448, {"attention": "flash_attention_2", "padding": True}),
    "ckpt": ("full", "bf16_amp", 16, 512, {"gradient_checkpointing": "full", "padding": True}),
    "lora": ("lora", "bf16_amp", 8, 320, {"lora": True}),
    "lora-ckpt": ("lora", "bf16_amp", 8, 512, {"lora": True, "gradient_checkpointing": "full", "attention": "eager"}),
    "qlora": ("qlora", "bf16_amp", 8, 384, {"lora": True, "padding": True}),
}


def job(name, row):
    config, targets = FAMILIES[name]
    method, precision, rows, length, more = ROWS[row]
    more = dict(more)
    if more.get("lora"):
        more["lora"] = {"r": 16, "alpha": 32, "dropout": 0.05, "target_modules": targets, "task_type": more_families.task_of(config)}
    if name.endswith("Model"):
        more["loss_kind"] = "mean_square"
    return {"id": f"{name}-{row}", "kind": "encoder", "config": config, "method": method, "precision": precision, "micro_batch": rows, "seq_len": length,
            "grad_accum": 1, "attention": "sdpa", "padding": False, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", **more}


def main():
    wanted = sys.argv[1:]
    for name in FAMILIES:
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        every = name.endswith(("ForMaskedLM", "ForSequenceClassification"))
        for row in ROWS if every else ("amp", "pure", "lora"):
            if row == "qlora" and not name.endswith("ForMaskedLM"):     # PEFT trains the new head
                continue
            print(json.dumps(job(name, row)))


if __name__ == "__main__":
    main()
