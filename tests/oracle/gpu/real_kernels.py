#!/usr/bin/env python3
"""real_kernels.py OUT.jsonl [attention] [linear] [convolution]: what single operations allocate and free on a card, forward and backward.

A row: what ran, and `forward` and `backward`, the bytes of each allocation in turn (of each release: less than 0). Read off torch's memory history."""
import itertools
import json
import sys

import torch
import torch.nn.functional as F

DEVICE = "cuda"
KERNELS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}           # at::SDPBackend
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


def traced(call):
    torch.cuda.synchronize()
    history = torch.cuda.memory._record_memory_history
    history(enabled="all", context=None, max_entries=100000, clear_history=True)
    result = call()
    torch.cuda.synchronize()
    entries = torch.cuda.memory._snapshot()["device_traces"][0]
    history(enabled=None)
    return result, [e["size"] if e["action"] == "alloc" else -e["size"] for e in entries if e["action"] in ("alloc", "free_completed")]


def masks(kind, b, h, s, sk, dtype):
    ones = lambda *shape: torch.ones(*shape, device=DEVICE, dtype=torch.bool)             # noqa: E731
    return {"none": lambda: None, "causal": lambda: None, "bool": lambda: ones(b, 1, s, sk).tril(), "bool_of_keys": lambda: ones(b, 1, 1, sk),
            "additive": lambda: torch.zeros(b, 1, s, sk, device=DEVICE, dtype=dtype),
            "trained": lambda: torch.zeros(1, h, s, sk, device=DEVICE, dtype=dtype, requires_grad=True)}[kind]()


def attention(dtype, b, h, hk, s, sk, hd, mask, dropout=0.0):
    """Heads lie as models have them: [B, S, heads, hd], transposed."""
    row = {"what": "attention", "dtype": dtype, "batch": b, "heads": h, "kv_heads": hk, "queries": s, "keys": sk, "head_dim": hd, "mask": mask, "dropout": dropout}
    t = DTYPES[dtype]
    q, k, v = (torch.randn(b, n, heads, hd, device=DEVICE, dtype=t).transpose(1, 2).requires_grad_() for n, heads in ((s, h), (sk, hk), (sk, hk)))
    m, causal = masks(mask, b, h, s, sk, t), mask == "causal"
    row["kernel"] = KERNELS[int(torch._fused_sdp_choice(q, k, v, m, dropout, causal, enable_gqa=h != hk))]
    out, row["forward"] = traced(lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=m, dropout_p=dropout, is_causal=causal, enable_gqa=h != hk))
    g = torch.randn(b, s, h, hd, device=DEVICE, dtype=t).transpose(1, 2)
    _, row["backward"] = traced(lambda: torch.autograd.grad(out, [q, k, v], g))
    return row


def attentions():
    for dtype, mask, hk, hd, s in itertools.product(DTYPES, ("causal", "none", "bool", "bool_of_keys", "additive", "trained"), (8, 2), (64, 128), (256, 500)):
        yield lambda: attention(dtype, 2, 8, hk, s, s, hd, mask)
    for dtype, hd in itertools.product(("bf16", "fp32"), (32, 40, 72, 80, 96, 160, 192, 256)):
        for mask in ("causal", "bool"):
            yield lambda: attention(dtype, 2, 8, 8, 320, 320, hd, mask)
    for s, sk in ((64, 300), (1, 300), (1024, 1024), (4096, 4096), (197, 197), (77, 77)):
        for mask in ("none", "bool", "causal") if s == sk else ("none", "bool"):
            yield lambda: attention("bf16", 1, 8, 8, s, sk, 128, mask)
    yield lambda: attention("bf16", 2, 8, 8, 256, 256, 64, "causal", 0.1)


def linear(dtype, rows, width, bias):
    layer = torch.nn.Linear(width, width, bias=bias, device=DEVICE, dtype=DTYPES[dtype])
    x = torch.randn(rows, width, device=DEVICE, dtype=DTYPES[dtype], requires_grad=True)
    row = {"what": "linear", "dtype": dtype, "rows": rows, "width": width, "bias": bias}
    out, row["forward"] = traced(lambda: layer(x))
    g = torch.randn_like(out)
    _, row["backward"] = traced(lambda: torch.autograd.grad(out, [x, *layer.parameters()], g))
    return row


def linears():
    for dtype, rows, width, bias in itertools.product(DTYPES, (64, 4096), (512, 3072), (False, True)):
        yield lambda: linear(dtype, rows, width, bias)


def convolution(dtype, last, n, inputs, outputs, size, kernel, stride, groups, bias):
    form = torch.channels_last if last else torch.contiguous_format
    layer = torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2 if stride < kernel else 0, groups=groups, bias=bias, device=DEVICE,
                            dtype=DTYPES[dtype]).to(memory_format=form)
    x = torch.randn(n, inputs, size, size, device=DEVICE, dtype=DTYPES[dtype]).to(memory_format=form).requires_grad_()
    row = {"what": "convolution", "dtype": dtype, "channels_last": last, "batch": n, "inputs": inputs, "outputs": outputs, "size": size, "kernel": kernel,
           "stride": stride, "groups": groups, "bias": bias}
    out, row["forward"] = traced(lambda: layer(x))
    g = torch.randn_like(out)
    _, row["backward"] = traced(lambda: torch.autograd.grad(out, [x, *layer.parameters()], g))
    return row


def convolutions():
    shapes = ((8, 3, 64, 224, 7, 2, 1, False), (8, 64, 64, 56, 3, 1, 1, False), (8, 64, 256, 56, 1, 1, 1, False), (8, 128, 128, 56, 3, 2, 1, False),
              (3, 256, 256, 128, 3, 1, 256, True), (8, 96, 96, 56, 7, 1, 96, True), (8, 3, 768, 224, 16, 16, 1, True), (2, 320, 320, 64, 3, 1, 1, True),
              (2, 640, 320, 64, 3, 1, 1, True), (2, 4, 320, 64, 3, 1, 1, True), (1, 128, 128, 512, 3, 1, 1, True), (1, 512, 512, 64, 3, 1, 1, True))
    for dtype, last, shape in itertools.product(("bf16", "fp32"), (False, True), shapes):
        yield lambda: convolution(dtype, last, *shape)


def main():
    parts = {"attention": attentions, "linear": linears, "convolution": convolutions}
    with open(sys.argv[1], "w") as f:
        f.write(json.dumps({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "card": torch.cuda.get_device_name()}) + "\n")
        for name in sys.argv[2:] or parts:
            for run in parts[name]():
                try:
                    f.write(json.dumps(run()) + "\n")
                except RuntimeError as e:
                    f.write(json.dumps({"what": name, "error": str(e)[:200]}) + "\n")
                f.flush()


if __name__ == "__main__":
    main()
