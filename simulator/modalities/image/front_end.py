"""From the bytes of a file to the tensor that the network takes: the steps of a stack."""

from __future__ import annotations

import numpy as np

from simulator.contract import (
    Array,
    Converter,
    Decoder,
    Encoder,
    Frame,
    PixelFormat,
    Resizer,
    Stage,
    even,
    subsample,
)
from simulator.errors import ModelError
from simulator.modalities.image.geometry import Geometry
from simulator.model.card import Card, Input
from simulator.pipeline.plan import Step
from simulator.profile.implementations import Choices
from simulator.profile.load import Profile


def preprocessing(profile: Profile, choices: Choices, card: Card) -> list[Step]:
    """Return the steps from a file's bytes to the network's input tensor.

    Args:
        profile: the stack.
        choices: the implementations behind it; their libraries are imported here.
        card: the model card.
    """
    color, resize = profile.spec.color, profile.spec.resize
    geometry = card.geometry(profile)
    _refuse_odd(profile, card, geometry)
    decoder: Decoder = choices[Stage.DECODE].make()
    resizer: Resizer = choices[Stage.RESIZE].make()
    planes = color.source == "planes"
    steps = [
        Step(
            "decode",
            ["decode", planes, choices[Stage.DECODE].identity()],
            lambda image, _: decoder.planes(image) if planes else decoder.rgb(image),
        )
    ]
    resampling = Step(
        "resize",
        ["resize", choices[Stage.RESIZE].identity(), geometry.identity(), color.odd_size],
        lambda frame, _: _resample(resizer, geometry, frame, color.odd_size),
        resized=geometry.resized,
    )
    if color.format == "rgb":
        steps.append(resampling)
    else:
        converter: Converter = choices[Stage.CONVERT].make()
        converting = Step(
            "color",
            ["convert", choices[Stage.CONVERT].identity()],
            lambda frame, _: converter.convert(frame),
        )
        steps.append(_to_yuv(profile, choices, planes))
        inside = resize.domain == "yuv"
        steps += [resampling, converting] if inside else [converting, resampling]
    mean, std = statistics(profile, card.spec.input)
    order = color.order if color.order != "model" else card.spec.input.order
    layout = card.spec.input.layout
    return [
        *steps,
        Step(
            "geometry",
            ["fit", geometry.identity()],
            lambda frame, _: geometry.fit(frame.rgb),
        ),
        Step(
            "normalize",
            ["normalize", mean.tolist(), std.tolist(), order, layout],
            lambda rgb, _: normalize(rgb, mean, std, order, layout),
        ),
    ]


def _refuse_odd(profile: Profile, card: Card, geometry: Geometry) -> None:
    odd = geometry.height % 2 or geometry.width % 2
    if odd and in_pairs(profile) and geometry.kind == "squash":
        raise ModelError(
            f"{profile.where(('color', 'odd_size'))}: color.odd_size: drop resizes to pairs of "
            f"pixels, and {card.spec.name} takes {geometry.height}x{geometry.width}; "
            "write odd_size: keep, or resize.domain: rgb"
        )


def normalize(rgb: Array, mean: Array, std: Array, order: str, layout: str) -> Array:
    """Turn pixels into the network's input: (x - mean) / std in float32.

    Args:
        rgb: (H, W, 3) uint8 in R, G, B order.
        mean: (3,) float32 on 0-255, in the order of the tensor's channels.
        std: (3,) float32 on 0-255, likewise.
        order: ``rgb`` or ``bgr``, the channel order of the tensor.
        layout: ``NCHW`` or ``NHWC``.

    Returns:
        (1, 3, H, W) or (1, H, W, 3) float32, C-contiguous.
    """
    pixels = rgb if order == "rgb" else rgb[..., ::-1]
    if layout == "NCHW":
        planes = np.empty((1, 3, *rgb.shape[:2]), np.float32)
        np.subtract(pixels.transpose(2, 0, 1), mean[:, None, None], out=planes[0])
        planes[0] /= std[:, None, None]
        return planes
    rows = np.subtract(pixels, mean, dtype=np.float32)
    rows /= std
    return rows[None]


def deviations(profile: Profile, card: Card) -> Array:
    """Return the std by which a profile divides, shaped to undo that on a tensor."""
    std = statistics(profile, card.spec.input)[1]
    return std[:, None, None] if card.spec.input.layout == "NCHW" else std


def statistics(profile: Profile, card: Input) -> tuple[Array, Array]:
    """Return mean and std on 0-255, whatever scale the card uses."""
    scale = 255 / card.top
    values = []
    for asked, own in (
        (profile.spec.normalize.mean, card.mean),
        (profile.spec.normalize.std, card.std),
    ):
        chosen = [v * scale for v in own] if asked == "model" else asked
        values.append(np.array(chosen, np.float32))
    return values[0], values[1]


def _to_yuv(profile: Profile, choices: Choices, planes: bool) -> Step:
    color = profile.spec.color
    assert color.encode is not None and color.odd_size is not None
    odd_size, format = color.odd_size, PixelFormat(color.format)
    choice = choices[Stage.ENCODE]
    if planes:
        how = choice.options["chroma_downsampling"]
        return Step(
            "color",
            ["subsample", color.format, how, odd_size],
            lambda frame, _: even(subsample(frame, format, how), odd_size),
        )
    encoder: Encoder = choice.make()
    return Step(
        "color",
        ["encode", choice.identity(), odd_size],
        lambda frame, _: encoder.encode(even(frame, odd_size)),
    )


def _resample(resizer: Resizer, geometry: Geometry, frame: Frame, odd_size: str | None) -> Frame:
    drop = frame.format.subsampling != (1, 1) and odd_size == "drop"
    return resizer.frame(frame, *target(geometry, frame.height, frame.width, drop))


def in_pairs(profile: Profile) -> bool:
    """Whether images are resized to pairs of pixels: in YUV, where an odd row or column is lost."""
    color = profile.spec.color
    subsampled = color.format not in ("rgb", "yuv444")
    return subsampled and color.odd_size == "drop" and profile.spec.resize.domain == "yuv"


def target(geometry: Geometry, height: int, width: int, even: bool) -> tuple[int, int]:
    """Return (rows, columns) to which an image is resampled; whole pairs where *even* is set."""
    rows, columns = geometry.resized(height, width)
    return (rows & ~1, columns & ~1) if even else (rows, columns)
