"""A network that never ends: the command does, in one line, and its run can be continued."""

import subprocess
import sys

import numpy as np
import pytest
import tiny
from onnx import TensorProto, helper

from simulator.cli import main

PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32", "--quick")


def looping(of):
    """The tiny classifier, and behind it 2^62 rounds where an image is more red than blue.

    Args:
        of: how many more rounds an image has than none; 0 never loops.
    """
    scalar = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["state", "half"], ["sum"]),
            helper.make_node("Mul", ["sum", "half"], ["next"]),
        ],
        "body",
        [scalar("i", TensorProto.INT64, []), scalar("go", TensorProto.BOOL, []),
         scalar("state", TensorProto.FLOAT, [1, 3])],
        [scalar("on", TensorProto.BOOL, []), scalar("next", TensorProto.FLOAT, [1, 3])],
    )  # fmt: skip
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gather", ["flat", "red"], ["r"], axis=1),
        helper.make_node("Gather", ["flat", "blue"], ["b"], axis=1),
        helper.make_node("Greater", ["r", "b"], ["more"]),
        helper.make_node("Cast", ["more"], ["number"], to=TensorProto.INT64),
        helper.make_node("Mul", ["number", "rounds"], ["trips"]),
        helper.make_node("Squeeze", ["trips"], ["trip"]),
        helper.make_node("Loop", ["trip", "", "flat"], ["y"], body=body),
    ]
    constants = {
        "red": np.array([0]), "blue": np.array([2]), "rounds": np.array([[of]]),
        "half": np.float32(0.5),
    }  # fmt: skip
    return tiny.model(nodes, constants=constants)


def simulate(*arguments):
    """In a process of its own: the limit ends it."""
    words = [sys.executable, "-m", "simulator.cli", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


def test_an_inference_without_an_end(data, tmp_path, cache):
    card, run = tiny.card(tmp_path / "model", looping(2**62)), tmp_path / "run"
    inputs = ("--model", card, "--data", data, "--out", run)

    ran = simulate(*PAIR, *inputs, "--workers", 1, "--timeout", 3)

    assert ran.returncode == 2
    (line,) = [one for one in ran.stderr.splitlines() if one.startswith("error")]
    assert line.startswith("error: red/red0.jpg: infer of ")
    assert "took more than 3 s" in line
    assert line.endswith(f"to continue: simulate resume {run} --timeout N")
    again = simulate("resume", run, "--workers", 1, "--timeout", 3)
    assert again.returncode == 2
    assert "red/red0.jpg: infer of" in again.stderr


def test_one_that_is_only_slow_ends(data, tmp_path, cache):
    card = tiny.card(tmp_path / "model", looping(10_000))
    inputs = ("--model", card, "--data", data, "--out", tmp_path / "run")

    assert simulate(*PAIR, *inputs, "--timeout", 0).returncode == 0


@pytest.mark.parametrize("limit", ["-1", "nan", "inf", "soon"])
def test_what_is_no_limit(limit, capsys):
    with pytest.raises(SystemExit) as left:
        main(["--timeout", limit])

    assert left.value.code == 2
    assert "--timeout" in capsys.readouterr().err.splitlines()[-1]
