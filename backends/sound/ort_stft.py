"""The operator STFT of ONNX in ONNX Runtime."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from backends.ort.library import ort, session_options
from backends.sound.framing import (
    check_one_frame,
    divisor,
    missing,
    reflectable,
    transforms,
    window,
)
from simulator.contract import Array, Options, Stft


class OnnxStft(Stft):
    """A graph of Pad, STFT (opset 17) and the sum of squares, in ONNX Runtime with one thread."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._sessions: dict[tuple[int, ...], Any] = {}
        self._lock = threading.Lock()

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        options = self.options
        half = n_fft // 2 if options["center"] else 0
        reflectable(samples.size, options.get("pad_mode", ""), n_fft)
        more = missing(samples.size + 2 * half, options["frames"], n_fft, hop)
        check_one_frame(samples.size, n_fft, 2 * half + more)
        session = self._session(n_fft, win_length, hop)
        found: Array = session.run(None, {"x": samples})[0][0].T
        return found if options["power"] == 2 else np.sqrt(found)

    def _session(self, *sizes: int) -> Any:
        with self._lock:
            if sizes not in self._sessions:
                graph = _graph(self.options, *sizes).SerializeToString()
                self._sessions[sizes] = ort.InferenceSession(
                    graph, session_options(threads=1), providers=["CPUExecutionProvider"]
                )
            return self._sessions[sizes]


def _graph(options: Options, n_fft: int, win_length: int, hop: int) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    shape = window(options, win_length, n_fft)
    half = n_fft // 2
    constants = {
        "window": (shape / divisor(options, shape)).astype(np.float32),
        "pads": np.array([half, half]),
        "hop": np.array(hop),
        "length": np.array(n_fft),
        "column": np.array([1, -1, 1]),
        "last": np.array([3]),
    }
    nodes = []
    if options["center"]:
        nodes.append(helper.make_node("Pad", ["x", "pads"], ["whole"], mode=options["pad_mode"]))
    nodes += [
        helper.make_node("Reshape", ["whole" if options["center"] else "x", "column"], ["signal"]),
        helper.make_node("STFT", ["signal", "hop", "window", "length"], ["pairs"], onesided=1),
        helper.make_node("Mul", ["pairs", "pairs"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "last"], ["y"], keepdims=0),
    ]
    x = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])]
    y = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "t", half + 1])]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "stft", x, y, tensors)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


OFFERS = transforms(OnnxStft, "https://onnx.ai/onnx/operators/onnx__STFT.html")
