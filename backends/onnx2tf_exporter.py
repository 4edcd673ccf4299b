"""onnx2tf: ONNX files as .tflite files, by TensorFlow."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import numpy as np

from backends.quiet import quiet
from simulator.contract import Backend, Environment, Exporter, Library, Offer, Stage

onnx2tf = Library("onnx2tf", distribution="onnx2tf", extra="litert")

_SAMPLES = "calibration_image_sample_data_20x128x128x3_float32.npy"


class Onnx2TfExporter(Exporter):
    """``onnx2tf.convert`` with FP32 weights, batch 1, and the ONNX input's own layout.

    onnx2tf compares its layers with ONNX Runtime's on images that it downloads; it finds
    random ones of a fixed seed instead. It simplifies its input in place, so it gets a copy,
    and onnxsim, whose failures it hides, stays off.
    """

    takes: ClassVar[str] = "onnx"
    gives: ClassVar[str] = "tflite"

    def export(self, source: Path, target: Path) -> None:
        """Convert an ``.onnx`` file to a float ``.tflite`` file."""
        import onnx

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(source, folder / "model.onnx")
            images = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
            np.save(folder / _SAMPLES, images)
            inputs = [port.name for port in onnx.load(str(source)).graph.input]
            with quiet(), contextlib.chdir(folder):
                onnx2tf.convert(
                    input_onnx_file_path="model.onnx",
                    output_folder_path="out",
                    keep_shape_absolutely_input_names=inputs,
                    keep_ncw_or_nchw_or_ncdhw_input_names=inputs,
                    copy_onnx_input_output_names_to_tflite=True,
                    batch_size=1,
                    not_use_onnxsim=True,
                    non_verbose=True,
                )
            shutil.copy(folder / "out" / "model_float32.tflite", target)


BACKEND = Backend(
    name="onnx2tf",
    summary="onnx2tf: ONNX files to .tflite by TensorFlow, in an environment of its own",
    library=onnx2tf,
    environment=Environment(
        requirements=(
            "onnx2tf==1.29.24",
            "tensorflow==2.19.0",
            "numpy==1.26.4",
            "onnx==1.19.1",
            "protobuf==4.25.5",
        ),
        why="onnx2tf 1.29 needs TensorFlow 2.19, NumPy 1 and protobuf 4",
    ),
    offers=(
        Offer(Stage.EXPORT, {}, Onnx2TfExporter, source="https://github.com/PINTO0309/onnx2tf"),
    ),
)
