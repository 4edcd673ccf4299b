"""A campaign's jobs are spread over threads or processes; rows and figures are the same."""

import json

import campaigns
import pytest

from simulator import cli
from simulator.cluster.connection import leave
from simulator.faults import inject

PAIR = {"profiles": [], "train": "pillow_fp32", "deploy": "ort_int8"}


def rows(folder):
    return (folder / "faults.parquet").read_bytes()


def figures(result):
    """The summary without what differs from run to run: times, and whose they are."""
    found = result.summary.model_dump(exclude={"seconds"})
    for stack in found["stacks"].values():
        stack.pop("inferences_per_second")
    return found


def test_threads_change_no_byte(place, tmp_path, monkeypatch):
    """Blocks of two samples, so that several threads are at the end of one and begin another."""
    campaign = campaigns.document(tmp_path, targets=["weights", "neurons"], faults=120)
    one = campaigns.run(place, campaign, tmp_path / "one", workers=1, **PAIR)
    monkeypatch.setattr(inject, "BLOCK", 2)
    many = campaigns.run(place, campaign, tmp_path / "many", workers=4, **PAIR)

    assert rows(many.folder) == rows(one.folder)
    assert figures(many) == figures(one)


@pytest.fixture(scope="module")
def cluster():
    """One for both runs."""
    yield
    leave()


@pytest.mark.prove
@pytest.mark.parametrize("lasts", ["transient", "permanent"])
def test_workers_of_a_cluster_change_no_byte(place, tmp_path, cluster, lasts):
    """Whole on a cluster; and begun in one process, killed, and continued on a cluster."""
    number = {"transient": 2500, "permanent": 280}[lasts]
    campaign = campaigns.document(tmp_path, targets=["neurons"], faults=number, lasts=lasts)
    here, there = (
        campaigns.run(place, campaign, tmp_path / name, executor=name, workers=2)
        for name in ("local", "ray")
    )
    campaigns.killed(campaign, place, tmp_path / "killed")
    assert cli.main(["resume", str(tmp_path / "killed"), "--executor", "ray"]) == 0

    assert rows(there.folder) == rows(tmp_path / "killed") == rows(here.folder)
    assert figures(there) == figures(here)
    manifest = json.loads((there.folder / "manifest.json").read_text())
    assert set(manifest["executor"]["nodes"]) == {"deploy"}
