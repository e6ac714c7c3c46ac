#!/usr/bin/env python3
"""What is said of a log beside its job: messages and tables made around the estimate's own figures.

    tests/exchange/check_compare.py COMMAND
"""
import json
import pathlib
import subprocess
import sys
import tempfile

MIB, GIB = 2**20, 2**30
JOB = """base_model: meta-llama/Llama-3.2-1B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 1
bf16: true
gradient_checkpointing: false
optimizer: adamw_torch_fused
"""


def gib(size: float) -> str:
    return f"{size / GIB:.2f} GiB"


def message(capacity, allocated, unallocated, tried, free, others=0, allowed=0, phase="") -> str:
    in_use = allocated + unallocated + 500 * MIB
    return (f"{phase}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {gib(tried)}. GPU 0 has a total capacity "
            f"of {gib(capacity)} of which {gib(free)} is free. " +
            (f"Process 7 has {gib(others)} memory in use. " if others else "") +
            f"Including non-PyTorch memory, this process has {gib(in_use)} memory in use. " +
            (f"{gib(allowed)} allowed; " if allowed else "") +
            f"Of the allocated memory {gib(allocated)} is allocated by PyTorch, and {gib(unallocated)} is reserved by "
            "PyTorch but unallocated.")


BACKWARD = 'Traceback (most recent call last):\n  File "/lib/torch/autograd/__init__.py", line 1, in backward\n    x()\n'


def main() -> int:
    command = sys.argv[1]

    def run(*words: str) -> dict:
        done = subprocess.run([command, *words], capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)

    with tempfile.TemporaryDirectory() as folder:
        job, log = pathlib.Path(folder) / "train.yaml", pathlib.Path(folder) / "log.txt"
        job.write_text(JOB, encoding="utf-8")
        peak = run("estimate", str(job), "--json")["estimate"]["allocated"]["expected"]
        summary = ("PyTorch CUDA memory summary, device ID 0\n| Allocated memory | 10 MiB | {0} MiB | 1 MiB | 1 MiB |\n")
        cases = [
            ("too_large", message(peak * 3 // 4, peak * 2 // 3, 0, peak // 8, 50 * MIB, phase=BACKWARD)),
            ("fragmentation", message(peak * 2, peak * 2 // 3, peak, peak // 8, 50 * MIB)),
            ("other_processes", message(peak * 2, peak // 2, 0, peak // 4, 50 * MIB, others=peak * 5 // 4)),
            ("limited", message(peak * 4, peak // 2, 0, peak // 8, 50 * MIB, allowed=peak // 2)),
            ("limited", message(peak * 4, peak // 2, 0, peak // 8, peak)),
            ("not_this_job", message(peak * 2, peak * 3 // 2, 0, peak // 8, 50 * MIB)),
            ("unknown", "RuntimeError: CUDA error: out of memory"),
            ("agrees", summary.format(peak // MIB)),
            ("differs", summary.format(2 * peak // MIB)),
        ]
        failures = 0
        for verdict, text in cases:
            log.write_text(text, encoding="utf-8")
            got = run("import", str(job), str(log), "--json").get("comparisons", [{}])[0]
            phase_told = BACKWARD not in text or any("died in backward" in line for line in got.get("sentences", []))
            if got.get("verdict") != verdict or not phase_told or not got.get("sentences"):
                failures += 1
                print(f"wanted {verdict}, got {json.dumps(got, indent=1)}")
        print(f"{len(cases)} comparisons, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
