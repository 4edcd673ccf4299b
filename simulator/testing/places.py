"""Where conditions and modalities are tried: the samples of specimens on their way to a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract.model import of_shape
from simulator.contract.recipe import Boundary, Chain, Context, Recipe
from simulator.errors import UserError
from simulator.modalities.modality import Feed, Modality
from simulator.modalities.specimen import Specimen
from simulator.model.card import Card
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.profile import Profile


@dataclass(frozen=True)
class Way:
    """A stack up to the network's input, for the samples of a specimen."""

    modality: Modality
    specimen: Specimen
    card: Card
    profile: Profile
    chain: Chain

    def sources(self) -> list[Context]:
        """Read every sample anew."""
        return [
            Context(file.name, self.modality.read(file.name, file), None)
            for file in self.specimen.files
        ]

    def value(self, context: Context, chain: Chain) -> Any:
        """Take a sample down a chain; an empty one gives its source."""
        if not chain.recipes:
            return context.source
        one = plan({Arm("specimen"): chain})
        with RuntimePool() as runtimes:
            opened = LocalExecutor(self.modality, runtimes, workers=1).open(one)
            return opened.walk(context).value(one.paths[0])

    def until(self, boundary: Boundary) -> Chain:
        """Return the steps up to a boundary."""
        return Chain(()) if boundary is Boundary.SOURCE else self.chain.until(boundary)

    def has(self, boundary: Boundary) -> bool:
        """Whether the samples pass a boundary."""
        return boundary is Boundary.SOURCE or self.chain.has(boundary)

    def reading(self, format: str | None) -> Way:
        """Return the stack with a decoder that reads files of a format; None: with its own."""
        for backend in registry.readers(format) if format else ():
            with suppress(UserError):
                profile = load(self.profile.name, (f"decode.backend={backend}",))
                chain = Chain(
                    tuple(self.modality.front_end(profile, choose(profile), self.card.spec))
                )
                return replace(self, profile=profile, chain=chain)
        return self


def way(modality: Modality, folder: Path) -> Way:
    """Write a modality's specimen into a folder, and read its card and its profile.

    Raises:
        UserError: the modality brings none, or what it brings cannot be used.
    """
    specimen = modality.specimen(folder)
    card, profile = Card(specimen.card), load(specimen.profile)
    recipes: list[Recipe] = modality.front_end(profile, choose(profile), card.spec)
    return Way(modality, specimen, card, profile, Chain(tuple(recipes)))


def fits(value: Any, feeds: Sequence[Feed]) -> str | None:
    """Say what is wrong with what a front end gave, or None where nothing is.

    Args:
        value: an array, a mapping of names to arrays, or a tuple of these.
        feeds: what the network must take.
    """
    if isinstance(value, tuple):
        problems = [fits(one, feeds) for one in value] or ["one inference at least expected, got 0"]
        return next(filter(None, problems), None)
    only = len(feeds) == 1 and isinstance(value, np.ndarray)
    given = {feeds[0].name: value} if only else value
    names = [feed.name for feed in feeds]
    if not isinstance(given, Mapping) or set(given) != set(names):
        got = ", ".join(map(str, given)) if isinstance(given, Mapping) else type(value).__name__
        return f"inputs {', '.join(map(str, names))} expected, got {got}"
    for feed in feeds:
        array = np.asarray(given[feed.name])
        if array.dtype != feed.dtype or not of_shape(array.shape, feed.shape):
            name = f"{feed.name}: " if feed.name else ""
            return f"{name}{feed.dtype} {feed.shape} expected, got {array.dtype} {array.shape}"
    return None


def content(value: Any) -> Any:
    """Return everything that a value consists of, to be compared with ``==``."""
    if isinstance(value, np.ndarray):
        return kind(value), np.ascontiguousarray(value).tobytes()
    parts = _parts(value, content)
    return value if parts is None else parts


def kind(value: Any) -> Any:
    """Return what a value is, whatever it holds: types, and of arrays type and shape."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    parts = _parts(value, kind)
    return type(value).__name__ if parts is None else parts


def _parts(value: Any, each: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: each(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [each(part) for part in value]
    if fields := getattr(type(value), "__dataclass_fields__", None):
        return type(value).__name__, {name: each(getattr(value, name)) for name in fields}
    return None
