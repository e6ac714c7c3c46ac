#!/usr/bin/env python3
"""check_families.py: what a family is stands in its file.

A new family is one file of core/families and its record; no room beside it may ask for a model type by name. Those below
do, and how often: what other packages list by type is theirs to name; the rest may only become less. What a class says
of itself belongs to its row (core/model/class_facts.hpp), what it refuses to its program's `check`.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'\{"([\w-]+)",\s*"\w*",\s*"[A-Z]\w+",\s*k')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')

# Lists that are facts of other packages, by the package.
OF_OTHERS = {
    "core/engine/estimator.cpp": "Liger: MODEL_TYPE_TO_APPLY_LIGER_FN",
    "core/job/check.cpp": "PEFT: Mamba's projections, prefix tuning; lists of experts read from transformers 4.57",
    "core/job/ia3_modules.cpp": "PEFT: feed-forward modules of IA3",
    "core/job/lora_kernels.cpp": "Axolotl: models whose modules it replaces",
    "core/job/peft_targets.cpp": "PEFT: default target modules",
    "core/layers/turned_back.cpp": "Axolotl: names of tables and heads that it turns back to 16 bits",
    "core/step/coverage_table.cpp": "generated from the records",
    "core/step/expert_targets.cpp": "PEFT: names of experts that transformers 5 moved",
}
# Branches that no fact of a row says yet.
KNOWN = {
    "core/job/expert_lists.cpp": 1,  # gpt_oss under Unsloth
    "core/layers/mamba2.cpp": 1,  # a gated norm over all columns
    "core/options/model.cpp": 1,  # the word of a request
    "core/plan/check.cpp": 2,  # who has a base_model_ep_plan
    "core/plan/fully_shard.hpp": 1,  # whose head shares nothing with the table
    "core/plan/zero_gather.cpp": 6,  # the order in which a mixture's modules run
    "core/plan/zero_leaf.cpp": 3,  # DeepSpeed: leaf modules that transformers names
    "core/report/words.cpp": 1,  # Donut's pages
    "core/step/coverage.cpp": 1,  # sd-scripts' own U-Net
}


def model_types():
    rows = [m for path in ROOT.glob("core/families/*.cpp") for m in ROW.findall(path.read_text())]
    assert len(rows) > 150, "the rows of the families are not where they were"
    return set(rows)


def main():
    types = model_types()
    found = collections.Counter()
    for path in sorted(ROOT.glob("core/**/*.[ch]pp")):
        name = path.relative_to(ROOT).as_posix()
        # Other people's files name models; the catalog's names are those.
        if name.startswith(("core/families/", "core/catalog/", "core/exchange/")) or name in OF_OTHERS:
            continue
        words = (word.strip() for text in LITERAL.findall(path.read_text()) for word in text.split(","))
        found[name] += sum(word in types for word in words)
    wrong = {name: n for name, n in found.items() if n != KNOWN.get(name, 0)}
    for name, n in wrong.items():
        print(f"{name} names {n} model types, {KNOWN.get(name, 0)} are known")
    print(f"{len(types)} model types, {sum(KNOWN.values())} named outside their files")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
