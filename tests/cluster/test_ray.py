"""The executor ``ray`` as a command has it: its answers, and what it refuses.

What happens when something dies is proved in test_ray_workers.py and test_ray_boxes.py.
"""

import json
import os
import sys

import pyarrow.parquet as pq
import pytest
from drivers import PAIR, STACKS, records

from simulator import cli, compare, tail
from simulator.cluster import connection
from simulator.cluster.connection import leave
from simulator.contract.installing import install
from simulator.contract.library import Library


@pytest.fixture(scope="module", autouse=True)
def own():
    """No other module's cluster, and none for the next one."""
    leave()
    yield
    leave()


def test_a_pair_is_what_it_is_in_one_process(card, data, tmp_path):
    (data / "red" / "broken.jpg").write_bytes(b"no JPEG")
    here = compare(*PAIR, model=card, data=data, out=tmp_path / "here", under="jpeg:20")
    there = compare(
        *PAIR, model=card, data=data, out=tmp_path / "there", under="jpeg:20", executor="ray",
        workers=2,
    )  # fmt: skip

    assert records(there.folder).equals(records(here.folder))
    changing = {"seconds", "latency_ms", "workers"}
    one, two = ({k: v for k, v in r.summary.model_dump().items() if k not in changing}
                for r in (here, there))  # fmt: skip
    assert two == one
    for picture in sorted(here.folder.rglob("*.png")):
        copy = there.folder / picture.relative_to(here.folder)
        assert copy.read_bytes() == picture.read_bytes()
    manifest = json.loads((there.folder / "manifest.json").read_text())
    assert "elsewhere" in {row["work"] for row in manifest["time"]["spent"]}
    told = manifest["executor"]
    assert (told["name"], told["place"], set(told["nodes"])) == ("ray", "", {"train", "deploy"})
    assert told["nodes"]["train"][0]["host"] == os.uname().nodename


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("rai", "unknown executor 'rai'; did you mean 'ray'"),
        ("local:here:1", "local takes no address"),
        ("ray:", "takes an address behind the colon"),
        ("ray:nowhere", "an address HOST:PORT expected"),
        ("ray:localhost:²", "an address HOST:PORT expected"),
        ("ray:localhost:1", "nobody answers there"),
        ("ray:node..local:6379", "nobody answers there"),
    ],
)
def test_a_place_that_is_none(card, data, tmp_path, capsys, written, said):
    leave()
    given = [*STACKS, "--model", str(card), "--data", str(data)]

    assert cli.main([*given, "--out", str(tmp_path / "out"), "--executor", written]) == 2

    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_ray_is_not_installed(card, data, tmp_path, capsys, monkeypatch):
    leave()
    monkeypatch.setattr(connection, "RAY", Library("ray", distribution="ray", extra="ray"))
    monkeypatch.setitem(sys.modules, "ray", None)
    given = [*STACKS, "--model", str(card), "--data", str(data)]

    assert cli.main([*given, "--out", str(tmp_path / "out"), "--executor", "ray"]) == 2

    error = capsys.readouterr().err
    assert install("ray") in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_is_done_here_takes_no_other_executor(card, data, tmp_path, capsys):
    given = ["--model", str(card), "--data", str(data), "--out", str(tmp_path / "out")]

    told = cli.main(["latency", *STACKS, *given, "--executor", "ray"])

    error = capsys.readouterr().err
    assert told == 2 and error.count("\n") == 1
    assert error.startswith("error: latency: ")
    assert "in its own process, so --executor ray would change nothing" in error
    assert not (tmp_path / "out").exists()


def test_the_quality_at_the_tail_of_two_servers_is_that_of_both_in_turn(card, data, tmp_path):
    run = tail(
        ["pillow_fp32"], model=card, data=data, out=tmp_path / "run", executor="ray", workers=2,
        rounds=3, deadlines_ms=[600_000],
    )  # fmt: skip
    rows = pq.read_table(run.folder / "latencies.parquet").to_pylist()
    took = {(row["side"], row["round"], row["sample"]): row["total_ns"] for row in rows}
    names = list(dict.fromkeys(row["sample"] for row in rows))

    assert list(run.summary.stacks) == list(run.summary.tail) == ["deploy", "deploy@1", "deploy@2"]
    assert len(took) == 3 * 3 * len(names)
    for number in range(3):
        for at, name in enumerate(names):
            server = f"deploy@{1 + (number + at) % 2}"
            assert took["deploy", number, name] == took[server, number, name]
    assert any(took["deploy@1", 0, name] != took["deploy@2", 0, name] for name in names)
    assert run.summary.tail["deploy"].thresholds["600000ms"].late == 0
