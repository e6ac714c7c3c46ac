"""Evaluation between steps, by transformers' own Trainer.prediction_step on a stand-in trainer; of preferences, TRL's loss without gradients.

A job says `evaluation`: {"micro_batch": samples}. Only the loss is kept, as without compute_metrics. With "batches": n as many run, in
Trainer's own evaluation_loop; with "keep_logits" all of their logits and labels stay to its end, those of all GPUs
(accelerator.gather_for_metrics). On several GPUs it runs after each step, or with "from_step" from that one on. With
"generate": {"max_new_tokens": n, "num_beams": k} transformers' own generate() runs before it, as Seq2SeqTrainer.prediction_step
does with predict_with_generate.
"""
import contextlib
import functools
import types

import torch


def run(model, job, J):
    import preferences
    from transformers import Trainer
    how = {**job, "micro_batch": job["evaluation"]["micro_batch"]}
    model.eval()
    if preferences.is_one(job):
        batch = preferences.make_batch(how, model)
        with torch.no_grad():
            J.forward_loss(model, batch, how)
        model.train()
        return

    def compute_loss(model, inputs, return_outputs=False, num_items_in_batch=None):
        out = J.forward_loss(model, inputs, how)
        return out.loss, out

    if job["evaluation"].get("generate"):
        generate(model, how, J)

    trainer = types.SimpleNamespace(label_names=["labels"], can_return_loss=False, model=model, compute_loss=compute_loss,
                                    _prepare_inputs=lambda x: x, compute_loss_context_manager=torch.enable_grad,
                                    _get_num_items_in_batch=lambda *a: None,
                                    _prepare_context_parallel_inputs=lambda model, inputs: (contextlib.nullcontext, inputs),     # from 5.14 on
                                    args=types.SimpleNamespace(device="cuda", use_liger_kernel=False))
    trainer.compute_loss_context_manager = torch.no_grad
    if "batches" in job["evaluation"]:
        loop(trainer, model, how, J)
    else:
        Trainer.prediction_step(trainer, model, J.make_batch(model, how), True)
    model.train()


class Batches:
    """A DataLoader of as many batches, each made as the loop asks for it."""

    def __init__(self, make, amount):
        self.make, self.amount = make, amount

    def __len__(self):
        return self.amount

    def __iter__(self):
        return (self.make() for _ in range(self.amount))


def loop(trainer, model, how, J):
    """Trainer.evaluation_loop, as Trainer.evaluate calls it between two steps; what comes to the host in the end has no values."""
    from transformers import Trainer, trainer_pt_utils
    evaluation, plain = how["evaluation"], trainer_pt_utils.nested_numpify
    world = how.get("parallelism", {})
    gpus = 1 if world.get("strategy") == "dp" else world.get("data", 1) * world.get("replicate", 1)
    module = getattr(model, "module", model)                       # FullyShardedDataParallel hides the model's class
    nothing = lambda *a, **k: None                                 # noqa: E731
    vars(trainer).update(
        _wrap_model=lambda m, training: m, is_deepspeed_enabled=False, is_in_train=True, optimizer=None, state=None, control=None,
        compute_metrics=None, preprocess_logits_for_metrics=None, callback_handler=types.SimpleNamespace(on_prediction_step=nothing),
        num_examples=lambda loader: len(loader), gather_function=lambda t: gather(t, gpus),
        accelerator=types.SimpleNamespace(_models=[model], pad_across_processes=lambda t, **k: t, gather_for_metrics=None),
        prediction_step=functools.partial(Trainer.prediction_step, trainer))
    vars(trainer.args).update(eval_batch_size=how["micro_batch"], eval_do_concat_batches=True, include_for_metrics=[], batch_eval_metrics=False,
                              eval_accumulation_steps=None)
    trainer_pt_utils.nested_numpify = nothing
    try:
        Trainer.evaluation_loop(trainer, Batches(lambda: J.make_batch(module, how), evaluation["batches"]), "Evaluation",
                                prediction_loss_only=not evaluation.get("keep_logits"))
    finally:
        trainer_pt_utils.nested_numpify = plain


def gather(tensors, gpus):
    """accelerate.utils.operations.gather: _gpu_gather_one by all_gather_into_tensor, of each in a batch."""
    if isinstance(tensors, (tuple, list)):
        return type(tensors)(gather(t, gpus) for t in tensors)
    if gpus == 1:
        return tensors
    tensor = tensors.clone()[None] if tensors.ndim == 0 else tensors.contiguous()
    return torch.empty(gpus * tensor.numel(), dtype=tensor.dtype, device=tensor.device).view(-1, *tensor.size()[1:])


def generate(model, how, J):
    """Greedily or with beams, to the last token: no sentence ends before."""
    from transformers import GenerationConfig
    batch = J.make_batch(model, how)
    for of_labels in ("labels", "decoder_input_ids", "decoder_attention_mask"):
        batch.pop(of_labels, None)
    amp = J.PRECISION[how["precision"]][1]
    plain = model.forward

    @functools.wraps(plain)                           # generate() asks for its signature
    def forward(*args, **kwargs):                     # accelerate.Accelerator.prepare_model
        with torch.autocast(J.DEVICE, dtype=J.DTYPES[amp]) if amp else contextlib.nullcontext():
            out = plain(*args, **kwargs)
        return J.to_fp32(out) if amp else out
    config = GenerationConfig(do_sample=False, use_cache=True, pad_token_id=0, bos_token_id=0, decoder_start_token_id=0,
                              **how["evaluation"]["generate"])
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    left = iter(range(config.max_new_tokens))
    yes = torch.Tensor.__bool__

    def unfinished(*args, **kwargs):                  # what is generated is unknown: the length alone ends it
        return next(left, None) is not None

    def known_or_no(tensor):
        try:
            return yes(tensor)
        except Exception:                             # noqa: BLE001 - a fake tensor without contents
            return False
    model.forward, base._has_unfinished_sequences, torch.Tensor.__bool__ = forward, unfinished, known_or_no
    if not base._can_set_experts_implementation():
        base._optimize_model_for_decode = contextlib.nullcontext
    try:
        model.generate(**batch, generation_config=config)
    finally:
        torch.Tensor.__bool__ = yes
        for name in ("_has_unfinished_sequences", "_optimize_model_for_decode"):
            base.__dict__.pop(name, None)
        del model.forward
