"""Colors mean one thing in every chart, and those who see no red or no green tell them apart."""

import base64
import gzip
import hashlib
import json
import re
from importlib import resources

import numpy as np
import pytest
from plotly.offline import get_plotlyjs_version

from simulator.report import colors, rendering
from simulator.report.sections import style
from simulator.results.shared import Profile

BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
"""How linear RGB is seen: Machado, Oliveira and Fernandes 2009, table of severity 1.0."""
XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
       [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
"""Of linear sRGB, D65."""


def linear(color):
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE 1976 L*a*b* of linear RGB."""
    x, y, z = np.cbrt(np.array(XYZ) @ np.clip(rgb, 0, 1) / np.array(XYZ).sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    """WCAG 2.2, of relative luminances."""
    high, low = sorted((float(np.dot(XYZ[1], linear(c))) for c in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def night(color):
    return colors.DARK[color]


@pytest.mark.parametrize("turn", [str, night], ids=["day", "night"])
@pytest.mark.parametrize("kind", BLIND)
def test_good_and_bad_are_told_apart_by_those_who_see_fewer_colors(kind, turn):
    """A difference of 2.3 is just noticeable; ten times that is seen at a glance."""
    good, bad = (lab(np.array(BLIND[kind]) @ linear(turn(c))) for c in (colors.GOOD, colors.BAD))

    assert np.linalg.norm(good - bad) >= 23


@pytest.mark.parametrize("turn", [str, night], ids=["day", "night"])
def test_words_are_read_and_marks_are_seen_on_both_backgrounds(turn):
    """WCAG 2.2, 1.4.3 and 1.4.11: 4.5 for words, 3 for graphics."""
    back = turn(colors.BACK)

    for words in (colors.TEXT, colors.FAINT, colors.GOOD, colors.BAD):
        assert contrast(turn(words), back) >= 4.5
    assert contrast(colors.EVEN, back) >= 3
    pairs = [(day, turn(day)) for day, _ in colors.STACKS]
    assert all(contrast(shown, back) >= 3 for _, shown in pairs)
    assert contrast(pairs[0][1], pairs[1][1]) >= 1.4


def test_no_stack_has_the_color_of_good_or_bad():
    own = {one for both in colors.STACKS for one in both}
    meaning = {turn(one) for one in (colors.GOOD, colors.BAD) for turn in (str, night)}

    assert not own & meaning and len(own) == 16
    near = [np.linalg.norm(lab(linear(a)) - lab(linear(b))) for a in own for b in meaning]
    assert min(near) >= 23


def test_stacks_are_told_apart_without_color():
    eight = list(style.looks({f"s{i}": Profile(profile=f"s{i}") for i in range(8)}).values())

    assert len({(look.dash, look.symbol, look.hatch) for look in eight}) == 8
    for kind in ("color", "dash", "symbol", "hatch"):
        assert len({getattr(look, kind) for look in eight}) == 8


def test_every_color_of_a_chart_has_one_for_the_night():
    """The page translates what it knows: nothing drawn may stay dark on a dark screen."""
    for color in (colors.TEXT, colors.FAINT, colors.GRID, colors.BACK, colors.GOOD, colors.BAD):
        assert f": {color};" in colors.css() and f": {night(color)};" in colors.css()


@pytest.mark.parametrize("name", ["run", "explain", "sweep", "worst"])
def test_charts_use_no_other_colors(runs, name):
    """But the heat map of divergences, which has Cividis: made for those who see fewer colors."""
    text = (runs(name)[0] / "report.html").read_text(encoding="utf-8")
    found = re.search(r'id="drawings">(.*?)</script>', text).group(1)
    used = set(re.findall(r'"(#[0-9a-fA-F]{3,8})"', json.dumps(json.loads(found)["figures"])))

    assert used <= {*colors.DARK, colors.EVEN}


def test_plotly_is_the_file_that_its_readme_names_and_of_the_version_that_writes_the_figures():
    words = resources.files("simulator.report").joinpath("plotlyjs", "README.md").read_text()
    source = gzip.decompress(rendering.charts())

    assert f"`{hashlib.sha256(source).hexdigest()}`" in words
    assert f"v{get_plotlyjs_version()}".encode() in source[:200]
    assert len(base64.b64encode(rendering.charts())) < 700_000
