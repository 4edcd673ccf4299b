"""Text of documents: what is written is what is read, on one line, comments or not."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from simulator.profile.suite import overrides
from simulator.profile.text import Line, flow, render

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.one_of(texts, st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False))
values = st.one_of(plain, st.lists(plain), st.dictionaries(texts, plain))


@given(values)
def test_a_value_is_read_as_it_was(value):
    text = flow(value)

    assert len(text.splitlines()) == 1
    assert yaml.safe_load(text) == value


@given(st.lists(st.tuples(texts, st.text("abc #:'\"")), min_size=1))
def test_notes_change_nothing(fields):
    lines = [Line(0, f"k{n}", flow(value), note) for n, (value, note) in enumerate(fields)]

    read = yaml.safe_load(render(lines))

    assert read == {f"k{n}": value for n, (value, _) in enumerate(fields)}


def test_a_document_by_hand():
    lines = [
        Line(0, "", note="How pixels are resampled"),
        Line(0, "resize"),
        Line(1, "backend", "pillow", "who"),
        Line(1, "antialias", "true", "implied", off=1),
        Line(0, ""),
        Line(0, "graph", off=0),
        Line(1, "layout", "keep", off=0),
    ]

    assert render(lines) == (
        "# How pixels are resampled\n"
        "resize:\n"
        "  backend: pillow    # who\n"
        "  # antialias: true  # implied\n"
        "\n"
        "# graph:\n"
        "#   layout: keep\n"
    )


def test_small_and_large_numbers_of_suites_stay_numbers():
    option = {"a": 1e-10, "b": {"c": [1e20, 2.5e-7, 3]}, "d": "1e-10", "e": None, "f": True}

    written = dict(one.split("=", 1) for one in overrides(option))

    assert {key: yaml.safe_load(value) for key, value in written.items()} == option
