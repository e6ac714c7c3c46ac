"""Optimizers of packages, run themselves: their steps are Python, and every tensor that they make is seen.

What transformers' Trainer builds for an `optim` name is built by its own transformers/trainer_optimizer.py.  Kernels of
bitsandbytes and torchao work in place and are left out (optimizers.py: library_class).
"""
import importlib

import torch
import torch.nn as nn
import transformers

import further_packages

LOW_RANK = {f"{rule}{bits}{how}": (package, name)
            for rule, bits, package, name in (("galore_adamw", "", "galore_torch", "GaLoreAdamW"), ("galore_adamw", "_8bit", "galore_torch", "GaLoreAdamW8bit"),
                                              ("galore_adafactor", "", "galore_torch", "GaLoreAdafactor"), ("apollo_adamw", "", "apollo_torch", "APOLLOAdamW"))
            for how in ("", "_layerwise")}
# transformers 5.12 trainer_optimizer.py: _get_galore_optimizer, _get_apollo_optimizer.
SETTINGS = {"galore": {"rank": 128, "update_proj_gap": 200, "scale": 0.25, "proj_type": "std"},
            "apollo": {"rank": 128, "proj": "random", "scale_type": "channel", "update_proj_gap": 200, "scale": 1.0, "proj_type": "std"}}
PLAIN = {"grokadamw": ("grokadamw", "GrokAdamW", {}), "came_pytorch": ("came_pytorch", "CAME", {}),
         "schedule_free_adamw": ("schedulefree", "AdamWScheduleFree", {}), "schedule_free_radam": ("schedulefree", "RAdamScheduleFree", {}),
         "schedule_free_sgd": ("schedulefree", "SGDScheduleFree", {}),
         # diffusers examples/dreambooth/train_dreambooth_lora_sdxl.py
         "prodigy": ("prodigyopt", "Prodigy", {"betas": (0.9, 0.999), "weight_decay": 1e-4, "decouple": True, "use_bias_correction": True, "safeguard_warmup": True}),
         # axolotl core/builders/base.py; `foreach` is what it would choose on a GPU
         "adopt_adamw": ("adopt", "ADOPT", {"decouple": True, "foreach": True}),
         # transformers 5.12 trainer_optimizer.py: _get_adamw_anyprecision
         "adamw_anyprecision": ("torchdistx.optimizers.anyprecision_optimizer", "AnyPrecisionAdamW",
                                {"momentum_dtype": torch.float32, "variance_dtype": torch.float32})}
LOMO = {"lomo": "Lomo", "adalomo": "AdaLomo"}
NAMES = {*LOW_RANK, *PLAIN, *LOMO, *further_packages.MADE, "muon", "adam_mini"}


def first(value, *_):
    """`max(tensor, 1.01)` of the packages asks for a number, which a fake tensor has not; both branches keep as much."""
    return value if isinstance(value, torch.Tensor) else next((v for v in _ if isinstance(v, torch.Tensor)), value)


def groups_of(model):
    from optimizers import parameter_groups
    return [{"params": g, "weight_decay": 0.0} for g in parameter_groups(model)]


def answer_questions(model):
    """Prodigy asks whether a weight has anything but zeros in it, which PEFT's second factors have not; sums are some number."""
    from preferences import answer_items
    answer_items()
    zeros = {id(p): "lora_B" in name for name, p in model.named_parameters()}
    plain = torch.Tensor.any
    torch.Tensor.any = lambda self, *a, **k: not zeros[id(self)] if id(self) in zeros else plain(self, *a, **k)


class Package:
    """One optimizer, or two (Muon for matrices and AdamW for the rest)."""

    def __init__(self, *inner):
        self.inner = inner

    def clip(self, params):
        norms = [torch.empty((), dtype=p.grad.dtype, device=p.device) for p in params if p.grad is not None]
        del norms

    def step(self):
        for one in self.inner:
            one.step()

    def backward(self, loss):
        loss.backward()

    def tensors(self):
        found = []
        for one in self.inner:
            for state in one.state.values():
                for value in state.values():
                    found += [value, getattr(value, "ortho_matrix", None)]
        return [t for t in found if isinstance(t, torch.Tensor)]


class Fused(Package):
    """LOMO: the update happens in backward, and no gradient is left for the norm or the step."""

    def __init__(self, inner, model):
        super().__init__(inner)
        inner.state, self.model = {}, model

    def clip(self, params):
        pass

    def step(self):
        pass

    def backward(self, loss):
        self.inner[0].fused_backward(loss, 1e-4)

    def tensors(self):
        return [t for name in ("exp_avg_sq", "exp_avg_sq_row", "exp_avg_sq_col") for t in getattr(self.inner[0], name, {}).values()]


def svd(matrix, full_matrices=True, whole=torch.linalg.svd):
    """cuSOLVER overwrites a column-major copy of the matrix (native/cuda/linalg/BatchLinearAlgebraLib.cpp); its workspace is not known."""
    found = whole(matrix, full_matrices=full_matrices)
    copy = torch.empty_like(matrix)
    del copy
    return found


def low_rank(name, model, job):
    package, cls = LOW_RANK[name]
    module = __import__(package)
    if package == "apollo_torch":
        import apollo_torch.apollo as apollo
        apollo.max = first
        # A generator draws numbers, which a fake tensor has not.
        import apollo_torch.random_projector as projector
        projector.next_seed = lambda seed: seed
        projector.stable_randn = lambda shape, seed, device=None, dtype=torch.float32: torch.randn(shape, device=device, dtype=dtype)
    import transformers.trainer_optimizer as trainer
    torch.linalg.svd = svd

    class Arguments:
        optim_target_modules = job.get("optim_target_modules", "all-linear")
        gradient_accumulation_steps = job["grad_accum"]
        parallel_mode = None
    # Every step finds new directions, as every 200th does: what the 201st holds shows in the third.
    settings = {**SETTINGS[name.split("_")[0]], "update_proj_gap": 1, **job.get("optim_args", {})}
    trained = {id(p) for p in model.parameters() if p.requires_grad}
    made, kwargs = trainer._setup_low_rank_optimizer(Arguments, model, name, {name: getattr(module, cls)}, settings, {"lr": 1e-4})
    if name.endswith("layerwise"):
        return Layerwise(kwargs["optimizer_dict"])
    if name == "galore_adafactor":
        kwargs.update(scale_parameter=False, relative_step=False)
    groups = [{**g, "params": [p for p in g["params"] if id(p) in trained]} for g in kwargs.pop("params")]
    return Package(made([g for g in groups if g["params"]], **kwargs))


class Further(Package):
    def tensors(self):
        return further_packages.tensors(self.inner[0])


class Layerwise(Package):
    """The Trainer's hooks step in backward; nothing is left for the norm or the step."""

    def __init__(self, of_each):
        super().__init__(*of_each.values())

    def clip(self, params):
        pass

    def step(self):
        pass


def make(name, model, job):
    from optimizers import library_class
    library_class("none")                                # the packages' place
    if "8bit" in name:
        library_class("adamw_8bit")                      # bitsandbytes without kernels
    if name in LOW_RANK:
        return low_rank(name, model, job)
    if name in further_packages.MADE:
        return Further(further_packages.MADE[name](model, job))
    if name in PLAIN:
        package, cls, settings = PLAIN[name]
        inner = getattr(importlib.import_module(package), cls)(groups_of(model), lr=1e-4, **settings)
        if hasattr(inner, "train"):
            inner.train()
        for group in inner.param_groups:
            group.update({"k": 10} if "radam" in name else {})      # its first five steps have no denominator
        if name == "prodigy":
            answer_questions(model)
        return Package(inner)
    if name in LOMO:
        import lomo_optim
        import lomo_optim.adalomo as adalomo
        adalomo.max = lambda floor, rms: floor
        torch.Tensor.cuda = lambda self: self.to(next(model.parameters()).device)
        return Fused(getattr(lomo_optim, LOMO[name])(model), model)
    if name == "muon":
        tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
        trained = [p for p in model.parameters() if p.requires_grad]
        matrices = [p for p in trained if p.dim() == 2 and id(p) not in tables]
        rest = [p for p in trained if p.dim() != 2 or id(p) in tables]
        return Package(torch.optim.Muon(matrices), *([torch.optim.AdamW(rest, foreach=True)] if rest else []))
    config = model.config.get_text_config()
    from adam_mini import Adam_mini
    return Package(Adam_mini(model.named_parameters(), lr=1e-4, dim=config.hidden_size, n_heads=config.num_attention_heads,
                             n_kv_heads=getattr(config, "num_key_value_heads", None), verbose=False))
