"""``simulate faults``: every row against a fault put into the file by hand, and what is kept."""

import json
import shlex

import numpy as np
import onnx
import onnxruntime
import pyarrow.parquet as pq
import pytest
import tiny
from campaigns import NO_FUSION, document, run
from onnx import helper, numpy_helper
from PIL import Image
from scipy.stats import binomtest

from simulator import cli
from simulator.errors import MissingLibrary, UserError
from simulator.faults.replay import replay


@pytest.fixture
def right(tmp_path):
    """A card and samples of a network that is right: a convolution that keeps red, green, blue."""
    eye = np.eye(3, dtype=np.float32)[..., None, None]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first"),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    card = tiny.card(tmp_path / "right", tiny.model(nodes, constants={"w": eye}))
    return {"model": card, "data": tiny.data(tmp_path / "right-data", 3)}


def tensor(image):
    """The input as the card says: squashed by Pillow's bicubic."""
    small = np.array(Image.open(image).convert("RGB").resize((32, 32), Image.Resampling.BICUBIC))
    return ((small.astype(np.float32) - 127) / 64).transpose(2, 0, 1)[None]


def answer(model, values):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"x": values})[0]


HELD = {
    ("first", "weights"): "w1", ("first", "biases"): "b1", ("second", "weights"): "w2",
    ("second", "biases"): "b2", ("third", "weights"): "w3", ("third", "biases"): "b3",
}  # fmt: skip


def by_hand(place, row):
    """The values before, and the scores without and with the bits of a row, by NumPy and ONNX."""
    model = onnx.load(str(place / "model.onnx"))
    given, before = tensor(place / "data" / row["sample"]), []
    golden = answer(model, given)
    held = {one.name: one for one in model.graph.initializer}
    for layer, target, index, bit in zip(
        row["layer"], row["target"], row["index"], row["bit"], strict=True
    ):
        own = held[HELD[layer, target]]
        values = numpy_helper.to_array(own).copy().reshape(-1)
        before.append(float(values[index]))
        values.view(np.uint32)[index] ^= np.uint32(1) << bit
        own.CopyFrom(numpy_helper.from_array(values.reshape(tuple(own.dims)), own.name))
    return before, golden, answer(model, given)


@pytest.mark.parametrize("at_once", [1, 3])
def test_every_row_is_that_of_a_file_changed_by_hand(place, tmp_path, at_once):
    """Bits of weights and biases changed in the ONNX file with NumPy, run by ONNX Runtime."""
    campaign = document(tmp_path, targets=["weights", "biases"], at_once=at_once, faults=60)
    result = run(place, campaign, tmp_path / "run", overrides=NO_FUSION, workers=2)
    rows = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()
    layers = [set(row["layer"]) for row in rows]
    assert len(rows) == 60
    assert {len(row["bit"]) for row in rows} == {at_once}
    for row in rows:
        before, golden, found = by_hand(place, row)
        finite = np.isfinite(found).all()
        assert row["due"] == (not finite)
        assert row["sdc"] == bool(finite and golden.argmax() != found.argmax())
        if finite:
            assert row["prediction"] == found.argmax()
        if at_once == 1:
            assert row["before"] == before
            assert row["same_outputs"] == bool(finite and golden.tobytes() == found.tobytes())
    stack = result.summary.stacks["deploy"]
    assert stack.sdc.count == sum(row["sdc"] for row in rows)
    assert stack.due.count == sum(row["due"] for row in rows)
    assert stack.masked.count == 60 - stack.sdc.count - stack.due.count
    if at_once == 1:
        assert set().union(*layers) == {"first", "second", "third"}
        return
    assert sum(len(one) > 1 for one in layers) > 10
    assert (stack.by_bit, stack.by_layer, stack.by_operator) == ({}, {}, {})
    assert any("," in event.layer for event in stack.worst)
    most = max(range(60), key=lambda at: len(layers[at]))
    (again,) = replay(tmp_path / "run", most)
    assert again.equal


@pytest.mark.parametrize("targets", [["neurons"], ["neurons", "weights", "input"]])
def test_several_neurons_at_once_run_again_alike(place, tmp_path, targets):
    campaign = document(tmp_path, targets=targets, at_once=4, faults=12, lasts="permanent")
    run(place, campaign, tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()
    assert len(rows) == 12 * 9
    assert {"neurons"} <= {name for row in rows for name in row["target"]} <= set(targets)
    for fault in (0, 7):
        assert all(one.equal for one in replay(tmp_path / "run", fault))


def test_permanent_faults_hit_every_sample(place, tmp_path):
    campaign = document(tmp_path, lasts="permanent", kind="stuck_at_1", bits="exponent", faults=20)
    result = run(place, campaign, tmp_path / "run", overrides=NO_FUSION)
    rows = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()

    assert len(rows) == 20 * 9
    by = {}
    for row in rows:
        by.setdefault(row["fault"], set()).add((*row["layer"], *row["index"], *row["bit"]))
    assert all(len(places) == 1 for places in by.values())
    assert result.summary.stacks["deploy"].sdc.of == 180
    assert result.summary.stacks["deploy"].share_of_bits == 8 / 32


def test_one_fault_is_run_again(place, tmp_path, capsys):
    run(place, document(tmp_path, faults=30), tmp_path / "run")
    row = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()[17]

    assert cli.main(["replay-fault", str(tmp_path / "run"), "--fault", "17"]) == 0
    said = capsys.readouterr().out
    assert "fault 17, deploy: equal" in said
    assert f"layer: {row['layer'][0]}" in said
    assert cli.main(["replay-fault", str(tmp_path / "run"), "--fault", "17", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["fault"], told["equal"]) == (17, True)
    assert told["then"]["bit"] == told["now"]["bit"] == row["bit"]
    assert cli.main(["replay-fault", str(tmp_path / "run"), "--fault", "30"]) == 2
    assert "has the faults 0 to 29" in capsys.readouterr().err


def test_a_gate_judges_the_rate_and_says_what_cannot_be_excluded(right, tmp_path):
    """0 of 40 sign bits of nothing: by SciPy, 0 of 368 is the first interval below 1 %."""
    rules = ["SDC > 1%", "deploy.SDC.high > 20%", "deploy.SDC.high > 1%"]
    campaign, more = document(tmp_path, bits=[0], faults=40), {"overrides": NO_FUSION, **right}
    result = run(tmp_path, campaign, tmp_path / "run", fail_on=rules, **more)
    rules, (low, high) = result.summary.gate.rules, binomtest(0, 40).proportion_ci()

    assert [rule.failed for rule in rules] == [False, False, True]
    assert [rule.value for rule in rules] == pytest.approx([low, high, high])
    assert (rules[0].chance, rules[0].more_of) == (True, "fault")
    ends = [binomtest(0, 40 + rules[0].more - less).proportion_ci().high for less in (0, 1)]
    assert ends[0] < 0.01 <= ends[1]
    assert any("SDC > 1% passes, but 8.81 % cannot be excluded; 328 more faults" in said
               for said in result.summary.verdict.lost)  # fmt: skip


def test_the_next_step_replays_a_fault_as_printed(right, tmp_path, capsys):
    """Bit 30 of a 0 makes it 2, which turns answers."""
    campaign, more = document(tmp_path, bits=[30], faults=60), {"overrides": NO_FUSION, **right}
    result = run(tmp_path, campaign, tmp_path / "run", **more)
    words = shlex.split(result.summary.verdict.next)

    assert words[:2] == ["simulate", "replay-fault"]
    assert cli.main(words[1:]) == 0
    assert "equal" in capsys.readouterr().out


def test_other_runtimes_refuse(place, tmp_path):
    message = "deploy: mnn: no faults can be put into what it runs: weights"
    try:
        with pytest.raises(UserError, match=message):
            run(place, document(tmp_path), tmp_path / "run", profiles=["mnn_fp32"])
    except MissingLibrary as error:  # pragma: no cover
        pytest.skip(str(error))


def test_permanent_faults_have_no_interval_to_wait_for(place, tmp_path):
    with pytest.raises(UserError, match="until: it is for transient faults"):
        run(place, document(tmp_path, lasts="permanent"), tmp_path / "run", until=0.04)


def test_a_condition_of_its_own(place, tmp_path):
    with pytest.raises(TypeError, match="unknown option 'under'"):
        run(place, document(tmp_path), tmp_path / "run", under="jpeg:40")


def test_the_campaign_has_to_be_named(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["faults", "--profile", "pillow_fp32"])

    assert left.value.code == 2
    assert "required: --campaign" in capsys.readouterr().err
