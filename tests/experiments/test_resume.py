"""Interrupted runs: what was finished is kept, and the rest comes out as if nothing happened."""

import json
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny
import yaml
from made_results import start, step
from stopping import StopsAt
from warm import ended

from simulator import cli, sweep
from simulator.errors import RunError
from simulator.profile.lookup import shipped_folder
from simulator.results import record_table, store
from simulator.results.manifest import RunManifest


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a card and 90 images, more than two chunks of records."""
    folder = tmp_path_factory.mktemp("place")
    tiny.card(folder / "model")
    tiny.data(folder / "many", each=30)
    return folder


@pytest.fixture(scope="module")
def card(place):
    return place / "model" / "card.yaml"


@pytest.fixture(scope="module")
def many(place):
    return place / "many"


@pytest.fixture(scope="module")
def whole(place, card, many):
    """The folder of a run that nothing interrupted."""
    return run(card, many, place / "whole", workers=2)[0].folder


def run(card, many, out, **options):
    return sweep("robustmq-s", models=[card], data=many, out=out, **options)


@pytest.mark.parametrize("stop", [1, 32, 70])
def test_resumed_records_are_byte_equal(card, many, whole, cache, tmp_path, stop):
    with pytest.raises(KeyboardInterrupt):
        run(card, many, tmp_path / "stopped", progress=StopsAt(stop))
    folder = tmp_path / "stopped" / "colors"
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"
    assert not (folder / "records.parquet").exists()

    assert cli.main(["resume", str(folder)]) == 0

    assert (folder / "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()
    assert json.loads((folder / "manifest.json").read_text())["status"] == "complete"
    assert not (folder / "parts").exists()


def test_a_complete_run_is_left_alone_and_json_is_json(whole, capsys):
    folder = whole
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    capsys.readouterr()

    assert cli.main(["resume", str(folder)]) == cli.main(["resume", str(folder), "--json"]) == 0

    said = capsys.readouterr()
    assert json.loads(said.out) == json.loads((folder / "summary.json").read_text())
    assert said.err.count("nothing to resume") == 2
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("chunk", "options"), [
    (1, {"workers": 1, "memory": 1}), (7, {"workers": 3, "memory": 1}), (1000, {}),
])  # fmt: skip
def test_records_do_not_depend_on_workers_memory_or_the_chunk(
    card, many, whole, tmp_path, monkeypatch, chunk, options
):
    monkeypatch.setattr(record_table, "CHUNK", chunk)
    monkeypatch.setattr(record_table, "PAUSE", 0)
    other = run(card, many, tmp_path / "b", **options)[0].folder

    assert (whole / "records.parquet").read_bytes() == (other / "records.parquet").read_bytes()


def test_answers_do_not_depend_on_the_order_of_the_stacks(card, many, whole, cache, tmp_path):
    """The same suite with its columns and options turned round."""
    spec = yaml.safe_load((shipped_folder("suites") / "robustmq-s.yaml").read_text())
    columns = reversed(spec["columns"].items())
    spec["columns"] = {name: dict(reversed(of.items())) for name, of in columns}
    turned = tmp_path / "turned.yaml"
    turned.write_text(yaml.safe_dump(spec, sort_keys=False))

    def digests(folder):
        table = pq.read_table(folder / "records.parquet").to_pylist()
        return {(row["sample"], row["side"]): row["digest"] for row in table}

    (back,) = sweep(str(turned), models=[card], data=many, out=tmp_path / "b")

    assert digests(whole) == digests(back.folder)


def test_kill_9_loses_nothing_that_was_finished(card, many, whole, cache, tmp_path):
    folder = tmp_path / "killed" / "colors"
    arguments = ["sweep", "--suite", "robustmq-s", "--model", card, "--data", many]

    done = ended(signal.SIGKILL, folder, "parts/*.parquet", 1, *arguments, "--out", folder.parent)

    assert done.returncode == -signal.SIGKILL, done.stderr
    assert json.loads((folder / "manifest.json").read_text())["status"] == "running"

    assert cli.main(["resume", str(folder)]) == 0

    assert (folder / "records.parquet").read_bytes() == (whole / "records.parquet").read_bytes()


def other_image(many):
    (many / "red" / "red0.jpg").write_bytes(tiny.encoded(tiny.picture((0, 0, 0))))


def other_labels(many):
    for old, new in (("red", "was_red"), ("green", "red"), ("was_red", "green")):
        (many / old).rename(many / new)


@pytest.mark.parametrize("change", [other_image, other_labels])
def test_a_run_of_other_images_or_labels_is_not_resumed(card, tmp_path, change):
    many = tiny.data(tmp_path / "many", each=30)
    with pytest.raises(KeyboardInterrupt):
        run(card, many, tmp_path / "out", progress=StopsAt(40))
    change(many)

    with pytest.raises(RunError, match="data changed since it was started"):
        run(card, many, tmp_path / "out" / "colors", resume=True)


FULL = """
import resource, signal, sys
import pyarrow as pa
from pathlib import Path
from simulator.errors import RunError
from simulator.results import record_table
from simulator.results.manifest import RunManifest
from simulator.results.store import RunWriter
record_table.PAUSE = 0
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
columns = [pa.field("prediction", pa.int32())]
manifest = RunManifest.model_validate_json(sys.argv[2])
writer = RunWriter(Path(sys.argv[1]), manifest, columns, overwrite=False)
row = {"side": "train", "trial": 0, "prediction": 1}
for i in range(32):
    writer.records.add([row | {"sample": str(i)}])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for i in range(32, 64):
        writer.records.add([row | {"sample": str(i)}])
except RunError as error:
    print(error)
"""


def test_a_full_disk_stops_with_one_line_and_keeps_what_was_finished(tmp_path):
    """The kernel refuses to write past 1000 bytes, as a full disk refuses any."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "run"), start().model_dump_json(by_alias=True)],
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.stderr == ""
    assert "32 samples are safe: make room, then: simulate resume" in done.stdout
    run = json.loads((tmp_path / "run" / "manifest.json").read_text())["run"]
    parts = [p.name for p in sorted(tmp_path.glob("run/parts/*.parquet"))]
    assert parts == [f"{run}-000000000.parquet"]


def test_records_of_a_run_that_is_being_replaced_are_not_taken_for_those_of_the_new_one(
    tmp_path, monkeypatch
):
    """Killed as soon as the new manifest is written, it goes on with nothing."""
    folder, columns = tmp_path / "run", [pa.field("prediction", pa.int32())]
    row = {"sample": "a", "side": "train", "trial": 0, "prediction": 1}
    with store.RunWriter(folder, start(), columns, overwrite=False) as old:
        old.records.add([row])
        old.finish(step(top1=1.0), {})

    def killed(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "clear", killed)
        with pytest.raises(KeyboardInterrupt):
            store.RunWriter(folder, start(seed=1), columns, overwrite=True)

    now = json.loads((folder / "manifest.json").read_text())
    assert now["status"] == "running" and now["seed"] == 1
    again = RunManifest.model_validate(now)
    with store.RunWriter(folder, again, columns, overwrite=False, resume=True) as new:
        assert [*new.records.earlier()] == []
