"""Backends in the Pythons that ``simulate backends install`` made; run by ``make extras``."""

import pytest

import simulator
from simulator import registry

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("users_cache")]


def test_rknn_runs_the_built_in_model_through_its_own_numpy(tmp_path):
    """Twenty images through Rockchip's simulator, INT8, in numpy 1.26."""
    summary = simulator.compare("pillow_fp32", "rknn_int8", limit=20, out=tmp_path).summary

    assert summary["samples"] == 20
    assert summary["flips"]["count"] <= 3
    assert summary["controls"]["self"]["bit_equal"]
    assert registry.versions(registry.backend("rknn")) == {"rknn-toolkit2": "2.5.0"}


def test_tflite_runtime_gives_what_litert_gives(tmp_path):
    """The predecessor of LiteRT, 2.14 of 2023, on a file made today; another XNNPACK."""
    runtime = (
        "deploy.runtime={backend: %s, exporter: {backend: litert_torch}, device: cpu, threads: 1,"
        " kernels: %s, graph_optimization_level: null}"
    )
    flips = [
        simulator.compare(
            "pillow_fp32", "pillow_fp32", limit=20, out=tmp_path / f"{name}-{kernels}",
            overrides=[runtime % (name, kernels)],
        ).summary["flips"]["count"]
        for name in ("tflite_runtime", "litert")
        for kernels in ("xnnpack", "builtin")
    ]  # fmt: skip

    assert flips == [0, 0, 0, 0]
