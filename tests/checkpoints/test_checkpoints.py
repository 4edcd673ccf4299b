"""Several models in one suite, by the recipe of their training; figures worked out on paper."""

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
import yaml
from onnx import helper
from scipy import stats

import simulator
from simulator import cli, sweep
from simulator.checkpoints import figures
from simulator.checkpoints.measured import Measured
from simulator.errors import UserError
from simulator.statistics.bootstrap import Ratio, Resamples, mixed
from simulator.testing.audio_specimen import write

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "results"))
SUITE = {
    "schema": 1, "name": "mine", "summary": "two axes", "train": "pillow_fp32",
    "columns": {
        "order": {"bgr": {"color.order": "bgr"}},
        "resize": {"nearest": {"resize": "opencv-nearest"}, "box": {"resize": "pil-box"}},
        "both": {"bgr": {"color.order": "bgr"}, "box": {"resize": "pil-box"}},
        "ceil_mode": {"ceil": {"graph.pooling.ceil_mode": "ceil"}},
    },
}  # fmt: skip


def blind():
    """Says red whatever it sees: right of two in six, and no option changes an answer."""
    found = tiny.classifier()
    weights = np.zeros((3, 3), np.float32)
    weights[:, 0] = 1
    found.graph.initializer[0].CopyFrom(tiny.numpy_helper.from_array(weights, "w"))
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Sweeps of four models: plain twice, with a pool and of no recipe once, blind twice."""
    folder = tmp_path_factory.mktemp("checkpoints")
    suite = folder / "mine.yaml"
    suite.write_text(yaml.safe_dump(SUITE, sort_keys=False))
    plain, none = {"recipe": "plain", "seed": 0}, {"recipe": "blind"}
    cards = [
        tiny.card(folder / "cards" / "a", name="a", checkpoint=plain),
        tiny.card(folder / "cards" / "b", blind(), name="b", checkpoint=none),
        tiny.card(folder / "cards" / "c", name="c", checkpoint=plain | {"seed": 1}),
        tiny.card(folder / "cards" / "d", blind(), name="d", checkpoint=none),
        tiny.card(folder / "cards" / "e", tiny.pooled(), name="pooled"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIPELINE_SIMULATOR_CACHE", str(folder / "cache"))
        sweep(str(suite), models=cards, data=tiny.data(folder / "data"), out=folder, workers=1)
    return folder


def runs(home, *names):
    return [home / name for name in names]


def asked(home, names):
    """The command line of a sweep of some of the models."""
    models = [w for name in names for w in ("--model", str(home / "cards" / name / "card.yaml"))]
    data = ["--data", str(home / "data"), "--workers", "1"]
    return ["sweep", "--suite", str(home / "mine.yaml"), *models, *data]


def test_a_recipe_that_loses_less(home):
    """BGR costs the plain ones four of six answers, and the blind ones none."""
    found = simulator.checkpoints(runs(home, "a", "b", "c", "d"))

    assert list(found.recipes) == ["plain", "blind"] and found.first == "plain"
    assert found.recipes["plain"].trained.value == 1
    assert found.recipes["blind"].trained.value == pytest.approx(2 / 6)
    assert [one.seed for one in found.checkpoints] == [0, None, 1, None]
    assert found.recipes["plain"].columns["order"].drop.value == pytest.approx(4 / 6)
    assert found.recipes["plain"].columns["order"].std == 0
    assert found.recipes["plain"].columns["order"].worst == "bgr"
    drop, flips = (
        next(row for row in found.comparisons if row.column == "order" and row.figure == name)
        for name in ("drop", "flip_rate")
    )
    assert (drop.value, flips.value) == pytest.approx((-4 / 6, -4 / 6))
    assert drop.ci95[0] == pytest.approx(-1) and drop.ci95[1] < -0.3
    assert drop.p >= 2 / 2**6, "six images cannot say more"
    assert drop.any_ci95 is not None and drop.any_ci95[0] < -4 / 6 < drop.any_ci95[1] < 0
    assert drop.any_p >= drop.p, "of other trainings less is known, not more"
    assert found.verdict[0] == "blind is not shown to lose more or less top-1 than plain."


def test_what_is_trained_on_and_tested_on(home):
    """With BGR the plain ones know two of six, with a box filter all: std sqrt((4/6)^2 / 2)."""
    found = simulator.checkpoints(runs(home, "b", "a", "c"))

    blind, plain = (row for row in found.tested if row.column == "both")
    assert blind.options == pytest.approx({"bgr": 2 / 6, "box": 2 / 6})
    assert plain.options == pytest.approx({"bgr": 2 / 6, "box": 1})
    assert (plain.mean, plain.std) == pytest.approx((4 / 6, 4 / 6 / 2**0.5))
    assert blind.less_mean is blind.less_std is None and blind.std == pytest.approx(0)
    assert plain.less_std.value == pytest.approx(4 / 6 / 2**0.5)
    assert 0 <= plain.less_std.ci95[0] < 0.4 and plain.less_std.ci95[1] == pytest.approx(0.5**0.5)
    assert plain.less_mean.value == pytest.approx(2 / 6)
    assert [row.column for row in found.tested] == ["resize", "resize", "both", "both"]


def test_recipes_are_compared_in_groups(home, tmp_path, capsys):
    """BGR costs the blind ones nothing, and of the two in the other group the plain one four."""
    places = [str(home / name) for name in ("b", "d", "a", "pooled")]

    code = cli.main(["report", *places, "--out", str(tmp_path), "--group", "dull=bl*", "--group",
                     "sharp=plain,pool*", "--json"])  # fmt: skip

    found = json.loads(capsys.readouterr().out)
    assert code == 0 and list(found["recipes"]) == ["dull", "sharp"]
    assert [one["recipe"] for one in found["checkpoints"]] == ["dull", "dull", "sharp", "sharp"]
    (order,) = (
        row for row in found["comparisons"] if (row["column"], row["figure"]) == ("order", "drop")
    )
    drops = [one["columns"]["order"]["drop"]["value"] for one in found["checkpoints"]]
    assert drops[:3] == [0, 0, pytest.approx(4 / 6)]
    assert order["recipe"] == "sharp" and order["value"] == pytest.approx(np.mean(drops[2:]))
    assert order["any_p"] is None, "one checkpoint of plain and one of pooled"
    with pytest.raises(UserError, match="no recipe fits dall"):
        simulator.checkpoints(runs(home, "a", "b"), groups=["dull=dall*"])
    with pytest.raises(UserError, match="write NAME=PATTERN"):
        simulator.checkpoints(runs(home, "a", "b"), groups=["dull"])
    with pytest.raises(UserError, match="--group dull is given twice"):
        simulator.checkpoints(runs(home, "a", "b"), groups=["dull=bl*", "dull=plain"])


def test_what_fits_no_group_is_said_and_csv_has_a_figure_a_cell(home, tmp_path, capsys):
    places = [str(home / name) for name in ("b", "a", "pooled")]
    asked = ["--out", str(tmp_path), "--group", "dull=bl*", "--group", "sharp=plain"]
    cli.main(["report", *places, *asked])
    assert "Left out, as they fit no group: pooled." in " ".join(capsys.readouterr().out.split())

    cli.main(["report", *places, *asked, "--format", "csv"])
    table = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    _, sharp = csv.DictReader(table)
    figures = {name: float(value or 0) for name, value in sharp.items() if name != "recipe"}
    assert figures["order mean"] == pytest.approx(-4 / 6)


@pytest.mark.parametrize(
    ("accuracies", "mean", "std"),
    [
        ([76.572, 72.168, 76.512, 72.090, 75.346, 74.072], 74.460, 2.02),
        ([76.154, 75.876, 76.344, 75.786, 76.444, 76.330], 76.156, 0.270),
        ([76.430, 76.426, 75.310], 76.055, 0.645),
        ([76.53, 76.524, 76.414], 76.489, 0.0653),
    ],
)
def test_the_papers_rows_come_out(accuracies, mean, std):
    """Of SysNoise's Tables 7 and 8."""
    options = [str(at) for at in range(len(accuracies))]
    flat = [np.full(11, value / 100) for value in accuracies]
    drops = {("resize", name): flat[0] - one for name, one in zip(options, flat, strict=True)}

    (row,) = figures.tested({"one": [Measured(None, flat[0], drops, {})]}, "resize", options, 10)

    assert 100 * row.mean == pytest.approx(mean, abs=0.002)
    assert 100 * row.std == pytest.approx(std, rel=0.005)


def test_options_that_some_model_did_not_run_are_left_out_and_told(home):
    found = simulator.checkpoints(runs(home, "a", "pooled"))

    resize = {"resize": ["nearest", "box"]}
    assert found.options == {"order": ["bgr"], **resize, "both": ["bgr", "box"]}
    assert found.left_out == ["ceil_mode/ceil"]
    assert list(found.recipes) == ["plain", "pooled"], "a model without a recipe is one"


def burnt():
    """The classifier, whose scores are NaN where red is far above the mean."""
    found = tiny.classifier()
    found.graph.node[-1].output[0] = "scores"
    found.graph.node.extend([
        helper.make_node("Gather", ["flat", "first"], ["red"], axis=1),
        helper.make_node("Greater", ["red", "one"], ["hot"]),
        helper.make_node("Where", ["hot", "nan", "zero"], ["poison"]),
        helper.make_node("Add", ["scores", "poison"], ["y"]),
    ])  # fmt: skip
    constants = {"first": 0, "one": np.float32(1), "nan": np.float32("nan"), "zero": np.float32(0)}
    found.graph.initializer.extend(
        tiny.numpy_helper.from_array(np.array(one), name) for name, one in constants.items()
    )
    return found


def test_a_checkpoint_that_gives_nan_for_some_fails(home, tmp_path, cache, capsys):
    """Red images give NaN, and with swapped channels the blue ones: four of six."""
    card = tiny.card(tmp_path / "hot", burnt(), name="hot", checkpoint={"recipe": "hot"})
    suite, data = home / "mine.yaml", home / "data"
    (made,) = sweep(str(suite), models=[card], data=data, out=tmp_path / "runs", workers=1)
    pair = [str(home / "a"), str(made.folder)]

    found = simulator.checkpoints(pair, out=tmp_path)

    assert (found.failed["hot"].count, found.failed["hot"].of, found.samples) == (4, 6, 2)
    assert (found.failed["a"].count, found.failed["a"].of) == (0, 6)
    assert found.verdict[0] == (
        "hot fails on 4 of 6 images (order/bgr: postprocess: the model gave NaN and 1 more reason)."
    )
    assert not found.gate.passed
    assert [rule.rule for rule in found.gate.rules] == ["failed.hot > 0%"]
    page = (tmp_path / "checkpoints.html").read_text()
    assert "NOT OK" in page and "hot fails on 4 of 6 images" in page
    assert "failed.hot &gt; 0%: failed" in page

    assert cli.main(["report", *pair, "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("NOT OK: hot fails on 4 of 6 images (order/bgr: postprocess: the")
    assert "gate FAILED failed.hot > 0%" in " ".join(said.split())
    assert cli.main(["report", *pair, "--out", str(tmp_path), "--allow-failed", "70%"]) == 0


def test_a_sweep_of_several_exits_with_their_gate(home, tmp_path, cache):
    hot = tiny.card(tmp_path / "hot", burnt(), name="hot")

    code = cli.main([*asked(home, "a"), "--model", str(hot), "--out", str(tmp_path / "runs")])

    assert code == 1


def test_one_checkpoint_tells_nothing_of_its_recipe(home):
    found = simulator.checkpoints(runs(home, "a", "b"))

    assert all(row.any_ci95 is row.any_p is row.any_p_holm is None for row in found.comparisons)
    assert found.recipes["plain"].columns["order"].std is None
    assert "cannot be told: there is one checkpoint of blind and plain" in found.verdict[1]


def test_on_many_images_the_difference_is_shown(home, tmp_path, cache):
    """Twelve images of each color: BGR swaps red and blue, two of three answers."""
    suite = home / "mine.yaml"
    results = sweep(
        str(suite), models=[home / "cards" / "a" / "card.yaml", home / "cards" / "b" / "card.yaml"],
        data=tiny.data(tmp_path / "data", 12), out=tmp_path / "runs", workers=1,
    )  # fmt: skip

    found = simulator.checkpoints([one.folder for one in results])

    assert found.verdict[0] == (
        "blind loses less top-1 than plain under order (+66.67 points) and both (+33.33 points); "
        "nothing is shown under resize."
    )


def test_the_command_compares_models_and_writes_a_page(home, tmp_path, capsys, cache):
    out = tmp_path / "runs"

    assert cli.main([*asked(home, "ab"), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    page = (out / "checkpoints.html").read_text()
    written = json.loads((out / "checkpoints.json").read_text())
    schema = json.loads((ROOT / "docs" / "schemas" / "checkpoints.json").read_text())

    from against_schema import problems

    assert list(problems(written, schema, schema)) == []
    assert (
        "Change, points, less that of plain" in said
        and f"report: {out / 'checkpoints.html'}" in said
    )
    assert page.count('data-figure="') == 3, "a panel for each column that both ran"
    assert '<a href="a/report.html">a</a>' in page and "checkpoints.json" in page

    assert cli.main(["report", str(out / "a"), str(out / "b"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again == written
    assert (out / "checkpoints.html").read_text() == page, "finished runs give the same page"

    assert cli.main(["report", str(out / "a"), str(out / "b"), "--format", "markdown"]) == 0
    printed = capsys.readouterr().out
    assert "| plain | 33.33 | 100.00 | 66.67 | 47.14 | – | – | – | – |" in printed
    assert "\nAnswers flipped, points, less that of plain\n" in printed

    assert cli.main(["report", str(out / "a"), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| model | trained |"), "one sweep has its own table"
    both = [str(out / "a"), str(out / "b")]
    for words, why in (
        ([*both, "--charts", "x"], "--charts is for the page of one run"),
        ([*both, "--json", "--format", "csv"], "--json is for several sweeps without --format"),
        ([both[0], "--group", "g=*"], "--group is for several sweeps"),
        ([*both, "--table", "x"], "unknown table 'x' (offered: models, options)"),
    ):
        assert cli.main(["report", *words]) == 2
        assert why in capsys.readouterr().err


def test_models_that_cannot_be_compared_keep_their_own_reports(home, tmp_path, capsys, cache):
    (tmp_path / "checkpoints.json").mkdir()

    assert cli.main([*asked(home, "ae"), "--out", str(tmp_path)]) == 0
    assert "note: the models are not compared: " in capsys.readouterr().err
    assert (tmp_path / "a" / "report.html").is_file()
    assert not (tmp_path / "checkpoints.html").exists()


def test_models_of_sounds_are_compared_likewise(tmp_path, cache):
    """Two copies of one model, of two recipes: nothing differs."""
    given = write(tmp_path)
    for file, name in zip(given.files, ("low", "high"), strict=True):
        (tmp_path / "data" / name).mkdir(parents=True)
        file.rename(tmp_path / "data" / name / file.name)
    (tmp_path / "labels.txt").write_text("low\nmiddle\nhigh\n")
    card = given.card.read_text() + "labels: labels.txt\n"
    cards = [tmp_path / f"{name}.yaml" for name in ("one", "two")]
    for place in cards:
        place.write_text(
            card.replace("pitch", place.stem) + f"checkpoint: {{recipe: {place.stem}}}"
        )
    suite = tmp_path / "bands.yaml"
    columns = {"mel": {"htk": {"mel.scale": "htk"}}}
    suite.write_text(yaml.safe_dump(SUITE | {"train": given.profile, "columns": columns}))
    results = sweep(
        str(suite), models=cards, data=tmp_path / "data", out=tmp_path / "runs", workers=1
    )

    found = simulator.checkpoints([one.folder for one in results], out=tmp_path)

    assert found.sample_unit == "sound" and found.samples == 2
    assert [(row.value, row.p) for row in found.comparisons] == [(0, 1), (0, 1)]
    assert "2 sounds" in (tmp_path / "checkpoints.html").read_text()


def test_what_cannot_be_compared_is_refused(home, tmp_path, cache):
    with pytest.raises(UserError, match="two runs or more"):
        simulator.checkpoints(runs(home, "a"))
    found = simulator.checkpoints(runs(home, "a", "a"))
    assert list(found.failed) == [str(home / "a")] and found.gate.rules == [], "told apart"
    more = tmp_path / "more"
    sweep(
        str(home / "mine.yaml"), models=[home / "cards" / "a" / "card.yaml"], out=more, workers=1,
        data=tiny.data(tmp_path / "data", 3),
    )  # fmt: skip
    with pytest.raises(UserError, match="different data"):
        simulator.checkpoints([home / "b", more / "a"])
    pair = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=home / "cards" / "a" / "card.yaml", data=home / "data",
        out=tmp_path / "pair", workers=1, quick=True,
    )  # fmt: skip
    with pytest.raises(UserError, match="a run of simulate run; sweeps can be compared"):
        simulator.checkpoints([home / "a", pair.folder])


def test_labels_that_changed_since_the_run_are_refused(home, tmp_path, cache):
    data = shutil.copytree(home / "data", tmp_path / "data")
    cards = [home / "cards" / name / "card.yaml" for name in "ab"]
    results = sweep(str(home / "mine.yaml"), models=cards, data=data, out=tmp_path / "o", workers=1)
    (data / "red" / "red0.jpg").rename(data / "blue" / "red0.jpg")

    with pytest.raises(UserError, match=r"1 samples? .* first is red/red0.jpg"):
        simulator.checkpoints([one.folder for one in results])


def test_mixed_is_welchs_test_where_samples_leave_nothing_open():
    """SciPy's own, of repetitions whose figures no resample changes."""
    ones, others = [0.10, 0.14, 0.19], [0.05, 0.02]
    drawn = [[[np.full(101, value) for value in group]] for group in (ones, others)]
    wanted = stats.ttest_ind(ones, others, equal_var=False)

    found = mixed(*drawn, 100)

    assert found.value == pytest.approx(np.mean(ones) - np.mean(others))
    assert found.p == pytest.approx(wanted.pvalue)
    assert found.ci95 == pytest.approx(tuple(wanted.confidence_interval(0.95)))


def test_mixed_counts_how_far_trainings_of_the_same_lie_apart():
    """Two recipes of one group far apart: their distance is no chance of a training."""
    one, other, rest = [0.10, 0.14], [0.60, 0.62], [0.2, 0.3, 0.25]
    strata = [[np.full(101, value) for value in group] for group in (one, other, rest)]
    parts = [np.var(one, ddof=1) / 8, np.var(other, ddof=1) / 8, np.var(rest, ddof=1) / 3]
    freedom = sum(parts) ** 2 / sum(p**2 / f for p, f in zip(parts, (1, 1, 2), strict=True))

    found = mixed(strata[:2], strata[2:], 100)

    assert found.value == pytest.approx(0.365 - 0.25)
    wanted = 2 * stats.t.sf((0.365 - 0.25) / sum(parts) ** 0.5, freedom)
    assert found.p == pytest.approx(wanted)


def test_mixed_is_the_bootstraps_normal_interval_where_repetitions_agree():
    noise = np.random.default_rng(0).normal(0, 0.01, 4000)
    one = np.concatenate([[0.5], 0.5 + noise])
    flat = np.full(4001, 0.4)

    found = mixed([[one, one]], [[flat, flat]], 4000)

    half = stats.norm.ppf(0.975) * noise.std()
    assert found.ci95 == pytest.approx((0.1 - half, 0.1 + half), abs=1e-6)
    assert mixed([[one, one], [one]], [[flat, flat]], 4000) is None


def test_figures_that_are_drawn_together_are_those_drawn_alone():
    draws = Resamples(20, seed=3, number=50)
    values = np.arange(20.0)
    figures = [Ratio(values, np.ones(20)), Ratio(values**2, np.ones(20))]

    assert all(
        np.array_equal(one, draws.of(figure), equal_nan=True)
        for one, figure in zip(draws.of_each(figures), figures, strict=True)
    )
