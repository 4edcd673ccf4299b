"""What the report shows of an identified stack."""

from __future__ import annotations

from simulator.identify.screen import notes, tables
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
    shown = tables(summary, "What the recording says of each axis")
    profile = run.file(PROFILE)
    if profile is not None:
        code = Code(profile.decode("utf-8", "replace"))
        shown.append(Table(["file", "content"], [[PROFILE, code]], "The profile", folded=True))
    return Section(
        "identified",
        "The stack, axis by axis",
        f"Which options give what {summary.device} gave, and which others are equal or near?",
        notes(summary),
        tables=shown,
        notes=["mean and largest are absolute differences from what was recorded."],
    )
