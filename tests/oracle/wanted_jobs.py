#!/usr/bin/env python3
"""wanted_jobs.py [FAMILY...] > jobs.jsonl: families that people fine-tune and that had no program, small ones of each: two to four layers, small
vocabularies. Those with `parallelism` run with multi/.

SigLIP 2 (naflex), Granite Speech, Parakeet, UniSpeech; encoders: data2vec, RoBERTa-PreLayerNorm, MegatronBERT, RemBERT, RoFormer, LayoutLM; decoders:
Jais 2, nanochat, HyperCLOVA X, Mellum, Laguna, Cohere2-MoE; pictures and videos: ViT-MSN, I-JEPA, ViViT."""
import json
import sys

CK = {"gradient_checkpointing": "full"}
RE = {**CK, "use_reentrant": True}
EAGER = {"attention": "eager"}


def lora(dropout=0.05, r=16):
    """LoRA of the family's own targets (None until `job` knows them)."""
    return {"lora": {"r": r, "alpha": 2 * r, "dropout": dropout, "target_modules": None}}


SEVERAL = {
    "ddp": ("full", "amp_bf16", {"parallelism": {"strategy": "ddp", "data": 2}}),
    "fsdp2": ("full", "fp32", {"parallelism": {"strategy": "fsdp2", "data": 4, "param_dtype": "bf16", "reduce_dtype": "fp32"}, **CK}),
    "zero3": ("full", "bf16", {"parallelism": {"strategy": "zero3", "data": 4, "hf_auto": True}}),
}
# name: method, precision, rows, length (tokens, seconds, or none), further
TEXTS = {
    "amp": ("full", "amp_bf16", 4, 384, {}),
    "pure": ("full", "bf16", 4, 512, {"padding": True}),
    "fp32": ("full", "fp32", 4, 256, {**EAGER, "padding": True, "grad_accum": 2}),
    "eager": ("full", "bf16_amp", 4, 300, EAGER),
    "ckpt": ("full", "bf16_amp", 8, 512, {**CK, "padding": True}),
    "reent": ("full", "amp_bf16", 4, 512, RE),
    "accum": ("full", "amp_fp16", 4, 320, {"grad_accum": 2, "optimizer": "adamw_8bit"}),
    "lora": ("lora", "bf16_amp", 8, 320, lora()),
    "lora-ckpt": ("lora", "bf16", 8, 512, {**lora(), **CK, "padding": True}),
    "lora-reent": ("lora", "bf16_amp", 4, 512, {**lora(), **RE}),
    "qlora": ("qlora", "bf16_amp", 8, 384, {**lora(), "padding": True}),
    "qlora-ckpt": ("qlora", "bf16_amp", 4, 640, {**lora(), **CK, "optimizer": "paged_adamw_8bit"}),
}
HEADS = ("amp", "pure", "lora")                  # of the other classes
PAIRS = {
    "amp": ("full", "amp_bf16", 8, 64, {}),
    "pure": ("full", "bf16", 8, 64, {"image_size": [480, 640]}),
    "fp32": ("full", "fp32", 4, 64, {**EAGER, "image_size": [300, 900], "padding": True, "grad_accum": 2}),
    "eager": ("full", "bf16_amp", 8, 64, EAGER),
    "padded": ("full", "amp_bf16", 8, 48, {"image_size": [224, 500], "padding": True}),
    "ckpt": ("full", "bf16_amp", 16, 64, {**CK, "image_size": [640, 480]}),
    "reent": ("full", "amp_bf16", 8, 64, {**RE, "image_size": [640, 480]}),
    "lora": ("lora", "bf16_amp", 8, 64, lora()),
    "lora-ckpt": ("lora", "bf16", 16, 64, {**lora(), **CK, "image_size": [480, 640]}),
    "lora-reent": ("lora", "amp_bf16", 8, 64, {**lora(), **RE}),
    "qlora": ("qlora", "bf16_amp", 8, 64, lora()),
}
PICTURES = {
    "amp": ("full", "amp_bf16", 8, 0, {}),
    "pure": ("full", "bf16", 8, 0, {"grad_accum": 2}),
    "fp32": ("full", "fp32", 4, 0, EAGER),
    "eager": ("full", "bf16_amp", 8, 0, EAGER),
    "fp16": ("full", "amp_fp16", 8, 0, {"optimizer": "adamw_torch"}),
    "ckpt": ("full", "bf16_amp", 16, 0, CK),
    "reent": ("full", "amp_bf16", 8, 0, RE),
    "lora": ("lora", "bf16_amp", 8, 0, lora()),
    "lora-ckpt": ("lora", "amp_bf16", 8, 0, {**lora(), **CK}),
    "lora-reent": ("lora", "bf16", 8, 0, {**lora(), **RE}),
}
SIZES = {**PICTURES, **{name: (*row[:4], {**row[4], "image_size": size}) for name, row, size in (
    ("pure", PICTURES["pure"], [480, 640]), ("ckpt", PICTURES["ckpt"], [300, 900]), ("lora", PICTURES["lora"], [640, 480]))}}

# seconds alone
SOUNDS = {name: (*row[:3], 0, {**row[4], "audio_seconds": seconds}) for (name, row), seconds in zip(PICTURES.items(), (8, 10, 6, 7.3, 10, 12, 9, 10, 8, 11))}
# seconds beside the tokens
HEARD = {
    "amp": ("full", "amp_bf16", 2, 512, {"audio_seconds": 20}),
    "pure": ("full", "bf16", 4, 384, {"audio_seconds": 11.3}),
    "fp32": ("full", "fp32", 1, 320, {**EAGER, "audio_seconds": 8, "grad_accum": 2}),
    "eager": ("full", "bf16_amp", 2, 400, {**EAGER, "audio_seconds": 16}),
    "long": ("full", "bf16", 1, 1024, {"audio_seconds": 60}),
    "text": ("full", "bf16", 2, 512, {}),
    "frozen": ("full", "amp_bf16", 4, 512, {"audio_seconds": 30, "freeze": ["encoder", "language_model"]}),
    "lora": ("lora", "bf16_amp", 4, 512, {**lora(), "audio_seconds": 30}),
    "lora-projector": ("lora", "bf16", 4, 384, {**lora(0.05, 64), "audio_seconds": 15, "beside": ["projector"]}),
    "lora-fp32": ("lora", "amp_bf16", 2, 384, {**lora(), "audio_seconds": 12, "grad_accum": 2}),
    "qlora": ("qlora", "bf16_amp", 2, 512, {**lora(), "audio_seconds": 25, "optimizer": "paged_adamw_8bit"}),
}
GRANITE_SPEECH = {"model_type": "granite_speech", "architectures": ["GraniteSpeechForConditionalGeneration"], "audio_token_index": 8000,
                  "downsample_rate": 5, "window_size": 15, "tie_word_embeddings": True, "has_lora_adapter": True,
                  "encoder_config": {"model_type": "granite_speech_encoder", "input_dim": 160, "hidden_dim": 1024, "num_layers": 4, "num_heads": 8,
                                     "dim_head": 128, "output_dim": 256, "context_size": 200, "max_pos_emb": 512, "feedforward_mult": 4,
                                     "conv_kernel_size": 15, "conv_expansion_factor": 2, "dropout": 0.1},
                  "projector_config": {"model_type": "blip_2_qformer", "hidden_size": 1024, "encoder_hidden_size": 1024, "num_hidden_layers": 2,
                                       "num_attention_heads": 16, "intermediate_size": 4096, "cross_attention_frequency": 1, "hidden_act": "gelu",
                                       "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
                  "text_config": {"model_type": "granite", "vocab_size": 8192, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 3,
                                  "num_attention_heads": 16, "num_key_value_heads": 4, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
                                  "logits_scaling": 8.0, "residual_multiplier": 0.22, "attention_dropout": 0.0, "tie_word_embeddings": True}}
SIGLIP2 = {"model_type": "siglip2", "architectures": ["Siglip2Model"],
           "text_config": {"model_type": "siglip2_text_model", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 12,
                           "vocab_size": 64000, "max_position_embeddings": 64},
           "vision_config": {"model_type": "siglip2_vision_model", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4,
                             "num_attention_heads": 12, "patch_size": 16, "num_patches": 256}}

QKV = ["query", "key", "value"]


def encoder(name, kind, prefix, targets, heads, **more):
    """The first head by all rows, the others by some."""
    base = {"vocab_size": 8000, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 12,
            "max_position_embeddings": 514, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, **more}
    return {name + ("" if head == heads[0] else "-" + head): (
        {"model_type": kind, "architectures": [prefix + head], **base}, targets, TEXTS if head == heads[0] else {row: TEXTS[row] for row in HEADS},
        {"loss_kind": "mean_square"} if head == "Model" else {}) for head in heads}


QV = ["q_proj", "v_proj"]


def decoder(kind, prefix, targets=QV, rows=TEXTS, **more):
    base = {"vocab_size": 16384, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 16,
            "num_key_value_heads": 4, "max_position_embeddings": 4096, **more}
    return {"model_type": kind, "architectures": [prefix + "ForCausalLM"], **base}, targets, rows, {}


MIXTURE = {**TEXTS, "aux": ("full", "bf16_amp", 2, 384, {"config_aux": True}), "loop": ("full", "bf16", 2, 512, {"experts": "eager"}),
           "long": ("full", "bf16", 2, 1536, {})}

VIT = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 12, "image_size": 224, "patch_size": 16}
WAVE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 12, "vocab_size": 32, "pad_token_id": 0, "layerdrop": 0.0}
ALL_HEADS = ["ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model"]

# name: config, targets of LoRA, rows, further keys of each job
FAMILIES = {
    **encoder("data2vec-text", "data2vec-text", "Data2VecText", QKV, ALL_HEADS, type_vocab_size=1),
    **encoder("roberta-preln", "roberta-prelayernorm", "RobertaPreLayerNorm", QKV, [*ALL_HEADS, "ForCausalLM"], type_vocab_size=1),
    **encoder("megatron-bert", "megatron-bert", "MegatronBert", QKV, [*ALL_HEADS, "ForPreTraining", "ForNextSentencePrediction"], hidden_size=1024,
              num_attention_heads=16, intermediate_size=4096, max_position_embeddings=512),
    **encoder("rembert", "rembert", "RemBert", QKV, ALL_HEADS, hidden_size=1152, num_attention_heads=18, intermediate_size=4608, input_embedding_size=256,
              output_embedding_size=1664, max_position_embeddings=512, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    **encoder("roformer", "roformer", "RoFormer", QKV, ALL_HEADS, max_position_embeddings=1536),
    **encoder("roformer-small", "roformer", "RoFormer", QKV, ["ForMaskedLM"], hidden_size=384, num_attention_heads=6, intermediate_size=1536,
              embedding_size=128, rotary_value=True),
    **encoder("layoutlm", "layoutlm", "LayoutLM", QKV, ALL_HEADS, max_position_embeddings=512),
    "jais2": decoder("jais2", "Jais2", num_key_value_heads=16, intermediate_size=8192),
    "nanochat": decoder("nanochat", "NanoChat", num_attention_heads=8, num_key_value_heads=8),
    "hyperclovax": decoder("hyperclovax", "HyperCLOVAX", head_dim=64, attention_multiplier=0.01, residual_multiplier=0.5, logits_scaling=0.1,
                           embedding_multiplier=10.0),
    "hyperclovax-pre": decoder("hyperclovax", "HyperCLOVAX", use_post_norm=False, tie_word_embeddings=True, rows={row: TEXTS[row] for row in HEADS}),
    "mellum": decoder("mellum", "Mellum", rows=MIXTURE, hidden_size=768, num_attention_heads=12, head_dim=64, sliding_window=1024, num_experts=16,
                      num_experts_per_tok=4, moe_intermediate_size=384,
                      layer_types=["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]),
    "cohere2-moe": decoder("cohere2_moe", "Cohere2Moe", rows=MIXTURE, head_dim=64, intermediate_size=512, num_experts=8, num_experts_per_tok=2,
                           num_shared_experts=2, first_k_dense_replace=1, prefix_dense_intermediate_size=4096, sliding_window=1024, rms_norm_eps=1e-5),
    "cohere2-moe-sigmoid": decoder("cohere2_moe", "Cohere2Moe", rows={row: TEXTS[row] for row in HEADS}, head_dim=64, intermediate_size=768, num_experts=8,
                                   num_experts_per_tok=2, expert_selection_fn="sigmoid", shared_expert_combination_strategy="sum", num_shared_experts=1,
                                   sliding_window=256),
    "vit-msn": ({"model_type": "vit_msn", "architectures": ["ViTMSNForImageClassification"], **VIT}, QV, PICTURES, {}),
    "vit-msn-Model": ({"model_type": "vit_msn", "architectures": ["ViTMSNModel"], **VIT}, QV, {"amp": PICTURES["amp"]}, {"loss_kind": "mean_square"}),
    "ijepa": ({"model_type": "ijepa", "architectures": ["IJepaForImageClassification"], **VIT, "patch_size": 14, "hidden_dropout_prob": 0.1}, QV, PICTURES, {}),
    "ijepa-Model": ({"model_type": "ijepa", "architectures": ["IJepaModel"], **VIT}, QV, {"amp": PICTURES["amp"]}, {"loss_kind": "mean_square"}),
    "parakeet": ({"model_type": "parakeet_ctc", "architectures": ["ParakeetForCTC"], "vocab_size": 1025, "pad_token_id": 1024,
                  "encoder_config": {"model_type": "parakeet_encoder", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 8,
                                     "layerdrop": 0.0, "convolution_bias": False, "attention_bias": False}}, QV, SOUNDS, {}),
    "vivit": ({"model_type": "vivit", "architectures": ["VivitForVideoClassification"], **{key: value for key, value in VIT.items() if key != "patch_size"},
               "num_frames": 8, "tubelet_size": [2, 16, 16], "hidden_act": "gelu_fast"}, QV, PICTURES, {}),
    "vivit-Model": ({"model_type": "vivit", "architectures": ["VivitModel"], **{key: value for key, value in VIT.items() if key != "patch_size"},
                     "num_frames": 8, "tubelet_size": [4, 16, 16]}, QV, {"amp": PICTURES["amp"]}, {"loss_kind": "mean_square"}),
    "unispeech": ({"model_type": "unispeech", "architectures": ["UniSpeechForCTC"], **WAVE}, QV, SOUNDS, {}),
    "unispeech-sat": ({"model_type": "unispeech-sat", "architectures": ["UniSpeechSatForCTC"], **WAVE}, QV, SOUNDS, {}),
    "unispeech-sat-large": ({"model_type": "unispeech-sat", "architectures": ["UniSpeechSatForSequenceClassification"], **WAVE, "do_stable_layer_norm": True,
                             "feat_extract_norm": "layer", "conv_bias": True}, QV, {row: SOUNDS[row] for row in HEADS}, {}),
    "laguna": decoder("laguna", "Laguna", rows=MIXTURE, hidden_size=768, num_attention_heads=12, head_dim=64, sliding_window=1024, num_experts=16,
                      num_experts_per_tok=4, moe_intermediate_size=384, shared_expert_intermediate_size=384, num_attention_heads_per_layer=[12, 16, 16, 12],
                      layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"]),
    "siglip2": (SIGLIP2, ["q_proj", "v_proj"], PAIRS, {}),
    "siglip2-classes": ({**SIGLIP2, "architectures": ["Siglip2ForImageClassification"]}, ["q_proj", "k_proj", "v_proj", "out_proj"], SIZES, {}),
    "granite-speech": (GRANITE_SPEECH, r".*language_model.*\.(q_proj|v_proj)", HEARD, {}),
    "granite-speech-odd": ({**GRANITE_SPEECH, "encoder_config": {**GRANITE_SPEECH["encoder_config"], "num_layers": 5, "dropout": 0.0, "context_size": 64}},
                           "all-linear", {row: HEARD[row] for row in ("amp", "pure", "lora")}, {}),
}
# Several GPUs: one of each strategy.
SEVERAL_OF = {"siglip2": (8, 64, {}), "granite-speech": (2, 384, {"audio_seconds": 12}), "layoutlm": (4, 384, {}), "nanochat": (2, 512, {}),
              "hyperclovax": (2, 512, {}), "cohere2-moe": (2, 512, {}), "mellum": (2, 512, {}), "megatron-bert": (4, 384, {}), "unispeech-sat": (4, 0, {"audio_seconds": 8})}
for name, (batch, length, more) in SEVERAL_OF.items():
    config, targets, rows, every = FAMILIES[name]
    FAMILIES[name + "-several"] = (config, targets, {row: (method, precision, batch, length, {**more, **{
        key: value for key, value in of.items() if not (name == "granite-speech" and key == "gradient_checkpointing")}})
        for row, (method, precision, of) in SEVERAL.items()}, every)
KIND = {id(HEARD): "audio", id(SOUNDS): "audio", id(TEXTS): "encoder", id(PAIRS): "vision", id(PICTURES): "vision", id(SIZES): "vision"}


def job(name, row):
    config, targets, rows, every = FAMILIES[name]
    method, precision, batch, length, more = rows[row]
    more = {**every, **more}
    if more.pop("config_aux", False):
        config = {**config, "output_router_logits": True}
    if "lora" in more:
        task = "CAUSAL_LM" if "CausalLM" in config["architectures"][0] or "LMHead" in config["architectures"][0] else False
        more["lora"] = {**more["lora"], "target_modules": targets, "task_type": task}
    return {"id": f"{name}-{row}", "kind": "moe" if "num_experts" in config else KIND.get(id(rows), "encoder"), "config": config, "method": method, "precision": precision, "micro_batch": batch,
            "seq_len": length, "grad_accum": 1, "attention": "sdpa", "padding": False, "gradient_checkpointing": "none",
            "optimizer": "adamw_torch_fused", "architecture": config["architectures"][0], **more}


def main():
    wanted = sys.argv[1:]
    for name, (_, _, rows, _) in FAMILIES.items():
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        for row in rows:
            print(json.dumps(job(name, row)))


if __name__ == "__main__":
    main()
