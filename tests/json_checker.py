"""As much of JSON Schema (draft 2020-12) as ``profiles/schema.json`` uses."""

import re

TYPES = {
    "null": type(None), "boolean": bool, "integer": int, "number": (int, float), "string": str,
    "array": list, "object": dict,
}  # fmt: skip
NOTES = {"description", "title", "$schema", "$defs"}


def errors(value, schema, root, where=""):
    """What is wrong with a value; unknown keywords of the schema are refused."""
    if isinstance(schema, bool):
        return [] if schema else [f"{where}: not allowed"]
    found = []
    for keyword, rule in schema.items():
        if keyword not in NOTES and keyword != "then":
            found += CHECKS[keyword](value, rule, schema, root, where)
    return found


def same(a, b):
    """Equality of JSON: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def is_of(value, name):
    number = name in ("integer", "number")
    return isinstance(value, TYPES[name]) and not (number and isinstance(value, bool))


def check(holds):
    """A keyword that a value meets or not."""

    def checked(value, rule, schema, root, where):
        return [] if holds(value, rule) else [f"{where}: {value!r} is not {rule}"]

    return checked


def ref(value, rule, schema, root, where):
    return errors(value, root["$defs"][rule.removeprefix("#/$defs/")], root, where)


def any_of(value, rule, schema, root, where):
    tried = [errors(value, option, root, where) for option in rule]
    return [] if [] in tried else min(tried, key=len)


def all_of(value, rule, schema, root, where):
    return [error for part in rule for error in errors(value, part, root, where)]


def if_then(value, rule, schema, root, where):
    return [] if errors(value, rule, root, where) else errors(value, schema["then"], root, where)


def not_(value, rule, schema, root, where):
    return [] if errors(value, rule, root, where) else [f"{where}: must not be {rule}"]


def properties(value, rule, schema, root, where):
    pairs = value.items() if isinstance(value, dict) else ()
    return [e for k, v in pairs if k in rule for e in errors(v, rule[k], root, f"{where}.{k}")]


def patterns(value, rule, schema, root, where):
    pairs = value.items() if isinstance(value, dict) else ()
    return [e for k, v in pairs for pattern, one in rule.items() if re.search(pattern, k)
            for e in errors(v, one, root, f"{where}.{k}")]  # fmt: skip


def additional(value, rule, schema, root, where):
    pairs = value.items() if isinstance(value, dict) else ()
    known = schema.get("properties", {})
    return [e for k, v in pairs if k not in known for e in errors(v, rule, root, f"{where}.{k}")]


def property_names(value, rule, schema, root, where):
    return [e for k in value for e in errors(k, rule, root, f"{where}.{k}")]


def items(value, rule, schema, root, where):
    found = enumerate(value) if isinstance(value, list) else ()
    return [e for n, v in found for e in errors(v, rule, root, f"{where}.{n}")]


def prefix_items(value, rule, schema, root, where):
    found = enumerate(zip(value, rule, strict=False)) if isinstance(value, list) else ()
    return [e for n, (v, one) in found for e in errors(v, one, root, f"{where}.{n}")]


def numeric(holds):
    return check(lambda v, rule: not is_of(v, "number") or holds(v, rule))


def sized(holds):
    return check(lambda v, rule: not isinstance(v, (list, str)) or holds(len(v), rule))


CHECKS = {
    "type": check(is_of),
    "enum": check(lambda v, rule: any(same(v, one) for one in rule)),
    "const": check(same),
    "required": check(lambda v, rule: not isinstance(v, dict) or set(rule) <= set(v)),
    "minimum": numeric(lambda v, rule: v >= rule),
    "maximum": numeric(lambda v, rule: v <= rule),
    "exclusiveMinimum": numeric(lambda v, rule: v > rule),
    "exclusiveMaximum": numeric(lambda v, rule: v < rule),
    "minItems": sized(lambda n, rule: n >= rule),
    "maxItems": sized(lambda n, rule: n <= rule),
    "minLength": sized(lambda n, rule: n >= rule),
    "maxLength": check(lambda v, rule: not isinstance(v, str) or len(v) <= rule),
    "uniqueItems": check(lambda v, rule: not isinstance(v, list) or len(set(v)) == len(v)),
    "pattern": check(lambda v, rule: not isinstance(v, str) or re.search(rule, v)),
    "$ref": ref,
    "anyOf": any_of,
    "allOf": all_of,
    "if": if_then,
    "not": not_,
    "properties": properties,
    "patternProperties": patterns,
    "minProperties": check(lambda v, rule: not isinstance(v, dict) or len(v) >= rule),
    "additionalProperties": additional,
    "propertyNames": property_names,
    "items": items,
    "prefixItems": prefix_items,
}
