"""A run over many samples: killed twice and resumed it gives what one without a break gives."""

import itertools
import subprocess
import sys
import tarfile

import pyarrow.parquet as pq
import pytest
import tiny
import yaml

from simulator import cli
from simulator.files import hash_file
from simulator.pipeline.executor import Times

COUNT = 320


@pytest.fixture
def images(tmp_path):
    return tiny.data(tmp_path / "few", each=8)


def test_many_links_killed_twice_give_the_records_of_one_run(card, images, cache, tmp_path):
    """The tool of docs/scale.md, on a small scale: exit code 0 says that no record differs."""
    command = [sys.executable, "tools/large_run.py", "--images", str(images), "--model", str(card)]
    done = subprocess.run(
        [*command, "--count", str(COUNT), "--out", str(tmp_path / "out"), "--every", "0.02"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"| images | {COUNT} |" in done.stdout
    assert "| records that differ | none |" in done.stdout


def test_shards_give_the_answers_of_the_files_in_them(card, images, cache, tmp_path):
    """A run over a tar archive has the digests of outputs of one over the folder."""
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for place in sorted(images.glob("*/*")):
            file.add(place, f"{place.parent.name}-{place.name}")
    pair = ["--train", "pillow_bilinear_fp32", "--deploy", "opencv_fp32", "--model", str(card)]
    found = {}
    for name, data in (("files", images), ("tar", tmp_path / "a.tar")):
        out = tmp_path / name
        assert cli.main([*pair, "--quick", "--data", str(data), "--out", str(out)]) == 0
        found[name] = sorted(read(out)["digest"].to_pylist())
        manifest = yaml.safe_load((out / "manifest.json").read_text())
        assert manifest["data"]["root"] == str(data.resolve())
    assert found["files"] == found["tar"]
    sample, digest = next(iter(manifest["data"]["images"].items()))
    folder, _, name = sample.removeprefix("a.tar/").partition("-")
    assert digest == hash_file(images / folder / name)


def read(out):
    return pq.read_table(out / "records.parquet")


def test_times_are_the_mapping_they_were_made_of():
    for stages in itertools.permutations(("decode", "resize", "infer"), 2):
        known = {stage: 10**10 + at for at, stage in enumerate(stages)}
        assert dict(Times(known)) == known
        assert list(Times(known)) == list(stages)
        assert "color" not in Times(known)
        with pytest.raises(KeyError):
            Times(known)["color"]
