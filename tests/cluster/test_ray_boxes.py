"""Two machines, as Ray sees them: each stack runs on the one that has what it needs."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from simulator.experiments.compare import compare

PAIR = ("pillow_fp32", "opencv_fp32")
BOXES = ["train.runtime.resources={train_box: 1}", "deploy.runtime.resources={deploy_box: 1}"]


@dataclass
class Boxes:
    """A cluster: its address, and the number of each of its nodes."""

    address: str
    train: str
    deploy: str


def surroundings():
    """What a throw-away cluster and those who join it share."""
    return {
        **os.environ,
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


@pytest.fixture(scope="module")
def boxes():
    """A cluster of two nodes."""
    script = Path(__file__).with_name("two_boxes.py")
    with subprocess.Popen(
        [sys.executable, script], env=surroundings(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as cluster:  # fmt: skip
        words = next(line.split() for line in cluster.stdout if len(line.split()) == 3)
        yield Boxes(*words)
        cluster.stdin.close()


def simulate(boxes, card, data, out, *overrides):
    """Run the pair on the cluster, in a process of its own."""
    command = [
        sys.executable, "-m", "simulator.cli", "--train", PAIR[0], "--deploy", PAIR[1],
        "--model", str(card), "--data", str(data), "--out", str(out),
        "--executor", f"ray:{boxes.address}",
        *(word for one in overrides for word in ("--set", one)),
    ]  # fmt: skip
    return subprocess.run(command, env=surroundings(), check=False, capture_output=True, text=True)


def records(folder):
    return pq.read_table(Path(folder) / "records.parquet").drop_columns(["ns"])


def test_each_stack_runs_on_its_own_box(boxes, card, data, tmp_path):
    (data / "red" / "broken.jpg").write_bytes(b"no JPEG")
    here = compare(*PAIR, model=card, data=data, out=tmp_path / "here", overrides=BOXES)

    told = simulate(boxes, card, data, tmp_path / "there", *BOXES)

    assert told.returncode == 0, told.stderr
    assert records(tmp_path / "there").equals(records(here.folder))
    manifest = json.loads((tmp_path / "there" / "manifest.json").read_text())
    nodes = manifest["executor"]["nodes"]
    assert [one["node"] for one in nodes["train"]] == [boxes.train]
    assert [one["node"] for one in nodes["deploy"]] == [boxes.deploy]
    one, two = (json.loads((folder / "summary.json").read_text())
                for folder in (here.folder, tmp_path / "there"))  # fmt: skip
    assert two["alone"] == one["alone"] and two["axes"] == one["axes"]
    assert [notice["kind"] for notice in one["warnings"]].count("elsewhere") == 2
    assert "elsewhere" not in [notice["kind"] for notice in two["warnings"]]
    for picture in sorted(here.folder.rglob("*.png")):
        copy = tmp_path / "there" / picture.relative_to(here.folder)
        assert copy.read_bytes() == picture.read_bytes()


def test_a_resource_that_no_node_has_is_refused(boxes, card, data, tmp_path):
    told = simulate(boxes, card, data, tmp_path / "out", "deploy.runtime.resources={ascend: 2}")

    assert told.returncode == 2
    (line,) = told.stderr.splitlines()
    assert "needs {ascend: 2}, and no node of the cluster has that" in line
    assert "train_box 1" in line and "deploy_box 1" in line
