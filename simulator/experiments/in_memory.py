"""Options of a call in Python that are objects, as the text and the files of a command line.

So a run is described, resumed and asked for again in the same way, whatever it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from simulator.command.options import Declared, Group, Progress, given
from simulator.data import in_memory as samples
from simulator.errors import ModelError, ProfileError, UserError
from simulator.experiments.common import named_profiles
from simulator.model import in_memory as network
from simulator.profile import in_memory as profile
from simulator.profile.document import inside
from simulator.profile.load import load
from simulator.profile.profile import Profile

O = TypeVar("O", bound=Group)  # noqa: E741
_OF_MODEL = ("card", "input")
_SOURCE = ("color", "source")


def placed(asked: O) -> O:
    """Return the options of a call, with files of the user's cache in place of objects.

    Raises:
        UserError: an object cannot be used; the message says which, and what to give.
    """
    changes = {one.name: _placed(one, value) for one, value in given(asked)}
    about = {name: changes[name] for name in _OF_MODEL if changes.get(name) is not None}
    if about and changes["model"] is None:
        raise ModelError(f"{min(about)}: give the network too, model=NETWORK")
    if about:
        place = network.written(changes["model"], about.get("card"), about.get("input"))
        changes |= {**dict.fromkeys(about), "model": str(place)}
    elif changes.get("model") is not None:
        changes["model"] = _model(changes["model"])
    placed: O = asked.without(**changes)
    here = not isinstance(getattr(asked, "data", None), str | Path | None)
    if here and samples.decoded(changes["data"]):
        return _without_planes(placed)
    return placed


def _without_planes(asked: O) -> O:
    """Let stacks that take the planes of a JPEG make them of the pixels, as pixels have none."""
    stacks = (getattr(asked, name, None) for name in ("profiles", "train", "deploy"))
    profiles, *pair = stacks
    try:
        sides = named_profiles(profiles or (), *pair)
    except UserError:  # the command says what it needs
        return asked
    overrides = list(getattr(asked, "overrides", ()))
    for side, reference in sides.items():
        spec: Any = load(reference).spec
        planes = spec.front_end is None and inside(spec.model_dump(), _SOURCE) == "planes"
        if planes and not any(one.startswith(f"{side}.color.source=") for one in overrides):
            overrides.append(f"{side}.color.source=encode")
    changed: O = asked.without(overrides=overrides) if overrides else asked
    return changed


def _placed(one: Declared, value: Any) -> Any:
    if one.name == "progress" and callable(value) and not isinstance(value, Progress):
        return Told(value)
    if one.about.kind == "model" and one.several:
        return [_model(inner) for inner in value]
    place = {"profile": _profile, "data": _data}.get(one.about.kind)
    if place is None or value is None:
        return value
    if one.several and isinstance(value, list | tuple):
        return [place(inner, "stack") for inner in value]
    return value if one.several else place(value, one.name)


def _profile(stack: Any, name: str) -> str:
    if isinstance(stack, str | Path):
        return str(stack)
    if isinstance(stack, Mapping | Profile):
        return str(profile.written(stack, name))
    if callable(stack) and not isinstance(stack, type):
        return profile.code_written(stack, name)
    what = f"the class {stack.__name__}" if isinstance(stack, type) else type(stack).__name__
    raise ProfileError([
        f"{name}: {what} is no stack; give a profile's name or path, a dictionary "
        "of what a profile says, or a function that makes the network's input"
    ])  # fmt: skip


def _data(data: Any, name: str) -> Any:
    return data if isinstance(data, str | Path) else samples.written(data)


def _model(model: Any) -> Any:
    return model if model is None or isinstance(model, str | Path) else network.written(model)


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
