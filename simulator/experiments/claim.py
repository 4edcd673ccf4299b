"""A folder that belongs to one piece of work: the request that it keeps, by which it goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from simulator import cache
from simulator.command import allowed
from simulator.command.experiment import Command
from simulator.command.options import Declared, Group, Kind, given
from simulator.data.address import Root, absolute, root_of
from simulator.errors import UserError
from simulator.profile.lookup import find, name_of
from simulator.profile.reference import interpreter, read_code, read_reference
from simulator.results.json_text import finite, write_json
from simulator.results.layout import PLAN
from simulator.results.lock import LOCK, locked
from simulator.results.manifest import Plan, Request
from simulator.results.read import read_plan

ALWAYS = ("model", "data", "limit", "seed")
"""Options that a request says also where they have their defaults."""
PLACES: Mapping[Kind, Callable[[str], Root]] = {
    "profile": find, "data": root_of, "model": Path, "file": Path, "folder": Path,
}  # fmt: skip
"""What makes a path of an option's value, by its kind."""
_IN_DIGESTS = ("model", "data", "limit")
"""Options that may change: the work has the digests of what they choose."""


def request(command: Command[Any], asked: Group, **found: Any) -> Request:
    """Return a call as JSON, so that another process can repeat it.

    Args:
        command: that was called.
        asked: its options.
        found: values that the call has found for some options.
    """
    arguments = {
        declared.name: _placed(declared, value)
        for declared, value in given(asked)
        if declared.about.asked and (value != declared.default or declared.name in ALWAYS)
    }
    return Request(command=command.name, arguments=arguments | found)


def remembered(request: Request) -> Request:
    """Note in the cache that a request was made here, by which its code may run again."""
    if not allowed.current().received:
        with suppress(OSError):
            mark = _mark(request)
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    return request


def trusting(request: object, allow_code: bool) -> AbstractContextManager[None]:
    """Let the request of a folder, which anyone may have edited, run code only if it was made here.

    Args:
        request: as the folder says it.
        allow_code: whether the user of this call trusts it.
    """
    return allowed.received(not (allow_code or _mark(request).exists()))


def _mark(request: object) -> Path:
    content = request.model_dump() if isinstance(request, Request) else request
    text = json.dumps(finite(content), sort_keys=True)
    return cache.folder() / "requests" / hashlib.sha256(text.encode()).hexdigest()


def portable(profile: str) -> str:
    """Return the name of a built-in profile, and the full path of another stack."""
    if named := read_reference(profile):
        return named.text
    place = find(profile)
    return name_of(place) or absolute(place)


@contextmanager
def claimed(
    command: Command[Any], asked: Any, work: Mapping[str, object], **found: Any
) -> Iterator[None]:
    """Hold the folder of a command meanwhile: a new one, or one of the same call, which goes on.

    Args:
        command: that was called.
        asked: its options; ``out`` is the folder, made if there is none.
        work: all that the results depend on besides the options.
        found: see :func:`request`.

    Raises:
        RunError: another process holds it, it cannot be written, or is damaged.
        UserError: it holds something else.
    """
    folder = Path(asked.out)
    content = {"request": remembered(request(command, asked, **found)), "work": work}
    plan = Plan.model_validate(finite(content))
    with locked(folder, asked.progress.note if asked.progress else lambda said: None):
        if (folder / PLAN).exists():
            if _identity(read_plan(folder)) != _identity(plan):
                raise UserError(f"{folder} holds another {command.work}; choose another --out")
        elif any(place.name != LOCK for place in folder.iterdir()):
            raise UserError(f"{folder} is not empty; choose another --out")
        else:
            write_json(folder / PLAN, plan.model_dump())
        yield


def _identity(plan: Plan) -> Plan:
    """What is equal where a call goes on."""
    asked = plan.request.arguments.items()
    kept = {name: value for name, value in asked if name not in _IN_DIGESTS}
    return Plan(request=Request(command=plan.request.command, arguments=kept), work=plan.work)


def _placed(declared: Declared, value: Any) -> Any:
    """The value of an option as JSON; a place is absolute."""
    if declared.several and value is not None:
        return [_absolute(declared, inner) for inner in value]
    return _absolute(declared, value)


def _absolute(declared: Declared, value: Any) -> Any:
    if value is not None and declared.name == "python":
        return interpreter(value)
    if value is None or declared.about.kind not in PLACES:
        return value
    if declared.about.kind == "profile" and (named := read_reference(value)):
        return named.text
    if declared.name == "recording" and (code := read_code(str(value))):
        return code.text
    return absolute(PLACES[declared.about.kind](value))
