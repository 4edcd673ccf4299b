"""What pydantic found wrong, in words for the person who wrote the document."""

from __future__ import annotations

import reprlib
from typing import Any

from pydantic import BaseModel

from simulator.errors import unknown
from simulator.profile.document import Key

_UNION_PARTS = ("[key]", "literal[", "list[", "constrained-list[")


def key_of(problem: Any) -> Key:
    """Return the key that a problem is about, as it is written in the document."""
    return tuple(part for part in problem["loc"] if not str(part).startswith(_UNION_PARTS))


def noise(problem: Any) -> bool:
    """Whether a problem is of a branch of a union that was not meant.

    ``mean`` is the word ``model`` or a list: a wrong number in a list is no wrong word.
    """
    kind, got = problem["type"], problem.get("input")
    inside = any(str(part).startswith(_UNION_PARTS[1:]) for part in problem["loc"])
    word = isinstance(got, str)
    return inside and ((kind == "literal_error" and not word) or (kind == "list_type" and word))


def what(problem: Any, model: type[BaseModel]) -> str:
    """Say what is wrong.

    Args:
        problem: one of ``ValidationError.errors()``.
        model: the model that was validated, for the keys that it has.
    """
    kind, got, key = problem["type"], problem.get("input"), key_of(problem)
    if kind == "missing":
        return "required, and not written"
    if kind == "extra_forbidden":
        return unknown("key", key[-1], _keys(model, key[:-1]))
    if kind == "literal_error":
        expected = problem["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        return unknown("value", _short(got) if not isinstance(got, str) else got, expected)
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"keys expected ({', '.join(_keys(model, key))}), got {_short(got)}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    if kind == "value_error":
        return message
    return f"{message[:1].lower()}{message[1:]}, got {_short(got)}"


def _short(value: object) -> str:
    shortener = reprlib.Repr()
    shortener.maxstring = shortener.maxother = 80
    return shortener.repr(value)


def _keys(model: Any, section: Key) -> list[str]:
    """The keys that a section may have; ``evidence`` has any of its words, each a section."""
    for name in section:
        fields = getattr(model, "model_fields", {})
        inner = next((f.annotation for n, f in fields.items() if (f.alias or n) == name), model)
        options = getattr(inner, "__args__", (inner,))
        model = next((option for option in options if hasattr(option, "model_fields")), None)
    fields = getattr(model, "model_fields", {})
    return [field.alias or name for name, field in fields.items()]
