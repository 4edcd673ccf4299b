"""Every built-in runtime profile that can run here, on the built-in model and images."""

import pytest

import simulator

pytestmark = pytest.mark.prove

EFFECTIVE = {
    "pytorch_fp32": "fp32",
    "openvino_int8": "int8",
    "litert_fp32": "fp32",
    "tensorflow_fp32": "fp32",
    "litert_int8": "int8",
    "ncnn_fp32": "fp32",
    "mnn_fp32": "fp32",
    "iree_int8": "fp32",
    "qnn_int8": None,
}
"""In force: IREE computes a QDQ file in FP32 and says so, the QNN emulator does not tell."""
IMAGES = {"iree_int8": 20}
"""Else eight. IREE compiles for long, and once for README's twenty and these."""


@pytest.mark.parametrize("name", EFFECTIVE)
def test_it_answers_as_the_training_stack_does(tmp_path, name):
    """At most one prediction may flip: INT8 is calibrated on those very images."""
    limit = IMAGES.get(name, 8)

    summary = simulator.compare(
        "pillow_fp32", name, limit=limit, quick=True, out=tmp_path / "run", report=False
    ).summary

    assert summary["samples"] == limit
    assert summary["flips"]["count"] <= 1
    assert summary["deploy"]["effective"]["compute"] == EFFECTIVE[name]
    assert summary["controls"]["self"]["bit_equal"]
    asked = "int8" if "int8" in name else "fp32"
    told = [w for w in summary["warnings"] if w.is_strict and "compute" in w.text]
    assert bool(told) == (EFFECTIVE[name] not in (None, asked)), summary["warnings"]
