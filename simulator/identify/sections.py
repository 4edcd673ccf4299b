"""What the report shows of an identified stack."""

from __future__ import annotations

from simulator.identify import words
from simulator.report.reading import Run
from simulator.report.sections.section import Code, Section, Table, part
from simulator.results.identify import IdentifySummary

PROFILE = "identified.yaml"


@part(order=22)
def axes(run: Run) -> Section | None:
    """Show what the recording says of each axis, what is near, and the profile."""
    summary = run.summary
    if not isinstance(summary, IdentifySummary):
        return None
    tables = [Table(words.AXES, words.axes(summary), "What the recording says of each axis", 4)]
    if summary.runners_up:
        rows = words.runners_up(summary)
        tables.append(Table(words.RUNNERS, rows, "What is near, but not equal", 1))
    profile = run.file(PROFILE)
    if profile is not None:
        code = Code(profile.decode("utf-8", "replace"))
        tables.append(Table(["file", "content"], [[PROFILE, code]], "The profile", folded=True))
    return Section(
        "identified",
        "The stack, axis by axis",
        f"Which options give what {summary.device} gave, and which others are equal or near?",
        words.notes(summary),
        tables=tables,
        notes=["mean and largest are absolute differences from what was recorded."],
    )
