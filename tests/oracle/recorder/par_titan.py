"""torchtitan 0.2.2: its own Qwen3 and DeepSeek-V3 with experts, parallelised by its own code (expert parallelism, activation checkpointing, FSDP 2).

par: data (dp_shard), expert, reshard_after_forward (True | False); param_dtype, reduce_dtype as for par_fsdp2.  job: ac "none" | "full" | "op" | a number
(gradient_checkpointing's own words: none, full, {"selective": "op"}, {"every": n}).  `third_party/titan` holds the wheel's torchtitan.
"""

import os
import sys
import types
import typing
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

import torch

import fakedist
import jobs as J
import megatron_stubs as stubs
import record
from multi import Optimizer, Strategy
from par_fsdp2 import FSDP2, label

MISSING = ("tyro", "torchdata", "triton", "datasets", "tomli_w", "tokenizers", "wandb", "torchao")


class Any(type(typing.Protocol)):
    """A class that has every attribute, and is a decorator of any kind."""
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Any(name, (Unused,), {})


class Unused(metaclass=Any):
    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __call__(self, function=None, *args, **kwargs):
        return function

    def __getattr__(self, name):
        return Unused()


class Nothing(types.ModuleType):
    """A package that is imported and not used here."""
    __path__ = []

    def __getattr__(self, name):
        return getattr(Unused, name)


class Stubs(MetaPathFinder, Loader):
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in MISSING or name == "torch.utils.tensorboard" else None

    def create_module(self, spec):
        return Nothing(spec.name)

    def exec_module(self, module):
        pass


def preload():
    stubs, compiled = Stubs(), torch.compile
    sys.meta_path.insert(0, stubs)
    torch.compile = lambda function=None, **kwargs: function or (lambda f: f)      # of kernels that are not used here
    sys.path.insert(0, os.path.join(record.HERE, "third_party", "titan"))
    import torchtitan.distributed.expert_parallel as ep
    import torchtitan.models.deepseek_v3 as deepseek    # noqa: F401
    import torchtitan.models.moe.kernels as kernels
    import torchtitan.models.qwen3 as qwen3             # noqa: F401

    torch.compile = compiled
    sys.meta_path.remove(stubs)
    for name in [n for n in sys.modules if n.split(".")[0] == "triton"]:
        del sys.modules[name]                        # torch would take it for one

    # _fill_indices_kernel writes into what its wrapper has made.
    kernels.fill_indices_wrapper = lambda tokens, starts, offsets, experts, ranks, max_len, **k: torch.full(
        (max_len,), -1, dtype=torch.int32, device=tokens.device)

    def counts(x, outputs, inputs, group):
        """Every rank's tokens choose alike: of each come the counts of the first rank's experts."""
        size = group.size()
        return torch.cat([x[:x.numel() // size]] * size)
    ep.all_to_all_single = counts
    recompute_what_is_new()


def recompute_what_is_new():
    """FSDP gathers experts at other places as a layer runs again. torch 2.10, for which this torchtitan is written, runs operations that the selective
    checkpoint has not seen; 2.14 raises."""
    import torch.utils.checkpoint as checkpoint
    plain = checkpoint._CachedTorchDispatchMode.__torch_dispatch__

    def dispatch(self, func, types, args=(), kwargs=None):
        key = checkpoint._sac_storage_key(func, args)
        if self.func_counter[key] not in (self.storage.get(key) or {}):
            return func(*args, **(kwargs or {}))
        return plain(self, func, types, args, kwargs)
    checkpoint._CachedTorchDispatchMode.__torch_dispatch__ = dispatch


class Titan(Strategy):
    def world(self):
        return self.par["data"]

    def setup(self):
        torch.nn.RMSNorm.forward = lambda norm, x: stubs.Norm.apply(x, norm.weight, None)        # the fused one, which a CPU build lacks
        from torchtitan.distributed import ParallelDims
        fakedist.real_meshes()
        fakedist.init(self.world())
        self.dims = ParallelDims(dp_replicate=1, dp_shard=self.par["data"], cp=1, tp=1, pp=1, ep=self.par.get("expert", 1), etp=1, world_size=self.world())
        self.dims.build_mesh()
        FSDP2.device_labels(self)

    def build(self, registry):
        cfg, _ = J.make_config(self.job, registry)
        cls, args = (deepseek_args if cfg.model_type == "deepseek_v3" else qwen3_args)(cfg, self.job)
        before = torch.get_default_dtype()
        torch.set_default_dtype(J.DTYPES[J.PRECISION[self.job["precision"]][0]])         # train.py: set_default_dtype(training.dtype)
        with torch.device(J.DEVICE):
            model = cls(args)
        torch.set_default_dtype(before)
        model.config = cfg
        model.train()
        return model

    def wrap(self, model):
        from torchtitan.models.deepseek_v3.infra.parallelize import parallelize_deepseekv3
        from torchtitan.models.qwen3.infra.parallelize import parallelize_qwen3
        name = lambda k: {"bf16": "bfloat16", "fp32": "float32"}[self.par[k]]  # noqa: E731
        mode, option = checkpoints(self.job["gradient_checkpointing"])
        N = types.SimpleNamespace
        config = N(training=N(seq_len=self.job["seq_len"], mixed_precision_param=name("param_dtype"), mixed_precision_reduce=name("reduce_dtype"),
                              enable_cpu_offload=False),
                   parallelism=N(context_parallel_degree=1, enable_async_tensor_parallel=False, disable_loss_parallel=False,
                                 fsdp_reshard_after_forward="always" if self.par.get("reshard_after_forward") is True and not self.par.get("default", True)
                                 else "default" if self.par.get("reshard_after_forward", True) else "never",
                                 expert_parallel_comm_backend="standard", expert_parallel_degree=self.par.get("expert", 1),
                                 pipeline_parallel_degree=1, pipeline_parallel_schedule="1F1B"),
                   compile=N(enable=False, components=[]), model=N(converters=[]), quantize=None, job=N(dump_folder=""),
                   activation_checkpoint=N(mode=mode, selective_ac_option=option, preserve_rng_state=True, determinism_check="default", early_stop=False,
                                           debug=False, per_op_sac_force_recompute_mm_shapes_by_fqns=["moe.router.gate"], memory_budget=0.5))
        (parallelize_deepseekv3 if "deepseek" in model.config.model_type else parallelize_qwen3)(model, self.dims, config)
        return model

    def batch(self, model):
        shape = (self.job["micro_batch"], self.job["seq_len"])
        ids = lambda: torch.zeros(shape, dtype=torch.int64, device=J.DEVICE)  # noqa: E731
        return {"input_ids": ids(), "labels": ids()}

    def forward(self, module, batch):
        """train.py: forward_backward_step."""
        from torchtitan.components.loss import cross_entropy_loss
        pred = module(batch["input_ids"])
        loss = cross_entropy_loss(pred, batch["labels"]) / 8192.0
        del pred
        return loss

    def optimizer(self):
        self.opt = Optimizer(self.job["optimizer"], self.model)
        return self.opt


def checkpoints(how):
    if how in ("none", "full"):
        return how, "op"
    return "selective", "op" if "selective" in how else str(how["every"])


def experts_args(cfg, count, **more):
    from torchtitan.models.moe import MoEArgs
    return MoEArgs(num_experts=count, top_k=cfg.num_experts_per_tok, **more)


def qwen3_args(cfg, job):
    """models/qwen3/__init__.py, "30B-A3B"."""
    from torchtitan.models.qwen3.model.args import Qwen3ModelArgs
    from torchtitan.models.qwen3.model.model import Qwen3Model
    moe = cfg.model_type == "qwen3_moe"
    more = {}
    if moe:
        more = {"moe_enabled": True, "moe_inter_dim": cfg.moe_intermediate_size,
                "moe_args": experts_args(cfg, cfg.num_experts, num_shared_experts=0, score_func="softmax", route_norm=True, score_before_experts=False)}
    return Qwen3Model, Qwen3ModelArgs(
        vocab_size=cfg.vocab_size, max_seq_len=job["seq_len"], head_dim=cfg.head_dim, dim=cfg.hidden_size, n_layers=cfg.num_hidden_layers,
        n_heads=cfg.num_attention_heads, n_kv_heads=cfg.num_key_value_heads, qk_norm=True, hidden_dim=cfg.intermediate_size,
        enable_weight_tying=cfg.tie_word_embeddings, **more)


def deepseek_args(cfg, job):
    """models/deepseek_v3/__init__.py, "671B" and "16B"."""
    from torchtitan.models.deepseek_v3.model.args import DeepSeekV3ModelArgs
    from torchtitan.models.deepseek_v3.model.model import DeepSeekV3Model
    groups = cfg.n_group if cfg.n_group and cfg.n_group > 1 else None
    args = DeepSeekV3ModelArgs(
        max_seq_len=job["seq_len"], vocab_size=cfg.vocab_size, dim=cfg.hidden_size, inter_dim=cfg.intermediate_size, moe_inter_dim=cfg.moe_intermediate_size,
        n_layers=cfg.num_hidden_layers, n_dense_layers=cfg.first_k_dense_replace, n_heads=cfg.num_attention_heads,
        moe_args=experts_args(cfg, cfg.n_routed_experts, num_shared_experts=cfg.n_shared_experts, score_func="sigmoid", route_norm=True, route_scale=2.5,
                              num_expert_groups=groups, num_limited_groups=cfg.topk_group if groups else None, score_before_experts=False),
        q_lora_rank=cfg.q_lora_rank or 0, kv_lora_rank=cfg.kv_lora_rank, qk_nope_head_dim=cfg.qk_nope_head_dim, qk_rope_head_dim=cfg.qk_rope_head_dim,
        v_head_dim=cfg.v_head_dim)
    args.moe_impl = "standard"                       # update_from_config
    return DeepSeekV3Model, args


def make(job, tr):
    return Titan(job, tr)
