"""Families that pairs.py draws from beside those of extra_jobs.py: decoders without a row there, and encoders.

name: (config, attention-only LoRA targets, implementations beside eager).  An encoder's config names its class."""
LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj"]
BERT = ["query", "key", "value"]
BOTH = ("sdpa", "flash_attention_2")


def decoder(kind, name, hidden, ffn, heads, vocabulary, **more):
    return {"model_type": kind, "architectures": [name + "ForCausalLM"], "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": 2,
            "num_attention_heads": heads, "vocab_size": vocabulary, **more}


def encoder(kind, name, **more):
    return {"model_type": kind, "architectures": [name], "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 2,
            "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 1536, "hidden_act": "gelu", "pad_token_id": 1, **more}


DEBERTA = {"type_vocab_size": 0, "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
           "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7, "max_relative_positions": -1, "position_biased_input": False}
MODERN = {"intermediate_size": 1152, "vocab_size": 50368, "global_attn_every_n_layers": 3, "local_attention": 128}
GEMMA = {"num_key_value_heads": 1, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 8192, "sliding_window": 512}

DECODERS = {
    "gemma-3-1b": (decoder("gemma3_text", "Gemma3", 1152, 6912, 4, 262144, **GEMMA), LLAMA, BOTH),
    "vaultgemma-1b": (decoder("vaultgemma", "VaultGemma", 1152, 6912, 4, 256000, **{**GEMMA, "num_key_value_heads": 4}), LLAMA, BOTH),
    "cwm": (decoder("cwm", "Cwm", 2048, 7168, 16, 128256, num_key_value_heads=4, head_dim=128, max_position_embeddings=8192), LLAMA, BOTH),
    "ministral-8b": (decoder("ministral", "Ministral", 2048, 6144, 16, 131072, num_key_value_heads=8, head_dim=128, max_position_embeddings=32768,
                             sliding_window=512), LLAMA, BOTH),
    "biogpt": (decoder("biogpt", "BioGpt", 1024, 4096, 16, 42384, max_position_embeddings=2048, hidden_act="gelu", hidden_dropout_prob=0.1,
                       attention_probs_dropout_prob=0.1, layerdrop=0.0, scale_embedding=True), ["q_proj", "k_proj", "v_proj", "out_proj"], BOTH),
    "xglm-564m": ({"model_type": "xglm", "architectures": ["XGLMForCausalLM"], "d_model": 1024, "ffn_dim": 4096, "num_layers": 2,
                   "attention_heads": 16, "vocab_size": 256008, "max_position_embeddings": 2048, "activation_function": "gelu", "dropout": 0.1,
                   "attention_dropout": 0.1, "activation_dropout": 0.0, "layerdrop": 0.0, "scale_embedding": True},
                  ["q_proj", "k_proj", "v_proj", "out_proj"], ()),
    "ctrl": ({"model_type": "ctrl", "architectures": ["CTRLLMHeadModel"], "n_embd": 1280, "dff": 8192, "n_layer": 2, "n_head": 16,
              "vocab_size": 246534, "n_positions": 2048, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "tie_word_embeddings": True}, ["Wq", "Wk", "Wv"], ()),
}
ENCODERS = {
    "bert-mlm": (encoder("bert", "BertForMaskedLM", type_vocab_size=2), BERT, BOTH),
    "bert-cls": (encoder("bert", "BertForSequenceClassification", type_vocab_size=2), BERT, BOTH),
    "bert-tok": (encoder("bert", "BertForTokenClassification", type_vocab_size=2), BERT, BOTH),
    "roberta-mlm": (encoder("roberta", "RobertaForMaskedLM", type_vocab_size=1), BERT, BOTH),
    "roberta-cls": (encoder("roberta", "RobertaForSequenceClassification", type_vocab_size=1), BERT, BOTH),
    "xlm-roberta-qa": (encoder("xlm-roberta", "XLMRobertaForQuestionAnswering", type_vocab_size=1, vocab_size=250002), BERT, BOTH),
    "camembert-mlm": (encoder("camembert", "CamembertForMaskedLM", type_vocab_size=1, vocab_size=32005), BERT, BOTH),
    "distilbert-cls": ({"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"], "dim": 768, "hidden_dim": 3072,
                        "n_layers": 2, "n_heads": 12, "vocab_size": 30522, "max_position_embeddings": 1536, "activation": "gelu",
                        "pad_token_id": 0}, ["q_lin", "k_lin", "v_lin"], BOTH),
    "electra-mlm": (encoder("electra", "ElectraForMaskedLM", type_vocab_size=2, embedding_size=128), BERT, BOTH),
    "electra-pre": (encoder("electra", "ElectraForPreTraining", type_vocab_size=2, embedding_size=768), BERT, BOTH),
    "electra-cls": (encoder("electra", "ElectraForSequenceClassification", type_vocab_size=2, embedding_size=768), BERT, BOTH),
    "deberta-v3-mlm": (encoder("deberta-v2", "DebertaV2ForMaskedLM", vocab_size=128100, **DEBERTA), ["query_proj", "key_proj", "value_proj"], ("sdpa",)),
    "deberta-v3-cls": (encoder("deberta-v2", "DebertaV2ForSequenceClassification", vocab_size=128100, **DEBERTA),
                       ["query_proj", "key_proj", "value_proj"], ("sdpa",)),
    "modernbert-mlm": (encoder("modernbert", "ModernBertForMaskedLM", **MODERN), ["Wqkv", "attn.Wo"], BOTH),
    "modernbert-cls": (encoder("modernbert", "ModernBertForSequenceClassification", **MODERN), ["Wqkv", "attn.Wo"], BOTH),
}
# A config's class, where a task needs PEFT to train its new head (peft/utils/constants.py).
TASKS = {"ForSequenceClassification": "SEQ_CLS", "ForTokenClassification": "TOKEN_CLS", "ForQuestionAnswering": "QUESTION_ANS",
         "ForCausalLM": "CAUSAL_LM", "LMHeadModel": "CAUSAL_LM"}


def task_of(config):
    name = config["architectures"][0]
    return next((task for suffix, task in TASKS.items() if name.endswith(suffix)), False)


def is_encoder(config):
    return config["model_type"] in {row[0]["model_type"] for row in ENCODERS.values()}
