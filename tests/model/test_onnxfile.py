"""ONNX files: invalid ones are refused in one line."""

import hashlib

import numpy as np
import onnx
import pytest
import tiny
from onnx import TensorProto, helper, numpy_helper
from refusals import refused_model

from simulator.model.card import Card
from simulator.model.onnxfile import check


def relu(**ports):
    return tiny.model([helper.make_node("Relu", ["x"], ["y"])], **ports)


def test_a_sound_model_is_described(card):
    found = check(Card(card))

    assert (found.input, found.outputs, found.pools) == ("x", {"y": (1, 3)}, 0)
    assert found.digest == hashlib.sha256(found.path.read_bytes()).hexdigest()


def test_pools_are_counted(tmp_path):
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2]),
        helper.make_node("AveragePool", ["a"], ["b"], kernel_shape=[2, 2]),
        helper.make_node("GlobalAveragePool", ["b"], ["y"]),
    ]
    model = tiny.model(nodes, outputs={"y": [1, 3, 1, 1]})

    assert check(Card(tiny.card(tmp_path, model, labels=None))).pools == 2


@pytest.mark.parametrize(
    "content", [b"", b"not a model at all", b"\x08", b"\xff" * 100, b"<html>", bytes(100)]
)
def test_what_is_no_model(card, content):
    (card.parent / "model.onnx").write_bytes(content)

    message = refused_model(card)

    assert message.startswith(f"{card.parent / 'model.onnx'}: ")
    assert "not an ONNX model" in message


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_model(card, part):
    file = card.parent / "model.onnx"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * part)])

    assert refused_model(card).startswith(f"{file}: not ")


def test_an_absent_model(card):
    (card.parent / "model.onnx").unlink()

    assert refused_model(card).endswith(f"model: there is no file {card.parent / 'model.onnx'}")


def of_two_inputs():
    ports = {"x": [1, 3, 32, 32], "z": [1, 3, 32, 32]}
    return tiny.model([helper.make_node("Add", ["x", "z"], ["y"])], ports, {"y": [1, 3, 32, 32]})


def of_no_input():
    constant = helper.make_node("Constant", [], ["y"], value_floats=[1.0, 2.0, 3.0])
    model = tiny.model([constant], outputs={"y": [3]})
    del model.graph.input[:]
    return model


def of_no_output():
    model = tiny.classifier()
    del model.graph.output[:]
    return model


def of_double_precision():
    model = relu(outputs={"y": [1, 3, 32, 32]})
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (of_two_inputs, "one input expected, got 2 (x, z)"),
        (of_no_input, "one input expected, got 0 (none)"),
        (of_no_output, "output"),
        (of_double_precision, "input 'x' is float64; float32 expected"),
        (lambda: tiny.model([helper.make_node("Frobnicate", ["x"], ["y"])]),
         "not a valid ONNX model: No Op registered for Frobnicate"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_card_or_is_invalid(tmp_path, model, said):
    assert said in refused_model(tiny.card(tmp_path, model(), labels=None))


def test_weights_listed_as_inputs_are_not_inputs(tmp_path):
    """Until IR version 3 every initializer had to be listed as an input too."""
    model = tiny.classifier()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 3]))

    assert check(Card(tiny.card(tmp_path, model))).input == "x"


@pytest.mark.parametrize(
    ("shape", "got"),
    [
        ([1, 3, 224, 224], "1x3x224x224"),
        ([1, 32, 32, 3], "1x32x32x3"),
        ([1, 1, 32, 32], "1x1x32x32"),
        ([8, 3, 32, 32], "8x3x32x32"),
        ([3, 32, 32], "3x32x32"),
        ([1, 3, 32, "w", 1], "1x3x32x?x1"),
        ([], "of unknown shape"),
    ],
)
def test_a_wrong_input_shape(tmp_path, shape, got):
    model = relu(inputs={"x": shape}, outputs={"y": shape})

    message = refused_model(tiny.card(tmp_path, model, labels=None))

    assert message.endswith(f"input 'x' is {got}, the card card.yaml makes 1x3x32x32 (NCHW)")


@pytest.mark.parametrize("shape", [["n", 3, 32, 32], [1, 3, "h", "w"], [None, None, None, None]])
def test_free_dimensions_fit(tmp_path, shape):
    model = relu(inputs={"x": shape}, outputs={"y": shape})

    assert check(Card(tiny.card(tmp_path, model, labels=None))).input == "x"


def test_a_label_file_of_another_model(card):
    """The classifier has three outputs; a fourth label would shift nothing, and fit nothing."""
    (card.parent / "labels.txt").write_text("red\ngreen\nblue\nblack\n")

    message = refused_model(card)

    assert message.endswith(
        "model.onnx: labels: 4 classes, and output 'y' has 3 (of 3, less 0 background)"
    )


def test_background_classes_are_not_in_the_label_file(tmp_path):
    path = tiny.card(tmp_path, output={"kind": "logits", "background": 1})

    assert refused_model(path).endswith("has 2 (of 3, less 1 background)")


def external(tmp_path, location, data=b"\0" * 36, **more):
    """A card whose model keeps its weights in *location*."""
    model = tiny.classifier()
    (weights,) = model.graph.initializer
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        weights.external_data.add(key=key, value=str(value))
    folder = tmp_path / "model"
    path = tiny.card(folder, model)
    if data is not None:
        (folder / "weights.bin").write_bytes(data)
        (tmp_path / "outside.bin").write_bytes(data)
    return path


def test_external_data_beside_the_model(tmp_path):
    """The digest is that of the file and of its data: other weights are another model."""
    first, second = (
        check(Card(external(tmp_path / name, "weights.bin", data))).digest
        for name, data in (("a", bytes(36)), ("b", bytes(35) + b"\1"))
    )

    assert first != second


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/passwd", "a/../../outside.bin", ""])
def test_external_data_outside_the_folder(tmp_path, location):
    message = refused_model(external(tmp_path, location))

    assert message.endswith(
        f"tensor 'w' keeps its data in {location!r}, outside the model's folder; this is refused"
    )


def test_external_data_through_a_link(tmp_path):
    path = external(tmp_path, "weights.bin")
    (path.parent / "weights.bin").unlink()
    (path.parent / "weights.bin").symlink_to(tmp_path / "outside.bin")

    assert "outside the model's folder; this is refused" in refused_model(path)


def test_external_data_in_a_constant_node(tmp_path):
    """Not only initializers may name files; whatever a branch or attribute names is checked."""
    tensor = numpy_helper.from_array(np.zeros((1, 3), np.float32), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    model = tiny.classifier()
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))

    assert "keeps its data in '/etc/passwd'" in refused_model(tiny.card(tmp_path, model))


def test_missing_external_data(tmp_path):
    message = refused_model(external(tmp_path, "weights.bin", data=None))

    assert message.endswith("its external data weights.bin is missing; copy it too")


@pytest.mark.parametrize("more", [{"offset": 1000, "length": 36}, {"offset": -5}, {"length": "x"}])
def test_external_data_that_is_too_short(tmp_path, more):
    assert refused_model(external(tmp_path, "weights.bin", **more)).startswith(str(tmp_path))


def test_a_model_in_another_of_onnx_formats_is_not_guessed(tmp_path):
    """``onnx.load`` chooses a parser by the file's ending; a card names an ONNX file."""
    path = tiny.card(tmp_path, model="model.json")
    (tmp_path / "model.json").write_bytes(tiny.classifier().SerializeToString())

    assert check(Card(path)).input == "x"
    assert onnx.load(tmp_path / "model.json", format="protobuf")
