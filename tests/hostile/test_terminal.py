"""Names of strangers on the screen: no terminal obeys them, and none is taken for markup."""

import re
import sys

import pytest
import tiny

from simulator import cli

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J"
TURNED = "\u202e"
MARKUP = "[blink]b[/blink][link=http://evil]c[/link]"
NAME = f"a{TITLE}{CLEAR}{TURNED}{MARKUP}"
OURS = re.compile(r"\x1b\[([0-9;]*m|\?25[lh]|2K|1A)|\r")
"""Colors and the progress bar."""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def given(tmp_path):
    """A card with a hostile name, and data of which two samples have one too, one of them bad."""
    model = tiny.card(tmp_path / "model", name=NAME)
    data = tiny.data(tmp_path / "data")
    name = NAME.replace("/", "_")
    (data / "red" / f"{name}.jpg").write_bytes((data / "red" / "red0.jpg").read_bytes())
    (data / "red" / f"{name}2.jpg").write_bytes(b"no image")
    return ["--model", str(model), "--data", str(data), "--workers", "1"]


@pytest.mark.parametrize("color", [False, True])
def test_a_terminal_obeys_no_name(given, tmp_path, capsys, monkeypatch, color):
    monkeypatch.setenv("COLUMNS", "200")
    if color:
        monkeypatch.setenv("FORCE_COLOR", "1")
    run = str(tmp_path / "run")
    commands = [
        ["--train", "pillow_fp32", "--deploy", "opencv_fp32", *given, "--out", run,
         "--set", "deploy.resize.interpolation=nearest"],
        ["gate", "--list", run], ["resume", run], ["runs", str(tmp_path)],
        ["compare-runs", run, run], ["model", "check", given[1]],
        ["report", f"{run}{TITLE}{CLEAR}{MARKUP}"],
    ]  # fmt: skip
    seen = ""
    for command in commands:
        cli.main(command)
        out, err = capsys.readouterr()
        if color:
            out, err = OURS.sub("", out), OURS.sub("", err)
        assert not OBEYED.search(out + err), command
        seen += out + err

    # Of BEL the console itself leaves nothing.
    assert (
        "a\\x1b]0;owned\\x1b[2J\\u202e[blink]b[/blink][link=http://evil]c[/link], 7 images" in seen
    )
    assert "\\x1b[2J[blink]b[/blink][link=http:" in seen


def test_a_package_that_ends_the_program_gives_no_verdict(given, tmp_path, capsys, monkeypatch):
    """It would pass for a gate that passed."""
    from backends.pillow import pixels

    def leave(*_):
        sys.exit(0)

    monkeypatch.setattr(pixels.PillowDecoder, "_rgb", leave, raising=True)

    code = cli.main(
        ["--train", "pillow_fp32", "--deploy", "opencv_fp32", *given, "--out", str(tmp_path / "o")]
    )

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: .*test_terminal\.py:\d+: called sys\.exit\(0\) in the .*\n", err)
