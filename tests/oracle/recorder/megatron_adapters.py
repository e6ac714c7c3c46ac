"""LoRA on Megatron-Core's layers by Megatron-Bridge 0.3.1's own `LoRA` (src/megatron/bridge/peft), which NeMo and verl take, too.

`third_party/megatron-bridge` holds its peft and utils.  Its packages' own __init__ (the bridges of all models) are passed by."""
import importlib.machinery
import os
import sys
import types

import torch

import megatron_stubs as stubs
import record

ROOT = os.path.join(record.HERE, "third_party", "megatron-bridge")


def package(name, folder):
    found = types.ModuleType(name)
    found.__path__, found.__spec__ = [folder], importlib.machinery.ModuleSpec(name, None, is_package=True)
    sys.modules[name] = found


def preload():
    if not os.path.isdir(ROOT):
        return
    import megatron.core.models.gpt.gpt_layer_specs     # noqa: F401  (without Transformer Engine, of which lora.py wants the name)
    import megatron.core.transformer.attention          # noqa: F401
    for name in ("", ".peft", ".utils"):
        package("megatron.bridge" + name, os.path.join(ROOT, name.lstrip(".")))
    stubs.module("megatron.bridge.utils.common_utils", print_rank_0=lambda *a, **k: None)
    stubs.module("transformer_engine.pytorch", Linear=type("Linear", (torch.nn.Module,), {}), ops=types.SimpleNamespace(Sequential=torch.nn.Sequential))
    import megatron.bridge.peft.lora                    # noqa: F401
    for name in [n for n in sys.modules if n.partition(".")[0] == "transformer_engine"]:
        del sys.modules[name]
    import megatron.bridge.peft.utils as utils
    utils.HAVE_TE = False                               # (it takes classes that are None for ones that are there)
    utils.ParallelLinearAdapter.bfloat16 = utils.ParallelLinearAdapter.half = lambda self: self     # its weights were made in 16 bits


def apply(chunks, job):
    """Before DistributedDataParallel, as its providers do it (models/model_provider.py: pre-wrap hooks)."""
    from megatron.bridge.peft.lora import LoRA
    lora = job["lora"]
    peft = LoRA(target_modules=lora["target_modules"], dim=lora["r"], alpha=lora.get("alpha", 2 * lora["r"]), dropout=lora.get("dropout", 0.0))
    for chunk in chunks:
        peft(chunk, training=True)
        save(chunk, lora.get("modules_to_save", ()))


def save(chunk, names):
    """PEFT's wrapper, as ms-swift has it around the embedding and the head (3602360a swift/megatron/utils/utils.py: get_modules_to_save)."""
    from peft.utils.other import ModulesToSaveWrapper
    for path, module in list(chunk.named_modules()):
        parent, _, name = path.rpartition(".")
        if name not in names:
            continue
        groups = {key: module.__dict__.pop(key) for key in list(module.__dict__) if key.endswith("_group")}     # which nothing copies,
        weight = module._parameters.pop("weight")                                                               # nor fake tensors
        wrapper = ModulesToSaveWrapper(module, "default")
        copy = torch.nn.Parameter(torch.empty_like(weight))
        copy.__dict__.update(weight.__dict__)
        for one, own in ((wrapper.original_module, weight.requires_grad_(False)), (wrapper.modules_to_save["default"], copy)):
            one.__dict__.update(groups)
            one.weight = own
        setattr(chunk.get_submodule(parent), name, wrapper)
