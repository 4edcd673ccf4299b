"""Accuracy Checker's launchers: the runtime, and the network's inputs.

Source: ``launcher/dlsdk_launcher_config.py`` of openvinotoolkit/open_model_zoo,
``tools/accuracy_checker``.
"""

from __future__ import annotations

from pathlib import Path

from simulator.importers import open_model_zoo, values
from simulator.importers.keys import Keys
from simulator.importers.open_model_zoo import Inside
from simulator.importers.values import keys_by_reason

_FRAMEWORKS = {"openvino": "openvino", "dlsdk": "openvino", "onnx_runtime": "onnxruntime"}
_OWN = ("framework", "device", "inputs", "adapter", "allow_reshape_input", "reset_memory_state")
"""Keys of a launcher that are looked at whatever it is."""
SPEED = "how requests are queued; samples run one at a time"
_LAUNCHER = keys_by_reason({
    "the network itself; the model card names an ONNX file":
        "model weights caffe_model _model_type _model_is_blob cpu_extensions _list_lstm_inputs "
        "convert_model tf_model caffe_weights mxnet_weights onnx_model saved_model_dir "
        "_input_precision _input_layout",
    "what outputs mean: the model card's output": "outputs adapter output_names",
    "a label for people": "tags",
    SPEED: "batch num_requests async_mode predictions",
    "a log": "should_log_cmd",
    "it runs on the CPU": "device",
    "the preprocessing gives every image one size, which is the card's": "allow_reshape_input",
})  # fmt: skip
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
    framework = keys.need("framework", values.text, "openvino", "it selects the runtime")
    backend = _FRAMEWORKS.get(framework, "")
    if keys.take("device", values.text, "CPU").upper() != "CPU":
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
    state = "the network has a state, and a profile has single images"
    keys.only("reset_memory_state", False, state)
    keys.rest(also=_LAUNCHER, named=("mo_params", "mo_flags"))
    return inside


def _runtime(keys: Keys, backend: str) -> None:
    draft, base = keys.draft, keys.draft.base
    draft.whole.add("runtime")
    draft.write("runtime", "backend", backend, keys.origin("framework"))
    draft.write("runtime", "device", "cpu", keys.origin("device", "it runs on the CPU"))
    draft.write("runtime", "threads", base.spec.runtime.threads, f"as {base.name} has it")
    if backend == "openvino":
        said = (
            "Accuracy Checker leaves the precision to OpenVINO's plugin (BF16 where a CPU has it)"
        )
        own = f"{base.spec.precision.compute} is {base.name}'s"
        draft.claim("precision", "assumed", f"{said}; {own}")
    draft.claim("runtime", "native", f"Accuracy Checker's launcher {backend}")
    if backend == "onnxruntime":
        level = (base.spec.runtime.model_extra or {}).get("graph_optimization_level", "all")
        draft.write("runtime", "graph_optimization_level", level, "ONNX Runtime's default is all")
        _providers(keys)


def _providers(keys: Keys) -> None:
    """Take ONNX Runtime's execution providers; its own CPU kernels stand in for the others."""
    written: list[str] = keys.take("execution_providers", values.texts, [])
    if others := [one for one in written if one != "CPUExecutionProvider"]:
        keys.origin("execution_providers")
        source = f"ONNX Runtime's CPU kernels stand in for {values.show(', '.join(others))}"
        keys.draft.claim("runtime", "assumed", source)


def _inputs(keys: Keys) -> None:
    """List the network's inputs for the card; refuse what is not one image and constants."""
    inputs = keys.mappings("inputs")
    images = [one for one in inputs if one.get("type", "INPUT") == "INPUT"]
    others = [one for one in inputs if one not in images]
    plain = all(
        image.get("precision", "FP32") == "FP32" and not set(image) - _INPUT for image in images
    )
    if len(images) > 1 or not plain or any(one["type"] not in _OTHERS for one in others):
        keys.refuse("inputs", "a profile feeds one float32 image, and constants of the card")
    elif inputs:
        keys.draft.card.append(keys.origin("inputs").removeprefix("from "))
