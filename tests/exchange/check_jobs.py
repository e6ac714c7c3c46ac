#!/usr/bin/env python3
"""From files to the job that is estimated: what people start daily is read as the tool itself takes it.

    tests/exchange/check_jobs.py COMMAND

Expected values are those tools' own defaults: trl v1.9.0 trainer/{base,sft,model}_config.py and scripts/sft.py; ms-swift
3602360a arguments/{sft,rlhf}_args.py, trainers/arguments.py, model/utils.py, rlhf_trainers/rollout_mixin.py; axolotl 067b021
monkeypatch/accelerate/fsdp2.py; diffusers 58eb52c examples/{dreambooth,text_to_image};
LLaMA-Factory ff6d4d12 hparams/model_args.py; KTransformers 95009ea kt-kernel/python/sft.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from checks import Checks, at

SWIFT = "NPROC_PER_NODE=8 \\\nCUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \\\nswift sft --model Qwen/Qwen2.5-7B --max_length 2048 "
GRPO = "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --num_generations 4 --per_device_train_batch_size 4 "
SHARDED = """base_model: Qwen/Qwen2.5-0.5B
sequence_len: 1024
micro_batch_size: 1
gradient_accumulation_steps: 1
num_epochs: 1
optimizer: adamw_torch_fused
learning_rate: 2e-5
"""
KT = """model_name_or_path: Qwen/Qwen3-30B-A3B
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
template: qwen3
dataset: identity
cutoff_len: 2048
per_device_train_batch_size: 1
bf16: true
output_dir: out
use_kt: true
"""
TRL = "--model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name trl-lib/Capybara"

# TRL's scripts say what they are launched by; the second command is another example of the same.
LAUNCHED = """# Copyright

\"\"\"
# LoRA
accelerate launch \\
    sft.py \\
    --model_name_or_path Qwen/Qwen2.5-0.5B \\
    --per_device_train_batch_size 3 \\
    --dtype bfloat16 \\
    --use_peft

python sft.py --model_name_or_path Qwen/Qwen2.5-7B
\"\"\"
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser, get_peft_config
parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()
SFTTrainer(model=model_args.model_name_or_path, args=training_args, peft_config=get_peft_config(model_args)).train()
"""

# What is asked; the files; keys of the request that the estimate is made of, and codes that must be among its issues.
JOBS = [
    ("a request's nested options", {"job.json": '{"model": "qwen2.5-7b", "parallelism": {"data": 4, "fsdp": "full_shard", '
      '"fsdp_options": {"reshard_last": false, "backward_prefetch": "none"}}}'},
     {"parallelism.data": 4, "parallelism.fsdp_options.backward_prefetch": "none",
      "parallelism.fsdp_options.reshard_last": False}, []),
    ("a request without a method", {"job.json": '{"parameters": 7e9, "gpu": "4090"}'}, {"parameters": 7e9, "gpu": "4090"}, []),
    ("a request of one key", {"job.json": '{"model": "qwen2.5-7b"}'}, {"model": "qwen2.5-7b"}, []),
    ("a request with a word misspelt", {"job.json": '{"model": "qwen2.5-7b", "metod": "lora", "gpu": "4090"}'},
     {"model": "qwen2.5-7b"}, ["UNKNOWN_KEY"]),
    ("a request of another tool's words", {"job.json": '{"schema": 1, "verb": "estimate", "model": "qwen2.5-7b", "zero_optimization": {"stage": 3}}'},
     {"model": "qwen2.5-7b", "verb": None}, []),
    ("a request that divides the model", {"job.json": '{"schema": 1, "model": "qwen2.5-7b", "parallelism": {"fsdp": "full_shard"}}'},
     {"parallelism.fsdp": "full_shard", "parallelism.data": None}, []),
    ("a request as YAML", {"job.yaml": "model: qwen2.5-7b\nmethod: lora\nadapter:\n  r: 32\n"}, {"method": "lora", "adapter.r": 32}, []),
    ("GPUs of NPROC_PER_NODE share ZeRO-3", {"run.sh": SWIFT + "--tuner_type full --deepspeed zero3\n"},
     {"parallelism.data": 8, "parallelism.zero_stage": 3}, ["EACH_GPU"]),
    ("those of NNODES, too", {"run.sh": "NNODES=2 " + SWIFT + "--tuner_type full --deepspeed zero3\n"},
     {"parallelism.data": 16}, ["EACH_GPU"]),
    ("without NPROC_PER_NODE layers lie on all GPUs in sight",
     {"run.sh": "CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen2.5-7B --max_length 2048\n"},
     {"parallelism.device_map": 2}, []),
    ("ms-swift's GaLore", {"run.sh": "swift sft --model Qwen/Qwen2.5-7B --tuner_type full --use_galore true\n"},
     {"optimizer": "galore_adamw", "optim_args": "rank=128"}, []),
    ("ms-swift adapts the language model alone", {"run.sh": "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --max_length 2048\n"},
     {"framework.name": "ms_swift", "freeze": None, "freeze_vision": True, "freeze_projector": True}, []),
    ("ms-swift's lora_llm", {"run.sh": "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type lora_llm --lora_rank 16 --max_length 2048\n"},
     {"method": "lora", "adapter.r": 16, "adapter.lora_dropout": 0.0, "trainable": ["vision_tower", "projector"], "freeze_vision": True}, []),
    ("ms-swift's llamapro", {"run.sh": "swift sft --model Qwen/Qwen2.5-7B --tuner_type llamapro --max_length 2048\n"},
     {"method": "freeze", "llama_pro_new_blocks": 4}, []),
    ("a classifier of pictures", {"run.sh": "swift sft --model Qwen/Qwen3-VL-4B-Instruct --task_type seq_cls --num_labels 2 --max_length 2048\n"},
     {"task": "classification"}, ["ASSUMED_DEFAULT"]),
    ("packed pairs", {"run.sh": "swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B --tuner_type full --packing true --max_length 8192\n"},
     {"task": "dpo", "packing": True, "sequence_length": 8192}, []),
    ("Megatron-SWIFT's unfused attention", {"run.sh": "megatron sft --model Qwen/Qwen2.5-7B --attention_backend unfused --max_length 2048\n"},
     {"attention": "eager"}, []),
    ("ms-swift's max_length is the prompt's", {"run.sh": GRPO + "--max_length 4096 --max_completion_length 8192\n"},
     {"max_prompt_length": 4096, "max_completion_length": 8192, "sequence_length": None}, []),
    ("GRPO without a prompt's length", {"run.sh": GRPO + "--max_completion_length 4096\n"}, {"max_prompt_length": 512},
     ["ASSUMED_DEFAULT"]),
    ("ms-swift's distillation", {"run.sh": "swift rlhf --rlhf_type gkd --model Qwen/Qwen2.5-7B --teacher_model Qwen/Qwen2.5-14B-Instruct --tuner_type full "
      "--torch_dtype bfloat16 --per_device_train_batch_size 1 --max_length 2048 --max_completion_length 512\n"},
     {"task": "gkd", "teacher_model": "Qwen/Qwen2.5-14B-Instruct", "max_prompt_length": 2048, "max_completion_length": 512}, []),
    ("TRL's GKDTrainer", {"train.py": "from trl.experimental.gkd import GKDConfig, GKDTrainer\nfrom transformers import AutoModelForCausalLM\n"
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\nteacher = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-1.5B', dtype='bfloat16')\n"
      "args = GKDConfig(output_dir='out', per_device_train_batch_size=2, max_length=512, lmbda=0.3, beta=0.1, max_new_tokens=64, bf16=True)\n"
      "GKDTrainer(model=model, teacher_model=teacher, args=args).train()\n"},
     {"task": "gkd", "teacher_model": "Qwen/Qwen2.5-1.5B", "teacher_dtype": "bf16", "lmbda": 0.3, "beta": 0.1, "max_completion_length": 64}, []),
    ("TRL's TPOTrainer", {"train.py": "from trl.experimental.tpo import TPOConfig, TPOTrainer\n"
      "args = TPOConfig(output_dir='out', per_device_train_batch_size=2, max_length=1024, tpo_alpha=1.0, bf16=True)\n"
      "TPOTrainer(model='Qwen/Qwen3-0.6B', args=args, train_dataset=data).train()\n"},
     {"task": "tpo", "micro_batch_size": 2, "sequence_length": 1024, "reference_model.present": None}, []),
    ("TRL's OnlineDPOTrainer", {"train.py": "from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer\n"
      "from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification\n"
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B-Instruct', dtype='bfloat16')\n"
      "reward = AutoModelForSequenceClassification.from_pretrained('Qwen/Qwen2.5-1.5B', num_labels=1)\n"
      "args = OnlineDPOConfig(output_dir='out', per_device_train_batch_size=2, max_new_tokens=128, bf16=True)\n"
      "OnlineDPOTrainer(model=model, reward_funcs=reward, args=args, train_dataset=data).train()\n"},
     {"task": "online_dpo", "micro_batch_size": 2, "sequence_length": 512, "max_completion_length": 128, "reward_model": "Qwen/Qwen2.5-1.5B"}, []),
    ("its script", {"run.sh": "python examples/scripts/online_dpo.py --model_name_or_path Qwen/Qwen2.5-0.5B --reward_model_path Qwen/Qwen2.5-0.5B "
      "--dtype bfloat16 --per_device_train_batch_size 4 --use_peft\n"},
     {"task": "online_dpo", "sequence_length": 512, "reward_model": "Qwen/Qwen2.5-0.5B", "method": "lora"}, []),
    ("TRL's configuration of a teacher", {"gkd.yaml": "model_name_or_path: Qwen/Qwen2.5-0.5B\nteacher_model_name_or_path: Qwen/Qwen2.5-1.5B\nlmbda: 0.0\n"
      "dataset_name: trl-lib/chatbot_arena_completions\nper_device_train_batch_size: 2\nmax_length: 512\nlearning_rate: 2.0e-5\n"},
     {"task": "gkd", "teacher_model": "Qwen/Qwen2.5-1.5B", "lmbda": 0}, []),
    ("FSDP among GPUs that nobody counts", {"a.yaml": SHARDED + "fsdp_version: 2\nfsdp_config:\n  offload_params: false\n"},
     {"parallelism.data": 2, "parallelism.fsdp_options.groups": "resharded_root"}, ["ASSUMED_GPUS"]),
    ("trl sft", {"run.sh": f"trl sft {TRL}\n"},
     {"task": "sft", "method": "full", "micro_batch_size": 8, "sequence_length": 1024, "gradient_checkpointing": "full",
      "precision": "amp_bf16", "loss": "chunked"}, []),
    ("TRL's script", {"run.sh": f"python trl/scripts/dpo.py {TRL} --use_peft --dtype bfloat16 --eval_strategy steps\n"},
     {"task": "dpo", "method": "lora", "adapter.r": 16, "adapter.lora_alpha": 32, "precision": "bf16_amp",
      "evaluation.micro_batch_size": 8}, []),
    ("trl's accelerate_config", {"run.sh": f"trl sft {TRL} --accelerate_config zero3 --num_processes 4\n"},
     {"parallelism.zero_stage": 3, "parallelism.data": 4}, ["EACH_GPU"]),
    ("diffusers' LoRA of SDXL", {"run.sh": "export MODEL_NAME=stabilityai/stable-diffusion-xl-base-1.0\naccelerate launch "
      "train_dreambooth_lora_sdxl.py --pretrained_model_name_or_path=$MODEL_NAME --mixed_precision=fp16 --train_batch_size=1\n"},
     {"task": "diffusion", "method": "lora", "adapter.r": 4, "image_size": [1024, 1024], "precision": {"weights": "fp16", "autocast": "fp16"},
      "optimizer": "adamw_torch", "micro_batch_size": 1, "vae": "fp32", "text_encoders": "frozen"}, []),
    ("diffusers' LoRA of Flux with latents made before", {"run.sh": "accelerate launch train_dreambooth_lora_flux.py "
      "--pretrained_model_name_or_path=black-forest-labs/FLUX.1-dev --mixed_precision=bf16 --cache_latents --optimizer=prodigy\n"},
     {"optimizer": "prodigy", "vae": "cached", "text_encoders": "frozen"}, []),
    ("diffusers' LoRA of Flux 2, whose text encoder leaves the card", {"run.sh": "accelerate launch train_dreambooth_lora_flux2_klein.py "
      "--pretrained_model_name_or_path=black-forest-labs/FLUX.2-klein-base-4B --mixed_precision=bf16 --gradient_checkpointing\n"},
     {"adapter.r": 4, "precision": "bf16_amp", "vae": "mixed_precision", "text_encoders": "cached", "image_size": [512, 512],
      "adapter.target_modules": ["to_k", "to_q", "to_v", "to_out.0", "to_qkv_mlp_proj", *[f"single_transformer_blocks.{i}.attn.to_out" for i in range(24)]]},
     []),
    ("diffusers' LoRA of Qwen-Image", {"run.sh": "accelerate launch train_dreambooth_lora_qwen_image.py "
      "--pretrained_model_name_or_path=Qwen/Qwen-Image --mixed_precision=bf16 --cache_latents --rank=16\n"},
     {"adapter.r": 16, "adapter.target_modules": ["to_k", "to_q", "to_v", "to_out.0"], "vae": "cached", "text_encoders": "cached"}, []),
    ("diffusers' training of a whole U-Net", {"run.sh": "accelerate launch train_text_to_image.py "
      "--pretrained_model_name_or_path=CompVis/stable-diffusion-v1-4 --mixed_precision=bf16 --use_8bit_adam\n"},
     {"method": "full", "image_size": [512, 512], "precision": "amp_bf16", "optimizer": "adamw_8bit",
      "micro_batch_size": 16, "gradient_checkpointing": "none", "vae": "mixed_precision", "text_encoders": "frozen"}, []),
    ("sd-scripts' LoRA of SDXL", {"run.sh": "accelerate launch sdxl_train_network.py --pretrained_model_name_or_path=my.safetensors "
      "--network_module=networks.lora --network_dim=32 --train_batch_size=2 --resolution=1024,768 --mixed_precision=bf16 --gradient_checkpointing "
      "--cache_latents --cache_text_encoder_outputs --network_train_unet_only --optimizer_type=AdamW8bit --sdpa\n"},
     {"framework.name": "sd_scripts", "model": "stabilityai/stable-diffusion-xl-base-1.0", "method": "lora", "adapter.r": 32, "image_size": [768, 1024],
      "precision": "bf16_amp", "optimizer": "adamw_8bit", "micro_batch_size": 2, "gradient_checkpointing": "full", "vae": "cached",
      "text_encoders": "cached", "attention": "sdpa"}, []),
    ("sd-scripts' text encoders are trained unless told otherwise", {"run.sh": "python train_network.py --pretrained_model_name_or_path=a/b.ckpt "
      "--network_module=networks.lora --resolution=512 --mixed_precision=fp16 --xformers\n"},
     {"adapter.r": 4, "text_encoders": "trained", "vae": "mixed_precision", "attention": "xformers", "optimizer": "adamw_torch"}, ["STAND_IN"]),
    ("keys without effect are told", {"a.yaml": SHARDED + "loss_watchdog_threshold: 5.0\n"}, {}, ["NOT_READ"]),
    ("ms-swift's LISA", {"run.sh": "CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen2.5-7B --tuner_type full --lisa_activated_layers 2\n"},
     {"method": "full", "lisa_layers": 2, "framework.name": "ms_swift"}, []),
    ("Axolotl's LISA", {"a.yaml": SHARDED + "lisa_n_layers: 4\nlisa_step_interval: 20\nlisa_layers_attribute: model.layers\n"},
     {"lisa_layers": 4}, []),
    ("a launcher's file beside ms-swift's script", {"run.sh": "accelerate launch --config_file \"./configs/a.json\" swift/cli/sft.py --model Qwen/Qwen2.5-7B "
      "--max_length 2048\n", "a.json": '{"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 1, "fsdp_use_orig_params": false}, "num_processes": 2}'},
     {"parallelism.data": 2, "parallelism.fsdp": "full_shard", "parallelism.fsdp_options.use_orig_params": False,
      "parallelism.fsdp_options.backward_prefetch": "none"}, []),
    ("DeepSpeed by a launcher's file", {"run.sh": "accelerate launch --config_file a.yaml swift/cli/sft.py --model Qwen/Qwen2.5-7B --torch_dtype bfloat16 "
      "--max_length 2048\n", "a.yaml": "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nnum_processes: 4\n"},
     {"precision": "deepspeed_bf16", "parallelism.zero_stage": 3}, []),
    ("FSDP 1 gathers ahead as its file says", {"a.yaml": SHARDED + "fsdp_config:\n  fsdp_backward_prefetch: BACKWARD_PRE\n"},
     {"parallelism.fsdp_options.backward_prefetch": "backward_pre"}, []),
    ("Megatron-SWIFT's fused loss", {"run.sh": "NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen2.5-7B --tensor_model_parallel_size 2 --max_length 2048\n"},
     {"megatron.cross_entropy_fusion_impl": "native", "framework.name": "megatron"}, []),
    ("what of Megatron-SWIFT is not counted is told", {"run.sh": "NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen2.5-7B --max_length 2048 "
      "--recompute_granularity full --recompute_method block --recompute_num_layers 4\n"}, {}, ["NOT_COUNTED"]),
    ("Megatron-SWIFT's optimizer on the host", {"run.sh": "NPROC_PER_NODE=2 megatron rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B --max_length 2048 "
      "--optimizer_cpu_offload true --optimizer_offload_fraction 0.5\n"},
     {"task": "dpo", "offload.optimizer": "cpu", "offload.optimizer_fraction": 0.5}, ["STAND_IN"]),
    ("a script that says in its docstring how it is launched", {"sft.py": LAUNCHED}, {
        "model": "Qwen/Qwen2.5-0.5B", "micro_batch_size": 3, "method": "lora", "parallelism.zero_stage": None}, []),
    ("the same beside a command", {"sft.py": LAUNCHED, "run.sh": "python sft.py --model_name_or_path Qwen/Qwen2.5-1.5B --dtype bfloat16\n"},
     {"model": "Qwen/Qwen2.5-1.5B", "method": "full"}, []),
    ("trainers of TRL's that have no row", {"train.py": "from trl.experimental.sdpo import SDPOConfig, SDPOTrainer\n"
      "SDPOTrainer(model='Qwen/Qwen2.5-0.5B', args=SDPOConfig(output_dir='out')).train()\n"}, {}, ["UNSUPPORTED_OPTION"]),
    ("trainers that nobody has heard of", {"train.py": "from trl.experimental.abc import ABCTrainer\nABCTrainer(model='Qwen/Qwen2.5-0.5B').train()\n"},
     {}, ["INVALID_VALUE"]),
    ("what moves memory and is not modelled", {"a.yaml": SHARDED + "use_eaft: true\nuse_kernels: false\n"}, {"not_counted": ["use_eaft"]},
     ["NOT_COUNTED"]),
    ("Axolotl's list of linear layers has no experts that are parameters", {"a.yaml": SHARDED.replace("Qwen/Qwen2.5-0.5B", "mistralai/Mixtral-8x7B-v0.1")
      + "adapter: lora\nlora_target_linear: true\nlora_dropout: 0.05\nlora_r: 8\n"}, {"framework.name": "axolotl", "use_reentrant": None}, []),
    ("Axolotl's checkpoints beside answers that are compared", {"a.yaml": SHARDED + "rl: dpo\ngradient_checkpointing: true\n"},
     {"framework.name": "axolotl", "use_reentrant": False}, []),
    ("a tower that Axolotl freezes", {"a.yaml": SHARDED.replace("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-VL-3B-Instruct") + "freeze_mm_modules: true\n"},
     {"freeze_vision": True, "freeze_projector": True}, []),
    ("a kernel that Gemma 4's widest heads are too wide for", {"a.yaml": SHARDED.replace("Qwen/Qwen2.5-0.5B", "google/gemma-4-E2B-it")
      + "attn_implementation: flash_attention_2\ngemma4_hybrid_attn_impl: true\n"}, {"attention": "sdpa"}, ["NOT_COUNTED"]),
    ("Megatron-Core's other optimizers", {"run.sh": "megatron sft --model Qwen/Qwen2.5-7B --optimizer dist_muon --max_length 2048 --micro_batch_size 1\n"},
     {"not_counted": ["optimizer dist_muon"]}, ["NOT_COUNTED"]),
    ("DPO with the cross entropy of chosen answers", {"train.py": "from trl import DPOConfig, DPOTrainer\nDPOTrainer(model='Qwen/Qwen2.5-0.5B', "
      "args=DPOConfig(output_dir='out', loss_type=['sigmoid', 'sft'])).train()\n"}, {"task": "dpo"}, ["NOT_COUNTED"]),
    ("pictures of the class beside a subject's", {"run.sh": "accelerate launch train_dreambooth_lora_sdxl.py "
      "--pretrained_model_name_or_path=stabilityai/stable-diffusion-xl-base-1.0 --instance_data_dir=dogs --instance_prompt=dog --train_batch_size=2 "
      "--with_prior_preservation --class_data_dir=class --class_prompt=dog\n"}, {"micro_batch_size": 4}, []),
    ("a reward model beside GRPO", {"run.sh": GRPO + "--max_length 1024 --reward_model Qwen/Qwen2.5-3B-Instruct other/judge --reward_model_plugin genrm mine\n"},
     {"task": "grpo", "reward_model": "Qwen/Qwen2.5-3B-Instruct", "not_counted": ["reward_model, but for the first"]}, ["NOT_COUNTED"]),
    ("TRL's own GRPO script", {"run.sh": "trl grpo --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name trl-lib/tldr --reward_model_name_or_path Qwen/Qwen2.5-1.5B "
      "--max_completion_length 256 --per_device_train_batch_size 8\n"}, {"task": "grpo", "reward_model": "Qwen/Qwen2.5-1.5B"}, []),
    ("models among the functions of a script", {"train.py": "from trl import GRPOConfig, GRPOTrainer\n"
      "from transformers import AutoModelForSequenceClassification\njudge = AutoModelForSequenceClassification.from_pretrained('Qwen/Qwen2.5-1.5B', num_labels=1)\n"
      "args = GRPOConfig(output_dir='out', per_device_train_batch_size=8, max_completion_length=128, bf16=True)\n"
      "GRPOTrainer(model='Qwen/Qwen2.5-0.5B', reward_funcs=[len_reward, judge], args=args, train_dataset=d).train()\n"},
     {"task": "grpo", "reward_model": "Qwen/Qwen2.5-1.5B", "max_completion_length": 128}, []),
    ("a script's powers and texts, its arguments without a trainer in sight", {"train.py": "from trl import DPOConfig\n"
      "from transformers import AutoModelForCausalLM\nname = 'Qwen/Qwen2_5-0_5B'.replace('_', '.')\nmodel = AutoModelForCausalLM.from_pretrained(name)\n"
      "args = DPOConfig(output_dir='out', per_device_train_batch_size=2, max_length=2 * 2 ** 3 ** 2 // 2, bf16=True, fsdp=['full_shard', 'offload'])\n"
      "launch(model, args)\n"},
     {"model": "Qwen/Qwen2.5-0.5B", "task": "dpo", "sequence_length": 512, "parallelism.fsdp": "full_shard", "offload.parameters": "cpu"}, []),
    ("checkpoints as transformers calls them from 5.23 on, of every other layer", {"train.py": "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
      "args = TrainingArguments(output_dir='out', activation_checkpointing=True, activation_checkpointing_kwargs={'every_n_layers': 2, 'use_reentrant': False})\n"
      "Trainer(model=model, args=args, train_dataset=d).train()\n"}, {"gradient_checkpointing": {"every": 2}, "use_reentrant": False}, []),
    ("the same, whose inputs wait in the host's memory", {"train.py": "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
      "args = TrainingArguments(output_dir='out', activation_checkpointing=True, activation_checkpointing_kwargs={'offload': True})\n"
      "Trainer(model=model, args=args, train_dataset=d).train()\n"}, {"gradient_checkpointing": "offload"}, []),
    ("the same in a file of TRL's, where the older name is a default", {"sft.yaml": "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: trl-lib/Capybara\n"
      "learning_rate: 2.0e-4\nper_device_train_batch_size: 2\nmax_length: 512\nactivation_checkpointing: false\n"}, {"gradient_checkpointing": "none"}, []),
    ("and as a flag", {"run.sh": f"accelerate launch train.py {TRL} --activation_checkpointing --bf16\n"}, {"gradient_checkpointing": "full"}, []),
    ("a teacher beside GRPO", {"run.sh": GRPO + "--max_length 1024 --reward_funcs accuracy --teacher_model Qwen/Qwen2.5-32B\n"},
     {"task": "grpo", "teacher_model": "Qwen/Qwen2.5-32B"}, []),
    ("LLaMA-Factory's own loop", {"v1.yaml": "model: Qwen/Qwen3-4B\nmodel_class: llm\npeft_config:\n  name: lora\ntrain_dataset: data/v1_sft_demo.yaml\n"
                                               "micro_batch_size: 1\ncutoff_len: 2048\n"},
     {"framework.name": "llama_factory_v1", "method": "lora", "adapter.r": 8, "adapter.lora_dropout": 0.05, "padding": True,
      "gradient_checkpointing": "full", "optimizer": "adamw_torch", "precision": None}, ["CHOSEN_PRECISION"]),
    ("the same, sharded", {"v1.yaml": "model: Qwen/Qwen3-0.6B\nquant_config: null\ndist_config:\n  name: fsdp2\n  dcp_path: null\n"
      "train_dataset: data/v1_sft_demo.yaml\ndp_size: 2\nmicro_batch_size: 4\ncutoff_len: 2048\n"},
     {"framework.name": "llama_factory_v1", "method": "full", "parallelism.fsdp": "fsdp2", "padding": True, "attention": "sdpa", "micro_batch_size": 4,
      "parallelism.data": 2}, ["EACH_GPU"]),
    ("answers that Axolotl compares by their features", {"a.yaml": SHARDED + "rl: ebft\nadapter: lora\nlora_target_linear: true\nebft:\n  feature_layers: [0.5, 0.75]\n"
      "trl:\n  num_generations: 4\n  max_completion_length: 128\n"},
     {"task": "grpo", "feature_layers": 2, "num_generations": 4, "max_completion_length": 128}, []),
    ("the same where answers begin all over a text", {"a.yaml": SHARDED + "rl: ebft\nebft:\n  mode: strided\n"}, {}, ["UNSUPPORTED_OPTION"]),
    ("LLaMA-Factory's BAdam", {"a.yaml": "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\ndo_train: true\nfinetuning_type: full\nuse_badam: true\n"
      "cutoff_len: 512\nper_device_train_batch_size: 1\ntemplate: qwen\ndataset: identity\noutput_dir: out\n"},
     {"framework.name": "llama_factory", "optimizer": "badam"}, ["CHOSEN_PRECISION"]),
    ("experts on the host", {"a.yaml": KT + "kt_cpu_activation: retain\nkt_config:\n  kt_expert_weight_format: bf16\n  kt_backend: AMXBF16\n"},
     {"moe.implementation": "ktransformers", "use_reentrant": False, "gradient_checkpointing": "full"}, ["STAND_IN"]),
    ("the same in 8 bits", {"a.yaml": KT + "kt_config:\n  kt_expert_weight_format: int8\n  kt_backend: auto\n"},
     {"moe.implementation": "ktransformers_int8"}, ["STAND_IN"]),
    ("experts on the host of a model that KTransformers does not know", {"a.yaml": KT.replace("Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b")},
     {}, ["INVALID_VALUE"]),
    ("quantisation-aware training", {"a.yaml": SHARDED + "bf16: true\nqat:\n  activation_dtype: int8\n  weight_dtype: int4\n  group_size: 64\n  fake_quant_after_n_steps: 1000\n"},
     {"qat.weight_dtype": "int4", "qat.activation_dtype": "int8", "qat.group_size": 64, "not_counted": None}, []),
    ("the same by default, which Axolotl refuses", {"a.yaml": SHARDED + "qat:\n  group_size: 32\n"}, {}, ["UNSUPPORTED_OPTION"]),
    ("Axolotl's GDPO", {"a.yaml": SHARDED + "rl: gdpo\ntrl:\n  num_generations: 4\n  max_completion_length: 256\n"}, {"task": "grpo"}, []),
    ("parameters on the host, the optimizer not", {"ds.json": '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}, '
      '"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1}', "run.sh": f"deepspeed --num_gpus 4 train.py {TRL} --deepspeed ds.json --bf16\n"},
     {"offload.parameters": "cpu", "offload.optimizer": None}, []),
    ("a DeepSpeed configuration's own words", {"ds.json": '{"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "sub_group_size": 1e8, '
      '"overlap_comm": false, "offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme", "buffer_count": 5}}, "bf16": {"enabled": true}}',
      "run.sh": f"deepspeed --num_gpus 4 train.py {TRL} --deepspeed ds.json --bf16\n"},
     {"deepspeed.reduce_bucket_size": "auto", "deepspeed.sub_group_size": 100000000, "deepspeed.overlap_comm": False, "offload.optimizer": "nvme",
      "offload.optimizer_buffer_count": 5}, []),
    ("a DeepSpeed configuration of ZeRO++", {"ds.json": '{"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}, "bf16": {"enabled": true}}',
      "run.sh": f"deepspeed --num_gpus 8 train.py {TRL} --deepspeed ds.json --bf16\n"}, {}, ["UNSUPPORTED_OPTION"]),
    ("ms-swift's YAML in the place of flags", {"run.sh": "NPROC_PER_NODE=2 swift sft examples/job.yaml --max_length 1024\n",
      "job.yaml": "model: Qwen/Qwen2.5-7B\ntuner_type: lora\nlora_rank: 16\nmax_length: 2048\ndeepspeed: zero2\nENV:\n"
                  "  PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'\n"},
     {"model": "Qwen/Qwen2.5-7B", "adapter.r": 16, "sequence_length": 1024, "parallelism.zero_stage": 2, "parallelism.data": 2,
      "allocator.expandable_segments": True}, []),
    ("ms-swift's groups of Ray", {"job.yaml": "rlhf_type: grpo\nmodel: Qwen/Qwen2.5-7B\nmicro_batch_size: 2\nglobal_batch_size: 16\nuse_vllm: true\n"
      "use_ray: true\ncolocate_groups: [[train, rollout]]\nsleep_level: 1\nmax_length: 512\ntrain:\n  gpus: 4\n  tuner_type: lora\nrollout:\n  gpus: 4\n"
      "  vllm_gpu_memory_utilization: 0.4\n"},
     {"framework.name": "megatron", "task": "grpo", "method": "lora", "parallelism.data": 4, "rollout.mode": "colocate",
      "rollout.gpu_memory_utilization": 0.4}, []),
    ("what ms-swift keeps of a job", {"args.json": json.dumps({
        "model": "Qwen/Qwen2.5-7B-Instruct", "model_type": "qwen2_5", "train_type": "lora", "rlhf_type": None, "lora_rank": 16, "modules_to_save": [],
        "freeze_vit": True, "lisa_activated_layers": 0, "max_length": 4096, "quant_bits": None, "torch_dtype": "bfloat16", "local_world_size": 4,
        "global_world_size": 8, "deepspeed": {"zero_optimization": {"stage": 3, "reduce_bucket_size": 1000000, "offload_optimizer": {"device": "cpu"}}}})},
     {"task": "sft", "method": "lora", "adapter.r": 16, "adapter.modules_to_save": None, "lisa_layers": None, "freeze_vision": None,
      "parallelism.data": 8, "parallelism.zero_stage": 3, "deepspeed.reduce_bucket_size": 1000000, "offload.optimizer": "cpu",
      "precision": "deepspeed_bf16"}, []),
    ("an aqlm of another kind than the one that is modelled", {"c.yaml": "model_name_or_path: ISTA-DASLab/Llama-2-7b-AQLM-2Bit-2x8-hf\nstage: sft\n"
      "finetuning_type: full\ntemplate: llama2\ncutoff_len: 512\nbf16: true\n"}, {}, ["NOT_QUANTISED"]),
    ("ms-swift evaluates nothing without samples", {"run.sh": "swift sft --model Qwen/Qwen2.5-7B --per_device_eval_batch_size 4\n"},
     {"evaluation": None}, []),
    ("ms-swift evaluates samples that are split off", {"run.sh": "swift sft --model Qwen/Qwen2.5-7B --per_device_eval_batch_size 4 "
      "--split_dataset_ratio 0.01\n"}, {"evaluation.micro_batch_size": 4}, []),
    ("a tower that the model's name does not tell of", {"run.sh": "swift sft --model Qwen/Qwen3.5-4B --tuner_type full --max_length 2048\n"},
     {"freeze_vision": True, "freeze_projector": True}, []),
    ("ms-swift pads a sequence that GPUs share", {"run.sh": "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B --max_length 65535 "
      "--sequence_parallel_size 4\n"}, {"sequence_length": 65536}, []),
    ("trained copies under Megatron-Core", {"run.sh": "megatron sft --model Qwen/Qwen3-30B-A3B --tuner_type lora --modules_to_save all-embedding "
      "output_layer --max_length 2048 --micro_batch_size 1\n"}, {"adapter.modules_to_save": ["word_embeddings", "output_layer"]}, []),
    ("a launcher's file of TRL's that is not there", {"run.sh": "accelerate launch --config_file examples/accelerate_configs/deepspeed_zero3.yaml "
      f"examples/scripts/sft.py {TRL}\n"}, {"parallelism.zero_stage": 3, "parallelism.data": 8, "precision": "deepspeed_bf16"}, []),
    ("a docstring's launch of a script that names its model", {"train.py": '"""\naccelerate launch --config_file recipes/accelerate_configs/fsdp2.yaml '
      'train.py\n"""\nfrom trl import SFTConfig, SFTTrainer\nSFTTrainer(model="Qwen/Qwen2.5-0.5B", args=SFTConfig(output_dir="out"), '
      "train_dataset=data).train()\n"}, {"model": "Qwen/Qwen2.5-0.5B", "parallelism.fsdp": "fsdp2", "parallelism.data": 8}, []),
    ("a launcher's file that is none of TRL's", {"run.sh": "accelerate launch --config_file examples/accelerate_configs/ddp_2gpu.yaml "
      f"examples/scripts/sft.py {TRL}\n"}, {"parallelism.data": None}, []),
    ("a docstring's launch behind two spaces", {"train.py": '"""\nCUDA_VISIBLE_DEVICES=0,1  accelerate launch --config_file '
      'recipes/accelerate_configs/fsdp2.yaml train.py\n"""\nfrom trl import SFTConfig, SFTTrainer\nSFTTrainer(model="Qwen/Qwen2.5-0.5B", '
      'args=SFTConfig(output_dir="out"), train_dataset=data).train()\n'}, {"parallelism.fsdp": "fsdp2"}, []),
    ("Ray's trainer counts its GPUs whichever group stands first", {"job.yaml": "rlhf_type: grpo\nmodel: Qwen/Qwen2.5-7B\nmicro_batch_size: 2\n"
      "global_batch_size: 16\nuse_vllm: true\nuse_ray: true\nmax_length: 512\nrollout:\n  gpus: 2\ntrain:\n  gpus: 4\n  tuner_type: lora\n"},
     {"parallelism.data": 4}, []),
    ("what ms-swift keeps of a job without samples to evaluate", {"args.json": json.dumps({
        "model": "Qwen/Qwen2.5-7B-Instruct", "model_type": "qwen2_5", "train_type": "lora", "max_length": 4096, "val_dataset": [],
        "split_dataset_ratio": 0.0, "per_device_eval_batch_size": 4, "local_world_size": 1, "global_world_size": 1})},
     {"evaluation": None}, []),
    ("Axolotl's float16 under DeepSpeed", {"c.yml": SHARDED + "bf16: false\nfloat16: true\ndeepspeed: deepspeed_configs/zero2.json\n"},
     {"precision": "deepspeed_fp16"}, []),
    ("Axolotl's float16 is the weights' dtype alone", {"c.yml": SHARDED + "bf16: false\nfp16: false\nfloat16: true\n"}, {"precision": "pure_fp16"}, []),
    ("LLaMA-Factory's words of Megatron-Core", {"c.yaml": "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ntemplate: qwen\n"
      "cutoff_len: 2048\nbf16: true\ntensor_model_parallel_size: 4\nsequence_parallel: true\nuse_distributed_optimizer: true\n"},
     {"parallelism.sequence_parallel": True, "parallelism.zero_stage": 1}, []),
    ("words that a shell ends with a comma", {"run.sh": f"trl sft {TRL} --use_peft --lora_target_modules \"q_proj\", \"v_proj\"\n"},
     {"adapter.target_modules": ["q_proj", "v_proj"]}, []),
    # swift/model/models/gemma.py: LLMModelType.gemma3_text, MLLMModelType.gemma3_vision
    ("a Gemma 3 that reads text alone", {"run.sh": "swift sft --model google/gemma-3-1b-it --tuner_type full --max_length 2048\n"},
     {"freeze": None, "freeze_vision": None, "freeze_projector": None}, []),
    ("a Gemma 3 that sees", {"run.sh": "swift sft --model google/gemma-3-4b-it --tuner_type full --max_length 2048\n"},
     {"freeze_vision": True, "freeze_projector": True}, []),
]
# transformers 5.12 integrations/deepspeed.py HfTrainerDeepSpeedConfig fills in "auto"; swift/sequence_parallel/sequence_parallel.py: pad.
QUESTIONS = [
    ("DeepSpeed's \"auto\" in what ms-swift keeps of a job", {"args.json": json.dumps({
        "model": "Qwen/Qwen2.5-7B-Instruct", "tuner_type": "lora", "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "max_length": 2048,
        "global_world_size": 4, "torch_dtype": "bfloat16", "bf16": True, "optim": "adamw_torch", "deepspeed": {
            "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}, "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
            "train_micro_batch_size_per_gpu": "auto"}})}, ["gpu"], {}),
    ("a length that ms-swift pads", {"run.sh": "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B --max_length 65535 --sequence_parallel_size 4 "
      "--gradient_accumulation_steps 1\n"}, ["gpu"], {"sequence_length": "padded to a multiple of the GPUs that share a sequence"}),
    ("a length that needs no padding", {"run.sh": "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B --max_length 65536 --sequence_parallel_size 4 "
      "--gradient_accumulation_steps 1\n"}, ["gpu"], {"sequence_length": None}),
]
# A card's name that counts, beside ZeRO: as many GPUs.
CARDS = [("8xH100", "EACH_GPU", None), ("H100", None, "EACH_GPU")]


def main() -> int:
    command, checks = sys.argv[1], Checks()

    def run(*arguments: str) -> dict:
        done = subprocess.run([command, *arguments, "--json"], capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout or done.stderr)

    with tempfile.TemporaryDirectory() as name:
        for what, texts, keys, codes in JOBS:
            folder = pathlib.Path(tempfile.mkdtemp(dir=name))
            files = [folder / file for file in texts]
            for file, text in zip(files, texts.values()):
                file.write_text(text, encoding="utf-8")
            exported = subprocess.run([command, "export", "request", *map(str, files)], capture_output=True, text=True, timeout=60)
            job = json.loads(exported.stdout or "{}")
            for path, wanted in keys.items():
                checks.expect(f"{what}: {path}", at(job, path), wanted)
            said = [issue["code"] for issue in run("estimate", *map(str, files))["issues"]]
            checks.expect(what, [code for code in codes if code not in said], [])
        for what, texts, questions, reasons in QUESTIONS:
            folder = pathlib.Path(tempfile.mkdtemp(dir=name))
            for file, text in texts.items():
                (folder / file).write_text(text, encoding="utf-8")
            read = run("import", *(str(folder / file) for file in texts))
            checks.expect(what, read["unknowns"], questions)
            for path, reason in reasons.items():
                checks.expect(f"{what}: {path}", read["assumed"].get(path), reason)
    for card, wanted, unwanted in CARDS:
        answer = run("estimate", "--model", "qwen2.5-7b", "--method", "full", "--parallelism-zero-stage", "3", "--gpu", card)
        said = [issue["code"] for issue in answer["issues"]]
        checks.expect(card, (wanted is None or wanted in said) and unwanted not in said, True)
    print(f"{len(JOBS)} jobs, {len(CARDS)} cards, {checks.failures} wrong")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
