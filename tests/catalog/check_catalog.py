#!/usr/bin/env python3
"""Checks catalog/*.json against their schemas and against themselves. Python's standard library only.

    python3 tests/catalog/check_catalog.py
"""
import json
import pathlib
import re
import sys

CATALOG = pathlib.Path(__file__).resolve().parents[2] / "catalog"
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


class Checker:
    """As much of JSON Schema as ours use; an unknown keyword is an error, so that none is silently ignored."""

    def __init__(self, schema):
        self.root, self.errors = schema, []

    def fail(self, path, message):
        self.errors.append(f"{path or '/'}: {message}")

    def check(self, value, schema, path=""):
        if "$ref" in schema:
            target = self.root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            self.check(value, target, path)
        for keyword, wanted in schema.items():
            if keyword not in ("$ref", "$schema", "$defs", "title", "description", "items", "properties"):
                getattr(self, "check_" + keyword)(value, wanted, path)
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            for key, member in value.items():
                if key in properties:
                    self.check(member, properties[key], f"{path}/{key}")
                elif schema.get("additionalProperties") is False:
                    self.fail(path, f"unknown key {key!r}")
        if isinstance(value, list) and "items" in schema:
            for n, item in enumerate(value):
                self.check(item, schema["items"], f"{path}/{n}")

    def check_type(self, value, wanted, path):
        if not isinstance(value, TYPES[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
            self.fail(path, f"not of type {wanted}")

    def check_const(self, value, wanted, path):
        if type(value) is not type(wanted) or value != wanted:
            self.fail(path, f"not {wanted!r}")

    def check_enum(self, value, wanted, path):
        if value not in wanted:
            self.fail(path, f"{value!r} is not one of {wanted}")

    def check_required(self, value, wanted, path):
        for key in wanted:
            if isinstance(value, dict) and key not in value:
                self.fail(path, f"{key!r} is missing")

    def check_pattern(self, value, wanted, path):
        if isinstance(value, str) and not re.search(wanted, value):
            self.fail(path, f"{value!r} does not match {wanted}")

    def check_minimum(self, value, wanted, path):
        if isinstance(value, (int, float)) and value < wanted:
            self.fail(path, f"{value} is below {wanted}")

    def check_maximum(self, value, wanted, path):
        if isinstance(value, (int, float)) and value > wanted:
            self.fail(path, f"{value} is above {wanted}")

    def check_minLength(self, value, wanted, path):
        if isinstance(value, str) and len(value) < wanted:
            self.fail(path, "is empty")

    def check_minItems(self, value, wanted, path):
        if isinstance(value, list) and len(value) < wanted:
            self.fail(path, f"has fewer than {wanted} items")

    def check_uniqueItems(self, value, wanted, path):
        if wanted and isinstance(value, list) and len({json.dumps(v) for v in value}) != len(value):
            self.fail(path, "repeats an item")

    def check_additionalProperties(self, value, wanted, path):
        if wanted is not False:
            self.fail(path, "this checker knows only additionalProperties: false")


def claim(names, name, owner, errors):
    other = names.setdefault(name, owner)
    if other != owner:
        errors.append(f"{owner}: the name {name!r} already belongs to {other}")


def check_models(document, errors):
    names = {}
    for model in document["models"]:
        if model["id"].lower() in names:
            errors.append(f"{model['id']}: listed twice")
        claim(names, model["id"].lower(), model["id"], errors)
    for key in ("aliases", "same_arch_ids"):
        for model in document["models"]:
            for name in model.get(key, []):
                claim(names, name.lower(), model["id"], errors)
    for model in document["models"]:
        where, parameters = model["id"], model["parameters"]
        computed, published = parameters.get("computed"), parameters["published"]
        for p in published:
            if computed is not None and p.get("delta") != p["count"] - computed:
                errors.append(f"{where}: delta of {p['count']} is not count - computed")
            if computed is not None and "explanation" not in p:
                errors.append(f"{where}: the published {p['count']} is not explained")
        deltas = [p.get("delta") for p in published]
        expected = ("not_computed" if computed is None else
                    "exact" if 0 in deltas else "explained" if deltas else model["check"])
        if model["check"] != expected or (not deltas and model["check"] in ("exact", "explained")):
            errors.append(f"{where}: check is {model['check']!r}, the published counts say {expected!r}")
        if parameters.get("active", 0) > (computed or 0):
            errors.append(f"{where}: more active than total parameters")
        if "text" in parameters and parameters["text"] + parameters["vision"] > computed:
            errors.append(f"{where}: text and vision exceed the total")
        check_config(where, model["config"], errors)


def check_config(where, config, errors, path="config"):
    for key, value in config.items():
        if isinstance(value, dict):
            check_config(where, value, errors, f"{path}.{key}")
        sized = re.search(r"(hidden_size|intermediate_size|vocab_size|_layers|_heads|head_dim|d_model|d_ff)$", key)
        if sized and isinstance(value, int) and not isinstance(value, bool) and not 0 <= value < 2_000_000:
            errors.append(f"{where}: {path}.{key} = {value}")
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    kv_heads = config.get("num_key_value_heads")
    if hidden and heads and "head_dim" not in config and "kv_lora_rank" not in config and hidden % heads:
        errors.append(f"{where}: {path}: {heads} heads do not divide {hidden}")
    if heads and isinstance(kv_heads, int) and heads % kv_heads:
        errors.append(f"{where}: {path}: {kv_heads} key-value heads do not divide {heads} heads")


# core/runtime/gpu.cpp: gpu_key
VENDOR_PREFIXES = ("nvidia", "geforce", "rtx", "gtx", "tesla", "quadro", "amd", "instinct", "radeon", "rx", "intel",
                   "apple", "google", "aws")


def gpu_key(name):
    key = re.sub(r"[^a-z0-9+]", "", name.lower())
    while True:
        prefix = next((p for p in VENDOR_PREFIXES if key.startswith(p) and len(key) > len(p)), None)
        if prefix is None:
            return key
        key = key[len(prefix):]


def check_gpus(document, errors):
    names = {}
    for gpu in document["gpus"]:
        where, usable = gpu["name"], gpu.get("usable", {})
        for name in [gpu["name"]] + gpu["aliases"]:
            claim(names, gpu_key(name), where, errors)
        spellings = [n.lower() for n in [gpu["name"]] + gpu["aliases"]]
        if len(set(spellings)) != len(spellings):
            errors.append(f"{where}: an alias repeats a name")
        marketed = gpu["memory_gb"] * 1024
        for key in ("nvidia_smi_mib", "torch_visible_mib", "torch_visible_windows_mib"):
            for value in usable.get(key, []):
                if not 0.9 * marketed < value <= 1.02 * marketed:
                    errors.append(f"{where}: {key} {value} is far from {marketed}")
        seen = usable.get("torch_visible_mib", [])
        if seen != sorted(seen):
            errors.append(f"{where}: torch_visible_mib is not ascending")
        if seen and usable.get("nvidia_smi_mib") and max(seen) > max(usable["nvidia_smi_mib"]):
            errors.append(f"{where}: torch sees more than the board has")
        if gpu.get("memory_options_gb") and max(gpu["memory_options_gb"]) != gpu["memory_gb"]:
            errors.append(f"{where}: memory_gb is not the largest option")
        if gpu["vendor"] == "NVIDIA" and "compute_capability" not in gpu:
            errors.append(f"{where}: an NVIDIA GPU without compute capability")


def no_constant(word):
    raise ValueError(f"{word} is Python, not JSON")


def main():
    failed = False
    for name, check in (("models", check_models), ("gpus", check_gpus)):
        text = (CATALOG / f"{name}.json").read_text(encoding="ascii")
        document = json.loads(text, parse_constant=no_constant)
        checker = Checker(json.loads((CATALOG / "schema" / f"{name}.schema.json").read_text()))
        checker.check(document, checker.root)
        errors = list(checker.errors)
        if not errors:
            check(document, errors)
        if len(text.splitlines()) != len(document[name]) + 6:
            errors.append("not one entry a line")
        for error in errors:
            print(f"{name}.json: {error}", file=sys.stderr)
        failed = failed or bool(errors)
        print(f"{name}.json: {len(document[name])} entries, {len(errors)} errors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
