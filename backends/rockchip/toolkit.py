"""RKNN-Toolkit2: builds graphs for Rockchip's NPUs, and quantizes them."""

from __future__ import annotations

import contextlib
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec

import numpy as np

from simulator.contract import Array, Library, Options, Port, Quantizer, Unsupported

TOOLKIT = Library("rknn.api", distribution="rknn-toolkit2", extra="rknn")
if TYPE_CHECKING:
    from rknn import api as toolkit
else:
    toolkit = TOOLKIT
onnx = Library("onnx", distribution="onnx", extra="rknn")

METHODS = {"minmax": "normal", "entropy": "kl_divergence"}
GRANULARITY = {"per_channel": "channel", "per_tensor": "layer"}
_STEP1 = ("model.model", "model.data", "model.quantization.cfg")
Ports = tuple[tuple[Port, ...], tuple[Port, ...]]
Taken = ParamSpec("Taken")


class RknnQuantizer(Quantizer):
    """RKNN-Toolkit2's own quantizer: INT8 weights, asymmetric INT8 activations per tensor.

    It writes a ZIP file with the results of ``hybrid_quantization_step1`` (graph, weights, ranges);
    the runtime continues with step 2. Together they give the same bits as
    ``build(do_quantization=True)``. ``minmax`` is RKNN's ``normal`` and ``entropy`` its
    ``kl_divergence``; ``mmse`` is not offered, because its step 2 reads the calibration set again.
    """

    gives: ClassVar[str] = "rknn"

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write the ZIP file."""
        inputs, _ = ports(source)
        source, target = source.absolute(), target.absolute()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            samples = [
                " ".join(_saved(f"{number}-{port.name}", feed[port.name]) for port in inputs)
                for number, feed in enumerate(feeds)
            ]
            Path("dataset.txt").write_text("\n".join(samples))
            rknn = toolkit.RKNN(verbose=False)
            call(
                rknn.config,
                target_platform=self.options["target_platform"],
                quantized_algorithm=METHODS[self.options["method"]],
                quantized_method=GRANULARITY[self.options["weights"]],
                optimization_level=3,
            )
            call(rknn.load_onnx, model=str(source))
            call(rknn.hybrid_quantization_step1, dataset="dataset.txt", proposal=False)
            rknn.release()
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in _STEP1:
                    archive.write(name.replace("model", source.stem, 1), name)
                about = {"ports": describe(source), "platform": self.options["target_platform"]}
                archive.writestr("about.json", json.dumps(about))


def build(artifact: Path, options: Options) -> toolkit.RKNN:
    """Return an ``RKNN`` object with the graph built for the profile's ``target_platform``.

    Args:
        artifact: a plain ONNX file (built as FP16), one with QuantizeLinear / DequantizeLinear
            pairs (INT8), or the file of RknnQuantizer (INT8).
        options: the options of the runtime.
    """
    rknn = toolkit.RKNN(verbose=False)
    platform = options["target_platform"]
    if not zipfile.is_zipfile(artifact):
        call(rknn.config, target_platform=platform, optimization_level=3)
        call(rknn.load_onnx, model=str(artifact))
        call(rknn.build, do_quantization=False)
        return rknn
    made_for = _about(artifact)["platform"]
    if made_for != platform:
        raise Unsupported(f"the model was quantized for {made_for}, but the runtime is {platform}")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(artifact) as archive:
            archive.extractall(folder)
        model, data, ranges = (str(Path(folder) / name) for name in _STEP1)
        call(
            rknn.hybrid_quantization_step2,
            model_input=model,
            data_input=data,
            model_quantization_cfg=ranges,
        )
    return rknn


def ports(artifact: Path) -> Ports:
    """Return the inputs and outputs of a file that ``build`` takes; RKNN does not report names."""
    return read(_about(artifact)["ports"] if zipfile.is_zipfile(artifact) else describe(artifact))


def describe(model: Path) -> Any:
    """Return the inputs and outputs of an ONNX file as a JSON value: names and shapes."""
    graph = onnx.load_model(str(model), load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return [
        [[v.name, [d.dim_value for d in v.type.tensor_type.shape.dim]] for v in values]
        for values in ([v for v in graph.input if v.name not in constants], graph.output)
    ]


def read(described: Any) -> Ports:
    """Convert the result of ``describe`` to ports, all float32."""
    inputs, outputs = (
        tuple(Port(name, np.dtype(np.float32), tuple(shape)) for name, shape in side)
        for side in described
    )
    return inputs, outputs


def call(function: Callable[Taken, Any], *arguments: Taken.args, **named: Taken.kwargs) -> None:
    """Call a function of RKNN; if it fails, reduce its traceback to one line."""
    try:
        code = function(*arguments, **named)
    except ValueError as error:
        lines = str(error).splitlines()
        said = [line for line in lines if line and not line.startswith((" ", "Traceback"))]
        raise Unsupported(f"RKNN: {' '.join(said) or error}") from error
    if code:
        raise Unsupported(f"RKNN: {function.__name__} failed with code {code}")


def _saved(name: str, array: Array) -> str:
    np.save(name, array)
    return f"{name}.npy"


def _about(artifact: Path) -> Any:
    with zipfile.ZipFile(artifact) as archive:
        return json.loads(archive.read("about.json"))
