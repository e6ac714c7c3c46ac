"""The recorder's jobs on a real card (ORACLE_MODELS: models.json, the table of configs by name): its own builders of models, adapters, batches and losses, with the libraries' optimizers and packed weights."""
import contextlib
import logging
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 3


def prepare():
    import gc
    from real_trainers import without
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    with without("bitsandbytes"):                      # which asks the card what it is as it loads: the children's matter
        load()
    gc.collect()
    gc.freeze()


def load():
    os.environ["TRANSFORMERS_DISABLE_TORCH_CHECK"] = "1"
    logging.disable(logging.ERROR)
    sys.path.append(os.path.join(HERE, "..", "recorder"))
    global torch, transformers, J, record, registry
    import torch
    import transformers
    import transformers.trainer                        # noqa: F401 - what children need is imported once
    import transformers.models.auto.modeling_auto      # noqa: F401
    import peft                                        # noqa: F401
    import torch._dynamo, torch._inductor.compile_fx, networkx   # noqa: F401,E401
    import diffusers.models                            # noqa: F401
    import jobs as J
    import record
    transformers.logging.set_verbosity_error()
    for name in ("llama", "qwen2", "qwen3", "gemma3", "mistral", "mixtral", "bert", "vit", "t5", "gpt2"):
        __import__(f"transformers.models.{name}.modeling_{name}")
    registry = J.load_registry(os.environ["ORACLE_MODELS"])


def pack(model, job):
    """bitsandbytes' own layers where the recorder has its stand-ins."""
    import bitsandbytes as bnb
    import quantised
    kind = job.get("quant_type", "nf4")

    def four(src, double_quant, compute_dtype, storage):
        new = bnb.nn.Linear4bit(src.in_features, src.out_features, bias=src.bias is not None, compute_dtype=compute_dtype,
                                compress_statistics=double_quant, quant_type=kind, device="meta")
        new.weight = bnb.nn.Params4bit(src.weight.data.contiguous(), requires_grad=False, quant_type=kind, compress_statistics=double_quant, module=new)
        if src.bias is not None:
            new.bias = torch.nn.Parameter(src.bias.data, requires_grad=False)
        return new.to(J.DEVICE)

    def eight(src):
        new = bnb.nn.Linear8bitLt(src.in_features, src.out_features, bias=src.bias is not None, has_fp16_weights=False, threshold=6.0, device="meta")
        new.weight = bnb.nn.Int8Params(src.weight.data.contiguous(), requires_grad=False, has_fp16_weights=False)
        if src.bias is not None:
            new.bias = torch.nn.Parameter(src.bias.data, requires_grad=False)
        return new.to(J.DEVICE)
    plain = quantised.FakeLinear4bit, quantised.FakeLinear8bit
    quantised.FakeLinear4bit, quantised.FakeLinear8bit = four, eight
    try:
        quantised.quantize_linears(model, job)
    finally:
        quantised.FakeLinear4bit, quantised.FakeLinear8bit = plain


def optimizer(name, model):
    import optimizers as O
    groups = [{"params": g, "weight_decay": 0.0} for g in O.parameter_groups(model)]
    real = probe_real()
    if name in ("adamw_torch", "adamw_torch_fused"):
        return torch.optim.AdamW(groups, lr=1e-5, fused=real and name.endswith("fused"), foreach=name == "adamw_torch")
    if name in ("sgd", "sgd_momentum"):
        return torch.optim.SGD(groups, lr=1e-5, momentum=0.9 if name == "sgd_momentum" else 0.0)
    if name == "adafactor":
        return transformers.optimization.Adafactor(groups, lr=1e-5, scale_parameter=False, relative_step=False)
    if name in ("adagrad", "rmsprop"):
        return {"adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}[name](groups, lr=1e-5)
    import bitsandbytes as bnb
    cls = {"adamw_8bit": "AdamW8bit", "adamw_bnb_8bit": "AdamW8bit", "paged_adamw_8bit": "PagedAdamW8bit", "adamw_32bit": "AdamW32bit", "adamw_bnb_32bit": "AdamW32bit",
           "paged_adamw_32bit": "PagedAdamW32bit", "lion_8bit": "Lion8bit", "lion_32bit": "Lion32bit", "paged_lion_8bit": "PagedLion8bit",
           "paged_lion_32bit": "PagedLion32bit", "ademamix": "AdEMAMix", "ademamix_8bit": "AdEMAMix8bit", "paged_ademamix_32bit": "PagedAdEMAMix",
           "paged_ademamix_8bit": "PagedAdEMAMix8bit", "rmsprop_bnb": "RMSprop", "rmsprop_bnb_32bit": "RMSprop", "rmsprop_bnb_8bit": "RMSprop8bit"}[name]
    opt = getattr(bnb.optim, cls)(groups, lr=1e-5)
    if "8bit" in name:
        O.register_tables(model)
    return opt


def probe_real():
    import probe
    return probe.REAL


def fill(batch, job, vocab, name=""):
    """Contents for what the recorder leaves empty; nothing new is allocated that stays."""
    pictures = job.get("images") or job.get("video_frames") or job.get("audio_seconds")
    for key, value in batch.items():
        if not isinstance(value, torch.Tensor):
            continue
        if value.is_floating_point():
            value.normal_()
        elif key in ("input_ids", "decoder_input_ids") and not pictures and value.dim() == 2 and vocab:
            value.random_(min(10, vocab - 1), vocab)
        elif key == "labels" and value.dim() == 2 and not pictures and vocab and ("LM" in name or "Generation" in name):
            value.random_(min(10, vocab - 1), vocab)
    return batch


def within(config, vocab):
    """Configs cut from larger ones name tokens beyond their table, which a card asserts."""
    for i, key in enumerate(sorted(k for k in vars(config) if k.endswith(("_token_id", "_token_index")))):
        if vocab and isinstance(getattr(config, key), int) and getattr(config, key) >= vocab:
            setattr(config, key, vocab - 1 - i)


def lengths(job, step):
    """Sequence lengths of a job with varying ones: 25 to 100 % of the stated, the same in every run."""
    import random
    return max(64, int(job["seq_len"] * (0.25 + 0.75 * random.Random(step).random())))


def run(job, probe):
    import numpy
    import batches
    import diffusion
    import preferences
    import importlib.util
    preferences.TRL = os.path.dirname(importlib.util.find_spec("trl").origin)
    if job.get("expandable"):
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    J.DEVICE = batches.DEVICE = diffusion.DEVICE = dev = probe.device()
    numpy.random.seed(0)
    torch.manual_seed(0)
    full = {**record.DEFAULTS, **job}
    if full["method"] == "qlora" or "8bit" in full["optimizer"] or "bnb" in full["optimizer"] or full["optimizer"].endswith("32bit") or "ademamix" in full["optimizer"]:
        import bitsandbytes                             # noqa: F401
    placed = (lambda m: pack(m, full)) if full["method"] == "qlora" else None
    model = record.build(J, full, registry, fake=False, placed=placed)
    for c in {id(c): c for c in [*J.all_configs(model.config), *(m.config for m in model.modules() if hasattr(m, "config"))]}.values():
        with contextlib.suppress(Exception):
            c._experts_implementation = full.get("experts", "grouped_mm")
    within(model.config, J.vocab_size(model.config))
    preferences.add_reference(model, full, lambda of: J.build_model(of, registry, False))
    opt = optimizer(full["optimizer"], model)
    trainable = [p for p in model.parameters() if p.requires_grad]
    vocab = J.vocab_size(model.config)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    probe.built()
    steps = full.get("real_steps", STEPS)
    trail = []
    for step in range(1, steps + 1):
        if step == steps and not full.get("no_trace"):
            probe.last()
        of = {**full, "seq_len": lengths(full, step)} if full.get("vary") else full
        for _ in range(full["grad_accum"]):
            batch = preferences.make_batch(of, model) if preferences.is_one(of) else fill(J.make_batch(model, of), of, vocab, type(base).__name__)
            out = J.forward_loss(model, batch, of)
            loss = out.loss
            if not full.get("keep_outputs"):
                del out
            probe.note(step, "forward")
            loss.backward()
            value = loss.detach() if step == steps else None
            out = None
            del loss, batch
            probe.note(step, "backward")
        if full["max_grad_norm"]:
            torch.nn.utils.clip_grad_norm_(trainable, full["max_grad_norm"])
        opt.step()
        probe.note(step, "optimizer")
        opt.zero_grad(set_to_none=full.get("zero_grad_to_none", True))
        probe.note(step, "zero_grad")
        if full.get("vary") or steps > 5:
            trail.append([of["seq_len"], torch.cuda.memory_reserved() if dev == "cuda" else 0])
    out = probe.finish()
    if steps > 5:                                       # all steps alike: the last says it all
        out["steps"] = {k: v for k, v in out["steps"].items() if k in ("1", "2", str(steps))}
        out["trail"] = trail
    return {"parameters": record.param_counts(model), "loss": float(value), **out}
