"""Compositions of transforms that a Python text holds: a script's calls, or an object's ``repr``.

Sources: pytorch/vision, ``torchvision/transforms/transforms.py`` and ``v2/_container.py``
(``Compose.__repr__``: a step a line, without commas), ``torch/nn/modules/container.py``
(``Sequential.__repr__``: ``(0): `` before each); albumentations, ``core/composition.py``
(``BaseCompose.__repr__``: Python as it would be written).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.importers.draft import Draft
from simulator.importers.importer import ConfigFile
from simulator.importers.keys import Keys
from simulator.importers.python_values import Called, Code, Default, Reader
from simulator.importers.values import Object, show

CONTAINERS = ("Compose", "Sequential")
_PRESETS = {"crop_size", "image_mean"}
"""Parameters of what is a composition by itself."""
_RANDOM = (
    "Random", "Color", "AutoAugment", "TrivialAugment", "AugMix", "Horizontal", "Vertical",
    "OneOf", "Gaussian", "CoarseDropout", "ShiftScaleRotate", "Rotate", "Affine",
)  # fmt: skip
"""How the names of steps of training begin."""
_NOT_ENDED = re.compile(r"(?<=[^\s(\[{,])[ \t]*\n(?=\s*[^\s)\]},])")
_DEFINED = re.compile(r"^[ \t]*(?:class|def)\s+(\w+)", re.MULTILINE)
_NUMBERED = re.compile(r"^([ \t]*)\(\w+\): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Composition:
    """One composition.

    Attributes:
        label: the variable or function that it belongs to, and its line.
        steps: the name, the arguments by name and the line of each step.
    """

    label: str
    steps: list[tuple[str, Object, int]]

    @property
    def trains(self) -> bool:
        """Whether it draws at random, as no deployed stack does."""
        return any(name.startswith(_RANDOM) for name, _, _ in self.steps)

    def keys(self, draft: Draft, file: ConfigFile) -> list[tuple[str, Keys]]:
        """Return the name and the keys of every step."""
        return [
            (name, Keys(draft, values, _at(file, line), prefix=f"{name}."))
            for name, values, line in self.steps
        ]

    def doubt(self, draft: Draft) -> None:
        """Claim no more than an assumption where a size is a parameter's default."""
        held = [(key, value) for _, values, _ in self.steps for key, value in values.items()]
        taken = [
            f"{key}={one}"
            for key, value in held
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, Default)
        ]
        if taken:
            said = ", ".join(dict.fromkeys(taken))
            why = f"{said}: a parameter's default, and a caller may give another"
            draft.claim("geometry", "assumed", why)


def _at(file: ConfigFile, line: int) -> Callable[[object], str]:
    return lambda _: f"{file.path}:{line}"


def compositions(file: ConfigFile, parameters: Mapping[str, str]) -> list[Composition]:
    """Return the compositions of a text; those of training only where it has no other.

    Args:
        file: the text.
        parameters: the names of the parameters of every known step, in their order.

    Raises:
        ProfileError: it is no Python.
    """
    text = file.text
    if re.match(r"\s*\w+\(", text):  # a repr
        text = _NOT_ENDED.sub(",\n", _NUMBERED.sub(r"\1", text))
    reader = Reader(file.path, text, lambda _, __: {})
    own = set(_DEFINED.findall(text))
    inner: set[int] = set()
    found: list[Composition] = []
    for call in reversed(reader.calls):  # outer ones first
        kind = str(call.value["type"])
        if id(call.value) in inner or (kind not in CONTAINERS and kind not in parameters):
            continue
        inner |= {id(one.value) for one in _inside(call, reader)}
        if kind in CONTAINERS or _PRESETS & set(parameters[kind].split()):
            steps = [
                (f"this file's {name}" if name in own else name, values, line)
                for name, values, line in _steps(call.value, call.line, parameters, reader)
            ]
            if any(name in parameters for name, _, _ in steps):
                label = f"{call.name or kind}, line {call.line}"
                found.insert(0, Composition(label, steps))
    tested = [one for one in found if not one.trains]
    return tested or found


def _inside(call: Called, reader: Reader) -> list[Called]:
    """The calls that are arguments of a call, or of those."""
    held = set()
    left: list[Any] = [call.value]
    while left:
        one = left.pop()
        held.add(id(one))
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
    return [other for other in reader.calls if id(other.value) in held and other is not call]


def _steps(
    value: Object, line: int, parameters: Mapping[str, str], reader: Reader
) -> list[tuple[str, Object, int]]:
    """Return the steps of a composition, those of inner ones in their place."""
    kind = str(value["type"])
    if kind not in CONTAINERS:
        return [(kind, _named(value, parameters.get(kind, "")), line)]
    args = value.get("args", [])
    listed = value.get("transforms", args[0] if len(args) == 1 else args)
    made: list[tuple[str, Object, int]] = []
    for one in listed if isinstance(listed, list) else [listed]:
        if isinstance(one, dict) and "type" in one:
            place = reader.where(one)(()).rpartition(":")[2]
            made += _steps(one, int(place), parameters, reader)
        else:
            made.append((str(one) if isinstance(one, Code) else show(one), {}, line))
    return made


def _named(value: Object, parameters: str) -> Object:
    """Return the arguments of a call by name."""
    names = parameters.split()
    args = value.get("args", [])
    named = dict(zip(names, args, strict=False))
    more = {f"argument {at + 1}": one for at, one in enumerate(args) if at >= len(names)}
    named |= more | {key: one for key, one in value.items() if key not in ("type", "args")}
    return {key: _numbers(one) for key, one in named.items()}


def _numbers(value: Any) -> Any:
    """Return what ``tensor([...])`` or ``np.array([...])`` holds, or the value itself."""
    is_array = isinstance(value, dict) and value.get("type") in ("tensor", "array", "Tensor")
    return value["args"][0] if is_array and value.get("args") else value
