"""``simulate repair`` on a made pair: what is lost is one axis by construction."""

import json
import shutil
import signal
from functools import partial

import pytest
import tiny
import yaml
from made_repair import BGR, BOX, DOCUMENT, RGB, written
from PIL import Image
from warm import ended

from simulator import cli, compare, repair
from simulator.errors import UserError
from simulator.experiments.common import chosen
from simulator.notices import Kind
from simulator.profile import axes
from simulator.repair import search
from simulator.repair.run import halves
from simulator.report.repairs import changed
from simulator.statistics.paired import clopper_pearson

TENT = {
    "backend": "onnx2torch", "method": "tent", "batch": 4, "steps": 1, "learning_rate": 0.05,
    "optimizer": "adam", "reset": "never", "order": "shuffled", "seed": 1,
}  # fmt: skip
RUNTIME = {
    "backend": "pytorch", "device": "cpu", "threads": 1, "graph_optimization_level": None,
    "mode": "eager", "memory_format": "contiguous", "exporter": {"backend": "onnx2torch"},
}  # fmt: skip

AREA = {"set": {"resize": "opencv-area"}, "cost": {"ms": "measured"}}
AXES = DOCUMENT["axes"] | {"resize": {"box": BOX, "area": AREA}}
GATE = ["flip_rate < 2%"]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return tiny.data(tmp_path_factory.mktemp("many") / "data", each=20)


@pytest.fixture
def run(repaired, many):
    return partial(repaired, data=many, gate=GATE)


@pytest.fixture(scope="module")
def answer(many, tmp_path_factory):
    """A finished run: two axes, three changes, six stacks, on 30 images and 30 others."""
    folder = tmp_path_factory.mktemp("answer")
    return repair(
        gate=GATE, repairs=written(folder, axes=AXES), overrides=BGR, data=many,
        model=tiny.card(folder / "model"), out=folder / "run",
    )  # fmt: skip


def test_the_one_axis_that_loses_is_the_answer(answer, card, many, tmp_path):
    result, summary = answer, answer.summary

    assert (summary.chosen, result.passed, summary.verdict.decision) == (
        "order/rgb", False, "undecided",
    )  # fmt: skip
    assert any("is undecided, but" in said and "more images would" in said
               for said in summary.verdict.lost)  # fmt: skip
    assert (summary.exact, summary.combinations, summary.samples, summary.searched) == (
        True, 6, 30, 30,
    )  # fmt: skip
    lost = summary.before.flips.rate
    assert 0.3 < lost < 1
    (change,) = summary.changes
    assert (change.axis, change.option, change.cost.hours) == ("order", "rgb", 3)
    assert change.repaired["flip_rate"].share.value == pytest.approx(lost)
    assert change.repaired["top1"].alone.value == pytest.approx(lost)
    assert [(one.key, one.deploy, one.repaired) for one in summary.difference] == [
        ("order", "bgr", "model")
    ]
    assert summary.remains == ["resize"]
    assert f"repairs {100 * lost:.2f} of {100 * lost:.2f} points" in summary.verdict.cause

    profile = result.folder / "repaired.yaml"
    stack = chosen(str(profile), ())
    wanted = chosen("pillow_fp32", ["resize=opencv-nearest"])
    assert axes.differing(stack, wanted) == []
    again = compare(
        "pillow_fp32", str(profile), model=card, data=many, quick=True, out=tmp_path / "again"
    )
    assert again.summary.flips.count == 0


def test_search_and_confirmation_share_no_sample(answer):
    def names(folder):
        return set(json.loads((folder / "manifest.json").read_text())["data"]["images"])

    seen, unseen = names(answer.folder / "search"), names(answer.folder / "confirm")
    assert not seen & unseen
    assert len(seen | unseen) == 60
    assert set(answer.records()["sample"].to_pylist()) == unseen


def test_intervals_hold_for_all_finalists_and_p_is_the_binomial_one(answer):
    """No flip of 30: (1 - 0.02) ** 30 = 0.5455; Clopper-Pearson at 1 - 0.05 / family.

    Four are confirmed: the three of six with the order, and the best of the others.
    """
    summary = answer.summary
    best = next(one for one in summary.finalists if one.name == summary.chosen).confirmed

    assert [one.name.startswith("order/rgb") for one in summary.finalists].count(True) == 3
    assert len(summary.finalists) == 4
    assert best.p == pytest.approx(0.98**30)
    assert best.p_holm == 1
    names = {"deploy", *(one.name for one in summary.finalists)}
    assert summary.family == len(names) > 2
    assert summary.before.flips.ci95 == pytest.approx(
        list(clopper_pearson(summary.before.flips.count, 30, 1 - 0.05 / len(names)))
    )
    ends = clopper_pearson(0, 30, 1 - 0.05 / summary.family)
    assert best.flips.ci95 == pytest.approx(list(ends))
    assert "may be chance" in " ".join(summary.verdict.lost)


def test_a_change_that_is_possible_only_with_another_has_no_figure_alone(run):
    """OpenCV has no box: the order, which comes with it, needs another kernel."""
    needs = RGB | {"set": {"color.order": "model", "resize.backend": "opencv"}}
    kernel = {"set": {"resize.interpolation": "bilinear"}, "cost": {}}
    axes = {"order": {"rgb": needs}, "kernel": {"bilinear": kernel}}

    result = run(
        changed={"axes": axes}, overrides=["deploy.color.order=bgr", "deploy.resize=pil-box"]
    )

    found = {one.axis: one.repaired["flip_rate"] for one in result.summary.changes}
    assert result.summary.chosen == "order/rgb + kernel/bilinear"
    assert (found["order"].alone, found["kernel"].last) == (None, None)
    assert found["order"].last.value > 0.3
    assert found["kernel"].alone is not None
    assert found["order"].share is found["kernel"].share is None
    row = next(row for row in changed(result.summary, "").lines() if row[0] == "order: rgb")
    assert row[3] == row[5] == "–" != row[4]
    assert "with the others repairs" in result.summary.verdict.cause


def test_a_network_that_adapts_is_refused_before_anything_runs(run, tmp_path):
    overrides = [*BGR, f"deploy.runtime={json.dumps(RUNTIME | {'adaptation': TENT})}"]

    with pytest.raises(UserError, match="deploy: a repair needs a network that stays as it is"):
        run(overrides=overrides)

    assert not (tmp_path / "run" / "search").exists()


def test_who_cannot_do_what_the_deployment_can_is_named(run, tmp_path):
    """TurboJPEG reads no PNG: two of 62 samples, whichever half they are in."""
    data = tiny.data(tmp_path / "own", each=20)
    for at, path in enumerate(sorted(data.rglob("*.jpg"))[:2]):
        Image.open(path).save(path.with_name(f"more{at}.png"))
    fast = {"backend": "turbojpeg", "exif": None, "idct": "ifast", "chroma_upsampling": "plain"}
    axes = AXES | {"decoder": {"fast": {"set": {"decode": fast}, "cost": {}}}}

    summary = run(changed={"axes": axes}, data=data).summary

    told = [one.text for one in summary.warnings if one.kind is Kind.DATA]
    assert summary.skipped == 0
    assert any("left out for all stacks, because of decoder/fast" in text for text in told)


def int8(source):
    quantizer = (
        "{backend: onnxruntime, weights: per_channel, activations: uint8, symmetric: false,"
        " reduce_range: false,"
        f" method: minmax, calibration: {{samples: 2, through: train, source: {source}}}}}"
    )
    return [
        *BGR, "deploy.precision.storage=int8", "deploy.precision.compute=int8",
        f"deploy.precision.quantizer={quantizer}",
    ]  # fmt: skip


def test_calibration_images_are_never_those_of_the_confirmation(run, many, tmp_path):
    copies = tmp_path / "copies"
    shutil.copytree(many, copies)
    with pytest.raises(UserError, match=r"30 of its 60 samples, .* the half that confirms"):
        run(overrides=int8(copies))

    warnings = run("data", overrides=int8("data")).summary.warnings
    told = [one.text for one in warnings if one.kind is Kind.CALIBRATION]
    assert not any("also evaluated" in text for text in told)
    assert any("on samples of the search half" in text for text in told)


def test_the_upper_end_can_be_the_gate(run):
    """No flip of 30 leaves more than 10 % possible: nothing passes, and it says so."""
    summary = run(gate=["flip_rate.high < 2%"], changed={"axes": AXES}).summary

    assert (summary.chosen, summary.gate.passed) == (None, False)
    assert summary.nearest.startswith("order/rgb")
    assert summary.verdict.decision == "not ok"
    assert summary.verdict.lost[0] == "No finalist of 6 stacks passes flip_rate.high < 2%."


def test_nothing_is_changed_where_the_gate_passes_already(run):
    result = run(overrides=["deploy.resize=opencv-nearest"])

    assert result.summary.chosen == "deploy"
    assert result.summary.changes == []
    assert result.summary.verdict.lost[0] == "Nothing must change for flip_rate < 2%."


def test_what_stands_in_the_way_is_named_where_nothing_passes(run):
    only = {"axes": {"resize": {"box": BOX}}}

    result = run(changed=only)

    assert not result.passed
    assert result.summary.chosen is None
    assert "color" in result.summary.remains
    assert "still differs from training in color" in result.summary.verdict.cause


def test_halving_says_how_many_were_dropped_when(run, monkeypatch):
    monkeypatch.setattr(search, "EXACT", 2)
    monkeypatch.setattr(search, "FINAL", 2)
    monkeypatch.setattr(search, "FIRST", 4)

    summary = run(changed={"axes": AXES}).summary

    assert not summary.exact
    assert [one.samples for one in summary.rungs] == [7, 15, 30]
    assert summary.rungs[0].stacks == 6 and summary.rungs[0].dropped == 3
    assert summary.chosen == "order/rgb"


@pytest.mark.parametrize("folder", ["search", "confirm", "parts"])
def test_a_killed_search_goes_on_to_the_same_answer(answer, card, many, tmp_path, folder):
    whole, document = answer.summary, written(tmp_path, axes=AXES)
    words = ["repair", "--options", document, "--gate", GATE[0], "--model", card, "--data", many]
    words += [word for change in BGR for word in ("--set", change)]
    out = tmp_path / "killed"

    done = ended(signal.SIGKILL, out, f"{folder}/manifest.json", 1, *words, "--out", out)

    assert done.returncode == -signal.SIGKILL, done.stderr
    assert cli.main(["resume", str(out)]) == 1  # thirty images do not exclude the limit
    found = json.loads((out / "summary.json").read_text())
    assert found["chosen"] == whole.chosen
    assert found["flips"] == whole["flips"]
    answers = [one["confirmed"]["flips"] for one in found["finalists"]]
    assert len(answers) == whole.family


def test_without_a_document_one_is_made_of_what_differs_and_can_be_edited(run):
    result = run(
        repairs=None, train="pillow_fp32", deploy="pillow_fp32",
        overrides=["deploy.color.order=bgr"], limit=20,
    )  # fmt: skip

    found = yaml.safe_load((result.folder / "options.yaml").read_text())
    assert list(found["axes"]) == ["color"]
    first = found["axes"]["color"]["as_trained"]
    assert first == {
        "set": {"color": {"order": "model"}}, "cost": {"ms": "measured"},
        "why": "as training does it",
    }  # fmt: skip
    others = [one["why"] for name, one in found["axes"]["color"].items() if name != "as_trained"]
    assert all(why.startswith(("suite ", "profile ")) for why in others)
    assert result.summary.chosen == "color/as_trained"


def test_a_model_file_is_repaired_where_the_device_stays(run):
    """Red and blue change places, which colors can undo; there is no BatchNormalization."""
    stacks = {"train": "pillow_fp32", "deploy": "pillow_fp32"}
    result = run(repairs="model-file", overrides=["deploy.color.order=bgr"], **stacks)
    summary = result.summary

    assert summary.chosen in ("transform/affine", "transform/matrix")
    flips = {one.name: one.flip_rate for one in summary.tried}
    assert flips["transform/matrix"] == 0
    assert flips["statistics/deploy_pixels"] == flips["deploy"] > 0.3
    assert "compensation" in {one.axis for one in summary.difference}


def test_the_report_shows_the_answer(answer):
    page = answer.report.read_text()

    assert "Pareto" in page and "What each change gives back" in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gate": []}, "give --gate"),
        ({"gate": ["flip_rate"]}, "cannot read the rule"),
        ({"gate": ["flip_rte < 1%"]}, "did you mean flip_rate"),
        ({"gate": ["latency_ms.deploy.total.p50 < 1 ms"]}, "this run does not have"),
        ({"limit": 1}, "1 is too few"),
        ({"changed": {"train": None}}, "give --train and --deploy"),
        ({"repairs": "nonsense"}, "unknown document of repairs 'nonsense'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(run, options, said):
    with pytest.raises(UserError, match=said) as refused:
        run(**options)

    assert len(str(refused.value).splitlines()) == 1


def test_halves_do_not_depend_on_anything_but_the_seed():
    items = list(range(7))

    first, second = halves(items, 3), halves(items, 3)

    assert first == second
    assert sorted(first[0] + first[1]) == items
    assert (len(first[0]), len(first[1])) == (3, 4)
    assert halves(items, 4) != first
