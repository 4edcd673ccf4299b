"""SysNoise's integer color conversion: equations 5-7 of the paper (MLSys 2023)."""

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
    Rows,
    Stage,
    fixed_point_rgb,
    full_chroma,
    subsample,
    yuv_frame,
)

_SOURCE = "Zhou et al., 'SysNoise', MLSys 2023, equations 5-7"
# Equations 5-6: rows Y, U, V over R, G, B, in 256ths.
_Y, _U, _V = (66, 129, 25), (-38, -74, 112), (112, -94, -18)
# Equation 7: rows R, G, B over Y - 16, U - 128, V - 128, in 256ths.
_ROWS: Rows = ((298, 0, 409), (298, -100, -208), (298, 516, 0))


class SysNoiseEncoder(Encoder):
    """Converts RGB to limited-range YUV in integers.

    Chroma is first computed and rounded for every pixel. Then ``average`` takes the mean of 2x2
    integers, rounded half up, and ``nearest`` the top left one.
    """

    def _encode(self, rgb: U8) -> Frame:
        wide = rgb.astype(np.int32)
        y, u, v = (
            _row(wide, weights, offset) for weights, offset in ((_Y, 16), (_U, 128), (_V, 128))
        )
        full = yuv_frame(PixelFormat.YUV444, y, u, v, Matrix.BT601, Range.LIMITED)
        wanted = PixelFormat(self.options["format"])
        return subsample(full, wanted, self.options["chroma_downsampling"])


class SysNoiseConverter(Converter):
    """Computes equation 7: the BT.601 limited-range matrix, +128, >> 8, clipped.

    ``linear`` chroma is rounded to integers before the matrix.
    """

    @property
    def assumes(self) -> tuple[Matrix, Range]:
        """Return BT.601 and limited range, the paper's only matrix."""
        return Matrix.BT601, Range.LIMITED

    def _convert(self, frame: Frame) -> U8:
        u, v = full_chroma(frame, self.options["chroma_upsampling"])
        return fixed_point_rgb(frame.planes[0], u, v, _ROWS, bias=16, half=128)


def _row(rgb: Array, weights: tuple[int, int, int], offset: int) -> U8:
    total = rgb[..., 0] * weights[0]
    total += rgb[..., 1] * weights[1]
    total += rgb[..., 2] * weights[2]
    total += 128
    total >>= 8
    total += offset
    return np.asarray(total.astype(np.uint8))


BACKEND = Backend(
    name="sysnoise",
    summary="The SysNoise paper's integer NV12: BT.601, limited range",
    offers=(
        Offer(
            Stage.ENCODE,
            {
                "format": ("nv12", "nv21", "i420", "yuv444"),
                "matrix": ("bt601",),
                "range": ("limited",),
                "chroma_downsampling": ("average", "nearest"),
            },
            SysNoiseEncoder,
            evidence=Evidence.EMULATED,
            source=_SOURCE,
        ),
        Offer(
            Stage.CONVERT,
            {
                "format": ("nv12", "nv21", "i420", "yuv444"),
                "matrix": ("bt601",),
                "range": ("limited",),
                "chroma_upsampling": ("nearest", "linear"),
            },
            SysNoiseConverter,
            evidence=Evidence.EMULATED,
            source=_SOURCE,
        ),
    ),
)
