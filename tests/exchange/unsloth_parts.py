#!/usr/bin/env python3
"""Which linear layers Unsloth adapts for the parts that it is told to tune: unsloth_zoo's get_peft_regex, asked about
models of transformers on the meta device. Runs where both are (tests/oracle/README.md), and writes unsloth_parts.json.

    unsloth_parts.py FOLDER_OF_UNSLOTH_ZOO > unsloth_parts.json
"""
import inspect
import json
import re
import sys
import typing

SEEING = ["qwen2_5_vl", "gemma3", "mllama", "mistral3", "qwen3_vl", "llava", "qwen3_5"]
READING = ["llama", "phi3", "gemma3_text"]
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = [([], []), (["vision"], []), (["language"], []), (["attention"], []), (["mlp"], []), (["vision"], PROJECTIONS),
         (["language"], ["q_proj", "fc1", "qkv"]), (["vision"], PROJECTIONS + ["fc1", "fc2"])]


def regex_of(folder):
    """The function alone: its module wants a GPU."""
    source = open(f"{folder}/peft_utils.py", encoding="utf-8").read()
    begin = source.index("def get_peft_regex(")
    names = {"torch": sys.modules["torch"], "re": re, "inspect": inspect, **vars(typing)}
    exec(source[begin:source.index("\ndef ", begin + 10)], names)
    return names["get_peft_regex"]


def small(config):
    """Four layers in each part."""
    for part in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
        for key, layers in (("num_hidden_layers", 4), ("depth", 4), ("num_global_layers", 2)):
            if isinstance(getattr(part, key, None), int):
                setattr(part, key, layers)
        if getattr(part, "layer_types", None):
            part.layer_types = part.layer_types[:4]
    if config.model_type == "qwen3_vl":
        config.vision_config.deepstack_visual_indexes = [1]
    if config.model_type == "qwen3_5":
        config.text_config.layer_types = ["linear_attention", "full_attention"] * 2
    if config.model_type == "mllama":
        config.text_config.cross_attention_layers = [1]
        config.vision_config.intermediate_layers_indices = [1]
    return config


def main():
    import torch
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForImageTextToText

    get_peft_regex = regex_of(sys.argv[1])
    linear, cases = {}, []
    for model_type in SEEING + READING:
        maker = AutoModelForImageTextToText if model_type in SEEING else AutoModelForCausalLM
        with torch.device("meta"):
            model = maker.from_config(small(CONFIG_MAPPING[model_type]()))
        names = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
        linear[model_type] = names
        for off, modules in CASES:
            if model_type in READING and "language" in off:
                continue  # nothing is left
            flags = {f"finetune_{part}_{'layers' if part in ('vision', 'language') else 'modules'}": False for part in off}
            expression = get_peft_regex(model, target_modules=modules or None, **flags)
            targets = [i for i, name in enumerate(names) if re.fullmatch(expression, name)]
            cases.append({"model_type": model_type, "off": off, "names": modules, "targets": targets})
    source = "unsloth_zoo 2026.8.13 peft_utils.py: get_peft_regex; transformers 5.12.1"
    json.dump({"source": source, "linear": linear, "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
