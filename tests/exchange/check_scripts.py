#!/usr/bin/env python3
"""Python that is exported compiles, whatever a request calls things; a probe's figures come back beside the estimate.

    tests/exchange/check_scripts.py COMMAND
"""
import json
import pathlib
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
    print(f"{4 * len(JOBS)} scripts and 2 measurements, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
