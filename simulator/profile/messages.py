"""Turn pydantic's validation errors into messages for the author of a document.

Pydantic's ``loc`` is not the key in the document: it also contains the tag or the name of each
union branch that was tried. So we follow it through the model, and for a union report only the
branch that was probably meant: the one that has the type of the value.
"""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date
from types import NoneType
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from simulator.errors import ProfileError, unknown
from simulator.profile.document import Key
from simulator.profile.hints import Hint

Model = TypeVar("Model", bound=BaseModel)
_NAMES = {
    float: ("a number", "numbers"),
    int: ("a whole number", "whole numbers"),
    str: ("text", "texts"),
}
"""The name of a type, in the singular and in the plural."""


def checked(
    model: type[Model],
    values: object,
    where: Callable[[Key], str],
    root: str,
    *,
    place: Key = (),
    reason: str = "",
    never: Collection[str] = (),
) -> Model:
    """Return the content of a document.

    Args:
        model: what it must be.
        values: of the document.
        where: gives ``file:line`` of a key of the document.
        root: the name of the document itself in messages, for example ``card``.
        place: the key of the validated section, if it is not the whole document.
        reason: why a missing key is required.
        never: values that messages do not suggest although the model allows them.

    Raises:
        ProfileError: all that is wrong with it, one line each: ``where: dotted.key: what``.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = keyed(error, model, where, root, place=place, reason=reason, never=never)
        raise ProfileError([line for _, line in found]) from error


def keyed(
    error: ValidationError,
    model: type[BaseModel],
    where: Callable[[Key], str],
    root: str,
    *,
    place: Key = (),
    reason: str = "",
    never: Collection[str] = (),
) -> list[tuple[Key, str]]:
    """Return the lines of :func:`checked` for what pydantic raised, each with its key."""
    hint = Hint(model)
    walked = [_walk(detail, hint) for detail in error.errors()]
    found = [problem for problem in walked if not problem.is_of_items()]
    strange = {
        (problem.key, problem.tried[problem.key])
        for problem in found
        if problem.is_of_another_type()
    }
    meant = dict(pair for problem in found for pair in problem.tried.items() if pair not in strange)
    lines: list[tuple[Key, str]] = []
    for problem in found:
        if all(meant.get(key, branch) == branch for key, branch in problem.tried.items()):
            if problem.key in problem.tried and problem.key not in meant:
                problem.kind = "union_type"
            key = (*place, *problem.key)
            what = _what(problem, reason, never)
            lines.append((key, f"{where(key)}: {'.'.join(map(str, key)) or root}: {what}"))
    return list(dict.fromkeys(lines))


@dataclass(slots=True)
class _Problem:
    """One of pydantic's errors, with its place in the document.

    Attributes:
        kind, got, message: the type of the error, the value, pydantic's own message.
        key: as it is written in the document.
        hint: what is allowed there.
        branch: the branch that was tried, if it is a union.
        holder: the section or list that contains it.
        tried: the union branches on the way, each with the key of the union.
    """

    kind: str
    got: Any
    message: str
    key: Key
    hint: Hint
    branch: Hint
    holder: Hint
    tried: dict[Key, str]

    def is_of_items(self) -> bool:
        """Whether a list is too short only because some of its items were refused."""
        return self.kind == "too_short" and len(self.got) >= self.branch.lengths[0]

    def is_of_another_type(self) -> bool:
        """Whether this only says that the value is not of this branch of a union."""
        if self.key not in self.tried:
            return False
        if self.kind == "literal_error":
            other = type(self.got) not in {type(word) for word in self.branch.words}
            return other or _is_number(self.got)
        return self.kind.endswith("_type")


def _walk(detail: Any, model: Hint) -> _Problem:
    key: Key = ()
    hint = branch = holder = model
    tried: dict[Key, str] = {}
    for part in detail["loc"]:
        if len(branch.options) > 1:
            branch = branch.branch(part)
            if hint.tag:
                hint = branch
            else:
                tried[key] = part
        elif part == "[key]":
            hint = branch = Hint(holder.args[0])
        else:
            holder = branch
            hint = branch = holder.inside(part)
            key = (*key, part if holder.origin in (list, tuple) else str(part))
    kind, got = detail["type"], detail["input"]
    if kind == "missing" and holder.fixed:
        kind, key, branch = "too_short", key[:-1], holder
    elif kind.startswith("union_tag"):
        tag = hint.tag or ""
        kind, got = "literal_error" if tag in got else "missing", got.get(tag)
        words = tuple(word for option in hint.options for word in option.keys[tag].words)
        key, hint = (*key, tag), Hint(Literal[words])
    return _Problem(kind, got, detail["msg"], key, hint, branch, holder, tried)


def _what(problem: _Problem, reason: str, never: Collection[str]) -> str:
    got, hint = problem.got, problem.hint
    match problem.kind:
        case "missing":
            offer = f"offered: {', '.join(sorted(_words(hint, never)))}" if hint.words else ""
            why = "; ".join(filter(None, (offer, reason)))
            return f"required, and not written{f' ({why})' if why else ''}"
        case "extra_forbidden":
            return unknown("key", problem.key[-1], problem.holder.keys)
        case "literal_error" if not isinstance(got, (NoneType, list, dict)):
            offered = [word for option in hint.options for word in _words(option, never)]
            return unknown("value", got if isinstance(got, str) else _short(got), offered)
        case "too_short" | "too_long":
            least, most = problem.branch.lengths
            few = problem.kind == "too_short"
            limit = "" if least == most else "at least " if few else "at most "
            number = least if few else most
            items = f" {_several(Hint(problem.branch.args[0]))}" if number != 1 else ""
            return f"{limit}{number}{items} expected, got {len(got)}"
        case kind if kind.endswith(("_type", "literal_error")):
            *words, last = dict.fromkeys(w for o in hint.options for w in _words(o, never))
            named = f"{', '.join(words)} or {last}" if words else last
            keys = f" ({', '.join(hint.keys)}{', …' if hint.tag else ''})" if hint.keys else ""
            return f"{named} expected{keys}, got {_short(got)}"
    message = problem.message.removeprefix("Value error, ")
    said = f"{message[:1].lower()}{message[1:]}, got {_short(got)}"
    return message if problem.kind == "value_error" else said


def _words(hint: Hint, never: Collection[str]) -> list[str]:
    """Return what is allowed: the values, or for example ``a list of 3 numbers``."""
    if hint.words:
        return [str(word) for word in hint.words if word not in never]
    if hint.origin in (list, tuple):
        return [f"a {_several(hint).replace('lists', 'list', 1)}"]
    return ["true", "false"] if hint.bare is bool else [_NAMES.get(hint.bare, ("keys",))[0]]


def _several(hint: Hint) -> str:
    if len(hint.options) > 1:
        return " or ".join(_several(option) for option in hint.options)
    if hint.origin in (list, tuple):
        least, most = hint.lengths
        number = f"{least} " if least == most else ""
        return f"lists of {number}{_several(Hint(hint.args[0]))}"
    return "words" if hint.words else _NAMES.get(hint.bare, ("", "sections"))[1]


def _is_number(value: object) -> bool:
    """Whether it is text that may have been meant as a number."""
    with contextlib.suppress(ValueError):
        return isinstance(value, str) and float(value) is not None
    return False


def _short(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    if isinstance(value, date):
        return str(value)
    shortener = reprlib.Repr()
    shortener.maxstring = shortener.maxother = 80
    said = shortener.repr(value)
    if not _is_number(value):
        return said
    exponent = "; YAML writes exponents as in 1.0e-5" if "e" in said.lower() else ""
    return f"the text {said}{exponent}"
