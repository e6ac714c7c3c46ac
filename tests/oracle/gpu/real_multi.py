"""One rank of a job of many GPUs on one real card: the recorder's strategies (rec/), torch's fake process group, real streams and allocator.

What the recorder has because its device is simulated (label scopes, comparisons of addresses, muted propagation) is left away here.
Sharded models are built on "meta" and their shards alone are filled, as torchtitan and accelerate do; the others lie on the card whole.
A job line: id, job (the recorder's), expect_bytes, oracle (its record's figures)."""
import contextlib
import gc
import json
import os
import sys
import time
import types
import weakref

HERE = os.path.dirname(os.path.abspath(__file__))
SMOKE = os.environ.get("TIDEMARK_SMOKE") is not None
DEV = "cpu" if SMOKE else "cuda"
STRATEGIES = {"ddp": "par_ddp", "fsdp2": "par_fsdp2", "fsdp1": "par_fsdp1", "zero1": "par_deepspeed", "zero2": "par_deepspeed",
              "zero3": "par_deepspeed", "tp": "par_tp", "pp": "par_pp"}
WHOLE = ("ddp", "zero1", "zero2", "zero3")        # strategies that take a model which lies on the card


class NoTracker:
    """In the place of rec/tracker.py's Tracker."""
    host = device = None

    def scope(self, label):
        return contextlib.nullcontext()
    mute = scope

    def __enter__(self):
        return self

    def __exit__(self, *a):
        return False

    def __getattr__(self, name):
        return lambda *a, **k: None


def prepare():
    from real_trainers import without
    with without("bitsandbytes"):
        load()


def load():
    os.environ.update(LOCAL_RANK="0", RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500", DS_ACCELERATOR=DEV,
                      DS_SKIP_CUDA_CHECK="1", DS_BUILD_OPS="0")
    os.environ.setdefault("TRITON_CACHE_DIR", "/tmp/triton")
    sys.path += [os.path.join(HERE, "..", "recorder")]      # at the end: there is a trace.py, as Python has
    fake = types.ModuleType("fakecuda")             # the recorder's device; tracker.py asks it for this name
    fake.SETTINGS, fake.kernel_workspaces = {}, None
    sys.modules["fakecuda"] = fake
    import importlib.util
    import torch
    import torch._dynamo                            # noqa: F401
    import torch.distributed.fsdp                   # noqa: F401
    import torch.distributed.pipelining.schedules   # noqa: F401
    import torch.distributed.tensor.parallel        # noqa: F401
    import torch.testing._internal.distributed.fake_pg   # noqa: F401
    import transformers
    import transformers.models.llama.modeling_llama, transformers.models.qwen2.modeling_qwen2, transformers.models.gemma2.modeling_gemma2  # noqa: F401,E401
    import transformers.models.mistral.modeling_mistral, transformers.models.gpt2.modeling_gpt2, transformers.models.qwen3.modeling_qwen3  # noqa: F401,E401
    import transformers.trainer                     # noqa: F401
    import accelerate.utils.fsdp_utils              # noqa: F401
    import peft                                     # noqa: F401
    import peft.tuners.lora.model as lm
    lm.is_bnb_available = lm.is_bnb_4bit_available = lambda: False      # nothing here is packed
    transformers.PreTrainedModel.initialize_weights = lambda self, *a, **k: None
    transformers.logging.set_verbosity_error()
    import jobs, multi, record, batches, tracker, par_ddp, par_fsdp1, par_fsdp2, par_tp, par_pp, par_accelerate   # noqa: F401,E401
    try:
        import deepspeed as _                       # noqa: F401 - behind transformers; asks nothing of CUDA
    except Exception as e:                          # noqa: BLE001 - the other strategies go on
        print("no deepspeed:", repr(e)[:300], file=sys.stderr)
    os.environ.pop("TRANSFORMERS_DISABLE_TORCH_CHECK", None)
    batches.DEVICE = jobs.DEVICE = DEV
    plain = torch.distributed.device_mesh.init_device_mesh
    for m in (par_fsdp1, par_fsdp2, par_tp, torch.distributed.device_mesh):
        m.init_device_mesh = lambda kind, *a, **k: plain(DEV, *a, **k)
    par_fsdp2.FSDP2.device_labels = lambda self: None
    par_accelerate.take_release = lambda version: None      # the one that is installed; jobs of others are not taken
    import fakedist
    fakedist.real_meshes = lambda: None
    par_fsdp1.FSDP1.setup = fsdp1_setup
    par_fsdp1.FSDP1.fully = fsdp1_fully
    par_ddp.DDP.wrap, par_ddp.DDP.forward = ddp_wrap, ddp_forward
    par_pp.PP.replicate = lambda self, part: replicate(part, self.par, self.mesh.get_group())
    if SMOKE:                                       # "cuda" is written out there
        torch.Tensor.pin_memory = lambda self, *a, **k: self
        par_pp.torch = types.SimpleNamespace(**{**vars(torch), "device": lambda *a: torch.device("cpu")})
    gc.collect()
    gc.freeze()                                     # the children's collections need not look at what is imported
    assert not torch.cuda.is_initialized()


# -- building ---------------------------------------------------------------------------------
def value_(t):
    import torch
    with torch.no_grad():
        if not t.is_floating_point():
            t.zero_()
        elif t.dim() < 2:
            t.fill_(1.0)
        else:
            t.normal_(0, 0.02)


def fill(model):
    """Finite weights; tensors of the model itself, of any device."""
    from torch.distributed.tensor import DTensor
    for t in [*model.parameters(), *model.buffers()]:
        t = t._local_tensor if isinstance(t, DTensor) else t
        if t.device.type != "meta" and t.numel():
            value_(t.detach())


def materialise(model, device, buffers_on, memo=None, recurse=True):
    """What lies on "meta" gets memory, tied parameters once (Module.to_empty would part them)."""
    import torch
    memo = {} if memo is None else memo

    def made(t, where):
        new = memo[id(t)][0]() if id(t) in memo else None
        if new is None:
            new = torch.empty_like(t.detach(), device=where)
            local = getattr(new, "_local_tensor", new)
            if local.numel():
                value_(local)
            new = torch.nn.Parameter(new, t.requires_grad) if isinstance(t, torch.nn.Parameter) else new
            memo[id(t)] = weakref.ref(new), t        # weak: FSDP1 lets each unit go when it is sharded; t: so that no other gets its id
        return new
    for m in (model.modules() if recurse else [model]):
        for table, where in ((m._parameters, device), (m._buffers, buffers_on)):
            for k, t in list(table.items()):
                if t is not None and t.device.type == "meta":
                    table[k] = made(t, where)
        for k, t in list(vars(m).items()):           # rotary tables keep a second name for theirs
            if isinstance(t, torch.Tensor) and t.device.type == "meta":
                setattr(m, k, made(t, buffers_on))
    return memo


def build_on(job, device):
    import jobs as J
    import record
    J.DEVICE = device
    try:
        return record.build(J, job, REGISTRY, fake=False)
    finally:
        J.DEVICE = DEV


REGISTRY = {}


# -- what the recorder works around on its device, and here not -----------------------------------
def fsdp1_setup(self):
    import fakedist
    from torch.distributed.device_mesh import init_device_mesh
    fakedist.init(self.world())
    rep = self.par.get("replicate", 1)
    self.mesh = init_device_mesh(DEV, (rep, self.par["data"]), mesh_dim_names=("replicate", "shard")) if rep > 1 else None


def fsdp1_fully(self, model):
    """par_fsdp1.FSDP1.fully, from "meta": one unit after the other is made, sharded and let go."""
    import functools
    import jobs as J
    import torch
    from torch.distributed.fsdp import BackwardPrefetch, CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import lambda_auto_wrap_policy
    from tracker import blocks
    par = self.par
    dt = lambda k: J.DTYPES[par[k]] if par.get(k) else None  # noqa: E731
    layers = {id(m) for m in blocks(model)}
    if par.get("wrap") == "peft":
        layers |= {id(m) for m in model.modules() if not list(m.children()) and getattr(m, "weight", None) is not None and m.weight.requires_grad}
    pre = par.get("backward_prefetch", "backward_pre")
    mp = MixedPrecision(param_dtype=dt("param_dtype"), reduce_dtype=dt("reduce_dtype"), buffer_dtype=dt("param_dtype")) if par.get("param_dtype") else None
    memo = {}
    return FullyShardedDataParallel(
        model, sharding_strategy=getattr(ShardingStrategy, par.get("sharding", "full_shard").upper()), mixed_precision=mp,
        device_id=torch.device("cuda", 0) if DEV == "cuda" else torch.device("cpu"),
        auto_wrap_policy=functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: id(m) in layers),
        backward_prefetch=getattr(BackwardPrefetch, pre.upper()) if pre else None, forward_prefetch=par.get("forward_prefetch", False),
        limit_all_gathers=par.get("limit_all_gathers", True), use_orig_params=par.get("use_orig_params", True),
        cpu_offload=CPUOffload(True) if par.get("offload") else None, device_mesh=self.mesh, sync_module_states=False,
        param_init_fn=lambda m: (materialise(m, DEV, DEV, memo, recurse=False), None)[1])


def replicate(model, p, group=None):
    import torch
    import torch.nn.parallel.distributed as ddp_mod
    ddp_mod._verify_param_shape_across_processes = lambda *a, **k: None      # compares with other ranks: what these "send" is nothing
    ddp = ddp_mod.DistributedDataParallel(
        model, device_ids=[0] if DEV == "cuda" else None, bucket_cap_mb=p.get("bucket_cap_mb", 25), process_group=group,
        gradient_as_bucket_view=p.get("gradient_as_bucket_view", False), find_unused_parameters=p.get("find_unused", False),
        static_graph=p.get("static_graph", False))

    def allreduce(state, bucket):
        """The default hook; backend "fake" completes with no value, which the reducer's own would miss."""
        buf = bucket.buffer()
        torch.distributed.all_reduce(buf, group=group)
        fut = torch.futures.Future(devices=[buf.device]) if buf.is_cuda else torch.futures.Future()
        fut.set_result(buf)
        return fut
    ddp.register_comm_hook(None, allreduce)
    return ddp


def ddp_wrap(self, model):
    self.ddp, self.sync = replicate(model, self.par), True
    return self.ddp


def ddp_forward(self, module, batch):
    """DDP.forward makes the buckets anew by itself."""
    import jobs as J
    with contextlib.nullcontext() if self.sync else self.ddp.no_sync():
        return J.forward_loss(module, batch, self.job)


def deepspeed():
    import par_deepspeed as pd
    os.environ["DS_ACCELERATOR"] = DEV

    def setup(self):
        import fakedist
        os.environ["WORLD_SIZE"] = str(self.world())
        fakedist.init(self.world())
        import deepspeed as ds
        import deepspeed.comm                        # noqa: F401
        import deepspeed.runtime.zero.partition_parameters as pp
        import deepspeed.runtime.zero.partitioned_param_coordinator as coord
        import deepspeed.runtime.zero.stage3 as s3
        for m in (pp, coord, s3):
            m.assert_ints_same_as_other_ranks = lambda ints: None       # asks the other ranks
        self.ds = ds
        if SMOKE:
            sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None           # a compiled op of the CPU's
        ds.utils.logger.setLevel("ERROR")
        ds.init_distributed("fake", auto_mpi_discovery=False, verbose=False)
    pd.DeepSpeed.setup = setup
    pd.DeepSpeed.name_buffers = lambda self: None


# -- one job --------------------------------------------------------------------------------------
def optimizer(strat, job):
    """torch's own, in the Trainer's two groups."""
    import torch
    if job["parallelism"]["strategy"].startswith("zero"):
        return strat.opt
    trained = list(strat.trainable())
    groups = [{"params": g, "weight_decay": 0.0} for g in ([p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]) if g]
    name = job["optimizer"]
    if name in ("adamw_torch", "adamw_torch_fused"):
        return torch.optim.AdamW(groups, lr=1e-5, **({"fused": True} if name.endswith("fused") else {"foreach": True}))
    if name in ("sgd", "sgd_momentum"):
        return torch.optim.SGD(groups, lr=1e-5, momentum=0.9 if name.endswith("momentum") else 0.0)
    return {"rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad}[name](groups, lr=1e-5)


def clip(strat, job, params):
    import torch
    kind = job["parallelism"]["strategy"]
    if not job["max_grad_norm"] or kind.startswith("zero"):
        return                                       # part of the engine's step
    if kind == "fsdp1":
        strat.fsdp.clip_grad_norm_(job["max_grad_norm"])
    else:
        torch.nn.utils.clip_grad_norm_(params, job["max_grad_norm"])


def shrunk(job):
    """For a smoke run: the same structure, small."""
    cfg = dict(job["config"])
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "vocab_size": 512, "n_embd": 64, "n_layer": 4, "n_inner": 128,
             "word_embed_proj_dim": 64, "ffn_dim": 128, "head_dim": 8, "num_attention_heads": 8, "n_head": 8, "query_pre_attn_scalar": 8}
    for k, v in sizes.items():
        if cfg.get(k) is not None:
            cfg[k] = v
    if "num_key_value_heads" in cfg:
        cfg["num_key_value_heads"] = 8 if cfg["num_key_value_heads"] > 2 else 2
    cfg.pop("layer_types", None)
    return {**job, "config": cfg, "seq_len": 32}


def run(line, probe):
    import numpy
    import torch
    t0 = time.time()
    job = shrunk(line["job"]) if SMOKE else line["job"]
    numpy.random.seed(0)
    torch.manual_seed(0)
    kind = job["parallelism"]["strategy"]
    if line.get("expandable") and not SMOKE:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    fine = not line.get("coarse")                    # coarse: no waiting for the card between phases, as a trainer has none
    if kind.startswith("zero"):
        deepspeed()
    mod = __import__(STRATEGIES[kind])
    strat = mod.make(job, NoTracker())
    strat.setup()
    whole = kind in WHOLE
    if not whole:
        import record
        plain = record.build
        record.build = lambda J, job, registry, fake: build_meta(plain, J, job, registry)      # PP builds by that name
    offload = job["parallelism"].get("offload") is True
    if whole:
        model = strat.model = build_on(job, DEV)
        fill(model)
    else:
        model = strat.model = strat.build(REGISTRY)
    if kind == "ddp":
        probe.built()
    if kind == "pp" and job["parallelism"].get("ddp"):
        for part in strat.parts:                     # the buckets want real parameters
            materialise(part, DEV, DEV)
    call = strat.wrap(model)
    model = strat.model
    if kind in ("fsdp2", "tp", "pp"):
        model = strat.model = call
        materialise(call, "cpu" if offload else DEV, DEV)
    gc.collect()
    if kind != "ddp":
        probe.built()
    opt = optimizer(strat, job)
    params = strat.trainable()
    after_forward = {}
    steps, losses = line.get("steps", 3), []
    if kind.startswith("zero"):
        opt_step, zero = (lambda: strat.step(opt)), (lambda: None)
    else:
        opt_step, zero = opt.step, lambda: opt.zero_grad(set_to_none=job.get("zero_grad_to_none", True))
    t1 = time.time()
    for step in range(1, steps + 1):
        if step == steps:
            probe.last()
        for micro in range(job["grad_accum"]):
            strat.last_micro_step(micro == job["grad_accum"] - 1)
            batch = strat.batch(model)
            out = strat.forward(call, batch)
            loss = out.loss if hasattr(out, "loss") else out
            if not job.get("keep_outputs"):
                del out
            if fine:
                probe.note(step, "forward")
                after_forward[step] = torch.cuda.memory_allocated() if not SMOKE else 0
            if isinstance(loss, torch.Tensor):
                losses.append(loss.detach())
            strat.backward(loss)
            out = None
            del loss, batch
            if fine:
                probe.note(step, "backward")
        clip(strat, job, params)
        opt_step()
        if fine:
            probe.note(step, "optimizer")
        zero()
        probe.note(step, "zero_grad" if fine else "step")
    facts = {"build_s": round(t1 - t0, 2), "steps_s": round(time.time() - t1, 2), "after_forward": after_forward, "torch": torch.__version__,
             "loss": [round(float(x.full_tensor() if hasattr(x, "full_tensor") else x), 3) for x in losses][:6],
             "local_parameters": sum(getattr(p, "_local_tensor", p).numel() for p in call.parameters())}
    facts.update(probe.finish())
    if len(json.dumps(facts.get("events", []))) > 60000:      # a result is not to be larger than 100 kB
        facts["events_left_out"] = len(facts.pop("events"))
    return facts


def build_meta(plain, J, job, registry):
    J.DEVICE = "meta"
    try:
        return plain(J, job, registry, fake=False)
    finally:
        J.DEVICE = DEV
