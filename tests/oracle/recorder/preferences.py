"""Training on preferences, by TRL's own code: the methods of its trainers are cut out of their files and run on a stand-in trainer.

A job says `task` (dpo, kto, bco, orpo, simpo, cpo, tpo, reward; of grpo and rloo speaks grpo.py, of gkd gkd.py) and, where the task has a reference, `reference`: copy, adapter, precomputed.
`micro_batch` counts pairs (KTO, BCO: answers; TPO: triples). All tokens count as completion: the most that the copies of masked logits can hold.
Needs third_party/src/trl-1.9.0 (the release's `trl` folder).
"""
import ast
import collections
import contextlib
import os
import sys
import types

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
TRL = os.path.join(HERE, "third_party", "src", "trl-1.9.0", "trl")
PAIRS = {"dpo", "orpo", "simpo", "cpo", "reward"}
GENERATED = {"grpo", "rloo"}
TASKS = PAIRS | {"kto", "bco", "tpo", "gkd"} | GENERATED
CLASSES = {"dpo": ("trainer/dpo_trainer.py", "DPOTrainer"), "kto": ("trainer/kto_trainer.py", "KTOTrainer"),
           "bco": ("experimental/bco/bco_trainer.py", "BCOTrainer"),
           "orpo": ("experimental/orpo/orpo_trainer.py", "ORPOTrainer"), "cpo": ("experimental/cpo/cpo_trainer.py", "CPOTrainer"),
           "simpo": ("experimental/cpo/cpo_trainer.py", "CPOTrainer"), "reward": ("trainer/reward_trainer.py", "RewardTrainer"),
           "tpo": ("experimental/tpo/tpo_trainer.py", "TPOTrainer"),
           "gkd": ("experimental/gkd/gkd_trainer.py", "GKDTrainer")}
METHODS = {"_compute_loss", "_compute_kl_logps", "compute_loss", "concatenated_inputs", "concatenated_forward", "get_batch_logps",
           "get_batch_loss_metrics", "odds_ratio_loss", "cpo_loss", "generalized_jsd_loss"}
FURTHER = {"bco": {"forward", "bco_loss", "null_ref_context", "_get_prompt_embeddings"}}


def is_one(job):
    return job.get("task") in TASKS


# -- TRL's code ---------------------------------------------------------------------------------
def cut(path, wanted):
    """Functions of that file of TRL's, or of one by its whole path, by name and without its imports."""
    tree = ast.parse(open(os.path.join(TRL, path)).read())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in wanted]


def run(nodes, names, path):
    module = ast.Module(body=[ast.ImportFrom("__future__", [ast.alias("annotations")], 0), *nodes], type_ignores=[])
    exec(compile(ast.fix_missing_locations(module), path, "exec"), names)   # noqa: S102


def helpers():
    from peft import PeftModel
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "contextlib": contextlib, "nullcontext": contextlib.nullcontext,
             "is_peft_model": lambda m: isinstance(unwrapped(m), PeftModel), "is_torch_xla_available": lambda: False, "os": os,
             "is_peft_available": lambda: True, "PeftModel": PeftModel}
    names["contextmanager"] = contextlib.contextmanager
    names["empty_cache"] = lambda: None                # its effect on what is reserved is left out
    run(cut("trainer/utils.py", {"selective_log_softmax", "entropy_from_logits", "use_adapter"}), names, "utils.py")
    run(cut("models/utils.py", {"disable_gradient_checkpointing"}), names, "models/utils.py")
    run(cut("experimental/utils.py", {"pad_to_length"}), names, "experimental/utils.py")
    run(cut("experimental/orpo/orpo_trainer.py", {"log1mexp"}), names, "orpo_trainer.py")
    return names


def unwrapped(model):
    """accelerate's extract_model_from_parallel: what lies in DDP's, FSDP's or DeepSpeed's module."""
    names = {c.__name__ for c in type(model).__mro__}
    return model.module if names & {"DistributedDataParallel", "FullyShardedDataParallel", "DeepSpeedEngine"} else model


def trainer_class(task):
    path, name = CLASSES[task]
    tree = ast.parse(open(os.path.join(TRL, path)).read())
    whole = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    body = [n for n in whole.body if isinstance(n, ast.FunctionDef) and n.name in METHODS | FURTHER.get(task, set())]
    names = helpers()
    run([ast.ClassDef(name, [], [], body, [], **({"type_params": []} if sys.version_info >= (3, 12) else {}))], names, path)
    return names[name]


def disable_dropout(model):
    """trainer/utils.py: disable_dropout_in_model."""
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0


def make_trainer(model, job, reference):
    disable_dropout(model)
    same = lambda x, *a, **k: x  # noqa: E731
    trainer = trainer_class(job["task"])()
    trainer.model = model
    trainer.ref_model = reference
    trainer.accelerator = types.SimpleNamespace(device=torch.device("cuda"), gather=same, gather_for_metrics=same, unwrap_model=unwrapped,
                                                is_main_process=True)
    trainer.args = types.SimpleNamespace(gradient_checkpointing_kwargs={"use_reentrant": job["use_reentrant"]}, device=torch.device("cuda"),
                                         center_rewards_coefficient=None)
    trainer.precompute_ref_logps = job.get("reference") == "precomputed"
    trainer._metrics = collections.defaultdict(lambda: collections.defaultdict(list))
    trainer.store_metrics = same
    settings = {"beta": 0.1, "loss_types": ["sigmoid"], "loss_weights": [1.0], "ld_alpha": None, "f_divergence_type": "reverse_kl",
                "label_smoothing": 0.0, "use_weighting": False, "aux_loss_enabled": False, "_total_train_tokens": 0, "calculate_KL": True,
                "use_liger_kernel": False, "loss_type": "kto" if job["task"] == "kto" else job["task"] if job["task"] == "simpo" else "sigmoid",
                "desirable_weight": 1.0, "undesirable_weight": 1.0, "is_encoder_decoder": False, "padding_value": 0, "pad_token_id": 0,
                "match_underlying_distribution": False, "ref_adapter_name": None, "model_adapter_name": None,
                "running": types.SimpleNamespace(update=same, mean=0.0),     # BCO's moments: numbers
                "_peft_has_been_casted_to_bf16": False, "cpo_alpha": 0.0 if job["task"] == "simpo" else 1.0, "alpha": 0.0, "simpo_gamma": 0.5,
                "tpo_alpha": 1.0, "tpo_l_gamma": 0.5}
    for key, value in settings.items():
        setattr(trainer, key, value)
    return trainer


# -- the model as accelerate prepares it, and its reference ---------------------------------------
def prepare(model, amp, dtypes, to_fp32):
    """accelerate.Accelerator.prepare_model: autocast and fp32 outputs around forward, in training and evaluation alike."""
    plain = model.forward

    def forward(*args, **kwargs):
        with torch.autocast("cuda", dtype=dtypes[amp]) if amp else contextlib.nullcontext():
            out = plain(*args, **kwargs)
        return to_fp32(out) if amp else out
    model.forward = forward


def teacher_of(model):
    return model.__dict__.get("oracle_teacher")


def reference_of(model):
    return model.__dict__.get("oracle_reference")


def add_reference(model, job, build):
    """A second copy of the model, as DPOTrainer.__init__ loads it: nothing freezes its parameters."""
    teachers = []
    if job.get("teacher"):
        import gkd
        teachers = [build(gkd.teacher_job(job))]
        teachers[0].eval()
        model.__dict__["oracle_teacher"] = teachers[0]
    if job.get("judge") is not None and job.get("task") in GENERATED:
        import ppo
        teachers.append(build(ppo.judge_job(job)))
        teachers[-1].eval()
        teachers[-1].config.use_cache, teachers[-1].config.pad_token_id = True, 1      # as from_pretrained leaves it; __init__
        model.__dict__["oracle_reward"] = teachers[-1]
    if job.get("task") == "gkd":
        copy = teachers.pop()
    elif not is_one(job) or job.get("reference", "none") != "copy" and not (job.get("features") and job["method"] == "full"):
        return teachers
    else:
        copy = build(job)
    copy.eval()
    model.__dict__["oracle_reference"] = copy
    return [copy, *teachers]


def answer_items():
    """Metrics are read by item(): of unknown contents some number will do."""
    if hasattr(torch.Tensor, "oracle_item"):
        return
    torch.Tensor.oracle_item = plain = torch.Tensor.item

    def item(self):
        try:
            return plain(self)
        except Exception:                              # noqa: BLE001 - a fake tensor without contents
            return 1.0
    torch.Tensor.item = item


# -- batches and steps ----------------------------------------------------------------------------
def whole(value, *shape):
    return torch.full(shape, value, dtype=torch.int64, device="cuda")


def rows(job, count):
    b, s = count, job["seq_len"]
    ids, mask = whole(0, b, s), whole(1, b, s)
    if job.get("padding"):
        mask.narrow(1, s - max(1, s // 8), max(1, s // 8)).fill_(0)
    return ids, mask


def make_batch(job, model=None):
    batch = make_text_batch(job)
    if job.get("images"):                              # DataCollatorForVisionPreference: the prompts' pictures come twice
        import batches
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        copies = 1 if job["task"] == "kto" else 2      # DataCollatorForVisionUnpairedPreference: an answer has its own pictures
        rows_of = {**job, "micro_batch": copies * job["micro_batch"]}
        batches.images(base.config, base.config.model_type, rows_of, batches.model_dtype(model), batch)
        if job["task"] == "kto":                       # the same prompts with other answers
            batch["KL_input_ids"] = batch["input_ids"].clone()
            batch.update({f"KL_{key}": batch[key].clone() for key in ("mm_token_type_ids", "token_type_ids") if key in batch})
    return batch


def make_text_batch(job):
    b, task = job["micro_batch"], job["task"]
    if task in GENERATED:
        return {}                                      # what is generated: recorder/grpo.py
    if task == "gkd":
        import gkd
        return gkd.make_batch(job)
    if task in ("orpo", "simpo", "cpo"):
        batch = {}
        for side in ("chosen", "rejected"):
            ids, mask = rows(job, b)
            batch.update({f"{side}_input_ids": ids, f"{side}_attention_mask": mask, f"{side}_labels": whole(0, b, job["seq_len"])})
        return batch
    if task == "kto":
        ids, mask = rows(job, b)
        kl_ids, kl_mask = rows(job, b)
        label = whole(1, b)
        label.narrow(0, b - b // 2, b // 2).fill_(0)
        batch = {"input_ids": ids, "attention_mask": mask, "completion_mask": whole(1, b, job["seq_len"]), "KL_input_ids": kl_ids,
                 "KL_attention_mask": kl_mask, "KL_completion_mask": whole(1, b, job["seq_len"]), "label": label.bool()}
        if job.get("reference") == "precomputed":
            batch.update(ref_logps=torch.empty(b, device="cuda"), ref_KL_logps=torch.empty(b, device="cuda"))
        return batch
    if task == "bco":                                  # experimental/utils.py: DPODataCollatorWithPadding; labels are a list
        ids, mask = rows(job, b)
        batch = {"prompt_input_ids": whole(0, b, job["seq_len"] // 2), "prompt_attention_mask": whole(1, b, job["seq_len"] // 2),
                 "completion_input_ids": ids, "completion_attention_mask": mask, "completion_labels": whole(0, b, job["seq_len"]),
                 "label": [i < b - b // 2 for i in range(b)]}
        if job.get("reference") == "precomputed":
            batch["reference_logps"] = torch.empty(b, device="cuda")
        return batch
    answers = 3 if task == "tpo" else 2                # DataCollatorForTriplePreference: chosen, rejected, reference
    ids, mask = rows(job, answers * b)
    batch = {"input_ids": ids, "attention_mask": mask}
    if task == "tpo":
        batch["completion_mask"] = whole(1, answers * b, job["seq_len"])
    if task == "dpo":
        batch["completion_mask"] = whole(1, 2 * b, job["seq_len"])
        if job.get("reference") == "precomputed":
            batch.update(ref_chosen_logps=torch.empty(b, device="cuda"), ref_rejected_logps=torch.empty(b, device="cuda"))
    return batch


def attach(call, model, reference, job, amp, dtypes, to_fp32):
    """The trainer, on what it calls. `model` is what it holds itself as self.model, `reference` as it prepared it."""
    if job["task"] in GENERATED:
        import grpo
        return grpo.attach(call, model, reference, job, amp, dtypes, to_fp32)
    answer_items()
    prepare(unwrapped(model), amp, dtypes, to_fp32)
    if reference is not None and not is_parted(reference):
        prepare(reference, amp, dtypes, to_fp32)
    call.__dict__["oracle_trainer"] = make_trainer(model, job, reference)


def is_parted(reference):
    """trl/models/utils.py: prepare_deepspeed and prepare_fsdp leave accelerate's autocast away."""
    return unwrapped(reference) is not reference or any(c.__name__ == "FSDPModule" for c in type(reference).__mro__)


def forward_loss(model, batch, job, amp, dtypes, to_fp32):
    if job["task"] == "gkd":
        import gkd
        return gkd.forward_loss(model, batch, job, amp, dtypes, to_fp32)
    if "oracle_trainer" not in model.__dict__:
        attach(model, model, reference_of(model), job, amp, dtypes, to_fp32)
    trainer = model.__dict__["oracle_trainer"]
    if job["task"] in GENERATED:
        import grpo
        return grpo.forward_loss(model, job, amp, dtypes, to_fp32)
    run_loss = trainer._compute_loss if job["task"] in ("dpo", "kto") else trainer.compute_loss
    return types.SimpleNamespace(loss=run_loss(model, batch, return_outputs=False))
