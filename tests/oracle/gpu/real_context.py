"""What a process takes of the card outside torch's allocator, as libraries come in; and what a workspace is."""


def prepare():
    global torch
    import torch


def run(job, probe):
    from probe import process_bytes
    out = {"readings": []}

    def read(what):
        torch.cuda.synchronize()
        s = torch.cuda.memory_stats()
        used = process_bytes()
        out["readings"].append([what, used, s.get("reserved_bytes.all.current", 0), s.get("allocated_bytes.all.current", 0), s.get("allocated_bytes.all.peak", 0)])
        torch.cuda.reset_peak_memory_stats()
    read("init")
    t = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
    a = torch.randn(1024, 1024, device="cuda")
    read("fill")
    for step in job["order"]:
        try:
            kind, _, rest = step.partition(":")
            if kind == "mm":
                x = a.to(t[rest])
                (x @ x)
            elif kind == "addmm":                       # nn.Linear with a bias: cuBLASLt
                torch.nn.functional.linear(a.to(t[rest]), a.to(t[rest]), a[0].to(t[rest]))
            elif kind == "backward":
                x = a.to(t[rest]).requires_grad_()
                torch.nn.functional.linear(x, x, x[0]).sum().backward()
                del x
            elif kind == "conv":
                torch.nn.functional.conv2d(torch.randn(8, 64, 56, 56, device="cuda", dtype=t[rest]), torch.randn(64, 64, 3, 3, device="cuda", dtype=t[rest]), padding=1)
            elif kind == "sdpa":
                q = torch.randn(1, 8, 512, 64, device="cuda", dtype=t[rest], requires_grad=True)
                torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
                del q
            elif kind == "adamw":
                p = torch.nn.Parameter(a.clone())
                p.grad = torch.ones_like(p)
                torch.optim.AdamW([p], fused=True).step()
                del p
            elif kind == "triton":
                import liger_kernel.transformers as L
                n = L.LigerRMSNorm(1024).cuda()
                n(a).sum().backward()
                del n
            elif kind == "bnb":
                import bitsandbytes as bnb
                m = bnb.nn.Linear4bit(1024, 1024, bias=False, compute_dtype=torch.bfloat16).cuda()
                m(a.bfloat16())
                del m
            elif kind == "bnb8":
                import bitsandbytes as bnb
                p = torch.nn.Parameter(a.clone())
                p.grad = torch.ones_like(p)
                bnb.optim.AdamW8bit([p]).step()
                del p
            elif kind == "grouped":
                x = torch.randn(512, 256, device="cuda", dtype=torch.bfloat16)
                w = torch.randn(4, 256, 256, device="cuda", dtype=torch.bfloat16)
                torch._grouped_mm(x, w, torch.tensor([128, 256, 384, 512], device="cuda", dtype=torch.int32))
            elif kind == "nccl":
                import os
                import torch.distributed as dist
                os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
                dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
                dist.all_reduce(a)
            elif kind == "thread":
                import threading
                th = threading.Thread(target=lambda: (a @ a).sum().item())
                th.start()
                th.join()
            elif kind == "stream":
                s = torch.cuda.Stream()
                with torch.cuda.stream(s):
                    (a @ a).sum().item()
        except Exception as e:                          # noqa: BLE001
            step += " " + str(e)[:100]
        read(step)
    out["free_total"] = torch.cuda.mem_get_info()
    out["device"] = torch.cuda.get_device_name()
    out["capability"] = torch.cuda.get_device_capability()
    return out
