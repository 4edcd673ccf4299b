"""Faults in an FP32 network that OpenVINO runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import onnx

from backends.intel.libraries import ov
from backends.intel.openvino_settings import settings
from backends.onnx_cut import read
from backends.onnx_injector import CutInjector, Run
from simulator.contract import Array, Unsupported


class OpenVinoInjector(CutInjector):
    """Cuts the ONNX file, and lets OpenVINO compile what follows.

    The neurons are those behind an activation that alone follows a layer, as OpenVINO fuses them.
    """

    fuses: ClassVar[bool] = True
    method = (
        "the ONNX file, cut at the hit tensor; what follows is compiled by OpenVINO with that "
        "tensor as an input, so the hit layer's own sum may have other last bits"
    )
    tap = (
        "NaN and Inf in the outputs of the hit layer and of all layers after it, behind the "
        "activation that follows, some seen in sums of them; OpenVINO's Relu, Clip and MaxPool "
        "make numbers of NaN, which is then not seen"
    )

    def _read(self) -> onnx.ModelProto:
        storage, compute = self.options["storage"], self.options["compute"]
        if (storage, compute) != ("fp32", "fp32"):
            raise Unsupported(
                "faults are put into OpenVINO in FP32 only, not with "
                f"{{storage: {storage}, compute: {compute}}}"
            )
        model = read(self.artifact)
        found = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
        if found:
            raise Unsupported(
                f"OpenVINO merges {len(found)} BatchNormalization into weights that cannot be "
                "reached; merge them before, with graph: {batchnorm: {folding: fold}}"
            )
        return model

    def _runner(self, model: onnx.ModelProto) -> Run:
        core = ov.Core()
        compiled = core.compile_model(
            core.read_model(model.SerializeToString()), "CPU", settings(self.options)
        )
        local = threading.local()

        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            request = getattr(local, "request", None)
            if request is None:
                request = local.request = compiled.create_infer_request()
            request.infer(list(arrays), share_inputs=True, share_outputs=True)
            return [np.array(output_tensor.data) for output_tensor in request.output_tensors]

        return run
