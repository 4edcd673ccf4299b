"""The space of profiles that could have made a recording: columns of options over one base.

A space is a suite (:mod:`simulator.profile.suite`) of which every stack takes one option of *each*
column, in the order of the columns; a later option overrides an earlier one. So the column
``format`` comes after those that say how YUV is made: its option ``rgb`` removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import yaml

from simulator import registry
from simulator.contract import Stage
from simulator.contract.model_format import ONNX
from simulator.errors import ProfileError, UserError
from simulator.experiments.search import space as search
from simulator.identify import columns
from simulator.identify.options import Column, section, with_base
from simulator.modalities.image.card import ImageCard
from simulator.model.card import Card
from simulator.profile.load import load
from simulator.profile.suite import load_suite

Kind = Literal["frames", "tensors", "outputs", "predictions"]
After = Literal["decode", "resize", "geometry"]
Picks = Mapping[str, str]
"""The name of an option for each column."""
_DECODED = ("decode",)
_RESIZED = (
    "decode", "resize", "domain", "geometry", "encode", "convert", "source", "odd_size", "format",
)  # fmt: skip
_TENSORS = (*_RESIZED, "order", "normalize")
_OUTPUTS = (*_TENSORS, "pooling", "runtime")


@dataclass(frozen=True)
class Space(search.Space):
    """Axes with options over a base profile; a stack has one option of each."""

    name: str = "space"

    @property
    def size(self) -> int:
        """Return how many combinations of options there are, those that cannot run included."""
        return prod(len(options) for options in self.axes.values())

    def fits(self, picks: Picks, card: Card) -> bool:
        """Whether a combination is possible, alone and for a model."""
        try:
            profile, choices = self.stack(picks)
            card.modality.front_end(profile, choices, card.spec)
        except UserError:
            return False
        return True

    def document(self) -> str:
        """Return the space as a document, to be narrowed by hand."""
        spec = {
            "schema": 1,
            "name": self.name,
            "summary": "every stack takes one option of each column, in this order",
            "train": self.base,
            "columns": {axis: dict(options) for axis, options in self.axes.items()},
        }
        return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=100)


def space(
    base: str, card: Card, kind: Kind = "tensors", after: After | None = None, slow: bool = True
) -> Space:
    """Return every option that runs here, of every column that a recording of a kind depends on.

    Args:
        base: the profile that the options change: a path or a name.
        card: of the model; its geometry and normalization are options.
        kind: of the recording.
        after: for ``frames``: the stage after which they were taken.
        slow: with libraries that take seconds to import.

    Raises:
        UserError: the base cannot be used, or the model takes no images.
    """
    if not isinstance(card.spec, ImageCard):
        raise UserError(f"{card.path}: only stacks that take images can be identified")
    profile = load(base)
    wanted = _wanted(kind, after)
    found: dict[str, Column] = {}
    for axis in wanted:
        options = _column(axis, profile, card, slow)
        if options:
            found[axis] = options
    return Space(base, found)


def load_space(reference: str | Path) -> Space:
    """Load a space from a document in the form of a suite; its ``train`` is the base.

    Raises:
        ProfileError: it does not exist, or is malformed.
    """
    suite = load_suite(str(reference))
    if suite.spec.combined is not None:
        raise ProfileError([f"{suite.path}: combined: a space has none; remove it"])
    return Space(suite.spec.train, suite.spec.columns, name=suite.spec.name)


def _wanted(kind: Kind, after: After | None) -> Sequence[str]:
    if kind == "frames":
        return _DECODED if after == "decode" else _RESIZED
    return _TENSORS if kind == "tensors" else _OUTPUTS


def _column(axis: str, base: Any, card: Card, slow: bool) -> Column:
    spec = card.spec
    assert isinstance(spec, ImageCard)

    def offered(stage: str, key: str) -> Column:
        return with_base(section(stage, key, slow), key, base)

    made: dict[str, Callable[[], Column]] = {
        "decode": lambda: with_base(_decoders(slow), "decode", base),
        "resize": lambda: offered(Stage.RESIZE, "resize"),
        "encode": lambda: offered(Stage.ENCODE, "color.encode"),
        "convert": lambda: offered(Stage.CONVERT, "color.convert"),
        "domain": lambda: columns.words("resize.domain", "rgb", "yuv"),
        "source": lambda: columns.words("color.source", "encode", "planes"),
        "odd_size": lambda: columns.words("color.odd_size", "keep", "drop"),
        "format": columns.formats,
        "order": lambda: columns.words("color.order", "rgb", "bgr"),
        "geometry": lambda: columns.geometries(base, spec),
        "normalize": lambda: columns.normalizations(base, spec),
        "pooling": lambda: columns.poolings(_operators(card)),
        "runtime": lambda: columns.runtimes(base),
    }
    return made[axis]()


def _decoders(slow: bool) -> Column:
    """Those of JPEG, which the probes are; cameras' planes need a section that develops them."""
    every = section(Stage.DECODE, "decode", slow)
    jpeg = registry.readers("jpeg")
    return {name: one for name, one in every.items() if one["decode"]["backend"] in jpeg}


def _operators(card: Card) -> set[str]:
    import onnx

    if card.format.name != ONNX:
        return set()
    graph = onnx.load(str(card.model), load_external_data=False).graph
    return {node.op_type for node in graph.node}
