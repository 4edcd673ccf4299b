"""TensorRT: what can be known without a GPU; what needs one runs where there is one."""

import json
import subprocess
import sys

import numpy as np
import pytest
import sums

from backends.nvidia.driver import cuda_device
from backends.nvidia.tensorrt_engine import products
from backends.nvidia.tensorrt_runtime import refuse_another
from simulator import registry
from simulator.contract import Stage
from simulator.errors import MissingLibrary, Unsupported

BACKEND = registry.backend("tensorrt")
FP32, *_ = BACKEND.of(Stage.RUNTIME)
PLAIN = {"device": "cuda", "threads": 1, "tf32": False, "storage": "fp32", "compute": "fp32"}
HERE = {"gpu": "NVIDIA H200", "compute_capability": "9.0", "tensorrt": "11.4.0.106"}


def has_gpu():
    try:
        return bool(cuda_device())
    except MissingLibrary:
        return False


def layer(kind, tactic="", **tensor):
    """A layer as ``get_engine_information`` prints it, with the fields that count here."""
    return {"Name": kind, "LayerType": kind, "Inputs": [tensor], "TacticName": tactic}


def test_products_of_a_tensorrt_10_engine():
    """
    The words are those of NVIDIA's documents: 10.16 "Engine Inspector" (Int8), Torch-TensorRT
    "Saving engine information" (FP16), and the short names of engines without vector formats.
    """
    int8 = "Thirty-two wide channel vectorized row major Int8 format."
    half = "Channel major FP16 format where channel % 4 == 0"
    told = {
        "Layers": [
            layer("CaskConvolution", **{"Format/Datatype": int8}),
            layer("CaskConvolution", **{"Format/Datatype": half}),
            layer("Reformat", **{"Format/Datatype": half}),
            layer("CaskGemmConvolution", **{"Format/Datatype": "Half"}),
            layer("conv", "sm80_tf32_fprop", **{"Format/Datatype": "Row major linear FP32"}),
            layer("gemm", "sm80_xmma_gemm_f32f32", **{"Format/Datatype": "Float"}),
            {"Name": "w", "LayerType": "Constant", "Inputs": [], "Outputs": []},
        ],
        "Bindings": ["x", "y"],
    }

    assert products(told) == {"int8": 1, "fp16": 2, "tf32": 1, "fp32": 1}


def test_products_of_a_tensorrt_11_engine():
    """
    "Migrating IEngineInspector Usage from TensorRT 10.x to 11.x": ``I/O Tensors`` instead of
    ``Bindings``, and the type of a tensor in a field of its own.
    """
    told = {
        "Layers": [
            layer("MatrixMultiply", Format="Row major linear FP16 format", DataType="Half"),
            layer("fusion", "sm90_xmma_gemm_bf16", Format="kLINEAR", DataType="BFloat16"),
            layer("PointWise", "pointwise_float", Format="kLINEAR", DataType="Float"),
        ],
        "I/O Tensors": [{"Name": "x", "IOMode": "Input", "DataType": "Float"}],
    }

    assert products(told) == {"fp16": 1, "bf16": 1}


def test_layers_that_are_names_alone_tell_nothing():
    """Without ProfilingVerbosity.DETAILED a layer is a string."""
    assert products({"Layers": ["conv1 + relu1", "fc"], "I/O Tensors": []}) == {}


@pytest.mark.parametrize(
    ("field", "other"),
    [("gpu", "NVIDIA L4"), ("compute_capability", "8.9"), ("tensorrt", "10.16.1")],
)
def test_an_engine_of_another_gpu_is_refused(tmp_path, field, other):
    (tmp_path / "gpu.json").write_text(json.dumps({**HERE, field: other}))

    with pytest.raises(Unsupported, match=rf"was built for .*{other}.*; this is .*delete"):
        refuse_another(tmp_path, HERE)


def test_an_engine_of_this_gpu_is_not(tmp_path):
    (tmp_path / "gpu.json").write_text(json.dumps(HERE))

    refuse_another(tmp_path, HERE)


def test_offers():
    """Strongly typed: what is stored is what is computed, and TF32 has to be chosen."""
    pairs = [(o.options["storage"], o.options["compute"]) for o in BACKEND.of(Stage.RUNTIME)]

    assert pairs == [((kind,), (kind,)) for kind in ("fp32", "fp16", "bf16", "int8")]
    assert all(o.options["tf32"] == (False, True) for o in BACKEND.of(Stage.RUNTIME))


if has_gpu():

    def test_it_runs_on_the_gpu(tmp_path):
        """An FP32 convolution by hand: sums of two numbers are rounded once, at 2**-24."""
        folder = tmp_path / "engine"
        folder.mkdir()
        FP32.make.compile(sums.save(tmp_path / "m.onnx"), folder, PLAIN)
        runtime = FP32.make(folder, PLAIN)
        samples = sums.samples()

        out = np.stack([runtime.run({"x": x})["y"] for x in samples])

        effective = runtime.effective({"x": samples[0]})
        assert np.abs(out - sums.answers(samples)).max() < 1e-6
        assert effective.compute == "fp32"
        assert effective.options == {"device": "cuda", "tf32": False}
        assert effective.details["gpu_milliseconds"] > 0

else:

    @pytest.mark.parametrize("ask", ["device", "compile", "open", "engine"])
    def test_without_a_gpu_it_is_refused_before_anything_is_imported(tmp_path, ask):
        """``trt.Runtime`` without a driver does not raise, and the call after it segfaults."""
        (tmp_path / "gpu.json").write_text(json.dumps(HERE))
        model = sums.save(tmp_path / "m.onnx")
        (tmp_path / "net.engine").write_bytes(b"ftrt")
        calls = {
            "device": BACKEND.device,
            "compile": lambda: FP32.make.compile(model, tmp_path, PLAIN),
            "open": lambda: FP32.make(tmp_path, PLAIN),
            "engine": lambda: FP32.make(tmp_path / "net.engine", PLAIN),
        }

        with pytest.raises(MissingLibrary, match=r"a CUDA GPU is needed, but .*driver"):
            calls[ask]()
        assert "tensorrt" not in sys.modules

    def test_the_refusal_is_one_line_of_a_living_process():
        code = (
            "from simulator import registry\n"
            "from simulator.errors import MissingLibrary\n"
            "try: registry.backend('tensorrt').device()\n"
            "except MissingLibrary as error: print(error)"
        )

        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

        assert done.returncode == 0
        assert done.stderr == ""
        assert len(done.stdout.splitlines()) == 1
