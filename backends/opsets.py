"""ONNX operator sets, for quantizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.contract import ModelError

OLDEST, PER_CHANNEL = 11, 13


def for_quantization(source: Path) -> Any:
    """Load a model in an operator set that has a scale per channel.

    QuantizeLinear has had one since operator set 13. Older models are brought there, from 11 on:
    before that Resize and Upsample meant something else.

    Raises:
        ModelError: the model is older than that.
    """
    import onnx
    from onnx.version_converter import convert_version

    model = onnx.load(str(source))
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    if opset < OLDEST:
        raise ModelError(
            f"the model has operator set {opset}, and {OLDEST} is the oldest that is quantized; "
            "export it again"
        )
    return convert_version(model, PER_CHANNEL) if opset < PER_CHANNEL else model
