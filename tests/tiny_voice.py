"""A voice of mel bands, small enough to be made in a moment."""

import json

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

from simulator.reference.log_mel import log_mel

RATE, N_FFT, HOP = 8000, 1024, 256
STFT = {
    "center": True, "pad_mode": "reflect", "window": "hann", "window_symmetry": "periodic",
    "scaling": "none", "frames": "whole", "power": 1,
}  # fmt: skip
BANDS = {
    "rate": RATE,
    "spectrogram": {
        "outputs": ["mel"], "features": "log_mel", "layout": "NMT", "n_fft": N_FFT,
        "win_length": N_FFT, "hop": HOP, "n_mels": 80, "fmin": 0.0, "fmax": 4000.0,
    },
    "trained": {
        "stft": STFT, "mel": {"scale": "slaney", "norm": "slaney"},
        "log": {"kind": "ln", "floor": "max", "value": 1e-5},
    },
}  # fmt: skip


def voice(folder):
    """Return card and data of a network that says one of four tones for each id, 8 frames long."""
    tones = [log_mel(0.3 * np.sin(np.arange(2048) * f), RATE)[:, :8] for f in (0.2, 0.5, 1, 2)]
    table = np.stack(tones).transpose(0, 2, 1).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Reshape", ["rows", "shape"], ["long"]),
        helper.make_node("Transpose", ["long"], ["mel"], perm=[0, 2, 1]),
        helper.make_node("Gather", ["spans", "ids"], ["durations"]),
    ]
    weights = {
        "table": table, "shape": np.array([1, -1, 80]), "spans": np.full(4, 8, np.float32),
    }  # fmt: skip
    port = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "voice", [port("ids", TensorProto.INT64, [1, "L"])],
        [port("mel", TensorProto.FLOAT, [1, 80, "T"]),
         port("durations", TensorProto.FLOAT, [1, "L"])],
        [numpy_helper.from_array(one, name) for name, one in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "m.onnx")
    spec = {
        "schema": 1, "name": "voice", "task": "text_to_speech", "model": "m.onnx",
        "input": {"kind": "text", "vocabulary": 4, "max_length": 64, "names": {"ids": "ids"}},
        "output": {**BANDS, "durations": "durations"},
    }  # fmt: skip
    (folder / "card.yaml").write_text(yaml.safe_dump(spec))
    data = folder / "data"
    data.mkdir()
    for name, ids in (("one", [0, 1, 2]), ("other", [3, 1])):
        (data / f"{name}.json").write_text(json.dumps({"requests": [{"ids": ids}]}))
    (data / "spans.csv").write_text("file,label\none.json,8 8 8\nother.json,8 9\n")
    (data / "data.yaml").write_text(
        "{schema: 1, name: spans, task: text_to_speech, format: table, files: ., table: spans.csv}"
    )
    return {"model": folder / "card.yaml", "data": data}


def speaking(folder, layout="NMT", **says):
    """Write a second network to the card of :func:`voice`; return it as a card.

    It says the mean of each frame's bands, and the first two bands turned into frequencies: all
    equal, as real and imaginary part.
    """
    port, float32 = helper.make_tensor_value_info, TensorProto.FLOAT
    bands, given = (1, [1, 80, "T"]) if layout == "NMT" else (2, [1, "T", 80])
    nodes = [
        helper.make_node("ReduceMean", ["bands"], ["waveform"], axes=[bands]),
        helper.make_node("Transpose", ["bands"], ["maps"], perm=[0, bands, 3 - bands]),
        helper.make_node("Split", ["maps", "parts"], ["one", "other", "rest"], axis=1),
        helper.make_node("Expand", ["one", "bins"], ["real"]),
        helper.make_node("Expand", ["other", "bins"], ["imaginary"]),
    ]
    weights = {"parts": np.array([1, 1, 78]), "bins": np.array([1, N_FFT // 2 + 1, 1])}
    graph = helper.make_graph(
        nodes, "speaking", [port("bands", float32, given)],
        [port("waveform", float32, [1, 1, "T"] if bands == 1 else [1, "T", 1]),
         *(port(name, float32, [1, N_FFT // 2 + 1, "T"]) for name in ("real", "imaginary"))],
        [numpy_helper.from_array(one, name) for name, one in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "second.onnx")
    spec = yaml.safe_load((folder / "card.yaml").read_text())
    spec["second"] = {"model": "second.onnx"}
    spec["output"]["vocoder"] = {"input": "bands", "layout": layout, **says}
    (folder / "speaking.yaml").write_text(yaml.safe_dump(spec))
    return folder / "speaking.yaml"
