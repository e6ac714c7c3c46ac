#!/usr/bin/env python3
"""seen_jobs.py [FAMILY...] > jobs.jsonl: models of pictures and of sound alone that came late, three layers of the published widths.
seen_jobs.py --frozen > jobs.jsonl: such models, and Whisper, with the parts frozen that pictures and sound come through first, under checkpoints.

DINOv2 with registers, VideoMAE, ConvNeXt V2, TrOCR, the Audio Spectrogram Transformer, Swin V2, WavLM, BEiT and Donut."""
import json
import sys

VIT = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 12, "hidden_act": "gelu"}
DINO = {"model_type": "dinov2_with_registers", "architectures": ["Dinov2WithRegistersForImageClassification"], **VIT, "mlp_ratio": 4, "image_size": 518,
        "patch_size": 14, "num_register_tokens": 4, "qkv_bias": True, "use_swiglu_ffn": False}
DINO.pop("intermediate_size")
AST = {"model_type": "audio-spectrogram-transformer", "architectures": ["ASTForAudioClassification"], **VIT, "num_mel_bins": 128, "max_length": 1024,
       "patch_size": 16, "frequency_stride": 10, "time_stride": 10, "qkv_bias": True}
VIDEO = {"model_type": "videomae", "architectures": ["VideoMAEForVideoClassification"], **VIT, "image_size": 224, "patch_size": 16, "num_frames": 16,
         "tubelet_size": 2, "qkv_bias": True, "use_mean_pooling": True}
CONV = {"model_type": "convnextv2", "architectures": ["ConvNextV2ForImageClassification"], "num_channels": 3, "patch_size": 4, "num_stages": 4,
        "hidden_sizes": [96, 192, 384, 768], "depths": [2, 1, 2, 1], "hidden_act": "gelu", "drop_path_rate": 0.0, "image_size": 224}
TROCR = {"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"], "is_encoder_decoder": True,
         "decoder_start_token_id": 2, "pad_token_id": 1,
         "encoder": {"model_type": "vit", **VIT, "image_size": 384, "patch_size": 16, "qkv_bias": False},
         "decoder": {"model_type": "trocr", "d_model": 1024, "decoder_layers": 3, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 50265,
                     "max_position_embeddings": 512, "cross_attention_hidden_size": 768, "activation_function": "gelu", "use_cache": False,
                     "layernorm_embedding": True, "use_learned_position_embeddings": True, "scale_embedding": False, "is_decoder": True}}
SMALL = {**TROCR, "encoder": {**TROCR["encoder"], "model_type": "deit", "hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6,
                              "qkv_bias": True},
         "decoder": {**TROCR["decoder"], "d_model": 256, "decoder_attention_heads": 8, "decoder_ffn_dim": 1024, "vocab_size": 64044,
                     "cross_attention_hidden_size": 384, "activation_function": "relu", "scale_embedding": True}}
SWIN2 = {"model_type": "swinv2", "architectures": ["Swinv2ForImageClassification"], "image_size": 256, "patch_size": 4, "embed_dim": 96, "depths": [2, 2, 6, 2],
         "num_heads": [3, 6, 12, 24], "window_size": 8, "pretrained_window_sizes": [0, 0, 0, 0], "drop_path_rate": 0.1}
SWIN2_BASE = {**SWIN2, "embed_dim": 128, "depths": [2, 2, 4, 2], "num_heads": [4, 8, 16, 32], "window_size": 16, "pretrained_window_sizes": [12, 12, 12, 6]}
WAVLM = {"model_type": "wavlm", "architectures": ["WavLMForCTC"], "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3,
         "num_attention_heads": 12, "vocab_size": 32, "pad_token_id": 0, "layerdrop": 0.0, "num_buckets": 320, "max_bucket_distance": 800}
WAVLM_LARGE = {**WAVLM, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "do_stable_layer_norm": True, "feat_extract_norm": "layer"}
BEIT = {"model_type": "beit", "architectures": ["BeitForImageClassification"], **VIT, "image_size": 224, "patch_size": 16, "layer_scale_init_value": 0.1,
        "drop_path_rate": 0.1, "use_relative_position_bias": True, "use_mean_pooling": True}
DONUT = {"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"], "is_encoder_decoder": True,
         "decoder_start_token_id": 2, "pad_token_id": 1,
         "encoder": {"model_type": "donut-swin", "image_size": [2560, 1920], "patch_size": 4, "embed_dim": 128, "depths": [2, 2, 4, 2],
                     "num_heads": [4, 8, 16, 32], "window_size": 10, "drop_path_rate": 0.1},
         "decoder": {"model_type": "mbart", "d_model": 1024, "decoder_layers": 4, "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 57525,
                     "max_position_embeddings": 1536, "activation_function": "gelu", "scale_embedding": True, "add_final_layer_norm": True,
                     "add_cross_attention": True, "is_decoder": True, "use_cache": True, "dropout": 0.1}}
CK = {"gradient_checkpointing": "full"}


def lora(targets, dropout=0.05):
    return {"lora": {"r": 16, "alpha": 32, "dropout": dropout, "target_modules": targets, "task_type": False}}


# name: (config, targets of LoRA, further keys of each job)
FAMILIES = {
    "dinov2-reg": (DINO, ["query", "value"], {"image_size": 224}),
    "dinov2-reg-518": (DINO, ["query", "key", "value", "fc1", "fc2"], {}),
    "dinov2-reg-giant": ({**DINO, "hidden_size": 1536, "num_attention_heads": 24, "use_swiglu_ffn": True}, "all-linear", {"image_size": 224}),
    "dinov2-reg-body": ({**DINO, "architectures": ["Dinov2WithRegistersModel"]}, ["query", "value"], {"image_size": 224, "loss_kind": "mean_square"}),
    "videomae": (VIDEO, ["query", "value"], {}),
    "videomae-cls": ({**VIDEO, "use_mean_pooling": False, "num_frames": 8, "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1}, "all-linear", {}),
    "videomae-body": ({**VIDEO, "architectures": ["VideoMAEModel"]}, ["query", "value"], {"loss_kind": "mean_square"}),
    "convnextv2": (CONV, ["pwconv1", "pwconv2"], {"attention": "eager"}),
    "convnextv2-large": ({**CONV, "hidden_sizes": [192, 384, 768, 1536], "drop_path_rate": 0.1}, "all-linear", {"attention": "eager", "image_size": 384}),
    "trocr": (TROCR, ["q_proj", "v_proj"], {"target_len": 64}),
    "trocr-long": ({**TROCR, "decoder": {**TROCR["decoder"], "attention_dropout": 0.1, "activation_dropout": 0.1}}, "all-linear", {"target_len": 256}),
    "trocr-projected": ({**TROCR, "decoder": {**TROCR["decoder"], "cross_attention_hidden_size": None, "layernorm_embedding": False}},
                        ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"], {"target_len": 128}),
    "trocr-small": (SMALL, ["q_proj", "v_proj"], {"target_len": 128}),
    "swinv2": (SWIN2, ["query", "value"], {}),
    "swinv2-base": (SWIN2_BASE, "all-linear", {}),
    "swinv2-padded": ({**SWIN2, "image_size": 240, "window_size": 7, "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1},
                      ["query", "key", "value", "dense"], {}),
    "swinv2-192": ({**SWIN2_BASE, "image_size": 192, "window_size": 12, "drop_path_rate": 0.0}, ["query", "key", "value"], {"image_size": 192}),
    "wavlm": (WAVLM, ["q_proj", "v_proj"], {}),
    "wavlm-large": (WAVLM_LARGE, ["q_proj", "k_proj", "v_proj", "out_proj"], {"audio_seconds": 15}),
    "wavlm-cls": ({**WAVLM, "architectures": ["WavLMForSequenceClassification"], "classifier_proj_size": 256}, "all-linear", {"audio_seconds": 5}),
    "beit": (BEIT, ["q_proj", "v_proj"], {}),
    "beit-384": ({**BEIT, "image_size": 384, "use_mean_pooling": False, "attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1}, "all-linear", {}),
    "beit-shared": ({**BEIT, "use_relative_position_bias": False, "use_shared_relative_position_bias": True, "use_absolute_position_embeddings": True,
                     "drop_path_rate": 0.0}, ["q_proj", "k_proj", "v_proj", "o_proj"], {}),
    "donut": (DONUT, ["q_proj", "v_proj"], {"target_len": 128, "image_size": [1280, 960]}),
    "donut-window": ({**DONUT, "encoder": {**DONUT["encoder"], "window_size": 7, "attention_probs_dropout_prob": 0.1}}, "all-linear",
                     {"target_len": 256, "image_size": [640, 480]}),
    "ast": (AST, ["q_proj", "v_proj"], {}),
    "ast-dropout": ({**AST, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}, "all-linear", {}),
    "ast-speech-commands": ({**AST, "max_length": 128}, ["q_proj", "k_proj", "v_proj", "o_proj"], {}),
    "ast-body": ({**AST, "architectures": ["ASTModel"]}, ["q_proj", "v_proj"], {"loss_kind": "mean_square"}),
}

# Their classes have no flash attention.
OWN_ATTENTION = ("swinv2", "wavlm", "beit", "donut")

# What inputs_require_grads hooks returns a tuple, and PEFT's hook raises an error: the adapter has to come before checkpoints.
TUPLES = ("swinv2", "donut")

# name: method, precision, rows, further
ROWS = {
    "amp": ("full", "amp_bf16", 8, {}),
    "fp16": ("full", "amp_fp16", 8, {"optimizer": "adamw_torch"}),
    "pure": ("full", "bf16", 8, {"grad_accum": 2}),
    "fp32": ("full", "fp32", 4, {"attention": "eager"}),
    "fa2": ("full", "amp_bf16", 12, {"attention": "flash_attention_2"}),
    "ckpt": ("full", "bf16_amp", 16, CK),
    "lora": ("lora", "bf16_amp", 8, {"lora": True}),
    "lora-ckpt": ("lora", "amp_bf16", 8, {"lora": True, **CK}),
}

CLASSIFIER = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 6,
              "num_attention_heads": 12}
WHISPER = {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "vocab_size": 51865, "num_mel_bins": 80, "d_model": 768,
           "encoder_layers": 4, "encoder_attention_heads": 12, "decoder_layers": 4, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072,
           "decoder_ffn_dim": 3072, "max_source_positions": 1500, "max_target_positions": 448}
HEARD = {"kind": "audio", "micro_batch": 4, "seq_len": 128, "target_len": 128, "audio_seconds": 30, "freeze": ["model.encoder"]}
FIRST_LAYERS = ["embeddings", "layer\\.[0-3]\\.", "layers\\.[0-3]\\."]
# What is frozen lies before what is trained, under checkpoints: transformers hooks no embeddings where main_input_name is no text.
FROZEN = {
    "vit-frozen-embeddings-ck": (CLASSIFIER, {"freeze": FIRST_LAYERS}),
    "dinov2-frozen-embeddings-ck": ({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"], "hidden_size": 768,
                                     "num_hidden_layers": 6, "num_attention_heads": 12, "image_size": 518}, {"freeze": FIRST_LAYERS}),
    "vit-head-ck": (CLASSIFIER, {"freeze": ["^vit"]}),
    "vit-lora-ck": (CLASSIFIER, {"method": "lora", "lora": {"r": 16, "alpha": 16, "target_modules": ["q_proj", "v_proj"],
                                                     "modules_to_save": ["classifier"], "task_type": False}}),
    "whisper-frozen-encoder-ck": (WHISPER, HEARD),
    "whisper-frozen-encoder-ck-re": (WHISPER, {**HEARD, "use_reentrant": True}),
    "wav2vec2-frozen-ck": ({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"], "vocab_size": 32, "hidden_size": 768,
                            "num_hidden_layers": 4, "num_attention_heads": 12, "intermediate_size": 3072},
                           {"kind": "audio", "micro_batch": 4, "audio_seconds": 10, "target_len": 64,
                            "freeze": ["feature_extractor", "feature_projection", "encoder.layers.[01]\\.", "pos_conv", "encoder.layer_norm",
                                       "masked_spec"]}),
    "beit-frozen-embeddings-ck": (BEIT, {"freeze": ["embeddings", "layer\\.[01]\\."]}),
    "wavlm-frozen-ck": (WAVLM, {"kind": "audio", "micro_batch": 4, "audio_seconds": 10, "target_len": 64,
                                "freeze": ["feature_extractor", "feature_projection", "encoder.layers.0\\.", "pos_conv", "encoder.layer_norm",
                                           "masked_spec"]}),
    "trocr-frozen-encoder-ck": ({"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"], "is_encoder_decoder": True,
                                 "decoder_start_token_id": 2, "pad_token_id": 1,
                                 "encoder": {"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4,
                                             "num_attention_heads": 12, "image_size": 384, "patch_size": 16, "qkv_bias": False},
                                 "decoder": {"model_type": "trocr", "d_model": 1024, "decoder_layers": 3, "decoder_attention_heads": 16,
                                             "decoder_ffn_dim": 4096, "vocab_size": 50265, "cross_attention_hidden_size": 768,
                                             "activation_function": "gelu", "use_cache": False, "is_decoder": True}},
                                {"micro_batch": 4, "target_len": 64, "freeze": ["^encoder"]}),
}


def frozen(name):
    config, more = FROZEN[name]
    return {"id": name, "kind": "vision", "config": config, "method": "full", "precision": "bf16", "micro_batch": 32, "seq_len": 0, "grad_accum": 1,
            "attention": "sdpa", "padding": False, "gradient_checkpointing": "full", "optimizer": "adamw_torch_fused", **more}


def job(name, row):
    config, targets, every = FAMILIES[name]
    method, precision, rows, more = ROWS[row]
    more = {**every, **more}
    if name.startswith(TUPLES) and row == "lora-ckpt":
        more["adapter_first"] = True
    if more.get("lora"):
        more.update(lora(targets, 0.0 if row == "lora" else 0.05))
    return {"id": f"{name}-{row}", "kind": "vision" if "image_size" in str(config) else "audio", "config": config, "method": method, "precision": precision,
            "micro_batch": rows, "seq_len": 0, "grad_accum": 1, "attention": "sdpa", "padding": False, "gradient_checkpointing": "none",
            "optimizer": "adamw_torch_fused", "architecture": config["architectures"][0], **more}


def main():
    wanted = sys.argv[1:]
    if wanted == ["--frozen"]:
        for name in FROZEN:
            print(json.dumps(frozen(name)))
        return
    for name in FAMILIES:
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        for row in ROWS:
            if name.startswith(OWN_ATTENTION) and row == "fa2":
                continue
            if name.startswith("convnext") and row in ("fa2", "ckpt", "lora-ckpt"):     # no attention, no checkpoints
                continue
            print(json.dumps(job(name, row)))


if __name__ == "__main__":
    main()
