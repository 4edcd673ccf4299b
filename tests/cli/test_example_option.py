"""``--example``: a built-in model with its samples, by name."""

from __future__ import annotations

import pytest

from simulator import cli, registry
from simulator.contract import Stage

PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32")


def test_an_example_of_another_name_is_refused_in_one_line(capsys):
    assert cli.main(["explain", "--example", "picture", *PAIR]) == cli.USER_ERROR
    error = capsys.readouterr().err
    assert error.startswith("error: --example: unknown value 'picture'") and "image" in error
    assert len(error.splitlines()) == 1


def test_an_example_is_a_model_so_another_model_is_refused(capsys):
    given = ["--example", "image", "--model", "card.yaml", *PAIR]
    assert cli.main(given) == cli.USER_ERROR
    assert "leave out --model, or --example" in capsys.readouterr().err


def test_help_names_every_example(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])

    shown = " ".join(capsys.readouterr().out.split()).partition("in place of --model: ")[2]
    named = shown.partition(" --timeout")[0].replace(" (the default)", "").split(", ")
    able = registry.serving(Stage.EXAMPLE_MODEL)
    made = {backend.of(Stage.EXAMPLE_MODEL)[0].make.example for backend in able}
    assert {*named} == made
