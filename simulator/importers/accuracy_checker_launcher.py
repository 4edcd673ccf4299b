"""Accuracy Checker's launchers: the runtime, and the network's inputs.

Source: ``launcher/dlsdk_launcher_config.py`` of openvinotoolkit/open_model_zoo,
``tools/accuracy_checker``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.importers import open_model_zoo, values
from simulator.importers.draft import Keys
from simulator.importers.open_model_zoo import Inside

_FRAMEWORKS = {"openvino": "openvino", "dlsdk": "openvino", "onnx_runtime": "onnxruntime"}
_OWN = ("framework", "device", "inputs", "adapter", "allow_reshape_input", "reset_memory_state")
"""Keys of a launcher that are looked at whatever it is."""
_MODEL = "the network itself; the model card names an ONNX file"
SPEED = "how requests are queued; samples run one at a time"
_LAUNCHER = {
    "model": _MODEL, "weights": _MODEL, "caffe_model": _MODEL, "_model_type": _MODEL,
    "_model_is_blob": _MODEL, "outputs": "what outputs mean: the model card's output",
    "adapter": "what outputs mean: the model card's output",
    "tags": "a label for people", "batch": SPEED, "num_requests": SPEED, "async_mode": SPEED,
    "output_names": "what outputs mean: the model card's output", "cpu_extensions": _MODEL,
    "should_log_cmd": "a log",
    "_list_lstm_inputs": _MODEL, "device": "it runs on the CPU",
    "convert_model": _MODEL, "tf_model": _MODEL,
    "caffe_weights": _MODEL, "mxnet_weights": _MODEL, "onnx_model": _MODEL,
    "saved_model_dir": _MODEL, "predictions": SPEED, "_input_precision": _MODEL,
    "_input_layout": _MODEL, "allow_reshape_input":
    "the preprocessing gives every image one size, which is the card's",
}  # fmt: skip
_INPUT = {"name", "type", "shape", "layout", "precision"}
_OTHERS = ("CONST_INPUT", "IMAGE_INFO", "ORIG_IMAGE_INFO", "PROCESSED_IMAGE_INFO", "SCALE_FACTOR")


def launch(keys: Keys, path: Path) -> Inside | None:
    """Write the runtime of a launcher; return what its network does with the tensor first.

    Args:
        keys: of the launcher.
        path: the file, beside which ``model.yml`` may be.

    Returns:
        None for a network without steps of its own: only an IR of OpenVINO has some.
    """
    draft = keys.draft
    why = "it selects the runtime"
    if "framework" not in keys:
        keys.problem("framework", f"not written; {why}")
    framework = keys.take("framework", values.text, "openvino")
    backend = _FRAMEWORKS.get(framework, "")
    device = keys.take("device", values.text, "CPU")
    if device.upper() != "CPU":
        keys.refuse("device", "only CPU can be imported; write the runtime's section by hand")
    inside = None
    if backend:
        _runtime(keys, backend)
        inside = open_model_zoo.inside(keys, path) if backend == "openvino" else None
    else:
        own = draft.base.spec.runtime.backend
        draft.aside.append(f"{keys.origin('framework').removeprefix('from ')}: {own} stands in")
        draft.claim("runtime", "assumed", f"{own} stands in for Accuracy Checker's launcher "
                    f"{values.show(framework)}, which a profile does not have")  # fmt: skip
        keys.aside({key: f"of the launcher {framework}" for key in keys.values if key not in _OWN})
    _inputs(keys)
    keys.aside(_LAUNCHER)
    keys.take("allow_reshape_input", values.boolean, False)
    if keys.take("reset_memory_state", values.boolean, False):
        keys.refuse(
            "reset_memory_state", "the network has a state, and a profile has single images"
        )
    keys.rest(also=_LAUNCHER, named=("mo_params", "mo_flags"))
    return inside


def _runtime(keys: Keys, backend: str) -> None:
    draft = keys.draft
    draft.whole.add("runtime")
    draft.write("runtime", "backend", backend, keys.origin("framework"))
    draft.write("runtime", "device", "cpu", keys.origin("device", "it runs on the CPU"))
    runtime = draft.base.spec.runtime
    draft.write("runtime", "threads", runtime.threads, f"as {draft.base.name} has it")
    if backend == "onnxruntime":
        level = (runtime.model_extra or {}).get("graph_optimization_level", "all")
        draft.write("runtime", "graph_optimization_level", level, "ONNX Runtime's default is all")
    else:
        compute = draft.base.spec.precision.compute
        draft.claim(
            "precision",
            "assumed",
            "Accuracy Checker leaves the precision to OpenVINO's plugin (BF16 where a CPU has it); "
            f"{compute} is {draft.base.name}'s",
        )
    draft.claim("runtime", "native", f"Accuracy Checker's launcher {backend}")
    if backend == "onnxruntime":
        _providers(keys)


def _providers(keys: Keys) -> None:
    """Take ONNX Runtime's execution providers; its own CPU kernels stand in for the others."""
    written = keys.take("execution_providers", values.texts, ["CPUExecutionProvider"])
    others = [one for one in written if one != "CPUExecutionProvider"]
    if others:
        keys.origin("execution_providers")
        source = f"ONNX Runtime's CPU kernels stand in for {values.show(', '.join(others))}"
        keys.draft.claim("runtime", "assumed", source)


def _inputs(keys: Keys) -> None:
    """List the network's inputs for the card; refuse what is not one image and constants."""
    inputs: list[dict[str, Any]] = keys.take("inputs", values.mappings, [])
    images = [one for one in inputs if one.get("type", "INPUT") == "INPUT"]
    plain = all(
        one.get("precision", "FP32") == "FP32" and not set(one) - _INPUT for one in images
    ) and all(one.get("type", "INPUT") in ("INPUT", *_OTHERS) for one in inputs)
    if inputs and (not plain or len(images) > 1):
        keys.refuse("inputs", "a profile feeds one float32 image, and constants of the card")
    elif inputs:
        keys.draft.card.append(keys.origin("inputs").removeprefix("from "))
