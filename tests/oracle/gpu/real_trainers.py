"""Jobs of trainers.jsonl: real transformers and TRL trainers on made-up data, three optimizer steps each.

A job: trainer, config (a config.json), dtype of the weights, args (of the trainer's arguments class), data (its shape),
lora, quant (nf4, int8), attention.  Under TIDEMARK_SMOKE the model is cut to two layers and CUDA's own parts are left out."""
import contextlib
import copy
import gc
import importlib.util
import json
import math
import os
import random
import shutil
import sys
import tempfile
import types

SMOKE = bool(os.environ.get("TIDEMARK_SMOKE"))
STEPS = 3
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
WORDS = 2000                                           # of the tokenizer; models keep their whole token table
TRL = {"sft": ("SFTTrainer", "SFTConfig"), "dpo": ("DPOTrainer", "DPOConfig"), "reward": ("RewardTrainer", "RewardConfig"),
       "kto": ("KTOTrainer", "KTOConfig"), "grpo": ("GRPOTrainer", "GRPOConfig"), "gkd": ("GKDTrainer", "GKDConfig"), "bco": ("BCOTrainer", "BCOConfig"),
       "prm": ("PRMTrainer", "PRMConfig"), "ppo": ("PPOTrainer", "PPOConfig"), "online_dpo": ("OnlineDPOTrainer", "OnlineDPOConfig")}


def prepare():
    """Imports what every child needs.  Nothing here may touch the card, and bitsandbytes must wait for the child."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")      # no pool of compilers, which a forked child could not talk to
    with without("bitsandbytes"):
        load()
    gc.collect()
    gc.freeze()                                        # what is imported is no child's garbage


@contextlib.contextmanager
def without(package):
    """An empty module stands in meanwhile: peft and TRL import bitsandbytes as they load, which would ask the card what it is."""
    if importlib.util.find_spec(package) is None:
        yield
        return
    stand_in = types.ModuleType(package)
    stand_in.__spec__ = importlib.util.find_spec(package)
    sys.modules[package] = stand_in
    try:
        yield
    finally:
        del sys.modules[package]


def load():
    import accelerate  # noqa: F401
    import datasets
    import numpy  # noqa: F401
    import peft
    import torch
    import torch._dynamo
    import torch._inductor.compile_fx  # noqa: F401    # bitsandbytes wants it, for seconds in every child
    import networkx  # noqa: F401
    import transformers
    import trl
    for name in ("Trainer", "TrainingArguments", "Seq2SeqTrainer", "Seq2SeqTrainingArguments", "AutoModelForCausalLM", "PreTrainedTokenizerFast",
                 "DataCollatorForLanguageModeling", "DataCollatorForSeq2Seq", "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
                 "Gemma3ForCausalLM", "BertForSequenceClassification", "ViTForImageClassification", "T5ForConditionalGeneration", "BitsAndBytesConfig"):
        getattr(transformers, name)                    # they are loaded when first asked for
    for pair in TRL.values():
        for name in pair:
            trl_class(trl, name)
    peft.LoraConfig
    datasets.disable_progress_bars()
    print("cuda touched:", torch.cuda.is_initialized(), "bitsandbytes:", hasattr(sys.modules["bitsandbytes"], "nn"), flush=True)


def trl_class(trl, name):
    """Some have lain in trl.experimental, and out of it, by release."""
    for place in ("trl", *(f"trl.experimental.{kind}" for kind in ("kto", "gkd", "bco", "prm", "ppo", "online_dpo"))):
        try:
            return getattr(importlib.import_module(place), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(name)


# -- models -----------------------------------------------------------------------------------
SMALL = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "vocab_size": 2048, "d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "num_decoder_layers": 2, "encoder_layers": 2,
         "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "encoder_attention_heads": 4, "decoder_attention_heads": 4}


def build(job, device, config=None):
    """The model with random weights, on the device from the start."""
    import torch
    import transformers
    raw = copy.deepcopy(config or job["config"])
    arch = not config and job.get("architecture") or raw["architectures"][0]
    for key in ("architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "auto_map", "model_size"):
        raw.pop(key, None)
    if SMOKE:
        raw.update({k: v for k, v in SMALL.items() if k in raw})
        if "layer_types" in raw:
            raw["layer_types"] = raw["layer_types"][-2:]
    raw.update(job.get("config_overrides", {}))
    if "ForCausalLM" in arch or job["trainer"] == "reward":      # the tokenizer's
        raw.update(pad_token_id=0, bos_token_id=1, eos_token_id=2)
    if job["trainer"] == "seq2seq":
        raw.setdefault("decoder_start_token_id", 0)
    cfg = transformers.AutoConfig.for_model(raw.pop("model_type"), **raw)
    with torch.device(device):
        model = getattr(transformers, arch)._from_config(cfg, dtype=getattr(torch, DTYPES[job["dtype"]]), attn_implementation=job.get("attention", "sdpa"))
    return model.to(device)                             # what a class made with an explicit device of its own


def quantised(job, device):
    """As people load it: from files, through BitsAndBytesConfig."""
    import torch
    import transformers
    shm = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 40e9 else None
    folder = tempfile.mkdtemp(dir=shm)
    model = build(job, device)
    cls = type(model)
    model.save_pretrained(folder, max_shard_size="4GB")
    del model
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    if job["quant"] == "nf4":
        how = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                              bnb_4bit_compute_dtype=torch.bfloat16)
    else:
        how = transformers.BitsAndBytesConfig(load_in_8bit=True)
    model = cls.from_pretrained(folder, quantization_config=how, dtype=torch.bfloat16, device_map={"": 0 if device == "cuda" else "cpu"},
                                attn_implementation=job.get("attention", "sdpa"))
    shutil.rmtree(folder)
    if job.get("prepare_kbit"):
        from peft import prepare_model_for_kbit_training
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=job["args"].get("gradient_checkpointing", False))
    return model


def lora(job):
    from peft import LoraConfig
    return LoraConfig(**{"r": 16, "lora_alpha": 32, "lora_dropout": 0.0, "target_modules": "all-linear", **job["lora"]}) if "lora" in job else None


# -- data -------------------------------------------------------------------------------------
def tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast
    vocab = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, **{f"w{i}": i for i in range(4, WORDS)}}
    tok = Tokenizer(WordLevel(vocab, unk_token="<unk>"))
    tok.pre_tokenizer = WhitespaceSplit()
    out = PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>", model_max_length=1 << 20)
    out.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return out


def ids(n):
    return [random.randrange(4, WORDS) for _ in range(n)]


def text(n):
    return "".join(f"w{i} " for i in ids(n))


def lengths(data, i):
    """The i-th sample's length: "lengths" go round, the longest in every batch if there is more than one row."""
    return data["lengths"][i % len(data["lengths"])] if "lengths" in data else data["length"]


def samples(job, count):
    d, kind = job["data"], job["trainer"]
    for i in range(count):
        n = lengths(d, i)
        p = d.get("prompt", n // 2)
        if kind == "dpo":
            yield {"prompt": text(p), "chosen": text(n - p - 1), "rejected": text(n - p - 1)}     # the trainer adds </s>
        elif kind == "reward":
            yield {"chosen": text(n - 1), "rejected": text(n - 1)}
        elif kind in ("kto", "bco"):
            yield {"prompt": text(p), "completion": text(n - p - 1), "label": bool(i % 2)}
        elif kind in ("grpo", "online_dpo"):
            yield {"prompt": text(p)}
        elif kind == "ppo":
            yield {"input_ids": ids(p)}
        elif kind == "prm":                             # two steps, each with a separator behind it
            first = (n - p) // 2
            yield {"prompt": text(p), "completions": [text(first - 1).strip(), text(n - p - first - 1).strip()], "labels": [True, False]}
        elif kind == "gkd":
            yield {"messages": [{"role": "user", "content": text(p).strip()}, {"role": "assistant", "content": text(n - p).strip()}]}
        elif kind == "sft":
            yield {"input_ids": ids(n)}
        elif kind == "text":
            yield {"text": text(n)}                     # Unsloth's trainer adds no </s>
        elif "labels" in d:                             # a class for each sample, or a target for it
            yield {"input_ids": ids(n), "attention_mask": [1] * n, "labels": ids(d["target"]) if d["labels"] == "text" else i % d["labels"]}
        else:
            yield {"input_ids": ids(n), "attention_mask": [1] * n}


def pictures(job, count):
    import torch
    return [{"pixel_values": torch.randn(3, job["data"]["image"], job["data"]["image"]), "labels": i % 2} for i in range(count)]


def dataset(job, count):
    import datasets
    rows = list(samples(job, count))
    return datasets.Dataset.from_list(rows)


# -- the run ----------------------------------------------------------------------------------
def cut_for_smoke(job):
    job = copy.deepcopy(job)
    a, d = job["args"], job["data"]
    for key in ("length", "prompt", "target", "max"):
        if key in d:
            d[key] = max(8, d[key] // 16)
    if "lengths" in d:
        d["lengths"] = [max(8, n // 16) for n in d["lengths"]]
    if a.get("max_length"):
        a["max_length"] = max(8, a["max_length"] // 16)
    for key in ("max_completion_length", "max_new_tokens", "generation_max_length"):
        if key in a:
            a[key] = 4
    a.update(use_cpu=True, fp16=False, use_liger_kernel=False, optim="adafactor" if a.get("optim") == "adafactor" else "adamw_torch")
    if a.pop("torch_compile", False):
        a.update(torch_compile=True, torch_compile_backend="aot_eager")
    a.update(job.get("smoke", {}))
    return job


def run(job, probe):
    if SMOKE:
        job = cut_for_smoke(job)
    import torch
    import transformers
    device = "cpu" if SMOKE else "cuda"
    random.seed(1)
    torch.manual_seed(1)
    transformers.utils.logging.set_verbosity_error()
    args = dict(job["args"])
    folder = tempfile.mkdtemp()
    args.update(output_dir=folder, max_steps=STEPS, save_strategy="no", report_to="none", disable_tqdm=True, dataloader_pin_memory=not SMOKE)
    if args.get("gradient_checkpointing") and "use_reentrant" in job:
        args["gradient_checkpointing_kwargs"] = {"use_reentrant": job["use_reentrant"]}
    rows = args["per_device_train_batch_size"] * args.get("gradient_accumulation_steps", 1) * STEPS * job["data"].get("times", 1)
    model = quantised(job, device) if job.get("quant") else build(job, device)
    shapes = {}
    trainer = make(job, model, args, rows, device)
    del model                                           # the trainer's, so that nothing here keeps a wrapped copy alive
    watch(trainer, shapes)
    trainer.add_callback(steps_callback(probe))
    probe.built()
    result = trainer.train()
    ps = list(trainer.model.parameters())
    loss = result.training_loss if result else math.nan   # PPO's train() says nothing
    facts = {"loss": loss if math.isfinite(loss) else str(loss), "shapes": shapes, "numel": sum(p.numel() for p in ps),
             "trainable": sum(p.numel() for p in ps if p.requires_grad), "weight_bytes": sum(p.numel() * p.element_size() for p in ps),
             "trainable_dtypes": sorted({str(p.dtype) for p in ps if p.requires_grad}), "attention": getattr(trainer.model, "policy", trainer.model).config._attn_implementation,
             "optimizer": type(getattr(trainer.optimizer, "optimizer", trainer.optimizer)).__module__ + "." + type(getattr(trainer.optimizer, "optimizer", trainer.optimizer)).__name__,
             "checkpointing": bool(trainer.args.gradient_checkpointing), "bf16": bool(trainer.args.bf16), "evaluations": sum("eval_runtime" in e for e in trainer.state.log_history)}
    facts["logged"] = {k: v for e in trainer.state.log_history for k, v in e.items() if "mean_length" in k or k == "num_tokens"}
    out = {**facts, **probe.finish()}
    shutil.rmtree(folder, ignore_errors=True)
    return out


def make(job, model, args, rows, device):
    import transformers
    import trl
    kind = job["trainer"]
    tok = tokenizer()
    held = job["data"].get("eval")                      # samples of evaluation
    extra = {}
    if kind in TRL:
        extra["peft_config"] = lora(job)
        if held:
            extra["eval_dataset"] = dataset(job, held)
        if kind == "dpo" and not args.get("precompute_ref_log_probs") or kind in ("kto", "bco", "ppo", "online_dpo"):
            extra["ref_model"] = build(job, device) if "lora" not in job else None
        if kind == "grpo":
            extra["reward_funcs"] = [lambda completions, **_: [random.random() for _ in completions]]
        if kind in ("ppo", "online_dpo"):
            extra.update(judges(job, kind, device))
        if kind == "gkd":
            extra["teacher_model"] = build(job, device, job["teacher_config"])
        cls, conf = (trl_class(trl, n) for n in TRL[kind])
        data = dataset(job, rows)
        return cls(model=model, args=conf(**args), train_dataset=data, processing_class=tok, **extra)
    if "lora" in job:
        from peft import get_peft_model
        model = get_peft_model(model, lora(job))
    make_data = pictures if kind == "vision" else dataset
    if held:
        extra["eval_dataset"] = make_data(job, held)
    if job.get("compute_metrics"):
        extra["compute_metrics"] = lambda p: {"n": len(p.predictions[0] if isinstance(p.predictions, tuple) else p.predictions)}
    if kind == "seq2seq":
        return transformers.Seq2SeqTrainer(model=model, args=transformers.Seq2SeqTrainingArguments(**args), train_dataset=dataset(job, rows), processing_class=tok,
                                           data_collator=transformers.DataCollatorForSeq2Seq(tok, model=model), **extra)
    collate = {"lm": lambda: transformers.DataCollatorForLanguageModeling(tok, mlm=False), "vision": lambda: transformers.default_data_collator,
               "classification": lambda: transformers.DataCollatorWithPadding(tok)}[kind]()
    return transformers.Trainer(model=model, args=transformers.TrainingArguments(**args), train_dataset=make_data(job, rows), data_collator=collate, **extra)


def judges(job, kind, device):
    """A reward model and, for PPO, a model of values: of the policy's own kind, or of judge_config."""
    config = dict(job.get("judge_config") or job["config"])
    config["architectures"] = [config["architectures"][0].replace("ForCausalLM", "ForSequenceClassification")]
    made = [build({**job, "trainer": "reward", "config_overrides": {**job.get("config_overrides", {}), "num_labels": 1}}, device, config)
            for _ in range(2 if kind == "ppo" else 1)]
    if kind == "ppo":
        return {"reward_model": made[0], "value_model": made[1]}
    return {"reward_funcs": made[0], "reward_processing_classes": tokenizer()}


def watch(trainer, shapes):
    """Shapes of what the collator gives: whether sequences were as long as the request says."""
    collate = trainer.data_collator

    def seen(examples):
        batch = collate(examples)
        if hasattr(batch, "items"):
            for k, v in batch.items():
                if hasattr(v, "shape") and list(v.shape) not in shapes.setdefault(k, []) and len(shapes[k]) < 6:
                    shapes[k].append(list(v.shape))
        return batch
    trainer.data_collator = seen


def steps_callback(probe, steps=STEPS):
    from transformers import TrainerCallback

    class Steps(TrainerCallback):
        def on_step_begin(self, args, state, control, **kw):
            probe.note(state.global_step + 1, "begin")
            if state.global_step + 1 == steps:
                probe.last()

        def on_substep_end(self, args, state, control, **kw):
            probe.note(state.global_step + 1, "backward")

        def on_pre_optimizer_step(self, args, state, control, **kw):
            probe.note(state.global_step + 1, "backward")

        def on_optimizer_step(self, args, state, control, **kw):
            probe.note(state.global_step + 1, "optimizer")

        def on_step_end(self, args, state, control, **kw):
            probe.note(state.global_step, "zero_grad")
            if state.global_step + 1 == steps:          # PPO's loop begins no step
                probe.last()

        def on_evaluate(self, args, state, control, **kw):
            probe.note(state.global_step, "evaluate")
    return Steps()


if __name__ == "__main__":                              # one job by itself: real_trainers.py ID, for looking into a failure
    from probe import Probe
    prepare()
    where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainers.jsonl")
    print(json.dumps(run(next(j for j in map(json.loads, open(where)) if j["id"] == sys.argv[1]), Probe())))
