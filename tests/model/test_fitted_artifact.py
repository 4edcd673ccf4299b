"""Artifacts whose constants are fitted to samples: made once, and the key says to which."""

import numpy as np
import onnx
import pytest
import tiny
from onnx import numpy_helper

from simulator.contract.passes import Fitting
from simulator.errors import ModelError
from simulator.model.artifact import build
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.implementations import choose
from simulator.profile.load import load

MATRIX = "graph.compensation={form: matrix, calibration: {samples: 3, source: data}}"


def fitting(identity, read):
    """The training stack's inputs are twice the deployment's, minus 1."""

    def samples():
        read.append(identity)
        rng = np.random.default_rng(0)
        for _ in range(3):
            x = rng.normal(size=(1, 3, 32, 32)).astype(np.float32)
            yield {"x": 2 * x - 1}, {"x": x}

    return {"compensation": Fitting(identity, samples, None)}


def built(path, fittings=None):
    card, profile = Card(path), load("pillow_fp32", [MATRIX])
    return build(card, check(card), profile, choose(profile), None, fittings=fittings)


@pytest.fixture
def path(tmp_path, cache):
    return tiny.card(tmp_path / "model")


def test_samples_are_read_once_and_the_remarks_stay(path):
    read = []
    one, two = (built(path, fitting("one", read)) for _ in range(2))

    assert (one, read) == (two, ["one"])
    assert "it removes 100 % of the squared difference" in one.notes[0]


def test_other_samples_are_another_artifact(path):
    one, two = (built(path, fitting(identity, [])) for identity in ("one", "two"))

    assert one.key != two.key


def test_the_constants_are_in_the_file(path):
    graph = onnx.load(built(path, fitting("one", [])).path).graph
    conv = next(node for node in graph.node if node.op_type == "Conv")
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    np.testing.assert_allclose(held[conv.input[1]][:, :, 0, 0], 2 * np.eye(3), atol=1e-6)
    np.testing.assert_allclose(held[conv.input[2]], [-1, -1, -1], atol=1e-6)


def test_without_samples_it_is_refused(path):
    with pytest.raises(ModelError, match=r"graph\.compensation needs calibration inputs"):
        built(path)
