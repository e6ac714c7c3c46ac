"""make_multi_jobs.py RECORDS-MULTI.jsonl > multi.jsonl: the sample of recorded jobs that real_multi.py runs."""
import json
import os
import sys

IDS = """
gpt2-ddp-bf16-96801c gpt2-ddp-amp_bf16-view-2b36f5 llama-3.2-1b-ddp-amp_bf16-a4d2b5 llama-3.2-1b-ddp-fp32-29239a qwen2.5-0.5b-ddp-accum-faf0ef
qwen2.5-0.5b-ddp-cap100-cca7bd llama-3.2-1b-ddp-lora-12be2d llama-3.2-3b-ddp-bf16-view-accum llama-3.2-1b-ddp-full-cb2996
llama-3.1-8b-fsdp2-ckpt-917f4d llama-3.2-1b-fsdp2-foreach-3fba6c llama-3.1-8b-fsdp2-pure16-df4d93 llama-3.1-8b-fsdp2-offload-1a7017
llama-3.1-8b-fsdp2-int4-36360a llama-3.2-1b-fsdp2-e31eb6 gemma-2-2b-fsdp2-7557b3 llama-3.1-8b-fsdp2-hsdp-91db96 llama-3.2-1b-fsdp2-reduce16-d7417e
llama-3.1-8b-fsdp2-lora-71c66e mistral-7b-v0.1-fsdp2-ckpt-ee9fbc llama-3.1-8b-fsdp2-groups-c83d89
acc-llama8 acc-llama8-ck acc-llama8-keep acc-llama8-offload acc-llama8-plain acc-llama8-long acc-qwen3-tied acc-llama8-lora acc-llama8-lora-keep
acc-llama8-ac acc-mistral
llama-3.1-8b-fsdp1-orig-88b745 llama-3.2-1b-fsdp1-pure16-00badc llama-3.2-1b-fsdp1-nolimit-fd2191 llama-3.2-1b-fsdp1-hybrid-059f31
llama-3.1-8b-fsdp1-shard_grad_op-f129c9 llama-3.2-1b-fsdp1-pre-None-5f8f6c llama-3.2-3b-fsdp1-flat-c351c7 llama-3.2-1b-fsdp1-lora-peft-81cd62
mistral-fsdp1-lora-amp-none mistral-fsdp1-full-ckr
qwen2.5-0.5b-zero1-f26176 qwen2.5-0.5b-zero1-nooverlap-217072 llama-3.1-8b-zero1-big-95723e qwen2.5-0.5b-zero2-full-1e4ce1 llama-3.2-1b-zero2-e6cd6b
qwen2.5-0.5b-zero2-offopt-w30 qwen2.5-0.5b-zero3-auto-73150d llama-3.2-1b-zero3-live-208274 llama-3.2-1b-zero3-22f077 llama-3.2-1b-zero3-lora-01c82e
big-full mistral-zero3-ckr
llama-3.1-8b-tp-tp2-8863cf llama-3.1-8b-tp-2d-none-019e40 llama-2-7b-hf-tp-2d-groups-1bdb51
llama-3.1-8b-pp-1f1b2r1-481657 llama8-pp-fsdp-mixed-2r0 llama8-pp-tp-2r0 llama8-pp-ddp-2r0
""".split()
# the core, first in the file: a run that is cut short has one of each
FIRST = """
llama-3.2-1b-ddp-amp_bf16-a4d2b5 gpt2-ddp-amp_bf16-view-2b36f5 qwen2.5-0.5b-ddp-accum-faf0ef llama-3.2-1b-ddp-lora-12be2d
llama-3.1-8b-fsdp2-ckpt-917f4d llama-3.1-8b-fsdp2-offload-1a7017 llama-3.1-8b-fsdp2-hsdp-91db96 llama-3.1-8b-fsdp2-lora-71c66e
acc-llama8 acc-llama8-ck acc-llama8-keep acc-llama8-lora acc-qwen3-tied
llama-3.1-8b-fsdp1-orig-88b745 llama-3.2-1b-fsdp1-nolimit-fd2191 llama-3.1-8b-fsdp1-shard_grad_op-f129c9 llama-3.2-3b-fsdp1-flat-c351c7
mistral-fsdp1-lora-amp-none
qwen2.5-0.5b-zero1-f26176 qwen2.5-0.5b-zero2-full-1e4ce1 llama-3.2-1b-zero3-22f077 qwen2.5-0.5b-zero3-auto-73150d mistral-zero3-ckr
llama-3.1-8b-tp-tp2-8863cf llama-3.1-8b-tp-2d-none-019e40 llama-3.1-8b-pp-1f1b2r1-481657
""".split()
COARSE = "llama-3.1-8b-fsdp1-orig-88b745 llama-3.2-1b-fsdp1-nolimit-fd2191 acc-llama8 llama-3.1-8b-fsdp2-ckpt-917f4d".split()
EXPANDABLE = "acc-llama8 llama-3.1-8b-fsdp1-orig-88b745 qwen2.5-0.5b-zero2-full-1e4ce1".split()
MODELS = {k: r["config"] for r in json.load(open(os.environ["ORACLE_MODELS"])) for k in [*r.get("same_arch_ids", []), *r.get("aliases", []), r["id"]]}
found = {}
for path in sys.argv[1:]:
    for text in open(path):
        row = json.loads(text)
        if row["id"] in IDS:
            found[row["id"]] = row["record"]


def line_of(name):
    rec = found[name]
    job, peak, steps = dict(rec["job"]), rec["peak"], rec["steps"]
    job.setdefault("config", MODELS.get(job.get("model")))
    steady = steps[max(steps, key=int)]
    oracle = {"id": name, "phase": peak["phase"], "allocated": peak["allocated"], "requested512": peak["requested512"], "reserved": peak["reserved"],
              "reserved_expandable": peak["reserved_expandable"], "first_step": {k: rec["first_step_peak"][k] for k in ("allocated", "reserved")},
              "steady": {ph: v["allocated"] for ph, v in steady.items()}, "first": {ph: v["allocated"] for ph, v in steps["1"].items()},
              "init_bytes": rec["init_bytes"], "cublas_sm90": rec["cublas_workspace_bytes"]["sm90"], "after_forward": rec["after_forward"],
              "breakdown": peak["breakdown"], "sdpa": rec.get("sdpa_kernel"), "torch": rec["versions"]["torch"]}
    expect = peak["allocated"]
    if job["parallelism"]["strategy"].startswith("zero"):       # the engine takes the whole model, copies it flat, and parts it
        whole = 2 * rec["parameters"]["total"]
        expect = max(expect, 2 * whole + 2 * whole // rec["world"])
    return {"module": "real_multi", "id": name, "job": job, "expect_bytes": expect, "timeout": 90, "oracle": oracle}


lines = {name: line_of(name) for name in IDS}
order = [*FIRST, *[n for n in IDS if n not in FIRST]]
out = [lines[n] for n in order]
out += [{**lines[n], "id": n + ".coarse", "coarse": True} for n in COARSE]
out += [{**lines[n], "id": n + ".expandable", "expandable": True} for n in EXPANDABLE]
for line in out:
    print(json.dumps(line))
