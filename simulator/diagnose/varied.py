"""Name what differs between front ends of sounds by varying the stack as it was trained.

Single fields of the profile and of the model card are changed, and what then comes nearest to the
recorded inputs is kept, until these are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import JsonValue

from simulator.contract import Array
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.trial import changed, values_of
from simulator.errors import UserError
from simulator.experiments.session import Session
from simulator.pipeline.front_end import front_end
from simulator.pipeline.stack import ResolvedProfile

STEPS = 3
"""Fields at most that are changed of one side."""
ROUNDING = 1e-4
"""Inputs are equal where values are no further away in the mean, as a share of the largest."""
NEAREST = 0.2
"""The share of the difference that may be left of what is told."""
Values = Sequence[Any]
_CARD = "card."
"""How a key begins that is of the model card."""
Change = dict[str, JsonValue]


@dataclass(frozen=True)
class _Fit:
    """A stack that comes near to some inputs: the names of its changes, and what is left."""

    names: tuple[str, ...] = ()
    change: dict[str, JsonValue] = field(default_factory=dict)
    left: tuple[int, float] = (0, 0.0)


@dataclass(frozen=True)
class Varied:
    """Finds the stacks of both sides near the one that the model card describes."""

    session: Session
    items: Sequence[Item]
    plain: ResolvedProfile

    def findings(self, train: Values, deploy: Values) -> list[Finding]:
        """Return what the inputs of the deployment have otherwise; none where nothing comes near.

        Args:
            train: the inputs of the network of each sample, on the training stack.
            deploy: likewise.
        """
        ours = self._fitted(train, _Fit())
        theirs = self._fitted(deploy, ours)
        apart = _far(train, deploy)
        most = (0, ROUNDING if apart[0] else NEAREST * apart[1])
        if max(ours.left, theirs.left) > most:
            return []
        exact = max(ours.left, theirs.left) <= (0, ROUNDING)
        certainty = Certainty.ROUNDING if exact else Certainty.NEAREST
        told = (
            f"the front end that the model card describes, changed so, gives the deployment's "
            f"inputs up to a mean difference of {theirs.left[1]:.2g} of the largest value"
        )
        return [
            Finding(Part.FRONT_END, name, (told,), certainty, theirs.left[1], code=f"undo: {name}")
            for name in theirs.names[len(ours.names) :]
        ]

    def _fitted(self, wanted: Values, start: _Fit) -> _Fit:
        """Change one field after the other, each time the one that helps most."""
        best = _Fit(start.names, start.change, self._left(start.change, wanted))
        for _ in range(STEPS):
            if best.left <= (0, ROUNDING):
                break
            tried = [
                _Fit((*best.names, name), best.change | change,
                     self._left(best.change | change, wanted))
                for name, change in slips()
                if name not in best.names
            ]  # fmt: skip
            nearest = min(tried, key=lambda one: one.left, default=best)
            if nearest.left >= best.left:
                break
            best = nearest
        return best

    def _left(self, change: Change, wanted: Values) -> tuple[int, float]:
        """How far the changed stack is: samples of another shape, and the mean difference."""
        try:
            chain = self._chain(change)
            (found,) = values_of(self.session, {"": chain}, self.items).values()
        except (UserError, ValueError):
            return len(wanted) + 1, np.inf
        return _far(found, wanted)

    def _chain(self, change: Change) -> Chain:
        card = self.session.card
        own = {key: value for key, value in change.items() if not key.startswith(_CARD)}
        said = {key.removeprefix(_CARD): v for key, v in change.items() if key.startswith(_CARD)}
        given = card.spec.input.model_copy(update=said)
        spec = card.spec.model_copy(update={"input": given})
        return front_end(card, *changed(self.plain, own), self.items, spec)


def _far(one: Values, other: Values) -> tuple[int, float]:
    """How many samples have other shapes, and the mean difference by the largest value."""
    shapes, worst = 0, 0.0
    for a, b in zip(one, other, strict=True):
        mine, theirs = [*_leaves(a)], [*_leaves(b)]
        if [x.shape for x in mine] != [x.shape for x in theirs]:
            shapes += 1
            continue
        for x, y in zip(mine, theirs, strict=True):
            size = float(np.abs(y.astype(np.float64)).max(initial=0)) or 1.0
            far = float(np.abs(np.subtract(x, y, dtype=np.float64)).mean())
            worst = max(worst, far / size)
    return shapes, worst


def _leaves(value: Any) -> Iterator[Array]:
    for one in value.values() if isinstance(value, Mapping) else value:
        if isinstance(one, np.ndarray) and not isinstance(value, np.ndarray):
            yield one
        elif isinstance(value, np.ndarray):
            yield value
            return
        else:
            yield from _leaves(one)


def slips() -> Iterator[tuple[str, Change]]:
    """Yield what is often done otherwise: what engineers call it, and the fields that do it."""
    for key, words in _WORDS.items():
        for value, name in words.items():
            yield name, {key: value}
    yield from _TOGETHER
    for key, (values, name) in _NUMBERS.items():
        for value in values:
            yield name.format(value), {key: value}


_WORDS: dict[str, dict[Any, str]] = {
    "read.scale": {"int16": "samples reach to 32,768 in place of 1",
                   "unit": "samples reach to 1 in place of 32,768"},
    "read.channels": {"first": "the first channel is taken, not the mean of all"},
    "stft.center": {True: "frames are centered: both ends are padded"},
    "stft.pad_mode": {"constant": "both ends are padded with zeros",
                      "reflect": "both ends are padded by reflection"},
    "stft.window": {"hamming": "the window is Hamming's", "hann": "the window is Hann's",
                    "povey": "the window is Povey's"},
    "stft.window_symmetry": {"symmetric": "the window is symmetric, not periodic",
                             "periodic": "the window is periodic, not symmetric"},
    "stft.power": {1: "magnitudes in place of powers", 2: "powers in place of magnitudes"},
    "stft.scaling": {"window_sum": "magnitudes are divided by the sum of the window",
                     "sqrt_n": "magnitudes are divided by the root of the length"},
    "stft.frames": {"whole": "the last frames are whole ones",
                    "padded": "the end is padded until every sample is in a frame"},
    "mel.scale": {"htk": "the mel scale is HTK's", "slaney": "the mel scale is Slaney's"},
    "mel.norm": {"none": "mel filters are not normalized by their area",
                 "slaney": "mel filters are normalized by their area"},
    "mel.fmax": {"half_rate": "mel filters end at half of the sample rate"},
    "log.kind": {"log10": "the logarithm is log10", "ln": "the logarithm is natural",
                 "db": "the logarithm is in decibels"},
    "log.floor": {"max": "values are cut at the floor, which is not added",
                  "add": "the floor is added, and values are not cut"},
    "log.top_db": {80.0: "values more than 80 dB below the maximum are cut"},
    "normalize.kind": {"none": "the values are not normalized"},
}  # fmt: skip
_BY_ITSELF: dict[str, JsonValue] = {"normalize.epsilon": 0.0, "normalize.divide": True}
_TOGETHER: tuple[tuple[str, Change], ...] = (
    ("frames are not centered: nothing is padded at both ends",
     {"stft.center": False, "stft.pad_mode": None}),
    ("there is no window", {"stft.window": "none", "stft.window_symmetry": None}),
    ("each sound is normalized by its own mean and deviation",
     {"normalize.kind": "clip", **_BY_ITSELF}),
    ("each band is normalized by its own mean and deviation",
     {"normalize.kind": "bands", **_BY_ITSELF}),
)  # fmt: skip
_NUMBERS: dict[str, tuple[tuple[Any, ...], str]] = {
    "card.rate": ((8000, 16000, 22050, 24000, 44100, 48000), "the sample rate is {:,} Hz"),
    "card.hop": ((64, 80, 128, 160, 200, 256, 320, 512), "the hop is {} samples"),
    "stft.pre_emphasis": ((0.97, 0.95, 0), "the pre-emphasis is {}"),
    "mel.fmin": ((0.0, 20.0, 50.0, 80.0, 125.0), "mel filters begin at {:g} Hz"),
    "log.value": ((1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3, 1.0), "the floor is {:g}"),
}
