"""Name what differs between the inputs that two stacks give the network, for the same images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from simulator.contract import Array
from simulator.diagnose import colors, normalization
from simulator.diagnose.broken import broken
from simulator.diagnose.finding import Certainty, Difference, Finding
from simulator.diagnose.levels import bits_of, levels_of, of_card, planes
from simulator.diagnose.normalization import Numbers
from simulator.diagnose.pixels import name_pixels
from simulator.diagnose.rounding import rounded
from simulator.diagnose.shift import moved_back
from simulator.identify.affine import Affine, affine
from simulator.identify.solve import ORDERS, Solution, alike, solve
from simulator.modalities.image.card import ImageCard
from simulator.modalities.image.sections import Arithmetic
from simulator.modalities.image.steps import normalize

_EXPLAINED = 0.5
"""A relation that leaves more of the spread explains nothing: the pixels are others."""
_STORED = {
    2: "mirrored left to right",
    3: "rotated by 180 degrees",
    4: "upside down",
    6: "rotated by 90 degrees counterclockwise",
    8: "rotated by 90 degrees clockwise",
}
"""How an image lies in a file of each EXIF orientation, against the image as displayed."""
_TWICE = 1.5
"""Levels that a conversion of colors leaves where the pixels of both stacks are whole levels."""
_HALF = 0.75
"""Levels that the rounding to a whole level leaves, at most; of limited range a level is wider."""


def name_inputs(
    train: Sequence[Array],
    deploy: Sequence[Array],
    card: ImageCard,
    numbers: Numbers | None = None,
    orientations: Sequence[int] = (),
) -> list[Finding]:
    """Name what the deployment's inputs have that the training's have not, by solving alone.

    Of other pixels :func:`simulator.diagnose.front_ends.named_by_search` says more.

    Args:
        train: what the network got of each image, each of the card's shape (batch of one).
        deploy: likewise, of the same images.
        card: of the model.
        numbers: mean and std of the training stack, in the order of the tensor's channels; those of
            the card by default.
        orientations: the EXIF orientation of each file, 1 where it has none.

    Returns:
        Nothing where all bits are equal, or where no relation of values explains the difference.
        The differences are undone together; each has what all leave, in the tensor's units.
    """
    if all(bits_of(one) == bits_of(other) for one, other in zip(train, deploy, strict=True)):
        return []
    right = numbers or of_card(card)
    before, after = ([planes(one, card) for one in some] for some in (train, deploy))
    if (lost := broken(before, after, right, card.input.order.upper())) is not None:
        return [lost.finding(Certainty.EXACT, None)]
    if (plain := rounded(before, after, right)) is not None:
        return [plain]
    levels = [levels_of(one, right) for one in before]
    found = solve(after, levels)
    if found.order == next(iter(ORDERS)) and not (found.fit.exact or _bytes(found.fit)):
        pixels = name_pixels(levels, after, right, card)
        if pixels and pixels[0].certainty.sure:
            return pixels
    else:
        pixels = []
    return _solved(found, after, levels, right, card, orientations) or pixels


def _solved(
    found: Solution,
    after: list[Array],
    levels: Sequence[Array],
    right: Numbers,
    card: ImageCard,
    orientations: Sequence[int],
) -> list[Finding]:
    """Name what least squares found."""
    moved = None
    if not found.fit.exact and (moved := moved_back(after, levels, found)) is not None:
        found, after = moved.solution, moved.tensors
    if found.fit.share > _EXPLAINED:
        return []
    names = list(_elements(found, card, orientations))
    if moved is not None:
        names.append(moved.named)
    names += _values(found, after, levels, right, card)
    certainty, left = _left(found, after, levels)
    own = names[0].left if len(names) == 1 else None
    if certainty is Certainty.NEAREST and own is not None and own <= _TWICE:
        certainty, left = Certainty.ROUNDING, own / float(right.std.min())
    rest = _rest(found.fit, certainty)
    return [one.finding(certainty, left, *rest) for one in names]


def _elements(
    found: Solution, card: ImageCard, orientations: Sequence[int]
) -> Iterator[Difference]:
    """Yield what happened to the order of the elements."""
    code = {
        "NHWC read as NCHW": "transpose from (H, W, C) to (C, H, W); a reshape does not",
        "NCHW read as NHWC": "transpose from (C, H, W) to (H, W, C); a reshape does not",
        "width and height exchanged": "the buffer is (height, width), not (width, height)",
        "NWHC read as NCHW": "transpose from (W, H, C) to (C, H, W)",
    }
    when = "before" if found.raw else "after"
    if found.stride is not None:
        unit = "of bytes, all channels of a pixel together" if found.interleaved else "a channel"
        shown = (f"rows {unit}, {found.stride} apart",)
        size = card.input.width * (3 if found.interleaved else 1)
        step = next((n for n in (256, 128, 64, 32, 16, 8, 4) if found.stride % n == 0), None)
        way = "read as dense ones" if found.order == "padded rows" else "of dense ones assumed"
        named = f"rows with a stride of {found.stride} elements for {size}"
        multiple = f" (a multiple of {step})" if step else ""
        yield Difference(f"{named}{multiple}, {way}", "copy row by row, by the stride", {}, shown)
    elif found.order != next(iter(ORDERS)):
        shown = (f"the elements are in order once that is undone, {when} the normalization",)
        turned = found.order.startswith(("rotated", "mirrored", "upside"))
        text = "turn the image back: apply the file's EXIF orientation, once" if turned else ""
        change = {"decode.exif": "apply"} if turned else {}
        name = _by_exif(found.order, orientations) if turned else found.order
        yield Difference(name, text or code[found.order], change, shown)
    if found.signed:
        yield Difference("uint8 taken for int8", "read the pixels as unsigned bytes")


def _by_exif(turn: str, orientations: Sequence[int]) -> str:
    """Name a turn by the EXIF orientation that all files have, where that is it."""
    (flag,) = set(orientations) if len(set(orientations)) == 1 else (1,)
    if turn == _STORED.get(flag):
        both = "EXIF applied by one stack only" if flag < 5 else "EXIF ignored"
        return f"{both} ({turn})"
    if turn == _STORED.get({6: 8, 8: 6}.get(flag, 1)):
        return f"EXIF applied, unlike in training ({turn})"
    return turn


def _values(
    found: Solution,
    after: Sequence[Array],
    levels: Sequence[Array],
    right: Numbers,
    card: ImageCard,
) -> Iterator[Difference]:
    """Yield what happened to channels, scale, offset and colors."""
    fit, channels = found.fit, card.input.order.upper()
    undone, made_of = alike(found, after, levels)
    told = (_told(fit),)
    if fit.order is None:
        yield from _colored(made_of, undone, right, card, told)
        return
    swapped = fit.order != (0, 1, 2)
    own = [right.of(fit.order), right] if swapped and sorted(fit.order) == [0, 1, 2] else [right]
    options = [normalization.named(fit, numbers, channels) for numbers in own]
    names = min(options, key=lambda some: (len(some), sum(one.figures for one in some)))
    if swapped:
        yield _swapped(fit.order, channels, names is options[0] and len(own) > 1, card)
    if any(one.figures for one in names):
        colored = list(_colored(made_of, undone, right, card, told))
        if colored and not swapped:
            yield from colored
            return
    usual = of_card(card)
    change: dict[str, object] = {
        f"normalize.{key}": "model"
        if np.array_equal(getattr(usual, key), value)
        else value.tolist()
        for key, value in (("mean", right.mean), ("std", right.std))
    }
    for one in names:
        yield replace(one, change=change, evidence=told)
    step = 0.0 if np.allclose(fit.step * right.std, 1, rtol=1e-3) else fit.step  # whole levels
    if fit.left_out and not names and not step:
        ends = [fun([fun(one[np.isfinite(one)]) for one in undone]) for fun in (np.min, np.max)]
        yield Difference(
            f"values are clipped to {ends[0]:.4g} and {ends[1]:.4g}",
            "do not clip the normalized tensor",
            {},
            (f"{100 * fit.left_out:.2g}% of the pixels have a value at an end",),
        )
    if step:
        text = (
            f"input is quantized: steps of {step:.4g}, {step / np.abs(fit.gain).max():.3g} levels"
        )
        yield Difference(text, "give the network the unquantized input", {}, told)


def _swapped(order: Sequence[int], channels: str, numbers_too: bool, card: ImageCard) -> Difference:
    got = "".join(channels[at] for at in order)
    when = "after" if numbers_too else "before"
    shown = (f"the tensor's channels are {got} where the network expects {channels}",)
    if len(set(order)) < 3:
        name = f"channels {got} in place of {channels}"
        return Difference(name, "take each channel once", {}, shown)
    name = "channels are swapped" if tuple(order) == (2, 1, 0) else f"channels are in order {got}"
    also = f"; they were swapped {when} the normalization"
    code = f"give the network {channels}: OpenCV reads BGR, Pillow RGB"
    return Difference(name, code, {"color.order": card.input.order}, (shown[0] + also,))


def _colored(
    made_of: Sequence[Array],
    undone: Sequence[Array],
    right: Numbers,
    card: ImageCard,
    told: tuple[str, ...],
) -> Iterator[Difference]:
    """Yield the conversion of colors that explains the levels; else the matrix itself."""
    step = 1 if card.input.order == "rgb" else -1
    out = [np.asarray(levels_of(one, right))[::step] for one in undone]
    seen = colors.named([one[::step] for one in made_of], out)
    if seen is not None:
        slip, left = seen
        shown = (*told, f"this conversion leaves {left:.2g} levels at most")
        yield Difference(slip.name, slip.code, slip.change, shown, left)
        return
    fit = affine(out, [one[::step] for one in made_of])
    if fit.order is None:
        if (times := colors.saturation(fit.matrix)) is not None:
            text = f"saturation times {times:.3g}"
            yield Difference(text, "leave the colors as they are decoded", {}, told)
            return
        rows = "; ".join(
            f"{name} = {' + '.join(f'{w:.3f} {c}' for w, c in zip(row, 'RGB', strict=True))}"
            f" + {b:.3g}"
            for name, row, b in zip("RGB", fit.matrix, fit.offset, strict=True)
        )
        yield Difference(f"colors are mixed: {rows}", "convert colors as in training", {}, told)


def _told(fit: Affine) -> str:
    """The relation in a sentence."""
    if fit.order is None:
        return "each channel of the tensor is made of several of the pixels'"
    shown = normalization.found_in(fit)
    mean, std = normalization.listed(shown.mean), normalization.listed(shown.std)
    return f"the tensor is (x - mean) / std of pixels 0-255 with mean {mean} and std {std}"


def _bytes(fit: Affine) -> bool:
    """Whether no more is left than the rounding of pixels to whole levels; of colors, twice."""
    return fit.levels <= (_HALF if fit.order is not None else 2)


def _rest(fit: Affine, certainty: Certainty) -> tuple[str, ...]:
    if certainty is Certainty.EXACT:
        return ("with these numbers all values have the same bits",)
    if fit.exact:
        return (f"that leaves {fit.largest:.2g}, which is rounding",)
    if _bytes(fit):
        return (f"that leaves {fit.largest:.2g}: pixels are rounded to whole levels",)
    return (f"that leaves {fit.largest:.2g} at most, {fit.levels:.3g} levels of a pixel",)


def _left(
    found: Solution, after: Sequence[Array], levels: Sequence[Array]
) -> tuple[Certainty, float]:
    """How well all that was found explains the tensors together."""
    fit = found.fit
    if not fit.exact:
        return Certainty.ROUNDING if _bytes(fit) else Certainty.NEAREST, fit.largest
    if fit.order is not None and not fit.step and not fit.left_out:
        undone, made_of = alike(found, after, levels)
        numbers = normalization.found_in(fit)
        for name in get_args(Arithmetic):
            if all(_equal(a, b, numbers, fit, name) for a, b in zip(undone, made_of, strict=True)):
                return Certainty.EXACT, 0.0
    return Certainty.ROUNDING, fit.largest


def _equal(planes: Array, pixels: Array, numbers: Numbers, fit: Affine, name: Arithmetic) -> bool:
    """Whether the numbers that were found give all bits, in one order of arithmetic."""
    assert fit.order is not None
    there = np.isfinite(planes) & np.isfinite(pixels[list(fit.order)])
    some = np.nan_to_num(pixels[list(fit.order)]).transpose(1, 2, 0)
    made = normalize(some, list(numbers.mean), list(numbers.std), name, "NCHW")[0]
    return bool((made[there] == planes[there]).all())
