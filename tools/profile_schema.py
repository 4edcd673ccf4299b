"""The JSON Schema of profile documents, with which editors complete and check them.

It combines the schema of the sections with the offers of every registered backend: in a section
with a backend, the backend's name decides which fields and values are allowed.

A document may be incomplete: with ``extends`` it may omit what it inherits and remove a field with
``null``, and ``resize`` may be one of the paper's short names. So a section that does not name its
backend may contain the fields of any backend.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simulator import registry
from simulator.contract import (
    Above,
    Admits,
    AtLeast,
    File,
    Implied,
    KeepList,
    Pairs,
    StageSpec,
    Subset,
    Text,
)
from simulator.profile.hints import Hint
from simulator.profile.modality import IMAGE, SCHEMAS, filled, schema_of, sections
from simulator.profile.paper_names import RESIZE

Schema = dict[str, Any]
NOTHING: Schema = {"type": "null"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def document_schema(modality: str = IMAGE) -> Schema:
    """Return the schema of a modality's documents.

    Raises:
        UserError: there is no such modality.
    """
    model = schema_of(modality)
    schema = _plain(model.model_json_schema(by_alias=True))
    definitions: dict[str, Schema] = schema["$defs"]
    for section in definitions.values():
        section.pop("required", None)
        section["properties"] = {k: _or_nothing(v) for k, v in section["properties"].items()}
    for spec in filled(modality):
        hint = Hint(model)
        for part in spec.section:
            hint = hint.inside(part)
        name = hint.bare.__name__
        definitions[name] = _by_backend(spec, definitions[name])
    fields = schema["properties"]
    fields["modality"] |= {"enum": list(SCHEMAS.names)}
    fields["evidence"]["additionalProperties"] = _or_nothing(
        fields["evidence"]["additionalProperties"]
    )
    for name in sections(modality):
        fields[name] = _or_nothing(fields[name])
    if modality == IMAGE:
        words = "SysNoise's short name (MLSys 2023, Table 1)"
        fields["resize"] = _or(fields["resize"], {"enum": sorted(RESIZE), "description": words})
    order = ["schema", "name", "summary", "extends", "modality", *sections(modality), "evidence"]
    schema["properties"] = {name: fields[name] for name in order}
    head = {"$schema": DIALECT, "title": "A profile of pipeline-simulator"}
    return {**head, **schema, "required": ["schema", "name", "summary"]}


def _by_backend(spec: StageSpec, section: Schema) -> Schema:
    """Return a section's schema: its backends, and for each the fields and values of its offers."""
    backends = [backend for backend in registry.backends() if backend.of(spec.name)]
    typed = section["properties"]
    own = {name: typed[name] for name in spec.own}
    offered = {
        backend.name: {
            name: admits
            for name, admits in backend.admitted(spec.name).items()
            if name not in spec.shared_fields
        }
        for backend in backends
    }
    words = (spec.words,) if spec.words else ()
    branches: list[Schema] = []
    for backend in backends:
        fields = {
            name: _or_nothing(
                _field((*admits, *words), typed.get(name, {}), backend.fields.get(name))
            )
            for name, admits in offered[backend.name].items()
        }
        named = {"properties": {"backend": {"const": backend.name}}, "required": ["backend"]}
        allowed = {"properties": dict.fromkeys(("backend", *own), True) | fields}
        branches.append({"if": named, "then": {**allowed, "additionalProperties": NOTHING}})
    names = dict.fromkeys(name for fields in offered.values() for name in fields)
    every = {
        name: [one for fields in offered.values() for one in fields.get(name, ())] for name in names
    }
    inherited = {
        name: _or_nothing(_field((*every[name], *words), typed.get(name, {}))) for name in names
    }
    branches.append({"if": {"not": {"required": ["backend"]}}, "then": {"properties": inherited}})
    known = {
        "backend": _or_nothing({"enum": [backend.name for backend in backends]}),
        **{name: _about(typed.get(name, {})) for name in names},
        **own,
    }
    return {**section, "properties": known, "additionalProperties": False, "allOf": branches}


def _field(admits: Iterable[Admits], typed: Schema, said: str | None = None) -> Schema:
    """Return the schema of one field: the union of *admits*."""
    words: dict[str, object] = {}
    others: list[Schema] = []
    for written in admits:
        admit = written.admits if isinstance(written, Implied) else written
        if isinstance(admit, tuple):
            words |= {repr(word): word for word in admit}
        else:
            other = _of(admit, typed)
            others += [] if other in others else [other]
    options = [*([{"enum": list(words.values())}] if words else []), *others]
    about = {"description": said} if said else _about(typed)
    return {**(options[0] if len(options) == 1 else {"anyOf": options}), **about}


def _of(admits: Admits, typed: Schema) -> Schema:
    match admits:
        case AtLeast(low) | Above(low):
            whole = isinstance(admits, AtLeast)
            kind, least = ("integer", "minimum") if whole else ("number", "exclusiveMinimum")
            return {"type": kind, least: low}
        case Subset(names):
            return {"type": "array", "items": {"enum": list(names)}, "uniqueItems": True}
        case Pairs():
            return {"type": "object", "additionalProperties": {"type": "string"}}
        case Text() | File():
            return {"type": "string", "pattern": r"\S"}
        case KeepList():
            return {"$ref": "#/$defs/Keep"}
    return typed


def _about(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key == "description"}


def _plain(node: Any) -> Any:
    """Remove what pydantic adds: titles made from names, and defaults, which are all null."""
    if isinstance(node, list):
        return [_plain(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _named(inner) if key in ("properties", "$defs") else _plain(inner)
        for key, inner in node.items()
        if key not in ("title", "default")
    }


def _named(nodes: Schema) -> Schema:
    return {name: _plain(inner) for name, inner in nodes.items()}


def _or_nothing(schema: Schema) -> Schema:
    return _or(schema, NOTHING)


def _or(schema: Schema, other: Schema) -> Schema:
    """Return a schema that also allows *other*; the description stays outside."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    options = bare["anyOf"] if set(bare) == {"anyOf"} else [bare]
    return {"anyOf": options if other in options else [*options, other], **_about(schema)}
