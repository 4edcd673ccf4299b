"""Files that change while a run goes on: no other bytes are measured than those hashed."""

import hashlib
import json

import pyarrow.parquet as pq
import tiny

from simulator import compare
from simulator.command.options import Progress
from simulator.notices import Kind


class Overwriting(Progress):
    """Gives files other pixels once the manifest is written."""

    def __init__(self, *files):
        self.files = files

    def say(self, what):
        if what == "running":
            for at, file in enumerate(self.files):
                file.write_bytes(tiny.encoded(tiny.picture((9, 99, 200), seed=at + 50)))


def test_a_sample_that_changes_is_not_used(card, data, cache, tmp_path):
    files = sorted(data.rglob("*.jpg"))
    hashed = files[0].read_bytes()

    found = compare(
        "pillow_fp32", "pillow_fp32", overrides=["deploy.color.order=bgr"], model=card, data=data,
        out=tmp_path / "run", progress=Overwriting(*files[:2]),
    )  # fmt: skip

    summary = found.summary
    assert (summary.samples, summary.skipped) == (len(files) - 2, 2)
    words = f"2 of {len(files)} images changed during the run and are not used"
    assert summary.verdict.lost[0].startswith(words)
    assert [one.kind for one in summary.warnings].count(Kind.CHANGED) == 1
    records = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    why = {row["sample"]: row["skipped"] for row in records if row["skipped"]}
    assert set(why) == {str(file.relative_to(data)) for file in files[:2]}
    assert all(text.startswith("read: cannot be read: changed during") for text in why.values())
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())

    assert hashlib.sha256(hashed).hexdigest() in manifest["data"]["images"].values()


def test_one_that_could_not_be_read_at_the_start_is_not_used_later(card, data, cache, tmp_path):
    files = sorted(data.rglob("*.jpg"))
    files[0].unlink()
    files[0].symlink_to(tmp_path / "later.jpg")

    class Appearing(Progress):
        def say(self, what):
            if what == "running":
                (tmp_path / "later.jpg").write_bytes(tiny.encoded(tiny.picture((9, 99, 200))))

    found = compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "run",
        progress=Appearing(),
    )  # fmt: skip

    assert found.summary.samples == len(files) - 1
