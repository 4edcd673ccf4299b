"""TensorFlow as a runtime: what Keras saves, what is made of ONNX files, and what is refused."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from simulator.contract import Unsupported
from simulator.contract.model_format import format_of
from simulator.profile.artifact import read

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(0, 1, shape).astype(np.float32)


@pytest.fixture(scope="module")
def tf():
    from backends.tensorflow_library import tensorflow, tf_for_networks

    if not tensorflow.present:
        pytest.skip("TensorFlow is not installed")
    return tensorflow.load() if tensorflow.loaded else tf_for_networks(1, True)


def opened(path, **options):
    """The runtime with the settings that this process has begun with."""
    from backends.tensorflow_library import onednn_is_on, tensorflow
    from backends.tensorflow_runtime import SavedModelRuntime

    threads = tensorflow.config.threading.get_intra_op_parallelism_threads()
    usual = {"threads": threads, "onednn": onednn_is_on(), "jit_compile": False}
    return SavedModelRuntime(path, usual | options)


def test_what_keras_saves_gives_what_keras_gives(tf, tmp_path):
    """Images may come in either layout; threads, oneDNN and XLA are read back."""
    keras = pytest.importorskip("keras")
    network = keras.Sequential([
        keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3, activation="relu"),
        keras.layers.Flatten(), keras.layers.Dense(5, activation="softmax"),
    ])  # fmt: skip
    network.export(str(tmp_path / "mine"), verbose=False)
    images = RNG.random((3, 8, 8, 3), np.float32)

    for jit_compile in (False, True):
        runtime = opened(tmp_path / "mine", jit_compile=jit_compile)
        (given,), (made,) = runtime.inputs, runtime.outputs
        assert (given.shape, made.shape) == ((None, 8, 8, 3), (None, 5))
        for layout in (images, images.transpose(0, 3, 1, 2)):
            out = runtime.run({given.name: layout})[made.name]
            assert np.allclose(out, network(images).numpy(), atol=1e-6)
        found = runtime.effective({given.name: images})
        assert found.products == {"fp32": 2}
        assert found.options["jit_compile"] is jit_compile
        runtime.close()


def onnx_file(path, *nodes, **weights):
    """A file from x (1, 4, 9, 7) to y."""
    graph = helper.make_graph(
        [helper.make_node(op, ins.split(), [out], **own) for op, ins, out, own in nodes], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 9, 7))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def test_a_graph_of_onnx_gives_what_onnx_runtime_gives(tf, tmp_path):
    """Uneven padding, groups, constants beside images and a reshape with a batch of 1."""
    from backends.tensorflow_runtime import OnnxExporter

    ort = pytest.importorskip("onnxruntime")
    source = onnx_file(
        tmp_path / "net.onnx",
        ("Conv", "x w", "a", {"pads": [0, 1, 2, 1], "strides": [2, 1]}),
        ("Conv", "a d", "b", {"group": 6, "pads": [1, 0, 1, 2]}),
        ("Conv", "a g", "c", {"group": 2, "pads": [1, 1, 1, 1]}),
        ("Mul", "b scale", "e", {}),
        ("Add", "e c", "f", {}),
        ("Concat", "f a", "h", {"axis": 1}),
        ("AveragePool", "h", "i", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 0]}),
        ("Reshape", "i to", "y", {}),
        w=normal(6, 4, 3, 3), d=normal(6, 1, 3, 3), g=normal(6, 3, 3, 3), scale=normal(6, 1, 1),
        to=np.array([1, -1]),
    )  # fmt: skip
    OnnxExporter({}).export(source, tmp_path / "made")

    images = normal(3, 4, 9, 7)
    session = ort.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    wanted = np.concatenate([session.run(None, {"x": image[None]})[0] for image in images])
    assert np.allclose(opened(tmp_path / "made").run({"x": images})["y"], wanted, atol=1e-4)


def test_what_cannot_be_opened_or_converted_is_a_line(tf, tmp_path):
    from backends.tensorflow_onnx import save

    tf.saved_model.save(tf.Module(), str(tmp_path / "bare"))
    with pytest.raises(Unsupported, match="a signature serving_default expected"):
        opened(tmp_path / "bare")
    pool = ("MaxPool", "x", "y", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1})
    depth = ("DepthToSpace", "x", "y", {"blocksize": 2})
    squeeze = ("Squeeze", "x", "y", {})
    for node, said in (
        (pool, "MaxPool.*ceil_mode"), (depth, "lacks.*DepthToSpace"), (squeeze, "Squeeze.*axes"),
    ):  # fmt: skip
        with pytest.raises(Unsupported, match=said):
            save(onnx_file(tmp_path / "net.onnx", node), tmp_path / "made")


def test_a_folder_is_known_by_its_graph_and_by_all_of_its_bytes(tmp_path):
    weights = tmp_path / "mine" / "variables" / "variables.data-00000-of-00001"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"1")
    (tmp_path / "mine" / "saved_model.pb").write_bytes(b"graph")

    first = read(tmp_path / "mine")
    weights.write_bytes(b"2")

    assert format_of(tmp_path / "mine").name == "saved_model"
    assert read(tmp_path / "mine").digest != first.digest
