"""transformers' own tensor parallelism: from_pretrained(..., tp_plan="auto"); data > 1 adds FSDP 2 on the outside, as accelerate does.

par: tensor (GPUs), and what par_fsdp2 takes. The hooks are those that distribute_model puts on modules by the model's plan; what the plan
names becomes this rank's part, of the shape that its style says, as the loader makes it (its slices of files are of the host). Parts are plain
tensors: torch's optimizers and PEFT see a model of narrower layers.
"""
import torch
from torch.distributed.device_mesh import init_device_mesh

import fakedist
import par_accelerate
import record
from multi import J, Strategy
from par_fsdp2 import FSDP2


def distribute(model, mesh, size, config=None):
    """`config`: a DistributedConfig, whose plan may be one for experts."""
    from transformers.integrations import tensor_parallel as tp
    tp.distribute_model(model, "auto", config, mesh, size)
    assert model.tp_plan, "the model has no plan: every GPU would keep all of it"
    for name, param in list(model.named_parameters()):
        plan = tp._get_parameter_tp_plan(name, model.tp_plan)
        if plan is None:
            continue
        layer = tp.ALL_PARALLEL_STYLES[plan]
        layer.empty_param, layer.device_mesh, layer.rank = param, mesh, 0
        where, _, leaf = name.rpartition(".")
        module, shape = model.get_submodule(where), layer.get_expected_sharded_shape(param.shape)
        if tuple(shape) != tuple(param.shape):
            part = torch.empty(shape, dtype=param.dtype, device=param.device)
            setattr(module, leaf, torch.nn.Parameter(part, requires_grad=param.requires_grad))
            layer.update_module_attributes(module)


def count_others(out, param, gpus):
    """In a record's counts: of a part the others' as well."""
    more, dtype = param.numel() * (gpus - 1), str(param.dtype).replace("torch.", "")
    for total, by in (("total", "by_dtype"), ("trainable", "trainable_by_dtype"))[:1 + param.requires_grad]:
        out[total] += more
        out[by][dtype] += more


class Divided:
    """The model as the plan lays it out, and its parameters of all GPUs."""

    def build(self, registry):
        return record.build(J, self.job, registry, fake=True, placed=lambda model: distribute(model, self.tp_mesh, self.par["tensor"]))

    def counts(self, model):
        out = super().counts(model)
        for module in self.counted(model).modules():
            plan = getattr(module, "_hf_tp_plan", None)
            if plan is None:
                continue
            for leaf, p in module.named_parameters(recurse=False):
                if "wise" in plan and not (leaf == "bias" and "rowwise" in plan):
                    count_others(out, p, self.par["tensor"])
        return out


class Plan(Divided, Strategy):
    def setup(self):
        fakedist.real_meshes()
        fakedist.init(self.world())
        self.tp_mesh = init_device_mesh("cuda", (self.world(),), mesh_dim_names=("tp",))


class Further(Divided):
    """Beside FSDP 2, whose mesh has the others."""

    def setup(self):
        super().setup()
        self.tp_mesh = self.full_mesh["tp"]


class PlanAndFSDP2(Further, FSDP2):
    pass


class PlanAndAccelerate(Further, par_accelerate.Accelerated):
    pass


def make(job, tr):
    par = job["parallelism"]
    if par.get("data", 1) == 1:
        return Plan(job, tr)
    return (PlanAndAccelerate if par.get("accelerate") else PlanAndFSDP2)(job, tr)
