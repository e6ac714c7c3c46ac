#!/usr/bin/env python3
"""extra_jobs.py MODELS.json > extra_jobs.jsonl: the jobs behind records-extra.jsonl.

Families times options, dealt out so that every family meets a plain step, an fp32 or eager one, checkpointing and an adapter,
and every option meets several families.  Models are cut to a few layers (cheap, and the peak then also falls into the
optimizer or a layer); every third job also gets a small vocabulary, so that the loss does not hide the layers.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorder"))
LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj"]
OUT = ["q_proj", "k_proj", "v_proj", "out_proj"]

# name: (model id in MODELS.json or a config, layers, attention-only LoRA targets, attention implementations beside eager)
BOTH = ("sdpa", "flash_attention_2")
FAMILIES = {
    "mistral-nemo": ("mistralai/Mistral-Nemo-Base-2407", 4, LLAMA, BOTH),
    "smollm3-3b": ("HuggingFaceTB/SmolLM3-3B", 8, LLAMA, BOTH),
    "gemma-2-2b": ("google/gemma-2-2b", 6, LLAMA, BOTH),
    "gemma-2b": ("google/gemma-2b", 6, LLAMA, BOTH),
    "opt-125m": ("facebook/opt-125m", 12, OUT, BOTH),
    "opt-350m": ("facebook/opt-350m", 6, OUT, BOTH),
    "opt-1.3b": ("facebook/opt-1.3b", 6, OUT, BOTH),
    "bloom-560m": ("bigscience/bloom-560m", 6, ["query_key_value", "dense"], ("sdpa",)),
    "falcon-7b": ("tiiuae/falcon-7b", 4, ["query_key_value", "dense"], ("sdpa",)),
    "falcon-40b": ("tiiuae/falcon-40b", 2, ["query_key_value", "dense"], ("sdpa",)),
    "falcon-rw-1b": ("tiiuae/falcon-rw-1b", 6, ["query_key_value", "dense"], ("sdpa",)),
    "mpt-7b": ("mosaicml/mpt-7b", 4, ["Wqkv", "out_proj"], ("sdpa",)),
    "stablelm-3b": ("stabilityai/stablelm-3b-4e1t", 6, LLAMA, BOTH),
    "stablelm-2-1.6b": ("stabilityai/stablelm-2-1_6b", 6, LLAMA, BOTH),
    "olmo-1b": ("allenai/OLMo-1B-hf", 6, LLAMA, BOTH),
    "olmo-2-1b": ("allenai/OLMo-2-0425-1B", 6, LLAMA, BOTH),
    "olmo-3-7b": ("allenai/Olmo-3-1025-7B", 4, LLAMA, BOTH),
    "starcoder2-3b": ("bigcode/starcoder2-3b", 6, LLAMA, BOTH),
    "starcoder": ("bigcode/starcoder", 3, ["c_attn"], BOTH),
    "santacoder": ({"model_type": "gpt_bigcode", "architectures": ["GPTBigCodeForCausalLM"], "n_embd": 2048, "n_layer": 6, "n_head": 16,
                    "n_inner": 8192, "n_positions": 2048, "vocab_size": 49280, "multi_query": True, "tie_word_embeddings": True,
                    "activation_function": "gelu_pytorch_tanh"}, 6, ["c_attn", "attn.c_proj"], BOTH),
    "gpt-neo-125m": ("EleutherAI/gpt-neo-125m", 6, OUT, ("sdpa",)),
    "gpt-j-6b": ("EleutherAI/gpt-j-6b", 4, OUT, ("sdpa",)),
    "phi-1.5": ("microsoft/phi-1_5", 6, ["q_proj", "k_proj", "v_proj", "dense"], BOTH),
    "phi-3.5-mini": ("microsoft/Phi-3.5-mini-instruct", 4, ["qkv_proj", "o_proj"], BOTH),
    "phi-4-mini": ("microsoft/Phi-4-mini-instruct", 4, ["qkv_proj", "o_proj"], BOTH),
    "codegen-350m": ({"model_type": "codegen", "architectures": ["CodeGenForCausalLM"], "n_embd": 1024, "n_layer": 8, "n_head": 16, "rotary_dim": 32,
                      "n_positions": 2048, "vocab_size": 51200, "tie_word_embeddings": False, "activation_function": "gelu_new"},
                     8, ["qkv_proj", "out_proj"], ("sdpa",)),
    "granite-2b": ("ibm-granite/granite-3.1-2b-base", 6, LLAMA, BOTH),
    "aya-23-8b": ("CohereForAI/aya-23-8B", 3, LLAMA, BOTH),
    "command-r7b": ({"model_type": "cohere2", "architectures": ["Cohere2ForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
                     "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 256000, "sliding_window": 4096,
                     "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "max_position_embeddings": 132096,
                     "tie_word_embeddings": True, "hidden_act": "silu", "attention_bias": False}, 4, LLAMA, BOTH),
    "qwen3-0.6b": ("Qwen/Qwen3-0.6B", 8, LLAMA, BOTH),
    "glm-4-9b-0414": ("zai-org/GLM-4-9B-0414", 3, LLAMA, BOTH),
    "glm-4-9b-hf": ({"model_type": "glm", "architectures": ["GlmForCausalLM"], "hidden_size": 4096, "intermediate_size": 13696,
                     "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552,
                     "attention_bias": True, "tie_word_embeddings": False, "hidden_act": "silu", "partial_rotary_factor": 0.5,
                     "max_position_embeddings": 131072}, 3, LLAMA, BOTH),
    "nemotron-4b": ({"model_type": "nemotron", "architectures": ["NemotronForCausalLM"], "hidden_size": 3072, "intermediate_size": 9216,
                     "num_hidden_layers": 4, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000,
                     "hidden_act": "relu2", "partial_rotary_factor": 0.5, "max_position_embeddings": 4096, "tie_word_embeddings": False},
                    4, LLAMA, ("sdpa",)),
    "seed-oss-36b": ("ByteDance-Seed/Seed-OSS-36B-Base", 2, LLAMA, BOTH),
    "helium-2b": ({"model_type": "helium", "architectures": ["HeliumForCausalLM"], "hidden_size": 2560, "intermediate_size": 7040,
                   "num_hidden_layers": 6, "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128, "vocab_size": 48000,
                   "hidden_act": "silu", "max_position_embeddings": 4096, "tie_word_embeddings": False}, 6, LLAMA, BOTH),
    "ministral-3-3b": ({"model_type": "ministral3", "architectures": ["Ministral3ForCausalLM"], "hidden_size": 3072, "intermediate_size": 9216,
                        "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
                        "hidden_act": "silu", "max_position_embeddings": 262144, "tie_word_embeddings": True}, 4, LLAMA, BOTH),
    "exaone-4-1.2b": ("LGAI-EXAONE/EXAONE-4.0-1.2B", 6, LLAMA, BOTH),
    "apertus-8b": ("swiss-ai/Apertus-8B-2509", 3, LLAMA, BOTH),
    "afm-4.5b": ({"model_type": "arcee", "architectures": ["ArceeForCausalLM"], "hidden_size": 2560, "intermediate_size": 18432,
                  "num_hidden_layers": 4, "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 128000,
                  "hidden_act": "relu2", "max_position_embeddings": 65536, "tie_word_embeddings": False}, 4, LLAMA, BOTH),
    "ernie-4.5-0.3b": ({"model_type": "ernie4_5", "architectures": ["Ernie4_5ForCausalLM"], "hidden_size": 1024, "intermediate_size": 3072,
                        "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 103424,
                        "hidden_act": "silu", "max_position_embeddings": 131072, "tie_word_embeddings": True, "use_bias": False},
                       6, LLAMA, BOTH),
    "hunyuan-1.8b": ({"model_type": "hunyuan_v1_dense", "architectures": ["HunYuanDenseV1ForCausalLM"], "hidden_size": 2048,
                      "intermediate_size": 6144, "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
                      "vocab_size": 120832, "hidden_act": "silu", "max_position_embeddings": 32768, "tie_word_embeddings": True}, 6, LLAMA, BOTH),
    "persimmon-8b": ({"model_type": "persimmon", "architectures": ["PersimmonForCausalLM"], "hidden_size": 4096, "intermediate_size": 16384,
                      "num_hidden_layers": 3, "num_attention_heads": 64, "vocab_size": 262144, "hidden_act": "relu2", "qk_layernorm": True,
                      "partial_rotary_factor": 0.5, "max_position_embeddings": 16384, "tie_word_embeddings": False},
                     3, ["query_key_value", "dense"], BOTH),
    "pythia-410m": ("EleutherAI/pythia-410m", 8, ["query_key_value", "dense"], BOTH),
    "gpt2": ("openai-community/gpt2", 6, ["c_attn"], BOTH),
    "tinyllama": ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 6, LLAMA, BOTH),
    "qwen2.5-0.5b": ("Qwen/Qwen2.5-0.5B", 6, LLAMA, BOTH),
}
# The families people train most get every variant, the others four or five of them.
ALL = ("mistral-nemo", "gemma-2-2b", "tinyllama", "qwen3-0.6b", "falcon-7b", "opt-1.3b", "phi-4-mini", "stablelm-2-1.6b", "olmo-2-1b", "starcoder2-3b")


def lora(r=16, dropout=0.0, dtype="fp32", target="all-linear"):
    return {"r": r, "alpha": 16, "target_modules": target, "dropout": dropout, "adapter_dtype": dtype}


def variants(attn_targets, attns):
    """(name, job) for one family; `attns` = implementations beside eager."""
    sdpa = "sdpa" if "sdpa" in attns else "eager"
    fa2 = "flash_attention_2" if "flash_attention_2" in attns else sdpa
    ck = {"gradient_checkpointing": "full"}
    return {
        "plain": dict(precision="bf16", attention=sdpa, micro_batch=2, seq_len=768),
        "eager32": dict(precision="fp32", attention="eager", micro_batch=2, seq_len=320, optimizer="sgd_momentum"),
        "amp-pad": dict(precision="amp_bf16", attention=sdpa, micro_batch=3, seq_len=448, padding=True, optimizer="adamw_torch"),
        "ck-amp": dict(precision="bf16_amp", attention=fa2, micro_batch=2, seq_len=1536, optimizer="adamw_8bit", **ck),
        "lora": dict(method="lora", precision="bf16_amp", attention=sdpa, micro_batch=2, seq_len=640, lora=lora(16, 0.05)),
        "lora-attn": dict(method="lora", precision="bf16", attention=sdpa, micro_batch=2, seq_len=640, padding=True, grad_accum=2,
                          lora=lora(8, 0.0, "bf16", attn_targets)),
        "qlora": dict(method="qlora", precision="bf16_amp", attention=sdpa, micro_batch=2, seq_len=896, kbit_prepare=True, use_reentrant=True,
                      optimizer="paged_adamw_8bit", lora=lora(64), **ck),
        "qlora-norms": dict(method="qlora", precision="bf16_amp", attention=fa2, micro_batch=1, seq_len=1280, kbit_prepare="norms",
                            optimizer="adamw_torch", lora=lora(16, 0.05), loss="hf_4_46"),
        "qlora-raw": dict(method="qlora", precision="bf16", attention="eager", micro_batch=1, seq_len=512, kbit_prepare=False, double_quant=False,
                          lora=lora(16, 0.0, "bf16", attn_targets), **ck),
        "liger": dict(precision="bf16", attention=fa2, micro_batch=2, seq_len=1024, loss="liger_flce", optimizer="adafactor"),
        "old-loss": dict(precision="bf16", attention=sdpa, micro_batch=2, seq_len=512, loss="hf_4_44", optimizer="adamw_torch", **ck),
        "accum": dict(precision="amp_bf16", attention="eager", micro_batch=2, seq_len=384, grad_accum=2, use_reentrant=True, **ck),
        "fp32-pad": dict(precision="fp32", attention=sdpa, micro_batch=2, seq_len=512, padding=True, optimizer="adafactor", **ck),
        "eager-bf16": dict(precision="bf16", attention="eager", micro_batch=2, seq_len=512, padding=True, optimizer="sgd"),
        "amp16-h100": dict(precision="amp_fp16", attention=sdpa, micro_batch=4, seq_len=256, optimizer="lion_32bit", arch=90),
        "lora-fp32-noamp": dict(method="lora", precision="bf16", attention=sdpa, micro_batch=2, seq_len=512, lora=lora(32, 0.1), **ck),
    }


# More for families with attention code of their own.
MORE = {"falcon-40b": ("amp-pad", "lora-attn", "qlora-raw", "accum"), "gpt-neo-125m": ("accum", "fp32-pad", "qlora", "eager32"),
        "bloom-560m": ("eager32", "accum", "qlora", "lora"), "mpt-7b": ("amp-pad", "fp32-pad", "lora"), "falcon-rw-1b": ("eager-bf16", "accum", "lora"),
        "gpt-j-6b": ("amp-pad", "lora"), "santacoder": ("eager32", "accum", "fp32-pad"), "nemotron-4b": ("eager32", "amp-pad", "qlora")}
BASE = ("plain", "ck-amp")                                   # dealt to every family, plus:
PAIRS = (("eager32", "lora"), ("amp-pad", "qlora"), ("eager-bf16", "lora-attn"), ("fp32-pad", "qlora-norms"), ("accum", "lora"),
         ("amp16-h100", "qlora-raw"), ("old-loss", "lora-fp32-noamp"), ("amp-pad", "liger"), ("eager32", "lora-attn"))


def main():
    import trace_config
    table = {row["id"]: row["config"] for row in json.load(open(sys.argv[1]))}
    count = 0
    for i, (name, (source, layers, targets, attns)) in enumerate(FAMILIES.items()):
        config = trace_config.shrink(table[source] if isinstance(source, str) else source, layers)
        if config["model_type"] == "gpt_neo":
            config["attention_types"] = [[["global", "local"], layers // 2]]
        jobs = variants(targets, attns)
        names = list(jobs) if name in ALL else list(dict.fromkeys([*BASE, *PAIRS[i % len(PAIRS)]]))
        more = [n for n in MORE.get(name, ()) if n not in names]
        for n in [*names, *more]:
            cfg = dict(config)
            count += n in names
            if n != "plain" and (n in more or count % 3 == 0):
                cfg["vocab_size"] = 4096
                for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
                    cfg[key] = 1
            job = {"id": f"{name}-L{layers}-{n}", "model": source if isinstance(source, str) else f"inline/{name}", "config": cfg, **jobs[n]}
            print(json.dumps(job))
    special(table, trace_config.shrink)


def special(table, shrink):
    """What only one family can show."""
    def put(ident, model, config, **job):
        print(json.dumps({"id": ident, "model": model, "config": config, **job}))
    gemma2 = {**shrink(table["google/gemma-2-2b"], 4), "sliding_window": 256}
    for attn in ("sdpa", "eager", "flash_attention_2"):
        put(f"gemma-2-2b-window256-{attn[:5]}", "google/gemma-2-2b", gemma2, precision="bf16", attention=attn, micro_batch=1, seq_len=1024)
    olmo3 = {**shrink(table["allenai/Olmo-3-1025-7B"], 4), "sliding_window": 256}
    put("olmo-3-7b-window256", "allenai/Olmo-3-1025-7B", olmo3, precision="bf16", micro_batch=1, seq_len=1024)
    mistral = {**shrink(table["mistralai/Mistral-7B-v0.1"], 4), "sliding_window": 512}
    for pad in (False, True):
        put(f"mistral-7b-window512-pad{int(pad)}", "mistralai/Mistral-7B-v0.1", mistral, precision="bf16", micro_batch=1, seq_len=1024, padding=pad)
    phi3 = {**shrink(table["microsoft/Phi-3-mini-4k-instruct"], 4), "sliding_window": 2047}
    put("phi-3-mini-window2047-S4096", "microsoft/Phi-3-mini-4k-instruct", phi3, precision="bf16", micro_batch=1, seq_len=4096,
        gradient_checkpointing="full")
    opt = shrink(table["facebook/opt-1.3b"], 6)
    put("opt-1.3b-dropout0", "facebook/opt-1.3b", {**opt, "dropout": 0.0}, precision="amp_bf16", micro_batch=2, seq_len=512)
    tiny = shrink(table["TinyLlama/TinyLlama-1.1B-Chat-v1.0"], 4)
    put("tinyllama-bias", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", {**tiny, "attention_bias": True, "mlp_bias": True}, precision="amp_bf16", micro_batch=2,
        seq_len=512)
    put("tinyllama-mha", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", {**tiny, "num_key_value_heads": 32}, precision="fp32", micro_batch=2, seq_len=512)
    put("tinyllama-mha-pad", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", {**tiny, "num_key_value_heads": 32}, precision="bf16", micro_batch=2, seq_len=500,
        padding=True)
    put("tinyllama-t4", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", tiny, precision="amp_fp16", micro_batch=2, seq_len=512, arch=75)
    put("tinyllama-tied", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", {**tiny, "tie_word_embeddings": True}, precision="amp_bf16", micro_batch=1, seq_len=256,
        grad_accum=2)
    put("tinyllama-noclip", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", tiny, precision="fp32", micro_batch=1, seq_len=128, max_grad_norm=0.0,
        optimizer="adamw_torch")
    put("tinyllama-lora-head", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", tiny, method="lora", precision="amp_bf16", micro_batch=2, seq_len=512,
        lora=lora(16, 0.05, "fp32", ["down_proj"]))
    put("tinyllama-lora-fp16", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", tiny, method="lora", precision="fp16", micro_batch=2, seq_len=512,
        lora=lora(16, 0.0, "fp32", LLAMA), optimizer="adamw_torch", gradient_checkpointing="full", use_reentrant=True)


if __name__ == "__main__":
    main()
