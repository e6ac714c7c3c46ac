#!/usr/bin/env python3
"""check_strategies.py HANDLE CATALOG    every model of the catalog divided among GPUs in every way, and some with one more option each:
an answer, or an error in words

An engine that dies on one fails, as it did on Gemma 3n under FSDP 2, whose tower for sounds is declared and never run. So does one that
takes very long: ctest ends this after its TIMEOUT (experts in lists once took 104 seconds under ZeRO-3).
"""
import itertools
import json
import os
import subprocess
import sys

STRATEGIES = [{"data": 4}, {"data": 8, "zero_stage": 3}, {"data": 8, "fsdp": "fsdp2"}, {"data": 8, "fsdp": "full_shard"},
              {"tensor": 2, "sequence_parallel": True}, {"pipeline": 2}, {"device_map": 2}]
RELEASES = ["5.12", "4.57"]
FURTHER = [{}, {"data": 2}, {"data": 2, "data_parallel": "dp"}, {"data": 4, "zero_stage": 2}, {"context": 2},
           {"tensor": 2, "data": 2, "fsdp": "fsdp2", "sequence_parallel": True}, {"pipeline": 2, "data": 2, "fsdp": "fsdp2"}]
KINDS = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-30B-A3B", "google-bert/bert-base-uncased", "google-t5/t5-small", "Qwen/Qwen2-VL-2B-Instruct",
         "google/gemma-3n-E2B-it", "state-spaces/mamba-370m-hf", "openai/whisper-small", "google/vit-base-patch16-224", "openai-community/gpt2"]
TASKS = ["dpo", "orpo", "reward", "grpo", "classification", "token_classification", "question_answering", "embedding"]
OPTIONS = [*({"loss": loss} for loss in ("liger", "chunked", "cut_cross_entropy", "mean_square")), *({"task": task} for task in TASKS),
           {"task": "kto", "micro_batch_size": 2},
           *({"framework": {"name": name}} for name in ("trl", "axolotl", "pytorch", "torchtitan", "torchtune", "litgpt", "megatron",
                                                        "megatron-deepspeed", "nemo-automodel")),
           *({"gradient_checkpointing": kind} for kind in ("offload", {"every": 2}, {"selective": ["core_attn"]})),
           *({"optimizer": name} for name in ("lomo", "galore_adamw", "paged_adamw_8bit", "adafactor")),
           {"optimizer_in_backward": True, "max_grad_norm": 0}, {"evaluation": {"micro_batch_size": 2}}, {"padding": True}, {"packing": True},
           {"activation_offloading": True}, {"attention": "eager"}, {"precision": "float8"}, {"precision": "amp_bf16"},
           {"offload": {"optimizer": "cpu", "parameters": "cpu"}}, {"freeze": ["embed_tokens"]}, {"zero_grad_to_none": False},
           {"gradient_checkpointing": "full", "use_reentrant": True}]


def requests(catalog):
    models = json.load(open(os.path.join(catalog, "models.json")))["models"]
    for at, model in enumerate(model["id"] for model in models):
        for turn, strategy in enumerate(STRATEGIES):
            yield {"model": model, "method": ["full", "lora"][(at + turn) % 2], "sequence_length": 512, "gradient_checkpointing": "full",
                   "gradient_accumulation_steps": strategy.get("pipeline", 1), "parallelism": strategy,
                   "framework": {"version": RELEASES[(at // 2 + turn) % 2]}}


def further():
    """Each kind of model and each way with each option, the methods in turn."""
    turn = 0
    for model in KINDS:
        for strategy in STRATEGIES + FURTHER:
            for option in OPTIONS:
                turn += 1
                yield {"model": model, "method": ["full", "lora", "qlora"][turn % 3], "sequence_length": 128, "parallelism": strategy,
                       "gradient_accumulation_steps": strategy.get("pipeline", 1), **option}


def start(command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(engine, request):
    """Its answer, or an empty line where the engine died."""
    try:
        engine.stdin.write(json.dumps(request) + "\n")
        engine.stdin.flush()
    except BrokenPipeError:
        return ""
    return engine.stdout.readline()


def fault(line):
    """What is wrong with an answer, or None."""
    if not line:
        return "the engine died"
    answer = json.loads(line)
    issues = answer.get("issues", [])
    if any(issue["code"] == "INTERNAL_ERROR" for issue in issues):
        return "an internal error"
    if not answer.get("estimate") and not any(issue["severity"] == "error" and issue["message"] for issue in issues):
        return "neither an estimate nor an error"
    return None


def main():
    command = sys.argv[1:3]
    engine = start(command)
    passed, failed, answered = 0, 0, 0
    for request in itertools.chain(requests(command[1]), further()):
        line = ask(engine, request)
        wrong = fault(line)
        answered += '"estimate":{' in line
        passed += wrong is None
        if wrong:
            failed += 1
            print("FAIL", wrong, json.dumps(request))
        if not line:
            engine = start(command)
    if answered < passed // 3:
        failed += 1
        print("FAIL fewer than a third are answered")
    print(f"{answered} answered; {passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
