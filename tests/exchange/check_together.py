#!/usr/bin/env python3
"""What is started together is one job: a command, the program and the file of flags that it names, the cells of a notebook.
And what a program says of adapters, lengths, batches and pictures in ways of its own.

    tests/exchange/check_together.py COMMAND

Expected values are the tools' own: trl 1.9 scripts/utils.py (TrlParser: --config, over which flags go) and the max_length of
its configurations; transformers 5.12 hf_argparser.py (a YAML file as the one argument); peft 5d602fdb tuners.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from checks import Checks, at

PROGRAM = '''"""
accelerate launch train.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 7 --packing
"""
from transformers import AutoModelForCausalLM
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config
args, model_args = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, torch_dtype=model_args.torch_dtype)
SFTTrainer(model=model, args=args, train_dataset=data, peft_config=get_peft_config(model_args)).train()
'''
RECIPE = """model_name_or_path: Qwen/Qwen2.5-1.5B
torch_dtype: bfloat16
bf16: true
per_device_train_batch_size: 3
gradient_accumulation_steps: 4
gradient_checkpointing: true
max_length: 768
use_peft: true
lora_r: 24
"""
RUN = {"model": "Qwen/Qwen2.5-1.5B", "micro_batch_size": 3, "sequence_length": 768, "method": "lora", "adapter.r": 24, "packing": None}


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]})


def adapted(configuration: str) -> str:
    return f"""from peft import {configuration.split("(")[0]}, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = get_peft_model(AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B"), {configuration})
Trainer(model, TrainingArguments("out", per_device_train_batch_size=2), train_dataset=data).train()
"""


SUMMARIES = """from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments
def main():
    max_length = 96
    def prepare(rows):
        parts = tokenizer(rows["text"], max_length=max_length, truncation=True)
        parts["labels"] = tokenizer({labels}, max_length=8, truncation=True)["input_ids"]
        return parts
    model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
    Seq2SeqTrainer(model, Seq2SeqTrainingArguments("out"), train_dataset=data.map(prepare)).train()
main()
"""
PICTURES = """from transformers import AutoModelForImageTextToText
from trl import SFTConfig, SFTTrainer
model = AutoModelForImageTextToText.from_pretrained("Qwen/Qwen2-VL-2B-Instruct")
def collate(rows):
    return processor(text=[row["text"] for row in rows], images=[row["image"] for row in rows], padding=True{cut})
SFTTrainer(model=model, args=SFTConfig("out"), train_dataset=data, data_collator=collate).train()
"""
UNSLOTH = """from unsloth import FastLanguageModel, FastModel
from transformers import AutoModelForSequenceClassification, WhisperForConditionalGeneration
from trl import {kind}Config, {kind}Trainer
model, tokenizer = {load}
{kind}Trainer(model=model, args={kind}Config("out"{words}), train_dataset=data, reward_funcs=[score]).train()
"""
FAST = 'FastLanguageModel.from_pretrained("unsloth/Llama-3.2-1B-Instruct", max_seq_length=2048, load_in_4bit=False)'
# What it is, the files in a folder, those that are handed over, what the job must say, codes that the answer must have.
JOBS = [
    ("a command that names a file of flags", {"run.sh": "accelerate launch --num_processes 2 train.py --config recipe.yaml\n",
     "train.py": PROGRAM, "recipe.yaml": RECIPE}, ["run.sh"], {**RUN, "parallelism.data": 2, "gradient_accumulation_steps": 4}, []),
    ("flags beside that file", {"run.sh": "torchrun --nproc_per_node 2 train.py --config recipe.yaml --gradient_accumulation_steps=5\n",
     "train.py": PROGRAM, "recipe.yaml": RECIPE}, ["run.sh"], {**RUN, "gradient_accumulation_steps": 5}, []),
    ("a file of flags as the one argument", {"run.sh": "python train.py recipe.yaml\n", "train.py": PROGRAM, "recipe.yaml": RECIPE},
     ["run.sh"], RUN, []),
    ("a recipe beside the program, whose docstring starts another model", {"train.py": PROGRAM, "recipe.yaml": RECIPE},
     ["train.py", "recipe.yaml"], RUN, []),
    ("a command whose file is not there", {"run.sh": "accelerate launch train.py --config elsewhere.yaml\n", "train.py": PROGRAM},
     ["run.sh"], {"model": None}, ["MISSING_MODEL"]),
    ("the docstring where nothing else is handed over", {"train.py": PROGRAM}, ["train.py"],
     {"model": "Qwen/Qwen2.5-0.5B", "micro_batch_size": 7}, []),
    ("a notebook that starts a program", {"train.ipynb": notebook("!pip install transformers==4.53.0 peft", 'name = "Qwen/Qwen2.5-1.5B"\nrows = 3',
     "import os\n!torchrun --nproc_per_node 2 train.py \\\n  --model_name_or_path {name} \\\n  --per_device_train_batch_size $rows\n"),
     "train.py": PROGRAM}, ["train.ipynb"], {"model": "Qwen/Qwen2.5-1.5B", "micro_batch_size": 3, "parallelism.data": 2,
     "framework.version": "4.53.0"}, []),
    ("a notebook that writes what it starts", {"train.ipynb": notebook(f"%%writefile work/train.py\n{PROGRAM}", f"%%writefile recipe.yaml\n{RECIPE}",
     "%%bash\ncd work\npython train.py --config ../recipe.yaml")}, ["train.ipynb"], RUN, []),
    ("a notebook that loads its model", {"train.ipynb": notebook(adapted("LoraConfig(r=4)"), "!python evaluate.py --model_name_or_path gpt2")},
     ["train.ipynb"], {"model": "Qwen/Qwen2.5-0.5B", "adapter.r": 4}, []),
    ("a notebook whose model is elsewhere", {"train.ipynb": notebook("!python -m pip install peft", adapted("LoraConfig(r=4)").replace(
     '"Qwen/Qwen2.5-0.5B"', '"./models/mine"'))}, ["train.ipynb"], {"model": None, "micro_batch_size": 2, "adapter.r": 4}, ["MISSING_MODEL"]),
    ("an adapter that LoRA stands for", {"train.py": adapted("RandLoraConfig(r=4, target_modules=['q_proj'])")}, ["train.py"],
     {"method": "lora", "adapter.r": 4, "adapter.target_modules": ["q_proj"]}, ["NOT_COUNTED"]),
    ("an adapter for which nothing stands", {"train.py": adapted("OSFConfig()")}, ["train.py"], {"method": "lora"}, ["INVALID_VALUE"]),
    ("the adapter of the model that is trained", {"train.py": adapted("LoraConfig(r=4)") + "other = get_peft_model(model, LoraConfig(r=9))\n"},
     ["train.py"], {"adapter.r": 4}, []),
    ("its folder", {"adapter_config.json": json.dumps({"peft_type": "FOURIERFT", "base_model_name_or_path": "Qwen/Qwen2.5-0.5B",
     "target_modules": ["q_proj"]})}, ["adapter_config.json"], {"method": "lora"}, ["NOT_COUNTED"]),
    ("the length of other configurations of TRL's", {"train.py": "from trl import ORPOConfig, ORPOTrainer\n"
     "ORPOTrainer(model='Qwen/Qwen2.5-0.5B', args=ORPOConfig('out'), train_dataset=data).train()\n"}, ["train.py"], {"sequence_length": 1024}, []),
    ("labels by a call of their own", {"train.py": SUMMARIES.format(labels='rows["summary"]')}, ["train.py"],
     {"sequence_length": 96, "decoder_sequence_length": 8}, []),
    ("labels by text_target", {"train.py": SUMMARIES.format(labels='text_target=rows["summary"]')}, ["train.py"],
     {"sequence_length": 96, "decoder_sequence_length": 8}, []),
    ("a batch in a dictionary", {"train.py": "import torch\nfrom transformers import AutoModelForCausalLM\n"
     "class Work:\n    def __init__(self, config, model):\n        self.size = config.get('batch_size')\n    def loader(self):\n"
     "        return torch.utils.data.DataLoader(data, batch_size=self.size)\nconfig = {'epochs': 2, 'batch_size': 6}\n"
     "work = Work(config, AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B'))\nfit(work).backward()\n"}, ["train.py"],
     {"micro_batch_size": 6}, []),
    ("pictures by the processor", {"train.py": PICTURES.format(cut="")}, ["train.py"], {"images_per_sample": 1}, []),
    ("pictures beside texts that are cut short", {"train.py": PICTURES.format(cut=", truncation=True, max_length=256")}, ["train.py"],
     {"images_per_sample": None, "sequence_length": 256}, []),
    ("a file of the program's own words", {"run.sh": "python train.py --config own.yaml\n", "own.yaml": "epochs: 3\nrows: 5\n",
     "train.py": adapted("LoraConfig(r=4)")}, ["run.sh"], {"model": "Qwen/Qwen2.5-0.5B", "adapter.r": 4}, ["UNKNOWN_FORMAT"]),
    ("the words that bits are packed in", {"train.py": """import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer
packed = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_storage=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", quantization_config=packed, dtype=torch.bfloat16)
SFTTrainer(model=model, args=SFTConfig("out"), train_dataset=data, peft_config=LoraConfig(r=8)).train()
"""}, ["train.py"], {"quantization.quant_storage": "bfloat16", "method": "qlora"}, []),
    ("and a command's", {"run.sh": "accelerate launch --use_fsdp --num_processes 2 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --use_peft_lora True "
     "--use_4bit_quantization True --bnb_4bit_quant_storage_dtype bfloat16 --bf16 True --lora_r 8 --per_device_train_batch_size 2\n"}, ["run.sh"],
     {"quantization.quant_storage": "bfloat16", "precision": "bf16_amp", "method": "qlora"}, []),
    ("vLLM on a card of its own", {"grpo.yaml": RECIPE + "use_vllm: true\nvllm_device: auto\nnum_generations: 3\n"}, ["grpo.yaml"],
     {"task": "grpo", "rollout.mode": "server"}, []),
    ("Unsloth's defaults of TRL's words", {"train.py": UNSLOTH.format(kind="SFT", load=FAST, words="")}, ["train.py"],
     {"micro_batch_size": 4, "gradient_accumulation_steps": 2, "optimizer": "adamw_8bit", "sequence_length": 2048}, []),
    ("a batch that Unsloth makes a group", {"train.py": UNSLOTH.format(kind="GRPO", load=FAST, words=", per_device_train_batch_size=1, "
     "gradient_accumulation_steps=3, num_generations=4, max_prompt_length=64")}, ["train.py"],
     {"micro_batch_size": 4, "num_generations": 4, "reference_model": None}, []),
    ("groups that a step fills", {"train.py": UNSLOTH.format(kind="GRPO", load=FAST, words=", per_device_train_batch_size=1, "
     "gradient_accumulation_steps=4, num_generations=4, beta=0.1")}, ["train.py"], {"micro_batch_size": 1, "reference_model.present": True}, []),
    ("a class in the place of Unsloth's", {"train.py": UNSLOTH.format(kind="SFT", words="", load='FastModel.from_pretrained('
     '"unsloth/ModernBERT-base", auto_model=AutoModelForSequenceClassification, full_finetuning=True)')}, ["train.py"],
     {"task": "classification", "architecture": "ModernBertForSequenceClassification"}, []),
    ("speech to text", {"train.py": UNSLOTH.format(kind="SFT", words="", load='FastModel.from_pretrained('
     '"unsloth/whisper-small", auto_model=WhisperForConditionalGeneration, full_finetuning=True)')}, ["train.py"],
     {"task": "seq2seq"}, []),
    ("no length", {"train.py": adapted("LoraConfig(r=4)").replace("Qwen/Qwen2.5-0.5B", "gpt2")}, ["train.py"],
     {"sequence_length": None}, ["ASSUMED_DEFAULT"]),
]


def main() -> int:
    command, checks = sys.argv[1], Checks()
    with tempfile.TemporaryDirectory() as name:
        for what, texts, given, keys, codes in JOBS:
            folder = pathlib.Path(tempfile.mkdtemp(dir=name))
            for file, text in texts.items():
                (folder / file).write_text(text, encoding="utf-8")
            files = [str(folder / file) for file in given]
            run = [[command, "import", *files, "--json"], [command, "estimate", *files, "--gpu", "H100", "--json"]]
            read, answer = (json.loads(done.stdout or done.stderr) for done in
                            (subprocess.run(one, capture_output=True, text=True, timeout=60) for one in run))
            for path, wanted in keys.items():
                checks.expect(f"{what}: {path}", at(read["request"], path), wanted)
            said = [issue["code"] for issue in answer["issues"]]
            checks.expect(what, [code for code in codes if code not in said], [])
            refused = "estimate" not in answer
            checks.expect(f"{what}: refused", refused, any(code in ("MISSING_MODEL", "INVALID_VALUE") for code in codes))
            places = [place["file"] for origins in read["provenance"].values() for place in origins]
            checks.expect(f"{what}: places", [place for place in places if "(commands)" in str(place)], [])
    print(f"{len(JOBS)} jobs, {checks.failures} wrong")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
