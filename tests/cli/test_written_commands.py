"""A command line that a page or a next step prints is read as the options that it was made of."""

import argparse

import pytest

from simulator.command.experiment import EXPERIMENTS
from simulator.command.parsing import add_options, values_of
from simulator.report.command import words


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("faults", {"campaign": "neurons-transient", "profiles": ["a", "b"], "until": 0.005}),
        ("latency", {"profiles": ["a"], "batch": [1, 4], "qps": 12.5, "scenario": "Offline"}),
        ("tail", {"profiles": ["a"], "rounds": 7, "deadlines_ms": [12.0, 20.0]}),
        ("run", {"train": "a", "deploy": "b", "pixels": "train", "quick": True, "limit": 4}),
        ("sweep", {"suite": "sysnoise", "until_decided": "worst-drop", "overrides": ["a=1"]}),
        ("audit", {"document": "audit.yaml", "under": "fog:3", "trial": 2}),
        ("diagnose", {"train": "eval.py:pre", "deploy": "board.yaml", "limit": 2}),
        ("identify", {"recording": "r.yaml", "space": "space.yaml", "minutes": 1.5}),
    ],
)
def test_what_is_written_is_read(command, options):
    shape = EXPERIMENTS[command].Options
    parser = argparse.ArgumentParser()
    add_options(parser, shape)
    flags = [word for line in words(command, options) for word in line]
    own = flags[1:] if command == "run" else flags[2:]

    read = values_of(parser.parse_args(own), shape)

    assert {name: read[name] for name in options if name in read} == {
        name: value for name, value in options.items() if name in read
    }
    if "pixels" in options:
        assert (read["deploy"], read["pixels"]) == ("b", "train")
