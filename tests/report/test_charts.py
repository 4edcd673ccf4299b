"""Figures become JSON that plotly.js reads: arrays in base64, nothing that is not finite."""

import base64
import json

import numpy as np
import pytest

from simulator.report import charts

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
