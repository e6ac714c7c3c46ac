#!/usr/bin/env python3
"""pairs.py draw MODELS.json AMOUNT SEED > jobs.jsonl     jobs drawn at random over families and options
pairs.py cover MODELS.json SEED [HAVE.jsonl...] > jobs.jsonl   a small set that meets every pair of values no job of HAVE meets
pairs.py missing HAVE.jsonl...                              the pairs that no record meets
tidemark describe --json | pairs.py check UNMET.txt HAVE.jsonl...   fails when a pair is missing that UNMET.txt does not name, when one that it
                                                            names is met, or when FACTORS and UNRECORDED lack a word of the option table

FACTORS lists, option by option, the values whose combinations a record can hold; a pair is one value of each of two
options.  What a framework refuses is no pair (`possible`).  Two interacting options explain nearly all faults of such
programs (Kuhn, Wallace, Gallo: Software Fault Interactions, IEEE TSE 30(6), 2004), so pairs are what is held.
"""
import itertools
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "recorder")]

import extra_jobs  # noqa: E402
import make_records  # noqa: E402
import more_families  # noqa: E402
import trace_config  # noqa: E402

# In the recorder's words (recorder/record.py); "checkpointing" is gradient_checkpointing and use_reentrant in one, "adapter" the kind of
# LoRA, "release" the transformers whose loss runs.
FACTORS = {
    "method": ["full", "lora", "qlora"],
    "precision": ["fp32", "bf16", "fp16", "bf16_amp", "fp16_bf16_amp", "amp_bf16", "amp_fp16"],
    "attention": ["eager", "sdpa", "flash_attention_2", "math"],
    "checkpointing": ["none", "full", "reentrant", "every", "core_attn", "offload", "offload_reentrant"],
    "loss": ["default", "liger_flce"],
    "release": ["5.12", "4.46", "4.44"],
    "optimizer": ["adamw_torch_fused", "adamw_torch", "adamw_8bit", "paged_adamw_8bit", "adamw_32bit", "paged_adamw_32bit", "adafactor", "sgd",
                  "sgd_momentum", "lion_32bit", "lion_8bit", "paged_lion_32bit", "paged_lion_8bit", "adagrad", "rmsprop", "adamw_hf"],
    "adapter": ["none", "fp32", "half", "dropout", "attention", "dora", "saved"],
    "quantization": ["none", "double", "single", "eight"],
    "kbit_prepare": ["none", "true", "false", "norms"],
    "padding": [False, True],
    "grad_accum": [1, 2],
    "max_grad_norm": [1.0, 0.0],
    "keep_outputs": [False, True],
    "outputs_fp32": [True, False],
    "zero_grad_to_none": [True, False],
    "arch": [80, 75, 90],
}
# Words of the option table (`describe`) that the recorder cannot run, and why; the engine answers them with a wider range and a note.
UNRECORDED = {
    "method": {"freeze": "full training with `freeze`; which modules is no option's value",
               **{word: "records-adapters.jsonl" for word in ("oft", "qoft", "boft", "ia3", "adalora", "loha", "lokr", "vera", "prompt_tuning",
                                                              "p_tuning")},
               "ln_tuning": "trains copies of norms, as modules_to_save does"},
    "precision": {"bf16": "auto with bf16=True", "fp16": "auto with fp16=True", "deepspeed_bf16": "DeepSpeed's optimizer",
                  "deepspeed_fp16": "the same: records-multi.jsonl by its parts",
                  "megatron_bf16": "Megatron-LM's optimizer", "fsdp_bf16": "of several GPUs: records-multi.jsonl"},
    "attention": {"flash_attention_3": "no stand-in", "xformers": "transformers has no such implementation",
                  "flex_attention": "flash_attention_2 answers, with a stand-in's range", "flash_attention_4": "the same"},
    "loss": {"mean_square": "of a body without a head: records-beyond.jsonl",
             "chunked": "TRL's loss, no stand-in", "cut_cross_entropy": "Apple's kernels, no stand-in"},
    "optimizer": {**{word: "records-optimizers.jsonl" for word in (
                      "adamw_torch_8bit", "adamw_torch_4bit", "galore_adamw", "galore_adamw_8bit", "galore_adafactor", "galore_adamw_layerwise",
                      "galore_adamw_8bit_layerwise", "apollo_adamw", "apollo_adamw_layerwise", "adam_mini", "muon", "ademamix", "ademamix_8bit",
                      "paged_ademamix_32bit", "paged_ademamix_8bit", "schedule_free_adamw", "schedule_free_radam", "schedule_free_sgd",
                      "rmsprop_bnb_8bit", "rmsprop_bnb_32bit", "grokadamw", "came_pytorch", "lomo", "adalomo", "adopt_adamw",
                      "ao_adamw_fp8", "adamw_anyprecision", "lorafa", "badam", "dion", "q_galore_adamw8bit", "prodigy")},
                  "stable_adamw": "Triton kernels, no stand-in", "optimi_adamw": "Triton kernels, no stand-in"},
}
# The option table's word for each of the recorder's, where they differ.
WORDS = {"bf16": "pure_bf16", "fp16": "pure_fp16", "liger_flce": "liger", "adamw_32bit": "adamw_bnb_32bit"}


def possible(case):
    """Would the frameworks run this?  `case` may be partial."""
    def clash(**values):
        return all(case.get(key) in (value if isinstance(value, tuple) else (value,)) for key, value in values.items())
    adapters = tuple(v for v in FACTORS["adapter"] if v != "none")
    packed = tuple(v for v in FACTORS["quantization"] if v != "none")
    prepared = tuple(v for v in FACTORS["kbit_prepare"] if v != "none")
    return not (
        clash(method="full", adapter=adapters) or clash(method=("lora", "qlora"), adapter="none")
        or clash(method=("full", "lora"), quantization=packed) or clash(method="qlora", quantization="none")
        or clash(method=("full", "lora"), kbit_prepare=prepared) or clash(method="qlora", kbit_prepare="none")
        or clash(quantization="none", kbit_prepare=prepared) or clash(quantization=packed, kbit_prepare="none")
        or clash(quantization=packed, adapter="none") or clash(kbit_prepare=prepared, adapter="none")
        or clash(attention="flash_attention_2", precision="fp32")            # flash-attn takes 16-bit inputs only
        or clash(attention="flash_attention_2", arch=75)                     # and compute capability 8.0
        or clash(precision=("fp32", "bf16", "fp16"), outputs_fp32=False)     # only autocast's outputs are converted
        or clash(precision=("bf16", "bf16_amp", "fp16_bf16_amp", "amp_bf16"), arch=75)        # no bf16 before Ampere
        or clash(precision="fp16", kbit_prepare=("true", "norms"))           # fp32 parts meet fp16 ones without autocast
        or clash(precision="bf16", kbit_prepare="norms")
        or clash(attention="math", checkpointing="core_attn"))               # one function is patched, not both


def value_of(job, factor):
    """The value of a factor in a recorder's job, defaults of record.py filled in; None: the job says something else."""
    lo = job.get("lora", {})
    adapted = job.get("method", "full") in ("lora", "qlora")
    if factor == "checkpointing":
        kind = job.get("gradient_checkpointing", "none")
        again = job.get("use_reentrant", False)
        if isinstance(kind, dict):
            return "every" if "every" in kind else "core_attn"
        return {"none": "none", "full": "reentrant" if again else "full", "offload": "offload_reentrant" if again else "offload"}[kind]
    if factor == "adapter":
        if not adapted:
            return "none"
        if lo.get("use_dora"):
            return "dora"
        if lo.get("modules_to_save"):
            return "saved"
        if lo.get("dropout"):
            return "dropout"
        if lo.get("target_modules", "all-linear") != "all-linear":
            return "attention"
        return "fp32" if lo.get("adapter_dtype", "fp32") == "fp32" else "half"
    if factor == "quantization":
        if job.get("method") != "qlora":
            return "none"
        return "eight" if job.get("bits") == 8 else "double" if job.get("double_quant", True) else "single"
    if factor == "kbit_prepare":
        return {True: "true", False: "false"}.get(job.get("kbit_prepare", True), job.get("kbit_prepare")) if job.get("method") == "qlora" else "none"
    if factor == "attention":
        return "math" if job.get("sdpa_backend") == "math" else job.get("attention", "sdpa")
    if factor == "release":
        return job.get("release") or {"hf_4_44": "4.44", "hf_4_46": "4.46"}.get(job.get("loss"), "5.12")
    if factor == "loss":
        loss = job.get("loss", "default")
        return "default" if loss.startswith("hf_") else loss
    return job.get(factor, {"method": "full", "precision": "bf16", "optimizer": "adamw_torch_fused", "arch": 80}.get(factor, FACTORS[factor][0]))


def case_of(job):
    return {factor: value_of(job, factor) for factor in FACTORS}


def pairs_of(case):
    items = [(k, case[k]) for k in FACTORS if k in case]
    return {(a, b) for a, b in itertools.combinations(items, 2)}


def all_pairs():
    """Every pair that can occur in some possible job."""
    wanted = set()
    for (f, a), (g, b) in itertools.combinations([(f, v) for f in FACTORS for v in FACTORS[f]], 2):
        if f != g and possible({f: a, g: b}) and completed({f: a, g: b}, random.Random(1)):
            wanted.add(((f, a), (g, b)))
    return wanted


def completed(partial, dice, tries=200):
    """A possible case with these values, the others drawn; None if there is none."""
    for _ in range(tries):
        case = dict(partial)
        for factor in FACTORS:
            if factor not in case:
                fitting = [v for v in FACTORS[factor] if possible({**case, factor: v})]
                if not fitting:
                    break
                # most jobs leave such switches alone, and one of them must not hide what another does
                plain = fitting[0]
                case[factor] = plain if factor in RARE and dice.random() < RARE[factor] else dice.choice(fitting)
        else:
            return case
    return None


RARE = {"keep_outputs": 0.85, "outputs_fp32": 0.85, "zero_grad_to_none": 0.85, "max_grad_norm": 0.8, "release": 0.6, "loss": 0.5, "arch": 0.8,
        "grad_accum": 0.7}


def families(table):
    """name -> (config, attention-only targets, implementations beside eager)"""
    listed = {name: (table[source] if isinstance(source, str) else source, targets, attns)
              for name, (source, _, targets, attns) in extra_jobs.FAMILIES.items()}
    return {**listed, **more_families.DECODERS, **more_families.ENCODERS}


def job_of(ident, case, family, dice, small=True):
    """One job of the recorder for a case."""
    config, targets, attns = family
    layers = 3 if case["checkpointing"] == "every" else 2
    config = trace_config.shrink(config, layers)
    if config["model_type"] == "gpt_neo":
        config["attention_types"] = [[["global", "local"], 1]] if layers == 2 else [[["global"], 1], [["local"], 2]]
    encodes = more_families.is_encoder(config)
    if small and not encodes and dice.random() < 0.6:
        config["vocab_size"] = 4096                       # else the loss hides the layers
        for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
            config[key] = 1
    tokens = dice.choice([(1, 512), (1, 1000), (2, 256), (2, 384), (3, 320), (1, 1536)])
    job = {"id": ident, "config": config, "method": case["method"], "precision": case["precision"], "micro_batch": tokens[0], "seq_len": tokens[1],
           "padding": case["padding"], "optimizer": case["optimizer"], "grad_accum": case["grad_accum"], "max_grad_norm": case["max_grad_norm"],
           "attention": "sdpa" if case["attention"] == "math" else case["attention"], "loss": case["loss"], "arch": case["arch"]}
    if encodes:
        job["architecture"] = config.pop("architectures")[0]
    if case["attention"] == "math":
        job["sdpa_backend"] = "math"
    kind = case["checkpointing"]
    job["gradient_checkpointing"] = {"none": "none", "full": "full", "reentrant": "full", "every": {"every": 2},
                                     "core_attn": {"selective": ["core_attn"]}, "offload": "offload", "offload_reentrant": "offload"}[kind]
    job["use_reentrant"] = kind.endswith("reentrant")
    if case["release"] != "5.12":
        job["release"] = case["release"]
        if case["loss"] == "default":
            job["loss"] = make_records.old_loss(config["model_type"], case["release"])
    if case["method"] != "full":
        job["lora"] = {**lora_of(case, targets, dice), **({"task_type": more_families.task_of(family[0])} if encodes else {})}
    if case["method"] == "qlora":
        job["kbit_prepare"] = {"true": True, "false": False}.get(case["kbit_prepare"], case["kbit_prepare"])
        job["double_quant"] = case["quantization"] != "single"
        if case["quantization"] == "eight":
            job["bits"] = 8
    for key in ("keep_outputs", "outputs_fp32", "zero_grad_to_none"):
        if case[key] != FACTORS[key][0]:
            job[key] = case[key]
    return job


def lora_of(case, targets, dice):
    kind = case["adapter"]
    lo = {"r": dice.choice([8, 16, 64]), "alpha": 16, "target_modules": targets if kind == "attention" else "all-linear",
          "dropout": 0.05 if kind == "dropout" else 0.0,
          "adapter_dtype": "fp32" if kind != "half" else "fp16" if "fp16" in case["precision"] else "bf16"}
    if kind == "dora":
        lo["use_dora"] = True
    if kind == "saved":
        lo["modules_to_save"] = ["lm_head"]
    return lo


def fits_family(case, family):
    config, _, attentions = family
    if more_families.is_encoder(config):
        # their files changed little since 4.44, but no loss of theirs did; QLoRA would pack a classifier's new head
        task = more_families.task_of(config)
        if case["loss"] != "default" or case["release"] != "5.12" or case["adapter"] == "saved" or (task and case["method"] == "qlora"):
            return False
    if case["checkpointing"] == "core_attn" and config["model_type"] in make_records.OWN_ATTENTION:
        return False
    if config["model_type"] == "gpt_neo" and case["loss"] == "default" and case["release"] != "5.12":
        return False
    return case["attention"] in ("eager", *attentions) or case["attention"] == "math" and "flash_attention_2" in attentions


def draw(table, amount, seed):
    dice = random.Random(seed)
    every = families(table)
    names = sorted(every)
    made = 0
    while made < amount:
        case = completed({}, dice)
        name = dice.choice(names)
        if case is None or not fits_family(case, every[name]):
            continue
        print(json.dumps(job_of(f"draw{seed}-{made:03d}-{name}", case, every[name], dice)))
        made += 1


def jobs_in(paths):
    for path in paths:
        for line in open(path, encoding="utf-8"):
            row = json.loads(line)
            if "error" not in row:
                yield row["record"]["job"] if "record" in row else row.get("job", row)


def unmet(paths):
    left = all_pairs()
    for job in jobs_in(paths):
        left -= pairs_of(case_of(job))
    return left


def cover(table, seed, have):
    dice = random.Random(seed)
    every = families(table)
    left = unmet(have)
    names = sorted(every)
    dice.shuffle(names)
    for count in itertools.count():
        if not left:
            return
        case = best_case(left, dice)
        fitting = [n for n in names if fits_family(case, every[n])]
        name = fitting[0]
        names.remove(name)                               # families in turn
        names.append(name)
        left -= pairs_of(case)
        print(json.dumps(job_of(f"pair{seed}-{count:03d}-{name}", case, every[name], dice)))


def best_case(left, dice, tries=30):
    """Of some cases that all meet one pair still wanted, the one that meets most others."""
    wanted = sorted(left, key=str)
    drawn = []
    while not drawn:
        for _ in range(tries):
            a, b = dice.choice(wanted)
            case = completed({a[0]: a[1], b[0]: b[1]}, dice)
            if case:
                drawn.append(case)
    return max(drawn, key=lambda case: len(pairs_of(case) & left))


def unlisted(description):
    """Words that the engine answers and this page does not know of: a new optimizer must come with its records, or with a reason."""
    lines = []
    for option in description["options"]:
        known = FACTORS.get(option["name"])
        if known is None or not option.get("values"):
            continue
        known = {WORDS.get(word, word) for word in known} | set(UNRECORDED.get(option["name"], {})) | {"auto"}
        lines += [f"{option['name']} {v['name']}: neither recorded nor excused in tests/oracle/pairs.py"
                  for v in option["values"] if v.get("modelled", True) and v["name"] not in known]
    return lines


def missing(have):
    return [f"{a[0]}={a[1]} with {b[0]}={b[1]}" for a, b in sorted(unmet(have), key=str)]


def check(description, allowed, have):
    """UNMET.txt holds the pairs still without a record: it may only shrink."""
    now, before = set(missing(have)), set(open(allowed, encoding="utf-8").read().split("\n")) - {""}
    complaints = [f"no record any more: {p}" for p in sorted(now - before)] + [f"met, strike it from {allowed}: {p}" for p in sorted(before - now)]
    complaints += unlisted(description)
    print("\n".join(complaints) or f"{len(now)} pairs of options without a record, as listed")
    return 1 if complaints else 0


def main():
    verb, rest = sys.argv[1], sys.argv[2:]
    if verb == "missing":
        print("\n".join(missing(rest)))
        return
    if verb == "check":
        sys.exit(check(json.load(sys.stdin), rest[0], rest[1:]))
    table = {row["id"]: row["config"] for row in json.load(open(rest[0], encoding="utf-8"))}
    if verb == "draw":
        draw(table, int(rest[1]), int(rest[2]))
    else:
        cover(table, int(rest[1]), rest[2:])


if __name__ == "__main__":
    main()
