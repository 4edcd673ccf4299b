"""onnx2tf: ONNX files as .tflite files, by TensorFlow."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.quiet import quiet
from backends.tensorflow_library import TensorFlow
from simulator.contract import Backend, Environment, Exporter, Library, Offer, Stage, Unsupported

onnx2tf = Library("onnx2tf", distribution="onnx2tf", extra="litert")
onnxruntime = Library("onnxruntime", distribution="onnxruntime", extra="litert")
tensorflow = TensorFlow("tensorflow", distribution="tensorflow", extra="litert")

TOLERANCE = 1e-3
"""Allowed difference between a converted model and ONNX Runtime, relative to the largest output."""
_DOWNLOAD = "calibration_image_sample_data_20x128x128x3_float32.npy"


class Onnx2TfExporter(Exporter):
    """``onnx2tf.convert`` with FP32 weights, batch 1, and the ONNX file's own layouts.

    onnx2tf finds the order of axes by comparing its layers with ONNX Runtime's, on inputs of ones,
    which cannot distinguish axes, or on images that it downloads. Here it gets normal random
    numbers with a fixed seed. onnxsim, whose failures it hides, is switched off.
    """

    takes: ClassVar[str] = "onnx"
    gives: ClassVar[str] = "tflite"

    def export(self, source: Path, target: Path) -> None:
        """Convert an ``.onnx`` file to a float ``.tflite`` file."""
        import onnx

        model = onnx.load(str(source))
        _pin_outputs(model)
        last = {port.name: _channels_last(_sizes(port)) for port in model.graph.input}
        rng = np.random.default_rng(0)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            onnx.save(model, str(folder / "model.onnx"))
            np.save(folder / _DOWNLOAD, rng.random((20, 128, 128, 3), np.float32))
            feeds = []
            for number, port in enumerate(model.graph.input):
                feeds.append([port.name, str(folder / f"{number}.npy")])
                np.save(feeds[-1][1], rng.standard_normal(_sizes(port), np.float32))
            with quiet(), contextlib.chdir(folder):
                onnx2tf.convert(
                    input_onnx_file_path="model.onnx",
                    output_folder_path="out",
                    keep_ncw_or_nchw_or_ncdhw_input_names=[n for n in last if not last[n]],
                    keep_nwc_or_nhwc_or_ndhwc_input_names=[n for n in last if last[n]],
                    copy_onnx_input_output_names_to_tflite=True,
                    custom_input_op_name_np_data_path=feeds,
                    batch_size=1,
                    not_use_onnxsim=True,
                    non_verbose=True,
                )
                _check(source, folder / "out" / "model_float32.tflite", dict(feeds))
            shutil.copy(folder / "out" / "model_float32.tflite", target)


def _channels_last(shape: list[int]) -> bool:
    """Whether onnx2tf treats an input of this shape as images in NHWC."""
    return len(shape) == 4 and shape[3] in (1, 3, 4) and shape[1] not in (1, 3, 4)


def _sizes(port: Any) -> list[int]:
    return [size.dim_value or 1 for size in port.type.tensor_type.shape.dim]


def _check(source: Path, made: Path, feeds: Mapping[str, str]) -> None:
    """Check that the file gives the outputs of ONNX Runtime; onnx2tf may confuse axes."""
    arrays = {name: np.load(file) for name, file in feeds.items()}
    wanted = onnxruntime.InferenceSession(str(source)).run(None, arrays)
    runner = tensorflow.lite.Interpreter(model_path=str(made)).get_signature_runner()
    for expected, got in zip(wanted, runner(**arrays).values(), strict=True):
        off = np.abs(got - expected).max() if got.shape == expected.shape else np.inf
        if off > TOLERANCE * np.abs(expected).max():
            raise Unsupported(
                f"onnx2tf changes what {source} computes: {expected.shape} expected, got "
                f"{got.shape}, off by {off:.2g}; use runtime.exporter: {{backend: litert_torch}}"
            )


def _pin_outputs(model: Any) -> None:
    """Add a Reshape to its own shape after every map output, or onnx2tf puts channels last."""
    from onnx import TensorProto, helper

    reshaped = {n: node.op_type == "Reshape" for node in model.graph.node for n in node.output}
    for output in model.graph.output:
        shape = _sizes(output)
        if len(shape) < 3 or reshaped[output.name]:
            continue
        inner, wanted = f"{output.name}_as_made", f"{output.name}_shape"
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [inner if name == output.name else name for name in names]
        model.graph.initializer.append(
            helper.make_tensor(wanted, TensorProto.INT64, [len(shape)], shape)
        )
        node = helper.make_node("Reshape", [inner, wanted], [output.name])
        model.graph.node.append(node)


BACKEND = Backend(
    name="onnx2tf",
    summary="onnx2tf: ONNX files to .tflite by TensorFlow, in a separate environment",
    library=onnx2tf,
    companions=(onnxruntime, tensorflow),
    environment=Environment(
        requirements=(
            "onnx2tf==1.29.24",
            "tensorflow==2.19.0",
            "numpy==1.26.4",
            "onnx==1.19.1",
            "onnxruntime==1.23.0",
            "protobuf==4.25.5",
        ),
        why="onnx2tf 1.29 needs TensorFlow 2.19, NumPy 1 and protobuf 4",
    ),
    offers=(
        Offer(Stage.EXPORT, {}, Onnx2TfExporter, source="https://github.com/PINTO0309/onnx2tf"),
    ),
)
