"""FSDP 2 as accelerate lays a model out: its own fsdp2_apply_ac and fsdp2_prepare_model (third_party/accelerate-VERSION/accelerate), on what of an
Accelerator they ask for.  What _prepare_fsdp2 does beside them is done to an optimizer that does not exist yet here.

par: what par_fsdp2 takes, accelerate (the release: "1.15.0"), mixed_precision ("no", "bf16", "fp16"), and of the plugin
activation_checkpointing and transformer_cls_names_to_wrap.
"""
import os
import sys
import types

import torch

import record
from par_fsdp2 import FSDP2
from quantised import FakeLinear4bit


def take_release(version):
    """The job's own process: transformers has imported the system's by now."""
    for name in [n for n in sys.modules if n.split(".")[0] == "accelerate"]:
        del sys.modules[name]
    sys.path.insert(0, os.path.join(record.HERE, "third_party", f"accelerate-{version}"))


def plugin_of(par):
    """What the Trainer makes of fsdp_config (transformers 5.12 training_args.py: _process_fsdp_args)."""
    from accelerate.utils.dataclasses import FullyShardedDataParallelPlugin
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy=par.get("auto_wrap_policy", "TRANSFORMER_BASED_WRAP"),
                                            reshard_after_forward=par.get("reshard_after_forward", True), cpu_offload=bool(par.get("offload")),
                                            activation_checkpointing=par.get("activation_checkpointing", False), cpu_ram_efficient_loading=False,
                                            transformer_cls_names_to_wrap=par.get("transformer_cls_names_to_wrap"))
    if par["mixed_precision"] != "no":
        plugin.set_mixed_precision(par["mixed_precision"])       # accelerate state.py: AcceleratorState.__init__
    return plugin


class Names:
    """Of a ParallelismConfig: which dimensions of the mesh divide; all of ours."""

    def __init__(self, mesh):
        self.fsdp_dim_names = tuple(mesh.mesh_dim_names)


def named_as_bitsandbytes(model):
    """accelerate asks for the class of packed weights by its name."""
    for module in model.modules():
        if isinstance(module, FakeLinear4bit):
            module.weight.__class__ = type("Params4bit", (type(module.weight),), {})


class Accelerated(FSDP2):
    def wrap(self, model):
        take_release(self.par["accelerate"])
        from accelerate.utils.fsdp_utils import fsdp2_apply_ac, fsdp2_prepare_model
        plugin = plugin_of(self.par)
        accelerator = types.SimpleNamespace(state=types.SimpleNamespace(fsdp_plugin=plugin), parallelism_config=Names(self.mesh),
                                            torch_device_mesh={Names(self.mesh).fsdp_dim_names: self.mesh},
                                            mixed_precision=self.par["mixed_precision"], is_main_process=False, device=torch.device("cuda", 0))
        plugin.set_auto_wrap_policy(model)
        named_as_bitsandbytes(model)
        if plugin.activation_checkpointing:
            model = fsdp2_apply_ac(accelerator, model)
        return fsdp2_prepare_model(accelerator, model)
