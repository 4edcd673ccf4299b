"""The JSON Schemas of model cards, data cards, audits and suites, for :mod:`schema`."""

from __future__ import annotations

import re
from typing import Any

from profile_schema import DIALECT, NOTHING, Schema, document_schema
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from simulator.audit.document import AuditSpec
from simulator.data.label_kind import LABELS
from simulator.data.source import SOURCES, labelled_sources
from simulator.faults.campaign import CampaignSpec
from simulator.modalities.card import card_schema
from simulator.modalities.modality import MODALITIES
from simulator.model.card import DEFAULT
from simulator.profile.modality import SCHEMAS, sections
from simulator.profile.suite import SuiteSpec
from simulator.repair.document import RepairSpec
from simulator.robustness.document import ConditionSuiteSpec
from simulator.tasks.task import TASKS


def schemas() -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    return {
        "model-card.schema.json": _headed("A model card", _model_card()),
        "data-card.schema.json": _headed("A data card", _data_card()),
        "audit.schema.json": _headed("An audit", _audit()),
        "suite.schema.json": _headed("A suite", _suite()),
        "repairs.schema.json": _headed("A document of repairs", _repairs()),
        "condition-suite.schema.json": _headed(
            "A suite of conditions",
            _plain(ConditionSuiteSpec.model_json_schema(by_alias=True)),
        ),
        "campaign.schema.json": _headed(
            "A campaign of faults", _plain(CampaignSpec.model_json_schema(by_alias=True))
        ),
    }


def _model_card() -> Schema:
    """The card of each modality; the task decides what ``output`` may have."""
    cards = {name: card_schema(MODALITIES[name].Card) for name in MODALITIES.names}
    outputs = {name: TASKS[name].Output for name in TASKS.names}
    places, definitions = _together([*cards.values(), *outputs.values()])
    any_kind = [{"if": _kind(name), "then": places[shape]} for name, shape in cards.items()]
    given = {
        name: {"then": {"properties": {"output": places[shape]}}} for name, shape in outputs.items()
    }
    by_task = [{"if": _is("task", name), **then} for name, then in given.items()]
    return {
        "type": "object",
        "properties": {"task": {"enum": list(outputs)}},
        "required": ["task"],
        "allOf": [*any_kind, *by_task],
        "$defs": definitions,
    }


def _kind(name: str) -> Schema:
    """Whether the samples of a card are of a modality."""
    named = {"properties": {"input": _is("kind", name)}, "required": ["input"]}
    if name != DEFAULT:
        return named
    others = [{"properties": {"input": {"required": ["kind"]}}, "required": ["input"]}]
    return {"anyOf": [named, {"not": others[0]}]}


def _data_card() -> Schema:
    """The card of each format; some are of one task only."""
    known = {name: LABELS[name].Spec for name in LABELS.names}
    known |= {name: SOURCES[name].Spec for name in labelled_sources()}
    places, definitions = _together(list(dict.fromkeys(known.values())))
    words = [name.rpartition(".")[2] for name in known]
    return {
        "type": "object",
        "properties": {"task": {"enum": list(TASKS.names)}, "format": {"enum": sorted({*words})}},
        "required": ["task", "format"],
        "allOf": [{"if": _format(name), "then": places[shape]} for name, shape in known.items()],
        "$defs": definitions,
    }


def _format(name: str) -> Schema:
    """Whether a card is of a format, whose name may begin with a task."""
    task, _, word = name.rpartition(".")
    found = _is("format", word)
    return {"allOf": [_is("task", task), found]} if task else found


def _audit() -> Schema:
    """An audit's document, in which the name of a profile stands for a stack."""
    schema = _plain(AuditSpec.model_json_schema(by_alias=True))
    stack = schema["$defs"]["StackSpec"]
    stack["properties"]["set"] = _OVERRIDES
    schema["$defs"] |= {"StackSpec": {"anyOf": [{"type": "string"}, stack]}, **_overrides()}
    return schema


def _suite() -> Schema:
    """A suite's document, whose options override fields of profiles."""
    schema = _plain(SuiteSpec.model_json_schema(by_alias=True))
    fields = schema["properties"]
    fields["columns"]["additionalProperties"]["additionalProperties"] = _OVERRIDES
    fields["combined"] = {"anyOf": [_OVERRIDES, {"type": "null"}]}
    return {**schema, "$defs": schema.get("$defs", {}) | _overrides()}


def _repairs() -> Schema:
    """A document of repairs, whose options override fields of profiles."""
    schema = _plain(RepairSpec.model_json_schema(by_alias=True))
    schema["$defs"]["OptionSpec"]["properties"]["set"] = _OVERRIDES
    return {**schema, "$defs": schema["$defs"] | _overrides()}


_OVERRIDES = {"$ref": "#/$defs/Overrides"}


def _overrides() -> Schema:
    """The dotted keys of every section of a profile; below a mapping of free names, any name."""
    keys: set[str] = set()
    free: set[str] = set()
    for modality in SCHEMAS.names:
        schema = document_schema(modality)
        for name in (*sections(modality), "evidence"):
            _walk(schema["properties"][name], schema["$defs"], name, keys, free)
    below = "|".join(map(re.escape, sorted(free)))
    found = {
        "type": "object",
        "description": "fields of profiles, as dotted keys: resize.backend",
        "propertyNames": {"anyOf": [{"enum": sorted(keys)}, {"pattern": rf"^({below})\.."}]},
    }
    return {"Overrides": found}


def _walk(node: Any, definitions: Schema, key: str, keys: set[str], free: set[str]) -> None:
    """Collect a key of a profile and those below it."""
    keys.add(key)
    if "$ref" in node:
        _walk(definitions[node["$ref"].rpartition("/")[2]], definitions, key, keys, free)
    offered = (branch["then"] for branch in node.get("allOf", ()))
    for option in (*node.get("anyOf", ()), *offered):
        _walk(option, definitions, key, keys, free)
    for name, inner in node.get("properties", {}).items():
        if isinstance(inner, dict):
            _walk(inner, definitions, f"{key}.{name}", keys, free)
    if node.get("additionalProperties", NOTHING) not in (NOTHING, False):
        free.add(key)


def _together(shapes: list[type[BaseModel]]) -> tuple[dict[type[BaseModel], Schema], Schema]:
    """Return a reference for each shape, and the definitions of all of them."""
    found, whole = models_json_schema([(shape, "validation") for shape in shapes], by_alias=True)
    definitions: Schema = _plain(whole)["$defs"]
    return {shape: found[shape, "validation"] for shape in shapes}, definitions


def _is(key: str, value: str) -> Schema:
    return {"properties": {key: {"const": value}}, "required": [key]}


def _headed(title: str, schema: Schema) -> Schema:
    return {"$schema": DIALECT, "title": f"{title} of pipeline-simulator", **schema}


def _plain(node: Any) -> Any:
    """Leave out what pydantic adds, and say ``oneOf`` in the words that every editor knows."""
    if isinstance(node, list):
        return [_plain(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, inner in node.items():
        if key in ("default", "discriminator") or (key == "title" and isinstance(inner, str)):
            continue
        if key in ("properties", "$defs"):
            found[key] = {name: _plain(one) for name, one in inner.items()}
        else:
            found["anyOf" if key == "oneOf" else key] = _plain(inner)
    return found
