#!/usr/bin/env python3
"""megatron_jobs.py MODELS.json > JOBS.jsonl: what par_megatron.py records, models cut to a few layers (make_records.py makes requests of them)."""
import json
import sys

rows = json.load(open(sys.argv[1]))
MODELS = {k: r for r in rows for k in [*r.get("same_arch_ids", []), *r.get("aliases", []), r["id"]]}
MIXTRAL, QWEN3MOE, QWEN2MOE, MOONLIGHT = "mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen1.5-MoE-A2.7B", "moonshotai/Moonlight-16B-A3B"
GLM = "zai-org/GLM-4.5-Air"
LLAMA, LLAMA8, QWEN2, QWEN3, GPT2, QWEN05 = "meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-1.5B", "Qwen/Qwen3-0.6B", "openai-community/gpt2-medium", "Qwen/Qwen2.5-0.5B"
FULL, CORE = "full", {"selective": ["core_attn"]}


def job(name, model, par, layers=4, seq=1024, batch=1, checkpointing="none", precision="megatron_bf16", **config):
    cut = {**MODELS[model]["config"], **config}
    cut["n_layer" if "n_layer" in cut else "num_hidden_layers"] = layers
    return {"id": "megatron-" + name, "config": cut, "precision": precision, "micro_batch": batch, "seq_len": seq, "gradient_checkpointing": checkpointing,
            "parallelism": {"strategy": "megatron", **par}}


LINEAR = ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"]


def lora(name, model, par, targets=LINEAR, r=16, dropout=0.0, **more):
    """Megatron-Bridge's adapters (megatron_adapters.py)."""
    return {**job("lora-" + name, model, par, **more), "method": "lora",
            "lora": {"r": r, "alpha": 2 * r, "dropout": dropout, "target_modules": targets}}


def saved(name, *args, names=("word_embeddings", "output_layer"), **more):
    """The same beside a trained copy of the embedding and the head (megatron_adapters.py: save)."""
    made = lora(name, *args, **more)
    return {**made, "id": made["id"].replace("lora", "saved", 1), "lora": {**made["lora"], "modules_to_save": list(names)}}


FEW = dict(n_routed_experts=8, n_group=1, topk_group=1)
NARROW = dict(hidden_size=2048, intermediate_size=4096, num_attention_heads=16, num_key_value_heads=4, n_routed_experts=8)
SMALL = dict(hidden_size=2048, intermediate_size=4096, num_attention_heads=16)
JOBS = [
    job("llama1-dp2", LLAMA, {"data": 2}, batch=2, seq=2048),
    job("llama1-dp4-zero1", LLAMA, {"data": 4, "zero_stage": 1}),
    job("llama1-dp2-accum", LLAMA, {"data": 2, "num_micro_batches": 3}),
    job("llama1-dp2-fp16", LLAMA, {"data": 2}, precision="megatron_fp16"),
    job("llama1-dp4-zero1-fp16", LLAMA, {"data": 4, "zero_stage": 1}, precision="megatron_fp16"),
    job("llama1-dp2-unfused", LLAMA, {"data": 2, "fuse_gradients": False}),
    job("llama1-dp2-native", LLAMA, {"data": 2, "loss": "native"}, batch=2),
    job("llama1-dp2-full", LLAMA, {"data": 2}, checkpointing=FULL, batch=4),
    job("llama1-dp2-core", LLAMA, {"data": 2}, checkpointing=CORE, batch=4),
    job("llama8-tp2", LLAMA8, {"tensor": 2}),
    job("llama8-tp4-zero1", LLAMA8, {"tensor": 4, "data": 2, "zero_stage": 1}, batch=2),
    job("llama8-tp4-zero1-full", LLAMA8, {"tensor": 4, "data": 2, "zero_stage": 1}, batch=4, seq=2048, checkpointing=FULL),
    job("llama8-tp4-zero1-core", LLAMA8, {"tensor": 4, "data": 2, "zero_stage": 1}, batch=2, seq=2048, checkpointing=CORE),
    job("llama8-tp2-fp16-native", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1, "loss": "native"}, precision="megatron_fp16"),
    *(job(f"llama8-pp4-rank{r}", LLAMA8, {"pipeline": 4, "num_micro_batches": 8, "rank": r}, layers=8) for r in (0, 1, 3)),
    *(job(f"llama8-tp2-pp2-zero1-rank{r}", LLAMA8, {"tensor": 2, "pipeline": 2, "data": 2, "zero_stage": 1, "num_micro_batches": 4, "rank": r})
      for r in (0, 1)),
    *(job(f"llama8-pp2-interleaved-rank{r}", LLAMA8, {"pipeline": 2, "virtual_pipeline": 2, "num_micro_batches": 4, "rank": r}, layers=8) for r in (0, 1)),
    job("llama1-pp2-tied-rank0", LLAMA, {"pipeline": 2, "num_micro_batches": 4, "rank": 0}),
    job("llama1-pp2-tied-rank1", LLAMA, {"pipeline": 2, "num_micro_batches": 4, "rank": 1}),
    job("llama8-pp2-full-rank0", LLAMA8, {"pipeline": 2, "num_micro_batches": 8, "rank": 0}, layers=8, batch=2, seq=2048, checkpointing=FULL),
    job("qwen2-dp2-zero1", QWEN2, {"data": 2, "zero_stage": 1}),
    job("qwen2-tp2", QWEN2, {"tensor": 2}, batch=2),
    job("qwen3-dp2", QWEN3, {"data": 2}, batch=2),
    job("qwen3-tp2-zero1", QWEN3, {"tensor": 2, "data": 2, "zero_stage": 1}, batch=2),
    job("gpt2-dp2", GPT2, {"data": 2}, batch=4),
    job("gpt2-dp2-unfused", GPT2, {"data": 2, "fuse_gradients": False}, batch=4),
    job("gpt2-dp4-zero1-fp16", GPT2, {"data": 4, "zero_stage": 1}, batch=4, precision="megatron_fp16"),
    job("gpt2-tp2", GPT2, {"tensor": 2}, batch=4),
    job("gpt2-tp2-sp", GPT2, {"tensor": 2, "sequence_parallel": True}, batch=4),
    job("gpt2-tp4-sp-zero1", GPT2, {"tensor": 4, "sequence_parallel": True, "data": 2, "zero_stage": 1}, batch=8),
    job("gpt2-tp4-sp-core", GPT2, {"tensor": 4, "sequence_parallel": True, "data": 2, "zero_stage": 1}, batch=8, checkpointing=CORE),
    job("gpt2-tp4-sp-full", GPT2, {"tensor": 4, "sequence_parallel": True, "data": 2, "zero_stage": 1}, batch=8, checkpointing=FULL),
    job("gpt2-nodrop-tp2-sp-native", GPT2, {"tensor": 2, "sequence_parallel": True, "loss": "native"}, batch=4, attn_pdrop=0.0, resid_pdrop=0.0),
    *(job(f"gpt2-tp2-sp-pp2-rank{r}", GPT2, {"tensor": 2, "sequence_parallel": True, "pipeline": 2, "num_micro_batches": 4, "rank": r}, batch=4)
      for r in (0, 1)),
    job("llama1-dp2-8k-core", LLAMA, {"data": 2}, seq=8192, checkpointing=CORE),
    job("qwen05-dp2-full", QWEN05, {"data": 2}, seq=2048, checkpointing=FULL),
    job("mixtral-dp1", MIXTRAL, {}, layers=2, **SMALL),
    job("mixtral-ep2", MIXTRAL, {"data": 2, "expert": 2}, layers=3, **SMALL),
    job("mixtral-ep4-zero1", MIXTRAL, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, **SMALL),
    job("mixtral-ep2-full", MIXTRAL, {"data": 2, "expert": 2}, layers=3, batch=2, checkpointing=FULL, **SMALL),
    job("mixtral-ep8-zero1-core", MIXTRAL, {"data": 8, "expert": 8, "zero_stage": 1}, layers=3, batch=2, checkpointing=CORE, **SMALL),
    job("mixtral-etp2", MIXTRAL, {"data": 2, "expert_tensor": 2}, layers=3, **SMALL),
    job("mixtral-ep2-etp2-zero1", MIXTRAL, {"data": 8, "expert": 2, "expert_tensor": 2, "zero_stage": 1}, layers=3, batch=2, **SMALL),
    job("mixtral-ep2-etp4-full", MIXTRAL, {"data": 8, "expert": 2, "expert_tensor": 4}, layers=3, batch=2, checkpointing=FULL, **SMALL),
    job("qwen3moe-ep4-etp2", QWEN3MOE, {"data": 8, "expert": 4, "expert_tensor": 2}, layers=3, batch=2, num_experts=32),
    job("qwen3moe-ep8", QWEN3MOE, {"data": 8, "expert": 8}, layers=3, num_experts=32),
    job("qwen3moe-ep4-zero1", QWEN3MOE, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, num_experts=16),
    *(job(f"mixtral-ep2-pp2-rank{r}", MIXTRAL, {"data": 2, "expert": 2, "pipeline": 2, "num_micro_batches": 4, "rank": r}, **SMALL) for r in (0, 1)),
    # a shared expert, behind a gate, beside those that are chosen
    job("qwen2moe-dp1", QWEN2MOE, {}, layers=2, num_experts=8),
    job("qwen2moe-ep4-zero1", QWEN2MOE, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, num_experts=16),
    job("qwen2moe-ep2-full", QWEN2MOE, {"data": 2, "expert": 2}, layers=3, batch=2, checkpointing=FULL, num_experts=8),
    job("qwen2moe-ep2-core-unfused", QWEN2MOE, {"data": 2, "expert": 2, "fuse_gradients": False}, layers=3, checkpointing=CORE, num_experts=8),
    *(job(f"qwen2moe-ep2-pp2-rank{r}", QWEN2MOE, {"data": 2, "expert": 2, "pipeline": 2, "num_micro_batches": 4, "rank": r}, num_experts=8) for r in (0, 1)),
    # latent attention, and experts chosen by their scores' sigmoids
    job("moonlight-dp1", MOONLIGHT, {}, layers=2, **FEW),
    job("moonlight-ep4-zero1", MOONLIGHT, {"data": 8, "expert": 4, "zero_stage": 1}, layers=4, batch=2, **FEW),
    job("moonlight-ep2-full", MOONLIGHT, {"data": 2, "expert": 2}, layers=3, batch=4, checkpointing=FULL, **FEW),
    job("moonlight-ep2-core-unfused", MOONLIGHT, {"data": 2, "expert": 2, "fuse_gradients": False}, layers=3, checkpointing=CORE, **FEW),
    job("moonlight-q-rank", MOONLIGHT, {"data": 2}, layers=2, batch=2, q_lora_rank=768, **FEW),
    *(job(f"moonlight-ep2-pp2-rank{r}", MOONLIGHT, {"data": 2, "expert": 2, "pipeline": 2, "num_micro_batches": 4, "rank": r}, **FEW) for r in (0, 1)),
    # half of each head is rotated, and the mixture is DeepSeek-V3's
    job("glm45-dp1", GLM, {}, layers=2, **NARROW),
    job("glm45-ep4-zero1", GLM, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, **NARROW),
    job("glm45-ep2-full", GLM, {"data": 2, "expert": 2}, layers=3, batch=4, checkpointing=FULL, **NARROW),
    job("glm45-ep2-core-unfused", GLM, {"data": 2, "expert": 2, "fuse_gradients": False}, layers=3, checkpointing=CORE, **NARROW, use_qk_norm=True),
    *(job(f"glm45-ep2-pp2-rank{r}", GLM, {"data": 2, "expert": 2, "pipeline": 2, "num_micro_batches": 4, "rank": r}, **NARROW) for r in (0, 1)),
    lora("llama1-dp2", LLAMA, {"data": 2}, batch=2),
    lora("llama1-dp2-zero1-dropout", LLAMA, {"data": 2, "zero_stage": 1}, dropout=0.1, batch=2),
    lora("llama1-dp2-full", LLAMA, {"data": 2, "zero_stage": 1}, batch=4, checkpointing=FULL),
    lora("llama8-tp2", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1}),
    lora("llama8-tp2-core", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1}, checkpointing=CORE, targets=["linear_qkv", "linear_proj"]),
    lora("llama8-tp4-full", LLAMA8, {"tensor": 4, "data": 2, "zero_stage": 1}, checkpointing=FULL, batch=2, dropout=0.05),
    *(lora(f"llama8-pp2-rank{r}", LLAMA8, {"pipeline": 2, "num_micro_batches": 4, "rank": r}) for r in (0, 1)),
    *(lora(f"llama8-tp2-pp2-full-rank{r}", LLAMA8, {"tensor": 2, "pipeline": 2, "data": 2, "zero_stage": 1, "num_micro_batches": 4, "rank": r},
           checkpointing=FULL, batch=2) for r in (0, 1)),
    lora("gpt2-tp2-sp", GPT2, {"tensor": 2, "sequence_parallel": True}, batch=4),
    lora("gpt2-tp4-sp-zero1-dropout", GPT2, {"tensor": 4, "sequence_parallel": True, "data": 2, "zero_stage": 1}, batch=8, dropout=0.1),
    lora("qwen2-dp2-accum", QWEN2, {"data": 2, "num_micro_batches": 3}),
    lora("qwen3-tp2-zero1", QWEN3, {"tensor": 2, "data": 2, "zero_stage": 1}, batch=2, r=64),
    lora("llama1-dp2-unfused-native", LLAMA, {"data": 2, "fuse_gradients": False, "loss": "native"}, batch=2),
    lora("mixtral-dp1", MIXTRAL, {}, layers=2, **SMALL),
    lora("mixtral-ep2-dropout", MIXTRAL, {"data": 2, "expert": 2}, layers=3, dropout=0.1, **SMALL),
    lora("mixtral-ep4-zero1", MIXTRAL, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, **SMALL),
    lora("mixtral-ep2-full", MIXTRAL, {"data": 2, "expert": 2, "zero_stage": 1}, layers=3, batch=2, checkpointing=FULL, **SMALL),
    lora("mixtral-ep2-attention", MIXTRAL, {"data": 2, "expert": 2}, targets=["linear_qkv", "linear_proj"], layers=3, **SMALL),
    lora("qwen3moe-ep8-zero1", QWEN3MOE, {"data": 8, "expert": 8, "zero_stage": 1}, layers=3, num_experts=32),
    lora("qwen3moe-ep4-full", QWEN3MOE, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, checkpointing=FULL, num_experts=16),
    lora("mixtral-etp2", MIXTRAL, {"data": 2, "expert_tensor": 2}, layers=3, **SMALL),
    saved("llama8-tp2", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1}),
    saved("llama8-tp4-full", LLAMA8, {"tensor": 4, "data": 2, "zero_stage": 1}, checkpointing=FULL, batch=2, dropout=0.05),
    *(saved(f"llama8-pp2-rank{r}", LLAMA8, {"pipeline": 2, "num_micro_batches": 4, "rank": r}) for r in (0, 1)),
    saved("mixtral-ep4-zero1", MIXTRAL, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, **SMALL),
    saved("mixtral-dp1", MIXTRAL, {}, names=["output_layer"], layers=2, **SMALL),
    saved("qwen3moe-ep4-full", QWEN3MOE, {"data": 8, "expert": 4, "zero_stage": 1}, layers=3, batch=2, checkpointing=FULL, num_experts=16),
    saved("qwen3moe-ep8-zero1", QWEN3MOE, {"data": 8, "expert": 8, "zero_stage": 1}, names=["word_embeddings"], layers=3, num_experts=32),
    saved("llama1-dp2", LLAMA, {"data": 2}, names=["word_embeddings"], batch=2),
    # ms-swift's trainers of preferences and rewards (par_megatron.py: dpo_loss, reward_loss)
    job("dpo-llama8-tp2-full", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1, "loss": "native", "task": "dpo"}, batch=2, checkpointing=FULL),
    job("dpo-llama1-dp2", LLAMA, {"data": 2, "task": "dpo"}),
    job("dpo-gpt2-tp2-sp", GPT2, {"tensor": 2, "sequence_parallel": True, "task": "dpo"}, batch=2),
    job("dpo-qwen3moe-ep4-zero1", QWEN3MOE, {"data": 8, "expert": 4, "zero_stage": 1, "task": "dpo"}, layers=3, num_experts=16, checkpointing=FULL),
    lora("dpo-llama1-dp2-zero1", LLAMA, {"data": 2, "zero_stage": 1, "task": "dpo"}),
    job("reward-llama8-tp2", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1, "task": "reward", "scores": 1}, batch=2, tie_word_embeddings=False),
    job("reward-gpt2-tp2-sp-full", GPT2, {"tensor": 2, "sequence_parallel": True, "task": "reward", "scores": 1}, batch=2, checkpointing=FULL, tie_word_embeddings=False),
    job("reward-qwen2-dp2-full", QWEN2, {"data": 2, "task": "reward", "scores": 1}, batch=2, checkpointing=FULL, tie_word_embeddings=False),
    # ms-swift's GRPO of what a vLLM elsewhere has generated (par_megatron.py: scored_tokens, grpo_loss)
    job("grpo-llama1-dp2", LLAMA, {"data": 2, "task": "grpo"}),
    job("grpo-llama1-zero1", LLAMA, {"data": 4, "zero_stage": 1, "task": "grpo", "temperature": 1.0}, batch=3, checkpointing=FULL),
    job("grpo-llama8-tp2-full", LLAMA8, {"tensor": 2, "data": 2, "zero_stage": 1, "task": "grpo"}, batch=2, checkpointing=FULL),
    job("grpo-gpt2-tp2-sp", GPT2, {"tensor": 2, "sequence_parallel": True, "task": "grpo"}, batch=2),
    job("grpo-qwen3moe-ep4-zero1", QWEN3MOE, {"data": 8, "expert": 4, "zero_stage": 1, "task": "grpo"}, layers=3, num_experts=16, checkpointing=FULL),
    job("grpo-qwen3moe-ep2", QWEN3MOE, {"data": 8, "expert": 2, "zero_stage": 1, "task": "grpo"}, batch=2, layers=3, num_experts=16),
    *(job(f"grpo-llama8-pp4-rank{rank}", LLAMA8, {"pipeline": 4, "num_micro_batches": 8, "rank": rank, "task": "grpo"}, layers=8) for rank in (0, 1, 3)),
    *(job(f"grpo-llama8-tp2-pp2-rank{rank}", LLAMA8, {"tensor": 2, "pipeline": 2, "data": 2, "zero_stage": 1, "num_micro_batches": 4, "rank": rank, "task": "grpo"})
      for rank in (0, 1)),
    *(job(f"grpo-llama1-pp2-tied-rank{rank}", LLAMA, {"pipeline": 2, "num_micro_batches": 4, "rank": rank, "task": "grpo"}, batch=2) for rank in (0, 1)),
]

for j in JOBS:
    print(json.dumps(j))
