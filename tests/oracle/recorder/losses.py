"""Losses that replace the model's own: those of older releases and the fused ones, allocation by allocation."""
import ast
import contextlib
import dataclasses
import inspect
import math
import os
import sys
import types

import torch
import torch.nn.functional as F


class LigerFLCE(torch.autograd.Function):
    """liger_kernel 0.8.5 ops/fused_linear_cross_entropy.py: gradients are computed chunk by chunk in forward."""

    @staticmethod
    def forward(ctx, x, weight, target):
        import fakecuda                                    # of the fake device alone
        bt, h = x.shape
        v = weight.shape[0]
        chunk = 1 << max(0, math.ceil(math.log2(-(-bt // -(-v // h)))))
        grad_x = torch.zeros_like(x)
        need_w = weight.requires_grad
        grad_w = torch.zeros_like(weight) if need_w else None
        loss = torch.zeros(bt, dtype=torch.float32, device=x.device)
        cast = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
        in_place = x.dtype == weight.dtype == cast                                           # _can_use_mm_out
        storage = torch.empty((chunk, v), dtype=x.dtype, device=x.device) if in_place else None
        adds = x.dtype in (torch.float16, torch.bfloat16) and fakecuda.SETTINGS["arch"] >= 80 and \
            weight.dtype in (x.dtype, torch.float32)
        for s in range(0, bt, chunk):
            xc = x[s:s + chunk]
            if in_place:                                   # the logits hold their own gradient later (in-place kernel)
                logits = storage[:xc.shape[0]]
                grad_x[s:s + chunk].zero_()                # mm(out=)
            else:
                logits = xc @ weight.t()
                grad_x[s:s + chunk] = logits @ weight
            if need_w and adds:                            # addmm(out=grad_w)
                grad_w.zero_()
            elif need_w:
                grad_w += torch.mm(logits.t(), xc).float()
        ctx.save_for_backward(grad_x, grad_w)
        return loss.sum()

    @staticmethod
    def backward(ctx, g):
        grad_x, grad_w = ctx.saved_tensors
        return grad_x, grad_w, None


def install_old_loss(model, version):
    """Causal-LM losses of older model files, all but torchtitan's with a shifted copy of the logits.

    "hf_4_44": fp32 logits are returned (transformers <= 4.44); "hf_4_46": converted for the loss only (4.45 - 4.48);
    "hf_no_upcast": cross entropy in the model's dtype (old GPT-2, GPT-BigCode, Bloom, Falcon files)."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    head = base.get_output_embeddings()
    if version in ("hf_4_44", "hf_titan"):                           # logits.float() before they are returned
        plain = head.forward
        head.forward = lambda hidden: plain(hidden).float()

    def loss_function(logits=None, labels=None, vocab_size=None, **kw):
        if version == "hf_titan":                      # the data loader shifts the labels
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten(0, 1))
        logits = logits if version == "hf_no_upcast" else logits.float()
        shift = logits[..., :-1, :].contiguous()
        target = labels[..., 1:].contiguous()
        return F.cross_entropy(shift.view(-1, vocab_size), target.view(-1), ignore_index=-100)
    base.loss_function = loss_function


def install_liger(model, fake):
    """Replace lm_head + loss by the fused form (what liger's lce_forward does), without materialised logits.

    On a real GPU the library's own kernel is used when it is installed."""
    real = None
    if not fake:
        with contextlib.suppress(ImportError):
            from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss
            real = LigerFusedLinearCrossEntropyLoss()
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    head = base.get_output_embeddings()
    plain_head, plain_loss = head.forward, base.loss_function
    # transformers/model/llama.py lce_forward: logits are skipped in training alone
    head.forward = lambda hidden: hidden if base.training else plain_head(hidden)


    class Head(type(head)):
        """It is not called, its weight is read: what DeepSpeed hooks to its forward does not run."""
        def __call__(self, *args, **words):
            return args[0] if base.training and hasattr(self.weight, "ds_id") else super().__call__(*args, **words)
    head.__class__ = Head

    def loss_function(logits=None, labels=None, vocab_size=None, **kw):
        if not base.training:
            return plain_loss(logits=logits, labels=labels, vocab_size=vocab_size, **kw)
        hidden = logits.reshape(-1, logits.shape[-1])
        target = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous().view(-1)
        w = head.weight                                # as it is now: FSDP puts others in its place
        if real is not None:
            return real(w, hidden, target)
        if torch.is_autocast_enabled("cuda"):          # amp_custom_fwd casts fp32 inputs
            dt = torch.get_autocast_dtype("cuda")
            hidden = hidden.to(dt)
            with torch.autocast("cuda", enabled=True):
                return LigerFLCE.apply(hidden, w, target)
        return LigerFLCE.apply(hidden, w, target)
    base.loss_function = loss_function


def install_chunked(model):
    """trl 1.9 trainer/sft_trainer.py: chunked_nll, SFTTrainer's loss unless another is asked for, by its own functions."""
    import preferences
    import transformers
    from packaging.version import Version
    path = "trainer/sft_trainer.py"
    wanted = {"_ChunkedCELMHeadOutput", "_chunk", "_chunked_cross_entropy_loss", "_patch_chunked_ce_lm_head"}
    with open(os.path.join(preferences.TRL, path)) as f:
        nodes = [node for node in ast.parse(f.read()).body if getattr(node, "name", None) in wanted]
    # maybe_gather_lm_head_ctx gathers under DeepSpeed's ZeRO-3 alone.
    names = {"__name__": __name__, "torch": torch, "F": F, "inspect": inspect, "types": types, "transformers": transformers,
             "Version": Version, "dataclass": dataclasses.dataclass, "maybe_gather_lm_head_ctx": lambda *parts: contextlib.nullcontext(),
             "CausalLMOutputWithPast": transformers.modeling_outputs.CausalLMOutputWithPast}
    preferences.run(nodes, names, path)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    names["_patch_chunked_ce_lm_head"](base, 256, is_vlm=hasattr(base.config, "text_config"))     # _CHUNKED_LM_HEAD_CHUNK_SIZE


def install_cut(model):
    """axolotl's fork of Apple's cut cross-entropy (ml-cross-entropy 5f0c7a7 in third_party/cce), which replaces the class's forward; what
    torch.compile would fuse (argsort, softcapping of a number per token) runs as it is written."""
    import liger
    liger.stub_triton()
    torch.compile = lambda f=None, **words: f or (lambda g: g)
    torch.cuda.is_bf16_supported = lambda *args: True
    torch.Tensor.data_ptr = lambda tensor: 0           # of allocations, which are aligned
    sys.path.insert(0, os.path.join(liger.HERE, "third_party", "cce"))
    from cut_cross_entropy.transformers import cce_patch
    cce_patch(model.get_base_model() if hasattr(model, "get_base_model") else model)


def install(model, name, fake):
    if name == "cut_cross_entropy":
        install_cut(model)
    elif name == "chunked":
        install_chunked(model)
    elif name == "liger_flce":
        install_liger(model, fake)
    elif name.startswith("hf_"):
        install_old_loss(model, name)
