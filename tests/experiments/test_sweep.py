"""Sweeps and worst cases, with figures worked out on paper."""

import io
import math
import statistics

import onnx
import pytest
import tiny
from made_suite import SUITE, written
from rich.console import Console

from simulator import sweep, worst
from simulator.errors import ProfileError, UserError
from simulator.experiments.sweep.experiment import Sweep
from simulator.profile.suite import load_suite

CEIL = {"ceil_mode": {"ceil": {"graph.pooling.ceil_mode": "ceil"}}}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    return {"models": [tiny.card(folder / "model")], "data": tiny.data(folder / "data")}


@pytest.fixture(scope="module")
def swept(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    (result,) = sweep(written(folder), **inputs, out=folder / "runs")
    return result.summary


def test_figures_by_hand(swept):
    """All six are right; BGR loses four of six; two resizers lose none."""
    order, resize = swept["columns"]["order"], swept["columns"]["resize"]

    assert swept["top1"] == 1
    assert order["options"]["bgr"]["drop"] == pytest.approx(4 / 6)
    assert order["options"]["bgr"]["flips"] == 4
    assert (resize["mean_drop"], resize["max_drop"]) == (0, 0)
    assert swept["columns"]["combined"]["options"]["combined"]["flips"] == 4


def test_systematic_metrics_by_hand(swept):
    """SR = 1/3, 1, 1: mean 7/9, SNI = (1 - 7/9) / 1 = 2/9, std with ddof 1 = 0.3849."""
    systematic = swept["systematic"]

    assert systematic["mean_SR"] == pytest.approx(7 / 9)
    assert systematic["SNI"] == pytest.approx(2 / 9)
    assert systematic["std"] == pytest.approx(statistics.stdev([1 / 3, 1, 1]))
    assert systematic["std"] == pytest.approx(0.3849, abs=1e-4)


def test_tables_say_the_same_in_every_form(swept):
    markdown, latex, csv = (
        Sweep().printed([swept], form, None) for form in ("markdown", "latex", "csv")
    )

    assert "| colors | 100.00 | -66.67 / 66.7 % | +0.00 (+0.00) / 0.0 (0.0) % |" in markdown
    assert r"66.67 / 66.7 \%" in latex
    assert "colors,order,bgr,0.33333" in csv


def test_a_pooling_option_is_left_out_of_a_model_without_pooling(inputs, tmp_path):
    suite = written(tmp_path, columns={**CEIL, **SUITE["columns"]})

    (result,) = sweep(suite, **inputs, out=tmp_path / "runs")

    assert "ceil_mode" not in result.summary["columns"]
    assert "does not exist" in result.summary["left_out"]["ceil_mode/ceil"]


def test_a_suite_that_changes_nothing_in_a_model_says_so(inputs, tmp_path):
    suite = written(tmp_path, columns=CEIL, combined=None)

    with pytest.raises(
        UserError, match=r"colors: no option of this suite applies to this model: this axis"
    ):
        sweep(suite, **inputs, out=tmp_path / "runs")


def test_a_model_that_is_always_wrong_has_no_sni(card, data, tmp_path):
    """ACC = 0: SNI divides by it."""
    for old, new in (("red", "tmp"), ("green", "red"), ("blue", "green"), ("tmp", "blue")):
        (data / old).rename(data / new)

    (result,) = sweep(written(tmp_path), models=[card], data=data, out=tmp_path / "runs")

    assert result.summary["top1"] == 0
    assert result.summary["systematic"]["SNI"] is None
    console = Console(file=io.StringIO())
    Sweep().show([result], console)
    assert "SNI –" in console.file.getvalue()


def test_two_cards_of_one_name_are_refused(inputs, tmp_path):
    twice = inputs | {"models": inputs["models"] * 2}
    with pytest.raises(UserError, match="two model cards are called 'colors'"):
        sweep(written(tmp_path), **twice, out=tmp_path / "runs")


def test_the_worst_case_starts_with_the_axis_that_loses_most(card, data, tmp_path):
    found = worst(written(tmp_path), model=card, data=data, out=tmp_path / "run").summary

    assert found["path"][0]["added"] == "order/bgr"
    assert found["path"][0]["drop"] == pytest.approx(4 / 6)
    assert [step["added"].partition("/")[0] for step in found["path"]] == ["order", "resize"]
    assert found["combinations"] == 2 * 3
    assert found["exhaustive"]["top1"] == pytest.approx(2 / 6)


def test_the_worst_case_takes_one_option_of_a_column(card, data, tmp_path):
    """Also where they write different axes, and could stand together."""
    both = {"both": {"bgr": {"color.order": "bgr"}, "box": {"resize": "pil-box"}}}
    suite = written(tmp_path, columns=both)

    found = worst(suite, model=card, data=data, out=tmp_path / "run").summary

    assert [step["added"] for step in found["path"]] == ["both/bgr"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colums": {}}, "unknown key 'colums'; did you mean 'columns'"),
        ({"columns": {}}, "at least one option"),
        ({"columns": {"resize": {}}}, "at least one option"),
        ({"train": 3}, "train"),
    ],
)
def test_a_malformed_suite_says_where(tmp_path, change, message):
    with pytest.raises(ProfileError, match=r"mine\.yaml:[0-9]+: ") as caught:
        load_suite(written(tmp_path, **change))

    assert message in str(caught.value)


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(ProfileError, match="did you mean 'sysnoise'"):
        load_suite("sysnois")


def test_costs_are_those_of_the_files(inputs, tmp_path):
    """The training stack opens the card's own file; the cast writes one of one byte a weight."""
    cast = {"backend": "weight_only", "granularity": "per_tensor", "symmetric": True}
    options = {"bgr": {"color.order": "bgr"},
               "int8": {"precision.storage": "int8", "precision.cast": cast}}  # fmt: skip
    suite = written(tmp_path, columns={"some": options}, combined={})
    (found,) = sweep(suite, **inputs, out=tmp_path / "runs", costs=True)
    costs, (own,) = found.summary.costs, inputs["models"][0].parent.glob("*.onnx")
    constants = onnx.load(own).graph.initializer
    bits = 8 * own.stat().st_size / sum(math.prod(one.dims) for one in constants)

    assert costs["train"].mib == costs["some/bgr"].mib == own.stat().st_size / 2**20
    assert costs["train"].bits == pytest.approx(bits)
    assert costs["some/int8"].mib != costs["train"].mib and costs["some/int8"].ms > 0
    assert costs["train"].tokens_per_second is None
    assert "What each stack costs" in found.report.read_text()
