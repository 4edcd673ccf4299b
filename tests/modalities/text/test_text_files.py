from __future__ import annotations

import json
import os

import pytest
from refusals import refused

from simulator.errors import SampleError
from simulator.modalities.text.read import LARGEST, read


def written(folder, data, name="a.json"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def refusal(path):
    (line,) = refused(read, path, by=SampleError)
    return line


def test_a_plain_text_is_one_request_to_the_letter(tmp_path):
    found = read(written(tmp_path, b"  Two\r\nlines\n", "a.txt"))

    assert [one.context for one in found.requests] == ["  Two\r\nlines\n"]
    assert found.requests[0].continuation == ""
    assert found.data == b"  Two\r\nlines\n"


def test_requests_have_their_fields(tmp_path):
    requests = [
        {"context": "a", "continuation": " b", "length": 1},
        {"context": ""},
        {"ids": [3, 1]},
    ]

    one, two, three = read(written(tmp_path, {"requests": requests})).requests

    assert (one.context, one.continuation, one.length, one.ids) == ("a", " b", 1, None)
    assert (two.context, two.continuation, two.length) == ("", "", None)
    assert three.ids == (3, 1)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        ("caf\u00e9".encode("latin-1"), "not UTF-8"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "requests"),
        ({"request": []}, "requests"),
        ({"requests": [], "more": 1}, "no other key"),
        ({"requests": []}, "no requests"),
        ({"requests": ["text"]}, "request 0: an object"),
        ({"requests": [{"context": "a"}, {}]}, "request 1: a context or ids"),
        ({"requests": [{"context": 3}]}, "must be texts"),
        ({"requests": [{"context": "a", "continuation": None}]}, "must be texts"),
        ({"requests": [{"context": "a", "contination": "b"}]}, "unknown key 'contination'"),
        ({"requests": [{"context": "a", "length": -1}]}, "length"),
        ({"requests": [{"context": "a", "length": True}]}, "length"),
        ({"requests": [{"context": "a", "length": 1.5}]}, "length"),
        ({"requests": [{"ids": []}]}, "ids"),
        ({"requests": [{"ids": [-1]}]}, "ids"),
        ({"requests": [{"ids": [2**31]}]}, "ids"),
        ({"requests": [{"ids": [True]}]}, "ids"),
        ({"requests": [{"ids": "12"}]}, "ids"),
        (b'{"requests": [{"context": "\\ud800"}]}', "half a character"),
        (b'{"requests": [{"ids": [' + b"9" * 5000 + b"]}]}", "not JSON"),
    ],
)
def test_what_is_no_sample_is_one_line(tmp_path, data, told):
    assert told in refusal(written(tmp_path, data))


def test_what_cannot_be_read_is_one_line(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)

    assert "cannot be read" in refusal(tmp_path / "missing.txt")
    assert "cannot be read" in refusal(tmp_path / "pipe.txt")
    assert "cannot be read" in refusal(large)
