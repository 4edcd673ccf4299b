"""What test_rknn.py asks of RKNN-Toolkit2; it runs in that library's own Python.

``python rknn_check.py FOLDER`` reads ``m.onnx``, ``q.onnx`` and ``x.npy`` (samples, 1, 2, 8, 8)
from FOLDER, and writes the outputs of each way through the adapter to ``out.npz`` there.
"""

import sys
from pathlib import Path

import numpy as np

from backends.rockchip.runtime import BACKEND
from simulator.contract import Stage
from simulator.errors import Unsupported

FOLDER = Path(sys.argv[1])
PLAIN = {"device": "simulator", "threads": 1, "target_platform": "rk3588"}
FP16, INT8, *_ = BACKEND.of(Stage.RUNTIME)
(QUANTIZE,) = BACKEND.of(Stage.QUANTIZE)


def outputs(offer, name, samples):
    """Run every sample through the adapter."""
    runtime = offer.make(FOLDER / name, PLAIN)
    made = [runtime.run({"x": sample})["y"] for sample in samples]
    runtime.close()
    return np.stack(made)


def quantized(method, samples):
    """Quantize and run through the adapter."""
    how = {"weights": "per_channel", "method": method, "target_platform": "rk3588"}
    feeds = iter([{"x": sample} for sample in samples])
    QUANTIZE.make(how).quantize(FOLDER / "m.onnx", FOLDER / f"{method}.rknn", feeds)
    return outputs(INT8, f"{method}.rknn", samples)


def directly(algorithm, samples):
    """Quantize and run without the adapter, in the way that the vendor shows."""
    from rknn.api import RKNN

    files = [FOLDER / f"{number}.npy" for number in range(len(samples))]
    for file, sample in zip(files, samples, strict=True):
        np.save(file, sample)
    (FOLDER / "list.txt").write_text("\n".join(map(str, files)))
    rknn = RKNN()
    rknn.config(target_platform="rk3588", quantized_algorithm=algorithm)
    rknn.load_onnx(model=str(FOLDER / "m.onnx"))
    rknn.build(do_quantization=True, dataset=str(FOLDER / "list.txt"))
    rknn.init_runtime()
    return np.stack([rknn.inference(inputs=[x], data_format=["nchw"])[0] for x in samples])


def refusal(offer, name, **options):
    """Return the one line that opening a model is refused with."""
    try:
        offer.make(FOLDER / name, {**PLAIN, **options})
    except Unsupported as error:
        return str(error)
    return "opened"


samples = np.load(FOLDER / "x.npy")
halves = np.zeros((1, 1, 2, 8, 8), np.float32)
halves[0, 0, 0] = 2048.5
found = {
    "halves": outputs(FP16, "m.onnx", halves),
    "fp16": outputs(FP16, "m.onnx", samples),
    "qdq": outputs(INT8, "q.onnx", samples),
    "minmax": quantized("minmax", samples),
    "normal": directly("normal", samples),
    "entropy": quantized("entropy", samples),
    "kl_divergence": directly("kl_divergence", samples),
    "free": refusal(FP16, "free.onnx"),
    "opset": refusal(FP16, "new.onnx"),
    "platform": refusal(INT8, "minmax.rknn", target_platform="rk3566"),
}
np.savez(FOLDER / "out.npz", **found)
