"""The part of JSON Schema that ours use: what of a document is not as a schema says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

KINDS = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool, "null": type(None),
}  # fmt: skip
KNOWN = {
    "$schema", "$defs", "$ref", "description", "default", "type", "properties", "required",
    "additionalProperties", "items", "minItems", "maxItems", "anyOf", "enum", "const", "unit",
}  # fmt: skip


def problems(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for everything that is not as *schema*, a part of *whole*, says."""
    yield from _problems(value, schema, whole, "")


def _problems(value: Any, schema: Any, whole: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema is True:
        return
    if schema is False:
        yield f"{path}: nothing may be here"
        return
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _problems(value, whole["$defs"][name], whole, path)
    if "anyOf" in schema:
        found = [list(_problems(value, one, whole, path)) for one in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{path}: {value!r}"
    kind = schema.get("type")
    if kind and (
        not isinstance(value, KINDS[kind]) or isinstance(value, bool) > (kind == "boolean")
    ):
        yield f"{path}: {value!r} is no {kind}"
    elif isinstance(value, dict):
        own, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        yield from (
            f"{path}.{key}: missing" for key in schema.get("required", ()) if key not in value
        )
        for key, inner in value.items():
            yield from _problems(inner, own.get(key, more), whole, f"{path}.{key}")
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{path}: {len(value)} items"
        for at, inner in enumerate(value):
            yield from _problems(inner, schema.get("items", True), whole, f"{path}.{at}")


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and isinstance(value, bool) <= (kind == "boolean")
