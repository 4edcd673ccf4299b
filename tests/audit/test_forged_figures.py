"""A forger changes figures, makes every outcome and digest fit, and is found by the records."""

import io
import json

import pyarrow.parquet as pq
import pytest
from audits import changed, document, signed

from simulator import audit, cli, replay
from simulator.analysis.figures import figures
from simulator.audit import recount
from simulator.audit.verdict import DIFFERENT
from simulator.experiments.summary import vocabulary
from simulator.latency import tail
from simulator.model.card import Card
from simulator.results.pair import pair_summary
from simulator.results.timed import TailSummary

PAIR, TAIL = "pairs/tiny/bgr/summary.json", "tail/tiny/bgr/summary.json"
RULES = [{"fail_on": "deploy.latency.min > 0.000001ms", "because": "a wish"}]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    import tiny

    folder = tmp_path_factory.mktemp("audit")
    card, data = tiny.card(folder / "model"), tiny.data(folder / "data")
    rounds = {"rounds": 3, "deadlines_ms": [1000.0]}
    asked = document(folder, card, data, deploy={"bgr": "pillow_fp32"}, rules=RULES, tail=rounds)
    made = audit(asked, out=folder / "out").folder / "bundle.zip"
    return made, card, data


def forged(bundle, place, name, change, top=lambda pair: None):
    """A bundle with changed summaries, of a pair or its rounds and of the audit, newly signed."""

    def forge(members):
        for member, alter in ((name, change), ("summary.json", lambda s: top(s["pairs"][0]))):
            content = json.loads(members[member])
            alter(content)
            members[member] = json.dumps(content).encode()
        signed(members)

    return changed(bundle, place, forge)


def lower(summary):
    """Half of the latency, and a rule that holds."""
    one = summary["latency_ms"]["deploy"]["total"]
    one["mean"] /= 2


def late(summary):
    summary["tail"]["deploy"]["thresholds"]["1000ms"]["worst"] = 0.5
    summary["tail"]["deploy"]["tail_quality@1000ms"] = 0.5


FORGED = {
    "latency of a pair": (PAIR, lower, lambda pair: None, "latency_ms.deploy.total.mean"),
    "samples": (PAIR, lambda s: s.update(skipped=3), lambda p: p.update(skipped=3), "skipped"),
    "latency of rounds": (TAIL, lower, lambda pair: None, "latency_ms.deploy.total.mean"),
    "percentile of rounds": (
        TAIL, lambda s: s["percentiles"]["deploy"]["p50"].update(ms=1e-3), lambda pair: None,
        "percentiles.deploy.p50.ms",
    ),
    "ratio": (
        TAIL, lambda s: s["ratio"]["deploy"].update(value=0.01), lambda pair: None,
        "ratio.deploy.value",
    ),
    "settled": (
        TAIL, lambda s: s["convergence"]["deploy"].update(settled=99), lambda pair: None,
        "convergence.deploy.settled",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_verify_and_replay_name_a_forged_figure(bundle, tmp_path, capsys, what):
    made, card, data = bundle
    name, change, top, field = FORGED[what]
    place = forged(made, tmp_path / "forged.zip", name, change, top)

    assert cli.main(["verify", str(place)]) == cli.GATE_FAILED
    said = capsys.readouterr().out
    found = replay(place, models=[str(card)], images=[str(data)], out=tmp_path / "again")

    assert f"{name.removesuffix('/summary.json')}.{field}" in said
    assert found.summary.pairs[0].verdict == DIFFERENT
    assert field in found.summary.pairs[0].reason
    assert not found.passed


def test_quality_of_late_answers_takes_the_labels_so_replay_finds_it(bundle, tmp_path, capsys):
    made, card, data = bundle
    place = forged(made, tmp_path / "forged.zip", TAIL, late)

    assert cli.main(["verify", str(place)]) == cli.PASS
    assert "stated, not verified: labelled, flips, delta" in capsys.readouterr().out
    found = replay(place, models=[str(card)], images=[str(data)], out=tmp_path / "again")

    assert "tail/tiny/bgr.tail.deploy.thresholds" in found.summary.pairs[0].reason
    assert not found.passed


def test_rounds_that_were_changed_too_are_not_sums_of_their_stages(bundle, tmp_path, capsys):
    def change(members):
        name = "tail/tiny/bgr/latencies.parquet"
        table = pq.read_table(io.BytesIO(members[name]))
        at = table.column_names.index("total_ns")
        halved = [ns // 2 for ns in table["total_ns"].to_pylist()]
        table = table.set_column(at, table.schema.field(at), [halved])
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        members[name] = buffer.getvalue()
        signed(members)

    place = changed(bundle[0], tmp_path / "x.zip", change)

    assert cli.main(["verify", str(place)]) == cli.USER_ERROR
    assert "a total is not the sum of its stages" in capsys.readouterr().err


def test_an_honest_bundle_is_intact_and_says_what_is_only_stated(bundle, capsys):
    made, *_ = bundle

    assert cli.main(["verify", str(made)]) == cli.PASS

    said = capsys.readouterr().out
    assert "intact" in said
    assert "stated, not verified: labelled, flips, delta, train, deploy, tail" in said


def test_every_figure_that_a_rule_can_name_is_worked_out_or_named(bundle):
    loaded = Card(bundle[1])
    words = tail.vocabulary(loaded.task, ("train", "deploy"), [12.0])
    named = {
        one.path.split(".")[0]
        for shape, known in (
            (pair_summary(loaded.task.Flips), vocabulary(loaded)), (TailSummary, words),
        )
        for one in figures(shape, known)
    }  # fmt: skip

    assert named <= {*recount.PAIR, *recount.ROUNDS, *recount.ANSWERS, *recount.STATED}
