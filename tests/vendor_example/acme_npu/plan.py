"""Acme's own model files, ``.plan``, and what runs them: a network of one linear layer.

A JSON object: ``weights`` (a list for each input value, with a number for each output value) and
``bias`` (a number for each output value).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array, Backend, Effective, Evidence, Offer, Port, Runtime, Stage
from simulator.contract.model_format import Contents, ModelFormat
from simulator.errors import ModelError


class PlanFormat(ModelFormat):
    """A plan. A card names it as ``acme_plan``, alone or beside an ONNX file."""

    name = key = "acme_plan"
    about = "a plan of Acme's compiler"
    suffix = ".plan"
    suffices = True

    def read(self, path: Path) -> Contents:
        """Return the one input and the one output, by the sizes of the weights."""
        weights, _ = _layer(path)
        port = Port("x", np.dtype(np.float32), (1, weights.shape[0]))
        return Contents({"x": port}, {"y": (1, weights.shape[1])}, self.files(path))


def _layer(path: Path) -> tuple[Array, Array]:
    try:
        plan: dict[str, Any] = json.loads(path.read_bytes())
        weights, bias = (np.asarray(plan[key], np.float32) for key in ("weights", "bias"))
        if weights.ndim != 2 or weights.size == 0 or bias.shape != weights.shape[1:]:
            raise ValueError("weights and bias do not fit each other")
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: not a plan of Acme's compiler: {error}") from error
    return weights, bias


class AcmePlan(Runtime):
    """The layer, in numpy."""

    takes = "acme_plan"

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._weights, self._bias = _layer(artifact)
        shapes = (1, self._weights.shape[0]), (1, self._weights.shape[1])
        inputs, outputs = (
            Port(n, np.dtype(np.float32), s) for n, s in zip("xy", shapes, strict=True)
        )
        return (inputs,), (outputs,)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"y": feeds["x"] @ self._weights + self._bias}

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return that the one product is in FP32."""
        return Effective(products={"fp32": 1}, options={"device": "cpu"})


FORMAT = PlanFormat()
BACKEND = Backend(
    name="acme_plan",
    summary="Acme's plans (invented): one linear layer in numpy",
    offers=(
        Offer(
            Stage.RUNTIME,
            {"device": ("cpu",), "threads": (1,), "storage": ("fp32",), "compute": ("fp32",)},
            AcmePlan,
            evidence=Evidence.EMULATED,
            source="Acme NPU programmer's guide 5 (invented): FP32, one sum for each output",
        ),
    ),
)
