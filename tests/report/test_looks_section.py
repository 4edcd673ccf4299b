"""The section of what networks saw: its words, and what it lets into the page."""

from __future__ import annotations

import io
import math
from html.parser import HTMLParser

import numpy as np
import pytest
from made_results import step
from PIL import Image

from simulator.report.reading import Run
from simulator.report.sections import gallery
from simulator.results.pair import PairSummary
from simulator.results.pictures import Look

HOSTILE = '"><img src=x onerror=alert(1)>\u202e{{7*7}}</h3>'


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def noise(seed, size=(8, 10)):
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def effect(share=0.25, mean=1.5, largest=7.0):
    return {"values_changed": share, "mean": mean, "max": largest}


def entry(**changed):
    """An image of which everything was kept, and one axis differs."""
    return {
        "kind": "image", "sample": "a/b.jpg", "why": "worst flip", "picture": "looks/p.png",
        "scale": 3, "size": [8, 10], "window": None,
        "train": "looks/t.png", "deploy": "looks/d.png",
        "difference": effect(), "axes": {"resize": {"picture": "looks/r.png", **effect()}},
        "maps": [], "notes": [], "missing": [], **changed,
    }  # fmt: skip


def feature(**changed):
    return {
        "axis": "pooling", "node": "MaxPool 'pool'", "first": True, "by": "onnxruntime",
        "train": "looks/t.png", "deploy": "looks/d.png", "picture": "looks/r.png",
        "train_size": [16, 16], "deploy_size": [15, 14], "window": None, "low": -1.0, "high": 2.5,
        "peak": 0.5, "values_changed": 0.125, "mean": 0.01, "max": 1.75, **changed,
    }  # fmt: skip


def run_of(folder, entries):
    """A run of which only the pictures count."""
    looks = [Look.model_validate(entry) for entry in entries]
    return Run(folder, None, PairSummary.model_construct(pictures=looks, worst_flips=[]), None)


@pytest.fixture
def section(tmp_path):
    """A function from entries to their section, beside four pictures."""
    (tmp_path / "looks").mkdir()
    for seed, name in enumerate("ptdr"):
        (tmp_path / "looks" / f"{name}.png").write_bytes(png(noise(seed)))

    def made(*entries):
        run = run_of(tmp_path, entries)
        return gallery.looks(run) or gallery.more_looks(run)

    return made


class Elements(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(str(html))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_a_run_without_pictures_has_no_section(tmp_path):
    assert gallery.looks(run_of(tmp_path, [])) is None
    assert gallery.looks(Run(tmp_path, None, step(), None)) is None


def test_equal_pixels_are_shown_once_and_said_to_be_the_same(section):
    """As where only the runtime differs: no difference to look at, which would be black."""
    same = section(entry(difference=effect(0, 0, 0), axes={}))
    one = Elements(section(entry(difference=effect(0, 0, 0))).html)
    page = Elements(same.html)

    assert [image["alt"] for image in page.all("img")] == [
        "the picture, each pixel the mean of 3×3", "train and deploy. The pixels are the same",
    ]  # fmt: skip
    assert not page.all("canvas") and not page.all("input")
    assert same.title == "The pixels are the same"
    assert "pixels are the same" not in one.text and one.all("canvas")


def test_numbers_are_put_into_words(section):
    axes = {
        "decoder": {"picture": "looks/r.png", **effect(0.05, 0.05, 2.0)},
        "color": {"picture": "looks/r.png", **effect(0.5, 0.001, 0.25)},
        "resize": {"picture": "looks/t.png", **effect(0, 0, 0)},
        "normalize": {"picture": "looks/r.png", **effect(0.5, None, None)},
        "geometry": {"picture": "looks/r.png"},
    }
    text = Elements(section(entry(axes=axes)).html).text

    for sentence in (
        "all of deployment: 25.0% of values differ, mean 1.5, max 7 levels",
        "decoder alone: 5.0% of values differ, mean 0.05, max 2 levels",
        "color alone: 50.0% of values differ, mean 0.001, max 0.25 levels; under half a level",
        "resize alone: no value differs",
        "normalize alone: an input of another shape",
        "geometry alone: an input of another shape",
        "the picture, each pixel the mean of 3×3",
    ):
        assert sentence in text


def test_maps_are_put_into_words(section):
    one = feature()
    other = feature(first=False, max=0, deploy_size=[17, 16], window=[16, 16])
    text = Elements(section(entry(maps=[one, other])).html).text

    assert (
        "pooling alone: the first map behind the change, of MaxPool 'pool', averaged over the "
        "channels from -1 (black) to 2.5 (white), by onnxruntime. 12.5% of the values "
        "differ on the common 15×14, mean 0.01, max 1.75. 1 row and 2 columns only in train: "
        "orange in the difference." in text
    )
    assert "the last map of the network" in text
    assert (
        "No value differs on the common 16×16. 1 row only in deploy: orange in the difference. Of "
        "it 16×16 are shown." in text
    )


def test_the_window_and_what_is_missing_are_said_once(section):
    made = [entry(size=[640, 500], window=[320, 320], missing=["resize alone: why"])] * 2
    notes = section(*made).notes

    assert sum("Of 640×500 the middle 320×320" in note for note in notes) == 1
    assert notes.count("resize alone: why") == 1


def test_tensors_are_enlarged_by_one_whole_factor(section):
    found = Elements(section(entry()).html)

    sizes = [(one["width"], one["height"]) for one in found.all("img")]
    assert sizes == [("10", "8"), ("460", "368"), ("460", "368")]
    (canvas,) = found.all("canvas")
    assert (canvas["width"], canvas["height"], canvas["style"]) == ("10", "8", "width: 460px")


def test_equal_pictures_are_in_the_page_once(section):
    axes = {name: {"picture": "looks/d.png", **effect()} for name in ("decoder", "resize")}
    found = Elements(section(entry(axes=axes)).html)

    assert len([one for one in found.all("span") if "data-source" in one]) == 0
    assert [one["value"] for one in found.all("input") if one["type"] == "radio"] == ["1"] * 3


def test_names_are_data(section):
    axes = {HOSTILE: {"picture": "looks/r.png", **effect()}}
    one = entry(
        sample=HOSTILE, why=HOSTILE, axes=axes, notes=[HOSTILE],
        maps=[feature(node=HOSTILE, by=HOSTILE)],
    )  # fmt: skip
    found = Elements(section(one).html)

    assert {attributes["src"][:15] for attributes in found.all("img")} == {"data:image/png;"}
    assert not [a for _, attributes in found.tags for a in attributes if a.startswith("on")]
    assert found.text.count(HOSTILE) == 7  # name, why, radio, noscript, node, by, note


@pytest.mark.parametrize(
    "path",
    ["../outside.png", "looks/none.png", "looks", "looks/text.png", "/etc/passwd", "a\0b",
     "x" * 5000, None],
)  # fmt: skip
def test_only_pictures_of_the_run_are_shown(section, tmp_path, path):
    (tmp_path.parent / "outside.png").write_bytes(png(noise(9)))
    (tmp_path / "looks" / "text.png").write_text("<script>alert(1)</script>")

    kept = Elements(section(entry(picture=path)).html)
    alone = Elements(section(entry(deploy=path, axes={})).html)
    none = Elements(section(entry(train=path)).html)

    assert len(kept.all("img")) == 2
    assert [one["alt"][:5] for one in alone.all("img")] == ["the p", "train"]
    assert [one["alt"][:6] for one in none.all("img")] == ["the pi", "deploy"]
    assert not alone.all("input") and not none.all("canvas")


def test_the_sections_are_bounded_and_the_worst_flip_comes_first(section, tmp_path):
    """Noise of 200x200 is 0.16 MB in base64: of five tensors each, one image has room whole.

    The second one has room for three more tensors, those of the two stacks alone.
    """
    for number in range(20):
        (tmp_path / "looks" / f"{number}.png").write_bytes(png(noise(number, (200, 200))))
    made = [
        entry(
            sample=f"{at}.jpg", picture=None,
            train=f"looks/{5 * at}.png", deploy=f"looks/{5 * at + 1}.png",
            axes={f"axis {n}": {"picture": f"looks/{5 * at + n}.png"} for n in (2, 3, 4)},
        )
        for at in range(4)
    ]  # fmt: skip

    found = section(*made)
    more = gallery.more_looks(run_of(tmp_path, made))

    assert 750_000 < len(found.html) < 850_000
    assert [name in Elements(found.html).text for name in ("0.jpg", "axis 4 alone")] == [True] * 2
    assert "1.jpg" in Elements(more.html).text and "alone:" not in Elements(more.html).text
    assert len(found.html) + len(more.html) < 1_200_000
    assert any("2 of 4 images are shown" in note for note in found.notes)


@pytest.mark.parametrize(
    ("mean", "place"),
    [
        (0, 4),
        (None, 4),
        (math.nan, 4),
        (math.inf, 4),
        (24, 0),
        (200, 0),
        (3, 3),
        (0.4, 6),
        (1e-9, 8),
    ],
)
def test_the_slider_starts_where_the_mean_difference_is_seen(section, mean, place):
    """24 levels: 3 times 2**3, 0.4 times 2**6 less than that."""
    found = Elements(section(entry(difference=effect(mean=mean))).html)

    (slider,) = [one for one in found.all("input") if one["type"] == "range"]
    assert (slider["value"], slider["aria-valuetext"]) == (str(place), f"{2**place} times")
