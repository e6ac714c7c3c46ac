#!/usr/bin/env python3
"""class_facts.py: what transformers' classes say of themselves, a line for each "model_type:class" of standard input.

Runs where transformers and torch are (tests/oracle/recorder/chroot.sh lays such a system out), without weights: each
model is made on the meta device from its configuration class's defaults; those of which that makes no model are named
on standard error. `sdpa`, `flex_attention`: whether it can be made with it; `flash_attention`, `checkpoints`: what its
attributes say; `named`, `absent`: what `_no_split_modules` names of the model, and that is not in it; `unnamed`: layers
that it leaves out; `holder`: what it names that has the input embeddings in it; `stages`: what it names that holds
several layers; `pieces`: what it names that lies in another so named.

tests/unit/class_facts_test.cpp holds the families to class_facts.jsonl, which is what this wrote with transformers
5.12.1 and torch 2.14.1, and of their attention, checkpoints and `_no_split_modules` to class_facts_5_24.jsonl: these
keys of what it wrote with 5.24.0. The lines of standard input are the rows of core/families.
"""
import json
import sys

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


def made(cls, config, attention=None):
    words = {"attn_implementation": attention} if attention else {}
    with torch.device("meta"):
        return cls._from_config(config, **words)


def takes(cls, config, attention):
    try:
        made(cls, config, attention)
    except ValueError:
        return False
    return True


def takes_flash(model):
    """As _flash_attn_can_dispatch decides, which wants the package installed before it asks."""
    parts = [part for part in model.modules() if isinstance(part, transformers.PreTrainedModel)]
    return all(part._supports_flash_attn for part in parts)


def has_input_embeddings(model):
    """What accelerate's FSDP 2 asks of every model."""
    try:
        model.get_input_embeddings()
    except NotImplementedError:
        return False
    return True


def holder(model, wanted):
    """The named class that has the input embeddings in it: accelerate's FSDP 2 divides them once more, which fails."""
    if not has_input_embeddings(model):
        return ""
    table = model.get_input_embeddings()
    for module in model.modules():
        if type(module).__name__ in wanted and any(part is table for part in list(module.modules())[1:]):
            return type(module).__name__
    return ""


def stages(model, wanted):
    """Named classes that hold several layers of one class (T5's hold attention and feed forward in a list)."""
    return {type(module).__name__ for module in model.modules() if type(module).__name__ in wanted
            and any(isinstance(part, torch.nn.ModuleList) and len(part) > 1 and len({type(layer) for layer in part}) == 1
                    for part in module.children())}


def pieces(module, wanted, within=False):
    """Named classes of modules that lie in another named one."""
    name = type(module).__name__
    own = name in wanted
    found = {name} if own and within else set()
    return found.union(*(pieces(child, wanted, within or own) for child in module.children()), set())


def named(model):
    wanted = set(getattr(model, "_no_split_modules", None) or ())
    present = {type(module).__name__ for module in model.modules()}
    return {"named": sorted(wanted & present), "absent": sorted(wanted - present), "unnamed": sorted(unnamed(model, wanted)),
            "holder": holder(model, wanted), "stages": sorted(stages(model, wanted)), "pieces": sorted(pieces(model, wanted))}


def unnamed(module, wanted):
    """Layers (what lists of more than one hold) of classes that are not named, and lie in none that is."""
    if type(module).__name__ in wanted:
        return set()
    found = set().union(*(unnamed(child, wanted) for child in module.children()), set())
    if isinstance(module, torch.nn.ModuleList) and len(module) > 1:
        found |= {type(layer).__name__ for layer in module} - wanted
    return found


def defaults(model_type):
    """Of the configuration class, and letters where it leaves them open and the class asks for them."""
    config = CONFIG_MAPPING[model_type]()
    if getattr(config, "vocab_size", 0) is None:
        config.vocab_size = 32
    return config


def main():
    for name in sys.stdin.read().split():
        model_type, class_name = name.split(":")
        cls = getattr(transformers, class_name, None)
        if cls is None or model_type not in CONFIG_MAPPING:
            continue
        try:
            model = made(cls, defaults(model_type))
            row = {"model_type": model_type, "class": class_name, "main_input_name": model.main_input_name,
                   "input_embeddings": has_input_embeddings(model), "sdpa": takes(cls, defaults(model_type), "sdpa"),
                   "flex_attention": takes(cls, defaults(model_type), "flex_attention"),
                   "flash_attention": takes_flash(model), "checkpoints": model.supports_gradient_checkpointing, **named(model)}
        except Exception as error:  # noqa: B902 - some defaults make no model
            print(f"{model_type}: {type(error).__name__} {str(error)[:100]}", file=sys.stderr)
            continue
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
