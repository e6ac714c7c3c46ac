"""transformers' own expert parallelism: from_pretrained(..., distributed_config=DistributedConfig(enable_expert_parallel=True)).

par: expert (GPUs). The hooks are those that distribute_model puts on modules by the model's plan; experts' weights become this rank's part, of
the shape that their plan says, as the loader makes it (its slices of files are of the host). All GPUs see the same batch.
"""
from torch.distributed.device_mesh import init_device_mesh

import fakedist
import par_plan
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
        par_plan.distribute(model, self.mesh, self.world(), DistributedConfig(enable_expert_parallel=True))

    def counts(self, model):
        """Of all GPUs: experts, and adapters on them, are others on each."""
        out = super().counts(model)
        for name, p in model.named_parameters():
            if ".experts." in name:
                par_plan.count_others(out, p, self.world())
        return out


def make(job, tr):
    return ExpertParallel(job, tr)
