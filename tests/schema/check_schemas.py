#!/usr/bin/env python3
"""The schemas hold, both ways, over the golden, recorded and drawn requests and those of requests.jsonl.

    check_schemas.py TIDEMARK HANDLE     (build/bin/tidemark build/bin/tidemark_handle)

Answers: each is valid by the answers' schema, which allows no key that it does not name; and each key that it names
stands in some answer. Requests: what is answered without complaint is valid by the requests' schema; what the engine
does not know (UNKNOWN_KEY, UNSUPPORTED_OPTION) is not.
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/frozen"))
sys.path.insert(0, str(HERE))
import check as frozen  # noqa: E402
from json_schema import Validator  # noqa: E402

UNKNOWN = {"UNKNOWN_KEY", "UNSUPPORTED_OPTION", "UNSUPPORTED_SCHEMA", "UNSUPPORTED_VERB"}


def schema_of(tidemark, which):
    run = subprocess.run([tidemark, "schema", which], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def requests():
    """(name, request's text): all of this folder, of the others one in eight."""
    for number, line in enumerate((HERE / "requests.jsonl").read_text(encoding="utf-8").splitlines(), 1):
        yield f"schema/requests:{number}", line
    for number, (name, text) in enumerate(frozen.requests()):
        if number % 8 == 0 or name.startswith("golden"):
            yield name, text


def ask(handle, asked):
    lines = "".join(text + "\n" for _, text in asked)
    run = subprocess.run([handle, str(ROOT / "catalog")], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def definition_of(request):
    verb = request.get("verb") or "estimate" if isinstance(request, dict) else "estimate"
    return f"{str(verb).capitalize()}Response"


def properties_of(schema, place="#"):
    """(place, property) of every property that a schema names."""
    if isinstance(schema, dict):
        for key in schema.get("properties", {}):
            yield place, key
        for key, inner in schema.items():
            yield from properties_of(inner, f"{place}/{key}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from properties_of(inner, f"{place}/{number}")


def document(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None  # the golden requests have broken ones


def check_answer(validator, request, answer):
    name = definition_of(request)
    if name not in validator.root["$defs"]:
        name = "EstimateResponse"  # a verb that nobody knows is refused in the same form
    return validator.errors(answer, {"$ref": f"#/$defs/{name}"})


def check_request(validator, request, answer):
    issues = answer.get("issues", [])
    unknown = [i for i in issues if i["code"] in UNKNOWN and not i["path"].startswith("/config")]
    wrong = validator.errors(request, validator.root)
    if wrong and not unknown and all(i["severity"] == "note" for i in issues):
        return [f"answered without complaint, and not valid: {wrong[:3]}"]
    if unknown and not wrong:
        return [f"valid, and not known: {unknown[:2]}"]
    return []


def main():
    tidemark, handle = sys.argv[1:]
    answers, questions = Validator(schema_of(tidemark, "answer")), Validator(schema_of(tidemark, "request"))
    asked = list(requests())
    replies = ask(handle, asked)
    failures = [] if len(replies) == len(asked) else [f"{len(replies)} answers to {len(asked)} requests"]
    for (name, text), answer in zip(asked, replies):
        request = document(text)
        wrong = check_answer(answers, request, answer)
        if isinstance(request, dict):
            wrong += check_request(questions, request, answer)
        failures += [f"{name}: {text[:200]}\n    {w}" for w in wrong]
    named = set(properties_of(answers.root["$defs"], "#/$defs"))
    failures += [f"no answer has {place}/properties/{key}" for place, key in sorted(named - answers.used)]
    for failure in failures[:40]:
        print(f"FAILED: {failure}")
    print(f"{len(asked)} requests, {len(named)} keys of answers: {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
