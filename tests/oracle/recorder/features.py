"""Rewards by what a frozen model makes of answers: Axolotl's own functions (src/axolotl/core/trainers/ebft/rewards.py of 067b021,
third_party/axolotl/0.18), called as trainer.py's EBFTMixin._feature_matching_reward calls them.

A job of `task` grpo says `features`: {"layers": fractions of the depth, "whitening": true}. Beside adapters the network is the model itself without
them, else a copy, which grpo.py hands over as it does references. Right answers are as long as those that were generated."""
import contextlib
import importlib.util
import os

import torch

import preferences

HERE = os.path.dirname(os.path.abspath(__file__))


def rewards_of():
    path = os.path.join(HERE, "third_party", "axolotl", "0.18", "axolotl", "core", "trainers", "ebft", "rewards.py")
    spec = importlib.util.spec_from_file_location("ebft_rewards", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def per_prompt(answers):
    return max(n for n in (2, 4, 8) if answers % n == 0)


@torch.no_grad()
def match(trainer, job, rows, mask_of):
    """EBFTMixin._feature_matching_reward behind its tokenizer."""
    ebft, how, length = rewards_of(), job["features"], job["prompt_len"] + job["completion_len"]
    group = per_prompt(rows)
    ids, mask = preferences.whole(0, rows, length), mask_of(preferences.whole(1, rows, length))
    right_ids, right_mask = preferences.whole(0, rows // group, length), mask_of(preferences.whole(1, rows // group, length))
    trained = preferences.unwrapped(trainer.model)
    network = trainer.feature_network if trainer.feature_network is not None else trained
    config = getattr(network.config, "text_config", network.config)
    layers = [int(part * config.num_hidden_layers) for part in how["layers"]]
    with trained.disable_adapter() if network is trained else contextlib.nullcontext():
        was_training = network.training
        network.eval()
        hidden = ebft.extract_hidden_states(network, ids, mask, layers)
        right = ebft.extract_hidden_states(network, right_ids, right_mask, layers)
        if was_training:
            network.train()
    made = ebft.apply_embed_method(hidden, "last_token", mask)
    wanted = ebft.apply_embed_method(right, "last_token", right_mask)
    if how.get("whitening"):
        pairs = [ebft.whiten_embeddings_batched(made.view(rows // group, group, -1)[i], wanted[i:i + 1]) for i in range(rows // group)]
        made, wanted = torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs])
    else:
        made, wanted = torch.nn.functional.normalize(made, p=2, dim=-1), torch.nn.functional.normalize(wanted, p=2, dim=-1)
    alike = ebft.get_alignment_rewards(made, wanted.repeat_interleave(group, dim=0))
    return alike * 2 - ebft.get_diversity_rewards(made, group) * 2
