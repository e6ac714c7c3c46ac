#!/usr/bin/env python3
"""What a file says of a job is in the job or told, and what cannot be together is refused as the framework refuses it.

    tests/exchange/check_said.py COMMAND

Expected values are the tools' own: torch 2.14 nn/modules/module.py (parameters, requires_grad_); peft 0.18 (adapters freeze
what is there before them); transformers 5.12 training_args.py (__post_init__: at most one of fp16 and bf16) and
trainer_utils.py (validate_quantization_for_training); axolotl 067b021c utils/schemas/peft.py (validate_adapter); LLaMA-Factory
ff6d4d12 hparams/parser.py; DeepSpeed edaa7221 runtime/config.py; accelerate 1.14 commands/launch.py, utils/dataclasses.py and
state.py (ACCELERATE_MIXED_PRECISION); DeepSpeed 0.18 launcher/runner.py; lightning 2.5.5 fabric/plugins/precision/precision.py,
pytorch/strategies/{fsdp,deepspeed}.py. Parameters are counted by transformers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from checks import Checks, at

HEAD = """import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", dtype=torch.bfloat16{loads})
"""
TAIL = """args = TrainingArguments("out", per_device_train_batch_size=2, bf16=True)
Trainer(model, args, train_dataset=data).train()
"""
LORA = "from peft import LoraConfig, get_peft_model\nmodel = get_peft_model(model, LoraConfig(r=8))\n"


def script(lines: str = "", loads: str = "") -> dict:
    return {"train.py": HEAD.format(loads=loads) + lines + TAIL}


def loop(accelerator: str) -> dict:
    return {"train.py": f"""import torch
from accelerate import Accelerator, DeepSpeedPlugin, FullyShardedDataParallelPlugin
from torch.distributed.fsdp import CPUOffload, ShardingStrategy
from transformers import AutoModelForCausalLM
{accelerator}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
loader = torch.utils.data.DataLoader(data, batch_size=2)
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), loader)
for batch in loader:
    accelerator.backward(model(**batch).loss)
"""}


def lightning(words: str) -> dict:
    return {"train.py": f"""import lightning as L, torch
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy
from transformers import AutoModelForCausalLM
class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
    def training_step(self, batch, at):
        return self.model(**batch).loss
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
trainer = L.Trainer({words})
trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4))
"""}


def pinned(head: str, loads: str = "") -> dict:
    """A script without a dtype under bf16=True, with what it installs."""
    lines = ("import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
             "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B'{loads})\n").format(loads=loads)
    return {"train.py": head + lines + TAIL}


def launch(flags: str, arguments: str = "") -> dict:
    return {"run.sh": f"accelerate launch {flags} train.py --model_name_or_path Qwen/Qwen2.5-7B --max_seq_length 2048 "
                      f"--per_device_train_batch_size 2 {arguments}\n"}


ALL = "for p in model.parameters():\n    p.requires_grad = False\n"
BY_NAME = "for name, p in model.named_parameters():\n    "
AXOLOTL = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 1024\nmicro_batch_size: 1\nlearning_rate: 2e-5\nnum_epochs: 1\noptimizer: adamw_torch\n"
TUNE = ("model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_attn_modules: [q_proj, v_proj]\n  lora_rank: 8\n"
        "  lora_alpha: 16\nbatch_size: 2\ndtype: bf16\ntokenizer:\n  max_seq_len: 2048\noptimizer:\n  _component_: torch.optim.AdamW\n"
        "loss:\n  _component_: torchtune.modules.loss.LinearCrossEntropyLoss\nenable_activation_checkpointing: true\n"
        "checkpointer:\n  _component_: torchtune.training.FullModelHFCheckpointer\n  checkpoint_dir: /tmp/Meta-Llama-3.1-8B-Instruct/\n")
FACTORY = ("model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\ntemplate: qwen\ndataset: identity\n"
           "cutoff_len: 1024\nper_device_train_batch_size: 1\noutput_dir: out\n")
MIXED = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\n"
HEAD_WEIGHTS = 152064 * 3584  # Qwen2.5-7B's lm_head
LAYER = 233057792  # and one of its 28 layers: (7615616512 - 2 * HEAD_WEIGHTS - 3584) / 28

# What is asked; the files; keys of the job; codes among the issues of the estimate; how many parameters are trained.
JOBS = [
    ("all but the head is frozen", script(ALL + "for p in model.lm_head.parameters():\n    p.requires_grad = True\n"),
     {"method": "freeze"}, [], HEAD_WEIGHTS),
    ("by requires_grad_", script("model.requires_grad_(False)\nmodel.lm_head.requires_grad_(True)\n"), {}, [], HEAD_WEIGHTS),
    ("what stands below model is frozen", script("model.model.requires_grad_(False)\n"), {}, [], HEAD_WEIGHTS),
    ("by name", script(BY_NAME + "if 'lm_head' not in name:\n        p.requires_grad = False\n"), {}, [], HEAD_WEIGHTS),
    ("by name, with both sides", script(BY_NAME + "if name.startswith('lm_head'):\n        p.requires_grad = True\n"
                                        "    else:\n        p.requires_grad = False\n"), {}, [], HEAD_WEIGHTS),
    ("by a test that is the value", script(BY_NAME + "p.requires_grad = 'lm_head' in name or 'layers.27.' in name\n"), {}, [],
     HEAD_WEIGHTS + LAYER),
    ("in a function", script("def freeze(part):\n    for p in part.parameters():\n        p.requires_grad = False\n"
                             "freeze(model.model)\n"), {}, [], HEAD_WEIGHTS),
    ("one layer by its number", script(ALL + "for p in model.model.layers[27].parameters():\n    p.requires_grad = True\n"), {}, [],
     LAYER),
    ("what is switched on again", script("model.requires_grad_(False)\nmodel.requires_grad_(True)\n"), {"method": "full"}, [], None),
    ("the last layers, which reading does not count", script(ALL + "for layer in model.model.layers[-2:]:\n"
     "    for p in layer.parameters():\n        p.requires_grad = True\n"), {"method": "freeze", "trainable": None}, ["NOT_SAID"], None),
    ("a copy that is no part of the job", script("other = AutoModelForCausalLM.from_pretrained('gpt2')\nother.requires_grad_(False)\n"),
     {"method": "full"}, [], None),
    ("adapters freeze by themselves", script(ALL + LORA), {"method": "lora", "trainable": None}, [], None),
    ("what is trained beside adapters", script(LORA + "model.base_model.model.lm_head.requires_grad_(True)\n"),
     {"method": "lora", "trainable": ["(^|\\.)lm_head(\\.|$)"]}, [], None),
    ("words that nobody reads", script(loads=", tile_mlp=True"), {}, ["NOT_READ"], None),
    ("bf16 and fp16 in a script", {"train.py": HEAD.format(loads="") + TAIL.replace("bf16=True", "bf16=True, fp16=True")}, {},
     ["INVALID_COMBINATION"], None),
    ("bf16 or fp16 by the card", {"train.py": HEAD.format(loads="") + TAIL.replace(
        "bf16=True", "bf16=torch.cuda.is_bf16_supported(), fp16=not torch.cuda.is_bf16_supported()")}, {"precision": "bf16_amp"}, [], None),
    ("bf16 and fp16 of a command", {"run.sh": "torchrun --nproc_per_node 2 train.py --model_name_or_path Qwen/Qwen2.5-7B "
     "--per_device_train_batch_size 1 --bf16 True --fp16 True\n"}, {}, ["INVALID_COMBINATION"], None),
    ("bf16 and fp16 of ms-swift", {"run.sh": "swift sft --model Qwen/Qwen2.5-7B --max_length 1024 --fp16 true --bf16 true\n"}, {},
     ["INVALID_COMBINATION"], None),
    ("bf16 and fp16 of LLaMA-Factory", {"a.yaml": FACTORY + "finetuning_type: lora\nbf16: true\nfp16: true\n"}, {},
     ["INVALID_COMBINATION"], None),
    ("bf16 and fp16 of DeepSpeed", {"ds.json": '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "fp16": {"enabled": true}}',
     **script()}, {}, ["INVALID_COMBINATION"], None),
    ("4 bits and 8", script(LORA, ", quantization_config=BitsAndBytesConfig(load_in_4bit=True, load_in_8bit=True)"), {},
     ["INVALID_COMBINATION"], None),
    ("4 bits and 8 in Axolotl", {"a.yaml": AXOLOTL + "load_in_4bit: true\nload_in_8bit: true\nadapter: lora\n"}, {}, ["INVALID_COMBINATION"], None),
    ("torch's Adam, and a batch by its place", {"train.py": HEAD.format(loads="") + "loader = torch.utils.data.DataLoader(data, 3)\n"
     "optimizer = torch.optim.Adam(model.lm_head.parameters())\nfor batch in loader:\n    model(**batch).loss.backward()\n"},
     {"micro_batch_size": 3, "optimizer": "adamw_torch"}, ["NOT_SAID"], None),
    ("what LoraConfig says of single modules", script("from peft import LoraConfig, get_peft_model\nmodel = get_peft_model(model, LoraConfig(r=8, "
     "target_modules=['q_proj'], rank_pattern={'q_proj': 64}, layers_to_transform=[0, 1]))\n"),
     {"adapter.rank_pattern": {"q_proj": 64}, "adapter.layers_to_transform": [0, 1]}, [], None),
    ("packed weights alone in a script", script(loads=", load_in_4bit=True"), {}, ["INVALID_COMBINATION"], None),
    ("packed weights with an adapter", script(LORA, ", load_in_4bit=True"), {"method": "qlora"}, [], None),
    ("packed weights alone in Axolotl", {"a.yaml": AXOLOTL + "load_in_4bit: true\nadapter:\n"}, {}, ["INVALID_COMBINATION"], None),
    ("packed weights alone in LLaMA-Factory", {"a.yaml": FACTORY + "finetuning_type: full\nquantization_bit: 4\nbf16: true\n"}, {},
     ["INVALID_COMBINATION"], None),
    ("packed weights alone in ms-swift", {"run.sh": "swift sft --model Qwen/Qwen2.5-7B --tuner_type full --quant_bits 4 "
     "--quant_method bnb --max_length 1024\n"}, {}, ["INVALID_COMBINATION"], None),
    ("FSDP by a launcher's flags", launch("--num_processes 4 --mixed_precision bf16 --use_fsdp --fsdp_sharding_strategy 2 "
                                          "--fsdp_offload_params true"),
     {"parallelism.data": 4, "parallelism.fsdp": "shard_grad_op", "offload.parameters": "cpu"}, ["EACH_GPU"], None),
    ("FSDP 2 by them", launch("--num_processes 4 --use_fsdp --fsdp_version 2", "--bf16"), {"parallelism.fsdp": "fsdp2"}, [], None),
    ("FSDP's flags without --use_fsdp", launch("--num_processes 4 --fsdp_sharding_strategy 2", "--bf16"), {"parallelism.fsdp": None},
     ["NOT_READ"], None),
    ("ZeRO by them, which counts stage 2", launch("--num_processes 4 --use_deepspeed", "--bf16"),
     {"parallelism.zero_stage": 2, "precision": "deepspeed_bf16"}, [], None),
    ("ZeRO-3 with the optimizer on the host", launch("--num_processes 8 --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu "
     "--mixed_precision bf16"), {"parallelism.zero_stage": 3, "offload.optimizer": "cpu", "precision": "deepspeed_bf16"}, [], None),
    ("a launcher's fp16", launch("--num_processes 2 --mixed_precision fp16"), {"precision": "amp_fp16"}, [], None),
    ("GPUs that DeepSpeed includes", {"run.sh": "deepspeed --include localhost:1,3,5 train.py --model_name_or_path Qwen/Qwen2.5-7B "
     "--per_device_train_batch_size 1 --bf16\n"}, {"parallelism.data": 3}, [], None),
    ("two trainings in one script", {"run.sh": "python sft.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --bf16\n"
     "python dpo.py --model_name_or_path Qwen/Qwen2.5-14B --per_device_train_batch_size 1 --bf16\n"}, {}, ["AS_READ"], None),
    ("LLaMA-Factory's words as flags", {"run.sh": "export CUDA_VISIBLE_DEVICES=0,1,2,3\nllamafactory-cli train --stage sft --do_train True "
     "--model_name_or_path Qwen/Qwen2.5-7B --finetuning_type lora --lora_rank 16 --template qwen --dataset identity --cutoff_len 2048 "
     "--per_device_train_batch_size 2 --bf16 True --quantization_bit 4\n"},
     {"method": "qlora", "adapter.r": 16, "sequence_length": 2048, "micro_batch_size": 2, "parallelism.data": 4,
      "gradient_checkpointing": "full", "framework.name": "llama_factory"}, ["EACH_GPU"], None),
    ("LLaMA-Factory's script by torchrun", {"run.sh": "torchrun --nproc_per_node 8 src/train.py --stage dpo --do_train "
     "--model_name_or_path Qwen/Qwen2.5-7B --finetuning_type full --template qwen --dataset dpo --cutoff_len 1024 --bf16 "
     "--per_device_train_batch_size 1 --deepspeed examples/deepspeed/ds_z3_config.json\n"},
     {"task": "dpo", "method": "full", "parallelism.data": 8, "parallelism.zero_stage": 3}, [], None),
    ("LLaMA-Factory's processes", {"run.sh": "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train a.yaml\n",
                                   "a.yaml": FACTORY + "finetuning_type: lora\nbf16: true\n"}, {"parallelism.data": 16, "method": "lora"}, [], None),
    ("a second document", {"a.yaml": FACTORY + "finetuning_type: lora\nbf16: true\n---\n" + FACTORY + "finetuning_type: full\n"},
     {"method": "lora"}, ["AS_READ"], None),
    ("a document between its marks", {"a.yaml": "---\n" + FACTORY + "finetuning_type: lora\nbf16: true\n...\n"}, {"method": "lora"}, [], None),
    ("a second trainer", {"train.py": HEAD.format(loads="") + "args = TrainingArguments('out', bf16=True)\n"
     "other = AutoModelForCausalLM.from_pretrained('gpt2')\nTrainer(other, args).train()\nTrainer(model, args).train()\n"},
     {"model": "Qwen/Qwen2.5-7B"}, ["AS_READ"], None),
    ("a loop that says no batch", {"train.py": HEAD.format(loads="") + "for batch in data:\n    model(**batch).loss.backward()\n"},
     {"micro_batch_size": None}, ["NOT_SAID"], None),
    ("an Accelerator's FSDP", loop("plugin = FullyShardedDataParallelPlugin(sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, "
     "cpu_offload=CPUOffload(offload_params=True))\naccelerator = Accelerator(mixed_precision='bf16', fsdp_plugin=plugin)"),
     {"parallelism.fsdp": "shard_grad_op", "offload.parameters": "cpu", "precision": "amp_bf16"}, ["ASSUMED_GPUS"], None),
    ("an Accelerator's ZeRO", loop("plugin = DeepSpeedPlugin(zero_stage=3, offload_param_device='cpu', gradient_accumulation_steps=4)\n"
     "accelerator = Accelerator(mixed_precision='bf16', deepspeed_plugin=plugin)"),
     {"parallelism.zero_stage": 3, "offload.parameters": "cpu", "precision": "deepspeed_bf16", "gradient_accumulation_steps": 4},
     ["ASSUMED_GPUS"], None),
    ("a plugin that no Accelerator is handed", loop("plugin = DeepSpeedPlugin(zero_stage=3)\naccelerator = Accelerator()"),
     {"parallelism.zero_stage": None, "precision": "fp32"}, [], None),
    ("a launcher's mixed precision beside a loop", {**loop("accelerator = Accelerator()"), "a.yaml": MIXED},
     {"precision": "amp_bf16", "parallelism.data": 4}, [], None),
    ("torch's own FSDP", {"train.py": HEAD.format(loads="") + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
     "model = FSDP(model)\nmodel(**batch).loss.backward()\n"}, {"parallelism.fsdp": "full_shard"}, ["ASSUMED_GPUS"], None),
    ("DeepSpeed's engine", {"train.py": "import deepspeed\n" + HEAD.format(loads="") + "engine, *_ = deepspeed.initialize(model=model, "
     "config={'train_micro_batch_size_per_gpu': 4, 'bf16': {'enabled': True}, 'zero_optimization': {'stage': 3, 'offload_optimizer': "
     "{'device': 'cpu'}}})\nengine.backward(engine(**batch).loss)\n"}, {"parallelism.zero_stage": 3, "offload.optimizer": "cpu",
     "micro_batch_size": 4, "precision": "deepspeed_bf16"}, [], None),
    ("DeepSpeed's keys in TrainingArguments", {"train.py": HEAD.format(loads="") + TAIL.replace("bf16=True", "bf16=True, deepspeed={'bf16': "
     "{'enabled': 'auto'}, 'zero_optimization': {'stage': 2, 'offload_optimizer': {'device': 'cpu'}}, 'train_micro_batch_size_per_gpu': 'auto'}")},
     {"parallelism.zero_stage": 2, "offload.optimizer": "cpu", "precision": "deepspeed_bf16", "micro_batch_size": 2}, [], None),
    ("Lightning's FSDP", lightning("devices=4, num_nodes=2, strategy='fsdp', precision='bf16-mixed', accumulate_grad_batches=8, "
                                   "gradient_clip_val=0.5"),
     {"parallelism.data": 8, "parallelism.fsdp": "full_shard", "precision": "amp_bf16", "gradient_accumulation_steps": 8,
      "max_grad_norm": 0.5}, ["EACH_GPU"], None),
    ("Lightning's ZeRO", lightning("devices=[0, 1], strategy='deepspeed_stage_3_offload', precision='bf16-mixed'"),
     {"parallelism.data": 2, "parallelism.zero_stage": 3, "offload.optimizer": "cpu", "offload.parameters": "cpu",
      "precision": "deepspeed_bf16"}, ["EACH_GPU"], None),
    ("Lightning's strategy made in place", lightning("devices=2, strategy=DeepSpeedStrategy(stage=2, offload_optimizer=True), precision='bf16-mixed'"),
     {"parallelism.zero_stage": 2, "offload.optimizer": "cpu", "offload.parameters": None}, [], None),
    ("Lightning in bf16 throughout", lightning("devices=1, precision='bf16-true'"), {"precision": "pure_bf16", "parallelism.data": 1}, [], None),
    ("Lightning says no GPUs", lightning("precision=16"), {"precision": "amp_fp16", "parallelism.data": None}, ["NOT_SAID"], None),
    ("activations that TRL keeps on the host", {"train.py": "from trl import SFTConfig, SFTTrainer\nSFTTrainer('Qwen/Qwen2.5-0.5B', "
     "args=SFTConfig(activation_offloading=True, padding_free=True), train_dataset=data).train()\n"},
     {"activation_offloading": True, "padding_free": True}, [], None),
    ("Unsloth's vLLM", {"train.py": "from unsloth import FastLanguageModel\nfrom trl import GRPOConfig, GRPOTrainer\n"
     "model, tokenizer = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-7B', max_seq_length=1024, fast_inference=True, gpu_memory_utilization=0.6)\n"
     "model = FastLanguageModel.get_peft_model(model, r=16)\nGRPOTrainer(model=model, args=GRPOConfig(use_vllm=True, "
     "per_device_train_batch_size=8, max_completion_length=512)).train()\n"},
     {"rollout.mode": "colocate", "rollout.gpu_memory_utilization": 0.6}, [], None),
    # transformers 5.12 trainer_utils.py: FSDPOption.HYBRID_SHARD.
    ("the Trainer's hybrid shards", {"train.py": HEAD.format(loads="") + "args = TrainingArguments('out', bf16=True, "
     "fsdp='hybrid_shard auto_wrap', per_device_train_batch_size=1)\nTrainer(model, args, train_dataset=data).train()\n"},
     {"parallelism.fsdp": "hybrid_shard"}, [], None),
    # unsloth 2026.10.9 models/_utils.py: SUPPORTS_BFLOAT16: half precision follows the card, which the engine knows.
    ("unsloth by the card", {"train.py": "from unsloth import FastLanguageModel, is_bfloat16_supported\n"
     "from trl import SFTConfig, SFTTrainer\n"
     "model, tokenizer = FastLanguageModel.from_pretrained('unsloth/Llama-3.2-1B', max_seq_length=2048, load_in_4bit=True)\n"
     "model = FastLanguageModel.get_peft_model(model, r=16)\nSFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, "
     "fp16=not is_bfloat16_supported(), bf16=is_bfloat16_supported())).train()\n"},
     {"precision": None}, ["CHOSEN_PRECISION"], None),
    # axolotl 067b021c cli/utils/args.py; torchtune 0.6 config/_parse.py: what the command says goes over the file.
    ("words behind axolotl train", {"c.yml": AXOLOTL + "adapter: lora\nlora_r: 8\nlora_target_linear: true\n",
     "run.sh": "axolotl train c.yml --micro-batch-size 8 --sequence-len 4096 --lora-r 32\n"},
     {"micro_batch_size": 8, "sequence_length": 4096, "adapter.r": 32}, [], None),
    ("words behind tune run", {"c.yaml": TUNE, "run.sh": "tune run --nproc_per_node 2 lora_finetune_distributed --config c.yaml "
     "batch_size=8 model.lora_rank=64 compile=True\n"},
     {"micro_batch_size": 8, "adapter.r": 64, "parallelism.data": 2, "framework.name": "torchtune"}, ["NOT_READ"], None),
    # unsloth 2026.10.9 models/loader.py: from_pretrained: "disabling LoRA / QLoRA".
    ("unsloth's full fine-tuning", {"train.py": "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\n"
     "model, tokenizer = FastLanguageModel.from_pretrained('unsloth/Qwen3-0.6B', max_seq_length=1024, full_finetuning=True, "
     "qat_scheme='int8-int4')\nSFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2)).train()\n"},
     {"method": "full", "quantization": None}, ["NOT_COUNTED"], 596049920),
    # unsloth 2026.10.9 models/sentence_transformer.py: from_pretrained(load_in_4bit=False, use_gradient_checkpointing=False).
    ("unsloth's sentences", {"train.py": "from unsloth import FastSentenceTransformer\n"
     "from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses\n"
     "model = FastSentenceTransformer.from_pretrained('sentence-transformers/all-MiniLM-L6-v2', max_seq_length=256)\n"
     "model = FastSentenceTransformer.get_peft_model(model, r=32, lora_alpha=64, target_modules=['query', 'key'], task_type='FEATURE_EXTRACTION')\n"
     "SentenceTransformerTrainer(model=model, args=SentenceTransformerTrainingArguments(per_device_train_batch_size=64), train_dataset=data, "
     "loss=losses.MultipleNegativesRankingLoss(model)).train()\n"},
     {"method": "lora", "quantization": None, "adapter.r": 32, "adapter.target_modules": ["query", "key"], "gradient_checkpointing": "none"}, ["ASSUMED_DEFAULT"],
     6 * 2 * 32 * (384 + 384)),
    # transformers 5.0 modeling_utils.py: from_pretrained: dtype "auto"; fp32 before. PEP 440 and 723 say what is installed.
    ("no release", pinned(""), {"precision": "amp_bf16", "framework": None}, ["ASSUMED_DEFAULT"], None),
    ("a release of transformers 4", pinned("import os\nos.system('pip install -q transformers==4.46.3 peft==0.13.2')\n"),
     {"precision": "amp_bf16", "framework.version": "4.46.3", "framework.peft": "0.13.2"}, [], None),
    ("an image's packages", pinned("image = image.pip_install(\n    'torch==2.9',\n    'transformers==5.2.0',\n)\n"),
     {"precision": "bf16", "framework.version": "5.2.0"}, ["CHOSEN_PRECISION"], None),
    ("dependencies in the script's head", pinned("# /// script\n# dependencies = [\n#   'transformers>=4.40,<4.46',\n# ]\n# ///\n"),
     {"framework.version": "4.45"}, [], None),
    ("the newest release is let in", pinned("# /// script\n# dependencies = ['transformers>=5.2']\n# ///\n"),
     {"precision": "bf16", "framework.version": "5.24"}, [], None),
    ("a release with a dtype", pinned("import os\nos.system('pip install transformers<5')\n", ", torch_dtype=torch.float32"),
     {"precision": "amp_bf16", "framework.version": "4.57"}, [], None),
    ("requirements beside a script", {**pinned(""), "requirements.txt": "torch==2.9\n# transformers==4.1\ntransformers[torch]==5.1.0 ; python_version > '3.9'\n"},
     {"precision": "bf16", "framework.version": "5.1.0"}, ["CHOSEN_PRECISION"], None),
    ("a commit of transformers in a shell", {**pinned(""), "run.sh": "pip install git+https://github.com/huggingface/transformers@v4.49.0-Gemma-3\n"
     "torchrun --nproc_per_node 1 train.py\n"}, {"framework.version": "4.49.0"}, [], None),
    ("words that install nothing", pinned("# pip install transformers==4.30\nprint('not with transformers==4.30')\n"
     "import os\nos.system('pip install sentence-transformers==2.2')\n"), {"framework": None}, [], None),
    ("fp16 of DeepSpeed's engine", {"train.py": HEAD.format(loads="") + "args = TrainingArguments('out', fp16=True, deepspeed='ds.json', "
     "per_device_train_batch_size=1)\nTrainer(model, args, train_dataset=data).train()\n",
     "ds.json": json.dumps({"fp16": {"enabled": True}, "zero_optimization": {"stage": 2}})},
     {"precision": "deepspeed_fp16"}, [], 7615616512),
]


def main() -> int:
    command, checks = sys.argv[1], Checks()

    with tempfile.TemporaryDirectory() as name:
        for what, texts, keys, codes, trained in JOBS:
            folder = pathlib.Path(tempfile.mkdtemp(dir=name))
            for file, text in texts.items():
                (folder / file).write_text(text, encoding="utf-8")
            files = [str(folder / file) for file in texts]
            exported = subprocess.run([command, "export", "request", *files], capture_output=True, text=True, timeout=60)
            job = json.loads(exported.stdout or "{}")
            for path, wanted in keys.items():
                checks.expect(f"{what}: {path}", at(job, path), wanted)
            done = subprocess.run([command, "estimate", *files, "--gpu", "H100", "--json"], capture_output=True, text=True, timeout=60)
            answer = json.loads(done.stdout or done.stderr)
            said = [issue["code"] for issue in answer["issues"]]
            checks.expect(what, [code for code in codes if code not in said], [])
            checks.expect(f"{what}: refused", "estimate" not in answer, "INVALID_COMBINATION" in codes)
            if trained is not None:
                checks.expect(f"{what}: trained", at(answer, "estimate.parameters.trainable"), trained)
    # null is one of the words for no prefetch, and of a length none at all.
    request = {"schema": 1, "model": "qwen2.5-7b", "sequence_length": None,
               "parallelism": {"data": 2, "fsdp": "full_shard", "fsdp_options": {"backward_prefetch": None}}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        done = subprocess.run([command, "export", "request", file.name], capture_output=True, text=True, timeout=60)
    job = json.loads(done.stdout or "{}")
    checks.expect("null", (job.get("parallelism", {}).get("fsdp_options"), "sequence_length" in job), ({"backward_prefetch": None}, False))
    for card in ("-2xH100", "-24GB"):  # less than nothing
        done = subprocess.run([command, "estimate", "--model", "qwen2.5-7b", f"--gpu={card}", "--json"], capture_output=True, text=True,
                              timeout=60)
        checks.expect(card, [issue["code"] for issue in json.loads(done.stdout or done.stderr)["issues"]][:1], ["UNKNOWN_GPU"])
    print(f"{len(JOBS)} jobs, {checks.failures} wrong")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
