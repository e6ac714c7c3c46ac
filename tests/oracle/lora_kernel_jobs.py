#!/usr/bin/env python3
"""lora_kernel_jobs.py [--several] > jobs.jsonl     LoRA under Axolotl's own autograd functions (recorder/axolotl_kernels.py), for records-extra.jsonl (kernels-…)"""
import hashlib
import json
import sys

SIZES = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 5, "num_attention_heads": 16, "num_key_value_heads": 4,
         "vocab_size": 16000, "max_position_embeddings": 4096, "tie_word_embeddings": False, "pad_token_id": 0}
EXPERTS = {"num_hidden_layers": 3, "hidden_size": 512, "num_attention_heads": 8}
HYBRID = {"head_dim": 128, "linear_num_key_heads": 8, "linear_num_value_heads": 16, "linear_key_head_dim": 64, "linear_value_head_dim": 64,
          "linear_conv_kernel_dim": 4, "full_attention_interval": 4}
# name -> (class, what its config says beside SIZES)
MODELS = {
    "llama": ("LlamaForCausalLM", {}),
    "mistral": ("MistralForCausalLM", {"sliding_window": None, "head_dim": 64}),
    "qwen2": ("Qwen2ForCausalLM", {"num_attention_heads": 14, "num_key_value_heads": 2, "hidden_size": 896, "intermediate_size": 4864,
                                   "tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", {"head_dim": 128}),
    "gemma": ("GemmaForCausalLM", {"head_dim": 128, "num_attention_heads": 8, "num_key_value_heads": 1, "tie_word_embeddings": True}),
    "gemma2": ("Gemma2ForCausalLM", {"head_dim": 128, "num_attention_heads": 8, "query_pre_attn_scalar": 128, "sliding_window": 4096,
                                     "tie_word_embeddings": True}),
    "gemma3_text": ("Gemma3ForCausalLM", {"head_dim": 128, "num_attention_heads": 8, "query_pre_attn_scalar": 128, "sliding_window": 256,
                                          "sliding_window_pattern": 3, "tie_word_embeddings": True}),
    "mixtral": ("MixtralForCausalLM", {**EXPERTS, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 1024}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {**EXPERTS, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512, "head_dim": 64,
                                          "mlp_only_layers": [0]}),
    "smollm3": ("SmolLM3ForCausalLM", {"no_rope_layer_interval": 4}),
    "starcoder2": ("Starcoder2ForCausalLM", {"sliding_window": 4096}),
    "granite": ("GraniteForCausalLM", {}),
    "ernie4_5": ("Ernie4_5ForCausalLM", {"use_bias": False}),
    "seed_oss": ("SeedOssForCausalLM", {"head_dim": 64}),
    "cohere2": ("Cohere2ForCausalLM", {"sliding_window": 256, "tie_word_embeddings": True}),
    "gpt_oss": ("GptOssForCausalLM", {**EXPERTS, "head_dim": 64, "intermediate_size": 512, "num_local_experts": 8, "num_experts_per_tok": 2,
                                      "sliding_window": 128}),
    "qwen3_next": ("Qwen3NextForCausalLM", {**HYBRID, **EXPERTS, "num_hidden_layers": 4, "num_experts": 8, "num_experts_per_tok": 2,
                                            "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256}),
    "qwen3_5_text": ("Qwen3_5ForCausalLM", {**HYBRID, "num_hidden_layers": 4}),
    "qwen3_5_moe_text": ("Qwen3_5MoeForCausalLM", {**HYBRID, **EXPERTS, "num_hidden_layers": 4, "num_experts": 8, "num_experts_per_tok": 2,
                                                   "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256}),
}
# Gemma 4: as the dense ones, as the mixture, and as E2B, whose last layers take keys and values of layers before.
GEMMA4 = {"num_hidden_layers": 6, "hidden_size": 768, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "global_head_dim": 256,
          "num_global_key_value_heads": 1, "sliding_window": 256, "hidden_size_per_layer_input": 0, "attention_k_eq_v": True,
          "layer_types": ["sliding_attention"] * 2 + ["full_attention"] + ["sliding_attention"] * 2 + ["full_attention"], "vocab_size": 2048,
          "vocab_size_per_layer_input": 2048, "tie_word_embeddings": True}
FUSED_MODELS = {
    "gemma4_text": ("Gemma4ForCausalLM", GEMMA4),
    "gemma4_unified_text": ("Gemma4UnifiedForCausalLM", GEMMA4),
    "gemma4_text-experts": ("Gemma4ForCausalLM", {**GEMMA4, "enable_moe_block": True, "num_experts": 8, "top_k_experts": 2,
                                                  "moe_intermediate_size": 256}),
    "gemma4_text-shared": ("Gemma4ForCausalLM", {**GEMMA4, "num_kv_shared_layers": 3, "hidden_size_per_layer_input": 128, "num_global_key_value_heads": None,
                                                 "attention_k_eq_v": False, "use_double_wide_mlp": True}),
}
ALL = ["mlp", "qkv", "o", "embedding"]
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def job(model, **changes):
    name, own = MODELS.get(model) or FUSED_MODELS[model]
    own = {**own, **changes.pop("sizes", {})}
    made = {"config": {"model_type": model.split("-")[0], "architectures": [name], **SIZES, **own}, "method": "lora", "precision": "bf16_amp", "micro_batch": 2,
            "seq_len": 512, "gradient_checkpointing": "none", "use_reentrant": False, "lora_kernels": ALL, "lora": {"target_modules": LINEAR}, **changes}
    if made["method"] == "qlora":
        made.setdefault("kbit_prepare", False)
    if "linear_conv_kernel_dim" in own:
        made["kernels"] = "fla"
    digest = hashlib.sha1(json.dumps(made, sort_keys=True).encode()).hexdigest()[:6]
    return {"id": f"kernels-{model}-{made['method']}-{digest}", **made}


def jobs():
    full = {"gradient_checkpointing": "full"}
    for model in MODELS:
        yield job(model)
        yield job(model, method="qlora", **full, use_reentrant=True)
    for method in ("lora", "qlora"):
        yield job("llama", method=method, **full)
        yield job("llama", method=method, axolotl="0.17")
        yield job("llama", method=method, axolotl="0.17", **full, use_reentrant=True)
        yield job("llama", method=method, precision="bf16", seq_len=1024, micro_batch=1)
        yield job("llama", method=method, precision="bf16", lora={"target_modules": LINEAR, "adapter_dtype": "bf16"})
        yield job("llama", method=method, lora={"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], "r": 64})
        yield job("llama", method=method, lora={"target_modules": ["gate_proj", "up_proj", "down_proj"], "r": 64}, **full)
        yield job("llama", method=method, lora={"target_modules": ["q_proj", "v_proj", "gate_proj", "down_proj"]})
        yield job("llama", method=method, lora={"target_modules": LINEAR, "dropout": 0.05}, grad_accum=2)
        yield job("llama", method=method, lora={"target_modules": LINEAR, "dropout": 0.05}, **full, use_reentrant=True)
        yield job("qwen2", method=method, attention="flash_attention_2", optimizer="adamw_bnb_8bit", micro_batch=4)
        yield job("qwen3", method=method, lora_kernels=["mlp"], loss="liger_flce")
        yield job("gemma2", method=method, lora_kernels=["qkv", "o"], attention="eager", **full, use_reentrant=True)
        yield job("mistral", method=method, grad_accum=3, padding=True, **full)
        for model in ("llama", "gemma", "qwen3", "qwen2"):        # with a small vocabulary: the peak is within a layer
            yield job(model, method=method, sizes={"vocab_size": 512}, **full, use_reentrant=model != "gemma")
        yield job("llama", method=method, sizes={"vocab_size": 512})
        yield job("llama", method=method, sizes={"vocab_size": 512}, lora_kernels=["qkv", "o"], **full)
    yield job("llama", precision="fp32", micro_batch=1)
    yield job("llama", precision="fp32", micro_batch=1, lora={"target_modules": LINEAR, "dropout": 0.1}, **full)
    yield job("llama", method="qlora", double_quant=False)
    yield job("llama", method="qlora", double_quant=False, **full, use_reentrant=True)
    yield from prepared_jobs()
    yield from later_jobs()
    yield from fused_jobs()
    yield from packed_expert_jobs()
    yield from int8_expert_jobs()


def prepared_jobs():
    """Prepared for k-bit training as Axolotl does it, by its functions and by PEFT's layers."""
    for model in ("mixtral", "qwen3_moe", "llama"):
        for more in ({}, {"gradient_checkpointing": "full", "use_reentrant": True}, {"gradient_checkpointing": "full"}):
            made = job(model, method="qlora", kbit_prepare="norms_back", sizes={"vocab_size": 2048}, **more)
            yield made
            yield {**{key: value for key, value in made.items() if key != "lora_kernels"}, "id": made["id"] + "-peft"}


def later_jobs():
    """Attention that is rewritten as well, with experts, gates and linear attention beside it."""
    full = {"gradient_checkpointing": "full"}
    for model in ("cohere2", "gpt_oss", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"):
        for changes in ({"sizes": {"vocab_size": 512}}, {"sizes": {"vocab_size": 512}, **full},
                        {"method": "qlora", "sizes": {"vocab_size": 512}, "lora": {"target_modules": LINEAR, "dropout": 0.05}, "grad_accum": 2},
                        {"lora": {"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "down_proj", "up_proj"]}, **full, "seq_len": 1024},
                        {"precision": "bf16", "sizes": {"vocab_size": 512}}):
            yield job(model, **changes)


def fused_jobs():
    """Attention's norms and rotations by Axolotl's one kernel: in Gemma 4 always, in Qwen3's and its kin where `fused_attn_kernel` says so."""
    full, attention = {"gradient_checkpointing": "full"}, {"lora": {"target_modules": LINEAR[:4]}}
    for model in FUSED_MODELS:
        for changes in ({}, full, {**full, "use_reentrant": True}, {"method": "full", "lora_kernels": []},
                        {"method": "full", "lora_kernels": [], **full, "use_reentrant": True},
                        {"method": "qlora", **full, "use_reentrant": True, "seq_len": 1024, "micro_batch": 1}, {"method": "qlora", **attention, "lora_kernels": []},
                        {**attention, "grad_accum": 2, "precision": "bf16", "lora_kernels": ["qkv", "o"], "attention": "eager"}):
            yield job(model, fused_attention=True, **changes)
    for model in ("qwen3", "qwen3_moe", "qwen3_5_text", "qwen3_5_moe_text"):
        for changes in ({}, {**full, "seq_len": 1024}, {"method": "full", "lora_kernels": [], "precision": "amp_bf16"}, {"method": "full", "lora_kernels": [], "micro_batch": 1},
                        {"method": "qlora", **full, "use_reentrant": True, **attention}):
            yield job(model, fused_attention=True, **{"sizes": {"vocab_size": 512}, **changes})


def packed_expert_jobs():
    """`quantize_moe_experts`: experts in bitsandbytes' four bits, with and without adapters on them."""
    full = {"gradient_checkpointing": "full"}
    on_experts = {"lora": {"target_modules": LINEAR[:4], "target_parameters": "experts"}}
    for model in ("qwen3_moe", "qwen3_5_moe_text", "gemma4_text-experts", "mixtral"):
        own = {"fused_attention": True} if model.startswith("gemma4") else {}
        for changes in ({}, full, {**full, "use_reentrant": True}, {**full, "grad_accum": 2, "seq_len": 1024, "double_quant": False},
                        {**full, "use_reentrant": True, **on_experts}, {**on_experts, "lora_kernels": []},
                        {**full, "experts": "eager", "lora_kernels": ["qkv", "o"]}, {"experts": "batched_mm", "seq_len": 128}):
            made = job(model, method="qlora", pack_experts=True, kind="moe", **{"sizes": {"vocab_size": 512}, **own, **changes})
            yield {**made, "id": made["id"].replace("kernels-", "packed-experts-")}


def int8_expert_jobs():
    """The same in 8 bits, by Axolotl's own parametrization and without its functions. Left out is what torch's cache keeps unpacked."""
    for one in packed_expert_jobs():
        kept = one.get("gradient_checkpointing") == "full" and not one.get("use_reentrant") and not one["config"]["model_type"].startswith("qwen3_5")
        if one["config"]["model_type"].startswith("gemma4") or kept:
            continue
        yield {**{key: value for key, value in one.items() if key != "double_quant"}, "bits": 8, "lora_kernels": [], "id": one["id"].replace("-qlora-", "-int8-")}


def of_several():
    """Packed experts that every GPU has whole. DeepSpeed is not imported beside the functions' stand-in for Triton."""
    ways = {"zero2": {"strategy": "zero2", "data": 4}, "zero1": {"strategy": "zero1", "data": 2}, "ddp": {"strategy": "ddp", "data": 2}}
    every = [one for one in packed_expert_jobs() if one.get("use_reentrant") or one.get("gradient_checkpointing") != "full"]
    for i, one in enumerate(every):
        way = "ddp" if i % 5 == 2 else "zero1" if i % 3 == 1 else "zero2"
        if way != "ddp" and one["config"]["model_type"].startswith("gemma4"):
            continue
        kernels = {} if way == "ddp" else {"lora_kernels": []}
        yield {**one, "id": f"{one['id']}-{way}", "precision": "bf16", "kbit_prepare": False, "parallelism": ways[way], **kernels,
               "lora": {**one.get("lora", {}), "adapter_dtype": "bf16"}}


if __name__ == "__main__":
    for one in of_several() if "--several" in sys.argv else jobs():
        print(json.dumps(one))
