"""Training on generated answers: TRL's own GRPOTrainer's or RLOOTrainer's methods on a stand-in trainer, transformers' own generate() before them.

A job says `task`: grpo or rloo, `prompt_len`, `completion_len`, `micro_batch` (answers), and where they differ from TRL's defaults `rollout`
(transformers; vllm: a server, nothing of it is on this card), `steps_per_generation` (grad_accum), `num_iterations`, `reference` (copy,
adapter: beta is not 0), `judge` (what the config of a reward model says otherwise than the policy's), `teacher` (gkd.py; ms-swift's OPD-RL: a second model scores the answers, too), `gather_for_generation` (ZeRO-3: ds3_gather_for_generation, true), `loss`: liger_grpo, `features` (features.py). All answers have the full length. Needs third_party/src/trl-1.9.0.
"""
import ast
import collections
import contextlib
import functools
import inspect
import itertools
import math
import types

import torch

import features
import preferences

UNWRAPS = {"remove_hooks", "get_all_parameters", "iter_params", "add_hooks", "_unwrap_model_for_generation"}
SYNCS = {"_fix_param_name_to_vllm", "_push_param_to_vllm", "_sync_fsdp1_params_to_vllm", "_sync_fsdp2_params_to_vllm", "_sync_fsdp_params_to_vllm",
         "sync_weights"}
METHODS = {"_get_per_token_logps_and_entropies", "_compute_loss", "_get_last_hidden_state", "compute_liger_loss"}
start = lambda phase: None  # noqa: E731 - record.py says how a phase begins


def is_one(job):
    return job.get("task") in preferences.GENERATED


# -- TRL's code ---------------------------------------------------------------------------------
SCORED = {"grpo": "{k: v for k, v in dict(old_per_token_logps=old_per_token_logps, ref_per_token_logps=ref_per_token_logps,"
                  " importance_sampling_ratio=vllm_importance_sampling_ratio if self.use_vllm else None).items() if v is not None}",
          "rloo": "dict(old_logps=old_logps)"}


def scoring(tree, task):
    """What _generate_and_score_completions does without gradients, in a function of its own."""
    whole = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_generate_and_score_completions")
    block = next(n for n in whole.body if isinstance(n, ast.With) and "disable_gradient_checkpointing" in ast.unparse(n.items[-1]))
    made = ast.parse("def score(self, prompt_completion_ids, attention_mask, logits_to_keep, batch_size, completion_mask, "
                     "sampling_per_token_logps=None, num_images=None, num_tiles=None, tool_mask=None, forward_kwargs={}):\n"
                     f"    return {SCORED[task]}").body[0]
    made.body.insert(0, block)
    return made


def trainer_class(task):
    names = preferences.helpers()
    names.update(math=math, Version=version, transformers=__import__("transformers"))
    preferences.run(preferences.cut("trainer/utils.py", {"nanmin", "nanmax", "split_tensor_dict", "shuffle_sequence_dict"}), names, "utils.py")
    path = f"trainer/{task}_trainer.py"
    tree = ast.parse(open(f"{preferences.TRL}/{path}").read())
    body = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in METHODS]
    for n in body:
        n.decorator_list = []
    whole = ast.ClassDef("Trainer", [], [], [*body, scoring(tree, task)], [], type_params=[])
    preferences.run([whole], names, path)
    made = names["Trainer"]
    made.shuffle, made.split = staticmethod(names["shuffle_sequence_dict"]), staticmethod(names["split_tensor_dict"])
    return made


def version(text):
    return tuple(map(int, text.split(".")[:2]))


def whole_class(path, name, methods=None):
    """A class of TRL's, or these methods of it."""
    tree = ast.parse(open(f"{preferences.TRL}/{path}").read())
    found = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    body = [n for n in found.body if isinstance(n, ast.FunctionDef) and (methods is None or n.name in methods)]
    return ast.ClassDef(name, [], [], body, [], type_params=[])


class Divides:
    """Of the accelerator's state: which of its plugins divides weights (models/utils.py and distributed.py ask for it)."""

    def __init__(self, job):
        strategy = job.get("parallelism", {}).get("strategy", "")
        zero, fsdp = strategy.startswith("zero"), strategy.startswith("fsdp")
        self.deepspeed_plugin = types.SimpleNamespace(zero_stage=int(strategy[-1])) if zero else None
        self.fsdp_plugin = types.SimpleNamespace(fsdp_version=int(strategy[-1])) if fsdp else None
        self.any = fsdp or strategy == "zero3"


def unwrapping():
    """models/utils.py: _unwrap_model_for_generation and what it calls; distributed.py."""
    names = {"contextmanager": contextlib.contextmanager, "itertools": itertools, "Version": version}
    preferences.run([whole_class("distributed.py", "DistributedBackend")], names, "distributed.py")
    nodes = preferences.cut("models/utils.py", UNWRAPS)
    for n in nodes:
        n.body = [x for x in n.body if not (isinstance(x, ast.ImportFrom) and x.level > 0)]
    preferences.run(nodes, names, "models/utils.py")
    return names


def vllm_of(trainer, names):
    """generation/vllm_generation.py of a server: how weights come to it; what is sent allocates nothing here."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    names = {**names, **preferences.helpers(), "FSDP": FullyShardedDataParallel}
    preferences.run([whole_class("generation/vllm_generation.py", "VLLMGeneration", SYNCS)], names, "vllm_generation.py")
    nothing = lambda *a, **k: None  # noqa: E731
    vllm = names["VLLMGeneration"]()
    vllm.mode, vllm.model, vllm.accelerator, vllm._dist = "server", trainer.model, trainer.accelerator, trainer.dist
    vllm.vllm_client = types.SimpleNamespace(update_named_param=nothing, reset_prefix_cache=nothing)
    return vllm


def make_trainer(model, job, reference, wrapped=None):
    same = lambda x, *a, **k: x  # noqa: E731
    trainer = trainer_class(job["task"])()
    base = preferences.unwrapped(model)
    plain = base.get_base_model() if hasattr(base, "get_base_model") else base
    accum = job["grad_accum"]
    settings = {
        "model": model, "ref_model": None if job.get("features") else reference, "feature_network": reference if job.get("features") else None, "temperature": 1.0, "beta": 0.04 if job.get("reference") else 0.0, "num_iterations": 1,
        "epsilon_low": 0.2, "epsilon_high": 0.2, "loss_type": "dapo", "importance_sampling_level": "token", "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None, "aux_loss_enabled": False, "_entropy_bonus_enabled": False, "_is_vlm": False,
        "use_vllm": job.get("rollout") == "vllm", "vllm_importance_sampling_correction": True, "vllm_importance_sampling_mode": "sequence_mask",
        "current_gradient_accumulation_steps": accum, "model_kwarg_keys": inspect.signature(type(plain).forward).parameters.keys(),
        "vllm_importance_sampling_clip_min": None, "vllm_importance_sampling_clip_max": 3.0,
        "_metrics": collections.defaultdict(lambda: collections.defaultdict(list)),
        "accelerator": types.SimpleNamespace(device=torch.device("cuda"), num_processes=1, gather=same, reduce=same,
                                             unwrap_model=preferences.unwrapped, sync_gradients=True, is_main_process=True, state=Divides(job)),
        "args": types.SimpleNamespace(gradient_checkpointing_kwargs={"use_reentrant": job["use_reentrant"]}, delta=None,
                                      use_bias_correction_kl=False, gradient_accumulation_steps=accum,
                                      steps_per_generation=job.get("steps_per_generation", accum))}
    settings["num_iterations"] = job.get("num_iterations", 1)
    for key, value in settings.items():
        setattr(trainer, key, value)
    trainer.step, trainer.buffered, trainer.last_loaded, trainer.teacher = 0, None, -1, None
    trainer.wrapped = wrapped if wrapped is not None else model
    names = unwrapping()
    trainer.unwrap, trainer.dist = names["_unwrap_model_for_generation"], names["DistributedBackend"](trainer.accelerator)
    trainer.vllm = vllm_of(trainer, names) if trainer.use_vllm and trainer.accelerator.state.any else None
    return trainer


# -- generation and scoring -------------------------------------------------------------------------
def generate(trainer, job, ids, mask, use_cache=True):
    """Sampled to the last token: no sentence ends before."""
    from transformers import GenerationConfig
    config = GenerationConfig(do_sample=True, max_new_tokens=job["completion_len"], pad_token_id=0, bos_token_id=0, temperature=1.0, top_p=1.0,
                              top_k=0, repetition_penalty=1.0, use_cache=use_cache, disable_compile=True)
    model = preferences.unwrapped(trainer.model)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    left, yes = iter(range(config.max_new_tokens)), torch.Tensor.__bool__

    def known_or_no(tensor):
        try:
            return yes(tensor)
        except Exception:                             # noqa: BLE001 - a fake tensor without contents
            return False
    base._has_unfinished_sequences = lambda *a, **k: next(left, None) is not None
    torch.Tensor.__bool__ = known_or_no
    if not base._can_set_experts_implementation():
        base._optimize_model_for_decode = contextlib.nullcontext
    try:
        with trainer.unwrap(trainer.wrapped, trainer.accelerator, job.get("gather_for_generation", True)) as unwrapped, torch.no_grad(), \
                trainer.dist.summon_full_params(trainer.wrapped, recurse=False):
            unwrapped.generate(input_ids=ids, attention_mask=mask, generation_config=config)
    finally:
        torch.Tensor.__bool__ = yes
        for name in ("_has_unfinished_sequences", "_optimize_model_for_decode"):
            base.__dict__.pop(name, None)


def generate_and_score(trainer, job):
    """GRPOTrainer._generate_and_score_completions of text: what it makes on the card."""
    rows, p, c = job["micro_batch"] * trainer.args.steps_per_generation, job["prompt_len"], job["completion_len"]
    whole = preferences.whole
    start("generation")
    if trainer.vllm is not None and trainer.step // job["grad_accum"] != trainer.last_loaded:
        trainer.vllm.sync_weights()
        trainer.last_loaded = trainer.step // job["grad_accum"]
    if not trainer.use_vllm:
        generate(trainer, job, whole(0, rows, p), padded(job, whole(1, rows, p), right=False))
    start("scoring")
    prompt_ids, prompt_mask = whole(0, rows, p), padded(job, whole(1, rows, p), right=False)
    completion_ids, completion_mask = whole(0, rows, c), padded(job, whole(1, rows, c), right=True)
    sampled = torch.zeros(rows, c, device="cuda") if trainer.use_vllm else None
    num_items = completion_mask.sum()
    ids, mask = torch.cat([prompt_ids, completion_ids], dim=1), torch.cat([prompt_mask, completion_mask], dim=1)
    scores = trainer.score(ids, mask, c, job["micro_batch"], completion_mask, sampled)
    if trainer.teacher is not None:
        # ms-swift 3602360a rlhf_trainers/grpo_trainer.py: _compute_teacher_logps: the function that scores for the policy, a micro-batch at a time
        with torch.no_grad():
            scores["teacher_per_token_logps"] = trainer._get_per_token_logps_and_entropies(trainer.teacher, ids, mask, c, job["micro_batch"])[0]
    if trainer.reward is not None:
        # trl 1.9 trainer/grpo_trainer.py: _calculate_rewards, of texts as long as prompt and answer
        rewards = torch.zeros(rows, 1, device="cuda")
        read = {"input_ids": whole(0, rows, p + c), "attention_mask": padded(job, whole(1, rows, p + c), right=True)}
        with torch.no_grad():                         # fake tensors have no inference_mode; it allocates alike
            rewards[:, 0] = trainer.reward(**read).logits[:, 0]
        del read
    if job.get("features"):
        features.match(trainer, job, rows, lambda mask: padded(job, mask, right=True))
    out = {"prompt_ids": prompt_ids, "prompt_mask": prompt_mask, "completion_ids": completion_ids, "completion_mask": completion_mask,
           "advantages": torch.zeros(rows, device="cuda"), "num_items_in_batch": num_items, **scores}
    if sampled is not None and job["task"] == "grpo":
        out["sampling_per_token_logps"] = sampled
    return out


def padded(job, mask, right):
    """Prompts are padded on their left, answers on their right: an eighth of each (contents only)."""
    if job.get("padding"):
        length = mask.shape[1]
        some = max(1, length // 8)
        mask.narrow(1, length - some if right else 0, some).fill_(0)
    return mask


def prepare_inputs(trainer, job):
    """GRPOTrainer._prepare_inputs."""
    steps = trainer.args.steps_per_generation
    if trainer.step % (steps * trainer.num_iterations) == 0 or trainer.buffered is None:
        batch = trainer.shuffle(generate_and_score(trainer, job))
        trainer.buffered = trainer.split(batch, steps)
        start("forward")
    inputs = trainer.buffered[trainer.step % steps]
    trainer.step += 1
    return inputs


def prepare(model, amp, dtypes, to_fp32):
    """accelerate's autocast and fp32 outputs, behind a signature that generate() can ask for."""
    plain = model.forward

    @functools.wraps(plain)
    def forward(*args, **kwargs):
        with torch.autocast("cuda", dtype=dtypes[amp]) if amp else contextlib.nullcontext():
            out = plain(*args, **kwargs)
        return to_fp32(out) if amp else out
    model.forward = forward


def attach(call, model, reference, job, amp, dtypes, to_fp32):
    preferences.answer_items()
    prepare(preferences.unwrapped(model), amp, dtypes, to_fp32)
    preferences.unwrapped(model).config.use_cache = False         # transformers 5 trainer.py: __init__
    if reference is not None and not job.get("features") and not preferences.is_parted(reference):
        prepare(reference, amp, dtypes, to_fp32)
    call.__dict__["oracle_trainer"] = trainer = make_trainer(model, job, reference, call)
    trainer.teacher = preferences.teacher_of(preferences.unwrapped(model))
    trainer.reward = preferences.unwrapped(model).__dict__.get("oracle_reward")
    for other in (trainer.teacher, trainer.reward):
        if other is not None:
            prepare(other, amp, dtypes, to_fp32)


def forward_loss(model, job, amp, dtypes, to_fp32):
    if "oracle_trainer" not in model.__dict__:
        attach(model, model, preferences.reference_of(model), job, amp, dtypes, to_fp32)
    trainer = model.__dict__["oracle_trainer"]
    inputs = prepare_inputs(trainer, job)
    return types.SimpleNamespace(loss=trainer._compute_loss(model, inputs))
