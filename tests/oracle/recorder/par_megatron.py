"""Megatron-Core 0.16.1: one rank of its GPTModel of local layers, its DistributedDataParallel, optimizer and schedules, on fake tensors.

par: data, tensor, sequence_parallel, pipeline, virtual_pipeline, num_micro_batches, rank (of the pipeline), expert, expert_tensor, zero_stage (1: the
distributed optimizer), loss "none" | "native", fuse_gradients (True); recomputation is gradient_checkpointing, "full" or {"selective": ["core_attn"]}.
`third_party/megatron` holds megatron_core's wheel; what it takes from CUDA extensions is megatron_stubs.py's.  Around it is what Megatron-LM's
pretrain_gpt.py and training.py do: batches of five tensors, get_model, train_step.
"""
import contextlib
import functools
import os
import sys
import types

import torch

import fakedist
import jobs as J
import megatron_adapters
import megatron_stubs as stubs
import record
from multi import Strategy

sys.path.insert(0, os.path.join(record.HERE, "third_party", "megatron"))
PAIRED = ("dpo", "rm", "reward")
DTYPE = {"bf16": torch.bfloat16, "fp16": torch.float16}


def preload():
    """torch.cuda as Megatron's modules ask for it, and the modules themselves."""
    torch.cuda.manual_seed = lambda seed: None
    answer_questions()
    stubs.install()
    import megatron.core.tensor_parallel.random as random
    random._get_cuda_rng_state = lambda *a, **k: torch.zeros(16, dtype=torch.uint8)
    random._set_cuda_rng_state = lambda *a, **k: None
    import megatron.core.models.gpt                     # noqa: F401
    import megatron.core.optimizer                      # noqa: F401
    import megatron.core.pipeline_parallel.schedules    # noqa: F401
    stubs.after_import()
    megatron_adapters.preload()
    experts()

    def all_gather_object(out, mine, group=None):
        out[:] = [mine] * len(out)
    torch.distributed.all_gather_object = all_gather_object
    import megatron.core.distributed.param_and_grad_buffer as buffers
    buffers._coalescing_manager = lambda *a, **k: contextlib.nullcontext(types.SimpleNamespace(wait=lambda: None))    # one by one, which is the same memory
    import megatron.core.transformer.module as module
    module.MegatronModule.bfloat16 = lambda self: cast(self, torch.bfloat16)
    module.MegatronModule.half = lambda self: cast(self, torch.float16)


def experts():
    """Numbers of tokens, known (values.py), on their way to the host and from the other ranks, which have as many."""
    import megatron.core.tensor_parallel.mappings as mappings
    import megatron.core.transformer.moe.moe_utils as utils
    import megatron.core.transformer.moe.router as router
    import megatron.core.transformer.moe.token_dispatcher as dispatcher
    import numpy
    utils.te_general_gemm = None                # (it is asked for without Transformer Engine, too; as many bytes as torch.mm's)
    plain = mappings._gather_along_first_dim

    def gather(x, group, *args, **kwargs):
        return torch.cat([x] * group.size()) if x.dtype == torch.int64 and group.size() > 1 else plain(x, group, *args, **kwargs)

    def to_cpu(x, as_numpy=False, record_stream=False):
        if not isinstance(x, torch.Tensor):
            return x
        return numpy.array(x.tolist()) if as_numpy else torch.tensor(x.tolist())
    zeros_like, route = torch.zeros_like, router.topk_routing_with_score_function

    def routed(*args, **kwargs):
        """The map of a token's experts begins with zeros_like(scores), whose contents are known though the scores' are not."""
        torch.zeros_like = lambda x: torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        try:
            return route(*args, **kwargs)
        finally:
            torch.zeros_like = zeros_like
    router.topk_routing_with_score_function = routed
    mappings._gather_along_first_dim, dispatcher.maybe_move_tensor_to_cpu = gather, to_cpu


def answer_questions():
    """Norms and signs of overflow are asked for: none, and nothing is skipped."""
    plain = torch.Tensor.item

    def item(self):
        try:
            return plain(self)
        except torch._subclasses.fake_tensor.DataDependentOutputException:
            return 0.0
    torch.Tensor.item = item


def cast(model, dtype):
    """Module.half of fake parameters: new ones, which keep Megatron's marks.  (A router's fp32 bias is a buffer.)"""
    new = {}
    for m in model.modules():
        for key, p in list(m._parameters.items()):
            if p is None or p.dtype == dtype:
                continue
            if id(p) not in new:
                new[id(p)] = torch.nn.Parameter(p.detach().to(dtype), requires_grad=p.requires_grad)
                new[id(p)].__dict__.update(p.__dict__)
            m._parameters[key] = new[id(p)]
    return model


class Everything(torch.nn.ModuleDict):
    """The chunks of this rank, as one module."""


class Megatron(Strategy):
    def degrees(self):
        get = lambda name: self.par.get(name, 1)  # noqa: E731
        return get("data"), get("tensor"), get("pipeline")

    def world(self):
        data, tensor, pipeline = self.degrees()
        return data * tensor * pipeline

    def setup(self):
        data, tensor, pipeline = self.degrees()
        # order tp-cp-ep-dp-pp: the ranks of a stage lie side by side
        fakedist.init(self.world(), rank=self.par.get("rank", 0) * data * tensor)
        from megatron.core import parallel_state, tensor_parallel
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=tensor, pipeline_model_parallel_size=pipeline,
            virtual_pipeline_model_parallel_size=self.par["virtual_pipeline"] if self.par.get("virtual_pipeline", 1) > 1 else None,
            expert_model_parallel_size=self.par.get("expert", 1), expert_tensor_parallel_size=self.par.get("expert_tensor"),
            create_gloo_process_groups=False)
        self.state = parallel_state
        tensor_parallel.model_parallel_cuda_manual_seed(1)
        stubs.TRACKER[:] = [self.tr]

    def counted(self, model):
        """A parameter that tensor- or expert-parallel ranks divide counts with their parts."""
        expert, tensor = self.par.get("expert", 1), self.par.get("tensor", 1)
        whole = []
        for name, p in model.named_parameters():
            routed = ".experts." in name
            times = (self.par.get("expert_tensor") or tensor) if routed else tensor
            n = p.numel() * (times if getattr(p, "tensor_model_parallel", routed) else 1) * (expert if routed else 1)
            whole.append(torch.empty(n, dtype=p.dtype, device="meta", requires_grad=p.requires_grad))
        return types.SimpleNamespace(parameters=lambda: whole)

    def config(self):
        from megatron.core.transformer import MLATransformerConfig, TransformerConfig
        hf, _ = J.make_config(self.job, self.registry)
        self.hf, par = hf, self.par
        get = lambda *names, default=None: next((getattr(hf, n) for n in names if getattr(hf, n, None) is not None), default)  # noqa: E731
        gated = hf.model_type not in ("gpt2", "gpt_neox", "bloom", "starcoder2")
        hidden, heads = get("hidden_size", "n_embd"), get("num_attention_heads", "n_head")
        wide = get("intermediate_size", "n_inner", default=4 * hidden)
        experts = get("num_local_experts", "num_experts", "n_routed_experts")
        extra = {}
        if experts:
            extra = dict(num_moe_experts=experts, moe_router_topk=hf.num_experts_per_tok, moe_ffn_hidden_size=get("moe_intermediate_size", default=wide),
                         moe_token_dispatcher_type="alltoall", moe_grouped_gemm=False, moe_router_load_balancing_type="none",
                         expert_tensor_parallel_size=par.get("expert_tensor"))
        if hf.model_type == "qwen2_moe":      # mcore-bridge config/parser.py
            extra.update(moe_shared_expert_intermediate_size=hf.shared_expert_intermediate_size, moe_shared_expert_gate=True,
                         moe_router_pre_softmax=not hf.norm_topk_prob)
        latent, glm = hf.model_type == "deepseek_v3", hf.model_type == "glm4_moe"
        if latent:      # mcore-bridge config/parser.py, model/gpt_model.py
            extra.update(multi_latent_attention=True, q_lora_rank=hf.q_lora_rank, kv_lora_rank=hf.kv_lora_rank, qk_head_dim=hf.qk_nope_head_dim,
                         qk_pos_emb_head_dim=hf.qk_rope_head_dim, v_head_dim=hf.v_head_dim, rope_type="rope")
        if latent or glm:
            extra.update(moe_shared_expert_intermediate_size=hf.n_shared_experts * hf.moe_intermediate_size, moe_router_score_function="sigmoid",
                         moe_router_enable_expert_bias=True, moe_router_topk_scaling_factor=hf.routed_scaling_factor,
                         moe_layer_freq=[int(i >= hf.first_k_dense_replace) for i in range(hf.num_hidden_layers)])
        recompute = self.job["gradient_checkpointing"]
        if recompute == "full":
            extra.update(recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1)
        elif recompute != "none":
            extra.update(recompute_granularity="selective", recompute_modules=recompute["selective"])
        self.biased = {"llama": False, "qwen3": False, "mixtral": False, "qwen3_moe": False, "mistral": False, "qwen2_moe": False, "deepseek_v3": False,
                       "glm4_moe": False}.get(hf.model_type, True)
        _, tensor, pipeline = self.degrees()
        dtype = DTYPE[self.job["precision"].rpartition("_")[2]]
        chunks = par.get("virtual_pipeline", 1)
        return (MLATransformerConfig if latent else TransformerConfig)(
            num_layers=get("num_hidden_layers", "n_layer"), hidden_size=hidden, num_attention_heads=heads,
            num_query_groups=get("num_key_value_heads", default=heads), kv_channels=get("head_dim", default=hidden // heads), ffn_hidden_size=wide,
            attention_dropout=get("attention_dropout", "attn_pdrop", default=0.0), hidden_dropout=get("resid_pdrop", "hidden_dropout", default=0.0),
            normalization="RMSNorm" if gated else "LayerNorm", gated_linear_unit=gated,
            activation_func=torch.nn.functional.silu if gated else torch.nn.functional.gelu,
            add_bias_linear=not gated, add_qkv_bias=hf.model_type in ("qwen2", "qwen2_moe") or (glm and hf.attention_bias),
            qk_layernorm=latent or hf.model_type.startswith("qwen3") or (glm and hf.use_qk_norm),
            tensor_model_parallel_size=tensor, pipeline_model_parallel_size=pipeline, sequence_parallel=par.get("sequence_parallel", False),
            virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None, expert_model_parallel_size=par.get("expert", 1),
            params_dtype=dtype, pipeline_dtype=dtype, bf16=dtype is torch.bfloat16, fp16=dtype is torch.float16,
            # Megatron-LM training/arguments.py: all fusions are on
            masked_softmax_fusion=True, bias_activation_fusion=True, bias_dropout_fusion=True, apply_rope_fusion=self.rotates() and not latent,
            gradient_accumulation_fusion=par.get("fuse_gradients", True), attention_softmax_in_fp32=False, deallocate_pipeline_outputs=True,
            batch_p2p_comm=chunks == 1, overlap_p2p_comm=False, perform_initialization=True,
            cross_entropy_loss_fusion=par.get("loss", "none") != "none", cross_entropy_fusion_impl="native", **extra)

    def rotates(self):
        return self.hf.model_type not in ("gpt2", "bloom")

    def build(self, registry):
        from megatron.core.models.gpt import GPTModel
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.transformer.module import Float16Module
        self.registry = registry
        self.cfg = cfg = self.config()
        spec = get_gpt_layer_local_spec(num_experts=cfg.num_moe_experts, qk_layernorm=cfg.qk_layernorm, normalization=cfg.normalization)
        if isinstance(cfg.moe_layer_freq, list):
            spec = self.block_of_layers(cfg)
        tensor, chunks = self.par.get("tensor", 1), self.par.get("virtual_pipeline", 1)
        vocabulary = -(-self.hf.vocab_size // (128 * tensor)) * 128 * tensor
        self.chunks = []

        def plain(first, last, stage):
            return GPTModel(cfg, spec, vocabulary, getattr(self.hf, "max_position_embeddings", None) or self.hf.n_positions, pre_process=first,
                            post_process=last, share_embeddings_and_output_weights=bool(self.hf.tie_word_embeddings),
                            position_embedding_type="rope" if self.rotates() else "learned_absolute", vp_stage=stage,
                            rotary_percent=self.hf.partial_rotary_factor if self.hf.model_type == "glm4_moe" else 1.0)
        with torch.device("cuda"):
            for i in range(chunks):
                stage = i if chunks > 1 else None
                first = self.state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage)
                last = self.state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage)
                model = plain(first, last, stage)
                model.model_type = None
                if self.job["method"] == "lora":
                    megatron_adapters.apply([model], self.job)
                self.chunks.append(Float16Module(cfg, model))
        model = Everything({str(i): m for i, m in enumerate(self.chunks)}).train()
        if self.par.get("scores"):
            head = self.chunks[0].module
            head.output_layer = Score(cfg, self.par["scores"], tensor if cfg.sequence_parallel else 1)
        self.reference = None
        if self.par.get("task") in ("dpo", "grpo") and self.job["method"] == "full":
            with torch.device("cuda"):        # ms-swift megatron/trainers/rlhf_mixin.py: prepare_model
                reference = plain(first, last, stage)
            self.reference = cast(reference, cfg.params_dtype).requires_grad_(False).eval()
            model["reference"] = self.reference
        return model

    def block_of_layers(self, cfg):
        """models/gpt/gpt_layer_specs.py get_gpt_decoder_block_spec, of local layers: dense ones ahead of mixtures."""
        from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
        from megatron.core.transformer.transformer_block import TransformerBlockSubmodules
        from megatron.core.transformer.torch_norm import WrappedTorchNorm
        latent = getattr(cfg, "multi_latent_attention", False)
        if latent:
            self.let_core_take_widths()
        make = functools.partial(get_gpt_layer_local_spec, qk_layernorm=cfg.qk_layernorm, multi_latent_attention=latent, normalization="RMSNorm")
        layers = [make(num_experts=cfg.num_moe_experts if routed else None) for routed in cfg.moe_layer_freq]
        per_stage = len(layers) // cfg.pipeline_model_parallel_size
        begin = self.par.get("rank", 0) * per_stage
        return TransformerBlockSubmodules(layer_specs=layers[begin:begin + per_stage], layer_norm=WrappedTorchNorm)

    @staticmethod
    def let_core_take_widths():
        """MLA hands its core the widths of keys and values, which 0.16.1's own DotProductAttention does not take; its forward needs but the sum of the latter."""
        import megatron.core.transformer.multi_latent_attention as latent
        from megatron.core.transformer.dot_product_attention import DotProductAttention
        latent.HAVE_TE = False      # Transformer Engine's classes have no more than a name here
        plain = DotProductAttention.__init__
        if hasattr(plain, "oracle"):
            return

        def init(self, *args, k_channels=None, v_channels=None, **kwargs):
            plain(self, *args, **kwargs)
            if v_channels:
                self.hidden_size_per_partition = v_channels * self.num_attention_heads_per_partition
        init.oracle = True
        DotProductAttention.__init__ = init

    def wrap(self, model):
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
        ddp = DistributedDataParallelConfig(grad_reduce_in_fp32=self.cfg.bf16, use_distributed_optimizer=self.par.get("zero_stage", 0) == 1)
        with self.tr:
            self.ddp = [DistributedDataParallel(self.cfg, ddp, m, disable_bucketing=i > 0) for i, m in enumerate(self.chunks)]
        self.cfg.no_sync_func = None
        for d in self.ddp:
            for b in [*d.buffers, *d.expert_parallel_buffers]:
                self.tr.mark_kind(b.grad_data, "gradients")
                if b.param_data is not None:
                    self.tr.mark_kind(b.param_data, "weights")
        return model

    def optimizer(self):
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        cfg = OptimizerConfig(optimizer="adam", lr=1e-4, bf16=self.cfg.bf16, fp16=self.cfg.fp16, params_dtype=self.cfg.params_dtype, clip_grad=1.0,
                              use_distributed_optimizer=self.par.get("zero_stage", 0) == 1, initial_loss_scale=2.0**32, min_loss_scale=1.0,
                              loss_scale_window=1000, hysteresis=2)
        self.opt = get_megatron_optimizer(cfg, self.ddp, use_gloo_process_groups=False)
        self.cfg.grad_scale_func = self.opt.scale_loss
        return self

    def tensors(self):
        """Adam's states and what it steps in place of 16-bit weights."""
        found = []
        for o in getattr(self.opt, "chained_optimizers", [self.opt]):
            for group in o.optimizer.param_groups:
                for p in group["params"]:
                    found.append(p)
            found += [t for s in o.optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
        return found

    def batch(self, model):
        return {}

    def forward(self, module, batch):
        return None

    def make_batch(self, stage):
        """training/utils.py get_batch_on_this_tp_rank, on the first of the tensor-parallel ranks; stages in between take none."""
        first = self.state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage)
        last = self.state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage)
        if not first and not last:
            return [None] * 5
        b, s = self.job["micro_batch"] * (2 if self.par.get("task") in PAIRED else 1), self.job["seq_len"]
        make = lambda dtype, *shape: torch.zeros(shape or (b, s), dtype=dtype, device="cuda")  # noqa: E731
        out = [make(torch.int64), make(torch.int64), make(torch.float32), make(torch.bool, b, 1, s, s), make(torch.int64)]
        for t in out:
            self.tr.mark_kind(t, "input")
        return out

    def forward_step(self, iterator, model):
        from megatron.core.utils import get_attr_wrapped_model
        self.enter("forward")
        tokens, labels, loss_mask, mask, positions = self.make_batch(get_attr_wrapped_model(model, "vp_stage"))
        if self.par.get("scores"):
            return model(tokens, positions, mask), reward_loss
        if self.par.get("task") == "dpo":
            with torch.no_grad(), self.adapters_off():
                reference = (self.reference or model)(tokens, positions, mask, labels=labels)
            out = model(tokens, positions, mask, labels=labels)
            return torch.concat([reference, out], dim=0), functools.partial(dpo_loss, labels)
        if self.par.get("task") == "grpo":
            out = model(tokens, positions, mask)
            last = self.state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=get_attr_wrapped_model(model, "vp_stage"))
            return scored_tokens(out, labels, self.par.get("temperature", 0.9)) if last else out, functools.partial(grpo_loss, labels)
        out = model(tokens, positions, mask, labels=labels, loss_mask=loss_mask)
        return out, functools.partial(loss_func, loss_mask)

    @contextlib.contextmanager
    def adapters_off(self):
        adapted = [m for c in self.chunks for m in c.modules() if hasattr(m, "disable_adapter_layers")]
        for m in adapted:
            m.disable_adapter_layers()
        yield
        for m in adapted:
            m.enable_adapter_layers()

    def enter(self, phase):
        """Forward and backward of each micro-batch are phases of their own."""
        self.tr.mods.clear()
        self.tr.start(phase, self.tr.step)

    def backward(self, loss):
        import megatron.core.pipeline_parallel.schedules as schedules
        from megatron.core.distributed import finalize_model_grads
        plain = schedules.backward_step
        if not hasattr(schedules, "oracle_plain"):
            schedules.oracle_plain = plain

            def backward_step(*args, **kwargs):
                self.tr.flush()
                self.fwd_ends.append(len(self.tr.events))
                self.enter("backward")
                return plain(*args, **kwargs)
            schedules.backward_step = backward_step
        self.cfg.finalize_model_grads_func = finalize_model_grads
        run = schedules.get_forward_backward_func()
        chunks = self.par.get("virtual_pipeline", 1)
        run(forward_step_func=self.forward_step, data_iterator=[None] * chunks if chunks > 1 else None,
            model=self.ddp if chunks > 1 else self.ddp[0], num_microbatches=self.par.get("num_micro_batches", 1), seq_length=self.job["seq_len"],
            micro_batch_size=self.job["micro_batch"], forward_only=False)

    def clip(self, opt, params):
        pass                        # its step does

    def step(self, opt):
        self.opt.step()

    def zero_grad(self, params):
        """training.py train_step begins with it."""
        for d in self.ddp:
            d.zero_grad_buffer()
        self.opt.zero_grad()


def loss_func(loss_mask, output):
    """pretrain_gpt.py: loss_func."""
    losses = output.view(-1).float()
    loss_mask = loss_mask.view(-1).float()
    loss = torch.sum(losses * loss_mask)
    num_tokens = loss_mask.sum().clone().detach().to(torch.int)
    return loss, num_tokens, {"lm loss": torch.cat([loss.clone().detach().view(1), num_tokens.view(1)])}


class Score(torch.nn.Module):
    """mcore-bridge model/gpt_model.py: _postprocess of seq_cls: a linear layer that every rank has, behind a gathered sequence."""

    def __init__(self, cfg, labels, shards):
        super().__init__()
        self.shards = shards
        self.weight = torch.nn.Parameter(torch.empty(labels, cfg.hidden_size, dtype=cfg.params_dtype, device="cuda"))

    def forward(self, x, weight=None, runtime_gather_output=None):
        if self.shards > 1:
            from megatron.core.tensor_parallel import gather_from_sequence_parallel_region
            x = gather_from_sequence_parallel_region(x)
        return torch.nn.functional.linear(x, self.weight), None


def reward_loss(output):
    """ms-swift megatron/trainers/reward_trainer.py: loss_func; of each row the last token's score."""
    rewards = output[:, -1].float()
    half = rewards.shape[0] // 2
    loss = -torch.nn.functional.logsigmoid(rewards[:half] - rewards[half:]).mean()
    return loss, {"loss": loss.detach().clone()}


def dpo_loss(labels, output):
    """ms-swift megatron/trainers/dpo_trainer.py: loss_func."""
    half = output.shape[0] // 2
    mask = labels != -100
    reference, own = ((-part * mask).sum(-1) for part in (output[:half].detach(), output[half:]))
    pairs = half // 2
    ratio = (own[:pairs] - own[pairs:]) - (reference[:pairs] - reference[pairs:])
    loss = -torch.nn.functional.logsigmoid(0.1 * ratio).mean()
    return loss, {"loss": loss.detach().clone()}


def scored_tokens(logits, labels, temperature):
    """ms-swift megatron/trainers/grpo_trainer.py: forward_step, by its own vocab_parallel_utils.py (third_party/ms-swift, of 3602360a)."""
    folder = os.path.join(record.HERE, "third_party", "ms-swift")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from vocab_parallel_utils import compute_logps_and_entropy_from_logits
    if temperature != 1.0:
        logits.div_(temperature)
    return compute_logps_and_entropy_from_logits(logits, labels)[0]


def grpo_loss(labels, logps):
    """ms-swift megatron/trainers/grpo_trainer.py: loss_func; what was generated, and a reference's part, are numbers of a token."""
    mask, old, advantages = labels != -100, logps.detach(), torch.zeros_like(logps)
    ratio = torch.exp(logps - old)
    loss = -torch.min(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages)
    loss = (loss * mask).sum() / mask.sum()
    return loss, {"loss": loss.detach().clone()}


def make(job, tr):
    return Megatron(job, tr)
