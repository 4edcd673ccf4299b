"""Faults in the graph that ONNX Runtime makes of an artifact."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import onnx

from backends.onnx_cut import read
from backends.onnx_injector import CutInjector, Run
from backends.ort.library import ort
from backends.ort.runtime import LEVELS, plainly
from simulator.contract import Array, Unsupported

_HIGHEST = "extended"
_BELOW = ("disable_all", "basic", _HIGHEST)


class OrtInjector(CutInjector):
    """Takes the graph as ONNX Runtime optimizes it, on the CPU.

    Its tensors are those that exist while it runs: batch normalization is merged, layers are fused
    with activations, QDQ pairs became integer kernels. Levels above ``extended`` reorder the
    weights for the processor at hand. Sites are then named before that, and what follows a site is
    optimized at the profile's level: the hit tensor is an input of it, so nothing has a copy.
    """

    fuses: ClassVar[bool] = False
    keeps_nan: ClassVar[bool] = True
    tap = (
        "NaN and Inf in the floating-point outputs of the hit layer and of all layers after it, "
        "behind the activation that ONNX Runtime fused with them; integer outputs have none"
    )

    def _read(self) -> onnx.ModelProto:
        provider, level = self.options["provider"], self.options["graph_optimization_level"]
        if provider != "cpu":
            raise Unsupported(f"faults are put in on the CPU only, not with provider: {provider}")
        used = level if level in _BELOW else _HIGHEST
        self.method = (
            f"the graph that ONNX Runtime optimizes at {used}, cut at the hit tensor; what follows "
            f"runs again at {level} with that tensor as an input"
        )
        if used != level:
            self.method += (
                "; layers are not fused across the cut, so last bits may differ from the whole "
                "network's"
            )
        with tempfile.TemporaryDirectory() as folder, plainly():
            target = Path(folder) / "optimized.onnx"
            options = self._session_options(used)
            options.optimized_model_filepath = str(target)
            ort.InferenceSession(read(self.artifact).SerializeToString(), options, providers=_CPU)
            return onnx.load(str(target))

    def _runner(self, model: onnx.ModelProto) -> Run:
        options = self._session_options(self.options["graph_optimization_level"])
        names = [value.name for value in model.graph.input]
        with plainly():
            session = ort.InferenceSession(model.SerializeToString(), options, providers=_CPU)
        outputs = [value.name for value in model.graph.output]

        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            with plainly():
                found: Sequence[Array] = session.run(outputs, dict(zip(names, arrays, strict=True)))
            return found

        return run

    def _session_options(self, level: str) -> Any:
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.options["threads"]
        options.inter_op_num_threads = 1
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[level])
        options.log_severity_level = 4
        return options


_CPU = ["CPUExecutionProvider"]
