"""OpenVINO's operation STFT, opset 15."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from backends.intel.libraries import opset15, ov
from backends.sound.framing import check_one_frame, divisor, reflectable, transforms, window
from simulator.contract import Array, MissingLibrary, Options, Stft

_HINTS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_PADS = {"reflect": "reflect", "constant": "constant", "edge": "edge"}


class OpenVinoStft(Stft):
    """A model of Pad, STFT and the sum of squares on the CPU plugin, with one thread.

    Args:
        options: ``arithmetic`` is the plugin's precision hint; which operations heed it, the
            plugin decides (with bfloat16 the transform itself stays in float32).

    Raises:
        MissingLibrary: the processor has no FP16 arithmetic, and the hint is float16.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if options["arithmetic"] == "float16":
            able = ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
            if "FP16" not in able:
                raise MissingLibrary(
                    "this processor has no FP16 arithmetic: OpenVINO would transform in FP32"
                )
        self._compiled: dict[tuple[int, ...], Any] = {}
        self._lock = threading.Lock()

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        options = self.options
        reflectable(samples.size, options.get("pad_mode", ""), n_fft)
        check_one_frame(samples.size, n_fft, 2 * (n_fft // 2) if options["center"] else 0)
        request = self._model(n_fft, win_length, hop).create_infer_request()
        found: Array = np.array(request.infer([samples[None]])[0][0])
        return found if options["power"] == 2 else np.sqrt(found)

    def _model(self, *sizes: int) -> Any:
        with self._lock:
            if sizes not in self._compiled:
                hint = _HINTS[self.options["arithmetic"]]
                settings = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 1}
                model = _model(self.options, *sizes)
                self._compiled[sizes] = ov.Core().compile_model(model, "CPU", settings)
            return self._compiled[sizes]


def _model(options: Options, n_fft: int, win_length: int, hop: int) -> Any:
    shape = window(options, win_length, n_fft)
    scaled = (shape / divisor(options, shape)).astype(np.float32)
    data = whole = opset15.parameter([1, -1], np.float32)
    if options["center"]:
        pads = np.array([0, n_fft // 2])
        whole = opset15.pad(data, pads, pads, _PADS[options["pad_mode"]], np.float32(0))
    given = (opset15.constant(value) for value in (scaled, np.int64(n_fft), np.int64(hop)))
    pairs = opset15.stft(whole, *given, transpose_frames=True)
    squares = opset15.reduce_sum(opset15.multiply(pairs, pairs), opset15.constant(np.array([3])))
    return ov.Model([squares], [data], "stft")


OFFERS = transforms(
    OpenVinoStft,
    "https://docs.openvino.ai/: operation specification, STFT-15",
    arithmetic=("float32", "float16", "bfloat16"),
)
