"""Modules of PyTorch as ONNX files, held against PyTorch's own answers."""

import numpy as np
import onnxruntime
import pytest
import torch

from simulator import registry
from simulator.contract import Stage
from simulator.errors import ModelError

EXAMPLE = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def writer():
    (offer,) = registry.backend("pytorch").of(Stage.NETWORK)
    return offer.make({})


class Two(torch.nn.Module):
    """Two outputs by name, and a dropout that must not be exported."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = torch.nn.BatchNorm2d(3), torch.nn.Dropout()

    def forward(self, x):
        x = self.drop(self.norm(x))
        return {"out": x, "mean": x.mean((2, 3))}


class Fixed(torch.nn.Module):
    """A trace keeps its number of rows."""

    def forward(self, x):
        return x.reshape(len(x), -1) * 2


def test_the_file_answers_what_the_module_does_when_it_answers(writer, tmp_path):
    module = Two()
    module(torch.from_numpy(EXAMPLE))  # moves the statistics
    batch = np.concatenate([EXAMPLE, EXAMPLE + 1])

    writer.write(module, EXAMPLE, tmp_path / "two.onnx")

    session = onnxruntime.InferenceSession(tmp_path / "two.onnx")
    out, mean = session.run(["out", "mean"], {"input": batch})
    assert module.training
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(batch))
    np.testing.assert_allclose(out, expected["out"], atol=1e-6)
    np.testing.assert_allclose(mean, expected["mean"], atol=1e-6)


def test_the_batch_stays_one_where_a_trace_keeps_it(writer, tmp_path):
    writer.write(Fixed(), EXAMPLE, tmp_path / "fixed.onnx")

    (port,) = onnxruntime.InferenceSession(tmp_path / "fixed.onnx").get_inputs()
    assert port.shape == [1, 3, 8, 8]


def test_only_modules_are_taken(writer):
    assert writer.takes(Two())
    assert not writer.takes(Two) and not writer.takes("two.pt")


class Raises(torch.nn.Module):
    def forward(self, x):
        raise ValueError("of\ntwo lines")


def test_what_cannot_be_written_is_refused_in_one_line(writer, tmp_path):
    with pytest.raises(ModelError, match=r"Raises does not take .*: ValueError: of two lines$"):
        writer.write(Raises(), EXAMPLE, tmp_path / "own.onnx")
