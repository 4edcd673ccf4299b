"""The answers of the stacks of a pair, read from its records, and the figures that they give."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.data.folder import Truths
from simulator.errors import RunError, UserError, one_line
from simulator.experiments.summary import SIDES
from simulator.results.json_text import JsonObject, finite
from simulator.statistics.bootstrap import RATE, Resamples, interval
from simulator.tasks.score import Record
from simulator.tasks.task import Task

MOST_ANSWERS = 2**30
"""Bytes of the records of a pair in memory; one long text may be packed a thousand times."""
_ROWS = 1024
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What records that somebody made up can raise."""
_KEYS = ("sample", "side", "condition", "trial", "digest", "skipped", "ns")


@dataclass(frozen=True, slots=True)
class SideAnswers:
    """The answers of one stack of a pair.

    Attributes:
        digests: of the network's outputs, by sample; None where the sample was skipped.
        records: every column of the task, by sample.
    """

    digests: dict[str, str | None]
    records: dict[str, Record]


def read_answers(content: bytes, manifest: JsonObject, where: str) -> dict[str, SideAnswers]:
    """Read ``records.parquet``, whoever has written it.

    Raises:
        RunError: it is none, or not that of the run of the manifest.
    """
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        samples = len(manifest["data"]["images"])
        if file.metadata.num_rows != len(SIDES) * samples:
            rows = file.metadata.num_rows
            raise RunError(f"{where}: {rows:,} records of {samples:,} samples and two stacks")
        table = _bounded(file, where)
        names = [n for n in table.column_names if n not in _KEYS]
        found = {side: SideAnswers({}, {}) for side in SIDES}
        for row in table.to_pylist():
            answers, sample = found[row["side"]], row["sample"]
            answers.digests[sample] = None if row["skipped"] is not None else str(row["digest"])
            answers.records[sample] = {name: row[name] for name in names}
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{where}: not records of a pair: {one_line(error, 100)}") from error
    return found


def _bounded(file: pq.ParquetFile, where: str) -> pa.Table:
    batches, size = [], 0
    for batch in file.iter_batches(_ROWS):
        size += batch.nbytes
        if size > MOST_ANSWERS:
            raise RunError(f"{where}: records of more than {MOST_ANSWERS:,} bytes")
        batches.append(batch)
    return pa.Table.from_batches(batches, file.schema_arrow)


@dataclass(frozen=True, slots=True)
class Counted:
    """The figures of a pair, from its records.

    Attributes:
        summary: ``samples``, and the parts of ``summary.json`` that the task's comparison gives.
        spread: the 95 % interval of each metric, as ``train.top1``, where it has one.
    """

    summary: JsonObject
    spread: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Measure:
    """The task by which the answers of a pair are judged."""

    task: Task
    truths: Truths
    seed: int
    where: str

    def same(self, old: SideAnswers, new: SideAnswers, sample: str) -> bool:
        """Whether two runs gave the same answer, as the task sees it.

        Raises:
            RunError: these are not records of this task.
        """
        try:
            return self.task.same(old.records[sample], new.records[sample])
        except _ODD as error:
            raise self._odd(error) from error

    def count(self, answers: Mapping[str, SideAnswers]) -> Counted:
        """Work the figures of a pair out of its records.

        Raises:
            RunError: they are no records from which this task's figures follow.
        """
        ran = [
            name
            for name, digest in answers[SIDES[0]].digests.items()
            if digest is not None and answers[SIDES[1]].digests.get(name) is not None
        ]
        try:
            return self._count(answers, ran)
        except (*_ODD, UserError) as error:
            raise self._odd(error) from error

    def _count(self, answers: Mapping[str, SideAnswers], ran: list[str]) -> Counted:
        task, truths = self.task, [self.truths[name] for name in ran]
        draws = Resamples(len(ran), self.seed, task.resamples)
        records = {side: [answers[side].records[name] for name in ran] for side in SIDES}
        train, deploy = (task.score(records[side], truths) for side in SIDES)
        summary = {"samples": len(ran), **task.compare(train, deploy, draws)}
        spread = {}
        for side in SIDES:
            pairs = zip(records[side], truths, strict=True)
            known = [(record, truth) for record, truth in pairs if truth is not None]
            if known:
                score = task.score([record for record, _ in known], [truth for _, truth in known])
                drawn = Resamples(len(known), self.seed, task.resamples)
                for metric, figure in score.drawn(task.headline, drawn).items():
                    spread[f"{side}.{metric}"] = interval(figure, drawn.number, RATE)
        return Counted(finite(summary), spread)

    def _odd(self, error: Exception) -> RunError:
        return RunError(f"{self.where}: not records of a pair: {one_line(error, 100)}")
