"""Stand-ins for what Megatron-Core 0.16.1 takes from CUDA extensions: what each allocates, as its source says.

In their place a real machine has Apex, Transformer Engine and torch.compile.  Nothing here decides when anything is called."""
import contextlib
import sys
import types

import torch

TRACKER = []                # the recorder's, while a job runs


def module(name, **members):
    """Makes `name` importable, with its parents."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
        if i > 1:
            setattr(sys.modules[".".join(parts[:i - 1])], parts[i - 1], sys.modules[".".join(parts[:i])])
    for key, value in members.items():
        setattr(sys.modules[name], key, value)
    return sys.modules[name]


# -- torch.compile ----------------------------------------------------------------------------
def inner(name, args):
    """What a compiled function makes beside its outputs, as Inductor's code has it (TORCH_LOGS=output_code, torch 2.14)."""
    if name == "calculate_gradients":               # index_put of a copy of the softmax
        return torch.empty(args[0].shape, dtype=torch.float32, device=args[0].device)
    if name == "weighted_swiglu_back" and args[2].dtype == torch.float32:
        return torch.empty(args[1].shape, dtype=torch.float32, device=args[1].device)
    return None


def compiled(function):
    """jit_fuser of functions inside autograd.Functions: of what they compute only the outputs are tensors, and few more."""
    def call(*args, **kwargs):
        tr = TRACKER[0] if TRACKER else None
        with tr.mute() if tr else contextlib.nullcontext(), torch.no_grad():
            out = function(*args, **kwargs)
        if tr:
            held = inner(function.__name__, args)  # noqa: F841
            for t in out if isinstance(out, tuple) else (out,):
                tr.track(t, function.__name__)
        return out
    call.__name__ = function.__name__
    return call


class BiasDropoutAdd(torch.autograd.Function):
    """fusions/fused_bias_dropout.py under torch.compile: the sum, and of a dropout the mask that was drawn."""

    @staticmethod
    def forward(ctx, x, bias, residual, prob):
        ctx.has_bias, ctx.prob = bias is not None, prob
        if prob > 0:
            ctx.save_for_backward(torch.empty(residual.shape, dtype=torch.bool, device=x.device))
        return torch.empty_like(residual)

    @staticmethod
    def backward(ctx, grad):
        g = torch.empty_like(grad) if ctx.prob > 0 else grad
        bias = torch.empty(grad.shape[-1:], dtype=grad.dtype, device=grad.device) if ctx.has_bias else None
        return g, bias, grad, None


def bias_dropout_add(x_with_bias, residual, prob):
    return BiasDropoutAdd.apply(*x_with_bias, residual, prob)


# -- Apex -------------------------------------------------------------------------------------
class LayerNorm(torch.autograd.Function):
    """apex csrc/layer_norm_cuda.cpp: layer_norm_affine and its gradient; mean and 1/σ of each row in fp32."""

    @staticmethod
    def forward(ctx, x, weight, bias, shape, eps, memory_efficient=False):
        out = torch.empty_like(x)
        rows = x.numel() // weight.numel()
        mean, invvar = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
        ctx.save_for_backward(x, weight, bias, mean, invvar)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias, *_ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(bias), None, None, None


class FusedAdam(torch.optim.Optimizer):
    """apex optimizers/fused_adam.py: two states like the parameter, stepped in place."""

    def __init__(self, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **_):
        super().__init__(params, dict(lr=lr, bias_correction=bias_correction, betas=betas, eps=eps, weight_decay=weight_decay))

    def step(self, closure=None, **_):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and not self.state[p]:
                    self.state[p] = {"exp_avg": torch.zeros_like(p.data).float(), "exp_avg_sq": torch.zeros_like(p.data).float()}


def upper_triangle(scores, scale):
    """megatron scaled_upper_triang_masked_softmax_cuda: a new tensor; the gradient takes its argument's place."""
    return torch.empty_like(scores)


def batch_per_block(sq, sk, b, np):
    """scaled_masked_softmax.h: get_batch_per_block."""
    elements = 1 << max(0, sk - 1).bit_length()
    return 128 // min(elements, 32) * (2 if elements <= 128 else 1)


# -- Transformer Engine -----------------------------------------------------------------------
class FusedRope(torch.autograd.Function):
    """transformer_engine/pytorch/attention/rope.py: FusedRoPEFunc keeps the frequencies alone."""

    @staticmethod
    def forward(ctx, t, freqs):
        ctx.save_for_backward(freqs)
        return torch.empty(t.shape, dtype=t.dtype, device=t.device)

    @staticmethod
    def backward(ctx, grad):
        return torch.empty(grad.shape, dtype=grad.dtype, device=grad.device), None


class Norm(torch.autograd.Function):
    """Keeps its input and 1/σ of each row, of LayerNorm the mean, too: transformer_engine/pytorch/ops/basic/{rmsnorm, layer_norm}.py, and
    torch's aten/src/ATen/native/cuda/layer_norm_kernel.cu: _fused_rms_norm_cuda, of which a CPU build has the decomposition alone."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        rows = x.numel() // weight.numel()
        ctx.save_for_backward(x, weight, *(torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(1 if bias is None else 2)))
        ctx.has_bias = bias is not None
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        x, weight, *_ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight) if ctx.has_bias else None


class TENorm(torch.nn.Module):
    """What transformer_block.py puts behind the last layer wherever Transformer Engine is installed."""

    def __init__(self, config, hidden_size, eps=1e-5):
        super().__init__()
        make = lambda: torch.nn.Parameter(torch.empty(hidden_size, dtype=config.params_dtype))  # noqa: E731
        self.weight, self.bias = make(), make() if config.normalization == "LayerNorm" else None
        for p in self.parameters():
            p.sequence_parallel = config.sequence_parallel

    def forward(self, x):
        return Norm.apply(x, self.weight, self.bias)


DUMMIES = {}


def dummy_wgrad(shape, dtype, zero=False):
    """transformer_engine/pytorch/module/base.py: get_dummy_wgrad, one tensor for each shape, which stays."""
    key = (*shape, dtype)
    if key not in DUMMIES:
        DUMMIES[key] = torch.empty(shape, dtype=dtype, device="cuda", requires_grad=False)
    return DUMMIES[key].detach()


def install():
    """Before megatron.core is imported."""
    in_place = lambda *a: None  # noqa: E731
    scaled = dict(forward=upper_triangle, backward=lambda grad, *a: grad)
    module("amp_C", multi_tensor_scale="scale", multi_tensor_l2norm="l2norm")
    module("apex.multi_tensor_apply", multi_tensor_applier=applier)
    module("apex.optimizers", FusedAdam=FusedAdam, FusedSGD=torch.optim.SGD)
    module("apex.normalization.fused_layer_norm", FusedLayerNormAffineFunction=LayerNorm)
    module("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=in_place, wgrad_gemm_accum_fp16=in_place)
    module("scaled_upper_triang_masked_softmax_cuda", **scaled)
    module("scaled_masked_softmax_cuda", get_batch_per_block=batch_per_block, **scaled)
    module("scaled_softmax_cuda", **scaled)
    torch.compile, plain = (lambda f=None, *a, **k: compiled(f) if f else compiled), torch.compile
    import megatron.core.jit  # noqa: F401  (jit_fuser is torch.compile from there on)
    torch.compile = plain


def applier(op, overflow, lists, *args):
    """amp_C's kernels work in place; the norm's result is one number."""
    if op == "l2norm":
        return torch.zeros(1, dtype=torch.float32, device="cuda"), None
    return None


def after_import():
    import megatron.core.fusions.fused_bias_dropout as bda
    import megatron.core.models.common.embeddings.rope_utils as rope
    import megatron.core.tensor_parallel.layers as layers
    import megatron.core.transformer.transformer_block as block
    block.LayerNormImpl = TENorm
    torch.nn.RMSNorm.forward = lambda self, x: Norm.apply(x, self.weight, None)
    bda.bias_dropout_add_fused_train = bias_dropout_add
    rope.fused_apply_rotary_pos_emb = lambda t, freqs, interleaved=False: FusedRope.apply(t, freqs)
    layers.HAVE_TE, layers.get_dummy_wgrad = True, dummy_wgrad
