"""`--deploy-runtime`: on screen, in the summary, and in a run that goes on."""

import json

import pytest

from simulator.results.read import read_manifest

pytestmark = pytest.mark.usefixtures("alone")
STACKS = ("--train", "opencv_fp32", "--deploy-runtime", "ort_int8")


@pytest.mark.parametrize("command", [[], ["explain"]])
def test_the_pixels_are_those_of_the_training_stack(command, simulate, tmp_path):
    code, out, _ = simulate(*command, *STACKS, "--json")

    summary = json.loads(out)
    assert code == 0
    named = [one if isinstance(one, str) else one["axis"] for one in summary["axes"]]
    assert named == ["precision"]
    assert read_manifest(tmp_path / "run")["request"]["arguments"]["pixels"] == "train"
    assert not [one for one in summary["warnings"] if one["kind"] == "unasked"]


def test_pixels_that_nobody_asked_for_are_named(simulate):
    _, out, _ = simulate("--train", "opencv_fp32", "--deploy", "ort_int8", "--json")

    (notice,) = [one for one in json.loads(out)["warnings"] if one["kind"] == "unasked"]
    assert notice["about"] == ["deploy"]


def test_one_of_the_two_is_needed(simulate):
    code, _, err = simulate(*STACKS, "--deploy", "ort_int8")
    assert (code, "not allowed with argument" in err) == (2, True)
    code, _, err = simulate("--train", "opencv_fp32")
    assert (code, "--deploy --deploy-runtime is required" in err) == (2, True)
