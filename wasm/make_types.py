#!/usr/bin/env python3
"""Writes tidemark.d.ts from the two schemas: what a request may hold, and what answers are.

    make_types.py [--check]      --check: only say whether it is up to date

docs/request.schema.json is itself made from the tables of options and verbs (`tidemark schema request`);
core/answer/answer.schema.json is written by hand, and every answer is held to it (tests/schema).
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = ROOT / "wasm/tidemark.d.ts"
WIDTH = 120
NAMES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}

HEAD = """\
// Made by wasm/make_types.py from docs/request.schema.json and core/answer/answer.schema.json: change those.
// What is not said here of an option (labels, units, which are for experts) says `handle({verb: "describe"})`.
"""

TAIL = """
/** The engine. Everything is synchronous, nothing throws on bad input, and nothing leaves the machine. */
export interface Tidemark {
  /** Objects, or the JSON texts of catalog/models.json and catalog/gpus.json. Errors mean that they could not be read. */
  loadCatalog(models: object | string, gpus: object | string): Issue[];

  /** A request in, an answer out. A string is JSON text as somebody wrote it. */
%s
  /** The same as JSON text: what `tidemark estimate --json` prints, byte for byte. */
  handleText(request: Request | string): string;

  /**
   * Allocated bytes (expected) for each pair, one row per micro batch size; NaN where there is no estimate (what is
   * wrong with the request, `handle` tells).
   */
  map(request: Request | string, batches: ArrayLike<number>, sequences: ArrayLike<number>): Float64Array;

  version(): VersionResponse;
}

/**
 * Loads the engine, in browsers, workers and Node. `wasmBinary`: the bytes of tidemark.wasm; without it they are read
 * from beside tidemark.js.
 */
export function createTidemark(options?: { wasmBinary?: ArrayBuffer | Uint8Array }): Promise<Tidemark>;
"""


def literal(value):
    return json.dumps(value, ensure_ascii=False)


def union(types):
    return " | ".join(dict.fromkeys(types))


def list_of(item):
    return f"({item})[]" if " | " in item else f"{item}[]"


def type_of(schema, indent):
    """A schema as a type. Limits have no words in TypeScript; the engine's issues tell of them."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return literal(schema["const"])
    if "enum" in schema:
        return union("never[]" if value == [] else literal(value) for value in schema["enum"])
    if "anyOf" in schema:
        return union(type_of(form, indent) for form in schema["anyOf"])
    kinds = schema.get("type", [])
    return union(of_kind(k, schema, indent) for k in ([kinds] if isinstance(kinds, str) else kinds)) or "unknown"


def of_kind(kind, schema, indent):
    if kind == "array":
        item = type_of(schema["items"], indent)
        fixed = schema.get("minItems") == schema.get("maxItems") and schema.get("minItems")
        return f"[{', '.join([item] * fixed)}]" if fixed else list_of(item)
    if kind != "object":
        return NAMES[kind]
    if "properties" in schema:
        return "{\n" + members(schema, indent + "  ") + indent + "}"
    more = schema.get("additionalProperties")
    if more is None:
        return "object"
    return f"Record<string, {'unknown' if more is True else type_of(more, indent)}>"


def comment(schema, indent):
    text = schema.get("description", "").replace("*/", "* /")
    if schema.get("default") is not None:
        text += f" @default {literal(schema['default'])}"
    if not text:
        return ""
    if len(indent + text) + 8 <= WIDTH:
        return f"{indent}/** {text} */\n"
    lines, line = [], ""
    for word in text.split():
        if line and len(indent) + 3 + len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = word
        else:
            line += (" " if line else "") + word
    return f"{indent}/**\n" + "".join(f"{indent} * {part}\n" for part in [*lines, line]) + f"{indent} */\n"


def member(name, schema, required, indent):
    key = name if name.isidentifier() else literal(name)
    return f"{comment(schema, indent)}{indent}{key}{'' if required else '?'}: {type_of(schema, indent)};\n"


def members(schema, indent):
    required = schema.get("required", [])
    return "".join(member(name, inner, name in required, indent) for name, inner in schema["properties"].items())


def definition(name, schema):
    if "properties" in schema:
        return f"\n{comment(schema, '')}export interface {name} {{\n{members(schema, '  ')}}}\n"
    return f"\n{comment(schema, '')}export type {name} = {type_of(schema, '')};\n"


def verbs_of(schema):
    """{verb: (whether it is about a job, its own keys)}, from the rules "if the verb is …" of the requests' schema."""
    verbs = {name: (True, []) for name in schema["properties"]["verb"]["enum"] if name}
    for rule in schema["allOf"]:
        verbs[rule["if"]["properties"]["verb"]["const"]] = (
            "then" not in rule, list(rule.get("else", {}).get("properties", {})))
    return verbs


def requests(schema):
    verbs, properties = verbs_of(schema), schema["properties"]
    own = {"schema", "verb"}.union(*(keys for _, keys in verbs.values()))
    job = {"description": "What is trained, and how. Everything has a default; `null` stands for it.",
           "properties": {name: inner for name, inner in properties.items() if name not in own}}
    text = "".join(definition(name, inner) for name, inner in schema["$defs"].items()) + definition("Job", job)
    for verb, (of_job, keys) in verbs.items():
        standard = verb == properties["verb"]["default"]
        text += f"\n/** Of the verb \"{verb}\". */\nexport interface {verb.capitalize()}Request"
        text += (" extends Job" if of_job else "") + " {\n" + member("schema", properties["schema"], False, "  ")
        text += f"  verb{'?' if standard else ''}: {literal(verb)}{' | null' if standard else ''};\n"
        text += "".join(member(key, properties[key], False, "  ") for key in keys) + "}\n"
    return text + "\nexport type Request =\n  | " + "\n  | ".join(f"{v.capitalize()}Request" for v in verbs) + ";\n"


def overloads(verbs, standard):
    """A request of one verb has that verb's answer; text may be of any, and is taken for the usual one."""
    lines = []
    for verb in sorted(verbs, key=lambda verb: verb == standard):
        name = verb.capitalize()
        lines.append(f"  handle(request: {name}Request{' | string' if verb == standard else ''}): {name}Response;\n")
    return "".join(lines) + "  handle(request: Request | string): Answer;\n"


def declarations():
    request = json.loads((ROOT / "docs/request.schema.json").read_text(encoding="utf-8"))
    answer = json.loads((ROOT / "core/answer/answer.schema.json").read_text(encoding="utf-8"))
    text = HEAD + requests(request)
    text += "".join(definition(name, schema) for name, schema in answer["$defs"].items())
    text += "\nexport type Response = EstimateResponse;\n\n/** An answer to any verb. */\nexport type Answer =\n"
    text += "".join(f"  | {type_of(form, '')}\n" for form in answer["anyOf"])[:-1] + ";\n"
    return text + TAIL % overloads(verbs_of(request), request["properties"]["verb"]["default"])


def main():
    text = declarations()
    if sys.argv[1:] == ["--check"]:
        old = TYPES.read_text(encoding="utf-8")
        if old != text:
            print("wasm/tidemark.d.ts is not what wasm/make_types.py writes")
        return int(old != text)
    TYPES.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
