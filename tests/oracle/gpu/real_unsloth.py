"""Jobs of Unsloth as people run it: FastLanguageModel.from_pretrained, get_peft_model, TRL's trainers as Unsloth patches them, on made-up text.

A job: config (a config.json), trainer (sft, dpo, grpo), unsloth (what from_pretrained gets), peft (what get_peft_model gets; none: full), args (of the trainer's
configuration), data. Unsloth asks the card what it is as it is imported, so that each child imports it for itself."""
import copy
import fcntl
import gc
import hashlib
import json
import os
import random
import tempfile

from real_trainers import SMOKE, build, dataset, steps_callback, tokenizer, watch

STEPS = 4                                                # the second buffer of checkpoints grows in the second
FOLDERS = os.environ.get("TIDEMARK_MODELS", "/tmp/unsloth-models")


def prepare():
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    os.environ["UNSLOTH_DISABLE_STATISTICS"] = "1"
    import torch  # noqa: F401
    import torch._dynamo
    import torch._inductor.compile_fx  # noqa: F401
    import datasets
    import transformers  # noqa: F401
    datasets.disable_progress_bars()
    gc.collect()
    gc.freeze()


def folder_of(config):
    """A checkpoint of random weights and a tokenizer, written once."""
    folder = os.path.join(FOLDERS, hashlib.sha1(json.dumps([config, SMOKE], sort_keys=True).encode()).hexdigest()[:12])
    os.makedirs(FOLDERS, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "tokenizer.json")):
            write(config, folder)
    return folder


def write(config, folder):
    import torch
    model = build({"config": config, "trainer": "lm", "dtype": "bf16"}, "cpu" if SMOKE else "cuda")
    model.save_pretrained(folder, max_shard_size="4GB")
    del model
    gc.collect()
    if not SMOKE:
        torch.cuda.empty_cache()
    tokenizer().save_pretrained(folder)


def run(job, probe):
    job = copy.deepcopy(job)
    folder = folder_of(job["config"])                    # by transformers' own classes, before Unsloth patches them
    if job.get("backend") == "xformers":
        import ctypes                                    # its wheel is CUDA 12's
        ctypes.CDLL(os.environ["TIDEMARK_CUDART12"], ctypes.RTLD_GLOBAL)
    else:
        import sys
        sys.modules["xformers"] = None                   # what a machine without it has
    os.chdir(tempfile.mkdtemp())                         # unsloth_compiled_cache
    import unsloth                                       # noqa: F401
    import torch
    import transformers
    import trl
    import unsloth.utils.attention_dispatch as dispatch
    random.seed(1)
    torch.manual_seed(1)
    transformers.utils.logging.set_verbosity_error()
    length = job["data"]["length"]
    model, tok = unsloth.FastLanguageModel.from_pretrained(
        model_name=folder, max_seq_length=job.get("max_seq_length", length), dtype=torch.float16 if job.get("fp16") else torch.bfloat16,
        **{"load_in_4bit": False, **job.get("unsloth", {})}, **({"device_map": {"": "cpu"}} if SMOKE else {}))
    if "peft" in job:
        model = unsloth.FastLanguageModel.get_peft_model(model, **{"r": 16, "lora_alpha": 16, "lora_dropout": 0, "bias": "none",
                                                                   "use_gradient_checkpointing": "unsloth", "random_state": 3407, **job["peft"]})
    args = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 1, "learning_rate": 2e-4, "optim": "adamw_8bit", "logging_steps": 1,
            "output_dir": tempfile.mkdtemp(), "max_steps": STEPS, "save_strategy": "no", "report_to": "none", "disable_tqdm": True, **job.get("args", {})}
    kind = job.get("trainer", "sft")
    rows = args["per_device_train_batch_size"] * args["gradient_accumulation_steps"] * STEPS
    cls, conf = {"sft": (trl.SFTTrainer, trl.SFTConfig), "dpo": (trl.DPOTrainer, trl.DPOConfig), "grpo": (trl.GRPOTrainer, trl.GRPOConfig)}[kind]
    if kind == "sft":
        args.setdefault("max_length", length)
        data = dataset({"trainer": "text", **job}, rows)
        extra = {}
    else:
        data = dataset({**job, "trainer": kind}, rows)
        extra = {"ref_model": None} if kind == "dpo" else {"reward_funcs": [lambda completions, **_: [random.random() for _ in completions]]}
    trainer = cls(model=model, args=conf(**args), train_dataset=data, processing_class=tok, **extra)
    shapes = {}
    del model
    watch(trainer, shapes)
    trainer.add_callback(steps_callback(probe, STEPS))
    probe.built()
    if SMOKE:
        return {"shapes": shapes, "data": trainer.train_dataset.column_names, "batch": {k: list(v.shape) for k, v in trainer.data_collator([trainer.train_dataset[i] for i in range(2)]).items() if hasattr(v, "shape")}}
    result = trainer.train()
    ps = list(trainer.model.parameters())
    return {"loss": str(result.training_loss), "shapes": shapes, "numel": sum(p.numel() for p in ps), "trainable": sum(p.numel() for p in ps if p.requires_grad),
            "weight_bytes": sum(p.numel() * p.element_size() for p in ps), "trainable_dtypes": sorted({str(p.dtype) for p in ps if p.requires_grad}),
            "optimizer": str(type(getattr(trainer.optimizer, "optimizer", trainer.optimizer))), "has_xformers": dispatch.HAS_XFORMERS,
            "padding_free": getattr(trainer, "padding_free", None), "packing": getattr(trainer.args, "packing", None),
            "checkpointing": bool(trainer.args.gradient_checkpointing), "bf16": bool(trainer.args.bf16), "fp16": bool(trainer.args.fp16),
            "versions": {m: __import__(m).__version__ for m in ("unsloth", "unsloth_zoo", "trl", "transformers", "torch")}, **probe.finish()}
