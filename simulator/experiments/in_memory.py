"""Options of a call in Python that are objects, as the text and the files of a command line.

So a run is described, resumed and asked for again in the same way, whatever it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from simulator.command.options import Declared, Progress
from simulator.data import in_memory as samples
from simulator.errors import ModelError, ProfileError, UserError
from simulator.experiments.common import named_profiles
from simulator.model import in_memory as network
from simulator.profile import function
from simulator.profile import in_memory as profile
from simulator.profile.document import inside
from simulator.profile.load import load
from simulator.profile.profile import Profile

_OF_MODEL = ("card", "input")
_SOURCE = ("color", "source")


def placed(every: Mapping[str, Declared], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call, with files of the user's cache in place of objects.

    Args:
        every: the options that there are.
        given: those of the call.

    Raises:
        UserError: an object cannot be used; the message says which, and what to give.
    """
    found = {name: _placed(every[name], value) for name, value in given.items()}
    if about := {name: found.pop(name) for name in _OF_MODEL if found.get(name) is not None}:
        if given.get("model") is None:
            raise ModelError(f"{min(about)}: give the network too, model=NETWORK")
        found["model"] = str(network.written(given["model"], about.get("card"), about.get("input")))
    elif "model" in given:
        found["model"] = _model(given["model"])
    here = not isinstance(given.get("data"), str | Path | None)
    if here and samples.decoded(found["data"]):
        found |= _without_planes(found)
    told = found.get("progress")
    if callable(told) and not isinstance(told, Progress):
        found["progress"] = Told(told)
    return found


def _without_planes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Let stacks that take the planes of a JPEG make them of the pixels, as pixels have none."""
    try:
        sides = named_profiles(given.get("profiles", ()), given.get("train"), given.get("deploy"))
    except UserError:  # the command says what it needs
        return {}
    overrides = list(given.get("overrides", ()))
    for side, reference in sides.items():
        spec: Any = load(reference).spec
        planes = spec.front_end is None and inside(spec.model_dump(), _SOURCE) == "planes"
        if planes and not any(one.startswith(f"{side}.color.source=") for one in overrides):
            overrides.append(f"{side}.color.source=encode")
    return {"overrides": overrides} if overrides else {}


def _placed(one: Declared, value: Any) -> Any:
    places = {"profile": _profile, "data": _data}
    if one.about.kind == "model" and one.several:
        return [_model(inner) for inner in value]
    place = places.get(one.about.kind)
    if place is None or value is None:
        return value
    if one.several and isinstance(value, list | tuple):
        return [place(inner, "stack") for inner in value]
    return value if one.several else place(value, one.name)


def _profile(given: Any, name: str) -> str:
    if isinstance(given, str | Path):
        return str(given)
    if isinstance(given, Mapping | Profile):
        return str(profile.written(given, name))
    if callable(given) and not isinstance(given, type):
        return function.written(given, name)
    raise ProfileError([
        f"{name}: {type(given).__name__} is no stack; give a profile's name or path, a dictionary "
        "of what a profile says, or a function that makes the network's input"
    ])  # fmt: skip


def _data(given: Any, name: str) -> Any:
    return given if isinstance(given, str | Path) else samples.written(given)


def _model(given: Any) -> Any:
    return given if given is None or isinstance(given, str | Path) else network.written(given)


class Told(Progress):
    """Tells a function of the samples that are done.

    Args:
        told: called with how many are done and how many there are, in every pass over the samples.
    """

    def __init__(self, told: Callable[[int, int], object]) -> None:
        self._told = told

    def advance(self, done: int, total: int) -> None:
        """Tell how much of a pass is done."""
        self._told(done, total)
