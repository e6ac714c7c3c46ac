"""Distillation from a teacher: TRL's own GKDTrainer.compute_loss on a stand-in trainer, transformers' own generate() before it.

A job says `task`: gkd, `teacher` (what its config says otherwise than the student's; {"config": …} a whole one), and where they differ from TRL's defaults
`lmbda` (0: nothing is generated; else each micro-batch is, with `prompt_len` and `completion_len`) and `beta`. All tokens count as completion, as in
preferences.py. Needs third_party/src/trl-1.9.0.
"""
import types

import torch

import grpo
import preferences


def teacher_job(job):
    """The teacher as AutoModelForCausalLM.from_pretrained loads it: whole, without adapters."""
    teacher = job["teacher"]
    config = teacher["config"] if "config" in teacher else {**job["config"], **teacher}
    plain = {k: v for k, v in job.items() if k not in ("lora", "config_overrides", "model", "quantization")}
    return {**plain, "config": config, "method": "full", "precision": job.get("teacher_precision", job["precision"])}


def make_trainer(model, job, teacher, wrapped=None):
    trainer = preferences.make_trainer(model, job, teacher)
    trainer.teacher_model = teacher
    trainer.use_liger_gkd_loss = False
    trainer.beta, trainer.wrapped = job.get("beta", 0.5), wrapped if wrapped is not None else model
    trainer.accelerator.state = grpo.Divides(job)
    names = grpo.unwrapping()
    trainer.unwrap, trainer.dist = names["_unwrap_model_for_generation"], names["DistributedBackend"](trainer.accelerator)
    return trainer


def attach(call, model, teacher, job, amp, dtypes, to_fp32):
    preferences.answer_items()
    grpo.prepare(preferences.unwrapped(model), amp, dtypes, to_fp32)
    if not preferences.is_parted(teacher):
        grpo.prepare(teacher, amp, dtypes, to_fp32)
    call.__dict__["oracle_trainer"] = make_trainer(model, job, teacher, call)


def make_batch(job):
    """experimental/utils.py: DataCollatorForChatML."""
    ids, mask = preferences.rows(job, job["micro_batch"])
    prompt = job.get("prompt_len", job["seq_len"] // 2)
    whole = preferences.whole
    return {"input_ids": ids, "attention_mask": mask, "labels": whole(0, job["micro_batch"], job["seq_len"]),
            "prompts": whole(0, job["micro_batch"], prompt), "prompt_attention_mask": whole(1, job["micro_batch"], prompt)}


def forward_loss(model, batch, job, amp, dtypes, to_fp32):
    """GKDTrainer.training_step up to the loss."""
    if "oracle_trainer" not in model.__dict__:
        attach(model, model, preferences.reference_of(model), job, amp, dtypes, to_fp32)
    trainer = model.__dict__["oracle_trainer"]
    if job.get("lmbda", 0.0) > 0.0:
        grpo.start("generation")
        grpo.generate(trainer, job, batch["prompts"], batch["prompt_attention_mask"], job["gradient_checkpointing"] == "none")
        grpo.start("forward")
        batch = {**batch, **dict(zip(("input_ids", "attention_mask"), preferences.rows(job, job["micro_batch"]))),
                 "labels": preferences.whole(0, job["micro_batch"], job["seq_len"])}
    valid = torch.tensor(float(job["micro_batch"] * job["seq_len"]))
    return types.SimpleNamespace(loss=trainer.compute_loss(model, batch, num_items_in_batch=valid))
