#!/usr/bin/env python3
"""record.py JOBS.jsonl OUT.jsonl --models models.json [--device fake|cuda-real]

Runs each training job for a few steps and writes one memory record per line.  Jobs whose
id is already in OUT are skipped, so an interrupted run can simply be started again.
See README.md for what is simulated, how, and what is not.
"""
import argparse
import gc
import json
import logging
import os
import re
import signal
import sys
import time
import traceback
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_DISABLE_TORCH_CHECK"] = "1"       # value checks cannot run on fake tensors
logging.disable(logging.ERROR)
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
for extra in (os.path.join(HERE, "third_party", "src"),):
    if os.path.isdir(extra):
        sys.path.insert(0, extra)                   # peft sources

DEFAULTS = {"method": "full", "precision": "bf16", "micro_batch": 1, "seq_len": 1024, "grad_accum": 1,
            "attention": "sdpa", "padding": False, "gradient_checkpointing": "none", "use_reentrant": False,
            "optimizer": "adamw_torch_fused", "max_grad_norm": 1.0, "loss": "default"}
# cuBLAS keeps one workspace per (handle, stream): forward thread + autograd thread.  Not in any number below.
CUBLAS_WORKSPACE = {"default": 2 * 8519680, "sm90": 2 * 33554432}
PHASES = ("forward", "backward", "optimizer", "zero_grad")


class TooLong(Exception):
    pass


# == fake back end ==========================================================================
def run_fake(job, registry, steps, top):
    import torch
    import fakecuda
    import evaluation
    import grpo
    import jobs as J
    import offloading
    import online
    import ppo
    import preferences
    import unslothed
    from torch.utils._pytree import tree_iter
    from optimizers import make_optimizer
    from tracker import BLOCK_RE, Tracker
    from values import KnownValues
    t0 = time.time()
    fakecuda.SETTINGS.update(arch=job.get("arch", 80), sdpa=job.get("sdpa_backend", "auto"))
    tr = Tracker()
    snap = {}
    mode = fakecuda.FakeTensorMode(allow_non_fake_inputs=True)
    known = KnownValues(job.get("expert_imbalance", 1.0))
    with mode, known:
        model = build(J, job, registry, fake=True)
        loop = next((m for m in (ppo, online) if m.is_one(job)), None)
        if loop is not None:
            model, further = loop.assemble(model, job, lambda of: J.build_model(of, registry, True))
        else:
            further = preferences.add_reference(model, job, lambda of: J.build_model(of, registry, True))
        if job.get("vae") or job.get("text_encoders"):
            import diffusion
            further = diffusion.beside(model)
        for m in (model, *further):
            tr.hook_modules(m)
        tr.start("init", 0)
        for m in (model, *further):
            for n, t, kind in weights_of(m, job):
                tr.mods[:] = [n]
                tr.track(t, kind, "weights")
        if "unsloth" in job:
            unslothed.track(model, tr)
        tr.mods.clear()
        opt = make_optimizer(job, model)
        for t in opt.tensors():                       # Adagrad's states are made with it
            tr.track(t, "state", "optimizer_state")
        trainable = [p for p in model.parameters() if p.requires_grad]
        mid = middle_block(model, BLOCK_RE)
        batch_shapes = None

        def recompute_done(name, first):
            if name == mid and "recompute" not in snap:
                snap["recompute"] = [r.id for r in tr.live.values() if r.id >= first and r.kind is None]
            for r in tr.live.values():
                if r.id >= first and r.kind is None and r.graph:
                    r.kind = "recomputed"
        tr.recompute_done = recompute_done
        fwd_ends = []
        with tr:
            if loop is not None:
                batch_shapes = {"input_ids": [job["micro_batch"], job["seq_len"]]}
                amp = J.PRECISION[job["precision"]][1]
                loop.run(model, job, Updates(tr, opt, trainable, snap, fwd_ends, steps), steps, amp, J.DTYPES)
            for step in range(1, steps + 1 if loop is None else 1):
                if job.get("lisa"):
                    in_turn(model, job["lisa"], step)
                grpo.start = lambda phase, step=step: tr.start(phase, step)
                for _ in range(job["grad_accum"]):
                    tr.start("forward", step)
                    batch = preferences.make_batch(job, model) if preferences.is_one(job) else J.make_batch(model, job)
                    batch_shapes = batch_shapes or {k: list(v.shape) for k, v in batch.items() if hasattr(v, "shape")}
                    for v in tree_iter(batch):
                        tr.mark_kind(v, "input")
                    v = None                      # else the last of them stays to the next batch
                    with offloading.around_step(model):
                        out = J.forward_loss(model, batch, job)
                        loss = out.loss
                        if not job.get("keep_outputs"):
                            del out
                        tr.mods.clear()
                        tr.flush()
                        fwd_ends.append(len(tr.events))
                        if step == steps and "after_forward" not in snap:
                            snap["after_forward"] = [r.id for r in tr.live_recs()]
                        tr.start("backward", step)
                        opt.backward(loss) if hasattr(opt, "backward") else loss.backward()
                        out = None
                        del loss, batch
                    for p in trainable:
                        if p.grad is not None:
                            tr.mark_kind(p.grad, "gradients")
                tr.start("optimizer", step)
                if job["max_grad_norm"]:
                    opt.clip(trainable)
                opt.step()
                if step == 1 or job.get("lisa"):
                    for t in opt.tensors():
                        tr.mark_kind(t, "optimizer_state")
                tr.start("zero_grad", step)
                if job.get("zero_grad_to_none", True):
                    for p in trainable:
                        p.grad = None
                if job.get("evaluation"):
                    tr.start("evaluation", step)
                    evaluation.run(model, job, J)
                    tr.mods.clear()
        tr.flush()
        tr.marks.append((len(tr.events), "end", steps + 1))
        counts = param_counts(model)
        vocab = J.vocab_size(model.config)
        attn_used = getattr(model.config, "_attn_implementation", None)
    rec = analyse(tr, steps, fwd_ends, snap, mid, vocab, job, batch_shapes, top)
    rec["parameters"] = counts
    rec["attention_used"] = attn_used
    rec["sdpa_kernel"] = sorted({m for r in tr.recs for m in [sdpa_kernel(r.op)] if m})
    rec["wall_s"] = round(time.time() - t0, 1)
    return rec


class Updates:
    """A loop of its own tells of its phases (recorder/ppo.py, online.py)."""

    def __init__(self, tracker, optimizer, trainable, snap, fwd_ends, count):
        self.tracker, self.optimizer, self.trainable, self.snap, self.fwd_ends, self.count = tracker, optimizer, trainable, snap, fwd_ends, count
        self.step = 0

    def start(self, phase):
        self.tracker.mods.clear()
        self.tracker.start(phase, self.step)

    def begin(self):
        self.step += 1
        self.start("generation")

    def before_backward(self):
        tr = self.tracker
        tr.mods.clear()
        tr.flush()
        self.fwd_ends.append(len(tr.events))
        if self.step == self.count and "after_forward" not in self.snap:
            self.snap["after_forward"] = [r.id for r in tr.live_recs()]
        self.start("backward")

    def behind_backward(self):
        for p in self.trainable:
            if p.grad is not None:
                self.tracker.mark_kind(p.grad, "gradients")

    def run_optimizer(self, largest_norm=0.0):
        self.start("optimizer")
        if largest_norm:
            self.optimizer.clip(self.trainable)
        self.optimizer.step()
        if self.step == 1:
            for t in self.optimizer.tensors():
                self.tracker.mark_kind(t, "optimizer_state")

    def zero_grad(self):
        self.start("zero_grad")
        for p in self.trainable:
            p.grad = None


def weights_of(model, job):
    """Parameters, then buffers; where packed weights are buffers, module by module, as a checkpoint is loaded."""
    parts = model.modules() if job.get("packed") else [model]
    names = {id(m): n + "." for n, m in model.named_modules() if n}
    for m in parts:
        own, prefix = {"recurse": not job.get("packed")}, "" if m is model else names[id(m)]
        yield from ((prefix + n, t, "param") for n, p in m.named_parameters(**own) for t in held_by(p))
        yield from ((prefix + n, b, "buffer") for n, b in m.named_buffers(**own))


def held_by(tensor):
    """What a tensor of a class of its own is made of."""
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass
    if not is_traceable_wrapper_subclass(tensor):
        return [tensor]
    return [t for name in tensor.__tensor_flatten__()[0] for t in held_by(getattr(tensor, name))]


def sdpa_kernel(op):
    if "flash_attention" in op:
        return "flash"
    if "efficient_attention" in op:
        return "efficient"
    return "math/eager" if op == "_softmax" or op == "_safe_softmax" else None


def build(J, job, registry, fake, placed=None):
    """`placed` is called with what from_pretrained returns: before anything is frozen for good and adapters come."""
    import axolotl_kernels
    import checkpoints
    import float8
    import liger
    import losses
    import offloading
    import packed
    import qat
    import quantised
    model = J.build_model(job, registry, fake)
    liger.install(model, job)
    if "unsloth" in job:
        import unslothed
        return unslothed.build(model, job)
    if job.get("freeze_vision"):
        for n, p in model.named_parameters():
            if "visual" in n or "vision_tower" in n or "vision_model" in n:
                p.requires_grad = False
    for pat in job.get("freeze", []):
        if pat == "feature_extractor" and hasattr(model, "freeze_feature_encoder"):
            model.freeze_feature_encoder()         # wav2vec2: without this flag the frozen convolutions still build a graph
        for n, p in model.named_parameters():
            if re.search(pat, n):
                p.requires_grad = False
    if job["method"] == "qlora" and fake:
        quantised.quantize_linears(model, job)
        if job.get("pack_experts"):
            quantised.pack_experts(model, job.get("double_quant", True), job.get("bits", 4))
    if placed is not None:
        placed(model)
    if job["method"] == "qlora":
        for p in model.parameters():
            p.requires_grad = False
        if job.get("kbit_prepare", True) and not packed.is_left_alone(job):
            quantised.prepare_kbit(model, norms_only=job.get("kbit_prepare") == "norms", norms_back=job.get("kbit_prepare") == "norms_back")
    float8.convert(model, job)
    qat.prepare(model, job)
    adapter_first = job.get("adapter_first", False)    # get_peft_model, then the Trainer's gradient_checkpointing_enable: PEFT sets no hook
    if adapter_first:
        model = J.add_lora(model, job, fake)
    checkpoints.reset()
    checkpoints.enable(model, job)
    ckpt = checkpoints.is_enabled(job)
    if ckpt and job.get("release"):                # before version 5 gradient_checkpointing_enable left the hook to PEFT
        model.disable_input_require_grads()
    if job["method"] in ("lora", "qlora") and not adapter_first:
        if ckpt and (job["use_reentrant"] or job.get("kbit_prepare", job["method"] == "qlora")):
            model.enable_input_require_grads()
        model = J.add_lora(model, job, fake)
        for name, p in model.named_parameters():       # in place, beside the adapters: ms-swift's lora_llm
            if any(word in name for word in job.get("beside", ())):
                p.requires_grad_(True)
    if axolotl_kernels.is_one(job):
        axolotl_kernels.apply(model, job)
    if job.get("neftune"):
        from transformers.integrations.neftune import activate_neftune
        activate_neftune(model, job["neftune"])    # as Trainer.train does: behind the hook that asks for gradients
    losses.install(model, job["loss"], fake)
    if job.get("task") == "prm":                       # PRMTrainer.__init__: all else is transformers' Trainer
        import preferences
        preferences.disable_dropout(model)
    if fake:
        offloading.install(model, job)
    return model


def middle_block(model, block_re):
    """Name of the middle layer of the largest stack of blocks."""
    stacks = {}
    for n, _ in model.named_modules():
        if block_re.search(n):
            stacks.setdefault(n.rpartition(".")[0], []).append(n)
    if not stacks:
        return None
    best = max(stacks.values(), key=len)
    return best[len(best) // 2]


def param_counts(model):
    out = {"total": 0, "trainable": 0, "by_dtype": {}, "trainable_by_dtype": {}}
    for p in model.parameters():
        dt = str(p.dtype).replace("torch.", "")
        out["total"] += p.numel()
        out["by_dtype"][dt] = out["by_dtype"].get(dt, 0) + p.numel()
        if p.requires_grad:
            out["trainable"] += p.numel()
            out["trainable_by_dtype"][dt] = out["trainable_by_dtype"].get(dt, 0) + p.numel()
    return out


def in_turn(model, active, step):
    """LISA, Axolotl utils/callbacks/lisa.py: switch_active_layers, layers in turn in the place of a draw."""
    layers = model.model.layers
    for i, layer in enumerate(layers):
        layer.requires_grad_((i - (step - 1) * active) % len(layers) < active)


def analyse(tr, steps, fwd_ends, snap, mid, vocab, job, batch_shapes, top):
    """Replay the trace through the allocator models; the last step is replayed once more as step N+1."""
    from allocator import CachingAllocator
    from tracker import rounded
    recs, marks = tr.recs, tr.marks
    last_start = next(i for i, ph, st in marks if st == steps)
    events = tr.events
    caches = {"default": CachingAllocator(), "expandable": CachingAllocator(expandable=True)}
    handles = {k: {} for k in caches}
    cur = 0
    peaks = {}           # (step, phase) -> {bytes, index, default_allocated, ...}
    seq = [(i, i) for i in range(len(events))] + [(i, None) for i in range(last_start, len(events))]
    # what the last step frees of the step before has its counterpart, by size, in what the last step leaves behind
    carried = [r for r in recs if r.died is not None and r.died >= last_start > r.born]
    left = {}
    for r in recs:
        if r.born >= last_start and r.died is None:
            left.setdefault((r.nbytes, r.stream), []).append(r.id)
    twin = {r.id: left[r.nbytes, r.stream].pop(0) for r in carried if left.get((r.nbytes, r.stream))}
    bounds = {}          # position in seq -> (phase, step)
    for i, ph, st in marks:
        bounds.setdefault(i, []).append((ph, st))
    extra = len(events)
    for i, ph, st in marks:
        if st == steps:
            bounds.setdefault(extra + i - last_start, []).append((ph, steps + 1))
    for lst in bounds.values():
        lst[:] = [b for b in lst if b[0] != "end"]
    key = ("init", 0)

    def open_phase(k):
        p = peaks.setdefault(k, {"bytes": 0, "index": None})
        if cur > p["bytes"]:
            p.update(bytes=cur, index=pos)
        for name, c in caches.items():
            p[name + "_allocated"] = max(p.get(name + "_allocated", 0), c.allocated)
            p[name + "_reserved"] = max(p.get(name + "_reserved", 0), c.reserved)
            c.reset_peaks()

    pos = 0
    for pos, (i, _) in enumerate(seq):
        if pos in bounds:
            for ph, st in bounds[pos]:
                close(peaks, key, caches)
                key = (ph, st)
                open_phase(key)
        e = events[i]
        rid = abs(e) - 1
        n = recs[rid].nbytes
        if e > 0:
            cur += rounded(n)
            for name, c in caches.items():
                handles[name][rid] = c.malloc(n, recs[rid].stream)
            p = peaks.setdefault(key, {"bytes": 0, "index": None})
            if cur > p["bytes"]:
                p.update(bytes=cur, index=i)
        else:
            cur -= rounded(n)
            for name, c in caches.items():
                h = handles[name].pop(rid, None)
                if h is None and pos >= len(events):
                    h = handles[name].pop(twin.get(rid), None)
                if h is not None:
                    c.free(h)
    close(peaks, key, caches)
    all_steps = {}
    for (ph, st), p in peaks.items():
        if st:
            all_steps.setdefault(str(st), {})[ph] = {"allocated": p["default_allocated"], "requested512": p["bytes"],
                                                     "reserved": p["default_reserved"], "reserved_expandable": p["expandable_reserved"]}
    steady = [(p["bytes"], ph) for (ph, st), p in peaks.items() if st == steps and p["index"] is not None]
    peak_bytes, peak_phase = max(steady)
    idx = peaks[(peak_phase, steps)]["index"]
    out = {
        "init_bytes": peaks[("init", 0)]["bytes"],
        "steps": all_steps,
        "peak": {"phase": peak_phase, "requested512": peak_bytes,
                 "allocated": max(v["allocated"] for s, d in all_steps.items() if int(s) >= 2 for v in d.values()),
                 "reserved": max(v["reserved"] for s, d in all_steps.items() if int(s) >= 2 for v in d.values()),
                 "reserved_expandable": max(v["reserved_expandable"] for s, d in all_steps.items() if int(s) >= 2 for v in d.values())},
        "first_step_peak": {k: max(v[k] for v in all_steps["1"].values()) for k in ("allocated", "requested512", "reserved", "reserved_expandable")},
        "batch": batch_shapes,
    }
    # -- who is alive at the peak ------------------------------------------------------------
    end_after = sorted(fwd_ends)
    param_shapes = {r.shape for r in recs if r.op == "param"}
    tokens = 1
    for s in (batch_shapes or {}).get("labels", [1]) or [1]:
        tokens *= s

    kept = ("weights", "gradients", "optimizer_state", "master_weights")
    shared = ("communication", "master_weights") if "parallelism" in job else ()

    def category(r, at):
        if r.kind in kept:
            return r.kind
        if r.label:
            return "communication"
        if r.kind == "workspace":
            return "transient"
        if r.kind in ("input", "weight_cast"):
            return "other"
        n = 1
        for s in r.shape:
            n *= s
        if vocab and r.shape and r.shape not in param_shapes and r.shape[::-1] not in param_shapes \
                and (vocab in r.shape or (vocab > 1 and n % vocab == 0 and n // vocab in (tokens, tokens - 1))) and n >= vocab * 8:
            return "logits_loss"
        if r.phase == "forward":
            end = next((e for e in end_after if e >= r.born), None)
            if end is None or r.died is None or r.died >= end:
                return "activations_saved"
            return "transient"
        if r.phase == "backward" and r.kind == "recomputed":
            return "activations_saved"
        return "transient"

    def alive(at):
        return [r for r in recs if r.born <= at and (r.died is None or r.died > at)]

    def describe(r):
        return {"shape": list(r.shape), "dtype": r.dtype, "bytes": r.nbytes, "op": r.op, "module": r.mod,
                **({"kind": r.kind} if r.kind else {}), **({"label": r.label} if r.label else {})}

    live = alive(idx)
    cats = dict.fromkeys(("weights", "gradients", "optimizer_state", "activations_saved", "logits_loss", "transient", "other", *shared), 0)
    comm = {}
    detail = []
    for r in live:
        c = category(r, idx)
        cats[c] += rounded(r.nbytes)
        if c == "communication":
            comm[r.label] = comm.get(r.label, 0) + rounded(r.nbytes)
        if c not in kept:
            detail.append((c, r))
    cats["weight_casts_in_other"] = sum(rounded(r.nbytes) for r in live if r.kind == "weight_cast")
    born = recs[abs(events[idx]) - 1]
    nxt = next((recs[-e - 1].mod for e in events[idx + 1:idx + 200] if e < 0 and recs[-e - 1].mod), "")
    out["peak"]["breakdown"] = cats
    if comm:
        out["peak"]["communication"] = comm
    out["peak"]["at"] = {"op": born.op, "shape": list(born.shape), "dtype": born.dtype, "module": born.mod, "next_freed_module": nxt}
    out["peak"]["largest"] = [{"category": c, **describe(r)} for c, r in sorted(detail, key=lambda t: -t[1].nbytes)[:top]]
    # -- after forward, per layer ------------------------------------------------------------
    held = [recs[i] for i in snap.get("after_forward", [])]
    fcats = dict.fromkeys(cats, 0)
    fcats.pop("weight_casts_in_other")
    for r in held:
        fcats[category(r, r.born)] += rounded(r.nbytes)
    out["after_forward"] = fcats
    if mid:
        sym = symbols(job, batch_shapes)
        inside = lambda m: m == mid or m.startswith(mid + ".")  # noqa: E731
        layer = [r for r in held if inside(r.mod) and r.kind not in ("weights", "gradients", "optimizer_state")]
        out["layer"] = {"name": mid, "saved_bytes": sum(r.nbytes for r in layer if r.kind != "weight_cast"),
                        "weight_cast_bytes": sum(r.nbytes for r in layer if r.kind == "weight_cast"),
                        "saved": [{**describe(r), "symbols": sym(r.shape), "module": r.mod[len(mid):].lstrip(".")} for r in layer]}
        if "recompute" in snap:
            again = [recs[i] for i in snap["recompute"]]
            out["layer"]["recompute_bytes"] = sum(r.nbytes for r in again)
            out["layer"]["recompute"] = [{**describe(r), "symbols": sym(r.shape), "module": r.mod[len(mid):].lstrip(".")} for r in again]
    out["events"] = len(events)
    return out


def close(peaks, key, caches):
    p = peaks.setdefault(key, {"bytes": 0, "index": None})
    for name, c in caches.items():
        p[name + "_allocated"] = max(p.get(name + "_allocated", 0), c.peak_allocated)
        p[name + "_reserved"] = max(p.get(name + "_reserved", 0), c.peak_reserved)
        c.reset_peaks()


def symbols(job, batch_shapes):
    names = {}
    b, s = job["micro_batch"], job.get("seq_len", 0)
    for sym, v in (("B", b), ("S", s), ("B*S", b * s)):
        if v and v > 1:
            names.setdefault(v, sym)
    return lambda shape: "[" + ",".join(names.get(x, str(x)) for x in shape) + "]"


# == real back end ==========================================================================
def run_real(job, registry, steps, top):
    """The same job on a real GPU: torch.cuda's own peaks, phase by phase."""
    import torch
    import jobs as J
    from optimizers import real_optimizer
    t0 = time.time()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    dev = J.DEVICE
    torch.manual_seed(0)
    if job["method"] == "qlora":
        model = build_real_qlora(J, job, registry)
    else:
        model = build(J, job, registry, fake=False)
    opt = real_optimizer(job["optimizer"], model)
    trainable = [p for p in model.parameters() if p.requires_grad]
    vocab = getattr(J.text_config(model.config), "vocab_size", 2)
    all_steps = {}
    init = torch.cuda.memory_allocated() - base

    def note(step, phase):
        torch.cuda.synchronize()
        d = all_steps.setdefault(str(step), {}).setdefault(phase, {"allocated": 0, "reserved": 0})
        d["allocated"] = max(d["allocated"], torch.cuda.max_memory_allocated() - base)
        d["reserved"] = max(d["reserved"], torch.cuda.max_memory_reserved())
        d["requested"] = max(d.get("requested", 0), torch.cuda.memory_stats().get("requested_bytes.all.peak", 0))
        torch.cuda.reset_peak_memory_stats()
    after_forward = 0
    for step in range(1, steps + 1):
        torch.cuda.reset_peak_memory_stats()
        for _ in range(job["grad_accum"]):
            batch = J.make_batch(model, job)
            for k in ("input_ids", "labels"):
                if k in batch:
                    batch[k] = torch.randint(0, 2 if batch[k].dim() == 1 else vocab, batch[k].shape, device=dev)
            if job.get("padding"):
                batch["attention_mask"][:, -max(1, job["seq_len"] // 8):] = 0
            out = J.forward_loss(model, batch, job)
            loss = out.loss
            if not job.get("keep_outputs"):
                del out
            note(step, "forward")
            after_forward = torch.cuda.memory_allocated() - base
            loss.backward()
            out = None
            del loss, batch
            note(step, "backward")
        if job["max_grad_norm"]:
            torch.nn.utils.clip_grad_norm_(trainable, job["max_grad_norm"])
        opt.step()
        note(step, "optimizer")
        opt.zero_grad(set_to_none=job.get("zero_grad_to_none", True))
        note(step, "zero_grad")
    later = [v for s, d in all_steps.items() if int(s) >= 2 or steps == 1 for v in d.values()]
    rec = {"init_bytes": init, "steps": all_steps, "after_forward_bytes": after_forward,
           "peak": {k: max(v[k] for v in later) for k in ("allocated", "reserved")},
           "first_step_peak": {k: max(v[k] for v in all_steps["1"].values()) for k in ("allocated", "reserved")},
           "parameters": param_counts(model), "device_name": torch.cuda.get_device_name(),
           "expandable_segments": "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
           + os.environ.get("PYTORCH_ALLOC_CONF", "")}
    free, total = torch.cuda.mem_get_info()
    rec["device_used_outside_torch"] = total - free - torch.cuda.memory_reserved()
    del model, opt, trainable
    gc.collect()
    torch.cuda.empty_cache()
    rec["wall_s"] = round(time.time() - t0, 1)
    return rec


def build_real_qlora(J, job, registry):
    """Random weights, really quantised: build on the CPU, swap the linears for bnb ones, move."""
    import bitsandbytes as bnb
    import losses
    import torch
    from peft import prepare_model_for_kbit_training
    model = J.build_model(job, registry, fake=False, device="cpu")
    head = model.get_output_embeddings()
    for name, m in list(model.named_modules()):
        if type(m) is torch.nn.Linear and m is not head:
            q = bnb.nn.Linear4bit(m.in_features, m.out_features, bias=m.bias is not None, compute_dtype=torch.bfloat16,
                                  compress_statistics=job.get("double_quant", True), quant_type="nf4")
            q.weight = bnb.nn.Params4bit(m.weight.data, requires_grad=False, quant_type="nf4",
                                         compress_statistics=job.get("double_quant", True))
            if m.bias is not None:
                q.bias = m.bias
            setattr(model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], q)
    model.is_loaded_in_4bit = True
    model = model.to(J.DEVICE)
    ckpt = job["gradient_checkpointing"] != "none"
    gck = {"use_reentrant": job["use_reentrant"]}
    if job.get("kbit_prepare", True):
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=ckpt, gradient_checkpointing_kwargs=gck)
    elif ckpt:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=gck)
    model = J.add_lora(model, job, fake=False)
    losses.install(model, job["loss"], fake=False)
    return model


# == main ===================================================================================
def prepare(device):
    """Imports torch (with the fake device first, if that is the one) and returns the versions."""
    if device == "fake":
        import fakecuda  # noqa: F401  (before torch: it registers the device)
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    if device == "fake":
        transformers.PreTrainedModel.initialize_weights = lambda self, *x, **k: None
        import patches
        patches.install()
    return {"torch": torch.__version__, "transformers": transformers.__version__, "device": device}


def packed_indices(position_ids):
    """masking_utils.py find_packed_sequence_indices, but for its question whether there is one sample alone."""
    import torch
    return (torch.diff(position_ids, prepend=position_ids[:, :1] - 1, dim=-1) != 1).cumsum(-1)


def set_masks(padding, packing=False):
    """Without padding HF sees an all-ones mask and drops it; a fake tensor cannot be asked, so say so."""
    import attention_fa2
    import transformers.masking_utils as mu
    attention_fa2.PADDED = padding
    if not hasattr(mu, "oracle_plain"):
        mu.oracle_plain = mu.is_tracing, mu.find_packed_sequence_indices
    mu.is_tracing, mu.find_packed_sequence_indices = mu.oracle_plain if padding else ((lambda *x: False), (lambda *x: None))
    if packing:
        mu.find_packed_sequence_indices = packed_indices


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("jobs")
    ap.add_argument("out")
    ap.add_argument("--models", default=os.path.join(HERE, "models.json"))
    ap.add_argument("--device", choices=("fake", "cuda-real"), default="fake")
    ap.add_argument("--steps", type=int, default=2, help="real steps; the last one is replayed once more (fake)")
    ap.add_argument("--shard", default="0/1", help="i/n: take every n-th job")
    ap.add_argument("--timeout", type=int, default=180)
    ap.add_argument("--top", type=int, default=12)
    ap.add_argument("--only", help="regular expression on the job id")
    ap.add_argument("--traceback", action="store_true")
    ap.add_argument("--smoke", action="store_true", help="cuda-real on the CPU, memory calls stubbed: only checks that jobs run")
    a = ap.parse_args()
    versions = prepare(a.device)
    import numpy
    import torch
    import jobs as J
    if a.smoke:
        J.DEVICE = "cpu"
        for name, value in {"memory_allocated": 0, "max_memory_allocated": 0, "max_memory_reserved": 0, "memory_reserved": 0,
                            "memory_stats": {}, "mem_get_info": (0, 0), "get_device_name": "cpu", "synchronize": None,
                            "reset_peak_memory_stats": None, "empty_cache": None}.items():
            setattr(torch.cuda, name, lambda *x, value=value, **k: value)
    registry = J.load_registry(a.models)
    done = set()
    if os.path.exists(a.out):
        done = {json.loads(line)["job"]["id"] for line in open(a.out) if line.strip()}
    i, n = map(int, a.shard.split("/"))
    todo = [json.loads(line) for line in open(a.jobs) if line.strip() and not line.startswith("#")][i::n]

    def on_alarm(*_):
        raise TooLong()
    signal.signal(signal.SIGALRM, on_alarm)
    parallel = {job["parallelism"]["strategy"] for job in todo if "parallelism" in job}
    if parallel:
        import multi
        multi.preload(parallel)
    for job in todo:
        if job["id"] in done or (a.only and not re.search(a.only, job["id"])):
            continue
        full = {**DEFAULTS, **job}
        run = run_fake if a.device == "fake" else run_real
        if "parallelism" in full:                       # one process per job: groups and engines live in global variables
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                continue
            todo.clear()                                # (ends the loop in the child)
            run = multi.run
        if a.device == "fake":
            set_masks(full["padding"], full.get("packing"))
        numpy.random.seed(0)                          # wav2vec2's masked spans
        signal.alarm(a.timeout)
        try:
            rec = run(full, registry, full.get("steps", a.steps), a.top)
            rec = {"job": full, "versions": versions, "cublas_workspace_bytes": CUBLAS_WORKSPACE, **rec}
        except (TooLong, Exception) as e:               # noqa: B014 - one bad job must not stop the rest
            rec = {"job": full, "versions": versions, "error": f"{type(e).__name__}: {str(e)[:400]}"}
            if a.traceback:
                traceback.print_exc()
        finally:
            signal.alarm(0)
        with open(a.out, "a") as f:
            f.write(json.dumps(rec) + "\n")
        g = 2 ** 30
        if "error" in rec:
            print(job["id"], "ERROR", rec["error"][:200], flush=True)
        else:
            p = rec["peak"]
            print(f"{job['id']:44s} peak {p['allocated'] / g:8.3f} GiB reserved {p['reserved'] / g:8.3f} "
                  f"phase {p.get('phase', '')} step1 {rec['first_step_peak']['allocated'] / g:8.3f} {rec['wall_s']}s", flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
