"""Models with inputs of any number, type, rank and size, and the cards that describe them."""

import kinds
import numpy as np
import onnx
import pytest
import tiny
from artifacts import built
from onnx import TensorProto, helper
from refusals import refused_model

from simulator.contract import Stage
from simulator.errors import ModelError
from simulator.modalities.modality import Feed
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.implementations import choose
from simulator.profile.load import load


@pytest.fixture(autouse=True)
def tokens(monkeypatch):
    kinds.install(monkeypatch, kinds.Tokens(), kinds.Plain())


def shapes(path):
    return {
        value.name: [dim.dim_value or None for dim in value.type.tensor_type.shape.dim]
        for value in onnx.load(path).graph.input
    }


def test_a_card_without_a_kind_is_of_images(tmp_path):
    plain = Card(tiny.card(tmp_path / "a"))
    written = Card(tiny.card(tmp_path / "b", input={"kind": "image", **tiny.SPEC["input"]}))

    assert plain.modality.name == written.modality.name == "image"
    assert plain.spec.input == written.spec.input
    assert plain.feeds == (Feed(None, np.dtype("f4"), (1, 3, 32, 32), "NCHW"),)


def test_a_kind_that_nobody_brings(tmp_path):
    path = tiny.card(tmp_path, input={"kind": "imagge"})

    with pytest.raises(ModelError, match=r"^[^\n]+:6: input.kind: unknown value 'imagge'; did y"):
        Card(path)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (3, "unknown value '3'"),
        (None, "image expected, got nothing"),
        (["image"], "image expected"),
    ],
)
def test_a_kind_that_is_no_word(tmp_path, kind, words):
    path = tiny.card(tmp_path, input={"kind": kind, **tiny.SPEC["input"]})

    with pytest.raises(ModelError, match=rf"^[^\n]+: input.kind: {words}[^\n]*$"):
        Card(path)


def test_the_schema_of_a_card_is_its_modalitys(tmp_path):
    """Tokens have no geometry, and images have no length."""
    with pytest.raises(ModelError, match="geometry: unknown key 'geometry'"):
        Card(tiny.card(tmp_path / "a", input={"kind": "tokens"}))
    with pytest.raises(ModelError, match=r"input\.length: unknown key 'length'"):
        Card(tiny.card(tmp_path / "b", input={"length": 4, **tiny.SPEC["input"]}))


def test_several_inputs_with_a_length_that_the_sample_decides(tmp_path):
    found = check(Card(kinds.card(tmp_path)))

    assert {n: (p.dtype.name, p.shape) for n, p in found.inputs.items()} == {
        "ids": ("int64", (None, None)), "mask": ("bool", (None, None)),
    }  # fmt: skip
    with pytest.raises(ModelError, match=r"one input expected, got 2 \(ids, mask\)"):
        found.input  # noqa: B018


def without_a_mask():
    model = kinds.network()
    del model.graph.node[1:4]
    model.graph.node[1].input[0] = "rows"
    del model.graph.input[1]
    return model


def of_another_name():
    model = kinds.network()
    model.graph.input[0].name = model.graph.node[0].input[1] = "tokens"
    return model


def of_a_sequence():
    model = kinds.network()
    element = helper.make_tensor_type_proto(TensorProto.INT64, [1])
    model.graph.input[0].CopyFrom(
        helper.make_value_info("ids", helper.make_sequence_type_proto(element))
    )
    model.graph.node[0].input[1] = "at0"
    model.graph.initializer.append(helper.make_tensor("zero", TensorProto.INT64, [], [0]))
    model.graph.node.insert(0, helper.make_node("SequenceAt", ["ids", "zero"], ["at0"]))
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (without_a_mask, "ids, mask expected, got 1 (ids)"),
        (of_another_name, "ids, mask expected, got 2 (tokens, mask)"),
        (lambda: kinds.network(ids=TensorProto.INT32), "input 'ids' is int32; int64 expected"),
        (of_a_sequence, "'ids' is a sequence; a tensor expected"),
    ],
)
def test_inputs_that_the_card_does_not_describe(tmp_path, model, said):
    assert refused_model(kinds.card(tmp_path, model())).endswith(said)


@pytest.mark.parametrize(
    ("shape", "length", "words"),
    [
        ([1], None, "1, the card card.yaml makes 1x?"),
        ([1, "length", 1], None, "1x?x1, the card card.yaml makes 1x?"),
        ([8, "length"], None, "8x?, the card card.yaml makes 1x?"),
        ([1, 128], 64, "1x128, the card card.yaml makes 1x64"),
    ],
)
def test_an_input_of_another_shape(tmp_path, shape, length, words):
    message = refused_model(kinds.card(tmp_path, kinds.network(shape), length=length))

    assert message.endswith(f"input 'ids' is {words}")


@pytest.mark.parametrize(("shape", "length"), [([1, "l"], 64), ([1, 64], 64), ([1, 64], None)])
def test_a_length_that_one_side_leaves_open(tmp_path, shape, length):
    assert check(Card(kinds.card(tmp_path, kinds.network(shape), length=length))).inputs


TYPES = ("float32", "float16", "float64", "bfloat16", "bool", "uint8", "int8", "int32", "int64")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (1, None), (1, 80, None), (1, 3, 4, 5, 6)])
def test_any_type_and_rank(tmp_path, dtype, shape):
    """A scalar up to a volume; bfloat16 is a type of ``ml_dtypes``."""
    dtype = np.dtype(getattr(np, dtype, None) or __import__("ml_dtypes").bfloat16)
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
         helper.make_node("Size", ["x"], ["n"]),
         helper.make_node("Gather", ["logits", "n"], ["y"])],
        "any", [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor("logits", TensorProto.FLOAT, [1, 3], [1, 2, 3])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    kinds.Plain.feed = Feed(None, dtype, shape)

    found = check(Card(tiny.card(tmp_path, model, input={"kind": "plain"}, geometry=None)))

    assert (found.inputs["x"].dtype, found.inputs["x"].shape) == (dtype, shape)


@pytest.mark.parametrize("length", [1, 5, 40])
def test_a_runtime_takes_samples_of_any_length(tmp_path, cache, length):
    """Expected with NumPy from the network's own constants."""
    path = kinds.card(tmp_path)
    artifact, choices = built(path)
    rng = np.random.default_rng(length)
    ids, mask = rng.integers(0, 10, (1, length)), rng.random((1, length)) < 0.5
    table, w = (onnx.numpy_helper.to_array(onnx.load(artifact.path).graph.initializer[i])
                for i in (0, 2))  # fmt: skip

    runtime = choices[Stage.RUNTIME].make(artifact.path)
    got = runtime.run({"ids": ids, "mask": mask})["y"]
    runtime.close()

    want = (table[ids[0]] * mask[0][:, None] @ w).mean(axis=0)
    np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-6)


def test_a_rewrite_keeps_the_length_free(tmp_path, cache):
    artifact, choices = built(kinds.card(tmp_path), "graph.accumulation={dtype: fp16, block: 2}")

    assert artifact.notes == ("accumulation: 1 of 1 MatMul changed",)
    assert shapes(artifact.path) == {"ids": [1, None], "mask": [1, None]}
    runtime = choices[Stage.RUNTIME].make(artifact.path)
    for length in (2, 9):
        zeros = {"ids": np.zeros((1, length), np.int64), "mask": np.ones((1, length), np.bool_)}
        assert runtime.run(zeros)["y"].shape == (1, 3)
    runtime.close()


@pytest.fixture
def fixed(monkeypatch):
    """ONNX Runtime, as if it took models of fixed sizes only."""
    make = choose(load("pillow_fp32"))[Stage.RUNTIME].offer.make
    monkeypatch.setattr(make, "fixed_shapes", True)


def test_fixed_shapes_with_a_length_that_the_card_says(tmp_path, cache, fixed):
    artifact, _ = built(kinds.card(tmp_path, length=7))

    assert shapes(artifact.path) == {"ids": [1, 7], "mask": [1, 7]}
    (note,) = artifact.notes
    assert note == "4 free dimensions of the inputs were fixed, to ids 1x7, mask 1x7"


def test_fixed_shapes_with_a_length_that_the_sample_decides(tmp_path, cache, fixed):
    with pytest.raises(ModelError) as caught:
        built(kinds.card(tmp_path))

    assert str(caught.value) == (
        f"onnxruntime takes only models of fixed sizes; input 'ids' of {tmp_path / 'model.onnx'} "
        "is 1x? and varies by sample"
    )


def test_a_free_image_is_fixed_to_the_cards_size(tmp_path, cache, fixed):
    model = tiny.classifier()
    for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.dim_param = "side"

    artifact, _ = built(tiny.card(tmp_path, model))

    assert artifact.notes == ("2 free dimensions of the input were fixed, to 1x3x32x32",)
