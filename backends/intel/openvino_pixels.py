"""OpenVINO's PrePostProcessor: the color conversion and resize that it adds before a model.

Both are compiled with an identity model for the CPU plugin, with float32 arithmetic and one thread.
The input size is dynamic, because the plugin gives the same bits as for a fixed size (measured).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np

from backends.intel.libraries import ov, preprocess
from simulator.contract import (
    U8,
    Admits,
    Array,
    Converter,
    Frame,
    Matrix,
    Offer,
    PixelFormat,
    Range,
    Resizer,
    Stage,
    Unsupported,
)

_ALGORITHMS = {
    ("nearest", False): "RESIZE_NEAREST",
    ("bilinear", False): "RESIZE_LINEAR",
    ("bicubic", False): "RESIZE_CUBIC",
    ("bilinear", True): "RESIZE_BILINEAR_PILLOW",
    ("bicubic", True): "RESIZE_BICUBIC_PILLOW",
}
_PLANES = {"nv12": ("NV12_TWO_PLANES", ["y", "uv"]), "i420": ("I420_THREE_PLANES", ["y", "u", "v"])}


class OpenVinoResizer(Resizer):
    """Resamples with ``preprocess().resize``, after conversion to float32, without rounding.

    Grid and kernel are OpenCV's without antialias, and Pillow's with it. At a tie ``nearest`` takes
    the left pixel; the other libraries take the right one.
    """

    gives: ClassVar[type[np.uint8] | type[np.float32]] = np.float32

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        # One compiled model per size: a camera has one size, a folder of photos has hundreds.
        self._compiled = lru_cache(maxsize=32)(self._compile)

    def _resize(self, plane: U8, height: int, width: int) -> Array:
        channels = plane if plane.ndim == 3 else plane[..., None]
        model = self._compiled(height, width, channels.shape[2])
        return _infer(model, [channels]).reshape(height, width, *plane.shape[2:])

    def _compile(self, height: int, width: int, channels: int) -> Any:
        algorithm = _ALGORITHMS[self.options["interpolation"], self.options["antialias"]]
        steps = preprocess.PrePostProcessor(_identity((height, width), channels, ov.Type.f32))
        image = steps.input()
        image.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        image.tensor().set_spatial_dynamic_shape()
        image.preprocess().convert_element_type(ov.Type.f32)
        image.preprocess().resize(getattr(preprocess.ResizeAlgorithm, algorithm))
        return _on_cpu(steps)


class OpenVinoConverter(Converter):
    """Converts with ``preprocess().convert_color``: BT.601, limited range, chroma repeated.

    Within 1 level of the formula. Luma below 16 is extrapolated, and not clipped as in OpenCV.
    OpenVINO refuses odd sizes, so the last luma row and column are repeated and the result is
    cropped.
    """

    @property
    def assumes(self) -> tuple[Matrix, Range]:
        """Return BT.601 and limited range; OpenVINO has no other."""
        return Matrix.BT601, Range.LIMITED

    def _convert(self, frame: Frame) -> U8:
        if frame.format not in _PLANES:
            raise Unsupported(f"OpenVINO converts {', '.join(_PLANES)}, not {frame.format}")
        luma = frame.planes[0]
        pad = [(0, size % 2) for size in luma.shape]
        planes = [np.pad(luma, pad, mode="edge"), *frame.planes[1:]]
        model = _converter(frame.format)
        rgb = _infer(model, [p if p.ndim == 3 else p[..., None] for p in planes])
        return np.ascontiguousarray(rgb[: frame.height, : frame.width])


@cache
def _converter(format: PixelFormat) -> Any:
    steps = preprocess.PrePostProcessor(_identity((-1, -1), 3, ov.Type.u8))
    layout, planes = _PLANES[format]
    color = preprocess.ColorFormat
    tensor = steps.input().tensor().set_element_type(ov.Type.u8)
    tensor.set_color_format(getattr(color, layout), planes)
    steps.input().preprocess().convert_color(color.RGB)
    return _on_cpu(steps)


def _identity(size: tuple[int, int], channels: int, kind: Any) -> Any:
    pixels = ov.opset13.parameter([1, *size, channels], kind, name="pixels")
    return ov.Model([ov.opset13.result(pixels)], [pixels], "identity")


def _on_cpu(steps: Any) -> Any:
    steps.input().model().set_layout(ov.Layout("NHWC"))
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": "1"}
    return ov.Core().compile_model(steps.build(), "CPU", options)


def _infer(model: Any, planes: Sequence[Array]) -> Array:
    """Run one (H, W, C) image, or its planes, in a new infer request."""
    feeds = {i: np.ascontiguousarray(plane)[None] for i, plane in enumerate(planes)}
    result = model.create_infer_request().infer(feeds, share_inputs=True)
    return np.asarray(result[0][0])


_SOURCE = "OpenVINO documentation, 'Preprocessing API': ResizeAlgorithm, ColorFormat"
_RESIZES: tuple[dict[str, Admits], ...] = (
    {"interpolation": ("bilinear", "bicubic"), "antialias": (True, False)},
    {"interpolation": ("nearest",), "antialias": (False,)},
)

OFFERS = (
    *(Offer(Stage.RESIZE, fields, OpenVinoResizer, source=_SOURCE) for fields in _RESIZES),
    Offer(
        Stage.CONVERT,
        {
            "format": tuple(_PLANES),
            "matrix": ("bt601",),
            "range": ("limited",),
            "chroma_upsampling": ("nearest",),
        },
        OpenVinoConverter,
        source=_SOURCE,
    ),
)
