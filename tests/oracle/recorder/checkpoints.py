"""Forms of checkpointing that transformers has no switch for: every k-th layer, attention alone, inputs in host memory."""
import torch
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def is_enabled(job):
    """Does transformers itself checkpoint (and ask for gradients of the embeddings' output)?"""
    kind = job["gradient_checkpointing"]
    return kind != "none" and "selective" not in kind


def enable(model, job):
    """`gradient_checkpointing`: none, full, offload, {"every": k} or {"selective": ["core_attn"]}."""
    kind = job["gradient_checkpointing"]
    if kind == "none":
        return
    if not is_enabled(job):
        core_attention()
        return
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": job["use_reentrant"]})
    if kind == "offload":
        offload_inputs(model)
    elif isinstance(kind, dict):
        only_every(model, kind["every"])


def layers_of(model):
    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]


def only_every(model, step):
    for i, layer in enumerate(layers_of(model)):
        layer.gradient_checkpointing = i % step == 0


def offload_inputs(model):
    """What a checkpoint keeps for itself waits in host memory (torch.autograd.graph.save_on_cpu; TRL and axolotl do the like). It does so
    after TRL's disable_gradient_checkpointing, too: axolotl and Unsloth put their function into transformers.modeling_utils."""
    def wrap():
        for layer in layers_of(model):
            plain = layer._gradient_checkpointing_func

            def offloaded(*args, plain=plain):
                with torch.autograd.graph.save_on_cpu():
                    return plain(*args)
            layer._gradient_checkpointing_func = offloaded
    enable_plain = model.gradient_checkpointing_enable

    def enable_again(*args, **kwargs):
        enable_plain(*args, **kwargs)
        wrap()
    model.gradient_checkpointing_enable = enable_again
    wrap()


PLAIN = ALL_ATTENTION_FUNCTIONS.get_interface


def core_attention():
    """Megatron-LM's recompute_modules=["core_attn"], on the function that transformers' attention classes call."""
    def get_interface(name, default):
        attend = PLAIN(name, default)

        def again(module, query, key, value, mask=None, **kwargs):
            def core(q, k, v):
                return attend(module, q, k, v, mask, **kwargs)[0]
            return checkpoint(core, query, key, value, use_reentrant=False), None
        return again
    ALL_ATTENTION_FUNCTIONS.get_interface = get_interface


def reset():
    ALL_ATTENTION_FUNCTIONS.__dict__.pop("get_interface", None)
