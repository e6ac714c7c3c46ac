"""Unsloth's own code of Llama, Mistral, Qwen 2 and 3, Gemma and Granite, on fake tensors (unsloth 2026.8.19, commit 015bdef0; unsloth_zoo 2026.8.13).

Its kernels' wrappers, autograd functions, checkpoints, fused loss and attention dispatch are imported as they are; forwards, rotary tables
and the patching of an adapted model are taken out of models/*.py one by one, as those files import a whole training stack.  Stand-ins
are what it calls and a CPU has not: Triton's kernels (which write into what their wrappers made), bitsandbytes' kernels (the same),
xFormers and flash-attn (`Flash`: what their autograd functions keep and their backward allocates), torch.compile of a chunk of the loss.
A job's `unsloth` says {padding_free, backend: xformers | fa2 | sdpa, target_gb}.
"""
import ast
import functools
import gc
import importlib
import math
import os
import sys
import types
from typing import Any, List, Optional, Tuple, Union

import torch

import fakedist
import quantised

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "third_party", "unsloth")
FAMILIES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma": "Gemma", "granite": "Granite"}
SETTINGS = {"backend": "xformers", "arch": 80, "lengths": None}


def module(name, package=None, **members):
    """Makes `name` importable; `package` is the folder of a package whose own __init__ is not to run."""
    m = sys.modules.setdefault(name, types.ModuleType(name))
    m.__path__ = [package] if package else getattr(m, "__path__", [])
    m.__dict__.update(members)
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(module(parent) if parent not in sys.modules else sys.modules[parent], leaf, m)
    return m


class Anything:
    """A Triton kernel, or a name of its language: launched, it does nothing here."""

    def __init__(self, *a, **k): pass
    def __call__(self, *a, **k): return a[0] if len(a) == 1 and not k and callable(a[0]) else self
    def __getitem__(self, grid): return lambda *a, **k: None
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


# -- attention ----------------------------------------------------------------------------------
class Flash(torch.autograd.Function):
    """flash_attn_func, flash_attn_varlen_func, and xFormers' fmha/flash.py: q, k, v, out and logsumexp are kept; backward makes dq, dk and dv,
    csrc/flash_attn/flash_api.cpp: mha_bwd, mha_varlen_bwd: softmax_d, dq_accum, and a gradient for every query head where keys are grouped.
    On sm75 xFormers' fmha/cutlass.py: as aten's efficient kernel."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, q, k, v, samples):
        b, s, heads, width = q.shape
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        lse = torch.empty((b, heads, s), dtype=torch.float32, device=q.device)
        ctx.samples = samples
        if SETTINGS["arch"] >= 80:
            seed = torch.empty(2, dtype=torch.int64, device=q.device)
            ctx.save_for_backward(q, k, v, out, lse, seed)
        else:
            ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors[:3]
        b, s, heads, width = q.shape
        empty = lambda *shape: torch.empty(shape, dtype=torch.float32, device=q.device)  # noqa: E731
        dq, dk, dv = (torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v))
        if SETTINGS["arch"] < 80:
            delta, accumulator = empty(b, heads, s), empty(b, s, heads, width)
            return dq, dk, dv, None
        rounded = (width + 31) // 32 * 32 if width <= 128 else (width + 63) // 64 * 64
        rows = b * s + 128 * ctx.samples if ctx.samples else b * ((s + 127) // 128 * 128)
        softmax_d, accumulator = empty(heads, rows), empty(rows, heads, rounded)
        if k.shape[2] != heads:
            expanded = [torch.empty((b, s, heads, width), dtype=k.dtype, device=k.device) for _ in range(2)]
            del expanded
        return dq, dk, dv, None


def xformers_attention(q, k, v, attn_bias=None, **kwargs):
    samples = len(SETTINGS["lengths"]) if SETTINGS["lengths"] else 0
    if q.dim() == 5:                                  # fmha/flash.py: _convert_input_format folds the group, which is but expanded
        b, s, kv, groups, width = q.shape
        return Flash.apply(q.reshape(b, s, kv * groups, width), k[:, :, :, 0], v[:, :, :, 0], samples).view(q.shape)
    return Flash.apply(q, k, v, samples)


def flash_varlen(q, k, v, *rest, **kwargs):
    return Flash.apply(q[None], k[None], v[None], len(SETTINGS["lengths"]))[0]


class CausalMask:
    def make_local_attention(self, window_size): return self

    @classmethod
    def from_seqlens(cls, lengths): return cls()


# -- the fused loss ---------------------------------------------------------------------------------
def compiled(f, **options):
    """torch.compile of accumulate_chunk: Inductor's code (TORCH_LOGS=output_code) makes the logits, which the kernel behind them overwrites
    with their gradients, three numbers for each row, and the products, the head's as large as it; softcapping also keeps them in fp32 to the end."""
    if f.__name__ != "accumulate_chunk":
        return f

    def chunk(n_chunks, grad_inputs_j, grad_lm_head, grad_lm_head_bias, hidden_states_j, lm_head_weight, lm_head_bias, labels_j, **rest):
        with torch.no_grad():
            logits = torch.mm(hidden_states_j.to(lm_head_weight.dtype), lm_head_weight.t())
            rows = [torch.empty((logits.shape[0], 1), dtype=torch.float32, device=logits.device) for _ in range(3)]
            wide = torch.empty_like(logits, dtype=torch.float32) if rest.get("logit_softcapping") else None
            del rows
            of_states = torch.mm(logits, lm_head_weight)
            of_head = None if grad_lm_head is None else torch.mm(logits.t(), hidden_states_j)
            del logits
            grad_inputs_j.copy_(of_states)
            del wide, of_head
    return chunk


# -- taking functions out of a file -------------------------------------------------------------------
def take(path, names, space, strip=()):
    """Runs the definitions of these names alone, in `space`."""
    tree = ast.parse(open(os.path.join(HERE, path)).read())
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            if isinstance(node, ast.ClassDef) and strip:
                node.body = [n for n in node.body if getattr(n, "name", None) in strip]
                node.bases = []
            exec(compile(ast.Module([node], []), path, "exec"), space)


@functools.cache
def load():
    """The imported parts of Unsloth, and a namespace with what models/*.py use of the rest."""
    fakedist.install(gpus_per_node=1)
    fakedist.Stream.wait_stream = lambda self, other: None
    torch._C._cuda_getCurrentRawStream = lambda index: 0
    torch.cuda.get_device_capability = lambda device=None: divmod(SETTINGS["arch"], 10)
    torch.cuda.device = lambda index: types.SimpleNamespace(idx=index)
    torch.cuda.empty_cache = lambda: None
    stubs()
    here = lambda *parts: os.path.join(HERE, *parts)  # noqa: E731
    device = dict(is_hip=lambda: False, get_device_type=lambda: "cuda", DEVICE_TYPE="cuda", DEVICE_TYPE_TORCH="cuda", DEVICE_COUNT=1,
                  ALLOW_PREQUANTIZED_MODELS=True, get_current_device=lambda: 0, device_synchronize=lambda *a: None)
    for name in ("unsloth", "unsloth.kernels", "unsloth.models", "unsloth.utils", "unsloth_zoo", "unsloth_zoo.fused_losses",
                 "unsloth_zoo.temporary_patches"):
        module(name, here(*name.split(".")))
    module("unsloth.device_type", **device)
    module("unsloth_zoo.device_type", **device)
    module("unsloth.bnb_availability", native_kernels_ready=lambda *a: True)
    module("unsloth.kernels.fp8", weight_dequant=None, fp8_linear=None)
    from packaging.version import Version
    dtypes = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    module("unsloth_zoo.utils", is_main_process=lambda: True, Version=lambda v: Version(str(v).split("+")[0]), _get_dtype=lambda d: dtypes.get(d, d))
    module("unsloth_zoo.hf_utils", dtype_from_config=dtype_of)
    module("unsloth_zoo.temporary_patches.common", UNSLOTH_ENABLE_LOGGING=False, torch_compile_options={}, logger=None, torch_compile=lambda f=None, **k: f or (lambda g: g))
    module("unsloth.models._utils", HAS_FLASH_ATTENTION=SETTINGS["backend"] == "fa2", SUPPORTS_BFLOAT16=True,
           xformers=sys.modules["xformers"] if SETTINGS["backend"] == "xformers" else None, xformers_attention=xformers_attention)
    module("flash_attn", flash_attn_func=lambda q, k, v, **kw: Flash.apply(q, k, v, 0), flash_attn_varlen_func=flash_varlen)
    names = ("kernels.utils", "kernels.fast_lora", "kernels.rms_layernorm", "kernels.rope_embedding", "utils.packing",
             "utils.attention_dispatch")
    parts = [importlib.import_module("unsloth." + name) for name in names]
    parts += [importlib.import_module("unsloth_zoo." + name) for name in ("fused_losses.cross_entropy_loss", "gradient_checkpointing")]
    space = {"__name__": "unsloth.models.oracle"}
    for part in parts:
        space.update({k: v for k, v in vars(part).items() if not k.startswith("__")})
    for name in [name for name in sys.modules if name.partition(".")[0] in ("bitsandbytes", "triton", "flash_attn", "xformers")]:
        space["attention_masks"] = sys.modules["xformers"] if "xformers" in sys.modules else space["attention_masks"]
        del sys.modules[name]                       # PEFT and transformers ask whether these are installed
    torch.compile = lambda f=None, **k: compiled(f, **k) if f else functools.partial(compiled, **k)
    return space


def dtype_of(config):
    return getattr(config, "dtype", None) or torch.bfloat16


def stubs():
    identity = lambda f=None, **k: Anything() if f is not None else (lambda g: Anything())  # noqa: E731
    language = dict(constexpr=int, math=Anything(), extra=Anything(), cast=Anything(), float32=Anything())
    module("triton", __version__="3.4.0", jit=identity, heuristics=lambda *a: (lambda f: f), cdiv=lambda a, b: -(-a // b),
           next_power_of_2=lambda n: 1 << (n - 1).bit_length())
    module("triton.language", **language)
    module("triton.language.extra", libdevice=Anything())
    kernels = types.SimpleNamespace(**{name: (lambda *a: None) for name in (
        "cdequantize_blockwise_fp32", "cdequantize_blockwise_fp16_nf4", "cdequantize_blockwise_bf16_nf4", "cgemm_4bit_inference_naive_fp16",
        "cgemm_4bit_inference_naive_bf16")})
    module("bitsandbytes", __version__="0.48.0")
    module("bitsandbytes.functional", lib=kernels, get_ptr=lambda t: None)
    masks = dict(LowerTriangularMask=CausalMask, BlockDiagonalCausalMask=CausalMask)
    module("xformers", attn_bias=types.SimpleNamespace(**masks), __version__="0.0.35")
    module("xformers.ops")
    module("xformers.ops.fmha")
    module("xformers.ops.fmha.attn_bias", **masks)


def track(model, tr):
    """What stands on the card beside parameters and registered buffers."""
    rotary = model.get_base_model().model.rotary_emb
    checkpoints = sys.modules["unsloth_zoo.gradient_checkpointing"]
    buffers = [*(getattr(checkpoints, "GPU_BUFFERS", None) or ()), *(getattr(checkpoints, "GPU_BUFFERS_B", None) or ())]
    for t in [*buffers, *rotary.multi_gpu_cos_cached, *rotary.multi_gpu_sin_cached, rotary.cos_cached, rotary.sin_cached]:
        tr.track(t, "buffer", "weights")
    track_resizes(tr)


def track_resizes(tr):
    """Tensor.resize_ of a buffer on the card (aten/src/ATen/native/cuda/Resize.cpp: resize_bytes_cuda): the new memory comes before the old one goes."""
    plain = getattr(torch.Tensor, "oracle_plain_resize", torch.Tensor.resize_)
    torch.Tensor.oracle_plain_resize = plain

    def resize_(self, *size, **kwargs):
        before = self.untyped_storage().nbytes()
        out = plain(self, *size, **kwargs)
        after = self.untyped_storage().nbytes()
        if after != before and self.device.type == "cuda":
            tr.resized(self.untyped_storage(), before, after)
        return out
    torch.Tensor.resize_ = resize_


# -- models ---------------------------------------------------------------------------------------------
def forwards(kind):
    """The namespace with Unsloth's forwards of a family."""
    space = load()
    import transformers.models.llama.modeling_llama as llama
    from transformers.modeling_layers import GradientCheckpointingLayer
    from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
    space.update(torch=torch, math=math, functools=functools, types=types, os=os, List=List, Optional=Optional, Tuple=Tuple, Union=Union, Any=Any,
                 BaseModelOutputWithPast=BaseModelOutputWithPast, CausalLMOutputWithPast=CausalLMOutputWithPast, logger=llama.logger,
                 GradientCheckpointingLayer=GradientCheckpointingLayer, IS_ATTENTION_REFACTOR=True, math_sqrt=math.sqrt, torch_matmul=torch.matmul,
                 BlockDiagonalCausalMask=CausalMask, xformers=space["attention_masks"], _get_dtype=sys.modules["unsloth_zoo.utils"]._get_dtype,
                 dtype_from_config=dtype_of, DEVICE_TYPE_TORCH="cuda", DEVICE_COUNT=1, get_current_device=lambda: 0, EMPTY_LOGITS=None,
                 HAS_FLASH_ATTENTION=SETTINGS["backend"] == "fa2", HAS_FLASH_ATTENTION_SOFTCAPPING=SETTINGS["backend"] == "fa2",
                 HAS_FLEX_ATTENTION=False, fast_rms_layernorm_inference=None, fast_swiglu_inference=None, LlamaAttention_fast_forward_inference=None)
    take("unsloth/models/llama.py", ("original_apply_qkv", "original_apply_o", "LlamaAttention_fast_forward", "LlamaDecoderLayer_fast_forward",
                                     "LlamaModel_fast_forward", "CausalLM_fast_forward", "PeftModel_fast_forward", "_get_rope_theta", "_rope_scaling_as_dict",
                                     "_vanilla_inv_freq_from_config", "_compute_config_rope_inv_freq", "_llama3_inv_freq_from_config",
                                     "LlamaRotaryEmbedding", "_offload_frozen_module_for_training"), space)
    take("unsloth/models/llama.py", ("FastLlamaModel",), space, strip=("patch_peft_model",))
    take("unsloth/models/mistral.py", ("MistralAttention_fast_forward", "MistralForCausalLM_fast_forward"), space)
    take("unsloth/models/qwen3.py", ("Qwen3Attention_fast_forward",), space)
    take("unsloth/models/gemma.py", ("GemmaDecoderLayer_fast_forward", "GemmaFixedRotaryEmbedding"), space)
    take("unsloth/models/granite.py", ("GraniteAttention_fast_forward", "GraniteDecoderLayer_fast_forward"), space)
    return space


def patched(model, job):
    """What pre_patch, from_pretrained and post_patch of FastLlamaModel and its like make of a loaded model."""
    kind = model.config.model_type
    space = forwards(kind)
    head, body, layer = type(model), type(model.model), type(model.model.layers[0])
    attention = type(model.model.layers[0].self_attn)
    own = lambda part: space.get(f"{FAMILIES[kind]}{part}_fast_forward", space[f"Llama{part}_fast_forward"])  # noqa: E731
    attention.forward, layer.forward, body.forward = own("Attention"), own("DecoderLayer"), space["LlamaModel_fast_forward"]
    head.forward = space["MistralForCausalLM_fast_forward"] if kind == "mistral" else space["CausalLM_fast_forward"](None)
    dtype = model.model.embed_tokens.weight.dtype
    model.config.dtype = model.model.config.dtype = dtype
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)                      # as from_pretrained does while it builds the model
    with torch.device("cuda"):
        model.model.rotary_emb = space["GemmaFixedRotaryEmbedding" if kind == "gemma" else "LlamaRotaryEmbedding"](config=model.config)
    torch.set_default_dtype(before)
    for module_ in model.modules():
        module_.max_seq_length = max(job["seq_len"], 2048) * (job["micro_batch"] if free_of_padding(job) else 1)
    for block in model.model.layers:
        block.self_attn.apply_qkv, block.self_attn.apply_o = space["original_apply_qkv"], space["original_apply_o"]
        block.self_attn.rotary_emb = model.model.rotary_emb
    return space


def free_of_padding(job):
    return job["unsloth"].get("padding_free", True)


def quant_states(model, job):
    """bitsandbytes' quant_state beside each packed weight; patch_model_and_tokenizer gives it the model's dtype."""
    for m in model.modules():
        if isinstance(m, quantised.FakeLinear4bit):
            nested = types.SimpleNamespace(absmax=m.absmax2, code=m.code2, blocksize=256)
            m.weight.quant_state = types.SimpleNamespace(absmax=m.absmax, shape=torch.Size(m.shape), dtype=m.packed_dtype, blocksize=64,
                                                         offset=m.offset, state2=nested)


def adapted(model, job, space):
    """FastLlamaModel.get_peft_model: LoRA, prepare_model_for_training, and the patches of patch_peft_model."""
    import jobs as J
    from peft import PeftModelForCausalLM
    import peft.tuners.lora.layer as lora_layer
    checkpointing = {"none": False, "full": True, "unsloth": "unsloth"}[job["gradient_checkpointing"]]
    for p in model.parameters():
        p.requires_grad = False
    lo = job.get("lora", {})
    saved = lo.get("modules_to_save") or []
    model = J.add_lora(model, {**job, "lora": {**lo, "adapter_dtype": "fp32"}}, True)
    quant_states(model, job)
    PeftModelForCausalLM.forward = space["PeftModel_fast_forward"]
    import transformers.trainer as trainer
    named = lambda: None  # noqa: E731
    named.__name__ = "_fast_inner_training_loop"
    trainer.Trainer._inner_training_loop = named
    zoo = dict(space, Union=Union, re=__import__("re"))
    take_zoo(zoo)
    nothing = lambda *a, **k: None  # noqa: E731
    if checkpointing == "unsloth":
        space["patch_unsloth_smart_gradient_checkpointing"](dtype=J.DTYPES[J.PRECISION[job["precision"]][0]])
    prepare = lambda model, use_gradient_checkpointing, use_reentrant: zoo["prepare_model_for_training"](  # noqa: E731
        model=model, use_gradient_checkpointing=use_gradient_checkpointing, use_reentrant=use_reentrant, full_finetuning=False,
        train_layernorms=False, train_embedding=False, train_lm_head=False, float32_mixed_precision=True)
    space.update(prepare_model_for_kbit_training=prepare, PeftModelForCausalLM=PeftModelForCausalLM, PeftModelForSequenceClassification=(),
                 patch_saving_functions=nothing, clean_gpu_cache=nothing, gc=gc, patch_peft_fast_inference=nothing,
                 _unsloth_install_pretrain_detector=nothing, _exclude_rope_inv_freq_from_ddp=lambda m: m, __version__="2026.8.19",
                 FastBaseModel=types.SimpleNamespace(for_training=nothing, for_inference=nothing))
    fast = space["FastLlamaModel"]
    fast.for_training = fast.for_inference = staticmethod(nothing)
    fast.patch_peft_model(model, checkpointing)
    if checkpointing is True:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": job["use_reentrant"]})      # Trainer.train
    for name in saved:
        wrapper = model.get_input_embeddings() if name == "embed_tokens" else model.get_output_embeddings()
        # with "unsloth" the original is a file before PEFT copies it (offload_input_embeddings)
        space["_offload_frozen_module_for_training"](wrapper, "cuda", offload_device="cpu" if checkpointing == "unsloth" else None)
    model.train()
    return model


def take_zoo(space):
    take("unsloth_zoo/training_utils.py", ("prepare_model_for_training", "_iter_configs", "disable_use_cache", "_unwrap_forward_in_bf16_autocast"), space)
    from transformers import PreTrainedConfig
    space["PreTrainedConfig"] = PreTrainedConfig


def build(model, job):
    gc.disable()                                    # when the collector comes by is chance; nothing here lives by a cycle alone
    SETTINGS.update(backend=job["unsloth"].get("backend", "xformers"), arch=job.get("arch", 80))
    if job["method"] == "qlora":
        quantised.quantize_linears(model, job)
    space = patched(model, job)
    return adapted(model, job, space)


def make_batch(model, job):
    """padding_free: one row, as TRL's collator hands it on, with positions and the samples' lengths (utils/packing.py)."""
    b, s = job["micro_batch"], job["seq_len"]
    ids = lambda rows, columns: torch.zeros((rows, columns), dtype=torch.long, device="cuda")  # noqa: E731
    items = torch.tensor(b * s, device="cuda")
    SETTINGS["lengths"] = [s] * b if free_of_padding(job) else None
    if not free_of_padding(job):
        return {"input_ids": ids(b, s), "labels": ids(b, s), "attention_mask": ids(b, s), "num_items_in_batch": items}
    lengths, ends = (torch.zeros(n, dtype=torch.int32, device="cuda") for n in (b, b + 1))
    packing = sys.modules["unsloth.utils.packing"]      # get_packed_info_from_kwargs asks for the longest, which a fake tensor cannot say
    packing._PACKED_INFO_CACHE[lengths.device] = {"seq_lengths": lengths, "result": (lengths, ends, s)}
    packing._XFORMERS_BLOCK_MASK_CACHE[lengths.device] = {"seq_lengths": lengths, "params": (None,), "mask": CausalMask()}
    return {"input_ids": ids(1, b * s), "labels": ids(1, b * s), "position_ids": ids(1, b * s), "num_items_in_batch": items,
            "packed_seq_lengths": lengths}
