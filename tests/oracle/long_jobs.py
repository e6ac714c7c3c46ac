#!/usr/bin/env python3
"""long_jobs.py [FAMILY...] > jobs.jsonl: models of text of long inputs and others that were missing, under transformers 5.24, two or three layers of
widths like the published ones: Longformer, XLNet, LED, BigBird, SqueezeBERT, ConvBERT, GPT, LongT5."""
import json
import sys

import more_families

ALL = "all-linear"
COMMON = ["ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model"]


def encoders(kind, prefix, heads, targets, **more):
    return {f"{kind}-{head}": (more_families.encoder(kind, prefix + head, **more), targets) for head in heads}


FAMILIES = {
    **encoders("longformer", "Longformer", COMMON, ["query", "value"], vocab_size=50265, type_vocab_size=1, max_position_embeddings=4098,
               attention_window=[256, 256], sep_token_id=2),
    **{f"xlnet-{head}": ({"model_type": "xlnet", "architectures": [f"XLNet{head}"], "d_model": 768, "n_layer": 2, "n_head": 12, "d_inner": 3072,
                          "vocab_size": 32000, "ff_activation": "gelu"}, ["layer_1"])
       for head in ("LMHeadModel", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnsweringSimple", "Model")},
    "led": ({"model_type": "led", "architectures": ["LEDForConditionalGeneration"], "d_model": 768, "encoder_layers": 2, "decoder_layers": 2,
             "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "vocab_size": 50265,
             "attention_window": [256, 256], "max_encoder_position_embeddings": 4096, "max_decoder_position_embeddings": 1024}, ["q_proj", "v_proj"]),
    **encoders("big_bird", "BigBird", COMMON, ["query", "value"], vocab_size=50358, hidden_act="gelu_new", max_position_embeddings=4096,
               type_vocab_size=2, pad_token_id=0),
    **encoders("squeezebert", "SqueezeBert", COMMON, ["query"], type_vocab_size=2, max_position_embeddings=512, pad_token_id=0, embedding_size=768),
    **encoders("convbert", "ConvBert", COMMON, ["query", "value"], type_vocab_size=2, max_position_embeddings=512, embedding_size=768),
    **{f"openai-gpt-{head}": ({"model_type": "openai-gpt", "architectures": [f"OpenAIGPT{head}"], "n_embd": 768, "n_layer": 3, "n_head": 12,
                               "n_positions": 512, "vocab_size": 40478, "pad_token_id": 0}, ["c_attn"])
       for head in ("LMHeadModel", "ForSequenceClassification", "Model")},
    "longt5": ({"model_type": "longt5", "architectures": ["LongT5ForConditionalGeneration"], "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 2,
                "num_decoder_layers": 2, "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "encoder_attention_type": "transient-global",
                "tie_word_embeddings": False, "pad_token_id": 0, "eos_token_id": 1}, ["q", "v"]),
}
FAMILIES["longt5-local"] = ({**FAMILIES["longt5"][0], "encoder_attention_type": "local", "feed_forward_proj": "relu", "tie_word_embeddings": True}, ["q", "v"])
FAMILIES["longformer-unlike"] = ({**FAMILIES["longformer-ForMaskedLM"][0], "attention_window": [64, 128], "num_hidden_layers": 2}, ["query", "value"])
FAMILIES["longformer-sequence-unlike"] = ({**FAMILIES["longformer-ForSequenceClassification"][0], "attention_window": 64}, ["query", "value"])
CHECKPOINTED = ("longformer", "led", "big_bird", "convbert", "longt5")
# name: method, precision, rows, tokens, further
ROWS = {
    "full": ("full", "bf16_amp", 4, 448, {}),
    "ckpt": ("full", "bf16_amp", 4, 512, {"gradient_checkpointing": "full"}),
    "reentrant": ("full", "bf16_amp", 4, 512, {"gradient_checkpointing": "full", "use_reentrant": True}),
    "amp": ("full", "amp_bf16", 3, 333, {"optimizer": "adamw_torch"}),
    "pure": ("full", "bf16", 4, 512, {"padding": True}),
    "fp32": ("full", "fp32", 2, 256, {"attention": "eager", "padding": True, "grad_accum": 2}),
    "lora": ("lora", "bf16_amp", 8, 320, {"lora": ALL}),
    "lora-qv": ("lora", "bf16", 4, 512, {"lora": "targets"}),
    "lora-ckpt": ("lora", "bf16_amp", 4, 512, {"lora": "targets", "gradient_checkpointing": "full"}),
    "qlora": ("qlora", "bf16_amp", 4, 384, {"lora": ALL, "padding": True}),
}
LONG = ("longformer", "led", "big_bird", "longt5")      # of these three times as many tokens
HEADS = ("full", "pure", "lora-qv")               # of classes beside the first


def job(name, row):
    config, targets = FAMILIES[name]
    method, precision, rows, length, more = ROWS[row]
    more = dict(more)
    of_pairs = config["model_type"] in ("led", "longt5")
    if more.get("lora"):
        more["lora"] = {"r": 16, "alpha": 32, "dropout": 0.05, "target_modules": targets if more["lora"] == "targets" else ALL,
                        "task_type": more_families.task_of(config)}
    if config["architectures"][0].endswith("Model") and not config["architectures"][0].endswith("LMHeadModel"):
        more["loss_kind"] = "mean_square"
    if config["model_type"] in LONG and "unlike" not in name:
        rows, length = max(2, rows // 2), length * 3
    if of_pairs:
        more["target_len"] = 128
        more.pop("padding", None)
    causal = config["architectures"][0].endswith("LMHeadModel")
    return {"id": f"v524-{name}-{row}", "kind": "seq2seq" if of_pairs else "decoder" if causal else "encoder", "config": config, "method": method,
            "precision": precision, "micro_batch": rows, "seq_len": length, "grad_accum": 1, "attention": "eager", "padding": False,
            "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "transformers": "5.24", **more}


def main():
    wanted = sys.argv[1:]
    for name in FAMILIES:
        if wanted and not any(name == w or name.startswith(w + "-") for w in wanted):
            continue
        first = name in ("led", "longt5", "xlnet-LMHeadModel", "openai-gpt-LMHeadModel") or name.endswith("ForMaskedLM")
        for row in ROWS:
            if name.startswith("squeezebert") and ROWS[row][0] != "full":       # its layers are convolutions
                continue
            if ROWS[row][4].get("gradient_checkpointing") and FAMILIES[name][0]["model_type"] not in CHECKPOINTED:
                continue
            if first or row in HEADS or (row == "qlora" and name.endswith("-Model")):
                print(json.dumps(job(name, row)))


if __name__ == "__main__":
    main()
