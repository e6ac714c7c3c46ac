#!/usr/bin/env python3
"""recipes.py KIND AMOUNT SEED > jobs.jsonl    what configuration files of Axolotl, LLaMA-Factory, ms-swift and TRL put together and no other draw did

towers: LoRA of models that see by expressions over towers, projectors and language models, with what is trained beside it, several pictures, Liger's
loss, noise, evaluation, re-entrant checkpoints. mixtures: DoRA, ranks by name, chosen layers, saved heads and biases on mixtures of experts and hybrids.
stepped: optimizers of packages on models that see, hear, encode or have experts. seq2seq: encoder-decoders with LoRA of SEQ_2_SEQ_LM, smoothed labels
and generated evaluation. compared: ORPO, SimPO, CPO, KTO and rewards with biases, chosen layers, saved modules, noise, packages' optimizers. generated:
GRPO, RLOO, GKD, online DPO and PPO with adapters of other kinds. rows: packed rows with noise, chosen layers, smoothed labels and losses in chunks, all dense families.
Jobs that PEFT, transformers or TRL refuse leave no record.
"""
import crossed
import mixed
import varied

OPTIMIZERS = ("galore_adamw", "galore_adamw_8bit", "galore_adamw_layerwise", "galore_adafactor", "apollo_adamw", "apollo_adamw_layerwise", "came_pytorch", "adam_mini",
              "muon", "schedule_free_adamw", "schedule_free_sgd", "lomo", "adalomo", "prodigy", "adopt_adamw", "adamw_anyprecision", "grokadamw", "stable_adamw",
              "ademamix_8bit", "paged_ademamix_8bit", "adamw_torch_8bit", "adamw_torch_4bit", "ao_adamw_fp8", "rmsprop_bnb_8bit")
OF_ADAPTERS = ("adamw_8bit", "paged_adamw_8bit", "paged_adamw_32bit", "adamw_torch_fused", "schedule_free_adamw", "prodigy", "came_pytorch", "adamw_torch_4bit")
WHERE = (r".*(q|k|v|o)_proj", r".*(language_model|text_model).*(q|k|v|o|gate|up|down)_proj", r".*(vision|visual).*(q_proj|k_proj|v_proj|qkv|fc1|fc2)",
         ["q_proj", "v_proj"], ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], "all-linear")
WORDS = ("activation_offloading", "neftune", "packing", "keep_outputs", "outputs_fp32", "zero_grad_to_none")


def kept(job, dice):
    """Checkpoints as most files have them."""
    job.update(gradient_checkpointing=dice.choice(["none", "full", "full", "full"]), use_reentrant=dice.random() < 0.6)


def suit_optimizer(job):
    """Those that step in backward add nothing up, and leave nothing to clip."""
    if job["optimizer"] in ("galore_adamw_layerwise", "apollo_adamw_layerwise", "lomo", "adalomo"):
        job.update(grad_accum=1, max_grad_norm=0.0)


def quantised(job, dice):
    job.update(method="qlora", bits=dice.choice([4, 4, 4, 8]), double_quant=dice.random() < 0.6, kbit_prepare=dice.choice([True, True, False, "norms_back"]))
    if job["precision"] in ("fp32", "fp16", "amp_bf16", "amp_fp16"):
        job["precision"] = "bf16_amp"


def towers(ident, dice):
    base, likes = mixed.base_of("sights", dice, lambda job: job.get("kind") == "vlm" and job.get("images") and job["config"].get("model_type") != "blip-2")
    job = mixed.plain(base, likes, "sights", ident, dice)
    for key in (*WORDS, "bits", "double_quant", "kbit_prepare", "freeze", "freeze_vision"):
        job.pop(key, None)
    kept(job, dice)
    job.update(precision=dice.choice(["bf16", "bf16_amp", "bf16_amp", "amp_bf16"]), micro_batch=dice.choice([1, 2]), loss=dice.choice(["default", "default", "liger_flce"]),
               method="lora", optimizer=dice.choice(OF_ADAPTERS))
    if dice.random() < 0.2:
        job.update(method="full", freeze=[dice.choice(["vision|visual", "language_model|lm_head", "projector|merger|connector"])])
        job.pop("lora", None)
        return job
    job["lora"] = {"r": dice.choice([8, 16, 64]), "alpha": 16, "dropout": dice.choice([0.0, 0.05]), "target_modules": dice.choice(WHERE)}
    own = dice.random()
    if own < 0.2:
        job["lora"]["bias"] = dice.choice(["all", "lora_only"])
    elif own < 0.35:
        job["lora"]["modules_to_save"] = dice.choice([["lm_head"], ["lm_head", "embed_tokens"], ["embed_tokens"]])
    elif own < 0.5:
        job["beside"] = [dice.choice(["projector", "merger", "visual", "vision_tower", "connector"])]
    elif own < 0.6:
        job["lora"]["layers_to_transform"] = [0]
    elif own < 0.7:
        job["lora"].update(target_modules="all-linear", exclude_modules=dice.choice([".*(vision|visual).*", ["o_proj", "down_proj"]]))
    elif own < 0.8:
        job["lora"]["use_dora"] = True
    if dice.random() < 0.35:
        quantised(job, dice)
    if dice.random() < 0.2:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4])}
    if dice.random() < 0.15:
        job["neftune"] = 5.0
    if dice.random() < 0.15:
        job["images"] = dice.choice([2, 3])
        job["seq_len"] = job["seq_len"] * job["images"]
    return job


def mixtures(ident, dice):
    base, likes = mixed.base_of("texts", dice, lambda job: job.get("kind") in ("moe", "ssm") and "architecture" not in job)
    job = mixed.plain(base, likes, "texts", ident, dice)
    for key in (*WORDS, "bits", "double_quant", "kbit_prepare", "freeze"):
        job.pop(key, None)
    kept(job, dice)
    job.update(precision=dice.choice(["bf16", "bf16_amp", "bf16_amp"]), loss=dice.choice(["default", "default", "liger_flce", "chunked"]), method="lora",
               optimizer=dice.choice(OF_ADAPTERS))
    job["lora"] = {"r": dice.choice([8, 16, 64]), "alpha": 16, "dropout": dice.choice([0.0, 0.05]), "target_modules": dice.choice(["all-linear", *WHERE[3:5]])}
    own = dice.random()
    if own < 0.25:
        job["lora"]["use_dora"] = True
    elif own < 0.4:
        job["lora"]["modules_to_save"] = dice.choice([["lm_head"], ["embed_tokens"], ["lm_head", "embed_tokens"]])
    elif own < 0.5:
        job["lora"]["bias"] = dice.choice(["all", "lora_only"])
    elif own < 0.65:
        job["lora"]["layers_to_transform"] = [1]
    elif own < 0.75:
        job["lora"]["rank_pattern"] = {"q_proj": 32, "v_proj": 4}
    elif own < 0.85:
        job["lora"]["exclude_modules"] = ["q_proj"]
    if dice.random() < 0.35:
        quantised(job, dice)
    if dice.random() < 0.25:
        job.update(packing=True, padding=False)
    if dice.random() < 0.2:
        job["neftune"] = 5.0
    if dice.random() < 0.25:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4])}
    if dice.random() < 0.2:
        job["label_smoothing"], job["loss"] = 0.1, "default"
    return job


def stepped(ident, dice):
    wanted = dice.choice(["sights", "texts"])
    base, likes = mixed.base_of(wanted, dice, lambda job: wanted == "sights" or job.get("kind") in ("encoder", "encdec", "moe", "ssm"))
    job = mixed.plain(base, likes, wanted, ident, dice)
    for key in WORDS:
        job.pop(key, None)
    job.update(optimizer=dice.choice(OPTIMIZERS), loss="default")
    if job["method"] == "qlora" and dice.random() < 0.5:
        job["method"] = "full"
        for key in ("lora", "bits", "double_quant", "kbit_prepare"):
            job.pop(key, None)
    if job["optimizer"].startswith(("galore", "apollo")):
        job["optim_args"] = {"rank": dice.choice([16, 64, 128])}
        job["optim_target_modules"] = dice.choice(["all-linear", ["attn", "mlp"], [".*proj.*"], ["attention"]])
    suit_optimizer(job)
    return job


def seq2seq(ident, dice):
    base, likes = mixed.base_of("texts", dice, lambda job: job.get("kind") == "encdec" and "architecture" not in job)
    job = mixed.plain(base, likes, "texts", ident, dice)
    for key in (*WORDS, "bits", "double_quant", "kbit_prepare", "freeze", "lora"):
        job.pop(key, None)
    kept(job, dice)
    job.update(method=dice.choice(["full", "lora", "lora"]), optimizer=dice.choice(["adafactor", "adamw_torch_fused", "adamw_8bit", "lion_32bit", "came_pytorch"]),
               padding=dice.random() < 0.3)
    if job["padding"]:
        job["use_reentrant"] = False                                       # of T5 these tell of Python's collector
    if job["method"] == "lora":
        lists = [one["lora"]["target_modules"] for one in likes if isinstance(one.get("lora", {}).get("target_modules"), list)]
        job["lora"] = {"r": dice.choice([8, 32]), "alpha": 32, "dropout": dice.choice([0.0, 0.1]), "target_modules": dice.choice(["all-linear", *lists]),
                       "task_type": "SEQ_2_SEQ_LM"}
        own = dice.random()
        if own < 0.2:
            job["lora"]["modules_to_save"] = ["lm_head"]
        elif own < 0.4:
            job["lora"]["bias"] = dice.choice(["all", "lora_only"])
        elif own < 0.6:
            job["lora"]["layers_to_transform"] = [0]
        elif own < 0.75:
            job["lora"]["use_dora"] = True
        if dice.random() < 0.3:
            quantised(job, dice)
    if dice.random() < 0.4:
        job["label_smoothing"] = 0.1
    if dice.random() < 0.5:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4, 8])}
        if dice.random() < 0.6:
            job["evaluation"]["generate"] = {"max_new_tokens": dice.choice([16, 33]), "num_beams": dice.choice([1, 1, 4])}
    return job


def decoder(dice, ident, kinds=(None, "dense", "moe", "ssm")):
    base, likes = mixed.base_of("texts", dice, lambda job: job.get("kind") in kinds and "architecture" not in job and
                                str(job["config"].get("architectures", [""])[0]).endswith("ForCausalLM"))
    job = mixed.plain(base, likes, "texts", ident, dice)
    for key in (*WORDS, "evaluation", "bits", "double_quant", "kbit_prepare", "freeze", "lora"):
        job.pop(key, None)
    varied.small(job, dice)
    kept(job, dice)
    job.update(method=dice.choice(["full", "lora", "lora", "qlora"]), loss="default", micro_batch=dice.choice([1, 2]), padding=dice.random() < 0.3)
    if job["method"] != "full":
        job["lora"] = {"r": dice.choice([8, 16, 64]), "alpha": 16, "dropout": dice.choice([0.0, 0.05]), "target_modules": dice.choice(["all-linear", "all-linear", *WHERE[3:5]])}
        own = dice.random()
        if own < 0.15:
            job["lora"]["modules_to_save"] = dice.choice([["lm_head"], ["embed_tokens"], ["lm_head", "embed_tokens"]])
        elif own < 0.3:
            job["lora"]["bias"] = dice.choice(["all", "lora_only"])
        elif own < 0.45:
            job["lora"]["layers_to_transform"] = [1]
        elif own < 0.6:
            job["lora"]["use_dora"] = True
    if job["method"] == "qlora":
        quantised(job, dice)
    return job


def compared(ident, dice):
    job = decoder(dice, ident)
    task = dice.choice(["orpo", "simpo", "cpo", "kto", "kto", "dpo", "reward", "reward", "tpo", "bco"])
    job["task"] = task
    if task in ("dpo", "kto", "bco"):
        job["reference"] = dice.choice(["copy", "precomputed"] if job["method"] == "full" else ["adapter", "adapter", "precomputed"])
    if task == "kto":
        job["micro_batch"] = 2
    if task == "reward":
        job["architecture"] = job["config"]["architectures"][0].replace("ForCausalLM", "ForSequenceClassification")
        if "lora" in job:
            job["lora"]["task_type"] = "SEQ_CLS"
            job["lora"].pop("modules_to_save", None)
            if dice.random() < 0.3:
                job["lora"]["modules_to_save"] = ["score"]
    if dice.random() < 0.3:
        job["optimizer"] = dice.choice(OPTIMIZERS if job["method"] == "full" else OF_ADAPTERS)
    suit_optimizer(job)
    if dice.random() < 0.2:
        job["neftune"] = 5.0
    if dice.random() < 0.25:
        job["evaluation"] = {"micro_batch": dice.choice([2, 4])}
    return job


def generated(ident, dice):
    job = decoder(dice, ident, (None, "dense"))
    task = dice.choice(["grpo", "grpo", "rloo", "gkd", "gkd", "online_dpo", "ppo"])
    job.update(task=task, prompt_len=dice.choice([96, 130]), completion_len=dice.choice([32, 48]), micro_batch=dice.choice([2, 4]))
    if task in ("ppo", "online_dpo", "gkd"):
        job["padding"] = False
    job["seq_len"] = job["prompt_len"] + job["completion_len"]
    if task in ("grpo", "rloo"):
        if dice.random() < 0.5:
            job["reference"] = "copy" if job["method"] == "full" else "adapter"
        if dice.random() < 0.5:
            job["rollout"] = "vllm"
        if task == "grpo" and dice.random() < 0.3:
            job["loss"] = "liger_grpo"
    if task == "gkd":
        job.update(teacher={"num_hidden_layers": 3}, lmbda=dice.choice([0.0, 1.0]), beta=dice.choice([0.0, 0.5, 1.0]))
        if job["lmbda"] == 0.0:
            job.pop("prompt_len"), job.pop("completion_len")
    if task in ("ppo", "online_dpo"):
        job.update(reference="copy" if job["method"] == "full" else "adapter", judge={})
    if task == "ppo":
        job.update(gradient_checkpointing="none", max_grad_norm=0.0)
    return job


def rows(ident, dice):
    job = decoder(dice, ident, (None, "dense"))
    job.update(packing=True, padding=False, attention=dice.choice(["flash_attention_2", "sdpa", "eager"]), seq_len=dice.choice([512, 768, 1000]),
               loss=dice.choice(["default", "chunked", "chunked", "liger_flce"]))
    if job["attention"] == "flash_attention_2" and job["precision"] == "fp32":
        job["precision"] = "bf16"
    if dice.random() < 0.4:
        job["neftune"] = 5.0
    if dice.random() < 0.3:
        job["label_smoothing"], job["loss"] = 0.1, "default"
    if dice.random() < 0.3:
        job["evaluation"] = {"micro_batch": dice.choice([1, 4])}
    if dice.random() < 0.3:
        job["optimizer"] = dice.choice(OPTIMIZERS if job["method"] == "full" else OF_ADAPTERS)
    suit_optimizer(job)
    if dice.random() < 0.25 and job["method"] != "full":
        given = dice.choice(crossed.jobs_of("records-adapters"))["lora"]
        job["lora"] = crossed.adapter_for(given)
        if job["precision"] not in ("bf16", "bf16_amp"):
            job["lora"].pop("adapter_dtype", None)
    return job


if __name__ == "__main__":
    mixed.write(globals(), "recipe", "recipes ")
