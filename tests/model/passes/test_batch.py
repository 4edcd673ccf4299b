"""The batch dimension of a graph: rows stay apart, or the node is named."""

import numpy as np
import official
import pytest
import tiny
from onnx import helper

from simulator.errors import ModelError
from simulator.model.passes.graph.batch import with_batch


def answers(model, x):
    return official.runtime(model, {"x": x})


def reshaped(*to, **options):
    """The classifier, with its features through a Reshape to a constant shape."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Reshape", ["pooled", "to"], ["flat"], name="features", **options),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    held = {"to": np.array(to), "w": np.eye(3, dtype=np.float32)}
    return tiny.model(nodes, constants=held)


def between(*nodes, **held):
    """The classifier behind nodes that take x and give z."""
    after = [
        helper.make_node("GlobalAveragePool", ["z"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    return tiny.model([*nodes, *after], constants={"w": np.eye(3, dtype=np.float32), **held})


X = np.random.default_rng(3).normal(size=(5, 3, 32, 32)).astype(np.float32)


@pytest.mark.parametrize(
    "model",
    [
        tiny.classifier(),
        reshaped(1, 3),
        reshaped(1, -1),
        reshaped(-1, 3),
        reshaped(1, 3, allowzero=1),
    ],
)
def test_each_sample_gets_its_own_answer(model):
    singles = np.concatenate([answers(model, x[None]) for x in X])

    for size in (None, 5):
        batched = with_batch(model, size)
        assert answers(batched, X).tolist() == singles.tolist()
    alone = answers(with_batch(model, None), X[:1])
    assert alone.tolist() == singles[:1].tolist()


def test_a_size_is_fixed_and_none_is_free():
    for size, shape in ((5, [5, 3, 32, 32]), (None, ["batch", 3, 32, 32])):
        (port,) = with_batch(tiny.classifier(), size).graph.input
        dims = port.type.tensor_type.shape.dim
        assert [d.dim_param or d.dim_value for d in dims] == shape


def test_sizes_of_a_resize_get_the_batch_and_cannot_be_free():
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["z"], name="up", mode="nearest")
    model = between(node, sizes=np.array([1, 3, 64, 64]))
    singles = np.concatenate([answers(model, x[None]) for x in X])

    assert answers(with_batch(model, 5), X).tolist() == singles.tolist()
    with pytest.raises(ModelError, match=r"Resize 'up' has sizes with a fixed batch"):
        with_batch(model, None)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([helper.make_node("Softmax", ["x"], ["z"], name="s", axis=0)], "Softmax 's' works along"),
        ([helper.make_node("Softmax", ["x"], ["z"], name="s", axis=-4)], "Softmax 's' works along"),
        ([helper.make_node("Concat", ["x", "x"], ["z"], name="c", axis=0)], "Concat 'c' works"),
        ([helper.make_node("Einsum", ["x"], ["z"], name="e", equation="abcd->abcd")], "Einsum 'e'"),
        (
            [helper.make_node("ReduceMean", ["x"], ["m"], name="mean", axes=[0]),
             helper.make_node("Sub", ["x", "m"], ["z"])],
            "ReduceMean 'mean' gives",
        ),
        (
            [helper.make_node("Transpose", ["x"], ["t"], name="t", perm=[1, 0, 2, 3]),
             helper.make_node("Transpose", ["t"], ["z"], perm=[1, 0, 2, 3])],
            "Transpose 't' gives",
        ),
    ],
)  # fmt: skip
def test_what_puts_samples_together_is_refused_by_its_name(nodes, said):
    with pytest.raises(ModelError, match=said):
        with_batch(between(*nodes), 4)


def test_a_reshape_without_the_batch_is_refused_by_its_name():
    model = between(
        helper.make_node("Reshape", ["x", "to"], ["r"], name="shuffle"),
        helper.make_node("Reshape", ["r", "to2"], ["z"], name="back"),
        to=np.array([3, 32, 32]), to2=np.array([1, 3, 32, 32]),
    )  # fmt: skip
    with pytest.raises(ModelError, match=r"node .back"):
        with_batch(model, 4)
