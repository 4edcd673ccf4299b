"""onnxconverter-common: FP16 weights in an ONNX file."""

from __future__ import annotations

import warnings
from pathlib import Path

from simulator.contract import Backend, Cast, Library, Offer, Stage

float16 = Library(
    "onnxconverter_common.float16", distribution="onnxconverter-common", extra="onnxruntime"
)


class HalfCast(Cast):
    """``convert_float_to_float16`` with FP32 inputs and outputs.

    Weights are rounded to the nearest half; magnitudes below 1e-7 are raised to 1e-7 and
    above 1e4 lowered to 1e4, as the library does by default.
    """

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* with FP16 weights to *target*."""
        import onnx

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one warning per clamped tensor, see above
            half = float16.convert_float_to_float16(onnx.load(str(source)), keep_io_types=True)
        onnx.save(half, str(target))


BACKEND = Backend(
    name="onnxconverter",
    summary="onnxconverter-common: ONNX weights stored as FP16",
    library=float16,
    offers=(Offer(Stage.CAST, {"storage": ("fp16",)}, HalfCast),),
)
