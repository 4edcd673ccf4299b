"""Figures become JSON that plotly.js reads: arrays in base64, nothing that is not finite."""

import base64
import json
from xml.etree import ElementTree

import numpy as np
import pytest

from simulator.report import charts
from simulator.report.colors import FAINT
from simulator.report.sections.style import figure
from simulator.report.svg import svg

NAN = float("nan")


def written(values):
    figure = charts.Figure([charts.scatter(y=values)], {})
    return json.loads(figure.to_json())["data"][0]["y"]


@pytest.mark.parametrize(
    "values",
    [[0.5, NAN], [1, 255], [-1, 128], [-(2**31), 5], [2**32 - 1], [[1, 2, 3], [4, 5, 6]],
     np.float32([1.5])],
)  # fmt: skip
def test_an_array_of_numbers_is_read_back_from_base64(values):
    array = np.asarray(values)

    found = written(array)

    shape = tuple(map(int, found.get("shape", str(len(array))).split(", ")))
    read = np.frombuffer(base64.b64decode(found["bdata"]), found["dtype"]).reshape(shape)
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, NAN, float("inf"), np.float64(2), np.int64(3)], [1, None, None, 2, 3]),
        (np.array([2**40]), [2**40]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([True]), [True]),
        (np.array([]), []),
    ],
)
def test_what_javascript_has_no_array_for_is_a_list(values, expected):
    assert written(values) == expected


def test_what_is_none_is_left_out_and_parts_of_a_layout_keep_what_they_have():
    shared = {"type": "log"}
    figure = charts.Figure([charts.bar(x=[1], base=None)], {"xaxis": shared, "yaxis": {}})

    figure.update_xaxes(range=[0, 1])
    figure.update_layout(yaxis={"domain": [0, 1]}, height=5)

    assert figure.data == [{"type": "bar", "x": [1]}]
    assert shared == {"type": "log"}
    assert figure.layout == {
        "xaxis": {"type": "log", "range": [0, 1]}, "yaxis": {"domain": [0, 1]}, "height": 5,
    }  # fmt: skip


def test_a_chart_is_an_svg_file_of_the_same_places():
    """Halfway between two values is halfway between their places; words are in their own order."""
    points = charts.scatter(x=["2", "32", "8"], y=[0.2, 0.8, 0.5], name="a<b", mode="markers")
    bars = charts.bar(x=["2", "8"], y=[0.4, None], name="c")
    drawn = figure([points, bars], 300, "bits", "share")
    root = ElementTree.fromstring(svg(drawn, "Title & more"))
    tag = "{http://www.w3.org/2000/svg}"
    places = [(float(one.get("cx")), float(one.get("cy"))) for one in root.iter(f"{tag}circle")]
    (low, high, middle), legend = places[:3], places[3:]
    assert low[0] < middle[0] < high[0] and len(legend) == 1
    assert middle[1] == pytest.approx((low[1] + high[1]) / 2, abs=0.1)
    words = [one.text for one in root.iter(f"{tag}text")]
    assert {"Title & more", "a<b", "2", "8", "32", "bits", "share"} <= set(words)
    bar = next(one for one in root.iter(f"{tag}rect") if one.get("fill") == FAINT)
    assert float(bar.get("y")) == pytest.approx(low[1] + (middle[1] - low[1]) * 2 / 3, abs=0.1)
    lying = charts.bar(x=[1, 2], y=["a", "b"], orientation="h")
    for other in (charts.heatmap(z=[[1.0]]), lying):
        assert svg(figure([other], 300, "x", "y"), "") is None


def test_a_line_of_an_svg_file_breaks_where_a_value_is_not_finite():
    values = np.array([1, 2, np.nan, 2, np.inf, 1, 3])
    line = charts.scatter(x=np.arange(7), y=values, mode="lines", line={"color": "#123456"})

    root = ElementTree.fromstring(svg(figure([line], 300, "x", "y"), ""))

    drawn = [one for one in root.iter() if one.get("stroke") == "#123456"]
    assert [len(one.get("points").split()) for one in drawn] == [2, 1, 2]
