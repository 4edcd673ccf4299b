"""Modules of PyTorch as ONNX files."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backends.pytorch_program import torch
from backends.quiet import quiet
from simulator.contract import Array, ModelError, NetworkWriter
from simulator.errors import one_line

_OPSET = 17


class ModuleWriter(NetworkWriter):
    """``torch.onnx.export`` of a copy on the CPU, in evaluation mode; held against the module.

    The batch is free where the file gives for two samples what the module gives for them.
    """

    def takes(self, network: object) -> bool:
        """Whether it is a ``torch.nn.Module``."""
        loaded = sys.modules.get("torch")
        return loaded is not None and isinstance(network, loaded.nn.Module)

    def write(self, network: Any, example: Array, target: Path) -> None:
        """Export it; see :class:`simulator.contract.NetworkWriter`."""
        from backends.learning.learner import hold

        name = type(network).__name__
        try:
            module = copy.deepcopy(network).cpu().eval()
            with torch.no_grad():
                answer = module(torch.from_numpy(example))
        except Exception as error:  # a module of the user's may raise anything
            why = f"{type(error).__name__}: {one_line(error, 200)}"
            what = f"{name} does not take {example.dtype} {example.shape}"
            raise ModelError(f"{what}: {why}") from error
        outputs = _names(answer)
        two = np.concatenate([example, np.flip(example, -1)])
        try:
            export(module, example, target, name, outputs)
            hold(lambda x: _tensors(module(x)), target.read_bytes(), two, classes=False)
        except Exception:  # what it answers, or how, depends on the batch
            export(module, example, target, name, outputs, free=False)
            hold(lambda x: _tensors(module(x)), target.read_bytes(), example, classes=False)


def _names(answer: Any) -> list[str]:
    """What the outputs of a module are called."""
    if isinstance(answer, dict):
        return [str(name) for name in answer]
    return ["output", *(f"output_{number}" for number in range(1, len(_tensors(answer))))]


def _tensors(answer: Any) -> tuple[Any, ...]:
    """The outputs of a module, as the exporter orders them."""
    if isinstance(answer, torch.Tensor):
        return (answer,)
    return tuple(answer.values() if isinstance(answer, dict) else answer)


def export(
    module: Any,
    example: Array,
    target: Path,
    name: str,
    outputs: Sequence[str] = ("output",),
    free: bool = True,
    **how: Any,
) -> None:
    """Write a module as an ONNX file.

    Args:
        module: in evaluation mode, on the CPU.
        example: of its one input.
        target: the file.
        name: what messages call it.
        outputs: their names.
        free: whether the batch is.
        how: further arguments of ``torch.onnx.export``.

    Raises:
        ModelError: it cannot be written.
    """
    axes = {one: {0: "batch"} for one in ("input", *outputs)} if free else {}
    try:
        with quiet():
            torch.onnx.export(
                module, (torch.from_numpy(example),), target, dynamo=False, opset_version=_OPSET,
                input_names=["input"], output_names=list(outputs), dynamic_axes=axes, **how,
            )  # fmt: skip
    except Exception as error:  # an exporter may raise anything
        why = one_line(error, 200)
        raise ModelError(f"{name} cannot be written as an ONNX file: {why}") from error
