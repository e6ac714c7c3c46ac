"""torch.nn.DataParallel: one process, the first card's memory.  What it holds is the module, its replica (the same tensors), every row
of the batch and, gathered, every output; BroadcastBackward waits for all gradients of the first replica and adds them up in new tensors.

par: data (cards).  Replicas on other cards don't run: their copies lie on the CPU, their outputs are not seen.  The copies' gradients
are then zeros, made on the CPU; what autograd makes on the first card is real.
"""
import sys

import torch
import torch.nn.parallel.comm as comm
from torch._utils import _take_tensors
from torch.utils._pytree import tree_map

import jobs as J
from multi import Strategy


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """csrc/cuda/comm.cpp: chunks are flattened, sent and let go; the first card keeps the tensors themselves."""
    for chunk in _take_tensors(tensors, buffer_size):
        flat = torch._utils._flatten_dense_tensors(chunk)
        del flat
    others = [torch.empty_like(t, device="cpu") for t in tensors]
    return [list(tensors)] + [others for _ in devices[1:]]


def reduce_add(inputs, destination=None):
    """nn/parallel/comm.py with NCCL: one tensor on the first card."""
    return torch.empty_like(inputs[0])


def gather(tensors, dim=0, destination=None, *, out=None):
    shape = list(tensors[0].shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    return torch.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device)


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """csrc/cuda/comm.cpp: chunks; the first is a view."""
    return tuple(tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(chunk_sizes, dim))


class DataParallel(Strategy):
    def setup(self):
        comm.broadcast_coalesced, comm.reduce_add, comm.gather, comm.scatter = broadcast_coalesced, reduce_add, gather, scatter
        self.cards = self.par["data"]
        strat = self

        def first_alone(replicas, inputs, kwargs, devices=None):
            out = replicas[0](*inputs[0], **kwargs[0])
            with strat.tr.mute():
                other = tree_map(lambda t: torch.empty_like(t.detach()) if isinstance(t, torch.Tensor) else t, out)
            return [out] + [other] * (strat.cards - 1)
        sys.modules["torch.nn.parallel.data_parallel"].parallel_apply = first_alone

    def world(self):
        return self.par["data"]

    def wrap(self, model):
        self.parallel = torch.nn.DataParallel(model, device_ids=list(range(self.cards)))
        return self.parallel

    def batch(self, model):
        return J.make_batch(model, {**self.job, "micro_batch": self.job["micro_batch"] * self.cards})

    def forward(self, module, batch):
        out = J.forward_loss(module, batch, self.job)
        loss = (out.loss if hasattr(out, "loss") else out).mean()        # Trainer.training_step
        if not self.job.get("keep_outputs"):
            return loss
        out.loss = loss
        return out


def make(job, tr):
    return DataParallel(job, tr)
