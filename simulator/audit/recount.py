"""Which figures of a bundle follow from its own records; no model is needed, and nothing is run."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simulator.audit.answers import Measure
from simulator.audit.figures import of_shape
from simulator.audit.recorded import Key, RecordedAudit
from simulator.audit.trees import differing
from simulator.errors import RunError, UserError, one_line
from simulator.experiments.failures import tallied, tried_in
from simulator.experiments.summary import SIDES, TOTAL, reference_of
from simulator.latency.quality import Quality
from simulator.latency.rounds import LATENCIES, times_of
from simulator.latency.summary import of_times
from simulator.latency.tail_figures import convergence, tail
from simulator.latency.times import Times
from simulator.results.json_text import finite
from simulator.results.layout import PAIRS_FOLDER
from simulator.results.pair import PairSummary
from simulator.results.tail import TailSummary
from simulator.results.times import ABSENT, Ints, from_map, total
from simulator.statistics import percentiles

PAIR = ("samples", "skipped", "failed", "latency_ms")
ROUNDS = (
    "samples", "skipped", "failed", "latency_ms", "percentiles", "ratio", "spread", "convergence",
    "stacks",
)  # fmt: skip
"""Figures of a pair's summary, and of its rounds, that are worked out of the records here."""
ANSWERS = ("labelled", "flips", "delta", "train", "deploy", "tail")
"""Figures that take the model's task and the labels, too: a replay works them out."""
STATED = (
    "by_size", "conditions", "controls", "decided", "machine", "protocol", "seconds", "tokens",
    "tracking", "under", "workers",
)  # fmt: skip
"""Numbers that a rule can name, and that no record contradicts: they are as somebody wrote them."""
_ODD = (
    pa.ArrowException, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError,
)  # fmt: skip
"""What records that somebody made up can raise."""
_INFER = "infer"
CURVE = "curve"
"""Of the tail's figures the one that no rule can name."""


def contradicted(recorded: RecordedAudit) -> tuple[dict[Key, list[str]], list[str]]:
    """Hold the summaries of an audit's pairs and rounds against their records.

    Returns:
        By model and stack the figures that do not follow, by their places; and what could not be
        held against anything, with the reason.

    Raises:
        RunError: a table of records is none.
    """
    found: dict[Key, list[str]] = {}
    unknown: list[str] = []
    for place in recorded.places:
        kind, model, deploy = place.split("/")
        try:
            summary = recorded.summary(place)
        except RunError as error:
            unknown.append(f"{place}: {one_line(error, 100)}")
            continue
        where = recorded.where(place)
        if kind == PAIRS_FOLDER:
            pair = of_shape(summary, PairSummary, where)
            wrong = of_pair(pair, recorded.records(place), where)
        elif (times := rounds_at(recorded, place)) is None:
            unknown.append(f"{place}: every latency: the bundle is of a version without rounds")
            continue
        else:
            rounds = of_shape(summary, TailSummary, where)
            wrong = of_rounds(rounds, times, recorded.records(place), where)
        found.setdefault((model, deploy), []).extend(f"{place}.{one}" for one in wrong)
    return found, unknown


def of_pair(found: PairSummary, records: bytes, where: str) -> list[str]:
    """Return the figures of a pair that do not follow from its records.

    Raises:
        RunError: they are not records of a pair.
    """
    try:
        table = pq.read_table(io.BytesIO(records))
        expected = _counted(table)
        expected["latency_ms"] = {
            side: {stage: percentiles.figures(ns) for stage, ns in _taken(table, side).items()}
            for side in SIDES
        }
    except _ODD as error:
        raise RunError(f"{where}: not records of a pair: {one_line(error, 100)}") from error
    return differing(finite(found), finite(expected), PAIR)


def _counted(table: pa.Table) -> dict[str, object]:
    """How many samples went through every stack, and which stacks failed on the others."""
    stacks = list(dict.fromkeys(table["side"].to_pylist()))
    known = tried_in(table, stacks)
    answered = [tried for tried in known if len(tried.failed) < len(stacks)]
    counts: dict[str, object] = {
        "samples": sum(not tried.failed for tried in known),
        "skipped": len(known) - len(answered),
    }
    if "failed" not in table.column_names:  # of a version that left samples out for all stacks
        return counts
    return counts | {"failed": tallied(answered, stacks, reference_of(stacks))["failed"]}


def _taken(table: pa.Table, side: str) -> dict[str, Ints]:
    """The nanoseconds of every stage of one stack, and of all of them together."""
    own = from_map(table["ns"].filter(pc.equal(table["side"], side)))
    ran = own[_INFER] != ABSENT if _INFER in own else []
    return {TOTAL: total(own)[ran], **{name: ns[ns != ABSENT] for name, ns in own.items()}}


def rounds_at(recorded: RecordedAudit, place: str) -> dict[str, Times] | None:
    """Return the latencies of every stack in the rounds of a pair; None where none were kept.

    Raises:
        RunError: they are not those of such rounds.
    """
    content = recorded.latencies(place)
    if content is None:
        return None
    found = of_shape(recorded.summary(place), TailSummary, recorded.where(place))
    try:
        return times_of(pq.read_table(io.BytesIO(content)), found.stacks)
    except _ODD as error:
        where = recorded.where(f"{place}/{LATENCIES}")
        raise RunError(f"{where}: not latencies of rounds: {one_line(error, 100)}") from error


def of_rounds(
    found: TailSummary, times: Mapping[str, Times], records: bytes, where: str
) -> list[str]:
    """Return the figures of rounds that do not follow from their latencies.

    Args:
        found: their summary.
        times: by stack.
        records: of the untimed pass: the content of ``records.parquet``.
        where: the rounds, for errors.

    Raises:
        RunError: these are not latencies of rounds.
    """
    try:
        stacks = {
            side: {
                "rounds": time.rounds,
                "queries": time.rounds * time.inferences,
                "failed": time.failed,
            }
            for side, time in times.items()
        }
        expected = {
            **_counted(pq.read_table(io.BytesIO(records))),
            **of_times(times),
            "convergence": convergence(times),
            "stacks": stacks,
        }
    except (*_ODD, StopIteration) as error:
        raise RunError(f"{where}: not latencies of rounds: {one_line(error, 100)}") from error
    stated = finite(found)
    for side, counts in stacks.items():
        stated["stacks"][side] = {key: stated["stacks"][side][key] for key in counts}
    return differing(stated, finite(expected), ROUNDS)


def of_tail(
    recorded: RecordedAudit, place: str, times: Mapping[str, Times], measure: Measure
) -> list[str]:
    """Return the figures of late answers that do not follow from latencies and answers.

    Args:
        recorded: the bundle.
        place: of the rounds in it.
        times: by stack.
        measure: the task, and the labels of the samples.

    Raises:
        RunError: these are not answers of this task.
    """
    found = of_shape(recorded.summary(place), TailSummary, recorded.where(place))
    answers, task, truths = recorded.answers(place), measure.task, measure.truths
    asked = recorded.audit.spec.tail
    try:
        names = [name for name, digest in next(iter(answers.values())).digests.items() if digest]
        known = [truths[name] for name in names]
        qualities = {
            side: Quality(task, [answers[side].records[name] for name in names], known)
            for side in times
        }
        deadlines = sorted(set(asked.deadlines_ms if asked else ()))
        expected, _ = tail(times, qualities, deadlines, measure.seed, task.resamples)
    except (*_ODD, UserError, StopIteration) as error:
        raise RunError(f"{measure.where}: not answers of rounds: {one_line(error, 100)}") from error
    return [
        f"tail.{side}.{key}"
        for side, own in expected.items()
        for key in own
        if key != CURVE
        and differing(
            {key: finite(found.tail[side].get(key)) if side in found.tail else None},
            {key: finite(own[key])},
        )
    ]
