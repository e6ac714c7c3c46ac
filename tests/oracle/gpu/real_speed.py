"""Step time of a job that has the card to itself: rows of a table of throughput."""
import time

from real_jobs import prepare  # noqa: F401
import real_jobs


def run(job, probe):
    import torch
    import batches
    J, record = real_jobs.J, real_jobs.record
    J.DEVICE = batches.DEVICE = dev = probe.device()
    full = {**record.DEFAULTS, **job}
    if full["method"] == "qlora" or "8bit" in full["optimizer"]:
        import bitsandbytes                             # noqa: F401
    model = record.build(J, full, real_jobs.registry, fake=False, placed=(lambda m: real_jobs.pack(m, full)) if full["method"] == "qlora" else None)
    opt = real_jobs.optimizer(full["optimizer"], model)
    trainable = [p for p in model.parameters() if p.requires_grad]
    vocab = J.vocab_size(model.config)
    probe.built()
    batch = real_jobs.fill(J.make_batch(model, full), full, vocab)
    times = []
    for step in range(1, full.get("real_steps", 6) + 1):
        if dev == "cuda":
            torch.cuda.synchronize()
        t = time.perf_counter()
        for _ in range(full["grad_accum"]):
            J.forward_loss(model, batch, full).loss.backward()
        if full["max_grad_norm"]:
            torch.nn.utils.clip_grad_norm_(trainable, full["max_grad_norm"])
        opt.step()
        opt.zero_grad(set_to_none=True)
        if dev == "cuda":
            torch.cuda.synchronize()
        times.append(round(time.perf_counter() - t, 5))
        probe.note(step, "step")
    counts = record.param_counts(model)
    return {"parameters": counts, "step_s": times, "tokens": full["micro_batch"] * full["seq_len"] * full["grad_accum"], **probe.finish()}
