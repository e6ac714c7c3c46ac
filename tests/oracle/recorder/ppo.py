"""Proximal policy optimisation: TRL's own PPOTrainer.train on a stand-in trainer, from one batch of prompts to the next.

A job says `task`: ppo, `reference` (copy, adapter), `prompt_len`, `completion_len`, `micro_batch` (answers) and, where they differ from TRL's defaults,
`rows_at_once` (local_rollout_forward_batch_size: 64) and `judge` (what the config of the reward and the value model says otherwise than the policy's).
Each recorded step is one update with one epoch: what a second epoch would find has been deleted before (`del (output, …)`). Answers have the full length.
Nobody enables gradient checkpointing here: PPOTrainer has its own train(), and its __init__ does not call Trainer's (trl 1.9 experimental/ppo/ppo_trainer.py).
Needs third_party/src/trl-1.9.0.
"""
import ast
import collections
import contextlib
import gc
import math
import os
import time
import types

import torch

import grpo
import preferences

FILE = "experimental/ppo/ppo_trainer.py"
FUNCTIONS = {"generate", "batch_generation", "truncate_response", "forward", "masked_mean", "masked_var", "masked_whiten", "PolicyAndValueWrapper"}


def is_one(job):
    return job.get("task") == "ppo"


def judge_job(job):
    """AutoModelForSequenceClassification.from_pretrained(reward_model_path, num_labels=1): whole, without adapters."""
    config = {**job["config"], **job.get("judge", {}), "num_labels": 1}
    name = config["architectures"][0]
    name = name[: name.index("For")] + "ForSequenceClassification"
    plain = {k: v for k, v in job.items() if k not in ("lora", "config_overrides", "model", "quantization")}
    return {**plain, "config": {**config, "architectures": [name]}, "architecture": name, "method": "full"}


def names_of_trl():
    import numpy
    from transformers import GenerationConfig
    names = {**preferences.helpers(), "GenerationConfig": GenerationConfig, "np": numpy, "time": time, "gc": gc, "math": math,
             "INVALID_LOGPROB": 1.0, "defaultdict": collections.defaultdict, "torch": torch, "dataclass": lambda c: c, "nn": torch.nn}
    preferences.run(preferences.cut("trainer/utils.py", {"pad"}), names, "trainer/utils.py")
    preferences.run(preferences.cut("experimental/utils.py", {"get_reward", "first_true_indices"}), names, "experimental/utils.py")
    names["unwrap_model_for_generation"] = unwrap
    functions = [n for n in ast.parse(open(os.path.join(preferences.TRL, FILE)).read()).body if getattr(n, "name", None) in FUNCTIONS]   # the last is a class
    preferences.run(functions, names, FILE)
    plain = names["batch_generation"]

    def batch_generation(*args):
        made = plain(*args)
        names["begin_scoring"]()
        return made
    names["batch_generation"] = batch_generation
    preferences.run([grpo.whole_class(FILE, "PPOTrainer", {"train", "null_ref_context"})], names, FILE)
    return names


@contextlib.contextmanager
def unwrap(model, accelerator, gather_deepspeed3_params=True, generation_kwargs=None):
    """models/utils.py: unwrap_model_for_generation of a model on one GPU: what sets the generation's configuration allocates nothing."""
    yield accelerator.unwrap_model(model)


def assemble(policy, job, build):
    """PPOTrainer.__init__: the policy and the value model in one module; the reference and the reward model beside it."""
    names = names_of_trl()
    value, reward = build(judge_job(job)), build(judge_job(job))
    reference = build({**job, "method": "full"}) if job["reference"] == "copy" else None
    further = [m for m in (reference, reward) if m is not None]
    for m in (policy, value, *further):
        preferences.disable_dropout(m)
    for m in (policy, value, *further):                # as from_pretrained leaves it: nobody says use_cache=False here
        m.config.use_cache = True
    if reference is not None:
        reference.requires_grad_(False)
    model = names["PolicyAndValueWrapper"](policy, value)
    model.config = policy.config
    model.__dict__.update(oracle_names=names, oracle_reference=reference, oracle_reward=reward)
    return model, further


class Accelerator:
    """accelerate's, of one process; it tells the recorder where a step is."""

    def __init__(self, job, steps):
        self.device, self.num_processes, self.is_main_process, self.job, self.steps, self.calls = torch.device("cuda"), 1, True, job, steps, 0

    def print(self, *text):
        pass

    def unwrap_model(self, model):
        return model

    def gather_for_metrics(self, tensor):
        return tensor

    @contextlib.contextmanager
    def accumulate(self, model):
        self.calls += 1
        self.steps.start("forward")
        yield

    def backward(self, loss):
        self.steps.before_backward()
        (loss / self.job["grad_accum"]).backward()
        self.steps.behind_backward()


class Optimizer:
    """AcceleratedOptimizer: it steps with the last micro-batch alone."""

    def __init__(self, accelerator):
        self.accelerator = accelerator

    def is_last(self):
        return self.accelerator.calls % self.accelerator.job["grad_accum"] == 0

    def step(self):
        if self.is_last():
            self.accelerator.steps.run_optimizer()

    def zero_grad(self):
        if self.is_last():
            self.accelerator.steps.zero_grad()
        self.accelerator.steps.start("forward")        # metrics of the micro-batch, whose logits still have a name


class Batches:
    """The data loader: a batch of prompts begins an update."""

    def __init__(self, job, steps):
        self.shape, self.steps = (job["micro_batch"] * job["grad_accum"], job["prompt_len"]), steps

    def __iter__(self):
        while True:
            self.steps.begin()
            yield {"input_ids": torch.zeros(self.shape, dtype=torch.int64, device="cuda")}


def run(model, job, steps, count, amp, dtypes):
    """PPOTrainer.train for so many updates. `steps` is told of each phase."""
    from accelerate.utils.operations import convert_to_fp32
    names, b, accum = model.__dict__["oracle_names"], job["micro_batch"], job["grad_accum"]
    preferences.answer_items()
    preferences.prepare(model, amp, dtypes, convert_to_fp32)
    names["begin_scoring"] = lambda: steps.start("scoring")
    nothing = lambda *a, **k: None  # noqa: E731
    trainer = names["PPOTrainer"]()
    trainer.args = types.SimpleNamespace(
        response_length=job["completion_len"], temperature=0.7, num_ppo_epochs=1, num_mini_batches=1, gradient_accumulation_steps=accum,
        num_total_batches=count, batch_size=b * accum, local_batch_size=b * accum, local_mini_batch_size=b * accum, per_device_train_batch_size=b,
        local_rollout_forward_batch_size=job.get("rows_at_once", 64), total_episodes=b * accum, logging_steps=None, eval_steps=None, save_steps=None,
        ds3_gather_for_generation=True, missing_eos_penalty=None, kl_estimator="k1", kl_coef=0.05, whiten_rewards=False, gamma=1.0, lam=0.95,
        cliprange=0.2, cliprange_value=0.2, vf_coef=0.1, num_sample_generations=0)
    trainer.accelerator = Accelerator(job, steps)
    trainer.optimizer, trainer.model, trainer.dataloader = Optimizer(trainer.accelerator), model, Batches(job, steps)
    trainer.ref_model, trainer.reward_model = model.__dict__["oracle_reference"], model.__dict__["oracle_reward"]
    trainer.processing_class = types.SimpleNamespace(pad_token_id=1, eos_token_id=2)
    trainer.train_dataset_len, trainer.state = b * accum, types.SimpleNamespace(episode=0)
    control = types.SimpleNamespace(should_save=False)
    trainer.callback_handler = types.SimpleNamespace(on_train_begin=lambda *a: control, on_step_end=lambda *a: control, on_train_end=lambda *a: control)
    trainer.lr_scheduler = types.SimpleNamespace(step=nothing, get_last_lr=lambda: [0.0])
    trainer.is_deepspeed_enabled, trainer.stop_token_id, trainer.log = False, None, nothing
    trainer.is_peft_model, trainer.ref_adapter_name, trainer.model_adapter_name = job["reference"] == "adapter", None, None
    trainer.control = None
    policy = model.policy.get_base_model() if hasattr(model.policy, "get_base_model") else model.policy
    with sampling(policy, job):
        trainer.train()


@contextlib.contextmanager
def sampling(policy, job):
    """As grpo.generate has it: no sentence ends before its last token, and what a fake tensor cannot answer is no."""
    yes = torch.Tensor.__bool__

    def known_or_no(tensor):
        try:
            return yes(tensor)
        except Exception:                             # noqa: BLE001 - a fake tensor without contents
            return False
    left = {"tokens": 0}

    def unfinished(*args, **kwargs):
        left["tokens"] = (left["tokens"] + 1) % (job["completion_len"] + 1)
        return left["tokens"] != 0
    policy._has_unfinished_sequences = unfinished
    torch.Tensor.__bool__ = known_or_no
    if not policy._can_set_experts_implementation():
        policy._optimize_model_for_decode = contextlib.nullcontext
    try:
        yield
    finally:
        torch.Tensor.__bool__ = yes
