"""TRL's OffloadActivations (trl/models/activation_offloading.py, of third_party/src/trl-1.9.0) around a training step.

A job says `activation_offloading`: true.  Its streams are stand-ins (fakedist.py): what is freed when is decided by its own
dictionaries alone, as torch counts a block as freed when its last reference goes, whatever streams still wait for it.
"""
import contextlib
import importlib.util
import itertools
import os

import torch

import fakedist

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "src", "trl-1.9.0", "trl", "models",
                      "activation_offloading.py")
NUMBERS = itertools.count(1)


def data_ptr(storage):
    """Fake storages have no address: a number of their own, far enough apart for offsets."""
    if not hasattr(storage, "oracle_number"):
        storage.oracle_number = next(NUMBERS)
    return storage.oracle_number << 48


def install(model, job):
    if not job.get("activation_offloading"):
        return
    cuda = torch.cuda
    cuda.Stream, cuda.Event, cuda.stream = fakedist.Stream, fakedist.Event, fakedist.stream
    cuda.current_stream = fakedist.current_stream
    cuda.default_stream = lambda device=None: fakedist.DEFAULT
    cuda.empty_cache = lambda: None
    torch.accelerator.current_accelerator = lambda *a, **k: torch.device("cuda")
    torch.Tensor.record_stream = lambda self, stream: None
    torch.UntypedStorage.data_ptr = data_ptr
    spec = importlib.util.spec_from_file_location("oracle_activation_offloading", SOURCE)
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    model.__dict__["oracle_offloading"] = source.get_act_offloading_ctx_manager(model, use_pin_memory=False, warn_if_no_head=False)


def around_step(model):
    """What SFTTrainer.training_step runs in: forward and backward of one micro-batch."""
    return model.__dict__.get("oracle_offloading", contextlib.nullcontext())
