"""A forger changes figures, makes every outcome and digest fit, and is found by the records."""

import pytest
import tiny
from audits import changed, document, forged, rewritten

from simulator import audit, cli, replay
from simulator.analysis.figures import figures
from simulator.audit import recount
from simulator.audit.verdict import DIFFERENT
from simulator.experiments.summary import vocabulary
from simulator.latency import tail
from simulator.model.card import Card
from simulator.results.pair import pair_summary
from simulator.results.tail import TailSummary

PAIR, TAIL = "pairs__tiny__bgr__summary", "tail__tiny__bgr__summary"
RULES = [{"fail_on": "deploy.latency.min > 0.000001ms", "because": "a wish"}]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    card, data = tiny.card(folder / "model"), tiny.data(folder / "data")
    rounds = {"rounds": 3, "deadlines_ms": [1000.0]}
    asked = document(folder, card, data, deploy={"bgr": "pillow_fp32"}, rules=RULES, tail=rounds)
    made = audit(asked, out=folder / "out").folder / "bundle.zip"
    return made, card, data


def lower(summary):
    """Half of the latency, and a rule that holds."""
    one = summary["latency_ms"]["deploy"]["total"]
    one["mean"] /= 2


def late(summary):
    summary["tail"]["deploy"]["thresholds"]["1000ms"]["worst"] = 0.5
    summary["tail"]["deploy"]["tail_quality@1000ms"] = 0.5


FORGED = {
    "latency of a pair": (PAIR, lower, "latency_ms.deploy.total.mean"),
    "samples": (PAIR, lambda s: s.update(skipped=3), "skipped"),
    "latency of rounds": (TAIL, lower, "latency_ms.deploy.total.mean"),
    "percentile of rounds": (
        TAIL, lambda s: s["percentiles"]["deploy"]["p50"].update(ms=1e-3),
        "percentiles.deploy.p50.ms",
    ),
    "ratio": (TAIL, lambda s: s["ratio"]["deploy"].update(value=0.01), "ratio.deploy.value"),
    "settled": (
        TAIL, lambda s: s["convergence"]["deploy"].update(settled=99),
        "convergence.deploy.settled",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_verify_and_replay_name_a_forged_figure(bundle, tmp_path, capsys, what):
    made, card, data = bundle
    name, change, field = FORGED[what]
    top = (lambda s: s["pairs"][0].update(skipped=3)) if what == "samples" else len
    place = forged(made, tmp_path / "forged.zip", summary=top, **{name: change})

    assert cli.main(["verify", str(place)]) == cli.GATE_FAILED
    said = capsys.readouterr().out
    found = replay(place, models=[str(card)], images=[str(data)], out=tmp_path / "again")

    assert f"{name.replace('__', '/').removesuffix('/summary')}.{field}" in said
    assert found.summary.pairs[0].verdict == DIFFERENT
    assert field in found.summary.pairs[0].reason
    assert not found.passed


def test_quality_of_late_answers_takes_the_labels_so_replay_finds_it(bundle, tmp_path, capsys):
    made, card, data = bundle
    place = forged(made, tmp_path / "forged.zip", **{TAIL: late})

    assert cli.main(["verify", str(place)]) == cli.PASS
    assert "stated, not verified: labelled, flips, delta" in capsys.readouterr().out
    found = replay(place, models=[str(card)], images=[str(data)], out=tmp_path / "again")

    assert "tail/tiny/bgr.tail.deploy.thresholds" in found.summary.pairs[0].reason
    assert not found.passed


def test_rounds_that_were_changed_too_are_not_sums_of_their_stages(bundle, tmp_path, capsys):
    def halve(table):
        at = table.column_names.index("total_ns")
        halved = [ns // 2 for ns in table["total_ns"].to_pylist()]
        return table.set_column(at, table.schema.field(at), [halved])

    name = "tail/tiny/bgr/latencies.parquet"
    place = changed(bundle[0], tmp_path / "x.zip", lambda m: rewritten(m, name, halve))

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
