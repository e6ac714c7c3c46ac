#!/usr/bin/env python3
"""What was exported and is imported again is the same job: drawn jobs through every format that is read.

    tests/exchange/round_trip.py COMMAND [--jobs 12] [--seed 1] [--show]

A field counts as kept when the file says it as the job had it. One that the export itself told it cannot say is left
out, as are formats that import does not recognise. Exit status 1 when a field was changed or lost without a word.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

FORMATS = ["request", "trainer", "trl", "unsloth", "axolotl", "llamafactory", "swift", "torchtune", "megatron", "accelerate",
           "deepspeed", "command"]
DEEPSPEED_SIZES = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold", "stage3_max_live_parameters",
                   "sub_group_size", "overlap_comm", "contiguous_gradients")
#: What each format has words for at all; the others have all of them.
SAYS = {
    "accelerate": {"parallelism.fsdp"},        # and no task: these two say how GPUs share a job
    "megatron": {"micro_batch_size", "sequence_length", "attention", "gradient_checkpointing", "optimizer", "max_grad_norm",
                 "packing", "loss"},
    "deepspeed": {"micro_batch_size", "gradient_accumulation_steps", "max_grad_norm", "parallelism.zero_stage"} | {f"deepspeed.{size}" for size in DEEPSPEED_SIZES},
}
#: DeepSpeed's own sizes: of its file, and of what is ours. A trainer's file names that file.
SAYS_SIZES = {"deepspeed", "request", "command"}
NOT_SAID_BY = {
    # The launcher says how many GPUs there are, the script how it shards only through it.
    "trainer": {"parallelism.fsdp", "parallelism.zero_stage", "packing"},
    "trl": {"parallelism.fsdp", "parallelism.zero_stage"},
    "unsloth": {"parallelism.fsdp", "parallelism.zero_stage", "attention", "quantization.double_quant",
                "quantization.quant_type", "adapter.use_dora"},
    "llamafactory": {"parallelism.fsdp"},
    "torchtune": {"parallelism.fsdp", "parallelism.zero_stage", "attention", "quantization.double_quant",
                  "quantization.quant_type", "quantization.bits", "loss", "method"},
}


def draw(random_: random.Random) -> dict:
    job = {
        "model": random_.choice(["meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.1", "Qwen/Qwen2.5-7B"]),
        "method": random_.choice(["full", "lora", "qlora"]),
        "micro_batch_size": random_.choice([1, 2, 4, 8]),
        "sequence_length": random_.choice([512, 1024, 2048, 4096]),
        "gradient_accumulation_steps": random_.choice([1, 4, 16]),
        "attention": random_.choice(["sdpa", "eager", "flash_attention_2"]),
        "gradient_checkpointing": random_.choice(["none", "full"]),
        "optimizer": random_.choice(["adamw_torch_fused", "adamw_torch", "adamw_8bit", "paged_adamw_8bit"]),
        "max_grad_norm": random_.choice([1.0, 0.3]),
        "packing": random_.choice([False, True]),
        "loss": random_.choice(["default", "liger"]),
    }
    task = random_.choice([None, None, "dpo", "kto", "orpo", "simpo", "cpo", "reward", "grpo", "classification"])
    if task is not None:                    # trainers on preferences pack no rows, and have losses of their own
        job.update(task=task, packing=False, loss="default")
    if job["method"] != "full":
        job["adapter"] = {"r": random_.choice([8, 16, 64]), "lora_alpha": random_.choice([16, 32]),
                          "lora_dropout": random_.choice([0.0, 0.05]) if task in (None, "classification") else 0.0,  # theirs switch it off
                          "target_modules": random_.choice(["all-linear", ["q_proj", "v_proj"]]),
                          "use_dora": random_.choice([False, True])}
    if job["method"] == "qlora":
        job["quantization"] = {"bits": 4, "quant_type": "nf4", "double_quant": random_.choice([False, True])}
    sharding = random_.choice(["none", "none", "zero", "fsdp"])
    if sharding == "none":
        job["precision"] = random_.choice(["bf16_amp", "amp_bf16", "pure_bf16", "amp_fp16", "fp32",
                                            {"weights": "fp16", "autocast": "bf16"}])
        if job["precision"] == "fp32" and job["attention"] == "flash_attention_2":
            job["attention"] = "sdpa"  # the kernels of flash_attention_2 take 16 bits
    if sharding == "zero":
        job["parallelism"] = {"data": 8, "zero_stage": random_.choice([1, 2, 3])}
        sizes = {"reduce_bucket_size": ["auto", 200000000, 16777216], "overlap_comm": [False, True], "contiguous_gradients": [True],
                 "stage3_prefetch_bucket_size": ["auto", 5000000], "stage3_param_persistence_threshold": ["auto", 1000000],
                 "stage3_max_live_parameters": [100000000], "sub_group_size": [1000000000]}
        words = {name: random_.choice(values) for name, values in sizes.items() if random_.random() < 0.4}
        if words:
            job["deepspeed"] = words
    if sharding == "fsdp":
        job["parallelism"] = {"data": 8, "fsdp": random_.choice(["full_shard", "fsdp2"])}
    return job


def fields(value: dict, path: str = "") -> dict:
    flat = {}
    for key, member in value.items():
        name = f"{path}.{key}" if path else key
        if isinstance(member, dict):
            flat.update(fields(member, name))
        else:
            flat[name] = member
    return flat


def standard(path: str):
    """What a file that is silent means."""
    return {"packing": False, "loss": "default", "adapter.use_dora": False, "adapter.lora_dropout": 0.0,
            "gradient_checkpointing": "none"}.get(path)


#: How these name all linear layers but the head.
ALL_LINEAR = {"torchtune": ["q_proj", "k_proj", "v_proj", "output_proj", "w1", "w2", "w3"],
              "unsloth": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}


def run(command: list[str], text: str = "") -> dict:
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout or done.stderr or "{}")


def compare(job: dict, exported: dict, imported: dict, name: str) -> list[tuple[str, object, object]]:
    told = {issue["path"].strip("/").replace("/", ".") for issue in exported["issues"]}
    wanted, got = fields(job), fields(imported["request"])
    wrong = []
    for path, value in wanted.items():
        left_out = any(path == word or path.startswith(word + ".") or word.startswith(path + ".") for word in told)
        silent = path.startswith("deepspeed.") and name not in SAYS_SIZES
        silent = silent or path == "parallelism.data" or path in NOT_SAID_BY.get(name, ()) or path not in SAYS.get(name, {path})
        if left_out or silent:
            continue
        read = got.get(path, standard(path))
        if isinstance(value, list) and isinstance(read, str):
            read = read.split(",")
        if value == "all-linear" and read == ALL_LINEAR.get(name):
            continue
        if read != value:
            wrong.append((path, value, read))
    return wrong


def megatron_answers(command: str) -> int:
    """Megatron's flags say the whole job: the file's estimate is the job's, to the byte. How many differ."""
    wrong = 0
    for model, parallelism in (("meta-llama/Llama-3.1-8B", {"data": 4, "tensor": 2, "sequence_parallel": True}),
                               ("Qwen/Qwen2.5-7B", {"data": 4, "zero_stage": 1}),
                               ("Qwen/Qwen3-8B", {"data": 2, "pipeline": 4, "num_micro_batches": 8}), ("Qwen/Qwen3-8B", {"data": 2, "pipeline": 4})):
        job = {"model": model, "framework": {"name": "megatron"}, "precision": "megatron_bf16", "sequence_length": 4096,
               "attention": "flash_attention_2", "gradient_checkpointing": "full", "optimizer": "adamw_torch_fused",
               "parallelism": parallelism}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pretrain.sh"
            path.write_text(run([command, "export", "megatron", "--request", "-", "--json"], json.dumps(job))["text"])
            peaks = [run([command, "estimate", *words, "--json"], text).get("estimate", {}).get("allocated")
                     for words, text in ((["--request", "-"], json.dumps(job)), ([str(path)], ""))]
        if peaks[0] is None or peaks[0] != peaks[1]:
            wrong += 1
            print(f"megatron: {model}: {peaks[0]} is estimated of the file as {peaks[1]}")
    return wrong


def preference_answers(command: str, name: str, suffix: str) -> int:
    """What is written of a job on preferences is estimated as the job itself, to the byte. How many differ."""
    wrong = 0
    for task in ("dpo", "kto", "orpo", "reward"):
        for method in ("full", "lora"):
            job = {"model": "Qwen/Qwen2.5-0.5B", "task": task, "method": method, "sequence_length": 1024, "micro_batch_size": 2}
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / ("train" + suffix)
                path.write_text(run([command, "export", name, "--request", "-", "--json"], json.dumps(job))["text"])
                peaks = [run([command, "estimate", *words, "--json"], text).get("estimate", {}).get("allocated")
                         for words, text in ((["--request", "-"], json.dumps(job)), ([str(path)], ""))]
            if peaks[0] is None or peaks[0] != peaks[1]:
                wrong += 1
                print(f"{name}: {task}, {method}: {peaks[0]} is estimated of the file as {peaks[1]}")
    return wrong


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("command")
    arguments.add_argument("--jobs", type=int, default=12)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--format", action="append")
    arguments.add_argument("--show", action="store_true")
    options = arguments.parse_args()
    random_ = random.Random(options.seed)
    counts = {name: [0, 0, 0] for name in options.format or FORMATS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.jobs):
            job = draw(random_)
            for name, count in counts.items():
                exported = run([options.command, "export", name, "--request", "-", "--json"], json.dumps(job))
                path = pathlib.Path(folder) / exported["file"]
                path.write_text(exported["text"], encoding="utf-8")
                imported = run([options.command, "import", "--json", str(path)])
                if "request" not in imported or not (imported.get("files") or [{}])[0].get("format"):
                    continue
                wrong = compare(job, exported, imported, name)
                count[0] += 1
                count[1] += len(wrong) == 0
                count[2] += len(wrong)
                if options.show:
                    for path_, value, read in wrong:
                        print(f"  {name}: {path_}: {value!r} came back as {read!r}")
    for name, (read, same, wrong) in counts.items():
        print(f"{name:14} {read:3} of {options.jobs} jobs read again, {same:3} the same, {wrong} fields differ"
              if read else f"{name:14} is not read yet")
    told = megatron_answers(options.command) + preference_answers(options.command, "trl", ".py") + preference_answers(options.command, "swift", ".sh")
    return 1 if told or any(wrong for _, _, wrong in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
