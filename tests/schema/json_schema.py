"""What of JSON Schema (draft 7) the schemas of this project use; an unknown keyword is an error, not a pass."""
import json

NOTES = {"$schema", "$defs", "title", "description", "default"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_of(value, name):
    """Whether a JSON value has the type; true is no number, and 8.0 is an integer."""
    if name in ("integer", "number"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (name == "number" or float(value).is_integer())
    return isinstance(value, TYPES[name])


def same(a, b):
    return json.dumps(a) == json.dumps(b)  # True == 1 in Python, and not in JSON


class Validator:
    """`used` holds (place in the schema, property) of every property that a valid document had."""

    def __init__(self, schema):
        self.root = schema
        self.used = set()

    def resolve(self, reference):
        at = self.root
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
        return at

    def errors(self, value, schema, place="#", where=""):
        """What is wrong with a document, as sentences; `place` is the schema's, `where` the value's."""
        if isinstance(schema, bool):
            return [] if schema else [f"{where}: nothing may stand here"]
        found = []
        for keyword, argument in schema.items():
            if keyword not in NOTES:
                check = getattr(self, "on_" + keyword.replace("$", ""))
                found += check(value, argument, schema, place, where)
        return found

    def valid(self, value, schema, place, where):
        return not self.errors(value, schema, place, where)

    def on_ref(self, value, argument, _, __, where):
        return self.errors(value, self.resolve(argument), argument, where)

    def on_type(self, value, argument, _, __, where):
        names = [argument] if isinstance(argument, str) else argument
        return [] if any(is_of(value, n) for n in names) else [f"{where}: {json.dumps(value)[:60]} is not {names}"]

    def on_enum(self, value, argument, _, __, where):
        return [] if any(same(value, v) for v in argument) else [f"{where}: {json.dumps(value)[:60]} is no such word"]

    def on_const(self, value, argument, schema, place, where):
        return self.on_enum(value, [argument], schema, place, where)

    def on_properties(self, value, argument, _, place, where):
        found = []
        for key, inner in argument.items():
            if isinstance(value, dict) and key in value:
                self.used.add((place, key))
                found += self.errors(value[key], inner, f"{place}/properties/{key}", f"{where}/{key}")
        return found

    def on_additionalProperties(self, value, argument, schema, place, where):
        if not isinstance(value, dict):
            return []
        found = []
        for key in value.keys() - schema.get("properties", {}).keys():
            found += self.errors(value[key], argument, f"{place}/additionalProperties", f"{where}/{key}")
        return found

    def on_propertyNames(self, value, argument, _, place, where):
        return [e for key in value if isinstance(value, dict) for e in self.errors(key, argument, place, where)]

    def on_required(self, value, argument, _, __, where):
        return [f"{where}: lacks {key}" for key in argument if isinstance(value, dict) and key not in value]

    def on_minProperties(self, value, argument, _, __, where):
        return [f"{where}: too few keys"] if isinstance(value, dict) and len(value) < argument else []

    def on_items(self, value, argument, _, place, where):
        if not isinstance(value, list):
            return []
        return [e for i, item in enumerate(value) for e in self.errors(item, argument, f"{place}/items", f"{where}/{i}")]

    def on_minItems(self, value, argument, _, __, where):
        return [f"{where}: too few"] if isinstance(value, list) and len(value) < argument else []

    def on_maxItems(self, value, argument, _, __, where):
        return [f"{where}: too many"] if isinstance(value, list) and len(value) > argument else []

    def on_minLength(self, value, argument, _, __, where):
        return [f"{where}: too short"] if isinstance(value, str) and len(value) < argument else []

    def on_maxLength(self, value, argument, _, __, where):
        return [f"{where}: too long"] if isinstance(value, str) and len(value) > argument else []

    def on_minimum(self, value, argument, _, __, where):
        return [f"{where}: {value} is below {argument}"] if is_of(value, "number") and value < argument else []

    def on_maximum(self, value, argument, _, __, where):
        return [f"{where}: {value} is above {argument}"] if is_of(value, "number") and value > argument else []

    def on_anyOf(self, value, argument, _, place, where):
        found = []
        for number, schema in enumerate(argument):
            one = self.errors(value, schema, f"{place}/anyOf/{number}", where)
            if not one:
                return []
            found += one
        return found

    def on_allOf(self, value, argument, _, place, where):
        return [e for i, schema in enumerate(argument) for e in self.errors(value, schema, f"{place}/allOf/{i}", where)]

    def on_if(self, value, argument, schema, place, where):
        branch = "then" if self.valid(value, argument, f"{place}/if", where) else "else"
        return self.errors(value, schema.get(branch, True), f"{place}/{branch}", where)

    def on_then(self, *_):
        return []  # with "if"

    on_else = on_then
