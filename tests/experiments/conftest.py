"""What the tests of the timed jobs share: quiet, and a command line on the tiny model."""

import gc

import pytest

from simulator import cli


@pytest.fixture
def alone(cache, tmp_path, monkeypatch):
    """Nothing lands in the user's cache or in runs/; collections see nothing that is old."""
    monkeypatch.chdir(tmp_path)
    gc.freeze()


@pytest.fixture
def simulate(card, data, tmp_path, capsys):
    """Run a command on the tiny model; returns (exit code, standard output and error)."""

    def run(*arguments, images=data, model=card, out="run"):
        given = [*arguments, "--model", model, "--data", images, "--out", tmp_path / out]
        try:
            code = cli.main(list(map(str, given)))
        except SystemExit as left:  # argparse
            code = left.code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return run


@pytest.fixture
def simulate_tail(simulate):
    """Run ``simulate tail`` likewise."""

    def run(*arguments, one=("--profile", "pillow_fp32"), **inputs):
        return simulate("tail", *one, *arguments, **inputs)

    return run
