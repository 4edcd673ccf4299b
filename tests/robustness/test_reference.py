"""A reference model: CE, FR and differences of a model are paired with it."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import yaml
from onnx import numpy_helper
from rich.console import Console
from stopping import StopsAt

from simulator import cli, robustness, sweep
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.errors import ModelError, RunError, UserError
from simulator.report import page
from simulator.robustness.models import compare

LEVELS = ["jpeg:60", "jpeg:5", "jpeg:1"]
SUITE = {
    "schema": 1, "name": "mine", "summary": "a camera link",
    "conditions": {"digital": {"jpeg": LEVELS}},
    "sequences": {"rotate": {"condition": "p_rotate", "frames": 4}},
}  # fmt: skip
SIDES = ("pillow_fp32", "bgr")


def stacks(home):
    """The first stack, and one that swaps the channels."""
    path = home / "bgr.yaml"
    path.write_text("schema: 1\nname: bgr\nsummary: swapped\nextends: pillow_fp32\n"
                    "color: {order: bgr}\n")  # fmt: skip
    return ["pillow_fp32", str(path)]


@pytest.fixture(scope="module")
def asked(home):
    path = home / "mine.yaml"
    path.write_text(yaml.safe_dump(SUITE, sort_keys=False))
    return {"suite": str(path), "profiles": stacks(home), "data": tiny.data(home / "data")}


def mixing(rows):
    """A network of three colors whose logits mix them."""
    made = tiny.classifier()
    (weights,) = made.graph.initializer
    weights.CopyFrom(numpy_helper.from_array(np.array(rows, np.float32), weights.name))
    return made


@pytest.fixture(scope="module")
def cards(home):
    """A network that takes blue for green, and one that takes red for green, too."""
    one = mixing([[1, 0, 0], [0, 1, 0], [0, 2.2, 1]])
    two = mixing([[1, 2.2, 0], [0, 1, 0], [0, 2.2, 1]])
    return [tiny.card(home / "one", one, name="float"), tiny.card(home / "two", two, name="other")]


@pytest.fixture(scope="module")
def both(asked, cards, home):
    return robustness(**asked, models=cards, out=home / "runs")


def right(folder, side, text):
    """(samples,) whether each is answered correctly."""
    rows = pq.read_table(Path(folder) / "records.parquet").to_pylist()
    return np.array([r["correct"] for r in rows if (r["side"], r["condition"]) == (side, text)])


def test_ratios_of_the_second_model_are_by_the_first_models_first_stack(both):
    """CE: errors over severities by those of the reference; it was divided by itself."""
    first, second = both
    base = [1 - right(first.folder, SIDES[0], text).mean() for text in LEVELS]
    assert first.summary.reference == SIDES[0] and first.summary.against is None
    assert second.summary.reference == "float on pillow_fp32"
    for result in both:
        for side in SIDES:
            own = [1 - right(result.folder, side, text).mean() for text in LEVELS]
            found = result.summary.stacks[side].ce["jpeg"]
            if sum(base):
                assert found.value == pytest.approx(sum(own) / sum(base))
            else:
                assert found is None
    assert second.summary.stacks[SIDES[0]].ce["jpeg"].value != pytest.approx(1)


def test_differences_are_of_the_same_stack_and_the_same_samples(both):
    first, second = both
    against = second.summary.against
    assert (against.model, against.samples, against.family) == ("float", 6, 4)
    for side in SIDES:
        clean, base = (right(one.folder, side, None).mean() for one in (second, first))
        own, other = (
            np.mean([right(one.folder, side, text).mean() for text in LEVELS])
            for one in (second, first)
        )
        found = against.interaction[side]
        assert found["clean"].value == pytest.approx(clean - base)
        assert found["jpeg"].value == pytest.approx((own - clean) - (other - base))
        assert against.mean_interaction[side].value == pytest.approx(found["jpeg"].value)
        low, high = found["clean"].ci95
        assert low <= found["clean"].value <= high
        assert found["clean"].p_holm >= found["clean"].p
        # All six could agree by chance once in 32 tosses of a coin.
        assert all(one.p >= 2 / 2**6 for one in found.values())


def test_flip_rates_are_by_the_reference(both):
    first, second = both
    assert second.summary.sequences.reference == "float on pillow_fp32"
    base = first.summary.sequences.stacks[SIDES[0]].fp["rotate"].value
    for side in SIDES:
        own = second.summary.sequences.stacks[side]
        if base:
            assert own.fr["rotate"].value == pytest.approx(own.fp["rotate"].value / base)
        else:
            assert own.fr["rotate"] is None


def test_another_model_is_the_reference(asked, cards, home):
    """``--reference`` is run first; a folder of its run does the same."""
    first, second = robustness(**asked, models=cards, reference=cards[1], out=home / "other")
    assert [one.summary.model for one in (first, second)] == ["other", "float"]
    assert second.summary.reference == "other on pillow_fp32"
    (again,) = robustness(
        **asked, models=[cards[0]], reference=first.folder, out=home / "from_folder"
    )
    assert again.summary.stacks == second.summary.stacks
    assert again.summary.against == second.summary.against


def test_a_stopped_run_of_the_second_model_goes_on(asked, cards, both, home):
    with pytest.raises(KeyboardInterrupt):
        robustness(**asked, models=[cards[1]], reference=both[0].folder, out=home / "stopped",
                   progress=StopsAt(2))  # fmt: skip
    folder = home / "stopped" / "other"

    assert cli.main(["resume", str(folder), "--json"]) == 0

    found, whole = (
        json.loads((one / "summary.json").read_text()) for one in (folder, both[1].folder)
    )
    for one in (found, whole):
        del one["seconds"], one["pictures"]
    assert found == whole


def test_samples_that_only_one_model_can_do_are_in_no_ratio(asked, cards, home, both):
    """The reference's run has skipped one: both are measured on the five others."""
    folder = home / "fewer"
    folder.mkdir()
    for file in both[0].folder.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    table = pq.read_table(folder / "records.parquet")
    name = table["sample"][0].as_py()
    skipped = [name if one == name else None for one in table["sample"].to_pylist()]
    at = table.column_names.index("skipped")
    table = table.set_column(at, table.schema.field("skipped"), [skipped])
    pq.write_table(table, folder / "records.parquet")

    (result,) = robustness(**asked, models=[cards[1]], reference=folder, out=home / "five")

    assert (result.summary.samples, result.summary.against.samples) == (6, 5)
    keep = slice(1, None)
    base, own = (
        sum(1 - right(one, SIDES[0], text)[keep].mean() for text in LEVELS)
        for one in (both[0].folder, result.folder)
    )
    found = result.summary.stacks[SIDES[0]].ce["jpeg"]
    assert found.value == pytest.approx(own / base) if base else found is None
    nr = np.mean([right(result.folder, SIDES[0], text).mean() for text in LEVELS])
    assert result.summary.stacks[SIDES[0]].nr["jpeg"].value == pytest.approx(nr)


def test_a_rule_judges_the_models_that_are_compared(asked, cards, home):
    """The reference has no such figure, and does not fail for that."""
    rule = ["against.pillow_fp32.clean < 0 points", "pillow_fp32.mNR < 1%"]
    models = [tiny.card(home / "right", name="right"), cards[0]]
    first, second = robustness(**asked, models=models, fail_on=rule, out=home / "judged")
    assert first.passed and not second.passed
    assert [one.rule for one in first.summary.gate.rules] == rule[1:]
    with pytest.raises(UserError, match="against wants a reference model"):
        robustness(**asked, models=models[:1], fail_on=rule, out=home / "alone")


def test_screen_and_page_say_what_the_reference_is(both, capsys):
    assert show(EXPERIMENTS.of("robustness"), both, False) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "mCE is relative to float on pillow_fp32" in out
    assert "less that of float on the same stack, points" in out
    text = page.write(both[1].folder).read_text()
    assert "Does a condition cost other more than it costs float?" in text


@pytest.mark.parametrize("job", ["robustness", "sweep"])
def test_a_mistake_in_the_last_card_is_told_before_the_first_model_is_run(
    job, asked, cards, home, tmp_path
):
    wrong = home / "wrong.yaml"
    wrong.write_text(cards[0].read_text().replace("input:", "imput:"))
    more = {"models": [cards[0], wrong], "out": tmp_path / "o"}
    call = partial(robustness, **asked, **more)
    if job == "sweep":
        call = partial(sweep, "robustmq-s", data=asked["data"], **more)
    with pytest.raises(ModelError, match="imput"):
        call()
    assert not (tmp_path / "o").exists()


def test_references_that_are_none(asked, cards, home, both, tmp_path):
    with pytest.raises(UserError, match="no such model card, and no such run"):
        robustness(**asked, models=cards, reference="nowhere.yaml", out=tmp_path / "a")
    with pytest.raises(RunError):
        robustness(**asked, models=cards, reference=home, out=tmp_path / "b")
    with pytest.raises(UserError, match="leave out --reference"):
        robustness(**asked, models=cards, reference=cards[0], out=tmp_path / "c",
                   until_decided="worst-drop")  # fmt: skip
    more = tiny.data(tmp_path / "more", each=3)
    with pytest.raises(UserError, match="the reference's run has no answer for"):
        robustness(**{**asked, "data": more}, models=[cards[1]], reference=both[0].folder,
                   out=tmp_path / "d")  # fmt: skip


def test_models_stand_on_one_page(both, home, capsys):
    """Figures 4 and 5 of Kamann and Rother: a point a model, bars by category; Tables 1 and 3."""
    folders = [str(result.folder) for result in both]
    assert cli.main(["report", *folders, "--out", str(home / "page")]) == 0
    assert (home / "page" / "models.html").is_file()
    drawn = {path.name for path in (home / "page" / "charts").iterdir()}
    assert drawn == {"models-1.svg", "categories-1.svg"}
    with pytest.raises(UserError, match=r"two runs are of float, .*; give each"):
        compare([both[0].folder] * 2, home / "twice", Console())
    text = (home / "page" / "charts" / "models-1.svg").read_text()
    assert "float, pillow_fp32" in text and "other, bgr" in text
    capsys.readouterr()
    assert cli.main(["report", *folders, "--format", "csv", "--table", "categories"]) == 0
    _, first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("CE digital,")
    own = both[1].summary.stacks[SIDES[0]]
    assert float(first.split(",")[7]) == own.category_ce["digital"].value == own.ce["jpeg"].value
