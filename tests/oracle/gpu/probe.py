"""What torch and the driver say of one job's memory on a real GPU: peaks by step and phase, and what was alive at the last step's peak.

On a machine without a GPU every reading is 0 (a smoke run: only whether the job runs)."""
import gc
import os

import torch

REAL = torch.cuda.is_available() if os.environ.get("TIDEMARK_SMOKE") is None else False
INNER = ("/torch/", "<string>", "contextlib.py", "functools.py", "/probe.py", "/zygote.py", "/_dynamo/")


def device():
    return "cuda" if REAL else "cpu"


def process_bytes():
    """Bytes of the card that the driver counts for this process (context, libraries, segments), or None."""
    try:
        import pynvml
        pynvml.nvmlInit()
        h = pynvml.nvmlDeviceGetHandleByIndex(0)
        for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h):
            if p.pid == os.getpid():
                return p.usedGpuMemory
        return {"pids": [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h)][:4], "used": pynvml.nvmlDeviceGetMemoryInfo(h).used}
    except Exception as e:                             # noqa: BLE001 - one reading less must not end the job
        return str(e)[:80]


def host_bytes():
    """What this process has of the host's memory: resident, shared (pinned pages are), and torch's pinned blocks, which are powers of two."""
    out = {}
    with open("/proc/self/status") as f:
        for line in f:
            name, _, rest = line.partition(":")
            if name in ("VmHWM", "VmRSS", "RssAnon", "RssShmem"):
                out[name] = int(rest.split()[0]) << 10
    try:
        out["pinned"] = {k: v for k, v in torch.cuda.host_memory_stats().items() if "bytes" in k and ("peak" in k or "current" in k)}
    except Exception as e:                             # noqa: BLE001
        out["pinned"] = str(e)[:80]
    return out


class Probe:
    """note(step, phase) closes a phase.  last(step) tells that the step that begins is the one whose blocks are to be named."""

    def __init__(self):
        self.steps, self.history, self.base = {}, False, 0
        if REAL:
            torch.cuda.init()
            self.context = process_bytes()
            torch.cuda.reset_peak_memory_stats()

    @staticmethod
    def device():
        return device()

    def built(self):
        """The model stands on the card: what initialisation needed beside is forgotten, as a loaded checkpoint would not have it."""
        gc.collect()
        if REAL:
            torch.cuda.synchronize()
            self.init = torch.cuda.memory_allocated()
            self.host = host_bytes()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def note(self, step, phase):
        if not REAL:
            return
        torch.cuda.synchronize()
        s = torch.cuda.memory_stats()
        d = self.steps.setdefault(str(step), {}).setdefault(phase, {})
        for name, key in (("allocated", "allocated_bytes.all.peak"), ("reserved", "reserved_bytes.all.peak"), ("requested", "requested_bytes.all.peak")):
            d[name] = max(d.get(name, 0), s.get(key, 0))
        torch.cuda.reset_peak_memory_stats()

    def last(self):
        if REAL and not self.history:
            torch.cuda.synchronize()
            self.history, self.base = True, torch.cuda.memory_allocated()
            torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="all" if os.environ.get("TIDEMARK_CPP") else "python", context="alloc")

    def finish(self):
        out = {"steps": self.steps}
        if not REAL:
            return out
        torch.cuda.synchronize()
        out.update(device_name=torch.cuda.get_device_name(), init_bytes=getattr(self, "init", None), context_bytes=self.context,
                   process_bytes=process_bytes(), host_before=getattr(self, "host", None), host=host_bytes(), reserved_now=torch.cuda.memory_reserved(), allocated_now=torch.cuda.memory_allocated())
        later = [v for s, d in self.steps.items() if int(s) >= 2 or len(self.steps) == 1 for v in d.values()]
        first = list(self.steps.get("1", {}).values())
        if later:
            out["peak"] = {k: max(v[k] for v in later) for k in ("allocated", "reserved", "requested")}
            out["peak_phase"] = max(((v["allocated"], ph) for s, d in self.steps.items() if int(s) >= 2 or len(self.steps) == 1 for ph, v in d.items()))[1]
        if first:
            out["first_step_peak"] = {k: max(v[k] for v in first) for k in ("allocated", "reserved", "requested")}
        if self.history:
            out.update(self.alive())
        return out

    def alive(self):
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        torch.cuda.memory._record_memory_history(enabled=None)
        live, cur, best, at = {}, self.base, self.base, -1
        events = []
        sizes = {}
        for i, e in enumerate(trace):
            if e["action"] == "alloc":
                live[e["addr"]] = i
                sizes[e["addr"]] = e["size"]
                cur += e["size"]
                events.append(e["size"])
                if cur > best:
                    best, at = cur, i
            elif e["action"] in ("free_completed", "free"):
                live.pop(e["addr"], None)
                cur -= e["size"]
                events.append(-e["size"])
        live, gone = {}, {}
        for e_i, e in enumerate(trace[:at + 1]):
            if e["action"] == "alloc":
                live[e["addr"]] = e
            elif e["action"] in ("free_completed", "free") and live.pop(e["addr"], None) is None:
                gone[e["size"]] = gone.get(e["size"], 0) + 1
        groups = {}
        for e in live.values():
            key = (where(e.get("frames", [])), e["size"], e.get("stream", 0))
            groups[key] = groups.get(key, 0) + 1
        top = sorted(groups.items(), key=lambda kv: -kv[0][1] * kv[1])
        return {"last_step": {"base": self.base, "peak": best, "peak_born": where(trace[at].get("frames", []), 6) if at >= 0 else "",
                              "events": len(events), "alive": [[k[1], n, k[2], k[0]] for k, n in top[:60]],
                              "alive_rest": sum(k[1] * n for k, n in top[60:]), "gone": sorted(([s, n] for s, n in gone.items()), reverse=True)[:40]},
                "events": events if len(events) <= 40000 else events[:40000]}


def where(frames, n=3):
    """The innermost frames that are no plumbing of torch's, and the innermost of all."""
    if os.environ.get("TIDEMARK_CPP"):
        import re
        names = []
        for f in frames:
            m = re.search(r"at::_ops::(\w+)::", f["name"]) or re.search(r"(\w+Backward\d*\w*)::apply|(AccumulateGrad|InputBuffer|CopyBackwards)", f["name"])
            if m:
                word = next(g for g in m.groups() if g)
                if word not in names[-1:]:
                    names.append(word)
            elif f["filename"].endswith(".py") and not any(w in f["filename"] for w in INNER):
                names.append(f"{os.path.basename(f['filename'])}:{f['line']} {f['name']}")
        return " < ".join(names[:7])[:300]
    names = [f"{os.path.basename(os.path.dirname(f['filename']))}/{os.path.basename(f['filename'])}:{f['line']} {f['name']}" for f in frames]
    plain = [s for s, f in zip(names, frames) if not any(w in f["filename"] for w in INNER)]
    return " < ".join(([names[0]] if names and names[0] not in plain[:1] else []) + plain[:n])[:300]
