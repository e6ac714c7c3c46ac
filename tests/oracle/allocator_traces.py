#!/usr/bin/env python3
"""Writes tests/unit/data/allocator_traces.txt: request traces and what the caching allocator makes of them.

The expected values come from the recorder's allocator model (tests/oracle/recorder/allocator.py, the one whose
`reserved` figures were compared with real GPUs), in both modes; core/runtime/caching_allocator.cpp must agree at every
check point. Deterministic: running it again rewrites the same file.

    python3 tests/oracle/allocator_traces.py            # rewrite the fixture
    python3 tests/oracle/allocator_traces.py --check    # exit 1 if the fixture is out of date

Format, one record a line:
    trace NAME
    e EVENT...            +N requests N bytes, -K frees the K-th request of the trace (from 0), r resets the peaks
    d A R PA PR           default mode after those events: allocated, reserved and their peaks, in bytes
    x A R PA PR           the same with expandable segments
"""
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "recorder"))

from allocator import CachingAllocator  # noqa: E402

FIXTURE = HERE.parent / "unit" / "data" / "allocator_traces.txt"
EVENTS_PER_CHECK = 40
KIB, MIB = 1 << 10, 1 << 20


class Trace:
    """Builds a list of events: positive = request of that many bytes, ("free", k), or ("reset",)."""

    def __init__(self, name):
        self.name, self.events, self.requests = name, [], 0

    def malloc(self, nbytes):
        self.events.append(f"+{nbytes}")
        self.requests += 1
        return self.requests - 1

    def free(self, request):
        self.events.append(f"-{request}")

    def reset(self):
        self.events.append("r")


def random_trace(name, seed, count, size, keep):
    """Requests of size(rng); about `keep` blocks stay alive, freed in random order, newest first, or oldest first."""
    rng, t, live = random.Random(seed), Trace(name), []
    for _ in range(count):
        if live and rng.random() < len(live) / (2 * keep):
            how = rng.random()
            t.free(live.pop(rng.randrange(len(live)) if how < 0.5 else -1 if how < 0.8 else 0))
        else:
            live.append(t.malloc(size(rng)))
        if rng.random() < 0.003:
            t.reset()
    for request in live:
        t.free(request)
    return t


def log_uniform(low, high):
    return lambda rng: int(low * (high / low) ** rng.random())


def around_thresholds(rng):
    """Sizes at, just below and just above every constant that the rules mention."""
    edge = rng.choice([512, 1024, 256 * KIB, MIB, 2 * MIB, 3 * MIB, 9 * MIB, 10 * MIB, 12 * MIB, 19 * MIB, 20 * MIB, 22 * MIB, 40 * MIB])
    return max(1, edge + rng.choice([-MIB - 1, -513, -512, -1, 0, 0, 1, 511, 512, 513, MIB, MIB + 1]))


def few_sizes(rng):
    """As in training, where the same dozen sizes come back all the time."""
    return rng.choice([512, 4096, 8192, 90112, 786432, 1 * MIB, 1638400, 4 * MIB, 8 * MIB, 11 * MIB, 11 * MIB, 22 * MIB, 33 * MIB])


def training_trace(name, layers, hidden, ffn, kv, vocab, batch, lengths, checkpointing=False, foreach=False, grad_bytes=2):
    """A decoder trained in bf16 with AdamW: the order of births and deaths of a real step, one step per sequence length."""
    t = Trace(name)
    shapes = [hidden * hidden, hidden * kv, hidden * kv, hidden * hidden, hidden * ffn, hidden * ffn, ffn * hidden, hidden, hidden]
    parameters = [vocab * hidden] + shapes * layers + [hidden, vocab * hidden]
    for count in parameters:
        t.malloc(2 * count)
    states = []
    for length in lengths:
        tokens = batch * length
        h, f, k, v = 2 * tokens * hidden, 2 * tokens * ffn, 2 * tokens * kv, 2 * tokens * vocab
        t.reset()
        ids = t.malloc(8 * tokens)
        rope = [t.malloc(2 * length * 128), t.malloc(2 * length * 128)]

        def forward(saved, resid):
            square = t.malloc(2 * h)                      # fp32 upcast inside RMSNorm
            saved += [square, t.malloc(4 * tokens), t.malloc(h), t.malloc(h)]
            saved += [t.malloc(h), t.malloc(k), t.malloc(k)]
            rotated = [t.malloc(h), t.malloc(h), t.malloc(h)]
            for r in rotated[:2]:
                t.free(r)
            saved += [rotated[2], t.malloc(k), t.malloc(h), t.malloc(4 * tokens * (hidden // 64))]
            out = t.malloc(h)
            after = t.malloc(h)
            t.free(out)
            saved += [t.malloc(2 * h), t.malloc(4 * tokens), t.malloc(h), t.malloc(h)]
            gate = t.malloc(f)
            act = t.malloc(f)
            up = t.malloc(f)
            saved += [gate, act, up, t.malloc(f)]
            down = t.malloc(h)
            result = t.malloc(h)
            t.free(down)
            saved += [after]
            return result

        embedded = t.malloc(h)
        x, kept, inputs = embedded, [], []
        for _ in range(layers):
            saved = []
            inputs.append(x)
            x = forward(saved, x)
            if checkpointing:
                for s in saved:
                    t.free(s)
                saved = []
            kept.append(saved)
        logits = t.malloc(v)
        upcast = t.malloc(2 * v)
        t.free(logits)
        shifted = t.malloc(2 * v)
        t.free(upcast)
        loss = t.malloc(4)
        grad_log = t.malloc(2 * v)
        t.free(shifted)
        grad_logits = t.malloc(v)
        t.free(grad_log)
        grads = [t.malloc(grad_bytes * vocab * hidden)]
        g = t.malloc(h)
        t.free(grad_logits)
        t.free(x)
        for layer in reversed(range(layers)):
            saved = kept[layer]
            if checkpointing:
                t.free(forward(saved, inputs[layer]))
            order = [6, 4, 5, 3, 0, 1, 2, 7, 8]
            for n, weight in enumerate(order):
                work = t.malloc(f if weight in (4, 5, 6) else h)
                grads.append(t.malloc(grad_bytes * shapes[weight]))
                step = max(1, len(saved) // (len(order) - n))
                for _ in range(min(step, len(saved))):
                    t.free(saved.pop())
                t.free(work)
            for s in saved:
                t.free(s)
            new = t.malloc(h)
            t.free(g)
            g = new
            t.free(inputs[layer])
        grads.append(t.malloc(grad_bytes * hidden))
        grads.append(t.malloc(grad_bytes * vocab * hidden))
        t.free(g)
        for r in rope + [ids, loss]:
            t.free(r)
        norms = [t.malloc(4) for _ in grads]
        total = t.malloc(4 * len(grads))
        for n in norms + [total]:
            t.free(n)
        if not states:
            for count in parameters:
                states += [t.malloc(4), t.malloc(2 * count), t.malloc(2 * count)]
        if foreach:
            for n in [t.malloc(2 * count) for count in parameters]:
                t.free(n)
        for n in grads:
            t.free(n)
    return t


def traces():
    yield random_trace("random small", 1, 1500, log_uniform(1, MIB), 120)
    yield random_trace("random large", 2, 1500, log_uniform(MIB, 200 * MIB), 60)
    yield random_trace("random mixed", 3, 2500, log_uniform(1, 500 * MIB), 150)
    yield random_trace("thresholds", 4, 2000, around_thresholds, 80)
    yield random_trace("few sizes", 5, 2500, few_sizes, 200)
    yield random_trace("huge", 6, 400, log_uniform(1 << 30, 1 << 42), 20)
    tiny = dict(layers=4, hidden=576, ffn=1536, kv=192, vocab=49152, batch=4)
    yield training_trace("decoder, fixed length", lengths=[512] * 3, **tiny)
    yield training_trace("decoder, checkpointing, foreach", lengths=[512] * 3, checkpointing=True, foreach=True, **tiny)
    yield training_trace("decoder, variable length", lengths=[512, 300, 411, 77, 509, 350], grad_bytes=4, **tiny)
    yield training_trace("wide decoder", layers=3, hidden=4096, ffn=14336, kv=1024, vocab=128256, batch=1,
                         lengths=[2048, 2048, 1777], checkpointing=True)


def render():
    lines = ["# Written by tests/oracle/allocator_traces.py; the format is described there."]
    for trace in traces():
        lines.append(f"trace {trace.name}")
        modes = [("d", CachingAllocator(), []), ("x", CachingAllocator(expandable=True), [])]
        for start in range(0, len(trace.events), EVENTS_PER_CHECK):
            chunk = trace.events[start:start + EVENTS_PER_CHECK]
            lines.append("e " + " ".join(chunk))
            for letter, allocator, handles in modes:
                for event in chunk:
                    if event == "r":
                        allocator.reset_peaks()
                    elif event[0] == "+":
                        handles.append(allocator.malloc(int(event)))
                    else:
                        allocator.free(handles[int(event[1:])])
                lines.append(f"{letter} {allocator.allocated} {allocator.reserved} "
                             f"{allocator.peak_allocated} {allocator.peak_reserved}")
    return "\n".join(lines) + "\n"


def main():
    text = render()
    if "--check" in sys.argv[1:]:
        if not FIXTURE.exists() or FIXTURE.read_text() != text:
            print(f"{FIXTURE.name} is out of date: run tests/oracle/allocator_traces.py", file=sys.stderr)
            return 1
        return 0
    FIXTURE.parent.mkdir(parents=True, exist_ok=True)
    FIXTURE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
