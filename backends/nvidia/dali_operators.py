"""NVIDIA DALI: nvImageCodec's libjpeg-turbo or nvJPEG, and a separable resampler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from backends.nvidia.dali_engines import Apply, Dynamic, Pipelines, dali, types
from backends.nvidia.driver import cuda_device
from backends.nvidia.imagecodec import FORMATS
from simulator.contract import (
    U8,
    Admits,
    Array,
    Asked,
    Backend,
    Decoder,
    Encoded,
    Offer,
    Options,
    Resizer,
    Stage,
)

_KERNELS = {
    "bilinear": "INTERP_LINEAR",
    "bicubic": "INTERP_CUBIC",
    "lanczos3": "INTERP_LANCZOS3",
    "gaussian": "INTERP_GAUSSIAN",
    "triangular": "INTERP_TRIANGULAR",
    "nearest": "INTERP_NN",
}


def _engine(options: Options, apply: Apply) -> Pipelines | Dynamic:
    gpu = options["device"] != "cpu"
    if gpu:
        cuda_device(f"device: {options['device']}")
    return Dynamic(apply) if options["api"] == "dynamic" else Pipelines(apply, gpu=gpu)


class DaliDecoder(Decoder):
    """Decodes with ``decoders.image``; EXIF by ``adjust_orientation``.

    On the CPU ``jpeg_fancy_upsampling`` has no effect: chroma upsampling is always fancy
    (measured). On ``mixed`` nvJPEG uses its own inverse DCT. Files that it cannot decode (PNG, a
    few JPEGs) go to the CPU decoders, which use ``idct``. The hardware JPEG engine of some GPUs is
    not used, so that all images are decoded in the same way. 16 bits are rounded to 8, floats of 0
    to 1 become 0 to 255 (measured).

    Raises:
        MissingLibrary: ``mixed`` without a GPU.
    """

    reads: ClassVar[tuple[str, ...]] = FORMATS

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._engine = _engine(options, self._decode)

    def _decode(self, ops: Any, file: Any) -> Any:
        mixed = self.options["device"] == "mixed"
        gpu = "gpu" if self.options["api"] == "dynamic" else "mixed"
        return ops.decoders.image(
            file,
            device=gpu if mixed else "cpu",
            output_type=types.RGB,
            adjust_orientation=self.options["exif"] == "apply",
            use_fast_idct=self.options["idct"] == "ifast",
            jpeg_fancy_upsampling=self.options["chroma_upsampling"] == "fancy",
            hw_decoder_load=0.0,
        )

    def _rgb(self, image: Encoded) -> U8:
        return self._engine.run(file=np.frombuffer(image.data, np.uint8))


class DaliResizer(Resizer):
    """Resamples with ``resize``; ``antialias`` widens the kernel when shrinking.

    ``subpixel_scale`` is DALI's: with True, its default, a side of 341.33 pixels keeps its scale
    and the part of the image that is seen becomes that of 341; with False the whole image is
    squeezed to 341. ``triangular`` is DALI's deprecated name for ``bilinear`` and gives the same
    bits.

    Raises:
        MissingLibrary: ``gpu`` without a GPU.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._engine = _engine(options, self._resample)

    def _resample(self, ops: Any, plane: Any, size: Any, start: Any, end: Any) -> Any:
        return ops.resize(
            plane.gpu() if self.options["device"] == "gpu" else plane,
            size=size,
            roi_start=start,
            roi_end=end,
            interp_type=getattr(types, _KERNELS[self.options["interpolation"]]),
            antialias=self.options["antialias"],
        )

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        return self._resize_asked(plane, height, width, None)

    def _resize_asked(self, plane: U8, height: int, width: int, asked: Asked | None) -> U8:
        channels = np.ascontiguousarray(plane if plane.ndim == 3 else plane[..., None])
        sides, size = np.array(plane.shape[:2], np.float32), np.array((height, width), np.float32)
        keep = asked if self.options["subpixel_scale"] else None
        margin = sides * 0.5 * (size / (_exact(sides, keep) if keep else size).astype(float))
        out = self._engine.run(
            plane=channels,
            size=size,
            start=(sides * 0.5 - margin).astype(np.float32),
            end=(sides * 0.5 + margin).astype(np.float32),
        )
        return out.reshape(height, width, *plane.shape[2:])


def _exact(sides: Array, asked: Asked) -> Array:
    """Return the size before rounding, in float32 as DALI computes it from its ``mode``.

    Source:
        NVIDIA/DALI, dali/operators/image/resize/resize_attr_base.cc: AdjustOutputSize, and
        CalculateSampleParams for the region.
    """
    wanted = np.array((asked.rows, asked.columns), np.float32)
    scales = wanted / sides
    scale = scales.max() if asked.cover else scales.min()
    return np.where(scales == scale, wanted, (sides * float(scale)).astype(np.float32))


_SMOOTH = tuple(name for name in _KERNELS if name != "nearest")
_RESIZES: tuple[dict[str, Admits], ...] = (
    {"interpolation": _SMOOTH, "antialias": (True, False), "subpixel_scale": (True, False)},
    {"interpolation": ("nearest",), "antialias": (False,), "subpixel_scale": (True, False)},
)


_TURNED: tuple[dict[str, Admits], ...] = (
    {"exif": ("apply", "ignore"), "idct": ("islow",)},
    {"exif": ("ignore",), "idct": ("ifast",)},
)
"""A rotated JPEG is decoded without the fast IDCT (measured), so this pair is not offered."""


def _offers() -> Iterator[Offer]:
    """Yield one offer per device and API; the defaults are the first: cpu and pipeline."""
    for device, chroma in (("cpu", ("fancy",)), ("mixed", ("fancy", "plain"))):
        for api in ("pipeline", "dynamic"):
            for turned in _TURNED:
                yield Offer(
                    Stage.DECODE,
                    {**turned, "chroma_upsampling": chroma, "device": (device,), "api": (api,)},
                    DaliDecoder,
                    source="DALI documentation, nvidia.dali.fn.decoders.image",
                )
    for device in ("cpu", "gpu"):
        for api in ("pipeline", "dynamic"):
            for fields in _RESIZES:
                yield Offer(
                    Stage.RESIZE,
                    {**fields, "device": (device,), "api": (api,)},
                    DaliResizer,
                    source="DALI documentation, nvidia.dali.fn.resize",
                )


BACKEND = Backend(
    name="dali",
    summary="NVIDIA DALI: decoding by libjpeg-turbo or nvJPEG, resizing with antialias on or off",
    library=dali,
    offers=tuple(_offers()),
    dies_of=("png",),
    may_be_left_out=("api",),
    fields={
        "api": "a pipeline that is built once, or the dynamic mode",
        "chroma_upsampling": "libjpeg's triangle filter, or replication",
        "subpixel_scale": "keep the scale where a side is rounded, as DALI does unless told not to",
    },
)
