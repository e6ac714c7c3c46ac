"""Classifiers that ms-swift makes of models that see, where transformers has no class (ms-swift 3602360a swift/model/patcher.py:
_patch_sequence_classification, transformers_seq_cls_forward): the head becomes an identity, and a linear layer scores what the forward returns.
"""
import torch
import torch.nn as nn
from torch.nn import functional as F
from transformers.modeling_outputs import SequenceClassifierOutputWithPast

ENDING = "ForSequenceClassification"


def class_named(transformers, name):
    """transformers' class of that name, or one with a score around the class that generates."""
    if hasattr(transformers, name) or not name.endswith(ENDING):
        return getattr(transformers, name)
    seeing = getattr(transformers, name.replace(ENDING, "ForConditionalGeneration"))
    return type(name, (Scored, seeing), {"__module__": seeing.__module__})


class Scored:
    def __init__(self, config):
        super().__init__(config)
        width = self.lm_head.in_features
        self.lm_head = nn.Identity()
        self.score = nn.Linear(width, config.num_labels, bias=False, dtype=self.dtype)

    def forward(self, input_ids=None, labels=None, **others):
        output = super().forward(input_ids=input_ids, **others)
        output.logits = output.logits.to(self.score.weight.dtype)
        logits = self.score(output.logits)
        pad = self.config.get_text_config().pad_token_id
        last = -1 if pad is None else (torch.eq(input_ids, pad).int().argmax(-1) - 1) % input_ids.shape[-1]
        pooled = logits[torch.arange(input_ids.shape[0], device=logits.device), last]
        loss = None
        if labels is not None:
            few = self.config.num_labels
            loss = F.mse_loss(pooled.squeeze(), labels.squeeze()) if few == 1 else F.cross_entropy(pooled.view(-1, few), labels.view(-1))
        return SequenceClassifierOutputWithPast(loss=loss, logits=pooled, past_key_values=output.past_key_values, hidden_states=output.hidden_states,
                                                attentions=output.attentions)
