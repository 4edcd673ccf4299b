"""What a fault does to the answer of a task without words of its own for it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from simulator.errors import NotFinite, SampleError
from simulator.tasks.impact import Decoded, Impact
from simulator.tasks.task import TASKS, Task


class Two(Task):
    """Two words; each is a unit."""

    name = "two"

    def decode(self, outputs, settings, placement):
        return outputs

    def record(self, prediction, truth):
        return {}

    def change(self, before, after, truth):
        return {"changed": sum(a != b for a, b in zip(before, after, strict=True)), "units": 2}

    def examples(self):
        return []


def test_any_task_has_a_verdict():
    task = Two(None, None)
    case = task.Impact(task, task.Impact.Options(), "ab", None)
    assert case.judge("ab") == {"sdc": False, "severity": 0.0}
    assert case.judge("ac") == {"sdc": True, "severity": 0.5}
    with pytest.raises(NotImplementedError, match="two does not say what is where"):
        case.blobs("ac")


@pytest.mark.parametrize("name", TASKS.names)
def test_every_row_has_the_declared_columns_and_fits_a_table(name):
    """The sample's own answer is masked; it changes nothing."""
    for specimen in TASKS[name].specimens().values():
        task, golden = specimen.task, specimen.answer()
        size = getattr(specimen.placement, "height", 0), getattr(specimen.placement, "width", 0)
        case = task.Impact(task, task.Impact.Options(), golden, None, size)
        rows = [
            case.row(Decoded(golden)),
            case.row(Decoded(specimen.answer(1))),
            case.row(Decoded(golden), finite=False),
        ]
        schema = pa.schema(case.schema())
        assert all(list(row) == schema.names for row in map(dict, _ordered(rows, schema)))
        assert pa.Table.from_pylist(rows, schema).to_pylist() == list(_ordered(rows, schema))
        assert [(row["sdc"], row["due"]) for row in rows] == [
            (False, False), (True, False), (False, True),
        ]  # fmt: skip


def _ordered(rows, schema):
    for row in rows:
        assert set(row) == set(schema.names)
        yield {name: row[name] for name in schema.names}


def test_not_finite_is_told_apart_from_other_samples_that_cannot_be_used():
    assert issubclass(NotFinite, SampleError)
    assert Impact.schema()[0].name == "sdc"
