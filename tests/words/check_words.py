#!/usr/bin/env python3
"""check_words.py PATH/tidemark_handle CATALOG: every option as people write it is answered, or refused with a reason.

options-in-use.csv lists what stands in published training scripts: 472 of ms-swift, 252 of axolotl, 32 of LLaMA-Factory, the notebooks of unsloth,
and the values of Hugging Face's `optim` (counted in August 2026; the column "tidemark today" is of that day).  WRITTEN turns each row into
requests.  An answer must not say that a key was unknown; a refusal must be about what is not modelled, not about how it was spelt.
"""
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LORA = {"method": "lora"}
QLORA = {"method": "qlora"}
GPTQ = [{"quantization": {"quant_type": word}} for word in ("gptq", "awq", "hqq")]
OTHER_PACKING = [{"quantization": {"quant_type": word}} for word in ("quanto", "torchao", "fp8", "mxfp4", "int4")] + [
    {"quantization": {"quant_type": "aqlm"}, "model": "meta-llama/Llama-3.2-1B"},                  # fails beside biases
    {"quantization": {"quant_type": "eetq"}, "framework": {"version": "4.57"}, "precision": "pure_fp16"}]


def adapter(**keys):
    return {**LORA, "adapter": keys}


def each(key, words):
    return [{key: word} for word in words]


# (group, how the row begins) -> what people then write
WRITTEN = {
    ("trainer", "GRPO"): each("task", ["grpo", "rloo"]) + [{"num_generations": 8}],
    ("trainer", "DPO"): each("task", ["dpo", "orpo", "simpo", "cpo"]) + [{"task": "kto", "micro_batch_size": 2}],
    ("trainer", "reward model"): [{"task": "reward"}, {"task": "classification"}],
    ("trainer", "PPO"): each("task", ["ppo", "gkd"]) + [{"task": "gkd", "teacher_model": "Qwen/Qwen2.5-3B"}],
    ("trainer", "token classification"): each("task", ["token_classification", "question_answering", "multiple_choice"]),
    ("trainer", "embedding"): each("task", ["embedding", "reranker"]),
    ("adapter", "lora_target: all"): [{**LORA, "lora_target": "all"}],
    ("adapter", "target_modules as a regex"): [adapter(target_modules=r".*layers\.\d+\.(mlp|self_attn)\.(up|q)_proj")],
    ("adapter", "lora_target_linear"): [{**LORA, "lora_target_linear": True}],
    ("adapter", "target_modules with"): [adapter(target_modules=["q_proj", "embed_tokens", "lm_head"])],
    ("adapter", "modules_to_save"): [adapter(modules_to_save=["lm_head"])],
    ("adapter", "task_type"): [{**adapter(task_type="SEQ_CLS"), "architecture": "Qwen2ForSequenceClassification"}],
    ("adapter", "rank_pattern"): [adapter(rank_pattern={"q_proj": 4}, alpha_pattern={"q_proj": 8})],
    ("adapter", "layers_to_transform"): [adapter(target_modules=["q_proj"], layers_to_transform=[0, 1]),
                                         adapter(target_modules=["q_proj"], layers_to_transform=[0], layers_pattern="layers")],
    ("adapter", "exclude_modules"): [adapter(exclude_modules=["q_proj"])],
    ("adapter", "bias"): [adapter(bias="all"), adapter(bias="lora_only")],
    ("adapter", "target_parameters"): [adapter(target_parameters=["mlp.experts.gate_up_proj"])],
    ("adapter", "use_rslora"): [adapter(use_rslora=True)] + [adapter(init_lora_weights=w) for w in ("pissa", "olora", "eva", "loftq")],
    ("adapter", "trainable_token_indices"): [adapter(trainable_token_indices=[1, 2])],
    ("adapter", "OFT"): each("method", ["oft", "boft", "ia3", "adalora", "loha", "lokr", "vera", "prompt_tuning", "prefix_tuning"]),
    ("freeze", "freeze layers by number"): [{"method": "freeze", "freeze": ["layers.0"]}, {"freeze_trainable_layers": 2}],
    ("freeze", "freeze_vit"): each("freeze_vit", [True]) + each("freeze_aligner", [True]) + each("freeze_vision_tower", [True]),
    ("framework", "unsloth"): [{"framework": {"name": "unsloth"}}, {"gradient_checkpointing": "unsloth"}],
    ("framework", "names trl"): [{"framework": {"name": w}} for w in ("trl", "axolotl", "llama-factory", "llama_factory", "peft", "ms-swift")],
    ("framework", "megatron"): [{"framework": {"name": "megatron"}}, {"recompute_granularity": "full"}, {"tensor_model_parallel_size": 2}],
    ("parallel", "DeepSpeed"): each("deepspeed", ["zero2", "zero3", "zero3_offload"]),
    ("parallel", "FSDP"): [{"fsdp": "full_shard"}, {"fsdp_version": 2}, {"dp_shard_size": 2}],
    ("parallel", "tensor"): each("tensor_parallel_size", [2]) + each("pipeline_parallel_size", [2]) + each("context_parallel_size", [2]),
    ("parallel", "plain DDP"): [{"parallelism": {"data": 2}}],
    ("attention", "flash_attention_2"): each("attention", ["flash_attention_2"]) + each("attn_implementation", ["flash_attention_2"]),
    ("attention", "flash_attn"): [{"attention": "flash_attn"}, {"flash_attn": "fa2"}, {"attn_impl": "flash_attn"}, {"flash_attention": True}],
    ("attention", "flex_attention"): each("attention", ["flex_attention"]) + each("flex_attention", [True]),
    ("attention", "kernels-community"): each("attention", ["kernels-community/vllm-flash-attn3", "flash_attention_4"]),
    ("batch", "sample_packing"): each("sample_packing", [True]) + each("packing", [True]),
    ("batch", "padding_free"): each("padding_free", [True]),
    ("batch", "group_by_length"): each("group_by_length", [True]),
    ("batch", "max_length"): [{key: 1024} for key in ("max_length", "cutoff_len", "sequence_len", "max_seq_length")],
    ("eval", "evaluation during"): [{key: 8} for key in ("eval_steps", "evals_per_epoch", "per_device_eval_batch_size", "eval_batch_size")],
    ("eval", "bf16_full_eval"): [{"bf16_full_eval": True}, {"eval_accumulation_steps": 4}, {"predict_with_generate": True}],
    ("precision", "bf16: true"): each("bf16", [True]) + each("fp16", [True]) + each("precision", ["bf16", "fp16"]),
    ("precision", "bf16 loading"): [{"torch_dtype": "bfloat16", "bf16": True}, {"dtype": "bfloat16"}],
    ("precision", "fp8"): each("fp8", [True]) + each("precision", ["fp8"]),
    ("precision", "tf32"): each("tf32", [True]),
    ("quant", "load_in_4bit"): [{**QLORA, "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
                                 "bnb_4bit_compute_dtype": "bfloat16"}],
    ("quant", "load_in_8bit"): [{**QLORA, "load_in_8bit": True}],
    ("quant", "GPTQ"): [{**QLORA, **job} for job in GPTQ],
    ("quant", "AQLM"): [{**QLORA, **job} for job in OTHER_PACKING] + [{**QLORA, "quantize_moe_experts": True}],
    ("quant", "quantization_config"): [{"config": "with quantization_config"}],
    ("checkpointing", "gradient_checkpointing: true"): each("gradient_checkpointing", [True, "true"]),
    ("checkpointing", "gradient_checkpointing_kwargs"): [{"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}}],
    ("checkpointing", "activation_offloading"): each("activation_offloading", [True]) + each("gradient_checkpointing", ["offload"]),
    ("checkpointing", "tiled_mlp"): each("tiled_mlp", [True]),
    ("kernels", "liger"): [{"use_liger_kernel": True}] + [{key: True} for key in (
        "liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_layer_norm", "liger_fused_linear_cross_entropy", "liger_cross_entropy")],
    ("kernels", "cut_cross_entropy"): each("cut_cross_entropy", [True]) + each("loss", ["cut_cross_entropy"]),
    ("kernels", "axolotl lora_mlp"): [{**LORA, key: True} for key in ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")],
    ("kernels", "torch_compile"): each("torch_compile", [True]),
    ("loop", "neftune"): each("neftune_noise_alpha", [5]),
    ("loop", "val split"): [{"val_set_size": 0.05}, {"val_size": 0.1}, {"save_steps": 100}],
    ("optim", "adamw_torch(_fused)"): each("optim", ["adamw_torch_fused", "adamw_bnb_8bit"]),
    ("optim", "HF optim words"): each("optim", ["adamw_torch_xla", "galore_adamw_8bit_layerwise"]),
    ("optim", "axolotl/LF words"): each("optim", ["ao_adamw_fp8", "dion"]),
    ("optim", "optim_target_modules"): [{"optim": "galore_adamw", "optim_target_modules": "all-linear"}, {"optim_args": "rank=64"}],
    ("optim", "plain words"): each("optimizer", ["adamw", "adam"]),
    ("moe", "experts"): each("experts_implementation", ["grouped_mm"]) + each("use_scattermoe", [True]) + each("moe_grouped_gemm", [True]),
    ("offload", "optimizer"): each("offload_optimizer", [True]) + each("offload_param", [True]),
}
UNKNOWN = ("UNKNOWN_KEY",)
MISSPELT = ("INVALID_VALUE",)
REFUSALS = ("UNSUPPORTED_OPTION", "UNSUPPORTED_VALUE", "UNSUPPORTED_ARCHITECTURE", "UNMATCHED_PATTERN")


def requests_of(group, words):
    if group == "optim value":
        return [{"optim": words}]
    for (in_group, start), requests in WRITTEN.items():
        if in_group == group and words.startswith(start):
            return requests
    return None


def base(patch):
    if patch.get("config"):
        small = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 2,
                 "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 4096, "max_position_embeddings": 4096}
        return {"config": {**small, "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "method": "qlora"}
    return {"model": "Qwen/Qwen2.5-0.5B", **patch}


def fault(answer):
    issues = answer["issues"]
    unknown = [i for i in issues if i["code"] in UNKNOWN]
    if unknown:
        return unknown[0]["message"]
    errors = [i for i in issues if i["severity"] == "error"]
    if not errors:
        return None if "estimate" in answer else "no answer, no error"
    return None if errors[0]["code"] in REFUSALS else f"{errors[0]['code']}: {errors[0]['message'][:150]}"


def main():
    engine, catalog = sys.argv[1:3]
    rows = list(csv.DictReader(open(os.path.join(HERE, "options-in-use.csv"), encoding="utf-8")))
    cases, faults = [], []
    for row in rows:
        words = row["option as people write it"]
        patches = requests_of(row["group"], words)
        if patches is None:
            faults.append(f"{row['group']}: {words}: no request in WRITTEN")
            continue
        cases += [(row["group"], words, patch) for patch in patches]
    lines = "".join(json.dumps(base(patch)) + "\n" for _, _, patch in cases)
    run = subprocess.run([engine, catalog], input=lines, capture_output=True, text=True, check=True)
    for (group, words, patch), line in zip(cases, run.stdout.splitlines()):
        what = fault(json.loads(line))
        if what:
            faults.append(f"{group}: {words[:50]}: {json.dumps(patch)[:90]}: {what}")
    print("\n".join(faults))
    print(f"{len(rows)} rows, {len(cases)} requests, {len(faults)} at fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
