"""``simulate sensitivity``: the layer that INT8 breaks is found, kept and confirmed."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny
from onnx import helper
from scipy.stats import binomtest

from simulator import cli
from simulator.errors import UserError
from simulator.experiments.common import chosen
from simulator.experiments.sensitivity import Settings, paired, refuse_fitted, sensitivity
from simulator.profile.load import load

PER_TENSOR = """\
schema: 1
name: per_tensor
summary: one scale for all weights of a layer
extends: ort_int8
precision: {quantizer: {weights: per_tensor}}
runtime: {graph_optimization_level: LEVEL}
"""


def fragile():
    """Four 1x1 convolutions; the weights of one hold a 1000 that meets only zeros.

    With one scale for its weights, 1000 / 127 a step, its other weights of 1 become 0. The first
    convolution makes the channel of zeros: Relu(-(r + g + b) - 10).
    """
    first = np.zeros((4, 3, 1, 1), np.float32)
    first[:3, :, 0, 0] = np.eye(3)
    first[3] = -1
    wide = np.zeros((3, 4, 1, 1), np.float32)
    wide[:, :3, 0, 0] = np.eye(3)
    wide[:, 3] = 1000
    eye = np.eye(3, dtype=np.float32)[..., None, None]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="fragile"),
        helper.make_node("Conv", ["c", "w3"], ["d"], name="third"),
        helper.make_node("Conv", ["d", "w3"], ["e"], name="fourth"),
        helper.make_node("GlobalAveragePool", ["e"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["y"], name="flat"),
    ]
    constants = {"w1": first, "b1": np.float32([0, 0, 0, -10]), "w2": wide, "w3": eye}
    return tiny.model(nodes, constants=constants)


@pytest.fixture
def given(tmp_path, cache):
    profile = tmp_path / "per_tensor.yaml"
    profile.write_text(PER_TENSOR.replace("LEVEL", "disable_all"))
    model, data = tiny.card(tmp_path / "m", fragile()), tiny.data(tmp_path / "data", 12)
    return str(profile), model, data


@pytest.fixture
def found(given, tmp_path):
    profile, model, data = given
    settings = Settings(profile, "flip_rate < 2%", top=3)
    return sensitivity(model, data, tmp_path / "out", settings, workers=1)


def test_the_fragile_layer_is_kept_and_confirmed(found):
    assert found["keep"] == ["fragile"]
    assert found["layers"][0]["name"] == "fragile"
    assert found["confirmed"]["with"]["rate"] == 0
    assert found["confirmed"]["without"]["rate"] > 0.3
    assert found["confirmed"]["holds"] is True


def test_few_images_confirm_nothing(found, given, tmp_path, capsys):
    """0 of 8 images may be 37 % of all: by SciPy, 0 of 183 is the first interval below 2 %."""
    images = found["confirmed"]["with"]["images"]
    high = binomtest(0, images).proportion_ci().high
    assert high > 0.02 and found["confirmed"]["sure"] is False
    more = found["confirmed"]["more"]
    ends = [binomtest(0, images + more - less).proportion_ci().high for less in (0, 1)]
    assert ends[0] < 0.02 <= ends[1]

    profile, model, data = given
    words = ["--model", str(model), "--data", str(data), "--profile", profile, "--top", "3"]
    goal = ["--goal", "flip_rate < 2%", "--workers", "1"]
    assert cli.main(["sensitivity", *words, *goal, "--out", str(tmp_path / "out")]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert f"UNDECIDED, 0 of {images} images that were not searched flip, but" in first
    assert f"{100 * high:.1f} % cannot be excluded; {more} more would decide it" in first


def test_onnxruntime_rounds_a_single_kept_layer_again(given, tmp_path):
    """
    Above disable_all its WeightBiasQuantization (1.31) rounds float weights between two rounded
    tensors, with one scale: the fragile layer alone wins nothing, with its neighbour it does.
    """
    _profile, model, data = given
    optimized = tmp_path / "optimized.yaml"
    optimized.write_text(PER_TENSOR.replace("LEVEL", "all"))
    settings = Settings(str(optimized), "flip_rate < 2%", top=1)
    found = sensitivity(model, data, tmp_path / "all", settings, workers=1)

    assert (found["layers"][0]["name"], found["layers"][0]["won"]) == ("fragile", 0)
    assert found["keep"] == ["fragile", "third"]
    assert found["confirmed"]["with"]["rate"] == 0


def test_images_are_divided(found, tmp_path):
    """36 images: 12 calibrate, 12 are searched, 12 confirm; the profile names the first."""
    assert found["images"] == {"calibrate": 12, "search": 12, "confirm": 12}
    profile, _ = chosen(str(tmp_path / "out" / "profile.yaml"), [])
    quantizer = profile.spec.precision.quantizer

    assert quantizer.keep.nodes == ["fragile"]
    assert quantizer.weights == "per_tensor"
    assert quantizer.calibration.source == str(tmp_path / "out" / "calibration")
    assert len(list((tmp_path / "out" / "calibration").iterdir())) == 12


def test_a_second_call_runs_nothing_again(found, given, tmp_path, monkeypatch):
    """What was measured is read back: running would raise."""
    profile, model, data = given
    monkeypatch.setattr("simulator.experiments.session.Session.run", None)
    settings = Settings(profile, "flip_rate < 2%", top=3)

    assert sensitivity(model, data, tmp_path / "out", settings, workers=1) == found


def test_another_search_does_not_take_the_folder(found, given, tmp_path):
    profile, model, data = given
    with pytest.raises(UserError, match="holds another search"):
        sensitivity(model, data, tmp_path / "out", Settings(profile, "flip_rate < 1%"))


def test_an_edited_profile_is_another_search(found, given, tmp_path):
    """The same name, other options: what was measured with the old ones is not read back."""
    profile, model, data = given
    path = Path(profile)
    path.write_text(path.read_text().replace("disable_all", "basic"))
    with pytest.raises(UserError, match="holds another search"):
        sensitivity(model, data, tmp_path / "out", Settings(profile, "flip_rate < 2%", top=3))


def test_an_edited_calibration_folder_is_another_search(given, tmp_path):
    profile, model, data = given
    folder = tiny.data(tmp_path / "calibrate", 1)
    path = Path(profile)
    source = f"weights: per_tensor, calibration: {{samples: 9, through: deploy, source: {folder}}}"
    path.write_text(path.read_text().replace("weights: per_tensor", source))
    settings = Settings(profile, "flip_rate < 99%", top=1)
    first = sensitivity(model, data, tmp_path / "out", settings, workers=1)
    assert sensitivity(model, data, tmp_path / "out", settings, workers=1) == first
    (folder / "red" / "more.jpg").write_bytes(next(data.rglob("*.jpg")).read_bytes())
    with pytest.raises(UserError, match="holds another search"):
        sensitivity(model, data, tmp_path / "out", settings, workers=1)


def test_a_sample_that_cannot_be_read_is_skipped_and_said(given, tmp_path, capsys):
    profile, model, data = given
    for number in range(3):
        (data / "red" / f"broken{number}.jpg").write_bytes(b"no image")
    words = ["--model", str(model), "--data", str(data), "--out", str(tmp_path / "out")]
    cli.main(["sensitivity", "--profile", profile, "--goal", "flip_rate < 2%", *words])

    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    ran = summary["searched"]["images"] + summary["confirmed"]["with"]["images"]
    assert ran + summary["skipped"] == summary["images"]["search"] + summary["images"]["confirm"]
    assert 0 < summary["skipped"] <= 3
    assert f"skipped: {summary['skipped']} images" in capsys.readouterr().out


def test_flips_are_paired_by_sample():
    """By hand: of b and c, which both lists have, the list wins b; a and d have no partner."""
    bare = {"a": True, "b": True, "c": False}
    kept = {"d": True, "c": False, "b": False}

    assert paired(bare, kept) == {"flips": 0, "won": 1, "p": 0.5}


def test_nothing_need_be_kept(given, tmp_path, capsys):
    """A goal that everything reaches: no profile is written, the exit code is 0."""
    _, model, data = given
    words = ["--model", str(model), "--data", str(data), "--out", str(tmp_path / "easy")]
    code = cli.main(["sensitivity", "--profile", "ort_int8", "--goal", "flip_rate < 99%", *words])

    assert code == cli.PASS
    assert "no layer need be kept for flip_rate < 99%: confirmed" in capsys.readouterr().out
    summary = json.loads((tmp_path / "easy" / "summary.json").read_text())
    assert (summary["keep"], (tmp_path / "easy" / "profile.yaml").exists()) == ([], False)


@pytest.mark.parametrize(
    ("profile", "goal", "words"),
    [
        ("pillow_fp32", "flip_rate < 2%", "keep lists are found for a quantizer that calibrates"),
        ("ort_int8", "delta.top1 > -1%", "write flip_rate < N%"),
        ("ort_int8", "flip_rate > 1%", "write flip_rate < N%"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(given, tmp_path, profile, goal, words):
    _, model, data = given
    with pytest.raises(UserError, match=words):
        sensitivity(model, data, tmp_path / "no", Settings(profile, goal))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("graph: {compensation: {form: affine, calibration: {samples: 4, source: data}}}",
         r"graph\.compensation is fitted"),
        ("graph: {batchnorm: {statistics: {samples: 4, through: train, source: elsewhere}}}",
         r"graph\.batchnorm is fitted"),
        ("graph: {batchnorm: {statistics: {samples: 4, through: deploy, source: data}}}",
         r"graph\.batchnorm is fitted"),
    ],
)  # fmt: skip
def test_what_is_fitted_to_another_stack_is_refused(given, tmp_path, section, words):
    profile, model, data = given
    path = Path(profile)
    path.write_text(path.read_text() + section + "\n")
    with pytest.raises(UserError, match=words) as refused:
        sensitivity(model, data, tmp_path / "no", Settings(profile, "flip_rate < 2%"))
    assert "\n" not in str(refused.value) and not (tmp_path / "no").exists()


def test_a_network_that_adapts_is_refused():
    given = {
        "backend": "pytorch", "device": "cpu", "threads": 1, "graph_optimization_level": None,
        "mode": "eager", "memory_format": "contiguous", "exporter": {"backend": "onnx2torch"},
        "adaptation": {
            "backend": "onnx2torch", "method": "tent", "batch": 4, "steps": 1,
            "learning_rate": 0.05, "optimizer": "adam", "reset": "never", "order": "listed",
            "seed": 1,
        },
    }  # fmt: skip
    with pytest.raises(UserError, match=r"runtime\.adaptation changes the network"):
        refuse_fitted(load("pillow_fp32", [f"runtime={json.dumps(given)}"]))
