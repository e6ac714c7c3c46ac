#!/usr/bin/env python3
"""Python that is exported compiles, whatever a request calls things; a probe's figures come back beside the estimate;
what Unsloth is told to tune becomes the modules that it adapts (unsloth_parts.json, written by unsloth_parts.py).

    tests/exchange/check_scripts.py COMMAND
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

JOBS = [
    {"model": "llama-3.2-1b", "method": "full", "gradient_checkpointing": "full"},
    {"model": "qwen2.5-7b", "method": "qlora", "adapter": {"r": 8, "target_modules": ["q_proj", 'v"\\proj\n']},
     "quantization": {"prepare_kbit": True}, "loss": "liger"},
    {"model": "mistral-7b", "method": "lora", "adapter": {"target_modules": ".*(q_proj|'''v)"}},
    {"model": "llama-3.2-1b", "method": "freeze", "freeze": ["embed_tokens", "x''' + 1/0 + '''"]},
    {"config": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                "num_attention_heads": 4, "vocab_size": 1000, "note": "'''\nraise SystemExit\n\"\"\""}},
]
UNSLOTH = """
from unsloth import FastVisionModel
model, tokenizer = FastVisionModel.from_pretrained("unsloth/Qwen2.5-VL-7B-Instruct", load_in_4bit=True)
model = FastVisionModel.get_peft_model(model, r=16{arguments})
"""
KINDS = {"vision": "layers", "language": "layers", "attention": "modules", "mlp": "modules"}


def unsloth_parts(run, folder) -> tuple[int, int]:
    """How many choices of parts were read, and how many of them wrongly."""
    recorded = json.loads((pathlib.Path(__file__).parent / "unsloth_parts.json").read_text(encoding="utf-8"))
    wrong = 0
    for case in recorded["cases"]:
        said = [f"finetune_{part}_{KINDS[part]}=False" for part in case["off"]]
        if case["names"]:
            said.append(f"target_modules={case['names']}")
        script = pathlib.Path(folder) / "train.py"
        script.write_text(UNSLOTH.format(arguments="".join(f", {one}" for one in said)), encoding="utf-8")
        expression = run("import", str(script), "--json")["request"]["adapter"]["target_modules"]
        names = recorded["linear"][case["model_type"]]
        got = [i for i, name in enumerate(names) if re.fullmatch(expression, name)]
        if got != case["targets"]:
            wrong += 1
            differ = [names[i] for i in sorted(set(got) ^ set(case["targets"]))]
            print(f"{case['model_type']} without {case['off']}, {case['names']}: {expression} differs in {differ}")
    for parts in (("vision", "language"), ("attention", "mlp")):  # Unsloth raises: nothing is left to tune
        said = "".join(f", finetune_{part}_{KINDS[part]}=False" for part in parts)
        script.write_text(UNSLOTH.format(arguments=said), encoding="utf-8")
        if "UNMATCHED_PATTERN" not in json.dumps(run("estimate", str(script), "--json")):
            wrong += 1
            print(f"neither of {parts} is tuned, and that is no error")
    return len(recorded["cases"]) + 2, wrong


RLOO = """
from trl import RLOOConfig, RLOOTrainer
args = RLOOConfig(output_dir="out", per_device_train_batch_size=4, max_completion_length=128, bf16=True{beta})
RLOOTrainer(model="Qwen/Qwen2.5-0.5B", reward_funcs=len, args=args, train_dataset=data).train()
"""


def rloo_references(run, folder) -> tuple[int, int]:
    """trl 1.9 trainer/rloo_config.py: beta is 0.05, and 0 means no reference (rloo_trainer.py: __init__)."""
    failures = 0
    for beta, copies in (("", 2), (", beta=0.1", 2), (", beta=0.0", 1)):
        script = pathlib.Path(folder) / "train.py"
        script.write_text(RLOO.format(beta=beta), encoding="utf-8")
        request = run("import", str(script), "--json")["request"]
        answer = run("estimate", "--request", "-", "--json", text=json.dumps(request))
        weights = next(item["bytes"] for item in answer["estimate"]["breakdown"] if item["category"] == "weights")
        # transformers' count of the parameters, in fp32 as TRL loads a model by its name.
        if request.get("task") != "rloo" or not 0 <= weights - copies * 494032768 * 4 < 1 << 20:
            failures += 1
            print(f"beta{beta!r}: {request}: {weights} bytes of weights")
    return 3, failures


def main() -> int:
    command = sys.argv[1]
    failures = 0

    def run(*words: str, text: str = "") -> dict:
        done = subprocess.run([command, *words], input=text, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout or done.stderr)

    for job in JOBS:
        for words in (["export", "trainer"], ["export", "trl"], ["export", "unsloth"], ["probe"]):
            text = run(*words, "--request", "-", "--json", text=json.dumps(job)).get("text", "")
            try:
                compile(text, "exported.py", "exec")
                assert len(text) > 200 and "raise SystemExit" not in text.splitlines()
            except (SyntaxError, AssertionError) as error:
                failures += 1
                print(f"{words} of {job}: {error!r}")
    with tempfile.TemporaryDirectory() as folder:
        measured = pathlib.Path(folder) / "measured.json"
        job = {"model": "llama-3.2-1b", "method": "lora", "sequence_length": 1024}
        estimate = run("estimate", "--request", "-", "--json", text=json.dumps(job))["estimate"]
        for verdict, factor in (("agrees", 1), ("differs", 2)):
            measured.write_text(json.dumps({
                "tidemark_probe": 1, "job": job, "allocated_bytes": factor * estimate["allocated"]["expected"],
                "reserved_bytes": 5, "device_bytes": None, "phases": {"forward": 7, "backward": 8},
                "gpu": {"name": "NVIDIA GeForce RTX 4090"}}), encoding="utf-8")
            got = run("import", str(measured), "--json")
            beside = got.get("comparisons", [{}])[0]
            rows = [row["what"] for row in beside.get("rows", [])]
            if (beside.get("verdict") != verdict or got["request"].get("sequence_length") != 1024 or
                    rows != ["allocated at the peak", "reserved", "peak in forward", "peak in backward"]):
                failures += 1
                print(f"wanted {verdict}: {json.dumps(got)}")
        parts, wrong = unsloth_parts(run, folder)
        failures += wrong
        references, wrong = rloo_references(run, folder)
        failures += wrong
    print(f"{4 * len(JOBS)} scripts, 2 measurements, {parts} choices of parts and {references} of references, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
