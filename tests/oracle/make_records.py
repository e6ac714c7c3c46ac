#!/usr/bin/env python3
"""make_records.py JOBS.jsonl OUT.jsonl --models MODELS.json --chroot DIR    runs jobs, writes {id, request, record} lines
make_records.py --brief OUT.jsonl RAW.jsonl...                              the same lines from rows that record.py wrote, peaks only
make_records.py --check RECORDS.jsonl                                       does the mapping give each record's request?

A job is the recorder's vocabulary, a request is the engine's (the contract's JSON); `request_of` is the one place
where the first becomes the second.  Jobs already in OUT are kept as they are; jobs that fail are named and left out.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "recorder"))

PRECISION = {"bf16": "pure_bf16", "fp16": "pure_fp16",                    # the others have the same name on both sides
             "fp16_amp": {"weights": "fp16", "autocast": "fp16", "gradients": "fp16", "optimizer_states": "fp16"}}
LOSS = {"liger_flce": "liger", "chunked": "chunked", "cut_cross_entropy": "cut_cross_entropy"}    # older losses: framework.version instead
FRAMEWORK = {"hf_4_44": "4.44", "hf_4_46": "4.46"}
LOOP = {"keep_outputs": "keep_outputs", "outputs_fp32": "outputs_to_fp32", "zero_grad_to_none": "zero_grad_to_none"}
GPU = {70: "V100-32GB", 75: "T4", 80: "A100-80GB", 90: "H100"}
# What a family's own file did to the logits before release 4.49 (core/layers/losses.hpp: OwnLoss); the others did as Llama, whose words these are.
NO_UPCAST = ("gpt2", "gpt_bigcode", "gpt_neox", "opt", "bloom", "falcon", "mpt", "stablelm", "biogpt", "xglm", "ctrl")
FP32_HEAD = ("gptj", "codegen")
# Their attention does not pass the function that the recorder recomputes for "core_attn" (recorder/checkpoints.py).
OWN_ATTENTION = ("falcon", "bloom", "mpt", "gptj", "codegen", "gpt_neo", "nemotron", "xglm", "ctrl", "deberta-v2")


def old_loss(model_type, release):
    """The recorder's word for the loss of a release before 4.49; None: it has none (GPT-Neo turns its logits back)."""
    if model_type == "gpt_neo":
        return None
    return "hf_no_upcast" if model_type in NO_UPCAST else "hf_4_44" if model_type in FP32_HEAD or release == "4.44" else "hf_4_46"
KEPT = ("job", "versions", "cublas_workspace_bytes", "init_bytes", "steps", "peak", "first_step_peak", "batch", "after_forward",
        "layer", "parameters", "sdpa_kernel")


def has_experts(job):
    words = json.dumps(job.get("config", {})) + job.get("model", "").lower()
    return job.get("kind") == "moe" or any(word in words for word in ("expert", "moe", "mixtral", "qwen3-next", "a3b", "gpt-oss", "glm-4.7"))


def samples_of(job):
    """Of the evaluation set: each GPU has as many batches."""
    split = job.get("parallelism", {})
    return job["evaluation"]["micro_batch"] * job["evaluation"]["batches"] * split.get("data", 1) * split.get("replicate", 1)


def request_of(job):
    req = {"schema": 1}
    if "config" in job:
        req["config"] = {**job["config"], **job.get("config_overrides", {})}
    else:
        assert "config_overrides" not in job, "a changed config must be given whole"
        req["model"] = job["model"]
    req.update(method=job["method"], precision=PRECISION.get(job["precision"], job["precision"]), micro_batch_size=job["micro_batch"],
               sequence_length=job.get("seq_len", 0), gradient_accumulation_steps=job["grad_accum"], attention=attention_of(job),
               padding=job["padding"], gradient_checkpointing=job["gradient_checkpointing"], optimizer=job["optimizer"],
               max_grad_norm=job["max_grad_norm"], loss=LOSS.get(job["loss"], "default"),
               framework={"name": "transformers", "version": job.get("release", job.get("transformers", FRAMEWORK.get(job["loss"], "5.12")))}, gpu=GPU[job.get("arch", 80)])
    if job["method"] in ("lora", "qlora"):
        lo = job.get("lora", {})
        req["adapter"] = {"r": lo.get("r", 16), "lora_alpha": lo.get("alpha", 16), "lora_dropout": lo.get("dropout", 0.0),
                          "target_modules": lo.get("target_modules", "all-linear"), "dtype": lo.get("adapter_dtype", "fp32")}
        same = ("use_dora", "modules_to_save", "exclude_modules", "rank_pattern", "layers_to_transform", "bias")
        req["adapter"].update({key: lo[key] for key in same if key in lo})
        if lo.get("kind", "lora") != "lora":
            req["adapter"] = adapter_of(lo)
        if lo.get("kind") == "boft" or lo.get("kind", "lora") == "lora" and (has_experts(job) or lo.get("use_dora")):
            req["framework"]["peft"] = "0.18"            # the recorder's: later ones adapt experts, make DoRA's product and turn by BOFT otherwise
    if job.get("trainer"):
        req["framework"] = {"name": "llama_factory_v1"}
    if job.get("lora_kernels"):
        req["lora_kernels"] = job["lora_kernels"]
        if job.get("axolotl") == "0.17":                                  # v0.17.0
            req["framework"]["version"] = "2026-06-03"
    if job.get("pack_experts"):
        req["quantize_moe_experts"] = True
    if job.get("fused_attention"):
        req["fused_attn_kernel"] = True
    if job["method"] == "qlora":
        prepare = job.get("kbit_prepare", True)
        req["quantization"] = {"bits": 4, "quant_type": "nf4", "double_quant": job.get("double_quant", True),
                               "prepare_kbit": "norms_only" if prepare == "norms" else prepare}
        if job.get("packed"):
            req["quantization"] = packed_of(job)
        elif job.get("bits") == 8:
            req["quantization"].update(bits=8, quant_type="int8")
    if job.get("target_len"):
        req["decoder_sequence_length"] = job["target_len"]
    add_kinds(req, job)
    if "unsloth" in job:
        add_unsloth(req, job)
    if job.get("library") == "sd_scripts":
        add_sd_scripts(req, job)
    freeze = (["vision_tower"] if job.get("freeze_vision") else []) + job.get("freeze", [])
    if job.get("lisa"):
        req["lisa_layers"] = job["lisa"]
        req["framework"] = {"name": "axolotl"}
    if freeze:
        req["freeze"] = freeze
    if job.get("beside"):
        req["trainable"] = job["beside"]
    if job.get("architecture") and job.get("library") != "sd_scripts":
        req["architecture"] = job["architecture"]
    if job["gradient_checkpointing"] != "none":
        req["use_reentrant"] = job["use_reentrant"] or (job.get("library") == "sd_scripts" and job["architecture"] == "sdxl")
    if job.get("task"):
        req["task"] = job["task"]
    if job.get("task") == "rloo" and not job.get("reference"):
        req["beta"] = 0.0                                # else there is one
    if job.get("reference"):
        req["reference_model"] = {"copy": {"shared_with_adapter": False}, "adapter": {"shared_with_adapter": True},
                                  "precomputed": {"precompute": True}}[job["reference"]]
    if job.get("task") in ("grpo", "rloo"):
        add_rollout(req, job)
    if job.get("task") == "ppo":
        req.update({ours: job[theirs] for ours, theirs in POLICY.items() if theirs in job})
        req["reward_config"] = {**job["config"], **job.get("judge", {})}
    if job.get("task") in ("grpo", "rloo") and job.get("judge") is not None:
        req["reward_config"] = {**job["config"], **job["judge"], "dtype": "float32" if job["precision"].startswith("amp") else "bfloat16"}
    if job.get("task") == "online_dpo":
        req["max_completion_length"] = job["completion_len"]
        req.update({"reward_config": {**job["config"], **job["judge"]}} if "judge" in job else {"reward_functions": True})
    if job.get("teacher"):
        add_teacher(req, job)
        if job["task"] == "grpo":
            req["framework"] = {"name": "ms_swift"}
    if job.get("evaluation"):
        req["evaluation"] = {"micro_batch_size": job["evaluation"]["micro_batch"]}
        if job["evaluation"].get("generate"):
            req["evaluation"].update(generate=True, **job["evaluation"]["generate"])
        if job["evaluation"].get("keep_logits"):
            req["evaluation"].update(keep_logits=True, samples=samples_of(job))
    if job.get("activation_offloading"):
        req["activation_offloading"] = True
    if job.get("float8"):
        req["float8"] = job["float8"]
    if job.get("qat"):
        req["qat"] = job["qat"]
    if job.get("packing"):
        req["packing"] = True
    if job.get("label_smoothing"):
        req["label_smoothing_factor"] = job["label_smoothing"]
    if job.get("liger"):
        req["liger"] = job["liger"]
    if job.get("neftune"):
        req["neftune_noise_alpha"] = job["neftune"]
    if job.get("optim_args"):
        req["optim_args"] = ",".join(f"{key}={value}" for key, value in job["optim_args"].items())
    if job.get("optim_target_modules"):
        req["optim_target_modules"] = job["optim_target_modules"]
    req.update({theirs: job[ours] for ours, theirs in LOOP.items() if ours in job})
    return req


def add_unsloth(req, job):
    """FastLanguageModel of recorder/unslothed.py: what is padded is what shares no row."""
    how = job["unsloth"]
    req.update(framework={"name": "unsloth", "version": "2026.8"}, padding=not how.get("padding_free", True),
               attention={"xformers": "xformers", "fa2": "flash_attention_2"}[how.get("backend", "xformers")])
    if job["method"] == "qlora":
        req["quantization"]["prepare_kbit"] = False


def add_sd_scripts(req, job):
    """kohya-ss/sd-scripts of recorder/sd_scripts.py, whose U-Net of SDXL checkpoints re-entrantly."""
    req["framework"] = {"name": "sd_scripts"}
    req.pop("library", None)
    if "adapter" in req:
        req["adapter"]["target_modules"] = ["proj_in", "proj_out", "to_q", "to_k", "to_v", "to_out.0", "ff.net.0.proj", "ff.net.2"]


def add_rollout(req, job):
    """Generated answers: recorder/grpo.py."""
    answers = job["micro_batch"] * job.get("steps_per_generation", job["grad_accum"])
    if answers == 1:                                     # each prompt's answers lie on several GPUs
        answers = job["parallelism"]["data"]
    req.update(max_completion_length=job["completion_len"], num_generations=max(n for n in (2, 4, 8) if answers % n == 0))
    req.update({key: job[key] for key in ("steps_per_generation", "num_iterations") if key in job})
    if job.get("features"):
        req["feature_layers"] = len(job["features"]["layers"])
    if job.get("rollout") == "vllm":
        req["rollout"] = {"engine": "vllm", "mode": "server"}
    if "gather_for_generation" in job:
        req["rollout"] = {"gather_weights": job["gather_for_generation"]}


POLICY = {"max_completion_length": "completion_len", "local_rollout_forward_batch_size": "rows_at_once"}    # recorder/ppo.py


def add_teacher(req, job):
    """Distillation: recorder/gkd.py."""
    teacher = job["teacher"]
    req["teacher_config"] = teacher["config"] if "config" in teacher else {**job["config"], **teacher}
    req.update({key: job[key] for key in ("lmbda", "beta") if key in job})
    if "completion_len" in job:
        req["max_completion_length"] = job["completion_len"]


def packed_of(job):
    """GPTQ, AWQ, HQQ and their like: recorder/packed.py. AQLM's 16 bits are a code's, which stands for 8 weights."""
    packed = job["packed"]
    if packed["kind"] in ("quanto", "torchao", "aqlm", "eetq"):
        return {"quant_type": packed["kind"], "bits": 2 if packed["kind"] == "aqlm" else packed["bits"], "prepare_kbit": job.get("kbit_prepare", True)}
    made = {"quant_type": packed["kind"], "bits": packed["bits"], "group_size": packed["group_size"], "prepare_kbit": job.get("kbit_prepare", True)}
    return {**made, "desc_act": True} if packed.get("desc_act") else made


KINDS = {"images": "images_per_sample", "video_frames": "video_frames", "tiles": "image_tiles", "boxes": "boxes_per_image", "audio_seconds": "audio_seconds",
         "library": "library", "kernels": "kernels", "vae": "vae", "text_encoders": "text_encoders"}


def add_kinds(req, job):
    """What kinds other than dense decoders say beside (jobs of ../shared/oracle/beyond)."""
    req.update({theirs: job[ours] for ours, theirs in KINDS.items() if job.get(ours)})
    size = job.get("image_size") or default_size(job)
    if size:
        req["image_size"] = list(size) if isinstance(size, (list, tuple)) else [size, size]
    if job.get("kind") == "moe" or "experts" in job:
        req["moe"] = {"implementation": job.get("experts", "grouped_mm"), "load_imbalance": job.get("expert_imbalance", 1.0)}
    if job.get("loss_kind"):
        req["loss"] = job["loss_kind"]
    if job["method"] in ("lora", "qlora"):
        lo = job.get("lora", {})
        if lo.get("target_parameters"):
            experts = ["experts.gate_up_proj", "experts.down_proj"]
            req["adapter"]["target_parameters"] = experts if lo["target_parameters"] == "experts" else lo["target_parameters"]
        if isinstance(lo.get("task_type"), str):
            req["adapter"]["task_type"] = lo["task_type"]           # SEQ_CLS also trains the head (modules_to_save)
        elif "task_type" in lo and class_of(job).endswith(("Classification", "QuestionAnswering")):
            req["adapter"]["task_type"] = "none"                    # the head that the class's task would save is none of PEFT's business


def class_of(job):
    """The class that the recorder builds."""
    return str(job.get("architecture") or (job.get("config", {}).get("architectures") or [""])[0])


def default_size(job):
    """The picture's size where the job leaves it to the config."""
    if not job.get("images") and not job.get("video_frames") and job.get("kind") not in ("vision", "vision-text"):
        return None
    config = job.get("config", {})
    seen = config.get("vision_config") or config.get("encoder") or config
    return seen.get("image_size", 224)


DROPOUTS = ("lora_dropout", "vera_dropout")


def adapter_of(lo):
    """An adapter beside LoRA: PEFT's own words, but for the dtype and for what has one word here."""
    words = {key: value for key, value in lo.items() if key not in ("adapter_dtype", "task_type", "alpha", *DROPOUTS)}
    words.update({"lora_dropout": lo[key] for key in DROPOUTS if key in lo})
    if lo.get("r") == 0 or (lo["kind"] == "oft" and "r" not in lo):
        words.pop("r", None)
    return {**words, **({"dtype": lo["adapter_dtype"]} if "adapter_dtype" in lo else {})}


def attention_of(job):
    """`math` is sdpa held to one kernel, and of no meaning to other attention."""
    return "math" if job.get("sdpa_backend") == "math" and job["attention"] == "sdpa" else job["attention"]


BRIEF = ("cublas_workspace_bytes", "init_bytes", "first_step_peak", "parameters", "sdpa_kernel")


def brief(rec):
    """A record for the truth table alone: peaks by step and phase; the config stands once, in the request."""
    job = {k: v for k, v in rec["job"].items() if k not in ("config", "model")}
    peak = {k: rec["peak"][k] for k in ("phase", "requested512", "allocated", "reserved", "reserved_expandable", "at", "breakdown")}
    return {"job": job, **{k: rec[k] for k in BRIEF}, "steps": {n: rec["steps"][n] for n in ("1", "2", "3")}, "peak": peak}


def write_brief(out, raws):
    """Of two rows with one id the later one counts; ids that OUT has already are replaced where a row is given."""
    rows = {r["id"]: r for r in map(json.loads, open(out))} if os.path.exists(out) else {}
    for path in raws:
        for line in open(path):
            rec = json.loads(line)
            ident = rec["job"]["id"]
            why = rec.get("error") or doubtful(rec)
            if why:
                print("left out:", ident, why[:160])
            else:
                rows[ident] = {"id": ident, "request": request_of(rec["job"]), "record": brief(rec)}
    for ident, row in list(rows.items()):
        why = doubtful({**row["record"], "job": job_of(row)})
        if why:
            print("struck:", ident, why[:160])
            del rows[ident]
    with open(out, "w") as f:
        f.writelines(json.dumps(r, separators=(",", ":")) + "\n" for _, r in sorted(rows.items()))
    print(f"{len(rows)} records in {out}")


def job_of(row):
    """The job of a record, its config (or its model's name) put back where it was left out."""
    job = row["record"]["job"]
    key = "config" if "config" in row["request"] else "model"
    return job if "config" in job or "model" in job else {**job, key: row["request"][key]}


def check(path):
    rows = [json.loads(line) for line in open(path)]
    wrong = [r["id"] for r in rows if request_of(job_of(r)) != r["request"]]
    print(f"{len(rows)} records, {len(wrong)} whose request differs: {wrong[:20]}")
    return 1 if wrong else 0


def doubtful(rec):
    """Why a finished record must not be kept, or None."""
    job = rec["job"]
    lo = job.get("lora", {})
    if (lo.get("kind") in ("ia3", "vera") and job["method"] == "qlora" and job["precision"] in ("bf16", "fp16")
            and job.get("kbit_prepare", True) is not True):
        return "PEFT's layers return fp32 here, which a real product with 16-bit weights refuses"
    if job["attention"] == "flash_attention_2" and "flash" not in rec["sdpa_kernel"]:
        return "flash_attention_2 asked for, but this model has another code path"
    apart = job["precision"] in ("amp_bf16", "amp_fp16", "fp16_bf16_amp")
    if lo.get("kind") == "prefix_tuning" and job["attention"] == "flash_attention_2" and job["method"] == "lora" and apart:
        return "keys behind a prefix are fp32 here, and flash_attn refuses queries of another dtype"
    if "selective" in job["gradient_checkpointing"] and job.get("config", {}).get("model_type") in OWN_ATTENTION:
        return "this model's attention is code of its own: the recorder recomputed nothing"
    if job["loss"].startswith("hf_") and "config" in job:
        right = old_loss(job["config"]["model_type"], job.get("release", FRAMEWORK.get(job["loss"])))
        if job["loss"] != right:
            return f"this family had a loss of its own in old releases: {right}"
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("jobs", nargs="?")
    ap.add_argument("out", nargs="?")
    ap.add_argument("--models")
    ap.add_argument("--chroot", default="/srv/sid")
    ap.add_argument("--check")
    ap.add_argument("--brief", nargs="+", metavar="FILE")
    a = ap.parse_args()
    if a.brief:
        write_brief(a.brief[0], a.brief[1:])
        return
    if a.check:
        sys.exit(check(a.check))
    inside = os.environ.get("ORACLE_DIR", "/o2")
    folder = a.chroot.rstrip("/") + inside
    raw = os.path.join(folder, "make_records.raw.jsonl")
    shutil.copy(a.jobs, os.path.join(folder, "make_records.jobs.jsonl"))
    if a.models:
        shutil.copy(a.models, os.path.join(folder, "models.json"))
    wanted = [json.loads(line) for line in open(a.jobs) if line.strip()]
    if os.path.exists(raw):                          # what is cached there must be for the same job
        same = {job["id"]: job for job in wanted}
        rows = [json.loads(line) for line in open(raw)]
        rows = [r for r in rows if "error" not in r and all(r["job"].get(k) == v for k, v in same.get(r["job"]["id"], {"id": ""}).items())]
        with open(raw, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
    run = [os.path.join(folder, "run.sh"), a.chroot, f"{inside}/make_records.jobs.jsonl", f"{inside}/make_records.raw.jsonl",
           "--models", f"{inside}/models.json"]
    subprocess.run(["nice", "-n", "10", "bash", *run], check=True)
    done = {r["job"]["id"]: r for r in map(json.loads, open(raw))}
    kept = 0
    with open(a.out, "w") as f:
        for job in wanted:
            rec = done[job["id"]]
            why = rec.get("error") or doubtful(rec)
            if why:
                print("left out:", job["id"], why[:160])
                continue
            rec = {k: rec[k] for k in KEPT if k in rec}
            f.write(json.dumps({"id": job["id"], "request": request_of(rec["job"]), "record": rec}, separators=(",", ":")) + "\n")
            kept += 1
    print(f"{kept} of {len(wanted)} records in {a.out}")


if __name__ == "__main__":
    main()
