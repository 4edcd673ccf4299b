"""A quantizer has calibration samples where it needs them, and none where it does not."""

from __future__ import annotations

import pytest

from simulator.errors import ProfileError
from simulator.profile.implementations import choose
from simulator.profile.load import load

DYNAMIC = "{backend: onnxruntime, weights: per_channel, activations: dynamic, reduce_range: false"
STATIC = (
    "{backend: onnxruntime, weights: per_channel, activations: uint8, symmetric: false, "
    "reduce_range: false, method: minmax"
)
SAMPLES = ", calibration: {samples: 4, through: deploy, source: data}"


@pytest.fixture
def problems(tmp_path):
    def found(quantizer):
        path = tmp_path / "p.yaml"
        path.write_text(
            "schema: 1\nname: p\nsummary: s\nextends: text_fp32\n"
            f"precision: {{storage: int8, compute: int8, quantizer: {quantizer}}}}}\n"
        )
        try:
            choose(load(str(path), ()))
        except ProfileError as error:
            return str(error).splitlines()
        return []

    return found


def test_a_dynamic_one_needs_none(problems):
    assert problems(DYNAMIC) == []
    (line,) = problems(DYNAMIC + SAMPLES)
    assert line.endswith(
        "precision.quantizer.calibration: onnxruntime needs none here; leave it out"
    )


def test_a_static_one_needs_some(problems):
    assert problems(STATIC + SAMPLES) == []
    (line,) = problems(STATIC)
    assert line.endswith("precision.quantizer.calibration: required by onnxruntime")
