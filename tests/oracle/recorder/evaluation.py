"""Evaluation between steps, by transformers' own Trainer.prediction_step on a stand-in trainer; of preferences, TRL's loss without gradients.

A job says `evaluation`: {"micro_batch": samples}. Only the loss is kept, as without compute_metrics.
"""
import types

import torch


def run(model, job, J):
    import preferences
    from transformers import Trainer
    how = {**job, "micro_batch": job["evaluation"]["micro_batch"]}
    model.eval()
    if preferences.is_one(job):
        batch = preferences.make_batch(how)
        with torch.no_grad():
            J.forward_loss(model, batch, how)
        model.train()
        return

    def compute_loss(model, inputs, return_outputs=False, num_items_in_batch=None):
        out = J.forward_loss(model, inputs, how)
        return out.loss, out

    trainer = types.SimpleNamespace(label_names=["labels"], can_return_loss=False, model=model, compute_loss=compute_loss,
                                    _prepare_inputs=lambda x: x, compute_loss_context_manager=torch.enable_grad,
                                    _get_num_items_in_batch=lambda *a: None, args=types.SimpleNamespace(device="cuda"))
    trainer.compute_loss_context_manager = torch.no_grad
    Trainer.prediction_step(trainer, model, J.make_batch(model, how), True)
    model.train()
