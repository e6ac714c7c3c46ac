"""transformers' own expert parallelism: from_pretrained(..., distributed_config=DistributedConfig(enable_expert_parallel=True)).

par: expert (GPUs). The hooks are those that distribute_model puts on modules by the model's plan; experts' weights become this rank's part, of
the shape that their plan says, as the loader makes it (its slices of files are of the host). All GPUs see the same batch.
"""
import torch
from torch.distributed.device_mesh import init_device_mesh

import fakedist
import record
from multi import J, Strategy


class ExpertParallel(Strategy):
    def world(self):
        return self.par["expert"]

    def setup(self):
        fakedist.real_meshes()
        fakedist.init(self.world())
        self.mesh = init_device_mesh("cuda", (self.world(),))

    def build(self, registry):
        return record.build(J, self.job, registry, fake=True, placed=self.distribute)

    def distribute(self, model):
        from transformers.distributed import DistributedConfig
        from transformers.integrations import tensor_parallel as tp
        tp.distribute_model(model, "auto", DistributedConfig(enable_expert_parallel=True), self.mesh, self.world())
        assert model.tp_plan, "the model has no plan for its experts: every GPU would keep all of them"
        for name, param in list(model.named_parameters()):
            plan = tp._get_parameter_tp_plan(name, model.tp_plan)
            if plan is None:
                continue
            layer = tp.ALL_PARALLEL_STYLES[plan]
            layer.empty_param, layer.device_mesh, layer.rank = param, self.mesh, 0
            if plan != "grouped_gemm":
                continue
            where, _, leaf = name.rpartition(".")
            module = model.get_submodule(where)
            part = torch.empty(layer.get_expected_sharded_shape(param.shape), dtype=param.dtype, device=param.device)
            setattr(module, leaf, torch.nn.Parameter(part, requires_grad=param.requires_grad))
            layer.update_module_attributes(module)

    def counts(self, model):
        """Of all GPUs: experts, and adapters on them, are others on each."""
        out = super().counts(model)
        for name, p in model.named_parameters():
            if ".experts." in name:
                more, dtype = p.numel() * (self.world() - 1), str(p.dtype).replace("torch.", "")
                for total, by in (("total", "by_dtype"), ("trainable", "trainable_by_dtype"))[:1 + p.requires_grad]:
                    out[total] += more
                    out[by][dtype] += more
        return out


def make(job, tr):
    return ExpertParallel(job, tr)
