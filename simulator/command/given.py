"""What options may be in Python: besides text and paths, objects that a program has in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Protocol

from simulator.command.options import Declared


class LoadedProfile(Protocol):
    """What ``simulator.load_profile`` returns."""

    @property
    def spec(self) -> Any:
        """Its values."""


class OnnxModel(Protocol):
    """An ``onnx.ModelProto``."""

    def SerializeToString(self) -> bytes:  # noqa: N802
        """Return the content of an ONNX file."""


class Module(Protocol):
    """A ``torch.nn.Module``."""

    def state_dict(self, *values: Any, **named: Any) -> Any:
        """Return its parameters."""


class DataSet(Protocol):
    """A data set as PyTorch has them: it has a length, and gives each sample by its index."""

    def __getitem__(self, index: int, /) -> Any:
        """Return a sample."""


_STACK = (Path, Mapping[str, object], LoadedProfile, Callable[..., object])
_MODEL = (OnnxModel, Module)
_DATA = (Iterable[Any], DataSet)
_TAKEN: Mapping[str, tuple[Any, ...]] = {"profile": _STACK, "model": _MODEL, "data": _DATA}
"""By the kind of the option."""
_WORDS = {
    "profile": "in Python also a function that makes the network's input, a dictionary of what a "
    "profile says, or a loaded profile",
    "model": "in Python also an ``onnx.ModelProto`` or a ``torch.nn.Module``",
    "data": "in Python also images: arrays, images of Pillow, ``(image, label)``, ...",
}


def taken(one: Declared) -> Any:
    """Return the type of an option's value in Python."""
    if one.name == "progress":
        return one.type | Callable[[int, int], object]
    more = _TAKEN.get(one.about.kind, ())
    if one.several and more:
        return Sequence[reduce(or_, more, one.type.__args__[0])]  # type: ignore[misc]
    return reduce(or_, more, one.type)


def said(one: Declared) -> str:
    """Return what is said of an option in Python."""
    more = _WORDS.get(one.about.kind)
    return f"{one.about.help}; {more}" if more else one.about.help
