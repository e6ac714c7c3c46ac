#!/usr/bin/env python3
"""seen_heard_jobs.py [NAME...] > jobs.jsonl: models of pictures and of speech that were missing, under transformers 5.24, two to four layers of the
published widths."""
import json
import sys

ALL, QV = "all-linear", ["query", "value"]
VIT = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 3}
YOLOS = {"model_type": "yolos", "architectures": ["YolosForObjectDetection"], **VIT, "image_size": [512, 864], "patch_size": 16, "num_labels": 91}
TINY = {**YOLOS, "hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3, "num_hidden_layers": 4, "image_size": [800, 1344],
        "use_mid_position_embeddings": False}
MOONSHINE = {"model_type": "moonshine", "architectures": ["MoonshineForConditionalGeneration"], "vocab_size": 32768, "hidden_size": 288,
             "intermediate_size": 1152, "encoder_num_hidden_layers": 3, "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 8,
             "decoder_num_attention_heads": 8, "pad_head_dim_to_multiple_of": 8, "partial_rotary_factor": 0.9, "pad_token_id": 2}
WAVES = {"vocab_size": 32, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 2, "feat_extract_norm": "layer",
         "conv_bias": True, "layerdrop": 0.0, "hidden_act": "swish", "pad_token_id": 0}
DPT = {"model_type": "dpt", "architectures": ["DPTForSemanticSegmentation"], **VIT, "num_hidden_layers": 6, "image_size": 384, "patch_size": 16,
       "backbone_out_indices": [1, 2, 4, 5], "num_labels": 150}
SPEECH = {"model_type": "speech_to_text", "architectures": ["Speech2TextForConditionalGeneration"], "vocab_size": 10000, "d_model": 256, "encoder_layers": 3,
          "decoder_layers": 2, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
          "pad_token_id": 1, "max_source_positions": 6000, "max_target_positions": 1024}
SEW = {"model_type": "sew", "architectures": ["SEWForCTC"], "vocab_size": 32, "hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8,
       "num_hidden_layers": 3, "layerdrop": 0.0, "pad_token_id": 0}
CONFORMER = {"model_type": "wav2vec2-conformer", "architectures": ["Wav2Vec2ConformerForCTC"], **WAVES}
SOUND = {"kind": "audio", "seq_len": 64, "target_len": 64, "audio_seconds": 10}
# name: configuration, an adapter's targets, what its jobs say beside
FAMILIES = {
    "yolos": (YOLOS, QV, {"kind": "vision"}),
    "yolos-tiny": (TINY, QV, {"kind": "vision", "image_size": [640, 960]}),
    "yolos-dropout": ({**YOLOS, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "qkv_bias": False}, QV,
                      {"kind": "vision", "image_size": [480, 640]}),
    "yolos-Model": ({**YOLOS, "architectures": ["YolosModel"]}, QV, {"kind": "vision", "image_size": [512, 512], "loss_kind": "mean_square"}),
    "dpt": (DPT, QV, {"kind": "vision"}),
    "dpt-large": ({**DPT, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "neck_hidden_sizes": [256, 512, 1024, 1024],
                   "use_batch_norm_in_fusion_residual": True, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}, QV,
                  {"kind": "vision", "image_size": [480, 480]}),
    "moonshine": (MOONSHINE, ["q_proj", "v_proj"], SOUND),
    "moonshine-padded": (MOONSHINE, ["q_proj", "v_proj"], {**SOUND, "padding": True, "audio_seconds": 15.5}),
    "moonshine-base": ({**MOONSHINE, "hidden_size": 416, "intermediate_size": 1664, "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 3,
                        "partial_rotary_factor": 0.62, "attention_bias": True, "attention_dropout": 0.1}, ["q_proj", "v_proj"],
                       {**SOUND, "audio_seconds": 7.3, "target_len": 96}),
    "moonshine-unfilled": ({**MOONSHINE, "pad_head_dim_to_multiple_of": None, "tie_word_embeddings": False}, ["q_proj", "v_proj"], SOUND),
    "speech_to_text": (SPEECH, ["q_proj", "v_proj"], {**SOUND, "audio_seconds": 15}),
    "speech_to_text-padded": (SPEECH, ["q_proj", "v_proj"], {**SOUND, "padding": True, "audio_seconds": 12.3}),
    "speech_to_text-large": ({**SPEECH, "d_model": 1024, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
                              "encoder_attention_heads": 16, "decoder_attention_heads": 16, "attention_dropout": 0.1, "activation_dropout": 0.1,
                              "conv_kernel_sizes": [5, 5, 3], "num_conv_layers": 3}, ["q_proj", "v_proj"], {**SOUND, "target_len": 96}),
    "sew": (SEW, ["q_proj", "v_proj"], SOUND),
    "sew-mid": ({**SEW, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_conv_pos_embeddings": 31, "feat_extract_norm": "layer",
                 "conv_bias": True}, ["q_proj", "v_proj"], {**SOUND, "audio_seconds": 7.7}),
    "sew-ForSequenceClassification": ({**SEW, "architectures": ["SEWForSequenceClassification"]}, ["q_proj", "v_proj"], {**SOUND, "audio_seconds": 5}),
    "sew-Model": ({**SEW, "architectures": ["SEWModel"]}, ["q_proj", "v_proj"], {**SOUND, "loss_kind": "mean_square"}),
    "conformer": (CONFORMER, ["linear_q", "linear_v"], SOUND),
    "conformer-rope": ({**CONFORMER, "position_embeddings_type": "rotary"}, ["linear_q", "linear_v"], SOUND),
    "conformer-plain": ({**CONFORMER, "position_embeddings_type": None, "feat_extract_norm": "group", "conv_bias": False, "hidden_size": 768,
                         "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu"}, ["linear_q", "linear_v"], SOUND),
    "conformer-ForSequenceClassification": ({**CONFORMER, "architectures": ["Wav2Vec2ConformerForSequenceClassification"]}, ["linear_q", "linear_v"],
                                            {**SOUND, "audio_seconds": 5}),
    "conformer-Model": ({**CONFORMER, "architectures": ["Wav2Vec2ConformerModel"]}, ["linear_q", "linear_v"], {**SOUND, "loss_kind": "mean_square"}),
}
CK = {"gradient_checkpointing": "full"}
# name: method, precision, rows, further
ROWS = {
    "full": ("full", "bf16_amp", 4, {}),
    "ck": ("full", "bf16_amp", 8, CK),
    "reentrant": ("full", "bf16_amp", 8, {**CK, "use_reentrant": True}),
    "amp": ("full", "amp_bf16", 3, {"optimizer": "adamw_torch"}),
    "pure": ("full", "bf16", 4, {}),
    "fp32": ("full", "fp32", 2, {"attention": "eager", "grad_accum": 2}),
    "fa2": ("full", "amp_bf16", 4, {"attention": "flash_attention_2"}),
    "eager": ("full", "bf16_amp", 2, {"attention": "eager"}),
    "lora": ("lora", "bf16_amp", 4, {"lora": ALL}),
    "lora-qv": ("lora", "bf16", 4, {"lora": "targets", "attention": "eager", **CK}),
    "lora-ck": ("lora", "amp_bf16", 4, {"lora": ALL, **CK}),
    "qlora": ("qlora", "bf16_amp", 4, {"lora": ALL}),
    "qlora-ck": ("qlora", "bf16_amp", 4, {"lora": "targets", **CK}),
}
# Whose classes have no flash attention.
NO_FLASH = ("conformer", "speech_to_text", "speecht5", "hiera")
# Of names beside a family's first, and of those whose recording takes longer.
FEW = ("full", "pure", "lora", "ck")
FEWER = {"speech_to_text": ("full", "ck", "reentrant", "amp", "fp32", "lora", "lora-ck", "qlora"), "speech_to_text-padded": ("full", "ck"),
         "speech_to_text-large": ("full", "lora"), "dpt": ("full", "ck", "amp", "pure", "fp32", "fa2", "lora", "lora-ck", "qlora"), "dpt-large": ("full", "lora"),
         "sew": ("full", "ck", "reentrant", "amp", "fp32", "fa2", "lora", "lora-ck"), "sew-mid": ("full", "lora"),
         "sew-ForSequenceClassification": ("full", "lora"), "sew-Model": ("pure",), "conformer-rope": ("full", "lora", "fp32"), "conformer-plain": ("pure",),
         "conformer-ForSequenceClassification": ("full", "lora"), "conformer-Model": ("pure",)}


def job(name, row):
    config, targets, of_family = FAMILIES[name]
    method, precision, rows, of_row = ROWS[row]
    more = {**of_family, **of_row}
    if "lora" in more:
        more["lora"] = {"r": 16, "alpha": 32, "dropout": 0.05, "target_modules": targets if more["lora"] == "targets" else ALL, "task_type": False}
    return {"id": f"v524-{name}-{row}", "config": config, "method": method, "precision": precision, "micro_batch": rows, "grad_accum": 1,
            "attention": "sdpa", "padding": False, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", "transformers": "5.24", **more}


def main():
    for name in sys.argv[1:] or FAMILIES:
        for row in FEWER.get(name) or (ROWS if "-" not in name else FEW):
            if row == "fa2" and name in NO_FLASH:
                continue
            print(json.dumps(job(name, row)))


if __name__ == "__main__":
    main()
