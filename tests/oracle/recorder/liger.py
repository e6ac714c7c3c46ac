"""Liger's own kernels for norms, gated products and rotations, put into a model by its own patch: liger_kernel 0.8.5 in third_party/liger.

A job's `liger` names which (rms_norm, swiglu, rope). Triton's kernels write where they are told and allocate nothing: nothing is launched.
The fused loss is apart (losses.py)."""
import contextlib
import importlib.metadata
import inspect
import os
import sys
import types

import torch

import unslothed

PROCESSORS = {75: 40, 80: 108, 90: 132}              # of a T4, an A100 and an H100
HERE = os.path.dirname(os.path.abspath(__file__))


def any_name(leaf):
    """Of a module: what asks for its file (inspect) is told that it has none."""
    if leaf.startswith("__"):
        raise AttributeError(leaf)
    return unslothed.Anything()


def stub_triton():
    """Its kernels are made and launched without effect."""
    for name in ("triton", "triton.language", "triton.language.extra", "triton.language.extra.libdevice", "triton.language.extra.cuda",
                 "triton.language.extra.cuda.libdevice", "triton.language.math", "triton.runtime", "triton.testing"):
        unslothed.module(name).__dict__.setdefault("__getattr__", any_name)
    triton = sys.modules["triton"]
    triton.Config = type("Config", (), {"__init__": lambda self, *a, **k: None, "all_kwargs": lambda self: {}})
    of_package = importlib.metadata.version
    importlib.metadata.version = lambda name: triton.__version__ if name == "triton" else of_package(name)
    triton.__dict__.update(__version__="3.5.0", jit=lambda f=None, **k: unslothed.Anything() if f else lambda g: unslothed.Anything(),
                           cdiv=lambda a, b: -(-a // b), next_power_of_2=lambda n: 1 << (n - 1).bit_length())


def install(model, job):
    if not job.get("liger"):
        return
    stub_triton()
    torch.cuda.device = lambda device: contextlib.nullcontext()
    processors = PROCESSORS[job.get("arch", 80)]
    torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=processors)
    sys.path.insert(0, os.path.join(HERE, "third_party", "liger"))
    from liger_kernel.transformers import monkey_patch
    apply = monkey_patch.MODEL_TYPE_TO_APPLY_LIGER_FN[model.config.model_type]
    words = {"rope": "rope" in job["liger"], "rms_norm": "rms_norm" in job["liger"], "cross_entropy": False,
             "fused_linear_cross_entropy": False, **{word: "swiglu" in job["liger"] for word in ("swiglu", "geglu")}}
    taken = inspect.signature(apply).parameters
    apply(model=model, **{word: value for word, value in words.items() if word in taken})
