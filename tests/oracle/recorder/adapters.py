"""PEFT's adapters beside LoRA, by PEFT's own code; `lora.kind` names one, the other keys are its configuration's own words."""
import importlib.machinery
import sys
import types

import torch
import torch.nn as nn

CONFIGS = {"ia3": "IA3Config", "adalora": "AdaLoraConfig", "loha": "LoHaConfig", "lokr": "LoKrConfig", "vera": "VeraConfig", "oft": "OFTConfig",
           "boft": "BOFTConfig", "ln_tuning": "LNTuningConfig", "prompt_tuning": "PromptTuningConfig", "prefix_tuning": "PrefixTuningConfig",
           "p_tuning": "PromptEncoderConfig"}
PROMPTS = ("prompt_tuning", "prefix_tuning", "p_tuning")
OURS = ("kind", "adapter_dtype", "task_type")


def is_one(job):
    return job.get("lora", {}).get("kind", "lora") not in ("lora", "lora_fa")


def configuration(peft, lo):
    kind = lo["kind"]
    words = {key: value for key, value in lo.items() if key not in OURS}
    if kind in PROMPTS or kind == "ln_tuning":
        words.pop("target_modules", None) if kind in PROMPTS else None
    if kind == "adalora":
        words.setdefault("total_step", 1000)
    task = lo.get("task_type", True)
    if task:
        words["task_type"] = "CAUSAL_LM" if task is True else task
    return getattr(peft, CONFIGS[kind])(**words)


def bitsandbytes():
    """A module of that name whose 4-bit layers are the recorder's: PEFT's classes for packed weights then are PEFT's own."""
    import quantised
    if "bitsandbytes" in sys.modules:
        return
    bnb = types.ModuleType("bitsandbytes")
    bnb.__spec__ = importlib.machinery.ModuleSpec("bitsandbytes", None)
    bnb.nn = types.ModuleType("bitsandbytes.nn")
    bnb.nn.Linear4bit, bnb.nn.Linear8bitLt = quantised.FakeLinear4bit, quantised.FakeLinear8bit
    bnb.nn.Params4bit = bnb.nn.Int8Params = nn.Parameter
    bnb.functional = types.ModuleType("bitsandbytes.functional")
    bnb.optim = types.ModuleType("bitsandbytes.optim")                     # galore_torch and apollo_torch import it, whichever is used
    bnb.optim.optimizer = types.ModuleType("bitsandbytes.optim.optimizer")
    bnb.optim.optimizer.Optimizer2State = object
    sys.modules.update({"bitsandbytes": bnb, **{f"bitsandbytes.{name}": part for name, part in
                                                (("nn", bnb.nn), ("functional", bnb.functional), ("optim", bnb.optim), ("optim.optimizer", bnb.optim.optimizer))}})


def dress(model):
    """What PEFT reads of packed layers when it wraps them."""
    import quantised
    for m in model.modules():
        if isinstance(m, quantised.FakeLinear4bit):
            m.weight.compress_statistics, m.weight.quant_type = m.double_quant, "nf4"
        if isinstance(m, quantised.FakeLinear8bit):
            m.state, m.index = types.SimpleNamespace(has_fp16_weights=False, threshold=6.0), None


def without_values(peft):
    """Values that PEFT computes while it builds layers and that memory does not depend on."""
    import peft.tuners.boft.layer as boft
    import peft.tuners.loha.layer as loha
    import peft.tuners.lokr.layer as lokr
    import peft.tuners.vera.model as vera
    # `torch.rand(1) > module_dropout` asks a number of the host for its value
    drawn = types.SimpleNamespace(**{**vars(torch), "rand": lambda n: 2.0 if n == 1 else torch.rand(n)})
    loha.torch = lokr.torch = drawn
    vera._kaiming_init = lambda shape, generator: torch.empty(shape)
    boft.get_fbd_cuda = lambda: None                       # no nvcc and ninja at hand: PEFT says so and goes on without its kernel
    boft.BOFTLayer.perm2mat = lambda self, indices: torch.zeros(len(indices), len(indices))


def add(model, job, device):
    bitsandbytes()
    import peft
    without_values(peft)
    dress(model)
    if job.get("packed"):
        import packed
        packed.turn(job)
    lo = job["lora"]
    if lo["kind"] in PROMPTS:
        model.config.use_cache = lo["kind"] == "prefix_tuning"
    with torch.device(device):
        adapted = peft.get_peft_model(model, configuration(peft, lo), autocast_adapter_dtype=lo.get("adapter_dtype", "fp32") == "fp32")
    adapted.train()
    return adapted
