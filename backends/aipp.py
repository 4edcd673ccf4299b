"""Huawei Ascend's AIPP: its published integer color matrices, computed on any machine."""

from __future__ import annotations

from simulator.contract import (
    U8,
    Backend,
    Converter,
    Evidence,
    Frame,
    Matrix,
    Offer,
    Range,
    Rows,
    Stage,
    fixed_point_rgb,
    full_chroma,
)

# Rows R, G, B over Y, U, V, in 256ths: CANN, ATC, "CSC Configuration", YUV420SP_U8 to RGB
# (matrix_r*c* and input_bias_*), which lists all five presets:
# hiascend.com/document/detail/en/canncommercial/800/devaids/atc/atlasatc_16_0021.html
_JPEG: Rows = ((256, 0, 359), (256, -88, -183), (256, 454, 0))
_BT601_NARROW: Rows = ((298, 0, 409), (298, -100, -208), (298, 516, 0))
_BT709_NARROW: Rows = ((298, 0, 459), (298, -55, -136), (298, 541, 0))
_BT709_WIDE: Rows = ((256, 0, 403), (256, -48, -120), (256, 475, 0))

_PRESETS: dict[str, tuple[Rows, Matrix, Range]] = {
    "JPEG": (_JPEG, Matrix.BT601, Range.FULL),
    "BT601_NARROW": (_BT601_NARROW, Matrix.BT601, Range.LIMITED),
    "BT601_WIDE": (_JPEG, Matrix.BT601, Range.FULL),
    "BT709_NARROW": (_BT709_NARROW, Matrix.BT709, Range.LIMITED),
    "BT709_WIDE": (_BT709_WIDE, Matrix.BT709, Range.FULL),
}


class AippConverter(Converter):
    """Computes ``(matrix x (Y - b0, U - 128, V - 128)) >> 8``, clipped to 0-255.

    The shift is arithmetic: it floors. The hardware's chroma upsampling is not
    published, so the profile must set it; ``linear`` is rounded to integers before the matrix.
    """

    @property
    def assumes(self) -> tuple[Matrix, Range]:
        """Return the matrix and range of the preset."""
        _, matrix, range = _PRESETS[self.options["preset"]]
        return matrix, range

    def _convert(self, frame: Frame) -> U8:
        rows, _, range = _PRESETS[self.options["preset"]]
        u, v = full_chroma(frame, self.options["chroma_upsampling"])
        bias = 16 if range is Range.LIMITED else 0
        return fixed_point_rgb(frame.planes[0], u, v, rows, bias=bias, half=0)


BACKEND = Backend(
    name="aipp",
    summary="Ascend AIPP's integer color conversion (CSC), by its published matrices",
    offers=(
        Offer(
            Stage.CONVERT,
            {
                "format": ("nv12", "nv21", "i420", "yuv444"),
                "preset": tuple(_PRESETS),
                "chroma_upsampling": ("nearest", "linear"),
            },
            AippConverter,
            evidence=Evidence.EMULATED,
            source=(
                "Huawei CANN 8.0, ATC, 'CSC Configuration', YUV420SP_U8 to RGB (hiascend.com, "
                "atlasatc_16_0021); chroma upsampling is not published"
            ),
        ),
    ),
    fields={"preset": "AIPP's csc matrices"},
)
