"""``simulate faults`` with what people do wrong, and with networks that hide their weights."""

import json
import shutil

import numpy as np
import pytest
import tiny
from campaigns import NO_FUSION, document, run
from onnx import helper

from simulator import cli
from simulator.errors import RunError, Unsupported, UserError
from simulator.faults.replay import replay


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    tiny.card(folder)
    tiny.data(folder / "data", 3)
    return folder


def dead(channels):
    """The first channels have by far the largest weights, and a ReLU holds them at 0."""
    weights = np.zeros((channels + 3, 3, 1, 1), np.float32)
    weights[:channels] = 1000
    weights[channels:] = np.eye(3).reshape(3, 3, 1, 1)
    biases = np.r_[np.full(channels, -1e9), np.zeros(3)].astype(np.float32)
    last = np.r_[np.zeros((channels, 3)), np.eye(3)].astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w2"], ["y"], name="fc"),
    ]
    return tiny.model(nodes, constants={"w": weights, "b": biases, "w2": last})


def test_dead_channels_do_not_end_a_campaign(tmp_path):
    """The 60 largest weights of 20 dead channels change nothing; those of the other three do."""
    tiny.card(tmp_path, dead(20))
    tiny.data(tmp_path / "data", 1)

    result = run(
        tmp_path, document(tmp_path, layers=["conv"]), tmp_path / "run", overrides=NO_FUSION
    )

    assert result.summary.stacks["deploy"].sdc.of == 20


def test_a_layer_without_effect_is_refused(tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w2"], ["y"], name="fc"),
    ]
    held = {
        "w": np.ones((3, 3, 1, 1), np.float32), "b": np.full(3, -1e9, np.float32),
        "w2": np.eye(3, dtype=np.float32),
    }  # fmt: skip
    tiny.card(tmp_path, tiny.model(nodes, constants=held))
    tiny.data(tmp_path / "data", 1)

    with pytest.raises(Unsupported, match="deploy: a flipped bit of the weights of 'conv'"):
        run(tmp_path, document(tmp_path), tmp_path / "run", overrides=NO_FUSION)


def test_a_refusal_names_the_stack(place, tmp_path):
    with pytest.raises(UserError, match=r"^deploy: mine: layers: no such layer can be reached"):
        run(place, document(tmp_path, layers=["nothing"]), tmp_path / "run")


def test_a_changed_campaign_is_neither_continued_nor_replayed(place, tmp_path, capsys):
    campaign, folder = document(tmp_path), tmp_path / "run"
    run(place, campaign, folder)
    kept = json.loads((folder / "manifest.json").read_text())
    assert kept["campaign"]["bits"] == "all"
    document(tmp_path, bits=[3])

    with pytest.raises(RunError, match=r"mine.yaml: not what it was when .*run was made"):
        replay(folder, 0)
    (folder / "manifest.json").write_text(json.dumps(kept | {"status": "running"}))
    assert cli.main(["resume", str(folder)]) == 2
    assert "cannot be resumed: campaign changed since it was started" in capsys.readouterr().err


def test_damaged_rows_are_told(place, tmp_path, capsys):
    run(place, document(tmp_path), tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "damaged")
    (tmp_path / "damaged" / "faults.parquet").write_bytes(b"PAR1 and nothing else")

    assert cli.main(["replay-fault", str(tmp_path / "damaged"), "--fault", "0"]) == 2
    assert "faults.parquet: damaged: " in capsys.readouterr().err


def test_what_is_not_known_has_no_rate(place, tmp_path):
    """Three classes have no five best ones; without truth nothing goes from right to wrong."""
    flat = tmp_path / "flat"
    flat.mkdir()
    for image in (place / "data").rglob("*.jpg"):
        shutil.copy(image, flat)

    known = run(place, document(tmp_path), tmp_path / "known").summary.stacks["deploy"].further
    blind = run(place, document(tmp_path), tmp_path / "blind", data=flat)
    unknown = blind.summary.stacks["deploy"].further

    assert known["right_to_wrong"].of == 20
    assert unknown["right_to_wrong"].model_dump() == {
        "rate": None, "ci95": [None, None], "count": 0, "of": 0,
    }  # fmt: skip
    assert unknown["top5_changed"].rate is known["top5_changed"].rate is None
