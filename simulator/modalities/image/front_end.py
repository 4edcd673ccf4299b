"""The first part of a stack: which steps lead from an image file to the network's input."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.contract import Array, Stage
from simulator.contract.recipe import Recipe
from simulator.errors import ModelError
from simulator.modalities.image.card import geometry_of
from simulator.modalities.image.geometry import ZERO, Geometry
from simulator.modalities.image.sections import Arithmetic, image_spec
from simulator.modalities.image.steps import (
    Crop,
    Decode,
    Fit,
    Normalize,
    Pixels,
    Resize,
    Subsample,
    ToRgb,
    ToYuv,
)
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile


def front_end(profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
    """Return the steps from a file's bytes to the network's input tensor.

    Args:
        profile: the stack.
        choices: the implementation of each of its stages.
        card: the content of the model card.

    Raises:
        ModelError: the profile resizes to even sizes, and the model takes an odd size; or it
            resizes YUV, and the model's images are cropped before the resize.
    """
    color, resize = image_spec(profile).color, image_spec(profile).resize
    geometry = geometry_of(profile, card)
    _refuse_odd(profile, card, geometry)
    _refuse_crop(profile, card, geometry)
    planes = color.source == "planes"
    sizing: list[Recipe] = [Crop(geometry)] if geometry.crop_before_resize else []
    sizing.append(Resize(choices[Stage.RESIZE], geometry, color.odd_size))
    steps: list[Recipe] = [Decode(choices[Stage.DECODE], planes, choices.get(Stage.VIDEO))]
    if color.format == "rgb":
        steps += sizing
    else:
        converting = ToRgb(choices[Stage.CONVERT])
        steps.append(_to_yuv(profile, choices, planes))
        inside = resize.domain == "yuv"
        steps += [*sizing, converting] if inside else [converting, *sizing]
    order = color.order if color.order != "model" else card.input.order
    if card.input.dtype == "uint8":
        _refuse_unrounded(profile, choices, card)
        return [*steps, Fit(geometry), Pixels(order, card.input.layout)]
    mean, std = statistics(profile, card.input)
    asked = image_spec(profile).normalize
    of_card = asked.mean == asked.std == "model"
    arithmetic = in_order(asked.arithmetic, of_card, card.input)
    numbers = tuple(mean.tolist()), tuple(std.tolist())
    zeros = geometry if geometry.value == ZERO else None
    normalizing = Normalize(*numbers, arithmetic, order, card.input.layout, zeros, card.input.named)
    return [*steps, Fit(geometry), normalizing]


def in_order(asked: Arithmetic, of_card: bool, card: Any) -> Arithmetic:
    """Return the order of arithmetic: a card's numbers on 0-255 are used on pixels of 0-255.

    Args:
        asked: by the profile.
        of_card: whether mean and std are those of the card.
        card: the ``input`` section of the model card.
    """
    return "divide" if asked == "unit_divide" and of_card and card.top == 255 else asked


def _refuse_odd(profile: Profile, card: Any, geometry: Geometry) -> None:
    odd = geometry.height % 2 or geometry.width % 2
    if odd and in_pairs(profile) and geometry.kind == "squash":
        raise ModelError(
            f"{profile.where(('color', 'odd_size'))}: color.odd_size: drop resizes to even "
            f"sizes, but {card.name} takes {geometry.height}x{geometry.width}; "
            "write odd_size: keep, or resize.domain: rgb"
        )


def _refuse_unrounded(profile: Profile, choices: Choices, card: Any) -> None:
    """Refuse a resizer that does not round, and mean and std, before a network of uint8."""
    asked = image_spec(profile).normalize
    if choices[Stage.RESIZE].offer.make.gives is np.float32:
        raise ModelError(
            f"{profile.where(('resize', 'backend'))}: resize.backend: {card.name} takes uint8, and "
            f"{choices[Stage.RESIZE].backend.name} gives float32; use a resizer that rounds"
        )
    if (asked.mean, asked.std) != ("model", "model"):
        raise ModelError(
            f"{profile.where(('normalize', 'mean'))}: normalize: {card.name} takes uint8 pixels as "
            "they are; write mean: model, std: model"
        )


def _refuse_crop(profile: Profile, card: Any, geometry: Geometry) -> None:
    if geometry.crop_before_resize and image_spec(profile).resize.domain == "yuv":
        raise ModelError(
            f"{profile.where(('resize', 'domain'))}: resize.domain: yuv, but images of {card.name} "
            "are cropped before the resize, which is done in RGB; write resize.domain: rgb"
        )


def deviations(profile: Profile, card: Any) -> Array:
    """Return the std of a profile on 0-255, shaped to be multiplied with a normalized tensor."""
    std = statistics(profile, card.input)[1].astype(np.float32)
    return std[:, None, None] if card.input.layout == "NCHW" else std


def statistics(profile: Profile, card: Any) -> tuple[Array, Array]:
    """Return mean and std of a profile, (3,) float64 on 0-255, whatever scale the card uses.

    Args:
        profile: the stack.
        card: the ``input`` section of the model card.
    """
    scale = 255 / card.top
    values = []
    for asked, own in (
        (image_spec(profile).normalize.mean, card.mean),
        (image_spec(profile).normalize.std, card.std),
    ):
        chosen = [v * scale for v in own] if asked == "model" else asked
        values.append(np.array(chosen, np.float64))
    return values[0], values[1]


def _to_yuv(profile: Profile, choices: Choices, planes: bool) -> Recipe:
    color, choice = image_spec(profile).color, choices[Stage.ENCODE]
    assert color.odd_size is not None
    if planes:
        return Subsample(color.format, choice.options["chroma_downsampling"], color.odd_size)
    return ToYuv(choice, color.odd_size)


def in_pairs(profile: Profile) -> bool:
    """Return whether images are resized to even sizes: in YUV with odd rows and columns dropped."""
    color = image_spec(profile).color
    subsampled = color.format not in ("rgb", "yuv444")
    return subsampled and color.odd_size == "drop" and image_spec(profile).resize.domain == "yuv"
