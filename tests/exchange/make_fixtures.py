#!/usr/bin/env python3
"""Logs and model files of our own with what is to be read from them, as the shared corpus labels such files.

    tests/exchange/make_fixtures.py FOLDER

Numbers are drawn here, words are those of the programs. Files that must be refused have a reading with an error.
"""
import json
import pathlib
import pickle
import struct
import sys

KIB, MIB, GIB = 2**10, 2**20, 2**30
NOTHING = dict.fromkeys(["gpu_index", "gpu_capacity_bytes", "allocated_bytes", "reserved_bytes", "free_bytes",
                         "tried_to_allocate_bytes", "process_in_use_bytes"])


def size(number: str, unit: int) -> int:
    whole, _, decimals = number.partition(".")
    scale = 10 ** len(decimals)
    return (int(whole + decimals) * unit * 2 + scale) // (2 * scale)


def oom(**fields) -> dict:
    reading = {"kind_of_failure": "oom", "backend": "cuda", **NOTHING, "other_processes": [], "phase": "unknown"}
    reading.update(fields)
    return reading


NEW = ("CUDA out of memory. Tried to allocate 250.00 MiB. GPU 1 has a total capacity of 79.15 GiB of which 96.25 MiB is "
       "free. {process}Including non-PyTorch memory, this process has 70.02 GiB memory in use. Of the allocated memory "
       "68.40 GiB is allocated by PyTorch, and 1.07 GiB is reserved by PyTorch but unallocated. If reserved but "
       "unallocated memory is large try setting {hint}=expandable_segments:True to avoid fragmentation.")
NEW_READING = dict(gpu_index=1, gpu_capacity_bytes=size("79.15", GIB), free_bytes=size("96.25", MIB),
                   tried_to_allocate_bytes=250 * MIB, process_in_use_bytes=size("70.02", GIB),
                   allocated_bytes=size("68.40", GIB), reserved_bytes=size("68.40", GIB) + size("1.07", GIB),
                   non_pytorch_bytes=size("70.02", GIB) - size("68.40", GIB) - size("1.07", GIB))
OLD = ("CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 23.65 GiB total capacity; 21.30 GiB already allocated; "
       "300.06 MiB free; 21.80 GiB reserved in total by PyTorch)")
OLD_READING = dict(torch_format="1.4-1.9", gpu_index=0, gpu_capacity_bytes=size("23.65", GIB),
                   allocated_bytes=size("21.30", GIB), free_bytes=size("300.06", MIB),
                   reserved_bytes=size("21.80", GIB), tried_to_allocate_bytes=512 * MIB)

CHECKPOINT = """\
Traceback (most recent call last):
  File "/job/train.py", line 80, in <module>
    trainer.train()
  File "/lib/torch/_tensor.py", line 648, in backward
    torch.autograd.backward(
  File "/lib/torch/autograd/graph.py", line 829, in _engine_run_backward
    return Variable._execution_engine.run_backward(
  File "/lib/torch/utils/checkpoint.py", line 1129, in unpack_hook
    _run_fn_with_dynamo_disabled(frame.recompute_fn, *args)
  File "/lib/transformers/models/llama/modeling_llama.py", line 170, in forward
    down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
torch.OutOfMemoryError: """
EVALUATION = """\
OutOfMemoryError                          Traceback (most recent call last)
Cell In[21], line 2
----> 2 metrics = trainer.evaluate()

File /lib/transformers/trainer.py:2113, in Trainer.evaluate(self, eval_dataset)
-> 2113 output = eval_loop(
File /lib/transformers/models/t5/modeling_t5.py:1719, in T5ForConditionalGeneration.forward(self, input_ids)
-> 1719 lm_logits = self.lm_head(sequence_output)
OutOfMemoryError: """
BOX = """\
+---- Traceback (most recent call last) ----+
\u2502 E:\\work\\train.py:864 in <module>                    \u2502
\u2502 \u2771 864 \u2502   train(args)                              \u2502
\u2502 E:\\lib\\site-packages\\torch\\optim\\adamw.py:184 in    \u2502
\u2502 step                                                 \u2502
\u2502 \u2771 184 \u2502   adamw(                                   \u2502
RuntimeError: """
VSCODE = """\
Exception has occurred: RuntimeError
{message}
  File "/job/model.py", line 50, in forward
    x = self.conv(x)
  File "/job/train.py", line 40, in <module>
    step()
"""
RANKS = """\
[rank0]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank0]:   File "/lib/transformers/modeling_utils.py", line 4992, in from_pretrained
[rank1]:   File "/lib/torch/optim/adam.py", line 100, in step
[rank0]: torch.OutOfMemoryError: {message}
[rank1]: torch.OutOfMemoryError: {message}
"""

LOGS = [
    ("old", "RuntimeError: " + OLD, oom(**OLD_READING)),
    ("old_quoted_and_wrapped", "> RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 23.65\n> GiB "
     "total capacity; 21.30 GiB already\n> allocated; 300.06 MiB free; 21.80 GiB reserved in total by PyTorch)",
     oom(**OLD_READING)),
    ("old_with_colours", "\x1b[31mRuntimeError\x1b[0m: " + OLD, oom(**OLD_READING)),
    ("old_cut", "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 23.65 GiB total capacity; 21.3",
     oom(**{**OLD_READING, "allocated_bytes": None, "free_bytes": None, "reserved_bytes": None})),
    ("new_recomputation_is_backward", CHECKPOINT + NEW.format(process="", hint="PYTORCH_CUDA_ALLOC_CONF"),
     oom(**NEW_READING, torch_format="2.5-2.8", phase="backward")),
    ("new_evaluation", EVALUATION + OLD, oom(**{**OLD_READING, "torch_format": "1.10-2.0", "phase": "evaluation"})),
    ("box", BOX + OLD, oom(**{**OLD_READING, "phase": "optimizer"})),
    ("vscode", VSCODE.format(message=OLD), oom(**{**OLD_READING, "phase": "forward"})),
    ("two_ranks", RANKS.format(message=NEW.format(process="", hint="PYTORCH_ALLOC_CONF")),
     oom(**NEW_READING, torch_format="2.9", phase="load", messages=2)),
    ("others", "torch.cuda.OutOfMemoryError: " + NEW.format(
        process="Process 77 has 5.50 GiB memory in use. Process 78 has 0 bytes memory in use. Process 79 has "
                "17179869184.00 GiB memory in use. ", hint="PYTORCH_CUDA_ALLOC_CONF"),
     oom(**NEW_READING, torch_format="2.2-2.4", other_processes=[{"pid": 77, "bytes": size("5.50", GIB)},
                                                                 {"pid": 78, "bytes": None},
                                                                 {"pid": 79, "bytes": None}])),
    ("no_numbers", "RuntimeError: cuda runtime error (2) : out of memory at /torch/THCStorage.cu:58",
     oom(torch_format="0.x")),
    ("asynchronous", CHECKPOINT.replace("torch.OutOfMemoryError: ", "") + "torch.AcceleratorError: CUDA error: out of memory\n"
     "CUDA kernel errors might be asynchronously reported", oom(torch_format="2.8+ cuda_error")),
    ("paged", "Error out of memory at line 380 in file /src/csrc/pythonInterface.c", oom(torch_format="bitsandbytes")),
    ("mps", "RuntimeError: MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, max "
     "allowed: 27.20 GiB). Tried to allocate 292.50 MiB on shared pool.",
     oom(backend="mps", torch_format="mps", gpu_capacity_bytes=size("27.20", GIB), allocated_bytes=size("9.57", GIB),
         other_allocations_bytes=size("17.35", GIB), tried_to_allocate_bytes=size("292.50", MIB), pool="shared")),
    ("malloc_async", "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
     "Currently allocated     : 14.03 GiB\nRequested               : 160.00 MiB\nDevice limit            : 15.77 GiB\n"
     "Free (according to CUDA): 12.81 MiB\nPyTorch limit (set by user-supplied memory fraction)\n"
     "                        : 17179869184.00 GiB",
     oom(torch_format="cudaMallocAsync", gpu_capacity_bytes=size("15.77", GIB), allocated_bytes=size("14.03", GIB),
         tried_to_allocate_bytes=160 * MIB, free_bytes=size("12.81", MIB))),
    ("vllm", "the current vLLM instance can use total_gpu_memory (23.65GiB) x gpu_memory_utilization (0.90) = 21.28GiB\n"
     "model weights take 19.90GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.50GiB; the "
     "rest of the memory reserved for KV Cache is -0.22GiB.",
     oom(torch_format="vllm", phase="engine_init", gpu_capacity_bytes=size("23.65", GIB),
         vllm={"utilization": 0.9, "weights_bytes": size("19.90", GIB), "non_torch_bytes": size("0.10", GIB),
               "activation_peak_bytes": size("1.50", GIB), "kv_cache_bytes": -size("0.22", GIB)})),
]

SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA L4                      Off |   00000000:00:03.0 Off |                    0 |
| N/A   52C    P0             30W /   72W |   18033MiB /  23034MiB |      7%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    0   N/A  N/A      4242      C   python train.py                             18024MiB |
+-----------------------------------------------------------------------------------------+
"""
SMI_READING = {"driver": "550.90.07", "cuda": "12.4", "mig": [],
               "gpus": [{"index": 0, "name": "NVIDIA L4", "used_mib": 18033, "total_mib": 23034, "utilization": 7}],
               "processes": [{"gpu": 0, "pid": 4242, "name": "python train.py", "used_mib": 18024}]}

SUMMARY = """\
|                  PyTorch CUDA memory summary, device ID 2                 |
|            CUDA OOMs: 1            |        cudaMalloc retries: 4         |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |  12000 MiB |  23000 MiB | 512034 MiB | 490497 MiB |
| Active memory         |  12000 MiB |  23001 MiB | 512034 MiB | 490497 MiB |
| GPU reserved memory   |  23500 MiB |  23500 MiB |  30102 MiB |   6908 MiB |
"""
SUMMARY_READING = {"device": 2, "ooms": 1, "cudamalloc_retries": 4, "requested": None,
                   "allocated": {"current": 12000 * MIB, "peak": 23000 * MIB},
                   "active": {"current": 12000 * MIB, "peak": 23001 * MIB},
                   "reserved": {"current": 23500 * MIB, "peak": 23500 * MIB}}


def snapshot() -> dict:
    """32 MiB were there before the trace; within it 4 + 8 MiB lie together, then the 4 go."""
    def block(action, address, mib):
        frames = [{"filename": "/job/train.py", "line": 7, "name": "forward"}]
        return {"action": action, "addr": address, "size": mib * MIB, "stream": 0, "frames": frames}
    trace = [block("alloc", 1, 4), block("alloc", 2, 8), block("free_requested", 1, 4), block("free_completed", 1, 4)]
    segment = {"device": 0, "address": 0, "total_size": 64 * MIB, "allocated_size": 40 * MIB, "blocks": []}
    return {"segments": [segment], "device_traces": [trace]}


SNAPSHOT_READING = {"reserved_bytes": 64 * MIB, "allocated_bytes": 40 * MIB, "inactive_bytes": 24 * MIB, "segments": 1,
                    "traces": 4, "trace_peak_allocated_bytes": 12 * MIB, "peak_allocated_bytes": 44 * MIB,
                    "at_peak": [{"site": "train.py:7 forward", "bytes": 12 * MIB}]}


class Call:
    def __reduce__(self):
        return print, ("must never be printed",)


def safetensors(tensors: dict, metadata: dict | None = None, cut: int = 0) -> bytes:
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (dtype, shape, width) in tensors.items():
        elements = 1
        for dimension in shape:
            elements *= dimension
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + elements * width]}
        at += elements * width
    text = json.dumps(header).encode()
    return (struct.pack("<Q", len(text)) + text + bytes(at))[: None if cut == 0 else cut]


LLAMA = {"model.embed_tokens.weight": ("BF16", [64, 8], 2), "model.layers.0.mlp.up_proj.weight": ("BF16", [16, 8], 2),
         "model.layers.1.mlp.up_proj.weight": ("BF16", [16, 8], 2)}
LORA = {f"base_model.model.model.layers.{n}.self_attn.{p}.lora_{w}.weight": ("F32", [4, 8] if w == "A" else [8, 4], 4)
        for n in range(2) for p in ("q_proj", "v_proj") for w in "AB"}


def gguf(cut: int | None = None, version: int = 3, kind: int = 1) -> bytes:
    def word(text):
        return struct.pack("<Q", len(text)) + text.encode()
    entries = [word("general.architecture") + struct.pack("<I", 8) + word("qwen2")]
    for key, value in (("block_count", 2), ("embedding_length", 64), ("attention.head_count", 4)):
        entries.append(word("qwen2." + key) + struct.pack("<II", 4, value))
    entries.append(word("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + word("a") + word("b"))
    tensor = word("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 1000, kind, 0)
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(entries))
    return (head + b"".join(entries) + tensor)[:cut]


def files(kind: str) -> list[tuple[str, bytes, dict]]:
    if kind == "oom":
        return [(f"{name}.txt", text.encode(), {"reading": reading}) for name, text, reading in LOGS]
    if kind == "nvidia_smi":
        return [("smi.txt", SMI.encode(), {"reading": SMI_READING})]
    if kind == "memory_summary":
        return [("summary.txt", SUMMARY.encode(), {"reading": SUMMARY_READING})]
    if kind == "snapshot":
        refused = {"reading": {"error": "refuse"}}
        whole = pickle.dumps(snapshot(), protocol=4)
        rows = [(f"protocol_{p}.pickle", pickle.dumps(snapshot(), protocol=p), {"reading": SNAPSHOT_READING})
                for p in (2, 3, 4, 5)]
        return rows + [("call.pickle", pickle.dumps({"segments": [Call()]}, protocol=4), refused),
                       ("call_2.pickle", pickle.dumps({"segments": [Call()]}, protocol=2), refused),
                       ("cut.pickle", whole[: len(whole) // 2], refused),
                       ("memo_bomb.pickle", b"\x80\x04]r\xff\xff\xff\x7f.", refused),
                       ("no_mark.pickle", b"\x80\x04e.", refused),
                       ("itself.pickle", b"\x80\x04]\x94h\x00a.", {"reading": {"reserved_bytes": 0, "segments": 1}})]
    if kind == "safetensors_header":
        llama = {"format": "safetensors", "tensors": 3, "elements": 768, "elements_by_dtype": {"BF16": 768},
                 "data_bytes": 1536, "metadata": {"format": "pt"}, "layers": 2, "tied_embeddings": True}
        refused = {"request": {"error": "refuse"}}
        gap = safetensors(LLAMA).replace(b"[1280, 1536]", b"[1281, 1537]")
        return [("llama.safetensors", safetensors(LLAMA, {"format": "pt"}),
                 {"request": {"model_files": llama, "parameters": 768}}),
                ("adapter_model.safetensors", safetensors(LORA), {"request": {
                    "method": "lora", "adapter": {"r": 4, "target_modules": ["q_proj", "v_proj"]}}}),
                ("cut.safetensors", safetensors(LLAMA, cut=100), refused),
                ("gap.safetensors", gap, refused),
                ("length.safetensors", struct.pack("<Q", 2**63) + b"{}", refused),
                ("nested.safetensors", struct.pack("<Q", 100_000) + b"[" * 100_000, refused)]
    if kind == "safetensors_index":
        index = {"metadata": {"total_size": 1536}, "weight_map": {name: "model-00001-of-00001.safetensors" for name in LLAMA}}
        return [("model.safetensors.index.json", json.dumps(index, indent=2).encode(), {"request": {"model_files": {
            "total_size": 1536, "tensors": 3, "shards": 1, "layers": 2, "tied_embeddings": True}}})]
    model = {"format": "gguf", "version": 3, "architecture": "qwen2", "tensors": 1, "elements": 64000, "types": {"1": 1}}
    config = {"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
              "vocab_size": 1000, "tie_word_embeddings": True}
    return [("model.gguf", gguf(), {"request": {"model_files": model, "config": config}}),
            ("head_only.gguf", gguf(cut=150), {"request": {"model_files": {"format": "gguf", "architecture": "qwen2"}}}),
            ("type.gguf", gguf(kind=10**6), {"request": {"error": "type"}}),
            ("version_9.gguf", gguf(version=9), {"request": {"error": "version"}})]


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    for kind in ["oom", "nvidia_smi", "memory_summary", "snapshot", "safetensors_header", "safetensors_index", "gguf_header"]:
        folder = root / kind
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "labels.jsonl").open("w", encoding="utf-8") as labels:
            for name, content, wanted in files(kind):
                (folder / name).write_bytes(content)
                print(json.dumps({"file": name, "kind": kind, **wanted}), file=labels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
