"""The memory behaviour of bitsandbytes' packed weights, and what PEFT does to a model that holds them."""
import types

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.quantizers_utils import should_convert_module


def set_param(model, name, value):
    path, _, leaf = name.rpartition(".")
    model.get_submodule(path)._parameters[leaf] = value


STORAGES = {"uint8": torch.uint8, "bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class _MatMul4Bit(torch.autograd.Function):
    """bitsandbytes 0.50 autograd/_functions.py MatMul4Bit: dequantise, multiply, drop the copy. Backward dequantises to the
    dtype that was packed (quant_state.dtype) and converts.

    Its ctx.tensors is a view of the packed weight, out of saved tensors' sight: where the weight's storage is another one each time it
    is gathered (ZeRO-3), the view keeps the old one until the graph goes."""

    @staticmethod
    def forward(ctx, x, packed, layer):
        ctx.layer = layer
        w = layer.dequantize(x.dtype)
        if ctx.needs_input_grad[0]:
            ctx.tensors = (None, packed)
        return F.linear(x, w, layer.bias if layer.bias is None else layer.bias.to(x.dtype))

    @staticmethod
    def backward(ctx, g):
        return torch.matmul(g, ctx.layer.dequantize(g.dtype, ctx.layer.packed_dtype)), None, None


class FakeLinear4bit(nn.Linear):
    """Packed NF4 weight (blocks of 64) with optional double quantisation (blocks of 256)."""

    def __init__(self, src, double_quant, compute_dtype, storage=torch.uint8):
        nn.Module.__init__(self)
        self.in_features, self.out_features = src.in_features, src.out_features
        n, dev = src.weight.numel(), src.weight.device
        self.packed_dtype = src.weight.dtype
        self.shape, self.compute_dtype, self.double_quant = tuple(src.weight.shape), compute_dtype, double_quant
        self.weight = nn.Parameter(torch.empty((n + 1) // 2 // storage.itemsize, 1, dtype=storage, device=dev), requires_grad=False)
        self.bias = None if src.bias is None else nn.Parameter(src.bias.detach(), requires_grad=False)
        blocks = -(-n // 64)
        self.register_buffer("code", torch.empty(16, device=dev), persistent=False)
        if double_quant:
            self.register_buffer("absmax", torch.empty(blocks, dtype=torch.uint8, device=dev), persistent=False)
            self.register_buffer("absmax2", torch.empty(-(-blocks // 256), device=dev), persistent=False)
            self.register_buffer("code2", torch.empty(256, device=dev), persistent=False)
            self.register_buffer("offset", torch.empty((), device=dev), persistent=False)
        else:
            self.register_buffer("absmax", torch.empty(blocks, device=dev), persistent=False)

    def dequantize(self, dtype, through=None):
        absmax = torch.empty(self.absmax.numel(), device=self.weight.device) if self.double_quant else self.absmax
        w = torch.empty(self.shape, dtype=through or self.compute_dtype, device=self.weight.device)
        del absmax
        return w.to(dtype)

    def forward(self, x):
        inp = x.dtype
        return _MatMul4Bit.apply(x.to(self.compute_dtype), self.weight.view(-1, 1), self).to(inp)


class _MatMul8bit(torch.autograd.Function):
    """bitsandbytes 0.50 autograd/_functions.py MatMul8bitLt: rows of the input to int8, int32 products, dequantised.

    transformers' threshold of 6 makes it look for outliers; how many there are is data, none here.
    The input itself is kept (ctx.tensors) though only its dtype is asked for in backward."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer, ctx.shape, ctx.dtype = layer, x.shape, x.dtype
        rows = x.reshape(-1, x.shape[-1])
        codes, scales = _MatMul8bit.quantised(rows.to(torch.float16))
        product = torch.empty(rows.shape[0], layer.out_features, dtype=torch.int32, device=x.device)
        # backends/cuda/ops.py int8_mm_dequant: the kernel writes fp16, bias added inside; other dtypes get a copy
        out = torch.empty_like(product, dtype=torch.float16)
        if layer.bias is not None and layer.bias.dtype != torch.float16:       # fp16 ones are added inside the kernel
            out.add_(layer.bias)
        out = out.to(x.dtype)
        del codes, scales, product
        if ctx.needs_input_grad[0]:
            ctx.kept = rows
        return out.view(*x.shape[:-1], layer.out_features)

    @staticmethod
    def quantised(rows):
        """backends/cuda/ops.py int8_vectorwise_quant"""
        scales = torch.empty(rows.shape[0], dtype=torch.float32, device=rows.device)
        codes = torch.empty_like(rows, dtype=torch.int8)
        outliers = rows.abs() >= 6.0
        outliers.any(dim=0)
        return codes, scales

    @staticmethod
    def backward(ctx, g):
        layer = ctx.layer
        g = g.reshape(-1, g.shape[-1]).contiguous()
        weight = layer.weight.to(ctx.dtype, copy=True)
        factor = layer.row_scales.unsqueeze(1).mul(1.0 / 127.0)
        weight = weight.mul_(factor)
        del factor
        return torch.matmul(g.to(ctx.dtype), weight).view(ctx.shape), None


class FakeLinear8bit(nn.Linear):
    """bitsandbytes nn/modules.py Linear8bitLt without fp16 weights: a byte per element and an fp32 scale per row."""

    def __init__(self, src):
        nn.Module.__init__(self)
        self.in_features, self.out_features = src.in_features, src.out_features
        self.weight = nn.Parameter(torch.empty(src.weight.shape, dtype=torch.int8, device=src.weight.device), requires_grad=False)
        self.bias = None if src.bias is None else nn.Parameter(src.bias.detach(), requires_grad=False)
        self.register_buffer("row_scales", torch.empty(self.out_features, device=src.weight.device), persistent=False)

    def forward(self, x):
        if self.bias is not None and self.bias.dtype != x.dtype:       # Linear8bitLt.forward casts it for good
            self.bias = nn.Parameter(self.bias.to(x.dtype), requires_grad=False)
        return _MatMul8bit.apply(x, self)


def as_linear(m):
    """A Conv1D is packed as the Linear of its transposed weight (transformers 5.12.1 integrations/bitsandbytes.py)."""
    if not isinstance(m, Conv1D):
        return m
    inputs, outputs = m.weight.shape
    return types.SimpleNamespace(in_features=inputs, out_features=outputs, weight=m.weight.T, bias=m.bias)


def left_before_5(model):
    """transformers 4.57 integrations/bitsandbytes.py get_keys_to_not_convert: the last child and what is tied."""
    tied = model.all_tied_weights_keys
    if not tied and not hasattr(model, model.base_model_prefix):
        return []
    names = {list(model.named_children())[-1][0], *tied, *tied.values()}
    return [name.removesuffix(".weight") for name in names]


def left_since_5(model):
    """transformers 5.12 quantizers/base.py get_keys_to_not_convert, which from_pretrained calls before weights are tied."""
    tied = model.all_tied_weights_keys
    last = list(model.named_parameters(remove_duplicate=False))[-1][0]
    head = model.get_output_embeddings()
    heads = [name for name, module in model.named_modules() if module is head]
    return [name.removesuffix(".weight") for name in {last, *tied, *tied.values(), *heads}]


def quantize_linears(model, job):
    """What from_pretrained(quantization_config=nf4) replaces: every nn.Linear and Conv1D but those that transformers 5 leaves by their names."""
    if job.get("packed"):
        import packed
        packed.pack(model, job)
        return
    left = left_before_5(model) if job.get("release", "5").startswith("4") else left_since_5(model)
    eight = job.get("bits", 4) == 8
    storage = STORAGES[job.get("quant_storage", "uint8")]
    # bnb_4bit_compute_dtype: that of autocast, or of the weights; fp16 weights under bf16 autocast compute in bf16.
    cdt = torch.float16 if job["precision"] in ("fp16", "amp_fp16") else torch.bfloat16
    # T5's wo, DeepSeek-V4's compressors: not quantised; in fp32 beside 4-bit layers until transformers 4.57 (use_keep_in_fp32_modules), since 5 where it was fp16
    # (modeling_utils.py _get_dtype_plan).
    fp32 = getattr(model, "_keep_in_fp32_modules", None) or ()
    for name, m in list(model.named_modules()):
        if type(m) is nn.Linear and any(f".{part}." in f".{name}." or name.endswith(part) for part in fp32):
            if job.get("release", "5").startswith("4") or m.weight.dtype == torch.float16:
                m.weight = nn.Parameter(m.weight.detach().float())
        elif (type(m) is nn.Linear or isinstance(m, Conv1D)) and should_convert_module(name, left):
            parent = model.get_submodule(name.rpartition(".")[0])
            m = as_linear(m)
            new = FakeLinear8bit(m) if eight else FakeLinear4bit(m, job.get("double_quant", True), cdt, storage)
            setattr(parent, name.rpartition(".")[2], new)
    setattr(model, "is_loaded_in_8bit" if eight else "is_loaded_in_4bit", True)


class UnpackedParameter(nn.Module):
    """bitsandbytes 0.50 nn/parametrize.py Bnb4bitParametrization."""
    def __init__(self, state):
        super().__init__()
        self.state = [state]                       # a QuantState, no module

    @torch.no_grad()
    def forward(self, packed):
        state = self.state[0]
        return state.dequantize(state.packed_dtype, state.packed_dtype)


class UnpackedInt8(nn.Module):
    """axolotl 067b021 monkeypatch/moe_quant.py Bnb8bitParametrization; bitsandbytes 0.50 backends/default/ops.py int8_vectorwise_dequant."""
    def __init__(self, row_stats):
        super().__init__()
        self.register_buffer("row_stats", row_stats)

    @torch.no_grad()
    def forward(self, packed):
        rows = packed.reshape(-1, packed.shape[-1])
        return (rows * self.row_stats.view(-1, 1) * 7.874015718698502e-3).reshape(packed.shape)


def packed_int8(p):
    """What takes a parameter's place, and what unpacks it: codes of its shape, a scale for each row in fp32."""
    row_stats = torch.empty(p.numel() // p.shape[-1], device=p.device, dtype=torch.float32)
    return nn.Parameter(torch.empty(p.shape, dtype=torch.int8, device=p.device), requires_grad=False), UnpackedInt8(row_stats)


def packed_4bit(p, double_quant):
    flat = types.SimpleNamespace(in_features=p.shape[-1], out_features=p.shape[0], weight=p, bias=None)
    state = FakeLinear4bit(flat, double_quant, p.dtype)
    return state.weight, UnpackedParameter(state)


def pack_experts(model, double_quant, bits=4):
    """axolotl 067b021 monkeypatch/moe_quant.py _patched_set_param_for_module, bitsandbytes 0.50 nn/parametrize.py replace_parameter_4bit:
    experts of three dimensions are unpacked where they are read, once in each forward of their module."""
    def enable(module, inputs):
        parametrize._cache_enabled += 1

    def disable(module, inputs, output):
        parametrize._cache_enabled -= 1
        if not parametrize._cache_enabled:
            parametrize._cache = {}
    # patch_peft_target_parameters_matching: what holds the packed ones is no layer of a target's name.
    from peft.tuners.tuners_utils import BaseTuner
    matches = BaseTuner._check_target_module_exists
    BaseTuner._check_target_module_exists = staticmethod(lambda config, key: ".parametrizations." not in key and matches(config, key))
    for name, module in list(model.named_modules()):
        for leaf, p in list(module._parameters.items()):
            if p is None or p.dim() < 3 or "expert" not in f"{name}.{leaf}".lower():
                continue
            packed, unpacks = packed_int8(p) if bits == 8 else packed_4bit(p, double_quant)
            setattr(module, leaf, packed)
            parametrize.register_parametrization(module, leaf, unpacks, unsafe=True)
            module.register_forward_pre_hook(enable)
            module.register_forward_hook(disable)


def prepare_kbit(model, norms_only=False, norms_back=False):
    """peft.prepare_model_for_kbit_training: freeze, and every 16-bit parameter becomes fp32.

    ``norms_only`` is the variant some recipes use: embeddings and head stay 16-bit. ``norms_back``: axolotl 067b021 loaders/model.py
    _convert_embedding_modules_dtype, which turns norms, embed_tokens and lm_head back."""
    seen = {}
    half = next((p.dtype for p in model.parameters() if p.dtype in (torch.bfloat16, torch.float16)), None)
    packed = {id(m.weight) for m in model.modules() if isinstance(m, FakeLinear4bit)}     # no Params4bit, whatever its storage's dtype
    for name, p in list(model.named_parameters(remove_duplicate=False)):
        if id(p) not in packed and p.dtype in (torch.bfloat16, torch.float16) and not (norms_only and p.dim() > 1):
            if id(p) not in seen:
                seen[id(p)] = nn.Parameter(p.detach().to(torch.float32), requires_grad=False)
            set_param(model, name, seen[id(p)])
    if norms_back:
        turned = {}                                # module.to() gives a parameter other data: what is tied stays so
        for name, module in model.named_modules():
            if "norm" in name or (any(m in name for m in ("embed_tokens", "lm_head")) and hasattr(module, "weight")):
                for of, p in list(module.named_parameters()):
                    if p.is_floating_point() and id(p) not in turned:
                        turned[id(p)] = new = nn.Parameter(p.detach().to(half), requires_grad=False)
                        turned[id(new)] = new
                        for held, key in [(m, k) for m in model.modules() for k, v in m._parameters.items() if v is p]:
                            set_param(held, key, new)     # under whatever name: T5's and BART's `shared` is their embed_tokens


def teach_dora():
    """peft/utils/integrations.py dequantize_module_weight knows bitsandbytes' own classes only."""
    import peft.tuners.lora.dora as dora
    plain = dora.dequantize_module_weight

    def dequantised(module):
        if isinstance(module, FakeLinear4bit):             # quant_state.dtype: that of the weight which was packed
            return module.dequantize(module.packed_dtype)
        if isinstance(module, FakeLinear8bit):             # functional.py int8_vectorwise_dequant
            return module.weight * module.row_scales.view(-1, 1) * (1 / 127.0)
        return plain(module)
    dora.dequantize_module_weight = dequantised
