"""Faults in OpenVINO, held against NumPy."""

import faulted
import numpy as np
import pytest
from onnx import helper

from backends.intel.openvino_runtime import OpenVinoRuntime
from simulator.contract import BitFault, Kind, Target
from simulator.errors import Unsupported

OPTIONS = {"device": "cpu", "threads": 1, "storage": "fp32", "compute": "fp32"}
BITS = (0, 21, 22, 23, 26, 29, 31)
NAMES = {
    "first": ("w1", "b1", "y1"), "deep": ("w2", "b2", "y2"), "point": ("w3", "b3", "y3"),
    "head": ("w4", "b4", "z"), "x": ("", "", "x"),
}  # fmt: skip
ORDER = {Target.WEIGHTS: 0, Target.BIASES: 1, Target.NEURONS: 2, Target.INPUT: 2}


def injector(path, **changes):
    return OpenVinoRuntime.injector()(path, {**OPTIONS, **changes})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return faulted.save(tmp_path_factory.mktemp("small") / "small.onnx")


def expected(name, index, bit, kind):
    parameters = faulted.parameters()

    def one(values):
        values = values.astype(np.float32)
        values.flat[index] = faulted.disturbed(values.flat[index], bit, kind)
        return values

    if name in parameters:
        parameters[name] = one(parameters[name])
    return faulted.network(
        faulted.picture(), parameters, lambda layer, v: one(v) if layer == name else v
    )


def test_every_target_kind_and_bit_as_numpy_computes_it(small):
    """Finite values only: what OpenVINO makes of NaN is its own."""
    made = injector(small)
    trace, rng = made.trace({"x": faulted.picture()}), np.random.default_rng(0)
    exactly = 0
    for site in made.sites:
        name = NAMES[site.layer][ORDER[site.target]]
        with made.at(site) as rest:
            golden = rest.run(trace)
            for kind, bit in ((k, b) for k in Kind for b in BITS):
                index = int(rng.integers(site.elements))
                found = rest.run(trace, [BitFault(index, bit, kind)])
                after = found.changes[0][1]
                exact = after.is_integer() and abs(after) < 1000
                exactly += exact
                wanted = expected(name, index, bit, kind)
                assert faulted.equal(found.outputs["z"], wanted, exact), (site, index, bit, kind)
                assert found.finite
            assert np.array_equal(rest.run(trace).outputs["z"], golden.outputs["z"])
    assert len(made.sites) == 13
    assert exactly > 100


def test_neurons_are_behind_the_activation_that_openvino_fuses(small):
    made = injector(small)
    trace = made.trace({"x": faulted.picture()})

    assert trace["y1"].min() == 0
    assert trace["y1"].max() == 6
    assert "c1" not in trace


def test_inf_between_layers_is_seen(tmp_path):
    """Without an activation nothing swallows it; the last layer multiplies by 0."""
    one = np.ones((1, 1, 1, 1), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "one"], ["a"], "first"),
        helper.make_node("Conv", ["a", "two"], ["b"], "second"),
        helper.make_node("Clip", ["b", "low", "high"], ["y"]),
    ]
    stored = {"one": one, "two": one * 2, "low": np.float32(-1), "high": np.float32(1)}
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 1, 4, 4)}, ["y"], stored)
    made = injector(path)
    trace = made.trace({"x": np.ones((1, 1, 4, 4), np.float32)})
    sites = {(s.layer, s.target): s for s in made.sites}

    with made.at(sites["first", Target.WEIGHTS]) as rest:
        found = rest.run(trace, [BitFault(0, 30)])
        assert found.changes == ((1.0, float("inf")),)
        assert not found.finite
        assert np.isfinite(found.outputs["y"]).all()
        assert rest.run(trace).finite
    assert "make numbers of NaN" in made.tap


def test_what_cannot_be_reached_is_refused(small, tmp_path):
    with pytest.raises(Unsupported, match=r"in FP32 only, not with {storage: int8, compute: int8}"):
        injector(small, storage="int8", compute="int8")
    ones = np.ones(3, np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "first"),
        helper.make_node("BatchNormalization", ["c", "one", "one", "one", "one"], ["y"]),
    ]
    stored = {"w": np.ones((3, 3, 1, 1), np.float32), "one": ones}
    path = faulted.write(tmp_path / "m.onnx", nodes, {"x": (1, 3, 4, 4)}, ["y"], stored)
    with pytest.raises(Unsupported, match=r"1 BatchNormalization .* {batchnorm: {folding: fold}}"):
        injector(path)
