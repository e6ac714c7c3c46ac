#!/usr/bin/env python3
"""packed_jobs.py > jobs.jsonl     LoRA beside weights of GPTQ, AWQ, HQQ, quanto, torchao and AQLM (recorder/packed.py), for records-quantised.jsonl

Of each library's layers plain jobs, and drawn ones over models, precisions, checkpointing, bits, groups and batches."""
import copy
import json
import random

from adapter_jobs import LLAMA, QWEN2

SMALL = {"num_hidden_layers": 3, "vocab_size": 4096}
MISTRAL = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "hidden_size": 768, "intermediate_size": 2560, "num_hidden_layers": 4,
           "num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 8000, "max_position_embeddings": 4096,
           "sliding_window": None, "tie_word_embeddings": False}
MODELS = {"llama": {**LLAMA, **SMALL}, "qwen2": {**QWEN2, **SMALL}, "mistral": MISTRAL}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# what PEFT 0.18's all-linear would mean if it found these layers, attention alone, and a few
TARGETS = (ALL, ALL, ["q_proj", "v_proj"], ["o_proj", "down_proj"])
TOKENS = ((1, 512), (1, 1000), (1, 1024), (2, 512), (2, 768), (3, 640), (1, 1536))
CHECKPOINTING = ({"gradient_checkpointing": "none"}, {"gradient_checkpointing": "full", "use_reentrant": False},
                 {"gradient_checkpointing": "full", "use_reentrant": True})
HALF = ("fp16", "fp16_amp", "fp16_bf16_amp")           # what AWQ makes of bf16 weights is fp16
BOTH = ("fp16", "bf16", "fp16_amp", "bf16_amp")
LIBRARIES = {
    "gptqmodel": {"kind": "gptq", "bits": (4, 4, 8, 2, 3), "groups": (128, 64, 32, -1), "precisions": (*BOTH, "fp16_bf16_amp", "amp_bf16", "fp32")},
    "autogptq": {"kind": "gptq", "bits": (4, 4, 8, 2), "groups": (128, 64), "precisions": (*BOTH, "fp16_bf16_amp"), "release": "4.57"},
    "gptqmodel-awq": {"kind": "awq", "bits": (4,), "groups": (128, 64, 32), "precisions": HALF},
    "autoawq": {"kind": "awq", "bits": (4,), "groups": (128, 64), "precisions": HALF, "release": "4.57"},
    "quanto": {"kind": "quanto", "bits": (8,), "groups": (-1,), "precisions": (*BOTH, "fp16_bf16_amp", "fp32"), "prepares": False},
    "torchao": {"kind": "torchao", "bits": (8,), "groups": (-1,), "precisions": (*BOTH, "fp16_bf16_amp", "amp_bf16", "fp32")},
    "eetq": {"kind": "eetq", "bits": (8,), "groups": (-1,), "precisions": ("fp16", "fp16_amp"), "release": "4.57"},
    "aqlm": {"kind": "aqlm", "bits": (16,), "groups": (-1,), "precisions": BOTH, "models": ("llama", "mistral")},     # codes of 16 bits
    "hqq": {"kind": "hqq", "bits": (4, 4, 2, 3, 8), "groups": (64, 128, 32), "precisions": (*BOTH, "fp32")},
}
PLAIN, DRAWN = 3, 6


def job(ident, library, model, dice, precision=None, **more):
    made = {"id": ident, "config": copy.deepcopy(MODELS[model]), "method": "qlora", "precision": precision or dice.choice(library["precisions"]),
            "packed": {"kind": library["kind"], "bits": library["bits"][0], "group_size": library["groups"][0]}, "kbit_prepare": True,
            "micro_batch": 1, "seq_len": 512, **CHECKPOINTING[0], "lora": {"r": 16, "target_modules": ALL}, **more}
    if "release" in library:
        made["release"] = library["release"]
    return made


def drawn(ident, library, dice):
    batch, length = dice.choice(TOKENS)
    model = dice.choice(library.get("models", sorted(MODELS)))
    groups = [g for g in library["groups"] if model != "qwen2" or 896 % max(g, 1) == 0]
    packed = {"kind": library["kind"], "bits": dice.choice(library["bits"]), "group_size": dice.choice(groups)}
    if library["kind"] == "gptq" and dice.random() < 0.4:
        packed["desc_act"] = True
    precision, attention = dice.choice(library["precisions"]), dice.choice(["sdpa", "flash_attention_2", "eager"])
    if precision == "fp32" and attention == "flash_attention_2":
        attention = "sdpa"
    lora = {"r": dice.choice([8, 32]), "target_modules": dice.choice(TARGETS), "dropout": dice.choice([0.0, 0.0, 0.05])}
    return job(ident, library, model, dice, precision, packed=packed, lora=lora, micro_batch=batch, seq_len=length, **dice.choice(CHECKPOINTING),
               kbit_prepare=dice.random() < 0.6 and library.get("prepares", True), grad_accum=dice.choice([1, 1, 2]), attention=attention)


def turned():
    """OFT in the place of LoRA, beside what GPTQ and AWQ have packed."""
    for name in ("gptqmodel", "autogptq", "gptqmodel-awq", "autoawq"):
        dice = random.Random(f"oft {name}")
        for i in range(4):
            made = job(f"oft-{name}-{i}", LIBRARIES[name], ("llama", "qwen2", "mistral")[i % 3], dice, LIBRARIES[name]["precisions"][i % len(LIBRARIES[name]["precisions"])],
                       kbit_prepare=i % 2 == 0, micro_batch=1 + i % 2, **CHECKPOINTING[i % 3])
            made["lora"] = {"kind": "oft", "oft_block_size": (32, 32, 64, 16)[i], "target_modules": TARGETS[i]}
            yield made


def jobs():
    yield from turned()
    for name, library in LIBRARIES.items():
        dice = random.Random(name)
        for i in range(PLAIN):
            model = library.get("models", ("llama", "qwen2", "mistral"))[i % len(library.get("models", "abc"))]
            yield job(f"{name}-plain{i}", library, model, dice, library["precisions"][i % len(library["precisions"])], **CHECKPOINTING[i], kbit_prepare=library.get("prepares", True))
        for i in range(DRAWN):
            yield drawn(f"{name}-drawn{i}", library, dice)


if __name__ == "__main__":
    for each in jobs():
        print(json.dumps(each))
