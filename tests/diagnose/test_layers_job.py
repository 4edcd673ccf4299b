"""``simulate diagnose`` says at which layer two networks part, and why."""

import numpy as np
import pytest
import tiny
from onnx import helper

from simulator import diagnose


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A weight of 1000 meets only zeros; with one scale for all, its layer's others become 0."""
    home = tmp_path_factory.mktemp("layers")
    eye = np.eye(3, dtype=np.float32)[..., None, None]
    first = np.concatenate([eye, eye[:1] * 0])
    wide = np.concatenate([eye, np.full((3, 1, 1, 1), 1000, np.float32)], axis=1)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Conv", ["a", "u"], ["b"], name="wide"),
        helper.make_node("Conv", ["b", "v"], ["c"], name="third"),
        helper.make_node("GlobalAveragePool", ["c"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["y"], name="flat"),
    ]
    card = tiny.card(home / "m", tiny.model(nodes, constants={"w": first, "u": wide, "v": eye}))
    return diagnose(
        "pillow_fp32", "ort_int8", model=card, data=tiny.data(home / "data"), out=home / "run",
        overrides=["deploy.precision.quantizer.weights=per_tensor"],
    )  # fmt: skip


def test_the_layer_and_the_reason_are_in_the_summary(found):
    layers = found.summary.layers

    assert (layers.train, layers.deploy, layers.samples) == ("onnxruntime", "onnxruntime", 4)
    assert layers.first == "wide"
    names = {one.name: one for one in found.summary.findings}
    finding = names["the weights are rounded too coarsely"]
    assert finding.evidence[0].startswith("Conv 'wide': its weights are 0.1 % off")
    assert finding.code.endswith("when the file is made (precision.quantizer.keep)")


def test_what_the_profiles_declare_is_changed_and_not_twice(found):
    assert found.summary.repair.state in ("equal", "rounding")
    assert not any(key.startswith("precision.quantizer.") for key in found.summary.repair.change)
