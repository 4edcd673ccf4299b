"""Run the checks that every task must pass."""

from __future__ import annotations

from simulator.errors import UserError
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import TASKS, Task
from simulator.testing import task_outputs, task_records, task_scores
from simulator.testing.suite import Suite, Verdict

SUITE: Suite[Specimen] = Suite.of(
    *(one.__name__ for one in (task_scores, task_outputs, task_records))
)


def prove_task(what: str | type[Task] | Specimen) -> list[Verdict]:
    """Run every check on a task.

    Args:
        what: the name of an installed task, or its class, which is checked with all its
            specimens; or one specimen.

    Raises:
        UserError: there is no such task, or it has no specimen.
        MissingLibrary: what it needs is not installed.
    """
    if isinstance(what, Specimen):
        return SUITE.prove(what)
    task = TASKS[what] if isinstance(what, str) else what
    specimens = task.specimens()
    if not specimens:
        raise UserError(
            f"the task {task.name!r} has no specimens to check it with; write its specimens(), see "
            "docs/conformance.md"
        )
    return [found for specimen in specimens.values() for found in SUITE.prove(specimen)]
