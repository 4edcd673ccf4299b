"""The report in a real browser: quiet, drawn, within its window, reachable by keys, printable."""

import json
import math
import re

import pytest
from command_lines import COMMANDS
from made_pairs import blamed, effect, explained, pair
from made_results import notice
from pyarrow import csv
from pyarrow import parquet as pq

from simulator.report import page, reading

pytestmark = pytest.mark.prove

ODD = [
    "</script><script>alert(1)</script>.png", "<img src=x onerror=alert(1)>.png", "%{y}.png",
    '"><svg onload=alert(1)>.png', "a\nb\u202egnp.exe", "\u200f\u2067rtl\u2069.png",
    "{{ 7 * 7 }}.png", "&lt;i&gt;.png", "'quoted'.png", "../../etc/passwd", "y" * 4000, "=1+1",
]  # fmt: skip
"""Names of images that try to be more than names."""
CLASSES = ["<b>bold</b>", "%{x}</script>", "", "\u202edlrow", "z" * 4000]


def places(tab):
    """The figures that are not drawn, and the right ends of those that are."""
    return tab.evaluate(
        """() => [...document.querySelectorAll("[data-figure]")].map((place) => {
            const shown = place.querySelector("svg.main-svg");
            return shown ? Math.ceil(shown.getBoundingClientRect().right) : null;
        })"""
    )


def narrowed(tab, width):
    """Make the window as wide as that, and wait until the figures have followed."""
    tab.set_viewport_size({"width": width, "height": 900})
    tab.wait_for_function(
        """(width) => [...document.querySelectorAll("svg.main-svg")]
            .every((one) => one.getBoundingClientRect().right <= width)""",
        arg=width,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_every_command_opens_quietly_and_fits_its_window(opened, runs, name):
    """In a wide window by day, then in a narrow one, then by night."""
    tab, wrong = opened(runs(name)[0] / "report.html")

    def fits(width):
        found = places(tab)
        assert None not in found and all(end <= width for end in found)
        assert tab.evaluate("document.documentElement.scrollWidth") == width

    fits(1600)
    narrowed(tab, 400)
    fits(400)
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_selector("html[data-drawn=dark]", state="attached")
    fits(400)
    colors = "(e) => [getComputedStyle(document.body).backgroundColor, document.body.innerText]"
    back, text = tab.locator("body").evaluate(colors)
    assert back == "rgb(23, 25, 29)"
    assert not re.search(r"\bNaN\b|\bnan\b|undefined|None\b", text)
    broken = "[...document.images].filter((one) => !(one.complete && one.naturalWidth)).length"
    assert tab.evaluate(broken) == 0
    assert wrong == []


def hostile(folder, name):
    """A run whose every name is one of the above."""
    n = len(ODD)
    names = {"profile": "<img src=x onerror=alert(2)>", "overrides": ["a=</script>\u202e%{y}"]}
    changed = {
        "warnings": [notice("</ul><script>alert(3)</script>\n\u202e%{y}" + "w" * 4000)],
        "skipped": 1, "skipped_samples": [{"sample": ODD[0], "why": "<script>alert(4)</script>"}],
        "model": "</title><script>alert(5)</script>",
        "gate": {"passed": False, "rules": [{"rule": "<svg onload=alert(6)> > 1", "failed": True,
                                             "reason": "</p><script>", "value": None, "limit": 1.0,
                                             "unit": ""}]},
    }  # fmt: skip
    if name == "explain":
        axes = ["</script>", "%{y}<b>", "c" * 4000]
        none = effect(math.nan, math.nan, math.nan, math.nan)
        figures = blamed(axes, [0.1, math.nan, -0.3], [effect(0.1, 0, 0.2, 0.01), none, none],
                         {(axes[0], axes[1]): none, (axes[1], axes[2]): effect(-0.1, holm=0.01)},
                         -0.2)  # fmt: skip
        sides = {side: {"profile": names["profile"]} for side in ("train", "deploy")}
        del changed["gate"], changed["skipped_samples"]
        return explained(folder, axes, {"top1": figures, "flip_rate": figures}, **sides, **changed)
    pair(folder, [at % 5 for at in range(n)], [at % 5 + 1 for at in range(n)],
         [None, *[at % 5 for at in range(1, n)]], [math.nan, *[0.1] * (n - 1)], ODD, CLASSES,
         summary=changed)  # fmt: skip
    place = folder / "summary.json"
    summary = json.loads(place.read_text(encoding="utf-8"))
    for side in ("train", "deploy"):
        summary[side] |= names
    (folder / "link.png").symlink_to("/etc/passwd")
    (folder / "text.png").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(7)'/>")
    kinds = ["../../etc/passwd", "/etc/passwd", "link.png", "text.png", "x" * 4000, "a\0b"]
    for flip, picture in zip(summary["worst_flips"], kinds, strict=False):
        flip["preview"] = picture
    place.write_text(json.dumps(summary), encoding="utf-8")
    place = folder / "manifest.json"
    manifest = json.loads(place.read_text(encoding="utf-8"))
    manifest["request"]["arguments"] = {"data": "</code><script>alert(8)</script>\n$(x)"}
    manifest["machine"]["cpu"]["model"] = "<script>alert(9)</script>"
    manifest["machine"]["versions"] = {"</td><script>alert(10)</script>": "\u202e1"}
    for kind, side in zip(("assumed", "recorded"), ("train", "deploy"), strict=True):
        axis = {"values": {"a": f"</td>{side}<script>alert(11)</script>"}, "evidence": kind,
                "claimed": True,
                "source": "<a href='https://example.com'>%{y}</a>\u202e" + "s" * 4000}  # fmt: skip
        manifest["stacks"][side]["axes"] = {"<b>axis</b>": axis}
    place.write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["run", "explain"])
def test_no_name_is_more_than_a_name(opened, tmp_path, name):
    folder = hostile(tmp_path / "run", name)
    tab, wrong = opened(page.write(folder))

    for width in (1600, 400):
        narrowed(tab, width)
        assert None not in places(tab)
        assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert tab.evaluate("document.querySelectorAll('main script, main svg:not(.main-svg)"
                        ":not([data-figure] svg), main b:not([data-figure] b), main a').length"
                        ) == 0  # fmt: skip
    text = tab.evaluate("document.body.textContent")
    assert "alert(3)</script>" in text
    assert tab.title() == page.head(reading.read(folder)).title.replace("\n", " ")
    if name == "run":
        assert "<script>alert(4)</script>" in text  # only a pair lists what was skipped
        cells = tab.locator("#worst tbody th").all_text_contents()
        assert cells == ODD[:10]
        assert "</td>train<script>alert(11)</script>" in text
        assert tab.locator("#stacks .badge.assumed").count() >= 1
        shown = tab.evaluate("[...document.querySelectorAll('main img')].map((e) => e.src)")
        assert all("cm9vdDp4" not in source for source in shown)  # root:x in base64
    assert wrong == []


def test_names_in_figures_are_shown_as_they_are(opened, tmp_path):
    """Long ones lose their middle, and what cannot be seen is replaced."""
    tab, wrong = opened(page.write(hostile(tmp_path / "run", "run")))
    ticks = tab.locator("#classes .ytick text").all_text_contents()

    assert {tick.rpartition(" ")[0] for tick in ticks} >= {
        "<b>bold</b>", "%{x}</script>", "", "\ufffddlrow", "z" * 16 + "…" + "z" * 15,
    }  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("name", ["run", "run, detection", "tail"])
def test_the_button_gives_the_records_of_the_run(opened, runs, tmp_path, name):
    folder = runs(name)[0]
    tab, wrong = opened(folder / "report.html")
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Download the records as CSV").click()
    waiting.value.save_as(tmp_path / "records.csv")
    kept = pq.read_table(folder / "records.parquet")

    types = {field.name: field.type for field in kept.schema}
    nested = {key for key, kind in types.items() if kind.num_fields}
    options = csv.ConvertOptions(
        column_types={key: "string" if key in nested else kind for key, kind in types.items()},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = csv.read_csv(tmp_path / "records.csv", convert_options=options)
    assert waiting.value.suggested_filename == "records.csv"
    assert read.column_names == kept.column_names
    for key in kept.column_names:
        found = read[key].to_pylist()
        if key in nested:
            found = [None if one is None else json.loads(one) for one in found]
        assert found == json.loads(json.dumps(kept[key].to_pylist())), key
    assert wrong == []


@pytest.mark.parametrize("name", ["run", "explain", "run, detection", "tail"])
def test_axe_finds_no_violation(opened, runs, name):
    """Rules of axe-core, contrast among them, in light and in dark."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab, _ = opened(runs(name)[0] / "report.html")
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tab.wait_for_selector(f"html[data-drawn={scheme}]", state="attached")
        found = axe.run(tab).response

        assert "color-contrast" in {rule["id"] for rule in found["passes"]}
        assert [
            (rule["id"], [node["html"][:200] for node in rule["nodes"]])
            for rule in found["violations"]
        ] == []


FOCUSED = """() => {
    const at = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(at);
    const kind = at.id === "records" ? "records" : at.className || at.tagName.toLowerCase();
    return [kind, at.getAttribute("href") ?? "", outlineStyle !== "none" && outlineWidth !== "0px"];
}"""


def test_keys_reach_everything_and_what_they_reach_is_seen(opened, runs):
    tab, wrong = opened(runs("tail")[0] / "report.html", 400)
    steps = []
    while not steps or steps[-1][0] != "records":
        tab.keyboard.press("Tab")
        steps.append(tab.evaluate(FOCUSED))
        assert len(steps) < 200, "the button was not reached"

    assert steps[0][:2] == ["skip", "#main"] and all(seen for _, _, seen in steps)
    linked = [place for kind, place, _ in steps if kind == "a" and place]
    titles = tab.evaluate("[...document.querySelectorAll('section')].map((e) => '#' + e.id)")
    assert linked == titles
    kinds = [kind for kind, _, _ in steps]
    assert kinds.count("scroll") == tab.locator(".scroll:visible").count() > 0
    assert kinds.count("summary") == tab.locator("summary").count() > 0
    assert wrong == []


def test_the_contents_and_the_skip_link_lead_somewhere(opened, runs):
    tab, _ = opened(runs("explain")[0] / "report.html", 400)
    tab.keyboard.press("Tab")
    assert tab.locator(".skip").bounding_box()["x"] >= 0
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == "#main"
    tab.locator("nav a", has_text="Provenance").click()

    assert tab.evaluate("document.querySelector('#provenance').getBoundingClientRect().top") < 900


@pytest.mark.parametrize("name", ["run", "explain", "tail"])
def test_paper_is_white_and_nothing_is_cut(opened, runs, name):
    """A4 less Chromium's margins of 0.4 inch is 718 pixels wide; beforeprint paints at once."""
    tab, wrong = opened(runs(name)[0] / "report.html", 1600, "dark")
    wide = max(places(tab), default=0)
    titles = tab.locator("h2").all_text_contents()
    tab.emulate_media(media="print", color_scheme="dark")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    tab.set_viewport_size({"width": 718, "height": 1000})
    colors = """() => [
        getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
        ...new Set([...document.querySelectorAll(".xtick text")]
            .map((one) => getComputedStyle(one).fill)),
    ]"""

    back, *inks = tab.evaluate(colors)
    assert back == "rgb(254, 254, 254)" and set(inks) == {"rgb(28, 28, 28)"}
    assert (
        max(places(tab), default=0) <= 718
        and tab.evaluate("document.documentElement.scrollWidth") == 718
    )
    over = """() => [...document.querySelectorAll("main *")].filter((e) => !e.closest("svg")
        && e.getBoundingClientRect().right > 718).map((e) => e.outerHTML.slice(0, 99))"""
    assert tab.evaluate(over) == []
    assert tab.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen", color_scheme="dark")
    tab.set_viewport_size({"width": 1600, "height": 900})
    tab.wait_for_function(
        """(wide) => Math.max(0, ...[...document.querySelectorAll("svg.main-svg")]
            .map((one) => Math.ceil(one.getBoundingClientRect().right))) === wide""",
        arg=wide,
    )
    outlined = outline(tab.pdf(format="A4", outline=True, tagged=True))
    assert [title for title in map(letters, titles) if title not in outlined] == []
    assert wrong == []


def letters(title):
    """What is left of a title whose spaces were lost where its lines were broken."""
    return re.sub(r"[^A-Za-z0-9]", "", title)


def outline(pdf):
    """The letters of the headings that a PDF lists; strings are of bytes or of hexadecimals."""
    found = set()
    for plain, packed in re.findall(rb"/Title (?:\(((?:\\.|[^\\)])*)\)|<([0-9A-Fa-f]+)>)", pdf):
        said = bytes.fromhex(packed.decode()).decode("utf-16") if packed else plain.decode("latin1")
        found.add(letters(re.sub(r"\\[0-7]{3}", "", said)))
    return found
