"""The normalization of recorded tensors, solved from the pixels of a stack that is near.

Mean, std and order of the channels are no matter of search: least squares give them, and of whole
levels the values themselves tell which float32 numbers were typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, get_args

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Boundary
from simulator.data.folder import Item
from simulator.experiments.session import Session
from simulator.identify.affine import Affine, affine, shortest
from simulator.identify.arithmetic import KEY, LEVELS
from simulator.identify.composer import Composer, Failed, Known, Point
from simulator.identify.options import Fields
from simulator.identify.target import Target
from simulator.modalities.image.card import ImageCard
from simulator.modalities.image.sections import Arithmetic, image_spec
from simulator.modalities.image.steps import normalize
from simulator.profile.load import load
from simulator.profile.suite import Option

Triple = tuple[float, float, float]
"""A number for each channel."""
IMAGES = 4
"""Images at most to which a normalization is fitted."""
NAME = "solved"
_TOP = 255.0
_POINTS = 50_000
_CERTAIN = 6.0
"""Standard errors within which a number is another one."""
_MOVED = 0.25, 32.0
"""By how much a wrong range or matrix moves std, as a share, and mean, in levels."""
_AROUND = 4
"""Units in the last place by which least squares may miss a float32 number; they miss by one."""
_EXPLAINED = 0.5
"""A fit that leaves a larger share is of other pixels."""


@dataclass(frozen=True, slots=True)
class Normalization:
    """(level - mean) / std, with the channels in an order.

    Attributes:
        mean: of each channel of the tensor, on 0-255.
        std: likewise.
        order: ``rgb`` or ``bgr``; None where they are in no such order.
        arithmetic: the order of arithmetic that has the recorded bits, None where it is not known.
    """

    mean: Triple
    std: Triple
    order: str | None
    arithmetic: str | None

    @property
    def fields(self) -> Fields:
        """As the section of a profile."""
        found: Fields = {"normalize": {"mean": list(self.mean), "std": list(self.std)}}
        return found | ({KEY: self.arithmetic} if self.arithmetic else {})


def errors(fit: Affine) -> tuple[float, float]:
    """Return how uncertain a fit's std is, as a share, and its zero, in levels."""
    share = _CERTAIN * fit.error + 1e-7
    return share, share * (_TOP / 2 + float(np.abs(fit.zero).max()))


def tidy(value: float, error: float) -> float:
    """Return the number with the fewest digits within an error, on 0-255 or on 0-1, times 255."""
    levels, unit = shortest(value, error), shortest(value / _TOP, error / _TOP)
    if len(f"{unit:.9g}") < len(f"{levels:.9g}"):
        return float(f"{unit * _TOP:.12g}")
    return levels


class Solver:
    """Solves the normalization of recorded tensors from the pixels of points of a space.

    Args:
        session: the model and the samples.
        composer: makes the stacks; an option of its axis ``normalize`` is added for what is solved.
        target: what was recorded.
        items: the images.
    """

    def __init__(
        self, session: Session, composer: Composer, target: Target, items: Sequence[Item]
    ) -> None:
        self._session, self._composer, self._target = session, composer, target
        self._items = list(items[:IMAGES])
        axes = composer.axes
        self._normalize = next(
            (axis for axis, some in axes.items() if _only(some, "normalize")), ""
        )

    def solve(self, point: Point) -> Normalization | None:
        """Solve, and add what is found to the options of the composer.

        Numbers that are not exact, and not far from those of an option, are taken for these: a
        wrong range or matrix moves them.

        Returns:
            None where its pixels explain nothing, or the space has no normalization to be changed.
        """
        steps = self._composer.front(point)
        if not self._normalize or steps is None:
            return None
        pixels = [self._pixels(steps, item) for item in self._items]
        pairs = [
            (self._planes(item), one)
            for item, one in zip(self._items, pixels, strict=True)
            if one is not None
        ]
        pairs = [(a, b) for a, b in pairs if a.shape == b.shape]
        if not pairs:
            return None
        fit = affine([a for a, _ in pairs], [b for _, b in pairs], _POINTS, mixed=False)
        found = self._found(fit, [a for a, _ in pairs], [b for _, b in pairs])
        if found is not None:
            exact = found.arithmetic is not None or fit.exact
            self._offer(found, *((1e-5, 1e-3) if exact else _MOVED))
        return found

    def _offer(self, found: Normalization, share: float, levels: float) -> None:
        """Add what was solved to the options, where none of them is it within errors."""
        options = self._composer.axes[self._normalize]
        for name, option in options.items():
            mean, std = self._numbers(option)
            near = np.allclose(mean, found.mean, rtol=0, atol=levels)
            if near and np.allclose(std, found.std, rtol=share, atol=0):
                if option.get(KEY) is None and found.arithmetic:
                    options[f"{name}, {found.arithmetic}"] = {**option, KEY: found.arithmetic}
                return
        count = sum(name.startswith(NAME) for name in options)
        options[f"{NAME} {count + 1}" if count else NAME] = found.fields

    def _numbers(self, option: Option) -> tuple[Array, Array]:
        """Mean and std of an option, on 0-255."""
        card = self._session.card.spec
        assert isinstance(card, ImageCard)
        written = option.get("normalize", {})
        base = image_spec(load(self._composer.base)).normalize
        found = []
        for key in ("mean", "std"):
            asked = written.get(key, getattr(base, key))
            own = np.array(getattr(card.input, key)) * _TOP / card.input.top
            found.append(own if asked == "model" else np.array(asked, np.float64))
        return found[0], found[1]

    def _pixels(self, steps: Sequence[Known], item: Item) -> Array | None:
        """The pixels that a stack normalizes, (3, H, W) in the order R, G, B."""
        context = self._session.executor.context(item)
        value: Any = context.source
        for step in steps:
            if step.gives is not Boundary.INPUT:
                value = step.open(self._session.builder.runtimes)(value, context)
        return None if isinstance(value, Failed) else np.asarray(value).transpose(2, 0, 1)

    def _planes(self, item: Item) -> Array:
        card = self._session.card.spec
        assert isinstance(card, ImageCard)
        tensor: Array = self._target.of(item)[0]
        return tensor if card.input.layout == "NCHW" else tensor.transpose(2, 0, 1)

    def _found(
        self, fit: Affine, tensors: Sequence[Array], pixels: Sequence[Array]
    ) -> Normalization | None:
        if fit.share > _EXPLAINED or fit.order not in set(permutations(range(3))):
            return None
        order = {(0, 1, 2): "rgb", (2, 1, 0): "bgr"}.get(fit.order)
        made_of = [one[list(fit.order)] for one in pixels]
        seen = [np.unique([t[c] for t in tensors]) for c in range(3)]
        mean, std = tidied(fit)
        for name in get_args(Arithmetic):
            table = normalize(LEVELS, mean, std, name, "NHWC")[0, :, 0]
            if all(np.isin(values, table[:, c]).all() for c, values in enumerate(seen)):
                return Normalization(mean, std, order, name)
            typed = [_typed(seen[c], fit.zero[c], fit.std[c], name) for c in range(3)]
            one, two, three = typed
            if one and two and three:
                mean, std = (one[0], two[0], three[0]), (one[1], two[1], three[1])
                return Normalization(mean, std, order, name)
        if not fit.exact:
            mean, std = (_plain(some) for some in (fit.zero, fit.std))
            return Normalization(mean, std, order, None)
        for name in get_args(Arithmetic):
            made = (normalize(p.transpose(1, 2, 0), mean, std, name, "NCHW")[0] for p in made_of)
            if all(np.array_equal(a, b) for a, b in zip(made, tensors, strict=True)):
                return Normalization(mean, std, order, name)
        return Normalization(mean, std, order, None)


def _plain(values: Array) -> Triple:
    one, two, three = (float(f"{value:.8g}") for value in values)
    return one, two, three


def _only(options: Any, section: str) -> bool:
    keys = {key.partition(".")[0] for option in options.values() for key in option}
    return keys <= {section}


def tidied(fit: Affine) -> tuple[Triple, Triple]:
    """Return mean and std of a fit, with the digits that it supports."""
    off, far = errors(fit)
    a, b, c = (tidy(float(value), far) for value in fit.zero)
    d, e, f = (tidy(float(value), abs(float(value)) * off) for value in fit.std)
    return (a, b, c), (d, e, f)


def _typed(values: Array, zero: float, std: float, name: Arithmetic) -> tuple[float, float] | None:
    """Return the mean and std, on 0-255, of the nearest float32 numbers that give all values.

    Of those that do, the ones with the fewest digits: what a person typed.
    """
    if values.size > 256:
        return None
    unit = _TOP if name == "unit_divide" else 1.0
    means, stds = (_neighbors(number / unit) for number in (zero, std))
    found = []
    for m in means:
        for some in (stds[at : at + 3] for at in range(0, len(stds), 3)):
            numbers = [one * unit for one in some]
            table = normalize(LEVELS, [m * unit] * 3, numbers, name, "NHWC")[0, :, 0]
            found += [(m, s) for at, s in enumerate(some) if np.isin(values, table[:, at]).all()]
    if not found:
        return None
    mean, std = min(found, key=lambda pair: len(f"{pair[0]}{pair[1]}"))
    return float(f"{mean * unit:.12g}"), float(f"{std * unit:.12g}")


def _neighbors(number: float) -> list[float]:
    """The float32 numbers around one, in the fewest digits that tell each from the others."""
    ulp = np.spacing(np.float32(number))
    some = (np.float32(number) + ulp * np.float32(by) for by in range(-_AROUND, _AROUND + 1))
    return [float(str(one)) for one in some]
