#!/usr/bin/env python3
"""adapter_jobs.py [KIND...] > jobs.jsonl     jobs of PEFT's adapters beside LoRA (recorder/adapters.py), for records-adapters.jsonl

Of each kind plain jobs, and as many drawn ones as it takes for every value of every option of pairs.py to meet it."""
import copy
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "recorder")]

import pairs  # noqa: E402

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 6,
         "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 16000, "max_position_embeddings": 4096, "tie_word_embeddings": False}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 5,
         "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 8000, "max_position_embeddings": 4096, "tie_word_embeddings": True}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 6, "n_head": 12, "n_positions": 2048,
        "vocab_size": 8000, "bos_token_id": 1, "eos_token_id": 1}
GEMMA2 = {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 5,
          "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 8000, "query_pre_attn_scalar": 128,
          "sliding_window": 4096, "max_position_embeddings": 8192}
OPT = {"model_type": "opt", "architectures": ["OPTForCausalLM"], "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 5, "num_attention_heads": 12,
       "vocab_size": 8000, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 1}
FLASH = ("sdpa", "flash_attention_2")
SMALL = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 5, "num_attention_heads": 8, "vocab_size": 8000, "pad_token_id": 0}
# further families behind a prefix
PREFIXED = {"mistral": {"num_key_value_heads": 2, "sliding_window": 256}, "qwen3": {"num_key_value_heads": 4, "head_dim": 128},
            "gemma": {"num_key_value_heads": 1, "head_dim": 64}, "gpt_neox": {}, "starcoder2": {"num_key_value_heads": 2, "sliding_window": 4096},
            "granite": {"num_key_value_heads": 4}, "olmo2": {}, "stablelm": {"num_key_value_heads": 8}, "phi": {}, "phi3": {"num_key_value_heads": 4}}
# name -> (config, targets of a list, implementations beside eager), and IA3's feed-forward modules
MODELS = {"llama": (LLAMA, ["k_proj", "v_proj", "down_proj"], FLASH), "qwen2": (QWEN2, ["q_proj", "v_proj", "down_proj"], FLASH),
          "gpt2": (GPT2, ["c_attn", "mlp.c_proj"], FLASH), "gemma2": (GEMMA2, ["q_proj", "v_proj", "down_proj"], FLASH),
          "opt": (OPT, ["q_proj", "k_proj", "fc2"], FLASH)}
PROMPTS = ("prompt_tuning", "prefix_tuning", "p_tuning")
CONV1D = ("ia3", "adalora", "vera", *PROMPTS)            # the kinds that PEFT gives a transformers Conv1D
PACKED = ("ia3", "adalora", "vera", "oft", *PROMPTS)     # and a packed weight
DROPOUTS = {"adalora": "lora_dropout", "vera": "vera_dropout"}

SETTINGS = {
    "ia3": [{}],
    "adalora": [{"init_r": 12, "target_r": 8}, {"init_r": 32, "target_r": 8}],
    "loha": [{"r": 8, "alpha": 8}, {"r": 32, "alpha": 8}],
    "lokr": [{"r": 8, "alpha": 8}, {"r": 8, "decompose_both": True, "decompose_factor": 8}, {"r": 64}],
    "vera": [{"r": 256}, {"r": 64}],
    "oft": [{"oft_block_size": 32}, {"r": 8, "oft_block_size": 0}, {"oft_block_size": 64, "block_share": True}],
    "boft": [{"boft_block_size": 8}, {"boft_block_num": 8, "boft_block_size": 0}],
    "prompt_tuning": [{"num_virtual_tokens": 20}, {"num_virtual_tokens": 100}],
    "prefix_tuning": [{"num_virtual_tokens": 20}, {"num_virtual_tokens": 64, "prefix_projection": True, "encoder_hidden_size": 512}],
    "p_tuning": [{"num_virtual_tokens": 20, "encoder_hidden_size": 128}, {"num_virtual_tokens": 64, "encoder_hidden_size": 1024}],
}
PLAIN = [{"precision": p, "checkpointing": c} for p in ("bf16_amp", "bf16", "fp32") for c in ("none", "full")]


def runs(kind, model, case):
    """Would PEFT and the model run it?"""
    family = MODELS[model]
    if case["method"] == "full" or not pairs.fits_family(case, family):
        return False
    if model == "gpt2" and (kind not in CONV1D or case["loss"] != "default"):
        return False
    if case["method"] == "qlora" and kind not in PACKED:
        return False
    if kind in PROMPTS and case["adapter"] != "fp32" or case["adapter"] == "half" and kind in ("vera", "boft", "oft"):
        return False
    # adapters that PEFT leaves in 16 bits have the base's dtype, and on packed weights none but fp32
    if case["adapter"] == "half" and (case["method"] == "qlora" or case["precision"] not in ("bf16", "fp16", "bf16_amp")):
        return False
    if kind == "boft" and model in ("qwen2", "opt") and "amp" in case["precision"]:
        return False                                     # a cast of a bias is no Parameter: TypeError
    if kind == "prefix_tuning" and case["checkpointing"] not in ("none", "core_attn"):
        return False
    if model == "gemma2" and (case["release"] != "5.12" or kind == "prefix_tuning"):    # of Gemma 2 PEFT looks for an older cache
        return False
    return case["adapter"] not in ("dora", "saved")


def lora_of(kind, settings, case, model):
    lora = {"kind": kind, **settings}
    if kind not in PROMPTS:
        lora["target_modules"] = MODELS[model][1] if case["adapter"] == "attention" or kind == "ia3" else "all-linear"
        lora["adapter_dtype"] = "fp32" if case["adapter"] != "half" else "fp16" if "fp16" in case["precision"] else "bf16"
    if case["adapter"] == "dropout" and kind in DROPOUTS:
        lora[DROPOUTS[kind]] = 0.05
    if kind == "ia3":
        lora["feedforward_modules"] = MODELS[model][1][-1:]
    return lora


def job(ident, kind, settings, case, model, dice):
    made = pairs.job_of(ident, {**case, "adapter": "fp32"}, MODELS[model], dice)
    made["config"] = copy.deepcopy(MODELS[model][0])
    made["lora"] = lora_of(kind, settings, case, model)
    return made


def drawn(kind, dice):
    wanted = {(factor, value) for factor, values in pairs.FACTORS.items() for value in values}
    names = [name for name in MODELS]
    useless = 0
    while wanted and useless < 40:
        tried = []
        for _ in range(600 if kind == "prefix_tuning" else 60):            # few of them run
            case, model = pairs.completed({}, dice), dice.choice(names)
            if case and runs(kind, model, case):
                tried.append((len(wanted & set(case.items())), model, case))
        if not tried:
            break
        count, model, case = max(tried, key=lambda one: one[0])
        useless = 0 if count else useless + 1
        if count:
            wanted -= set(case.items())
            yield model, case


def jobs():
    for kind, settings in SETTINGS.items():
        dice = random.Random(kind)
        for i, features in enumerate(PLAIN):
            model = ("llama", "qwen2", "gpt2")[i % 3]
            model = "llama" if model == "gpt2" and kind not in CONV1D else model
            case = {**{factor: values[0] for factor, values in pairs.FACTORS.items()}, "method": "lora", "attention": "sdpa",
                    "adapter": "attention" if i % 2 else "fp32", **features}
            if runs(kind, model, {**case, "adapter": "fp32"}):
                yield job(f"{kind}-plain{i}-{model}", kind, settings[0], case, model, dice)
            if kind == "ia3":                             # PEFT's own modules above, all linear layers here
                linear = job(f"{kind}-linear{i}-{model}", kind, settings[0], case, model, random.Random(i))
                linear["lora"]["target_modules"] = "all-linear"
                yield linear
        for i, (model, words) in enumerate(PREFIXED.items() if kind == "prefix_tuning" else ()):
            yield {"id": f"{kind}-of-{model}", "config": {"model_type": model, **SMALL, **words}, "method": "lora", "seq_len": 384 + 64 * (i % 2),
                   "micro_batch": 1 + i % 3, "precision": ("bf16", "bf16_amp", "amp_bf16")[i % 3], "padding": i % 4 == 3,
                   "optimizer": "adamw_torch_fused", "attention": ("sdpa", "eager")[i % 5 == 4],
                   "lora": {"kind": kind, **settings[i % 2], "adapter_dtype": "fp32"}}
        for i, (model, case) in enumerate(drawn(kind, dice)):
            yield job(f"{kind}-drawn{i:02d}-{model}", kind, settings[i % len(settings)], case, model, dice)


if __name__ == "__main__":
    for each in jobs():
        if not sys.argv[1:] or each["lora"]["kind"] in sys.argv[1:]:
            print(json.dumps(each))
