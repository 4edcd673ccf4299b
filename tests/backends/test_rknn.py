"""RKNN: refused where it is not installed; ``make extras`` runs it in a Python of its own."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sums

from simulator import registry
from simulator.contract import Stage
from simulator.errors import MissingLibrary

ROOT = Path(__file__).parents[2]
BACKEND = registry.backend("rknn")
PLAIN = {"device": "simulator", "threads": 1, "target_platform": "rk3588"}


def test_it_is_refused_where_it_is_not_installed(tmp_path):
    """In our own Python there is no rknn-toolkit2: it wants another numpy."""
    path = sums.save(tmp_path / "m.onnx")

    for offer in BACKEND.of(Stage.RUNTIME)[:2]:
        with pytest.raises(MissingLibrary, match="'rknn' is not installed"):
            offer.make(path, PLAIN)


def test_it_says_why_it_has_a_python_of_its_own():
    pins = {pin.partition("==")[0] for pin in BACKEND.environment.requirements}

    assert "numpy 1.26" in BACKEND.environment.why
    assert pins >= {"numpy", "onnx", "protobuf", "torch"}
    assert all("==" in pin for pin in BACKEND.environment.requirements)
    assert BACKEND.environment.no_deps == ("rknn-toolkit2==2.5.0",)


def test_evidence():
    kinds = {(o.options["device"], str(o.evidence)) for o in BACKEND.of(Stage.RUNTIME)}

    assert kinds == {(("simulator",), "vendor_simulator"), (("npu",), "native")}


@pytest.fixture(scope="module")
def found(tmp_path_factory, users_cache):
    """What rknn_check.py saw."""
    folder = tmp_path_factory.mktemp("rknn")
    sums.save(folder / "m.onnx")
    sums.save_quantized(folder / "q.onnx")
    sums.save(folder / "free.onnx", batch="n")
    sums.save(folder / "new.onnx", opset=23)
    np.save(folder / "x.npy", sums.samples())
    done = subprocess.run(
        [registry.home("rknn").python, str(Path(__file__).with_name("rknn_check.py")), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return np.load(folder / "out.npz")


@pytest.mark.extras
def test_fp16_rounds_to_halves(found):
    """Halves are 2 apart from 2048 on (IEEE 754): an output of 2048.5 is stored as 2048."""
    assert (found["halves"] == 2048).all()


@pytest.mark.extras
@pytest.mark.parametrize(
    ("way", "bound"), [("fp16", 0.002), ("qdq", sums.INT8_BOUND), ("minmax", sums.INT8_BOUND)]
)
def test_answers_by_hand(found, way, bound):
    """FP16: an input below 1 is rounded by at most 2**-12, an output below 2 by 2**-11."""
    error = np.abs(found[way] - sums.answers(sums.samples())).max()

    assert 0 < error < bound


@pytest.mark.extras
@pytest.mark.parametrize(("ours", "theirs"), [("minmax", "normal"), ("entropy", "kl_divergence")])
def test_its_own_quantizer_is_what_the_vendor_shows(found, ours, theirs):
    assert (found[ours] == found[theirs]).all()
    assert (found[ours] != found["qdq"]).any()


@pytest.mark.extras
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("free", "input shape"),
        ("opset", "opset 23"),
        ("platform", "quantized for rk3588, but the runtime is rk3566"),
    ],
)
def test_refusals_are_one_line(found, what, why):
    assert why in str(found[what])
    assert "\n" not in str(found[what])
