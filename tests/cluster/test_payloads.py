"""Files on their way to another machine: it opens those bytes that the plan was made with."""

import pytest
import yaml

from simulator.cluster.payload import content, missing, pack, store, unpack
from simulator.data.folder import Item
from simulator.data.recording import load_recording
from simulator.errors import UserError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"as the plan has it")
    return path


def test_a_file_that_changed_meanwhile_is_not_sent(file):
    """Else it would be in the caches of others under the digest of the old one, for every run."""
    (unit,) = pack(file).units
    file.write_bytes(b"as it is now......")

    with pytest.raises(UserError, match=r"table.csv: has changed since the run began"):
        content(unit)


def test_a_damaged_copy_in_the_cache_is_sent_again(file, cache):
    payload = pack(file)
    (unit,) = payload.units
    sent = content(unit)
    file.unlink()
    assert missing(payload) == [unit.digest]
    store(payload, [unit.digest], [sent])
    copy = unpack(payload)
    assert copy.is_relative_to(cache) and not missing(payload)

    copy.write_bytes(b"half of it")
    assert missing(payload) == [unit.digest]
    store(payload, [unit.digest], [sent])

    assert unpack(payload).read_bytes() == b"as the plan has it"


def test_a_recording_takes_its_table_along(tmp_path, cache):
    """Of a sample whose bytes were sent, a hash is known, and no file is there."""
    manifest, table = tmp_path / "board.yaml", tmp_path / "board.csv"
    manifest.write_text(yaml.safe_dump({
        "schema": 1, "name": "board", "device": "a board", "kind": "predictions",
        "file": table.name, "match": "sha256", "model": "0" * 64,
    }))  # fmt: skip
    table.write_text("image,prediction,score,margin\nabc,3,0.5,0.25\n")
    recording, sample = load_recording(manifest), Item("a.jpg", tmp_path / "a.jpg", None, "abc")
    assert recording.prediction(sample) == (3, 0.5, 0.25)

    payload = pack(recording)
    sent = [content(unit) for unit in payload.units]
    for file in (manifest, table):
        file.unlink()
    store(payload, missing(payload), sent)

    assert unpack(payload).prediction(sample) == (3, 0.5, 0.25)
