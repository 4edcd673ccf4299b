"""The check of what a task says of hardware faults."""

from __future__ import annotations

import pyarrow as pa

from simulator.tasks.impact import Decoded, Due
from simulator.tasks.score import Values
from simulator.tasks.specimen import Specimen
from simulator.testing.subject import Failed, expect
from simulator.testing.task_cases import plain
from simulator.testing.values import one_line


def faults_have_a_verdict(subject: Specimen) -> None:
    """The same answer is masked; any row has the declared columns, with truth and without."""
    task, placement = subject.task, subject.placement
    size = (placement.height, placement.width) if hasattr(placement, "height") else None
    for truth in (subject.truth, None):
        opened = None if truth is None else task.opened(truth)
        case = task.Impact(task, task.Impact.Options(), subject.answer(), opened, size)
        same = case.row(Decoded(subject.answer()))
        expect(same["sdc"] is False, f"sdc of the same answer: False expected, got {same['sdc']!r}")
        found = [same, case.row(Decoded(subject.answer(1))), case.row(Decoded(None, Due.OUTPUT))]
        expect(found[2]["due"] is True, "due: True expected where the outputs have NaN")
        again = case.row(Decoded(subject.answer(1)))
        expect(plain(found[1]) == plain(again), "a fault again: the same row expected")
        for row in found:
            _fits(row, pa.schema(case.schema()))


def _fits(row: Values, columns: pa.Schema) -> None:
    odd = sorted(set(columns.names) ^ row.keys())
    expect(not odd, f"a row of the columns expected, got more or fewer: {', '.join(odd)}")
    ordered = {name: row[name] for name in columns.names}
    try:
        (back,) = pa.Table.from_pylist([row], columns).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise Failed(f"a row that fits its columns expected, got {one_line(error)}") from error
    expect(repr(back) == repr(ordered), f"{ordered} expected after a table, got {back}")
