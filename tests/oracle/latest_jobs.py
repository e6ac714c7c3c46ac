#!/usr/bin/env python3
"""latest_jobs.py [FAMILY...] > jobs.jsonl: families that came last, a few layers of the published widths: ModernBERT's decoder (Ettin), with a
few of several GPUs (`…-multi`), Wav2Vec2-BERT, MiniMax-M3, its language model alone and with pictures, and T5Gemma."""
import json
import sys

from newer_jobs import CK, EAGER, SIGHTS, TEXTS, lora

ETTIN = {"model_type": "modernbert-decoder", "architectures": ["ModernBertDecoderForCausalLM"], "vocab_size": 50368, "hidden_size": 1024,
         "intermediate_size": 2624, "num_hidden_layers": 7, "num_attention_heads": 16, "local_attention": 128, "global_attn_every_n_layers": 3,
         "hidden_activation": "gelu", "max_position_embeddings": 7999, "norm_bias": False, "attention_bias": False, "mlp_bias": False,
         "decoder_bias": True, "tie_word_embeddings": True, "pad_token_id": 50283}
W2V = {"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForCTC"], "vocab_size": 40, "hidden_size": 1024, "num_hidden_layers": 3,
       "num_attention_heads": 16, "intermediate_size": 4096, "feature_projection_input_dim": 160, "hidden_act": "swish", "hidden_dropout": 0.0,
       "activation_dropout": 0.0, "attention_dropout": 0.0, "feat_proj_dropout": 0.0, "conformer_conv_dropout": 0.1, "layerdrop": 0.0,
       "apply_spec_augment": False, "position_embeddings_type": "relative_key", "conv_depthwise_kernel_size": 31, "add_adapter": False,
       "pad_token_id": 0}
M3_TEXT = {"model_type": "minimax_m3_vl_text", "architectures": ["MiniMaxM3VLForCausalLM"], "vocab_size": 200064, "hidden_size": 6144,
           "intermediate_size": 3072, "dense_intermediate_size": 12288, "shared_intermediate_size": 3072, "num_hidden_layers": 3,
           "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "partial_rotary_factor": 0.5, "num_local_experts": 8,
           "num_experts_per_tok": 4, "moe_layer_freq": [0, 1, 1], "max_position_embeddings": 524288,
           "sparse_attention_config": {"sparse_num_index_heads": 4, "sparse_index_dim": 128, "sparse_block_size": 128, "sparse_topk_blocks": 4,
                                       "sparse_local_block": 1, "sparse_attention_freq": [0, 1, 1]}}
M3_VISION = {"model_type": "minimax_m3_vl_vision", "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 3, "num_attention_heads": 16,
             "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2}
M3 = {"model_type": "minimax_m3_vl", "architectures": ["MiniMaxM3SparseForConditionalGeneration"], "projector_hidden_size": 6144,
      "text_config": M3_TEXT, "vision_config": M3_VISION}
T5G_MODULE = {"model_type": "t5_gemma_module", "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 3,
              "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
              "max_position_embeddings": 8192, "sliding_window": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
T5G = {"model_type": "t5gemma", "architectures": ["T5GemmaForConditionalGeneration"], "encoder": T5G_MODULE, "decoder": T5G_MODULE,
       "tie_word_embeddings": True}
NARROW = {"hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64}

TARGETS = {"t5gemma": r".*(self|cross)_attn\.(q_proj|v_proj)", "modernbert-decoder": r".*attn\.(q_proj|v_proj)", "wav2vec2-bert": ["linear_q", "linear_v"],
           "minimax_m3_vl_text": r".*self_attn\.(q_proj|v_proj)"}
FSDP2 = {"strategy": "fsdp2", "data": 4, "param_dtype": "bf16", "reduce_dtype": "fp32"}
SEVERAL = [
    ("fsdp2", "full", "fp32", 1, 1024, {"parallelism": FSDP2, **CK}),
    ("fsdp2-pure", "full", "bf16", 2, 512, {"parallelism": {"strategy": "fsdp2", "data": 2}}),
    ("zero3", "full", "bf16", 1, 1024, {"parallelism": {"strategy": "zero3", "data": 4, "hf_auto": True}}),
    ("zero3-lora", "lora", "bf16", 2, 512, {"parallelism": {"strategy": "zero3", "data": 2, "hf_auto": True}, **lora(), **CK}),
    ("ddp", "full", "amp_bf16", 1, 512, {"parallelism": {"strategy": "ddp", "data": 2}}),
]
# No flash kernels; pictures of a size that tokens of 28 pixels divide.
WITHOUT_FLASH = [row for row in TEXTS if "fa2" not in row[0]] + [
    ("loop", "full", "bf16", 1, 512, {"experts": "eager"}),
    ("odd", "full", "bf16", 1, 777, CK),
    ("aux", "full", "bf16_amp", 1, 512, {}),
]
SEEN = [(*row[:4], max(row[4], 512 * row[5].get("images", 0)), {**row[5], **({"image_size": [448, 672] if row[5]["image_size"] != [768, 1280] else [672, 1120]} if "image_size" in row[5] else {})})
        for row in SIGHTS if row[0] != "fa2"]
PAIRS = [(*row[:5], {**row[5], "target_len": row[4] // 4}) for row in TEXTS] + [
    ("long", "full", "bf16_amp", 1, 5000, {**CK, "target_len": 300}),
    ("fsdp2", "full", "fp32", 1, 512, {"parallelism": FSDP2, **CK, "target_len": 128}),
    ("zero3-lora", "lora", "bf16", 2, 512, {"parallelism": {"strategy": "zero3", "data": 2, "hf_auto": True}, **lora(), **CK, "target_len": 128}),
]
CLASSIFIERS = [row for row in TEXTS if row[0] in ("full", "amp", "padded", "lora", "fp32")]
SPREAD = [
    ("fsdp2-lora", "lora", "bf16", 1, 1024, {"parallelism": {"strategy": "fsdp2", "data": 4}, **lora(), **CK}),
    ("fsdp2", "full", "fp32", 1, 512, {"parallelism": {**FSDP2, "data": 8}, **CK}),
    ("zero3", "full", "bf16", 1, 1024, {"parallelism": {"strategy": "zero3", "data": 8, "hf_auto": True}, **CK}),
]
# seconds in the place of tokens
SOUNDS = [
    ("full", "full", "bf16", 2, 10, {}),
    ("amp", "full", "amp_bf16", 2, 7.3, {}),
    ("amp-fp16", "full", "amp_fp16", 1, 12, {}),
    ("bf16-amp-ck", "full", "bf16_amp", 4, 9, CK),
    ("amp-ck", "full", "amp_bf16", 4, 15, CK),
    ("amp-re", "full", "amp_bf16", 2, 10, {**CK, "use_reentrant": True}),
    ("letters", "full", "amp_bf16", 1, 20, {"target_len": 300}),
    ("padded", "full", "amp_bf16", 3, 8, {"padding": True}),
    ("fp32", "full", "fp32", 1, 6, {}),
    ("lora", "lora", "amp_bf16", 2, 10, lora()),
    ("lora-ck", "lora", "bf16", 4, 12, {**lora(), **CK}),
    ("lora-qv", "lora", "fp32", 1, 10, lora(TARGETS["wav2vec2-bert"], 8, 0.05)),
    ("accum", "full", "amp_bf16", 1, 10, {"grad_accum": 2, "optimizer": "adamw_8bit"}),
]


def w2v(head="CTC", **more):
    return {**W2V, "architectures": [f"Wav2Vec2BertFor{head}"], **more}


FAMILIES = {
    "ettin-decoder": ("text", ETTIN, TEXTS),
    "ettin-wide": ("text", {**ETTIN, "hidden_size": 1792, "intermediate_size": 3840, "num_attention_heads": 28, "num_hidden_layers": 4},
                   TEXTS[:5]),
    "ettin-decoder-cls": ("text", {**ETTIN, "architectures": ["ModernBertDecoderForSequenceClassification"], "num_labels": 3}, CLASSIFIERS),
    "ettin-decoder-multi": ("text", ETTIN, SEVERAL),
    "minimax-m3-text": ("moe", M3_TEXT, WITHOUT_FLASH),
    "minimax-m3-multi": ("moe", M3_TEXT, SPREAD),
    "minimax-m3": ("vlm", M3, SEEN),
    "t5gemma": ("seq2seq", T5G, PAIRS),
    "t5gemma-b": ("seq2seq", {**T5G, "encoder": {**T5G_MODULE, **NARROW}, "decoder": {**T5G_MODULE, **NARROW}}, PAIRS[:6]),
    "w2v-bert": ("audio", W2V, SOUNDS),
    "w2v-bert-adapter": ("audio", w2v(add_adapter=True, mask_time_prob=0.0), SOUNDS),
    "w2v-bert-masked": ("audio", w2v(apply_spec_augment=True, attention_dropout=0.1, hidden_dropout=0.1, feat_proj_dropout=0.1,
                                     activation_dropout=0.1), SOUNDS[:5]),
    "w2v-bert-cls": ("audio", w2v("SequenceClassification", num_labels=12), SOUNDS),
}


def job(name, kind, config, row):
    what, method, precision, rows, length, more = row
    more = dict(more)
    if "lora" in more and config["architectures"][0].endswith("SequenceClassification"):
        more["lora"] = {**more["lora"], "task_type": "SEQ_CLS"}
    if "lora" in more and config["architectures"][0].endswith("CTC"):        # PEFT has no task for letters
        more["lora"] = {**more["lora"], "task_type": False}
    if what == "aux":
        config = {**config, "output_router_logits": True}
    if "freeze" in more:
        more["freeze"] = ["vision_tower"]
    if what == "lora-attention":
        more["lora"] = {**more["lora"], "target_modules": TARGETS[config["model_type"]]}
    if "lora" in more and kind == "seq2seq":
        more["lora"] = {**more["lora"], "task_type": "SEQ_2_SEQ_LM"}
    size = {"audio_seconds": length} if kind == "audio" else {"seq_len": length}
    kernel = "eager" if kind == "audio" else "sdpa"
    return {"id": f"{name}-{what}", "kind": kind, "config": config, "method": method, "precision": precision, "micro_batch": rows, **size,
            "grad_accum": 1, "attention": kernel, **({"experts": "grouped_mm"} if "minimax" in name else {}), "padding": False, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", **more}


def main():
    for name in sys.argv[1:] or FAMILIES:
        kind, config, rows = FAMILIES[name]
        for row in rows:
            print(json.dumps(job(name, kind, config, row)))


if __name__ == "__main__":
    main()
