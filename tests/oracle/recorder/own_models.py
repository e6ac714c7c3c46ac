"""Models of tests/traced/own.py (a copy of which lies beside this file): `own` names one.

timm 1.0.20 lies unzipped in third_party/own.  Layers that stand in a list are checkpointed one by one, as torch.utils.checkpoint is used by hand."""
import functools
import os
import sys
import types

import torch
from torch.utils.checkpoint import checkpoint


def build(job, dtype):
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "own"))
    import own
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"):
            model = own.MODELS[job["own"]][0]()
    finally:
        torch.set_default_dtype(before)
    model.config = types.SimpleNamespace(vocab_size=None, get_text_config=lambda *a, **k: model.config)
    model.gradient_checkpointing_enable = lambda gradient_checkpointing_kwargs: checkpointed(model, **gradient_checkpointing_kwargs)
    return model.train()


def checkpointed(model, use_reentrant):
    for stack in [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and m and not isinstance(m[0], torch.nn.Embedding)]:
        for layer in stack:
            layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=use_reentrant)


def make_batch(job, dtype):
    """Floats in the dtype of the weights where nothing casts them."""
    import own
    with torch.device("cuda"):
        made = own.MODELS[job["own"]][1](job["micro_batch"], job["seq_len"])
    cast = dtype if "amp" not in job["precision"] else torch.float32
    return {name: t.to(cast) if t.is_floating_point() else t for name, t in made.items()}
