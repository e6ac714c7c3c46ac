"""LLaMA-Factory's own loop (LLaMA-Factory ff6d4d12 src/llamafactory/v1), by its own code: the functions are cut out of its files.

A job says `trainer`: llamafactory_v1; under FSDP 2 `parallelism.llamafactory` as well, whose units its engine makes. Needs
third_party/LLaMA-Factory (the project's src folder).
"""
import os
import types

import torch
import torch.nn as nn
import torch.nn.functional as F

import preferences
from par_fsdp2 import FSDP2

V1 = os.path.join(preferences.HERE, "third_party", "LLaMA-Factory", "llamafactory", "v1")
LOGGER = types.SimpleNamespace(info=print, warning=print, info_rank0=print)


def functions(path, wanted, **names):
    names.update(torch=torch, nn=nn, F=F, logger=LOGGER)
    preferences.run(preferences.cut(os.path.join(V1, path), wanted), names, path)
    return names


def make_batch(job):
    """core/rendering, core/utils/collation.py: five tensors in host memory; the weights of a loss are fp32."""
    b, s = job["micro_batch"], job["seq_len"]
    batch = {"input_ids": torch.full((b, s), 0), "attention_mask": torch.full((b, s), 1), "labels": torch.full((b, s), 0),
             "loss_weights": torch.full((b, s), 1.0), "position_ids": torch.tensor([list(range(s))] * b)}
    if job.get("padding"):
        batch["attention_mask"].narrow(1, s - s // 8, s // 8).fill_(0)
    if job.get("packing"):                         # plugins/trainer_plugins/batching.py: _pack_padding_free_samples
        batch.update(attention_mask=None, position_ids=torch.tensor([[*range(s // 2), *range(s - s // 2)]] * b))
    return batch


def forward_loss(model, batch, _job):
    """core/base_trainer.py compute_log_probs, trainers/sft_trainer.py compute_loss; fit() weighs what it returns."""
    trainer = types.SimpleNamespace(device=torch.device("cuda"), model=model, _uses_mrope=False)
    log_probs = functions("core/base_trainer.py", {"compute_log_probs"})["compute_log_probs"]
    trainer.compute_log_probs = lambda *args: log_probs(trainer, *args)
    loss = functions("trainers/sft_trainer.py", {"compute_loss"})["compute_loss"](trainer, batch)
    return types.SimpleNamespace(loss=loss * 1.0)


class OwnUnits(FSDP2):
    """plugins/trainer_plugins/distributed/fsdp2.py: FSDP2Engine.prepare_model."""

    def wrap(self, model):
        from peft.tuners.lora import LoraLayer
        from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
        names = functions("plugins/trainer_plugins/distributed/fsdp2.py",
                          {"_cast_norm_input_to_weight_dtype", "_make_norms_dtype_safe", "get_transformer_layer_cls", "get_mp_policy",
                           "is_lora_module_wrap", "prepare_model"},
                          LoraLayer=LoraLayer, CPUOffloadPolicy=CPUOffloadPolicy, MixedPrecisionPolicy=MixedPrecisionPolicy, fully_shard=fully_shard)
        engine = types.SimpleNamespace(mixed_precision=self.par.get("param_dtype", "bf16"), fsdp_mesh=self.mesh, rank=1, pin_memory=True,
                                       reshard_after_forward=self.par.get("reshard_after_forward", True), offload_params=self.par.get("offload", False))
        for name in ("get_mp_policy", "is_lora_module_wrap"):
            setattr(engine, name, types.MethodType(names[name], engine))
        return names["prepare_model"](engine, model)
