"""Attacks on every stack's own network, and what each kind of noise takes from the stacks."""

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import yaml
from onnx import numpy_helper
from PIL import Image

from simulator import compare, robustness
from simulator.conditions.attacks.target import target_on
from simulator.errors import UserError
from simulator.model.store import Artifact
from simulator.report import page
from simulator.robustness.document import load_suite
from simulator.robustness.experiment import Robustness

pytest.importorskip("torch")
OTHER = np.array([[1, 0, 0], [0.4, 1, 0], [0, 2.2, 1]], np.float32)
NETWORKS = {"pillow_bilinear_fp32": np.eye(3, dtype=np.float32), "other": OTHER}
BUDGETS = [30, 60]
SUITE = {
    "schema": 1, "name": "mine", "summary": "attacks, a link, a pan, and other resizers",
    "conditions": {
        "attacks": {
            "own": [f"fgsm:{one}/255,on=each,saved=float" for one in BUDGETS],
            "asked": [f"autoattack:linf,{one}/255,parts=apgd-ce,steps=9,on=each,saved=float"
                      for one in BUDGETS],
        },
        "transfer": {"moved": [f"fgsm:{one}/255,saved=float" for one in BUDGETS]},
        "digital": {"jpeg": ["jpeg:60", "jpeg:5"]},
    },
    "left_out_of_means": ["own", "asked", "moved"],
    "sequences": {"pan": {"condition": "p_translate", "frames": 4}},
    "system_noise": "robustmq-s",
}  # fmt: skip


@pytest.fixture(scope="module")
def pictures(home):
    for at, (name, color) in enumerate(tiny.COLORS.items()):
        (home / "data" / name).mkdir(parents=True)
        for number, share in enumerate((0.2, 0.5, 1.0)):
            faint = 128 + share * (np.array(color) - 128)
            image = tiny.picture(faint, size=(32, 32), seed=10 * at + number)
            file = home / "data" / name / f"{name}{number}.png"
            file.write_bytes(tiny.encoded(image, "png"))
    return home / "data"


@pytest.fixture(scope="module")
def other(home):
    """A stack that opens a network of its own."""
    made = tiny.classifier()
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(OTHER, "w"))
    (home / "other.onnx").write_bytes(made.SerializeToString())
    path = home / "other.yaml"
    path.write_text(yaml.safe_dump({
        "schema": 1, "name": "other", "summary": "another network",
        "extends": "pillow_bilinear_fp32", "precision": {"artifact": str(home / "other.onnx")},
    }))  # fmt: skip
    return str(path)


@pytest.fixture(scope="module")
def done(pictures, other, home):
    path = home / "mine.yaml"
    path.write_text(yaml.safe_dump(SUITE, sort_keys=False))
    (result,) = robustness(
        str(path), ["pillow_bilinear_fp32", other], models=[tiny.card(home / "card")],
        data=pictures, out=home / "run",
        fail_on=["losses.other.attacks.more_lost < -1000 points"],
    )  # fmt: skip
    return result


def answers(done, side, text):
    rows = pq.read_table(done.folder / "records.parquet").to_pylist()
    return {r["sample"]: r for r in rows if (r["side"], r["condition"]) == (side, text)}


def fgsm(file, truth, budget, attacked, answering):
    """The answer of a network to the attack on another one, by hand in float64."""
    clean = np.asarray(Image.open(file), np.float64) / 255
    scores = (255 * clean.mean((0, 1)) - 127) / 64 @ attacked
    share = np.exp(scores - scores.max())
    slope = attacked @ (share / share.sum() - np.eye(3)[truth])
    moved = np.clip(clean + budget / 255 * np.sign(slope), 0, 1)
    return int(((255 * moved.mean((0, 1)) - 127) / 64 @ answering).argmax())


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("side", NETWORKS)
def test_each_network_is_attacked_by_its_own_gradient(done, pictures, side, budget):
    """The others by transfer: both answers are those of the formula, and they differ."""
    own = answers(done, side, f"fgsm:{budget}/255,on=each,saved=float")
    moved = answers(done, side, f"fgsm:{budget}/255,saved=float")
    first = NETWORKS["pillow_bilinear_fp32"]
    for name, row in own.items():
        file = next(pictures.rglob(name.rpartition("/")[2]))
        truth = list(tiny.COLORS).index(file.parent.name)
        mine = NETWORKS[side]
        assert row["prediction"] == fgsm(file, truth, budget, mine, mine)
        assert moved[name]["prediction"] == fgsm(file, truth, budget, first, mine)


def test_the_attacked_images_are_among_the_pictures(done):
    cells = done.summary.pictures.cells
    shown = [np.asarray(Image.open(done.folder / cells[row][side]))
             for row in ("clean", "own") for side in NETWORKS]  # fmt: skip
    assert not np.array_equal(shown[0], shown[2]) and not np.array_equal(shown[2], shown[3])


def test_an_axis_alone_is_measured_and_shown_under_the_attack_on_its_own_network(home):
    """Where both stacks run the card's network, it is the attack on that network."""
    card, data = tiny.card(home / "one"), tiny.data(home / "large", each=1)

    def seen(under):
        name = f"alone-{under}".replace("/", "-")
        done = compare("pillow_bilinear_fp32", "opencv_fp32", model=card, data=data,
                       out=home / name, limit=2, under=under)  # fmt: skip
        shown = [[one.difference, one.axes] for one in done.summary.pictures]
        return [one.effect for one in done.summary.axes], shown

    each = seen("fgsm:60/255,on=each")
    assert each == seen("fgsm:60/255") != seen(None)


def right(done, side, text):
    found = answers(done, side, text)
    return np.array([found[name]["correct"] for name in sorted(found)], float)


def test_losses_are_those_of_the_records(done):
    summary = json.loads((done.folder / "summary.json").read_text())
    lost = {}
    for side in NETWORKS:
        clean = right(done, side, "unattacked:on=each,saved=float").mean()
        texts = [one for row in SUITE["conditions"]["attacks"].values() for one in row]
        left = np.mean([right(done, side, text).mean() for text in texts])
        found = summary["losses"][side]["attacks"]
        assert found["left"]["value"] == pytest.approx(left)
        assert found["lost"]["value"] == pytest.approx((clean - left) / clean)
        lost[side] = found["lost"]["value"]
        sr = summary["system_noise"]["stacks"][side]
        assert summary["losses"][side]["system_noise"]["left"] == sr["mean_SR"]
        assert summary["losses"][side]["system_noise"]["lost"] == sr["SNI"]
        assert summary["losses"][side]["corruptions"]["left"] == summary["stacks"][side]["mNR"]
        flips = summary["sequences"]["stacks"][side]["mFP"]
        assert summary["losses"][side]["sequences"]["lost"]["value"] == flips["value"]
    more = summary["losses"]["other"]["attacks"]["more_lost"]
    assert more["value"] == pytest.approx(lost["other"] - lost["pillow_bilinear_fp32"])
    assert more["p_holm"] >= more["p"]
    assert summary["losses"]["pillow_bilinear_fp32"]["attacks"]["more_lost"] is None
    assert set(summary["losses"]["other"]) == {
        "attacks", "transfer", "corruptions", "system_noise", "sequences"
    }  # fmt: skip


def test_tables_have_aai_and_sr_and_losses(done):
    rows = list(
        csv.DictReader(io.StringIO(Robustness().printed([done.summary], "csv", "conditions")))
    )
    (attack,) = [row for row in rows if row["stack"] == "other" and row["condition"] ==
                 f"fgsm:{BUDGETS[0]}/255,on=each,saved=float"]  # fmt: skip
    stack = done.summary.attacks.stacks["other"]
    assert float(attack["AAI"]) == stack.aai["own"]["1"].value
    assert float(attack["AR_high"]) == stack.ar["own"]["1"].ci95[1]
    wide = Robustness().printed([done.summary], "markdown", "conditions").splitlines()[0]
    assert "AAI own" in wide and "SR resize.pil-box" in wide
    losses = Robustness().printed([done.summary], "markdown", "losses").splitlines()
    assert len(losses) == 2 + 2 * 5
    text = page.write(done.folder).read_text()
    assert "What each kind of noise takes" in text


@pytest.mark.parametrize(("held", "named"), [(Artifact(Path("a.tflite"), "", "tflite"), "tflite"),
                                             (None, "none that one file holds")])  # fmt: skip
def test_a_network_whose_gradient_is_not_known_is_named(held, named):
    with pytest.raises(UserError, match=rf"fgsm:1/255,on=each: .*\.onnx.* this stack is {named}"):
        target_on("fgsm:1/255,on=each", SimpleNamespace(artifact=held), None)


def test_the_suites_of_robustmq_attack_each_network_and_by_transfer():
    for name in ("robustmq", "robustmq-32"):
        by = {}
        for one in load_suite(name).series:
            by.setdefault(one.category, []).append(one)
        assert {row.name for row in by["attacks"]} == {
            "fgsm", "pgd_linf", "pgd_l2", "pgd_l1", "autoattack_linf"
        }  # fmt: skip
        each = [level.condition for row in by["attacks"] for level in row.levels]
        assert all(one.asks_each and one.erased is None for one in each)
        assert not any(one.condition.on for row in by["transfer"] for one in row.levels)
