"""``simulate backends decode``: every file through every decoder; what kills one is counted."""

import json

import numpy as np
import tiny

from simulator.cli import GATE_FAILED, PASS, USER_ERROR, main


def test_a_file_that_kills_a_decoder_is_counted_and_the_rest_go_on(fragile_here, tmp_path, capsys):
    """Fragile gives gray of the width, so 220, 30, 40 are 208, 18 and 28 levels from its 12."""
    whole, unlucky = (
        tiny.encoded(np.full((9, width, 3), (220, 30, 40), np.uint8), "png") for width in (12, 13)
    )
    files = {"a.png": unlucky, "b": whole, "c.png": whole[:40], "d.txt": b"no image"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    command = ["backends", "decode", str(tmp_path), "fragile", "pillow"]

    assert main(command) == GATE_FAILED
    said = capsys.readouterr().out
    rows = {tuple(words[:2]): words[2:] for words in map(str.split, said.splitlines())}

    assert said.startswith("3 files: 1 refused before any decoder; 1 times a file ended a decoder")
    assert rows["png", "pillow"][:6] == ["2", "0", "0", "0", "0", "–"]
    mean = f"{(208 + 18 + 28) / 3:.3f},"
    assert rows["png", "fragile"][:8] == ["1", "0", "1", "0", "0", "1", mean, "208"]
    assert "died: fragile: a.png: the decoder of fragile was killed by SIGSEGV" in said


def test_what_cannot_be_asked_is_one_line(tmp_path, capsys):
    assert main(["backends", "decode", str(tmp_path)]) == USER_ERROR
    assert capsys.readouterr().err == f"error: {tmp_path}: no file of a known format\n"
    (tmp_path / "a.png").write_bytes(tiny.encoded(tiny.picture((1, 2, 3)), "png"))
    assert main(["backends", "decode", str(tmp_path), "turbojpeg"]) == PASS
    capsys.readouterr()
    assert main(["backends", "decode", str(tmp_path), "--memory", "-2"]) == USER_ERROR
    assert capsys.readouterr().err == "error: --seconds and --memory: more than 0 expected\n"


def test_json_says_what_was_not_tried(tmp_path, capsys):
    """The learned codec needs a network of the user's own."""
    (tmp_path / "a.png").write_bytes(tiny.encoded(tiny.picture((1, 2, 3)), "png"))
    assert main(["backends", "decode", str(tmp_path), "pillow", "learned_codec", "--json"]) == PASS
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["files"]] == ["a.png"]
    assert [*found["not_tried"]] == ["learned_codec"]
