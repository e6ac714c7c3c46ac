#!/usr/bin/env python3
"""newer_jobs.py [FAMILY...] > jobs.jsonl: families that came to transformers late, a few layers of the published widths.

Decoders: LFM2-MoE, Hunyuan-A13B, Hy3, Mistral 4, AFMoE, dots.llm1, OLMo-Hybrid, Youtu, Gemma 4 12B, Kimi K2, K-EXAONE, Solar Open, FlexOlmo,
Nemotron 3 Super, Bamba, Falcon-Mamba. Models that see: LFM2-VL, Gemma 4 12B, GLM-OCR, PaddleOCR-VL, GLM-4.6V, Mistral Small 4, LLaVA-NeXT-Video,
LLaVA-OneVision, Qwen3-Omni's thinker, DeepSeek-VL, Ovis 2, Florence-2, ERNIE 4.5 VL, Phi-4 multimodal, Aya Vision, Command A Vision, VipLLaVA.
Pages: LayoutLMv3."""
import json
import sys

GEMMA_TEXT = {"vocab_size": 262144, "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers": 4, "num_attention_heads": 16,
              "num_key_value_heads": 8, "num_global_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512, "hidden_activation": "gelu_pytorch_tanh",
              "max_position_embeddings": 262144, "sliding_window": 1024, "attention_k_eq_v": True, "final_logit_softcapping": 30.0,
              "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"], "tie_word_embeddings": True}
LFM2_TEXT = {"model_type": "lfm2", "vocab_size": 65536, "hidden_size": 1024, "intermediate_size": 6656, "block_auto_adjust_ff_dim": True,
             "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8,
             "max_position_embeddings": 128000, "conv_L_cache": 3, "conv_bias": False, "layer_types": ["conv", "conv", "full_attention", "conv"],
             "tie_word_embeddings": True}
DECODERS = {
    "lfm2-moe": {"model_type": "lfm2_moe", "architectures": ["Lfm2MoeForCausalLM"], "vocab_size": 65536, "hidden_size": 2048, "intermediate_size": 7168,
                 "moe_intermediate_size": 1792, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "conv_bias": False,
                 "conv_L_cache": 3, "num_dense_layers": 2, "num_experts": 32, "num_experts_per_tok": 4, "use_expert_bias": True, "norm_topk_prob": True,
                 "routed_scaling_factor": 1.0, "max_position_embeddings": 128000, "layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "hunyuan-moe": {"model_type": "hunyuan_v1_moe", "architectures": ["HunYuanMoEV1ForCausalLM"], "vocab_size": 128167, "hidden_size": 4096,
                    "intermediate_size": 3072, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                    "hidden_act": "silu", "max_position_embeddings": 32768, "num_experts": 16, "moe_topk": 8, "attention_bias": False,
                    "tie_word_embeddings": True},
    "mistral4": {"model_type": "mistral4", "architectures": ["Mistral4ForCausalLM"], "vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 12288,
                 "moe_intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 32, "n_shared_experts": 1,
                 "n_routed_experts": 16, "num_experts_per_tok": 4, "kv_lora_rank": 256, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "v_head_dim": 128,
                 "qk_nope_head_dim": 64, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 0, "norm_topk_prob": True},
    "afmoe": {"model_type": "afmoe", "architectures": ["AfmoeForCausalLM"], "vocab_size": 200192, "hidden_size": 2048, "intermediate_size": 6144,
              "moe_intermediate_size": 1024, "num_hidden_layers": 4, "num_dense_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 4,
              "head_dim": 128, "num_experts": 32, "num_experts_per_tok": 8, "num_shared_experts": 1, "route_scale": 2.826, "sliding_window": 512,
              "global_attn_every_n_layers": 4, "mup_enabled": True, "max_position_embeddings": 131072},
    "dots1": {"model_type": "dots1", "architectures": ["Dots1ForCausalLM"], "vocab_size": 152064, "hidden_size": 4096, "intermediate_size": 10944,
              "moe_intermediate_size": 1408, "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 32, "n_shared_experts": 2,
              "n_routed_experts": 16, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "norm_topk_prob": True, "n_group": 1, "topk_group": 1,
              "max_position_embeddings": 32768, "sliding_window": None},
    "olmo-hybrid": {"model_type": "olmo_hybrid", "architectures": ["OlmoHybridForCausalLM"], "vocab_size": 100352, "hidden_size": 3840,
                    "intermediate_size": 11008, "num_hidden_layers": 2, "num_attention_heads": 30, "num_key_value_heads": 30,
                    "layer_types": ["linear_attention", "full_attention"], "max_position_embeddings": 65536,
                    "linear_conv_kernel_dim": 4, "linear_allow_neg_eigval": True},
    "hy3": {"model_type": "hy_v3", "architectures": ["HYV3ForCausalLM"], "vocab_size": 120832, "hidden_size": 4096, "intermediate_size": 13312,
            "num_hidden_layers": 2, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 16, "num_experts_per_tok": 8,
            "num_shared_experts": 1, "moe_intermediate_size": 1536, "max_position_embeddings": 131072, "enable_moe_fp32_combine": True},
    "youtu": {"model_type": "youtu", "architectures": ["YoutuForCausalLM"], "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 6144,
              "num_hidden_layers": 3, "num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": 1536,
              "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128, "max_position_embeddings": 131072, "tie_word_embeddings": True},
    "kimi-k2": {"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 163840, "hidden_size": 7168, "intermediate_size": 18432,
                "moe_intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 64, "num_key_value_heads": 64, "n_shared_experts": 1,
                "n_routed_experts": 16, "num_experts_per_tok": 8, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128,
                "qk_nope_head_dim": 128, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": True, "hidden_act": "silu",
                "max_position_embeddings": 131072, "tie_word_embeddings": False},
    "gemma4-12b-text": {"model_type": "gemma4_unified_text", "architectures": ["Gemma4UnifiedForCausalLM"], **GEMMA_TEXT},
    "exaone-moe": {"model_type": "exaone_moe", "architectures": ["ExaoneMoeForCausalLM"], "vocab_size": 153600, "hidden_size": 4096,
                   "intermediate_size": 13312, "moe_intermediate_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 64,
                   "num_key_value_heads": 8, "head_dim": 128, "num_experts": 8, "num_experts_per_tok": 4, "num_shared_experts": 1,
                   "first_k_dense_replace": 1, "sliding_window": 128, "sliding_window_pattern": "LLLG",
                   "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
                   "max_position_embeddings": 262144, "norm_topk_prob": True, "n_group": 1, "topk_group": 1},
    "solar-open": {"model_type": "solar_open", "architectures": ["SolarOpenForCausalLM"], "vocab_size": 196608, "hidden_size": 4096,
                   "moe_intermediate_size": 1280, "num_hidden_layers": 3, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
                   "n_routed_experts": 16, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
                   "max_position_embeddings": 131072},
    "flex-olmo": {"model_type": "flex_olmo", "architectures": ["FlexOlmoForCausalLM"], "vocab_size": 100352, "hidden_size": 4096,
                  "intermediate_size": 11008, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 32, "num_experts": 7,
                  "num_experts_per_tok": 5, "max_position_embeddings": 4096},
    "nemotron-super": {"model_type": "nemotron_h", "architectures": ["NemotronHForCausalLM"], "vocab_size": 131072, "hidden_size": 4096,
                       "intermediate_size": 2688, "layers_block_type": ["mamba", "moe", "attention", "moe"], "num_hidden_layers": 4,
                       "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 64,
                       "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4, "chunk_size": 128, "n_routed_experts": 32,
                       "num_experts_per_tok": 22, "moe_intermediate_size": 2688, "moe_shared_expert_intermediate_size": 5376,
                       "moe_latent_size": 1024, "n_shared_experts": 1, "mlp_hidden_act": "relu2", "use_conv_bias": True,
                       "max_position_embeddings": 262144},
    "bamba": {"model_type": "bamba", "architectures": ["BambaForCausalLM"], "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
              "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_indices": [1], "attn_rotary_emb": 64,
              "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2,
              "mamba_chunk_size": 256, "max_position_embeddings": 262144, "tie_word_embeddings": False},
    "falcon-mamba": {"model_type": "falcon_mamba", "architectures": ["FalconMambaForCausalLM"], "vocab_size": 65024, "hidden_size": 4096,
                     "state_size": 16, "num_hidden_layers": 2, "conv_kernel": 4, "expand": 2, "intermediate_size": 8192, "time_step_rank": 256,
                     "use_conv_bias": True, "use_bias": False, "tie_word_embeddings": False},
}
SEEING = {
    "gemma4-12b": {"model_type": "gemma4_unified", "architectures": ["Gemma4UnifiedForConditionalGeneration"], "image_token_id": 258880,
                   "text_config": {"model_type": "gemma4_unified_text", **GEMMA_TEXT, "use_bidirectional_attention": "vision"},
                   "vision_config": {"model_type": "gemma4_unified_vision", "mm_embed_dim": 3840, "mm_posemb_size": 1120, "output_proj_dims": 3840,
                                     "patch_size": 16, "pooling_kernel_size": 3},
                   "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 640}},
    "lfm2-vl": {"model_type": "lfm2_vl", "architectures": ["Lfm2VlForConditionalGeneration"], "image_token_id": 396, "downsample_factor": 2,
                "projector_hidden_size": 2560, "projector_hidden_act": "gelu", "projector_bias": True, "projector_use_layernorm": True,
                "text_config": LFM2_TEXT,
                "vision_config": {"model_type": "siglip2_vision_model", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4,
                                  "num_attention_heads": 12, "num_patches": 256, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh",
                                  "vision_use_head": False}},
    "lfm2-vl-1.6b": {"model_type": "lfm2_vl", "architectures": ["Lfm2VlForConditionalGeneration"], "image_token_id": 396, "downsample_factor": 2,
                     "projector_hidden_size": 2560, "projector_hidden_act": "gelu", "projector_bias": True, "projector_use_layernorm": False,
                     "text_config": {**LFM2_TEXT, "hidden_size": 2048, "intermediate_size": 12288, "num_attention_heads": 32},
                     "vision_config": {"model_type": "siglip2_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 3,
                                       "num_attention_heads": 16, "num_patches": 256, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh",
                                       "vision_use_head": False}},
}
GLM_VISION = {"model_type": "glm4v_vision", "depth": 3, "hidden_size": 1536, "hidden_act": "silu", "attention_bias": False, "num_heads": 12, "in_channels": 3,
              "image_size": 336, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 4096, "intermediate_size": 13696}
SEEING.update({
    "glm-ocr": {"model_type": "glm_ocr", "architectures": ["GlmOcrForConditionalGeneration"], "image_token_id": 59280, "video_token_id": 59281,
                "tie_word_embeddings": False,
                "text_config": {"model_type": "glm_ocr_text", "vocab_size": 59392, "hidden_size": 1536, "intermediate_size": 4608, "num_hidden_layers": 3,
                                "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu",
                                "max_position_embeddings": 131072,
                                "rope_parameters": {"rope_type": "default", "rope_theta": 10000, "mrope_section": [16, 24, 24],
                                                    "partial_rotary_factor": 1.0}},
                "vision_config": {"model_type": "glm_ocr_vision", "depth": 4, "hidden_size": 1024, "hidden_act": "silu", "attention_bias": True,
                                  "num_heads": 16, "in_channels": 3, "image_size": 336, "patch_size": 14, "spatial_merge_size": 2,
                                  "temporal_patch_size": 2, "out_hidden_size": 1536, "intermediate_size": 4096}},
    "paddleocr-vl": {"model_type": "paddleocr_vl", "architectures": ["PaddleOCRVLForConditionalGeneration"], "image_token_id": 100295,
                     "text_config": {"model_type": "paddleocr_vl_text", "vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072,
                                     "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
                                     "max_position_embeddings": 131072, "use_bias": False,
                                     "rope_parameters": {"rope_type": "default", "rope_theta": 500000, "mrope_section": [16, 24, 24]}},
                     "vision_config": {"model_type": "paddleocr_vl_vision", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 4,
                                       "num_attention_heads": 16, "num_channels": 3, "image_size": 384, "patch_size": 14, "spatial_merge_size": 2,
                                       "hidden_act": "gelu_pytorch_tanh"}},
    "glm46v-flash": {"model_type": "glm46v", "architectures": ["Glm46VForConditionalGeneration"], "image_token_id": 151363, "video_token_id": 151364,
                     "tie_word_embeddings": False,
                     "text_config": {"model_type": "glm4v_text", "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
                                     "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 2, "hidden_act": "silu",
                                     "max_position_embeddings": 131072, "attention_bias": True,
                                     "rope_parameters": {"rope_type": "default", "rope_theta": 500000, "mrope_section": [8, 12, 12],
                                                         "partial_rotary_factor": 0.5}},
                     "vision_config": GLM_VISION},
    "mistral-small-4": {"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "image_token_index": 10,
                        "projector_hidden_act": "gelu", "spatial_merge_size": 2, "multimodal_projector_bias": False, "vision_feature_layer": -1,
                        "text_config": {key: value for key, value in DECODERS["mistral4"].items() if key != "architectures"},
                        "vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 3,
                                          "num_attention_heads": 16, "head_dim": 64, "num_channels": 3, "patch_size": 14, "image_size": 1540,
                                          "hidden_act": "silu"}},
})
CLIP = {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "num_attention_heads": 16,
        "num_hidden_layers": 4, "patch_size": 14, "projection_dim": 768}
SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "num_attention_heads": 16,
          "num_hidden_layers": 3, "patch_size": 14, "vision_use_head": False}
SEEING.update({
    "llava-next-video": {"model_type": "llava_next_video", "architectures": ["LlavaNextVideoForConditionalGeneration"], "projector_hidden_act": "gelu",
                         "image_token_index": 32001, "video_token_index": 32000, "vision_feature_layer": -2,
                         "vision_feature_select_strategy": "default", "spatial_pool_mode": "average", "spatial_pool_stride": 2,
                         "text_config": {"model_type": "llama", "vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 11008,
                                         "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
                                         "tie_word_embeddings": False},
                         "vision_config": CLIP},
    "llava-onevision": {"model_type": "llava_onevision", "architectures": ["LlavaOnevisionForConditionalGeneration"], "projector_hidden_act": "gelu",
                        "image_token_index": 151646, "video_token_index": 151647, "vision_feature_layer": -1,
                        "vision_feature_select_strategy": "full", "vision_aspect_ratio": "anyres_max_9",
                        "text_config": {"model_type": "qwen2", "vocab_size": 152000, "hidden_size": 896, "intermediate_size": 4864,
                                        "num_hidden_layers": 3, "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32768,
                                        "tie_word_embeddings": True},
                        "vision_config": SIGLIP},
    "qwen3-omni": {"model_type": "qwen3_omni_moe_thinker", "architectures": ["Qwen3OmniMoeThinkerForConditionalGeneration"], "audio_token_id": 151675,
                   "image_token_id": 151655, "video_token_id": 151656, "audio_start_token_id": 151669, "audio_end_token_id": 151670,
                   "vision_start_token_id": 151652, "position_id_per_seconds": 13,
                   "text_config": {"model_type": "qwen3_omni_moe_text", "vocab_size": 152064, "hidden_size": 2048, "intermediate_size": 768,
                                   "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "hidden_act": "silu",
                                   "max_position_embeddings": 65536, "moe_intermediate_size": 768, "num_experts": 32, "num_experts_per_tok": 8,
                                   "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
                                   "rope_parameters": {"rope_type": "default", "rope_theta": 1000000, "mrope_section": [24, 20, 20],
                                                       "mrope_interleaved": True}},
                   "vision_config": {"model_type": "qwen3_omni_moe_vision_encoder", "depth": 4, "hidden_size": 1152, "intermediate_size": 4304,
                                     "num_heads": 16, "in_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
                                     "out_hidden_size": 2048, "num_position_embeddings": 2304, "deepstack_visual_indexes": [0, 1, 2],
                                     "hidden_act": "gelu_pytorch_tanh"},
                   "audio_config": {"model_type": "qwen3_omni_moe_audio_encoder", "num_mel_bins": 128, "encoder_layers": 3,
                                    "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "d_model": 1280, "activation_function": "gelu",
                                    "max_source_positions": 1500, "n_window": 50, "n_window_infer": 800, "conv_chunksize": 500,
                                    "downsample_hidden_size": 480, "output_dim": 2048}},
})
SEEING.update({
    "deepseek-vl": {"model_type": "deepseek_vl", "architectures": ["DeepseekVLForConditionalGeneration"], "image_token_id": 100015,
                    "tie_word_embeddings": False,
                    "text_config": {"model_type": "llama", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 3,
                                    "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 16384},
                    "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1024, "image_size": 384, "intermediate_size": 4096,
                                      "num_attention_heads": 16, "num_hidden_layers": 4, "patch_size": 16, "hidden_act": "gelu",
                                      "vision_use_head": False}},
    "ovis2": {"model_type": "ovis2", "architectures": ["Ovis2ForConditionalGeneration"], "image_token_id": 151665, "hidden_size": 896,
              "vocab_size": 151936, "tie_word_embeddings": True,
              "text_config": {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 4,
                              "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32768, "tie_word_embeddings": True},
              "vision_config": {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4, "num_attention_heads": 8, "image_size": 448,
                                "patch_size": 14, "hidden_stride": 2, "vocab_size": 65536, "num_visual_indicator_tokens": 5}},
})
SEEING["deepseek-vl-hybrid"] = {
    **SEEING["deepseek-vl"], "model_type": "deepseek_vl_hybrid", "architectures": ["DeepseekVLHybridForConditionalGeneration"],
    "high_res_vision_config": {"model_type": "sam_vision_model", "hidden_size": 768, "num_hidden_layers": 4, "num_attention_heads": 12,
                               "image_size": 1024, "patch_size": 16, "window_size": 14, "global_attn_indexes": [1, 3], "output_channels": 256,
                               "mlp_dim": 3072}}
FLORENCE_TEXT = {"model_type": "bart", "vocab_size": 51328, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1,
                 "max_position_embeddings": 1024, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
FLORENCE = {"model_type": "florence2", "architectures": ["Florence2ForConditionalGeneration"], "image_token_id": 51289, "tie_word_embeddings": True}
SEEING.update({
    "florence2": {**FLORENCE,
                  "text_config": {**FLORENCE_TEXT, "d_model": 768, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 12,
                                  "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072},
                  "vision_config": {"depths": [1, 1, 3, 1], "embed_dim": [128, 256, 512, 1024], "num_heads": [4, 8, 16, 32],
                                    "num_groups": [4, 8, 16, 32], "projection_dim": 768, "drop_path_rate": 0.1}},
    "florence2-large": {**FLORENCE,
                        "text_config": {**FLORENCE_TEXT, "d_model": 1024, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 16,
                                        "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096},
                        "vision_config": {"depths": [1, 1, 2, 1], "embed_dim": [256, 512, 1024, 2048], "num_heads": [8, 16, 32, 64],
                                          "num_groups": [8, 16, 32, 64], "projection_dim": 1024, "drop_path_rate": 0.1}},
})
SEEING["ernie-vl"] = {
    "model_type": "ernie4_5_vl_moe", "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"], "image_token_id": 100295, "video_token_id": 103367,
    "tie_word_embeddings": True,
    "text_config": {"model_type": "ernie4_5_vl_moe_text", "vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 3,
                    "num_attention_heads": 20, "num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 131072, "use_bias": False,
                    "moe_num_experts": 16, "moe_k": 6, "moe_intermediate_size": [1536, 512], "moe_num_shared_experts": 2,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 500000, "mrope_section": [22, 22, 20]}},
    "vision_config": {"model_type": "ernie4_5_vl_moe_vision", "depth": 3, "hidden_size": 1280, "intermediate_size": 5120, "num_heads": 16,
                      "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_merge_size": 2, "hidden_act": "quick_gelu"}}
COHERE_TEXT = {"model_type": "cohere2", "vocab_size": 256000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 4,
               "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 512, "max_position_embeddings": 8192,
               "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"], "logit_scale": 0.25,
               "tie_word_embeddings": True}
SEEING.update({
    "aya-vision": {"model_type": "aya_vision", "architectures": ["AyaVisionForConditionalGeneration"], "image_token_index": 255036,
                   "downsample_factor": 2, "vision_feature_layer": -1, "vision_feature_select_strategy": "full", "alignment_intermediate_size": 28672,
                   "tie_word_embeddings": True, "text_config": COHERE_TEXT,
                   "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 364, "intermediate_size": 4304,
                                     "num_attention_heads": 16, "num_hidden_layers": 3, "patch_size": 14, "vision_use_head": False}},
    "cohere2-vision": {"model_type": "cohere2_vision", "architectures": ["Cohere2VisionForConditionalGeneration"], "image_token_id": 255036,
                       "downsample_factor": 2, "alignment_intermediate_size": 28672, "tie_word_embeddings": True, "text_config": COHERE_TEXT,
                       "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 512, "intermediate_size": 4304,
                                         "num_attention_heads": 16, "num_hidden_layers": 3, "patch_size": 16, "vision_use_head": False}},
    "vipllava": {"model_type": "vipllava", "architectures": ["VipLlavaForConditionalGeneration"], "image_token_index": 32000,
                 "projector_hidden_act": "gelu", "vision_feature_layers": [-2, -3, -4, 2, 1],
                 "text_config": {"model_type": "llama", "vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 2,
                                 "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
                                 "tie_word_embeddings": False},
                 "vision_config": {**CLIP, "num_hidden_layers": 5}},
})
SEEING["got-ocr2"] = {
    "model_type": "got_ocr2", "architectures": ["GotOcr2ForConditionalGeneration"], "image_token_index": 151859, "tie_word_embeddings": True,
    "text_config": {"model_type": "qwen2", "vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
                    "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768, "tie_word_embeddings": True},
    "vision_config": {"hidden_size": 768, "num_hidden_layers": 4, "num_attention_heads": 12, "image_size": 1024, "patch_size": 16,
                      "window_size": 14, "global_attn_indexes": [1, 3], "output_channels": 256, "mlp_dim": 3072}}
SEEING["phi4-multimodal"] = {
    "model_type": "phi4_multimodal", "architectures": ["Phi4MultimodalForCausalLM"], "vocab_size": 200064, "hidden_size": 3072,
    "intermediate_size": 8192, "num_hidden_layers": 3, "num_attention_heads": 24, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096, "tie_word_embeddings": True, "sliding_window": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.75},
    "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 4, "num_attention_heads": 16, "image_size": 448,
                      "patch_size": 14, "crop_size": 448, "feature_layer": -2},
    "audio_config": {"hidden_size": 1024, "intermediate_size": 1536, "num_blocks": 2, "num_attention_heads": 16}}
CK = {"gradient_checkpointing": "full"}
FA2 = {"attention": "flash_attention_2"}
EAGER = {"attention": "eager"}


def lora(targets="all-linear", r=16, dropout=0.0, **more):
    return {"lora": {"r": r, "alpha": 2 * r, "dropout": dropout, "target_modules": targets, **more}}


# An expression: Mistral 4's latent attention has other names.
ATTENTION = r".*\.self_attn\.(q_proj|v_proj|q_b_proj|kv_b_proj)"
# what, method, precision, rows, length, further
TEXTS = [
    ("full", "full", "bf16", 2, 1024, {}),
    ("amp", "full", "amp_bf16", 1, 768, {}),
    ("bf16-amp-ck", "full", "bf16_amp", 2, 1024, CK),
    ("eager", "full", "bf16", 1, 512, EAGER),
    ("fa2-ck", "full", "bf16", 2, 2048, {**FA2, **CK}),
    ("padded", "full", "bf16", 2, 768, {"padding": True}),
    ("lora", "lora", "bf16_amp", 2, 1024, lora()),
    ("lora-attention", "lora", "bf16", 4, 512, {**lora(ATTENTION, 8, 0.05), **CK}),
    ("qlora", "qlora", "bf16_amp", 1, 2048, {**lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-fa2", "qlora", "bf16", 1, 768, {**lora(), **FA2}),
    ("fp32", "full", "fp32", 1, 512, {}),
]
MIXTURES = [
    ("loop", "full", "bf16", 1, 512, {"experts": "eager"}),
    ("lora-experts", "lora", "bf16_amp", 1, 1024, {**lora(ATTENTION, 8, 0.0, target_parameters="experts"), **CK}),
]
# What runs on torch alone takes long to record, token by token or chunk by chunk.
# Mamba's scan on torch runs token by token: short rows, and longer ones on the kernels.
FUSED = [
    ("fused", "full", "bf16", 2, 512, {"kernels": "mamba_ssm"}),
    ("fused-amp", "full", "amp_bf16", 1, 384, {"kernels": "mamba_ssm"}),
    ("fused-ck", "full", "bf16_amp", 2, 768, {"kernels": "mamba_ssm", **CK}),
    ("fused-lora", "lora", "bf16_amp", 2, 512, {"kernels": "mamba_ssm", **lora()}),
    ("fused-fp32", "full", "fp32", 1, 2304, {"kernels": "mamba_ssm"}),
]
SCANS = {
    "nemotron-super": lambda rows: [row for row in rows if row[0] not in ("amp", "lora-experts", "lora-attention")],
    "falcon-mamba": lambda rows: [(what, method, precision, rows, 32, more) for what, method, precision, rows, length, more in rows
                                  if what not in ("eager", "fa2-ck", "padded", "lora-attention", "qlora-fa2")] + FUSED,
}
STATES = [(what, method, precision, min(rows, 2), {512: 128, 768: 192}.get(length, 256), more) for what, method, precision, rows, length, more in TEXTS]
SIGHTS = [
    ("full", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512]}),
    ("two", "full", "bf16", 2, 1024, {"images": 2, "image_size": [512, 512]}),
    ("amp", "full", "amp_bf16", 1, 768, {"images": 1, "image_size": [512, 512]}),
    ("ck", "full", "bf16", 2, 1024, {"images": 1, "image_size": [384, 512], **CK}),
    ("wide", "full", "bf16", 1, 2560, {"images": 1, "image_size": [768, 1280]}),
    ("frozen", "full", "bf16", 2, 1024, {"images": 1, "image_size": [512, 512], "freeze": ["vision_tower", "embed_vision"]}),
    ("eager", "full", "bf16", 1, 768, {"images": 2, "image_size": [512, 512], **EAGER}),
    ("fa2", "full", "bf16", 2, 1024, {"images": 1, "image_size": [512, 512], **FA2}),
    ("lora", "lora", "bf16_amp", 2, 1024, {"images": 1, "image_size": [512, 512], **lora()}),
    ("lora-language", "lora", "bf16", 2, 1024, {"images": 1, "image_size": [512, 512], **lora(r".*language_model.*_proj"), **CK}),
    ("qlora", "qlora", "bf16_amp", 1, 1024, {"images": 2, "image_size": [512, 512], **lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("qlora-none", "qlora", "bf16", 1, 768, {"images": 1, "image_size": [512, 512], **lora()}),
    ("text", "full", "bf16", 2, 1024, {}),
    ("text-lora", "lora", "bf16_amp", 2, 1024, {**lora(), **CK}),
    ("text-padded", "full", "bf16", 2, 1024, {"padding": True}),
    ("text-qlora", "qlora", "bf16_amp", 1, 1024, {**lora(), **CK}),
    ("fp32", "full", "fp32", 1, 640, {"images": 1, "image_size": [512, 512]}),
]

# Pictures in tiles take more tokens.
LLAVAS = [
    ("full", "full", "bf16", 1, 3072, {"images": 1, "image_size": [672, 672]}),
    ("two", "full", "bf16", 2, 2560, {"images": 2, "image_size": [320, 300]}),
    ("amp", "full", "amp_bf16", 1, 2048, {"images": 1, "image_size": [300, 640]}),
    ("ck", "full", "bf16", 2, 2560, {"images": 1, "image_size": [512, 384], **CK}),
    ("frozen", "full", "bf16", 2, 2048, {"images": 1, "image_size": [330, 640], "freeze": ["vision_tower"]}),
    ("eager", "full", "bf16", 1, 2048, {"images": 1, "image_size": [336, 600], **EAGER}),
    ("fa2", "full", "bf16", 2, 2048, {"images": 1, "image_size": [336, 600], **FA2}),
    ("lora", "lora", "bf16_amp", 1, 3072, {"images": 1, "image_size": [640, 512], **lora()}),
    ("lora-language", "lora", "bf16", 2, 2048, {"images": 1, "image_size": [400, 300], **lora(r".*language_model.*_proj"), **CK}),
    ("qlora", "qlora", "bf16_amp", 1, 3072, {"images": 1, "image_size": [672, 672], **lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("large", "lora", "bf16_amp", 1, 12288, {"images": 1, "image_size": [2000, 1600], **lora(), **CK}),
    ("text", "full", "bf16", 2, 1024, {}),
    ("text-lora", "lora", "bf16_amp", 2, 1024, {**lora(), **CK}),
    ("text-padded", "full", "bf16", 2, 1024, {"padding": True}),
    ("video", "full", "bf16", 1, 2048, {"video_frames": 6}),
    ("video-lora", "lora", "bf16_amp", 2, 2048, {"video_frames": 8, **lora(), **CK}),
    ("video-amp", "full", "amp_bf16", 1, 1536, {"video_frames": 4}),
    ("fp32", "full", "fp32", 1, 2048, {"images": 1, "image_size": [336, 600]}),
]
OMNIS = [
    ("full", "full", "bf16", 1, 1536, {"images": 1, "image_size": [448, 672], "audio_seconds": 30}),
    ("picture", "full", "bf16", 2, 1024, {"images": 2, "image_size": [384, 320]}),
    ("sound", "full", "bf16", 2, 1024, {"audio_seconds": 20}),
    ("sound-long", "full", "bf16", 1, 2048, {"audio_seconds": 61.3}),
    ("amp", "full", "amp_bf16", 1, 1024, {"images": 1, "image_size": [320, 320], "audio_seconds": 15}),
    ("ck", "full", "bf16", 2, 1024, {"images": 1, "image_size": [448, 448], "audio_seconds": 30, **CK}),
    ("frozen", "full", "bf16", 2, 1024, {"images": 1, "image_size": [448, 448], "audio_seconds": 30, "freeze": ["visual", "audio_tower"]}),
    ("eager", "full", "bf16", 1, 1024, {"images": 1, "image_size": [320, 448], "audio_seconds": 12, **EAGER}),
    ("fa2", "full", "bf16", 2, 1024, {"images": 1, "image_size": [320, 448], "audio_seconds": 20, **FA2}),
    ("lora", "lora", "bf16_amp", 2, 1024, {"images": 1, "image_size": [448, 448], "audio_seconds": 30, **lora()}),
    ("lora-language", "lora", "bf16", 2, 1024, {"audio_seconds": 30, **lora(r"model\..*\.(q_proj|k_proj|v_proj|o_proj)"), **CK}),
    ("qlora", "qlora", "bf16_amp", 1, 1024, {"images": 1, "image_size": [448, 448], "audio_seconds": 30, **lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("text", "full", "bf16", 2, 1024, {"grad_accum": 2}),
    ("text-lora", "lora", "bf16_amp", 2, 1024, {**lora(), **CK}),
    ("text-padded", "full", "bf16", 2, 1024, {"padding": True}),
    ("video", "full", "bf16", 1, 1024, {"video_frames": 6, "image_size": [320, 448]}),
    ("fp32", "full", "fp32", 1, 1024, {"images": 1, "image_size": [320, 320], "audio_seconds": 15}),
]
MORE_SIGHTS = SIGHTS + [
    ("padded", "lora", "bf16", 2, 1024, {"images": 1, "image_size": [512, 512], **lora(), "padding": True}),
    ("qlora-re", "qlora", "bf16_amp", 2, 1024, {"images": 1, "image_size": [512, 512], **lora(), **CK, "use_reentrant": True}),
    ("frozen-ck", "full", "bf16_amp", 2, 1024, {"images": 1, "image_size": [384, 512], "freeze": ["vision_tower"], **CK, "grad_accum": 2}),
    ("adam8", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512], "optimizer": "adamw_8bit"}),
]
# A tower of one side: pictures as many tiles.
TILED = [(what, method, precision, rows, 1536 if what in ("wide", "lora", "full") else length,
          {**{key: value for key, value in more.items() if key != "image_size"}, **({"tiles": 4} if what in ("wide", "lora", "full") else {})})
         for what, method, precision, rows, length, more in MORE_SIGHTS]
# Experts of two kinds; 4-bit towers whose first layer is linear take no pictures.
KINDS = [row for row in SIGHTS if not row[0].startswith("qlora")] + [
    ("padded", "full", "bf16", 2, 1024, {"images": 1, "image_size": [512, 512], "padding": True}),
    ("loop", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512], "experts": "eager"}),
    ("loop-lora", "lora", "bf16_amp", 1, 1024, {"images": 1, "image_size": [512, 512], "experts": "eager", **lora(), **CK}),
    ("aux", "full", "bf16", 1, 1024, {"images": 1, "image_size": [512, 512], "output_router_logits": True}),
]
# A picture of 768 x 768 for each text; labels are the decoder's.
SEQ2SEQS = [
    ("full", "full", "bf16", 2, 640, {"images": 1, "target_len": 128}),
    ("four", "full", "bf16", 4, 608, {"images": 1, "target_len": 512}),
    ("amp", "full", "amp_bf16", 1, 640, {"images": 1, "target_len": 256}),
    ("bf16-amp", "full", "bf16_amp", 2, 640, {"images": 1, "target_len": 128}),
    ("ck", "full", "bf16", 2, 640, {"images": 1, "target_len": 256, **CK}),
    ("frozen", "full", "bf16", 2, 640, {"images": 1, "target_len": 128, "freeze": ["vision_tower"]}),
    ("frozen-ck", "full", "bf16_amp", 4, 640, {"images": 1, "target_len": 640, "freeze": ["vision_tower"], **CK}),
    ("eager", "full", "bf16", 1, 640, {"images": 1, "target_len": 128, **EAGER}),
    ("lora", "lora", "bf16_amp", 2, 640, {"images": 1, "target_len": 128, **lora()}),
    ("lora-language", "lora", "bf16", 2, 640, {"images": 1, "target_len": 256, **lora(r".*language_model.*_proj"), **CK}),
    ("qlora", "qlora", "bf16_amp", 2, 640, {"images": 1, "target_len": 128, **lora(), **CK, "optimizer": "paged_adamw_8bit"}),
    ("padded", "lora", "bf16", 2, 640, {"images": 1, "target_len": 128, **lora(), "padding": True}),
    ("text", "full", "bf16", 2, 640, {"target_len": 256}),
    ("text-lora", "lora", "bf16_amp", 4, 512, {"target_len": 512, **lora(), **CK}),
    ("text-fa2", "full", "bf16", 2, 640, {"target_len": 256, **FA2}),
    ("fp32", "full", "fp32", 1, 640, {"images": 1, "target_len": 128}),
]
LAYOUT = {"model_type": "layoutlmv3", "architectures": ["LayoutLMv3ForTokenClassification"], "vocab_size": 50265, "hidden_size": 768,
          "num_hidden_layers": 4, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1,
          "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "pad_token_id": 1}
# Forms, pages and questions: LayoutLMv3 has the page beside its words whatever the job says.
PAGES = {"layoutlmv3": LAYOUT,
         "layoutlmv3-large": {**LAYOUT, "hidden_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 16, "intermediate_size": 4096,
                              "coordinate_size": 171, "shape_size": 170, "num_labels": 13},
         "layoutlmv3-cls": {**LAYOUT, "architectures": ["LayoutLMv3ForSequenceClassification"], "num_labels": 16},
         "layoutlmv3-qa": {**LAYOUT, "architectures": ["LayoutLMv3ForQuestionAnswering"]}}


PAGED = [
    ("full", "full", "bf16", 2, 512, {}),
    ("four", "full", "amp_bf16", 4, 512, {}),
    ("amp", "full", "amp_bf16", 1, 256, {}),
    ("bf16-amp", "full", "bf16_amp", 2, 384, {"grad_accum": 2}),
    ("fp16", "full", "amp_fp16", 2, 512, {}),
    ("fp32", "full", "fp32", 1, 512, {}),
    ("padded", "full", "bf16", 2, 512, {"padding": True}),
    ("padded-amp", "full", "amp_bf16", 3, 300, {"padding": True}),
    ("frozen", "full", "bf16", 2, 512, {"freeze": ["layoutlmv3.embeddings", "layoutlmv3.patch_embed"]}),
    ("lora", "lora", "amp_bf16", 2, 512, lora(["query", "value"])),
    ("lora-all", "lora", "bf16", 2, 512, lora(r".*encoder.*\.(query|key|value|dense)")),
]
# What differs from its smaller brother's.
HYBRID = ("full", "two", "amp", "ck", "frozen", "frozen-ck", "eager", "lora", "lora-language", "qlora", "qlora-re", "padded", "text", "fp32")
OWN_ROWS = {"ernie-vl": KINDS, "phi4-multimodal": [row for row in MORE_SIGHTS if row[0] != "padded"], "aya-vision": TILED, "cohere2-vision": TILED, "got-ocr2": [row for row in TILED if row[0] != "fa2"],
            "vipllava": [(*row[:3], row[3], max(row[4], 640 * row[5].get("images", 0)), row[5]) for row in TILED if row[5].get("tiles", 1) == 1],
            "llava-next-video": LLAVAS, "llava-onevision": LLAVAS, "qwen3-omni": OMNIS, "deepseek-vl": MORE_SIGHTS, "ovis2": MORE_SIGHTS,
            "deepseek-vl-hybrid": [row for row in MORE_SIGHTS if row[0] in HYBRID],
            "florence2": SEQ2SEQS, "florence2-large": SEQ2SEQS}


# Ovis 2's tiles: one piece, two and the whole, twelve and the whole.
TILES_OF_448 = {(512, 512): ([448, 448], 1024), (384, 512): ([448, 896], 1536), (768, 1280): ([1344, 1792], 4096)}
PATCHES_OF_14 = {(512, 512): [448, 448], (384, 512): [448, 672], (768, 1280): [672, 1120]}


def job(name, config, kind, row):
    what, method, precision, rows, length, more = row
    more = dict(more)
    if config["model_type"].startswith(("glm", "mistral3", "paddle", "ernie")):     # sizes that their patches divide
        more = {**more, **({"image_size": PATCHES_OF_14[tuple(more["image_size"])]} if "image_size" in more else {})}
    if "freeze" in more and not config["model_type"].startswith(("gemma", "qwen3_omni", "layout")):
        more = {**more, "freeze": ["visual" if config["model_type"].startswith(("glm", "paddle")) else "vision_tower"]}
    if config["model_type"] == "layoutlmv3" and "lora" in more:          # PEFT trains the head of the task that it is told
        tasks = {"ForTokenClassification": "TOKEN_CLS", "ForSequenceClassification": "SEQ_CLS", "ForQuestionAnswering": "QUESTION_ANS"}
        more = {**more, "lora": {**more["lora"], "task_type": tasks[config["architectures"][0].removeprefix("LayoutLMv3")]}}
    if config["model_type"] == "florence2" and "images" in more:
        more = {**more, "image_size": [768, 768]}
    if name.startswith("deepseek-vl") and "freeze" in more:
        more = {**more, "freeze": ["vision_model"] + ["high_res"] * (name != "deepseek-vl")}
    if name.startswith("deepseek-vl"):                            # 576 tokens a picture
        length = max(length, 768 * more.get("images", 1))
    if name == "ovis2" and "image_size" in more:
        size, least = TILES_OF_448[tuple(more["image_size"])]
        more, length = {**more, "image_size": size}, max(length, least)
    if more.pop("output_router_logits", False):
        config = {**config, "text_config": {**config["text_config"], "output_router_logits": True}}
    if name == "phi4-multimodal":                                 # 1329 tokens a picture in two by two tiles
        length = max(length, {1: 1536, 2: 2816}.get(more.get("images"), 0))
        if "freeze" in more:
            more = {**more, "freeze": ["image_embed"]}
        if "language_model" in str(more.get("lora", {}).get("target_modules")):
            more = {**more, "lora": {**more["lora"], "target_modules": r".*model\.layers.*_proj"}}
    if config["model_type"] == "falcon_mamba" and "lora" in more:        # PEFT refuses out_proj
        more = {**more, "lora": {**more["lora"], "target_modules": ["in_proj", "x_proj"]}}
    if name == "llava-onevision" and more.get("images") == 1:
        length = max(length, 4096)
    if name in ("qwen3-omni", "ernie-vl"):
        more = {"experts": "grouped_mm", **more}
    if "lfm2" in config["model_type"] or config["model_type"] in ("olmo_hybrid", "nemotron_h", "bamba", "falcon_mamba"):
        more = {"kernels": "torch-slow", **more}
    return {"id": f"{name}-{what}", "kind": kind, "config": config, "method": method, "precision": precision, "micro_batch": rows, "seq_len": length,
            "grad_accum": 1, "attention": "sdpa", "padding": False, "gradient_checkpointing": "none", "optimizer": "adamw_torch_fused", **more}


def main():
    wanted = sys.argv[1:] or [*DECODERS, *SEEING, *PAGES]
    for name in wanted:
        if name in PAGES:
            rows, config, kind = PAGED, PAGES[name], "text"
        elif name in SEEING:
            rows, config, kind = OWN_ROWS.get(name, SIGHTS), SEEING[name], "vlm"
        else:
            config = DECODERS[name]
            mixed = any("experts" in key for key in config)
            rows = STATES if name == "olmo-hybrid" else TEXTS + MIXTURES * mixed
            if name in SCANS:
                rows = SCANS[name](rows)
            kind = "moe" if mixed else "text"
        for row in rows:
            print(json.dumps(job(name, config, kind, row)))


if __name__ == "__main__":
    main()
