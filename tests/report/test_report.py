"""The page of a run says what the run holds: each figure against its own count by hand."""

import base64
import gzip
import html
import io
import json
import math
import re
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from command_lines import COMMANDS
from drawn import drawn
from made_pairs import blamed, effect, explained, pair
from pyarrow import csv
from rich.console import Console
from scipy import stats
from test_looks_section import entry, png

from simulator import cli
from simulator.cache import VARIABLE
from simulator.experiments.compare import flips
from simulator.experiments.compare import report as compare
from simulator.experiments.explain import report as explain
from simulator.experiments.sweep import report as sweep
from simulator.experiments.worst import report as worst
from simulator.report import page, reading
from simulator.report.rendering import shown
from simulator.report.sections import provenance, stacks
from simulator.report.sections.head import head
from simulator.report.sections.section import Badge
from simulator.tasks.classification import sections as classified

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


LABELS = [0, 0, 0, 1, 1, 1, 2, 2]
TRAIN = [0, 0, 0, 1, 1, 0, 2, 1]
DEPLOY = [0, 1, 1, 1, 0, 1, 2, 0]
"""Images 1, 2 and 4 become wrong, 5 becomes right, 7 goes from one wrong class to another."""


def eight(folder, margins=None, **summary):
    """A run of eight images of three classes."""
    return pair(folder, TRAIN, DEPLOY, LABELS, margins, summary=summary)


def words(folder):
    """The text of a page, without its markup and its scripts."""
    text = page.write(folder).read_text(encoding="utf-8")
    body = text[text.index("<body>") : text.index('<script type="application/json"')]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_the_first_lines_ask_answer_and_judge_in_a_sentence_each(tmp_path):
    """
    Bonett and Price 2012, by hand: of 8 pairs 3 are lost and 1 is won, so the shares are 4/10 and
    2/10; -0.2 ± 1.959964 sqrt((0.4 + 0.2 - 0.04) / 10) is -66.38 to 26.38 points.
    """
    rule = {"rule": "flip_rate > 1%", "failed": True, "reason": None, "value": 0.625,
            "limit": 0.01, "unit": "share"}  # fmt: skip
    folder = eight(tmp_path / "run", gate={"passed": False, "rules": [rule]})
    found = head(reading.read(folder))

    low, high = stats.binomtest(5, 8).proportion_ci(method="exact")
    assert found.question == "What does colors lose when it moves from train_fp32 to deploy_fp32?"
    assert found.answers == [
        f"5 of 8 answers change: 62.50% (95 % interval {low:.2%} to {high:.2%}).",
        "top-1 goes from 75.00% to 50.00%, -25.00 points (95 % interval -66.38 to +26.38), which "
        "chance may explain.",
        "Next: simulate explain --limit 8",
    ]
    assert found.gate == Badge("NOT OK", "bad")
    assert found.rules == ["flip_rate > 1%: failed; got 62.5 %"]


def test_the_figures_of_a_pair_are_seen_first_and_what_is_not_known_leaves_no_hole(tmp_path):
    """Eight samples carry no p90, and chance may explain a loss of two answers of eight."""
    found = head(reading.read(eight(tmp_path / "few"))).figures
    n = 200
    folder = pair(tmp_path / "many", [0] * n, [1] * 150 + [0] * 50, [0] * n)
    many = head(reading.read(folder)).figures
    unknown = head(reading.read(pair(tmp_path / "unlabelled", [0] * 4, [1] * 4))).figures

    assert [(one.name, one.value, one.more, one.kind) for one in found] == [
        ("answers changed", "5 of 8", "62.50%", ""),
        ("top-1", "75.00% → 50.00%", "-25.00 points", ""),
    ]
    assert [(one.name, one.value, one.more, one.kind) for one in many] == [
        ("answers changed", "150 of 200", "75.00%", ""),
        ("top-1", "100.00% → 25.00%", "-75.00 points", "bad"),
        ("p90 latency", "2.00 → 2.00 ms", "1.00 times", ""),
    ]
    assert [one.name for one in unknown] == ["answers changed"]
    text = page.write(folder).read_text(encoding="utf-8")
    assert text.index('class="tiles"') < text.index('id="stacks"')


def test_flips_are_counted_by_class_and_kind(tmp_path):
    """Of class 0 two of three are lost; of class 1 one is lost, one won; of class 2 one moves."""
    drawing = classified.classes(reading.read(eight(tmp_path / "run")))

    bars = drawn(drawing.panels[0]).data
    assert {bar.name: dict(zip(bar.y, bar.x, strict=True)) for bar in bars} == {
        "right→wrong": {"red (0)": 2, "green (1)": 1, "blue (2)": 0},
        "wrong→right": {"red (0)": 0, "green (1)": 1, "blue (2)": 0},
        "wrong→other": {"red (0)": 0, "green (1)": 0, "blue (2)": 1},
    }
    assert list(bars[0].y) == ["red (0)", "green (1)", "blue (2)"]
    assert [list(bar.customdata) for bar in bars] == [[3, 3, 2]] * 3
    assert drawn(drawing.panels[0]).layout.showlegend


def test_the_confusion_that_changed_is_counted(tmp_path):
    (table,) = classified.classes(reading.read(eight(tmp_path / "run"))).tables

    assert table.rows[0] == ["red", "red", "green", "2"]
    assert sorted(table.rows[1:]) == [
        ["blue", "green", "red", "1"],
        ["green", "green", "red", "1"],
        ["green", "red", "green", "1"],
    ]


def test_the_answer_in_numbers_has_the_metrics_and_the_kinds(tmp_path):
    section = compare.answer(reading.read(eight(tmp_path / "run")))
    (metrics,) = section.tables

    assert metrics.lines() == [["top-1", "75.00", "50.00", "-25.00", "-66.38 to +26.38", "0.62"]]
    assert section.found[0].startswith("flips: 5 of 8: 62.50%")
    assert section.found[1] == "right→wrong 3, wrong→right 1, wrong→other 1"


def test_calibration_has_bins_of_as_many_images_with_wilson_intervals(tmp_path):
    """Twenty margins 0.00 to 0.95, and flips at 0.00 0.05 0.10 0.20 and 0.75: two images a bin."""
    order = np.random.default_rng(0).permutation(20)
    flipped = {0, 1, 2, 4, 15}
    train, deploy = [0] * 20, [int(at in flipped) for at in order]
    folder = pair(tmp_path / "run", train, deploy, [0] * 20, (order / 20).tolist())
    drawing = classified.calibration(reading.read(folder))

    (curve,) = drawn(drawing.panels[0]).data
    counts = [2, 1, 1, 0, 0, 0, 0, 1, 0, 0]
    assert [list(row[2:]) for row in curve.customdata] == [[k, 2] for k in counts]
    assert list(curve.y) == [k / 2 for k in counts]
    assert curve.x == pytest.approx([0.025 + 0.1 * at for at in range(10)])
    for k, y, up, down in zip(
        counts, curve.y, curve.error_y.array, curve.error_y.arrayminus, strict=True
    ):
        wilson = stats.binomtest(k, 2).proportion_ci(method="wilson")
        assert (y - down, y + up) == pytest.approx((wilson.low, wilson.high))
    assert drawing.found == ["4 of 5 flips are in the half with the smaller margins."]
    assert "10 bins of 2 images" in drawing.notes[0]


BLAME = blamed(
    ["decoder", "color", "resize"],
    [-0.01, 0.0025, -0.0425],
    [effect(-0.02, -0.03, 0.01, 0.2), effect(-0.03, -0.04, -0.02, 0.049), effect(0, 0, 0, 0.05)],
    {
        ("resize", "decoder"): effect(-0.01, -0.02, -0.005, 0.01),
        ("decoder", "color"): effect(0.0025, -0.01, 0.01, 0.9),
        ("color", "resize"): effect(0.0),
    },
    -0.05,
)
"""In points: steps of -1, +0.25 and -4.25 are -5 in all; only color's share is more than chance."""


@pytest.fixture
def explanation(tmp_path):
    axes = ["decoder", "color", "resize"]
    return reading.read(explained(tmp_path / "run", axes, {"top1": BLAME}))


def bars(table, column):
    """The bars of a column: the value, where it begins and how wide it is, good or bad, filled."""
    found = [row[column] for row in shown(table)]
    return [(one.words, *one.bar, one.kind, one.clear) for one in found]


def test_the_waterfall_sums_to_the_total(explanation):
    """From 0 to -1, to -0.75, to -5 and in all -5: of 5 points wide, 0 is at the right."""
    _, waterfall, _ = explain.sections(explanation)

    assert [row[0] for row in waterfall.tables[0].rows] == ["decoder", "color", "resize", "in all"]
    assert bars(waterfall.tables[0], 1) == [
        ("-1.00", 80, 20, "bad", True), ("+0.25", 80, 5, "good", True),
        ("-4.25", 0, 85, "bad", True), ("-5.00", 0, 100, "bad", True),
    ]  # fmt: skip


def test_only_shares_that_are_more_than_chance_are_filled(explanation):
    """0.049 is below 5 %, 0.05 and 0.2 are not; the intervals reach from -4 to 1 point."""
    shares, _, _ = explain.sections(explanation)
    table = shares.tables[0]

    assert bars(table, 4) == [
        ("-2.00", 40, 40, "bad", False), ("-3.00", 20, 60, "bad", True),
        ("+0.00", 80, 0, "", False),
    ]  # fmt: skip
    assert [row[4].interval for row in shown(table)] == [(20, 80), (0, 40), (80, 0)]
    assert table.marked == {1}
    assert table.lines()[1][-3:] == ["-3.00", "-4.00 to -2.00", "0.049"]


def test_the_matrix_has_each_pair_in_its_cell(explanation):
    _, _, interactions = explain.sections(explanation)
    table = interactions.tables[0]

    assert table.titles[1:] == ["decoder", "color"]
    assert table.lines() == [["color", "+0.25", ""], ["resize", "-1.00", "+0.00"]]
    heat = [[getattr(one, "heat", None) for one in row[1:]] for row in shown(table)]
    assert heat == [[0.25, None], [1, 0]]
    assert interactions.found == ["top-1: resize and decoder: -1.00 beyond the sum of each alone."]


def test_steps_and_shares_of_a_real_run_sum_to_its_total(runs):
    """Red and blue trade places: 8 of 12 images flip, and all of them become wrong."""
    shares, waterfall, _ = explain.sections(reading.read(runs("explain")[0]))

    for at, total in enumerate((2 / 3, -2 / 3)):
        steps = [row[1].value for row in waterfall.tables[at].rows]
        assert (sum(steps[:-1]), steps[-1]) == pytest.approx((total, total))
        assert sum(row[4].value for row in shares.tables[at].rows) == pytest.approx(total)


@pytest.mark.parametrize("name", ["run", "explain"])
def test_differing_axes_are_marked_and_every_stack_has_its_evidence(runs, name):
    section = stacks.stacks(reading.read(runs(name)[0]))
    table, same, sources = section.tables

    marked = {table.rows[at][0] for at in table.marked}
    assert {row[0] for row in table.rows} == marked == {row[0] for row in sources.rows}
    assert not marked & {row[0] for row in same.rows} and same.folded and sources.folded
    assert marked == {"color", "resize"} | ({"decoder"} if name == "explain" else set())
    assert all(isinstance(cell[-1], Badge) for row in table.rows for cell in row[1:])


def test_evidence_is_the_same_on_screen_and_page(runs):
    """The profile says nothing of resize: Pillow ran, which says nothing of the device."""
    run = reading.read(runs("run of another profile")[0])
    _, _, sources = stacks.stacks(run).tables
    page_says = {(axis, side): badge.word for axis, side, badge, _ in sources.rows}
    with io.StringIO() as printed:
        compare.show(run.summary, "here", Console(file=printed, width=400))
        screen = printed.getvalue()

    lines = screen.splitlines()
    for axis in run.summary.axes:
        at = next(n for n, line in enumerate(lines) if line.split()[:2] == [axis.axis, "train"])
        for line, side in zip(lines[at:], ("train", "deploy"), strict=False):
            assert side in line.split()[:2]
            assert line.rstrip().endswith(f"({page_says[axis.axis, side]})")
    assert "not claimed" in page_says.values()


def test_what_is_assumed_is_seen(runs):
    run = reading.read(runs("run of another profile")[0])
    kinds = {
        axis: one["evidence"] for axis, one in run.manifest["stacks"]["deploy"]["axes"].items()
    }
    assumed = [axis for axis, kind in kinds.items() if kind == "assumed"]
    text = page.write(run.folder).read_text(encoding="utf-8")

    assert assumed and f"Assumed, no source was found: {', '.join(assumed)} of deploy." in text
    for kind in {*kinds.values()}:
        assert f'<span class="badge {kind}">{kind}</span>' in text


def test_what_is_assumed_of_a_suites_options_is_seen(runs):
    """Options have no column of their own."""
    run = reading.read(runs("sweep")[0])
    axes = run.manifest.stacks["color/bgr"].axes
    axes["color"] = axes["color"].model_copy(update={"evidence": "assumed"})

    assert stacks.stacks(run).found == ["Assumed, no source was found: color of color/bgr."]


def test_a_swap_that_changes_nothing_is_called_so(tmp_path):
    own = {"values": {}, "evidence": "native", "source": "here", "claimed": True}
    sides = {"train": own, "deploy": own}
    none = {"axis": "decoder", "effect": {"samples": 32, "null": True}, **sides}
    some = {"axis": "resize", "effect": {"samples": 32, "null": False, "values_changed": 0.25,
                                         "mean": 1.234, "max": 30.0}, **sides}  # fmt: skip
    found = stacks.stacks(reading.read(eight(tmp_path / "run", axes=[none, some]))).notes

    assert found[:2] == [
        "decoder swapped alone: null: 0 pixels changed in 32 images.",
        "resize swapped alone: 25% of values, mean 1.23, max 30 levels.",
    ]


def test_what_an_option_loses_is_drawn(runs):
    """Of red, green and blue, two thirds are lost where red and blue trade places."""
    run = reading.read(runs("sweep")[0])
    (table,) = sweep.sections(run).tables

    assert {row[0]: row[2].value for row in table.rows} == pytest.approx(
        {"resize/nearest": 0, "color/bgr": -2 / 3}
    )
    assert [row[0] for row in table.rows if row[2].clear] == ["color/bgr"]
    assert head(run).answers[0].startswith("The worst is color/bgr: -66.67 points")


def test_the_way_down_is_drawn(runs):
    run = reading.read(runs("worst")[0])
    (table,) = worst.sections(run).tables

    assert [row[2].value for row in table.rows] == pytest.approx([1, 1 / 3, 1 / 3])
    for column in (4, 5):  # of the step, and alone
        assert [row[column] for row in table.rows[1:]] == pytest.approx([-2 / 3, 0])
    (panel,) = worst.sections(run).panels
    assert panel.figure.data[0]["y"] == pytest.approx([1, 1 / 3, 1 / 3])
    assert [row[1] for row in table.rows][:2] == ["the trained stack", "color/bgr"]
    assert table.marked == {1} and head(run).answers[0].startswith(
        "-66.67 points of top-1 by color/bgr"
    )


@pytest.mark.parametrize("name", ["run, detection", "run, segmentation"])
def test_worst_flips_are_shown_with_what_changed(runs, name):
    """Of the four scenes two have squares of red or blue, which trade places."""
    found = next(flips.worst(reading.read(runs(name)[0])))

    assert [picture.words.partition(":")[0] for picture in found.pictures] == [
        row[0] for row in found.tables[0].rows
    ]
    assert {row[0] for row in found.tables[0].rows} == {"00a.jpg", "00c.jpg"}
    changed = {"run, detection": r"objects changed 2 of [23], of these 2 relabelled",
               "run, segmentation": r"pixels changed .+%, of these at boundaries .+%"}  # fmt: skip
    for picture in found.pictures:
        assert re.fullmatch(rf"00[ac]\.jpg: {changed[name]}", picture.words)
        assert picture.data.startswith(b"\xff\xd8")


def in_a_shell(command):
    """The words that a shell makes of a command line."""
    script = f'simulate() {{ printf "%s\\0" "$@"; }}\n{command}\n'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_on_the_page_asks_for_the_same(runs, name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    folder, _ = runs(name)
    command = provenance.command(reading.read(folder))
    shown = html.escape(command, quote=False).replace("'", "&#39;")
    assert shown in (folder / "report.html").read_text(encoding="utf-8")

    code = cli.main([*in_a_shell(command), "--out", str(tmp_path / "again"), "--json"])

    assert code == (1 if name == "run" else 0) and capsys.readouterr().out
    again = tmp_path / "again" / ("colors" if name == "sweep" else "")
    old, new = (
        json.loads((one / "manifest.json").read_text(encoding="utf-8"))["request"]
        for one in (folder, again)
    )
    assert new == old


def test_the_command_keeps_names_that_a_shell_would_read(tmp_path):
    data = 'it\'s $HOME; `rm -rf` "x" \\ *\nüñ'
    folder = eight(tmp_path / "run")
    run = reading.read(folder)
    run.manifest.request.arguments.clear()
    run.manifest.request.arguments.update({"data": data, "strict": True, "limit": None})

    assert in_a_shell(provenance.command(run)) == ["--data", data, "--strict"]


def test_the_records_are_the_rows_of_the_run_and_lists_become_json(runs):
    """Read by pyarrow, as the file that the page offers."""
    run = reading.read(runs("run, detection")[0])
    read = csv.read_csv(
        io.BytesIO(gzip.decompress(base64.b64decode(provenance.records(run)))),
        convert_options=csv.ConvertOptions(
            column_types={
                field.name: pa.string() if pa.types.is_nested(field.type) else field.type
                for field in run.records.schema
            },
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )

    nested = [field.name for field in run.records.schema if pa.types.is_nested(field.type)]
    assert nested and read.column_names == run.records.column_names
    for name in read.column_names:
        found, kept = read[name].to_pylist(), run.records[name].to_pylist()
        if name in nested:
            found = [None if one is None else json.loads(one) for one in found]
        assert found == json.loads(json.dumps(kept)), name


OUTSIDE = ["../../etc/passwd", "/etc/passwd", "link.png", "x" * 4000, "a\0b", "circle.png", "."]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_that_is_not_in_the_run_is_not_shown(tmp_path, name):
    (tmp_path / "secret.png").write_bytes(PNG)
    folder = eight(tmp_path / "run")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "circle.png").symlink_to(folder / "circle.png")
    place = folder / "summary.json"
    summary = json.loads(place.read_text())
    for flip in summary["worst_flips"]:
        flip["preview"] = name
    place.write_text(json.dumps(summary))

    assert next(flips.worst(reading.read(folder))).pictures == []
    text = page.write(folder).read_text(encoding="utf-8")
    assert "<img" not in text.partition('<script type="application/json"')[0]


def test_pictures_of_the_run_are_shown_up_to_a_budget(tmp_path, monkeypatch):
    """The second picture is too large, the third one fits again; base64 takes a third more."""
    folder = eight(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    for at, (flip, size) in enumerate(zip(summary["worst_flips"], (100, 400, 80), strict=False)):
        flip["preview"] = f"{at}.png"
        (folder / flip["preview"]).write_bytes(PNG + b"\0" * (size - len(PNG)))
    (folder / "summary.json").write_text(json.dumps(summary))
    monkeypatch.setattr(flips, "PICTURES", 270)
    found = next(flips.worst(reading.read(folder)))

    assert [len(one.data) for one in found.pictures] == [100, 80]
    assert found.notes == ["1 more picture in the run's folder."]


def test_without_labels_changes_are_not_called_right_or_wrong(runs, tmp_path):
    """All four are red, and become blue."""
    text = words(runs("run without labels")[0])
    made = reading.read(pair(tmp_path / "run", [0, 0, 1], [0, 1, 0]))

    assert "4 of 4 answers change: 100.00%" in text and "top-1 goes" not in text
    assert "right→wrong" not in text
    (bars,) = drawn(classified.classes(made).panels[0]).data
    assert bars.name == "changed, without a label"
    assert dict(zip(bars.y, bars.x, strict=True)) == {"red (0)": 1, "green (1)": 1}


def test_where_no_answer_changed_the_page_says_so(tmp_path):
    text = words(pair(tmp_path / "run", [0, 1], [0, 1], [0, 1]))

    assert text.count("No answer changed.") == 3 and "0 of 2 answers change: 0.00%" in text
    assert "top-1 stays at 100.00% (95 % interval" in text
    assert "There is nothing to draw" not in text


def test_what_could_not_be_worked_out_is_a_dash(tmp_path):
    """NaN becomes null in a run's JSON; the page has neither."""
    nothing = effect(math.nan, math.nan, math.nan, math.nan)
    figures = blamed(["color", "resize"], [math.nan] * 2, [nothing] * 2,
                     {("color", "resize"): nothing}, math.nan)  # fmt: skip
    folder = explained(tmp_path / "explain", ["color", "resize"], {"top1": figures})
    changed = {
        "delta": {"top1": {"value": math.nan, "ci95": [math.nan] * 2, "p": math.nan}},
        "train": {"profile": "a", "overrides": [], "effective": {}, "metric": {"top1": math.nan}},
        "deploy": {"profile": "b", "overrides": [], "effective": {}, "metric": {"top1": math.nan}},
    }
    texts = [words(folder), words(eight(tmp_path / "pair", [math.nan] * 8, **changed))]

    assert "color has the largest share: – points, no more than chance explains" in texts[0]
    assert "top-1 goes from – to –, – points." in texts[1]
    for text in texts:
        assert not re.search(r"\bnan\b|None|null\b", text), text


def test_nothing_to_blame_is_said(tmp_path):
    text = words(explained(tmp_path / "run", ["color", "resize"], {}))

    assert text.count("Nothing was measured that an axis could be blamed for.") >= 2


@pytest.mark.parametrize(
    ("n", "labels", "classes"),
    [(1, None, ["red"]), (1, [0], ["red"]), (2, [5, 5], ["", "\n"]), (3, [0, None, 1], ["", ""])],
)
def test_any_pair_has_a_page(tmp_path, n, labels, classes):
    """One image, classes without a name, without images or unknown to the card, some labels."""
    folder = pair(tmp_path / "run", list(range(n)), [0] * n, labels, classes=classes)

    assert f"of {n} answers change" in words(folder)


def test_fifty_thousand_samples_fit_a_page(tmp_path):
    """A thousand classes, one answer in ten changes, and digests that no compression shortens."""
    rng = np.random.default_rng(0)
    n = 50_000
    labels = rng.integers(0, 1000, n)
    train = np.where(rng.random(n) < 0.8, labels, rng.integers(0, 1000, n))
    deploy = np.where(rng.random(n) < 0.1, rng.integers(0, 1000, n), train)
    digests = [rng.bytes(32).hex() for _ in range(2 * n)]
    names = [f"n{label:08d}/ILSVRC2012_val_{at:08d}.JPEG" for at, label in enumerate(labels)]
    folder = pair(
        tmp_path / "run", train.tolist(), deploy.tolist(), labels.tolist(),
        rng.random(n).tolist(), names, [f"class {at}" for at in range(1000)], digests,
    )  # fmt: skip
    run = reading.read(folder)

    assert page.write(folder).stat().st_size < 6_000_000
    counted = pc.sum(pc.not_equal(pa.array(train), pa.array(deploy))).as_py()
    assert f"{counted:,} of 50,000 answers change" in head(run).answers[0]
    assert len(drawn(classified.classes(run).panels[0]).data[0].y) == 25


def test_a_page_is_under_its_size_whatever_is_too_large_for_it(tmp_path):
    """Pictures, networks' inputs and records that no compression shortens, each of 12 MB."""
    rng, n = np.random.default_rng(0), 14_000
    looked = [entry(**{key: f"looks/{at}{key}.png" for key in ("picture", "train", "deploy")},
                    axes={}) for at in range(6)]  # fmt: skip
    folder = pair(
        tmp_path / "run", [0] * n, [1] * n, [0] * n, rng.random(n).tolist(),
        digests=[rng.bytes(32).hex() for _ in range(2 * n)], summary={"pictures": looked},
    )  # fmt: skip
    (folder / "looks").mkdir()
    for one in looked:
        for key in ("picture", "train", "deploy"):
            (folder / one[key]).write_bytes(png(rng.integers(0, 256, (460, 460, 3), np.uint8)))
    summary = json.loads((folder / "summary.json").read_text())
    for at, flip in enumerate(summary["worst_flips"]):
        flip["preview"] = f"{at}.png"
        (folder / flip["preview"]).write_bytes(PNG + rng.bytes(1_200_000))
    (folder / "summary.json").write_text(json.dumps(summary))
    written = page.write(folder)

    assert written.stat().st_size < 6_000_000
    shown = words(folder)
    assert "10 more pictures in the run's folder." in shown and "0 of 6 images are shown" in shown


def test_records_too_large_for_a_page_stay_in_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "RECORDS", 10)
    text = page.write(eight(tmp_path / "run")).read_text(encoding="utf-8")

    assert "they are in records.parquet" in text and 'id="records"' not in text


def test_no_two_places_of_a_page_have_one_name(tmp_path):
    """Else the script would read a section in place of the charts."""
    text = page.write(eight(tmp_path / "run")).read_text(encoding="utf-8")
    names = re.findall(r'<(?:section|script|main|button)[^>]* id="([^"]+)"', text)

    assert "drawings" in names and len(names) == len({*names})
