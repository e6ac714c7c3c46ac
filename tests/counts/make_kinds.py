#!/usr/bin/env python3
"""make_kinds.py RECORDER_FOLDER > kinds.jsonl     what PEFT's adapters beside LoRA count, or refuse, by PEFT itself on the meta device

Run where tests/oracle/README.md sets the recorder up."""
import json
import random
import sys
import warnings

sys.path[:0] = [sys.argv[1], sys.argv[1] + "/third_party/src"]
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402

import adapters  # noqa: E402

LLAMA = {"model_type": "llama", "hidden_size": 48, "intermediate_size": 144, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 300, "tie_word_embeddings": False}
QWEN2 = {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 320, "tie_word_embeddings": True}
GPT2 = {"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 280}
OPT = {"model_type": "opt", "hidden_size": 48, "ffn_dim": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 290,
       "max_position_embeddings": 64, "word_embed_proj_dim": 48}
MODELS = {"llama": (LLAMA, ["q_proj", "v_proj", "down_proj"], "LlamaForCausalLM"), "qwen2": (QWEN2, ["k_proj", "up_proj", "down_proj"], "Qwen2ForCausalLM"),
          "gpt2": (GPT2, ["c_attn", "mlp.c_proj"], "GPT2LMHeadModel"), "opt": (OPT, ["q_proj", "fc2"], "OPTForCausalLM")}
WORDS = {
    "ia3": [{}, {"feedforward_modules": "last"}, {"feedforward_modules": ["nothing"]}, {"feedforward_modules": []}],
    "adalora": [{}, {"init_r": 4}],
    "loha": [{}, {"r": 3}],
    "lokr": [{}, {"r": 2}, {"r": 2, "decompose_both": True}, {"r": 3, "decompose_factor": 4}, {"r": 2, "decompose_both": True, "decompose_factor": 7}],
    "vera": [{}, {"r": 16}],
    "oft": [{}, {"oft_block_size": 7}, {"r": 4, "oft_block_size": 0}, {"r": 4}, {"oft_block_size": 16, "block_share": True}, {"oft_block_size": 500}],
    "boft": [{}, {"boft_block_size": 8}, {"boft_block_size": 0, "boft_block_num": 6}, {"boft_block_size": 7}, {"boft_block_num": 6}],
    "ln_tuning": [{"target_modules": ["input_layernorm", "norm"]}],
    "prompt_tuning": [{"num_virtual_tokens": 8}],
    "p_tuning": [{"num_virtual_tokens": 8}, {"num_virtual_tokens": 5, "encoder_hidden_size": 20}],
    "prefix_tuning": [{"num_virtual_tokens": 8}, {"num_virtual_tokens": 5, "prefix_projection": True},
                      {"num_virtual_tokens": 3, "prefix_projection": True, "encoder_hidden_size": 20}],
}


def cases():
    dice = random.Random(18)
    for kind, all_words in WORDS.items():
        for name, (config, targets, architecture) in MODELS.items():
            for i, words in enumerate(all_words):
                if kind == "ln_tuning" and name not in ("llama", "qwen2"):
                    continue
                words = dict(words)
                if kind not in adapters.PROMPTS:
                    words.setdefault("target_modules", "all-linear" if dice.random() < 0.4 else targets)
                if words.get("feedforward_modules") == "last":
                    words["feedforward_modules"] = words["target_modules"][-1:] if isinstance(words["target_modules"], list) else ["down_proj"]
                yield f"{kind}-{name}-{i}", kind, {**config, "architectures": [architecture]}, words


def counted(config, kind, words):
    cls = getattr(transformers, config["architectures"][0])
    made = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if k != "architectures"})
    with torch.device("meta"):
        model = cls._from_config(made)
    model = adapters.add(model, {"lora": {"kind": kind, **words}}, "meta")
    sizes = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return {"total": sum(n for n, _ in sizes), "trainable": sum(n for n, trained in sizes if trained)}


for ident, kind, config, words in cases():
    request = {"config": config, "method": "lora", "adapter": {"kind": kind, **words}, "sequence_length": 16}
    try:
        result = counted(config, kind, words)
    except (ValueError, TypeError) as e:
        result = {"refused_by_peft": f"{type(e).__name__}: {str(e)[:120]}"}
    print(json.dumps({"id": ident, "request": request, **result}))
