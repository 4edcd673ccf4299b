"""The formulas of ITU-R BT.601 and BT.709 between RGB and YUV, in float32."""

from __future__ import annotations

import numpy as np

from simulator.contract import (
    U8,
    Array,
    Backend,
    Converter,
    Encoder,
    Evidence,
    Frame,
    Matrix,
    Offer,
    PixelFormat,
    Range,
    Stage,
    full_chroma_float,
    yuv_frame,
)

_SOURCE = (
    "ITU-R BT.601-7 2.5 and BT.709-6 3 (coefficients, limited range), "
    "ITU-T T.871 / JFIF 7 (full range)"
)
# Kr and Kb: BT.601-7 2.5.1, BT.709-6 3.2. Kg is what is left of 1.
_COEFFICIENTS = {Matrix.BT601: (0.299, 0.114), Matrix.BT709: (0.2126, 0.0722)}
# Luma offset, luma span, chroma span: BT.601-7 2.5.3, T.871 7. Chroma is centred on 128.
_SPANS = {Range.FULL: (0, 255, 255), Range.LIMITED: (16, 219, 224)}


class ItuEncoder(Encoder):
    """Converts RGB to YUV by the formulas.

    Chroma is averaged before rounding: U and V of a 2x2 block are those of its mean RGB, rounded
    once; exact halves may round up or down because of float32. ``nearest`` takes the top left
    pixel. Edges of odd sizes are repeated.
    """

    def _encode(self, rgb: U8) -> Frame:
        matrix, range = Matrix(self.options["matrix"]), Range(self.options["range"])
        format = PixelFormat(self.options["format"])
        kr, kb = _COEFFICIENTS[matrix]
        offset, luma, chroma = _SPANS[range]
        y = _dot(rgb, kr, kb) * np.float32(luma / 255) + np.float32(offset)
        small = rgb
        if format.subsampling != (1, 1):
            average = self.options["chroma_downsampling"] == "average"
            small = _means(rgb) if average else rgb[::2, ::2]
        small_y = _dot(small, kr, kb)
        scale = chroma / 255 / 2
        u = (small[..., 2] - small_y) * np.float32(scale / (1 - kb)) + np.float32(128)
        v = (small[..., 0] - small_y) * np.float32(scale / (1 - kr)) + np.float32(128)
        return yuv_frame(format, _rounded(y), _rounded(u), _rounded(v), matrix, range)


class ItuConverter(Converter):
    """Converts YUV to RGB by the formulas; chroma is upsampled in float, rounded once."""

    @property
    def assumes(self) -> tuple[Matrix, Range]:
        """Return the profile's matrix and range."""
        return Matrix(self.options["matrix"]), Range(self.options["range"])

    def _convert(self, frame: Frame) -> U8:
        matrix, range = self.assumes
        kr, kb = _COEFFICIENTS[matrix]
        kg = 1 - kr - kb
        offset, luma, chroma = _SPANS[range]
        u, v = full_chroma_float(frame, self.options["chroma_upsampling"])
        y = (frame.planes[0].astype(np.float32) - np.float32(offset)) * np.float32(255 / luma)
        u = (u - np.float32(128)) * np.float32(2 * 255 / chroma * (1 - kb))
        v = (v - np.float32(128)) * np.float32(2 * 255 / chroma * (1 - kr))
        green = y - u * np.float32(kb / kg) - v * np.float32(kr / kg)
        out = np.empty((*y.shape, 3), np.uint8)
        for channel, samples in enumerate((y + v, green, y + u)):
            out[..., channel] = _rounded(samples)
        return out


def _dot(rgb: Array, kr: float, kb: float) -> Array:
    """Return the luma of RGB, both on the scale 0-255, (H, W) float32."""
    weights = np.array((kr, 1 - kr - kb, kb), np.float32)
    red, green, blue = (rgb[..., i] * weights[i] for i in (0, 1, 2))
    return np.asarray(red + green + blue)


def _means(rgb: U8) -> Array:
    """Return the means of 2x2 blocks, (ceil(H/2), ceil(W/2), 3) float32."""
    pad = ((0, rgb.shape[0] % 2), (0, rgb.shape[1] % 2), (0, 0))
    full = np.pad(rgb, pad, mode="edge").astype(np.uint16)
    rows = full[::2] + full[1::2]
    return (rows[:, ::2] + rows[:, 1::2]).astype(np.float32) * np.float32(0.25)


def _rounded(samples: Array) -> U8:
    np.rint(samples, out=samples)
    np.clip(samples, 0, 255, out=samples)
    return samples.astype(np.uint8)


BACKEND = Backend(
    name="itu",
    summary="ITU-R BT.601 and BT.709 in float32, full and limited range",
    offers=(
        Offer(
            Stage.ENCODE,
            {
                "format": ("nv12", "nv21", "i420", "yuv444"),
                "matrix": ("bt601", "bt709"),
                "range": ("full", "limited"),
                "chroma_downsampling": ("average", "nearest"),
            },
            ItuEncoder,
            evidence=Evidence.EMULATED,
            source=_SOURCE,
        ),
        Offer(
            Stage.CONVERT,
            {
                "format": ("nv12", "nv21", "i420", "yuv411", "yuv422", "yuv440", "yuv444"),
                "matrix": ("bt601", "bt709"),
                "range": ("full", "limited"),
                "chroma_upsampling": ("nearest", "linear"),
            },
            ItuConverter,
            evidence=Evidence.EMULATED,
            source=_SOURCE,
        ),
    ),
)
