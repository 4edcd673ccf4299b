"""Statistics of BatchNormalization taken anew: those of PyTorch's training mode."""

import warnings
from contextlib import contextmanager

import numpy as np
import official
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from simulator.contract.passes import Fitting
from simulator.errors import ModelError
from simulator.model.passes.batchnorm import PASS
from simulator.model.passes.graph.edit import nodes_of
from simulator.profile.graph import Batchnorm
from simulator.profile.precision import Calibration

ASKED = Batchnorm(statistics=Calibration(samples=6, through="deploy", source="data"))


@contextmanager
def running(model):
    yield lambda feeds: {model.graph.output[0].name: official.runtime(model, feeds)}


def fitting(samples):
    return Fitting("made", lambda: (({"x": sample},) for sample in samples), running)


class Net(nn.Module):
    """Two convolutions, each with a normalization, and one of the input."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(3, momentum=None),
            nn.Conv2d(3, 5, 3, padding=1, bias=False),
            nn.BatchNorm2d(5, momentum=None, eps=1e-3),
            nn.ReLU(),
            nn.Conv2d(5, 4, 3, stride=2),
            nn.BatchNorm2d(4, momentum=None),
        )

    def forward(self, x):
        return self.body(x)


def network(tmp_path, samples):
    """The ONNX file of a network with other statistics, and PyTorch's after one step on all."""
    torch.manual_seed(3)
    net = Net()
    for one in net.modules():
        if isinstance(one, nn.BatchNorm2d):
            nn.init.normal_(one.weight)
            nn.init.normal_(one.bias)
            one.running_mean.normal_()
            one.running_var.uniform_(0.5, 2)
    net.eval()
    path = tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only the older exporter keeps BatchNormalization
        torch.onnx.export(
            net, (torch.zeros(1, 3, 8, 8),), str(path), input_names=["x"], dynamo=False,
            do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
        )  # fmt: skip
    net.train()
    net(torch.from_numpy(np.concatenate(samples)))
    return onnx.load(str(path)), net.eval()


@pytest.fixture
def samples():
    rng = np.random.default_rng(5)
    return [rng.normal(1, 3, (1, 3, 8, 8)).astype(np.float32) for _ in range(6)]


def test_statistics_are_those_of_pytorchs_cumulative_average(tmp_path, samples):
    """BatchNorm2d(momentum=None) in training mode, one batch of all samples."""
    model, net = network(tmp_path, samples)
    assert len(nodes_of(model, "BatchNormalization")) == 3
    change = PASS.change(model, ASKED, fitting(samples))

    held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    norms = [one for one in net.modules() if isinstance(one, nn.BatchNorm2d)]
    for node, norm in zip(nodes_of(model, "BatchNormalization"), norms, strict=True):
        np.testing.assert_allclose(held[node.input[3]], norm.running_mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(held[node.input[4]], norm.running_var, rtol=1e-4)
    with torch.no_grad():
        wanted = net(torch.from_numpy(samples[0])).numpy()
    found = official.runtime(model, {"x": samples[0]})
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    assert str(change).endswith("statistics of 3 taken anew from the calibration samples")


def test_what_is_folded_has_the_new_statistics(tmp_path, samples):
    model, net = network(tmp_path, samples)
    folding = ASKED.model_copy(update={"folding": "fold"})
    PASS.change(model, folding, fitting(samples))

    assert len(nodes_of(model, "BatchNormalization")) == 1  # the input has no layer before it
    with torch.no_grad():
        wanted = net(torch.from_numpy(samples[0])).numpy()
    found = official.runtime(model, {"x": samples[0]})
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_without_samples_it_tells_of_the_change_and_changes_nothing(tmp_path, samples):
    model, _ = network(tmp_path, samples)
    before = model.SerializeToString()
    change = PASS.apply(model, ASKED)

    assert (change.rewritten, change.effective) == (3, 3)
    assert model.SerializeToString() == before


def test_one_value_for_each_channel_has_no_variance(tmp_path):
    one = [np.ones((1, 3, 1, 1), np.float32)]
    model, _ = network(tmp_path, [np.ones((2, 3, 8, 8), np.float32)])

    with pytest.raises(ModelError, match="a variance needs more samples"):
        PASS.change(model, ASKED, fitting(one))
