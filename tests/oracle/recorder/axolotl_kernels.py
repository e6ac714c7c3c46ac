"""Axolotl's own autograd functions for LoRA layers, and its own patch that puts them into a model; a job's `lora_kernels` names which
(mlp, qkv, o, embedding), `fused_attention` says that attention's norms and rotations are its one kernel, `axolotl` the release
(third_party/axolotl/RELEASE: src/axolotl/{kernels,monkeypatch}, 0.18 being 067b021).

Triton kernels and bitsandbytes' C functions write where they are told and allocate nothing: nothing is launched."""
import importlib
import logging
import os
import re
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))


def is_one(job):
    return bool(job.get("lora_kernels") or job.get("fused_attention"))


def apply(model, job):
    """What PatchManager does: the attention class's forward is rewritten, then methods of the layers are replaced."""
    patch = loaded(job.get("axolotl", "0.18"))
    cfg = Config({f"lora_{name}_kernel": True for name in job.get("lora_kernels", [])})
    if cfg.lora_qkv_kernel or cfg.lora_o_kernel:
        attention = type(next(m for n, m in model.named_modules() if re.search(r"layers\.\d+\.self_attn$", n)))
        patch.get_attention_cls_from_config = lambda cfg: attention
        attention.__dict__.get("_original_forward") or patch.patch_self_attn_lora(cfg)
    if job.get("fused_attention"):
        fuse_attention(model.config, job)
    if not cfg:
        return
    for module in model.modules():
        tell_quant_state(module)
    patch.apply_lora_kernel_patches(model, cfg)


# loaders/patch_manager.py: which file of monkeypatch/models is for which model_type.
FUSED = {"gemma4": "gemma4", "gemma4_text": "gemma4", "gemma4_unified": "gemma4_unified", "gemma4_unified_text": "gemma4_unified",
         "qwen3": "qwen3", "qwen3_moe": "qwen3_moe", "qwen3_vl": "qwen3_vl", "qwen3_5": "qwen3_5", "qwen3_5_text": "qwen3_5",
         "qwen3_5_moe": "qwen3_5_moe", "qwen3_5_moe_text": "qwen3_5_moe"}


def fuse_attention(config, job):
    """_apply_model_specific_patches: of Gemma 4 checkpoints' keys and values go another way."""
    kind = FUSED[config.model_type]
    rope = importlib.import_module("axolotl.kernels.gemma4_fused_rope")
    processors = types.SimpleNamespace(multi_processor_count={80: 108, 90: 132}[job.get("arch", 80)])        # A100's, H100's
    rope.torch = Overlaid(rope.torch, cuda=Overlaid(rope.torch.cuda, get_device_properties=lambda device: processors))
    fused = importlib.import_module(f"axolotl.monkeypatch.models.{kind}.fused_attn")
    patch = getattr(fused, f"patch_{kind}_fused_attn")
    if kind.startswith("gemma4"):
        patch(install_shared_kv_workaround=job.get("gradient_checkpointing", "none") != "none")
    else:
        patch()


class Overlaid:
    """A module of which some names are others."""
    def __init__(self, under, **names):
        self.under = under
        self.__dict__.update(names)

    def __getattr__(self, name):
        return getattr(self.under, name)


class Config(dict):
    """axolotl.utils.dict.DictDefault: a key that is not there is None."""
    def __getattr__(self, key):
        return self.get(key)


def tell_quant_state(module):
    """bitsandbytes functional.py QuantState of a packed weight, as quantised.FakeLinear4bit holds its parts."""
    from quantised import FakeLinear4bit
    if not isinstance(module, FakeLinear4bit):
        return
    nested = types.SimpleNamespace(code=module.code2, absmax=module.absmax2, blocksize=256) if module.double_quant else None
    module.weight.quant_state = types.SimpleNamespace(
        absmax=module.absmax, shape=module.shape, dtype=module.packed_dtype, blocksize=64, state2=nested,
        offset=module.offset if module.double_quant else None)


def loaded(release):
    stub_modules()
    sys.path.insert(0, os.path.join(HERE, "third_party", "axolotl", release))
    patch = importlib.import_module("axolotl.monkeypatch.lora_kernels")
    quantize = importlib.import_module("axolotl.kernels.quantize")
    stream = object()
    quantize.CUDA_STREAM = stream if release == "0.17" else types.SimpleNamespace(get=lambda device: stream)
    quantize.HAS_CUDA_STREAM = True
    return patch


def module(name, **content):
    sys.modules[name] = made = types.ModuleType(name)
    made.__dict__.update(content)
    return made


class Kernel:
    """A @triton.jit function: `kernel[grid](...)` launches it."""
    def __init__(self, function):
        pass

    def __getitem__(self, grid):
        return lambda *args, **words: None


class TritonOp:
    """torch.library.triton_op: a function that autograd knows by what register_autograd was told (torch/_library/autograd.py)."""
    def __init__(self, function):
        self.function = function

    def register_autograd(self, backward, setup_context):
        import torch

        def forward(ctx, *args):
            with torch.no_grad():
                made = self.function(*args)
            setup_context(ctx, args, made)
            return made
        self.node = type(self.function.__name__, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def __call__(self, *args):
        return self.node.apply(*args) if hasattr(self, "node") else self.function(*args)


class PlainOp:
    """axolotl.kernels.op_registry: a custom op, called as the Python function that it is made of."""
    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **words):
        return self.function(*args, **words)

    def register_fake(self, function):
        return function


def detab_code(code):
    spaces = re.match(r"([\s\t]{1,})", code)
    return (code, "") if spaces is None else (re.sub("^" + spaces.group(0), "", code, flags=re.MULTILINE), spaces.group(0))


def dequantize_4bit(weight, state, quant_type):
    """bitsandbytes functional.py: scales that are not quantised need no copy."""
    import torch
    out = torch.empty(state.shape, dtype=state.dtype, device=weight.device)
    return out.t() if weight.shape[0] == 1 else out


def stub_modules():
    c = type("Lib", (), {"__getattr__": lambda self, name: lambda *args: None})()
    language = module("triton.language", constexpr=int)
    module("triton", jit=Kernel, language=language, autotune=lambda **how: lambda kernel: kernel, Config=lambda *args, **how: None,
           cdiv=lambda a, b: -(-a // b), next_power_of_2=lambda n: 1 << (n - 1).bit_length())
    functional = module("bitsandbytes.functional", lib=c, get_ptr=lambda tensor: None, QuantState=types.SimpleNamespace,
                        dequantize_4bit=dequantize_4bit)
    module("bitsandbytes", functional=functional, __version__="0.50.2")
    module("triton.language.extra")
    module("triton.language.extra.libdevice", rsqrt=None)
    if "liger_kernel" not in sys.modules:
        import torch
        types_of = {dtype: None for dtype in (torch.float32, torch.float16, torch.bfloat16)}
        module("liger_kernel")
        module("liger_kernel.ops")
        module("liger_kernel.ops.utils", calculate_settings=lambda columns: (1 << (columns - 1).bit_length(), 4),
               compare_version=lambda package, operator, version: True, torch_to_triton_dtype=types_of)
        module("liger_kernel.utils", is_npu_available=lambda: False)
    library = importlib.import_module("torch.library")
    library.triton_op = lambda name, mutates_args=(): TritonOp
    library.wrap_triton = lambda kernel: kernel
    module("axolotl.monkeypatch.utils", detab_code=detab_code)
    module("axolotl.utils")
    module("axolotl.utils.callbacks")
    module("axolotl.utils.callbacks.models", get_causal_lm_model_cls_prefix=None)
    module("axolotl.utils.dict", DictDefault=dict)
    module("axolotl.utils.logging", get_logger=lambda name: Log())
    module("axolotl.kernels.op_registry", register_kernel_op=lambda name, mutates_args=(): PlainOp)


class Log(logging.getLoggerClass()):
    def __init__(self):
        super().__init__("axolotl")

    def warning_once(self, message):
        print("axolotl:", message, file=sys.stderr)
