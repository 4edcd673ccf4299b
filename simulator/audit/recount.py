"""Which figures of a bundle follow from its own records; no model is needed, and nothing is run."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.audit.answers import SideAnswers
from simulator.audit.archive import Archive
from simulator.audit.bundle import MOST_RECORDS, MOST_TEXT
from simulator.audit.consistency import Key
from simulator.audit.measure import Measure
from simulator.audit.verdict import mismatches, same
from simulator.errors import RunError, UserError, one_line
from simulator.experiments.failures import tallied, tried_in
from simulator.experiments.summary import SIDES, TOTAL, reference_of
from simulator.latency.quality import Quality
from simulator.latency.rounds import LATENCIES, times_of
from simulator.latency.stopping import Rule
from simulator.latency.summary import of_times
from simulator.latency.tail_figures import convergence, tail
from simulator.latency.times import Times
from simulator.results.json_text import finite
from simulator.results.layout import PAIRS_FOLDER, RECORDS, SUMMARY, TAILS_FOLDER
from simulator.results.pair import PairSummary
from simulator.results.shared import Summary
from simulator.results.summaries import parse
from simulator.results.timed import TailSummary
from simulator.results.times import ABSENT, from_map
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
    "conditions", "controls", "decided", "machine", "protocol", "seconds", "under", "workers",
)  # fmt: skip
"""Numbers that a rule can name, and that no record contradicts: they are as somebody wrote them."""
_ODD = (
    pa.ArrowException, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError,
)  # fmt: skip
"""What records that somebody made up can raise."""
_INFER = "infer"
CURVE = "curve"
"""Of the tail's figures the one that no rule can name."""
S = TypeVar("S", bound=Summary)


def contradicted(packed: Archive) -> tuple[dict[Key, list[str]], list[str]]:
    """Hold the summaries of an audit's pairs and rounds against their records.

    Returns:
        By model and stack the figures that do not follow, by their places; and what could not be
        held against anything, with the reason.

    Raises:
        RunError: a table of records is none.
    """
    found: dict[Key, list[str]] = {}
    unknown: list[str] = []
    for name in packed.names:
        kind, *key = name.split("/")
        if kind not in (PAIRS_FOLDER, TAILS_FOLDER) or len(key) != 3 or key[2] != SUMMARY:
            continue
        place = name.removesuffix(f"/{SUMMARY}")
        where = f"{packed.path}: {place}"
        try:
            summary = parse(packed.read(name, MOST_TEXT), f"{packed.path}: {name}")
        except RunError as error:
            unknown.append(f"{place}: {one_line(error, 100)}")
            continue
        records = packed.read(f"{place}/{RECORDS}", MOST_RECORDS)
        if kind == PAIRS_FOLDER:
            wrong = of_pair(_of(summary, PairSummary, where), records, where)
        elif f"{place}/{LATENCIES}" not in packed.names:
            unknown.append(f"{place}: every latency: the bundle is of a version without rounds")
            continue
        else:
            times = rounds_in(packed, place, _of(summary, TailSummary, where))
            wrong = of_rounds(_of(summary, TailSummary, where), times, records, where)
        lines = found.setdefault((key[0], key[1]), [])
        lines += [f"{place}.{one}" for one in wrong]
    return found, unknown


def of_pair(found: PairSummary, records: bytes, where: str) -> list[str]:
    """Return the figures of a pair that do not follow from its records.

    Args:
        found: its summary.
        records: the content of ``records.parquet``.
        where: the pair, for errors.

    Raises:
        RunError: they are not records of a pair.
    """
    try:
        table = pq.read_table(io.BytesIO(records))
        ns = from_map(table["ns"])
        sides = np.array(table["side"].to_pylist())
        rows = {side: sides == side for side in SIDES}
        latencies = {
            side: {stage: percentiles.figures(taken) for stage, taken in _taken(ns, mine).items()}
            for side, mine in rows.items()
        }
        counted = _counted(table)
    except _ODD as error:
        raise RunError(f"{where}: not records of a pair: {one_line(error, 100)}") from error
    return mismatches(finite(found), finite({**counted, "latency_ms": latencies}), PAIR)


def _counted(table: pa.Table) -> dict[str, Any]:
    """How many samples went through every stack, and which stacks failed on the others."""
    stacks = list(dict.fromkeys(table["side"].to_pylist()))
    known = tried_in(table, stacks)
    answered = [one for one in known if len(one.failed) < len(stacks)]
    counts: dict[str, Any] = {
        "samples": sum(not one.failed for one in known),
        "skipped": len(known) - len(answered),
    }
    if "failed" not in table.column_names:  # of a version that left samples out for all stacks
        return counts
    return counts | {"failed": tallied(answered, stacks, reference_of(stacks))["failed"]}


def _taken(
    ns: Mapping[str, np.ndarray[Any, np.dtype[np.int64]]],
    mine: np.ndarray[Any, np.dtype[np.bool_]],
) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """The nanoseconds of every stage of one stack, and of all of them together."""
    own = {stage: column[mine] for stage, column in ns.items()}
    whole = sum(np.where(column == ABSENT, 0, column) for column in own.values())
    ran = own[_INFER] != ABSENT if _INFER in own else np.zeros(int(mine.sum()), bool)
    total = np.broadcast_to(np.asarray(whole, np.int64), ran.shape)[ran]
    return {TOTAL: total, **{stage: column[column != ABSENT] for stage, column in own.items()}}


def rounds_in(packed: Archive, place: str, found: TailSummary) -> dict[str, Times]:
    """Return the latencies of every stack in the rounds of a pair.

    Raises:
        RunError: they are not those of such rounds.
    """
    sources = {side: stack.source or "" for side, stack in found.stacks.items()}
    where = f"{packed.path}: {place}/{LATENCIES}"
    try:
        table = pq.read_table(io.BytesIO(packed.read(f"{place}/{LATENCIES}", MOST_RECORDS)))
        return times_of(table, sources)
    except _ODD as error:
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
        table = pq.read_table(io.BytesIO(records))
        expected = {
            **_counted(table),
            **of_times(times),
            "convergence": convergence(times, Rule()),
            "stacks": {side: _described(one) for side, one in times.items()},
        }
    except (*_ODD, StopIteration) as error:
        raise RunError(f"{where}: not latencies of rounds: {one_line(error, 100)}") from error
    stated = finite(found)
    stated["stacks"] = {
        side: {key: one[key] for key in _described(times[side])}
        for side, one in stated["stacks"].items()
    }
    return mismatches(stated, finite(expected), ROUNDS)


def of_tail(
    found: TailSummary,
    times: Mapping[str, Times],
    answers: Mapping[str, SideAnswers],
    measure: Measure,
    deadlines_ms: Sequence[float],
) -> list[str]:
    """Return the figures of late answers that do not follow from latencies and answers.

    Args:
        found: the summary of the rounds.
        times: by stack.
        answers: of the untimed pass, by stack.
        measure: the task, and the labels of the samples.
        deadlines_ms: the document's.

    Raises:
        RunError: these are not answers of this task.
    """
    task, truths = measure.task, measure.truths
    try:
        names = [name for name, one in next(iter(answers.values())).digests.items() if one]
        known = [truths[name] for name in names]
        qualities = {
            side: Quality(task, [answers[side].records[name] for name in names], known)
            for side in times
        }
        deadlines = sorted(set(deadlines_ms))
        expected, _ = tail(times, qualities, deadlines, measure.seed, task.resamples)
    except (*_ODD, UserError, StopIteration) as error:
        raise RunError(f"{measure.where}: not answers of rounds: {one_line(error, 100)}") from error
    stated, expected = finite(found)["tail"], finite(expected)
    return [
        f"tail.{side}.{key}"
        for side, own in expected.items()
        for key, value in own.items()
        if key != CURVE and not same(stated.get(side, {}).get(key), value)
    ]


def _described(times: Times) -> dict[str, int]:
    return {"rounds": times.rounds, "queries": int(times.total.size), "failed": times.failed}


def _of(found: Summary, shape: type[S], where: str) -> S:
    if not isinstance(found, shape):
        raise RunError(f"{where}: a summary of {found.command}")
    return found
