"""LoRA-FA, BAdam, Dion and Q-GaLore: the packages' own classes and steps, as PEFT, LLaMA-Factory and Axolotl build them.

What torch.compile fuses is a stand-in here that makes the tensors which inductor makes: a buffer for each of its kernels' outputs and for each
call of a library, freed behind its last use.  Kernels of bitsandbytes work in place and are left out."""
import sys
import types

import torch
from torch.optim import Optimizer


class FusedAdamW(Optimizer):
    """torch.optim.AdamW(fused=True), the Trainer's own: a counter and two moments each; its kernel works in place."""

    def __init__(self, groups):
        super().__init__(groups, {"lr": 1e-4, "weight_decay": 0.0})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and not self.state[p]:
                    self.state[p].update(step=torch.zeros((), dtype=torch.float32, device=p.device), exp_avg=torch.zeros_like(p.detach()),
                                         exp_avg_sq=torch.zeros_like(p.detach()))


def lorafa(model, job):
    from peft.optimizers import create_lorafa_optimizer
    settings = job["lora"]
    return create_lorafa_optimizer(model, r=settings.get("r", 16), lora_alpha=settings.get("alpha", 16), lr=1e-4)


def badam(model):
    """LLaMA-Factory train/trainer_utils.py _create_badam_optimizer, its first block (below which nothing needs a gradient) all along."""
    from badam import BlockOptimizer
    from optimizers import parameter_groups
    torch.cuda.empty_cache = lambda: None
    base = FusedAdamW([{"params": g, "weight_decay": 0.0} for g in parameter_groups(model)])
    return BlockOptimizer(base_optimizer=base, named_parameters_list=list(model.named_parameters()), block_prefix_list=None, switch_block_every=50,
                          start_block=0, switch_mode="fixed", verbose=0)


# -- Dion --------------------------------------------------------------------------------------
def orthogonalize(P, oversample=1.25):
    """contribs/mit/dion/dion.py orthogonalize, its buffers freed behind their last use."""
    from axolotl.contribs.mit.dion import dion
    dtype = P.dtype
    wide = P.to(torch.float32)
    if P.size(-2) <= P.size(-1):
        wide, rest = torch.linalg.qr(wide)
        del rest
        return wide.to(dtype).contiguous()
    sketch = dion.generate_random_sketch_matrix(P, oversample)
    product = sketch @ P
    del sketch
    product = product.to(torch.float32)
    _, R = torch.linalg.qr(product, mode="r")
    del product, _
    wide = torch.linalg.solve_triangular(R, wide, upper=True, left=False)
    del R
    squares = wide.mT @ wide
    R, info = torch.linalg.cholesky_ex(squares, upper=True)
    del squares, info
    wide = torch.linalg.solve_triangular(R, wide, upper=True, left=False)
    del R
    return wide.to(dtype).contiguous()


def fixed(P, R, Q_init, B):
    """fix_all_zero_or_nan: a flag a matrix, and both again."""
    return torch.empty_like(P), torch.empty_like(R)


def added(X, A, B, alpha=1.0, beta=1.0, transpose=False):
    """foreach_baddbmm_: the product; scaling and adding are one kernel."""
    product = B @ A.mT if transpose else A @ B.mT
    del product


def normalized(X, full_column_sum_sq=None, epsilon=1e-8):
    """column_normalize: the columns' sums, and the result."""
    sums = torch.empty(X.shape[0], 1, X.shape[2], dtype=torch.float32, device=X.device)
    del sums
    return torch.empty_like(X)


def dion(model):
    whole = torch.compile
    torch.compile = lambda *a, **k: (lambda f: f)

    class BaseOptimizerFactory:
        def get_decay_parameter_names(self, model):
            return [n for n, p in model.named_parameters() if p.dim() > 1]
    for name, parts in (("axolotl.integrations", {}), ("axolotl.integrations.base", {"BaseOptimizerFactory": BaseOptimizerFactory})):
        module = types.ModuleType(name)
        module.__dict__.update(parts, __path__=[])
        sys.modules[name] = module
    from axolotl.contribs.mit.dion import DionOptimizerFactory, dion as library
    torch.compile = whole
    library.orthogonalize, library.fix_all_zero_or_nan, library.foreach_baddbmm_, library.column_normalize = orthogonalize, fixed, added, normalized
    library.adamw_update_foreach = lambda *a: None
    library.update_Q_matrix_ = lambda Q, Q_batch, placements=None: None
    return DionOptimizerFactory()(model, None, 0.01, 0.95, lr=1e-4, weight_decay=0.0)


# -- Q-GaLore ----------------------------------------------------------------------------------
def q_galore(model, job):
    """axolotl utils/optimizers/qgalore.py build_qgalore_param_groups, and the defaults of its schema."""
    import packages
    import q_galore_torch.q_galore_projector as projector
    torch.linalg.svd = packages.svd
    from q_galore_torch import QGaLoreAdamW8bit
    import q_galore_torch.q_galore_adamw8bit as adamw
    whole = QGaLoreAdamW8bit.get_config          # what bitsandbytes 0.50 no longer has in it
    QGaLoreAdamW8bit.get_config = lambda self, *a: {"percentile_clipping": 100, "block_wise": True, **whole(self, *a)}
    adamw.F.optimizer_update_8bit_blockwise = adamw.F.optimizer_update_32bit = lambda *a, **k: None
    projector.F = types.SimpleNamespace(cosine_similarity=lambda a, b, dim: types.SimpleNamespace(item=lambda: 0.0))    # a number of two rows
    projector.torch = types.SimpleNamespace(**{**vars(torch), "isnan": no_nan})
    words = job.get("optim_target_modules") or ["attn", "mlp"]
    trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    projected = [p for n, p in trained if p.dim() == 2 and any(w in n for w in words)]
    seen = {id(p) for p in projected}
    settings = {"rank": 256, "update_proj_gap": 1, "scale": 0.25, "proj_type": "std", "quant": True, "quant_n_bit": 4, "quant_group_size": 256,
                "cos_threshold": 0.4, "gamma_proj": 1, "queue_size": 5, **job.get("optim_args", {})}
    return QGaLoreAdamW8bit([{"params": projected, **settings}, {"params": [p for _, p in trained if id(p) not in seen]}], lr=1e-4)


def no_nan(tensor):
    """`assert torch.isnan(w).sum() == 0`: a byte an element meanwhile, and no."""
    flags = torch.empty_like(tensor, dtype=torch.bool)
    del flags
    return types.SimpleNamespace(sum=lambda: 0)


MADE = {"lorafa": lorafa, "badam": lambda model, job: badam(model), "dion": lambda model, job: dion(model), "q_galore_adamw8bit": q_galore}


def tensors(optimizer):
    """What is kept: states, copies, projectors."""
    found = list(getattr(optimizer, "param_idx2hp", {}).values())
    for state in getattr(optimizer, "base_optimizer", optimizer).state.values():
        for value in state.values():
            held = [value] if isinstance(value, torch.Tensor) else list(getattr(value, "__dict__", {}).values())
            found += [t for t in held if isinstance(t, torch.Tensor)]
    return found
