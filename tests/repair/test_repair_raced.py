"""``simulate repair --until-decided``: which stacks are dropped when, and what is the answer."""

import json
import math
from functools import partial

import pyarrow.parquet as pq
import pytest
import yaml
from made_repair import BGR, DOCUMENT, written
from PIL import Image
from races import killed_and_resumed
from scipy import integrate

from simulator import cli
from simulator.analysis.gate import parse
from simulator.errors import UserError
from simulator.experiments.search.questions import CheapestPassing
from simulator.experiments.search.stopping import rounds
from simulator.notices import Kind
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS

RULE = "flip_rate < 10%"


@pytest.fixture
def run(repaired, ninety):
    return partial(repaired, data=ninety, gate=[RULE], until_decided=True)


def surely_below(limit, options):
    """The images without any flip after which a bettor of Jeffreys' prior has options / 5 %."""

    def capital(images):
        def worth(angle):  # the prior is uniform in the arc sine of the root
            return ((1 - math.sin(angle) ** 2) / (1 - limit)) ** images

        end = math.asin(math.sqrt(limit))
        return integrate.quad(worth, 0, end)[0] / end

    return next(n for n in range(1000) if capital(n) >= options / 0.05)


def test_the_cheapest_that_passes_is_found_and_the_others_are_dropped(run):
    result = run()
    summary, early = result.summary, result.summary.early
    end = next(stop for _, stop in rounds(90) if stop >= surely_below(0.1, 4))
    counts = {"deploy": 30, "resize/box": 30, "order/rgb": end, "order/rgb + resize/box": end}

    assert result.passed and (summary.chosen, early.decided) == ("order/rgb", True)
    assert {one.option: one.samples for one in early.dropped} == counts
    assert {one.name: one.samples for one in summary.tried} == counts
    assert (early.samples, early.of, early.runs) == (end, 90, 2 * 30 + 2 * end)
    why = {one.option: one.why for one in early.dropped}
    assert why["deploy"].startswith("it fails: flip_rate < 10% (at least ")
    assert why["order/rgb"].startswith("it passes: flip_rate < 10% (at most 9.")
    rows = pq.read_table(result.folder / "records.parquet").to_pylist()
    assert len(rows) == end + early.runs
    decided = surely_below(0.1, 4)  # figures are those at the decision, within the last round
    assert (summary.samples, summary.before.samples, summary.family) == (decided, 30, 4)
    assert 0.1 - 0.02 < summary.finalists[0].confirmed.flips.ci95[1] < 0.1
    assert summary.delta["top1"].p is None and summary.delta["top1"].ci95[0] < 0
    repaired = yaml.safe_load((result.folder / "repaired.yaml").read_text())
    assert repaired["resize"]["backend"] == "opencv" and "color" not in repaired
    page = result.report.read_text()
    assert "it fails: flip_rate &lt; 10% (at least" in page and "Pareto" not in page
    assert "is the cheapest of 4 stacks that passes flip_rate" in summary.verdict.lost[0]


def test_a_dearer_stack_is_dropped_when_a_cheaper_one_passes():
    """b flips at 1 of 20: that may be 10 % or not, but a passes, and b no longer matters."""
    rules, task = [parse("flip_rate >= 10%")], TASKS["classification"](None, Network())
    race = CheapestPassing(dict.fromkeys("bac", "train"), rules, task, rank="cab".index)
    same = {"changed": 0}
    for at in range(70):
        seen = {"a": same, "b": {"changed": int(at % 20 == 0)}, "c": {"changed": 1}}
        race.add({name: (same, seen[name]) for name in race.alive})
    race.judge()

    dropped = {one.option: one.why for one in race.dropped}
    assert dropped["b"] == "a is cheaper, and passes"
    assert race.done and race.answer() == ["a"]


@pytest.mark.parametrize(("undecided", "chosen"), [("fail", None), ("pass", "order/rgb")])
def test_what_the_images_do_not_decide_is_said(run, undecided, chosen):
    """At 2 % no flip of 90 images proves nothing."""
    assert surely_below(0.02, 4) > 90
    result = run(gate=["flip_rate < 2%"], undecided=undecided)

    summary = result.summary
    assert (summary.chosen, summary.nearest, result.passed) == (chosen, "order/rgb", bool(chosen))
    assert (summary.early.decided, summary.early.samples) == (False, 90)
    assert summary.early.answer == ["order/rgb", "order/rgb + resize/box"]
    assert summary.verdict.decision == "undecided"
    assert "did not answer it in whole" in summary.verdict.lost[-1]


def test_where_every_stack_fails_it_says_so_at_once(run):
    result = run(changed={"axes": {"resize": DOCUMENT["axes"]["resize"]}})
    summary = result.summary

    assert (summary.chosen, summary.early.decided, summary.early.samples) == (None, True, 30)
    assert not result.passed and summary.verdict.decision == "not ok"
    assert summary.verdict.lost[0] == "Each of 2 stacks fails flip_rate < 10% for certain."
    assert "still differs from training in color" in summary.verdict.cause


def test_the_metric_can_be_the_gate(run):
    """The order gives back two thirds of top-1, which is lost after 30 images for certain."""
    summary = run(gate=["delta.top1 > -25 points"]).summary

    assert summary.chosen == "order/rgb"
    why = next(one.why for one in summary.early.dropped if one.option == "deploy")
    assert why.startswith("it fails: delta.top1 > -25 points (at most -")


def test_images_that_calibrate_judge_no_stack(run, ninety):
    quantizer = (
        "{backend: onnxruntime, weights: per_channel, activations: uint8, symmetric: false,"
        " reduce_range: false, method: minmax,"
        " calibration: {samples: 12, through: deploy, source: data}}"
    )
    int8 = [
        "deploy.precision.storage=int8", "deploy.precision.compute=int8",
        f"deploy.precision.quantizer={quantizer}",
    ]  # fmt: skip

    result = run(overrides=[*BGR, *int8])

    told = [one.text for one in result.summary.warnings if one.kind is Kind.CALIBRATION]
    assert told == ["12 images of 90 calibrate, and judge no stack"]
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert result.summary.early.of == len(manifest["data"]["images"]) == 78


def test_who_cannot_do_what_the_deployment_can_is_named(run, ninety):
    """TurboJPEG reads no PNG: the two samples judge no stack, and it says because of whom."""
    for at, path in enumerate(sorted(ninety.rglob("*.jpg"))[:2]):
        Image.open(path).save(path.with_name(f"more{at}.png"))
    fast = {"backend": "turbojpeg", "exif": None, "idct": "ifast", "chroma_upsampling": "plain"}
    axes = DOCUMENT["axes"] | {"decoder": {"fast": {"set": {"decode": fast}, "cost": {"ms": -1}}}}

    summary = run(gate=["flip_rate < 2%"], changed={"axes": axes}).summary

    told = [one.text for one in summary.warnings if one.kind is Kind.DATA]
    assert summary.skipped == 0
    assert any("left out for all stacks, because of" in text for text in told)


def test_killed_and_resumed_it_is_the_same(card, ninety, tmp_path):
    words = [word for change in BGR for word in ("--set", change)]
    killed_and_resumed(
        tmp_path, "repair", "--options", written(tmp_path), "--gate", RULE, "--until-decided",
        "--under", "jpeg:60", "--limit", "80", "--model", card, "--data", ninety, *words,
        folders=(".", "race"),
    )  # fmt: skip


def test_the_screen_says_when_each_stack_was_dropped(card, ninety, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    words = [word for change in BGR for word in ("--set", change)]
    asked = ["repair", "--options", written(tmp_path), "--gate", RULE, "--until-decided", *words]
    out = ["--model", str(card), "--data", str(ninety), "--out", str(tmp_path / "run")]

    assert cli.main([*asked, *out]) == cli.PASS

    printed = capsys.readouterr().out
    assert printed.startswith("OK: order/rgb (3 h) is the cheapest of 4 stacks that passes")
    assert "resize/box: dropped after 30 images: it fails: flip_rate < 10% (at least" in printed
    assert "Each is tested at 5% / 4" in printed and "What each change gives back" not in printed
    assert cli.main(["gate", str(tmp_path / "run"), "--list"]) == cli.PASS
    assert "figures of its own images" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("flip_rate.high < 2%", "no mean over samples; rules on these can be decided early"),
        ("delta.top1 == 0", "is decided by the last sample only"),
    ],
)
def test_what_has_no_bound_at_any_time_is_refused_in_a_line(run, tmp_path, gate, said):
    with pytest.raises(UserError, match=said) as refused:
        run(gate=[gate])

    assert "\n" not in str(refused.value) and not (tmp_path / "run").exists()
