"""ONNX files as PyTorch modules that learn, by onnx2torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from backends.pytorch_converters import onnx2torch, registered
from simulator.contract import MissingLibrary, ModelError
from simulator.errors import one_line

if TYPE_CHECKING:
    import onnx


def convert(model: onnx.ModelProto) -> torch.nn.Module:
    """Return the network in evaluation mode; the submodule of each node has its name.

    Args:
        model: its nodes have names of letters and digits.

    Raises:
        ModelError: onnx2torch lacks an operator of the model.
        MissingLibrary: onnx2torch is not installed.
    """
    try:
        registered()
        made: torch.nn.Module = onnx2torch.convert(model)
    except MissingLibrary:
        raise
    except Exception as error:  # a converter may raise anything
        raise ModelError(
            f"onnx2torch cannot convert the model: {one_line(error, 200)}; export it again at "
            "opset 13 to 17, from operators that onnx2torch has"
        ) from error
    return made.eval()
