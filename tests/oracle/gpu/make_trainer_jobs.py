"""Writes trainers.jsonl: the jobs of real_trainers.py, each with Tidemark's request for it and what it answers."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TIDEMARK = os.environ.get("TIDEMARK", "build/bin/tidemark")
ROWS = {}
for row in json.load(open(os.environ["ORACLE_MODELS"])):
    ROWS.setdefault(row["id"], row)
    for other in row.get("aliases") or []:
        ROWS.setdefault(other, row)
BART = {"architectures": ["BartForConditionalGeneration"], "model_type": "bart", "d_model": 768, "encoder_layers": 6, "decoder_layers": 6,
        "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "vocab_size": 50265,
        "max_position_embeddings": 1024, "dropout": 0.1, "activation_function": "gelu", "decoder_start_token_id": 2, "pad_token_id": 1, "is_encoder_decoder": True}
LABELS = {"num_labels": 2}
PRECISION = {("bf16", "bf16"): "bf16_amp", ("fp32", "bf16"): "amp_bf16", ("fp32", "fp16"): "amp_fp16", ("fp32", None): "fp32", ("bf16", None): "pure_bf16"}
JOBS = []


def job(id_, trainer, model, batch, length, dtype="bf16", amp="bf16", ckpt=False, accum=1, optim="adamw_torch_fused", request=None, args=None, data=None, **more):
    """The trainer's arguments and the request say the same; what only one of them knows is given in args or request."""
    trl = trainer in ("sft", "dpo", "reward", "kto", "grpo", "gkd", "bco", "prm", "ppo", "online_dpo")
    a = {"per_device_train_batch_size": batch, "gradient_accumulation_steps": accum, "gradient_checkpointing": ckpt, "optim": optim,
         "bf16": amp == "bf16", "fp16": amp == "fp16", "learning_rate": 1e-5, "dataloader_num_workers": 0}
    r = {"micro_batch_size": batch, "sequence_length": length, "gradient_accumulation_steps": accum, "precision": PRECISION[dtype, amp], "optimizer": optim,
         "gradient_checkpointing": "full" if ckpt else "none", "framework": {"name": "trl" if trl else "transformers", "version": "5.12"}}
    if trl:
        a["max_length"] = length                       # TRL cuts at 1024 by default
        r["task"] = trainer
        if trainer in ("grpo", "ppo"):
            del a["max_length"]
    if trainer == "sft":
        liger = (args or {}).get("use_liger_kernel")
        if not liger and (args or {}).get("loss_type") is None:
            r["loss"] = "chunked"                      # SFTConfig: loss_type unset is "chunked_nll"
        elif not liger:
            r["loss"] = "default"
    if "attention" in more:
        r["attention"] = more["attention"]
    if "lora" in more:
        r["method"] = "qlora" if more.get("quant") else "lora"
        r["adapter"] = {"r": 16, **{k: v for k, v in more["lora"].items() if k in ("r", "target_modules", "lora_dropout", "task_type", "modules_to_save")}}
    if more.get("quant"):
        r["quantization"] = {"bits": 4, "quant_type": "nf4", "double_quant": True} if more["quant"] == "nf4" else {"bits": 8, "quant_type": "int8"}
        r["quantization"]["prepare_kbit"] = bool(more.get("prepare_kbit"))
        r["adapter"]["dtype"] = "bf16" if trl else "fp32"     # sft_trainer.py casts what is trained beside quantised weights
    cfg = BART if model == "bart" else ROWS[model]["config"]
    r["config" if model == "bart" else "model"] = cfg if model == "bart" else ROWS[model]["id"]
    if "architecture" in more:
        r["architecture"] = more["architecture"]
    a.update(args or {})
    r.update(request or {})
    j = {"id": id_, "module": "real_trainers", "trainer": trainer, "config": cfg, "dtype": dtype, "args": a, "data": {"length": length, **(data or {})}, "timeout": 90, **more, "request": r}
    JOBS.append(j)


def answer(r):
    p = subprocess.run([TIDEMARK, "estimate", "--request", "-", "--json"], input=json.dumps(r), capture_output=True, text=True)
    try:
        return json.loads(p.stdout)
    except ValueError:
        return {"issues": [{"code": "FAILED", "severity": "error", "message": (p.stderr or p.stdout)[:300]}]}


Q5, Q15, L1, L3, TL, G1, Q3 = "qwen2.5-0.5b", "qwen2.5-1.5b", "llama-3.2-1b", "llama-3.2-3b", "tinyllama", "gemma-3-1b", "Qwen/Qwen3-0.6B"
LIGER = {"use_liger_kernel": True}

# -- transformers.Trainer, language models
job("lm-llama2-7b-adamw", "lm", "llama-2-7b", 1, 2048, timeout=150)
job("lm-llama2-7b-adamw-gc", "lm", "llama-2-7b", 1, 2048, ckpt=True, timeout=150)
job("lm-llama31-8b-lora-gc", "lm", "llama-3.1-8b", 1, 2048, ckpt=True, lora={}, timeout=120)
job("lm-llama1b-bf16-gc", "lm", L1, 2, 1024, ckpt=True)
job("lm-llama1b-bf16-gc-reentrant", "lm", L1, 2, 1024, ckpt=True, use_reentrant=True, request={"use_reentrant": True})
job("lm-llama1b-fp32weights-bf16", "lm", L1, 1, 1024, dtype="fp32", accum=2)
job("lm-llama1b-fp32", "lm", L1, 1, 512, dtype="fp32", amp=None, optim="adamw_torch")
job("lm-llama1b-adamw8bit", "lm", L1, 2, 1024, optim="adamw_8bit")
job("lm-llama1b-paged8bit-gc", "lm", L1, 4, 1024, optim="paged_adamw_8bit", ckpt=True)
job("lm-llama1b-liger", "lm", L1, 2, 2048, args=LIGER, request=LIGER)
job("lm-llama1b-paged32-accum4", "lm", L1, 1, 512, optim="paged_adamw_32bit", accum=4)
job("lm-qwen05b-lion8bit", "lm", Q5, 2, 1024, optim="lion_8bit")
job("lm-qwen05b-fp16-accum2", "lm", Q5, 2, 512, dtype="fp32", amp="fp16", accum=2)
job("lm-qwen05b-eager", "lm", Q5, 2, 1024, attention="eager")
job("lm-qwen15b-adafactor-accum4-gc", "lm", Q15, 1, 2048, optim="adafactor", accum=4, ckpt=True)
job("lm-qwen06b-sgd-purebf16", "lm", Q3, 2, 1024, amp=None, optim="sgd")
job("lm-gemma1b-eager-gc", "lm", G1, 1, 1024, attention="eager", ckpt=True)
job("lm-gemma1b-sdpa", "lm", G1, 1, 1024)
job("lm-tinyllama-lora-qv", "lm", TL, 4, 1024, lora={"r": 8, "target_modules": ["q_proj", "v_proj"], "lora_dropout": 0.05})
job("lm-tinyllama-qlora-kbit-gc", "lm", TL, 2, 1024, ckpt=True, lora={"r": 64}, quant="nf4", prepare_kbit=True, optim="paged_adamw_8bit", timeout=120)
job("lm-qwen05b-eval", "lm", Q5, 1, 512, args={"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 8}, data={"eval": 16},
    request={"evaluation": {"micro_batch_size": 8}})
job("lm-qwen05b-eval-logits", "lm", Q5, 1, 512, args={"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 4}, data={"eval": 12},
    compute_metrics=True, request={"evaluation": {"micro_batch_size": 4, "keep_logits": True, "samples": 12}})
job("lm-qwen05b-compile", "lm", Q5, 2, 1024, args={"torch_compile": True}, request={"compile": "full"}, timeout=200)
job("lm-qwen05b-neftune-gc", "lm", Q5, 4, 1024, ckpt=True, args={"neftune_noise_alpha": 5.0}, request={"neftune_noise_alpha": 5.0})
job("lm-qwen05b-labelsmoothing", "lm", Q5, 2, 512, args={"label_smoothing_factor": 0.1}, request={"label_smoothing_factor": 0.1})
job("lm-qwen05b-padded", "lm", Q5, 4, 1024, data={"lengths": [1024, 700, 512, 300]}, request={"padding": True})
job("lm-qwen05b-emptycache", "lm", Q5, 2, 1024, args={"torch_empty_cache_steps": 1}, doubt="torch_empty_cache_steps moves reserved memory alone; Tidemark has no option for it")

# -- encoders, pictures, encoder-decoders
BERT = {"architecture": "BertForSequenceClassification", "config_overrides": LABELS}
job("cls-bert-fp32-bf16", "classification", "bert-base-uncased", 32, 128, dtype="fp32", data={"labels": 2}, request={"task": "classification"}, **BERT)
job("cls-bert-fp16-padded", "classification", "bert-base-uncased", 32, 256, dtype="fp32", amp="fp16", data={"labels": 2, "lengths": [256, 100, 180, 64]},
    request={"task": "classification", "padding": True}, **BERT)
job("cls-bert-lora-compile", "classification", "bert-base-uncased", 32, 128, dtype="fp32", data={"labels": 2}, args={"torch_compile": True}, timeout=200,
    lora={"target_modules": ["query", "value"], "task_type": "SEQ_CLS"}, request={"task": "classification", "compile": "full"}, **BERT)
job("vit-base-fp16", "vision", "vit-base", 32, 0, dtype="fp32", amp="fp16", data={"image": 224, "length": 16}, request={"task": "vision"},
    architecture="ViTForImageClassification", config_overrides=LABELS)
job("t5-small-fp32-generate", "seq2seq", "google-t5/t5-small", 8, 512, dtype="fp32", amp=None, attention="eager", data={"labels": "text", "target": 64, "eval": 16},
    args={"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 8, "predict_with_generate": True, "generation_max_length": 64},
    request={"task": "seq2seq", "decoder_sequence_length": 64, "evaluation": {"micro_batch_size": 8, "generate": True, "max_new_tokens": 64}})
job("bart-base-bf16-adafactor", "seq2seq", "bart", 8, 512, dtype="fp32", optim="adafactor", data={"labels": "text", "target": 128},
    request={"task": "seq2seq", "decoder_sequence_length": 128})

# -- TRL
job("sft-llama1b-defaults", "sft", L1, 4, 1024, ckpt=True)
job("sft-qwen06b-nll-nogc", "sft", Q3, 2, 1024, args={"loss_type": "nll"})
job("sft-llama1b-lora-nogc", "sft", L1, 4, 1024, lora={})
job("sft-qwen15b-lora-accum4", "sft", Q15, 2, 1024, ckpt=True, accum=4, lora={"r": 32, "lora_dropout": 0.05})
job("sft-llama3b-qlora", "sft", L3, 2, 1024, ckpt=True, lora={"lora_dropout": 0.05}, quant="nf4", optim="paged_adamw_8bit", timeout=150)
job("sft-llama8b-qlora", "sft", "llama-3.1-8b", 1, 1024, ckpt=True, lora={}, quant="nf4", optim="adamw_8bit", timeout=200)
job("sft-llama1b-int8-lora", "sft", L1, 2, 1024, ckpt=True, lora={}, quant="int8", timeout=120)
job("sft-qwen05b-packed-bfd", "sft", Q5, 1, 2048, ckpt=True, args={"packing": True}, data={"lengths": [1024, 512, 512], "times": 4}, request={"packing": True})
job("sft-qwen05b-packed-wrapped", "sft", Q5, 2, 1024, ckpt=True, args={"packing": True, "packing_strategy": "wrapped"}, data={"lengths": [700, 324, 600, 424], "times": 4},
    doubt="wrapped rows reach the model as plain rows, so the request says no packing")
job("sft-qwen05b-padded", "sft", Q5, 4, 1024, data={"lengths": [1024, 700, 512, 300]}, request={"padding": True})
job("sft-llama1b-offload", "sft", L1, 2, 2048, args={"activation_offloading": True}, smoke={"activation_offloading": False}, request={"activation_offloading": True})
job("sft-llama1b-liger-gc", "sft", L1, 4, 2048, ckpt=True, args=LIGER, request=LIGER)
job("dpo-qwen05b-full", "dpo", Q5, 2, 1024, ckpt=True)
job("dpo-qwen05b-precomputed", "dpo", Q5, 2, 1024, ckpt=True, args={"precompute_ref_log_probs": True}, request={"reference_model": {"precompute": True}})
job("dpo-llama1b-lora-nogc", "dpo", L1, 1, 1024, lora={})
job("reward-qwen05b", "reward", Q5, 4, 512, ckpt=True, architecture="Qwen2ForSequenceClassification", config_overrides={"num_labels": 1})
job("kto-qwen05b-lora", "kto", Q5, 4, 512, ckpt=True, lora={})
job("kto-qwen05b-full", "kto", Q5, 2, 512, ckpt=True)
job("grpo-qwen05b-full", "grpo", Q5, 8, 192, ckpt=True, args={"num_generations": 8, "max_completion_length": 64}, data={"prompt": 128},
    request={"num_generations": 8, "max_completion_length": 64, "max_prompt_length": 128}, timeout=120)
job("grpo-llama1b-lora-beta", "grpo", L1, 8, 320, accum=2, ckpt=True, lora={}, args={"num_generations": 8, "max_completion_length": 64, "beta": 0.04}, data={"prompt": 256},
    request={"num_generations": 8, "max_completion_length": 64, "max_prompt_length": 256, "beta": 0.04}, timeout=150)
job("gkd-qwen05b-offpolicy", "gkd", Q5, 2, 512, ckpt=True, args={"lmbda": 0.0, "max_new_tokens": 64}, data={"prompt": 448}, teacher_config=ROWS[Q15]["config"],
    request={"lmbda": 0.0, "teacher_model": ROWS[Q15]["id"], "teacher_dtype": "bf16", "max_completion_length": 64})
job("gkd-qwen05b-onpolicy", "gkd", Q5, 2, 512, args={"lmbda": 1.0, "max_new_tokens": 64}, data={"prompt": 448}, teacher_config=ROWS[Q15]["config"],
    request={"lmbda": 1.0, "teacher_model": ROWS[Q15]["id"], "teacher_dtype": "bf16", "max_completion_length": 64}, timeout=120)

# -- a second set, of another day: what the first had not
Q17, GPT2, OPT, PHI, SMOL = "Qwen/Qwen3-1.7B", "gpt2", "facebook/opt-125m", "microsoft/phi-2", "HuggingFaceTB/SmolLM2-360M"
FIRST = len(JOBS)
job("lm-llama1b-compile", "lm", L1, 2, 1024, args={"torch_compile": True}, request={"compile": "full"}, timeout=240)
job("lm-llama1b-compile-gc", "lm", L1, 2, 2048, ckpt=True, args={"torch_compile": True}, request={"compile": "full"}, timeout=240)
job("lm-qwen06b-lora-compile", "lm", Q3, 4, 1024, lora={}, args={"torch_compile": True}, request={"compile": "full"}, timeout=240)
job("lm-gemma1b-compile", "lm", G1, 2, 1024, args={"torch_compile": True}, request={"compile": "full"}, timeout=240)
job("cls-bert-compile", "classification", "bert-base-uncased", 64, 256, dtype="fp32", data={"labels": 2}, args={"torch_compile": True}, timeout=240,
    request={"task": "classification", "compile": "full"}, **BERT)
job("vit-base-compile", "vision", "vit-base", 64, 0, dtype="fp32", data={"image": 224, "length": 16}, args={"torch_compile": True}, timeout=240,
    request={"task": "vision", "compile": "full"}, architecture="ViTForImageClassification", config_overrides=LABELS)
job("lm-gpt2-fp32", "lm", GPT2, 8, 1024, dtype="fp32", amp=None)
job("lm-gpt2-fp16-gc", "lm", GPT2, 8, 1024, dtype="fp32", amp="fp16", ckpt=True)
job("lm-opt125m-bf16", "lm", OPT, 8, 512, dtype="fp32")
job("lm-phi2-lora", "lm", PHI, 2, 1024, lora={"target_modules": ["q_proj", "k_proj", "v_proj", "dense"]})
job("lm-smollm360m-padded-fp32", "lm", SMOL, 4, 1024, dtype="fp32", data={"lengths": [1024, 800, 512, 300]}, request={"padding": True})
job("lm-llama3b-bf16-gc-sgd", "lm", L3, 1, 4096, ckpt=True, optim="sgd")
job("lm-llama3b-lora-accum8", "lm", L3, 1, 2048, accum=8, lora={"r": 64})
job("lm-qwen17b-saved-embedding", "lm", Q17, 1, 1024, ckpt=True, lora={"target_modules": ["q_proj", "v_proj"], "modules_to_save": ["embed_tokens", "lm_head"]})
job("lm-llama1b-dora", "lm", L1, 2, 1024, lora={"use_dora": True}, request={"adapter": {"r": 16, "use_dora": True, "target_modules": "all-linear"}})
job("lm-llama1b-int8-lora-kbit-gc", "lm", L1, 2, 1024, ckpt=True, lora={}, quant="int8", prepare_kbit=True)
job("lm-qwen17b-qlora-paged32-gc", "lm", Q17, 2, 1024, ckpt=True, lora={}, quant="nf4", optim="paged_adamw_32bit")
job("lm-gemma1b-lora-long", "lm", G1, 1, 4096, lora={}, ckpt=True)
job("lm-qwen05b-liger-fp32weights", "lm", Q5, 2, 2048, dtype="fp32", args=LIGER, request=LIGER)
job("lm-qwen05b-adafactor-fp32", "lm", Q5, 2, 512, dtype="fp32", optim="adafactor")
job("lm-qwen05b-rmsprop", "lm", Q5, 2, 512, optim="rmsprop")
job("lm-qwen05b-adagrad", "lm", Q5, 2, 512, optim="adagrad")
job("lm-qwen05b-ademamix8bit", "lm", Q5, 2, 512, optim="ademamix_8bit")
job("cls-bert-eager-fp16", "classification", "bert-base-uncased", 16, 512, dtype="fp32", amp="fp16", attention="eager", data={"labels": 2}, request={"task": "classification"}, **BERT)
job("vit-base-lora-bf16", "vision", "vit-base", 64, 0, data={"image": 224, "length": 16}, lora={"target_modules": ["q_proj", "v_proj"], "task_type": None},
    request={"task": "vision"}, architecture="ViTForImageClassification", config_overrides=LABELS)
job("t5-small-bf16-gc", "seq2seq", "google-t5/t5-small", 16, 512, dtype="fp32", ckpt=True, data={"labels": "text", "target": 128}, request={"task": "seq2seq", "decoder_sequence_length": 128})
job("sft-gemma1b-full", "sft", G1, 2, 1024, ckpt=True)
job("sft-gemma1b-qlora", "sft", G1, 2, 2048, ckpt=True, lora={}, quant="nf4", optim="paged_adamw_8bit")
job("sft-qwen17b-full-adafactor", "sft", Q17, 2, 1024, ckpt=True, optim="adafactor")
job("sft-qwen17b-lora-qv-fp32", "sft", Q17, 2, 1024, dtype="fp32", ckpt=True, lora={"target_modules": ["q_proj", "v_proj"]})
job("sft-llama3b-lora-long", "sft", L3, 1, 8192, ckpt=True, lora={"r": 32})
job("sft-llama1b-eval", "sft", L1, 2, 1024, ckpt=True, args={"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 4}, data={"eval": 8},
    request={"evaluation": {"micro_batch_size": 4}})
job("sft-llama1b-neftune-accum2", "sft", L1, 4, 512, accum=2, args={"neftune_noise_alpha": 5.0}, request={"neftune_noise_alpha": 5.0})
job("sft-tinyllama-nll-qlora", "sft", TL, 4, 1024, ckpt=True, args={"loss_type": "nll"}, lora={}, quant="nf4", optim="adamw_8bit")
job("dpo-llama1b-qlora", "dpo", L1, 2, 1024, ckpt=True, lora={}, quant="nf4", optim="paged_adamw_8bit")
job("dpo-qwen17b-full-adafactor", "dpo", Q17, 1, 1024, ckpt=True, optim="adafactor")
job("dpo-qwen05b-nogc-accum2", "dpo", Q5, 2, 512, accum=2)
job("dpo-gemma1b-lora", "dpo", G1, 2, 512, ckpt=True, lora={})
job("reward-llama1b-lora", "reward", L1, 4, 1024, ckpt=True, lora={"task_type": "SEQ_CLS"}, architecture="LlamaForSequenceClassification", config_overrides={"num_labels": 1})
job("kto-llama1b-full", "kto", L1, 2, 1024, ckpt=True)
job("kto-qwen17b-lora-nogc", "kto", Q17, 2, 512, lora={})
job("grpo-qwen05b-accum4", "grpo", Q5, 4, 384, accum=4, ckpt=True, args={"num_generations": 8, "max_completion_length": 128}, data={"prompt": 256},
    request={"num_generations": 8, "max_completion_length": 128, "max_prompt_length": 256}, timeout=150)
job("grpo-qwen17b-lora", "grpo", Q17, 8, 320, ckpt=True, lora={}, args={"num_generations": 8, "max_completion_length": 64}, data={"prompt": 256},
    request={"num_generations": 8, "max_completion_length": 64, "max_prompt_length": 256}, timeout=150)

# -- a third: trl.experimental
SECOND = len(JOBS)
STEPWISE = {"task_type": "TOKEN_CLS", "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}
job("prm-qwen05b", "prm", Q5, 2, 511, architecture="Qwen2ForTokenClassification")
job("prm-qwen05b-ck", "prm", Q5, 4, 511, ckpt=True, architecture="Qwen2ForTokenClassification")
job("prm-llama1b-lora", "prm", L1, 2, 511, lora=STEPWISE, architecture="LlamaForTokenClassification")
job("bco-qwen05b", "bco", Q5, 2, 512, data={"prompt": 128})
job("bco-qwen05b-lora", "bco", Q5, 2, 512, lora={}, data={"prompt": 128})
job("bco-llama1b-lora-ck", "bco", L1, 4, 1024, ckpt=True, lora={}, data={"prompt": 512})
# bf16 does not reach PPOTrainer's Accelerator
job("ppo-pythia160m", "ppo", "EleutherAI/pythia-160m", 4, 256, data={"prompt": 128},
    args={"response_length": 128, "num_ppo_epochs": 2, "num_mini_batches": 1, "total_episodes": 12, "local_rollout_forward_batch_size": 4, "num_sample_generations": 0},
    request={"precision": "pure_bf16", "max_grad_norm": 0.0, "max_completion_length": 128, "local_rollout_forward_batch_size": 4})

# -- a fourth: options that meet for the first time, and what goes to the host
THIRD = len(JOBS)
OFFLOAD = {"args": {"activation_offloading": True}, "smoke": {"activation_offloading": False}, "request": {"activation_offloading": True}}
job("sft-llama1b-liger-nogc", "sft", L1, 2, 2048, args=LIGER, request=LIGER)
job("sft-qwen17b-qlora-liger", "sft", Q17, 2, 2048, ckpt=True, lora={}, quant="nf4", args=LIGER, request=LIGER)
job("sft-gemma1b-liger-lora", "sft", G1, 4, 1024, ckpt=True, lora={}, args=LIGER, request=LIGER)
job("sft-qwen05b-reentrant", "sft", Q5, 4, 1024, ckpt=True, args={"gradient_checkpointing_kwargs": {"use_reentrant": True}}, request={"use_reentrant": True})
job("sft-llama1b-lora-saved-head", "sft", L1, 2, 1024, ckpt=True, lora={"target_modules": "all-linear", "modules_to_save": ["lm_head"]})
job("sft-smollm360m-padded-accum2", "sft", SMOL, 4, 1024, accum=2, data={"lengths": [1024, 700, 512, 300]}, request={"padding": True})
job("sft-phi2-qlora", "sft", PHI, 1, 1024, ckpt=True, lora={}, quant="nf4", optim="paged_adamw_8bit")
job("sft-gpt2-fp32-clip0", "sft", GPT2, 4, 512, dtype="fp32", amp=None, args={"max_grad_norm": 0.0}, request={"max_grad_norm": 0.0})
job("sft-opt125m-fp16", "sft", OPT, 8, 512, dtype="fp32", amp="fp16", ckpt=True)
job("sft-qwen06b-packed-eager", "sft", Q3, 1, 2048, attention="eager", ckpt=True)
job("sft-llama1b-lora-offload", "sft", L1, 2, 2048, lora={}, **OFFLOAD)
job("sft-qwen05b-offload-ck", "sft", Q5, 2, 2048, ckpt=True, **OFFLOAD)
job("sft-qwen17b-qlora-offload", "sft", Q17, 1, 2048, lora={}, quant="nf4", **OFFLOAD)
job("dpo-qwen05b-offload", "dpo", Q5, 2, 512, **OFFLOAD)
job("dpo-qwen05b-ipo", "dpo", Q5, 2, 512, ckpt=True, args={"loss_type": ["ipo"]})
job("dpo-smollm360m-fp32", "dpo", SMOL, 2, 512, dtype="fp32", ckpt=True)
job("dpo-qwen17b-qlora-accum4", "dpo", Q17, 1, 1024, accum=4, ckpt=True, lora={"r": 64}, quant="nf4", optim="paged_adamw_32bit")
job("dpo-llama1b-reentrant", "dpo", L1, 1, 1024, ckpt=True, args={"gradient_checkpointing_kwargs": {"use_reentrant": True}}, request={"use_reentrant": True})
job("reward-qwen05b-nogc-accum2", "reward", Q5, 2, 512, accum=2, architecture="Qwen2ForSequenceClassification", config_overrides={"num_labels": 1})
job("reward-qwen17b-qlora", "reward", Q17, 2, 1024, ckpt=True, lora={"task_type": "SEQ_CLS"}, quant="nf4", architecture="Qwen3ForSequenceClassification", config_overrides={"num_labels": 1})
job("kto-llama1b-qlora", "kto", L1, 2, 512, ckpt=True, lora={}, quant="nf4", optim="adamw_8bit")
job("grpo-llama1b-full-beta-nogc", "grpo", L1, 8, 192, args={"num_generations": 8, "max_completion_length": 64, "beta": 0.04}, data={"prompt": 128},
    request={"num_generations": 8, "max_completion_length": 64, "max_prompt_length": 128, "beta": 0.04}, timeout=150)
job("lm-gemma1b-fp32-amp", "lm", G1, 2, 1024, dtype="fp32", ckpt=True)
job("lm-smollm360m-sgdm-fp16", "lm", SMOL, 4, 1024, dtype="fp32", amp="fp16", optim="adamw_torch")
job("lm-opt125m-lora-eager", "lm", OPT, 8, 1024, attention="eager", lora={"target_modules": ["q_proj", "v_proj"]})
job("lm-phi2-adafactor-gc", "lm", PHI, 1, 2048, ckpt=True, optim="adafactor")
job("lm-qwen05b-longest-gc", "lm", Q5, 1, 16384, ckpt=True)
job("lm-qwen06b-labelsmoothing-accum2", "lm", Q3, 2, 512, accum=2, args={"label_smoothing_factor": 0.1}, request={"label_smoothing_factor": 0.1})
job("lm-llama1b-accum8-adamw8bit-padded", "lm", L1, 2, 1024, accum=8, optim="adamw_8bit", data={"lengths": [1024, 600]}, request={"padding": True})
job("cls-bert-gc-longest", "classification", "bert-base-uncased", 32, 512, dtype="fp32", ckpt=True, data={"labels": 2}, request={"task": "classification"}, **BERT)
job("vit-base-gc-fp32", "vision", "vit-base", 64, 0, dtype="fp32", amp=None, ckpt=True, data={"image": 224, "length": 16}, request={"task": "vision"},
    architecture="ViTForImageClassification", config_overrides=LABELS)
job("bart-base-fp32-eval", "seq2seq", "bart", 8, 512, dtype="fp32", amp=None, data={"labels": "text", "target": 128, "eval": 16},
    args={"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 8}, request={"task": "seq2seq", "decoder_sequence_length": 128, "evaluation": {"micro_batch_size": 8}})


def main():
    if sys.argv[1:]:
        del JOBS[:{"second": FIRST, "third": SECOND, "fourth": THIRD}[sys.argv[1]]]
    JOBS.sort(key=lambda j: (not j["args"].get("torch_compile"), -j["timeout"]))     # the slow ones start first
    with open(os.path.join(HERE, "trainers.jsonl"), "w") as f:
        for j in JOBS:
            a = answer(j["request"])
            e = a.get("estimate")
            j["expect_bytes"] = e["allocated"]["expected"] if e else 20 << 30
            if e and j.get("quant"):                   # it is made in bf16 before it is saved and loaded
                j["expect_bytes"] = max(j["expect_bytes"], int(2.1 * e["parameters"]["total"]))
            if e:
                j["answer"] = {"allocated": e["allocated"], "reserved": e["reserved"]["expected"], "first_step": e["first_step_allocated"],
                               "phase": e["peak"]["phase"], "at": e["peak"]["at"], "recipe": e["recipe"]["name"]}
            j["issues"] = [[i["code"], i["severity"], i["message"][:160]] for i in a["issues"]]
            f.write(json.dumps(j) + "\n")
            print(f'{j["id"]:34} {j["expect_bytes"] / 2**30:7.2f} GiB', "" if e else "REFUSED", *[f"\n    {i[0]} {i[1]} {i[2]}" for i in j["issues"]])


main()
