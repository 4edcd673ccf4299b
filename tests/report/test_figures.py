"""Figures show what the run holds, and a page of them is safe, small and whole."""

import base64
import gzip
import hashlib
import html
import json
import statistics
import string
from html.parser import HTMLParser

import made_runs
import numpy as np
import plotly.graph_objects as go
import pyarrow.parquet as pq
import pytest
from drawn import drawn
from hypothesis import given
from hypothesis import strategies as st
from made_results import notice
from made_runs import ms

from simulator.errors import RunError
from simulator.latency.reading import timed
from simulator.latency.sections import curves, distributions, inputs
from simulator.latency.times import NEVER, Times
from simulator.report import page, reading
from simulator.report.sections import style
from simulator.results.shared import Profile

HOSTILE = [
    "<img src=x onerror=alert(1)>.png", "</script><script>alert(1)</script>.png", "%{x}.png",
    '"><svg onload=alert(1)>.png', "<b>bold</b>.png", "{{ 7 * 7 }}.png", "a\nb\u202egnp.exe",
    "&lt;i&gt;.png",
]  # fmt: skip


def two(folder, rounds=6, **options):
    """A slow stack that is always right, and a fast one that is wrong once in four."""
    slow = ms(*[[10 + r, 12 + r, 14 + r, 16 + r] for r in range(rounds)])
    fast = ms(*[[5 + r, 6 + r, 7 + r, 8 + r] for r in range(rounds)])
    right = {"train": [True] * 4, "deploy": [True, True, True, False]}
    return made_runs.run(folder, {"train": slow, "deploy": fast}, right=right, **options)


def read(folder):
    """A run as reports read it."""
    return reading.read(folder)


def named(drawing, name, panel=0, **properties):
    """The traces of one stack that have these properties."""
    return [
        trace
        for trace in drawn(drawing.panels[panel]).data
        if name in (trace.legendgroup, trace.name)
        and all(trace[key] == value for key, value in properties.items())
    ]


def test_the_total_is_read_and_a_failed_sample_never_came(tmp_path):
    folder = made_runs.run(
        tmp_path / "run", {"deploy": ms([1, 2], [3, None], stages={"decode": 0.25, "infer": 0.75})}
    )

    found = read(folder)

    assert timed(found).times["deploy"].total.tolist() == [
        [1_000_000, 2_000_000],
        [3_000_000, NEVER],
    ]
    assert timed(found).megapixels.tolist() == [0.1875, 0.1875]


def test_a_total_that_was_logged_stands_for_itself_and_stacks_may_differ_in_rounds(tmp_path):
    """A device's log may have no stages: its total lies in a column of its own."""
    logged = Times(np.array([[7_000_000, 9_000_000]]), {}, "device.csv")
    times = {"train": ms([1, 2], [3, 4]), "deploy": logged}
    folder = made_runs.run(tmp_path / "run", times)

    found = timed(read(folder)).times

    assert found["train"].total.tolist() == [[1_000_000, 2_000_000], [3_000_000, 4_000_000]]
    assert found["deploy"].total.tolist() == [[7_000_000, 9_000_000]]
    assert "deploy (deploy_fp32)" in page.write(folder).read_text(encoding="utf-8")


def test_quality_rises_with_the_deadline_and_the_faster_stack_wins_early(tmp_path):
    """
    Two rounds: train takes 10 12 14 16 and 11 13 15 17 ms, deploy 5 6 7 8 and 6 7 8 9, and its
    slowest answer is wrong. At 12 ms train has 2 and 1 of 4 right, deploy 3 and 3: both have 3 at
    15 ms, and from 16 ms on train has more.
    """
    drawing = curves.quality(read(two(tmp_path / "run", rounds=2, deadlines=[12])))

    (line,) = named(drawing, "train (train_fp32)", showlegend=None)
    at = list(line.x).index(12)
    assert (line.y[at], *line.customdata[at]) == (0.375, 0.25, 0.5)
    marks = named(drawing, "deploy (deploy_fp32)", mode="markers")
    assert [(mark.x[0], mark.y[0], mark.marker.symbol) for mark in marks] == [
        (12, 0.75, "triangle-down")
    ]
    dotted = [t for t in drawn(drawing.panels[0]).data if t.line.dash == "dot"]
    assert [trace.y for trace in dotted] == [(1, 1), (0.75, 0.75)]
    (band,) = named(drawing, "train (train_fp32)", fill="toself")
    assert 0.25 in band.y and 0.5 in band.y
    early, late, deadline = drawn(drawing.panels[0]).layout.shapes
    assert (early.x0, early.x1, late.x0) == (5, 14, 16) and late.x1 > 17
    assert early.label.text == "deploy is better"
    assert (deadline.x0, deadline.label.text) == (12, "12ms")
    assert drawing.found[-2:] == [
        "In this run deploy has the higher mean for deadlines from 5.00 ms to 14.00 ms, by up to "
        "75.00 points.",
        "In this run train has the higher mean for deadlines from 16.00 ms on, by up to 25.00 "
        "points.",
    ]
    assert "8 latencies cannot carry p99; it needs 654 more" in " ".join(drawing.notes)


def test_a_run_that_judged_nothing_has_no_curve_of_quality(tmp_path):
    run = read(made_runs.run(tmp_path / "run", {"deploy": ms([1, 2])}))

    assert curves.quality(run) is None


def test_the_share_of_slower_answers_goes_from_all_to_one_in_n(tmp_path):
    """Ten answers of 1 to 10 ms: all take 1 ms or longer, half 6 ms, one in ten 10 ms."""
    times = ms([3, 1, 2, 5, 4], [10, 9, 8, 7, 6])
    drawing = distributions.latencies(read(made_runs.run(tmp_path / "run", {"deploy": times})))

    (line,) = named(drawing, "deploy (deploy_fp32)", mode="lines+markers")
    assert list(line.x) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert line.y == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert list(line.customdata[0]) == ["00001.jpg", 1]
    assert list(line.customdata[9]) == ["00000.jpg", 2]
    (outline,) = named(drawing, "deploy (deploy_fp32)", yaxis="y2")
    assert sum(outline.y) == pytest.approx(1)


def test_percentiles_lie_on_the_curve_with_their_intervals(tmp_path):
    """1,000 answers of 1 to 1,000 ms: LoadGen's p90 is the 901st of them, of rank 900 from 0."""
    times = ms(*np.arange(1, 1001).reshape(10, 100).tolist())
    run = read(made_runs.run(tmp_path / "run", {"deploy": times}))
    drawing = distributions.latencies(run)

    (marks,) = named(drawing, "deploy (deploy_fp32)", mode="markers")
    places = {
        row[0]: (x, round(y, 6))
        for row, x, y in zip(marks.customdata, marks.x, marks.y, strict=True)
    }
    assert places["p90"] == (901, 0.1) and places["p99"] == (991, 0.01)
    assert "p99.9" not in places
    assert "p99.9 (5,636 more)" in " ".join(drawing.notes)
    assert (marks.error_x.array > 0).all() and (marks.error_x.arrayminus > 0).all()


@given(n=st.integers(1, 10**7), most=st.integers(4, 3000))
def test_a_thinned_distribution_keeps_its_ends(n, most):
    ranks = distributions.thinned(n, most)

    assert len(ranks) <= most and (np.diff(ranks) > 0).all()
    assert (ranks[0], ranks[-1]) == (0, n - 1)
    assert n <= most or most < 1000 or ranks[-20:].tolist() == list(range(n - 20, n))


def test_stages_have_their_quartiles_and_ends(tmp_path):
    """101 answers of 0 to 100 ms and one that never came, a quarter of each decoding."""
    times = ms([*range(101), None], stages={"decode": 0.25, "infer": 0.75})
    drawing = distributions.stages(read(made_runs.run(tmp_path / "run", {"deploy": times})))

    (box,) = drawn(drawing.panels[0]).data
    assert list(box.y) == ["decode", "infer", "total"]
    assert [list(box[key]) for key in ("lowerfence", "q1", "median", "q3", "upperfence")] == [
        [0, 0, 0], [6.25, 18.75, 25], [12.5, 37.5, 50], [18.75, 56.25, 75], [25, 75, 100],
    ]  # fmt: skip


def test_the_percentiles_are_in_a_table_with_what_they_need(tmp_path):
    """Of 1 to 100 ms: sorted[50] is 51, sorted[90] is 91; a p99 needs 662 and a p99.9 6,636."""
    folder = made_runs.run(tmp_path / "run", {"deploy": ms(range(1, 101))})
    (table,) = distributions.latencies(read(folder)).tables

    rows = dict(table.rows)
    assert table.titles == ["percentile", "deploy (deploy_fp32)"]
    assert rows["p50"].startswith("51.00 (") and rows["p90"].startswith("91.00 (")
    assert (rows["p99"], rows["p99.9"]) == ("needs 562 more", "needs 6,536 more")


def test_rounds_have_their_medians_and_one_without_answers_has_no_point(tmp_path):
    times = ms([1, 5, 2], [None, None, None], [4, None, 8])
    drawing = curves.rounds(read(made_runs.run(tmp_path / "run", {"deploy": times})))

    (line,) = drawn(drawing.panels[0]).data
    assert (list(line.x), list(line.y)) == ([1, 3], [2, 6])
    assert drawing.notes == ["Rounds in which no sample was answered have no point."]


def test_points_lie_on_the_line_where_size_explains_all(tmp_path):
    """3 ms and 10 ms per megapixel."""
    sizes = [(1000, 1000), (1000, 2000), (2000, 2000)]
    times = ms([13, 23, 43], [13, 23, 43])
    names = ["a.jpg", "b.jpg", "c.jpg"]
    run = read(made_runs.run(tmp_path / "run", {"deploy": times}, sizes, names))
    points, line = drawn(inputs.size(run).panels[0]).data

    assert (list(points.x), list(points.y)) == ([1, 2, 4], [13, 23, 43])
    assert [list(row) for row in points.customdata][1] == ["b.jpg", "<br>1000 × 2000, "]
    assert line.x == pytest.approx([1, 4]) and line.y == pytest.approx([13, 43])
    assert "+10.00 ms per megapixel" in inputs.size(run).found[0]


def test_a_median_is_of_the_rounds_that_answered(tmp_path):
    run = read(made_runs.run(tmp_path / "run", {"deploy": ms([1, None], [3, None], [None, None])}))
    (points,) = drawn(inputs.size(run).panels[0]).data

    assert points.y[0] == 2 and np.isnan(points.y[1])
    assert "images that always failed and have no point: 1." in " ".join(inputs.size(run).notes)


def test_boxes_are_of_the_most_frequent_size_and_stand_in_order(tmp_path):
    """Sample 1 has another size; of the others sample 2 is the faster one."""
    rounds = [[20, 1, 4], [22, 1, 5], [30, 1, 6], [28, 1, 9], [21, 1, 11]]
    sizes = [(40, 30), (80, 60), (40, 30)]
    run = read(made_runs.run(tmp_path / "run", {"deploy": ms(*rounds)}, sizes))
    drawing = inputs.equal_size(run)

    box, told = drawn(drawing.panels[0]).data
    assert list(drawing.numbered) == ["00002.jpg", "00000.jpg"]
    slow = [20, 21, 22, 28, 30]
    q1, middle, q3 = statistics.quantiles(slow, n=4, method="inclusive")
    found = [box[key][1] for key in ("lowerfence", "q1", "median", "q3", "upperfence")]
    assert found == pytest.approx([20, q1, middle, q3, 30])
    assert told.customdata[1][0] == "00000.jpg"


def test_the_heat_map_is_that_of_the_summary(tmp_path):
    folder = two(tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    drawing = inputs.divergence(read(folder))

    heat = drawn(drawing.panels[1]).data[0]
    assert heat.z.tolist() == summary["inputs"]["deploy"]["instances"]["rjsd"]
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert list(heat.customdata[1][0]) == ["00000.jpg", "00001.jpg"]


def test_many_samples_are_thinned_out_and_the_page_says_so(tmp_path):
    """12,000 samples of two stacks: 2,500 points each, and 2,000 of the 12,000 latencies."""
    rng = np.random.default_rng(0)
    n = 12_000
    sizes = [(w, 100) for w in rng.integers(100, 200, n)]
    times = {s: ms(rng.lognormal(2, 0.3, n), rng.lognormal(2, 0.3, n)) for s in ("a", "b")}
    folder = made_runs.run(tmp_path / "run", times, sizes)
    run = read(folder)

    size = inputs.size(run)
    points = [t for t in drawn(size.panels[0]).data if t.mode == "markers"]
    assert [len(trace.x) for trace in points] == [2500, 2500]
    slowest = float(np.median(timed(run).times["a"].total, axis=0).max()) / 1e6
    assert max(points[0].y) == pytest.approx(slowest)
    assert "2,500 of 12,000 images are drawn" in " ".join(size.notes)
    latency = distributions.latencies(run)
    curve = named(latency, "a (a_fp32)", mode="lines", yaxis=None)[0]
    assert len(curve.x) <= 2000 and curve.x[-1] == timed(run).times["a"].total.max() / 1e6
    assert "of 24,000 latencies" in " ".join(latency.notes)
    assert page.write(folder).stat().st_size < 8_000_000


def recorded(folder):
    """A device's log has no stages."""
    times = Times(np.array([[7_000_000, 9_000_000]] * 40), {}, "device.csv (sha256 12)")
    return made_runs.run(folder, {"deploy": times})


def lost(folder):
    """All that can be null is."""
    folder = two(folder, rounds=20, deadlines=[9])
    place = folder / "summary.json"
    summary = json.loads(place.read_text())
    for row in summary["percentiles"]["deploy"].values():
        row |= {"ms": None, "ci95": None, "early_stopping_ms": None}
    for row in summary["latency_ms"]["deploy"].values():
        row.update(dict.fromkeys(row))
    for found in summary["tail"].values():
        found["quality"] = None
        found["curve"]["mean"][0] = found["curve"]["best"][0] = None
        found["thresholds"]["9ms"] |= dict.fromkeys(("best", "worst", "mean", "late"))
        found["thresholds"]["90"] = None
    place.write_text(json.dumps(summary))
    return folder


def of(*rounds, **options):
    """A run of one stack."""
    return lambda folder: made_runs.run(folder, {"deploy": ms(*rounds)}, **options)


def nine(folder):
    """More stacks than there are colors."""
    each = range(6)
    times = {f"stack{i}": ms(*[[i + 1, 9 + r] for r in each]) for i in range(9)}
    return made_runs.run(folder, times)


DEGENERATE = {
    "one sample, one round": of([5]),
    "one sample, many rounds": of(*[[5 + r] for r in range(9)]),
    "constant": of(*[[5, 5, 5]] * 9, right={"deploy": [True] * 3}),
    "nothing takes time": of(*[[0, 0]] * 30),
    "outliers": of(*[[1e-6, 5, 5, 5, 5, 5, 1e4]] * 9),
    "one fails": of(*[[5, None]] * 6, right={"deploy": [True] * 2}),
    "all fail": of([None, None]),
    "recorded": recorded,
    "nulls": lost,
    "nine stacks": nine,
    "tail": lambda folder: two(folder, rounds=20, deadlines=[9, 12.5]),
}


@pytest.mark.parametrize("kind", DEGENERATE)
def test_any_run_has_a_page(tmp_path, kind):
    folder = DEGENERATE[kind](tmp_path / "run")
    text = page.write(folder).read_text(encoding="utf-8")

    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "NaN" not in json.dumps(Page.of(text).figures)
    assert text == page.html(reading.read(folder))


def test_where_nothing_was_answered_the_page_says_so(tmp_path):
    drawings = page.sections_of(reading.read(DEGENERATE["all fail"](tmp_path / "run")))

    assert [one.key for one in drawings if one.panels] == []


class Page(HTMLParser):
    """The elements of a page, its scripts and its figures."""

    def __init__(self):
        super().__init__()
        self.elements, self.scripts, self.data, self._inside = [], [], "", None
        self.charts = ""

    @classmethod
    def of(cls, text):
        found = cls()
        found.feed(text)
        found.figures = json.loads(found.data)["figures"]
        for one in found.figures:
            go.Figure(one)  # raises where plotly.js would leave something out
        return found

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = (tag, dict(attributes).get("type"))
        if self._inside == ("script", None):
            self.scripts.append("")

    def handle_data(self, data):
        if self._inside == ("script", None):
            self.scripts[-1] += data
        elif self._inside == ("script", "application/json"):
            self.data += data
        elif self.elements and self.elements[-1][1].get("id") == "charts":
            self.charts += data

    def handle_endtag(self, tag):
        self._inside = None


def hostile(folder):
    """Names of samples, stacks and of the model that try to be more than names."""
    names = [*HOSTILE, *(f"{at}.png" for at in range(4))]
    n = len(names)
    sides = ("<img src=x onerror=alert(2)>", "%{y}</script>")
    times = {side: ms(*[[5 + r + at for at in range(n)] for r in range(6)]) for side in sides}
    sizes = [(400, 300)] * (n - 4) + [(at * 100, 300) for at in range(1, 5)]
    right = {side: [True] * n for side in sides}
    return made_runs.run(
        folder, times, sizes, names, right, deadlines=[12],
        model="<script>alert(3)</script>", warnings=[notice("</ul><img src=x onerror=alert(4)>")],
    )  # fmt: skip


def test_names_are_data(tmp_path):
    found = Page.of(page.write(hostile(tmp_path / "run")).read_text(encoding="utf-8"))

    tags = [tag for tag, _ in found.elements]
    assert tags.count("script") == 5 and not {"img", "svg", "b"} & set(tags)
    assert not [a for _, attributes in found.elements for a in attributes if a.startswith("on")]


def test_nothing_is_fetched_and_no_other_script_may_run(tmp_path):
    found = Page.of(page.write(two(tmp_path / "run")).read_text(encoding="utf-8"))

    places = [a[key] for _, a in found.elements for key in ("src", "href") if key in a]
    assert places and all(place.startswith("#") for place in places)
    assert not [tag for tag, _ in found.elements if tag in ("link", "iframe", "base", "object")]
    policy = next(a["content"] for _, a in found.elements if a.get("http-equiv"))
    for script in found.scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    packed = gzip.decompress(base64.b64decode(found.charts))
    assert f"'sha256-{base64.b64encode(hashlib.sha256(packed).digest()).decode()}'" in policy
    assert policy.count("'sha256-") == 3
    assert len(found.scripts) == 2 and "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.partition("style-src")[0]


@given(st.text(alphabet=string.printable + "éß日本<>&%{}", max_size=60))
def test_text_for_plotly_is_read_as_it_is_written(name):
    found = style.text(name)

    assert "<" not in found and "%{" not in found
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    assert html.unescape(found) == shown


def test_long_names_lose_their_middle():
    assert style.text("a" * 80 + "b" * 80, 20) == "a" * 10 + "…" + "b" * 9


def test_no_two_of_many_stacks_look_alike():
    many = style.looks({f"s{i}": Profile(profile=f"s{i}") for i in range(24)}).values()

    for kind in ("dash", "symbol", "hatch"):
        assert len({(look.color, getattr(look, kind)) for look in many}) == 24


@given(st.integers(1, 10**6))
def test_an_axis_of_whole_numbers_has_whole_ticks_and_few(n):
    step = style.counting(n)["dtick"]

    assert isinstance(step, int) and n / step <= 10 and (step == 1 or n / step > 3)


def interrupted(folder):
    two(folder)
    (folder / "manifest.json").write_text('{"status": "interrupted"}')


def half_a_summary(folder):
    two(folder)
    (folder / "summary.json").write_text('{"samples": 1}')


def damaged(folder):
    two(folder)
    (folder / "latencies.parquet").write_bytes(b"PAR1")


def of_other_samples(folder):
    two(folder)
    table = made_runs.latencies({"train": ms([1])}, ["elsewhere.jpg"])
    pq.write_table(table, folder / "latencies.parquet")


def without_samples(folder):
    two(folder)
    (folder / "samples.parquet").unlink()


def not_writable(folder):
    two(folder)
    (folder / "report.html").mkdir()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, "not a run"),
        (interrupted, "the run is interrupted, not complete"),
        (half_a_summary, "command: None is no experiment that is installed here"),
        (damaged, "a damaged run"),
        (of_other_samples, "a damaged run"),
        (without_samples, "a damaged run"),
        (not_writable, "cannot be written"),
    ],
)
def test_what_is_no_finished_run_of_rounds_is_refused(tmp_path, make, message):
    make(tmp_path / "run")
    with pytest.raises(RunError, match=message) as found:
        page.write(tmp_path / "run")

    assert str(tmp_path / "run") in str(found.value)
