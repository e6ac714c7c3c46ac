"""Pairs of answers that the model generates itself: TRL's own OnlineDPOTrainer.training_step on a stand-in trainer.

A job says `task`: online_dpo, `reference` (copy, adapter), `prompt_len`, `completion_len`, `micro_batch` (prompts, two answers each) and, where a reward model
scores the answers, `judge` (what its config says otherwise than the policy's); else a function does. All answers have the full length, and what the reward model
reads is as long as prompt and answer. Reward model and reference keep keys and values as examples/scripts/online_dpo.py has it: without checkpoints.
Needs third_party/src/trl-1.9.0.
"""
import contextlib
import types

import torch

import grpo
import ppo
import preferences

FILE = "experimental/online_dpo/online_dpo_trainer.py"
METHODS = {"_generate", "_calculate_rewards_from_functions", "_forward", "training_step", "beta"}


def is_one(job):
    return job.get("task") == "online_dpo"


def names_of_trl():
    from transformers import GenerationConfig
    nothing = types.SimpleNamespace(LOMO="lomo", ADALOMO="adalomo")
    names = {**preferences.helpers(), "GenerationConfig": GenerationConfig, "OptimizerNames": nothing, "unwrap_model_for_generation": ppo.unwrap,
             "profiling_context": lambda *a: contextlib.nullcontext(), "maybe_apply_chat_template": lambda x, *a: x, "is_conversational": lambda x: False}
    preferences.run(preferences.cut("experimental/utils.py", {"truncate_right", "first_true_indices"}), names, "experimental/utils.py")
    preferences.run([grpo.whole_class(FILE, "OnlineDPOTrainer", METHODS)], names, FILE)
    return names


def assemble(policy, job, build):
    """OnlineDPOTrainer.__init__: the reference, a copy of the model, and the reward model beside it."""
    plain = job["gradient_checkpointing"] == "none"
    reference = build({**job, "method": "full"}) if job["reference"] == "copy" else None
    reward = build(ppo.judge_job(job)) if "judge" in job else None
    further = [m for m in (reference, reward) if m is not None]
    for m in further:
        m.config.use_cache = plain
        m.config.pad_token_id = 1
        m.eval()
    for m in (policy, *further[:1 if reference is not None else 0]):
        preferences.disable_dropout(m)
    if reference is not None:
        reference.requires_grad_(False)
    policy.config.use_cache = False                    # transformers 5 trainer.py: __init__
    policy.__dict__.update(oracle_reference=reference, oracle_reward=reward)
    return policy, further


class Tokenizer:
    """Each text has as many tokens as its first of them says."""
    pad_token_id, eos_token_id = 1, 2

    def __init__(self, job):
        self.job = job

    def __call__(self, text, **kwargs):
        rows, length = len(text), sum(int(x) for x in text[0].split())
        mask = preferences.whole(1, rows, length)
        if self.job.get("padding"):
            some = max(1, length // 8)
            mask.narrow(1, 0 if kwargs["padding_side"] == "left" else length - some, some).fill_(0)
        return {"input_ids": preferences.whole(0, rows, length), "attention_mask": mask}

    def batch_decode(self, ids, **kwargs):
        return [f" {ids.shape[1]}"] * ids.shape[0]


class Accelerator:
    """accelerate's, of one process; it tells the recorder where a step is."""
    device = torch.device("cuda")

    def __init__(self, job, steps):
        self.job, self.steps = job, steps

    def unwrap_model(self, model):
        return model

    def gather_for_metrics(self, tensor):
        return tensor

    def backward(self, loss):
        self.steps.before_backward()
        (loss / self.job["grad_accum"]).backward()


def make_trainer(model, job, steps):
    from transformers import GenerationConfig
    names = names_of_trl()
    trainer = names["OnlineDPOTrainer"]()
    reward = model.__dict__["oracle_reward"]
    plain = trainer._generate

    def generate(*args):
        made = plain(*args)
        steps.start("forward")
        return made
    keeps = job["gradient_checkpointing"] == "none"
    settings = {"max_new_tokens": job["completion_len"], "do_sample": True, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "temperature": 0.9, "top_k": 0,
                "top_p": 1.0, "repetition_penalty": 1.0, "use_cache": keeps}
    trainer.__dict__.update(
        _generate=generate, model=model, ref_model=model.__dict__["oracle_reference"], accelerator=Accelerator(job, steps), _beta=0.1, max_length=1 << 20,
        generation_kwargs=settings, generation_config=GenerationConfig(**settings, disable_compile=True), image_token=None, is_vision_model=False,
        is_fsdp_enabled=False, stats=__import__("collections").defaultdict(list), state=types.SimpleNamespace(global_step=1, epoch=0),
        reward_funcs=[reward if reward is not None else lambda prompts, **k: [1.0] * len(prompts)], reward_weights=torch.ones(1, device="cpu"),
        args=types.SimpleNamespace(use_vllm=False, cache_implementation=None, ds3_gather_for_generation=True, missing_eos_penalty=None, loss_type="sigmoid",
                                   torch_empty_cache_steps=None, optim="adamw", n_gpu=1, gradient_accumulation_steps=job["grad_accum"]))
    trainer.processing_class = trainer._tokenizer = Tokenizer(job)
    trainer.reward_processing_classes = [trainer.processing_class]
    return trainer


def run(model, job, steps, count, amp, dtypes):
    """Trainer's inner loop for so many steps. `steps` is told of each phase."""
    from accelerate.utils.operations import convert_to_fp32
    preferences.answer_items()
    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else contextlib.nullcontext()    # fake tensors have none; it allocates alike
    torch.Tensor.tolist = lambda self: [0] * self.numel()    # tokens for functions that nobody asks
    for m in (model, model.__dict__["oracle_reference"], model.__dict__["oracle_reward"]):
        if m is not None:
            grpo.prepare(m, amp, dtypes, convert_to_fp32)
    trainer = make_trainer(model, job, steps)
    policy = model.get_base_model() if hasattr(model, "get_base_model") else model
    with ppo.sampling(policy, job):
        for _ in range(count):
            steps.begin()
            for micro in range(job["grad_accum"]):
                if micro:
                    steps.start("generation")
                trainer.training_step(model, {"prompt": [str(job["prompt_len"])] * job["micro_batch"]})
                steps.behind_backward()
            steps.run_optimizer(job["max_grad_norm"])
            steps.zero_grad()
