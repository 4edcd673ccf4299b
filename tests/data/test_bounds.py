"""Files, cards and servers that would fill the memory or never end: one line each."""

import gzip
import json
import time

import pytest
from datacards import card_of, refused
from web_server import gives, serving

from simulator import places
from simulator.data import remote
from simulator.data.file_names import _labels, _one_group
from simulator.data.folder import Files
from simulator.data.remote import Url
from simulator.data.shards import find_shards
from simulator.errors import DataError
from simulator.limits import ANSWER, CHOICES, NAMES


def test_a_label_that_python_would_look_for_without_end(tmp_path):
    """re needs 2^30 steps for it; RE2 one for each letter."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / ("a" * 60 + "!.jpg")).write_bytes(b"x")
    begin = time.monotonic()

    with pytest.raises(DataError, match="fits none of the names"):
        card_of(tmp_path, "classification", "names", files="files", label="(a+)+b").load(None)

    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    "pattern", ["(a){9999999999}", "(?=a)(b)", r"(a)\1", "(a", "a", "(a)(b)", "(" * 2000 + "a"]
)
def test_what_is_no_pattern_of_re2_is_one_line(pattern):
    with pytest.raises(ValueError, match=r"regular expression|one group") as error:
        _one_group(pattern)
    assert "\n" not in str(error.value)


def test_labels_are_the_groups():
    """Worked on paper; a label may be empty, and a name that does not fit has none."""
    names = ["3_jack_0.wav", "12_x.wav", "_y.wav", "3_jack_0.wav\n", "x3_jack.wav"]
    assert _labels(r"(\d*)_.*\.wav", names) == ["3", "12", "", None, None]


@pytest.mark.parametrize(
    "name", ["{0..9}" * 8, "{0..99999}{0..1}", "{5..4}", "{000000000..999999999}"]
)
def test_ranges_that_stand_for_too_many_names(tmp_path, name):
    with refused(f"a range of 1 to {NAMES:,} shards"):
        find_shards(tmp_path / f"{name}.tar", ".tar")


def test_a_question_of_many_choices(tmp_path):
    line = {"q": "Which?", "c": ["x"] * (CHOICES + 1), "gold": 0}
    (tmp_path / "q.jsonl").write_text(json.dumps(line))
    found = card_of(
        tmp_path, "multiple_choice", "jsonl", file="q.jsonl", strip="none",
        context="{q}", choices="c", gold="gold", delimiter=" ",
    )  # fmt: skip
    with pytest.raises(DataError, match=rf"q\.jsonl:1: c: 1,001 texts; at most {CHOICES:,}"):
        found.load(None, Files((".json",), "question"))


def endless(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.end_headers()
    piece = b'<a href="x.jpg">x</a>' + b" " * 2**20
    try:
        while True:
            handler.wfile.write(piece)
    except OSError:
        return True


def test_an_answer_is_not_unpacked(tmp_path):
    """3 MB that unpack to 3 GB."""
    with serving(tmp_path) as web:
        packed = gzip.compress(bytes(2**24)) * 190
        web.answers["bomb.jpg"] = gives(packed, Content_Encoding="gzip")
        found = places.read(Url(f"{web.url}/bomb.jpg"), 2**30)
    assert len(found) < 2**23
    assert found[:2] == b"\x1f\x8b"


def test_a_body_without_an_end(tmp_path):
    with serving(tmp_path) as web:
        web.answers["x.jpg"] = endless
        with pytest.raises(OSError, match="at most 1,000,000 are read"):
            places.read(Url(f"{web.url}/x.jpg"), 10**6)


def test_a_listing_without_an_end(tmp_path):
    with serving(tmp_path) as web:
        web.answers["/"] = endless
        with refused(f"more than {ANSWER:,} bytes"):
            remote.listed(f"{web.url}/all/")


def test_folders_without_an_end(tmp_path, monkeypatch):
    """There is a folder in each folder."""
    monkeypatch.setattr(remote, "FOLDERS", 50)
    with serving(tmp_path) as web:
        web.answers["/"] = gives(
            lambda path: f'<a href="{path.rstrip("/")}/a/">a</a>'.encode(), Content_Type="text/html"
        )
        with pytest.raises(DataError, match="more than 50 folders"):
            remote.listed(f"{web.url}/all/")
