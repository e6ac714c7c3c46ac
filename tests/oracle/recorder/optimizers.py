"""What optimizers allocate, read from torch.optim, bitsandbytes and transformers; and the libraries' own, for a real GPU."""
import os
import sys

import torch
import torch.nn as nn
import transformers


class FakeOptimizer:
    """Allocates what an optimizer allocates: states at the first step, temporaries at every step."""

    def __init__(self, name, model):
        self.name, self.state = name, {}
        decay, plain, self.embeddings = [], [], set()
        for m in model.modules():
            if isinstance(m, nn.Embedding):
                self.embeddings.add(id(m.weight))
        for p in model.parameters():           # HF Trainer: weight-decay group and no-decay group
            if p.requires_grad:
                (decay if p.dim() > 1 else plain).append(p)
        self.groups = [g for g in (decay, plain) if g]

    def clip(self, params):
        norms = [torch.empty((), dtype=p.grad.dtype, device=p.device) for p in params if p.grad is not None]
        del norms                              # _foreach_norm; scaling is in place

    def step(self):
        for group in self.groups:
            group = [p for p in group if p.grad is not None]
            for p in group:
                if p not in self.state:
                    self.state[p] = self.new_state(p)
            self.transients(group)

    def new_state(self, p):
        n, like = self.name, lambda dt=None: torch.zeros_like(p.detach(), dtype=dt)
        if n in ("adamw_torch", "adam_torch", "adamw_hf"):
            return [like(), like()]
        if n == "adamw_torch_fused":
            return [torch.zeros((), dtype=torch.float32, device=p.device), like(), like()]
        if n == "sgd":
            return []
        if n == "sgd_momentum":
            return [p.grad.detach().clone()]
        if "8bit" in n or n.startswith("paged") or n in ("lion_32bit", "adamw_32bit"):
            two, size = "lion" not in n, p.numel()
            if n.startswith("paged") and size >= 1e5:
                return []                      # cudaMallocManaged: outside the caching allocator
            if "8bit" in n and size >= 4096 and id(p) not in self.embeddings:
                blocks = -(-size // 256)
                one = [like(torch.uint8), torch.zeros(blocks, dtype=torch.float32, device=p.device)]
                return one + ([like(torch.uint8), torch.zeros(blocks, dtype=torch.float32, device=p.device)] if two else [])
            return [like(torch.float32) for _ in range(2 if two else 1)]
        if n == "adafactor":
            if p.dim() >= 2:
                return [torch.zeros(p.shape[:-1], device=p.device), torch.zeros(p.shape[:-2] + p.shape[-1:], device=p.device)]
            return [torch.zeros_like(p.detach(), dtype=torch.float32)]
        raise ValueError(f"optimizer {n}")

    def transients(self, group):
        if self.name in ("adamw_torch", "adam_torch"):     # optim/adam.py _multi_tensor_adam: _foreach_sqrt
            by_dtype = {}
            for p in group:
                by_dtype.setdefault(p.dtype, []).append(p)
            for ps in by_dtype.values():
                tmp = [torch.empty_like(self.state[p][1]) for p in ps]
                del tmp
        elif self.name == "adamw_hf":                      # transformers 4.46 optimization.py AdamW.step: a loop, exp_avg_sq.sqrt().add_(eps)
            for p in group:
                denominator = self.state[p][1].sqrt()
                del denominator
        elif self.name == "adafactor":                     # transformers/optimization.py Adafactor.step
            for p in group:
                st, half = self.state[p], p.dtype != torch.float32
                grad = p.grad.to(torch.float32) if half else p.grad
                p32 = p.detach().to(torch.float32) if half else p.detach()
                update = (grad ** 2) + 1e-30
                if p.dim() >= 2:
                    st[0].mul_(0.9).add_(update.mean(dim=-1))
                    st[1].mul_(0.9).add_(update.mean(dim=-2))
                    r = (st[0] / st[0].mean(dim=-1, keepdim=True)).rsqrt_().unsqueeze(-1)
                    update = torch.mul(r, st[1].unsqueeze(-2).rsqrt())
                    update.mul_(grad)
                else:
                    update = st[0].rsqrt().mul_(grad)
                neg = -update
                p32.add_(neg)
                del neg                                    # grad, p32 and update stay bound until the next parameter's are made

    def tensors(self):
        return [t for st in self.state.values() for t in st]


def parameter_groups(model):
    """HF Trainer: a weight-decay group and one without."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [g for g in ([p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]) if g]


class TorchOptimizer:
    """An optimizer of torch.optim, run itself; `foreach` is what it would choose on a GPU."""

    def __init__(self, cls, model):
        self.inner = cls([{"params": g, "weight_decay": 0.0} for g in parameter_groups(model)], lr=1e-3, foreach=True)

    clip = FakeOptimizer.clip

    def step(self):
        self.inner.step()

    def tensors(self):
        return [t for state in self.inner.state.values() for t in state.values() if isinstance(t, torch.Tensor)]


BITSANDBYTES = {"adamw_8bit": "AdamW8bit", "paged_adamw_8bit": "PagedAdamW8bit", "adamw_bnb_32bit": "AdamW32bit",
                "paged_adamw_32bit": "PagedAdamW32bit", "lion_8bit": "Lion8bit", "ademamix": "AdEMAMix", "ademamix_8bit": "AdEMAMix8bit",
                "paged_ademamix_32bit": "PagedAdEMAMix", "paged_ademamix_8bit": "PagedAdEMAMix8bit", "rmsprop_bnb": "RMSprop",
                "rmsprop_bnb_32bit": "RMSprop", "rmsprop_bnb_8bit": "RMSprop8bit"}
# Run themselves on one GPU as well; the others of bitsandbytes are FakeOptimizer's there.
ONE_GPU = {"ao_adamw_fp8", "adamw_torch_8bit", "adamw_torch_4bit", "ademamix", "ademamix_8bit", "paged_ademamix_32bit", "paged_ademamix_8bit", "rmsprop_bnb",
           "rmsprop_bnb_8bit", "rmsprop_bnb_32bit"}
TORCHAO = {"adamw_torch_8bit": "AdamW8bit", "adamw_torch_4bit": "AdamW4bit", "ao_adamw_fp8": "AdamWFp8"}


def library_class(name):
    """The optimizer of bitsandbytes 0.50 or torchao 0.18 itself, None for torch's; both do their allocations in Python."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "optimizers")
    if path not in sys.path:
        sys.path.insert(0, path)             # no sooner: PEFT would take bitsandbytes' layers for those to adapt
    if name in BITSANDBYTES:
        available, torch.cuda.is_available = torch.cuda.is_available, lambda: False      # else it loads kernels
        import bitsandbytes as bnb
        torch.cuda.is_available = available
        torch.cuda.synchronize = lambda device=None: None
        import bitsandbytes.functional as F
        F.get_paged = lambda *shape, dtype, device: torch.empty(shape, dtype=dtype)      # cudaMallocManaged: the host's
        F.fill = F.prefetch_tensor = F.optimizer_update_8bit_blockwise = F.optimizer_update_32bit = lambda *a, **k: None   # in place
        return getattr(bnb.optim, BITSANDBYTES[name])
    if name in TORCHAO:
        import torchao.optim
        return type("Uncompiled", (getattr(torchao.optim, TORCHAO[name]),), {"step": uncompiled_step})
    return None


def uncompiled_step(self, closure=None):
    """torchao optim/adam.py _AdamBase.step: its states; the compiled update makes no tensor."""
    for group in self.param_groups:
        for p in group["params"]:
            if p.grad is not None and not self.state[p]:
                self.state[p] = {"step": torch.tensor(0.0), "exp_avg": self._new_buffer(p, True), "exp_avg_sq": self._new_buffer(p, False)}


def register_tables(model):
    """transformers 5.12 trainer.py: token tables keep 32 bits under bitsandbytes' 8-bit optimizers, where they are found again."""
    import bitsandbytes as bnb
    for m in model.modules():
        if isinstance(m, nn.Embedding):
            bnb.optim.GlobalOptimManager.get_instance().register_module_override(m, "weight", {"optim_bits": 32})


class LibraryOptimizer:
    def __init__(self, name, model):
        cls = library_class(name)
        self.inner = cls([{"params": g, "weight_decay": 0.0} for g in parameter_groups(model)], lr=1e-4)
        if name in BITSANDBYTES and "8bit" in name:
            register_tables(model)

    def clip(self, params):
        norms = [torch.empty((), dtype=torch.float32, device=p.device) for p in params if p.grad is not None]
        del norms

    def step(self):
        self.inner.step()

    def tensors(self):
        found = [t for state in self.inner.state.values() for k, t in state.items() if isinstance(t, torch.Tensor) and not k.startswith("qmap")]
        found = [getattr(t, "_local_tensor", t) for t in found]
        return [part for t in found for part in ([t.codes, t.scale] if hasattr(t, "codes") else [t])]    # torchao's wrappers hold these


def make_optimizer(job, model):
    import packages
    name = job["optimizer"]
    if name in packages.NAMES:
        return packages.make(name, model, job)
    if name in ONE_GPU:
        return LibraryOptimizer(name, model)
    library = {"adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}.get(name)
    return TorchOptimizer(library, model) if library else FakeOptimizer(name, model)


def real_optimizer(name, model):
    """The library optimizers, for --device cuda-real."""
    decay = [p for p in model.parameters() if p.requires_grad and p.dim() > 1]
    plain = [p for p in model.parameters() if p.requires_grad and p.dim() <= 1]
    groups = [{"params": g, "weight_decay": 0.0} for g in (decay, plain) if g]
    if name == "adamw_torch":
        return torch.optim.AdamW(groups, lr=1e-5, foreach=True)
    if name == "adamw_torch_fused":
        return torch.optim.AdamW(groups, lr=1e-5, fused=True)
    if name == "sgd":
        return torch.optim.SGD(groups, lr=1e-5)
    if name == "sgd_momentum":
        return torch.optim.SGD(groups, lr=1e-5, momentum=0.9)
    if name == "adafactor":
        return transformers.optimization.Adafactor(groups, lr=1e-5, scale_parameter=False, relative_step=False)
    import bitsandbytes as bnb
    opt = {"adamw_8bit": bnb.optim.AdamW8bit, "paged_adamw_8bit": bnb.optim.PagedAdamW8bit, "lion_8bit": bnb.optim.Lion8bit,
           "lion_32bit": bnb.optim.Lion32bit, "paged_adamw_32bit": bnb.optim.PagedAdamW32bit}[name](groups, lr=1e-5)
    if "8bit" in name:
        for m in model.modules():
            if isinstance(m, nn.Embedding):
                bnb.optim.GlobalOptimManager.get_instance().register_module_override(m, "weight", {"optim_bits": 32})
    return opt
