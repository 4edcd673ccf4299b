"""System noise, networks that did not converge, and RobustMQ's table by bit-width."""

import csv
import io
import json
import statistics

import numpy as np
import pytest
import tiny
import yaml
from PIL import Image

import simulator
from simulator import cli, robustness
from simulator.analysis import robustness as figures
from simulator.errors import ProfileError, UserError
from simulator.robustness import robustmq
from simulator.robustness.bit_widths import bit_widths
from simulator.robustness.document import load_suite
from simulator.robustness.experiment import Robustness

SUITE = {
    "schema": 1, "name": "mine", "summary": "a link, a pan, and other resizers",
    "conditions": {"digital": {"jpeg": ["jpeg:60", "jpeg:5"]}},
    "sequences": {"pan": {"condition": "p_translate", "frames": 5}},
    "system_noise": "robustmq-s",
}  # fmt: skip
STACKS = ["pillow_bilinear_fp32", "lsq_w4a4"]
TABLE_10 = {
    "FP": (71.06, [70.21, 69.15, 70.64, 70.73, 70.66, 70.78, 70.82, 69.21, 70.71, 70.53, 70.21,
                   70.21, 70.22, 70.22], 70.31, 1.06, 0.53),
    "LSQ 2": (65.97, [65.01, 59.48, 63.74, 64.79, 65.04, 64.48, 63.58, 59.44, 64.95, 62.15, 61.56,
                      65.01, 65.01, 65.00], 63.52, 3.71, 2.05),
    "DoReFa 2": (62.31, [61.14, 54.77, 59.86, 60.98, 60.98, 60.71, 59.79, 55.04, 61.22, 57.88,
                         57.26, 61.14, 61.07, 61.24], 59.51, 4.49, 2.32),
}  # fmt: skip
"""RobustMQ, arXiv 2308.02350, ResNet18, Tables 9 and 10: ACC, 14 SR, their mean, SNI, std."""


@pytest.fixture(scope="module")
def model(home):
    return tiny.card(home / "model")


@pytest.fixture(scope="module")
def tied(home):
    """Stripes of three colors that are nearly as frequent, so that a resizer changes answers."""
    draws, names = np.random.default_rng(5), tuple(tiny.COLORS)
    for number in range(16):
        columns = np.eye(3)[draws.integers(0, 3, 48)]
        folder = home / "tied" / names[int(columns.sum(0).argmax())]
        folder.mkdir(parents=True, exist_ok=True)
        image = np.broadcast_to(40 + 170 * columns, (40, 48, 3)).astype(np.uint8)
        Image.fromarray(image).save(folder / f"{number}.png")
    return home / "tied"


@pytest.fixture
def wrong(tmp_path):
    """Clear images, every one with the label of another color."""
    others = {"red": "green", "green": "blue", "blue": "red"}
    for label, shown in others.items():
        (tmp_path / "wrong" / label).mkdir(parents=True)
        for number in range(2):
            file = tmp_path / "wrong" / label / f"{label}{number}.png"
            file.write_bytes(tiny.encoded(tiny.picture(tiny.COLORS[shown], seed=number), "png"))
    return tmp_path / "wrong"


def suite(tmp_path, **changes):
    path = tmp_path / "mine.yaml"
    spec = {key: value for key, value in {**SUITE, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return str(path)


@pytest.mark.parametrize(("acc", "rates", "mean", "sni", "std"), TABLE_10.values(), ids=TABLE_10)
def test_sr_sni_and_std_are_those_of_robustmq(acc, rates, mean, sni, std):
    by = {str(at): np.array([one / 100]) for at, one in enumerate(rates)}
    sr = figures.mean_over(by)
    assert 100 * sr[0] == pytest.approx(mean, abs=0.011)
    assert 100 * figures.impact(np.array([acc / 100]), sr)[0] == pytest.approx(sni, abs=0.011)
    found = figures.sample_deviation(np.stack(list(by.values())))
    assert 100 * found[0] == pytest.approx(std, abs=0.006)


def test_the_deviation_of_one_noise_is_not_defined():
    assert np.isnan(figures.sample_deviation(np.array([[0.5]]))[0])


RULES = {
    "lsq_w4a4.SNI > -100%": ("SNI", True),
    "lsq_w4a4.mean_SR > -100%": ("mean_SR", True),
    "lsq_w4a4.SR.resize.pil-box.low > 100%": ("", False),
}
"""With the figure and whether it fails."""


@pytest.fixture(scope="module")
def noisy(model, tied, home):
    (result,) = robustness(
        suite(home), STACKS, models=[model], data=tied, out=home / "noisy", fail_on=list(RULES)
    )
    return result


def test_each_option_gives_what_a_sweep_gives(noisy, model, tied):
    """SR of the first stack against ``simulate sweep``, which knows nothing of conditions."""
    (swept,) = simulator.sweep("robustmq-s", train=STACKS[0], models=[model], data=tied)
    summary = json.loads((noisy.folder / "summary.json").read_text())
    own = summary["system_noise"]["stacks"][STACKS[0]]
    expected = {
        f"{column}.{name}": option["top1"]
        for column, by in swept.summary.columns.items()
        for name, option in by.options.items()
    }
    assert {name: one["value"] for name, one in own["SR"].items()} == expected
    assert len(expected) == 14
    assert len(set(expected.values())) > 2, "options that differ"
    values, clean = list(expected.values()), summary["stacks"][STACKS[0]]["clean"]["value"]
    mean = sum(values) / 14
    assert own["mean_SR"]["value"] == pytest.approx(mean)
    assert own["SNI"]["value"] == pytest.approx((clean - mean) / clean)
    assert own["std"]["value"] == pytest.approx(statistics.stdev(values))
    assert own["same"] == ["resize.pil-bilinear", "decode.pillow"]
    assert summary["system_noise"]["stacks"]["lsq_w4a4"]["same"] == ["resize.pil-cubic"]


def test_options_share_the_file_that_the_stack_was_calibrated_for(noisy):
    stacks = json.loads((noisy.folder / "manifest.json").read_text())["stacks"]
    for side in STACKS:
        files = {one["artifact"]["sha256"] for name, one in stacks.items()
                 if name.partition("/")[0] == side}  # fmt: skip
        assert len(files) == 1
    assert len(stacks) == 2 * 15


def test_noise_leaves_the_figures_of_conditions_as_they_were(noisy, model, tied, tmp_path):
    (plain,) = robustness(suite(tmp_path, system_noise=None), STACKS, models=[model], data=tied,
                          out=tmp_path / "o")  # fmt: skip
    assert plain.summary.system_noise is plain.summary.attacks is None
    for field in ("stacks", "sequences", "interaction", "flips", "rows"):
        assert plain.summary[field] == noisy.summary[field]


def test_rules_name_system_noise(noisy):
    stack = noisy.summary.system_noise.stacks["lsq_w4a4"]
    for rule, (field, fails) in zip(noisy.summary.gate.rules, RULES.values(), strict=True):
        assert rule.failed == fails
        assert not field or rule.value == stack[field].value


def test_an_option_that_a_stack_cannot_have_is_left_out_with_a_reason(model, tied, tmp_path):
    path = tmp_path / "options.yaml"
    options = {"good": {"resize": "pil-box"}, "bad": {"decode.exif": "sideways"}}
    path.write_text(yaml.safe_dump({
        "schema": 1, "name": "options", "summary": "", "train": "pillow_fp32",
        "columns": {"a": options},
    }))  # fmt: skip
    (result,) = robustness(
        suite(tmp_path, system_noise="options.yaml"), STACKS[:1], models=[model], data=tied,
        out=tmp_path / "o",
    )  # fmt: skip
    (own,) = result.summary.system_noise.stacks.values()
    assert list(own.sr) == ["a.good"] and own.std is None
    assert "decode.exif" in own.left_out["a.bad"]


def test_an_unknown_suite_of_options_says_where(tmp_path):
    with pytest.raises(ProfileError, match=r"mine.yaml:\d+: system_noise: .*robustmq-s"):
        load_suite(suite(tmp_path, system_noise="robustmqs"))


def test_a_stack_that_rounding_left_at_chance_is_nc(model, wrong, tmp_path, capsys):
    """All answers are wrong on both; what has no simulated bit-width keeps its figures."""
    asked = ["robustness", "--suite", suite(tmp_path), "--profile", STACKS[0], "--profile",
             STACKS[1], "--model", str(model), "--data", str(wrong), "--out", str(tmp_path / "o"),
             "--fail-on", "lsq_w4a4.NCI.jpeg > 100%", "--undecided", "pass"]  # fmt: skip
    assert cli.main(asked) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "lsq_w4a4 is NC, not converged, and in no mean: clean top-1 of 0.0% is below 43.3%" in out
    )
    summary = json.loads((tmp_path / "o" / "colors" / "summary.json").read_text())
    assert list(summary["nc"]) == ["lsq_w4a4"]
    (rule,) = summary["gate"]["rules"]
    assert rule["failed"] and not rule["judged"]  # FP32 is at chance on these, too
    stack = summary["stacks"]["lsq_w4a4"]
    assert stack["NR"] == {"jpeg": None} and stack["mNR"] is stack["mCE"] is None
    assert stack["levels"] == {"jpeg": []} and stack["clean"]["value"] == 0
    assert summary["interaction"] == summary["sequences"]["interaction"] == {}
    assert summary["sequences"]["stacks"]["lsq_w4a4"]["FP"] == {"pan": None}
    assert summary["system_noise"]["stacks"]["lsq_w4a4"]["SNI"] is None
    assert summary["stacks"][STACKS[0]]["NR"]["jpeg"]["value"] == 0
    assert summary["system_noise"]["stacks"][STACKS[0]]["mean_SR"]["value"] == 0
    assert summary["verdict"]["lost"][-1] == "lsq_w4a4 did not converge (NC), and has no figures."
    assert "NC" in (tmp_path / "o" / "colors" / "report.html").read_text()


def test_a_card_that_did_not_converge_is_nc_on_every_stack(data, tmp_path, capsys):
    card = tiny.card(tmp_path / "nc", converged=False)
    (result,) = robustness(suite(tmp_path), STACKS, models=[card], data=data, out=tmp_path / "o")
    assert list(result.summary.nc) == STACKS
    assert not result.summary.interaction
    assert all(one.mnr is None for one in result.summary.stacks.values())
    assert cli.main(["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", str(card),
                     "--data", str(data), "--out", str(tmp_path / "pair")]) == 0  # fmt: skip
    assert "converged: false (NC)" in " ".join(capsys.readouterr().out.split())


def test_the_first_stack_at_chance_leaves_nothing_to_compare_with(model, wrong, tmp_path):
    (result,) = robustness(suite(tmp_path), STACKS[::-1], models=[model], data=wrong,
                           out=tmp_path / "o")  # fmt: skip
    other = result.summary.stacks[STACKS[0]]
    assert not result.summary.interaction
    assert other.ce == {"jpeg": None} and other.nr["jpeg"] is not None


@pytest.fixture(scope="module")
def three(home):
    """Two models that answer, and one card that says NC."""
    cards = [tiny.card(home / name, name=name, converged=name != "c") for name in ("a", "b", "c")]
    data = tiny.data(home / "data")
    done = robustness(suite(home), STACKS, models=cards, data=data, out=home / "o")
    return [one.summary for one in done]


def test_the_table_has_the_figures_of_the_summaries(three):
    made = robustmq.table(three)
    titles, rows = made.titles, made.lines()
    assert titles == ["model", "method", "bits", "clean", "mNR", "mNCI", "mFP", "SR", "SNI", "std"]
    assert [row[:3] for row in rows[:6]] == [
        [name, method, bits]
        for name in ("a", "b", "c")
        for method, bits in (("fp32", "32"), ("lsq", "4"))
    ]
    stack, noise = three[1].stacks["lsq_w4a4"], three[1].system_noise.stacks["lsq_w4a4"]
    found = [
        stack.clean, stack.mnr, stack.mnci, three[1].sequences.stacks["lsq_w4a4"].mfp,
        noise.mean_sr, noise.sni, noise.std,
    ]  # fmt: skip
    assert rows[3][3:] == [f"{100 * one.value:.2f}" for one in found]
    assert rows[4][3:] == rows[5][3:] == ["NC", *["–"] * 6]


def test_means_over_models_leave_out_what_did_not_converge(three):
    """c answers as the others do, so that a mean over three would be the same: it is of two."""
    means = robustmq.table(three).lines()[6:]
    assert [row[:3] for row in means] == [["mean of 2", "fp32", "32"], ["mean of 2", "lsq", "4"]]
    both = [one.stacks["lsq_w4a4"].mnr.value for one in three[:2]]
    assert means[1][4] == f"{50 * sum(both):.2f}"
    assert len(robustmq.table([three[0], three[2]]).rows) == 4, "one model has no mean"


def test_the_csv_has_intervals_and_reasons(three):
    rows = list(csv.DictReader(io.StringIO(Robustness().printed(three, "csv", "robustmq"))))
    noise = three[0].system_noise.stacks["lsq_w4a4"]
    assert float(rows[1]["SR_low"]) == noise.mean_sr.ci95[0]
    assert rows[4]["clean"] == "" and "converged: false" in rows[4]["nc"]
    rows = list(csv.DictReader(io.StringIO(Robustness().printed(three, "csv", "conditions"))))
    (one,) = [row for row in rows if (row["model"], row["stack"], row["condition"])
              == ("a", "lsq_w4a4", "resize.pil-box")]  # fmt: skip
    assert float(one["SR"]) == noise.sr["resize.pil-box"].value
    assert {row["clean"] for row in rows if row["model"] == "c"} == {"NC"}


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_every_form_has_every_row(three, form):
    out = Robustness().printed(three, form, "robustmq").splitlines()
    assert len(out) == {"markdown": 10, "latex": 12}[form]
    assert sum(" NC " in line for line in out) == 2


def test_figures_stand_and_are_drawn_by_bit_width(three):
    """The stack in floating point stands beside every method."""
    made = robustmq.by_bits(three)
    rows = {tuple(row[:3]): row[3:] for row in made.rows}
    stacks = three[0].stacks
    expected = [stacks[side].mnr.value for side in reversed(STACKS)]
    assert made.titles == ["model", "method", "figure", "4 bits", "32 bits"]
    assert rows["a", "lsq", "mNR"] == expected
    assert rows["c", "lsq", "mNR"] == ["NC", "NC"]

    drawn = {panel.caption: panel.figure.data for panel in bit_widths(three[0]).panels}
    (line,) = drawn["lsq: corruptions (Figures 2 and 3)"]
    assert (list(line["x"]), list(line["y"])) == (["4", "32"], expected)
    assert len(drawn) == 3
    assert bit_widths(three[2]) is None


def test_the_built_in_suite_has_the_four_parts_of_robustmq():
    loaded = load_suite("robustmq")
    by = {}
    for one in loaded.series:
        by.setdefault(one.category, []).append(one)
    assert [len(rows) for rows in by.values()] == [3, 4, 4, 4, 5, 4]
    kinds = (*by["attacks"], *by["transfer"])
    assert set(loaded.spec.left_out_of_means) == {one.name for one in kinds}
    assert len(loaded.sequences) == 10
    assert len(list(loaded.noise.options())) == 14
    texts = [one.condition.text for one in loaded.conditions()]
    assert "fog:3,crop224" in texts and "pgd:l2,2,on=each,saved=float" in texts


def test_a_part_of_a_suite_can_be_taken_alone():
    attacked = load_suite("robustmq", ["transfer"])
    assert {one.category for one in attacked.series} == {"transfer"}
    assert attacked.sequences == () and attacked.noise is None
    rest = load_suite("robustmq", ["weather", "sequences", "system_noise"])
    assert [one.name for one in rest.series] == ["snow", "frost", "fog", "brightness"]
    assert len(rest.sequences) == 10 and rest.noise and rest.spec.left_out_of_means == []
    with pytest.raises(UserError, match=r"--only: unknown part 'fog'.*sequences"):
        load_suite("robustmq", ["fog"])


def test_chance_is_that_of_the_networks_classes(model):
    """10 points above 1 / classes; background classes are none."""
    task = simulator.load_card(model).task
    assert task.nc_below({}) == pytest.approx(1 / 3 + 0.1)
    assert task.nc_below({"y": (1, 10)}) == pytest.approx(0.2)
    assert task.nc_below({"y": (1, None)}) == pytest.approx(1 / 3 + 0.1)
