"""Further inputs that every sample has alike, beside an image, its mask, or a sound."""

import numpy as np
import onnx
import pytest
import tiny
import yaml
from one_stack import outputs
from onnx import TensorProto, helper

from simulator import compare
from simulator.errors import ModelError
from simulator.testing.audio_specimen import sine, wav

SIZES = {"sizes": {"value": [[640, 3]], "dtype": "int64"}, "scale": {"value": 0.5,
                                                                   "dtype": "float32"}}  # fmt: skip


def weighted(values="x", shape=(1, 3, 32, 32), axes=(2, 3)):
    """The mean of each channel times 640, 3 and a half: what constants are put in."""
    nodes = [
        helper.make_node("ReduceMean", [values], ["mean"], axes=axes, keepdims=0),
        helper.make_node("Cast", ["sizes"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceProd", ["floats"], ["both"], axes=[1]),
        helper.make_node("Mul", ["mean", "both"], ["large"]),
        helper.make_node("Mul", ["large", "scale"], ["y"]),
    ]
    port = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "weighted",
        [port(values, TensorProto.FLOAT, shape), port("sizes", TensorProto.INT64, ["n", 2]),
         port("scale", TensorProto.FLOAT, [])],
        [port("y", TensorProto.FLOAT, ["n", 3])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def image_card(folder, constants=SIZES, name="x"):
    given = tiny.SPEC["input"] | {"name": name, "constants": constants}
    return tiny.card(folder, weighted(), input=given)


@pytest.mark.parametrize("profile", ["pillow_fp32", "ort_int8"])
def test_constants_stand_beside_an_image(tmp_path, profile):
    """In INT8 the image is quantized, and the network is calibrated with the constants too."""
    data = tiny.data(tmp_path / "data", each=3)
    fed, _, found = outputs(str(image_card(tmp_path)), str(data), profile)

    assert fed["sizes"].tolist() == [[640, 3]] and fed["sizes"].dtype == np.int64
    assert fed["scale"].shape == () and fed["scale"] == 0.5
    expected = fed["x"].mean((2, 3)) * 640 * 3 * 0.5
    assert found["y"] == pytest.approx(expected, abs=float(np.abs(expected).max()) / 50)


def test_constants_stand_beside_a_sound(tmp_path):
    """As the ids that a decoder begins with stand beside the features of an encoder."""
    onnx.save(weighted("wave", (1, 3, 100), (2,)), tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    split = helper.make_node("Reshape", ["sound", "three"], ["wave"])
    model.graph.node.insert(0, split)
    model.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("sound", TensorProto.FLOAT, [1, 300])
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 3, -1]), "three"))
    onnx.save(model, tmp_path / "m.onnx")
    card = {
        "schema": 1, "name": "thirds", "task": "audio_classification", "model": "m.onnx",
        "input": {"kind": "audio", "features": "waveform", "rate": 8000, "layout": "NS",
                  "samples": 300, "name": "sound", "constants": SIZES},
        "output": {"kind": "logits"}, "trained": {"normalize": {"kind": "none"}},
    }  # fmt: skip
    (tmp_path / "card.yaml").write_text(yaml.safe_dump(card))
    (tmp_path / "data").mkdir()
    for number, third in enumerate(np.eye(3)):
        sound = np.repeat(third, 100) * 0.5 + sine(40, 8000, 300) * 0.01
        (tmp_path / "data" / f"{number}.wav").write_bytes(wav(sound, 8000))
    run = compare("waveform_fp32", "waveform_fp32", model=tmp_path / "card.yaml",
                  data=tmp_path / "data", out=tmp_path / "run")  # fmt: skip
    said = {one["sample"]: one["prediction"] for one in run.records().to_pylist()}

    assert said == {"0.wav": 0, "1.wav": 1, "2.wav": 2}


def test_a_batch_joins_constants_that_have_a_row(tmp_path):
    """One number for all samples cannot be joined, which is said in one line."""
    data, given = str(tiny.data(tmp_path / "data", each=1)), image_card(tmp_path)
    with pytest.raises(ModelError, match="and 1x2 and one number; a batch needs"):
        outputs(str(given), data, "pillow_fp32", "runtime.batch=3")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"name": None}, "name and mask or constants: both, or neither"),
        ({"constants": {"sizes": SIZES["sizes"]}}, "x, sizes expected, got 3"),
        ({"constants": SIZES | {"sizes": {"value": [[640, 3]], "dtype": "int32"}}},
         "input 'sizes' is int64; int32 expected"),
        ({"constants": SIZES | {"sizes": {"value": [640, 3], "dtype": "int64"}}},
         "input 'sizes' is ..2, the card card.yaml makes 2"),
    ],
)  # fmt: skip
def test_constants_that_do_not_fit_are_one_line(tmp_path, changed, why):
    data = tiny.data(tmp_path / "data", each=1)
    with pytest.raises(ModelError, match=why):
        outputs(str(image_card(tmp_path, **changed)), str(data), "pillow_fp32")
