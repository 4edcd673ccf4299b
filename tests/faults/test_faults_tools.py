"""What checks the figures of docs/measured/faults.md: plain forward hooks."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import campaigns
import pytest
import tiny

ROOT = Path(__file__).parents[2]


def tool(name, *arguments):
    given = [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)]
    done = subprocess.run(given, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    tiny.card(folder, campaigns.network())
    tiny.data(folder / "data", 2)
    return folder


@pytest.mark.prove
def test_hooks_give_the_answers_of_the_rows(place, tmp_path):
    """ONNX Runtime fuses the first convolution with its Relu; PyTorch does not."""
    for name in ("torch", "onnx2torch"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    profile = tmp_path / "pt.yaml"
    profile.write_text(
        "schema: 1\nname: pt\nsummary: ''\nextends: pillow_fp32\n"
        "runtime: {backend: pytorch, exporter: {backend: onnx2torch}, device: cpu, threads: 1, "
        "graph_optimization_level: null, mode: eager, memory_format: contiguous}\n"
    )
    campaign = campaigns.document(tmp_path, targets=["neurons"], faults=90, bits=[30, 29, 24, 8])
    profiles = ["pillow_fp32", str(profile)]
    campaigns.run(place, campaign, tmp_path / "run", profiles=profiles)

    said = tool("check_faults.py", tmp_path / "run").splitlines()

    assert len(said) == 2
    assert all("30 of 90 rows" in line and "different" not in line for line in said)
    assert "nothing seen here" not in "".join(said)
    assert "near" not in said[1]
