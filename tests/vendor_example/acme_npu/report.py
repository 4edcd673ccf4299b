"""A section of the report of Acme's own: how often each grade was given."""

from __future__ import annotations

import pyarrow.compute as pc

from simulator.report.reading import Run
from simulator.report.sections.section import Section, Table, part


@part(order=185)
def grades(run: Run) -> Section | None:
    """Show the grades of either stack; nothing of a run of another task."""
    if "grade" not in run.records.column_names:
        return None
    counts = {side: pc.value_counts(run.side(side)["grade"]) for side in ("train", "deploy")}
    known = {side: {one["values"]: one["counts"] for one in found.to_pylist()}
             for side, found in counts.items()}  # fmt: skip
    every = sorted({grade for found in known.values() for grade in found})
    rows = [[str(grade), *(str(found.get(grade, 0)) for found in known.values())]
            for grade in every]  # fmt: skip
    return Section(
        "acme-grades",
        "Grades of wear",
        "Does a stack give other grades on the whole?",
        tables=[Table(["grade", *known], rows, "Bearings of each grade", 1)],
    )
