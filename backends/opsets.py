"""ONNX operator sets, for quantizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.contract import ModelError

OLDEST, PER_CHANNEL = 11, 13


def for_quantization(source: Path) -> Any:
    """Load a model, in an operator set in which QuantizeLinear has a scale per channel.

    That is operator set 13 or later. Models of operator sets 11 and 12 are converted; before 11,
    Resize and Upsample had another meaning.

    Raises:
        ModelError: the model's operator set is lower than 11.
    """
    import onnx
    from onnx.version_converter import convert_version

    model = onnx.load(str(source))
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    if opset < OLDEST:
        raise ModelError(
            f"the model has operator set {opset}, but at least {OLDEST} is needed; export it again"
        )
    return convert_version(model, PER_CHANNEL) if opset < PER_CHANNEL else model
