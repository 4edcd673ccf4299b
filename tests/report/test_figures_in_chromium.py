"""The page of figures in a real browser: drawn, quiet, and deaf to what names say."""

import made_runs
import pytest
from made_runs import ms
from test_figures import DEGENERATE, HOSTILE, hostile, two

from simulator.report import page

pytestmark = pytest.mark.prove

ODD = [
    "one sample, one round", "nothing takes time", "outliers", "all fail", "recorded", "nulls",
    "nine stacks",
]  # fmt: skip
"""Runs that differ in what there is to draw; the other tests open ordinary ones."""


def hovered(tab, figure, trace, point):
    """What is shown beside a point."""
    tab.evaluate(
        """([at, curveNumber, pointNumber]) => {
            const place = document.querySelector(`[data-figure="${at}"]`);
            place.querySelectorAll(".hovertext").forEach((old) => old.remove());
            Plotly.Fx.hover(place, [{ curveNumber, pointNumber }]);
        }""",
        [figure, trace, point],
    )
    return beside(tab, figure)


def beside(tab, figure):
    """What is shown beside the mouse; there is something."""
    words = tab.locator(f'[data-figure="{figure}"] .hovertext')
    words.first.wait_for(state="attached")
    return " ".join(words.all_text_contents())


def places(tab):
    """For each figure its title, and how many drawings are in it."""
    return tab.evaluate(
        """() => [...document.querySelectorAll("[data-figure]")].map((place) => ({
            title: place.getAttribute("aria-label"),
            drawn: place.querySelectorAll("svg.main-svg").length,
            traces: place.data.map((trace) => ({ mode: trace.mode, type: trace.type })),
        }))"""
    )


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1600, "dark")])
def test_every_figure_is_drawn_within_the_window(opened, tmp_path, width, scheme):
    path = page.write(two(tmp_path / "run", rounds=20, deadlines=[9, 12]))
    tab, wrong = opened(path, width, scheme)

    assert wrong == []
    found = places(tab)
    assert len(found) == 9 and all(one["drawn"] for one in found)
    overflow = "() => [document.documentElement.scrollWidth, window.innerWidth]"
    assert tab.evaluate(overflow) == [width, width]
    widest = (
        "() => Math.max(...[...document.querySelectorAll('.main-svg')].map(s => s.clientWidth))"
    )
    assert width / 2 < tab.evaluate(widest) < width


def test_the_page_follows_the_screen_from_light_to_dark_and_names_stay(opened, tmp_path):
    """A stack whose name is a color is still called that."""
    names = {"#004b87": ms(*[[5, 6]] * 6), "b": ms(*[[7, 8]] * 6)}
    folder = made_runs.run(tmp_path / "run", names, names=["#004b87", "#1c1c1c"])
    place = folder / "summary.json"
    place.write_text(place.read_text().replace("#004b87_fp32", "#004b87"))
    tab, wrong = opened(page.write(folder))
    look = """() => {
        const place = document.querySelector("#size [data-figure]");
        const back = getComputedStyle(document.body).backgroundColor;
        const { name, marker, customdata } = place.data[0];
        return [back, place.layout.font.color, marker.color, name, customdata[0][0]];
    }"""

    before = tab.evaluate(look)
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_selector("html[data-drawn=dark]", state="attached")
    after = tab.evaluate(look)

    assert before == ["rgb(254, 254, 254)", "#1c1c1c", "#004b87", "#004b87", "#004b87"]
    assert after == ["rgb(23, 25, 29)", "#e8e8e8", "#8fd0ff", "#004b87", "#004b87"]
    assert wrong == []


def test_names_are_shown_as_they_are_and_do_nothing(opened, tmp_path):
    tab, wrong = opened(page.write(hostile(tmp_path / "run")))
    titles = [one["title"].partition(":")[0] for one in places(tab)]
    at = titles.index("Image size")

    shown = [hovered(tab, at, 0, point) for point in range(len(HOSTILE))]
    listed = tab.evaluate(
        "() => [...document.querySelectorAll('#instances ol li')].map(e => e.textContent)"
    )

    replaced = [name.replace("\n", "\ufffd").replace("\u202e", "\ufffd") for name in HOSTILE]
    for name, words in zip(replaced, shown, strict=True):
        assert name in words
    assert sorted(listed[: len(HOSTILE)]) == sorted(HOSTILE)
    stacks = tab.evaluate(
        "() => [...document.querySelectorAll('#size .legendtext')].map(e => e.textContent)"
    )
    assert stacks[1] == "%{y}</script> (%{y}</script>_fp32)"
    assert tab.evaluate("() => document.querySelectorAll('main img, header img').length") == 0
    assert wrong == []


def test_the_mouse_finds_the_name_of_a_sample(opened, tmp_path):
    tab, wrong = opened(page.write(two(tmp_path / "run", rounds=6)))
    found = [one["title"].partition(":")[0] for one in places(tab)]

    for title, curve in (("Latency", 1), ("Image size", 0), ("Images of equal size", 1)):
        assert ".jpg" in hovered(tab, found.index(title), curve, 1), title
    heat = found.index("Images side by side")
    tab.locator(f'[data-figure="{heat}"] .nsewdrag').hover()
    assert beside(tab, heat).count(".jpg") == 2
    assert wrong == []


@pytest.mark.parametrize("kind", ODD)
def test_no_run_upsets_the_browser(opened, tmp_path, kind):
    tab, wrong = opened(page.write(DEGENERATE[kind](tmp_path / "run")), 400)

    assert wrong == []
    assert all(one["drawn"] for one in places(tab))


@pytest.mark.parametrize("top", [0.004, 0.03, 1])
def test_ticks_of_shares_differ(opened, tmp_path, top):
    """Whole per cent read 0, 1, 1, 2, 2, 3, 3 where half of one is between two ticks."""
    path = page.write(two(tmp_path / "run", rounds=20, deadlines=[9, 12]))
    tab, _ = opened(path, 1600)
    ticks = tab.evaluate(
        """async (top) => {
            const place = [...document.querySelectorAll("[data-figure]")]
                .find((one) => /%/.test(one.layout.yaxis?.tickformat ?? ""));
            await Plotly.relayout(place, {"yaxis.range": [0, top], "yaxis.dtick": null});
            return [...place.querySelectorAll(".ytick text")].map((one) => one.textContent);
        }""",
        top,
    )

    assert ticks[0] == "0%"
    assert len(ticks) > 3
    assert len(set(ticks)) == len(ticks)
